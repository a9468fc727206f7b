//go:build linux

package survive

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"mcptasks/mcp/demo"
	"mcptasks/taskmodel"
)

// A place is one server in the test: it outlives every process of the program,
// and writes down what it was sent and what it said of its tasks.
type place struct {
	name   string
	gen    taskmodel.Generation
	http   bool
	demo   *demo.Server
	target string // for -s
	web    *httptest.Server

	mu     sync.Mutex
	marks  map[string]int             // how often a mark went over the wire in a call or an answer
	ends   map[string]map[string]bool // terminal statuses said of a task
	asked  map[string]int             // cancellations that came, by task
	calls  map[string]string          // draft: the task of a call's request id
	seen   map[string]int             // messages by kind
	handed func(kind, mark string) (drop bool)
	fate   func(m message) (status int, body string) // answers in the server's place; status 0: it answers itself
}

// marks are the words by which what a person sent once is known again.
var markWord = regexp.MustCompile(`CHG-\d{6}|idx-\d+|v9\.9\.\d+`)

func newPlace(t testing.TB, gen taskmodel.Generation, overHTTP bool, speed float64) *place {
	t.Helper()
	p := &place{name: string(gen) + " stdio", gen: gen, http: overHTTP, marks: map[string]int{}, ends: map[string]map[string]bool{},
		asked: map[string]int{}, calls: map[string]string{}, seen: map[string]int{}}
	if overHTTP {
		p.name = string(gen) + " http"
	}
	p.demo = demo.New(demo.Options{Generation: gen, Speed: speed, Seed: 7})
	t.Cleanup(p.demo.Close)
	if overHTTP {
		inner := p.demo.Handler()
		p.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(inner, w, r) }))
		t.Cleanup(func() { p.web.CloseClientConnections(); p.web.Close() })
		p.target = p.web.URL + "/mcp"
		return p
	}
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.converse(ctx, c) })
		}
	})
	t.Cleanup(func() { stop(); _ = l.Close(); wg.Wait(); _ = os.RemoveAll(dir) })
	p.target = "'" + os.Args[0] + "' " + relayWord + " " + socket
	return p
}

// serve is the server over HTTP.
func (p *place) serve(inner http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		p.mu.Lock()
		p.seen["DELETE"]++
		p.mu.Unlock()
	}
	if r.Method == http.MethodPost {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if p.heard(b) {
			panic(http.ErrAbortHandler) // lost on the way
		}
		var m message
		p.mu.Lock()
		fate := p.fate
		p.mu.Unlock()
		if fate != nil && json.Unmarshal(b, &m) == nil {
			if status, body := fate(m); status != 0 {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	inner.ServeHTTP(&spoken{ResponseWriter: w, p: p}, r)
}

// spoken reads along what the server answers.
type spoken struct {
	http.ResponseWriter
	p   *place
	buf []byte
}

func (s *spoken) Unwrap() http.ResponseWriter { return s.ResponseWriter }
func (s *spoken) Write(b []byte) (int, error) {
	s.buf = append(s.buf, b...)
	for {
		i := bytes.IndexByte(s.buf, '\n')
		if i < 0 {
			break
		}
		s.p.said(bytes.TrimPrefix(s.buf[:i], []byte("data: ")))
		s.buf = s.buf[i+1:]
	}
	if json.Valid(s.buf) {
		s.p.said(s.buf)
		s.buf = nil
	}
	return s.ResponseWriter.Write(b)
}

// converse is the server on stdio.
func (p *place) converse(ctx context.Context, c net.Conn) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	in, feed := io.Pipe()
	go func() {
		lines := bufio.NewReader(c)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 && !p.heard(line) {
				if _, err := feed.Write(line); err != nil {
					return
				}
			}
			if err != nil {
				_ = feed.Close()
				return
			}
		}
	}()
	_ = p.demo.ServeStdio(ctx, in, speaker{c, p})
	_ = in.Close()
	_ = c.Close()
}

type speaker struct {
	c net.Conn
	p *place
}

func (s speaker) Write(b []byte) (int, error) {
	s.p.said(b)
	return s.c.Write(b)
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		TaskID    string                     `json:"taskId"`
		RequestID json.RawMessage            `json:"requestId"`
		RawMeta   map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
}

// heard writes down a message of the client. drop says that it is lost before
// the server has it.
func (p *place) heard(b []byte) (drop bool) {
	var m message
	if json.Unmarshal(b, &m) != nil {
		return false
	}
	kind, mark := m.Method, markWord.FindString(string(b))
	p.mu.Lock()
	switch {
	case m.Method == "" && len(m.Result) > 0 && bytes.Contains(m.Result, []byte(`"action"`)), m.Method == "tasks/update":
		kind = "answer"
		p.marks[mark]++
	case m.Method == "tools/call":
		p.marks[mark]++
		var meta struct {
			TaskID string `json:"taskId"`
		}
		for k, v := range m.Params.RawMeta {
			if strings.HasSuffix(k, "/task") && json.Unmarshal(v, &meta) == nil && meta.TaskID != "" {
				p.calls[string(m.ID)] = meta.TaskID
			}
		}
	case m.Method == "tasks/cancel":
		kind = "cancel"
		p.asked[m.Params.TaskID]++
	case m.Method == "notifications/cancelled" && p.calls[string(m.Params.RequestID)] != "":
		kind = "cancel"
		p.asked[p.calls[string(m.Params.RequestID)]]++
	}
	p.seen[kind]++
	handed := p.handed
	p.mu.Unlock()
	return handed != nil && handed(kind, mark)
}

// said writes down what the server says of its tasks.
func (p *place) said(b []byte) {
	if !bytes.Contains(b, []byte("taskId")) {
		return
	}
	var v any
	if json.Unmarshal(b, &v) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.walk(v)
}

func (p *place) walk(v any) {
	switch v := v.(type) {
	case map[string]any:
		id, _ := v["taskId"].(string)
		st, _ := v["status"].(string)
		if id != "" && taskmodel.Status(st).Terminal(p.gen) {
			if p.ends[id] == nil {
				p.ends[id] = map[string]bool{}
			}
			p.ends[id][st] = true
		}
		for _, in := range v {
			p.walk(in)
		}
	case []any:
		for _, in := range v {
			p.walk(in)
		}
	}
}

// on sets what is done with each message before the server has it.
func (p *place) on(f func(kind, mark string) bool) {
	p.mu.Lock()
	p.handed = f
	p.mu.Unlock()
}

// answers sets what answers in the server's place.
func (p *place) answers(f func(m message) (int, string)) {
	p.mu.Lock()
	p.fate = f
	p.mu.Unlock()
}

func (p *place) count(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[kind]
}

func (p *place) marked(mark string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marks[mark]
}

func (p *place) ended(id, status string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends[id][status]
}

func (p *place) cancels(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[id]
}
