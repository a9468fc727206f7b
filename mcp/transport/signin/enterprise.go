package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcptasks/mcp/transport"
)

const grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// A Provider is an organisation's identity provider, which says who a person is
// and which servers that person may use.
type Provider struct {
	Issuer       string // its URL, below which its OpenID configuration lies
	ClientID     string // as which the ID token was given, and is exchanged
	ClientSecret string // "" where the provider wants none
	// One of these gives the ID token, anew for each exchange: a variable of the
	// environment, or the first line that a program prints, run without a shell.
	IDTokenEnv     string
	IDTokenCommand []string
}

// Enterprise signs with tokens that an organisation's identity provider lets
// the person have (the enterprise-managed-authorization extension of MCP): the
// ID token of the single sign-on is exchanged there for a grant (section 4),
// and that at the server's authorization server for a token (section 5), where
// Config's ClientID is registered, with a ClientSecret, a PrivateKey or neither.
// Nobody is asked; the Store is not used.
func Enterprise(conf Config, idp Provider) (*Credentials, error) {
	switch u, err := url.Parse(idp.Issuer); {
	case conf.ClientID == "":
		return nil, errors.New("an identity provider's grant needs the client_id at the server's authorization server")
	case idp.ClientID == "":
		return nil, errors.New("the identity provider needs idp.client_id")
	case err != nil || !safe(u):
		return nil, errors.New("idp.issuer is the https address of the identity provider")
	case (idp.IDTokenEnv == "") == (len(idp.IDTokenCommand) == 0):
		return nil, errors.New("the identity provider needs either idp.id_token_env or idp.id_token_command")
	}
	c, err := newCredentials(conf)
	if err != nil {
		return nil, err
	}
	c.idp = &idp
	return c, nil
}

// safe reports whether secrets may be sent to an address.
func safe(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()))
}

// idToken gets the ID token, and with it who signs in. It needs the turn.
func (c *Credentials) idToken(ctx context.Context) (string, error) {
	var token, from string
	if c.idp.IDTokenEnv != "" {
		token, from = strings.TrimSpace(os.Getenv(c.idp.IDTokenEnv)), "the variable "+c.idp.IDTokenEnv
		if !usable(token) {
			return "", fmt.Errorf("%s, which is to hold the ID token, is empty or holds no token", from)
		}
	} else {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		var err error
		if token, err = output(ctx, c.idp.IDTokenCommand); err != nil {
			return "", fmt.Errorf("the id_token_command failed: %w; run it by hand to see why", err)
		}
	}
	if c.who = transport.TokenIdentity(token); strings.HasPrefix(c.who, "token ") {
		c.who = fmt.Sprintf("client %s at %s", c.idp.ClientID, c.idp.Issuer)
	}
	return token, nil
}

// exchange has the identity provider make the ID token into a grant for the
// server (RFC 8693), by the issuer of its authorization server and its resource
// identifier (section 4). It needs the turn.
func (c *Credentials) exchange(ctx context.Context, where place, scopes []string) (string, error) {
	conf := c.o.conf
	token, err := c.idToken(ctx)
	if err != nil {
		return "", err
	}
	meta, err := openID(ctx, conf.Client, c.idp.Issuer)
	if err != nil {
		return "", fmt.Errorf("the identity provider %s: %w", c.idp.Issuer, err)
	}
	t, err := tokenRequest(ctx, conf.Client, meta, c.idp.ClientID, c.idp.ClientSecret, scopes, url.Values{
		"grant_type": {oauthex.GrantTypeTokenExchange}, "requested_token_type": {oauthex.TokenTypeIDJAG},
		"audience": {where.meta.Issuer}, "resource": {where.resource},
		"subject_token": {token}, "subject_token_type": {oauthex.TokenTypeIDToken},
	})
	if code := refusal(err); code != "" {
		return "", fmt.Errorf("the identity provider %s does not grant %s to %s (%s)", c.idp.Issuer, conf.Server, c.who, code)
	} else if err != nil {
		return "", fmt.Errorf("the identity provider %s gives no grant: %w", c.idp.Issuer, err)
	}
	if kind, _ := t.Extra("issued_token_type").(string); kind != oauthex.TokenTypeIDJAG || !usable(t.AccessToken) {
		return "", fmt.Errorf("the identity provider %s gave something else than the grant it was asked for", c.idp.Issuer)
	}
	return t.AccessToken, nil
}

// openID reads a provider's configuration (OpenID Connect Discovery 1.0 section
// 4). The SDK's reader wants PKCE of each, which an exchange has no use for.
func openID(ctx context.Context, c *http.Client, issuer string) (*oauthex.AuthServerMeta, error) {
	issuer = strings.TrimRight(issuer, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, issuer+"/.well-known/openid-configuration", nil)
	if err != nil {
		return nil, errors.New("its address cannot be used")
	}
	req.Header.Set("Accept", "application/json")
	res, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("its configuration cannot be read: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its configuration cannot be read: it answered %d", res.StatusCode)
	}
	var meta oauthex.AuthServerMeta
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&meta); err != nil {
		return nil, errors.New("its configuration is no JSON")
	}
	if strings.TrimRight(meta.Issuer, "/") != issuer { // section 4.3
		return nil, fmt.Errorf("its configuration is that of another, %.200q", meta.Issuer)
	}
	if u, err := url.Parse(meta.TokenEndpoint); err != nil || !safe(u) {
		return nil, errors.New("its token endpoint is no https address")
	}
	return &meta, nil
}
