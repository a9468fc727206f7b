package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/peers"
	"mcptasks/mcp/schematest"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// A session with a peer that nobody here wrote: what it asks comes out of
// asked; every message of ours is checked against the official schema.
type peerSession struct {
	deaf
	t       *testing.T
	c       *Client
	ctx     context.Context
	asked   chan taskmodel.Question
	pushed  chan taskmodel.Observation
	own     chan ReceiverInfo
	checker *schematest.Checker
	pace    time.Duration // between polls

	mu   sync.Mutex
	wire []taskmodel.WireEntry
}

func (p *peerSession) Asked(q taskmodel.Question)                           { p.asked <- q }
func (p *peerSession) Snapshot(o taskmodel.Observation)                     { p.pushed <- o }
func (p *peerSession) ReceiverTask(_ taskmodel.Observation, i ReceiverInfo) { p.own <- i }
func (p *peerSession) Wire(e taskmodel.WireEntry) {
	if e.Kind == "noise" || e.Kind == "http" {
		return
	}
	p.mu.Lock()
	p.wire = append(p.wire, e)
	p.mu.Unlock()
	d := schematest.Received
	if e.Direction == taskmodel.Sent {
		d = schematest.Sent
	}
	if err := p.checker.Err(d, e.Bytes); err != nil && d == schematest.Sent {
		p.t.Errorf("we sent: %v\n%s", err, e.Bytes)
	}
}

// stdioPeer and httpPeer are dialers for a peer, by its name.
func stdioPeer(t *testing.T, name string) Dialer {
	c := peers.Command(t, name)
	return recorded(t, name+"-stdio", &transport.Stdio{Command: c[0], Args: c[1:]})
}

func httpPeer(t *testing.T, name string) Dialer { return &transport.HTTP{URL: peers.Serve(t, name)} }

// pushedTo waits until the server has said by itself that a task has a status.
func (p *peerSession) pushedTo(id string, status taskmodel.Status) {
	p.t.Helper()
	for {
		select {
		case o := <-p.pushed:
			if o.Source == taskmodel.FromPush && o.Snapshot.ID == id && o.Snapshot.Status == status {
				return
			}
		case <-p.ctx.Done():
			p.t.Fatalf("the server has not told that %s is %s", id, status)
		}
	}
}

// connectPeer connects; an era given is forced.
func connectPeer(t *testing.T, d Dialer, g taskmodel.Generation, era ...string) *peerSession {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 6*time.Minute)
	t.Cleanup(stop)
	p := &peerSession{
		t: t, ctx: ctx, asked: make(chan taskmodel.Question, 100), pushed: make(chan taskmodel.Observation, 1000),
		own: make(chan ReceiverInfo, 100), checker: schematest.NewChecker(t, g), pace: 100 * time.Millisecond,
	}
	if _, ok := d.(*replayedPeer); ok {
		p.pace = time.Millisecond
	}
	c, err := Connect(ctx, Options{Name: "peer", Dialer: d, ClientVersion: "1", Handler: p, Era: strings.Join(era, ""),
		Roots: func() []Root { return []Root{{URI: "file:///tmp"}} }})
	if err != nil {
		t.Fatal(err)
	}
	p.c = c
	t.Cleanup(func() {
		end, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		if err := c.Close(end, true); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, e := range p.wire {
				t.Logf("%s %s", e.Direction, clip(e.Bytes))
			}
		}
	})
	return p
}

func (p *peerSession) start(tool, args string) taskmodel.Snapshot {
	p.t.Helper()
	st, err := p.c.Tasks().Start(p.ctx, StartCall{Tool: tool, Args: json.RawMessage(args), TTL: 5 * time.Minute, CallID: tool})
	if err != nil || st.TaskID == "" {
		p.t.Fatalf("start: %+v %v", st, err)
	}
	return st.Snapshot
}

// until polls a task until it has the status.
func (p *peerSession) until(id string, status taskmodel.Status) taskmodel.Snapshot {
	p.t.Helper()
	for {
		s, err := p.c.Tasks().Get(p.ctx, id)
		if err != nil {
			p.t.Fatal(err)
		}
		if s.Status == status {
			if s.Missing != nil || s.Lenient != nil {
				p.t.Errorf("missing %v, lenient %v", s.Missing, s.Lenient)
			}
			return s
		}
		if s.Status.Terminal(p.c.Info().Generation) {
			p.t.Fatalf("%s is %s, not %s: %s", id, s.Status, status, s.StatusMessage)
		}
		select {
		case <-time.After(p.pace):
		case <-p.ctx.Done():
			p.t.Fatal(p.ctx.Err())
		}
	}
}

func (p *peerSession) question() taskmodel.Question {
	p.t.Helper()
	select {
	case q := <-p.asked:
		return q
	case <-p.ctx.Done():
		p.t.Fatal("no question came")
	}
	return taskmodel.Question{}
}

func (p *peerSession) answer(q taskmodel.Question, a taskmodel.Action, content string) {
	p.t.Helper()
	ans := taskmodel.Answer{Question: q.ID, Action: a}
	if content != "" {
		ans.Content = json.RawMessage(content)
	}
	if err := p.c.Answer(p.ctx, ans); err != nil {
		p.t.Fatalf("answer: %v", err)
	}
}

// TestPeerEverything: @modelcontextprotocol/server-everything over all three of
// its transports: started, question answered, result read, another cancelled,
// listed; and us as its receiver.
func TestPeerEverything(t *testing.T) {
	for _, c := range []struct {
		name string
		dial func(*testing.T) Dialer
		over string
	}{
		{"recorded", func(t *testing.T) Dialer { return replayPeer(t, "everything-stdio") }, "stdio"},
		{"stdio", func(t *testing.T) Dialer { return stdioPeer(t, "everything") }, "stdio"},
		{"streamableHttp", func(t *testing.T) Dialer { return httpPeer(t, "everything-http") }, "http"},
		{"sse", func(t *testing.T) Dialer { return httpPeer(t, "everything-sse") }, "sse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := connectPeer(t, c.dial(t), taskmodel.GenCore)
			if i := p.c.Info(); i.Generation != taskmodel.GenCore || i.Transport != c.over || i.ProtocolVersion != versionCore || !i.Can.List || !i.Can.Cancel || !i.Can.Start {
				t.Fatalf("%+v", i)
			}
			t.Run("task", func(t *testing.T) { p.t = t; everythingTask(p) })
			t.Run("cancel", func(t *testing.T) { p.t = t; everythingCancel(p) })
			t.Run("receiver", func(t *testing.T) { p.t = t; everythingReceiver(p) })
			t.Run("plain", func(t *testing.T) { p.t = t; everythingPlain(p) })
			p.t = t
		})
	}
}

func everythingTask(p *peerSession) {
	t := p.t
	s := p.start("simulate-research-query", `{"topic":"python","ambiguous":true}`)
	if s.Status != taskmodel.Working || !s.TTL.Known || s.PollInterval != time.Second {
		t.Errorf("%+v", s)
	}
	p.until(s.ID, taskmodel.InputRequired)
	result := make(chan taskmodel.Outcome, 1)
	go func() {
		o, err := p.c.Tasks().Result(p.ctx, s.ID)
		if err != nil {
			t.Errorf("result: %v", err)
		}
		result <- o
	}()
	q := p.question()
	if q.Kind != taskmodel.AskForm || q.Task != (taskmodel.Key{Server: "peer", ID: s.ID, Role: taskmodel.Requestor}) || !strings.Contains(q.Message, "python") || member(q.Schema, "properties") == nil {
		t.Errorf("%+v", q)
	}
	p.answer(q, taskmodel.Accept, `{"interpretation":"snake"}`)
	o := <-result
	if o.Err != nil || o.Note != "" || !strings.Contains(string(o.Result), "python (snake)") || relatedTask(o.Result).task != s.ID {
		t.Errorf("%+v %s", o, o.Result)
	}
	p.until(s.ID, taskmodel.Completed)
	p.pushedTo(s.ID, taskmodel.Completed)
}

func everythingCancel(p *peerSession) {
	t := p.t
	s := p.start("simulate-research-query", `{"topic":"moss"}`)
	waits := make(chan error, 1)
	go func() {
		_, err := p.c.Tasks().Result(p.ctx, s.ID)
		waits <- err
	}()
	got, err := p.c.Tasks().Cancel(p.ctx, s.ID)
	if err != nil || got == nil || got.Status != taskmodel.Cancelled {
		t.Fatalf("%+v %v", got, err)
	}
	<-waits // S3: whatever it brings, it comes
	p.until(s.ID, taskmodel.Cancelled)
	if _, err := p.c.Tasks().Cancel(p.ctx, s.ID); !strings.Contains(words(err), "[ErrTerminal]") {
		t.Errorf("cancelled twice: %v", words(err))
	}
	for _, f := range []func() error{
		func() error { _, err := p.c.Tasks().Get(p.ctx, "nobody"); return err },
		func() error { _, err := p.c.Tasks().Result(p.ctx, "nobody"); return err },
		func() error { _, err := p.c.Tasks().Cancel(p.ctx, "nobody"); return err },
	} {
		if err := f(); !strings.Contains(words(err), "[ErrNotFound]") {
			t.Errorf("an unknown task: %v", words(err))
		}
	}
	found := false
	for cursor := ""; ; {
		page, err := p.c.Tasks().List(p.ctx, cursor, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Tasks {
			found = found || r.ID == s.ID && r.Status == taskmodel.Cancelled
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if !found {
		t.Errorf("%s is not in the list", s.ID)
	}
}

// everythingReceiver lets the server ask us as a task.
func everythingReceiver(p *peerSession) {
	t := p.t
	for _, c := range []struct{ tool, method, content, want string }{
		{"trigger-elicitation-request-async", methodElicit, `{"name":"Ada","favoriteColor":"Red","agreeToTerms":true}`, "Ada"},
		{"trigger-sampling-request-async", methodSampling, `{"role":"assistant","model":"me","content":{"type":"text","text":"Forty-two"}}`, "Forty-two"},
	} {
		done := make(chan Started, 1)
		go func() {
			st, err := p.c.Tasks().Start(p.ctx, StartCall{Tool: c.tool, Args: json.RawMessage(`{"prompt":"hi"}`), Plain: true, CallID: c.tool})
			if err != nil {
				t.Errorf("%s: %v", c.tool, err)
			}
			done <- st
		}()
		q := p.question()
		if !q.Receiver || q.Task.Role != taskmodel.Receiver || q.Method != c.method {
			t.Errorf("%+v", q)
		}
		p.answer(q, taskmodel.Accept, c.content)
		st := <-done
		if !strings.Contains(string(st.Outcome.Result), c.want) {
			t.Errorf("%s: %s", c.tool, st.Outcome.Result)
		}
		var events []string
		for range 3 {
			select {
			case e := <-p.own:
				events = append(events, e.Event)
			case <-p.ctx.Done():
				t.Fatal("not all was heard")
			}
		}
		if got := strings.Join(events, " "); got != "created ended retrieved" {
			t.Errorf("%s: %s", c.tool, got)
		}
	}
}

func everythingPlain(p *peerSession) {
	t := p.t
	tools, err := p.c.Tools(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	support := map[string]string{}
	for _, tool := range tools {
		support[tool.Name] = tool.TaskSupport
	}
	if support["simulate-research-query"] != "required" || support["echo"] != "forbidden" {
		t.Errorf("%v", support)
	}
	_, err = p.c.Tasks().Start(p.ctx, StartCall{Tool: "simulate-research-query", Args: json.RawMessage(`{"topic":"x"}`), Plain: true})
	if !strings.Contains(words(err), "[ErrTaskRequired]") {
		t.Errorf("a required tool called plainly: %v", words(err))
	}
	_, err = p.c.Tasks().Start(p.ctx, StartCall{Tool: "echo", Args: json.RawMessage(`{"message":"x"}`)})
	if !strings.Contains(words(err), "[ErrUnsupported]") {
		t.Errorf("a plain tool called as a task: %v", words(err))
	}
	st, err := p.c.Tasks().Start(p.ctx, StartCall{Tool: "get-roots-list", Plain: true})
	if err != nil || !strings.Contains(string(st.Outcome.Result), "file:///tmp") {
		t.Errorf("roots: %s %v", st.Outcome.Result, err)
	}
	done := make(chan Started, 1)
	go func() {
		st, err := p.c.Tasks().Start(p.ctx, StartCall{Tool: "trigger-elicitation-request", Plain: true, CallID: "c"})
		if err != nil {
			t.Error(err)
		}
		done <- st
	}()
	q := p.question()
	if q.Receiver || q.Task != (taskmodel.Key{}) || q.Tool != "trigger-elicitation-request" && p.c.Info().Transport == "http" {
		t.Errorf("%+v", q)
	}
	p.answer(q, taskmodel.Decline, "")
	if st := <-done; !strings.Contains(string(st.Outcome.Result), "declined") {
		t.Errorf("%s", st.Outcome.Result)
	}
}
