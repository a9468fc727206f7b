package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// Whatever goes wrong with one request fails that request alone, in words.
func TestHTTPFaults(t *testing.T) {
	for _, tc := range []struct {
		name   string
		do     func(w http.ResponseWriter, m jsonrpc.Message)
		want   string // in the error; "" is success
		status int    // of the StatusError
	}{
		{"404 plain", func(w http.ResponseWriter, m jsonrpc.Message) { http.Error(w, "no such page", 404) }, "the server answered 404 Not Found: no such page", 404},
		{"404 HTML", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.WriteHeader(404)
			fmt.Fprint(w, "<html>", strings.Repeat("x", 5000))
		}, "the server answered 404 Not Found", 404},
		{"404 method not found", func(w http.ResponseWriter, m jsonrpc.Message) {
			writeJSON(w, 404, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		}, "Method not found (-32601)", 404},
		{"400 without id", func(w http.ResponseWriter, m jsonrpc.Message) {
			writeJSON(w, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		}, "No valid session ID", 400},
		{"500", func(w http.ResponseWriter, m jsonrpc.Message) { http.Error(w, "", 500) }, "500 Internal Server Error", 500},
		{"502 HTML", func(w http.ResponseWriter, m jsonrpc.Message) { http.Error(w, "<html>bad gateway", 502) }, "502 Bad Gateway", 502},
		{"599", func(w http.ResponseWriter, m jsonrpc.Message) { w.WriteHeader(599) }, "status 599", 599},
		{"304", func(w http.ResponseWriter, m jsonrpc.Message) { w.WriteHeader(304) }, "304 Not Modified", 304},
		{"redirect to nowhere", func(w http.ResponseWriter, m jsonrpc.Message) { w.WriteHeader(307) }, "leads nowhere", 307},
		{"redirect for ever", func(w http.ResponseWriter, m jsonrpc.Message) { w.Header().Set("Location", "/mcp"); w.WriteHeader(307) }, "307", 307},
		{"303", func(w http.ResponseWriter, m jsonrpc.Message) { w.Header().Set("Location", "/x"); w.WriteHeader(303) }, "303", 303},
		{"HTML with 200", func(w http.ResponseWriter, m jsonrpc.Message) { fmt.Fprint(w, "<!doctype html><html>hi") }, "text/html instead of JSON", 0},
		{"text with 200", func(w http.ResponseWriter, m jsonrpc.Message) { fmt.Fprint(w, "hi") }, "text/plain instead of JSON", 0},
		{"202", func(w http.ResponseWriter, m jsonrpc.Message) { w.WriteHeader(202) }, "gives no answer", 0},
		{"204", func(w http.ResponseWriter, m jsonrpc.Message) { w.WriteHeader(204) }, "gives no answer", 0},
		{"empty JSON", func(w http.ResponseWriter, m jsonrpc.Message) { writeJSON(w, 200, "") }, "no JSON", 0},
		{"broken JSON", func(w http.ResponseWriter, m jsonrpc.Message) {
			writeJSON(w, 200, `{"jsonrpc":"2.0","id":%s,"result":{`, m.ID)
		}, "cannot be read: not JSON", 0},
		{"other id", func(w http.ResponseWriter, m jsonrpc.Message) {
			writeJSON(w, 200, `{"jsonrpc":"2.0","id":777,"result":{}}`)
		}, "not one to this request", 0},
		{"other JSON", func(w http.ResponseWriter, m jsonrpc.Message) { writeJSON(w, 200, `{"error":"go away"}`) }, "not one to this request", 0},
		{"error without id", func(w http.ResponseWriter, m jsonrpc.Message) {
			writeJSON(w, 200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}`)
		}, "parse (-32700)", 0},
		{"batch", func(w http.ResponseWriter, m jsonrpc.Message) {
			writeJSON(w, 200, `[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":%s,"result":{}}]`, m.ID)
		}, "", 0},
		{"JSON without a type", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.Header()["Content-Type"] = nil
			fmt.Fprintf(w, "\xEF\xBB\xBF {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", m.ID)
		}, "", 0},
		{"JSON with a charset", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.Header().Set("Content-Type", "Application/JSON; charset=utf-8")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}, "", 0},
		{"too long", func(w http.ResponseWriter, m jsonrpc.Message) { result(w, m, `"`+strings.Repeat("x", 2<<20)+`"`) }, "longer than the 1048576 bytes", 0},
		{"truncated gzip", func(w http.ResponseWriter, m jsonrpc.Message) {
			var buf bytes.Buffer
			z := gzip.NewWriter(&buf)
			fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			w.Write(buf.Bytes()[:buf.Len()-12])
		}, "cut off", 0},
		{"no gzip at all", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.Header().Set("Content-Encoding", "gzip")
			result(w, m, "{}")
		}, "cut off after 0 bytes", 0},
		{"body cut", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"jsonrpc":`)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "cut off after 11 bytes", 0},
		{"body that stops", func(w http.ResponseWriter, m jsonrpc.Message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":`)
			http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Minute)
		}, "stopped in the middle, after 11 bytes", 0},
		{"headers late, body late", func(w http.ResponseWriter, m jsonrpc.Message) {
			time.Sleep(time.Hour)
			w.Header().Set("Content-Type", "application/json")
			http.NewResponseController(w).Flush()
			time.Sleep(time.Hour)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}, "", 0},
		{"reset before the headers", func(w http.ResponseWriter, m jsonrpc.Message) { panic(http.ErrAbortHandler) }, "srv cannot be reached: EOF", 0},
		{"stream without an answer", func(w http.ResponseWriter, m jsonrpc.Message) { openEvents(w)(": nothing\n\n") }, "ended the stream without an answer", 0},
		{"stream with heartbeats", func(w http.ResponseWriter, m jsonrpc.Message) {
			openEvents(w)(": x\n\ndata: ping\n\nevent: ping\ndata: {}\n\nevent: other\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"no\"}\n\ndata:\n\ndata: {\"type\":\"heartbeat\"}\n\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":{}}\n\n", m.ID)
		}, "", 0},
		{"stream whose last event lacks its end", func(w http.ResponseWriter, m jsonrpc.Message) {
			openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", m.ID)
		}, "", 0},
		{"stream whose last event is cut", func(w http.ResponseWriter, m jsonrpc.Message) {
			openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"resu", m.ID)
		}, "without an answer", 0},
		{"event too long", func(w http.ResponseWriter, m jsonrpc.Message) {
			openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"%s\"}\n\n", m.ID, strings.Repeat("x", 2<<20))
		}, "too long: an event of", 0},
		{"answer twice", func(w http.ResponseWriter, m jsonrpc.Message) {
			a := fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
			openEvents(w)("%s", a+a)
		}, "", 0},
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(tc.name+"/"+era, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newMemNet(t)
					n.serve("srv", &script{do: func(_ *script, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) {
						if m.Method == "well" {
							result(w, m, "{}")
							return
						}
						tc.do(w, m)
					}})
					c := dialMem(t, n, era, HTTP{MaxMessage: 1 << 20}, false)
					_, err := c.call("x")
					if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
						t.Errorf("err = %v", err)
					}
					var st *StatusError
					if errors.As(err, &st) != (tc.status != 0) || st != nil && (st.Status != tc.status || len(st.Body) > 200) {
						t.Errorf("status error %+v", st)
					}
					if _, err := c.call("well"); err != nil {
						t.Errorf("afterwards: %v", err)
					}
					time.Sleep(time.Hour) // until the slowest handler has ended
				})
			})
		}
	}
}

func TestHTTPUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		c := dialMem(t, n, "modern", HTTP{URL: "http://srv/mcp?token=sesame"}, false)
		_, err := c.call("x")
		if err == nil || !strings.Contains(err.Error(), "srv cannot be reached: dial tcp srv:80: connect: connection refused") || strings.Contains(err.Error(), "sesame") {
			t.Error(err)
		}
	})
}

// G5: nothing is sent to another origin; within the origin a redirect is
// followed with method, body and session.
func TestRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet(t)
				other := &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) { result(w, m, "{}") }}
				n.serve("evil", other)
				s := session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
					switch {
					case r.Method == http.MethodGet:
						http.Error(w, "", 405)
					case m.Method == "away":
						w.Header().Set("Location", "http://evil/mcp")
						w.WriteHeader(status)
					case m.Method == "port":
						w.Header().Set("Location", "//srv:81/mcp")
						w.WriteHeader(status)
					case m.Method == "scheme":
						w.Header().Set("Location", "https://srv/mcp")
						w.WriteHeader(status)
					case !strings.HasSuffix(r.URL.Path, "/"):
						w.Header().Set("Location", r.URL.Path+"/")
						w.WriteHeader(status)
					default:
						if r.Header.Get("Authorization") != "Bearer x" || r.Header.Get("Mcp-Session-Id") != "sess-1" {
							t.Error("headers were lost on the way")
						}
						result(w, m, string(m.Params))
					}
				})
				n.serve("srv", s)
				c := dialMem(t, n, "legacy", HTTP{Header: http.Header{"Authorization": {"Bearer x"}}}, true)
				b, err := c.Call(t.Context(), jsonrpc.Call{Method: "here", Params: map[string]int{"a": 1}})
				if err != nil || string(b) != `{"a":1}` {
					t.Error(string(b), err)
				}
				for _, m := range []string{"away", "port", "scheme"} {
					if _, err := c.call(m); err == nil || !strings.Contains(err.Error(), "another origin") {
						t.Errorf("%s: %v", m, err)
					}
				}
				if len(other.seen()) != 0 {
					t.Errorf("the other origin saw %q", other.seen())
				}
				before := s.count("POST again") // the optional GET stream is tried again at its own time
				c.call("again")
				want := 2
				if status == 301 || status == 308 {
					want = 1
				}
				if got := s.count("POST again") - before; got != want {
					t.Errorf("%d requests for one call", got)
				}
			})
		})
	}
}

// T7: Retry-After as seconds or as a date.
func TestT7_RetryAfter(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0}, {"30", "", 30 * time.Second}, {" 1.5 ", "", 1500 * time.Millisecond}, {"-3", "", 0}, {"NaN", "", 0}, {"soon", "", 0},
		{"99999999999", "", 24 * time.Hour}, {"+Inf", "", 24 * time.Hour},
		{"Tue, 28 Jul 2026 12:01:00 GMT", "", time.Minute},
		{"Tue, 28 Jul 2026 11:00:00 GMT", "", 0},
		{"Tue, 28 Jul 2026 09:00:20 GMT", "Tue, 28 Jul 2026 09:00:00 GMT", 20 * time.Second}, // the server's clock is off
	} {
		h := http.Header{}
		h.Set("Retry-After", tc.after)
		if tc.date != "" {
			h.Set("Date", tc.date)
		}
		if got := retryAfter(h, now); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.after, got, tc.want)
		}
	}
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			n := newMemNet(t)
			n.serve("srv", &script{do: func(_ *script, w http.ResponseWriter, _ *http.Request, _ jsonrpc.Message) {
				w.Header().Set("Retry-After", "17")
				http.Error(w, "slow down", status)
			}})
			c := dialMem(t, n, "modern", HTTP{}, false)
			_, err := c.call("tasks/get")
			var st *StatusError
			if !errors.As(err, &st) || st.RetryAfter != 17*time.Second || !strings.Contains(err.Error(), "asks to wait 17s") {
				t.Error(err)
			}
		})
	}
}

// fakeAuth gives a token and gets a new one at a challenge.
type fakeAuth struct {
	mu         sync.Mutex
	token      string
	next       string // "" : cannot help
	err        error
	challenges int
	seen       string
}

func (a *fakeAuth) Header(context.Context) (http.Header, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return http.Header{"Authorization": {"Bearer " + a.token}}, nil
}

func (a *fakeAuth) Challenge(_ context.Context, status int, h http.Header) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.challenges++
	a.seen = fmt.Sprint(status, " ", h.Get("WWW-Authenticate"))
	if a.next == "" {
		return false, a.err
	}
	a.token, a.next = a.next, ""
	return true, nil
}

// T5: a 401 goes through the Authorizer once; nobody is asked twice.
func TestT5_Challenge(t *testing.T) {
	sorry := errors.New("sign in with mcptasks login srv")
	for _, tc := range []struct {
		name       string
		auth       *fakeAuth
		status     int
		good       string
		want       string
		challenges int
		requests   int
	}{
		{"refreshed", &fakeAuth{token: "old", next: "new"}, 401, "Bearer new", "", 1, 2},
		{"step-up", &fakeAuth{token: "old", next: "new"}, 403, "Bearer new", "", 1, 2},
		{"refreshed in vain", &fakeAuth{token: "old", next: "new"}, 401, "Bearer other", "401", 1, 2},
		{"no help", &fakeAuth{token: "old"}, 401, "Bearer new", "401", 1, 1},
		{"needs a person", &fakeAuth{token: "old", err: sorry}, 401, "Bearer new", "sign in with mcptasks login", 1, 1},
		{"nobody to ask", nil, 401, "Bearer new", "401", 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet(t)
				s := &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
					if r.Header.Get("Authorization") != tc.good {
						w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://srv/.well-known"`)
						http.Error(w, "", tc.status)
						return
					}
					result(w, m, string(m.Params))
				}}
				n.serve("srv", s)
				conf := HTTP{}
				if tc.auth != nil {
					conf.Auth = tc.auth
				}
				c := dialMem(t, n, "modern", conf, false)
				b, err := c.Call(t.Context(), jsonrpc.Call{Method: "x", Params: map[string]int{"a": 1}})
				if tc.want == "" && (err != nil || string(b) != `{"a":1}`) {
					t.Error(string(b), err)
				}
				if tc.want != "" {
					var st *StatusError
					if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.As(err, &st) || st.Status != tc.status {
						t.Errorf("err = %v", err)
					}
					if tc.auth != nil && strings.Contains(err.Error(), tc.auth.token) {
						t.Error("the token is in the error")
					}
				}
				if len(s.seen()) != tc.requests || tc.auth != nil && tc.auth.challenges != tc.challenges {
					t.Errorf("%d requests", len(s.seen()))
				}
				if tc.auth != nil && tc.auth.seen != fmt.Sprintf(`%d Bearer resource_metadata="http://srv/.well-known"`, tc.status) {
					t.Errorf("challenge %q", tc.auth.seen)
				}
				for _, x := range c.h.noise {
					if strings.Contains(x, "Bearer old") {
						t.Error("the token is in the noise")
					}
				}
			})
		})
	}
}

// T5: a push stream that is refused does not hammer at the sign-in.
func TestT5_NoStormFromPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) { http.Error(w, "", 401) }))
		a := &fakeAuth{token: "old"}
		dialMem(t, n, "legacy", HTTP{Auth: a}, true)
		time.Sleep(time.Hour)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.challenges > 61 {
			t.Errorf("%d challenges in an hour", a.challenges)
		}
	})
}
