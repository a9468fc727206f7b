package soak

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"mcptasks/mcp/demo/faulty"
	"mcptasks/mcp/transport"
)

var errRefused = errors.New("dial tcp 192.0.2.1:80: connect: connection refused")

// A wire is a network in memory with one HTTP server on it, so that HTTP runs
// under the clock of testing/synctest.
type wire struct {
	server *http.Server
	client *http.Client
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error   { w.once.Do(func() { close(w.done) }); return nil }
func (w *wire) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func newWire(s *faulty.Server) *wire {
	w := &wire{conns: make(chan net.Conn), done: make(chan struct{})}
	w.server = &http.Server{Handler: s.Handler()}
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		a, b := net.Pipe()
		select {
		case w.conns <- b:
			return a, nil
		case <-w.done:
			return nil, errRefused
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}}
	go func() { _ = w.server.Serve(w) }()
	return w
}

func (w *wire) dialer() *transport.HTTP {
	return &transport.HTTP{URL: "http://ci.example/mcp", Client: w.client}
}

func (w *wire) end() {
	w.client.CloseIdleConnections()
	_ = w.server.Close()
}
