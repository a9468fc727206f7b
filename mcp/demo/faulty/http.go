package faulty

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const sessionHeader = "Mcp-Session-Id"

// Handler serves over HTTP through the script.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	stuck, quit := s.life()
	select {
	case <-stuck:
		await(r, quit)
		return
	default:
	}
	var body []byte
	var m envelope
	if r.Method == http.MethodPost {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return
		}
		_ = json.Unmarshal(body, &m)
	}
	x := &answer{s: s, quit: quit, real: w, r: r, link: s.linkOf(r), header: http.Header{}, code: http.StatusOK}
	name := m.Method
	if name == "" && m.ID != nil {
		name = "answer"
	}
	if rule := s.book.due(strings.ToLower(r.Method), name, body); rule != nil && x.instead(rule) {
		return
	}
	if r.Method != http.MethodPost {
		s.Demo().Handler().ServeHTTP(x, r)
		x.finish()
		return
	}
	for i, a := range x.link.incoming(body) {
		if a.do != "deliver" {
			if x.perform(a) {
				return
			}
			continue
		}
		if !x.sleep(a.after) || !a.once.take() {
			return
		}
		inner := r.Clone(r.Context())
		inner.Body = io.NopCloser(bytes.NewReader(a.bytes))
		inner.ContentLength = int64(len(a.bytes))
		if i > 0 {
			// The same message again: the server hears it, and what it says to
			// that goes nowhere.
			s.Demo().Handler().ServeHTTP(discard{http.Header{}}, inner)
			continue
		}
		s.Demo().Handler().ServeHTTP(x, inner)
	}
	x.finish()
}

// await holds a request until its client or the server has gone; a server that
// goes takes the connection with it.
func await(r *http.Request, quit <-chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-quit:
		panic(http.ErrAbortHandler)
	}
}

// linkOf is the link of a request's session, or one for it alone.
func (s *Server) linkOf(r *http.Request) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.Header.Get(sessionHeader)
	if id == "" {
		id = r.URL.Query().Get("sessionId")
	}
	if l := s.links[id]; l != nil && id != "" {
		return l
	}
	l := newLink(s.book)
	if id != "" {
		s.links[id] = l
	}
	return l
}

// keep remembers the link under the session that a response makes.
func (s *Server) keep(session string, l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session != "" && s.links[session] == nil {
		s.links[session] = l
	}
}

// hang makes the server deaf and dumb, for ever.
func (s *Server) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stuck:
	default:
		close(s.stuck)
	}
}

// instead does a rule of post, get or delete; true means that the request is
// done with.
func (x *answer) instead(r *rule) bool {
	w := x.real
	switch r.action {
	case "status":
		fields := strings.Fields(r.arg)
		code, err := strconv.Atoi(fields[0])
		if err != nil {
			code = http.StatusInternalServerError
		}
		rest := fields[1:]
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		for len(rest) > 0 {
			name, value, ok := strings.Cut(rest[0], "=")
			if !ok || strings.ContainsAny(name, `{<"`) {
				break
			}
			w.Header().Set(name, value)
			rest = rest[1:]
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, strings.Join(rest, " "))
		return true
	case "type":
		media, body, _ := strings.Cut(r.arg, " ")
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, body)
		return true
	case "empty":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		return true
	case "late":
		return !x.sleep(r.wait)
	case "gzip", "slowheaders", "halfclose":
		x.mode = r
		return false
	case "slowly":
		x.slow = r.wait
		return false
	}
	return x.perform(act{do: r.action, rule: r, reply: true})
}

// perform does what is no delivery; true means that the request is done with.
func (x *answer) perform(a act) bool {
	switch a.do {
	case "never":
		await(x.r, x.quit)
	case "close":
		x.abort(false)
	case "reset":
		x.abort(true)
	case "crash":
		x.s.Restart(false)
		x.abort(true)
	case "restart":
		x.s.Restart(a.rule.arg == "keep")
		x.abort(false)
	case "halfclose":
		x.half(x.body.Bytes())
	case "hang":
		x.s.hang()
		await(x.r, x.quit)
	case "clock":
		x.s.Demo().Skew(a.rule.wait)
		return false
	default:
		return false
	}
	return true
}

// sleep waits, unless the client goes first.
func (x *answer) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.quit:
		return false
	case <-x.r.Context().Done():
		return false
	}
}

// discard takes an answer that nobody gets.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}
