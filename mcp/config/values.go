package config

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"
)

// A Value is one setting as it is in force, and where it came from.
type Value struct {
	Key   string
	Value string
	From  string // the file's path, or "default"
}

// Values lists the settings that are not servers, in the order of their names.
func (c Config) Values() []Value {
	var out []Value
	c.walk(reflect.ValueOf(c.File), "", &out)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}

func (c Config) walk(v reflect.Value, at string, out *[]Value) {
	t := v.Type()
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("toml")
		if name == "" || at == "" && name == "servers" {
			continue
		}
		if at != "" {
			name = at + "." + name
		}
		f := v.Field(i)
		if f.Kind() == reflect.Struct {
			c.walk(f, name, out)
			continue
		}
		if f.Kind() == reflect.Map {
			for _, k := range f.MapKeys() {
				*out = append(*out, Value{name + "." + k.String(), words(f.MapIndex(k)), c.Path})
			}
			continue
		}
		val := Value{Key: name, Value: words(f), From: c.Path}
		if f.IsZero() {
			val.From = "default"
			if d, ok := defaults[name]; ok {
				val.Value = d
			}
		}
		*out = append(*out, val)
	}
}

// defaults says in words what holds where a key is not written.
var defaults = map[string]string{
	"poll.min": "500ms", "import.clients": "all", "ui.theme": "by the terminal's background", "ui.mouse": "false", "ui.columns": "by the window's width",
	"ui.group": "none", "ui.sort": "needs", "ui.details": "right", "notify.bell": "true", "notify.terminal": "true", "notify.hook": "none",
	"notify.only_after": "always", "notify.filter": "all", "limits.message": "64 MiB", "limits.depth": "128", "limits.tasks_per_server": "200000",
	"limits.log": "5000", "limits.result": "4 MiB", "limits.results_total": "1 GiB", "history.days": "90", "history.megabytes": "500", "import.none": "false",
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
