package ui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
	"mcptasks/ui/screentest"
)

// odd changes the fleet's tasks so that each way in which a row can be out of
// the ordinary is there once.
func odd() *screentest.Monitor {
	m := fleet()
	m.Change(func(b *board.Board) {
		mk := func(id, tool, msg string, st taskmodel.Status, age time.Duration, change func(t *taskmodel.Task)) {
			t := taskmodel.Task{Key: key("ci", id), Generation: taskmodel.GenCore, Status: st, Tool: tool, StatusMessage: msg, CreatedAt: ago(age),
				FirstHeardAt: ago(age), LastHeardAt: ago(3 * time.Second), StatusSince: ago(age), Standing: taskmodel.Live, TTL: minutes(60), PollInterval: 5 * time.Second, Ours: true, Polls: 3}
			change(&t)
			b.Insert(t)
		}
		mk("11111111-aaaa", "export", "Writing page 12", taskmodel.Working, 59*time.Minute+20*time.Second, func(*taskmodel.Task) {})
		mk("22222222-aaaa", "export", "Writing page 3", taskmodel.Working, 61*time.Minute, func(*taskmodel.Task) {})
		mk("33333333-aaaa", "reindex", "Shard 4 of 9", taskmodel.Working, 5*time.Minute, func(t *taskmodel.Task) { t.CancelRequested = ago(8 * time.Second) })
		mk("44444444-aaaa", "reindex", "Shard 1 of 9", taskmodel.Working, 7*time.Minute, func(t *taskmodel.Task) {
			t.Standing, t.StandingSince, t.Note = taskmodel.Gone, ago(time.Minute), "the server does not know this task, and its time was not over"
		})
		mk("55555555-aaaa", "nightly", "Half way", taskmodel.Working, 90*time.Minute, func(t *taskmodel.Task) { t.Standing, t.StandingSince = taskmodel.Expired, ago(30*time.Minute) })
		mk("66666666-aaaa", "nightly", "Begun", taskmodel.Working, 20*time.Minute, func(t *taskmodel.Task) { t.Standing, t.StandingSince = taskmodel.Restored, ago(time.Second) })
		mk("77777777-aaaa", "import", "Reading", taskmodel.Working, 2*time.Minute, func(t *taskmodel.Task) { t.Owner = "claude-code's" })
		mk("88888888-aaaa", "assay", "", taskmodel.Submitted, time.Minute, func(*taskmodel.Task) {})
		mk("99999999-aaaa", "assay", "Nobody knows", taskmodel.Unknown, time.Minute, func(*taskmodel.Task) {})
	})
	return m
}

// withdrawn has a question that was withdrawn for a reason that takes more words
// than a row has room for.
func withdrawn() *screentest.Monitor {
	m := fleet()
	m.Change(func(b *board.Board) {
		b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "deploy", ID: "gone"}, Task: key("deploy", "5e1177aa-0000-4000-8000-000000000006"), Tool: "warm_cache",
			Kind: taskmodel.AskForm, Message: "Which regions shall be warmed, and in which order?", AskedAt: ago(20 * time.Minute), State: taskmodel.QuestionWithdrawn,
			Withdrawn: "the task ended as cancelled before an answer was sent; the draft is kept in its history"})
	})
	return m
}

// rooted has a server that was told of folders and of a log level.
func rooted() *screentest.Monitor {
	m := fleet()
	m.Change(func(b *board.Board) {
		s, _ := b.Server("ci")
		s.Roots, s.LogLevel = []string{"file:///home/ann/src/checkout", "file:///srv/with%20space"}, "warning"
		b.PutServer(s)
	})
	return m
}

// crowded has one server with tasks in every status.
func crowded() *screentest.Monitor {
	m := fleet()
	m.Change(func(b *board.Board) {
		for i := range 1300 {
			st := []taskmodel.Status{taskmodel.Completed, taskmodel.Completed, taskmodel.Working, taskmodel.Failed, taskmodel.Cancelled, taskmodel.Submitted, taskmodel.Unknown, "paused"}[i%8]
			b.Insert(taskmodel.Task{Key: key("lab", fmt.Sprintf("%08d", i)), Generation: taskmodel.GenDraft, Status: st, Tool: "assay", FirstHeardAt: ago(time.Hour), Standing: taskmodel.Live})
		}
	})
	return m
}

// troubled has servers in every state.
func troubled() *screentest.Monitor {
	m := fleet()
	m.Change(func(b *board.Board) {
		b.PutServer(taskmodel.Server{Name: "vault", Target: "https://vault.example/mcp", Transport: "http", State: taskmodel.ServerAuth, Error: "a sign-in is wanted"})
		b.PutServer(taskmodel.Server{Name: "old", Target: "old-server", Transport: "stdio", State: taskmodel.ServerFailed, Error: "old: the command ended with exit code 127: old-server: not found"})
		b.PutServer(taskmodel.Server{Name: "idle", Target: "npx idle", Transport: "stdio", State: taskmodel.ServerOff, Source: "~/.claude.json"})
		b.PutServer(taskmodel.Server{Name: "new", Target: "https://new.example/mcp", Transport: "http", State: taskmodel.ServerConnecting})
		b.PutServer(taskmodel.Server{Name: "busy", Target: "https://busy.example/mcp", Transport: "http", State: taskmodel.ServerReady, Generation: taskmodel.GenCore,
			PacedUntil: day.Add(40 * time.Second), ListIncomplete: "the list is incomplete: its cursor was refused twice"})
		b.PutServer(taskmodel.Server{Name: "shared", Target: "https://shared.example/mcp", Transport: "http", State: taskmodel.ServerReady, Generation: taskmodel.GenCore, HeldBy: "mcptasks watch, process 4711"})
		b.PutServer(taskmodel.Server{Name: "plain", Target: "https://plain.example/mcp", Transport: "http", State: taskmodel.ServerReady, Generation: taskmodel.GenNone,
			Tools: []taskmodel.Tool{{Name: "say", TaskSupport: "forbidden", WhyNotTask: "this server has no tasks", InputSchema: json.RawMessage(`{"type":"object"}`)}}})
	})
	return m
}

// with gives the completed build a result.
func with(result string) func() *screentest.Monitor {
	return func() *screentest.Monitor {
		m := fleet()
		m.OnFetch = func(taskmodel.Key) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{Result: json.RawMessage(result), FetchedAt: ago(time.Minute)}, nil
		}
		return m
	}
}

const (
	markdownResult = "{\"content\":[{\"type\":\"text\",\"text\":\"# Release 2.4.1\\n\\nBuilt **212** targets:\\n\\n- `web`, 41 s\\n- `api`, 12 s\\n\\n| stage | seconds |\\n|---|---|\\n| compile | 31 |\\n| link | 22 |\\n\"}]}"
	mixedResult    = `{"content":[{"type":"text","text":"Built."},{"type":"audio","mimeType":"audio/wav","data":"UklGRgAAAAA="},
		{"type":"resource_link","uri":"https://ci.example/log/7","name":"build.log","mimeType":"text/plain","description":"The whole log","size":48213},
		{"type":"resource","resource":{"uri":"file:///notes.txt","mimeType":"text/plain","text":"one\ntwo"}}],
		"structuredContent":{"rows":[{"target":"web","seconds":41.5,"cached":false},{"target":"api","seconds":12,"cached":true}]}}`
)

// TestStates draws the states that the screens can be in beside the plain ones,
// in three sizes.
func TestStates(t *testing.T) {
	built := []string{"/", "b", "u", "i", "l", "t", "enter", "r"}
	on := func(first []string, more ...string) []string { return append(append([]string(nil), first...), more...) }
	states := []struct {
		name string
		mon  func() *screentest.Monitor
		opt  func(*ui.Options)
		keys []string
		text string // typed after the keys
		then []string
	}{
		{name: "list-standings", mon: odd},
		{name: "list-by-status", keys: []string{"b", "b"}},
		{name: "list-folded", keys: []string{"b", "z"}},
		{name: "list-range", keys: []string{"j", "space", "j", "j", "v"}},
		{name: "list-sorted", keys: []string{"o", "o", "o", "o", "O"}},
		{name: "list-columns", opt: func(o *ui.Options) {
			o.List.Columns = []string{"tool:16", "status", "message:18", "age", "heard", "task"}
		}},
		{name: "list-read-only", opt: func(o *ui.Options) { o.Readonly = true }, keys: []string{"c"}},
		{name: "list-paused", keys: []string{"p"}},
		{name: "filter-in-force", keys: []string{"/"}, text: "status:working,input_required !server:lab", then: []string{"enter"}},
		{name: "filter-error", keys: []string{"/"}, text: "age:>5parsecs"},
		{name: "command-set", keys: []string{":"}, text: "set g"},
		{name: "command-view", opt: func(o *ui.Options) {
			o.Views = map[string]string{"mine": "server:ci status:working", "long": "age:>1h"}
		}, keys: []string{":"}, text: "view "},
		{name: "command-unknown", keys: []string{":"}, text: "xeport", then: []string{"enter"}},
		{name: "detail-progress", keys: []string{"j", "j", "enter"}},
		{name: "detail-gone", mon: odd, keys: []string{"/"}, text: "4444", then: []string{"enter", "enter"}},
		{name: "detail-cancel-requested", mon: odd, keys: []string{"/"}, text: "3333", then: []string{"enter", "enter"}},
		{name: "detail-raw-folded", keys: []string{"enter", "tab", "tab", "tab", "z", "j", "j"}},
		{name: "detail-raw-search", keys: []string{"enter", "tab", "tab", "tab", "/"}, text: "trace"},
		{name: "detail-no-result", keys: []string{"enter", "tab"}},
		{name: "result-markdown", mon: with(markdownResult), keys: built},
		{name: "result-blocks", mon: with(mixedResult), keys: on(built, "right", "right")},
		{name: "result-table", mon: with(mixedResult), keys: on(built, "tab")},
		{name: "result-json", mon: with(mixedResult), keys: on(built, "tab", "tab", "j", "j", "left")},
		{name: "result-search", mon: with(markdownResult), keys: on(built, "/"), text: "link"},
		{name: "result-empty", mon: with(`{"content":[]}`), keys: built},
		{name: "result-refused", mon: func() *screentest.Monitor {
			m := fleet()
			m.OnFetch = func(taskmodel.Key) (taskmodel.Outcome, error) {
				return taskmodel.Outcome{}, errors.New("ci: getting the result of task a0917be3: Failed to retrieve task: Task has expired")
			}
			return m
		}, keys: built},
		{name: "servers-all-states", mon: troubled, keys: []string{"s", "G"}},
		{name: "servers-sign-in", mon: troubled, keys: []string{"s", "/"}, text: "vault", then: []string{"enter"}},
		{name: "servers-rate-limit", mon: troubled, keys: []string{"s", "/"}, text: "busy", then: []string{"enter"}},
		{name: "servers-log-level", keys: []string{"s", "L"}},
		{name: "servers-none", mon: screentest.NewMonitor, keys: []string{"s"}},
		{name: "wire-filter", keys: []string{"w", "/"}, text: "status:"},
		{name: "wire-filtered", keys: []string{"w", "/"}, text: "status:error", then: []string{"enter"}},
		{name: "detail-wire-filter-error", keys: []string{"enter", "tab", "tab", "tab", "tab", "/"}, text: "age:>5m statsu:working"},
		{name: "detail-wire-filter", keys: []string{"enter", "tab", "tab", "tab", "tab", "/"}, text: "too"},
		{name: "wire-none", mon: screentest.NewMonitor, keys: []string{"w"}},
		{name: "start-search", keys: []string{"n"}, text: "deplo"},
		{name: "start-no-match", keys: []string{"n"}, text: "qqqq"},
		{name: "start-plain-only", keys: []string{"n"}, text: "drop", then: []string{"enter"}},
		{name: "start-again", keys: []string{"n", "enter"}, then: []string{"ctrl+n"}},
		{name: "inbox-withdrawn", mon: withdrawn, keys: []string{"i", "G"}},
		{name: "inbox-filter-error", keys: []string{"i", "/"}, text: "server:ci statsu:x"},
		{name: "inbox-filter", keys: []string{"i", "/"}, text: "server:ci"},
		{name: "wire-filter-error", keys: []string{"w", "/"}, text: "/two words"},
		{name: "servers-roots", mon: rooted, keys: []string{"s", "D"}},
		{name: "servers-log-level-set", mon: rooted, keys: []string{"s", "L", "tab"}},
		{name: "list-folded-many", mon: crowded, keys: []string{"b", "z"}},
		{name: "form-help", keys: []string{"j", "a", "f1"}},
		{name: "form-review", keys: []string{"j", "a", "ctrl+r"}},
		{name: "start-form-help", keys: []string{"n", "enter", "f1"}},
		{name: "inbox-empty", mon: screentest.NewMonitor, keys: []string{"i"}},
		{name: "confirm-fetch", keys: []string{"*", "F"}},
		{name: "confirm-forget-many", keys: []string{"*", "x"}},
		{name: "help-servers", keys: []string{"s", "?"}},
		{name: "help-search", keys: []string{"?", "/"}, text: "mark"},
	}
	for _, s := range states {
		for _, z := range sizes {
			t.Run(s.name+"-"+z.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					mon := fleet()
					if s.mon != nil {
						mon = s.mon()
					}
					if len(mon.Board().Servers()) > 0 {
						mon.Entries = wire()
					}
					term := run(t, mon, z.w, z.h, s.opt)
					term.Press(s.keys...)
					term.Type(s.text)
					term.Press(s.then...)
					term.Golden("screens/" + s.name + "-" + z.String())
				})
			})
		}
	}
}
