package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// A Client is one connection to one server with its negotiated era. It is safe
// for concurrent use. It does not reconnect and retries nothing: when Done is
// closed it is of no use any more.
type Client struct {
	s   *session
	gen generationBox

	mu       sync.Mutex // guards the switch to the draft
	switched bool
}

// Connect connects to a server, finds its era and generation (see era.go) and
// returns when the server can be asked. ctx bounds all of that and has no
// effect on the connection afterwards.
//
// Errors are sentences. ErrSessionLost: Options.Session is not known any more.
// ErrAuth: a sign-in is wanted.
func Connect(ctx context.Context, o Options) (*Client, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Handler == nil {
		o.Handler = deaf{}
	}
	if o.Generation == "auto" {
		o.Generation = ""
	}
	c := &Client{}
	h := &handshake{o: o, c: c}
	s, err := h.run(ctx)
	if err != nil {
		return nil, err
	}
	c.s = s
	go func() {
		<-s.peer.Done()
		if s.getInfo().Session == "" {
			// A session can be taken up again, and its questions with it.
			s.withdrawAll("the connection to the server ended")
		}
		if k, ok := c.gen.get().(*core); ok {
			k.recv.end()
		}
	}()
	return c, nil
}

// Info is what the handshake found. Its Generation and Can can change once,
// when a legacy server shows later that it speaks the draft; Handler's
// ToolsChanged is called then.
func (c *Client) Info() Info { return c.s.getInfo() }

// Tasks is the negotiated generation of tasks.
func (c *Client) Tasks() Tasks { return current{c} }

// Tools fetches the list of tools, all pages of it, with what each tool says of
// tasks and, in words, why it cannot run as one here.
func (c *Client) Tools(ctx context.Context) ([]taskmodel.Tool, error) {
	if g, ok := c.gen.get().(interface {
		listTools(context.Context) ([]taskmodel.Tool, error)
	}); ok {
		return g.listTools(ctx)
	}
	return c.s.listTools(ctx, nil)
}

// Answer sends a person's answer to a question that this connection asked. On
// an error nothing has been taken by the server unless the error says
// otherwise, and the question is still open, except for ErrNoQuestion.
func (c *Client) Answer(ctx context.Context, a taskmodel.Answer) error {
	if c.s.ended() {
		return c.s.wrap("answering a question", ErrClosed)
	}
	if found, err := c.s.reply(ctx, a); found {
		return err
	}
	return c.gen.get().answer(ctx, a)
}

// RootsChanged tells the server that the roots have changed. The modern era
// has no such message: there the server asks when it needs them.
func (c *Client) RootsChanged(ctx context.Context) error {
	if c.s.modern.Load() || c.s.opts.Roots == nil {
		return nil
	}
	return c.s.notify(ctx, "notifications/roots/list_changed", nil, nil)
}

// SetLogLevel asks for log messages from level on (logging/setLevel). In the
// modern era the level goes with each later request; "" there asks for none.
func (c *Client) SetLogLevel(ctx context.Context, level string) error {
	if c.s.modern.Load() {
		c.s.level.Store(level)
		return nil
	}
	if memberAt(c.s.getInfo().Capabilities, "logging") == nil {
		return c.s.wrap("setting the log level", fmt.Errorf("%w: it declares no logging", ErrUnsupported))
	}
	_, err := c.s.call(ctx, "logging/setLevel", map[string]any{"level": level}, "", nil)
	return err
}

// Ping asks the server whether it is there. The modern era has no ping;
// server/discover stands in.
func (c *Client) Ping(ctx context.Context) error {
	method := "ping"
	if c.s.modern.Load() {
		method = "server/discover"
	}
	params, header := c.s.modernParams(nil, false)
	var p any
	if params != nil {
		p = params
	}
	_, err := c.s.call(ctx, method, p, "", header)
	if rpcErrorOf(err) != nil {
		return nil // it answers
	}
	return err
}

// Session is what takes this HTTP session up again later: Options.Session,
// Version and SessionInit. id is "" where there is no session.
func (c *Client) Session() (id, version string, init json.RawMessage) {
	i := c.s.getInfo()
	return i.Session, i.ProtocolVersion, i.Init
}

// PID is the process id of a stdio server, 0 elsewhere.
func (c *Client) PID() int {
	if p, ok := c.s.conn.(interface{ PID() int }); ok {
		return p.PID()
	}
	return 0
}

// Push says how the stream for unasked messages fares that Streamable HTTP has
// beside the answers: "open", "waiting" (it broke and is tried again), "none"
// with the reason, or "" where there is nothing of the kind.
func (c *Client) Push() (state, why string) {
	if p, ok := c.s.conn.(interface{ Push() (string, string) }); ok {
		return p.Push()
	}
	return "", ""
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.s.peer.Done() }

// Err says in words why the connection has ended; nil while it lasts.
func (c *Client) Err() error {
	err := c.s.peer.Err()
	if err == nil {
		return nil
	}
	return c.s.wrap("the connection", err)
}

// Leave tells the server that the answers to the requests that wait for the ends
// of tasks are not wanted any more, and changes nothing else: what the server
// asks before it knows is still heard. Close does it too; who cares for such
// questions calls Leave first. It takes a second at most.
func (c *Client) Leave(ctx context.Context) {
	if k, ok := c.gen.get().(*core); ok {
		k.leave(ctx)
	}
}

// Close ends the connection within ctx. Open questions are not answered. An
// HTTP session is ended on the server when endSession says so; else it stays
// for a later Connect.
func (c *Client) Close(ctx context.Context, endSession bool) error {
	if g := c.gen.get(); g != nil {
		g.close(ctx)
	}
	keepSession(c.s.conn, !endSession)
	if err := c.s.peer.Close(ctx); err != nil {
		return c.s.wrap("closing the connection", err)
	}
	return nil
}

// current is Tasks over whatever generation is in force when it is called.
type current struct{ c *Client }

func (t current) tasks() Tasks { return t.c.gen.get() }

func (t current) Start(ctx context.Context, c StartCall) (Started, error) {
	return t.tasks().Start(ctx, c)
}
func (t current) Get(ctx context.Context, id string) (taskmodel.Snapshot, error) {
	return t.tasks().Get(ctx, id)
}
func (t current) List(ctx context.Context, cursor string, next func(string)) (Page, error) {
	return t.tasks().List(ctx, cursor, next)
}
func (t current) Result(ctx context.Context, id string) (taskmodel.Outcome, error) {
	return t.tasks().Result(ctx, id)
}
func (t current) Cancel(ctx context.Context, id string) (*taskmodel.Snapshot, error) {
	return t.tasks().Cancel(ctx, id)
}
func (t current) Delete(ctx context.Context, id string) error { return t.tasks().Delete(ctx, id) }
func (t current) Watch(ctx context.Context, ids []string) error {
	return t.tasks().Watch(ctx, ids)
}

// URLElicitations reads an outcome's error as -32042; nil when it is none. A
// task can end with it, since its outcome is what the call would have given.
func URLElicitations(e *taskmodel.RPCError) *URLElicitationError {
	if e == nil {
		return nil
	}
	return urlElicitation(e)
}

// becomeDraft switches a legacy connection to the draft, because the server has
// shown that it speaks it; false when that is not open any more.
func (c *Client) becomeDraft(s *session, why string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.switched || s.modern.Load() || s.opts.Generation != "" || s.getInfo().Generation == taskmodel.GenCore {
		return false
	}
	c.switched = true
	s.log.Info("the server speaks the draft of tasks", "server", s.server(), "why", why)
	s.setInfo(func(i *Info) { i.Generation = taskmodel.GenDraft })
	c.gen.set(newDraft(s))
	s.handler().ToolsChanged()
	return true
}

// kindError adds one of the package's errors to an error, so that errors.Is
// finds it; the words stay.
type kindError struct {
	err  error
	kind error
}

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.err, e.kind} }

// withKind is err, found by errors.Is under kind too.
func withKind(err, kind error) error { return &kindError{err, kind} }

// unsupported is the error of an operation that is not offered; why says what
// is lacking.
func (s *session) unsupported(doing, why string) error {
	if why == "" {
		why = ErrUnsupported.Error()
	}
	return withKind(&sessionError{server: s.server(), doing: doing, words: why}, ErrUnsupported)
}

// deaf is the Handler of who wants to hear nothing.
type deaf struct{}

func (deaf) Snapshot(taskmodel.Observation)                   {}
func (deaf) Progress(string, string, taskmodel.Progress)      {}
func (deaf) Asked(taskmodel.Question)                         {}
func (deaf) Withdrawn(taskmodel.QuestionID, string)           {}
func (deaf) ElicitationComplete(string)                       {}
func (deaf) Log(taskmodel.LogLine)                            {}
func (deaf) ToolsChanged()                                    {}
func (deaf) Pushing([]string)                                 {}
func (deaf) ReceiverTask(taskmodel.Observation, ReceiverInfo) {}
func (deaf) Wire(taskmodel.WireEntry)                         {}

var _ jsonrpc.Handler = (*inbound)(nil)
