package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

var modernDefs = map[string]string{
	"error":                                    "JSONRPCErrorResponse",
	"error -32021":                             "MissingRequiredClientCapabilityError",
	"error -32022":                             "UnsupportedProtocolVersionError",
	"error -32020":                             "HeaderMismatchError",
	"result of server/discover":                "DiscoverResult",
	"result of tools/list":                     "ListToolsResult",
	"result of tools/call":                     "CallToolResult",
	"result of tools/call task":                "ext:CreateTaskResult",
	"result of tools/call input_required":      "InputRequiredResult",
	"result of tasks/get":                      "ext:GetTaskResult",
	"result of tasks/update":                   "ext:UpdateTaskResult",
	"result of tasks/cancel":                   "ext:CancelTaskResult",
	"result of subscriptions/listen":           "SubscriptionsListenResult",
	"notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
	"notifications/tasks":                      "ext:TaskStatusNotification",
	"notifications/progress":                   "ProgressNotification",
	"notifications/message":                    "LoggingMessageNotification",
	"notifications/tools/list_changed":         "ToolListChangedNotification",
}

const modernSchema = "mcp-2026-07-28.schema.json"

// with is params with the metadata of 2026-07-28; caps is what the request
// declares.
func with(params map[string]any, caps string) map[string]any {
	out := map[string]any{}
	for k, v := range params {
		out[k] = v
	}
	meta := map[string]any{metaVersion: modernVersion, metaCaps: json.RawMessage(caps), "io.modelcontextprotocol/clientInfo": map[string]any{"name": "test", "version": "1"}}
	if m, ok := params["_meta"].(map[string]any); ok {
		for k, v := range m {
			meta[k] = v
		}
	}
	out["_meta"] = meta
	return out
}

const (
	modernCaps = `{"elicitation":{"form":{},"url":{}},"sampling":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	plainCaps  = `{"elicitation":{"form":{}}}`
)

func modern(t *testing.T, o Options) (*Server, *client) {
	t.Helper()
	o.Generation = taskmodel.GenExtension
	if o.Seed == 0 {
		o.Seed = 1
	}
	s := New(o)
	t.Cleanup(s.Close)
	return s, connect(t, s)
}

func (c *client) get(id string) object {
	c.t.Helper()
	return c.must("tasks/get", with(map[string]any{"taskId": id}, modernCaps))
}

func (c *client) create(tool string, args map[string]any) string {
	c.t.Helper()
	r := c.must("tools/call", with(map[string]any{"name": tool, "arguments": args}, modernCaps))
	if r.str("resultType") != "task" {
		c.t.Fatalf("%s made no task: %v", tool, r)
	}
	return r.str("taskId")
}

// 2026-07-28 basic "_meta", basic/versioning, server/discover.
func TestExtensionEra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := modern(t, Options{})
		r := c.must("server/discover", with(nil, `{}`))
		if r.at("capabilities", "extensions", extensionID) == nil || r.str("resultType") != "complete" {
			t.Errorf("discover: %v", r)
		}
		e := c.refused(codeVersion, "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "x", "version": "1"}})
		if !strings.Contains(string(e.Data), modernVersion) || !strings.Contains(e.Message, modernVersion) {
			t.Errorf("an error to initialize names the versions: %v %s", e, e.Data)
		}
		c.refused(codeParams, "tools/list", nil)
		c.refused(codeParams, "tools/list", map[string]any{"_meta": map[string]any{metaVersion: modernVersion}})
		c.refused(codeVersion, "tools/list", map[string]any{"_meta": map[string]any{metaVersion: "2099-01-01", metaCaps: map[string]any{}}})
		for _, m := range []string{"ping", "tasks/list", "tasks/result", "logging/setLevel", "resources/subscribe"} {
			c.refused(codeMethod, m, with(map[string]any{"taskId": "x"}, modernCaps))
		}
		c.must("tools/list", with(nil, `{}`))
		c.conforms(modernSchema, modernDefs)
	})
}

// tasks "Capability Negotiation" and "Protocol Errors": -32021, per request.
func TestExtensionCapability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := modern(t, Options{Tasks: 3})
		id := s.Handles()[0].ID
		for _, m := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			e := c.refused(codeCapability, m, with(map[string]any{"taskId": id, "inputResponses": map[string]any{}}, plainCaps))
			if !strings.Contains(string(e.Data), extensionID) {
				t.Errorf("%s: %s", m, e.Data)
			}
		}
		c.refused(codeCapability, "subscriptions/listen", with(map[string]any{"notifications": map[string]any{"taskIds": []any{id}}}, plainCaps))
		c.refused(codeCapability, "tools/call", with(map[string]any{"name": "deploy_release", "arguments": map[string]any{"service": "api", "version": "v1.0.0"}}, plainCaps))
		// With the extension but nobody to ask.
		e := c.refused(codeCapability, "tools/call", with(map[string]any{"name": "write_release_notes", "arguments": map[string]any{"version": "v1"}}, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`))
		if !strings.Contains(string(e.Data), "sampling") {
			t.Errorf("data: %s", e.Data)
		}
		// A client that did not declare it MUST NOT get a task, whatever it
		// declared before; params.task asks for nothing.
		c.get(id)
		r := c.must("tools/call", with(map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "a.go"}, "task": map[string]any{"ttl": 1}}, plainCaps))
		if r.str("resultType") != "complete" || r.at("content") == nil {
			t.Errorf("plain: %v", r)
		}
		r = c.must("tools/call", with(map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "a.go"}, "task": map[string]any{"ttl": 1}}, modernCaps))
		if r.str("resultType") != "task" || r.at("ttlMs") != 3600000.0 {
			t.Errorf("params.task must be ignored: %v", r)
		}
		if r := c.must("tools/call", with(map[string]any{"name": "read_status"}, modernCaps)); r.str("resultType") != "complete" {
			t.Errorf("read_status is never a task: %v", r)
		}
		c.conforms(modernSchema, modernDefs)
	})
}

// tasks "Task Polling", "Task Execution Errors": states with what they inline.
func TestExtensionLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := modern(t, Options{})
		build := c.create("build", map[string]any{"target": "api"})
		tests := c.create("run_tests", map[string]any{"package": "./..."})
		scan := c.create("security_scan", map[string]any{})
		if g := c.get(build); g.str("status") != "working" || g.str("resultType") != "complete" {
			t.Errorf("get: %v", g)
		}
		time.Sleep(2 * time.Minute)
		if g := c.get(build); g.str("status") != "completed" || g.at("result", "structuredContent", "digest") == nil {
			t.Errorf("build: %v", g)
		}
		if g := c.get(tests); g.str("status") != "completed" || g.at("result", "isError") != true {
			t.Errorf("isError is completed here: %v", g)
		}
		if g := c.get(scan); g.str("status") != "failed" || g.at("error", "code") != float64(codeInternal) || g.str("statusMessage") == "" {
			t.Errorf("scan: %v", g)
		}
		if len(c.received("notifications/progress"))+len(c.received("notifications/message"))+len(c.received("notifications/tasks")) != 0 {
			t.Error("nothing is pushed that was not asked for")
		}
		c.refused(codeParams, "tasks/get", with(map[string]any{"taskId": "no-such"}, modernCaps))
		c.refused(codeParams, "tasks/cancel", with(map[string]any{"taskId": "no-such"}, modernCaps))
		c.refused(codeParams, "tasks/update", with(map[string]any{"taskId": "no-such", "inputResponses": map[string]any{}}, modernCaps))
		c.refused(codeParams, "tasks/update", with(map[string]any{"taskId": build}, modernCaps))
		c.conforms(modernSchema, modernDefs)
	})
}

// tasks "Task Update Requests": rounds, partial answers, keys that are not
// outstanding, an answer that breaks its schema.
func TestExtensionQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := modern(t, Options{})
		id := c.create("migrate_schema", map[string]any{"database": "orders"})
		update := func(responses map[string]any) {
			c.must("tasks/update", with(map[string]any{"taskId": id, "inputResponses": responses}, modernCaps))
		}
		accept := func(content map[string]any) map[string]any {
			return map[string]any{"action": "accept", "content": content}
		}
		time.Sleep(time.Minute)
		g := c.get(id)
		if g.at("inputRequests", "plan", "method") != "elicitation/create" {
			t.Fatalf("round 1: %v", g)
		}
		update(map[string]any{"never-issued": accept(nil)})
		e := c.refused(codeParams, "tasks/update", with(map[string]any{"taskId": id, "inputResponses": map[string]any{"plan": accept(map[string]any{"owner": "A"})}}, modernCaps))
		if !strings.Contains(e.Message, "plan") {
			t.Errorf("words: %v", e)
		}
		if g := c.get(id); g.at("inputRequests", "plan") == nil {
			t.Errorf("still asked after a refused answer: %v", g)
		}
		update(map[string]any{"plan": accept(map[string]any{"owner": "Ada", "email": "ada@example.org", "workers": 2})})
		time.Sleep(time.Minute)
		update(map[string]any{"plan": accept(nil), "scope": accept(map[string]any{"mode": "copy", "isolation": "rr", "tables": []any{"orders"}, "readOnly": false})})
		time.Sleep(time.Minute)
		g = c.get(id)
		if g.at("inputRequests", "confirm") == nil || g.at("inputRequests", "window") == nil {
			t.Fatalf("round 3 asks two at once: %v", g)
		}
		update(map[string]any{"window": accept(map[string]any{"start": "2026-12-01T22:00:00Z"})})
		if g := c.get(id); g.str("status") != "input_required" || g.at("inputRequests", "window") != nil || g.at("inputRequests", "confirm") == nil {
			t.Errorf("after a partial answer: %v", g)
		}
		update(map[string]any{"confirm": accept(map[string]any{"phrase": "orders"})})
		if g := c.get(id); g.str("status") != "working" || g.at("inputRequests") != nil {
			t.Errorf("after all answers: %v", g)
		}
		time.Sleep(2 * time.Minute)
		if g := c.get(id); g.str("status") != "completed" {
			t.Errorf("end: %v", g)
		}
		c.conforms(modernSchema, modernDefs)
	})
}

// tasks "Task Cancellation": an acknowledgement at once, the effect later or
// never.
func TestExtensionCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := modern(t, Options{})
		id := c.create("reindex_search", map[string]any{"index": "x"})
		time.Sleep(time.Hour)
		r := c.must("tasks/cancel", with(map[string]any{"taskId": id}, modernCaps))
		if len(r) != 1 || r.str("resultType") != "complete" {
			t.Errorf("an empty result: %v", r)
		}
		if g := c.get(id); g.str("status") != "working" {
			t.Errorf("cooperative: %v", g)
		}
		time.Sleep(2 * time.Second)
		if g := c.get(id); g.str("status") != "cancelled" {
			t.Errorf("cancelled in the end: %v", g)
		}
		c.must("tasks/cancel", with(map[string]any{"taskId": id}, modernCaps)) // acknowledged, without effect
		id = c.create("deploy_release", map[string]any{"service": "api", "version": "v1.0.0"})
		time.Sleep(30 * time.Second)
		c.must("tasks/update", with(map[string]any{"taskId": id, "inputResponses": map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"strategy": "rolling", "ticket": "CHG-1234"}}}}, modernCaps))
		time.Sleep(22 * time.Second) // past the point of no return
		c.must("tasks/cancel", with(map[string]any{"taskId": id}, modernCaps))
		time.Sleep(time.Minute)
		if g := c.get(id); g.str("status") != "completed" {
			t.Errorf("too late to cancel: %v", g)
		}
		c.conforms(modernSchema, modernDefs)
	})
}

// 2026-07-28 basic/patterns/subscriptions and tasks "Task Status Notifications".
func TestExtensionListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := modern(t, Options{})
		id := c.create("build", map[string]any{"target": "api"})
		other := c.create("build", map[string]any{"target": "web"})
		sub, ended := c.begin("subscriptions/listen", with(map[string]any{"notifications": map[string]any{"taskIds": []any{id, "no-such"}, "promptsListChanged": true}}, modernCaps))
		synctest.Wait()
		acks := c.received("notifications/subscriptions/acknowledged")
		if len(acks) != 1 {
			t.Fatal("no acknowledgement")
		}
		a := decode(t, acks[0].Params)
		if ids := a.at("notifications", "taskIds").([]any); len(ids) != 1 || ids[0] != id || a.at("notifications", "promptsListChanged") != nil {
			t.Errorf("acknowledged: %v", a)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		pushes := c.received("notifications/tasks")
		if len(pushes) < 3 {
			t.Fatalf("%d pushes", len(pushes))
		}
		for _, m := range pushes {
			p := decode(t, m.Params)
			if p.str("taskId") != id || string(enc(p.at("_meta", metaSubscribed))) != sub {
				t.Errorf("push: %v", p)
			}
		}
		if p := decode(t, pushes[len(pushes)-1].Params); p.at("result", "content") == nil {
			t.Errorf("the last one carries the result: %v", p)
		}
		// Cancelled by the client (stdio): nothing more, no response.
		c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(sub)})
		second, closed := c.begin("subscriptions/listen", with(map[string]any{"notifications": map[string]any{"taskIds": []any{other}, "toolsListChanged": true}}, modernCaps))
		synctest.Wait()
		select {
		case r := <-ended:
			t.Errorf("a cancelled subscription was answered: %v", r)
		default:
		}
		c.refused(codeParams, "subscriptions/listen", with(map[string]any{}, modernCaps))
		// "Graceful Closure".
		s.Close()
		r := <-closed
		if string(enc(decode(t, r.result).at("_meta", metaSubscribed))) != second {
			t.Errorf("closing: %s", r.result)
		}
		c.conforms(modernSchema, modernDefs)
	})
}

// 2026-07-28 basic/patterns/mrtr: the question before the task.
func TestExtensionEarlyQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := modern(t, Options{})
		p := map[string]any{"name": "rotate_secret", "arguments": map[string]any{"secret": "k"}}
		r := c.must("tools/call", with(p, modernCaps))
		if r.str("resultType") != "input_required" || r.at("inputRequests", "environment", "params", "requestedSchema") == nil || r.str("requestState") == "" {
			t.Fatalf("first: %v", r)
		}
		answer := map[string]any{"environment": map[string]any{"action": "accept", "content": map[string]any{"environment": "prd"}}}
		retry := func(state any, responses any) map[string]any {
			return with(map[string]any{"name": p["name"], "arguments": p["arguments"], "requestState": state, "inputResponses": responses}, modernCaps)
		}
		c.refused(codeParams, "tools/call", retry(r.str("requestState")+"x", answer))
		c.refused(codeParams, "tools/call", retry(r.str("requestState"), map[string]any{"environment": map[string]any{"action": "accept", "content": map[string]any{"environment": "moon"}}}))
		again := c.must("tools/call", retry(r.str("requestState"), map[string]any{})) // missing: asked again, no error
		if again.str("resultType") != "input_required" {
			t.Errorf("missing answer: %v", again)
		}
		if d := c.must("tools/call", retry(r.str("requestState"), map[string]any{"environment": map[string]any{"action": "decline"}})); d["isError"] != true {
			t.Errorf("declined: %v", d)
		}
		if d := c.must("tools/call", retry(r.str("requestState"), answer)); d.str("resultType") != "task" {
			t.Errorf("answered: %v", d)
		}
		time.Sleep(11 * time.Minute)
		c.refused(codeParams, "tools/call", retry(r.str("requestState"), answer)) // too old
		// Without the extension the same call ends as a plain result.
		plain := c.must("tools/call", with(p, plainCaps))
		d := c.must("tools/call", with(map[string]any{"name": p["name"], "arguments": p["arguments"], "requestState": plain["requestState"], "inputResponses": answer}, plainCaps))
		if d.str("resultType") != "complete" {
			t.Errorf("plain: %v", d)
		}
		c.conforms(modernSchema, modernDefs)
	})
}

// 2026-07-28 basic/patterns/progress and server/utilities/logging: beside a
// plain call, when it asks for them.
func TestExtensionPlainCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := modern(t, Options{})
		c.must("tools/call", with(map[string]any{"name": "build", "arguments": map[string]any{"target": "api"},
			"_meta": map[string]any{"progressToken": 4, metaLogLevel: "info"}}, plainCaps))
		if len(c.received("notifications/progress")) < 10 || len(c.received("notifications/message")) == 0 {
			t.Errorf("%d progress, %d log", len(c.received("notifications/progress")), len(c.received("notifications/message")))
		}
		n := len(c.received("notifications/message"))
		c.must("tools/call", with(map[string]any{"name": "build", "arguments": map[string]any{"target": "api"}}, plainCaps))
		if len(c.received("notifications/message")) != n {
			t.Error("logged without being asked to")
		}
		id, ch := c.begin("tools/call", with(map[string]any{"name": "build", "arguments": map[string]any{"target": "api"}, "_meta": map[string]any{"progressToken": 5}}, plainCaps))
		c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
		synctest.Wait()
		before := len(c.received("notifications/progress"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(ch) != 0 || len(c.received("notifications/progress")) != before {
			t.Error("messages for a cancelled request")
		}
		c.conforms(modernSchema, modernDefs)
	})
}
