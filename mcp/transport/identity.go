package transport

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

// An Identifier is an Authorizer that can say as whom it signs. The answer is
// the same for as long as it is the same sign-in, also over renewals of its
// token; it holds no secret. "" is not known.
type Identifier interface {
	Identity(ctx context.Context) string
}

// Identity says as whom this server is asked: what the Authorizer says, else
// what can be told of the credentials that are sent. "" is nobody. It holds no
// secret, and serves to tell one sign-in from another.
func (h *HTTP) Identity(ctx context.Context) string {
	sent := h.Header.Get("Authorization")
	if h.Auth != nil {
		if i, ok := h.Auth.(Identifier); ok {
			return i.Identity(ctx)
		}
		if own, err := h.Auth.Header(ctx); err == nil && own.Get("Authorization") != "" {
			sent = own.Get("Authorization")
		}
	}
	if sent == "" {
		return ""
	}
	_, token, ok := strings.Cut(sent, " ")
	if !ok {
		token = sent
	}
	return TokenIdentity(strings.TrimSpace(token))
}

// TokenIdentity is whom a token speaks for: the subject of a JWT (which is read
// and not checked; that is the server's to do) with its issuer's host, else a
// mark by which the token can be told from others.
func TokenIdentity(token string) string {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		var c struct {
			Issuer  string `json:"iss"`
			Subject string `json:"sub"`
		}
		b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
		if err == nil && json.Unmarshal(b, &c) == nil && c.Subject != "" {
			if u, err := url.Parse(c.Issuer); err == nil && u.Host != "" {
				return c.Subject + " at " + u.Host
			}
			return c.Subject
		}
	}
	sum := sha256.Sum256([]byte("mcptasks identity\n" + token))
	return "token " + hex.EncodeToString(sum[:4])
}
