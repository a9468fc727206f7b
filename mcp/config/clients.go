package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	toml "github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// A place is a file in which a client may keep its servers.
type place struct {
	client string
	path   string
}

// places lists where other clients keep their servers, nearest first: the
// folder at hand, then the user's. It looks at nothing but s, so that each
// system's paths are known on every other.
func places(s Search) []place {
	home, cwd, conf := s.Home, s.Cwd, s.XDGConfig
	apps := conf // where programs with windows keep their settings
	switch s.OS {
	case "darwin":
		apps = s.join(home, "Library", "Application Support")
	case "windows":
		if apps = s.AppData; apps == "" {
			apps = s.join(home, "AppData", "Roaming")
		}
	}
	code := s.join(apps, "Code", "User")
	return []place{
		{"claude-code", s.join(cwd, ".mcp.json")},
		{"vscode", s.join(cwd, ".vscode", "mcp.json")},
		{"vscode", s.join(cwd, ".vscode", "settings.json")},
		{"cursor", s.join(cwd, ".cursor", "mcp.json")},
		{"gemini", s.join(cwd, ".gemini", "settings.json")},
		{"codex", s.join(cwd, ".codex", "config.toml")},
		{"opencode", s.join(cwd, "opencode.json")},
		{"opencode", s.join(cwd, "opencode.jsonc")},
		{"claude-code", s.join(home, ".claude.json")},
		{"claude-desktop", s.join(apps, "Claude", "claude_desktop_config.json")},
		{"vscode", s.join(code, "mcp.json")},
		{"vscode", s.join(code, "settings.json")},
		{"cursor", s.join(home, ".cursor", "mcp.json")},
		{"windsurf", s.join(home, ".codeium", "windsurf", "mcp_config.json")},
		{"gemini", s.join(home, ".gemini", "settings.json")},
		{"codex", s.join(home, ".codex", "config.toml")},
		{"opencode", s.join(conf, "opencode", "opencode.json")},
		{"opencode", s.join(conf, "opencode", "opencode.jsonc")},
		{"inspector", s.join(home, ".mcp-inspector", "mcp.json")},
	}
}

// join joins the parts of a path as the system of s does.
func (s Search) join(parts ...string) string {
	if s.OS == "windows" {
		return strings.TrimRight(parts[0], `\/`) + `\` + strings.Join(parts[1:], `\`)
	}
	return path.Join(parts...)
}

// Clients are the names that [import] takes.
var Clients = []string{"claude-code", "claude-desktop", "vscode", "cursor", "windsurf", "gemini", "codex", "opencode", "inspector"}

// foreign is what a client's file holds, still with its variables in.
type foreign struct {
	servers []foreignServer
	inputs  []Input
}

type foreignServer struct {
	name  string
	entry ServerEntry
	era   string
	off   string // why it is disabled
}

// parseForeign reads a file of another client by its shape. ok is false when
// the file holds no servers of any shape that is known.
func parseForeign(path string, b []byte, cwd string) (f foreign, ok bool, err error) {
	var root map[string]any
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		if err := toml.Unmarshal(trimBOM(b), &root); err != nil {
			return f, false, &FileError{path, 0, strings.TrimPrefix(err.Error(), "toml: ")}
		}
	} else {
		std, err := hujson.Standardize(trimBOM(b))
		if err != nil {
			return f, false, &FileError{path, 0, "no JSON, even with comments: " + err.Error()}
		}
		if err := json.Unmarshal(std, &root); err != nil {
			return f, false, &FileError{path, 0, "no JSON object: " + err.Error()}
		}
	}
	tables := tables(root, cwd)
	for _, at := range []any{root["inputs"], object(root["mcp"])["inputs"], root["mcp.inputs"]} {
		for _, in := range list(at) {
			m := object(in)
			f.inputs = append(f.inputs, Input{ID: str(m["id"]), Description: str(m["description"]), Password: m["password"] == true,
				Default: str(m["default"]), Options: options(m["options"])})
		}
	}
	seen := map[string]bool{}
	for _, t := range tables {
		for _, n := range slices.Sorted(maps.Keys(t)) {
			if !seen[n] {
				seen[n] = true
				f.servers = append(f.servers, readForeign(n, t[n]))
			}
		}
	}
	return f, len(tables) > 0, nil
}

// tables finds the objects that map a name to a server, the nearest first.
func tables(root map[string]any, cwd string) []map[string]any {
	var out []map[string]any
	add := func(v any) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	projects := object(root["projects"])
	add(object(first(projects, cwd, strings.ReplaceAll(cwd, `\`, "/")))["mcpServers"]) // Claude Code writes / on Windows too
	add(root["mcpServers"])
	add(root["mcp_servers"])
	if m, ok := root["mcp"].(map[string]any); ok {
		switch s, ok := m["servers"]; {
		case ok: // VS Code's settings.json
			add(s)
		case m["inputs"] == nil: // opencode
			add(m)
		}
	}
	add(root["mcp.servers"])
	if s, ok := root["servers"].(map[string]any); ok {
		add(s)
	}
	return out
}

// readForeign reads one entry, whichever client's spelling it has.
func readForeign(name string, v any) foreignServer {
	s := foreignServer{name: strings.ReplaceAll(name, "/", ":")}
	m, ok := v.(map[string]any)
	if !ok {
		s.off = "the entry is no object"
		return s
	}
	e := &s.entry
	switch c := m["command"].(type) {
	case string:
		e.Command = c
	case []any: // opencode
		if w := strs(c); len(w) > 0 {
			e.Command, e.Args = w[0], w[1:]
		}
	}
	e.Args = append(e.Args, strs(m["args"])...)
	e.Env = table(first(m, "env", "environment"))
	e.Cwd, e.EnvFile = str(m["cwd"]), str(first(m, "envFile", "env_file"))
	e.Headers = table(first(m, "headers", "http_headers"))
	for header, variable := range table(m["env_http_headers"]) { // Codex
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers[header] = "${" + variable + "}"
	}
	e.TokenEnv = str(m["bearer_token_env_var"])
	switch {
	case m["httpUrl"] != nil: // Gemini: streamable; its url is SSE
		e.URL, e.Transport = str(m["httpUrl"]), "http"
	default:
		e.URL = str(first(m, "url", "serverUrl"))
	}
	switch t := str(m["type"]); t {
	case "sse":
		e.Transport = "sse"
	case "", "stdio", "http", "streamable-http", "streamableHttp", "local", "remote":
	default:
		s.off = fmt.Sprintf("type %q is not known", t)
	}
	if t := str(m["type"]); t == "local" || t == "remote" {
		e.rewrite(func(s string) string { return openCode.ReplaceAllString(s, "$${$1}") })
	}
	switch str(m["protocolEra"]) {
	case "modern", "2026-07-28":
		s.era = "modern"
	case "legacy", "2025-11-25":
		s.era = "legacy"
	}
	switch {
	case m["disabled"] == true, m["enabled"] == false:
		s.off = "switched off in the file"
	case s.off != "":
	case e.Command == "" && e.URL == "":
		s.off = "the entry has neither a command nor a url"
	case e.Command != "" && e.URL != "":
		e.URL = ""
	}
	return s
}

// openCode is a variable as opencode writes it.
var openCode = regexp.MustCompile(`\{((?:env|file):[^{}]*)\}`)

// options are the choices of an input: words, or words with a value of their
// own.
func options(v any) []string {
	var out []string
	for _, o := range list(v) {
		if m, ok := o.(map[string]any); ok {
			o = m["value"]
		}
		out = append(out, str(o))
	}
	return out
}

func first(m map[string]any, keys ...string) any {
	for _, k := range keys {
		if v, ok := m[k]; ok {
			return v
		}
	}
	return nil
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }
func str(v any) string            { s, _ := v.(string); return s }

func strs(v any) []string {
	var out []string
	for _, x := range list(v) {
		switch x := x.(type) {
		case string:
			out = append(out, x)
		case nil:
		default:
			out = append(out, fmt.Sprint(x))
		}
	}
	return out
}

func table(v any) map[string]string {
	m := object(v)
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, x := range m {
		switch x := x.(type) {
		case string:
			out[k] = x
		case nil:
		default:
			out[k] = fmt.Sprint(x)
		}
	}
	return out
}
