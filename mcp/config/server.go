package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// A Server is one server that was found, ready to be connected unless Disabled.
type Server struct {
	Name     string
	Source   string // the file or flag
	Client   string // whose file it is: "mcptasks", "claude-code", … or "flag"
	Entry    ServerEntry
	Era      string  // "modern" or "legacy" where a file forces it
	Disabled string  // why it cannot be used, in words; "" when it can
	Inputs   []Input // values to ask for before it is started
	target   string
	raw      ServerEntry       // as written, before variables were put in
	set      map[string]string // by --set: key to the flag's own text
}

// An Input is a value that a file wants asked for (VS Code's inputs).
type Input struct {
	ID          string
	Description string
	Password    bool
	Default     string
}

// Autostart reports whether the server is to be connected without being asked
// for: commands from other clients' files are not.
func (s Server) Autostart() bool {
	if s.Entry.Autostart != nil {
		return *s.Entry.Autostart
	}
	return s.Entry.Command == "" || s.Client == "mcptasks" || s.Client == "flag"
}

// Stdio reports whether the server is a command.
func (s Server) Stdio() bool { return s.Entry.Command != "" }

// Target is the canonical form by which the server is known across runs. It is
// made from the entry before variables were put in, so it holds no secret that
// came from one; user info and query values of a URL are masked.
func (s Server) Target() string { return s.target }

// Keep reports whether a tool's arguments and results may be kept on disk.
func (s Server) Keep(tool string) bool {
	if t, ok := s.Entry.Tools[tool]; ok && t.Keep != "" {
		return t.Keep != "none"
	}
	return s.Entry.Keep != "none"
}

// Fill puts the asked-for values in and gives the server that can be started.
func (s Server) Fill(values map[string]string) Server {
	x := expander{env: func(string) (string, bool) { return "", false }, inputs: values}
	s.Entry = x.entry(s.Entry)
	s.Inputs = nil
	return s
}

func canonicalTarget(e ServerEntry) string {
	if e.URL != "" {
		u, err := url.Parse(e.URL)
		if err != nil || u.Host == "" && u.Scheme != "unix" {
			return e.URL
		}
		u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
		if p := u.Port(); u.Scheme == "http" && p == "80" || u.Scheme == "https" && p == "443" {
			u.Host = u.Hostname()
		}
		if u.User != nil {
			u.User = url.User("***")
		}
		if q := u.Query(); len(q) > 0 {
			keys := make([]string, 0, len(q))
			for k := range q {
				keys = append(keys, url.QueryEscape(k)+"=***")
			}
			sort.Strings(keys)
			u.RawQuery = strings.Join(keys, "&")
		}
		u.Fragment = ""
		return u.String()
	}
	words := append([]string{e.Command}, e.Args...)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	t := strings.Join(words, " ")
	if e.Cwd != "" {
		t += " (in " + e.Cwd + ")"
	}
	return t
}

// ParseTarget makes an entry of a -s flag's TARGET: an http(s) or unix URL, or
// a command line split as a shell splits words (and run without a shell).
func ParseTarget(target string) (ServerEntry, error) {
	if i := strings.Index(target, "://"); i > 0 && !strings.ContainsAny(target[:i], " \t/") {
		switch scheme := strings.ToLower(target[:i]); scheme {
		case "http", "https", "unix":
			if _, err := url.Parse(target); err != nil {
				return ServerEntry{}, fmt.Errorf("%q is no URL: %w", target, err)
			}
			return ServerEntry{URL: target}, nil
		default:
			return ServerEntry{}, fmt.Errorf("%q: a server's URL begins with http, https or unix", target)
		}
	}
	words, err := splitWords(target)
	if err != nil {
		return ServerEntry{}, fmt.Errorf("%q cannot be split into words: %w", target, err)
	}
	if len(words) == 0 {
		return ServerEntry{}, fmt.Errorf("no command and no URL given")
	}
	return ServerEntry{Command: words[0], Args: words[1:]}, nil
}

// TargetOf is the canonical form of an entry that no file has: a command line
// or a URL as it was given. What looks like a secret in it is masked.
func TargetOf(e ServerEntry) string {
	e.Args = slices.Clone(e.Args)
	for i, a := range e.Args {
		name, _, inline := strings.Cut(a, "=")
		if !strings.HasPrefix(a, "-") || !secretFlag.MatchString(name) {
			continue
		}
		if inline {
			e.Args[i] = name + "=***"
		} else if i+1 < len(e.Args) && !strings.HasPrefix(e.Args[i+1], "-") {
			e.Args[i+1] = "***"
		}
	}
	return canonicalTarget(e)
}

var secretFlag = regexp.MustCompile(`(?i)(token|secret|passw(or)?d|api-?_?key|credential|authorization|bearer)`)
