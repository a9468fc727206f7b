package config

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Where each client keeps its servers, on each system. Home is /h (C:\Users\me),
// the working folder /w (D:\work).
func TestPlacesOfClients(t *testing.T) {
	systems := map[string]Search{
		"linux":   {OS: "linux", Home: "/h", Cwd: "/w", XDGConfig: "/h/.config"},
		"darwin":  {OS: "darwin", Home: "/h", Cwd: "/w", XDGConfig: "/h/.config"},
		"windows": {OS: "windows", Home: `C:\Users\me`, Cwd: `D:\work\`, XDGConfig: `C:\Users\me\.config`, AppData: `C:\Users\me\AppData\Roaming`},
	}
	const lib, roaming = "/h/Library/Application Support/", `C:\Users\me\AppData\Roaming\`
	for client, want := range map[string]map[string][]string{
		"claude-code": {
			"linux": {"/w/.mcp.json", "/h/.claude.json"}, "darwin": {"/w/.mcp.json", "/h/.claude.json"},
			"windows": {`D:\work\.mcp.json`, `C:\Users\me\.claude.json`},
		},
		"claude-desktop": {
			"linux": {"/h/.config/Claude/claude_desktop_config.json"}, "darwin": {lib + "Claude/claude_desktop_config.json"},
			"windows": {roaming + `Claude\claude_desktop_config.json`},
		},
		"vscode": {
			"linux":   {"/w/.vscode/mcp.json", "/w/.vscode/settings.json", "/h/.config/Code/User/mcp.json", "/h/.config/Code/User/settings.json"},
			"darwin":  {"/w/.vscode/mcp.json", "/w/.vscode/settings.json", lib + "Code/User/mcp.json", lib + "Code/User/settings.json"},
			"windows": {`D:\work\.vscode\mcp.json`, `D:\work\.vscode\settings.json`, roaming + `Code\User\mcp.json`, roaming + `Code\User\settings.json`},
		},
		"cursor": {
			"linux": {"/w/.cursor/mcp.json", "/h/.cursor/mcp.json"}, "darwin": {"/w/.cursor/mcp.json", "/h/.cursor/mcp.json"},
			"windows": {`D:\work\.cursor\mcp.json`, `C:\Users\me\.cursor\mcp.json`},
		},
		"windsurf": {
			"linux": {"/h/.codeium/windsurf/mcp_config.json"}, "darwin": {"/h/.codeium/windsurf/mcp_config.json"},
			"windows": {`C:\Users\me\.codeium\windsurf\mcp_config.json`},
		},
		"gemini": {
			"linux": {"/w/.gemini/settings.json", "/h/.gemini/settings.json"}, "darwin": {"/w/.gemini/settings.json", "/h/.gemini/settings.json"},
			"windows": {`D:\work\.gemini\settings.json`, `C:\Users\me\.gemini\settings.json`},
		},
		"codex": {
			"linux": {"/w/.codex/config.toml", "/h/.codex/config.toml"}, "darwin": {"/w/.codex/config.toml", "/h/.codex/config.toml"},
			"windows": {`D:\work\.codex\config.toml`, `C:\Users\me\.codex\config.toml`},
		},
		"opencode": {
			"linux":   {"/w/opencode.json", "/w/opencode.jsonc", "/h/.config/opencode/opencode.json", "/h/.config/opencode/opencode.jsonc"},
			"darwin":  {"/w/opencode.json", "/w/opencode.jsonc", "/h/.config/opencode/opencode.json", "/h/.config/opencode/opencode.jsonc"},
			"windows": {`D:\work\opencode.json`, `D:\work\opencode.jsonc`, `C:\Users\me\.config\opencode\opencode.json`, `C:\Users\me\.config\opencode\opencode.jsonc`},
		},
		"inspector": {
			"linux": {"/h/.mcp-inspector/mcp.json"}, "darwin": {"/h/.mcp-inspector/mcp.json"},
			"windows": {`C:\Users\me\.mcp-inspector\mcp.json`},
		},
	} {
		if !slices.Contains(Clients, client) {
			t.Errorf("[import] does not take %q", client)
		}
		for system, paths := range want {
			var got []string
			for _, p := range places(systems[system]) {
				if p.client == client {
					got = append(got, p.path)
				}
			}
			if !slices.Equal(got, paths) {
				t.Errorf("%s on %s: %q, want %q", client, system, got, paths)
			}
		}
	}
	bare := systems["windows"]
	bare.AppData = "" // a service has none
	if got := places(bare); !slices.Contains(got, place{"claude-desktop", roaming + `Claude\claude_desktop_config.json`}) {
		t.Errorf("without %%APPDATA%%: %v", got)
	}
}

// What is read of an entry: as much of a Server as these tests look at.
type entry struct {
	name, url, transport, command, cwd, era, token, disabled string
	args, inputs                                             []string
	env, headers                                             map[string]string
}

func entryOf(s Server) entry {
	e := s.Entry
	out := entry{name: s.Name, url: e.URL, transport: e.Transport, command: e.Command, cwd: e.Cwd, era: s.Era, token: e.TokenEnv, disabled: s.Disabled, args: e.Args, env: e.Env, headers: e.Headers}
	for _, in := range s.Inputs {
		out.inputs = append(out.inputs, in.ID)
	}
	return out
}

// Each client's files, its key, its spellings and its expansions. CWD and HOME
// stand for the folders of the test. Every JSON file is read a second time as
// some write them: with a BOM, comments and commas after the last.
func TestFilesOfEachClient(t *testing.T) {
	env := map[string]string{"SET": "s", "TOKEN": "t0k", "EMPTY": ""}
	for _, tt := range []struct {
		name  string // of the client
		files map[string]string
		want  []entry
	}{
		{"Claude Code, the project's file", map[string]string{"cwd/.mcp.json": `{"mcpServers": {
			"cmd": {"type": "stdio", "command": "run", "args": ["-v", "${SET}"], "env": {"A": "${NOPE:-d}", "B": "${EMPTY:-e}", "C": "${EMPTY}"}},
			"web": {"type": "http", "url": "https://x.example/${SET}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
			"sse": {"type": "sse", "url": "https://x.example/sse"},
			"unset": {"command": "run", "args": ["${NOPE}"]},
			"a/b": {"command": "run"},
			"socket": {"type": "ws", "url": "wss://x.example"}}}`},
			[]entry{
				{name: "cmd", command: "run", args: []string{"-v", "s"}, env: map[string]string{"A": "d", "B": "e", "C": ""}},
				{name: "web", url: "https://x.example/s", headers: map[string]string{"Authorization": "Bearer t0k"}},
				{name: "sse", url: "https://x.example/sse", transport: "sse"},
				{name: "unset", command: "run", args: []string{"${NOPE}"}, disabled: "$NOPE is not set"},
				{name: "a:b", command: "run"},
				{name: "socket", url: "wss://x.example", disabled: `type "ws" is not known`},
			}},
		{"Claude Code, the user's file", map[string]string{"home/.claude.json": `{"numStartups": 7, "mcpServers": {"top": {"command": "run"}, "both": {"command": "outer"}},
			"projects": {"CWD": {"mcpServers": {"here": {"command": "run"}, "both": {"command": "inner"}}}, "/elsewhere": {"mcpServers": {"there": {"command": "run"}}}}}`},
			[]entry{{name: "top", command: "run"}, {name: "here", command: "run"}, {name: "both", command: "inner"}}},
		{"Claude Desktop", map[string]string{"home/.config/Claude/claude_desktop_config.json": `{"mcpServers": {"fs": {"command": "npx", "args": ["-y", "fs", 7], "env": {"N": 1, "T": true, "X": null}}}}`},
			[]entry{{name: "fs", command: "npx", args: []string{"-y", "fs", "7"}, env: map[string]string{"N": "1", "T": "true"}}}},
		{"VS Code, the workspace's file", map[string]string{
			"cwd/.vscode/mcp.json": `{"inputs": [{"type": "promptString", "id": "key", "description": "API key", "password": true}, {"type": "pickString", "id": "unused", "options": ["a"]}],
			"servers": {
				"ask": {"type": "stdio", "command": "run", "args": ["${input:key}", "${env:SET}"], "env": {"K": "${input:key}"}},
				"file": {"command": "run", "envFile": "${workspaceFolder}/.env", "env": {"A": "mine"}},
				"relative": {"command": "run", "envFile": ".env", "cwd": "${workspaceFolder}/sub"},
				"nofile": {"command": "run", "envFile": "${workspaceFolder}/none.env"},
				"web": {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${input:key}"}}}}`,
			"cwd/.env": "# what it needs\nA=\"theirs\"\nexport B='two words'\n"},
			[]entry{
				{name: "ask", command: "run", args: []string{"${input:key}", "s"}, env: map[string]string{"K": "${input:key}"}, inputs: []string{"key"}},
				{name: "file", command: "run", env: map[string]string{"A": "mine", "B": "two words"}},
				{name: "relative", command: "run", cwd: "CWD/sub", env: map[string]string{"A": "theirs", "B": "two words"}},
				{name: "nofile", command: "run", disabled: "its env file CWD/none.env cannot be read: no such file or directory"},
				{name: "web", url: "https://x.example/mcp", headers: map[string]string{"Authorization": "Bearer ${input:key}"}, inputs: []string{"key"}},
			}},
		{"VS Code, the user's file", map[string]string{"home/.config/Code/User/mcp.json": `{"servers": {"mine": {"command": "${userHome}/bin/run", "cwd": "~/sub"}}}`},
			[]entry{{name: "mine", command: "HOME/bin/run", cwd: "HOME/sub"}}},
		{"VS Code, older settings", map[string]string{"home/.config/Code/User/settings.json": `{"editor.fontSize": 12, "mcp": {
			"inputs": [{"id": "key", "type": "promptString"}], "servers": {"old": {"command": "run", "args": ["${input:key}"]}}}}`},
			[]entry{{name: "old", command: "run", args: []string{"${input:key}"}, inputs: []string{"key"}}}},
		{"VS Code, older settings without a server", map[string]string{"home/.config/Code/User/settings.json": `{"mcp": {"inputs": []}, "servers": [1]}`}, nil},
		{"VS Code, older settings of the workspace", map[string]string{"cwd/.vscode/settings.json": `{"mcp.servers": {"flat": {"command": "run"}}}`},
			[]entry{{name: "flat", command: "run"}}},
		{"Cursor", map[string]string{
			"cwd/.cursor/mcp.json":  `{"mcpServers": {"near": {"command": "${workspaceFolder}/run", "args": ["${workspaceFolderBasename}", "a${/}b${pathSeparator}c"], "envFile": ".env"}, "two": {"url": "http://one/"}}}`,
			"home/.cursor/mcp.json": `{"mcpServers": {"far": {"command": "${userHome}/run", "env": {"A": "${env:SET}"}}, "two": {"url": "http://two/", "headers": {"X": "${env:TOKEN}"}}}}`,
			"cwd/.env":              "Z=1\n"},
			[]entry{
				{name: "near", command: "CWD/run", args: []string{"cwd", "a/b/c"}, env: map[string]string{"Z": "1"}},
				{name: "two", url: "http://one/"},
				{name: "far", command: "HOME/run", env: map[string]string{"A": "s"}},
				{name: "cursor:two", url: "http://two/", headers: map[string]string{"X": "t0k"}},
			}},
		{"Windsurf", map[string]string{"home/.codeium/windsurf/mcp_config.json": `{"mcpServers": {
			"web": {"serverUrl": "https://x.example/mcp", "headers": {"A": "${env:TOKEN}"}}, "off": {"command": "run", "disabled": true}, "on": {"command": "run", "disabled": false}}}`},
			[]entry{
				{name: "web", url: "https://x.example/mcp", headers: map[string]string{"A": "t0k"}},
				{name: "off", command: "run", disabled: "switched off in the file"}, {name: "on", command: "run"},
			}},
		{"Gemini CLI", map[string]string{
			"cwd/.gemini/settings.json": `{"theme": "x", "mcpServers": {
			"stream": {"httpUrl": "https://x.example/$SET", "timeout": 5000, "headers": {"A": "Bearer $TOKEN"}}, "sse": {"url": "https://x.example/sse"},
			"cmd": {"command": "run", "args": ["$SET", "${SET}", "$NOPE$", "cost: $5"], "cwd": "sub", "trust": true}}}`,
			"home/.gemini/settings.json": `{"mcpServers": {"mine": {"command": "run", "env": {"K": "$TOKEN"}}}}`},
			[]entry{
				{name: "stream", url: "https://x.example/s", transport: "http", headers: map[string]string{"A": "Bearer t0k"}},
				{name: "sse", url: "https://x.example/sse"}, // newer ones mean either, which is found out
				{name: "cmd", command: "run", cwd: "sub", args: []string{"s", "s", "$NOPE$", "cost: $5"}, disabled: "$NOPE is not set"},
				{name: "mine", command: "run", env: map[string]string{"K": "t0k"}},
			}},
		{"Codex", map[string]string{
			"home/.codex/config.toml": "model = \"x\"\n[mcp_servers.cmd]\ncommand = \"run\"\nargs = [\"-v\"]\nenv = { A = \"b\" }\ncwd = \"/srv\"\nstartup_timeout_sec = 20\n" +
				"[mcp_servers.web]\nurl = \"https://x.example/mcp\"\nbearer_token_env_var = \"TOKEN\"\nhttp_headers = { X-A = \"1\" }\nenv_http_headers = { X-B = \"SET\" }\n" +
				"[mcp_servers.off]\ncommand = \"run\"\nenabled = false\n",
			"cwd/.codex/config.toml": "\ufeff[mcp_servers.\"near one\"]\ncommand = \"run\"\n"},
			[]entry{
				{name: "near one", command: "run"},
				{name: "cmd", command: "run", args: []string{"-v"}, env: map[string]string{"A": "b"}, cwd: "/srv"},
				{name: "web", url: "https://x.example/mcp", token: "TOKEN", headers: map[string]string{"X-A": "1", "X-B": "s"}},
				{name: "off", command: "run", disabled: "switched off in the file"},
			}},
		{"opencode", map[string]string{
			"cwd/opencode.json": `{"$schema": "x", "mcp": {
			"loc": {"type": "local", "command": ["run", "-x", "{env:SET}"], "environment": {"A": "{env:TOKEN}", "F": "{file:key.txt}", "H": "{file:~/key.txt}"}, "enabled": true},
			"rem": {"type": "remote", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer {env:TOKEN}"}},
			"off": {"type": "local", "command": ["run"], "enabled": false},
			"nofile": {"type": "local", "command": ["run"], "environment": {"A": "{file:none.txt}"}},
			"empty": {"type": "local", "command": []}}}`,
			"cwd/key.txt": "k-1\n", "home/key.txt": "k-2",
			"home/.config/opencode/opencode.jsonc": `{"mcp": {"mine": {"type": "local", "command": ["run"]}}}`},
			[]entry{
				{name: "loc", command: "run", args: []string{"-x", "s"}, env: map[string]string{"A": "t0k", "F": "k-1", "H": "k-2"}},
				{name: "rem", url: "https://x.example/mcp", headers: map[string]string{"Authorization": "Bearer t0k"}},
				{name: "off", command: "run", disabled: "switched off in the file"},
				{name: "nofile", command: "run", env: map[string]string{"A": "${file:none.txt}"}, disabled: "the file none.txt cannot be read"},
				{name: "empty", disabled: "the entry has neither a command nor a url"},
				{name: "mine", command: "run"},
			}},
		{"Inspector", map[string]string{"home/.mcp-inspector/mcp.json": `{"mcpServers": {
			"new": {"type": "streamable-http", "url": "https://x.example/mcp", "protocolEra": "modern"}, "old": {"command": "run", "protocolEra": "legacy"}, "auto": {"command": "run"}}}`},
			[]entry{{name: "new", url: "https://x.example/mcp", era: "modern"}, {name: "old", command: "run", era: "legacy"}, {name: "auto", command: "run"}}},
	} {
		for _, written := range []string{"", ", with a BOM, comments and commas"} {
			t.Run(tt.name+written, func(t *testing.T) {
				files := maps.Clone(tt.files)
				s := sandbox(t, env, nil)
				place := strings.NewReplacer("CWD", s.Cwd, "HOME", s.Home)
				for name, text := range files {
					text = place.Replace(text)
					if written != "" && strings.Contains(filepath.Ext(name), "json") {
						text = "\ufeff// first\n" + strings.ReplaceAll(text, "}}", "/* ends // here */ }, }")
					}
					path := filepath.Join(filepath.Dir(s.Home), filepath.FromSlash(name))
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				c := load(t, s)
				for _, r := range c.Reports {
					if r.Error != "" {
						t.Errorf("%s: %s", r.Path, r.Error)
					}
				}
				if len(c.Servers) != len(tt.want) {
					t.Errorf("%d servers, want %d: %+v", len(c.Servers), len(tt.want), c.Servers)
				}
				for _, want := range tt.want {
					want.command, want.cwd, want.disabled = place.Replace(want.command), place.Replace(want.cwd), place.Replace(want.disabled)
					got := server(t, c, want.name)
					if e := entryOf(got); !same(e, want) {
						t.Errorf("%+v\nwant %+v", e, want)
					}
					if got.Stdio() && got.Autostart() {
						t.Errorf("%s: a command of another client's file starts by itself", want.name)
					}
					if strings.Contains(got.Target(), "t0k") {
						t.Errorf("%s: a secret in %s", want.name, got.Target())
					}
				}
				// A file given by -c is known by its shape, with its expansions.
				for name := range tt.files {
					if strings.HasSuffix(name, ".env") || strings.HasSuffix(name, ".txt") || len(tt.want) == 0 {
						continue
					}
					s := s
					s.Files = []string{filepath.Join(filepath.Dir(s.Home), filepath.FromSlash(name))}
					for _, given := range load(t, s).Servers {
						found := server(t, c, given.Name)
						if given.Name == "two" && found.Source != given.Source { // it was renamed beside the other
							found = server(t, c, "cursor:two")
							found.Name = "two"
						}
						if a, b := entryOf(given), entryOf(found); !same(a, b) {
							t.Errorf("-c %s: %+v\nand found by itself: %+v", name, a, b)
						}
					}
				}
			})
		}
	}
}

// same compares entries; no list and an empty one are the same.
func same(a, b entry) bool {
	for _, e := range []*entry{&a, &b} {
		for _, l := range []*[]string{&e.args, &e.inputs} {
			if len(*l) == 0 {
				*l = nil
			}
		}
		for _, m := range []*map[string]string{&e.env, &e.headers} {
			if len(*m) == 0 {
				*m = nil
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// What is asked for keeps what the file says of it: what it is for, whether it
// may be seen, and what there is to choose from.
func TestInputsOfAFile(t *testing.T) {
	s := sandbox(t, nil, map[string]string{"cwd/.vscode/mcp.json": `{"inputs": [
		{"type": "promptString", "id": "key", "description": "API key", "password": true, "default": "k"},
		{"type": "pickString", "id": "where", "description": "Region", "options": ["eu", {"label": "America", "value": "us"}], "default": "eu"}],
		"servers": {"a": {"command": "run", "args": ["${input:where}", "${input:key}", "${input:undeclared}"]}}}`})
	got := server(t, load(t, s), "a").Inputs
	want := []Input{
		{ID: "key", Description: "API key", Password: true, Default: "k"},
		{ID: "where", Description: "Region", Default: "eu", Options: []string{"eu", "us"}},
		{ID: "undeclared", Description: "undeclared"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// Claude Code names a project by the folder, on Windows with slashes.
func TestProjectsOfClaudeCodeOnWindows(t *testing.T) {
	f, _, err := parseForeign(".claude.json", []byte(`{"projects": {"D:/work": {"mcpServers": {"a": {"command": "run"}}}}}`), `D:\work`)
	if err != nil || len(f.servers) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
}
