// Package memnet is a network in memory with HTTP servers on it, so that HTTP
// runs under the clock of testing/synctest.
//
// It is for tests, and imports the standard library only.
package memnet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// A Net is a network of hosts by name. Its zero value has none. It is safe for
// concurrent use.
type Net struct {
	mu    sync.Mutex
	hosts map[string]*listener
	dials atomic.Int64
}

// Dials is how many connections were made.
func (n *Net) Dials() int64 { return n.dials.Load() }

// Listen makes a host that takes connections at any port until it is closed.
func (n *Net) Listen(host string) net.Listener {
	l := &listener{host: host, conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts = map[string]*listener{}
	}
	n.hosts[host] = l
	return l
}

// Transport speaks HTTP on the network, to nobody else.
func (n *Net) Transport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 16, DialContext: n.dial}
}

func (n *Net) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: errors.New("connect: connection refused")}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	l := n.hosts[host]
	n.mu.Unlock()
	if l == nil {
		return nil, refused
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		n.dials.Add(1)
		return here, nil
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A Site is one HTTP server on a network of its own, with a client for it.
type Site struct {
	URL    string
	Client *http.Client
	server *http.Server
}

// Serve starts a server that answers with h. It lasts until Close.
func Serve(h http.Handler) *Site {
	var n Net
	s := &Site{URL: "http://ci.example/mcp", Client: &http.Client{Transport: n.Transport()}, server: &http.Server{Handler: h}}
	l := n.Listen("ci.example")
	go func() { _ = s.server.Serve(l) }()
	return s
}

// Close ends the server and its connections.
func (s *Site) Close() {
	s.Client.CloseIdleConnections()
	_ = s.server.Close()
}

type listener struct {
	host  string
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *listener) Addr() net.Addr { return address(l.host) }

// An address is one on this network.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
