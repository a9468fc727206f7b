package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"mcptasks/mcp/transport"
)

// A grant is what a sign-in brought, as it is kept in the Store.
type grant struct {
	TokenURL string    `json:"token_url"`
	Resource string    `json:"resource"`
	ClientID string    `json:"client_id"`
	Secret   string    `json:"client_secret,omitempty"`
	InHeader bool      `json:"in_header,omitempty"` // client_secret_basic
	Scopes   []string  `json:"scopes,omitempty"`
	Access   string    `json:"access_token"`
	Refresh  string    `json:"refresh_token,omitempty"`
	Expiry   time.Time `json:"expiry,omitzero"`
	Login    string    `json:"login,omitempty"` // names the sign-in, over all renewals
	// Short is the challenge of the last refusal for want of scopes, so that a
	// later process, which a person signs in with, asks for them.
	Short []string `json:"short,omitempty"`
}

// identity says as whom the grant signs.
func (g *grant) identity() string {
	who := transport.TokenIdentity(g.Access)
	if strings.HasPrefix(who, "token ") && g.Login != "" {
		return "sign-in " + g.Login
	}
	return who
}

func (g *grant) fresh(now time.Time) bool {
	return g.Access != "" && (g.Expiry.IsZero() || now.Add(expirySlack).Before(g.Expiry))
}

// expirySlack is how long before its end a token is renewed.
const expirySlack = 30 * time.Second

// errGrantDead: the authorization server will not renew this grant any more.
var errGrantDead = errors.New("the sign-in has ended")

// renew uses the refresh token (OAuth 2.1 section 4.3) with the resource
// parameter that MCP asks for on each token request. The SDK's token source
// does not send it, and forgets a rotated refresh token with the process.
func (g *grant) renew(ctx context.Context, c *http.Client, now func() time.Time) (*grant, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}}
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	if !g.InHeader {
		form.Set("client_id", g.ClientID)
		if g.Secret != "" {
			form.Set("client_secret", g.Secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the token endpoint's URL cannot be used")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if g.InHeader {
		req.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.Secret))
	}
	res, err := c.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fmt.Errorf("the authorization server cannot be reached: %w", err)
	}
	defer res.Body.Close()
	var body struct {
		Access  string          `json:"access_token"`
		Refresh string          `json:"refresh_token"`
		Type    string          `json:"token_type"`
		Expires json.RawMessage `json:"expires_in"`
		Scope   string          `json:"scope"`
		Error   string          `json:"error"`
	}
	err = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&body)
	switch {
	case body.Error == "invalid_grant" || body.Error == "invalid_client" || body.Error == "unauthorized_client":
		return nil, fmt.Errorf("%w (%s)", errGrantDead, body.Error)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the authorization server answered %d to the renewal of the token", res.StatusCode)
	case err != nil || !usable(body.Access) || !strings.EqualFold(body.Type, "bearer"):
		return nil, errors.New("the authorization server's answer to the renewal holds no bearer token")
	}
	n := *g
	n.Access, n.Expiry = body.Access, time.Time{}
	if body.Refresh != "" {
		n.Refresh = body.Refresh
	}
	if body.Scope != "" {
		n.Scopes = strings.Fields(body.Scope)
	}
	var seconds float64
	if json.Unmarshal([]byte(strings.Trim(string(body.Expires), `"`)), &seconds) == nil && seconds > 0 && seconds < 1e9 {
		n.Expiry = now().Add(time.Duration(seconds * float64(time.Second)))
	}
	return &n, nil
}

// granted makes a grant of what the SDK's code exchange brought.
func granted(cfg *oauth2.Config, t *oauth2.Token, resource string, now time.Time) (*grant, error) {
	if !usable(t.AccessToken) || !strings.EqualFold(t.Type(), "bearer") {
		return nil, errors.New("the authorization server gave no bearer token")
	}
	g := &grant{
		TokenURL: cfg.Endpoint.TokenURL, Resource: resource, ClientID: cfg.ClientID, Secret: cfg.ClientSecret,
		InHeader: cfg.Endpoint.AuthStyle == oauth2.AuthStyleInHeader && cfg.ClientSecret != "",
		Scopes:   cfg.Scopes, Access: t.AccessToken, Refresh: t.RefreshToken, Expiry: t.Expiry,
		Login: uuid.NewString()[:8],
	}
	if t.ExpiresIn > 0 {
		g.Expiry = now.Add(time.Duration(min(t.ExpiresIn, 1e9)) * time.Second)
	}
	if s, ok := t.Extra("scope").(string); ok && s != "" {
		g.Scopes = strings.Fields(s)
	}
	return g, nil
}
