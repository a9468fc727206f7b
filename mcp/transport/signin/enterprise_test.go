package signin

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// idp is an organisation's identity provider beside a world.
type idp struct {
	*httptest.Server
	w *world

	mu     sync.Mutex
	users  map[string]bool // ID tokens that are good
	issuer string
	kind   string // of the token that it issues
	token  string // its token endpoint
	n      int
}

func newIDP(w *world) *idp {
	p := &idp{w: w, users: map[string]bool{}, kind: "urn:ietf:params:oauth:token-type:id-jag"}
	p.Server = httptest.NewServer(p)
	p.issuer, p.token = p.URL, p.URL+"/token"
	w.t.Cleanup(p.Close)
	return p
}

// ServeHTTP is its OpenID configuration, which names no PKCE, and the exchange
// (ext-auth, enterprise-managed-authorization section 4).
func (p *idp) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.ParseForm()
	refuse := func(code string) {
		reply(rw, 400, map[string]string{"error": code, "error_description": "secret-description"})
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		reply(rw, 200, map[string]any{"issuer": p.issuer, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.token})
	case "/token":
		id, secret, basic := r.BasicAuth()
		if !basic {
			id, secret = r.Form.Get("client_id"), r.Form.Get("client_secret")
		}
		switch {
		case id != "sso" || secret != "" && secret != "secret-sso":
			refuse("invalid_client")
		case r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange",
			r.Form.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:id_token",
			r.Form.Get("requested_token_type") != "urn:ietf:params:oauth:token-type:id-jag":
			refuse("invalid_request")
		case !p.users[r.Form.Get("subject_token")]:
			refuse("invalid_grant")
		default:
			p.n++
			jag := fmt.Sprint("secret-jag-", p.n)
			p.w.set(func() { p.w.jags[jag] = r.Form })
			reply(rw, 200, map[string]any{"issued_token_type": p.kind, "access_token": jag, "token_type": "N_A", "expires_in": 300})
		}
	default:
		rw.WriteHeader(404)
	}
}

// idTokenOf is an ID token's shape, and a good one at the provider.
func (p *idp) idTokenOf(who string) string {
	token := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":%q,"sub":%q}`, p.URL, who)) + ".secret-signature"
	p.mu.Lock()
	p.users[token] = true
	p.mu.Unlock()
	return token
}

func TestEnterprise(t *testing.T) {
	const variable = "MCPTASKS_TEST_ID_TOKEN"
	for _, tt := range []struct {
		name  string
		tweak func(*world, *idp, *Config, *Provider)
		fault string
	}{
		{"confidential at both", func(_ *world, _ *idp, _ *Config, p *Provider) { p.ClientSecret = "secret-sso" }, ""},
		{"public at both", func(w *world, _ *idp, c *Config, _ *Provider) { w.clients["mcp-client"], c.ClientSecret = "", "" }, ""},
		{"a slash behind the provider's address", func(_ *world, _ *idp, _ *Config, p *Provider) { p.Issuer += "/" }, ""},
		{"no ID token", func(_ *world, _ *idp, _ *Config, p *Provider) { p.IDTokenEnv += "_NONE" }, "the variable " + variable + "_NONE, which is to hold the ID token, is empty"},
		{"the provider refuses", func(_ *world, p *idp, _ *Config, _ *Provider) { clear(p.users) }, "does not grant ci to ann at 127.0.0.1:"},
		{"the provider does not know us", func(_ *world, _ *idp, _ *Config, p *Provider) { p.ClientSecret = "secret-wrong" }, "(400 invalid_client)"},
		{"the provider gives another token", func(_ *world, p *idp, _ *Config, _ *Provider) { p.kind = "urn:ietf:params:oauth:token-type:jwt" }, "something else than the grant"},
		{"another's configuration", func(_ *world, p *idp, _ *Config, _ *Provider) { p.issuer = "https://other.example" }, `that of another, "https://other.example"`},
		{"an endpoint in the clear", func(_ *world, p *idp, _ *Config, _ *Provider) { p.token = "http://idp.example/token" }, "no https address"},
		{"no configuration", func(_ *world, _ *idp, _ *Config, p *Provider) { p.Issuer += "/tenant" }, "it answered 404"},
		{"the server's authorization server refuses us", func(_ *world, _ *idp, c *Config, _ *Provider) { c.ClientSecret = "secret-wrong" },
			"the authorization server refused what the identity provider granted (400 invalid_client)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			p := newIDP(w)
			w.clients["mcp-client"] = "secret-mcp"
			t.Setenv(variable, p.idTokenOf("ann"))
			l := &logs{}
			conf := Config{Server: "ci", URL: w.rs.URL + "/mcp", ClientID: "mcp-client", ClientSecret: "secret-mcp", Now: w.clock,
				Log: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))}
			provider := Provider{Issuer: p.URL, ClientID: "sso", IDTokenEnv: variable}
			tt.tweak(w, p, &conf, &provider)
			c, err := Enterprise(conf, provider)
			if err != nil {
				t.Fatal(err)
			}
			defer c.o.conf.Client.CloseIdleConnections()
			got, err := w.call(c)
			if tt.fault != "" {
				before := w.asked("/token")
				_, again := w.call(c)
				if err == nil || !strings.Contains(err.Error(), tt.fault) || strings.Contains(err.Error(), "secret-") || again == nil {
					t.Errorf("%q, %v, then %v", got, err, again)
				}
				if n := w.asked("/token") - before; n > 0 {
					t.Errorf("asked %d times again at once", n)
				}
			} else if err != nil || got != `{"scopes":["read"]}` {
				t.Error(got, err)
			} else if who := c.Identity(t.Context()); !strings.HasPrefix(who, "ann at 127.0.0.1:") {
				t.Errorf("signed in as %q", who)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if strings.Contains(l.String(), "secret-") {
				t.Errorf("secrets in the log: %s", l.String())
			}
		})
	}
}

// The ID token is asked for anew when the server's token has ended, with the
// rights that the server wanted since; and another person's is told.
func TestEnterpriseRenewal(t *testing.T) {
	w := newWorld(t)
	p := newIDP(w)
	w.clients["mcp-client"] = "secret-mcp"
	t.Setenv("MCPTASKS_TEST_ID_TOKEN", p.idTokenOf("ann"))
	c, err := Enterprise(Config{Server: "ci", URL: w.rs.URL + "/mcp", ClientID: "mcp-client", ClientSecret: "secret-mcp", Now: w.clock},
		Provider{Issuer: p.URL, ClientID: "sso", IDTokenEnv: "MCPTASKS_TEST_ID_TOKEN"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.o.conf.Client.CloseIdleConnections()
	if who := c.Identity(t.Context()); !strings.HasPrefix(who, "ann at ") || p.n != 0 {
		t.Errorf("before the first request signed in as %q", who)
	}
	for range 3 {
		if _, err := w.call(c); err != nil {
			t.Error(err)
		}
	}
	if p.n != 1 {
		t.Errorf("%d exchanges for one token", p.n)
	}
	w.set(func() { w.need = "write" })
	if got, err := w.call(c); err != nil || got != `{"scopes":["read","write"]}` {
		t.Error(got, err)
	}
	t.Setenv("MCPTASKS_TEST_ID_TOKEN", p.idTokenOf("bob"))
	w.pass(2 * time.Hour)
	w.expire()
	if got, err := w.call(c); err != nil || got != `{"scopes":["read","write"]}` || p.n != 3 {
		t.Error(got, err, p.n)
	}
	if who := c.Identity(t.Context()); !strings.HasPrefix(who, "bob at ") {
		t.Errorf("signed in as %q", who)
	}
}

func TestEnterpriseByCommand(t *testing.T) {
	w := newWorld(t)
	p := newIDP(w)
	w.clients["mcp-client"] = ""
	program, _ := command(t, "")
	p.users["secret-1"] = true // what it prints
	conf := Config{Server: "ci", URL: w.rs.URL + "/mcp", ClientID: "mcp-client", Now: w.clock}
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{program.argv, ""},
		{[]string{"mcptasks-no-such-program"}, "the id_token_command failed"},
	} {
		c, err := Enterprise(conf, Provider{Issuer: p.URL, ClientID: "sso", IDTokenCommand: tt.argv})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.call(c)
		c.o.conf.Client.CloseIdleConnections()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v", tt.argv, err)
		}
	}
}

func TestEnterpriseRefuses(t *testing.T) {
	good := Provider{Issuer: "https://idp.example", ClientID: "sso", IDTokenEnv: "T"}
	for want, tt := range map[string]func(*Config, *Provider){
		"needs the client_id":          func(c *Config, _ *Provider) { c.ClientID = "" },
		"needs idp.client_id":          func(_ *Config, p *Provider) { p.ClientID = "" },
		"idp.issuer is the https":      func(_ *Config, p *Provider) { p.Issuer = "http://idp.example" },
		"either idp.id_token_env":      func(_ *Config, p *Provider) { p.IDTokenEnv = "" },
		"or idp.id_token_command":      func(_ *Config, p *Provider) { p.IDTokenCommand = []string{"x"} },
		"the private key cannot be":    func(c *Config, _ *Provider) { c.PrivateKey = "/no/such/key.pem" },
		"there is no sign-in over a u": func(c *Config, _ *Provider) { c.URL = "unix:///x.sock" },
	} {
		conf, p := Config{URL: "https://x.example/mcp", ClientID: "a"}, good
		tt(&conf, &p)
		if _, err := Enterprise(conf, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := Enterprise(Config{URL: "https://x.example/mcp", ClientID: "a"}, good); err != nil {
		t.Error(err)
	}
}

// A server of 2025-03-26 is its own authorization server, whose metadata lie at
// its root (2025-03-26 basic/authorization, Authorization Base URL). Metadata of
// another issuer MUST NOT be used (2026-07-28 authorization server discovery,
// Authorization Server Metadata Discovery; RFC 8414 section 3.3).
func TestMetadataAtTheServersRoot(t *testing.T) {
	for _, tt := range []struct {
		issuer func(w *world) string
		fault  string
	}{
		{func(w *world) string { return "" }, ""},
		{func(w *world) string { return w.rs.URL + "/oauth" }, "does not match"},
		{func(w *world) string { return "https://honest.example" }, "does not match"},
	} {
		w := newWorld(t)
		w.root, w.iss, w.issuer = true, w.rs.URL, tt.issuer(w)
		w.clients["bot"] = "secret-bot"
		o, _, _ := w.oauth(nil)
		err := o.Login(t.Context(), browser(t))
		c, newErr := ClientCredentials(Config{Server: "ci", URL: w.rs.URL + "/mcp", ClientID: "bot", ClientSecret: "secret-bot", Now: w.clock})
		if newErr != nil {
			t.Fatal(newErr)
		}
		_, machine := w.call(c)
		c.o.conf.Client.CloseIdleConnections()
		for who, err := range map[string]error{"a person": err, "a client": machine} {
			if tt.fault == "" && err != nil || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
				t.Errorf("%s at %q: %v", who, w.issuer, err)
			}
		}
		if n := w.asked("/register") + w.asked("/token"); tt.fault != "" && n > 0 {
			t.Errorf("%d requests to endpoints that an untrue metadata names", n)
		}
	}
}
