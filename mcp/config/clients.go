package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sort"
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
// folder at hand, then the user's.
func places(s Search) []place {
	home, cwd := s.Home, s.Cwd
	conf := s.XDGConfig
	var desktop, code string
	switch s.OS {
	case "darwin":
		desktop = filepath.Join(home, "Library", "Application Support", "Claude")
		code = filepath.Join(home, "Library", "Application Support", "Code", "User")
	case "windows":
		desktop, code = filepath.Join(s.AppData, "Claude"), filepath.Join(s.AppData, "Code", "User")
	default:
		desktop, code = filepath.Join(conf, "Claude"), filepath.Join(conf, "Code", "User")
	}
	return []place{
		{"claude-code", filepath.Join(cwd, ".mcp.json")},
		{"vscode", filepath.Join(cwd, ".vscode", "mcp.json")},
		{"cursor", filepath.Join(cwd, ".cursor", "mcp.json")},
		{"gemini", filepath.Join(cwd, ".gemini", "settings.json")},
		{"codex", filepath.Join(cwd, ".codex", "config.toml")},
		{"opencode", filepath.Join(cwd, "opencode.json")},
		{"opencode", filepath.Join(cwd, "opencode.jsonc")},
		{"claude-code", filepath.Join(home, ".claude.json")},
		{"claude-desktop", filepath.Join(desktop, "claude_desktop_config.json")},
		{"vscode", filepath.Join(code, "mcp.json")},
		{"vscode", filepath.Join(code, "settings.json")},
		{"cursor", filepath.Join(home, ".cursor", "mcp.json")},
		{"windsurf", filepath.Join(home, ".codeium", "windsurf", "mcp_config.json")},
		{"gemini", filepath.Join(home, ".gemini", "settings.json")},
		{"codex", filepath.Join(home, ".codex", "config.toml")},
		{"opencode", filepath.Join(conf, "opencode", "opencode.json")},
		{"opencode", filepath.Join(conf, "opencode", "opencode.jsonc")},
		{"inspector", filepath.Join(home, ".mcp-inspector", "mcp.json")},
	}
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
	for _, in := range list(root["inputs"]) {
		m := object(in)
		f.inputs = append(f.inputs, Input{ID: str(m["id"]), Description: str(m["description"]), Password: m["password"] == true, Default: str(m["default"])})
	}
	seen := map[string]bool{}
	for _, t := range tables {
		names := make([]string, 0, len(t))
		for n := range t {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, n := range names {
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
	add(object(object(root["projects"])[cwd])["mcpServers"])
	add(root["mcpServers"])
	add(root["mcp_servers"])
	if m, ok := root["mcp"].(map[string]any); ok {
		if s, ok := m["servers"]; ok {
			add(s)
		} else {
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
