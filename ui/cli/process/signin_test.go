//go:build unix

package process

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// A guarded server is a demo server that wants a token, with an authorization
// server that gives them; all its tokens and codes begin with "hush-".
type guarded struct {
	t    *testing.T
	rs   *httptest.Server
	as   *httptest.Server
	demo http.Handler

	mu      sync.Mutex
	tokens  map[string]string // access token: its scopes
	refresh map[string]string
	codes   map[string]url.Values
	asked   map[string]int // requests by path and grant
	refused int            // requests answered 401
	need    string         // a scope that every call needs
	n       int
	heard   chan struct{} // a request was refused
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{t: t, demo: demoHandler(t, taskmodel.GenCore), tokens: map[string]string{}, refresh: map[string]string{}, codes: map[string]url.Values{},
		asked: map[string]int{}, heard: make(chan struct{}, 1000)}
	// Each tells the other's address: neither answers before both stand.
	standing := make(chan struct{})
	wait := func(h http.HandlerFunc) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-standing
			h(w, r)
		})
	}
	g.rs = httptest.NewServer(wait(g.resource))
	g.as = httptest.NewServer(wait(g.authorize))
	close(standing)
	t.Cleanup(func() { g.rs.Close(); g.as.Close() })
	return g
}

func (g *guarded) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

func (g *guarded) count(what string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[what]
}

func (g *guarded) resource(w http.ResponseWriter, r *http.Request) {
	meta := g.rs.URL + "/.well-known/oauth-protected-resource/mcp"
	if r.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
		answer(w, 200, map[string]any{"resource": g.rs.URL + "/mcp", "authorization_servers": []string{g.as.URL}, "scopes_supported": []string{"read"}})
		return
	}
	if r.URL.Path != "/mcp" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	g.mu.Lock()
	scopes, ok := g.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	need := g.need
	if !ok {
		g.refused++
	}
	g.mu.Unlock()
	switch {
	case !ok:
		select {
		case g.heard <- struct{}{}:
		default:
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata=%q`, meta))
		w.WriteHeader(http.StatusUnauthorized)
	case need != "" && !strings.Contains(" "+scopes+" ", " "+need+" "):
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q, resource_metadata=%q`, need, meta))
		w.WriteHeader(http.StatusForbidden)
	default:
		g.demo.ServeHTTP(w, r)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (g *guarded) authorize(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[strings.TrimSpace(r.URL.Path+" "+r.PostForm.Get("grant_type"))]++
	g.n++
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		answer(w, 200, map[string]any{"issuer": g.as.URL, "authorization_endpoint": g.as.URL + "/authorize", "token_endpoint": g.as.URL + "/token",
			"registration_endpoint": g.as.URL + "/register", "response_types_supported": []string{"code"},
			"grant_types_supported": []string{"authorization_code", "refresh_token", "client_credentials"}, "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic"}, "scopes_supported": []string{"read", "write"},
			"authorization_response_iss_parameter_supported": true})
	case "/register":
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		in["client_id"] = fmt.Sprint("client-", g.n)
		answer(w, 201, in)
	case "/authorize": // the person agrees at once
		code := fmt.Sprint("hush-code-", g.n)
		g.codes[code] = r.URL.Query()
		back, _ := url.Parse(r.URL.Query().Get("redirect_uri"))
		back.RawQuery = url.Values{"code": {code}, "state": {r.URL.Query().Get("state")}, "iss": {g.as.URL}}.Encode()
		http.Redirect(w, r, back.String(), http.StatusFound)
	case "/token":
		scopes := r.Form.Get("scope")
		switch r.Form.Get("grant_type") {
		case "authorization_code":
			q := g.codes[r.Form.Get("code")]
			sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
			if q == nil || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
				answer(w, 400, map[string]string{"error": "invalid_grant"})
				return
			}
			delete(g.codes, r.Form.Get("code"))
			scopes = q.Get("scope")
		case "refresh_token":
			old, ok := g.refresh[r.Form.Get("refresh_token")]
			if !ok {
				answer(w, 400, map[string]string{"error": "invalid_grant"})
				return
			}
			delete(g.refresh, r.Form.Get("refresh_token"))
			scopes = old
		case "client_credentials":
			if id, secret, _ := r.BasicAuth(); id != "bot" || secret != "hush-bot" {
				answer(w, 401, map[string]string{"error": "invalid_client"})
				return
			}
		}
		access, refresh := fmt.Sprint("hush-access-", g.n), fmt.Sprint("hush-refresh-", g.n)
		g.tokens[access], g.refresh[refresh] = scopes, scopes
		answer(w, 200, map[string]any{"access_token": access, "token_type": "bearer", "refresh_token": refresh, "expires_in": 3600, "scope": scopes})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// drop ends every token; with renewal the authorization server still renews.
func (g *guarded) drop(renewal bool) {
	g.set(func() {
		clear(g.tokens)
		if !renewal {
			clear(g.refresh)
		}
	})
}

var page = regexp.MustCompile(`http://\S+/authorize\?\S+`)

// login signs in at a terminal without a browser: the address is read from what
// the program shows, and the browser runs here.
func (b *box) login(pasting bool) {
	b.t.Helper()
	b.signIn(b.begin("login", "ci", "--no-browser"), pasting)
}

func (b *box) signIn(p *proc, pasting bool) {
	b.t.Helper()
	at := page.FindString(p.errs.await(b.t, "the sign-in page's address", page.MatchString))
	client := &http.Client{}
	if pasting { // the browser is on another machine: its redirect goes nowhere
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	req, err := http.NewRequestWithContext(deadline(b.t), http.MethodGet, at, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	res.Body.Close()
	if pasting {
		fmt.Fprintln(p.in, res.Header.Get("Location"))
	}
	if r := p.end(); r.code != 0 || !strings.Contains(r.out, "Signed in to ci") {
		b.t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
}

// noSecrets looks for tokens and codes in what may be seen: everything that was
// written below the home folder but the tokens' own, and text.
func (b *box) noSecrets(texts ...string) {
	b.t.Helper()
	tokens := filepath.Join(b.state(), "tokens")
	err := filepath.WalkDir(b.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, tokens) {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("hush-")) {
			b.t.Errorf("a secret is in %s", path)
		}
		return err
	})
	if err != nil {
		b.t.Error(err)
	}
	for _, text := range texts {
		if strings.Contains(text, "hush-") {
			b.t.Errorf("a secret is in: %s", text)
		}
	}
}

// The whole life of a person's sign-in: wanted, made (by the loopback redirect
// or by pasting over SSH), used, renewed, ended. Without a keyring the tokens
// are in files that only their owner may read, and nowhere else.
func TestSignIn(t *testing.T) {
	for name, pasting := range map[string]bool{"redirect": false, "pasted over SSH": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, b := newGuarded(t), newBox(t)
			b.env["MCPTASKS_SERVER"], b.env["MCPTASKS_LOG"] = "ci="+g.rs.URL+"/mcp", filepath.Join(b.home, "log.txt")
			if said := b.fault(3, "auth", "ls"); strings.Count(said, "mcptasks login ci") != 1 {
				t.Errorf("it is to say once what to do: %s", said)
			}
			if g.count("/register") != 0 {
				t.Error("nobody asked for a sign-in, and the authorization server was asked for a client")
			}
			b.login(pasting)
			r := b.want(0, "tools", "ci", "-o", "json")
			files, err := filepath.Glob(filepath.Join(b.state(), "tokens", "*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			for path, want := range map[string]fs.FileMode{files[0]: 0o600, filepath.Dir(files[0]): 0o700} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s: %v, want %o", path, info.Mode().Perm(), want)
				}
			}
			g.drop(true)
			r2 := b.want(0, "tools", "ci")
			if n := g.count("/token refresh_token"); n != 1 {
				t.Errorf("%d renewals", n)
			}
			started := b.want(0, "start", "ci", "build", "target=api", "-o", "json")
			hist := b.want(0, "history", "-o", "jsonl")
			conf := b.want(0, "config")
			b.noSecrets(r.out, r.err, r2.out, r2.err, started.out, hist.out, conf.out)
			b.want(0, "logout", "ci")
			b.fault(3, "auth", "tools", "ci")
			if left, _ := filepath.Glob(filepath.Join(b.state(), "tokens", "*")); len(left) != 0 {
				t.Errorf("after signing out there is %v", left)
			}
		})
	}
}

// A 403 that names a scope: the next sign-in asks for it and keeps what it had.
func TestStepUp(t *testing.T) {
	t.Parallel()
	g, b := newGuarded(t), newBox(t)
	b.env["MCPTASKS_SERVER"] = "ci=" + g.rs.URL + "/mcp"
	b.login(false)
	b.want(0, "tools", "ci")
	g.set(func() { g.need = "write" })
	if said := b.fault(3, "auth", "tools", "ci"); !strings.Contains(said, "write") || !strings.Contains(said, "mcptasks login ci") {
		t.Error(said)
	}
	b.login(false)
	b.want(0, "tools", "ci")
	g.set(func() {
		for _, scopes := range g.tokens {
			if strings.Contains(scopes, "write") && !strings.Contains(scopes, "read") {
				t.Errorf("the step-up lost what it had: %s", scopes)
			}
		}
	})
}

// A 401 in mid-session: the server says "sign in", nothing storms it, and when
// the person has signed in elsewhere it goes on by itself.
func TestSignInWantedInMidSession(t *testing.T) {
	t.Parallel()
	g, b := newGuarded(t), newBox(t)
	b.env["MCPTASKS_SERVER"] = "ci=" + g.rs.URL + "/mcp"
	b.login(false)
	p := b.begin("watch")
	state := func(want string) {
		t.Helper()
		for {
			var e struct {
				Event string
				State struct{ State, Error string }
			}
			// It looks for a sign-in made elsewhere after 30 s, then less often.
			if err := json.Unmarshal([]byte(p.lineWithin(5*time.Minute)), &e); err != nil {
				t.Fatal(err)
			}
			if e.Event == "server" && e.State.State == want {
				if want == "auth" && !strings.Contains(e.State.Error, "mcptasks login ci") {
					t.Errorf("it does not say what to do: %s", e.State.Error)
				}
				return
			}
		}
	}
	state("ready")
	g.drop(false)
	state("auth")
	b.login(false) // in another terminal
	g.set(func() { g.refused = 0 })
	state("ready")
	g.mu.Lock()
	if g.refused > 3 {
		t.Errorf("%d refused requests after the sign-in", g.refused)
	}
	g.mu.Unlock()
	p.signal(os.Interrupt)
	if r := p.end(); r.code != 130 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// Signing in without a person: a token of the environment, of a command, of a
// header, and the client's own credentials.
func TestSignInWithoutAPerson(t *testing.T) {
	t.Parallel()
	g, b := newGuarded(t), newBox(t)
	g.tokens["hush-fixed"] = "read"
	b.env["CI_TOKEN"], b.env["MCPTASKS_LOG"] = "hush-fixed", filepath.Join(b.home, "log.txt")
	script := filepath.Join(b.cwd, "token")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho run >>"+filepath.Join(b.cwd, "runs")+"\necho hush-\"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	entry := func(lines string) string {
		return b.write("c.toml", "[servers.ci]\nurl = '"+g.rs.URL+"/mcp'\n"+lines+"\n")
	}
	for _, tt := range []struct {
		name, lines string
		code        int
	}{
		{"token_env", "token_env = 'CI_TOKEN'", 0},
		{"token_env that is not set", "token_env = 'NO_TOKEN'", 3},
		{"token_command", "token_command = ['" + script + "', 'fixed']", 0},
		{"token_command with another token", "token_command = ['" + script + "', 'wrong']", 3},
		{"token_command that fails", "token_command = ['false']", 3},
		{"header", "headers = { Authorization = 'Bearer ${CI_TOKEN}' }", 0},
		{"client credentials", "oauth = { client_id = 'bot', client_secret = '${BOT}', grant = 'client_credentials' }", 0},
	} {
		b.env["BOT"] = "hush-bot"
		r := b.run("-c", entry(tt.lines), "tools", "ci", "-o", "json")
		if strings.Contains(r.err, "mcptasks login") {
			t.Errorf("%s: there is nobody to sign in: %s", tt.name, r.err)
		}
		if r.code != tt.code {
			t.Errorf("%s: exit %d, want %d: %s%s", tt.name, r.code, tt.code, r.out, r.err)
		}
		conf := b.want(0, "-c", entry(tt.lines), "config")
		b.noSecrets(r.out, r.err, conf.out)
	}
	b.env["BOT"] = "hush-other"
	b.fault(3, "auth", "-c", entry("oauth = { client_id = 'bot', client_secret = '${BOT}', grant = 'client_credentials' }"), "tools", "ci")
	runs, _ := os.ReadFile(filepath.Join(b.cwd, "runs"))
	if n := strings.Count(string(runs), "run"); n > 3 {
		t.Errorf("the token_command was run %d times for two commands", n)
	}
	b.fault(1, "failed", "-c", entry("token_env = 'CI_TOKEN'"), "login", "ci")
}
