package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcptasks/mcp/transport"
)

// Config says how to sign in to one server.
type Config struct {
	Server string // its name, for sentences
	URL    string // its MCP endpoint, the resource that tokens are for
	// ClientID is a registered client's, or the https URL of a client-id
	// metadata document; "" registers one dynamically.
	ClientID     string
	ClientSecret string
	// PrivateKey is the file (PEM) of the key that a registered client signs
	// assertions with in place of a secret, and KeyID that key's name at the
	// authorization server, "" for none. A sign-in of a person uses neither.
	PrivateKey, KeyID string
	Scopes            []string // asked for instead of those that the server names; nil: the server's
	RedirectPort      int      // of the loopback redirect; 0 is any free one
	Store             Store
	Client            *http.Client // for discovery and tokens; nil is NewClient(transport.TLS{})
	Log               *slog.Logger
	Now               func() time.Time // nil is time.Now
}

// NewClient makes the client for discovery and token requests: half a minute
// for each, and redirects only of GETs, so that no secret is sent on.
func NewClient(t transport.TLS) (*http.Client, error) {
	c, err := transport.NewClient(t, "")
	if err != nil {
		return nil, err
	}
	c.Timeout = 30 * time.Second
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		from := via[len(via)-1].URL
		switch {
		case via[0].Method != http.MethodGet || len(via) > 5:
			return http.ErrUseLastResponse
		case from.Scheme == "https" && r.URL.Scheme != "https":
			return errors.New("a redirect from https to http is not followed")
		case loopback(r.URL.Hostname()) && !loopback(from.Hostname()):
			return errors.New("a redirect to this machine is not followed")
		}
		return nil
	}
	return c, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// storeAgain is how often, at most, the Store is asked for what another process
// may have put there.
const storeAgain = 2 * time.Second

// storeUnasked is how often it is asked while the server wants no token: where
// the server refuses a request, storeAgain holds.
const storeUnasked = time.Minute

// justNow is how recent a renewal must be for a refused request to be repeated
// without another one.
const justNow = 10 * time.Second

// OAuth signs with what a person's sign-in brought. It renews the token by
// itself, one renewal at a time; it never signs in by itself. It is safe for
// concurrent use and serves all connections to its server.
type OAuth struct {
	conf  Config
	turn  chan struct{} // held while the fields below are used, also over a renewal
	login sync.Mutex

	grant     *grant
	loaded    time.Time
	renewed   time.Time // the last renewal or sign-in
	tried     time.Time // the last renewal that failed for the moment
	triedErr  error
	status    int         // the last challenge, for the next Login
	challenge http.Header // its WWW-Authenticate
}

// New makes an OAuth; it does no I/O.
func New(conf Config) (*OAuth, error) {
	if _, socket, err := transport.ParseURL(conf.URL); err != nil {
		return nil, err
	} else if socket != "" {
		return nil, errors.New("there is no sign-in over a unix socket")
	}
	if conf.Store == nil {
		return nil, errors.New("a sign-in needs a place to keep tokens")
	}
	if conf.Client == nil {
		c, err := NewClient(transport.TLS{})
		if err != nil {
			return nil, err
		}
		conf.Client = c
	}
	if conf.Log == nil {
		conf.Log = slog.New(slog.DiscardHandler)
	}
	if conf.Now == nil {
		conf.Now = time.Now
	}
	return &OAuth{conf: conf, turn: make(chan struct{}, 1)}, nil
}

// key names the server in the Store: its URL without query, so that the same
// server under another name shares the sign-in.
func (o *OAuth) key() string {
	u, _, _ := transport.ParseURL(o.conf.URL)
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (o *OAuth) lock(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *OAuth) unlock() { <-o.turn }

// Header gives the bearer token, renewed when it is about to end; nothing when
// nobody has signed in, for the server may not ask for it.
func (o *OAuth) Header(ctx context.Context) (http.Header, error) {
	if err := o.lock(ctx); err != nil {
		return nil, err
	}
	defer o.unlock()
	if o.grant == nil && (o.loaded.IsZero() || o.conf.Now().Sub(o.loaded) >= storeUnasked) {
		o.load()
	}
	if o.grant == nil {
		return nil, nil
	}
	if !o.grant.fresh(o.conf.Now()) {
		if err := o.renew(ctx); err != nil {
			// The server decides; its 401 comes back to Challenge.
			o.conf.Log.Debug("renewing the token", "server", o.conf.Server, "err", err)
		}
	}
	if o.grant == nil {
		return nil, nil
	}
	return bearer(o.grant.Access), nil
}

// Identity says as whom requests are signed, "" when nobody has signed in.
func (o *OAuth) Identity(ctx context.Context) string {
	if o.lock(ctx) != nil {
		return ""
	}
	defer o.unlock()
	if o.grant == nil && (o.loaded.IsZero() || o.conf.Now().Sub(o.loaded) >= storeUnasked) {
		o.load()
	}
	if o.grant == nil {
		return ""
	}
	return o.grant.identity()
}

// Challenge renews the token after a 401 and says that the request is worth
// repeating; where that does not help it returns a NeedLogin.
func (o *OAuth) Challenge(ctx context.Context, status int, h http.Header) (bool, error) {
	if err := o.lock(ctx); err != nil {
		return false, err
	}
	defer o.unlock()
	if status == http.StatusForbidden {
		scopes, ok := insufficient(h)
		if !ok {
			return false, nil
		}
		// Step-up (basic/authorization, Step-Up Authorization Flow) takes a person.
		o.status, o.challenge = status, keepChallenge(h)
		if short := h.Values("WWW-Authenticate"); o.grant != nil && !slices.Equal(o.grant.Short, short) {
			o.grant.Short = short
			o.keep()
		}
		return false, &NeedLogin{Server: o.conf.Server, Scopes: scopes}
	}
	o.status, o.challenge = status, keepChallenge(h)
	now := o.conf.Now()
	if o.grant != nil && now.Sub(o.renewed) < justNow {
		return true, nil // the request may have gone out with the token before
	}
	before := ""
	if o.grant != nil {
		before = o.grant.Access
	}
	if o.load(); o.grant != nil && o.grant.Access != before {
		return true, nil // another process has signed in or renewed
	}
	if o.grant == nil || o.grant.Refresh == "" {
		return false, &NeedLogin{Server: o.conf.Server}
	}
	switch err := o.renew(ctx); {
	case err == nil:
		return true, nil
	case errors.Is(err, errGrantDead):
		return false, &NeedLogin{Server: o.conf.Server}
	default:
		return false, later{fmt.Errorf("the sign-in to %s cannot be renewed now: %w", o.conf.Server, err)}
	}
}

// later marks an error as transport.ErrTryLater without more words.
type later struct{ error }

func (e later) Unwrap() []error { return []error{e.error, transport.ErrTryLater} }

func keepChallenge(h http.Header) http.Header {
	return http.Header{"Www-Authenticate": h.Values("WWW-Authenticate")}
}

// insufficient finds the scopes that a 403 asks for (RFC 6750 section 3.1).
func insufficient(h http.Header) (scopes []string, ok bool) {
	cs, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return nil, false
	}
	for _, c := range cs {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			return append([]string{}, strings.Fields(c.Params["scope"])...), true
		}
	}
	return nil, false
}

// load takes what the Store has, unless it was asked a moment ago. It needs the
// turn.
func (o *OAuth) load() {
	now := o.conf.Now()
	if !o.loaded.IsZero() && now.Sub(o.loaded) < storeAgain {
		return
	}
	o.loaded = now
	s, err := o.conf.Store.Load(o.key())
	if err != nil {
		if !errors.Is(err, ErrNoSecret) {
			o.conf.Log.Warn("the kept token cannot be read", "server", o.conf.Server, "err", err)
		}
		return
	}
	var g grant
	if json.Unmarshal([]byte(s), &g) != nil || !usable(g.Access) {
		o.conf.Log.Warn("the kept token is damaged", "server", o.conf.Server)
		return
	}
	o.grant = &g
}

// keep puts the grant into the Store. It needs the turn.
func (o *OAuth) keep() {
	b, err := json.Marshal(o.grant)
	if err == nil {
		err = o.conf.Store.Save(o.key(), string(b))
	}
	if err != nil {
		o.conf.Log.Warn("the token cannot be kept; the sign-in lasts as long as this process", "server", o.conf.Server, "err", err)
	}
}

// renew renews the grant. It needs the turn, so that there is one at a time.
// The caller's end does not cut it off: a rotated refresh token would be lost.
func (o *OAuth) renew(ctx context.Context) error {
	if o.grant.Refresh == "" {
		return errors.New("there is no refresh token")
	}
	now := o.conf.Now()
	if o.triedErr != nil && now.Sub(o.tried) < justNow {
		return o.triedErr
	}
	// Another process may have renewed it, and a refresh token may work but once.
	before := *o.grant
	o.loaded = time.Time{}
	o.load()
	if o.grant.Access != before.Access && o.grant.fresh(now) {
		o.renewed = now
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	g, err := o.grant.renew(ctx, o.conf.Client, o.conf.Now)
	if err != nil {
		if errors.Is(err, errGrantDead) {
			o.grant.Refresh = ""
			if !o.grant.Expiry.IsZero() && now.After(o.grant.Expiry) {
				o.grant = nil
				_ = o.conf.Store.Delete(o.key())
			} else {
				o.keep()
			}
		} else {
			o.tried, o.triedErr = now, err
		}
		return err
	}
	g.Short = o.grant.Short
	o.grant, o.renewed, o.triedErr = g, now, nil
	o.keep()
	return nil
}

// SignedIn says whether a sign-in is kept.
func (o *OAuth) SignedIn(ctx context.Context) bool {
	if o.lock(ctx) != nil {
		return false
	}
	defer o.unlock()
	o.load()
	return o.grant != nil
}

// Logout forgets the sign-in, here and in the Store.
func (o *OAuth) Logout(ctx context.Context) error {
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.unlock()
	o.grant = nil
	if err := o.conf.Store.Delete(o.key()); err != nil {
		return fmt.Errorf("the sign-in to %s cannot be forgotten: %w", o.conf.Server, err)
	}
	return nil
}
