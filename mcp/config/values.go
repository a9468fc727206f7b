package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Value is one setting as it is in force, and where it came from.
type Value struct {
	Key   string
	Value string
	From  string // the file's path, the flag, or "default"
}

// Values lists all settings in the order of their names, then those of each
// server that are written somewhere. Variables stand as they are written, and
// what may be a secret is masked.
func (c Config) Values() []Value {
	var out []Value
	walk(reflect.ValueOf(c.File), "", func(key string, v reflect.Value) {
		if strings.HasPrefix(key, "servers.") {
			return
		}
		val := Value{Key: key, Value: words(v), From: "default"}
		if path, ok := c.from[key]; ok {
			val.From = path
		} else if d, ok := defaults[key]; ok {
			val.Value = d
		}
		out = append(out, val)
	})
	slices.SortStableFunc(out, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	for _, s := range c.Servers {
		first := len(out)
		walk(reflect.ValueOf(s.raw), "", func(key string, v reflect.Value) {
			if v.IsZero() && !s.set[key] {
				return
			}
			val := Value{Key: "servers." + s.Name + "." + key, Value: masked(key, v), From: s.Source}
			if s.set[key] {
				val.From = "--set"
			}
			out = append(out, val)
		})
		slices.SortFunc(out[first:], func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	}
	return out
}

// walk calls f with each key of a struct of settings, tables in it opened.
func walk(v reflect.Value, at string, f func(key string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Tag.Get("toml"); name != "" {
				walk(v.Field(i), join(at, name), f)
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			walk(v.MapIndex(k), join(at, k.String()), f)
		}
	default:
		f(at, v)
	}
}

// writtenKeys are the keys that a file has, as walk names them.
func writtenKeys(m map[string]any, at string) []string {
	var out []string
	for k, v := range m {
		if in, ok := v.(map[string]any); ok {
			out = append(out, writtenKeys(in, join(at, k))...)
		} else {
			out = append(out, join(at, k))
		}
	}
	return out
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// masked is a server's value with what may be a secret taken out: of a header,
// a variable of the environment and a client's secret all but the references to
// variables, of a URL and a command line what Target masks.
func masked(key string, v reflect.Value) string {
	text := words(v)
	top, _, _ := strings.Cut(key, ".")
	switch {
	case top == "headers", top == "env", key == "oauth.client_secret", key == "oauth.idp.client_secret",
		key == "oauth.private_key" && strings.Contains(text, "-----BEGIN"): // a key where its file's name belongs
		if reference.MatchString(text) {
			return text
		}
		return "***"
	case key == "url":
		return maskURL(text)
	case key == "args", key == "token_command", key == "sampling_command", key == "oauth.idp.id_token_command":
		if list, ok := v.Interface().([]string); ok {
			return strings.Join(maskArgs(list), " ")
		}
	}
	return text
}

// reference is a value that is nothing but variables with words around them that
// say what it is for.
var reference = regexp.MustCompile(`^((Bearer|Basic|Token) )?(\$\{[\w:/ ]*\}|\$[A-Za-z_]\w*)+$`)

// defaults says in words what holds where a key is not written.
var defaults = map[string]string{
	"poll.min": "500ms", "import.clients": "all", "ui.theme": "by the terminal's background", "ui.mouse": "false", "ui.columns": "by the window's width",
	"ui.group": "none", "ui.sort": "needs", "ui.details": "right", "notify.bell": "true", "notify.terminal": "true", "notify.hook": "none",
	"notify.title": "true", "notify.status": "true", "notify.focused": "false", "notify.style": "osc9",
	"notify.only_after": "always", "notify.filter": "all", "limits.message": "64 MiB", "limits.depth": "1000", "limits.tasks_per_server": "200000", "limits.questions": "1000",
	"limits.log": "5000", "limits.result": "4 MiB", "limits.results_total": "256 MiB", "limits.schema": "256 KiB",
	"limits.schema_depth": "64", "limits.schema_fields": "200", "limits.schema_choices": "1000", "history.days": "90", "history.megabytes": "500", "import.none": "false",
}

func words(v reflect.Value) string {
	if v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case Duration:
		return time.Duration(x).String()
	case Size:
		return fmt.Sprintf("%d bytes", x)
	case []string:
		return strings.Join(x, ", ")
	}
	return fmt.Sprint(v.Interface())
}
