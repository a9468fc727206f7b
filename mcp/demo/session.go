package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"mcptasks/mcp/jsonrpc"
)

// A session is the server's end of one client's messages: it reads envelopes
// strictly, keeps what is unanswered in both directions, and hands the rest to
// the generation's speaker. On 2026-07-28 over HTTP it lives for one request.
//
// Its mutex is never held while the engine is called: the engine calls the
// speaker's event under its own.
type session struct {
	srv   *Server
	owner int
	out   outlet
	log   *slog.Logger
	speak speaker

	mu       sync.Mutex
	inflight map[string]*inbound
	calls    map[string]*outbound
	nextID   int
	closed   bool
}

// A speaker is one generation's half of a session.
type speaker interface {
	// request must see to it that r is answered, now or later.
	request(r *inbound)
	notification(method string, params json.RawMessage)
	// event is called with the engine's mutex held.
	event(ev event)
}

// An outlet takes messages on their way to the client. It never blocks.
type outlet interface {
	// deliver sends one message. about is the raw id of the client's request
	// that it belongs with, "" for none.
	deliver(b json.RawMessage, kind jsonrpc.Kind, method, about string)
	// attached reports whether somebody can be reading what belongs with the
	// request about.
	attached(about string) bool
}

// An inbound is a request of the client.
type inbound struct {
	s        *session
	id       json.RawMessage
	method   string
	params   json.RawMessage
	header   http.Header // nil but on HTTP
	onCancel func()
	done     bool
	givenUp  bool
}

// An outbound is a request of ours.
type outbound struct {
	id    string
	about string
	then  func(result json.RawMessage, err *rpcError)
}

func newSession(srv *Server, out outlet) *session {
	s := &session{srv: srv, out: out, log: srv.log, inflight: map[string]*inbound{}, calls: map[string]*outbound{}}
	s.owner = srv.engine.newOwner()
	s.speak = srv.newSpeaker(s)
	srv.engine.listen(s.owner, func(ev event) { s.speak.event(ev) })
	return s
}

// close ends the session: nothing more is sent, its questions are free.
func (s *session) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.mu.Unlock()
	s.srv.engine.leave(s.owner)
}

// message takes one JSON text of the client. It returns the kind, and an error
// when the text is no message that this server accepts; the client has then
// been told where JSON-RPC says that it be.
func (s *session) message(b []byte, header http.Header) (jsonrpc.Kind, *rpcError) {
	m, kind, bad := parse(b)
	if bad != nil {
		s.post(enc(errorMessage{"2.0", m.replyID(), bad}), jsonrpc.KindResponse, "", string(m.ID))
		return kind, bad
	}
	switch kind {
	case jsonrpc.KindRequest:
		r := &inbound{s: s, id: m.ID, method: m.Method, params: m.Params, header: header}
		s.mu.Lock()
		if s.inflight[string(r.id)] != nil {
			s.mu.Unlock()
			e := &rpcError{Code: codeRequest, Message: "the id " + string(r.id) + " is that of a request still unanswered"}
			s.post(enc(errorMessage{"2.0", json.RawMessage("null"), e}), jsonrpc.KindResponse, "", "")
			return kind, e
		}
		s.inflight[string(r.id)] = r
		s.mu.Unlock()
		s.speak.request(r)
	case jsonrpc.KindNotification:
		s.speak.notification(m.Method, m.Params)
	case jsonrpc.KindResponse:
		s.response(m)
	}
	return kind, nil
}

func (s *session) response(m envelope) {
	s.mu.Lock()
	c := s.calls[string(m.ID)]
	delete(s.calls, string(m.ID))
	s.mu.Unlock()
	if c == nil {
		s.log.Debug("response to no open request", "id", string(m.ID))
		return
	}
	c.then(m.Result, m.Error)
}

// reply answers r with a result. A second answer, or one to a request that was
// given up, goes nowhere.
func (r *inbound) reply(result json.RawMessage) {
	if r.finish() {
		r.s.post(enc(struct {
			V      string          `json:"jsonrpc"`
			ID     json.RawMessage `json:"id"`
			Result json.RawMessage `json:"result"`
		}{"2.0", r.id, result}), jsonrpc.KindResponse, "", string(r.id))
	}
}

// fail answers r with an error.
func (r *inbound) fail(code int, format string, a ...any) {
	r.failWith(&rpcError{Code: code, Message: fmt.Sprintf(format, a...)})
}

func (r *inbound) failWith(e *rpcError) {
	if r.finish() {
		r.s.post(enc(errorMessage{"2.0", r.id, e}), jsonrpc.KindResponse, "", string(r.id))
	}
}

// finish takes r off the open requests and reports whether it was on it.
func (r *inbound) finish() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.done {
		return false
	}
	r.done = true
	if r.s.inflight[string(r.id)] == r {
		delete(r.s.inflight, string(r.id))
	}
	return !r.s.closed
}

// open reports whether r still waits for its answer.
func (r *inbound) open() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return !r.done
}

// whenGivenUp has f called once if the client gives the request up.
func (r *inbound) whenGivenUp(f func()) {
	r.s.mu.Lock()
	r.onCancel = f
	late := r.givenUp
	r.s.mu.Unlock()
	if late {
		f()
	}
}

// giveUp is what notifications/cancelled does: r gets no answer any more.
func (s *session) giveUp(id json.RawMessage) {
	s.mu.Lock()
	r := s.inflight[string(bytes.TrimSpace(id))]
	if r == nil {
		s.mu.Unlock()
		return
	}
	r.done, r.givenUp = true, true
	delete(s.inflight, string(r.id))
	f := r.onCancel
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// call sends a request to the client. then is called once with its answer, and
// never when the session ends before.
func (s *session) call(method string, params json.RawMessage, about string, then func(json.RawMessage, *rpcError)) *outbound {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.nextID++
	c := &outbound{id: string(enc(fmt.Sprintf("srv-%d", s.nextID))), about: about, then: then}
	s.calls[c.id] = c
	s.mu.Unlock()
	s.post(enc(struct {
		V      string          `json:"jsonrpc"`
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}{"2.0", json.RawMessage(c.id), method, params}), jsonrpc.KindRequest, method, about)
	return c
}

// drop withdraws a request of ours with notifications/cancelled.
func (s *session) drop(c *outbound, why string) {
	s.mu.Lock()
	_, open := s.calls[c.id]
	delete(s.calls, c.id)
	s.mu.Unlock()
	if open {
		s.notify("notifications/cancelled", enc(map[string]any{"requestId": json.RawMessage(c.id), "reason": why}), c.about)
	}
}

// notify sends a notification.
func (s *session) notify(method string, params json.RawMessage, about string) {
	s.post(enc(struct {
		V      string          `json:"jsonrpc"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}{"2.0", method, params}), jsonrpc.KindNotification, method, about)
}

func (s *session) post(b json.RawMessage, kind jsonrpc.Kind, method, about string) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if !closed {
		s.out.deliver(b, kind, method, about)
	}
}

// An envelope is a message as it arrives.
type envelope struct {
	V      string          `json:"jsonrpc"`
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type errorMessage struct {
	V     string          `json:"jsonrpc"`
	ID    json.RawMessage `json:"id"`
	Error *rpcError       `json:"error"`
}

// replyID is the id to answer under; null when it could not be read.
func (m envelope) replyID() json.RawMessage {
	if validID(m.ID) {
		return m.ID
	}
	return json.RawMessage("null")
}

// validID: a string or an integer, never null (2025-11-25 basic, Requests).
func validID(id json.RawMessage) bool {
	if len(id) == 0 {
		return false
	}
	if id[0] == '"' {
		return true
	}
	var n json.Number
	if json.Unmarshal(id, &n) != nil {
		return false
	}
	return !bytes.ContainsAny(id, ".eE") && string(id) != "null"
}

// parse reads one envelope. There are no batches in any of these revisions.
func parse(b []byte) (envelope, jsonrpc.Kind, *rpcError) {
	var m envelope
	if !json.Valid(b) {
		return m, jsonrpc.KindInvalid, &rpcError{Code: codeParse, Message: "not JSON"}
	}
	if !isObject(b) {
		return m, jsonrpc.KindInvalid, &rpcError{Code: codeRequest, Message: "a message is one JSON object"}
	}
	invalid := func(why string) (envelope, jsonrpc.Kind, *rpcError) {
		return m, jsonrpc.KindInvalid, &rpcError{Code: codeRequest, Message: why}
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return invalid("the envelope has a member of a wrong type: " + err.Error())
	}
	switch {
	case m.V != "2.0":
		return invalid(`jsonrpc is not "2.0"`)
	case m.Method == "" && m.ID == nil:
		return invalid("neither a method nor an id")
	case m.Method == "":
		if !validID(m.ID) {
			return invalid("an id is a string or an integer")
		}
		if (m.Result == nil) == (m.Error == nil) {
			return invalid("a response has either a result or an error")
		}
		return m, jsonrpc.KindResponse, nil
	case m.ID != nil && !validID(m.ID):
		return invalid("an id is a string or an integer")
	case m.Params != nil && !isObject(m.Params):
		return invalid("params is no object")
	case m.ID == nil:
		return m, jsonrpc.KindNotification, nil
	}
	return m, jsonrpc.KindRequest, nil
}
