package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

func drafty(t *testing.T, o Options) (*Server, *client) {
	t.Helper()
	o.Generation = taskmodel.GenDraft
	if o.Seed == 0 {
		o.Seed = 1
	}
	s := New(o)
	t.Cleanup(s.Close)
	c := connect(t, s)
	c.initialize("2025-06-18", `{"elicitation":{},"sampling":{}}`)
	return s, c
}

// draftCall is the params of a call with a task of this id.
func draftCall(tool string, args map[string]any, task map[string]any) map[string]any {
	return map[string]any{"name": tool, "arguments": args, "_meta": map[string]any{draftTaskKey: task, "progressToken": "p"}}
}

func relatedDraft(o object) string { return o.str("_meta", draftRelated, "taskId") }

// SEP-1686 3.1–3.4, 4.3, 4.7: one task's life.
func TestDraftLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := drafty(t, Options{})
		id := "786512e2-9e0d-44bd-8f29-789f320fe840"
		_, answer := c.begin("tools/call", draftCall("build", map[string]any{"target": "api"}, map[string]any{"taskId": id, "keepAlive": 60000}))
		synctest.Wait()
		made := c.received("notifications/tasks/created")
		if len(made) != 1 || relatedDraft(decode(t, made[0].Params)) != id {
			t.Fatalf("created: %v", made)
		}
		g := c.must("tasks/get", map[string]any{"taskId": id})
		if g.str("status") != "submitted" || g.at("keepAlive") != 60000.0 || g.at("pollFrequency") != 1000.0 || relatedDraft(g) != id || g.at("createdAt") != nil {
			t.Errorf("MUST begin as submitted: %v", g)
		}
		c.refused(codeParams, "tasks/result", map[string]any{"taskId": id}) // 4.6
		c.refused(codeParams, "tasks/delete", map[string]any{"taskId": id}) // 4.10, this server's choice
		c.refused(codeParams, "tools/call", draftCall("build", map[string]any{"target": "api"}, map[string]any{"taskId": id}))
		time.Sleep(5 * time.Second)
		if g := c.must("tasks/get", map[string]any{"taskId": id}); g.str("status") != "working" {
			t.Errorf("got %v", g)
		}
		r := <-answer // the call's own answer
		o := decode(t, r.result)
		if relatedDraft(o) != id || o.at("structuredContent", "digest") == nil {
			t.Errorf("answer: %s", r.result)
		}
		if again := c.must("tasks/result", map[string]any{"taskId": id}); relatedDraft(again) != id {
			t.Errorf("result: %v", again)
		}
		for _, m := range c.received("notifications/progress") {
			if relatedDraft(decode(t, m.Params)) != id {
				t.Errorf("MUST carry related-task: %s", m.Params)
			}
		}
		// 4.5: keepAlive counts from the end.
		time.Sleep(59 * time.Second)
		c.must("tasks/get", map[string]any{"taskId": id})
		time.Sleep(2 * time.Second)
		c.refused(codeParams, "tasks/get", map[string]any{"taskId": id})
		c.refused(codeParams, "tools/call", draftCall("build", map[string]any{"target": "api"}, map[string]any{"taskId": id}))
	})
}

// SEP-1686 4.1, 7.1: what is refused and what is processed as ever.
func TestDraftRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := drafty(t, Options{Tasks: 120})
		for _, task := range []any{nil, map[string]any{}, map[string]any{"taskId": ""}, map[string]any{"taskId": 7}, map[string]any{"taskId": "a", "keepAlive": -1}, "a"} {
			p := map[string]any{"name": "build", "arguments": map[string]any{"target": "api"}, "_meta": map[string]any{draftTaskKey: task}}
			c.refused(codeParams, "tools/call", p)
		}
		c.refused(codeParams, "tools/call", draftCall("build", nil, map[string]any{"taskId": "c", "parentTaskId": "nobody"}))
		for _, m := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
			c.refused(codeParams, m, map[string]any{"taskId": "no-such"})
		}
		c.refused(codeParams, "tasks/list", map[string]any{"cursor": "x"})
		c.refused(codeMethod, "tasks/cancel", map[string]any{"taskId": s.Handles()[0].ID})
		r := c.must("tools/call", draftCall("read_status", nil, map[string]any{"taskId": "q"}))
		if r.at("content") == nil || len(c.received("notifications/tasks/created")) != 0 {
			t.Errorf("a tool without tasks is processed as ever: %v", r)
		}
		n, cursor := 0, any(nil)
		for {
			p := map[string]any{}
			if cursor != nil {
				p["cursor"] = cursor
			}
			l := c.must("tasks/list", p)
			n += len(l["tasks"].([]any))
			if cursor = l["nextCursor"]; cursor == nil {
				break
			}
		}
		if n != 120 {
			t.Errorf("listed %d", n)
		}
	})
}

// SEP-1686 4.8: cancellation by the id of the call.
func TestDraftCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := drafty(t, Options{})
		rid, answer := c.begin("tools/call", draftCall("reindex_search", map[string]any{"index": "x"}, map[string]any{"taskId": "t1"}))
		time.Sleep(time.Minute)
		c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(rid)})
		synctest.Wait()
		if g := c.must("tasks/get", map[string]any{"taskId": "t1"}); g.str("status") != "cancelled" {
			t.Errorf("got %v", g)
		}
		if len(answer) != 0 {
			t.Error("a cancelled request was answered")
		}
		c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(rid)}) // ignored
		if r := c.must("tasks/delete", map[string]any{"taskId": "t1"}); relatedDraft(r) != "t1" {
			t.Errorf("delete: %v", r)
		}
		c.refused(codeParams, "tasks/get", map[string]any{"taskId": "t1"})
	})
}

// SEP-1686 4.4: a question moves the task and comes at once.
func TestDraftQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := drafty(t, Options{})
		asked := make(chan message, 1)
		c.answers(func(m message) any { asked <- m; return nil })
		_, answer := c.begin("tools/call", draftCall("deploy_release", map[string]any{"service": "api", "version": "v1.0.0"}, map[string]any{"taskId": "t1"}))
		m := <-asked
		if relatedDraft(decode(t, m.Params)) != "t1" {
			t.Errorf("question: %s", m.Params)
		}
		if g := c.must("tasks/get", map[string]any{"taskId": "t1"}); g.str("status") != "input_required" {
			t.Errorf("got %v", g)
		}
		c.respond(m.ID, map[string]any{"action": "decline", "_meta": map[string]any{draftRelated: map[string]any{"taskId": "t1"}}})
		r := <-answer
		if !strings.Contains(string(r.result), "Held back") && !strings.Contains(string(r.result), "not deployed") {
			t.Errorf("answer: %s", r.result)
		}
	})
}

// SEP-1686 4.3 and 7.2: unknown is an end; isError is completed; a JSON-RPC
// error is failed, with words.
func TestDraftEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := drafty(t, Options{})
		ends := map[string]string{"calibrate_probe": "unknown", "run_tests": "completed", "security_scan": "failed", "lint_file": "completed"}
		args := map[string]map[string]any{"calibrate_probe": {"probe": "x"}, "run_tests": {"package": "x"}, "security_scan": {}, "lint_file": {"path": "x"}}
		answers := map[string]chan reply{}
		for tool := range ends {
			_, answers[tool] = c.begin("tools/call", draftCall(tool, args[tool], map[string]any{"taskId": tool, "keepAlive": 600000}))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for tool, want := range ends {
			g := c.must("tasks/get", map[string]any{"taskId": tool})
			if g.str("status") != want || (want == "failed" || want == "unknown") != (g.str("error") != "") {
				t.Errorf("%s: %v", tool, g)
			}
			r := <-answers[tool]
			if (want == "completed") != (r.err == nil) {
				t.Errorf("%s: answer %v", tool, r)
			}
			if want != "completed" {
				c.refused(codeParams, "tasks/result", map[string]any{"taskId": tool})
			}
		}
	})
}

// SEP-1686 "Future Work": a parent gives its children's ids and waits for them.
func TestDraftChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := drafty(t, Options{})
		c.begin("tools/call", draftCall("run_protocol", map[string]any{"protocol": "p"}, map[string]any{"taskId": "parent"}))
		time.Sleep(10 * time.Second)
		g := c.must("tasks/get", map[string]any{"taskId": "parent"})
		children, _ := g["childTasks"].([]any)
		if len(children) != 2 {
			t.Fatalf("got %v", g)
		}
		for _, v := range children {
			ch := object(v.(map[string]any))
			var args map[string]any
			_ = json.Unmarshal(enc(ch["arguments"]), &args)
			c.begin("tools/call", draftCall(ch.str("toolName"), args, map[string]any{"taskId": ch.str("taskId"), "parentTaskId": "parent"}))
		}
		synctest.Wait()
		if g := c.must("tasks/get", map[string]any{"taskId": object(children[0].(map[string]any)).str("taskId")}); g.str("parentTaskId") != "parent" {
			t.Errorf("child: %v", g)
		}
		time.Sleep(5 * time.Minute)
		if g := c.must("tasks/get", map[string]any{"taskId": "parent"}); g.str("status") != "completed" {
			t.Errorf("parent: %v", g)
		}
	})
}

// Questions of tasks that were there before the client are put to it.
func TestDraftOrphanQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := drafty(t, Options{Tasks: 12})
		synctest.Wait()
		n := len(c.received("elicitation/create")) + len(c.received("sampling/createMessage"))
		if n < 2 {
			t.Errorf("%d questions", n)
		}
		other := connect(t, s)
		other.initialize("2025-06-18", `{"elicitation":{},"sampling":{}}`)
		synctest.Wait()
		if len(other.received("elicitation/create")) != 0 {
			t.Error("a question was put to two clients")
		}
	})
}
