package transport

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"mcptasks/mcp/jsonrpc"
)

// errPeerGone is the error of a pipe whose other end was closed.
var errPeerGone = errors.New("the other side has closed the connection")

// Pipe makes two connections, each of which receives what the other sends, in
// order. Nothing is lost or delayed, and Send never blocks. It serves the
// in-process demo and tests.
func Pipe() (client, server jsonrpc.Conn) {
	a, b := newPipeConn(), newPipeConn()
	a.other, b.other = b, a
	return a, b
}

type pipeConn struct {
	other *pipeConn
	done  chan struct{}

	mu      sync.Mutex
	queue   []json.RawMessage
	wake    chan struct{} // holds one
	started bool
	closing error // why no more comes in
	err     error
}

func newPipeConn() *pipeConn {
	return &pipeConn{done: make(chan struct{}), wake: make(chan struct{}, 1)}
}

func (c *pipeConn) Start(_ context.Context, sink jsonrpc.Sink) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return errors.New("this connection was started before")
	}
	c.started = true
	go c.deliver(sink)
	return nil
}

func (c *pipeConn) deliver(sink jsonrpc.Sink) {
	for {
		c.mu.Lock()
		batch, closing := c.queue, c.closing
		c.queue = nil
		c.mu.Unlock()
		for _, b := range batch {
			sink.Message(b, "pipe", "")
		}
		if len(batch) > 0 {
			continue
		}
		if closing != nil {
			c.finish(closing)
			return
		}
		<-c.wake
	}
}

func (c *pipeConn) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}

// put hands one message to this end; a nil b closes it for err.
func (c *pipeConn) put(b json.RawMessage, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing != nil {
		return jsonrpc.ErrClosed
	}
	if b == nil {
		c.closing = err
		if !c.started && c.err == nil {
			c.err = err
			close(c.done)
		}
	} else {
		c.queue = append(c.queue, b)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

func (c *pipeConn) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	closed := c.closing != nil
	c.mu.Unlock()
	if closed {
		return jsonrpc.ErrClosed
	}
	return c.other.put(m.Bytes, nil)
}

// Close ends both directions; what was sent before still arrives.
func (c *pipeConn) Close(ctx context.Context) error {
	c.other.put(nil, errPeerGone)
	c.put(nil, jsonrpc.ErrClosed)
	c.mu.Lock()
	if !c.started && c.err == nil {
		c.err = jsonrpc.ErrClosed
		close(c.done)
	}
	c.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *pipeConn) Done() <-chan struct{} { return c.done }

func (c *pipeConn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// A PipeServer is a dialer whose every connection is served in this process.
type PipeServer struct {
	serve func(ctx context.Context, server jsonrpc.Conn)
}

// PipeDialer makes a dialer that runs serve, in a goroutine of its own, with
// the server's end of a fresh Pipe at each Dial. serve's context ends when the
// client's end is closed; its return closes the connection.
func PipeDialer(serve func(ctx context.Context, server jsonrpc.Conn)) *PipeServer {
	return &PipeServer{serve: serve}
}

// Dial makes a connection; the era makes no difference to it.
func (d *PipeServer) Dial(ctx context.Context, era string) (jsonrpc.Conn, error) {
	client, server := Pipe()
	sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		<-client.Done()
		cancel()
	}()
	go func() {
		defer cancel()
		d.serve(sctx, server)
		server.Close(sctx)
	}()
	return client, nil
}

// Kind is "stdio": a pipe behaves like one.
func (d *PipeServer) Kind() string { return "stdio" }
