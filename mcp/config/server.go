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
	raw      ServerEntry     // as written, before variables were put in
	token    string          // what token_env names
	idToken  string          // what oauth.idp.id_token_env names
	set      map[string]bool // keys that --set gave
	hidden   []string        // passwords that were asked for
}

// An Input is a value that a file wants asked for (VS Code's inputs).
type Input struct {
	ID          string
	Description string
	Password    bool
	Default     string
	Options     []string // the values to choose from; none: any
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
// made by TargetOf from the entry before variables were put in, so it holds no
// secret that came from one.
func (s Server) Target() string { return s.target }

// Secrets are the values of the entry that must not be shown: of its environment
// and arguments what is named like a secret, of its headers also what came from
// a variable, passwords that were asked for, the client's secrets, the tokens,
// what a URL carries.
func (s Server) Secrets() []string { return s.secrets(shortSecret) }

// Credentials are those of the Secrets that nobody says who does not mean them:
// what is neither named like a secret nor long may be any word (a header's
// X-Team, a region in a URL's query).
func (s Server) Credentials() []string { return s.secrets(anyWord) }

const (
	shortSecret = 6  // a shorter text stands in too many that do not mean it
	anyWord     = 16 // as long a text is no word
)

func (s Server) secrets(unnamed int) []string {
	var out []string
	least := func(n int, v string) {
		if len(v) >= n {
			out = append(out, v)
		}
	}
	add := func(v string) { least(shortSecret, v) }
	for k, v := range s.Entry.Headers {
		if named := secretName.MatchString(k); named || s.raw.Headers[k] != v {
			n := unnamed
			if named {
				n = shortSecret
			}
			_, token, _ := strings.Cut(v, " ")
			least(n, token) // after the word that says what it is for
			least(n, v)
		}
	}
	for k, v := range s.Entry.Env {
		if secretName.MatchString(k) {
			add(v)
		}
	}
	for _, v := range s.hidden {
		add(v)
	}
	add(s.Entry.OAuth.ClientSecret)
	add(s.Entry.OAuth.IDP.ClientSecret)
	if k := s.Entry.OAuth.PrivateKey; strings.Contains(k, "-----BEGIN") { // where its file's name belongs
		add(k)
	}
	add(s.token)
	add(s.idToken)
	if u, err := url.Parse(s.Entry.URL); err == nil {
		if pw, ok := u.User.Password(); ok {
			add(pw)
		}
		for k, vs := range u.Query() {
			for _, v := range vs {
				if secretName.MatchString(k) {
					add(v)
				} else {
					least(unnamed, v)
				}
			}
		}
	}
	for i, a := range s.Entry.Args {
		if masked := maskArgs(s.Entry.Args)[i]; masked != a && !strings.Contains(a, "://") {
			_, v, ok := strings.Cut(a, "=")
			if !ok {
				v = a
			}
			add(v)
		}
	}
	return out
}

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
	s.hidden = nil
	for _, in := range s.Inputs {
		if in.Password {
			s.hidden = append(s.hidden, values[in.ID])
		}
	}
	s.Inputs = nil
	return s
}

// TargetOf is the canonical form of an entry: its URL, or its command line with
// the folder in which it runs. What looks like a secret in it is masked, since
// it is shown and kept.
func TargetOf(e ServerEntry) string {
	if e.URL != "" {
		return maskURL(e.URL)
	}
	words := append([]string{e.Command}, maskArgs(e.Args)...)
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

const mask = "***"

// maskURL puts a URL in its canonical form with user info and the values of
// the query masked.
func maskURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" && u.Scheme != "unix" {
		return raw
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if p := u.Port(); u.Scheme == "http" && p == "80" || u.Scheme == "https" && p == "443" {
		u.Host = u.Hostname()
		if strings.Contains(u.Host, ":") {
			u.Host = "[" + u.Host + "]"
		}
	}
	if u.User != nil {
		u.User = url.User(mask)
	}
	if q := u.Query(); len(q) > 0 {
		keys := make([]string, 0, len(q))
		for k := range q {
			keys = append(keys, url.QueryEscape(k)+"="+mask)
		}
		sort.Strings(keys)
		u.RawQuery = strings.Join(keys, "&")
	}
	u.Fragment = ""
	return u.String()
}

// maskArgs masks what follows a flag, a variable or a header that is named like
// a secret, and what a URL among the arguments carries.
func maskArgs(args []string) []string {
	out := slices.Clone(args)
	for i := 0; i < len(out); i++ {
		a := out[i]
		name, _, inline := strings.Cut(a, "=")
		header, _, isHeader := strings.Cut(a, ":")
		switch {
		case strings.HasPrefix(a, "http://"), strings.HasPrefix(a, "https://"):
			out[i] = maskURL(a)
		case isHeader && secretName.MatchString(header) && !strings.ContainsAny(header, " ="):
			out[i] = header + ": " + mask
		case !secretName.MatchString(name):
		case inline:
			out[i] = name + "=" + mask
		case strings.HasPrefix(a, "-") && i+1 < len(out) && !strings.HasPrefix(out[i+1], "-"):
			i++
			out[i] = mask
		}
	}
	return out
}

var secretName = regexp.MustCompile(`(?i)(token|secret|passw(or)?d|api[-_]?key|credential|authorization|bearer|cookie)`)

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
