package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"mcptasks/taskmodel"
)

// TestPeerPythonCore: the Python SDK's experimental tasks of 2025-11-25, over
// stdio and Streamable HTTP: steps, questions, sampling, failure, and a question
// that it asks of us as a task while its own task waits.
func TestPeerPythonCore(t *testing.T) {
	for name, dial := range map[string]func(*testing.T) Dialer{
		"recorded": func(t *testing.T) Dialer { return replayPeer(t, "python-core-stdio") },
		"stdio":    func(t *testing.T) Dialer { return stdioPeer(t, "python-core") },
		"http":     func(t *testing.T) Dialer { return httpPeer(t, "python-core-http") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := connectPeer(t, dial(t), taskmodel.GenCore)
			if i := p.c.Info(); i.Generation != taskmodel.GenCore || !i.Can.Start {
				t.Fatalf("%+v", i)
			}
			s := p.start("slow", `{"steps":3}`)
			if s.ModelNote != "slow has begun" {
				t.Errorf("the note for the model is %q", s.ModelNote)
			}
			p.until(s.ID, taskmodel.Completed)
			p.pushedTo(s.ID, taskmodel.Working) // it tells of its steps
			if o, err := p.c.Tasks().Result(p.ctx, s.ID); err != nil || !strings.Contains(string(o.Result), "3 steps done") {
				t.Errorf("%s %v", o.Result, err)
			}
			for _, c := range []struct{ tool, content, want string }{
				{"approve", `{"go":true}`, "accept"},
				{"haiku", `{"role":"assistant","model":"me","content":{"type":"text","text":"Leaves fall"}}`, "Leaves fall"},
				{"ask_as_task", `{"go":false}`, "accept"},
			} {
				s := p.start(c.tool, `{}`)
				p.until(s.ID, taskmodel.InputRequired)
				result := make(chan taskmodel.Outcome, 1)
				go func() {
					o, err := p.c.Tasks().Result(p.ctx, s.ID)
					if err != nil {
						t.Errorf("%s: %v", c.tool, err)
					}
					result <- o
				}()
				q := p.question()
				if q.Receiver != (c.tool == "ask_as_task") || !q.Receiver && q.Task.ID != s.ID {
					t.Errorf("%s: %+v", c.tool, q)
				}
				p.answer(q, taskmodel.Accept, c.content)
				if o := <-result; !strings.Contains(string(o.Result), c.want) {
					t.Errorf("%s: %s %v", c.tool, o.Result, o.Err)
				}
				p.until(s.ID, taskmodel.Completed)
			}
			// S1: what failed still has its result or its error.
			s = p.start("broken", `{}`)
			p.until(s.ID, taskmodel.Failed)
			o, err := p.c.Tasks().Result(p.ctx, s.ID)
			if err != nil || o.IsZero() {
				t.Errorf("%+v %v", o, err)
			}
		})
	}
}

// TestPeerMcpGo: the tasks of mcp-go 1.2.1: done, cancelled, failed. Its stdio
// and HTTP servers are of both eras and have tasks in the older one alone. It
// ends a task's context with the request that made it, so that whatever takes
// time there may cancel itself; the test goes by what does not.
func TestPeerMcpGo(t *testing.T) {
	for name, dial := range map[string]func(*testing.T) Dialer{
		"recorded": func(t *testing.T) Dialer { return replayPeer(t, "mcp-go-stdio") },
		"stdio":    func(t *testing.T) Dialer { return stdioPeer(t, "mcp-go") },
		"http":     func(t *testing.T) Dialer { return httpPeer(t, "mcp-go-http") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := connectPeer(t, dial(t), taskmodel.GenCore)
			if i := p.c.Info(); i.Generation != taskmodel.GenCore || !i.Can.List || !i.Can.Cancel || !i.Can.Start {
				t.Fatalf("%+v", i)
			}
			s := p.start("report", `{}`)
			o, err := p.c.Tasks().Result(p.ctx, s.ID)
			if err != nil || !strings.Contains(string(o.Result), "all is well") {
				t.Errorf("%s %v", o.Result, err)
			}
			p.until(s.ID, taskmodel.Completed)
			s = p.start("count", `{"n":1000,"delay":50}`)
			if _, err := p.c.Tasks().Cancel(p.ctx, s.ID); err != nil && !strings.Contains(words(err), "[ErrTerminal]") {
				t.Error(words(err))
			}
			p.until(s.ID, taskmodel.Cancelled)
			p.pushedTo(s.ID, taskmodel.Cancelled)
			s = p.start("refuse", `{}`)
			p.until(s.ID, taskmodel.Failed)
			if o, err := p.c.Tasks().Result(p.ctx, s.ID); err != nil || o.IsZero() {
				t.Errorf("%+v %v", o, err)
			}
			if _, err := p.c.Tasks().Get(p.ctx, "nobody"); !strings.Contains(words(err), "[ErrNotFound]") {
				t.Error(words(err))
			}
		})
	}
}

// TestPeerWithoutTasks: a server of the go-sdk has none in either era, one of
// mcp-go none in the modern; their tools can be called.
func TestPeerWithoutTasks(t *testing.T) {
	stdio := func(name string) func(*testing.T) Dialer {
		return func(t *testing.T) Dialer { return stdioPeer(t, name) }
	}
	http := func(name string) func(*testing.T) Dialer {
		return func(t *testing.T) Dialer { return httpPeer(t, name) }
	}
	greet := StartCall{Tool: "greet", Args: json.RawMessage(`{"name":"Ada"}`), Plain: true}
	now := StartCall{Tool: "now", Plain: true}
	for _, c := range []struct {
		name string
		dial func(*testing.T) Dialer
		era  string               // forced; "": found
		gen  taskmodel.Generation // whose schema is spoken
		call StartCall
		want string
	}{
		{"recorded", func(t *testing.T) Dialer { return replayPeer(t, "go-sdk-stdio") }, "", taskmodel.GenExtension, greet, "Hello, Ada"},
		{"stdio", stdio("go-sdk"), "", taskmodel.GenExtension, greet, "Hello, Ada"},
		{"stdio, legacy", stdio("go-sdk"), eraLegacy, taskmodel.GenCore, greet, "Hello, Ada"},
		{"http", http("go-sdk-http"), "", taskmodel.GenCore, greet, "Hello, Ada"},
		{"mcp-go, modern", stdio("mcp-go"), eraModern, taskmodel.GenExtension, now, `"text":"2`},
		{"mcp-go, modern, http", http("mcp-go-http"), eraModern, taskmodel.GenExtension, now, `"text":"2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.dial(t)
			if r, ok := d.(*recorder); ok && c.era != "" {
				d = r.Dialer // another session is kept under this name
			}
			p := connectPeer(t, d, c.gen, c.era)
			if i := p.c.Info(); i.Generation != taskmodel.GenNone || i.Can.Start || i.Can.StartWhy == "" {
				t.Fatalf("%+v", i)
			}
			tools, err := p.c.Tools(p.ctx)
			if err != nil || len(tools) == 0 || tools[0].WhyNotTask == "" {
				t.Errorf("%+v %v", tools, err)
			}
			st, err := p.c.Tasks().Start(p.ctx, c.call)
			if err != nil || !strings.Contains(string(st.Outcome.Result), c.want) {
				t.Errorf("%+v %v", st, err)
			}
		})
	}
}

// TestPeerSDKInteractive: the TypeScript SDK's example of tasks that ask, over
// Streamable HTTP: a form in a task, and a sampling in another.
func TestPeerSDKInteractive(t *testing.T) {
	for name, dial := range map[string]func(*testing.T) Dialer{
		"recorded": func(t *testing.T) Dialer { return replayPeer(t, "sdk-interactive-http") },
		"http":     func(t *testing.T) Dialer { return recorded(t, "sdk-interactive-http", httpPeer(t, "sdk-interactive")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sdkInteractive(connectPeer(t, dial(t), taskmodel.GenCore))
		})
	}
}

func sdkInteractive(p *peerSession) {
	t := p.t
	if i := p.c.Info(); i.Can.Cancel || i.Can.List || !i.Can.Start {
		t.Errorf("%+v", i)
	}
	for _, c := range []struct{ tool, args, content, want string }{
		{"confirm_delete", `{"filename":"a.txt"}`, `{"confirm":true}`, "a.txt"},
		{"write_haiku", `{"topic":"autumn"}`, `{"role":"assistant","model":"me","content":{"type":"text","text":"Leaves fall"}}`, "Leaves fall"},
	} {
		s := p.start(c.tool, c.args)
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
		if q.Task.ID != s.ID {
			t.Errorf("%+v", q)
		}
		p.answer(q, taskmodel.Accept, c.content)
		if o := <-result; !strings.Contains(string(o.Result), c.want) {
			t.Errorf("%s: %s", c.tool, o.Result)
		}
		p.until(s.ID, taskmodel.Completed)
	}
}
