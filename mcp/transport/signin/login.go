package signin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// A Person is how Login speaks with who wants to sign in.
type Person struct {
	// Show is given the address of the sign-in page, always, before Open.
	Show func(url string)
	// Open opens that address in a browser; nil opens none. Its error is not
	// the end: the person can open what Show showed.
	Open func(url string) error
	// Paste returns what the person pasted: the address to which the browser
	// was sent at the end, or the code in it. It is for a browser on another
	// machine, whose redirect does not come back here. nil: no pasting.
	Paste func(ctx context.Context) (string, error)
}

// ErrLoginRunning: somebody is signing in to this server already.
var ErrLoginRunning = errors.New("a sign-in to this server is under way")

// Login signs a person in by the authorization code flow with PKCE
// (basic/authorization, Authorization Flow) and keeps what it brought. It takes
// as long as the person does; ctx ends it. A second one at the same time is
// ErrLoginRunning.
func (o *OAuth) Login(ctx context.Context, p Person) error {
	if !o.login.TryLock() {
		return ErrLoginRunning
	}
	defer o.login.Unlock()
	if err := o.lock(ctx); err != nil {
		return err
	}
	o.load()
	status, challenge, had := o.status, o.challenge, o.grant
	if challenge == nil && had != nil && len(had.Short) > 0 {
		status, challenge = http.StatusForbidden, http.Header{"Www-Authenticate": had.Short}
	}
	o.unlock()
	if challenge == nil {
		status, challenge = o.probe(ctx)
	}

	back, err := listen(o.conf.RedirectPort)
	if err != nil {
		return fmt.Errorf("the redirect of the sign-in cannot be received: %w", err)
	}
	defer back.close()

	var g *grant
	resource := ""
	fetch := func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		u, err := url.Parse(a.URL)
		if err != nil || u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
			return nil, errors.New("the authorization server's sign-in page is no https address; it is not opened")
		}
		resource = u.Query().Get("resource")
		return o.ask(ctx, p, back, a.URL, u.Query().Get("state"))
	}
	conf := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:              back.url,
		AuthorizationCodeFetcher: fetch,
		RequestRefreshToken:      true,
		AcceptUnadvertisedIss:    true,
		Client:                   o.conf.Client,
		ScopeFilter: func(found []string) []string {
			if o.conf.Scopes != nil && status != http.StatusForbidden {
				found = o.conf.Scopes
			}
			if status == http.StatusForbidden && had != nil {
				found = union(had.Scopes, found) // a step-up keeps what it had
			}
			return found
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			var err error
			g, err = granted(c, t, resource, o.conf.Now())
			return oauth2.StaticTokenSource(t), err
		},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "mcptasks", RedirectURIs: []string{back.url}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
			Scope: strings.Join(o.conf.Scopes, " "),
		}},
	}
	if u, err := url.Parse(o.conf.ClientID); err == nil && u.Scheme == "https" && u.Host != "" && strings.Trim(u.Path, "/") != "" {
		conf.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: o.conf.ClientID}
	} else if o.conf.ClientID != "" {
		conf.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.conf.ClientID}
		if o.conf.ClientSecret != "" {
			conf.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.conf.ClientSecret}
		}
	}
	h, err := auth.NewAuthorizationCodeHandler(conf)
	if err != nil {
		return fmt.Errorf("sign in to %s: %w", o.conf.Server, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.key(), nil)
	if err != nil {
		return fmt.Errorf("sign in to %s: %w", o.conf.Server, err)
	}
	res := &http.Response{StatusCode: status, Header: challenge, Body: io.NopCloser(strings.NewReader("")), Request: req}
	if err := h.Authorize(ctx, req, res); err != nil {
		return fmt.Errorf("sign in to %s: %w", o.conf.Server, err)
	}
	if g == nil {
		return fmt.Errorf("sign in to %s: the authorization server gave no token", o.conf.Server)
	}
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.unlock()
	now := o.conf.Now()
	o.grant, o.renewed, o.triedErr, o.loaded, o.challenge = g, now, nil, now, nil
	o.keep()
	return nil
}

// probe asks the server for its challenge; without one, discovery goes by the
// well-known places.
func (o *OAuth) probe(ctx context.Context) (int, http.Header) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.conf.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return http.StatusUnauthorized, http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := o.conf.Client.Do(req)
	if err != nil {
		return http.StatusUnauthorized, http.Header{}
	}
	res.Body.Close()
	return http.StatusUnauthorized, keepChallenge(res.Header)
}

func union(a, b []string) []string {
	out := append([]string{}, a...)
	for _, s := range b {
		found := false
		for _, x := range out {
			found = found || x == s
		}
		if !found {
			out = append(out, s)
		}
	}
	return out
}

// ask shows the page and waits for the redirect or for what is pasted.
func (o *OAuth) ask(ctx context.Context, p Person, back *redirect, page, state string) (*auth.AuthorizationResult, error) {
	back.expect(state)
	if p.Show != nil {
		p.Show(page)
	}
	if p.Open != nil {
		if err := p.Open(page); err != nil {
			o.conf.Log.Info("no browser could be opened", "err", err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type pasted struct {
		text string
		err  error
	}
	paste := make(chan pasted, 1)
	if p.Paste != nil {
		go func() {
			s, err := p.Paste(ctx)
			paste <- pasted{s, err}
		}()
	}
	select {
	case q := <-back.got:
		return authorized(q)
	case x := <-paste:
		if x.err != nil {
			return nil, x.err
		}
		q, err := parsePasted(x.text, state)
		if err != nil {
			return nil, err
		}
		return authorized(q)
	case <-ctx.Done():
		return nil, fmt.Errorf("nobody signed in: %w", ctx.Err())
	}
}

// parsePasted reads a whole address, its query, or the bare code. A bare code
// has no state to check; PKCE still binds it to this sign-in.
func parsePasted(s, state string) (url.Values, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, errors.New("nothing was pasted")
	}
	q := url.Values{"code": {s}, "state": {state}}
	if u, err := url.Parse(s); err == nil && u.Query().Has("code") || err == nil && u.Query().Has("error") {
		q = u.Query()
	} else if v, err := url.ParseQuery(strings.TrimPrefix(s, "?")); err == nil && (v.Has("code") || v.Has("error")) {
		q = v
	} else if strings.ContainsAny(s, " \t\r\n") || strings.Contains(s, "://") {
		return nil, errors.New("what was pasted is neither the address to which the browser was sent nor the code in it")
	}
	if q.Get("state") != state {
		return nil, errors.New("the address that was pasted belongs to another sign-in; start again")
	}
	return q, nil
}

func authorized(q url.Values) (*auth.AuthorizationResult, error) {
	if e := q.Get("error"); e != "" {
		if d := q.Get("error_description"); d != "" {
			e += ": " + d
		}
		return nil, fmt.Errorf("the authorization server refused: %.300s", e)
	}
	if q.Get("code") == "" {
		return nil, errors.New("the authorization server sent no code")
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// A redirect is the loopback address to which the browser is sent at the end
// (RFC 8252 section 7.3).
type redirect struct {
	url    string
	state  chan string // holds the one that is expected
	got    chan url.Values
	server *http.Server
}

func listen(port int) (*redirect, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	r := &redirect{url: fmt.Sprintf("http://%s/callback", l.Addr()), state: make(chan string, 1), got: make(chan url.Values, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", r.take)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *redirect) expect(state string) { r.state <- state }

// take accepts one redirect with the right state. Another site's attempt to end
// the sign-in has the wrong one and changes nothing.
func (r *redirect) take(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	var state string
	select {
	case state = <-r.state:
		r.state <- state
	default:
	}
	q := req.URL.Query()
	if state == "" || q.Get("state") != state {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "<p>This page belongs to no sign-in that mcptasks waits for.")
		return
	}
	word := "You are signed in."
	if q.Get("code") == "" {
		word = "The sign-in was refused."
	}
	fmt.Fprintf(w, "<title>mcptasks</title><p>%s You can close this page and go back to mcptasks.", word)
	select {
	case r.got <- q:
	default:
	}
}

func (r *redirect) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.server.Shutdown(ctx)
	_ = r.server.Close()
}

// OpenBrowser opens an http or https address with the system's browser, without
// a shell.
func OpenBrowser(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("only http and https addresses are opened")
	}
	var cmd *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		cmd = exec.Command("open", u.String())
	case "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", u.String())
	default:
		cmd = exec.Command("xdg-open", u.String())
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
