package mcp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// TestPeerRmcp: the extension of 2026-07-28 by the Rust SDK (peers/rmcp), over
// stdio: steps, two rounds of questions, a tool's own error, an error of the
// protocol, cancels, and a task whose time is over.
func TestPeerRmcp(t *testing.T) {
	for name, dial := range map[string]func(*testing.T) Dialer{
		"recorded": func(t *testing.T) Dialer { return replayPeer(t, "rmcp-stdio") },
		"stdio":    func(t *testing.T) Dialer { return stdioPeer(t, "rmcp") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := connectPeer(t, dial(t), taskmodel.GenExtension)
			if i := p.c.Info(); i.Era != eraModern || i.Generation != taskmodel.GenExtension || !i.Can.Start || i.Can.List {
				t.Fatalf("%+v", i)
			}
			t.Run("life", func(t *testing.T) { p.t = t; rmcpLife(p) })
			t.Run("questions", func(t *testing.T) { p.t = t; rmcpQuestions(p) })
			t.Run("ends", func(t *testing.T) { p.t = t; rmcpEnds(p) })
			p.t = t
		})
	}
}

func (p *peerSession) result(id, want string) {
	p.t.Helper()
	if o, err := p.c.Tasks().Result(p.ctx, id); err != nil || !strings.Contains(string(o.Result), want) {
		p.t.Errorf("result of %s: %s %v, want %q", id, o.Result, err, want)
	}
}

func rmcpLife(p *peerSession) {
	t := p.t
	s := p.start("crunch", `{"ms":300,"text":"crunched"}`)
	if s.Status != taskmodel.Working || s.PollInterval != 200*time.Millisecond {
		t.Errorf("%+v", s)
	}
	if end := p.until(s.ID, taskmodel.Completed); !strings.Contains(string(end.Outcome.Result), "crunched") || end.StatusMessage == "" {
		t.Errorf("%+v", end)
	}
	p.result(s.ID, "crunched")
	st, err := p.c.Tasks().Start(p.ctx, StartCall{Tool: "echo", Args: json.RawMessage(`{"text":"hi"}`)})
	if err != nil || st.TaskID != "" || !strings.Contains(string(st.Outcome.Result), "hi") {
		t.Errorf("echo: %+v %v", st, err)
	}
	for _, f := range []func() error{
		func() error { _, err := p.c.Tasks().Get(p.ctx, "nobody"); return err },
		func() error { _, err := p.c.Tasks().Cancel(p.ctx, "nobody"); return err },
	} {
		if err := f(); !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown task: %v", err)
		}
	}
}

// open polls a task until it asks what was not answered yet.
func (p *peerSession) open(id string) taskmodel.Question {
	p.t.Helper()
	for {
		for _, q := range p.until(id, taskmodel.InputRequired).Questions {
			if q.State == taskmodel.QuestionOpen {
				return q
			}
		}
		select {
		case <-time.After(p.pace):
		case <-p.ctx.Done():
			p.t.Fatal(p.ctx.Err())
		}
	}
}

func rmcpQuestions(p *peerSession) {
	t := p.t
	s := p.start("deploy", `{}`)
	q := p.open(s.ID)
	if q.Kind != taskmodel.AskForm || q.Key != "where" || !strings.Contains(q.Message, "Where to") || q.Round != 1 {
		t.Errorf("%+v", q)
	}
	p.answer(q, taskmodel.Accept, `{"target":"prod"}`)
	if q = p.open(s.ID); q.Key != "many" || q.Round != 2 {
		t.Errorf("%+v", q)
	}
	p.answer(q, taskmodel.Accept, `{"n":3}`)
	p.until(s.ID, taskmodel.Completed)
	p.result(s.ID, "deployed 3 to prod")

	s = p.start("deploy", `{}`)
	p.answer(p.open(s.ID), taskmodel.Decline, "")
	p.until(s.ID, taskmodel.Completed)
	p.result(s.ID, "not deployed")
}

func rmcpEnds(p *peerSession) {
	t := p.t
	s := p.start("wobble", `{}`)
	if end := p.until(s.ID, taskmodel.Completed); !strings.Contains(string(end.Outcome.Result), `"isError":true`) {
		t.Errorf("tool error: %s", end.Raw)
	}
	s = p.start("broken", `{}`)
	if end := p.until(s.ID, taskmodel.Failed); end.Outcome.Err == nil || !strings.Contains(end.Outcome.Err.Message, "the disk is full") {
		t.Errorf("protocol error: %s", end.Raw)
	}
	s = p.start("lapse", `{}`)
	if end := p.until(s.ID, taskmodel.Failed); end.Outcome.Err == nil || !strings.Contains(end.Outcome.Err.Message, "expired") {
		t.Errorf("expiry: %s", end.Raw)
	}
	s = p.start("crunch", `{"ms":1000000}`)
	if _, err := p.c.Tasks().Cancel(p.ctx, s.ID); err != nil {
		t.Error(err)
	}
	p.until(s.ID, taskmodel.Cancelled)
	s = p.start("deploy", `{}`)
	p.open(s.ID)
	if _, err := p.c.Tasks().Cancel(p.ctx, s.ID); err != nil {
		t.Error(err)
	}
	p.until(s.ID, taskmodel.Cancelled)
	// It answers no subscriptions/listen: nothing is taken for pushed.
	if err := p.c.Tasks().Watch(p.ctx, []string{s.ID}); err != nil {
		t.Error(err)
	}
}

// TestExtensionPeersPushNothing: why a push of this generation is proven by
// scripted servers alone. A peer that begins to push makes it fail, and then has
// to be tried (ext-tasks, Task Status Notifications).
func TestExtensionPeersPushNothing(t *testing.T) {
	for _, name := range []string{"rmcp-stdio", "fastmcp-stdio", "fastmcp-http"} {
		b, err := os.ReadFile(filepath.Join("testdata", "peers", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "<") && strings.HasPrefix(stringAt(json.RawMessage(line[2:]), "method"), "notifications/tasks") {
				t.Errorf("%s pushes: %s", name, line)
			}
		}
	}
}
