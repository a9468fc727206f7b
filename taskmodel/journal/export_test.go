package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// filledJournal has one of everything.
func filledJournal(t *testing.T, dir string, o Options) *Journal {
	j := opened(t, dir, o)
	a := ended("id-aaaaaaaa", taskmodel.Completed, 5)
	a.Args = json.RawMessage(`{"service":"checkout","password":"hunter2-arg","id":"id-aaaaaaaa"}`)
	a.Raw = json.RawMessage(`{"taskId":"id-aaaaaaaa"}`)
	q := taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "id-aaaaaaaa/q"}, Task: a.Key, Kind: taskmodel.AskForm,
		State: taskmodel.QuestionOpen, Message: "For id-aaaaaaaa?", AskedAt: sec(1), Draft: json.RawMessage(`"hunter2-draft"`)}
	answeredQ := q
	answeredQ.ID.ID, answeredQ.State = "done", taskmodel.QuestionAnswered
	write(t, j,
		Entry{Target: target, Server: "ci", Task: &a, Event: &taskmodel.Event{Kind: taskmodel.EventCreated, Time: sec(0), Status: taskmodel.Working, Message: "Plan"}},
		Entry{Target: target, Key: a.Key, Event: &taskmodel.Event{Kind: taskmodel.EventStatus, Time: sec(5), Status: taskmodel.Completed, Detail: json.RawMessage(`{"from":"working","status":"completed"}`)}},
		Entry{Target: target, Question: &q, Answer: &taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`"hunter2-typed"`)}},
		Entry{Target: target, Question: &answeredQ, Answer: &taskmodel.Answer{Question: answeredQ.ID, Action: taskmodel.Accept}, Delivered: &answeredQ.ID},
		Entry{Target: target, Key: a.Key, Outcome: &taskmodel.Outcome{Result: json.RawMessage(`{"content":[{"type":"text","text":"Bearer abcdefghijklmnop id-aaaaaaaa"}]}`), FetchedAt: sec(6)}},
		Entry{Target: target, Session: &Session{ID: "hunter2-session"}},
		entry(working("w")))
	return j
}

// What was exported rebuilds the tables; importing twice is importing once.
func TestExportImport(t *testing.T) {
	j := filledJournal(t, t.TempDir(), Options{})
	var first bytes.Buffer
	if err := j.Export(context.Background(), &first); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(first.String(), "hunter2-typed") || strings.Contains(first.String(), "hunter2-draft") || strings.Contains(first.String(), "hunter2-session") {
		t.Error("what was typed or a session is in the export")
	}
	line, _, _ := strings.Cut(first.String(), "\n")
	var shape struct {
		Time                  time.Time
		Server, TaskID, Event string
		Detail                map[string]any
	}
	if err := json.Unmarshal([]byte(line), &shape); err != nil || shape.Server != "ci" || shape.TaskID != "id-aaaaaaaa" || shape.Event != "created" || shape.Detail == nil {
		t.Errorf("a line of the history has another shape: %s %v", line, err)
	}

	other := opened(t, t.TempDir(), Options{})
	got, err := other.Import(context.Background(), bytes.NewReader(first.Bytes()))
	if err != nil || got != (Imported{Events: 2, Tasks: 2, Questions: 2, Results: 1}) {
		t.Fatalf("%+v %v", got, err)
	}
	var second bytes.Buffer
	if err := other.Export(context.Background(), &second); err != nil {
		t.Fatal(err)
	}
	// Of the undelivered answer only the fact is exported, so it comes back as delivered.
	want := strings.Replace(first.String(), `"id":"id-aaaaaaaa/q","action":"accept","delivered":false`, `"id":"id-aaaaaaaa/q","action":"accept","delivered":true`, 1)
	if second.String() != want {
		t.Errorf("rebuilt as\n%s\nfrom\n%s", second.String(), first.String())
	}
	if got, err := other.Import(context.Background(), bytes.NewReader(first.Bytes())); err != nil || got != (Imported{}) {
		t.Errorf("again: %+v %v", got, err)
	}
	if o, ok, err := other.Outcome(context.Background(), target, "id-aaaaaaaa", taskmodel.Requestor); !ok || err != nil || len(o.Result) == 0 {
		t.Errorf("%+v %v %v", o, ok, err)
	}
}

func TestImportOfSomethingElse(t *testing.T) {
	j := opened(t, t.TempDir(), Options{})
	if _, err := j.Import(context.Background(), strings.NewReader("hello\nworld\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Error(err)
	}
	got, err := j.Import(context.Background(), strings.NewReader("hello\n"+
		`{"time":"2026-03-01T12:00:00Z","server":"ci","taskId":"a","event":"created","detail":{}}`+"\n"+
		`{"record":"task","server":"ci"}`+"\n"+`{"record":"future","server":"ci"}`+"\n"))
	if err != nil || got.Events != 1 || got.Skipped != 3 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestBundleHasNoSecrets(t *testing.T) {
	j := filledJournal(t, t.TempDir(), Options{})
	wire := []taskmodel.WireEntry{
		{At: sec(1), Direction: taskmodel.Sent, Kind: "request", Method: "tools/call", Task: "id-other-one",
			Bytes: json.RawMessage(`{"id":1,"params":{"_meta":{"progressToken":"keep-me"},"arguments":{"api_key":"hunter2-key","n":9007199254740993}}}`)},
		{At: sec(2), Direction: taskmodel.Sent, Kind: "response",
			Bytes: json.RawMessage(`{"id":2,"result":{"action":"accept","content":{"name":"hunter2-answer"}}}`)},
		{At: sec(2), Direction: taskmodel.Sent, Kind: "response",
			Bytes: json.RawMessage(`{"id":2,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"hunter2-written"}}}`)},
		{At: sec(3), Direction: taskmodel.Received, Kind: "noise", Bytes: json.RawMessage(`log: https://u:hunter2-url@h/?token=hunter2-query id-other-one hunter2-config`)},
	}
	b, err := j.Bundle(context.Background(), target, key("id-aaaaaaaa"), BundleOptions{Wire: wire, Secrets: []string{"hunter2-config"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "id-aaaaaaaa", "id-other-one", "abcdefghijklmnop"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("%s is in the bundle:\n%s", secret, b)
		}
	}
	for _, kept := range []string{`"checkout"`, "task-1", "keep-me", "9007199254740993", `"tool": "build"`, "For task-1?", `"event": "created"`, `"name": "(removed)"`} {
		if !strings.Contains(string(b), kept) {
			t.Errorf("%s is not in the bundle:\n%s", kept, b)
		}
	}
	if b, err = j.Bundle(context.Background(), target, key("id-aaaaaaaa"), BundleOptions{KeepIDs: true}); err != nil || !strings.Contains(string(b), "id-aaaaaaaa") {
		t.Errorf("the id was asked for: %v", err)
	}
	if _, err := j.Bundle(context.Background(), target, key("none"), BundleOptions{}); err == nil {
		t.Error("a bundle of nothing")
	}
}

func TestReplaceID(t *testing.T) {
	for _, tc := range [][3]string{
		{"task 1 of 12", "1", "task X of 12"},
		{"a1b 1", "1", "a1b X"},
		{"1", "1", "X"},
		{"xid-12345678y", "id-12345678", "xXy"},
	} {
		if got := replaceID(tc[0], tc[1], "X"); got != tc[2] {
			t.Errorf("%q: %q", tc[0], got)
		}
	}
}

func TestPruneByAge(t *testing.T) {
	c := newClock()
	j := opened(t, t.TempDir(), c.options(Options{}))
	put := func(task taskmodel.Task) {
		write(t, j, Entry{Target: target, Server: "ci", Task: &task, Event: &taskmodel.Event{Kind: taskmodel.EventCreated, Time: sec(0)}},
			Entry{Target: target, Key: task.Key, Outcome: &taskmodel.Outcome{Result: json.RawMessage(`1`)}})
	}
	put(ended("old", taskmodel.Completed, 5))
	put(working("runs"))
	gone := working("gone")
	gone.Standing = taskmodel.Gone
	put(gone)
	put(ended("asks", taskmodel.Completed, 5))
	put(ended("unanswered", taskmodel.Failed, 5))
	open := taskmodel.Question{ID: taskmodel.QuestionID{ID: "1"}, Task: key("asks"), State: taskmodel.QuestionOpen}
	sent := taskmodel.Question{ID: taskmodel.QuestionID{ID: "2"}, Task: key("unanswered"), State: taskmodel.QuestionAnswered}
	write(t, j, Entry{Target: target, Question: &open}, Entry{Target: target, Question: &sent, Answer: &taskmodel.Answer{Question: sent.ID}})
	c.pass(48 * time.Hour)
	young := ended("young", taskmodel.Completed, 48*3600-60)
	put(young)
	write(t, j, Entry{Target: target, Event: &taskmodel.Event{Kind: taskmodel.EventServer, Time: sec(1)}})
	got, err := j.Prune(context.Background(), Policy{Age: 24 * time.Hour})
	if err != nil || got.Tasks != 2 || got.Results != 2 || got.Events != 3 {
		t.Errorf("%+v %v", got, err)
	}
	left := map[string]bool{}
	for _, task := range restore(t, j).Tasks {
		left[task.ID] = true
	}
	for id, want := range map[string]bool{"old": false, "gone": false, "runs": true, "asks": true, "unanswered": true, "young": true} {
		if left[id] != want {
			t.Errorf("%s: %v", id, left[id])
		}
	}
	if h, err := j.TaskHistory(context.Background(), target, "runs", taskmodel.Requestor, 0); err != nil || len(h) != 1 {
		t.Errorf("the history of what runs: %v %v", h, err)
	}
}

// Pruning is many short writes, and can be stopped between them.
func TestPruneInSteps(t *testing.T) {
	c := newClock()
	j := opened(t, t.TempDir(), c.options(Options{}))
	var all []Entry
	for i := range 2*pruneTasks + 50 {
		task := ended(strconv.Itoa(i), taskmodel.Completed, 5)
		all = append(all, Entry{Target: target, Server: "ci", Task: &task, Event: &taskmodel.Event{Kind: taskmodel.EventCreated, Time: sec(0)}})
	}
	write(t, j, all...)
	c.pass(48 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := j.Prune(ctx, Policy{Age: time.Hour}); !errors.Is(err, context.Canceled) || got.Tasks > pruneTasks {
		t.Errorf("with the context over: %+v, %v", got, err)
	}
	left := len(restore(t, j).Tasks)
	if got, err := j.Prune(t.Context(), Policy{Age: time.Hour}); err != nil || got.Tasks != left || len(restore(t, j).Tasks) != 0 {
		t.Errorf("%+v, %v; %d were left", got, err, left)
	}
}

func TestPruneBySize(t *testing.T) {
	c := newClock()
	j := opened(t, t.TempDir(), c.options(Options{}))
	payload := json.RawMessage(`"` + strings.Repeat("x", 50_000) + `"`)
	for i := range 100 {
		task := ended(string(rune('a'+i%26))+strings.Repeat("z", i), taskmodel.Completed, i)
		if i == 0 {
			task = working("runs")
		}
		write(t, j, entry(task), Entry{Target: target, Key: task.Key, Outcome: &taskmodel.Outcome{Result: payload, FetchedAt: sec(i)}})
	}
	got, err := j.Prune(context.Background(), Policy{Bytes: 1 << 20})
	if err != nil || got.Results < 50 || got.Bytes < 3<<20 {
		t.Errorf("%+v %v", got, err)
	}
	var counted, summed int64
	if err := j.read.QueryRow(`SELECT bytes, (SELECT sum(bytes) FROM results) FROM counter`).Scan(&counted, &summed); err != nil || counted != summed {
		t.Errorf("%d bytes are counted, %d are there: %v", counted, summed, err)
	}
	if size := j.size(context.Background()); size > 1<<20 {
		t.Errorf("%d bytes are left", size)
	}
	if o, ok, err := j.Outcome(context.Background(), target, "runs", taskmodel.Requestor); !ok || err != nil || o.Result == nil {
		t.Error("the result of what runs went")
	}
	if got, err = j.Prune(context.Background(), Policy{Bytes: 1}); err != nil || got.Tasks == 0 {
		t.Errorf("%+v %v", got, err)
	}
	if r := restore(t, j); len(r.Tasks) != 1 || r.Tasks[0].ID != "runs" {
		t.Errorf("%d tasks are left", len(r.Tasks))
	}
}
