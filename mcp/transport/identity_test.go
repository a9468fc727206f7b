package transport

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

type signedAs string

func (signedAs) Header(context.Context) (http.Header, error)               { return nil, nil }
func (signedAs) Challenge(context.Context, int, http.Header) (bool, error) { return false, nil }
func (s signedAs) Identity(context.Context) string                         { return string(s) }

type bearerOf string

func (b bearerOf) Header(context.Context) (http.Header, error) {
	return http.Header{"Authorization": {"Bearer " + string(b)}}, nil
}
func (bearerOf) Challenge(context.Context, int, http.Header) (bool, error) { return false, nil }

// As whom a server is asked can be told without telling the secret.
func TestIdentity(t *testing.T) {
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for _, c := range []struct {
		name string
		h    HTTP
		want string
	}{
		{"nobody", HTTP{}, ""},
		{"the sign-in says it", HTTP{Auth: signedAs("ada")}, "ada"},
		{"a JWT", HTTP{Auth: bearerOf(jwt(`{"iss":"https://id.example/x","sub":"ada"}`))}, "ada at id.example"},
		{"a JWT in a header", HTTP{Header: http.Header{"Authorization": {"Bearer " + jwt(`{"sub":"ada"}`)}}}, "ada"},
	} {
		if got := c.h.Identity(t.Context()); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	a, b := HTTP{Auth: bearerOf("hunter2-a")}, HTTP{Header: http.Header{"Authorization": {"Bearer hunter2-b"}}}
	ia, ib := a.Identity(t.Context()), b.Identity(t.Context())
	if ia == ib || ia != a.Identity(t.Context()) || strings.Contains(ia+ib, "hunter2") {
		t.Errorf("%q, %q", ia, ib)
	}
	if got := TokenIdentity("a.b.c"); !strings.HasPrefix(got, "token ") {
		t.Errorf("%q", got)
	}
}
