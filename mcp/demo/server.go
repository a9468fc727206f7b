package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// Options make a Server. The zero value is a server of 2025-11-25 without any
// task.
type Options struct {
	Generation taskmodel.Generation // "" is 2025-11-25
	Name       string               // serverInfo.name; "" is mcptasks-demo
	Tasks      int                  // tasks that are there at the start, of every age and kind
	Arrivals   int                  // further ones that come by themselves, one every half minute or so
	Seed       uint64               // the same seed gives the same ids, durations and results; 0 takes a random one
	Speed      float64              // how many times faster work, its TTLs and its poll intervals go; 0 is 1
	PageSize   int                  // of tasks/list; 0 is 50
	Log        *slog.Logger         // nil: nothing is logged

	// Now and AfterFunc are the clock; nil is package time's. A clock that is
	// given must give both, as Manual does.
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)

	// NoReceiver makes the server as one that knows nothing of the client's
	// own tasks (2025-11-25): tools that need them are not listed.
	NoReceiver bool
}

// A Server is one demo server: one set of tasks, any number of sessions. It is
// safe for concurrent use. Close ends it.
type Server struct {
	opts   Options
	log    *slog.Logger
	engine *engine
	secret []byte // signs cursors and request states
	legacy *legacyHTTP
	done   chan struct{} // closed by Close

	mu      sync.Mutex
	tools   []*tool
	succeed map[string]bool
	closed  bool
	arrive  func(Handle)
	visited map[string]bool // plain calls whose page was visited
}

// A Handle names a task of the server, for those who must be told of it from
// outside: 2026-07-28 has no listing.
type Handle struct {
	ID   string
	Tool string
	Args json.RawMessage
}

// New makes a server and its first tasks. It panics on a generation that does
// not exist, which is a fault in the program.
func New(o Options) *Server {
	if o.Generation == "" {
		o.Generation = taskmodel.GenCore
	}
	if o.Name == "" {
		o.Name = "mcptasks-demo"
	}
	if o.PageSize <= 0 {
		o.PageSize = 50
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var r rules
	switch o.Generation {
	case taskmodel.GenCore:
		r = coreRules
	case taskmodel.GenExtension:
		r = extensionRules
	case taskmodel.GenDraft:
		r = draftRules
	default:
		panic("demo: no generation " + string(o.Generation))
	}
	s := &Server{opts: o, log: log, engine: newEngine(o, r), succeed: map[string]bool{}, visited: map[string]bool{}, done: make(chan struct{})}
	s.secret = make([]byte, 32)
	_, _ = s.engine.idRand.Read(s.secret)
	s.legacy = newLegacyHTTP(s)
	for _, t := range catalogue(o.Generation) {
		if o.NoReceiver && (t.name == "survey_owner" || t.name == "summarise_thread") {
			continue
		}
		s.tools = append(s.tools, t)
	}
	s.engine.ended = s.ended
	s.populate(o.Tasks)
	return s
}

// Close stops all work and ends all sessions. Clients see their connections
// end.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.done)
	s.mu.Unlock()
	s.legacy.close()
	s.engine.close()
}

// Generation is the one that this server speaks.
func (s *Server) Generation() taskmodel.Generation { return s.opts.Generation }

// Skew puts the server's clock forward by d, or back: the times that it says
// from then on are wrong by that, while its work goes on as before.
func (s *Server) Skew(d time.Duration) {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.skew = d
}

// Handles are the tasks that the server has now, oldest first.
func (s *Server) Handles() []Handle {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	var out []Handle
	for _, j := range s.engine.order {
		if !j.hidden {
			out = append(out, Handle{j.id, j.tool.name, j.args})
		}
	}
	return out
}

// OnArrival names who is told of each task that comes by itself. f must not
// block and must not call the server.
func (s *Server) OnArrival(f func(Handle)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrive = f
}

// newSpeaker gives a session its generation.
func (s *Server) newSpeaker(ses *session) speaker {
	switch s.opts.Generation {
	case taskmodel.GenExtension:
		return newExtension(ses)
	case taskmodel.GenDraft:
		return newDraft(ses)
	}
	return newCore(ses)
}

// ended hears of each end of a job, with the engine's mutex held.
func (s *Server) ended(j *job) {
	if j.status != completed || j.out.isError {
		return
	}
	s.mu.Lock()
	first := !s.succeed[j.tool.name]
	s.succeed[j.tool.name] = true
	unlocked := false
	for _, t := range s.tools {
		unlocked = unlocked || t.afterTool == j.tool.name
	}
	s.mu.Unlock()
	if first && unlocked {
		s.engine.tell(event{kind: retooled})
	}
}

// listed are the tools that there are now.
func (s *Server) listed() []*tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*tool
	for _, t := range s.tools {
		if t.afterTool == "" || s.succeed[t.afterTool] {
			out = append(out, t)
		}
	}
	return out
}

// tool finds a tool by name.
func (s *Server) tool(name string) *tool {
	for _, t := range s.listed() {
		if t.name == name {
			return t
		}
	}
	return nil
}

// A connOutlet queues messages for a connection that is one channel, and sends
// them in order from one goroutine.
type connOutlet struct {
	mu    sync.Mutex
	queue []jsonrpc.Outgoing
	wake  chan struct{}
}

func (o *connOutlet) deliver(b json.RawMessage, kind jsonrpc.Kind, method, about string) {
	m := jsonrpc.Outgoing{Bytes: b, Kind: kind, Method: method}
	if kind == jsonrpc.KindResponse {
		m.ID, m.InReplyTo = jsonrpc.ID(about), jsonrpc.ID(about)
	} else if kind == jsonrpc.KindRequest {
		var e envelope
		if json.Unmarshal(b, &e) == nil {
			m.ID = jsonrpc.ID(e.ID)
		}
	}
	o.mu.Lock()
	o.queue = append(o.queue, m)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *connOutlet) attached(string) bool { return true }

// pump sends until ctx ends and nothing is left, or until send fails.
func (o *connOutlet) pump(ctx context.Context, send func(jsonrpc.Outgoing) error) error {
	for {
		o.mu.Lock()
		batch := o.queue
		o.queue = nil
		o.mu.Unlock()
		for _, m := range batch {
			if err := send(m); err != nil {
				return err
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			o.mu.Lock()
			left := len(o.queue)
			o.mu.Unlock()
			if left == 0 {
				return ctx.Err()
			}
		}
	}
}

// sink hands what a connection receives to its session.
type sink struct{ s *session }

func (k sink) Message(b json.RawMessage, _ string, _ jsonrpc.ID) { k.s.message(b, nil) }
func (k sink) Failed(id jsonrpc.ID, err error) {
	k.s.log.Debug("request to the client failed", "id", id.String(), "err", err)
}
func (k sink) Noise(kind string, _ []byte) { k.s.log.Debug("noise from the client", "kind", kind) }

// ServeConn serves one client on conn until conn ends or ctx does. It closes
// conn. The error is nil when the client ended the connection.
func (s *Server) ServeConn(ctx context.Context, conn jsonrpc.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &connOutlet{wake: make(chan struct{}, 1)}
	ses := newSession(s, out)
	defer ses.close()
	if err := conn.Start(ctx, sink{ses}); err != nil {
		return fmt.Errorf("starting the demo server's connection: %w", err)
	}
	pumped := make(chan error, 1)
	// What is queued still goes out when the server closes; a connection that
	// takes nothing any more is broken off below.
	sending, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	go func() {
		pumped <- out.pump(ctx, func(m jsonrpc.Outgoing) error { return conn.Send(sending, m) })
	}()
	var err error
	select {
	case <-conn.Done():
	case <-s.done:
	case err = <-pumped:
		pumped <- nil
		select {
		case <-conn.Done(): // the write failed because the client has gone
			err = nil
		default:
		}
	}
	if x, ok := ses.speak.(*extension); ok {
		x.goodbye()
	}
	cancel()
	defer time.AfterFunc(time.Second, breakOff).Stop()
	<-pumped
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	_ = conn.Close(closing)
	return err
}

// maxLine bounds one message on stdio.
const maxLine = 64 << 20

// ServeStdio serves one client over a pair of pipes, one message a line, until
// in ends (then the error is nil) or ctx does. It does not wait for a read of
// in that is under way when ctx ends.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := &connOutlet{wake: make(chan struct{}, 1)}
	ses := newSession(s, o)
	defer ses.close()
	ended := make(chan error, 2)
	go func() {
		ended <- o.pump(ctx, func(m jsonrpc.Outgoing) error {
			_, err := out.Write(append(append([]byte(nil), m.Bytes...), '\n'))
			return err
		})
	}()
	go func() {
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		for lines.Scan() {
			if b := lines.Bytes(); len(b) > 0 {
				ses.message(append([]byte(nil), b...), nil)
			}
		}
		ended <- lines.Err()
	}()
	var err error
	select {
	case err = <-ended:
	case <-s.done:
	}
	if errors.Is(err, context.Canceled) {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the demo server on stdio: %w", err)
	}
	return nil
}
