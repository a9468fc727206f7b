package setup

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"mcptasks/mcp/config"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/transport"
	"mcptasks/mcp/transport/signin"
	"mcptasks/taskmodel"
)

// Options are what all servers share.
type Options struct {
	Log        *slog.Logger
	MaxMessage int64 // bytes; 0 is the transports' default
	Cwd        string
	// Auth makes the sign-in of an HTTP server; nil: none.
	Auth func(config.Server) (transport.Authorizer, error)
	// Group is told of the process groups of stdio servers; nil: nobody is.
	Group func(pid int, gone bool)
}

// Specs makes the monitor's specification of each server, in order.
func Specs(servers []config.Server, o Options) []monitor.ServerSpec {
	out := make([]monitor.ServerSpec, len(servers))
	for i, s := range servers {
		out[i] = Spec(s, o)
	}
	return out
}

// Spec makes one. A server that cannot work is Disabled, with the reason.
func Spec(s config.Server, o Options) monitor.ServerSpec {
	e := s.Entry
	spec := monitor.ServerSpec{
		Name: s.Name, Target: s.Target(), Source: s.Source, Autostart: s.Autostart(), Disabled: s.Disabled,
		Era: era(s), Generation: generation(e.Generation), PollMin: time.Duration(e.PollMin), Keep: s.Keep,
		Roots: roots(e.Roots, o.Cwd), Secrets: s.Credentials(), NoSSE: e.Transport == "http",
	}
	if spec.Disabled == "" && len(s.Inputs) > 0 {
		id := s.Inputs[0].ID
		spec.Disabled = fmt.Sprintf("it asks for %s, which was not given: start it by its name (mcptasks %s), or set %s", id, s.Name, InputVariable(id))
	}
	spec.Warning = Warning(s)
	if s.Stdio() {
		spec.Dialer = &transport.Stdio{Command: e.Command, Args: e.Args, Env: environ(e.Env), Dir: e.Cwd, Log: o.Log, MaxMessage: o.MaxMessage, Group: o.Group}
		return spec
	}
	h := &transport.HTTP{URL: e.URL, Header: header(e.Headers), Secrets: s.Credentials(), Log: o.Log, MaxMessage: o.MaxMessage, TLS: tlsOf(e)}
	if o.Auth != nil && spec.Disabled == "" {
		a, err := o.Auth(s)
		if err != nil {
			spec.Disabled = err.Error()
		}
		h.Auth = a
		_, person := a.(*signin.OAuth)
		spec.NoLogin = !person
	}
	spec.Dialer = h
	return spec
}

// Warning says what is unsafe in a server's settings, each time they are used; ""
// where nothing is.
func Warning(s config.Server) string {
	if s.Entry.Insecure && !s.Stdio() {
		return "the server's certificate is not checked (insecure = true)"
	}
	return ""
}

// era forces the era where the configuration does: a file's own word, the
// transport sse, or a generation that only one era has.
func era(s config.Server) string {
	switch {
	case s.Entry.Transport == "sse":
		return "sse"
	case s.Era != "":
		return s.Era
	}
	switch s.Entry.Generation {
	case string(taskmodel.GenExtension):
		return "modern"
	case string(taskmodel.GenCore), string(taskmodel.GenDraft):
		return "legacy"
	}
	return ""
}

func generation(word string) taskmodel.Generation {
	if word == "auto" {
		return ""
	}
	return taskmodel.Generation(word)
}

func header(in map[string]string) http.Header {
	h := http.Header{}
	for k, v := range in {
		h.Set(k, v)
	}
	return h
}

// environ is our own environment with the entry's values over it.
func environ(in map[string]string) []string {
	env := os.Environ()
	for k, v := range in {
		env = append(env, k+"="+v)
	}
	return env
}

// roots makes file URIs of folders; the default is the folder at hand.
func roots(in []string, cwd string) []string {
	if in == nil && cwd != "" {
		in = []string{cwd}
	}
	out := make([]string, 0, len(in))
	for _, r := range in {
		if strings.Contains(r, "://") {
			out = append(out, r)
			continue
		}
		if !filepath.IsAbs(r) {
			r = filepath.Join(cwd, r)
		}
		out = append(out, fileURI(r))
	}
	return out
}

func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if runtime.GOOS == "windows" && !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
