package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// ClientCredentials signs with tokens that a registered client gets for itself
// (RFC 6749 section 4.4; the oauth-client-credentials extension of MCP): no
// person takes part. The client is known by Config's ClientID with either a
// ClientSecret or a PrivateKey. The Store is not used.
func ClientCredentials(conf Config) (*Credentials, error) {
	if conf.ClientID == "" || conf.ClientSecret == "" && conf.PrivateKey == "" {
		return nil, errors.New("client credentials need a client_id and a client_secret or a private_key")
	}
	return newCredentials(conf)
}

// newCredentials looks whether the key, where one is configured, can be used, so
// that a fault in it is told before the server is asked.
func newCredentials(conf Config) (*Credentials, error) {
	if conf.PrivateKey != "" {
		if conf.ClientSecret != "" {
			return nil, errors.New("a client has a client_secret or a private_key, not both")
		}
		if _, err := loadKey(conf.PrivateKey); err != nil {
			return nil, err
		}
	}
	if conf.Store == nil {
		conf.Store = Files{} // never used
	}
	o, err := New(conf)
	if err != nil {
		return nil, err
	}
	return &Credentials{o: o}, nil
}

// Credentials is the Authorizer of ClientCredentials and Enterprise. It is safe
// for concurrent use; one token request is under way at a time.
type Credentials struct {
	o   *OAuth    // for its configuration, its turn and the fields of the grant
	idp *Provider // of Enterprise; nil: the client asks for itself
	who string    // whom the last ID token spoke for; used in o's turn
}

// Header gives the token; none before the first challenge, which tells where
// tokens come from.
func (c *Credentials) Header(ctx context.Context) (http.Header, error) {
	o := c.o
	if err := o.lock(ctx); err != nil {
		return nil, err
	}
	defer o.unlock()
	if o.grant == nil {
		return nil, nil
	}
	if !o.grant.fresh(o.conf.Now()) {
		if err := c.fetch(ctx, nil); err != nil {
			o.conf.Log.Debug("renewing the token", "server", o.conf.Server, "err", err)
		}
	}
	return bearer(o.grant.Access), nil
}

// Identity is the client that signs in for itself, or the person for whom the
// identity provider speaks; "" where that one cannot be told.
func (c *Credentials) Identity(ctx context.Context) string {
	if c.idp == nil {
		return "client " + c.o.conf.ClientID
	}
	if c.o.lock(ctx) != nil {
		return ""
	}
	defer c.o.unlock()
	if c.who == "" {
		if _, err := c.idToken(ctx); err != nil {
			c.o.conf.Log.Debug("learning who signs in", "server", c.o.conf.Server, "err", err)
		}
	}
	return c.who
}

// Challenge fetches a token and has the request repeated.
func (c *Credentials) Challenge(ctx context.Context, status int, h http.Header) (bool, error) {
	o := c.o
	if err := o.lock(ctx); err != nil {
		return false, err
	}
	defer o.unlock()
	var more []string
	if status == http.StatusForbidden {
		scopes, ok := insufficient(h)
		if !ok {
			return false, nil
		}
		more = scopes
	} else if o.grant != nil && o.conf.Now().Sub(o.renewed) < justNow {
		return true, nil
	}
	o.status, o.challenge = status, keepChallenge(h)
	if err := c.fetch(ctx, more); err != nil {
		return false, fmt.Errorf("no token for %s: %w", o.conf.Server, err)
	}
	return true, nil
}

// fetch needs the turn.
func (c *Credentials) fetch(ctx context.Context, more []string) error {
	o := c.o
	now := o.conf.Now()
	if o.triedErr != nil && now.Sub(o.tried) < justNow {
		return o.triedErr
	}
	g, err := c.request(ctx, more)
	if err != nil {
		o.tried, o.triedErr = now, err
		return err
	}
	o.grant, o.renewed, o.triedErr = g, now, nil
	return nil
}

func (c *Credentials) request(ctx context.Context, more []string) (*grant, error) {
	o := c.o
	where, err := discover(ctx, o.conf.Client, o.key(), o.challenge)
	if err != nil {
		return nil, err
	}
	scopes := o.conf.Scopes
	if scopes == nil {
		scopes = where.scopes
	}
	if o.grant != nil {
		scopes = union(o.grant.Scopes, scopes)
	}
	scopes = union(scopes, more)
	params := url.Values{"resource": {where.resource}}
	if c.idp != nil {
		jag, err := c.exchange(ctx, where, scopes)
		if err != nil {
			return nil, err
		}
		params.Set("grant_type", grantJWTBearer)
		params.Set("assertion", jag)
	}
	t, err := c.ask(ctx, where, scopes, params)
	if err != nil {
		return nil, err
	}
	return granted(&oauth2.Config{ClientID: o.conf.ClientID, Endpoint: oauth2.Endpoint{TokenURL: where.meta.TokenEndpoint}, Scopes: scopes}, t, where.resource, o.conf.Now())
}

// ask makes the token request at the server's authorization server, as the
// client that is registered there.
func (c *Credentials) ask(ctx context.Context, where place, scopes []string, params url.Values) (*oauth2.Token, error) {
	conf := c.o.conf
	id, refused := conf.ClientID, "the authorization server refused the client credentials"
	if c.idp != nil {
		refused = "the authorization server refused what the identity provider granted"
	}
	if conf.PrivateKey != "" {
		signed, err := assertion(conf, where.meta)
		if err != nil {
			return nil, err
		}
		params.Set("client_assertion_type", assertionType)
		params.Set("client_assertion", signed)
		id = "" // the assertion's subject says it (ext-auth, oauth-client-credentials, JWT Authentication Example)
	}
	t, err := tokenRequest(ctx, conf.Client, where.meta, id, conf.ClientSecret, scopes, params)
	if code := refusal(err); code != "" {
		return nil, fmt.Errorf("%s (%s)", refused, code)
	} else if err != nil {
		return nil, fmt.Errorf("the authorization server gives no token: %w", err)
	}
	return t, nil
}

// tokenRequest asks a token endpoint for a token of the client credentials, or
// of the grant_type in params.
func tokenRequest(ctx context.Context, c *http.Client, meta *oauthex.AuthServerMeta, id, secret string, scopes []string, params url.Values) (*oauth2.Token, error) {
	cc := &clientcredentials.Config{ClientID: id, ClientSecret: secret, TokenURL: meta.TokenEndpoint, Scopes: scopes, EndpointParams: params,
		AuthStyle: oauth2.AuthStyleInParams}
	if secret != "" {
		cc.AuthStyle = style(meta)
	}
	return cc.Token(context.WithValue(ctx, oauth2.HTTPClient, c))
}

// refusal is the status and the code of an answer that is no token, "" for any
// other error. The error's own text repeats the whole answer.
func refusal(err error) string {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%d %.100s", re.Response.StatusCode, re.ErrorCode))
}

// place is where tokens for a resource come from.
type place struct {
	resource string
	scopes   []string
	meta     *oauthex.AuthServerMeta
}

// style is how a client's secret is sent.
func style(meta *oauthex.AuthServerMeta) oauth2.AuthStyle {
	switch m := meta.TokenEndpointAuthMethodsSupported; {
	case slices.Contains(m, "client_secret_basic") || len(m) == 0:
		return oauth2.AuthStyleInHeader
	case slices.Contains(m, "client_secret_post"):
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleAutoDetect
}

// discover follows the protected resource's metadata (RFC 9728) to that of its
// authorization server (RFC 8414): by the challenge, then at the well-known
// places.
func discover(ctx context.Context, c *http.Client, resource string, challenge http.Header) (place, error) {
	u, err := url.Parse(resource)
	if err != nil {
		return place{}, err
	}
	root := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	type try struct{ at, resource string }
	var tries []try
	var asked []string
	cs, _ := oauthex.ParseWWWAuthenticate(challenge.Values("WWW-Authenticate"))
	for _, ch := range cs {
		if m := ch.Params["resource_metadata"]; m != "" {
			tries = append(tries, try{m, resource})
		}
		if ch.Scheme == "bearer" {
			asked = append(asked, strings.Fields(ch.Params["scope"])...)
		}
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	tries = append(tries, try{root + wellKnown + "/" + strings.TrimLeft(u.Path, "/"), resource}, try{root + wellKnown, root})
	p := place{resource: resource, scopes: asked}
	server := root // 2025-03-26: the server itself
	for _, t := range tries {
		prm, err := oauthex.GetProtectedResourceMetadata(ctx, t.at, t.resource, c)
		if err != nil || prm == nil {
			continue
		}
		if len(prm.AuthorizationServers) == 0 {
			return place{}, errors.New("the server names no authorization server")
		}
		server, p.resource = prm.AuthorizationServers[0], prm.Resource
		if p.scopes == nil {
			p.scopes = prm.ScopesSupported
		}
		break
	}
	p.meta, err = auth.GetAuthServerMetadata(ctx, server, c)
	if err != nil {
		return place{}, fmt.Errorf("the authorization server's metadata cannot be read: %w", err)
	}
	if p.meta == nil {
		p.meta = &oauthex.AuthServerMeta{Issuer: server, TokenEndpoint: server + "/token"}
	}
	return p, nil
}
