package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

const openD = `
C> initialize {"protocolVersion":"2025-06-18","capabilities":{"tasks":"-"}}
S> {"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}}
C> notifications/initialized
`

func connectD(t testing.TB, change func(*Options)) (*Client, *script, *ears) {
	t.Helper()
	c, s, e := connectScript(t, taskmodel.GenDraft, "stdio", openD, change)
	s.loose = true // no published schema has the draft
	return c, s, e
}

// taskD is a task of the draft as a script sends it.
func taskD(id, status, more string) string {
	return `"taskId":"` + id + `","status":"` + status + `","keepAlive":60000,"pollFrequency":1000` + more + `,"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"` + id + `"}}`
}

func gotD(id, status, more string) string {
	return "S> {\"result\":{" + taskD(id, status, more) + "}}\n"
}

func createdD(id string) string {
	return `S> notifications/tasks/created {"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"` + id + `"}}}` + "\n"
}

const relatedD = `"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}`

func TestDStartByTheCreatedNotification(t *testing.T) {
	// SEP-1686 3.1: the requestor makes the id, keepAlive is what it asks for;
	// 3.4: the notification says that polling can begin; 4.3: submitted.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectD(t, nil)
		started := startX(c, StartCall{Tool: "build", Args: json.RawMessage(`{"n":1}`), TTL: time.Minute, CallID: "c1"})
		s.play(`C> call: tools/call {"name":"build","arguments":{"n":1},"task":"-","_meta":{"progressToken":"*","modelcontextprotocol.io/task":{"taskId":"*","keepAlive":60000,"parentTaskId":"-"}}}`)
		call := s.all("tools/call")[0]
		id := stringAt(call.params, "_meta", metaDraftTask, "taskId")
		if len(id) != 36 {
			t.Errorf("the task's id is %q, want a uuid", id)
		}
		s.play(createdD(id) + `C> tasks/get {"taskId":"` + id + `","_meta":{"modelcontextprotocol.io/related-task":{"taskId":"` + id + `"}}}` + "\n" + gotD(id, "submitted", ""))
		st := <-started
		if st.err != nil || st.TaskID != id || st.Snapshot.Status != taskmodel.Submitted || st.Snapshot.TTL.Duration != time.Minute || st.Snapshot.PollInterval != time.Second || len(st.Snapshot.Lenient) != 0 {
			t.Errorf("%+v", st)
		}
		// Progress belongs to the task from now on.
		s.play(`S> notifications/progress {"progressToken":"` + stringAt(call.params, "_meta", "progressToken") + `","progress":1}`)
		// The call's own answer comes at the end: the state is asked for, and
		// the result is there with it.
		s.play(`S> call: {"result":{"content":[{"type":"text","text":"ok"}],"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"` + id + `"}}}}` + "\n" + "C> tasks/get\n" + gotD(id, "completed", ""))
		synctest.Wait()
		seen := e.seen()
		if len(seen) != 1 || seen[0].Status != taskmodel.Completed || !strings.Contains(string(seen[0].Outcome.Result), `"ok"`) {
			t.Errorf("heard %+v", seen)
		}
		if len(e.progress) != 1 || !strings.HasPrefix(e.progress[0], id+"/") {
			t.Errorf("progress %v", e.progress)
		}
		s.quiet()
	})
}

func TestDPlainAnswerComesFirst(t *testing.T) {
	// "Graceful Degradation": a receiver without tasks ignores the metadata and
	// answers (S13).
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		done := s.along("C> tools/call\n" + `S> {"result":{"content":[]}}`)
		st := <-startX(c, StartCall{Tool: "b"})
		done()
		if st.err != nil || st.TaskID != "" || st.Outcome.Result == nil || st.Note == "" {
			t.Errorf("%+v", st)
		}
		s.quiet()
	})
}

func TestDTaskThatEndsAtOnce(t *testing.T) {
	// 4.3: submitted may go to completed at once: created and the answer come
	// together, and it is a task.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectD(t, nil)
		started := startX(c, StartCall{Tool: "b"})
		call := s.next()
		id := stringAt(call.params, "_meta", metaDraftTask, "taskId")
		s.send(`{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"` + id + `"}}}}`)
		s.send(`{"jsonrpc":"2.0","id":` + string(call.id) + `,"result":{"content":[],"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"` + id + `"}}}}`)
		synctest.Wait()
		for n := len(s.all("tasks/get")); n > 0; n-- {
			s.play("C> tasks/get\n" + gotD(id, "completed", ""))
			synctest.Wait()
		}
		st := <-started
		if st.err != nil || st.TaskID != id || st.Snapshot.Status != taskmodel.Completed {
			t.Errorf("%+v", st)
		}
		// Whichever of the two was seen first, the result is not lost.
		if len(s.all("tasks/get")) > 1 {
			s.play("C> tasks/get\n" + gotD(id, "completed", ""))
			synctest.Wait()
		}
		results := 0
		for _, o := range append(e.seen(), taskmodel.Observation{Snapshot: st.Snapshot}) {
			if o.Outcome.Result != nil {
				results++
			}
		}
		if results == 0 {
			t.Error("the result was lost")
		}
	})
}

func TestDLostCreatedNotification(t *testing.T) {
	// A bounded wait, then polls with exponential backoff, or the plain answer,
	// whichever comes first.
	notFound := `S> {"error":{"code":-32602,"message":"Failed to retrieve task: Task not found"}}` + "\n"
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, func(o *Options) { o.DraftWait = 3 * time.Second })
		start := time.Now()
		var at []time.Duration
		started := startX(c, StartCall{Tool: "b"})
		call := s.next()
		id := stringAt(call.params, "_meta", metaDraftTask, "taskId")
		for range 7 {
			s.play("C> tasks/get\n")
			at = append(at, time.Since(start))
			s.play(notFound)
		}
		s.play("C> tasks/get\n" + gotD(id, "working", ""))
		st := <-started
		if st.err != nil || st.TaskID != id || st.Snapshot.Status != taskmodel.Working {
			t.Errorf("%+v", st)
		}
		if got := fmt.Sprint(at); got != "[3s 3.5s 4.5s 6.5s 10.5s 18.5s 28.5s]" {
			t.Errorf("polled at %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		started := startX(c, StartCall{Tool: "b"})
		call := s.next()
		s.play("C> tasks/get\n" + `S> {"error":{"code":-32601,"message":"Method not found"}}`)
		time.Sleep(time.Hour)
		s.quiet() // a server without tasks is not polled; its answer is waited for
		s.send(`{"jsonrpc":"2.0","id":` + string(call.id) + `,"result":{"content":[]}}`)
		if st := <-started; st.err != nil || st.TaskID != "" || st.Outcome.Result == nil {
			t.Errorf("%+v", st)
		}
	})
}

func TestDIdThatExistsMeansCreated(t *testing.T) {
	// 7.1: -32602 for an id in use; the task is asked about before anything
	// else, and never called twice.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		started := startX(c, StartCall{Tool: "b"})
		call := s.next()
		id := stringAt(call.params, "_meta", metaDraftTask, "taskId")
		s.send(`{"jsonrpc":"2.0","id":` + string(call.id) + `,"error":{"code":-32602,"message":"Task ID already exists: ` + id + `"}}`)
		s.play("C> tasks/get\n" + gotD(id, "working", ""))
		if st := <-started; st.err != nil || st.TaskID != id {
			t.Errorf("%+v", st)
		}
		// The call that made it is not known, so it cannot be cancelled here.
		if _, err := c.Tasks().Cancel(t.Context(), id); !errors.Is(err, ErrUnsupported) {
			t.Errorf("cancel: %v", err)
		}
		s.quiet()
	})
}

func TestDRetryUnderTheSameId(t *testing.T) {
	// A given id is asked about first: a task that is there is taken up, one
	// that is not is called for under that id.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		started := startX(c, StartCall{Tool: "b", TaskID: "T"})
		s.play("C> tasks/get {\"taskId\":\"T\"," + relatedD + "}\n" + gotD("T", "working", ""))
		if st := <-started; st.err != nil || st.TaskID != "T" || len(s.all("tools/call")) != 0 {
			t.Errorf("%+v", st)
		}
		started = startX(c, StartCall{Tool: "b", TaskID: "U"})
		s.play("C> tasks/get\n" + `S> {"error":{"code":-32602,"message":"no"}}
			C> tools/call {"_meta":{"modelcontextprotocol.io/task":{"taskId":"U","keepAlive":"-"}}}
			` + createdD("U") + "C> tasks/get\n" + gotD("U", "submitted", ""))
		if st := <-started; st.err != nil || st.TaskID != "U" {
			t.Errorf("%+v", st)
		}
		started = startX(c, StartCall{Tool: "b", TaskID: "V"})
		s.play("C> tasks/get\n" + `S> {"error":{"code":-32603,"message":"down"}}`)
		if st := <-started; st.err == nil || st.TaskID != "V" || len(s.all("tools/call")) != 1 {
			t.Errorf("what is not known to be missing was called for: %+v", st)
		}
		s.quiet()
	})
}

func TestDLostCallIsRepeatedOnlyWhenItDidNotArrive(t *testing.T) {
	// A call whose fate is open (its stream broke): tasks/get decides.
	for _, arrived := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, s, _ := connectD(t, nil)
			started := startX(c, StartCall{Tool: "b"})
			call := s.next()
			id := stringAt(call.params, "_meta", metaDraftTask, "taskId")
			// An answer that cannot be read is as good as none.
			s.send(`{"jsonrpc":"2.0","id":` + string(call.id) + `}`)
			s.play(`C> tasks/get`)
			if arrived {
				s.play(gotD(id, "working", ""))
			} else {
				s.play(`S> {"error":{"code":-32602,"message":"Task not found"}}
					C> tools/call {"name":"b","_meta":{"modelcontextprotocol.io/task":{"taskId":"` + id + `"}}}
					` + createdD(id) + "C> tasks/get\n" + gotD(id, "working", ""))
			}
			if st := <-started; st.err != nil || st.TaskID != id {
				t.Errorf("%+v", st)
			}
			want := 1
			if !arrived {
				want = 2
			}
			if n := len(s.all("tools/call")); n != want {
				t.Errorf("called %d times, want %d", n, want)
			}
			// Either way the call that made the task is ours: it can be cancelled.
			go c.Tasks().Cancel(context.Background(), id)
			s.play(`C> notifications/cancelled {"requestId":` + string(s.all("tools/call")[want-1].id) + `}`)
		})
	}
}

func TestDErrorOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		done := s.along("C> tools/call\n" + `S> {"error":{"code":-32602,"message":"unknown tool"}}`)
		st := <-startX(c, StartCall{Tool: "b"})
		done()
		if codeOf(st.err) != -32602 || st.TaskID != "" {
			t.Errorf("%+v", st)
		}
		s.quiet()
	})
}

func TestDGivingUpAStart(t *testing.T) {
	// While no task is known, a call that nobody waits for is taken back.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan startedX)
		go func() {
			st, err := c.Tasks().Start(ctx, StartCall{Tool: "b"})
			done <- startedX{st, err}
		}()
		call := s.next()
		id := stringAt(call.params, "_meta", metaDraftTask, "taskId")
		stop()
		if st := <-done; !errors.Is(st.err, context.Canceled) || st.TaskID != id {
			t.Errorf("%+v", st)
		}
		s.play(`C> notifications/cancelled {"requestId":` + string(call.id) + `,"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"` + id + `"}}}`)
		s.quiet()
	})
}

// startD gives a running task with the given id.
func startD(t *testing.T, c *Client, s *script, id string) sentMessage {
	t.Helper()
	started := startX(c, StartCall{Tool: "b", TaskID: id})
	s.play("C> tasks/get\n" + `S> {"error":{"code":-32602,"message":"Task not found"}}` + "\nC> tools/call\n" + createdD(id) + "C> tasks/get\n" + gotD(id, "working", ""))
	if st := <-started; st.err != nil {
		t.Fatal(st.err)
	}
	calls := s.all("tools/call")
	return calls[len(calls)-1]
}

func TestDCancelByTheCallsId(t *testing.T) {
	// 4.8: notifications/cancelled for the request id of the call; only where
	// that request is ours; never tasks/cancel; confirmed by polling.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		call := startD(t, c, s, "T")
		done := s.along(`C> notifications/cancelled {"requestId":` + string(call.id) + `,"reason":"*",` + relatedD + `}`)
		if snap, err := c.Tasks().Cancel(t.Context(), "T"); err != nil || snap != nil {
			t.Errorf("%v, %v", snap, err)
		}
		done()
		if _, err := c.Tasks().Cancel(t.Context(), "other"); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "not made on this connection") {
			t.Errorf("a task of another: %v", err)
		}
		done = s.along("C> tasks/get\n" + gotD("T", "cancelled", ""))
		if snap, err := c.Tasks().Get(t.Context(), "T"); err != nil || snap.Status != taskmodel.Cancelled {
			t.Errorf("%+v, %v", snap, err)
		}
		done()
		if _, err := c.Tasks().Cancel(t.Context(), "T"); !errors.Is(err, ErrTerminal) {
			t.Errorf("S10 an ended task: %v", err)
		}
		time.Sleep(time.Hour)
		s.quiet()
	})
}

func TestDStates(t *testing.T) {
	cases := []struct {
		name, task string
		check      func(t *testing.T, s taskmodel.Snapshot)
	}{
		{"submitted", taskD("T", "submitted", ""), func(t *testing.T, s taskmodel.Snapshot) {
			if s.Status != taskmodel.Submitted || s.Status.Terminal(taskmodel.GenDraft) || len(s.Lenient)+len(s.Missing) != 0 {
				t.Errorf("%+v", s)
			}
		}},
		{"unknown is an end", taskD("T", "unknown", `,"error":"lost"`), func(t *testing.T, s taskmodel.Snapshot) {
			if !s.Status.Terminal(taskmodel.GenDraft) || s.Outcome.Err == nil {
				t.Errorf("%+v", s)
			}
		}},
		{"failed, 7.2", taskD("T", "failed", `,"error":"API rate limit exceeded"`), func(t *testing.T, s taskmodel.Snapshot) {
			if s.Outcome.Err == nil || s.Outcome.Err.Message != "API rate limit exceeded" || s.StatusMessage != "API rate limit exceeded" || len(s.Lenient) != 0 {
				t.Errorf("%+v", s)
			}
		}},
		{"S16 failed with an object", taskD("T", "failed", `,"error":{"code":-32603,"message":"boom"}`), func(t *testing.T, s taskmodel.Snapshot) {
			if s.Outcome.Err == nil || s.Outcome.Err.Code != -32603 || len(s.Lenient) != 1 {
				t.Errorf("%+v", s)
			}
		}},
		{"error while working", taskD("T", "working", `,"error":"retrying"`), func(t *testing.T, s taskmodel.Snapshot) {
			if !s.Outcome.IsZero() || s.StatusMessage != "retrying" {
				t.Errorf("%+v", s)
			}
		}},
		{"unlimited", `"taskId":"T","status":"working","keepAlive":null`, func(t *testing.T, s taskmodel.Snapshot) {
			if !s.TTL.Unlimited || s.PollInterval != 0 || !s.CreatedAt.IsZero() {
				t.Errorf("%+v", s)
			}
		}},
		{"no keepAlive, 4.5", `"taskId":"T","status":"working"`, func(t *testing.T, s taskmodel.Snapshot) {
			if fmt.Sprint(s.Missing) != "[keepAlive]" {
				t.Errorf("%+v", s)
			}
		}},
		{"S16 core's names", `"taskId":"T","status":"working","ttl":5000,"pollInterval":700`, func(t *testing.T, s taskmodel.Snapshot) {
			if s.TTL.Duration != 5*time.Second || s.PollInterval != 700*time.Millisecond || len(s.Lenient) != 2 {
				t.Errorf("%+v", s)
			}
		}},
		{"id in the metadata alone", `"status":"working","keepAlive":null,` + relatedD, func(t *testing.T, s taskmodel.Snapshot) {
			if s.ID != "T" || len(s.Lenient) != 1 {
				t.Errorf("%+v", s)
			}
		}},
		{"parent and children", taskD("T", "working", `,"parentTaskId":"P","childTasks":[{"taskId":"C1","toolName":"run_build","arguments":{"a":1}},{"taskId":"C2"},"C3",{"toolName":"x"}]`), func(t *testing.T, s taskmodel.Snapshot) {
			if s.ParentID != "P" || len(s.Children) != 3 || s.Children[0].ID != "C1" || !s.Children[0].Required || stringAt(s.Children[0].Raw, "toolName") != "run_build" || s.Children[1].Required || s.Children[2].ID != "C3" || len(s.Lenient) != 1 {
				t.Errorf("%+v", s)
			}
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, _ := connectD(t, nil)
				done := s.along("C> tasks/get {\"taskId\":\"T\"," + relatedD + "}\nS> {\"result\":{" + tc.task + "}}")
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

func TestDChildIsStartedUnderItsGivenId(t *testing.T) {
	// SEP-1686, "Nested Task Execution": the child's call carries the id that
	// the server gave and its parent's.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		done := s.along("C> tasks/get\n" + gotD("P", "working", `,"childTasks":[{"taskId":"build-456","toolName":"run_build","arguments":{"a":1}}]`))
		c.Tasks().Get(t.Context(), "P")
		done()
		started := startX(c, StartCall{Tool: "run_build", Args: json.RawMessage(`{"a":1}`), TaskID: "build-456"})
		s.play("C> tasks/get\n" + `S> {"error":{"code":-32602,"message":"Task not found"}}
			C> tools/call {"name":"run_build","arguments":{"a":1},"_meta":{"modelcontextprotocol.io/task":{"taskId":"build-456","parentTaskId":"P"}}}
			` + createdD("build-456") + "C> tasks/get\n" + gotD("build-456", "submitted", `,"parentTaskId":"P"`))
		if st := <-started; st.err != nil || st.TaskID != "build-456" || st.Snapshot.ParentID != "P" {
			t.Errorf("%+v", st)
		}
	})
}

func TestDResultOnlyWhenCompleted(t *testing.T) {
	// 4.6: tasks/result in another status is an error, so it is not asked
	// there; isError ends as completed; a failed task has its error.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		done := s.along("C> tasks/get\n" + gotD("T", "working", "") + "C> tasks/get\n" + gotD("T", "completed", "") +
			"C> tasks/result {\"taskId\":\"T\"," + relatedD + "}\n" + `S> {"result":{"content":[],"isError":true,` + relatedD + "}}\n" +
			"C> tasks/get\n" + gotD("T", "failed", `,"error":"boom"`) +
			"C> tasks/get\n" + gotD("T", "unknown", ""))
		o, err := c.Tasks().Result(t.Context(), "T")
		if err != nil || !strings.Contains(string(o.Result), `"isError":true`) {
			t.Errorf("%+v, %v", o, err)
		}
		o, err = c.Tasks().Result(t.Context(), "T")
		if err != nil || o.Err == nil || o.Err.Message != "boom" || o.Note == "" {
			t.Errorf("%+v, %v", o, err)
		}
		if _, err = c.Tasks().Result(t.Context(), "T"); err == nil || !strings.Contains(err.Error(), "ended as unknown") {
			t.Errorf("%v", err)
		}
		done()
		s.quiet()
	})
}

func TestDResultIsWokenByAPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		done := make(chan error)
		go func() { _, err := c.Tasks().Result(context.Background(), "T"); done <- err }()
		s.play("C> tasks/get\n" + gotD("T", "working", "") + `S> notifications/tasks/status {` + taskD("T", "completed", "") + `}
			C> tasks/get
			` + gotD("T", "completed", "") + "C> tasks/result\n" + `S> {"result":{"content":[]}}`)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestDListAndDelete(t *testing.T) {
	// 3.5 and 4.9: opaque cursors; 3.6 and 4.10: deletion may be refused.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectD(t, nil)
		done := s.along(`C> tasks/list {"cursor":"-"}
			S> {"result":{"tasks":[{"taskId":"A","status":"working","keepAlive":30000,"pollFrequency":5000},{"status":"working"},{"taskId":"B","status":"completed","keepAlive":60000}],"nextCursor":" x=1 "}}
			C> tasks/list {"cursor":" x=1 "}
			S> {"result":{"tasks":[]}}
			C> tasks/list
			S> {"error":{"code":-32601,"message":"Method not found"}}
			C> tasks/delete {"taskId":"A",` + strings.ReplaceAll(relatedD, `"T"`, `"A"`) + `}
			S> {"result":{}}
			C> tasks/delete
			S> {"error":{"code":-32603,"message":"still running"}}
			C> tasks/delete
			S> {"error":{"code":-32601,"message":"Method not found"}}`)
		p, err := c.Tasks().List(t.Context(), "", nil)
		if err != nil || len(p.Tasks) != 2 || p.Next != " x=1 " || p.Tasks[0].ID != "A" || p.Tasks[1].TTL.Duration != time.Minute || len(e.lines()) != 1 {
			t.Errorf("%+v, %v; told %v", p, err, e.lines())
		}
		if p, err = c.Tasks().List(t.Context(), p.Next, nil); err != nil || p.Next != "" {
			t.Errorf("%+v, %v", p, err)
		}
		// L3: no list is no fault; known ids go on.
		if _, err = c.Tasks().List(t.Context(), "", nil); !errors.Is(err, ErrUnsupported) || c.Info().Can.List {
			t.Errorf("%v, can %+v", err, c.Info().Can)
		}
		if err := c.Tasks().Delete(t.Context(), "A"); err != nil {
			t.Error(err)
		}
		if err := c.Tasks().Delete(t.Context(), "A"); err == nil || errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "still running") {
			t.Errorf("a refusal: %v", err)
		}
		if err := c.Tasks().Delete(t.Context(), "A"); !errors.Is(err, ErrUnsupported) || c.Info().Can.Delete {
			t.Errorf("no deletion: %v", err)
		}
		done()
	})
}

func TestDCapabilityIsReadAndNeverRequired(t *testing.T) {
	// SEP-1686, "Backward Compatibility": no declaration is needed; what is
	// declared is heeded.
	cases := []struct {
		caps string
		want string
	}{
		{`{}`, "start list cancel delete push"},
		{`{"tasks":{}}`, "start list cancel delete push"},
		{`{"tasks":{"requests":{"tools":{"call":true}},"list":{}}}`, "start list cancel delete push"},
		{`{"tasks":{"requests":{"tools":{"call":false}}}}`, "list cancel delete push"},
		{`{"tasks":{"tools":{"call":false},"list":false,"cancel":false,"delete":false}}`, "push"},
	}
	for _, tc := range cases {
		can := draftCan(json.RawMessage(tc.caps))
		var got []string
		for i, b := range []bool{can.Start, can.List, can.Cancel, can.Delete, can.Push} {
			if b {
				got = append(got, []string{"start", "list", "cancel", "delete", "push"}[i])
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: can %v", tc.caps, got)
		}
	}
}

func TestDNotifications(t *testing.T) {
	// S16: three names were in the drafts; created has no state in it, so the
	// state is asked for.
	synctest.Test(t, func(t *testing.T) {
		_, s, e := connectD(t, nil)
		s.play(createdD("N") + "C> tasks/get {\"taskId\":\"N\"}\n" + gotD("N", "submitted", ""))
		synctest.Wait()
		s.play(`
			S> notifications/tasks/status {` + taskD("A", "working", "") + `}
			S> notifications/tasks {` + taskD("B", "working", "") + `}
			S> notifications/tasks/status {"task":{` + taskD("C", "working", "") + `}}
			S> notifications/tasks/created {` + taskD("D", "submitted", "") + `}
			S> notifications/tasks/created {}
			S> notifications/tasks/status {"taskId":7,"status":[]}`)
		synctest.Wait()
		var got []string
		for _, o := range e.seen() {
			got = append(got, o.ID+" "+string(o.Status)+" "+string(o.Source))
		}
		if g := fmt.Sprint(got); g != "[N submitted get A working push B working push C working push D submitted push]" {
			t.Errorf("heard %s", g)
		}
		if len(e.lines()) == 0 {
			t.Error("a notification that names no task was dropped silently")
		}
	})
}

func TestDServersTaskAugmentedRequestIsAnsweredPlainly(t *testing.T) {
	// 4.1: a receiver without tasks ignores the metadata; 4.7: the answer
	// carries the related task (I1), with the id in its own type.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectD(t, nil)
		s.play(`S! {"jsonrpc":"2.0","id":"q7","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}},"_meta":{"modelcontextprotocol.io/task":{"taskId":"theirs"},"modelcontextprotocol.io/related-task":{"taskId":"T"}}}}`)
		synctest.Wait()
		qs := e.questions()
		if len(qs) != 1 || qs[0].Task.ID != "T" || qs[0].Receiver {
			t.Fatalf("asked %+v", qs)
		}
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: qs[0].ID, Action: taskmodel.Decline}); err != nil {
			t.Fatal(err)
		}
		m := s.next()
		if string(m.id) != `"q7"` || stringAt(m.result, "action") != "decline" || stringAt(m.result, "_meta", "modelcontextprotocol.io/related-task", "taskId") != "T" {
			t.Errorf("answered %s", m.raw)
		}
		s.quiet()
	})
}

func TestDErrorsAreToldApart(t *testing.T) {
	cases := []struct {
		code string
		is   error
	}{{`{"code":-32602,"message":"Task not found"}`, ErrNotFound}, {`{"code":-32601,"message":"Method not found"}`, ErrUnsupported}, {`{"code":-32603,"message":"x"}`, nil}}
	for _, tc := range cases {
		synctest.Test(t, func(t *testing.T) {
			c, s, _ := connectD(t, nil)
			done := s.along("C> tasks/get\nS> {\"error\":" + tc.code + "}")
			_, err := c.Tasks().Get(t.Context(), "T")
			done()
			if tc.is != nil && !errors.Is(err, tc.is) || tc.is == nil && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsupported)) || codeOf(err) == 0 {
				t.Errorf("%s: %v", tc.code, err)
			}
		})
	}
}
