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

// oldServer speaks the HTTP+SSE transport of 2024-11-05.
func oldServer(endpoint string) (*script, chan string) {
	out := make(chan string, 100)
	return &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		if r.Method == http.MethodGet {
			send := openEvents(w)
			if endpoint == "" {
				<-r.Context().Done()
				return
			}
			if endpoint == "end" {
				return
			}
			send("event: endpoint\r\ndata: %s\r\n\r\n", endpoint)
			for {
				select {
				case s := <-out:
					if s == "end" {
						return
					}
					send("event: message\r\ndata: %s\r\n\r\n", s)
				case <-r.Context().Done():
					return
				}
			}
		}
		switch {
		case m.Method == "refuse":
			http.Error(w, "no", 500)
			return
		case m.Kind == jsonrpc.KindRequest:
			out <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"path":%q}}`, m.ID, r.URL.String())
		case m.Method == "end":
			out <- "end"
		}
		w.WriteHeader(202)
		fmt.Fprint(w, "Accepted")
	}}, out
}

// 2024-11-05 basic/transports, HTTP with SSE; RFC 3986 section 5.
func TestOldSSE(t *testing.T) {
	for endpoint, want := range map[string]string{
		"/messages?sessionId=1":  "/messages?sessionId=1",
		"messages?sessionId=1":   "/a/messages?sessionId=1",
		"?sessionId=1":           "/a/sse?sessionId=1",
		"http://srv:80/m#x":      "/m",
		"../messages/?session=x": "/messages/?session=x",
	} {
		t.Run(endpoint, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet(t)
				s, _ := oldServer(endpoint)
				n.serve("srv", s)
				c := dialMem(t, n, "sse", HTTP{URL: "http://srv/a/sse"}, false)
				if got, err := c.call("tools/list"); err != nil || got != fmt.Sprintf(`{"path":%q}`, want) {
					t.Error(got, err)
				}
				if err := c.Notify(t.Context(), "n", nil, nil); err != nil {
					t.Error(err)
				}
				if _, err := c.call("refuse"); err == nil || !strings.Contains(err.Error(), "500") {
					t.Error(err)
				}
				time.Sleep(time.Hour)
				if _, err := c.call("again"); err != nil {
					t.Error(err)
				}
				c.Close(t.Context())
				if s.count("DELETE") != 0 || s.count("GET") != 1 {
					t.Errorf("log %q", s.seen())
				}
			})
		})
	}
}

func TestOldSSEStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		s, _ := oldServer("/m")
		n.serve("srv", s)
		c := dialMem(t, n, "sse", HTTP{}, false)
		c.Notify(t.Context(), "end", nil, nil)
		<-c.Done()
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), "closed its event stream") {
			t.Error(err)
		}
		if _, err := c.call("x"); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestOldSSECannotBeOpened(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://evil/m":  "another origin",
		"//srv:81/m":     "another origin",
		"https://srv/m":  "another origin",
		"javascript:x()": "another origin",
		"":               "endpoint event does not come",
		"end":            "before the endpoint event",
		"%zz":            "no URL",
	} {
		t.Run(endpoint, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet(t)
				s, _ := oldServer(endpoint)
				n.serve("srv", s)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				client := n.client()
				defer client.CloseIdleConnections()
				_, err := (&HTTP{URL: "http://srv/sse", Client: client}).Dial(ctx, "sse")
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("err = %v", err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		n.serve("srv", session(nil))
		client := n.client()
		defer client.CloseIdleConnections()
		_, err := (&HTTP{URL: "http://srv/sse", Client: client}).Dial(t.Context(), "sse")
		var st *StatusError
		if !errors.As(err, &st) || st.Status != 405 {
			t.Errorf("err = %v", err)
		}
	})
}
