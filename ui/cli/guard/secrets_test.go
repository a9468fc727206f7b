//go:build linux

package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/demo/faulty"
	"mcptasks/mcp/proctest"
)

// Secrets, each planted in one place. A secret is looked for without its last
// letters too: what is cut is still seen.
const (
	ofHeader     = "hdr-Q7mzP2vKx9Rt4LwB"
	ofBearer     = "brr-J3nyH8sDc6Tf1GqE"
	ofQuery      = "qry-V5bkW9pZr2Xm7NcU"
	ofUserinfo   = "usr-M4tgF6hYd8Kj3SvA"
	ofTokenEnv   = "env-C2xrB7lQw5Pn9ZeH"
	ofCommand    = "cmd-T8fjU1aGy4Vd6MkS"
	ofStdio      = "std-K6wvN3eJz8Ch5RbX"
	ofArgument   = "arg-Y9ckD4uTm7Lp2FqW"
	ofClient     = "cli-G1snX5oBv3Ew8HjZ"
	ofAccess     = "acc-R4pdL9iMq6Yt2UfC"
	ofInput      = "inp-Z7hbE2yNk5Ax1WgT"
	ofPassword   = "pin-W3vqS8dUf1Jr6KnM"
	ofToolSecret = "tol-F5mxA9zCg2Hb7YtP"
)

var planted = map[string]string{
	"a header": ofHeader, "a header's variable": ofBearer, "a URL's query": ofQuery, "a URL's userinfo": ofUserinfo,
	"a variable of token_env": ofTokenEnv, "a token_command": ofCommand, "a stdio server's environment": ofStdio, "a stdio server's arguments": ofArgument,
	"a client's secret": ofClient, "an access token": ofAccess, "an input of a configuration": ofInput,
	"a password typed into a form": ofPassword, "a password among a tool's arguments": ofToolSecret,
}

func leaks(b []byte) []string {
	var out []string
	for where, s := range planted {
		if bytes.Contains(b, []byte(s[:12])) {
			out = append(out, where)
		}
	}
	slices.Sort(out)
	return out
}

// A vault is what the servers have been shown.
type vault struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (v *vault) show(b []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for where, s := range planted {
		if bytes.Contains(b, []byte(s)) {
			v.seen[where] = true
		}
	}
}

// askPassword makes the demo server's approval ask for a password beside what
// it wants, and takes an answer without the rest.
const askPassword = `question:elicitation/create* set params.requestedSchema {"type":"object","properties":{"pin":{"type":"string","title":"Pin","format":"password"}},"required":["pin"]}
answer:elicitation/create* set result.content {"strategy":"canary","ticket":"CHG-20417"}`

// sealed is a server that lets in only who shows a secret, and says in its
// refusals what it was shown, as careless servers do.
func sealed(t *testing.T, v *vault, want string, challenge http.HandlerFunc) string {
	t.Helper()
	s, err := faulty.New(demo.Options{Tasks: 4, Speed: 5}, askPassword)
	if err != nil {
		t.Fatal(err)
	}
	s.Overhear(func(_, _ string, b []byte) { v.show(b) })
	inner := s.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pass, _ := r.BasicAuth()
		shown := fmt.Sprint(r.URL, r.Header, pass)
		v.show([]byte(shown))
		if !strings.Contains(shown, want) {
			if challenge != nil {
				challenge(w, r)
				return
			}
			http.Error(w, "who is there? I was shown "+shown, http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost {
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body)
			r.Body = readBody{bytes.NewReader(b.Bytes())}
			if bytes.Contains(b.Bytes(), []byte(`"tasks/cancel"`)) {
				http.Error(w, "rejected: "+shown, http.StatusBadRequest)
				return
			}
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close(); s.Close() })
	return srv.URL
}

type readBody struct{ *bytes.Reader }

func (readBody) Close() error { return nil }

// issuer hands out access tokens to the client with the secret.
func issuer(t *testing.T, v *vault) *httptest.Server {
	t.Helper()
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": srv.URL, "authorization_endpoint": srv.URL + "/auth", "token_endpoint": srv.URL + "/token",
				"response_types_supported": []string{"code"}, "grant_types_supported": []string{"client_credentials"}, "code_challenge_methods_supported": []string{"S256"},
				"token_endpoint_auth_methods_supported": []string{"client_secret_post", "client_secret_basic"}})
		case r.URL.Path == "/token":
			_ = r.ParseForm()
			_, pass, _ := r.BasicAuth()
			v.show([]byte(fmt.Sprint(r.Form, pass)))
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"access_token": ofAccess, "token_type": "Bearer", "expires_in": 3600})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// A leaker runs commands of one person and looks at all that they leave.
type leaker struct {
	t     *testing.T
	home  string
	env   []string
	flags []string
	v     *vault
}

// look reports the secrets in something that may be seen.
func (l *leaker) look(what string, b []byte) {
	l.t.Helper()
	for _, where := range leaks(b) {
		l.t.Errorf("%s shows %s: %q", what, where, around(b, planted[where]))
	}
}

func around(b []byte, secret string) []byte {
	i := bytes.Index(b, []byte(secret[:12]))
	return b[max(0, i-160):min(len(b), i+60)]
}

// run runs one command and gives its output; whatever it does, neither that nor
// the processes that it starts may show a secret.
func (l *leaker) run(args ...string) string {
	l.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*proctest.Patience)
	defer stop()
	cmd := exec.CommandContext(ctx, program, append(slices.Clone(l.flags), args...)...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.home, l.env, &out, &out
	_ = cmd.Run()
	if ctx.Err() != nil {
		l.t.Fatalf("%v: not done in time: %s", args, out.Bytes())
	}
	l.look("mcptasks "+strings.Join(args, " "), out.Bytes())
	return out.String()
}

func (l *leaker) write(name, text string) string {
	l.t.Helper()
	path := filepath.Join(l.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// start starts a task and gives its name.
func (l *leaker) start(args ...string) string {
	l.t.Helper()
	out := l.run(append([]string{"start", "-o", "json"}, args...)...)
	var task struct{ Server, TaskID string }
	if err := json.Unmarshal([]byte(out), &task); err != nil || task.TaskID == "" {
		l.t.Fatalf("start %v: %s", args, out)
	}
	return task.Server + "/" + task.TaskID
}

// asking starts a task and waits until it asks.
func (l *leaker) asking(server string) string {
	l.t.Helper()
	task := l.start(server, "deploy_release", "service=api", "version=v1.2.3")
	for end := time.Now().Add(proctest.Patience); !strings.Contains(l.run("get", task, "-o", "json"), `"input_required"`); {
		if time.Now().After(end) {
			l.t.Fatalf("%s does not ask: %s", task, l.run("get", task))
		}
	}
	return task
}

// TestSecretsAreNowhere plants secrets wherever they can come from, uses all of
// them, and then looks for them in everything that somebody may see.
func TestSecretsAreNowhere(t *testing.T) {
	v := &vault{seen: map[string]bool{}}
	l := &leaker{t: t, home: t.TempDir(), v: v}
	iss := issuer(t, v)
	urls := map[string]string{}
	for name, want := range map[string]string{"header": ofHeader, "query": ofQuery, "userinfo": ofUserinfo, "tokenenv": ofTokenEnv, "command": ofCommand, "input": ofInput} {
		urls[name] = sealed(t, v, want, nil)
	}
	urls["oauth"] = sealed(t, v, ofAccess, func(w http.ResponseWriter, r *http.Request) {
		const meta = "/.well-known/oauth-protected-resource/mcp"
		switch r.URL.Path {
		case meta:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"resource": "http://" + r.Host + "/mcp", "authorization_servers": []string{iss.URL}})
		case "/mcp":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="http://%s%s"`, r.Host, meta))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}) + "/mcp"
	inURL := func(u string) string { return strings.Replace(u, "://", "://me:"+ofUserinfo+"@", 1) }
	token := l.write("token", ofCommand+"\n")
	l.write("server.sh", fmt.Sprintf("#!/bin/sh\ntest \"$API_TOKEN\" = %s && test \"$2\" = %s || { echo wrong >&2; exit 9; }\necho \"debug: I was given $API_TOKEN and $*\" >&2\nexec %s demo-server --fault %s\n",
		ofStdio, ofArgument, program, quote(askPassword)))
	config := l.write("mcptasks/config.toml", fmt.Sprintf(`
[servers.header]
url = %q
headers = { X-Api-Key = %q, Authorization = "Bearer ${P_BEARER}" }
[servers.query]
url = %q
[servers.userinfo]
url = %q
[servers.tokenenv]
url = %q
token_env = "P_TOKEN"
[servers.command]
url = %q
token_command = ["cat", %q]
[servers.oauth]
url = %q
oauth = { client_id = "me", client_secret = %q, grant = "client_credentials" }
[servers.lab]
command = "sh"
args = [%q, "--api-key", %q]
env = { API_TOKEN = %q }
[servers.gone]
url = "http://me:%s@127.0.0.1:1/mcp?api_key=%s"
headers = { X-Api-Key = %q }
`, urls["header"], ofHeader, urls["query"]+"/mcp?api_key="+ofQuery, inURL(urls["userinfo"]), urls["tokenenv"], urls["command"], token, urls["oauth"], ofClient,
		l.home+"/server.sh", ofArgument, ofStdio, ofUserinfo, ofQuery, ofHeader))
	vscode := l.write("mcp.json", fmt.Sprintf(`{"inputs":[{"type":"promptString","id":"key","description":"The key","password":true}],
		"servers":{"input":{"type":"http","url":%q,"headers":{"X-Key":"${input:key}"}}}}`, urls["input"]))
	l.env = append(environ(l.home), "P_BEARER="+ofBearer, "P_TOKEN="+ofTokenEnv)
	l.flags = []string{"--state", l.home + "/state", "--log", l.home + "/log"}
	input := &leaker{t: t, home: l.home, env: l.env, v: v, flags: append(slices.Clone(l.flags), "-c", vscode)}
	l.flags = append(l.flags, "-c", config)

	// What looks.
	for _, args := range [][]string{{"config"}, {"config", "-o", "json"}, {"servers"}, {"servers", "-o", "json"}, {"ls"}, {"ls", "-o", "jsonl"}} {
		l.run(args...)
	}
	// What acts, on each server; the refusals quote what the server was shown.
	bundle := filepath.Join(l.home, "bundle.json")
	for _, name := range []string{"header", "query", "userinfo", "tokenenv", "command", "oauth"} {
		l.run("tools", name)
		task := l.start(name, "lint_file", "path=a.go")
		l.run("wait", task)
		l.run("result", task)
		l.run("result", task, "--save", l.home+"/saved", "-o", "json")
		l.run("history", task)
		asked := l.asking(name)
		l.run("answer", asked, "--accept", `{"wrong":true}`)
		l.run("cancel", asked)
		l.run("cancel", asked, "-o", "json")
		l.run("history", task, "--bundle", bundle)
		b, err := os.ReadFile(bundle)
		if err != nil {
			t.Fatal(err)
		}
		l.look("the bundle of "+name, b)
		if _, id, _ := strings.Cut(task, "/"); bytes.Contains(b, []byte(id)) {
			t.Errorf("the bundle of %s holds the task's id", name)
		}
	}
	l.run("tools", "lab")
	if out := l.run("start", "lab", "lint_file", "path=a.go", "--wait"); !strings.Contains(out, "a.go") {
		t.Errorf("the server with its secrets in variable and argument: %s", out)
	}
	l.run("tools", "gone")
	l.run("tools", "gone", "-o", "json")
	l.run("logout", "oauth")

	l.answerAtTheTerminal(input)
	l.screens()

	l.run("history", "-o", "jsonl")
	l.files()
	for where := range planted {
		if where != "a password among a tool's arguments" && !v.seen[where] && where != "a stdio server's environment" && where != "a stdio server's arguments" {
			t.Errorf("%s was shown to no server: nothing is tested", where)
		}
	}
}

// answerAtTheTerminal types passwords where commands ask for them.
func (l *leaker) answerAtTheTerminal(input *leaker) {
	asked := l.asking("header")
	s := show(l.t, l.env, slices.Concat([]string{program}, l.flags, []string{"answer", asked})...)
	s.see("Pin")
	s.press(ofPassword + "\n")
	s.see("s send")
	s.press("s\n")
	s.end()
	l.look("the terminal at which a question is answered", s.bytes())
	l.look("the terminal at which a question is answered", []byte(s.text()))

	s = show(l.t, l.env, slices.Concat([]string{program}, input.flags, []string{"tools", "input"})...)
	s.see("key")
	s.press(ofInput + "\n")
	if code := s.end(); code != 0 {
		l.t.Errorf("with an input: exit %d\n%s", code, s.text())
	}
	l.look("the terminal at which an input is asked for", s.bytes())
}

// screens opens every screen, types a password into a form, and looks at what
// is shown and at the processes meanwhile.
func (l *leaker) screens() {
	task := l.asking("tokenenv")
	_, id, _ := strings.Cut(task, "/")
	s := show(l.t, l.env, slices.Concat([]string{program}, l.flags)...)
	s.see("sorted by needs")
	s.see(id[:8])
	s.until("all servers tried", func() bool { return strings.Count(s.text(), "tokenenv") > 1 })
	s.press("/id:" + id[:8] + "\r")
	s.until("the list is filtered", func() bool { return strings.Contains(s.text(), "1 of ") })
	s.press("a")
	s.see("Pin")
	s.press(ofPassword)
	s.until("the password is typed", func() bool { return strings.Contains(s.text(), "••••") || strings.Contains(s.text(), "****") })
	s.press("\x1b") // put aside, kept as a draft
	s.see("sorted by needs")
	s.press("a")
	s.see("Pin")
	s.press(ofPassword)
	s.press("\x13") // sent
	s.until("it is answered", func() bool {
		return strings.Contains(s.text(), "sorted by needs") && !strings.Contains(s.text(), "input needed")
	})
	s.press("w") // the wire log, with the answer in it
	s.see("messages")
	s.press("/elicitation/create\r")
	s.see("elicitation/create")
	// Each is opened and left again before the next key: an esc that is read with
	// what follows it is another key.
	opened := func() bool { return strings.Contains(s.text(), `"jsonrpc": `) }
	for _, keys := range []string{"G\r", "k\r", "k\r"} {
		s.press(keys)
		s.until("a message, whole", opened)
		s.press("\x1b")
		s.until("the wire log again", func() bool { return !opened() })
	}
	s.press("s") // the servers, each with its details
	s.see("TASKS BY")
	for range 9 {
		s.press("j")
	}
	s.see("gone")
	s.relatives()
	for pid := range s.kin {
		args := proctest.Command(pid)
		if strings.Contains(args, "server.sh") || strings.HasPrefix(args, "sh ") {
			continue // its arguments are the configuration's, as it wants them
		}
		l.look("the arguments of a process", []byte(args))
	}
	l.look("the arguments of the program", []byte(proctest.Command(s.cmd.Process.Pid)))
	s.press("q")
	s.until("the end", func() bool {
		select {
		case <-s.ended:
			return true
		default:
			s.press("y")
			return false
		}
	})
	l.look("the screens", s.bytes())
}

// files looks into all that was written, but for what holds secrets on purpose:
// the configuration and the file in which tokens are kept for their owner.
func (l *leaker) files() {
	n := 0
	err := filepath.WalkDir(l.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(l.home, path)
		switch {
		case slices.Contains([]string{"mcptasks/config.toml", "token", "server.sh"}, rel):
			return nil
		case strings.HasSuffix(rel, ".token"):
			if fi, err := d.Info(); err == nil && fi.Mode().Perm() != 0o600 {
				l.t.Errorf("%s has mode %s", rel, fi.Mode())
			}
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		l.look("the file "+rel, b)
		return nil
	})
	if err != nil || n < 3 {
		l.t.Errorf("%d files looked at, %v", n, err)
	}
}

// quote writes a word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
