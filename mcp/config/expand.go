package config

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// expander puts variables into entries. It remembers what was not set and
// which inputs are asked for.
type expander struct {
	env    func(string) (string, bool)
	home   string
	folder string
	sep    string // of paths
	source string // the file that the entry stands in, from which ${file:…} counts
	bare   bool   // $X as well as ${X} (Gemini CLI)
	inputs map[string]string
	unset  map[string]bool
	wanted map[string]bool
	extra  map[string]string // from env_file
}

var (
	braced = regexp.MustCompile(`\$\{([^{}]*)\}`)
	either = regexp.MustCompile(`\$\{([^{}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)
)

func (x *expander) text(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	re := braced
	if x.bare {
		re = either
	}
	return re.ReplaceAllStringFunc(s, func(m string) string {
		name := strings.TrimPrefix(m, "$")
		if strings.HasPrefix(name, "{") {
			name = name[1 : len(name)-1]
		}
		return x.variable(m, name)
	})
}

func (x *expander) variable(whole, name string) string {
	name, fallback, hasFallback := strings.Cut(name, ":-")
	switch {
	case name == "workspaceFolder" || name == "workspaceRoot":
		if x.folder != "" {
			return x.folder
		}
	case name == "workspaceFolderBasename":
		return x.folder[strings.LastIndexAny(x.folder, `/\`)+1:]
	case name == "userHome":
		if x.home != "" {
			return x.home
		}
	case name == "pathSeparator" || name == "/":
		return x.sep
	case strings.HasPrefix(name, "file:"): // opencode's {file:…}
		if b, err := os.ReadFile(x.path(strings.TrimPrefix(name, "file:"), filepath.Dir(x.source))); err == nil {
			return strings.TrimSpace(string(b))
		}
	case strings.HasPrefix(name, "input:"):
		id := strings.TrimPrefix(name, "input:")
		if v, ok := x.inputs[id]; ok {
			return v
		}
		if x.wanted == nil {
			x.wanted = map[string]bool{}
		}
		x.wanted[id] = true
		return whole
	}
	v := strings.TrimPrefix(name, "env:")
	if s, ok := x.extra[v]; ok {
		return s
	}
	if s, ok := x.env(v); ok && (s != "" || !hasFallback) {
		return s
	}
	if hasFallback {
		return fallback
	}
	if x.inputs != nil { // a second pass, for inputs only
		return whole
	}
	if x.unset == nil {
		x.unset = map[string]bool{}
	}
	x.unset[v] = true
	return whole
}

// path is a path with the home folder put in for ~; a relative one counts from
// a folder.
func (x *expander) path(p, from string) string {
	if rest, ok := strings.CutPrefix(p, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') && x.home != "" {
		return x.home + rest
	}
	if p == "" || filepath.IsAbs(p) || from == "" {
		return p
	}
	return filepath.Join(from, p)
}

// entry is the entry with its variables put in.
func (x *expander) entry(e ServerEntry) ServerEntry {
	e.rewrite(x.text)
	return e
}

// rewrite puts f of each text that may hold a variable in its place. What the
// entry shares with another is left as it is.
func (e *ServerEntry) rewrite(f func(string) string) {
	o := &e.OAuth
	for _, at := range []*string{&e.URL, &e.Command, &e.Cwd, &e.EnvFile, &e.CAFile, &e.ClientCert, &e.ClientKey,
		&o.ClientID, &o.ClientSecret, &o.PrivateKey, &o.KeyID, &o.IDP.Issuer, &o.IDP.ClientID, &o.IDP.ClientSecret} {
		*at = f(*at)
	}
	for _, at := range []*[]string{&e.Args, &e.TokenCommand, &e.Roots, &e.SamplingCommand, &o.IDP.IDTokenCommand} {
		*at = slices.Clone(*at)
		for i, s := range *at {
			(*at)[i] = f(s)
		}
	}
	for _, at := range []*map[string]string{&e.Env, &e.Headers} {
		*at = maps.Clone(*at)
		for k, s := range *at {
			(*at)[k] = f(s)
		}
	}
}

// missing says in words which variables are not set, "" when all are.
func (x *expander) missing() string {
	if len(x.unset) == 0 {
		return ""
	}
	names := make([]string, 0, len(x.unset))
	for n := range x.unset {
		if file, ok := strings.CutPrefix(n, "file:"); ok {
			return "the file " + file + " cannot be read"
		}
		names = append(names, "$"+n)
	}
	sort.Strings(names)
	if len(names) == 1 {
		return names[0] + " is not set"
	}
	return strings.Join(names, ", ") + " are not set"
}
