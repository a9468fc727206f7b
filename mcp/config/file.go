package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	toml "github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A File is the program's own config.toml, as written. Every key is optional.
type File struct {
	Servers map[string]ServerEntry `toml:"servers"`
	Poll    struct {
		Min Duration `toml:"min"`
	} `toml:"poll"`
	Import struct {
		// Clients names the clients whose files are read; None reads none.
		Clients []string `toml:"clients"`
		None    bool     `toml:"none"`
	} `toml:"import"`
	UI      UI                `toml:"ui"`
	Keys    map[string]any    `toml:"keys"`
	Views   map[string]string `toml:"views"`
	Notify  Notify            `toml:"notify"`
	Limits  Limits            `toml:"limits"`
	History struct {
		Days      int `toml:"days"`
		Megabytes int `toml:"megabytes"`
	} `toml:"history"`
}

// A ServerEntry is one [servers.NAME] table.
type ServerEntry struct {
	URL             string               `toml:"url"`
	Command         string               `toml:"command"`
	Args            []string             `toml:"args"`
	Env             map[string]string    `toml:"env"`
	Cwd             string               `toml:"cwd"`
	EnvFile         string               `toml:"env_file"`
	Transport       string               `toml:"transport"`
	Generation      string               `toml:"generation"`
	Headers         map[string]string    `toml:"headers"`
	TokenCommand    []string             `toml:"token_command"`
	TokenEnv        string               `toml:"token_env"`
	Autostart       *bool                `toml:"autostart"`
	PollMin         Duration             `toml:"poll_min"`
	Keep            string               `toml:"keep"`
	CAFile          string               `toml:"ca_file"`
	ClientCert      string               `toml:"client_cert"`
	ClientKey       string               `toml:"client_key"`
	Insecure        bool                 `toml:"insecure"`
	Roots           []string             `toml:"roots"`
	SamplingCommand []string             `toml:"sampling_command"`
	OAuth           OAuth                `toml:"oauth"`
	Tools           map[string]ToolEntry `toml:"tools"`
}

// A ToolEntry is one [servers.NAME.tools.TOOL] table.
type ToolEntry struct {
	Keep string `toml:"keep"` // all | none
}

// OAuth says how to sign in where it cannot be found out.
type OAuth struct {
	ClientID     string   `toml:"client_id"`
	ClientSecret string   `toml:"client_secret"`
	PrivateKey   string   `toml:"private_key"` // a file; signs in place of a secret
	KeyID        string   `toml:"key_id"`
	Scopes       []string `toml:"scopes"`
	Grant        string   `toml:"grant"` // authorization_code | client_credentials | enterprise
	IDP          IDP      `toml:"idp"`
}

// IDP is the identity provider of the grant enterprise, and where the ID token
// that it gave is to be had.
type IDP struct {
	Issuer         string   `toml:"issuer"`
	ClientID       string   `toml:"client_id"`
	ClientSecret   string   `toml:"client_secret"`
	IDTokenEnv     string   `toml:"id_token_env"`
	IDTokenCommand []string `toml:"id_token_command"`
}

// UI is how the screens look at the start.
type UI struct {
	Theme   string                       `toml:"theme"`
	Themes  map[string]map[string]string `toml:"themes"`
	Mouse   bool                         `toml:"mouse"`
	Columns []string                     `toml:"columns"`
	Group   string                       `toml:"group"`
	Sort    string                       `toml:"sort"`
	Details string                       `toml:"details"`
}

// Notify says what is told, when and how.
type Notify struct {
	Bell      *bool    `toml:"bell"`
	Terminal  *bool    `toml:"terminal"` // its notifications
	Title     *bool    `toml:"title"`    // the window's
	Status    *bool    `toml:"status"`   // the terminal's progress bar and program status
	Focused   bool     `toml:"focused"`  // tell while the window has the focus, too
	Style     string   `toml:"style"`    // of notifications: osc9 | osc99 | osc777
	Hook      []string `toml:"hook"`
	OnlyAfter Duration `toml:"only_after"`
	Filter    string   `toml:"filter"`
}

// Limits bound what servers can cost. Zero is the default.
type Limits struct {
	Message        Size `toml:"message"`
	Depth          int  `toml:"depth"`
	TasksPerServer int  `toml:"tasks_per_server"`
	Questions      int  `toml:"questions"` // open at once, of a server
	Log            int  `toml:"log"`
	Result         Size `toml:"result"`
	ResultsTotal   Size `toml:"results_total"`
	// Of the schema of which a form is made.
	Schema        Size `toml:"schema"`
	SchemaDepth   int  `toml:"schema_depth"`
	SchemaFields  int  `toml:"schema_fields"`
	SchemaChoices int  `toml:"schema_choices"` // of one field
}

// What a form's schema may be allowed to cost at most: a form is read and drawn
// on the goroutine that has the keyboard, and its depth is that of its reader's
// stack.
const (
	mostSchema        = 16 << 20
	mostSchemaDepth   = 1000
	mostSchemaFields  = 5000
	mostSchemaChoices = 50_000
)

// A Duration is written as in "2s" or "10m".
type Duration time.Duration

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is no duration such as \"2s\" or \"10m\"", b)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative", b)
	}
	*d = Duration(v)
	return nil
}

// A Size is written as in "4MiB", "500 kB" or a number of bytes.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(b []byte) error {
	t := strings.TrimSpace(string(b))
	i := strings.LastIndexAny(t, "0123456789") + 1
	var n int64
	if _, err := fmt.Sscan(t[:i], &n); err != nil || n < 0 {
		return fmt.Errorf("%q is no size such as \"4MiB\"", b)
	}
	unit, ok := map[string]int64{"": 1, "b": 1, "kb": 1000, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
		"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[strings.ToLower(strings.TrimSpace(t[i:]))]
	if !ok || n > (1<<62)/unit {
		return fmt.Errorf("%q is no size such as \"4MiB\"", b)
	}
	*s = Size(n * unit)
	return nil
}

// A FileError is a fault in a config file, with its place.
type FileError struct {
	Path string
	Line int
	Text string
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
	}
	return fmt.Sprintf("%s: %s", e.Path, e.Text)
}

// ParseFile reads a config.toml. An unknown key is an error that names its
// line and the nearest key that there is. All faults of the file are told, a
// FileError each, joined.
func ParseFile(path string, b []byte) (File, error) {
	var f File
	b = trimBOM(b)
	dec := toml.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(&f)
	var strict *toml.StrictMissingError
	var bad *toml.DecodeError
	var faults []error
	switch {
	case err == nil:
	case errors.As(err, &strict):
		for _, e := range strict.Errors {
			row, _ := e.Position()
			text := fmt.Sprintf("unknown key %q", strings.Join(e.Key(), "."))
			if near := nearest(e.Key()); near != "" {
				text += fmt.Sprintf("; did you mean %q?", near)
			}
			faults = append(faults, &FileError{path, row, text})
		}
	case errors.As(err, &bad):
		row, _ := bad.Position()
		return f, &FileError{path, row, strings.TrimPrefix(bad.Error(), "toml: ")}
	default:
		return f, &FileError{path, 0, err.Error()}
	}
	lines := map[string]int{}
	for _, fault := range check(f) {
		if len(lines) == 0 {
			lines = linesOf(b)
		}
		faults = append(faults, &FileError{path, lines[fault.key], fault.text})
	}
	slices.SortStableFunc(faults, func(a, b error) int { return a.(*FileError).Line - b.(*FileError).Line })
	if len(faults) == 1 {
		return f, faults[0]
	}
	return f, errors.Join(faults...)
}

// A fault is a value that its key does not allow.
type fault struct{ key, text string }

// check finds values that no key allows.
func check(f File) []fault {
	var faults []fault
	oneOf := func(key, v string, allowed ...string) {
		if v != "" && !slices.Contains(allowed, v) {
			faults = append(faults, fault{key, fmt.Sprintf("%s = %q: it is one of %s", key, v, strings.Join(allowed, ", "))})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		s, at := f.Servers[name], "servers."+name
		if strings.Contains(name, "/") {
			faults = append(faults, fault{at, fmt.Sprintf("server %q: a server's name holds no /", name)})
		}
		oneOf(at+".transport", s.Transport, "auto", "stdio", "http", "sse")
		oneOf(at+".generation", s.Generation, "auto", "draft", "2025-11-25", "2026-07-28", "none")
		oneOf(at+".keep", s.Keep, "all", "none")
		oneOf(at+".oauth.grant", s.OAuth.Grant, "authorization_code", "client_credentials", "enterprise")
		for _, tool := range slices.Sorted(maps.Keys(s.Tools)) {
			oneOf(at+".tools."+tool+".keep", s.Tools[tool].Keep, "all", "none")
		}
	}
	for _, c := range f.Import.Clients {
		oneOf("import.clients", c, Clients...)
	}
	oneOf("ui.group", f.UI.Group, "server", "status", "none")
	oneOf("ui.sort", f.UI.Sort, "needs", "status", "server", "tool", "id", "message", "progress", "age", "ttl", "heard")
	oneOf("ui.details", f.UI.Details, "right", "full", "none")
	for _, n := range []struct {
		key        string
		have, most int
	}{
		{"depth", f.Limits.Depth, math.MaxInt}, {"tasks_per_server", f.Limits.TasksPerServer, math.MaxInt}, {"questions", f.Limits.Questions, math.MaxInt},
		{"log", f.Limits.Log, math.MaxInt}, {"schema_depth", f.Limits.SchemaDepth, mostSchemaDepth},
		{"schema_fields", f.Limits.SchemaFields, mostSchemaFields}, {"schema_choices", f.Limits.SchemaChoices, mostSchemaChoices},
	} {
		switch key := "limits." + n.key; {
		case n.have < 0:
			faults = append(faults, fault{key, fmt.Sprintf("%s = %d: it is a number of 1 or more; leave it out for the default", key, n.have)})
		case n.have > n.most:
			faults = append(faults, fault{key, fmt.Sprintf("%s = %d: it is %d at most", key, n.have, n.most)})
		}
	}
	if f.Limits.Schema > mostSchema {
		faults = append(faults, fault{"limits.schema", fmt.Sprintf("limits.schema = %d bytes: it is %d (16 MiB) at most", f.Limits.Schema, mostSchema)})
	}
	return faults
}

// linesOf gives the line on which each key and each table of a file stands.
func linesOf(b []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(b)
	put := func(n *unstable.Node, in string) string {
		for it := n.Key(); it.Next(); {
			part := it.Node()
			in = join(in, string(part.Data))
			if _, ok := lines[in]; !ok {
				lines[in] = p.Shape(part.Raw).Start.Line
			}
		}
		return in
	}
	table := ""
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = put(n, "")
		case unstable.KeyValue:
			at := put(n, table)
			var inline func(v *unstable.Node, at string)
			inline = func(v *unstable.Node, at string) {
				if v.Kind != unstable.InlineTable {
					return
				}
				for it := v.Children(); it.Next(); {
					inline(it.Node().Value(), put(it.Node(), at))
				}
			}
			inline(n.Value(), at)
		}
	}
	return lines
}

// nearest finds the known key, at the place of the unknown one, whose spelling
// is nearest; "" when none is near.
func nearest(key []string) string {
	t, last := reflect.TypeOf(File{}), key[len(key)-1]
	for _, part := range key[:len(key)-1] {
		next := fieldType(t, part)
		if next == nil { // it is this that is not known
			last = part
			break
		}
		t = next
	}
	if t.Kind() != reflect.Struct {
		return ""
	}
	best, bestAt := "", min(3, max(1, len(last)/2))+1
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("toml")
		if d := levenshtein.ComputeDistance(last, name); d < bestAt {
			best, bestAt = name, d
		}
	}
	return best
}

func fieldType(t reflect.Type, name string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("toml") == name {
				return t.Field(i).Type
			}
		}
	}
	return nil
}

func trimBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\ufeff")) }
