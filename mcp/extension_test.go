package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

// task is a task of the extension as a script sends it.
func taskX(id, status, more string) string {
	return `"taskId":"` + id + `","status":"` + status + `","createdAt":"2026-08-01T10:00:00Z","lastUpdatedAt":"2026-08-01T10:00:01Z","ttlMs":60000,"pollIntervalMs":1000` + more
}

// got is a tasks/get's answer.
func gotX(id, status, more string) string {
	return `S> {"result":{"resultType":"complete",` + taskX(id, status, more) + "}}\n"
}

func TestXStartMakesATask(t *testing.T) {
	// tasks.md, "Polymorphic Results" and "Task Creation"; basic/index, "_meta":
	// the metadata is on every request, the extension declared, params.task
	// never sent (field fault S15).
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectX(t, "stdio", nil)
		done := s.along(`
			C> tools/call {"name":"build","arguments":{"n":9007199254740993},"task":"-","_meta":{"progressToken":"*","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcptasks"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{"form":{},"url":{}},"sampling":{}}}}
			S> {"result":{"resultType":"task",` + taskX("T1", "working", `,"statusMessage":"compiling"`) + `}}`)
		st, err := c.Tasks().Start(t.Context(), StartCall{Tool: "build", Args: json.RawMessage(`{"n":9007199254740993}`), TTL: time.Hour, CallID: "c1"})
		done()
		if err != nil {
			t.Fatal(err)
		}
		if st.TaskID != "T1" || st.Snapshot.Status != taskmodel.Working || st.Snapshot.StatusMessage != "compiling" ||
			st.Snapshot.TTL.Duration != time.Minute || st.Snapshot.PollInterval != time.Second {
			t.Errorf("started %+v", st)
		}
		if !strings.Contains(st.Note, "no time to live to ask for") {
			t.Errorf("a TTL cannot be asked for, and the note says %q", st.Note)
		}
		if raw := string(s.all("tools/call")[0].raw); !strings.Contains(raw, "9007199254740993") {
			t.Errorf("the arguments lost digits: %s", raw)
		}
		if i := c.Info(); i.Generation != taskmodel.GenExtension || !i.Can.Start || i.Can.List || i.Can.ListWhy == "" || !i.Can.Push {
			t.Errorf("info %+v", i)
		}
	})
}

func TestXEveryRequestCarriesMetadata(t *testing.T) {
	// basic/index, "Per-request protocol fields" (MUST be included on every
	// request); tasks.md, "Protocol Errors": tasks methods without the
	// extension are refused. A plain call leaves the extension out.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectX(t, "stdio", func(o *Options) { o.Roots = func() []Root { return nil } })
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcptasks","version":"1.2.3"},"io.modelcontextprotocol/clientCapabilities":{"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
		done := s.along(`
			C> tasks/get {"taskId":"T1",` + meta + `}
			` + gotX("T1", "working", "") + `
			C> tasks/cancel {"taskId":"T1",` + meta + `}
			S> {"result":{"resultType":"complete"}}
			C> tools/list {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":"*"}}
			S> {"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}
			C> tools/call {"name":"build","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":"-"}}}
			S> {"result":{"resultType":"complete","content":[]}}
			C> subscriptions/listen {"notifications":{"taskIds":["T1"]},` + meta + `}`)
		if _, err := c.Tasks().Get(t.Context(), "T1"); err != nil {
			t.Error(err)
		}
		if snap, err := c.Tasks().Cancel(t.Context(), "T1"); err != nil || snap != nil {
			t.Errorf("an acknowledgement is no state: %v, %v", snap, err)
		}
		if _, err := c.Tools(t.Context()); err != nil {
			t.Error(err)
		}
		st, err := c.Tasks().Start(t.Context(), StartCall{Tool: "build", Plain: true})
		if err != nil || st.TaskID != "" || st.Outcome.Result == nil {
			t.Errorf("a plain call: %+v, %v", st, err)
		}
		if err := c.Tasks().Watch(t.Context(), []string{"T1"}); err != nil {
			t.Error(err)
		}
		done()
		if n := len(s.all("tasks/list")) + len(s.all("tasks/result")); n != 0 {
			t.Errorf("%d requests that this generation does not have", n)
		}
	})
}

func TestXNamesForTheHeader(t *testing.T) {
	// tasks.md, "Streamable HTTP: Routing Headers": Mcp-Name is the task id on
	// tasks/*; basic/transports/streamable-http, "Standard Request Headers":
	// the tool on tools/call. The version goes with each request.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectX(t, "http", nil)
		done := s.along(`
			C> tools/list
			S> {"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"sql","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}, "o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}, "b":{"type":"boolean","x-mcp-header":"B"}, "z":{"type":"string","x-mcp-header":"Z"}}}}]}}
			C> tools/call
			S> {"result":{"resultType":"task",` + taskX("T1", "working", "") + `}}
			C> tasks/get
			` + gotX("T1", "working", "") + `
			C> tasks/cancel
			S> {"result":{"resultType":"complete"}}`)
		st, err := c.Tasks().Start(t.Context(), StartCall{Tool: "sql", Args: json.RawMessage(`{"region":"Hello, 世界","o":{"n":1e2},"b":true,"z":null}`)})
		if err != nil {
			t.Fatal(err)
		}
		c.Tasks().Get(t.Context(), st.TaskID)
		c.Tasks().Cancel(t.Context(), st.TaskID)
		done()
		for method, name := range map[string]string{"tools/call": "sql", "tasks/get": "T1", "tasks/cancel": "T1"} {
			m := s.all(method)[0]
			if m.out.Name != name || m.out.Header["MCP-Protocol-Version"] != "2026-07-28" {
				t.Errorf("%s: name %q, header %v", method, m.out.Name, m.out.Header)
			}
		}
		h := s.all("tools/call")[0].out.Header
		if h["Mcp-Param-Region"] != "=?base64?SGVsbG8sIOS4lueVjA==?=" || h["Mcp-Param-N"] != "100" || h["Mcp-Param-B"] != "true" {
			t.Errorf("mirrored: %v", h)
		}
		if _, there := h["Mcp-Param-Z"]; there {
			t.Error("a null argument was mirrored")
		}
	})
}

func TestXHeaderMismatchListsToolsAndTriesOnce(t *testing.T) {
	// basic/transports/streamable-http, "Client Behavior": on HeaderMismatch
	// the client SHOULD list the tools again and retry.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectX(t, "http", nil)
		tool := func(more string) string {
			return `S> {"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"sql","inputSchema":{"type":"object","properties":{"region":{"type":"string"` + more + `}}}}]}}`
		}
		done := s.along(`
			C> tools/list
			` + tool("") + `
			C> tools/call
			S> {"error":{"code":-32020,"message":"Header mismatch: Mcp-Param-Region is missing"}}
			C> tools/list
			` + tool(`,"x-mcp-header":"Region"`) + `
			C> tools/call
			S> {"error":{"code":-32020,"message":"Header mismatch"}}`)
		_, err := c.Tasks().Start(t.Context(), StartCall{Tool: "sql", Args: json.RawMessage(`{"region":"eu"}`)})
		done()
		if codeOf(err) != codeHeaderMismatch {
			t.Errorf("err = %v", err)
		}
		calls := s.all("tools/call")
		if len(calls) != 2 || calls[1].out.Header["Mcp-Param-Region"] != "eu" {
			t.Errorf("the second call went with %v", calls[len(calls)-1].out.Header)
		}
		s.quiet()
	})
}

func TestXAnswersToACall(t *testing.T) {
	// basic/index, "ResultType": absent is complete, an unknown type is invalid.
	cases := []struct {
		name, answer string
		task         string
		result       bool
		lenient      string
		err          string
	}{
		{"complete", `{"result":{"resultType":"complete","content":[]}}`, "", true, "", ""},
		{"absent", `{"result":{"content":[]}}`, "", true, "", ""},
		{"isError is a result", `{"result":{"resultType":"complete","content":[],"isError":true}}`, "", true, "", ""},
		{"unknown type", `{"result":{"resultType":"later","content":[]}}`, "", false, "", "unknown type"},
		{"task without resultType", `{"result":{` + taskX("T", "working", "") + `}}`, "T", false, "without resultType", ""},
		{"core's shape", `{"result":{"task":{"taskId":"T","status":"working","createdAt":"2026-08-01T10:00:00Z","lastUpdatedAt":"2026-08-01T10:00:00Z","ttl":5}}}`, "T", false, "another generation", ""},
		{"task without an id", `{"result":{"resultType":"task","status":"working"}}`, "", false, "", "cannot be read"},
		{"completed at once", `{"result":{"resultType":"task",` + taskX("T", "completed", `,"result":{"content":[]}`) + `}}`, "T", false, "", ""},
		{"input without any", `{"result":{"resultType":"input_required"}}`, "", false, "", "does not say which"},
		{"error", `{"error":{"code":-32602,"message":"no such tool"}}`, "", false, "", "srv: calling the tool b: the server answered with error -32602: no such tool"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, _ := connectX(t, "stdio", nil)
				s.loose = true
				done := s.along("C> tools/call\nS> " + tc.answer)
				st, err := c.Tasks().Start(t.Context(), StartCall{Tool: "b"})
				done()
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("err = %v, want %q in it", err, tc.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if st.TaskID != tc.task || (st.Outcome.Result != nil) != tc.result {
					t.Errorf("started %+v", st)
				}
				if tc.lenient != "" && !strings.Contains(strings.Join(st.Snapshot.Lenient, "; "), tc.lenient) {
					t.Errorf("lenient: %q", st.Snapshot.Lenient)
				}
			})
		})
	}
}

func TestXStates(t *testing.T) {
	// tasks.md, "Task Polling", Response: result, error and inputRequests are
	// inlined; isError stays inside completed ("Task Execution Errors").
	cases := []struct {
		name, task string
		check      func(t *testing.T, s taskmodel.Snapshot)
	}{
		{"working", taskX("T", "working", ""), func(t *testing.T, s taskmodel.Snapshot) {
			if s.Questions != nil || !s.Outcome.IsZero() || len(s.Missing)+len(s.Lenient) != 0 {
				t.Errorf("%+v", s)
			}
		}},
		{"completed", taskX("T", "completed", `,"result":{"content":[],"isError":true}`), func(t *testing.T, s taskmodel.Snapshot) {
			if string(s.Outcome.Result) != `{"content":[],"isError":true}` || s.Outcome.Err != nil {
				t.Errorf("%+v", s.Outcome)
			}
		}},
		{"completed without a result", taskX("T", "completed", ""), func(t *testing.T, s taskmodel.Snapshot) {
			if strings.Join(s.Missing, ",") != "result" {
				t.Errorf("missing %v", s.Missing)
			}
		}},
		{"failed", taskX("T", "failed", `,"error":{"code":-32603,"message":"rate limit","data":{"a":1}}`), func(t *testing.T, s taskmodel.Snapshot) {
			if e := s.Outcome.Err; e == nil || e.Code != -32603 || e.Message != "rate limit" || string(e.Data) != `{"a":1}` {
				t.Errorf("%+v", s.Outcome)
			}
		}},
		{"failed with a text", taskX("T", "failed", `,"error":"rate limit"`), func(t *testing.T, s taskmodel.Snapshot) {
			if e := s.Outcome.Err; e == nil || e.Message != "rate limit" || len(s.Lenient) == 0 {
				t.Errorf("%+v", s)
			}
		}},
		{"failed with a result", taskX("T", "failed", `,"result":{"isError":true,"content":[]}`), func(t *testing.T, s taskmodel.Snapshot) {
			if s.Outcome.Result == nil || len(s.Lenient) == 0 {
				t.Errorf("%+v", s)
			}
		}},
		{"failed without an error", taskX("T", "failed", ""), func(t *testing.T, s taskmodel.Snapshot) {
			if strings.Join(s.Missing, ",") != "error" {
				t.Errorf("missing %v", s.Missing)
			}
		}},
		{"input_required without requests", taskX("T", "input_required", ""), func(t *testing.T, s taskmodel.Snapshot) {
			if strings.Join(s.Missing, ",") != "inputRequests" || s.Questions != nil {
				t.Errorf("missing %v, questions %v", s.Missing, s.Questions)
			}
		}},
		// S11: a status that no generation has is shown raw, and is no end.
		{"S11 an unknown status", taskX("T", "paused", ""), func(t *testing.T, s taskmodel.Snapshot) {
			if s.Status != "paused" || len(s.Lenient) == 0 || s.Status.Terminal(taskmodel.GenExtension) {
				t.Errorf("%+v", s)
			}
		}},
		{"S11 unknown is no end here", taskX("T", "unknown", ""), func(t *testing.T, s taskmodel.Snapshot) {
			if s.Status.Terminal(taskmodel.GenExtension) || len(s.Lenient) == 0 {
				t.Errorf("%+v", s)
			}
		}},
		// S16: names of another generation are read and marked.
		{"S16 core's names", `"taskId":"T","status":"working","createdAt":"2026-08-01T10:00:00Z","lastUpdatedAt":"2026-08-01T10:00:00Z","ttl":7000,"pollInterval":300`, func(t *testing.T, s taskmodel.Snapshot) {
			if s.TTL.Duration != 7*time.Second || s.PollInterval != 300*time.Millisecond || len(s.Lenient) != 2 {
				t.Errorf("%+v", s)
			}
		}},
		{"S16 the draft's names", `"taskId":"T","status":"working","createdAt":"2026-08-01T10:00:00Z","lastUpdatedAt":"2026-08-01T10:00:00Z","keepAlive":null,"pollFrequency":300`, func(t *testing.T, s taskmodel.Snapshot) {
			if !s.TTL.Unlimited || s.PollInterval != 300*time.Millisecond || len(s.Lenient) != 2 {
				t.Errorf("%+v", s)
			}
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, _ := connectX(t, "stdio", nil)
				s.loose = true
				done := s.along("C> tasks/get\n" + `S> {"result":{"resultType":"complete",` + tc.task + `}}`)
				snap, err := c.Tasks().Get(t.Context(), "T")
				done()
				if err != nil {
					t.Fatal(err)
				}
				tc.check(t, snap)
			})
		})
	}
}

func TestXErrorsAreToldApart(t *testing.T) {
	// S14; tasks.md, "Protocol Errors": -32602 is an id that is not known,
	// -32021 names what must be declared; any other code is what it is.
	missing := `{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{"url":{}}}}}`
	get := func(c *Client) error { _, err := c.Tasks().Get(context.Background(), "T"); return err }
	cancel := func(c *Client) error { _, err := c.Tasks().Cancel(context.Background(), "T"); return err }
	start := func(plain bool) func(c *Client) error {
		return func(c *Client) error {
			_, err := c.Tasks().Start(context.Background(), StartCall{Tool: "b", Plain: plain})
			return err
		}
	}
	cases := []struct {
		name  string
		do    func(*Client) error
		error string
		is    error
		not   error
		words string
	}{
		{"S14 get, -32021", get, missing, ErrNotNegotiated, ErrNotFound, "extensions.io.modelcontextprotocol/tasks, elicitation.url"},
		{"S14 get, -32601", get, `{"code":-32601,"message":"Method not found"}`, ErrNotNegotiated, ErrNotFound, "does not know the method"},
		{"get, -32602", get, `{"code":-32602,"message":"Failed to retrieve task: Task has expired"}`, ErrNotFound, ErrNotNegotiated, "Task has expired"},
		{"S14 get, another", get, `{"code":-32603,"message":"disk full"}`, nil, ErrNotFound, "error -32603: disk full"},
		{"S10 cancel, ended", cancel, `{"code":-32602,"message":"task is already completed"}`, ErrTerminal, ErrNotFound, "already completed"},
		{"cancel, not known", cancel, `{"code":-32602,"message":"Task not found"}`, ErrNotFound, ErrTerminal, "Task not found"},
		{"cancel, -32021", cancel, missing, ErrNotNegotiated, nil, "elicitation.url"},
		{"S13 a plain call of a task's tool", start(true), missing, ErrTaskRequired, nil, "start it as a task"},
		{"a call that lacks a capability", start(false), missing, ErrNotNegotiated, ErrTaskRequired, "elicitation.url"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, _ := connectX(t, "stdio", nil)
				done := make(chan error)
				go func() { done <- tc.do(c) }()
				s.next()
				m := s.all("")
				s.send(`{"jsonrpc":"2.0","id":` + string(m[len(m)-1].id) + `,"error":` + tc.error + `}`)
				err := <-done
				if err == nil || !strings.Contains(err.Error(), tc.words) || !strings.HasPrefix(err.Error(), "srv: ") {
					t.Errorf("err = %v, want %q in it", err, tc.words)
				}
				if tc.is != nil && !errors.Is(err, tc.is) {
					t.Errorf("%v is not %v", err, tc.is)
				}
				if tc.not != nil && errors.Is(err, tc.not) {
					t.Errorf("%v is %v", err, tc.not)
				}
				var rpc *taskmodel.RPCError
				if !errors.As(err, &rpc) || rpc.Code == 0 {
					t.Errorf("%v holds no RPCError", err)
				}
			})
		})
	}
	for name, err := range map[string]error{"list": firstErr(func(x *extension) error { _, err := x.List(t.Context(), "", nil); return err }), "delete": firstErr(func(x *extension) error { return x.Delete(t.Context(), "T") })} {
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "2026-07-28 has no") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func firstErr(f func(*extension) error) error {
	return f(newExtension(newSession(Options{Name: "srv", Handler: deaf{}}, nil, "stdio")).(*extension))
}

func TestXServerWithoutTheExtension(t *testing.T) {
	// tasks.md, "Capability Negotiation": without the extension no task is
	// asked for, and plain calls work.
	synctest.Test(t, func(t *testing.T) {
		open := strings.Replace(openX, `, "extensions": {"io.modelcontextprotocol/tasks": {}}}`, `}`, 1)
		c, s, _ := connectScript(t, taskmodel.GenExtension, "stdio", open, nil)
		if i := c.Info(); i.Generation != taskmodel.GenNone || i.Can.Start || !strings.Contains(i.Can.StartWhy, "io.modelcontextprotocol/tasks") {
			t.Errorf("info %+v", i)
		}
		_, err := c.Tasks().Start(t.Context(), StartCall{Tool: "b"})
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("err = %v", err)
		}
		done := s.along("C> tools/call\n" + `S> {"result":{"resultType":"complete","content":[]}}`)
		st, err := c.Tasks().Start(t.Context(), StartCall{Tool: "b", Plain: true})
		done()
		if err != nil || st.Outcome.Result == nil {
			t.Errorf("%+v, %v", st, err)
		}
		if err := c.Tasks().Watch(t.Context(), []string{"T"}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		s.quiet()
	})
}

func TestXResultWaitsByPolling(t *testing.T) {
	// tasks.md, "Task Polling": clients SHOULD respect pollIntervalMs, also a
	// changing one; there is no tasks/result.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		start := time.Now()
		done := s.along(`
			C> tasks/get {"taskId":"T"}
			` + gotX("T", "working", "") + `
			C> tasks/get
			S> {"result":{"resultType":"complete","taskId":"T","status":"working","createdAt":"2026-08-01T10:00:00Z","lastUpdatedAt":"2026-08-01T10:00:01Z","ttlMs":null,"pollIntervalMs":60000}}
			C> tasks/get
			` + gotX("T", "completed", `,"result":{"content":[]}`))
		o, err := c.Tasks().Result(t.Context(), "T")
		done()
		if err != nil || string(o.Result) != `{"content":[]}` || o.FetchedAt.IsZero() {
			t.Errorf("%+v, %v", o, err)
		}
		if d := time.Since(start); d != 61*time.Second {
			t.Errorf("it took %v, want 1 s and then 60 s", d)
		}
		if len(e.seen()) != 2 {
			t.Errorf("the polls of the wait were not told: %d", len(e.seen()))
		}
	})
}

func TestXResultOfOtherEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectX(t, "stdio", nil)
		done := s.along("C> tasks/get\n" + gotX("T", "failed", `,"error":{"code":-32603,"message":"boom"}`) + "C> tasks/get\n" + gotX("T", "cancelled", `,"statusMessage":"on request"`) + "C> tasks/get\n" + gotX("T", "working", ""))
		o, err := c.Tasks().Result(t.Context(), "T")
		if err != nil || o.Err == nil || o.Err.Message != "boom" {
			t.Errorf("failed: %+v, %v", o, err)
		}
		// S3: a cancelled task has none, and nothing hangs.
		if _, err = c.Tasks().Result(t.Context(), "T"); err == nil || !strings.Contains(err.Error(), "ended as cancelled and has no result: on request") {
			t.Errorf("cancelled: %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer stop()
		if _, err = c.Tasks().Result(ctx, "T"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up: %v", err)
		}
		done()
		synctest.Wait()
		if n := len(s.all("notifications/cancelled")) + len(s.all("tasks/cancel")); n != 0 {
			t.Error("giving up a wait cancelled the task")
		}
	})
}

func TestXServerRequestsAreNotAnswered(t *testing.T) {
	// basic/transports/stdio: a server MUST NOT write requests and a client
	// MUST NOT write responses (field fault T6).
	synctest.Test(t, func(t *testing.T) {
		_, s, e := connectX(t, "stdio", nil)
		s.play(`S! {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}
			S! {"jsonrpc":"2.0","id":1,"method":"ping"}`)
		synctest.Wait()
		s.quiet()
		if len(e.questions()) != 0 {
			t.Errorf("asked %v", e.questions())
		}
	})
}

func TestXGivingUpACall(t *testing.T) {
	// basic/patterns/cancellation, "Transport-Specific Cancellation": on stdio
	// notifications/cancelled for the request, over HTTP the end of its stream
	// and no message.
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, _ := connectX(t, kind, nil)
				if kind == "http" {
					c.s.tools.put(nil)
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error)
				go func() {
					_, err := c.Tasks().Start(ctx, StartCall{Tool: "b"})
					done <- err
				}()
				call := s.next()
				stop()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("err = %v", err)
				}
				synctest.Wait()
				got := s.all("notifications/cancelled")
				if kind == "http" {
					if len(got) != 0 {
						t.Errorf("sent over HTTP: %s", got[0].raw)
					}
					return
				}
				if len(got) != 1 || lacks("params", map[string]any{"requestId": "*", "reason": "*"}, anyOf(got[0].params)) != "" || !strings.Contains(string(got[0].params), string(call.id)) {
					t.Errorf("sent %v", got)
				}
			})
		})
	}
}

func anyOf(b json.RawMessage) (v any) {
	json.Unmarshal(b, &v)
	return v
}

func TestXProgressOfACall(t *testing.T) {
	// basic/patterns/progress: by the token of the request.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		go c.Tasks().Start(t.Context(), StartCall{Tool: "b", CallID: "c7", Plain: true})
		call := s.next()
		token := stringAt(call.params, "_meta", "progressToken")
		s.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"` + token + `","progress":3}}`)
		synctest.Wait()
		s.send(`{"jsonrpc":"2.0","id":` + string(call.id) + `,"result":{"resultType":"complete","content":[]}}`)
		synctest.Wait()
		if e.mu.Lock(); len(e.progress) != 1 || e.progress[0] != "/c7 3" {
			t.Errorf("progress %v", e.progress)
		}
		e.mu.Unlock()
	})
}

func TestXMalformedPushes(t *testing.T) {
	// A message that breaks the schema is never a crash and never a silent
	// drop: it is told, and what can be read of it is.
	for _, params := range []string{`{}`, `{"taskId":7}`, `{"taskId":null,"status":{}}`, `{"status":"working"}`, `{"taskId":"T","status":[],"ttlMs":"x","createdAt":-1,"inputRequests":[1]}`, `{"taskId":"T","status":"input_required","inputRequests":{"k":7,"l":{"method":3},"m":null}}`} {
		synctest.Test(t, func(t *testing.T) {
			_, s, e := connectX(t, "stdio", nil)
			s.play(`S! {"jsonrpc":"2.0","method":"notifications/tasks","params":` + params + `}`)
			synctest.Wait()
			if len(e.seen())+len(e.lines()) != 1 {
				t.Errorf("%s: heard %v and %v", params, e.seen(), e.lines())
			}
			for _, o := range e.seen() {
				if len(o.Lenient)+len(o.Missing) == 0 {
					t.Errorf("%s: read without a mark", params)
				}
			}
		})
	}
}
