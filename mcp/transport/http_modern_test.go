package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// 2026-07-28 basic/transports/streamable-http, Request Metadata; S15.
func TestS15_ModernHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		s := &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			w.Header().Set("Mcp-Session-Id", "not of this era")
			result(w, m, "{}")
		}}
		n.serve("srv", s)
		c := dialMem(t, n, "modern", HTTP{Session: "old", Version: "2025-11-25"}, false)
		for _, tc := range []struct {
			call jsonrpc.Call
			want map[string]string
		}{
			{jsonrpc.Call{Method: "server/discover"}, map[string]string{"Mcp-Method": "server/discover", "Mcp-Name": "", "Mcp-Protocol-Version": "2026-07-28"}},
			{jsonrpc.Call{Method: "tools/call", Name: "get_weather", Header: map[string]string{"MCP-Protocol-Version": "2026-09-01", "Mcp-Param-Region": "us-west1"}},
				map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "get_weather", "Mcp-Protocol-Version": "2026-09-01", "Mcp-Param-Region": "us-west1"}},
			{jsonrpc.Call{Method: "tasks/get", Name: "zażółć"}, map[string]string{"Mcp-Method": "tasks/get", "Mcp-Name": "=?base64?emHFvMOzxYLEhw==?="}},
			{jsonrpc.Call{Method: "tools/call", Name: "a\r\nX-Evil: 1", Header: map[string]string{"Mcp-Param-X": "a\r\nX-Evil: 1"}},
				map[string]string{"Mcp-Name": "=?base64?YQ0KWC1FdmlsOiAx?=", "Mcp-Param-X": "=?base64?YQ0KWC1FdmlsOiAx?=", "X-Evil": ""}},
			{jsonrpc.Call{Method: "tools/call", Name: "a", Header: map[string]string{"Mcp-Param-X": EncodeHeader("=?base64?literal?=")}},
				map[string]string{"Mcp-Param-X": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
			{jsonrpc.Call{Method: "initialize"}, map[string]string{"Mcp-Session-Id": ""}},
			{jsonrpc.Call{Method: "x"}, map[string]string{"Mcp-Session-Id": ""}},
		} {
			if _, err := c.Call(t.Context(), tc.call); err != nil {
				t.Fatal(err)
			}
			for k, want := range tc.want {
				if got := s.last().Header.Get(k); got != want {
					t.Errorf("%s %q: %s = %q, want %q", tc.call.Method, tc.call.Name, k, got, want)
				}
			}
		}
		c.Close(t.Context())
		if s.count("GET")+s.count("DELETE") != 0 || c.conn.SessionID() != "" {
			t.Error("this era has neither GET nor DELETE nor sessions")
		}
	})
}

// The examples of 2026-07-28 basic/transports/streamable-http, Value Encoding.
func TestEncodeHeader(t *testing.T) {
	for in, want := range map[string]string{
		"us-west1":           "us-west1",
		"Hello, 世界":          "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":           "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":       "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"":                   "",
		"a b\tc":             "a b\tc",
		"\x7f":               "=?base64?fw==?=",
		"=?base64?x":         "=?base64?x",
	} {
		if got := EncodeHeader(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// 2026-07-28 basic/transports/streamable-http, Cancellation: the end of the
// caller's context closes the stream.
func TestModernDroppedCallClosesItsStream(t *testing.T) {
	for _, events := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan struct{})
			n := newMemNet(t)
			n.serve("srv", &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				if m.Method != "slow" {
					result(w, m, "{}")
					return
				}
				if events {
					openEvents(w)
				}
				<-r.Context().Done()
				close(gone)
			}})
			c := dialMem(t, n, "modern", HTTP{}, false)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := c.Call(ctx, jsonrpc.Call{Method: "slow"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			<-gone
			if _, err := c.call("x"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A caller that ends its context after the answer does not cost the connection.
func TestConnectionsAreReused(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		synctest.Test(t, func(t *testing.T) {
			n := newMemNet(t)
			n.serve("srv", &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				openEvents(w)("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
			}})
			c := dialMem(t, n, era, HTTP{}, false)
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if _, err := c.Call(ctx, jsonrpc.Call{Method: "x"}); err != nil {
					t.Fatal(err)
				}
				cancel()
				synctest.Wait()
			}
			if n.Dials() != 1 {
				t.Errorf("%d connections", n.Dials())
			}
		})
	}
}

// 2026-07-28 basic/patterns/subscriptions: a listen stream lives as long as it
// likes; its end is told.
func TestModernListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		n.serve("srv", &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			send := openEvents(w)
			send("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n")
			for i := range 48 {
				time.Sleep(time.Hour)
				send("data: {\"jsonrpc\":\"2.0\",\"method\":\"n%d\"}\n\n", i)
			}
		}})
		c := dialMem(t, n, "modern", HTTP{}, false)
		start := time.Now()
		_, err := c.Call(t.Context(), jsonrpc.Call{Method: "subscriptions/listen", ID: jsonrpc.StringID("sub")})
		if err == nil || !strings.Contains(err.Error(), "ended the stream without an answer") {
			t.Error(err)
		}
		if d := time.Since(start); d != 48*time.Hour {
			t.Error(d)
		}
		if len(c.h.notes) != 49 {
			t.Errorf("%d notifications", len(c.h.notes))
		}
		if note := <-c.h.notes; note.Stream != "listen sub" || note.On != `"sub"` {
			t.Errorf("%+v", note)
		}
	})
}

func TestHTTPManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		n.serve("srv", &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			time.Sleep(time.Duration(len(m.ID)) * time.Second)
			result(w, m, string(m.ID))
		}})
		c := dialMem(t, n, "modern", HTTP{}, false)
		errs := make(chan error)
		for range 200 {
			go func() {
				id := c.NewID()
				b, err := c.Call(t.Context(), jsonrpc.Call{Method: "x", ID: id})
				if err == nil && string(b) != string(id) {
					err = fmt.Errorf("%s got %s", id, b)
				}
				errs <- err
			}()
		}
		for range 200 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}
