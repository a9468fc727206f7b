package signin

import (
	"cmp"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// world is one MCP server and its authorization server, on loopback.
type world struct {
	t   *testing.T
	rs  *httptest.Server // the MCP server
	as  *httptest.Server
	now time.Time

	mu       sync.Mutex
	log      []string            // what the authorization server was asked
	tokens   map[string][]string // valid access tokens and their scopes
	refresh  map[string][]string // valid refresh tokens
	codes    map[string]url.Values
	clients  map[string]string // id → secret, "" is public
	n        int
	lifetime int // expires_in; 0: none
	down     bool
	iss      string // what the redirect says; "" is nothing
	cimd     bool
	noDCR    bool
	need     string // a scope that calls need
	resource string // what the metadata claims
	rotate   bool
	methods  []string                    // how clients may authenticate
	algs     []string                    // and with which signatures
	keys     map[string]crypto.PublicKey // of clients that sign assertions
	headers  []map[string]any            // of the assertions that were taken
	jags     map[string]url.Values       // the identity provider's grants: what each is for
	issuer   string                      // what the metadata claims; "" is the truth
	root     bool                        // the server is its own authorization server, as in 2025-03-26
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC), tokens: map[string][]string{}, refresh: map[string][]string{},
		codes: map[string]url.Values{}, clients: map[string]string{}, lifetime: 3600, rotate: true,
		methods: []string{"none", "client_secret_basic"}, keys: map[string]crypto.PublicKey{}, jags: map[string]url.Values{}}
	w.rs = httptest.NewServer(http.HandlerFunc(w.mcp))
	w.as = httptest.NewServer(http.HandlerFunc(w.auth))
	w.resource = w.rs.URL + "/mcp"
	w.iss = w.as.URL
	t.Cleanup(func() { w.rs.Close(); w.as.Close() })
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) asked(what string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.log {
		if strings.HasPrefix(l, what) {
			n++
		}
	}
	return n
}

// mcp is the protected resource.
func (w *world) mcp(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	meta := w.rs.URL + "/.well-known/oauth-protected-resource/mcp"
	if w.root && r.URL.Path != "/mcp" {
		w.mu.Unlock()
		w.auth(rw, r)
		w.mu.Lock()
		return
	}
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		reply(rw, 200, map[string]any{"resource": w.resource, "authorization_servers": []string{w.as.URL}, "scopes_supported": []string{"read"}, "bearer_methods_supported": []string{"header"}})
		return
	case "/mcp":
	default:
		rw.WriteHeader(404)
		return
	}
	scopes, ok := w.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !ok {
		if !w.root {
			rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata=%q`, meta))
		}
		rw.WriteHeader(401)
		return
	}
	if w.need != "" && !slices.Contains(scopes, w.need) {
		rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q, resource_metadata=%q`, w.need, meta))
		rw.WriteHeader(403)
		return
	}
	var m struct{ ID json.RawMessage }
	json.NewDecoder(r.Body).Decode(&m)
	reply(rw, 200, map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{"scopes": scopes}})
}

func reply(rw http.ResponseWriter, status int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	json.NewEncoder(rw).Encode(v)
}

// auth is the authorization server; authorize stands for the person's consent.
func (w *world) auth(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.ParseForm()
	w.log = append(w.log, strings.TrimSpace(r.URL.Path+" "+r.Form.Get("grant_type")))
	if w.down {
		rw.WriteHeader(503)
		return
	}
	refuse := func(code string) { reply(rw, 400, map[string]string{"error": code, "error_description": "sorry"}) }
	at := w.as.URL
	if w.root {
		at = w.rs.URL
	}
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		m := map[string]any{
			"issuer": cmp.Or(w.issuer, at), "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token",
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token", "client_credentials"},
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": w.methods, "token_endpoint_auth_signing_alg_values_supported": w.algs,
			"scopes_supported": []string{"read", "write", "offline_access"}, "client_id_metadata_document_supported": w.cimd,
			"authorization_response_iss_parameter_supported": true,
		}
		if !w.noDCR {
			m["registration_endpoint"] = at + "/register"
		}
		reply(rw, 200, m)
	case "/register":
		var in map[string]any
		json.NewDecoder(r.Body).Decode(&in)
		w.n++
		id := fmt.Sprint("client-", w.n)
		w.clients[id] = ""
		in["client_id"] = id
		reply(rw, 201, in)
	case "/authorize":
		q := r.URL.Query()
		if _, ok := w.clients[q.Get("client_id")]; !ok && !(w.cimd && strings.HasPrefix(q.Get("client_id"), "https://")) {
			refuse("invalid_client")
			return
		}
		if q.Get("resource") != w.resource || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" {
			refuse("invalid_request")
			return
		}
		w.n++
		code := fmt.Sprint("code-", w.n)
		w.codes[code] = q
		back, _ := url.Parse(q.Get("redirect_uri"))
		v := url.Values{"code": {code}, "state": {q.Get("state")}}
		if w.iss != "" {
			v.Set("iss", w.iss)
		}
		back.RawQuery = v.Encode()
		http.Redirect(rw, r, back.String(), http.StatusFound)
	case "/token":
		w.token(rw, r, refuse)
	default:
		rw.WriteHeader(404)
	}
}

func (w *world) token(rw http.ResponseWriter, r *http.Request, refuse func(string)) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.Form.Get("client_id"), r.Form.Get("client_secret")
	}
	if signed := r.Form.Get("client_assertion"); signed != "" {
		if id != "" || secret != "" || r.Form.Get("client_assertion_type") != assertionType {
			refuse("invalid_request")
			return
		}
		if id = w.verify(signed); id == "" {
			refuse("invalid_client")
			return
		}
	} else if want, ok := w.clients[id]; (!ok || want != secret) && !(w.cimd && strings.HasPrefix(id, "https://")) {
		refuse("invalid_client")
		return
	}
	if r.Form.Get("resource") != w.resource { // MUST be on each token request
		refuse("invalid_target")
		return
	}
	var scopes []string
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		q, ok := w.codes[r.Form.Get("code")]
		delete(w.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !ok || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || q.Get("redirect_uri") != r.Form.Get("redirect_uri") {
			refuse("invalid_grant")
			return
		}
		scopes = strings.Fields(q.Get("scope"))
	case "refresh_token":
		old, ok := w.refresh[r.Form.Get("refresh_token")]
		if !ok {
			refuse("invalid_grant")
			return
		}
		if w.rotate {
			delete(w.refresh, r.Form.Get("refresh_token"))
		}
		scopes = append(old, "renewed")
	case "client_credentials":
		scopes = strings.Fields(r.Form.Get("scope"))
	case grantJWTBearer:
		jag, ok := w.jags[r.Form.Get("assertion")]
		if !ok || jag.Get("audience") != w.as.URL || jag.Get("resource") != w.resource || id != "mcp-client" {
			refuse("invalid_grant")
			return
		}
		scopes = strings.Fields(jag.Get("scope"))
	default:
		refuse("unsupported_grant_type")
		return
	}
	w.n++
	access, refresh := fmt.Sprint("secret-access-", w.n), fmt.Sprint("secret-refresh-", w.n)
	w.tokens[access], w.refresh[refresh] = scopes, scopes
	out := map[string]any{"access_token": access, "token_type": "bearer", "refresh_token": refresh, "scope": strings.Join(scopes, " ")}
	if w.lifetime > 0 {
		out["expires_in"] = w.lifetime
	}
	reply(rw, 200, out)
}

// verify checks a client's assertion (RFC 7523 section 3) and says whose it is.
func (w *world) verify(signed string) (client string) {
	t, err := jwt.Parse(signed, func(t *jwt.Token) (any, error) {
		client, _ = t.Claims.GetSubject()
		return w.keys[client], nil
	}, jwt.WithAudience(w.as.URL), jwt.WithTimeFunc(func() time.Time { return w.now }), jwt.WithExpirationRequired(), jwt.WithIssuedAt())
	if err != nil {
		w.t.Log(err)
		return ""
	}
	claims := t.Claims.(jwt.MapClaims)
	if by, _ := claims.GetIssuer(); by != client || claims["jti"] == nil {
		return ""
	}
	w.headers = append(w.headers, t.Header)
	return client
}

// expire ends all access tokens at the server.
func (w *world) expire() { w.set(func() { clear(w.tokens) }) }

// memStore is a Store in memory.
type memStore struct {
	mu sync.Mutex
	m  map[string]string
}

func (s *memStore) Load(k string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.m[k]; ok {
		return v, nil
	}
	return "", ErrNoSecret
}

func (s *memStore) Save(k, v string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]string{}
	}
	s.m[k] = v
	return nil
}

func (s *memStore) Delete(k string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, k)
	return nil
}
