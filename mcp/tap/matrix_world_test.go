//go:build unix

package tap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"mcptasks/mcp/demo/faulty"
	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/memnet"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// This file is the world of the matrix: a faulty server and a client, with a tap
// between them or without, all in memory and so under the clock of
// testing/synctest.

// A stream is a pipe without a bound: a write never waits, as with a kernel's
// pipe that is read in time.
type stream struct {
	mu     sync.Mutex
	more   *sync.Cond
	b      bytes.Buffer
	closed bool
}

func newStream() *stream {
	s := &stream{}
	s.more = sync.NewCond(&s.mu)
	return s
}

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	s.more.Broadcast()
	return s.b.Write(b)
}

func (s *stream) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.b.Len() == 0 {
		if s.closed {
			return 0, io.EOF
		}
		s.more.Wait()
	}
	return s.b.Read(b)
}

func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.more.Broadcast()
	return nil
}

// lines calls f with each line of r, without its end.
func lines(r io.Reader, f func([]byte)) {
	br := bufio.NewReader(r)
	for {
		l, err := br.ReadBytes('\n')
		if l = bytes.TrimSpace(l); len(l) > 0 {
			f(l)
		}
		if err != nil {
			return
		}
	}
}

// A stdioDialer reaches the faulty server over streams of lines, as over the
// pipes of a process; with tap set, through one.
type stdioDialer struct {
	s   *faulty.Server
	tap *Options
	end *sync.WaitGroup
}

func (stdioDialer) Kind() string { return "stdio" }

func (d stdioDialer) Dial(ctx context.Context, era string) (jsonrpc.Conn, error) {
	inner, err := d.s.Dialer().Dial(ctx, era)
	if err != nil {
		return nil, err
	}
	in, out := newStream(), newStream() // the server's stdin and stdout
	if err := inner.Start(context.Background(), writes{out}); err != nil {
		return nil, err
	}
	d.end.Go(func() {
		lines(in, func(l []byte) { _ = inner.Send(context.Background(), jsonrpc.Outgoing{Bytes: l}) })
		_ = inner.Close(context.Background())
	})
	d.end.Go(func() {
		<-inner.Done()
		_ = out.Close()
		_ = in.Close()
	})
	c := &lineConn{in: in, out: out, done: make(chan struct{})}
	if d.tap != nil {
		c.in, c.out = newStream(), newStream()
		o := *d.tap
		o.In, o.Out, o.CloseOut = c.in, c.out, true
		t := newTap(o.defaults())
		if o.Passive { // so that all is looked at, as for an answer of ours
			t.open.Add(1)
		}
		j := t.couple(in, out)
		d.end.Go(func() {
			<-inner.Done()
			j.finish()
			_ = c.in.Close() // the process is gone, and its pipes with it
			t.end("the server ended")
		})
	}
	return c, nil
}

// writes is a sink that makes lines of messages.
type writes struct{ to *stream }

func (w writes) Message(b json.RawMessage, _ string, _ jsonrpc.ID) {
	_, _ = w.to.Write(append(bytes.Clone(b), '\n'))
}
func (writes) Failed(jsonrpc.ID, error) {}
func (writes) Noise(string, []byte)     {}

// A lineConn is a client's end of two streams of lines.
type lineConn struct {
	in, out *stream
	done    chan struct{}
}

var errStdout = errors.New("the server closed stdout")

func (c *lineConn) Start(_ context.Context, sink jsonrpc.Sink) error {
	go func() {
		lines(c.out, func(l []byte) {
			if l[0] == '{' || l[0] == '[' {
				sink.Message(l, "stdio", "")
			} else {
				sink.Noise("a line on stdout that is no message", l)
			}
		})
		close(c.done)
	}()
	return nil
}

func (c *lineConn) Send(_ context.Context, m jsonrpc.Outgoing) error {
	_, err := c.in.Write(append(bytes.Clone(m.Bytes), '\n'))
	return err
}

func (c *lineConn) Close(context.Context) error {
	_ = c.in.Close()
	<-c.done
	return nil
}
func (c *lineConn) Done() <-chan struct{} { return c.done }
func (c *lineConn) Err() error            { return errStdout }

// httpDialer gives a dialer that reaches the faulty server over HTTP, through a
// tap where o is set, and what ends it all.
func httpDialer(s *faulty.Server, o *Options) (*transport.HTTP, func()) {
	var far, near memnet.Net
	const host = "ci.example"
	srv := &http.Server{Handler: s.Handler()}
	l := far.Listen(host)
	go func() { _ = srv.Serve(l) }()
	trip := far.Transport()
	mine := trip
	ctx, stop := context.WithCancel(context.Background())
	var taps sync.WaitGroup
	if o != nil {
		trip.DisableCompression = true
		over := *o
		over.URL, over.Public, over.Out = "http://ci.example/mcp", true, io.Discard
		base, _ := url.Parse(over.URL)
		l := near.Listen(host)
		taps.Go(func() { _ = serve(ctx, over.defaults(), base, l, trip) })
		mine = near.Transport()
	}
	return &transport.HTTP{URL: "http://ci.example/mcp", Client: &http.Client{Transport: mine}}, func() {
		mine.CloseIdleConnections()
		stop()
		taps.Wait()
		trip.CloseIdleConnections()
		_ = srv.Close()
	}
}

// A shelf is a journal in memory.
type shelf struct {
	journal.Store
	mu    sync.Mutex
	tasks map[string]taskmodel.Task
}

func (s *shelf) Queue(entries ...journal.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		if e.Task != nil {
			s.tasks[e.Task.ID] = *e.Task
		}
	}
}

func (s *shelf) rows() map[string]taskmodel.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]taskmodel.Task{}
	for k, v := range s.tasks {
		out[k] = v
	}
	return out
}

func (*shelf) Acquire(context.Context, string, string) (journal.Holder, bool, error) {
	return journal.Holder{}, true, nil
}
func (*shelf) ClaimIntents(context.Context, string, string) ([]journal.Intent, error) {
	return nil, nil
}
func (*shelf) PutTap(context.Context, journal.Tap) error { return nil }

func (s *shelf) memory(context.Context) (Memory, error) { return Memory{Store: s}, nil }

func words(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprint(err)
}
