package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/schematest"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// A script is the server's end of one connection in a test. Its play method
// runs a transcript: what the client must send and what it gets.
type script struct {
	t     testing.TB
	conn  jsonrpc.Conn
	check *schematest.Checker
	in    chan sentMessage

	mu     sync.Mutex
	sent   []sentMessage // all that the client sent
	labels map[string]sentMessage
	last   string // the label of the last request
	loose  bool   // what the server sends here breaks the schema on purpose
}

type sentMessage struct {
	ctx    context.Context // of the request: over HTTP its end drops the stream
	out    jsonrpc.Outgoing
	raw    json.RawMessage
	id     json.RawMessage
	method string
	params json.RawMessage
	result json.RawMessage
}

// spy is the client's end; it records what a transport would get.
type spy struct {
	jsonrpc.Conn
	s *script
}

func (c spy) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	if err := c.Conn.Send(ctx, m); err != nil {
		return err
	}
	c.s.receive(ctx, m)
	return nil
}

type scriptDialer struct {
	kind string
	conn jsonrpc.Conn
}

func (d scriptDialer) Kind() string                                       { return d.kind }
func (d scriptDialer) Dial(context.Context, string) (jsonrpc.Conn, error) { return d.conn, nil }

// nowhere takes what arrives at the server's end: the spy has it already.
type nowhere struct{}

func (nowhere) Message(json.RawMessage, string, jsonrpc.ID) {}
func (nowhere) Failed(jsonrpc.ID, error)                    {}
func (nowhere) Noise(string, []byte)                        {}

func newScript(t testing.TB, g taskmodel.Generation, kind string) (*script, Dialer) {
	client, server := transport.Pipe()
	s := &script{t: t, conn: server, check: schematest.NewChecker(t, g), in: make(chan sentMessage, 10000), labels: map[string]sentMessage{}}
	if err := server.Start(context.Background(), nowhere{}); err != nil {
		t.Fatal(err)
	}
	return s, scriptDialer{kind, spy{client, s}}
}

func (s *script) receive(ctx context.Context, out jsonrpc.Outgoing) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
		Result json.RawMessage
	}
	if err := json.Unmarshal(out.Bytes, &m); err != nil {
		s.t.Errorf("the client sent no JSON: %s", out.Bytes)
		return
	}
	s.check.Check(schematest.Sent, out.Bytes)
	msg := sentMessage{ctx, out, out.Bytes, m.ID, m.Method, m.Params, m.Result}
	s.mu.Lock()
	s.sent = append(s.sent, msg)
	s.mu.Unlock()
	s.in <- msg
}

// all is what the client has sent so far, by method ("" is all of it).
func (s *script) all(method string) []sentMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []sentMessage
	for _, m := range s.sent {
		if method == "" || m.method == method {
			out = append(out, m)
		}
	}
	return out
}

// next is the client's next message.
func (s *script) next() sentMessage {
	s.t.Helper()
	select {
	case m := <-s.in:
		return m
	case <-time.After(10 * time.Minute): // of the test's own time
		s.t.Error("the client sent nothing more")
		panic("script: the client sent nothing more")
	}
}

// quiet fails when the client has sent something that nobody expected.
func (s *script) quiet() {
	s.t.Helper()
	select {
	case m := <-s.in:
		s.t.Errorf("an unexpected message: %s", m.raw)
	default:
	}
}

// send sends raw bytes to the client.
func (s *script) send(raw string) {
	s.t.Helper()
	if !s.loose {
		s.check.Check(schematest.Received, []byte(raw))
	}
	if err := s.conn.Send(context.Background(), jsonrpc.Outgoing{Bytes: json.RawMessage(raw)}); err != nil {
		s.t.Errorf("the script could not send: %v", err)
	}
}

// play runs a transcript, one line after the other:
//
//	C> [label:] method {"params": "that must be there"}
//	S> [label:] {"result": …} or {"error": …}   answers the labelled request, else the last
//	S> method {params}                           is a notification
//	S! anything                                  is sent as it stands
//
// $ID in a line is the id of the request labelled ID.
func (s *script) play(transcript string) {
	s.t.Helper()
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	for _, line := range strings.Split(transcript, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.mu.Lock()
		for l, m := range s.labels {
			if l != "" {
				line = strings.ReplaceAll(line, "$"+l, string(m.id))
			}
		}
		s.mu.Unlock()
		dir, rest := line[:2], strings.TrimSpace(line[2:])
		label := ""
		if head, tail, ok := strings.Cut(rest, " "); ok && strings.HasSuffix(head, ":") && head[0] != '{' {
			label, rest = strings.TrimSuffix(head, ":"), strings.TrimSpace(tail)
		}
		switch {
		case dir == "S!":
			loose := s.loose
			s.loose = true
			s.send(rest)
			s.loose = loose
		case dir == "C>":
			method, want, _ := strings.Cut(rest, " ")
			m := s.next()
			if m.method != method {
				s.t.Errorf("want %s, the client sent %s", line, m.raw)
			}
			if want = strings.TrimSpace(want); want != "" {
				var w, g any
				if err := json.Unmarshal([]byte(want), &w); err != nil {
					s.t.Fatalf("the transcript's line %q: %v", line, err)
				}
				if err := json.Unmarshal(m.params, &g); err != nil {
					s.t.Errorf("%s: %v", m.raw, err)
				}
				if at := lacks("params", w, g); at != "" {
					s.t.Errorf("want %s\n got %s\n%s", line, m.raw, at)
				}
			}
			if last = label; label == "" {
				last = "last"
			}
			s.mu.Lock()
			s.labels[last], s.last = m, last
			s.mu.Unlock()
		case strings.HasPrefix(rest, "{"):
			if label == "" {
				label = last
			}
			s.mu.Lock()
			id := s.labels[label].id
			s.mu.Unlock()
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s`, id, rest[1:]))
		default:
			method, params, _ := strings.Cut(rest, " ")
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
		}
	}
}

// lacks says where got does not hold what want has; "" when it does. A want of
// "*" stands for any value, and of "-" for none.
func lacks(at string, want, got any) string {
	if w, ok := want.(map[string]any); ok {
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for k, v := range w {
			gv, there := g[k]
			switch {
			case v == "-" && there:
				return fmt.Sprintf("%s.%s must not be there", at, k)
			case v == "-":
			case !there:
				return fmt.Sprintf("%s.%s is missing", at, k)
			case v == "*":
			default:
				if l := lacks(at+"."+k, v, gv); l != "" {
					return l
				}
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s is %v, want %v", at, got, want)
	}
	return ""
}

// ears is a Handler that keeps all it hears.
type ears struct {
	deaf
	mu        sync.Mutex
	snapshots []taskmodel.Observation
	asked     []taskmodel.Question
	withdrawn []string
	pushing   [][]string
	logs      []taskmodel.LogLine
	progress  []string
	tools     int
}

func (e *ears) Snapshot(o taskmodel.Observation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snapshots = append(e.snapshots, o)
}
func (e *ears) Asked(q taskmodel.Question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, q)
}
func (e *ears) Withdrawn(id taskmodel.QuestionID, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.withdrawn = append(e.withdrawn, id.ID+": "+why)
}
func (e *ears) Pushing(ids []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pushing = append(e.pushing, ids)
}
func (e *ears) Log(l taskmodel.LogLine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.logs = append(e.logs, l)
}
func (e *ears) Progress(task, call string, p taskmodel.Progress) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress = append(e.progress, fmt.Sprintf("%s/%s %v", task, call, p.Value))
}
func (e *ears) ToolsChanged() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tools++
}

func (e *ears) questions() []taskmodel.Question {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]taskmodel.Question(nil), e.asked...)
}
func (e *ears) seen() []taskmodel.Observation {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]taskmodel.Observation(nil), e.snapshots...)
}
func (e *ears) closed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.withdrawn...)
}
func (e *ears) pushes() [][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([][]string(nil), e.pushing...)
}
func (e *ears) lines() []taskmodel.LogLine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]taskmodel.LogLine(nil), e.logs...)
}

// connectScript connects to a script, whose part of the handshake is the
// transcript open.
func connectScript(t testing.TB, g taskmodel.Generation, kind, open string, change func(*Options)) (*Client, *script, *ears) {
	t.Helper()
	s, d := newScript(t, g, kind)
	e := &ears{}
	o := Options{Name: "srv", Dialer: d, ClientName: "mcptasks", ClientVersion: "1.2.3", Handler: e}
	if g == taskmodel.GenDraft {
		o.Generation = g
	}
	if change != nil {
		change(&o)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.play(open)
	}()
	c, err := Connect(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	<-done
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		c.Close(ctx, true)
	})
	return c, s, e
}

// along runs a transcript beside what the test does; the returned func waits
// for its end.
func (s *script) along(transcript string) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.play(transcript)
	}()
	return func() { s.t.Helper(); <-done }
}

const openX = `
C> server/discover {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "mcptasks", "version": "1.2.3"}}}
S> {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}, "ttlMs": 0, "cacheScope": "public", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}}}}
`

// connectX connects in the extension's generation over the given kind.
func connectX(t testing.TB, kind string, change func(*Options)) (*Client, *script, *ears) {
	t.Helper()
	return connectScript(t, taskmodel.GenExtension, kind, openX, change)
}
