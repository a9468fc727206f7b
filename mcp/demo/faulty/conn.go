package faulty

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/jsonrpc"
)

var (
	errRestarted = errors.New("the server was restarted")
	errClosed    = errors.New("the server closed the connection")
	errReset     = errors.New("connection reset by the server")
)

// Dialer connects in memory through the script. It is an mcp.Dialer.
//
// In memory a message is handed over whole: "slowly" makes it late by the time
// that its bytes would take, and "halfclose" lets nothing more come out. What
// is for processes and HTTP only does nothing.
func (s *Server) Dialer() Dialer { return Dialer{s} }

// A Dialer makes connections to one faulty server.
type Dialer struct{ s *Server }

// Kind is "stdio".
func (d Dialer) Kind() string { return "stdio" }

// Dial connects, unless the script's start says otherwise.
func (d Dialer) Dial(ctx context.Context, era string) (jsonrpc.Conn, error) {
	s := d.s
	c := &conn{s: s, link: newLink(s.book), done: make(chan struct{})}
	for _, r := range s.book.all("start") {
		switch r.action {
		case "late":
			select {
			case <-time.After(r.wait):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case "close", "crash", "reset":
			return nil, errClosed
		case "hang", "never":
			c.stuck = true
		case "clock":
			s.Demo().Skew(r.wait)
		}
	}
	inner, err := demo.Dialer(s.Demo()).Dial(ctx, era)
	if err != nil {
		return nil, err
	}
	c.inner = inner
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	return c, nil
}

// conn is the client's end of a connection in memory.
type conn struct {
	s     *Server
	inner jsonrpc.Conn
	link  *link
	done  chan struct{}

	mu    sync.Mutex
	sink  jsonrpc.Sink
	err   error
	over  bool
	stuck bool // nothing passes in either direction
	mute  bool // nothing comes out
}

func (c *conn) Start(ctx context.Context, sink jsonrpc.Sink) error {
	c.mu.Lock()
	c.sink = sink
	c.mu.Unlock()
	if err := c.inner.Start(ctx, c); err != nil {
		return err
	}
	go func() {
		select {
		case <-c.inner.Done():
			c.end(c.inner.Err())
		case <-c.done:
		}
	}()
	return nil
}

func (c *conn) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	if c.ended() {
		return c.Err()
	}
	ctx = context.WithoutCancel(ctx) // what comes late comes all the same
	for _, a := range c.link.incoming(m.Bytes) {
		c.perform(a, func(b []byte) {
			out := m
			out.Bytes = b
			_ = c.inner.Send(ctx, out)
		})
	}
	return nil
}

// Message is what the server sends.
func (c *conn) Message(b json.RawMessage, stream string, req jsonrpc.ID) {
	for _, a := range c.link.outgoing(b) {
		c.perform(a, func(b []byte) {
			c.mu.Lock()
			quiet := c.mute || c.over
			c.mu.Unlock()
			if !quiet {
				c.sink.Message(b, stream, req)
			}
		})
	}
}

// perform does one act; pass hands a message on.
func (c *conn) perform(a act, pass func([]byte)) {
	c.mu.Lock()
	stuck := c.stuck
	c.mu.Unlock()
	if stuck {
		return
	}
	switch a.do {
	case "deliver":
		wait := a.after + a.slow*time.Duration(len(a.bytes))
		deliver := func() {
			if a.once.take() {
				pass(a.bytes)
			}
		}
		if wait > 0 {
			time.AfterFunc(wait, deliver)
			return
		}
		deliver()
	case "close":
		c.end(errClosed)
	case "reset":
		c.end(errReset)
	case "crash":
		c.end(errReset)
		c.s.Restart(false)
	case "restart":
		c.end(errRestarted)
		c.s.Restart(a.rule.arg == "keep")
	case "halfclose":
		c.mu.Lock()
		c.mute = true
		c.mu.Unlock()
	case "hang":
		c.mu.Lock()
		c.stuck = true
		c.mu.Unlock()
	case "clock":
		c.s.Demo().Skew(a.rule.wait)
	}
}

func (c *conn) Failed(id jsonrpc.ID, err error) { c.sink.Failed(id, err) }
func (c *conn) Noise(kind string, b []byte)     { c.sink.Noise(kind, b) }

// end ends the connection as seen by the client, and the server's side of it.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over, c.err = true, err
	close(c.done)
	c.mu.Unlock()
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	// The other side may be the one that is calling: it must not be waited for.
	go func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		_ = c.inner.Close(ctx)
	}()
}

func (c *conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

func (c *conn) Close(ctx context.Context) error {
	c.end(nil)
	return c.inner.Close(ctx)
}

func (c *conn) Done() <-chan struct{} { return c.done }

func (c *conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
