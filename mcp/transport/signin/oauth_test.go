package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/transport"
)

// logs collects every log line, to look for secrets in them.
type logs struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

func (w *world) oauth(tweak func(*Config)) (*OAuth, *memStore, *logs) {
	w.t.Helper()
	l, store := &logs{}, &memStore{}
	conf := Config{Server: "ci", URL: w.rs.URL + "/mcp?key=q", Store: store, Now: w.clock,
		Log: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if tweak != nil {
		tweak(&conf)
	}
	o, err := New(conf)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		o.conf.Client.CloseIdleConnections()
		l.mu.Lock()
		defer l.mu.Unlock()
		if strings.Contains(l.String(), "secret-") || strings.Contains(l.String(), "code-") {
			w.t.Errorf("secrets in the log: %s", l.String())
		}
	})
	return o, store, l
}

// browser follows the sign-in page to the end, as a browser would.
func browser(t *testing.T) Person {
	return Person{Open: func(page string) error {
		go func() {
			res, err := http.Get(page)
			if err != nil {
				t.Error(err)
				return
			}
			b, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != 200 || !strings.Contains(string(b), "close this page") {
				t.Errorf("the browser sees %d %s", res.StatusCode, b)
			}
		}()
		return nil
	}}
}

// call makes one MCP call through the transport.
func (w *world) call(a transport.Authorizer) (string, error) {
	h := &transport.HTTP{URL: w.rs.URL + "/mcp", Auth: a}
	conn, err := h.Dial(w.t.Context(), "modern")
	if err != nil {
		w.t.Fatal(err)
	}
	p := jsonrpc.NewPeer(conn, quiet{}, jsonrpc.PeerOptions{})
	if err := p.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	defer p.Close(context.Background())
	b, err := p.Call(w.t.Context(), jsonrpc.Call{Method: "tasks/get"})
	if err != nil && strings.Contains(err.Error(), "secret-") {
		w.t.Errorf("a secret in the error: %v", err)
	}
	return string(b), err
}

type quiet struct{}

func (quiet) Request(context.Context, *jsonrpc.Request) {}
func (quiet) Notification(jsonrpc.Notification)         {}
func (quiet) Noise(string, []byte)                      {}

func needLogin(t *testing.T, err error) *NeedLogin {
	t.Helper()
	var n *NeedLogin
	if !errors.As(err, &n) || !errors.Is(err, transport.ErrSignIn) {
		t.Fatalf("err = %v", err)
	}
	return n
}

// basic/authorization: the whole way from a 401 to a token, with dynamic
// registration, PKCE, resource and issuer; then again in a new process.
func TestLogin(t *testing.T) {
	w := newWorld(t)
	o, store, _ := w.oauth(nil)
	_, err := w.call(o)
	if n := needLogin(t, err); n.Scopes != nil || !strings.Contains(err.Error(), "mcptasks login ci") {
		t.Error(err)
	}
	if w.asked("/") != 0 {
		t.Errorf("without a person the authorization server was asked %q", w.log)
	}
	if err := o.Login(t.Context(), browser(t)); err != nil {
		t.Fatal(err)
	}
	got, err := w.call(o)
	if err != nil || !strings.Contains(got, `"read"`) || !strings.Contains(got, `"offline_access"`) { // in any order
		t.Error(got, err)
	}
	if len(store.m) != 1 || store.m[w.rs.URL+"/mcp"] == "" {
		t.Errorf("kept under %q", store.m)
	}
	again, _, _ := w.oauth(func(c *Config) { c.Store = store; c.Server = "other" })
	if _, err := w.call(again); err != nil {
		t.Error(err)
	}
	if !again.SignedIn(t.Context()) {
		t.Error("not signed in")
	}
	if err := again.Logout(t.Context()); err != nil || len(store.m) != 0 {
		t.Error(err, store.m)
	}
	_, err = w.call(again)
	needLogin(t, err)
}

func TestLoginWithoutChallenge(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	if err := o.Login(t.Context(), browser(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.call(o); err != nil {
		t.Error(err)
	}
}

func TestLoginClients(t *testing.T) {
	for _, tc := range []struct {
		name  string
		conf  func(*Config)
		setup func(w *world)
		reg   int
		err   string
	}{
		{"registered, public", func(c *Config) { c.ClientID = "mine" }, func(w *world) { w.clients["mine"] = "" }, 0, ""},
		{"registered, secret", func(c *Config) { c.ClientID, c.ClientSecret = "mine", "secret-x" }, func(w *world) { w.clients["mine"] = "secret-x" }, 0, ""},
		{"registered, wrong secret", func(c *Config) { c.ClientID, c.ClientSecret = "mine", "secret-y" }, func(w *world) { w.clients["mine"] = "secret-x" }, 0, "invalid_client"},
		{"metadata document", func(c *Config) { c.ClientID = "https://me.example/client.json" }, func(w *world) { w.cimd = true }, 0, ""},
		{"metadata document not supported", func(c *Config) { c.ClientID = "https://me.example/client.json" }, func(w *world) {}, 1, ""},
		{"no way to register", func(c *Config) {}, func(w *world) { w.noDCR = true }, 0, "no configured client registration"},
		{"fixed scopes", func(c *Config) { c.Scopes = []string{"write"} }, func(w *world) { w.need = "write" }, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.setup(w)
			o, _, _ := w.oauth(tc.conf)
			err := o.Login(t.Context(), browser(t))
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret-")) {
				t.Fatal(err)
			}
			if w.asked("/register") != tc.reg {
				t.Errorf("asked %q", w.log)
			}
			if tc.err != "" {
				return
			}
			if _, err := w.call(o); err != nil {
				t.Error(err)
			}
			w.expire()
			w.pass(time.Hour)
			if _, err := w.call(o); err != nil {
				t.Errorf("after renewal: %v", err)
			}
		})
	}
}

// RFC 9207: an answer of another issuer is refused.
func TestLoginIssuer(t *testing.T) {
	for iss, ok := range map[string]bool{"": false, "https://evil.example": false} {
		w := newWorld(t)
		w.iss = iss
		o, store, _ := w.oauth(nil)
		if err := o.Login(t.Context(), browser(t)); (err == nil) != ok || w.asked("/token") != 0 || len(store.m) != 0 {
			t.Errorf("iss %q: %v", iss, err)
		}
	}
}

// No browser here: the address is shown, and what the other browser ends at is
// pasted.
func TestLoginByPasting(t *testing.T) {
	follow := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for name, tc := range map[string]struct {
		paste func(u *url.URL) string
		err   string
	}{
		"whole address": {func(u *url.URL) string { return " " + u.String() + "\n" }, ""},
		"query":         {func(u *url.URL) string { return "?" + u.RawQuery }, ""},
		"bare code":     {func(u *url.URL) string { return u.Query().Get("code") }, "iss parameter"}, // this server wants its issuer checked
		"other state":   {func(u *url.URL) string { return "http://127.0.0.1/callback?code=x&state=y" }, "another sign-in"},
		"refused":       {func(u *url.URL) string { return "?error=access_denied&state=" + u.Query().Get("state") }, "access_denied"},
		"nothing":       {func(u *url.URL) string { return " " }, "nothing was pasted"},
		"nonsense":      {func(u *url.URL) string { return "what is this" }, "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o, _, _ := w.oauth(nil)
			shown := make(chan string, 1)
			err := o.Login(t.Context(), Person{
				Show: func(u string) { shown <- u },
				Paste: func(context.Context) (string, error) {
					res, err := follow.Get(<-shown)
					if err != nil {
						return "", err
					}
					defer res.Body.Close()
					u, err := res.Location()
					if err != nil {
						return "", err
					}
					return tc.paste(u), nil
				},
			})
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// Another site cannot end the sign-in by sending the browser to the redirect.
func TestLoginForeignRedirect(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	p := Person{Show: func(page string) {
		u, _ := url.Parse(page)
		back := u.Query().Get("redirect_uri")
		for _, q := range []string{"?code=evil&state=x", "?error=access_denied", ""} {
			res, err := http.Get(back + q)
			if err != nil {
				t.Error(err)
				continue
			}
			res.Body.Close()
			if res.StatusCode != 400 {
				t.Errorf("%q: %d", q, res.StatusCode)
			}
		}
	}, Open: browser(t).Open}
	if err := o.Login(t.Context(), p); err != nil {
		t.Error(err)
	}
}

func TestLoginGivenUp(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	ctx, cancel := context.WithCancel(t.Context())
	err := o.Login(ctx, Person{Show: func(string) {
		if err := o.Login(ctx, Person{}); !errors.Is(err, ErrLoginRunning) {
			t.Errorf("a second login: %v", err)
		}
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := o.Login(t.Context(), browser(t)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// T5: many requests that meet a 401 at once cost one renewal; a sign-in that
// has ended costs one attempt and no browser.
func TestT5_NoLoginStorm(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	if err := o.Login(t.Context(), browser(t)); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	w.expire()
	storm := func() (failed int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 30 {
			wg.Go(func() {
				if _, err := w.call(o); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return failed
	}
	if n := storm(); n != 0 || w.asked("/token refresh_token") != 1 {
		t.Errorf("%d failed, %d renewals", n, w.asked("/token refresh_token"))
	}
	w.pass(time.Minute)
	w.expire()
	w.set(func() { clear(w.refresh) })
	if n := storm(); n != 30 || w.asked("/token refresh_token") != 2 {
		t.Errorf("%d failed, %d renewals", n, w.asked("/token refresh_token"))
	}
	if w.asked("/authorize") != 1 || w.asked("/register") != 1 {
		t.Errorf("asked %q", w.log)
	}
	_, err := w.call(o)
	needLogin(t, err)
}

func TestRenewalBeforeTheEnd(t *testing.T) {
	w := newWorld(t)
	o, store, _ := w.oauth(nil)
	o.Login(t.Context(), browser(t))
	w.pass(59*time.Minute + 45*time.Second)
	if got, err := w.call(o); err != nil || !strings.Contains(got, "renewed") {
		t.Error(got, err)
	}
	var g grant
	if err := json.Unmarshal([]byte(store.m[w.rs.URL+"/mcp"]), &g); err != nil || w.refresh[g.Refresh] == nil {
		t.Error("the rotated refresh token is not kept")
	}
}

// The authorization server is down: no sign-in is asked for, and it is not
// hammered.
func TestRenewalTryLater(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	o.Login(t.Context(), browser(t))
	w.pass(2 * time.Hour)
	w.expire()
	w.set(func() { w.down = true })
	for range 20 {
		_, err := w.call(o)
		if !errors.Is(err, transport.ErrTryLater) || errors.Is(err, transport.ErrSignIn) {
			t.Fatal(err)
		}
	}
	if n := w.asked("/token refresh_token"); n != 1 {
		t.Errorf("%d attempts", n)
	}
	w.set(func() { w.down = false })
	w.pass(time.Minute)
	if _, err := w.call(o); err != nil {
		t.Error(err)
	}
}

// A sign-in or renewal by another process is taken over.
func TestAnotherProcessSignsIn(t *testing.T) {
	w := newWorld(t)
	a, store, _ := w.oauth(nil)
	b, _, _ := w.oauth(func(c *Config) { c.Store = store })
	_, err := w.call(b)
	needLogin(t, err)
	a.Login(t.Context(), browser(t))
	w.pass(3 * time.Second)
	if _, err := w.call(b); err != nil {
		t.Error(err)
	}
	w.expire()
	w.pass(time.Hour)
	if _, err := w.call(a); err != nil {
		t.Error(err)
	}
	if _, err := w.call(b); err != nil {
		t.Error(err)
	}
	if n := w.asked("/token refresh_token"); n != 1 {
		t.Errorf("%d renewals", n)
	}
}

// basic/authorization, Step-Up Authorization Flow.
func TestStepUp(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	o.Login(t.Context(), browser(t))
	w.set(func() { w.need = "write" })
	_, err := w.call(o)
	if n := needLogin(t, err); strings.Join(n.Scopes, " ") != "write" || !strings.Contains(err.Error(), "further rights (write)") {
		t.Error(err)
	}
	// A person signs in with a process of its own, which has seen no refusal.
	login, err := New(o.conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := login.Login(t.Context(), browser(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := w.call(login); err != nil || !strings.Contains(got, "read") || !strings.Contains(got, "write") {
		t.Error(got, err)
	}
	if err := o.Login(t.Context(), browser(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := w.call(o); err != nil || !strings.Contains(got, "read") || !strings.Contains(got, "write") {
		t.Error(got, err)
	}
}

func TestChallengeThatIsNoScope(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	if retry, err := o.Challenge(t.Context(), 403, http.Header{}); retry || err != nil {
		t.Error(retry, err)
	}
}

func TestHostileAuthorizationPage(t *testing.T) {
	for _, page := range []string{"javascript:alert(1)", "file:///etc/passwd", "ms-msdt:/id", "http://evil.example/x"} {
		w := newWorld(t)
		o, _, _ := w.oauth(nil)
		w.as.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/.well-known/oauth-authorization-server":
				reply(rw, 200, map[string]any{"issuer": w.as.URL, "authorization_endpoint": page, "token_endpoint": w.as.URL + "/token",
					"registration_endpoint": w.as.URL + "/register", "code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"}})
			default:
				w.auth(rw, r)
			}
		})
		opened := false
		err := o.Login(t.Context(), Person{Show: func(string) { opened = true }, Open: func(string) error { opened = true; return nil }})
		if err == nil || opened {
			t.Errorf("%s: %v", page, err)
		}
	}
}

func TestClientCredentials(t *testing.T) {
	w := newWorld(t)
	w.clients["bot"] = "secret-bot"
	conf := Config{Server: "ci", URL: w.rs.URL + "/mcp", ClientID: "bot", ClientSecret: "secret-bot", Now: w.clock}
	c, err := ClientCredentials(conf)
	if err != nil {
		t.Fatal(err)
	}
	defer c.o.conf.Client.CloseIdleConnections()
	for range 3 {
		if got, err := w.call(c); err != nil || got != `{"scopes":["read"]}` {
			t.Error(got, err)
		}
	}
	if n := w.asked("/token client_credentials"); n != 1 {
		t.Errorf("%d token requests", n)
	}
	w.pass(time.Hour)
	w.expire()
	if _, err := w.call(c); err != nil {
		t.Error(err)
	}
	w.set(func() { w.need = "write" })
	if got, err := w.call(c); err != nil || !strings.Contains(got, "write") {
		t.Error(got, err)
	}
	conf.ClientSecret = "secret-wrong"
	bad, _ := ClientCredentials(conf)
	defer bad.o.conf.Client.CloseIdleConnections()
	before := w.asked("/token")
	for range 5 {
		_, err := w.call(bad)
		if !errors.Is(err, transport.ErrSignIn) || !strings.Contains(err.Error(), "refused the client credentials") {
			t.Error(err)
		}
	}
	if n := w.asked("/token") - before; n > 2 {
		t.Errorf("%d token requests with a wrong secret", n)
	}
	if _, err := ClientCredentials(Config{URL: "http://x", ClientID: "a"}); err == nil {
		t.Error("no secret is no error")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []Config{{URL: "unix:///x.sock", Store: &memStore{}}, {URL: "http://x"}, {URL: "x", Store: &memStore{}}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
