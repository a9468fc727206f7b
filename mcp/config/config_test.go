package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sandbox makes a home and a working folder with the files given; paths begin
// with home/ or cwd/.
func sandbox(t *testing.T, env map[string]string, files map[string]string) Search {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Search{
		Home: filepath.Join(root, "home"), Cwd: filepath.Join(root, "cwd"), XDGConfig: filepath.Join(root, "home", ".config"), OS: "linux",
		Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		LookPath: func(c string) (string, error) {
			if c == "nowhere" {
				return "", errors.New("not found")
			}
			return "/bin/" + c, nil
		},
	}
}

func load(t *testing.T, s Search) Config {
	t.Helper()
	c, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func server(t *testing.T, c Config, name string) Server {
	t.Helper()
	for _, s := range c.Servers {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no server %q in %+v", name, c.Servers)
	return Server{}
}

func TestOwnFileReadsEveryKeyOfTheContract(t *testing.T) {
	c := load(t, sandbox(t, map[string]string{"A": "1", "TEAM": "blue"}, map[string]string{"home/.config/mcptasks/config.toml": `
[servers.ci]
url = "https://CI.example:443/mcp?key=hush"
transport = "http"
generation = "draft"
headers = { X-Team = "${TEAM}" }
token_command = ["pass", "ci"]
autostart = false
poll_min = "2s"
keep = "none"
ca_file = "ca.pem"
client_cert = "c.pem"
client_key = "k.pem"
insecure = true
roots = ["."]
sampling_command = ["llm"]
oauth = { client_id = "x", scopes = ["a"], private_key = "k.pem", key_id = "k1", grant = "enterprise", idp = { issuer = "https://idp.example", client_id = "y", client_secret = "${A}", id_token_env = "I" } }
[servers.ci.tools.build]
keep = "all"
[servers.lab]
command = "lab"
args = ["-v", "${A}"]
env = { B = "${A}" }
cwd = "/tmp"
token_env = "T"
[poll]
min = "1s"
[import]
none = true
[ui]
theme = "mono"
mouse = true
columns = ["status"]
group = "server"
sort = "age"
details = "right"
[keys]
quit = ["q", "ctrl+q"]
[views]
mine = "server:ci"
[notify]
bell = false
terminal = true
title = false
status = false
focused = true
style = "osc777"
hook = ["notify-send"]
only_after = "2m"
filter = "status:failed"
[limits]
message = "64MiB"
depth = 64
tasks_per_server = 1000
questions = 7
log = 500
result = 4096
results_total = "1 GB"
schema = "1MiB"
schema_depth = 100
schema_fields = 300
schema_choices = 2000
[history]
days = 30
megabytes = 100
`}))
	ci := server(t, c, "ci")
	if got := ci.Entry.Headers["X-Team"]; got != "blue" {
		t.Errorf("header = %q", got)
	}
	if got, want := ci.Target(), "https://ci.example/mcp?key=***"; got != want {
		t.Errorf("target = %q, want %q", got, want)
	}
	if ci.Autostart() || ci.Keep("other") || !ci.Keep("build") || time.Duration(ci.Entry.PollMin) != 2*time.Second {
		t.Errorf("ci = %+v", ci)
	}
	lab := server(t, c, "lab")
	if lab.Entry.Args[1] != "1" || lab.Entry.Env["B"] != "1" || !lab.Autostart() {
		t.Errorf("lab = %+v", lab)
	}
	if got, want := lab.Target(), "lab -v ${A} (in /tmp)"; got != want {
		t.Errorf("target = %q, want %q", got, want)
	}
	if c.File.Limits.Message != 64<<20 || c.File.Limits.Result != 4096 || c.File.Limits.Questions != 7 || c.File.Limits.Schema != 1<<20 || c.File.Limits.SchemaDepth != 100 || c.File.Limits.SchemaFields != 300 || c.File.Limits.SchemaChoices != 2000 || c.File.Limits.ResultsTotal != 1e9 || c.File.History.Days != 30 {
		t.Errorf("limits = %+v, history %+v", c.File.Limits, c.File.History)
	}
	if n := c.File.Notify; n.Title == nil || *n.Title || n.Status == nil || *n.Status || !n.Focused || n.Style != "osc777" {
		t.Errorf("notify = %+v", n)
	}
	if c.File.Notify.Bell == nil || *c.File.Notify.Bell || c.File.Views["mine"] != "server:ci" {
		t.Errorf("notify = %+v", c.File.Notify)
	}
}

func TestOwnFileFaultsNameLineAndNearestKey(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "[servers.ci]\nurl = \"http://x\"\ntransprot = \"http\"\n", `:3: unknown key "servers.ci.transprot"; did you mean "transport"?`},
		{"unknown table", "[pol]\nmin = \"1s\"\n", `did you mean "poll"?`},
		{"bad toml", "a = \n", ":1: "},
		{"bad duration", "[poll]\nmin = \"soon\"\n", `no duration`},
		{"bad word", "[servers.ci]\nurl = \"http://x\"\ngeneration = \"2030\"\n", `config.toml:3: servers.ci.generation = "2030": it is one of auto, draft`},
		{"bad word in a table on one line", "[servers]\nci = { url = \"http://x\",\n  oauth = { grant = \"x\" } }\n", `config.toml:3: servers.ci.oauth.grant = "x"`},
		{"negative bound", "[limits]\ndepth = 5\nschema_fields = -1\n", `config.toml:3: limits.schema_fields = -1: it is a number of 1 or more; leave it out for the default`},
		{"negative depth", "[limits]\ndepth = -5\n", `config.toml:2: limits.depth = -5: it is a number of 1 or more`},
		{"excessive depth", "[limits]\nschema_depth = 100000\n", `config.toml:2: limits.schema_depth = 100000: it is 1000 at most`},
		{"excessive fields", "[limits]\nschema_fields = 5001\n", `config.toml:2: limits.schema_fields = 5001: it is 5000 at most`},
		{"excessive choices", "[limits]\nschema_choices = 50001\n", `limits.schema_choices = 50001: it is 50000 at most`},
		{"excessive schema", "[limits]\nschema = \"1GB\"\n", `config.toml:2: limits.schema = 1000000000 bytes: it is 16777216 (16 MiB) at most`},
		{"no size", "[limits]\nschema = \"large\"\n", `no size such as`},
		{"near key", "[limits]\nschema_field = 1\n", `did you mean "schema_fields"?`},
		{"slash", "[servers.\"a/b\"]\nurl = \"http://x\"\n", `config.toml:1: server "a/b": a server's name holds no /`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseFile("config.toml", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("err = %v, want %q in it", err, tt.want)
			}
		})
	}
}

// All that is wrong is told at once, in the order in which it stands.
func TestOwnFileTellsAllItsFaults(t *testing.T) {
	_, err := ParseFile("config.toml", []byte(`[servers.ci]
urll = "http://x"
transport = "carrier pigeon"
[ui]
tehme = "dark"
sort = "luck"
[elsewhere.like.it]
at = 1
all = 2
`))
	want := []string{
		`config.toml:2: unknown key "servers.ci.urll"; did you mean "url"?`,
		`config.toml:3: servers.ci.transport = "carrier pigeon": it is one of auto, stdio, http, sse`,
		`config.toml:5: unknown key "ui.tehme"; did you mean "theme"?`,
		`config.toml:6: ui.sort = "luck": it is one of needs, status, server, tool, id, message, progress, age, ttl, heard`,
		`config.toml:7: unknown key "elsewhere.like.it"`,
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("it says\n%v\nand not\n%s", err, strings.Join(want, "\n"))
	}
}

// U3: BOM, comments, trailing commas, the variables' spellings, the three
// roots, url-only entries, one broken entry among three.
func TestU3_FilesOfOtherClients(t *testing.T) {
	s := sandbox(t, map[string]string{"TOKEN": "t0k", "SET": "s"}, map[string]string{
		"cwd/.mcp.json": "\ufeff" + `{ // comment
			"mcpServers": {
				"good": {"type": "http", "url": "https://a.example/${SET}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},},
				"broken": 7,
				"unset": {"command": "run", "args": ["${NOPE}"]},
				"fallback": {"command": "run", "args": ["${NOPE:-d}"]},
				"gone": {"command": "nowhere"},
			},
		}`,
		"cwd/.vscode/mcp.json": `{"inputs":[{"id":"key","type":"promptString","description":"API key","password":true}],
			"servers":{"asks":{"command":"run","env":{"K":"${input:key}","W":"${workspaceFolder}"}}, "env":{"command":"run","args":["${env:SET}"]}}}`,
		"home/.claude.json":                              `{"mcpServers":{"top":{"command":"run"}},"projects":{}}`,
		"home/.cursor/mcp.json":                          `{"mcpServers":{"good":{"url":"https://other.example/mcp"},"home":{"command":"${userHome}/x"}}}`,
		"home/.codeium/windsurf/mcp_config.json":         `{"mcpServers":{"surf":{"serverUrl":"https://surf.example/mcp"},"off":{"command":"run","disabled":true}}}`,
		"home/.gemini/settings.json":                     `{"mcpServers":{"gem":{"httpUrl":"https://gem.example/$SET"},"gemsse":{"url":"https://gem.example/sse"}}}`,
		"home/.codex/config.toml":                        "[mcp_servers.cod]\nurl=\"https://cod.example\"\nbearer_token_env_var=\"TOKEN\"\n[mcp_servers.coff]\ncommand=\"run\"\nenabled=false\n",
		"home/.config/opencode/opencode.jsonc":           `{"mcp":{"oc":{"type":"local","command":["run","-x"],"environment":{"A":"b"}}}}`,
		"home/.mcp-inspector/mcp.json":                   `{"mcpServers":{"insp":{"url":"http://127.0.0.1:1/mcp","protocolEra":"modern"}}}`,
		"home/.config/Code/User/settings.json":           `{"mcp":{"servers":{"old":{"command":"run"}}}}`,
		"home/.config/Claude/claude_desktop_config.json": `{not json`,
	})
	c := load(t, s)
	for _, tt := range []struct{ name, disabled string }{
		{"good", ""}, {"broken", "no object"}, {"unset", "$NOPE is not set"}, {"fallback", ""}, {"gone", "not on this machine"},
		{"asks", ""}, {"env", ""}, {"top", ""}, {"cursor:good", ""}, {"home", ""}, {"surf", ""}, {"off", "switched off"}, {"gem", ""}, {"gemsse", ""},
		{"cod", ""}, {"coff", "switched off"}, {"oc", ""}, {"insp", ""}, {"old", ""},
	} {
		got := server(t, c, tt.name)
		if tt.disabled == "" && got.Disabled != "" || !strings.Contains(got.Disabled, tt.disabled) {
			t.Errorf("%s: disabled %q, want %q", tt.name, got.Disabled, tt.disabled)
		}
		if got.Stdio() && got.Autostart() {
			t.Errorf("%s: a command of another client's file starts by itself", tt.name)
		}
	}
	if g := server(t, c, "good"); g.Entry.URL != "https://a.example/s/mcp" || g.Entry.Headers["Authorization"] != "Bearer t0k" || strings.Contains(g.Target(), "t0k") {
		t.Errorf("good = %+v, target %q", g.Entry, g.Target())
	}
	a := server(t, c, "asks")
	if len(a.Inputs) != 1 || !a.Inputs[0].Password {
		t.Fatalf("inputs = %+v", a.Inputs)
	}
	if f := a.Fill(map[string]string{"key": "k1"}); f.Entry.Env["K"] != "k1" || f.Entry.Env["W"] != s.Cwd {
		t.Errorf("filled env = %v", f.Entry.Env)
	}
	if e := server(t, c, "gem").Entry; e.URL != "https://gem.example/s" || e.Transport != "http" {
		t.Errorf("gem = %+v", e)
	}
	if e := server(t, c, "oc").Entry; e.Command != "run" || e.Args[0] != "-x" || e.Env["A"] != "b" {
		t.Errorf("oc = %+v", e)
	}
	if server(t, c, "insp").Era != "modern" {
		t.Error("insp: protocolEra is not read")
	}
	var told bool
	for _, r := range c.Reports {
		told = told || r.Client == "claude-desktop" && r.Error != ""
	}
	if !told {
		t.Error("the broken file is not reported")
	}
}

func TestGivenServersReplaceTheSearch(t *testing.T) {
	s := sandbox(t, nil, map[string]string{"cwd/.mcp.json": `{"mcpServers":{"other":{"command":"run"}}}`})
	s.Servers = []string{`ev=npx -y "a b" 'c'`, "web=https://x.example/mcp"}
	s.Sets = []string{"ev.poll_min=3s", "web.headers.X-A=b c", "web.generation=draft"}
	c := load(t, s)
	if len(c.Servers) != 2 {
		t.Fatalf("servers = %+v", c.Servers)
	}
	ev := server(t, c, "ev")
	if got := strings.Join(ev.Entry.Args, "|"); got != "-y|a b|c" || time.Duration(ev.Entry.PollMin) != 3*time.Second {
		t.Errorf("ev = %+v", ev.Entry)
	}
	web := server(t, c, "web")
	if web.Entry.Headers["X-A"] != "b c" || web.Entry.Generation != "draft" {
		t.Errorf("web = %+v", web.Entry)
	}
}

func TestFlagFaultsAreUsageErrors(t *testing.T) {
	for _, tt := range []struct {
		servers, sets []string
		want          string
	}{
		{[]string{"nope"}, nil, "NAME=TARGET"},
		{[]string{"a/b=x"}, nil, "holds no /"},
		{[]string{"a=ftp://x"}, nil, "http, https or unix"},
		{[]string{"a=x", "a=y"}, nil, "given twice"},
		{[]string{"a=x"}, []string{"b.poll_min=1s"}, `no server "b"`},
		{[]string{"a=x"}, []string{"a.pol_min=1s"}, `did you mean "poll_min"`},
		{[]string{"a=x"}, []string{"a.pol_min=1s"}, `unknown key "pol_min"`},
		{[]string{"a=x"}, []string{"a.generation=9"}, `: generation = "9": it is one of auto`},
	} {
		s := sandbox(t, nil, nil)
		s.Servers, s.Sets = tt.servers, tt.sets
		if _, err := Load(s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v %v: err = %v, want %q", tt.servers, tt.sets, err, tt.want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("[servers.a]\nurl='x'\n"))
	f.Add([]byte(`{"mcpServers":{"a":{"command":["x"]}}}`))
	f.Add([]byte(`{"mcp":{"servers":{"a":1}},"projects":{"/":{"mcpServers":{}}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if file, err := ParseFile("f.toml", b); err == nil {
			for name, e := range file.Servers {
				s := Server{Name: name, Entry: e}
				finish(&s, Search{Env: func(string) (string, bool) { return "", false }, LookPath: func(c string) (string, error) { return c, nil }})
			}
		}
		for _, path := range []string{"f.json", "f.toml"} {
			g, _, err := parseForeign(path, b, "/")
			if err != nil {
				continue
			}
			for _, s := range g.servers {
				if s.off == "" && s.entry.URL == "" && s.entry.Command == "" {
					t.Fatalf("%s: an entry without a way to connect is not off: %+v", path, s)
				}
			}
		}
	})
}
