package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/peers"
	"mcptasks/mcp/schematest"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// The extension against FastMCP with fastmcp-tasks, a server that nobody here
// wrote (peers/fastmcp_tasks_server.py). The sessions are kept in
// testdata/peers, written anew with MCPTASKS_RECORD=1, and played to the same
// steps by TestFastMCPReplayed where the peer is not installed.

func TestFastMCPOverStdio(t *testing.T) {
	cmd := peers.Command(t, "fastmcp")
	d := &transport.Stdio{Command: cmd[0], Args: cmd[1:]}
	fastMCP(t, d, "fastmcp-stdio", "stdio")
}

func TestFastMCPOverHTTP(t *testing.T) {
	d := &transport.HTTP{URL: peers.Serve(t, "fastmcp-http")}
	fastMCP(t, d, "fastmcp-http", "http")
}

// A recorder is a dialer that writes down what passes and checks what we send.
type recorder struct {
	Dialer
	check *schematest.Checker
	mu    sync.Mutex
	b     bytes.Buffer
}

func (r *recorder) Dial(ctx context.Context, era string) (jsonrpc.Conn, error) {
	c, err := r.Dialer.Dial(ctx, era)
	if err != nil {
		return nil, err
	}
	return recorderConn{c, r}, nil
}

func (r *recorder) line(dir string, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.b.WriteString(dir)
	if json.Compact(&r.b, b) != nil {
		fmt.Fprintf(&r.b, "%q", b)
	}
	r.b.WriteByte('\n')
}

type recorderConn struct {
	jsonrpc.Conn
	r *recorder
}

func (c recorderConn) Start(ctx context.Context, s jsonrpc.Sink) error {
	return c.Conn.Start(ctx, recorderSink{s, c.r})
}

func (c recorderConn) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	c.r.check.Check(schematest.Sent, m.Bytes)
	c.r.line("> ", m.Bytes)
	return c.Conn.Send(ctx, m)
}

type recorderSink struct {
	jsonrpc.Sink
	r *recorder
}

func (s recorderSink) Message(b json.RawMessage, stream string, on jsonrpc.ID) {
	s.r.line("< ", b)
	s.Sink.Message(b, stream, on)
}

// Failed writes down the JSON-RPC error that came with an HTTP status.
func (s recorderSink) Failed(id jsonrpc.ID, err error) {
	if e := rpcErrorOf(err); e != nil {
		b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
		s.r.line("< ", b)
	}
	s.Sink.Failed(id, err)
}

func fastMCP(t *testing.T, d Dialer, name, kind string) {
	w := &ears{}
	r := &recorder{Dialer: d, check: schematest.NewChecker(t, taskmodel.GenExtension)}
	ctx, stop := context.WithTimeout(context.Background(), 6*time.Minute)
	defer stop()
	c, err := Connect(ctx, Options{
		Name: "fastmcp", Dialer: r, ClientName: "mcptasks", ClientVersion: "1.2.3", Handler: w, ProbeTimeout: 30 * time.Second,
		Roots: func() []Root { return []Root{{URI: "file:///src"}} },
	})
	if err != nil {
		t.Fatal(err)
	}
	fastMCPSteps(ctx, t, c, w, kind)
	if err := c.Close(ctx, true); err != nil {
		t.Error(err)
	}
	if os.Getenv("MCPTASKS_RECORD") != "" && !t.Failed() {
		if err := os.MkdirAll("testdata/peers", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("testdata/peers", name+".jsonl"), r.b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fastMCPSteps is the whole life of tasks: start, poll, several questions and
// rounds, answer, result, tool error, protocol error, cancel, and calls that
// are none.
func fastMCPSteps(ctx context.Context, t *testing.T, c *Client, w *ears, kind string) {
	tasks := c.Tasks()
	if i := c.Info(); i.Era != eraModern || i.Generation != taskmodel.GenExtension || i.ServerName != "fastmcp-tasks-peer" || !i.Can.Start {
		t.Fatalf("info %+v", i)
	}
	tools, err := c.Tools(ctx)
	if err != nil || len(tools) != 9 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	start := func(tool, args string) string {
		t.Helper()
		st, err := tasks.Start(ctx, StartCall{Tool: tool, Args: json.RawMessage(args)})
		if err != nil || st.TaskID == "" || st.Snapshot.Status != taskmodel.Working || len(st.Snapshot.Missing)+len(st.Snapshot.Lenient) != 0 {
			t.Fatalf("start %s: %+v, %v", tool, st, err)
		}
		return st.TaskID
	}
	// await polls until the status is reached.
	await := func(id string, want taskmodel.Status) taskmodel.Snapshot {
		t.Helper()
		for {
			snap, err := tasks.Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if len(snap.Missing)+len(snap.Lenient) != 0 {
				t.Errorf("read against the schema: %v %v: %s", snap.Missing, snap.Lenient, snap.Raw)
			}
			if snap.Status == want {
				return snap
			}
			if snap.Status.Terminal(taskmodel.GenExtension) {
				t.Fatalf("%s is %s, want %s", id, snap.Status, want)
			}
			if kind != "replay" {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
	answer := func(q taskmodel.Question, action taskmodel.Action, content string) {
		t.Helper()
		a := taskmodel.Answer{Question: q.ID, Action: action}
		if content != "" {
			a.Content = json.RawMessage(content)
		}
		if err := c.Answer(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	result := func(id, want string) {
		t.Helper()
		o, err := tasks.Result(ctx, id)
		if err != nil || !strings.Contains(string(o.Result), want) {
			t.Errorf("result %s %+v, %v; want %q", o.Result, o.Err, err, want)
		}
	}

	// Start, poll, result.
	id := start("crunch", `{"seconds":0.3,"text":"crunched"}`)
	result(id, "crunched")

	// Two questions at once, then one more; partial answers.
	id = start("deploy", `{"target":"prod"}`)
	snap := await(id, taskmodel.InputRequired)
	if len(snap.Questions) != 2 {
		t.Fatalf("questions %+v", snap.Questions)
	}
	for _, q := range snap.Questions {
		if strings.Contains(q.Message, "Deploy to prod") {
			answer(q, taskmodel.Accept, `{"ok":true}`)
		}
	}
	snap = await(id, taskmodel.InputRequired)
	for _, q := range snap.Questions {
		if q.State == taskmodel.QuestionOpen {
			answer(q, taskmodel.Accept, `{"name":"Ada"}`)
		}
	}
	var third taskmodel.Question
	for third.Message == "" {
		for _, q := range await(id, taskmodel.InputRequired).Questions {
			if strings.Contains(q.Message, "how many replicas") {
				third = q
			}
		}
	}
	if third.Round != 3 || third.Kind != taskmodel.AskForm {
		t.Errorf("third question %+v", third)
	}
	answer(third, taskmodel.Accept, `{"n":3}`)
	result(id, "deployed 3 to prod for Ada")

	// Declined.
	id = start("deploy", `{}`)
	for _, q := range await(id, taskmodel.InputRequired).Questions {
		answer(q, taskmodel.Decline, "")
	}
	result(id, "not deployed")

	// A tool error completes; a protocol error fails.
	id = start("wobble", `{}`)
	if snap := await(id, taskmodel.Completed); !strings.Contains(string(snap.Outcome.Result), `"isError":true`) {
		t.Errorf("tool error: %s", snap.Raw)
	}
	id = start("broken", `{}`)
	if snap := await(id, taskmodel.Failed); snap.Outcome.Err == nil || snap.Outcome.Err.Message == "" {
		t.Errorf("protocol error: %s", snap.Raw)
	}

	// Cancel at work and while it asks.
	id = start("crunch", `{"seconds":60}`)
	if snap, err := tasks.Cancel(ctx, id); err != nil || snap != nil {
		t.Errorf("cancel: %v, %v", snap, err)
	}
	await(id, taskmodel.Cancelled)
	if _, err := tasks.Result(ctx, id); err == nil || !strings.Contains(err.Error(), "ended as cancelled") {
		t.Errorf("result of a cancelled task: %v", err)
	}
	id = start("deploy", `{}`)
	open := len(await(id, taskmodel.InputRequired).Questions)
	before := len(w.closed())
	if _, err := tasks.Cancel(ctx, id); err != nil {
		t.Error(err)
	}
	await(id, taskmodel.Cancelled)
	if got := len(w.closed()) - before; got != open {
		t.Errorf("%d questions withdrawn, want %d", got, open)
	}

	// Roots, without a person.
	id = start("locate", `{}`)
	result(id, "file:///src")

	// A task-only tool, called plainly, and as it must be.
	_, err = tasks.Start(ctx, StartCall{Tool: "only_task", Plain: true})
	if !errors.Is(err, ErrTaskRequired) {
		t.Errorf("a plain call of only_task: %v", err)
	}
	result(start("only_task", `{}`), "as a task")

	// Plain: a tool that has no tasks, one that may, one that asks.
	for _, p := range []StartCall{{Tool: "add", Args: json.RawMessage(`{"a":1,"b":2}`)}, {Tool: "add", Plain: true, Args: json.RawMessage(`{"a":1,"b":2}`)}} {
		st, err := tasks.Start(ctx, p)
		if err != nil || st.TaskID != "" || !strings.Contains(string(st.Outcome.Result), "3") {
			t.Errorf("add: %+v, %v", st, err)
		}
	}
	st, err := tasks.Start(ctx, StartCall{Tool: "crunch", Plain: true, Args: json.RawMessage(`{"seconds":0.1,"text":"plain"}`)})
	if err != nil || st.TaskID != "" || !strings.Contains(string(st.Outcome.Result), "plain") {
		t.Errorf("plain crunch: %+v, %v", st, err)
	}
	started := make(chan startedX, 1)
	asked := len(w.questions())
	go func() {
		st, err := tasks.Start(ctx, StartCall{Tool: "greet", Plain: true, CallID: "g", Args: json.RawMessage(`{"name":"Ada"}`)})
		started <- startedX{st, err}
	}()
	for len(w.questions()) == asked && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	qs := w.questions()
	q := qs[len(qs)-1]
	if q.Tool != "greet" || q.Task != (taskmodel.Key{}) {
		t.Errorf("question of a call: %+v", q)
	}
	answer(q, taskmodel.Accept, `{"g":"Hello"}`)
	{
		st := <-started
		var r struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(st.Outcome.Result, &r); st.err != nil || err != nil || len(r.Content) != 1 || r.Content[0].Text != `Hello, Ada: <greet> & 世` {
			t.Errorf("greet: %s, %v", st.Outcome.Result, st.err)
		}
	}

	// The mirrored argument.
	want := "no header"
	if kind == "http" {
		want = "eu-west"
	}
	st, err = tasks.Start(ctx, StartCall{Tool: "region", Args: json.RawMessage(`{"region":"eu-west"}`)})
	if err != nil || kind != "replay" && !strings.Contains(string(st.Outcome.Result), want) {
		t.Errorf("region: %s, %v; want %s", st.Outcome.Result, err, want)
	}

	// Ids that are not known, and a tool that is not there.
	if _, err := tasks.Get(ctx, "no-such-task"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get of an unknown id: %v", err)
	}
	if _, err := tasks.Cancel(ctx, "no-such-task"); !errors.Is(err, ErrNotFound) {
		t.Errorf("cancel of an unknown id: %v", err)
	}

	// It pushes nothing about tasks: whatever it says to being asked, no task
	// is taken for pushed, and polling goes on.
	if err := tasks.Watch(ctx, []string{id}); err != nil {
		t.Error(err)
	}
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until) && c.Info().Can.Push && len(w.pushes()) == 0; {
		time.Sleep(5 * time.Millisecond)
	}
	for _, ids := range w.pushes() {
		if len(ids) > 0 {
			t.Errorf("acknowledged %v", ids)
		}
	}
	if snap, err := tasks.Get(ctx, id); err != nil || snap.Status != taskmodel.Completed {
		t.Errorf("%+v, %v", snap, err)
	}
}

func TestFastMCPReplayed(t *testing.T) {
	files, err := filepath.Glob("testdata/peers/fastmcp-*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded sessions", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".jsonl"), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			fastMCP(t, transport.PipeDialer(replay(t, b).serve), "", "replay")
		})
	}
}

// A replayed session answers each request by what was recorded for the same
// method, and the same tool or task, in order; the last answer is repeated.
type replayed struct {
	t       *testing.T
	mu      sync.Mutex
	answers map[string][]json.RawMessage
}

func replay(t *testing.T, session []byte) *replayed {
	r := &replayed{t: t, answers: map[string][]json.RawMessage{}}
	keys := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(session)), "\n") {
		b := json.RawMessage(line[2:])
		id := string(member(b, "id"))
		switch {
		case line[0] == '>' && id != "":
			keys[id] = replayKey(b)
		case line[0] == '<' && member(b, "method") == nil && keys[id] != "":
			r.answers[keys[id]] = append(r.answers[keys[id]], b)
		}
	}
	return r
}

func replayKey(b json.RawMessage) string {
	return fmt.Sprintf("%s %s%s %v", stringAt(b, "method"), stringAt(b, "params", "name"), stringAt(b, "params", "taskId"), memberAt(b, "params", "inputResponses") != nil)
}

func (r *replayed) serve(ctx context.Context, conn jsonrpc.Conn) {
	if err := conn.Start(ctx, replaySink{r, conn}); err != nil {
		r.t.Error(err)
	}
	<-conn.Done()
}

type replaySink struct {
	*replayed
	conn jsonrpc.Conn
}

func (s replaySink) Failed(jsonrpc.ID, error) {}
func (s replaySink) Noise(string, []byte)     {}
func (s replaySink) Message(b json.RawMessage, _ string, _ jsonrpc.ID) {
	id := member(b, "id")
	if id == nil {
		return
	}
	key := replayKey(b)
	s.mu.Lock()
	list := s.answers[key]
	if len(list) > 1 {
		s.answers[key] = list[1:]
	}
	s.mu.Unlock()
	if len(list) == 0 {
		if !strings.HasPrefix(key, "subscriptions/listen") {
			s.t.Errorf("nothing like this was recorded: %s", b)
			list = []json.RawMessage{json.RawMessage(`{"error":{"code":-32603,"message":"not recorded"}}`)}
		} else {
			return
		}
	}
	a := list[0]
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	for _, m := range []string{"result", "error"} {
		if v := member(a, m); v != nil {
			out = append(append(out, `,"`+m+`":`...), v...)
		}
	}
	s.conn.Send(context.Background(), jsonrpc.Outgoing{Bytes: append(out, '}')})
}
