package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTargetsHoldNoSecrets(t *testing.T) {
	for _, tt := range []struct {
		entry ServerEntry
		want  string
	}{
		{ServerEntry{URL: "https://me:pw@X.example:443/mcp?key=hush&a=1#f"}, "https://%2A%2A%2A@x.example/mcp?a=***&key=***"},
		{ServerEntry{URL: "http://[::1]:80/mcp"}, "http://[::1]/mcp"},
		{ServerEntry{Command: "run", Args: []string{"--api-key", "sk-1", "--token=t", "-e", "GH_TOKEN=g", "-v"}}, "run --api-key *** --token=*** -e GH_TOKEN=*** -v"},
		{ServerEntry{Command: "npx", Args: []string{"mcp-remote", "https://x.example/?k=v", "--header", "Authorization: Bearer b"}},
			"npx mcp-remote https://x.example/?k=*** --header 'Authorization: ***'"},
		{ServerEntry{Command: "run", Args: []string{"--no-token", "--x"}}, "run --no-token --x"},
	} {
		if got := TargetOf(tt.entry); got != tt.want {
			t.Errorf("target = %q, want %q", got, tt.want)
		}
	}
}

// Every value that is written somewhere is told with its place; what was not
// written with its default; a secret never.
func TestValuesTellWhereTheyCameFrom(t *testing.T) {
	s := sandbox(t, map[string]string{"T": "hush1"}, map[string]string{
		"home/one.toml": "[ui]\nmouse = false\ntheme = \"mono\"\n[limits]\ndepth = 7\n[views]\nmine = \"x\"\n[servers.ci]\nurl = \"https://ci.example/?k=hush2\"\n" +
			"headers = { A = \"Bearer ${T}\", B = \"hush3\", C = \"${T:-hush4}\" }\noauth = { client_secret = \"hush5\", private_key = \"-----BEGIN hush8\", idp = { client_secret = \"hush9\", id_token_command = [\"sso\", \"--token\", \"hush10\"] } }\nautostart = false\n",
		"home/two.toml": "[limits]\ndepth = 9\n[servers.lab]\ncommand = \"lab\"\nargs = [\"--token\", \"hush6\"]\nenv = { K = \"hush7\" }\noauth = { private_key = \"keys/ci.pem\" }\n",
	})
	one, two := s.Home+"/one.toml", s.Home+"/two.toml"
	s.Files = []string{one, two}
	s.Sets = []string{"ci.poll_min=3s"}
	c := load(t, s)
	if c.File.Limits.Depth != 9 || c.File.UI.Theme != "mono" {
		t.Errorf("of two files the later does not win key by key: %+v %+v", c.File.Limits, c.File.UI)
	}
	for key, want := range map[string]string{"limits.depth": two + ":2", "views.mine": one + ":7", "servers.ci.headers.A": one + ":10", "limits.log": ""} {
		if got := c.Place(key); got != want {
			t.Errorf("%s stands in %q, want %q", key, got, want)
		}
	}
	got := map[string]Value{}
	for _, v := range c.Values() {
		got[v.Key] = v
		if strings.Contains(v.Value, "hush") {
			t.Errorf("a secret is shown: %+v", v)
		}
	}
	for _, want := range []Value{
		{"ui.mouse", "false", one}, {"ui.theme", "mono", one}, {"limits.depth", "9", two}, {"views.mine", "x", one}, {"limits.log", "5000", "default"},
		{"servers.ci.url", "https://ci.example/?k=***", one}, {"servers.ci.headers.A", "Bearer ${T}", one}, {"servers.ci.headers.B", "***", one},
		{"servers.ci.headers.C", "***", one}, {"servers.ci.poll_min", "3s", "--set"}, {"servers.ci.autostart", "false", one},
		{"servers.lab.args", "--token ***", two}, {"servers.lab.env.K", "***", two}, {"servers.ci.oauth.client_secret", "***", one},
		{"servers.ci.oauth.private_key", "***", one}, {"servers.ci.oauth.idp.client_secret", "***", one},
		{"servers.ci.oauth.idp.id_token_command", "sso --token ***", one}, {"servers.lab.oauth.private_key", "keys/ci.pem", two},
	} {
		if got[want.Key] != want {
			t.Errorf("%+v, want %+v", got[want.Key], want)
		}
	}
}

// A server that had to be renamed can be set by the name that it has.
func TestSetNamesServersAsTheyAreShown(t *testing.T) {
	s := sandbox(t, nil, map[string]string{"cwd/.mcp.json": `{"mcpServers":{"a":{"url":"http://one/"}}}`, "cwd/.cursor/mcp.json": `{"mcpServers":{"a":{"url":"http://two/"}}}`})
	s.Sets = []string{"cursor:a.transport=sse"}
	if e := server(t, load(t, s), "cursor:a").Entry; e.Transport != "sse" {
		t.Errorf("entry = %+v", e)
	}
}

func TestSecretsOfAnEntry(t *testing.T) {
	s := sandbox(t, map[string]string{"T": "secret-1", "M": "mode-word", "TOK": "secret-2", "IDT": "secret-9"}, map[string]string{"home/c.toml": `
[servers.web]
url = "https://u:secret-3@x.example/mcp?key=secret-4"
headers = { Authorization = "Bearer ${T}", X-Plain = "plain-value" }
token_env = "TOK"
oauth = { client_secret = "secret-5", idp = { client_secret = "secret-A", id_token_env = "IDT" } }
[servers.cmd]
command = "run"
args = ["--token", "secret-6", "--api-key=secret-7", "plain-arg"]
env = { API_KEY = "secret-8", MODE = "${M}" }
`})
	s.Files = []string{s.Home + "/c.toml"}
	c := load(t, s)
	for name, want := range map[string]string{
		"web": "Bearer secret-1,secret-1,secret-2,secret-3,secret-4,secret-5,secret-9,secret-A", "cmd": "secret-6,secret-7,secret-8",
	} {
		got := server(t, c, name).Secrets()
		slices.Sort(got)
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// Those that are masked wherever a server says them are no words that it may mean.
	s = sandbox(t, map[string]string{"TEAM": "platform", "LONG": "k7-QzmP2vKx9Rt4LwB"}, map[string]string{"home/c.toml": `
[servers.web]
url = "https://x.example/mcp?region=europe-west&api_key=secret-4&sig=k8-QzmP2vKx9Rt4LwB"
headers = { X-Team = "${TEAM}", X-Long = "${LONG}", X-Api-Key = "secret-1" }
`})
	s.Files = []string{s.Home + "/c.toml"}
	got := server(t, load(t, s), "web").Credentials()
	slices.Sort(got)
	if want := "k7-QzmP2vKx9Rt4LwB,k8-QzmP2vKx9Rt4LwB,secret-1,secret-4"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Every key that there is stands in the README's configuration, and every
// setting of the whole program among the values with its default.
func TestEveryKeyIsTold(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## Configuration\n")
	text, _, _ = strings.Cut(text, "\n### ")
	told := map[string]bool{}
	for _, word := range regexp.MustCompile(`[a-z_]+`).FindAllString(text, -1) {
		told[word] = true
	}
	shown := map[string]Value{}
	for _, v := range (Config{}).Values() {
		shown[v.Key] = v
	}
	var check func(typ reflect.Type, at string)
	check = func(typ reflect.Type, at string) {
		for typ.Kind() == reflect.Map || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
			if typ.Kind() == reflect.Struct {
				at = join(at, "NAME")
			}
		}
		if typ.Kind() != reflect.Struct {
			if v, ok := shown[at]; !strings.HasPrefix(at, "servers.") && !slices.Contains([]string{"keys", "views", "ui.themes"}, at) && (!ok || v.Value == "" || v.From != "default") {
				t.Errorf("%s is not among the values with its default: %+v", at, v)
			}
			return
		}
		for i := range typ.NumField() {
			key := typ.Field(i).Tag.Get("toml")
			if !told[key] {
				t.Errorf("the README's configuration does not tell of %s", join(at, key))
			}
			check(typ.Field(i).Type, join(at, key))
		}
	}
	check(reflect.TypeOf(File{}), "")
}

// What the README shows of a configuration file can be written so.
func TestReadmeConfigurations(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```toml\n(.*?)^```$").FindAllSubmatch(b, -1)
	for _, m := range blocks {
		if _, err := ParseFile("README.md", m[1]); err != nil {
			t.Error(err)
		}
	}
	if len(blocks) == 0 {
		t.Error("the README shows no configuration")
	}
}
