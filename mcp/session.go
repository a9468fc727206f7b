package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// A session is one connection to one server and what the generations share on
// it: calls whose errors are sentences, the questions that are open, the
// progress tokens that are in use, and the handshake's findings.
//
// Everything in it is safe for concurrent use. Its parent is the Client, which
// also owns the generation; a generation holds the session and nothing else.
type session struct {
	opts      Options // Handler and Log are never nil here
	peer      *jsonrpc.Peer
	conn      jsonrpc.Conn
	transport string      // stdio | http | sse
	modern    atomic.Bool // the modern era; found by the handshake
	log       *slog.Logger
	tag       string // sets this connection's question ids apart from those of earlier ones

	infoMu sync.Mutex
	info   Info

	level  atomic.Value // string: the log level asked for, modern era
	rows   recent       // pages of a listing, until they are asked for
	tools  toolCache
	tokens tokens
	asked  questions
	calls  calls
}

// A generation is one of the three systems of tasks on one session.
type generation interface {
	Tasks
	// notification takes a notification of the server; false means that it is
	// not this generation's and the client treats it as it does everywhere.
	// It must not block.
	notification(n jsonrpc.Notification) bool
	// request takes a request of the server; false as above. It must not block.
	request(ctx context.Context, r *jsonrpc.Request) bool
	// answer sends a person's answer to a question that this generation asked.
	// Questions that came as a request of the server are answered by the
	// session and never come here.
	answer(ctx context.Context, a taskmodel.Answer) error
	// close ends what the generation has open (streams, waits) within ctx. The
	// connection is still up.
	close(ctx context.Context)
}

// newSession makes the session of one connection; its peer is set before the
// connection starts.
func newSession(o Options, conn jsonrpc.Conn, transport string) *session {
	s := &session{opts: o, conn: conn, transport: transport, log: o.Log}
	s.asked.open = make(map[string]*question)
	s.tag = connectionTag(o.Session)
	return s
}

// server is the server's name for people.
func (s *session) server() string { return s.opts.Name }

// handler is who hears what the server says unasked.
func (s *session) handler() Handler { return s.opts.Handler }

// Info returns what the handshake found, as it is now.
func (s *session) getInfo() Info {
	s.infoMu.Lock()
	defer s.infoMu.Unlock()
	return s.info
}

// setInfo changes the handshake's findings.
func (s *session) setInfo(change func(*Info)) {
	s.infoMu.Lock()
	defer s.infoMu.Unlock()
	change(&s.info)
}

// call asks the server and waits for its answer as long as ctx lasts. name is
// the tool or the task that the request is about ("" when none): it goes into
// the Mcp-Name header and into errors. Errors are sentences; see wrap.
//
// When ctx ends, the wait ends and the server is told nothing: whether
// dropping a request cancels it is the caller's to know.
func (s *session) call(ctx context.Context, method string, params any, name string, header map[string]string) (json.RawMessage, error) {
	return s.send(ctx, jsonrpc.Call{Method: method, Params: params, Name: name, Header: header})
}

// send is call for those who need the request's id.
func (s *session) send(ctx context.Context, c jsonrpc.Call) (json.RawMessage, error) {
	b, err := s.peer.Call(ctx, c)
	if err != nil {
		return nil, s.wrap(doing(c.Method, c.Name), err)
	}
	return b, nil
}

// notify tells the server something.
func (s *session) notify(ctx context.Context, method string, params any, header map[string]string) error {
	if err := s.peer.Notify(ctx, method, params, header); err != nil {
		return s.wrap("sending "+method, err)
	}
	return nil
}

// cancelRequest tells the server that the answer to one of our requests is not
// wanted any more (notifications/cancelled). It is for requests that are no
// tasks; it waits a second at most and its failure does not matter.
func (s *session) cancelRequest(id jsonrpc.ID, reason string) {
	if id == "" {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	s.withdrawRequest(ctx, id, reason)
}

// withdrawRequest is cancelRequest within ctx.
func (s *session) withdrawRequest(ctx context.Context, id jsonrpc.ID, reason string) {
	p := map[string]any{"requestId": json.RawMessage(id), "reason": reason}
	if err := s.peer.Notify(ctx, "notifications/cancelled", p, nil); err != nil {
		s.log.Debug("could not withdraw a request", "server", s.server(), "id", id.String(), "err", err)
	}
}

// doing says in words what a request is for.
func doing(method, name string) string {
	switch method {
	case "tools/call":
		return "calling the tool " + name
	case "tools/list":
		return "listing the tools"
	case "tasks/get":
		return "asking how task " + name + " stands"
	case "tasks/list":
		return "listing the tasks"
	case "tasks/result":
		return "fetching the result of task " + name
	case "tasks/cancel":
		return "cancelling task " + name
	case "tasks/delete":
		return "deleting task " + name
	case "tasks/update":
		return "answering task " + name
	case "initialize", "server/discover":
		return "opening the connection (" + method + ")"
	}
	return method
}

// wrap makes an error a sentence: server, what was being done, what happened.
// A JSON-RPC error stays findable as *taskmodel.RPCError; -32042 becomes a
// *URLElicitationError, a lost HTTP session ErrSessionLost, a wanted sign-in
// ErrAuth, a broken connection ErrClosed. Context errors pass through.
func (s *session) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	var own *sessionError
	if errors.As(err, &own) {
		return err
	}
	e := &sessionError{server: s.server(), doing: doing, cause: err}
	rpc := rpcErrorOf(err)
	switch {
	case s.lostSession(err):
		e.err, e.words = ErrSessionLost, ErrSessionLost.Error()
	case wantsSignIn(err):
		e.err, e.words = ErrAuth, ErrAuth.Error()+": "+err.Error()
	case rpc != nil:
		e.err = rpc
		if u := urlElicitation(rpc); u != nil {
			e.err = u
		}
		e.words = fmt.Sprintf("the server answered with error %d: %s", rpc.Code, rpc.Message)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.words = "gave up waiting for the answer"
	case errors.Is(err, jsonrpc.ErrClosed), s.ended():
		e.err, e.words = ErrClosed, ErrClosed.Error()+": "+err.Error()
	default:
		e.words = err.Error()
	}
	return e
}

// ended reports whether the connection has ended.
func (s *session) ended() bool {
	if s.peer == nil {
		return false
	}
	select {
	case <-s.peer.Done():
		return true
	default:
		return false
	}
}

// A sessionError names the server and what was being done. err is one of the
// package's errors or the server's own; cause is what came up from below, with
// the HTTP status and the like.
type sessionError struct {
	server string
	doing  string
	words  string
	err    error
	cause  error
}

func (e *sessionError) Error() string { return e.server + ": " + e.doing + ": " + e.words }

func (e *sessionError) Unwrap() []error {
	var out []error
	for _, err := range []error{e.err, e.cause} {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// generationBox holds the generation of a client, which can change once: a
// legacy server may show only later that it speaks the draft.
type generationBox struct{ v atomic.Value }

type generationCell struct{ generation }

func (b *generationBox) get() generation {
	c, _ := b.v.Load().(generationCell)
	return c.generation
}

func (b *generationBox) set(g generation) { b.v.Store(generationCell{g}) }
