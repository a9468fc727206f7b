package transport

import (
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

// 2025-11-25 basic/transports: Sending Messages, Session Management, Protocol
// Version Header.
func TestLegacySession(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint("keep=", keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, s := newMemNet(t), session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
					if r.Method == http.MethodGet {
						http.Error(w, "no", 405)
						return
					}
					result(w, m, `{"ok":true}`)
				})
				n.serve("srv", s)
				c := dialMem(t, n, "legacy", HTTP{Header: http.Header{"x-key": {"k"}}, KeepSession: func() bool { return keep }}, true)
				if got, err := c.call("tasks/list"); err != nil || got != `{"ok":true}` {
					t.Fatal(got, err)
				}
				if c.conn.SessionID() != "sess-1" {
					t.Error("session", c.conn.SessionID())
				}
				h := s.last().Header
				for k, want := range map[string]string{
					"Mcp-Session-Id": "sess-1", "Mcp-Protocol-Version": "2025-11-25", "Accept": "application/json, text/event-stream",
					"Content-Type": "application/json", "X-Key": "k", "Mcp-Method": "",
				} {
					if h.Get(k) != want {
						t.Errorf("%s: %q, want %q", k, h.Get(k), want)
					}
				}
				if h := s.first().Header; h.Get("Mcp-Session-Id")+h.Get("Mcp-Protocol-Version") != "" {
					t.Error("initialize carries a session or a version")
				}
				// A second initialize starts without the session.
				if _, err := c.call("initialize"); err != nil {
					t.Fatal(err)
				}
				if s.last().Header.Get("Mcp-Session-Id") != "" {
					t.Error("the new initialize carries the old session")
				}
				c.Close(context.Background())
				want := 1
				if keep {
					want = 0
				}
				if s.count("DELETE") != want {
					t.Errorf("%d DELETEs", s.count("DELETE"))
				}
			})
		})
	}
}

func TestLegacySessionIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, s := newMemNet(t), session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			if r.Method == http.MethodGet {
				openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"method\":\"pushed\"}\n\n")
				<-r.Context().Done()
				return
			}
			result(w, m, `{}`)
		})
		n.serve("srv", s)
		c := dialMem(t, n, "legacy", HTTP{Session: "old", Version: "2025-11-25"}, false)
		if note := <-c.h.notes; note.Method != "pushed" || note.Stream != "get" || note.On != "" {
			t.Errorf("%+v", note)
		}
		if _, err := c.call("tasks/list"); err != nil {
			t.Fatal(err)
		}
		if h := s.last().Header; h.Get("Mcp-Session-Id") != "old" || h.Get("Mcp-Protocol-Version") != "2025-11-25" {
			t.Error("the old session is not used")
		}
	})
}

func TestLegacyForbiddenSessionID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		n.serve("srv", &script{do: func(_ *script, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) {
			w.Header().Set("Mcp-Session-Id", "a b")
			result(w, m, `{}`)
		}})
		c := dialMem(t, n, "legacy", HTTP{}, false)
		if _, err := c.call("initialize"); err == nil || !strings.Contains(err.Error(), "session id") {
			t.Error(err)
		}
	})
}

// T6: a server's own requests come on the stream of our call and are answered
// while it is open.
func TestT6_RequestOnAPostStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan string, 1)
		n := newMemNet(t)
		n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			switch {
			case m.Kind == jsonrpc.KindResponse:
				answered <- string(m.ID) + string(m.Result)
				w.WriteHeader(202)
			case m.Method == "tasks/result":
				send := openEvents(w)
				send(": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"first\"}\n\n")
				send("data: {\"jsonrpc\":\"2.0\",\"id\":\"q1\",\"method\":\"elicitation/create\",\"params\":{}}\n\n")
				a := <-answered
				send("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"answer\":%q}}\n\n", m.ID, a)
			default:
				http.Error(w, "no", 405)
			}
		}))
		c := dialMem(t, n, "legacy", HTTP{}, true)
		done := make(chan string, 1)
		go func() {
			got, err := c.call("tasks/result")
			done <- fmt.Sprint(got, err)
		}()
		r := <-c.h.reqs
		if r.On != "2" || r.Stream != "post 2" || (<-c.h.notes).On != "2" {
			t.Errorf("request came on %q %q", r.On, r.Stream)
		}
		time.Sleep(26 * time.Hour) // a person takes her time
		if err := r.Reply(t.Context(), map[string]int{"x": 1}); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got != `{"answer":"\"q1\"{\"x\":1}"}<nil>` {
			t.Error(got)
		}
	})
}

// A response that the server refuses leaves the question open.
func TestLegacyRefusedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			if r.Method == http.MethodGet {
				openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ask\"}\n\n")
				<-r.Context().Done()
				return
			}
			writeJSON(w, 400, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"bad content"}}`)
		}))
		c := dialMem(t, n, "legacy", HTTP{}, true)
		r := <-c.h.reqs
		err := r.Reply(t.Context(), nil)
		var st *StatusError
		var rpc *jsonrpc.Error
		if !errors.As(err, &st) || st.Status != 400 || !errors.As(err, &rpc) || rpc.Code != -32602 {
			t.Fatalf("err = %v", err)
		}
		if _, open := c.Incoming("1"); !open {
			t.Error("the request is closed")
		}
	})
}

// 2025-11-25 basic/transports, Sending Messages 6 and Resumability: the stream
// is polled with Last-Event-ID and the server's retry is honoured.
func TestLegacyPolledStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		var ids []string
		start := time.Now()
		n := newMemNet(t)
		n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			switch {
			case r.Method == http.MethodPost:
				openEvents(w)("id: e0\nretry: 7000\ndata:\n\n")
			case r.Header.Get("Last-Event-ID") == "":
				http.Error(w, "no", 405)
			default:
				at, ids = append(at, time.Since(start)), append(ids, r.Header.Get("Last-Event-ID"))
				send := openEvents(w)
				switch len(ids) {
				case 1:
				case 2:
					send("id: e1\nretry: 500\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"half\"}\n\n")
				case 3:
					send("id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"done\":1}}\n\n")
				}
			}
		}))
		c := dialMem(t, n, "legacy", HTTP{}, true)
		if got, err := c.call("tasks/result"); err != nil || got != `{"done":1}` {
			t.Fatal(got, err)
		}
		if note := <-c.h.notes; note.Method != "half" || note.On != "2" {
			t.Errorf("%+v", note)
		}
		if got := fmt.Sprint(ids, at); got != "[e0 e0 e1] [7s 14s 14.5s]" {
			t.Error(got)
		}
	})
}

func TestLegacyBrokenStream(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events string
		abort  bool
		resume func(k int, w http.ResponseWriter)
		want   string // in the error; "" is success
		gets   int    // with Last-Event-ID
	}{
		{"no event id", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n", false, nil, "ended the stream without an answer", 0},
		{"reset without event id", ": x\n\n", true, nil, "the stream broke before the answer", 0},
		{"reset, then resumed", "id: 1\ndata:\n\n", true, func(k int, w http.ResponseWriter) {
			openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n")
		}, "", 1},
		{"503 and 502 on the way", "id: 1\ndata:\n\n", true, func(k int, w http.ResponseWriter) {
			switch k {
			case 1:
				w.Header().Set("Retry-After", "60")
				http.Error(w, "", 503)
			case 2:
				http.Error(w, "", 502)
			default:
				openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n")
			}
		}, "", 3},
		{"not resumable", "id: 1\ndata:\n\n", false, func(k int, w http.ResponseWriter) { http.Error(w, "", 405) }, "cannot be resumed: the server answered 405", 1},
		{"session lost", "id: 1\ndata:\n\n", false, func(k int, w http.ResponseWriter) { http.Error(w, "", 404) }, "404", 1},
		{"HTML", "id: 1\ndata:\n\n", false, func(k int, w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, "no event stream", 1},
		{"down for good", "id: 1\ndata:\n\n", false, func(k int, w http.ResponseWriter) { http.Error(w, "", 502) }, "cannot be resumed: the server answered 502", 6},
		{"closed at once for ever", "id: 1\ndata:\n\n", false, func(k int, w http.ResponseWriter) { openEvents(w) }, "again and again", 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gets := 0
				n := newMemNet(t)
				n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
					switch {
					case m.Method == "tasks/result":
						openEvents(w)("%s", tc.events)
						if tc.abort {
							panic(http.ErrAbortHandler)
						}
					case m.Method != "":
						result(w, m, "{}")
					case r.Header.Get("Last-Event-ID") == "":
						http.Error(w, "no", 405)
					default:
						gets++
						tc.resume(gets, w)
					}
				}))
				c := dialMem(t, n, "legacy", HTTP{}, true)
				_, err := c.call("tasks/result")
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("err = %v", err)
				}
				if gets != tc.gets {
					t.Errorf("%d resumptions", gets)
				}
				if _, err := c.call("ping"); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

// T2: whatever the optional GET stream answers, calls go on and the attempts
// end.
func TestT2_NoPush(t *testing.T) {
	for _, tc := range []struct {
		name string
		get  func(w http.ResponseWriter)
		gets int
	}{
		{"405", func(w http.ResponseWriter) { http.Error(w, "", 405) }, 1},
		{"404", func(w http.ResponseWriter) { http.Error(w, "", 404) }, 1},
		{"406", func(w http.ResponseWriter) { http.Error(w, "", 406) }, 1},
		{"400", func(w http.ResponseWriter) { http.Error(w, "", 400) }, 1},
		{"501", func(w http.ResponseWriter) { http.Error(w, "", 501) }, 1},
		{"HTML", func(w http.ResponseWriter) { fmt.Fprint(w, "<html>hello") }, 1},
		{"JSON", func(w http.ResponseWriter) { writeJSON(w, 200, "{}") }, 1},
		{"204", func(w http.ResponseWriter) { w.WriteHeader(204) }, 1},
		{"closes at once for ever", func(w http.ResponseWriter) { openEvents(w) }, 6},
		{"resets at once for ever", func(w http.ResponseWriter) { openEvents(w); panic(http.ErrAbortHandler) }, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, s := newMemNet(t), session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
					if r.Method == http.MethodGet {
						tc.get(w)
						return
					}
					result(w, m, "{}")
				})
				n.serve("srv", s)
				c := dialMem(t, n, "legacy", HTTP{}, true)
				time.Sleep(24 * time.Hour)
				if state, why := c.conn.Push(); state != "none" || why == "" {
					t.Errorf("push is %q, %q", state, why)
				}
				if got := s.count("GET"); got != tc.gets {
					t.Errorf("%d GETs", got)
				}
				if _, err := c.call("tasks/list"); err != nil {
					t.Error(err)
				}
				if len(c.h.noise) == 0 || !strings.HasPrefix(c.h.noise[len(c.h.noise)-1], "no push: ") {
					t.Errorf("noise %q", c.h.noise)
				}
			})
		})
	}
}

// The push stream outlives restarts and proxies that cut it, with a capped
// backoff, and goes on behind the last event.
func TestT2_PushComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		gets := 0
		n := newMemNet(t)
		n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			if r.Method != http.MethodGet {
				result(w, m, "{}")
				return
			}
			mu.Lock()
			gets++
			k := gets
			mu.Unlock()
			switch {
			case k == 1:
				openEvents(w)("id: 41\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n1\"}\n\n")
			case k < 20:
				http.Error(w, "down", 503)
			default:
				openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"method\":\"after %s\"}\n\n", r.Header.Get("Last-Event-ID"))
				<-r.Context().Done()
			}
		}))
		start := time.Now()
		c := dialMem(t, n, "legacy", HTTP{}, true)
		if got := (<-c.h.notes).Method; got != "n1" {
			t.Error(got)
		}
		if got := (<-c.h.notes).Method; got != "after 41" {
			t.Error(got)
		}
		if d := time.Since(start); d < 10*time.Minute || d > 20*time.Minute {
			t.Errorf("18 failures took %s", d)
		}
		if state, _ := c.conn.Push(); state != "open" {
			t.Error(state)
		}
	})
}

// S2, D: a blocking tasks/result has no time limit of ours.
func TestLegacyNoClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			if r.Method == http.MethodGet {
				http.Error(w, "", 405)
				return
			}
			time.Sleep(72 * time.Hour)
			result(w, m, `{"late":true}`)
		}))
		c := dialMem(t, n, "legacy", HTTP{}, true)
		if got, err := c.call("tasks/result"); err != nil || got != `{"late":true}` {
			t.Error(got, err)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		gone := make(chan string, 2)
		n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			openEvents(w)
			<-r.Context().Done()
			gone <- r.Method
		}))
		c := dialMem(t, n, "legacy", HTTP{}, true)
		errs := make(chan error, 1)
		go func() {
			_, err := c.call("tasks/result")
			errs <- err
		}()
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-errs; !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("err = %v", err)
		}
		<-gone
		<-gone
		if err := c.Notify(t.Context(), "n", nil, nil); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("err = %v", err)
		}
	})
}
