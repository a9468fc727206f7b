package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/memnet"
)

// A memNet is a network in memory whose servers end with the test.
type memNet struct {
	memnet.Net
	t *testing.T
}

func newMemNet(t *testing.T) *memNet { return &memNet{t: t} }

func (n *memNet) serve(host string, h http.Handler) {
	l := n.Listen(host)
	s := &http.Server{Handler: h}
	go s.Serve(l)
	n.t.Cleanup(func() { s.Close() })
}

func (n *memNet) client() *http.Client { return &http.Client{Transport: n.Transport()} }

// script is a server whose handler sees each request with its body read.
type script struct {
	mu   sync.Mutex
	log  []string
	reqs []*http.Request
	do   func(s *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message)
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Decode(b, 0)
	s.mu.Lock()
	what := m.Method
	if m.Kind == jsonrpc.KindResponse {
		what = "answer " + string(m.ID)
	}
	s.log = append(s.log, strings.TrimSpace(r.Method+" "+what))
	s.reqs = append(s.reqs, r)
	s.mu.Unlock()
	s.do(s, w, r, m)
}

func (s *script) count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.log {
		if l == what {
			n++
		}
	}
	return n
}

// seen is what was asked, in order.
func (s *script) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// first is the first request.
func (s *script) first() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reqs[0]
}

// last is the last POST.
func (s *script) last() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.reqs) - 1; i >= 0; i-- {
		if s.reqs[i].Method == http.MethodPost {
			return s.reqs[i]
		}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, format string, a ...any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, format, a...)
}

func result(w http.ResponseWriter, m jsonrpc.Message, r string) {
	writeJSON(w, 200, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, r)
}

func openEvents(w http.ResponseWriter) func(format string, a ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	flush := func() { http.NewResponseController(w).Flush() }
	flush()
	return func(format string, a ...any) {
		fmt.Fprintf(w, format, a...)
		flush()
	}
}

// session is the usual server: initialize with a session, 202, no GET, and rest.
func session(rest func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message)) *script {
	return &script{do: func(s *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		switch {
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "sess-1")
			result(w, m, `{"protocolVersion":"2025-11-25"}`)
		case m.Method == "notifications/initialized":
			w.WriteHeader(202)
		case r.Method == http.MethodDelete:
			w.WriteHeader(200)
		case rest == nil:
			http.Error(w, "no", 405)
		default:
			rest(w, r, m)
		}
	}}
}

type client struct {
	*jsonrpc.Peer
	conn *httpConn
	h    *peerHandler
}

// dialMem connects a peer to http://srv/mcp; without init no handshake is done.
func dialMem(t *testing.T, n *memNet, era string, conf HTTP, handshake bool) *client {
	t.Helper()
	if conf.URL == "" {
		conf.URL = "http://srv/mcp"
	}
	conf.Client = n.client()
	conn, err := conf.Dial(t.Context(), era)
	if err != nil {
		t.Fatal(err)
	}
	h := newPeerHandler()
	c := &client{jsonrpc.NewPeer(conn, h, jsonrpc.PeerOptions{}), conn.(*httpConn), h}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close(context.Background())
		conf.Client.CloseIdleConnections()
	})
	if handshake {
		if _, err := c.call("initialize"); err != nil {
			t.Fatal(err)
		}
		c.conn.SetVersion("2025-11-25")
		if err := c.Notify(context.Background(), "notifications/initialized", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *client) call(method string) (string, error) {
	b, err := c.Call(context.Background(), jsonrpc.Call{Method: method})
	return string(b), err
}
