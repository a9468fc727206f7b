package ui_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
	"mcptasks/ui/list"
	"mcptasks/ui/screentest"
)

// day is the instant at which the screens of these tests are drawn.
var day = time.Date(2026, 11, 29, 14, 2, 31, 0, time.UTC)

// bubble runs a test on a fake clock that stands at day.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(day))
		f(t)
	})
}

// run starts the program on a monitor.
func run(t *testing.T, mon *screentest.Monitor, w, h int, change func(*ui.Options), opts ...screentest.Option) *screentest.Terminal {
	t.Helper()
	return screentest.Start(t, w, h, func(ctx context.Context, tty screentest.TTY) error {
		o := ui.Options{Input: tty.Input, Output: tty.Output, Env: tty.Env, Program: tty.Program, Started: tty.Started,
			Theme: "dark", Now: func() time.Time { return time.Now().UTC() },
			List: list.Options{Empty: []string{"No servers yet.", "", "  mcptasks demo                               see it at work, no set-up",
				"  mcptasks -s ci=https://ci.example/mcp       watch a server over HTTP"}}}
		if change != nil {
			change(&o)
		}
		return ui.Run(ctx, mon, o)
	}, opts...)
}

func ago(d time.Duration) time.Time { return day.Add(-d) }

func key(server, id string) taskmodel.Key {
	return taskmodel.Key{Server: server, ID: id, Role: taskmodel.Requestor}
}

// fleet fills a monitor with the tasks of SCREENS.md.
func fleet() *screentest.Monitor {
	m := screentest.NewMonitor()
	m.Change(func(b *board.Board) {
		all := taskmodel.Can{List: true, Cancel: true, Start: true}
		b.PutServer(taskmodel.Server{Name: "ci", Target: "https://ci.example/mcp", Transport: "http", State: taskmodel.ServerReady, StateSince: ago(time.Hour),
			Generation: taskmodel.GenCore, ProtocolVersion: "2025-11-25", RTT: 42 * time.Millisecond, Can: all, ServerName: "ci-server", ServerVersion: "3.1",
			RTTs: rtts(), PollsPerMinute: 24, Source: "~/.config/mcptasks/config.toml", Tools: tools("ci")})
		push := all
		push.Push, push.List, push.ListWhy = true, false, "this generation has none"
		b.PutServer(taskmodel.Server{Name: "deploy", Target: "https://deploy.example/mcp", Transport: "http", State: taskmodel.ServerReady, StateSince: ago(time.Hour),
			Generation: taskmodel.GenExtension, ProtocolVersion: "2026-07-28", RTT: 18 * time.Millisecond, Can: push, Pushing: true, PushesPerMinute: 6, Tools: tools("deploy")})
		b.PutServer(taskmodel.Server{Name: "lab", Target: "lab-server --stdio", Transport: "stdio", State: taskmodel.ServerRetrying, StateSince: ago(20 * time.Second),
			Generation: taskmodel.GenDraft, Error: "connection refused at 127.0.0.1:8080", RetryAt: day.Add(4 * time.Second), Attempts: 4,
			Stderr: []string{"lab: warming up", "lab: \x1b[31mpanic\x1b[0m: no bench"}})
		for _, t := range tasks() {
			b.Insert(t)
		}
		b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "deploy", ID: "7f3a/approve"}, Task: key("deploy", "7f3a91c2-0000-4000-8000-000000002e7d"),
			Tool: "deploy_release", Key: "approve", Kind: taskmodel.AskForm, Method: "elicitation/create", Message: "Approve rollout of v2.4.1 to prod?",
			AskedAt: ago(41 * time.Second), Round: 1, State: taskmodel.QuestionOpen, Schema: approveSchema})
		b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "17"}, Task: key("ci", "0c55e1d7-0000-4000-8000-000000000001"),
			Tool: "migrate_schema", Key: "17", Kind: taskmodel.AskForm, Message: "Round 2 of 3: choose the cut-over",
			AskedAt: ago(130 * time.Second), Round: 2, State: taskmodel.QuestionOpen, Schema: json.RawMessage(`{"type":"object","properties":{"when":{"type":"string"}}}`)})
	})
	return m
}

var approveSchema = json.RawMessage(`{"type":"object","required":["decision","share"],"properties":{
"decision":{"type":"string","title":"Decision","oneOf":[{"const":"hold","title":"hold"},{"const":"go","title":"go on"},{"const":"back","title":"roll back"}],"default":"go"},
"share":{"type":"integer","title":"Canary share","description":"percent","minimum":1,"maximum":50,"default":25},
"until":{"type":"string","title":"Until","format":"date"},
"ticket":{"type":"string","title":"Ticket","pattern":"^OPS-[0-9]{4}$"}}}`)

func rtts() []time.Duration {
	var out []time.Duration
	for i := range 40 {
		out = append(out, time.Duration(30+(i*7)%29)*time.Millisecond)
	}
	return out
}

func tools(server string) []taskmodel.Tool {
	if server == "ci" {
		return []taskmodel.Tool{
			{Name: "build", Title: "Build", Description: "Build the whole tree.", TaskSupport: "optional", InputSchema: json.RawMessage(`{"type":"object","required":["target"],"properties":{"target":{"type":"string","title":"Target"},"clean":{"type":"boolean","title":"Clean first","default":false}}}`)},
			{Name: "run_tests", Description: "Run the tests.", TaskSupport: "required", ReadOnly: true, InputSchema: json.RawMessage(`{"type":"object"}`)},
			{Name: "drop_cache", Description: "Empty the cache at once.", TaskSupport: "forbidden", Destructive: true, WhyNotTask: "the server forbids it for this tool", InputSchema: json.RawMessage(`{"type":"object"}`)},
		}
	}
	return []taskmodel.Tool{{Name: "deploy_release", Description: "Roll a version out.", TaskSupport: "server", Destructive: true, InputSchema: json.RawMessage(`{"type":"object","properties":{"version":{"type":"string"}}}`)}}
}

func minutes(n int) taskmodel.TTL {
	return taskmodel.TTL{Known: true, Duration: time.Duration(n) * time.Minute}
}

func tasks() []taskmodel.Task {
	mk := func(server, id string, gen taskmodel.Generation, st taskmodel.Status, tool, msg string, age time.Duration, ttl int) taskmodel.Task {
		born := ago(age)
		t := taskmodel.Task{Key: key(server, id), Generation: gen, Status: st, Tool: tool, StatusMessage: msg, CreatedAt: born, LastUpdatedAt: born,
			TTL: minutes(ttl), PollInterval: 5 * time.Second, FirstHeardAt: born, LastHeardAt: ago(2 * time.Second), StatusSince: born, Standing: taskmodel.Live,
			Ours: true, Polls: 14, Args: json.RawMessage(`{"service":"checkout","version":"2.4.1","regions":["eu-1","us-2"]}`),
			Raw: json.RawMessage(`{"taskId":"` + id + `","status":"` + string(st) + `","statusMessage":` + quote(msg) + `,"ttl":3600000,"_meta":{"trace":"a1","parts":[1,2,3],"ok":true,"none":null}}`)}
		if t.Terminal() {
			t.EndedAt = ago(age / 2)
			t.StatusSince = t.EndedAt
		}
		return t
	}
	deploy := mk("deploy", "7f3a91c2-0000-4000-8000-000000002e7d", taskmodel.GenExtension, taskmodel.InputRequired, "deploy_release", "Approve rollout of v2.4.1 to prod?", 4*time.Minute+12*time.Second, 30)
	deploy.StatusSince = ago(41 * time.Second)
	deploy.Inputs = []taskmodel.QuestionID{{Server: "deploy", ID: "7f3a/approve"}}
	deploy.Transitions = []taskmodel.Transition{
		{At: ago(252 * time.Second), Status: taskmodel.Working, Message: "Plan"},
		{At: ago(209 * time.Second), Status: taskmodel.Working, Message: "Canary 5 %"},
		{At: ago(41 * time.Second), Status: taskmodel.InputRequired, Message: "Approve rollout of v2.4.1 to prod?"}}
	migrate := mk("ci", "0c55e1d7-0000-4000-8000-000000000001", taskmodel.GenCore, taskmodel.InputRequired, "migrate_schema", "Round 2 of 3: choose the cut-over", time.Minute+20*time.Second, 10)
	migrate.Inputs = []taskmodel.QuestionID{{Server: "ci", ID: "17"}}
	migrate.Progress = &taskmodel.Progress{Value: 1, Total: 3, HasTotal: true, At: ago(50 * time.Second)}
	build := mk("ci", "b81f20aa-0000-4000-8000-000000000002", taskmodel.GenCore, taskmodel.Working, "build", "Linking, stage 4 of 6", 2*time.Minute+5*time.Second, 60)
	build.Progress = &taskmodel.Progress{Value: 151, Total: 212, HasTotal: true, At: ago(time.Second)}
	build.Transitions = []taskmodel.Transition{{At: build.CreatedAt, Status: taskmodel.Working, Message: "Compiling"}}
	sim := mk("lab", "91d0c3f4-0000-4000-8000-000000000003", taskmodel.GenDraft, taskmodel.Working, "simulate", "", 8*time.Minute, 0)
	sim.CreatedAt, sim.TTL = time.Time{}, taskmodel.TTL{}
	sim.Standing, sim.StandingSince = taskmodel.Stale, ago(12*time.Second)
	tests := mk("ci", "44ab09ee-0000-4000-8000-000000000004", taskmodel.GenCore, taskmodel.Failed, "run_tests", "3 of 412 tests failed", 9*time.Minute, 60)
	tests.Progress = &taskmodel.Progress{Value: 412, Total: 412, HasTotal: true}
	tests.Outcome = taskmodel.Outcome{Result: json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"3 of 412 tests failed"}],"structuredContent":{"failed":["a","b","c"]}}`), FetchedAt: ago(4 * time.Minute), KeptHere: true}
	built := mk("ci", "a0917be3-0000-4000-8000-000000000005", taskmodel.GenCore, taskmodel.Completed, "build", "Built 212 targets", 12*time.Minute, 60)
	built.Progress = &taskmodel.Progress{Value: 212, Total: 212, HasTotal: true}
	warm := mk("deploy", "5e1177aa-0000-4000-8000-000000000006", taskmodel.GenExtension, taskmodel.Cancelled, "warm_cache", "Stopped on request", 31*time.Minute, 60)
	return []taskmodel.Task{deploy, migrate, build, sim, tests, built, warm}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// wire is a few messages about one task.
func wire() []taskmodel.WireEntry {
	mk := func(i int, dir taskmodel.Direction, kind, method, id, body string, lat time.Duration) taskmodel.WireEntry {
		return taskmodel.WireEntry{Seq: int64(i), At: ago(time.Duration(60-i) * time.Second), Server: "ci", Direction: dir, Kind: kind, Method: method, ID: id,
			Task: migrateID, Latency: lat, Size: len(body), Bytes: []byte(body)}
	}
	return []taskmodel.WireEntry{
		mk(1, taskmodel.Sent, "request", "tools/call", "7", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"migrate_schema","task":{"ttl":600000}}}`, 0),
		mk(2, taskmodel.Received, "response", "tools/call", "7", `{"jsonrpc":"2.0","id":7,"result":{"task":{"taskId":"0c55e1d7","status":"working"}}}`, 42*time.Millisecond),
		mk(3, taskmodel.Received, "notification", "notifications/tasks/status", "", `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"0c55e1d7","status":"input_required"}}`, 0),
		mk(4, taskmodel.Sent, "request", "tasks/get", `"a-8"`, `{"jsonrpc":"2.0","id":"a-8","method":"tasks/get","params":{"taskId":"0c55e1d7"}}`, 0),
		mk(5, taskmodel.Received, "error", "tasks/get", `"a-8"`, `{"jsonrpc":"2.0","id":"a-8","error":{"code":-32602,"message":"no \u001b[31msuch task"}}`, 1200*time.Millisecond),
	}
}
