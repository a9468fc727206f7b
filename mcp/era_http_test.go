package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// A fakeHTTP is a server of a few lines: answer decides by HTTP method and
// JSON-RPC method; what was asked is kept.
type fakeHTTP struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // "POST initialize", "GET", "DELETE"
	header []http.Header
	stop   chan struct{}
}

type reply struct {
	status int
	body   string // $id is the request's
	header map[string]string
}

func newFakeHTTP(t *testing.T, answer func(method, rpc string, h http.Header) reply) *fakeHTTP {
	f := &fakeHTTP{stop: make(chan struct{})}
	stream := make(chan string, 10)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		rpc := stringAt(b, "method")
		f.mu.Lock()
		f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+rpc))
		f.header = append(f.header, r.Header)
		f.mu.Unlock()
		a := answer(r.Method, rpc, r.Header)
		body := strings.ReplaceAll(a.body, "$id", string(member(b, "id")))
		for k, v := range a.header {
			w.Header().Set(k, v)
		}
		switch {
		case a.status == 0 && body == "endpoint": // the stream of HTTP+SSE
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: endpoint\ndata: /post\n\n")
			w.(http.Flusher).Flush()
			for {
				select {
				case m := <-stream:
					fmt.Fprintf(w, "event: message\ndata: %s\n\n", m)
					w.(http.Flusher).Flush()
				case <-f.stop:
					return
				case <-r.Context().Done():
					return
				}
			}
		case a.status == 1: // taken, answered on that stream
			if member(b, "id") != nil {
				stream <- body
			}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(a.status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(func() { close(f.stop); f.Close() })
	return f
}

func (f *fakeHTTP) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, a := range f.asked {
		if a != "GET" || len(out) == 0 { // the push stream opens when it likes
			out = append(out, a)
		}
	}
	return out
}

const (
	initResult     = `{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{}}},"serverInfo":{"name":"old","version":"1"}}}`
	discoverResult = `{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}}`
	noSession      = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`
	unsupported    = `{"jsonrpc":"2.0","id":$id,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}`
	noMethod       = `{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"Method not found"}}`
)

// legacyHTTP answers like a Streamable HTTP server of 2025-11-25 that answered
// the probe with first.
func legacyHTTP(first reply) func(method, rpc string, h http.Header) reply {
	return func(method, rpc string, h http.Header) reply {
		switch {
		case method != "POST":
			return reply{status: 405}
		case rpc == "server/discover":
			return first
		case rpc == "initialize":
			return reply{200, initResult, map[string]string{"Mcp-Session-Id": "s1"}}
		case strings.HasPrefix(rpc, "notifications/"):
			return reply{status: 202}
		}
		return reply{status: 200, body: `{"jsonrpc":"2.0","id":$id,"result":{}}`}
	}
}

// TestEraOverHTTP finds the era as 2026-07-28 basic/transports/streamable-http,
// "Backward Compatibility", has it.
func TestEraOverHTTP(t *testing.T) {
	legacy := []string{"POST server/discover", "POST initialize", "POST notifications/initialized"}
	for _, c := range []struct {
		name   string
		answer func(method, rpc string, h http.Header) reply
		era    string
		over   string
		gen    taskmodel.Generation
		err    string
		is     error
		asked  []string
	}{
		{name: "modern", answer: func(_, _ string, _ http.Header) reply { return reply{status: 200, body: discoverResult} },
			era: "modern", over: "http", gen: taskmodel.GenNone, asked: legacy[:1]},
		{name: "400 of an old server", answer: legacyHTTP(reply{status: 400, body: noSession}), era: "legacy", over: "http", gen: taskmodel.GenCore, asked: legacy},
		{name: "400 without a body", answer: legacyHTTP(reply{status: 400}), era: "legacy", over: "http", gen: taskmodel.GenCore, asked: legacy},
		{name: "an error in a 200", answer: legacyHTTP(reply{status: 200, body: noMethod}), era: "legacy", over: "http", gen: taskmodel.GenCore, asked: legacy},
		{name: "500 on what it does not know", answer: legacyHTTP(reply{status: 500, body: "TypeError"}), era: "legacy", over: "http", gen: taskmodel.GenCore, asked: legacy},
		{name: "-32022 names an old version", answer: legacyHTTP(reply{status: 400, body: unsupported}), era: "legacy", over: "http", gen: taskmodel.GenCore, asked: legacy},
		{name: "404 -32601 of an old server", answer: legacyHTTP(reply{status: 404, body: noMethod}), era: "legacy", over: "http", gen: taskmodel.GenCore, asked: legacy},
		{name: "modern without server/discover", answer: func(_, _ string, _ http.Header) reply { return reply{status: 404, body: noMethod} },
			era: "modern", over: "http", gen: taskmodel.GenNone},
		{name: "header refused", answer: func(_, _ string, _ http.Header) reply {
			return reply{status: 400, body: `{"jsonrpc":"2.0","id":$id,"error":{"code":-32020,"message":"Mcp-Method is missing"}}`}
		}, err: "error -32020: Mcp-Method is missing", asked: legacy[:1]},
		{name: "sign-in wanted", answer: func(_, _ string, _ http.Header) reply { return reply{status: 401} }, err: "sign-in needed", is: ErrAuth, asked: legacy[:1]},
		{name: "forbidden with a challenge", answer: func(_, _ string, _ http.Header) reply {
			return reply{403, "", map[string]string{"WWW-Authenticate": `Bearer error="insufficient_scope"`}}
		}, err: "sign-in needed", is: ErrAuth, asked: legacy[:1]},
		{name: "overloaded", answer: func(_, _ string, _ http.Header) reply {
			return reply{503, "", map[string]string{"Retry-After": "7"}}
		}, err: "503", asked: legacy[:1]},
		{name: "HTTP+SSE", answer: func(method, rpc string, h http.Header) reply {
			switch {
			case method == "GET":
				return reply{body: "endpoint"}
			case rpc == "initialize" && h.Get("Accept") == "application/json":
				return reply{status: 1, body: initResult}
			}
			return reply{status: 405}
		}, era: "legacy", over: "sse", gen: taskmodel.GenCore},
		{name: "a web page", answer: func(method, _ string, _ http.Header) reply {
			return reply{404, "<html>no such page</html>", map[string]string{"Content-Type": "text/html"}}
		}, err: "404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := c.answer
			if c.over == "sse" {
				posts := false // POST goes to /post once the stream told so
				answer = func(method, rpc string, h http.Header) reply {
					if method == "GET" {
						posts = true
						return reply{body: "endpoint"}
					}
					if posts && rpc == "initialize" {
						return reply{status: 1, body: initResult}
					}
					if posts {
						return reply{status: 1, body: `{"jsonrpc":"2.0","id":$id,"result":{}}`}
					}
					return reply{status: 405}
				}
			}
			f := newFakeHTTP(t, answer)
			ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
			defer stop()
			cl, err := Connect(ctx, Options{Name: "srv", Dialer: &transport.HTTP{URL: f.URL}})
			asked := f.requests()
			if c.asked != nil && !slices.Equal(asked, c.asked) {
				t.Errorf("asked %q, want %q", asked, c.asked)
			}
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close(ctx, true)
			if i := cl.Info(); i.Era != c.era || i.Transport != c.over || i.Generation != c.gen {
				t.Errorf("%s over %s, %s", i.Era, i.Transport, i.Generation)
			}
		})
	}
}

// TestNoServer: nobody listens; no older protocol is tried.
func TestNoServer(t *testing.T) {
	f := newFakeHTTP(t, legacyHTTP(reply{status: 400}))
	url := f.URL
	f.Server.Close()
	_, err := Connect(context.Background(), Options{Name: "srv", Dialer: &transport.HTTP{URL: url}})
	if err == nil || !strings.Contains(err.Error(), "srv: ") {
		t.Errorf("got %v", err)
	}
}

// TestT1_SessionLost: 404, or 400 that names the session, is ErrSessionLost on
// a connection that has one (2025-11-25 basic/transports, "Session Management");
// a tools/call that meets it is not repeated.
func TestT1_SessionLost(t *testing.T) {
	for _, c := range []struct {
		name    string
		session string
		lost    reply
		want    bool
	}{
		{"404", "s1", reply{status: 404, body: `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`}, true},
		{"bare 404", "s1", reply{status: 404}, true},
		{"400 that names it", "s1", reply{status: 400, body: noSession}, true},
		{"another 400", "s1", reply{status: 400, body: "bad"}, false},
		{"no session", "", reply{status: 404}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeHTTP(t, func(method, rpc string, h http.Header) reply {
				switch rpc {
				case "tools/call", "tasks/get":
					if h.Get("Mcp-Session-Id") != c.session || h.Get("Mcp-Protocol-Version") != "2025-11-25" {
						t.Errorf("session %q, version %q", h.Get("Mcp-Session-Id"), h.Get("Mcp-Protocol-Version"))
					}
					return c.lost
				case "tools/list":
					return reply{status: 200, body: `{"jsonrpc":"2.0","id":$id,"result":{"tools":[]}}`}
				case "initialize":
					return reply{200, initResult, map[string]string{"Mcp-Session-Id": c.session}}
				}
				return legacyHTTP(reply{status: 400})(method, rpc, h)
			})
			ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
			defer stop()
			cl, err := Connect(ctx, Options{Name: "srv", Dialer: &transport.HTTP{URL: f.URL}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = cl.Tasks().Get(ctx, "t1")
			if errors.Is(err, ErrSessionLost) != c.want || err == nil {
				t.Errorf("tasks/get: %v", err)
			}
			_, err = cl.Tasks().Start(ctx, StartCall{Tool: "x", Plain: true})
			if errors.Is(err, ErrSessionLost) != c.want || err == nil {
				t.Errorf("tools/call: %v", err)
			}
			cl.Close(ctx, true)
			calls, deletes := 0, 0
			for _, a := range f.requests() {
				switch a {
				case "POST tools/call":
					calls++
				case "DELETE":
					deletes++
				}
			}
			if calls != 1 {
				t.Errorf("tools/call went out %d times", calls)
			}
			if want := min(len(c.session), 1); deletes != want {
				t.Errorf("%d DELETE, want %d", deletes, want)
			}
		})
	}
}

// TestResume takes up a session without initialize; an unknown one is
// ErrSessionLost, and neither a failure nor Close(…, false) ends it.
func TestResume(t *testing.T) {
	for _, c := range []struct {
		name string
		ping reply
		is   error
		ok   bool
	}{
		{"known", reply{status: 200, body: `{"jsonrpc":"2.0","id":$id,"result":{}}`}, nil, true},
		{"known, without ping", reply{status: 200, body: noMethod}, nil, true},
		{"unknown", reply{status: 404, body: noSession}, ErrSessionLost, false},
		{"sign-in", reply{status: 401}, ErrAuth, false},
		{"down", reply{status: 502}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeHTTP(t, func(method, rpc string, h http.Header) reply {
				if rpc == "ping" {
					if h.Get("Mcp-Session-Id") != "old" || h.Get("Mcp-Protocol-Version") != "2025-11-25" {
						t.Errorf("%v", h)
					}
					return c.ping
				}
				return reply{status: 405}
			})
			ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
			defer stop()
			var init struct{ Result json.RawMessage }
			if err := json.Unmarshal([]byte(strings.ReplaceAll(initResult, "$id", "1")), &init); err != nil {
				t.Fatal(err)
			}
			cl, err := Connect(ctx, Options{Name: "srv", Dialer: &transport.HTTP{URL: f.URL}, Session: "old", Version: "2025-11-25", SessionInit: init.Result})
			if (err == nil) != c.ok || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("got %v", err)
			}
			if c.ok {
				id, version, kept := cl.Session()
				if i := cl.Info(); i.Generation != taskmodel.GenCore || !i.Can.List || i.ServerName != "old" || id != "old" || version != "2025-11-25" || string(kept) != string(init.Result) {
					t.Errorf("%+v, %s %s %s", i, id, version, kept)
				}
				cl.Close(ctx, false)
			}
			for _, a := range f.requests() {
				if a != "POST ping" && a != "GET" {
					t.Errorf("sent %s", a)
				}
			}
		})
	}
}
