package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// related reads the related-task id out of an object's _meta.
func related(o object) string { return o.str("_meta", coreRelated, "taskId") }

// 2025-11-25, basic/lifecycle: capabilities and version.
func TestCoreInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Seed: 1})
		defer s.Close()
		c := connect(t, s)
		c.refused(codeRequest, "tools/list", nil) // before initialize
		c.refused(codeMethod, "server/discover", nil)
		c.must("ping", nil) // allowed at any time
		c.refused(codeParams, "initialize", map[string]any{"protocolVersion": coreVersion})
		r := c.initialize(coreVersion, fullCaps)
		if r.at("capabilities", "tasks", "requests", "tools", "call") == nil || r.at("capabilities", "tasks", "list") == nil || r.at("capabilities", "tasks", "cancel") == nil {
			t.Errorf("capabilities: %v", r)
		}
		c.refused(codeRequest, "initialize", map[string]any{"protocolVersion": coreVersion, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "x", "version": "1"}})
		c.refused(codeMethod, "foo/bar", nil)
		c.refused(codeParams, "logging/setLevel", map[string]any{"level": "loud"})
		c.must("logging/setLevel", map[string]any{"level": "error"})
		synctest.Wait()
		if len(c.received("roots/list")) != 1 {
			t.Error("the client declared roots and was not asked for them")
		}
		c.conforms("mcp-2025-11-25.schema.json", coreDefs)

		// An older version has no tasks: the capability is not declared, task
		// is ignored ("Task Support and Handling" 1), the methods are unknown.
		old := connect(t, s)
		r = old.initialize("2025-06-18", `{}`)
		if r.str("protocolVersion") != "2025-06-18" || r.at("capabilities", "tasks") != nil {
			t.Errorf("2025-06-18: %v", r)
		}
		old.refused(codeMethod, "tasks/list", nil)
		if r := old.must("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "a.go"}, "task": map[string]any{}}); r.at("content") == nil {
			t.Errorf("task must be ignored: %v", r)
		}
		newer := connect(t, s)
		if r := newer.initialize("2099-01-01", `{}`); r.str("protocolVersion") != coreVersion {
			t.Errorf("an unknown version gets the newest: %v", r)
		}
	})
}

// JSON-RPC and basic/index of 2025-11-25: what is no message.
func TestEnvelopes(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		code     int
		id       string
	}{
		{"not JSON", `{"jsonrpc":`, codeParse, "null"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, codeRequest, "null"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, codeRequest, "null"},
		{"fraction id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, codeRequest, "null"},
		{"no version", `{"id":7,"method":"ping"}`, codeRequest, "7"},
		{"params array", `{"jsonrpc":"2.0","id":"x","method":"ping","params":[1]}`, codeRequest, `"x"`},
		{"result and error", `{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":""}}`, codeRequest, "3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{Seed: 1})
				defer s.Close()
				c := connect(t, s)
				c.send(json.RawMessage(tc.in))
				synctest.Wait()
				if len(c.got) != 1 || c.got[0].Error == nil || c.got[0].Error.Code != tc.code || string(c.got[0].ID) != tc.id && !(tc.id == "null" && c.got[0].ID == nil) {
					t.Errorf("got %v", c.log)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		id := c.startTask("reindex_search", map[string]any{"index": "a"})
		c.send(json.RawMessage(`{"jsonrpc":"2.0","id":900,"method":"tasks/result","params":{"taskId":"` + id + `"}}`))
		c.send(json.RawMessage(`{"jsonrpc":"2.0","id":900,"method":"ping"}`))
		synctest.Wait()
		last := c.got[len(c.got)-1]
		if last.Error == nil || last.Error.Code != codeRequest {
			t.Errorf("an id in use was taken again: %v", c.log)
		}
	})
}

// 2025-11-25 tasks, "Tool-Level Negotiation".
func TestCoreTaskSupport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		support := map[string]string{}
		for _, v := range c.must("tools/list", nil)["tools"].([]any) {
			o := object(v.(map[string]any))
			support[o.str("name")] = o.str("execution", "taskSupport")
		}
		if support["read_status"] != forbidden || support["provision_preview"] != required || support["build"] != optional || support["rollback_release"] != "" {
			t.Errorf("taskSupport: %v", support)
		}
		c.refused(codeMethod, "tools/call", map[string]any{"name": "read_status", "task": map[string]any{}})
		c.refused(codeMethod, "tools/call", map[string]any{"name": "provision_preview", "arguments": map[string]any{"branch": "x"}})
		c.refused(codeParams, "tools/call", map[string]any{"name": "no_such_tool"})
		c.refused(codeParams, "tools/call", map[string]any{"name": "rollback_release", "arguments": map[string]any{"service": "api"}})
		c.refused(codeParams, "tools/call", map[string]any{"arguments": map[string]any{}})
		c.refused(codeParams, "tools/call", map[string]any{"name": "build", "task": true})
		c.refused(codeParams, "tools/call", map[string]any{"name": "build", "task": map[string]any{"ttl": "60000"}})
		c.refused(codeParams, "tools/list", map[string]any{"cursor": "x"})
		r := c.must("tools/call", map[string]any{"name": "read_status"})
		if r.at("structuredContent", "runners") == nil || related(r) != "" {
			t.Errorf("a plain result: %v", r)
		}
		// Arguments that break the schema are the tool's error (server/tools).
		r = c.must("tools/call", map[string]any{"name": "build", "arguments": map[string]any{"target": "moon"}})
		if r["isError"] != true {
			t.Errorf("bad arguments: %v", r)
		}
		c.conforms("mcp-2025-11-25.schema.json", coreDefs)
	})
}

// 2025-11-25 tasks: the whole life of one task, with progress.
func TestCoreLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		before := time.Now()
		id := c.startTask("build", map[string]any{"target": "api"}, "_meta", map[string]any{"progressToken": "tok-1"}, "task", map[string]any{"ttl": 600000})
		g := c.must("tasks/get", map[string]any{"taskId": id})
		if g.str("status") != "working" || g.at("ttl") != 600000.0 || g.at("pollInterval") != 1000.0 || g.str("createdAt") != stamp(before) || g.at("_meta") != nil {
			t.Errorf("tasks/get: %v", g)
		}
		_, waiting := c.begin("tasks/result", map[string]any{"taskId": id})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		select {
		case r := <-waiting:
			t.Fatalf("tasks/result MUST block until the end: %s", r.result)
		default:
		}
		r := <-waiting
		o := decode(t, r.result)
		if related(o) != id || o.at("structuredContent", "digest") == nil {
			t.Errorf("result: %s", r.result)
		}
		if g := c.must("tasks/get", map[string]any{"taskId": id}); g.str("status") != "completed" || g.str("lastUpdatedAt") == g.str("createdAt") {
			t.Errorf("after: %v", g)
		}
		c.must("tasks/result", map[string]any{"taskId": id}) // again, as often as one likes
		c.refused(codeParams, "tasks/cancel", map[string]any{"taskId": id})

		last := -1.0
		for _, m := range c.received("notifications/progress") {
			p := decode(t, m.Params)
			if p["progressToken"] != "tok-1" || related(p) != id || p["total"] == nil {
				t.Errorf("progress: %v", p)
			}
			if v := p["progress"].(float64); v <= last {
				t.Errorf("progress MUST increase: %v after %v", v, last)
			} else {
				last = v
			}
		}
		if last < 100 {
			t.Errorf("last progress %v", last)
		}
		var statuses []string
		for _, m := range c.received("notifications/tasks/status") {
			p := decode(t, m.Params)
			if p.at("_meta") != nil {
				t.Errorf("a status notification SHOULD NOT carry related-task: %v", p)
			}
			statuses = append(statuses, p.str("status"))
		}
		if strings.Join(statuses, " ") != "working completed" {
			t.Errorf("statuses %v", statuses)
		}
		c.conforms("mcp-2025-11-25.schema.json", coreDefs)
	})
}

// 2025-11-25 tasks, "Task Execution Errors": a tool's isError is failed, and
// tasks/result still has its content; a JSON-RPC error is returned as it is.
func TestCoreFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		tests := c.startTask("run_tests", map[string]any{"package": "./..."})
		scan := c.startTask("security_scan", map[string]any{})
		r := c.must("tasks/result", map[string]any{"taskId": tests})
		if r["isError"] != true || r.at("structuredContent", "failed") != 3.0 || related(r) != tests {
			t.Errorf("run_tests: %v", r)
		}
		if g := c.must("tasks/get", map[string]any{"taskId": tests}); g.str("status") != "failed" || g.str("statusMessage") == "" {
			t.Errorf("run_tests: %v", g)
		}
		e := c.refused(codeInternal, "tasks/result", map[string]any{"taskId": scan})
		if !strings.Contains(e.Message, "Advisory database") {
			t.Errorf("security_scan: %v", e)
		}
		if g := c.must("tasks/get", map[string]any{"taskId": scan}); g.str("status") != "failed" {
			t.Errorf("security_scan: %v", g)
		}
	})
}

// 2025-11-25 tasks, "Protocol Errors": unknown ids and cursors.
func TestCoreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := core2025(t, Options{Tasks: 3})
		for _, m := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			c.refused(codeParams, m, map[string]any{"taskId": "no-such"})
			c.refused(codeParams, m, map[string]any{})
			c.refused(codeParams, m, map[string]any{"taskId": 7})
		}
		for _, cur := range []any{"", "1", "MS5hYmNkZWZnaGk", 5, s.cursor(2)[1:], s.cursor(2) + "A"} {
			c.refused(codeParams, "tasks/list", map[string]any{"cursor": cur})
		}
		// The taskId of the params is the truth, related-task metadata is not.
		id := s.Handles()[0].ID
		g := c.must("tasks/get", map[string]any{"taskId": id, "_meta": map[string]any{coreRelated: map[string]any{"taskId": "other"}}})
		if g.str("taskId") != id {
			t.Errorf("got %v", g)
		}
	})
}

// 2025-11-25 tasks, "Task Cancellation".
func TestCoreCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		id := c.startTask("reindex_search", map[string]any{"index": "products"})
		_, waiting := c.begin("tasks/result", map[string]any{"taskId": id})
		time.Sleep(2 * time.Hour) // it hangs
		if g := c.must("tasks/get", map[string]any{"taskId": id}); g.str("status") != "working" {
			t.Fatalf("not hanging: %v", g)
		}
		// notifications/cancelled for the request that made it does nothing.
		c.notify("notifications/cancelled", map[string]any{"requestId": 2})
		if r := c.must("tasks/cancel", map[string]any{"taskId": id}); r.str("status") != "cancelled" {
			t.Errorf("cancel MUST transition before the answer: %v", r)
		}
		if r := <-waiting; r.err == nil {
			t.Errorf("a waiting tasks/result of a cancelled task: %s", r.result)
		}
		c.refused(codeParams, "tasks/cancel", map[string]any{"taskId": id})
		time.Sleep(time.Minute)
		if g := c.must("tasks/get", map[string]any{"taskId": id}); g.str("status") != "cancelled" {
			t.Errorf("left a terminal status: %v", g)
		}
		// A tasks/result that was given up gets no answer, and its task goes on.
		id = c.startTask("build", map[string]any{"target": "api"})
		rid, waiting := c.begin("tasks/result", map[string]any{"taskId": id})
		c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(rid)})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		select {
		case r := <-waiting:
			t.Errorf("answered after it was given up: %v", r)
		default:
		}
		if g := c.must("tasks/get", map[string]any{"taskId": id}); g.str("status") != "completed" {
			t.Errorf("giving up tasks/result cancelled the task: %v", g)
		}
	})
}

// 2025-11-25 tasks, "TTL and Resource Management": granted, counted from
// creation, deleted with it whatever the status.
func TestCoreTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		r := c.must("tools/call", map[string]any{"name": "nightly_export", "task": map[string]any{"ttl": 3600000}})
		if r.at("task", "ttl") != 90000.0 {
			t.Errorf("the server grants 90 s at most: %v", r)
		}
		id := r.str("task", "taskId")
		_, waiting := c.begin("tasks/result", map[string]any{"taskId": id})
		time.Sleep(89 * time.Second)
		c.must("tasks/get", map[string]any{"taskId": id})
		time.Sleep(2 * time.Second)
		if e := c.refused(codeParams, "tasks/get", map[string]any{"taskId": id}); !strings.Contains(e.Message, "expired") {
			t.Errorf("words: %v", e)
		}
		if r := <-waiting; r.err == nil || r.err.Code != codeParams {
			t.Errorf("waiting: %v", r)
		}
		r = c.must("tools/call", map[string]any{"name": "warm_cache", "arguments": map[string]any{"region": "eu-west"}, "task": map[string]any{}})
		if _, there := r["task"].(map[string]any)["ttl"]; !there || r.at("task", "ttl") != nil {
			t.Errorf("unlimited is null and MUST be there: %v", r)
		}
		r = c.must("tools/call", map[string]any{"name": "build", "arguments": map[string]any{"target": "api"}, "task": map[string]any{"ttl": 1e15}})
		if r.at("task", "ttl") != 86400000.0 {
			t.Errorf("a maximum is enforced: %v", r)
		}
		c.conforms("mcp-2025-11-25.schema.json", coreDefs)
	})
}

// 2025-11-25 tasks, "Input Required Status", and client/elicitation: questions
// go out beside an open tasks/result only; three rounds; an answer that breaks
// the schema is asked again.
func TestCoreQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		rounds := map[string]any{
			"owner":  map[string]any{"owner": "Ada", "email": "ada@example.org", "workers": 2},
			"mode":   map[string]any{"mode": "copy", "isolation": "rc", "tables": []any{"orders"}, "readOnly": true},
			"phrase": map[string]any{"phrase": "orders"},
			"start":  map[string]any{"start": "2026-12-01T22:00:00Z"},
		}
		spoiled := false
		c.answers(func(m message) any {
			p := decode(t, m.Params)
			id := related(p)
			for field, content := range rounds {
				if p.at("requestedSchema", "properties", field) != nil {
					if field == "owner" && !spoiled {
						spoiled = true
						content = map[string]any{"owner": "Ada", "email": "no mail", "workers": 9}
					}
					return map[string]any{"action": "accept", "content": content, "_meta": map[string]any{coreRelated: map[string]any{"taskId": id}}}
				}
			}
			t.Errorf("unexpected question %s", m.Params)
			return nil
		})
		id := c.startTask("migrate_schema", map[string]any{"database": "orders"})
		time.Sleep(time.Minute)
		if g := c.must("tasks/get", map[string]any{"taskId": id}); g.str("status") != "input_required" {
			t.Fatalf("got %v", g)
		}
		if n := len(c.received("elicitation/create")); n != 0 {
			t.Fatalf("%d questions without a tasks/result", n)
		}
		r := c.must("tasks/result", map[string]any{"taskId": id})
		if r["isError"] != false {
			t.Errorf("result: %v", r)
		}
		asked := c.received("elicitation/create")
		if len(asked) != 5 {
			t.Errorf("%d questions, want 5 (one of them twice)", len(asked))
		}
		for _, m := range asked {
			if related(decode(t, m.Params)) != id {
				t.Errorf("MUST carry related-task: %s", m.Params)
			}
		}
		if !strings.Contains(string(asked[1].Params), "Not accepted: ") {
			t.Errorf("the second asking says why: %s", asked[1].Params)
		}
		c.conforms("mcp-2025-11-25.schema.json", coreDefs)
	})
}

// One question is put to one client, once; a client that gave its tasks/result
// up is asked again beside a new one; a client that goes frees it for others.
func TestCoreQuestionOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := core2025(t, Options{})
		b := connect(t, s)
		b.initialize(coreVersion, fullCaps)
		id := a.startTask("deploy_release", map[string]any{"service": "api", "version": "v1.0.0"})
		time.Sleep(time.Minute)
		first, _ := a.begin("tasks/result", map[string]any{"taskId": id})
		synctest.Wait()
		b.begin("tasks/result", map[string]any{"taskId": id})
		synctest.Wait()
		if len(a.received("elicitation/create")) != 1 || len(b.received("elicitation/create")) != 0 {
			t.Fatal("a question is asked once")
		}
		a.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(first)})
		a.begin("tasks/result", map[string]any{"taskId": id})
		synctest.Wait()
		if len(a.received("elicitation/create")) != 2 || len(a.received("notifications/cancelled")) != 1 {
			t.Fatal("asked again beside the new tasks/result, the old request withdrawn")
		}
		_ = a.conn.Close(t.Context())
		synctest.Wait()
		asked := b.received("elicitation/create")
		if len(asked) != 1 {
			t.Fatal("a client that has gone must not keep the question")
		}
		// A withdrawn question: the task ends while it is open.
		b.must("tasks/cancel", map[string]any{"taskId": id})
		synctest.Wait()
		w := b.received("notifications/cancelled")
		if len(w) != 1 || decode(t, w[0].Params)["requestId"] == nil {
			t.Errorf("withdrawn: %v", w)
		}
	})
}

// 2025-11-25 client/elicitation, URL mode: by a task's question and by -32042.
func TestCoreURLElicitation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		var elicit string
		c.answers(func(m message) any {
			p := decode(t, m.Params)
			elicit = p.str("elicitationId")
			if p.str("mode") != "url" || elicit == "" {
				t.Errorf("got %v", p)
			}
			return map[string]any{"action": "accept", "_meta": p["_meta"]}
		})
		id := c.startTask("sign_artifact", map[string]any{"artifact": "a.zst"})
		if r := c.must("tasks/result", map[string]any{"taskId": id}); r["isError"] != false {
			t.Errorf("result: %v", r)
		}
		done := c.received("notifications/elicitation/complete")
		if len(done) != 1 || decode(t, done[0].Params).str("elicitationId") != elicit {
			t.Errorf("complete: %v", done)
		}
		e := c.refused(-32042, "tools/call", map[string]any{"name": "sign_artifact", "arguments": map[string]any{"artifact": "b.zst"}})
		if !strings.Contains(string(e.Data), "elicitations") {
			t.Errorf("data: %s", e.Data)
		}
		time.Sleep(10 * time.Second)
		if len(c.received("notifications/elicitation/complete")) != 2 {
			t.Error("no completion for the -32042")
		}
		if r := c.must("tools/call", map[string]any{"name": "sign_artifact", "arguments": map[string]any{"artifact": "b.zst"}}); r["isError"] != false {
			t.Errorf("after the visit: %v", r)
		}
		defs := map[string]string{}
		for k, v := range coreDefs {
			defs[k] = v
		}
		c.conforms("mcp-2025-11-25.schema.json", defs)
	})
}

// Sampling, and an answer that is refused by the client with an error.
func TestCoreSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		c.answers(func(m message) any {
			return map[string]any{"role": "assistant", "model": "me", "content": map[string]any{"type": "text", "text": "Receipts again."}, "stopReason": "endTurn"}
		})
		id := c.startTask("write_release_notes", map[string]any{"version": "v2"})
		r := c.must("tasks/result", map[string]any{"taskId": id})
		if !strings.Contains(string(enc(r)), "Receipts again.") {
			t.Errorf("result: %v", r)
		}
		// The answer lacked the related-task metadata: the server says so.
		if !strings.Contains(strings.Join(c.log, "\n"), "lacks the "+coreRelated) {
			t.Error("no warning about missing metadata")
		}
		c.answers(func(m message) any {
			c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -1, "message": "User rejected sampling request"}})
			return nil
		})
		id = c.startTask("write_release_notes", map[string]any{"version": "v3"})
		if r := c.must("tasks/result", map[string]any{"taskId": id}); r["isError"] != true {
			t.Errorf("rejected: %v", r)
		}
		c.conforms("mcp-2025-11-25.schema.json", coreDefs)
	})
}

// A client that declared no elicitation is not asked (client/elicitation,
// Capabilities).
func TestCoreNoCapability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Seed: 1})
		defer s.Close()
		c := connect(t, s)
		c.initialize(coreVersion, `{}`)
		for tool, args := range map[string]any{
			"deploy_release": map[string]any{"service": "api", "version": "v1.0.0"}, "sign_artifact": map[string]any{"artifact": "a"},
			"write_release_notes": map[string]any{"version": "v1"}, "survey_owner": map[string]any{"topic": "x"},
		} {
			id := c.startTask(tool, args)
			if r := c.must("tasks/result", map[string]any{"taskId": id}); r["isError"] != true {
				t.Errorf("%s: %v", tool, r)
			}
		}
		for _, m := range c.got {
			if m.Method != "" && m.ID != nil {
				t.Errorf("asked a client that declared nothing: %s", m.raw)
			}
		}
	})
}

// 2025-11-25 tasks, "Task-Augmented Sampling Request": the server as requestor.
func TestCoreClientTasks(t *testing.T) {
	for _, tc := range []struct {
		tool   string
		args   map[string]any
		result map[string]any
		plain  bool
	}{
		{"survey_owner", map[string]any{"topic": "nights"}, map[string]any{"action": "accept", "content": map[string]any{"score": 4}}, false},
		{"summarise_thread", map[string]any{"thread": "t"}, map[string]any{"role": "assistant", "model": "m", "content": map[string]any{"type": "text", "text": "Short."}}, false},
		{"survey_owner", map[string]any{"topic": "days"}, map[string]any{"action": "accept", "content": map[string]any{"score": 2}}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, c := core2025(t, Options{})
			polls := 0
			c.answers(func(m message) any {
				p := decode(t, m.Params)
				task := map[string]any{"taskId": "client-1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 600000, "pollInterval": 700}
				switch m.Method {
				case "elicitation/create", "sampling/createMessage":
					if p.at("task", "ttl") == nil {
						t.Errorf("no task field: %v", p)
					}
					return map[string]any{"task": task}
				case "tasks/get":
					if polls++; polls == 3 {
						task["status"] = "completed"
					}
					return task
				case "tasks/result":
					return tc.result
				}
				return nil
			})
			var r object
			if tc.plain {
				r = c.must("tools/call", map[string]any{"name": tc.tool, "arguments": tc.args})
			} else {
				r = c.must("tasks/result", map[string]any{"taskId": c.startTask(tc.tool, tc.args)})
			}
			if r["isError"] != false || polls != 3 {
				t.Errorf("%s: %v after %d polls", tc.tool, r, polls)
			}
			c.conforms("mcp-2025-11-25.schema.json", coreDefs)
		})
	}
}

// Our task is cancelled while it waits for the client's: the client's is
// cancelled too.
func TestCoreClientTaskAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		c.answers(func(m message) any {
			return map[string]any{"taskId": "c1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": nil,
				"task": map[string]any{"taskId": "c1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": nil}}
		})
		id := c.startTask("survey_owner", map[string]any{"topic": "x"})
		time.Sleep(10 * time.Second)
		c.must("tasks/cancel", map[string]any{"taskId": id})
		synctest.Wait()
		if len(c.received("tasks/cancel")) != 1 {
			t.Error("the client's task was left to itself")
		}
	})
}

// 2025-11-25 tasks, "Task Listing": pages, cursors, and every task that
// tasks/get knows.
func TestCoreListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := core2025(t, Options{Tasks: 173})
		seen := map[string]bool{}
		pages := 0
		cursor := ""
		for {
			p := map[string]any{}
			if cursor != "" {
				p["cursor"] = cursor
			}
			r := c.must("tasks/list", p)
			pages++
			for _, v := range r["tasks"].([]any) {
				id := object(v.(map[string]any)).str("taskId")
				if seen[id] {
					t.Errorf("%s twice", id)
				}
				seen[id] = true
			}
			if pages == 1 {
				c.startTask("lint_file", map[string]any{"path": "x.go"}) // a new one does not shift the pages
			}
			if cursor = r.str("nextCursor"); cursor == "" {
				break
			}
		}
		if pages != 4 || len(seen) != 173 || len(s.Handles()) != 174 {
			t.Errorf("%d pages, %d tasks", pages, len(seen))
		}
		c.conforms("mcp-2025-11-25.schema.json", coreDefs)
	})
}

// tools/list_changed once a release was deployed.
func TestCoreToolsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{})
		c.answers(func(m message) any {
			p := decode(t, m.Params)
			return map[string]any{"action": "accept", "content": map[string]any{"strategy": "canary", "ticket": "CHG-20417"}, "_meta": p["_meta"]}
		})
		id := c.startTask("deploy_release", map[string]any{"service": "api", "version": "v1.0.0"})
		if r := c.must("tasks/result", map[string]any{"taskId": id}); r.at("structuredContent", "rolledOut") != true {
			t.Fatalf("deploy: %v", r)
		}
		if len(c.received("notifications/tools/list_changed")) != 1 {
			t.Error("no notice of the new tool")
		}
		if !strings.Contains(string(enc(c.must("tools/list", nil))), "rollback_release") {
			t.Error("the new tool is not listed")
		}
	})
}
