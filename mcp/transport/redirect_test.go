package transport

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"mcptasks/mcp/jsonrpc"
)

// signs is an Authorizer with a token.
type signs string

func (s signs) Header(context.Context) (http.Header, error) {
	return http.Header{"Authorization": {"Bearer " + string(s)}}, nil
}
func (signs) Challenge(context.Context, int, http.Header) (bool, error) { return false, nil }

// A redirect carries no credentials to another origin: no token of a sign-in, no
// header of the configuration, no cookie that the server has set, nothing of the
// address, and nothing of the message. It is not followed at all, whatever its
// status, so that what the other origin would get is nothing.
func TestRedirectsCarryNothingElsewhere(t *testing.T) {
	const token, key, crumb, inURL = "tok-H3xk", "key-P8vd", "crumb-R5wz", "qry-T2mj"
	for name, tc := range map[string]struct{ from, to bool }{ // with TLS
		"http to http elsewhere":   {},
		"http to https elsewhere":  {to: true},
		"https to http":            {from: true},
		"https to https elsewhere": {from: true, to: true},
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(name+"/"+http.StatusText(status), func(t *testing.T) {
				var mu sync.Mutex
				var strayed []string
				start := func(tls bool, h http.HandlerFunc) *httptest.Server {
					s := httptest.NewUnstartedServer(h)
					if tls {
						s.StartTLS()
					} else {
						s.Start()
					}
					t.Cleanup(s.Close)
					return s
				}
				other := start(tc.to, func(_ http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					strayed = append(strayed, r.Method+" "+r.URL.String())
				})
				seen := map[string]bool{}
				own := start(tc.from, func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					c, _ := r.Cookie("lb")
					for what, ok := range map[string]bool{
						"token": r.Header.Get("Authorization") == "Bearer "+token, "header": r.Header.Get("X-Api-Key") == key,
						"cookie": c != nil && c.Value == crumb, "address": strings.Contains(r.URL.RawQuery, inURL),
					} {
						seen[what] = seen[what] || ok
					}
					http.SetCookie(w, &http.Cookie{Name: "lb", Value: crumb, Path: "/"})
					http.Redirect(w, r, other.URL+"/elsewhere", status)
				})
				c := HTTP{URL: own.URL + "/mcp?key=" + inURL, TLS: TLS{Insecure: true}, Auth: signs(token),
					Header: http.Header{"X-Api-Key": {key}, "Cookie": {"own=" + key}}}
				var said []string
				for _, era := range []string{"modern", "legacy"} {
					conn, err := c.Dial(t.Context(), era)
					if err != nil {
						t.Fatal(err)
					}
					p := jsonrpc.NewPeer(conn, newPeerHandler(), jsonrpc.PeerOptions{})
					if err := p.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
					for range 2 { // the second has the cookie
						_, err := p.Call(ctxFor(t), jsonrpc.Call{Method: "initialize"})
						if err == nil {
							t.Error("a redirect is taken for an answer")
						} else {
							said = append(said, err.Error())
						}
					}
					if err := p.Close(ctxFor(t)); err != nil {
						t.Error(err)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if len(strayed) > 0 {
					t.Errorf("the other origin got %v", strayed)
				}
				for _, what := range []string{"token", "header", "cookie", "address"} {
					if !seen[what] {
						t.Errorf("the %s did not even reach the server: nothing is tested", what)
					}
				}
				for _, s := range said {
					for _, secret := range []string{token, key, crumb, inURL} {
						if strings.Contains(s, secret) {
							t.Errorf("the error shows %s: %s", secret, s)
						}
					}
				}
			})
		}
	}
}
