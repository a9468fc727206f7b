package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/demo"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// ear keeps what a client hears.
type ear struct {
	t      *testing.T
	client *mcp.Client
	mu     sync.Mutex
	asked  map[string]taskmodel.Question
	news   int
	steps  int
	lines  int
}

// forms are answers to the forms of the demo's tools, by a field of each.
var forms = map[string]string{
	"strategy":    `{"strategy":"canary","ticket":"CHG-20417"}`,
	"environment": `{"environment":"prd"}`,
}

func (e *ear) Snapshot(taskmodel.Observation) { e.mu.Lock(); e.news++; e.mu.Unlock() }
func (e *ear) Progress(_, _ string, _ taskmodel.Progress) {
	e.mu.Lock()
	e.steps++
	e.mu.Unlock()
}
func (e *ear) Asked(q taskmodel.Question) {
	e.mu.Lock()
	_, known := e.asked[q.ID.ID]
	e.asked[q.ID.ID] = q
	c := e.client
	e.mu.Unlock()
	if known || c == nil {
		return
	}
	for field, content := range forms {
		if strings.Contains(string(q.Schema), `"`+field+`"`) {
			go func() {
				if err := c.Answer(context.Background(), taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(content)}); err != nil {
					e.t.Errorf("answer: %v", err)
				}
			}()
		}
	}
}
func (e *ear) Withdrawn(taskmodel.QuestionID, string)               {}
func (e *ear) ElicitationComplete(string)                           {}
func (e *ear) Log(taskmodel.LogLine)                                { e.mu.Lock(); e.lines++; e.mu.Unlock() }
func (e *ear) ToolsChanged()                                        {}
func (e *ear) Pushing([]string)                                     {}
func (e *ear) ReceiverTask(taskmodel.Observation, mcp.ReceiverInfo) {}
func (e *ear) Wire(taskmodel.WireEntry)                             {}

// Each generation over each transport, with mcptasks' own client: connect,
// list, start, answer, result, cancel.
func TestInterop(t *testing.T) {
	for _, g := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension, taskmodel.GenDraft} {
		for _, way := range []string{"pipe", "http", "sse"} {
			if way == "sse" && g == taskmodel.GenExtension {
				continue // there is no such thing
			}
			t.Run(string(g)+" "+way, func(t *testing.T) {
				t.Parallel()
				s := demo.New(demo.Options{Generation: g, Tasks: 60, Seed: 9, Speed: 80})
				e := &ear{t: t, asked: map[string]taskmodel.Question{}}
				o := mcp.Options{Name: "demo", ClientName: "mcptasks", ClientVersion: "test", Handler: e}
				switch way {
				case "pipe":
					o.Dialer = demo.Dialer(s)
				default:
					h := httptest.NewServer(s.Handler())
					t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
					path := "/mcp"
					if way == "sse" {
						path, o.Era = "/sse", "sse"
					}
					o.Dialer = &transport.HTTP{URL: h.URL + path}
				}
				t.Cleanup(s.Close)
				ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
				defer stop()
				c, err := mcp.Connect(ctx, o)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close(ctx, true) }()
				e.mu.Lock()
				e.client = c
				e.mu.Unlock()
				if i := c.Info(); i.Generation != g {
					t.Fatalf("found %q (%s)", i.Generation, i.ProtocolVersion)
				}
				tools, err := c.Tools(ctx)
				if err != nil || len(tools) < 10 {
					t.Fatalf("%d tools, %v", len(tools), err)
				}
				tasks := c.Tasks()
				if g != taskmodel.GenExtension {
					n, cursor := 0, ""
					for {
						p, err := tasks.List(ctx, cursor, nil)
						if err != nil {
							t.Fatal(err)
						}
						n += len(p.Tasks)
						if cursor = p.Next; cursor == "" {
							break
						}
					}
					if n < 55 {
						t.Errorf("listed %d", n)
					}
				}
				st, err := tasks.Start(ctx, mcp.StartCall{Tool: "deploy_release", Args: json.RawMessage(`{"service":"api","version":"v1.2.3"}`), CallID: "c1"})
				if err != nil || st.TaskID == "" {
					t.Fatalf("start: %+v, %v", st, err)
				}
				r, err := tasks.Result(ctx, st.TaskID)
				if err != nil || !strings.Contains(string(r.Result), `"rolledOut":true`) {
					t.Errorf("result: %s, %v", r.Result, err)
				}
				st, err = tasks.Start(ctx, mcp.StartCall{Tool: "reindex_search", Args: json.RawMessage(`{"index":"x"}`), CallID: "c2"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tasks.Cancel(ctx, st.TaskID); err != nil {
					t.Errorf("cancel: %v", err)
				}
				for {
					sn, err := tasks.Get(ctx, st.TaskID)
					if err != nil {
						t.Fatal(err)
					}
					if sn.Status == "cancelled" {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				if _, err := tasks.Get(ctx, "no-such-task"); !errors.Is(err, mcp.ErrNotFound) {
					t.Errorf("unknown task: %v", err)
				}
			})
		}
	}
}
