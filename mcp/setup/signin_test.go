package setup

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"mcptasks/mcp/config"
)

// A counter is a server that wants a sign-in, with its authorization server.
type counter struct {
	t      *testing.T
	http   *httptest.Server
	mu     sync.Mutex
	asked  map[string]int        // requests by path
	wanted map[string]url.Values // authorization requests by the code given
	refuse string                // an error to answer the person's agreement with
}

func newCounter(t *testing.T) *counter {
	c := &counter{t: t, asked: map[string]int{}, wanted: map[string]url.Values{}}
	standing := make(chan struct{})
	c.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-standing // it tells its own address
		c.serve(w, r)
	}))
	close(standing)
	t.Cleanup(c.http.Close)
	return c
}

func (c *counter) serve(w http.ResponseWriter, r *http.Request) {
	at := c.http.URL
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[r.URL.Path]++
	say := func(status int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		say(200, map[string]any{"resource": at + "/mcp", "authorization_servers": []string{at}})
	case "/.well-known/oauth-authorization-server":
		say(200, map[string]any{"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "registration_endpoint": at + "/register",
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code"}, "code_challenge_methods_supported": []string{"S256"},
			"authorization_response_iss_parameter_supported": true})
	case "/register":
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		in["client_id"] = "client-1"
		say(201, in)
	case "/authorize": // the person agrees, or not
		back, _ := url.Parse(r.URL.Query().Get("redirect_uri"))
		q := url.Values{"state": {r.URL.Query().Get("state")}, "iss": {at}}
		if c.refuse != "" {
			q.Set("error", c.refuse)
		} else {
			code := fmt.Sprint("hush-code-", len(c.wanted))
			c.wanted[code] = r.URL.Query()
			q.Set("code", code)
		}
		back.RawQuery = q.Encode()
		http.Redirect(w, r, back.String(), http.StatusFound)
	case "/token":
		q := c.wanted[r.FormValue("code")]
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if q == nil || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			say(400, map[string]any{"error": "invalid_grant"})
			return
		}
		say(200, map[string]any{"access_token": "hush-access", "token_type": "bearer", "refresh_token": "hush-refresh", "expires_in": 3600})
	case "/mcp":
		if r.Header.Get("Authorization") == "Bearer hush-access" {
			w.WriteHeader(http.StatusOK)
			return
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", at+"/.well-known/oauth-protected-resource/mcp"))
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// The screens sign in by a browser alone: what the person agrees to there is
// kept, and a sign-in that comes to nothing says why and what to do instead.
func TestSignInFromTheScreens(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none")) // no keyring
	gone := errors.New("no program opens pages")
	for _, tt := range []struct {
		name   string
		refuse string
		open   func(browse func(page string)) func(page string) error
		fault  string
	}{
		{"agreed", "", func(browse func(string)) func(string) error {
			return func(page string) error { go browse(page); return nil }
		}, ""},
		{"refused", "access_denied", func(browse func(string)) func(string) error {
			return func(page string) error { go browse(page); return nil }
		}, "access_denied"},
		{"no browser", "", func(func(string)) func(string) error {
			return func(string) error { return gone }
		}, "no browser can be opened here (no program opens pages): mcptasks login ci --no-browser shows the address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, state := newCounter(t), t.TempDir()
			c.refuse = tt.refuse
			var browsing sync.WaitGroup
			defer browsing.Wait()
			browser := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			browse := func(page string) {
				res, err := browser.Get(page)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				_, _ = io.Copy(io.Discard, res.Body)
			}
			open := tt.open(func(page string) { browsing.Go(func() { browse(page) }) })
			s := config.Server{Name: "ci", Client: "mcptasks", Entry: config.ServerEntry{URL: c.http.URL + "/mcp"}}
			var log strings.Builder
			o := LoginOptions{State: state, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
			err := SignIn(t.Context(), s, o, open)
			if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Fatalf("%v, want %q", err, tt.fault)
			}
			if strings.Contains(log.String(), "hush-") || err != nil && strings.Contains(err.Error(), "hush-") {
				t.Errorf("a secret is told: %v\n%s", err, &log)
			}
			kept, _ := filepath.Glob(filepath.Join(state, "tokens", "*"))
			if err != nil {
				if len(kept) != 0 {
					t.Errorf("after a sign-in that failed %q is kept", kept)
				}
				return
			}
			defer func() {
				if err := Logout(context.Background(), s, state); err != nil {
					t.Error(err)
				}
			}()
			// What was brought signs the requests of this process and the next.
			a, err := Authorizers(state, o.Log)(s)
			if err != nil {
				t.Fatal(err)
			}
			h, err := a.Header(t.Context())
			if err != nil || h.Get("Authorization") != "Bearer hush-access" {
				t.Errorf("%v, %v", h, err)
			}
			if runtime.GOOS == "linux" {
				if len(kept) != 1 {
					t.Fatalf("kept: %q", kept)
				}
				if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v, %v", info, err)
				}
			}
			if c.asked["/authorize"] != 1 || c.asked["/token"] != 1 || c.asked["/register"] != 1 {
				t.Errorf("asked: %v", c.asked)
			}
		})
	}
}

// What ends the screens ends a sign-in that nobody carries through.
func TestSignInGivenUp(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	c := newCounter(t)
	ctx, stop := context.WithCancelCause(t.Context())
	quit := errors.New("the screens are closed")
	err := SignIn(ctx, config.Server{Name: "ci", Entry: config.ServerEntry{URL: c.http.URL + "/mcp"}},
		LoginOptions{State: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, func(string) error { stop(quit); return nil })
	if !errors.Is(err, quit) {
		t.Errorf("%v", err)
	}
}

// Where there is nobody to sign in, nothing is opened.
func TestSignInWithNobodyToAsk(t *testing.T) {
	for fault, e := range map[string]config.ServerEntry{
		"is a command": {Command: "run"},
		"signs in by what its configuration says": {URL: "https://ci.example/mcp", TokenEnv: "CI_TOKEN"},
	} {
		err := SignIn(t.Context(), config.Server{Name: "ci", Entry: e}, LoginOptions{State: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, func(string) error {
			t.Error("a page is opened")
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%v, want %q", err, fault)
		}
	}
}
