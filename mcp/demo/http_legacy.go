package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// legacyHTTP is Streamable HTTP as it was up to 2025-11-25: sessions, a GET
// stream, event streams that can be taken up again by Last-Event-ID. Sections
// cited are those of basic/transports of 2025-11-25.
type legacyHTTP struct {
	srv *Server

	mu       sync.Mutex
	sessions map[string]*httpSession
	order    []string
}

const (
	maxSessions  = 1000
	keptStreams  = 128  // finished streams that can still be taken up, per session
	keptMessages = 1000 // undelivered ones on the GET stream
	headSession  = "Mcp-Session-Id"
)

func newLegacyHTTP(s *Server) *legacyHTTP {
	return &legacyHTTP{srv: s, sessions: map[string]*httpSession{}}
}

// DropSessions ends all HTTP sessions as a restart would: the next request of
// each is answered with 404. The tasks stay.
func (s *Server) DropSessions() {
	h := s.legacy
	h.mu.Lock()
	all := h.sessions
	h.sessions, h.order = map[string]*httpSession{}, nil
	h.mu.Unlock()
	for _, hs := range all {
		hs.end()
	}
}

func (h *legacyHTTP) close() { h.srv.DropSessions() }

func (h *legacyHTTP) find(id string) *httpSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

func (h *legacyHTTP) add() *httpSession {
	h.srv.engine.mu.Lock()
	id := h.srv.engine.newID()
	h.srv.engine.mu.Unlock()
	hs := &httpSession{id: id, byReq: map[string]*stream{}, byID: map[string]*stream{}, over: make(chan struct{})}
	hs.get = hs.open("get", false)
	hs.ses = newSession(h.srv, hs)
	h.mu.Lock()
	h.sessions[id] = hs
	h.order = append(h.order, id)
	var old *httpSession
	if len(h.order) > maxSessions {
		old = h.sessions[h.order[0]]
		delete(h.sessions, h.order[0])
		h.order = h.order[1:]
	}
	h.mu.Unlock()
	if old != nil {
		old.end()
	}
	return hs
}

func (h *legacyHTTP) remove(hs *httpSession) {
	h.mu.Lock()
	if h.sessions[hs.id] == hs {
		delete(h.sessions, hs.id)
		h.order = slices.DeleteFunc(h.order, func(id string) bool { return id == hs.id })
	}
	h.mu.Unlock()
	hs.end()
}

func (h *legacyHTTP) versions() []string {
	if h.srv.opts.Generation == taskmodel.GenDraft {
		return draftVersions
	}
	return coreVersions
}

func (h *legacyHTTP) serve(w http.ResponseWriter, r *http.Request) {
	if !welcome(w, r) {
		return
	}
	switch {
	case r.URL.Path == "/sse" && r.Method == http.MethodGet:
		h.serveOldStream(w, r)
		return
	case r.URL.Path == "/messages" && r.Method == http.MethodPost:
		h.serveOldPost(w, r)
		return
	case r.URL.Path == "/sse" || r.URL.Path == "/messages":
		// A client that tries the newer transport here learns that it is not.
		refuse(w, http.StatusMethodNotAllowed, codeRequest, "this is the transport of 2024-11-05; the MCP endpoint is /mcp")
		return
	case r.Method != http.MethodPost && r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuse(w, http.StatusMethodNotAllowed, codeRequest, r.Method+" is not for the MCP endpoint")
		return
	}
	// "Protocol Version Header": 400 for one that is not supported.
	if v := r.Header.Get("MCP-Protocol-Version"); v != "" && !slices.Contains(h.versions(), v) {
		refuse(w, http.StatusBadRequest, codeRequest, "unsupported protocol version "+v+"; supported: "+strings.Join(h.versions(), ", "))
		return
	}
	if r.Method == http.MethodPost {
		h.servePost(w, r)
		return
	}
	hs := h.sessionOf(w, r)
	if hs == nil {
		return
	}
	if r.Method == http.MethodDelete {
		h.remove(hs)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h.serveGet(w, r, hs)
}

// sessionOf is the session that a request names ("Session Management": 400
// without an id, 404 for one that is not known); nil means that the request
// was answered.
func (h *legacyHTTP) sessionOf(w http.ResponseWriter, r *http.Request) *httpSession {
	id := r.Header.Get(headSession)
	if id == "" {
		refuse(w, http.StatusBadRequest, codeRequest, "Mcp-Session-Id is missing")
		return nil
	}
	hs := h.find(id)
	if hs == nil {
		refuse(w, http.StatusNotFound, codeRequest, "Session not found")
	}
	return hs
}

func (h *legacyHTTP) servePost(w http.ResponseWriter, r *http.Request) {
	b := body(w, r)
	if b == nil {
		return
	}
	m, kind, bad := parse(b)
	if bad != nil {
		refuseWith(w, http.StatusBadRequest, m.ID, bad)
		return
	}
	var hs *httpSession
	first := kind == jsonrpc.KindRequest && m.Method == "initialize" && r.Header.Get(headSession) == ""
	if first {
		hs = h.add()
	} else if hs = h.sessionOf(w, r); hs == nil {
		return
	}
	if kind != jsonrpc.KindRequest {
		hs.ses.message(b, r.Header)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	asStream := m.Method == "tools/call" || m.Method == "tasks/result"
	if h.srv.opts.Generation == taskmodel.GenCore {
		var p struct {
			Task json.RawMessage `json:"task"`
		}
		_ = json.Unmarshal(orEmpty(m.Params), &p)
		asStream = asStream && p.Task == nil
	}
	st := hs.request(string(m.ID), !asStream)
	if st == nil {
		refuseWith(w, http.StatusBadRequest, m.ID, &rpcError{Code: codeRequest, Message: "the id " + string(m.ID) + " is that of a request still unanswered"})
		return
	}
	hs.ses.message(b, r.Header)
	if asStream {
		hs.write(w, r, st, 0)
		return
	}
	answer, ok := st.only(r.Context(), hs.over)
	switch {
	case !ok && r.Context().Err() == nil:
		refuse(w, http.StatusNotFound, codeRequest, "Session not found")
		return
	case !ok:
		return
	}
	if first {
		if isFailure(answer) {
			h.remove(hs)
		} else {
			w.Header().Set(headSession, hs.id)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

func isFailure(b json.RawMessage) bool {
	var m struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(b, &m) != nil || m.Error != nil
}

// serveGet opens the session's own stream, or takes up one that was broken
// ("Resumability and Redelivery").
func (h *legacyHTTP) serveGet(w http.ResponseWriter, r *http.Request, hs *httpSession) {
	if !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, codeRequest, "Accept lists text/event-stream")
		return
	}
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		hs.write(w, r, hs.get, -1)
		return
	}
	name, at, ok := strings.Cut(last, "/")
	n, err := strconv.Atoi(at)
	hs.mu.Lock()
	st := hs.byID[name]
	hs.mu.Unlock()
	if !ok || err != nil || st == nil || n < 0 {
		refuse(w, http.StatusBadRequest, codeRequest, "Last-Event-ID names no stream of this session")
		return
	}
	hs.write(w, r, st, n+1)
}

// An httpSession is one session and the outlet of its messages: each goes on
// one stream, that of the request it belongs with if there is one, else the
// GET stream, where it waits until somebody listens.
type httpSession struct {
	id   string
	ses  *session
	over chan struct{}

	mu      sync.Mutex
	ended   bool
	byReq   map[string]*stream // of unanswered requests, by raw id
	byID    map[string]*stream
	history []string // finished streams, oldest first
	get     *stream
	made    int
}

func (hs *httpSession) end() {
	hs.ses.close()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if !hs.ended {
		hs.ended = true
		close(hs.over)
	}
}

func (hs *httpSession) open(name string, plain bool) *stream {
	st := &stream{name: name, plain: plain, changed: make(chan struct{})}
	hs.byID[name] = st
	return st
}

// request makes the stream of one request; nil when its id is in use.
func (hs *httpSession) request(id string, plain bool) *stream {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.byReq[id] != nil {
		return nil
	}
	hs.made++
	st := hs.open("s"+strconv.Itoa(hs.made), plain)
	st.reading = 1 // by the POST that made it
	hs.byReq[id] = st
	return st
}

func (hs *httpSession) deliver(b json.RawMessage, kind jsonrpc.Kind, _, about string) {
	hs.mu.Lock()
	st := hs.byReq[about]
	if st == nil || st.plain && kind != jsonrpc.KindResponse {
		st = hs.get
	}
	if kind == jsonrpc.KindResponse {
		if st == hs.get {
			hs.mu.Unlock()
			return // never on the GET stream ("Listening for Messages" 4)
		}
		delete(hs.byReq, about)
		hs.history = append(hs.history, st.name)
		if len(hs.history) > keptStreams {
			delete(hs.byID, hs.history[0])
			hs.history = hs.history[1:]
		}
	}
	hs.mu.Unlock()
	st.append(b, kind == jsonrpc.KindResponse)
}

func (hs *httpSession) attached(about string) bool {
	hs.mu.Lock()
	st := hs.byReq[about]
	hs.mu.Unlock()
	if st == nil {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.reading > 0
}

// A stream is one event stream and all that was put on it. Its event ids are
// its name and a count, so that an id names its stream.
type stream struct {
	name  string
	plain bool // the answer goes as one JSON object

	mu        sync.Mutex
	events    [][]byte // the first has the number begin
	begin     int
	delivered int // how many were written to somebody, of the GET stream
	done      bool
	reading   int
	reader    int // counts the readers; a new one takes the stream over
	changed   chan struct{}
}

func (st *stream) append(b []byte, last bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.events = append(st.events, b)
	if n := len(st.events) - keptMessages; n > 0 && !last {
		st.events = st.events[n:]
		st.begin += n
	}
	st.done = st.done || last
	st.wake()
}

func (st *stream) wake() {
	close(st.changed)
	st.changed = make(chan struct{})
}

// only waits for a plain stream's one message.
func (st *stream) only(ctx context.Context, over <-chan struct{}) (json.RawMessage, bool) {
	for {
		st.mu.Lock()
		if len(st.events) > 0 {
			defer st.mu.Unlock()
			st.reading--
			return st.events[len(st.events)-1], true
		}
		changed := st.changed
		st.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, false
		case <-over:
			return nil, false
		}
	}
}

// write sends a stream's events from number from on (-1: what nobody was sent
// yet) as long as the stream, the session and the connection last.
func (hs *httpSession) write(w http.ResponseWriter, r *http.Request, st *stream, from int) {
	st.mu.Lock()
	if st.reader > 0 || from != 0 {
		st.reading++
	}
	st.reader++
	me := st.reader
	if from < 0 {
		from = st.delivered
	}
	st.wake() // an earlier reader makes way
	st.mu.Unlock()
	defer func() {
		st.mu.Lock()
		st.reading--
		st.mu.Unlock()
	}()
	out := openSSE(w)
	if from == 0 && st.name != "get" {
		// "Sending Messages to the Server" 6: an id to come back with.
		if out.event("", st.name+"/-1", nil) != nil {
			return
		}
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		st.mu.Lock()
		if st.reader != me {
			st.mu.Unlock()
			return
		}
		from = max(from, st.begin)
		batch := st.events[min(from-st.begin, len(st.events)):]
		done, changed := st.done, st.changed
		st.mu.Unlock()
		for _, b := range batch {
			if out.event("message", st.name+"/"+strconv.Itoa(from), b) != nil {
				return
			}
			from++
			st.mu.Lock()
			st.delivered = max(st.delivered, from)
			st.mu.Unlock()
		}
		if done {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
			if out.comment("still here") != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-hs.over:
			return
		}
	}
}
