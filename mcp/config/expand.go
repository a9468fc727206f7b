package config

import (
	"regexp"
	"sort"
	"strings"
)

// expander puts variables into entries. It remembers what was not set and
// which inputs are asked for.
type expander struct {
	env    func(string) (string, bool)
	home   string
	folder string
	bare   bool // $X as well as ${X} (Gemini CLI)
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
		return "/"
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

func (x *expander) list(in []string) []string {
	if in == nil {
		return nil
	}
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = x.text(s)
	}
	return out
}

func (x *expander) table(in map[string]string) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, s := range in {
		out[k] = x.text(s)
	}
	return out
}

func (x *expander) entry(e ServerEntry) ServerEntry {
	e.URL, e.Command, e.Cwd, e.EnvFile = x.text(e.URL), x.text(e.Command), x.text(e.Cwd), x.text(e.EnvFile)
	e.Args, e.Env, e.Headers = x.list(e.Args), x.table(e.Env), x.table(e.Headers)
	e.CAFile, e.ClientCert, e.ClientKey = x.text(e.CAFile), x.text(e.ClientCert), x.text(e.ClientKey)
	e.TokenCommand, e.Roots, e.SamplingCommand = x.list(e.TokenCommand), x.list(e.Roots), x.list(e.SamplingCommand)
	o := &e.OAuth
	o.ClientID, o.ClientSecret, o.PrivateKey, o.KeyID = x.text(o.ClientID), x.text(o.ClientSecret), x.text(o.PrivateKey), x.text(o.KeyID)
	o.IDP.Issuer, o.IDP.ClientID, o.IDP.ClientSecret = x.text(o.IDP.Issuer), x.text(o.IDP.ClientID), x.text(o.IDP.ClientSecret)
	o.IDP.IDTokenCommand = x.list(o.IDP.IDTokenCommand)
	return e
}

// missing says in words which variables are not set, "" when all are.
func (x *expander) missing() string {
	if len(x.unset) == 0 {
		return ""
	}
	names := make([]string, 0, len(x.unset))
	for n := range x.unset {
		names = append(names, "$"+n)
	}
	sort.Strings(names)
	if len(names) == 1 {
		return names[0] + " is not set"
	}
	return strings.Join(names, ", ") + " are not set"
}
