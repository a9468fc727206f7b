package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

const target = "https://ci.example/mcp"

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)

func sec(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// A clock that tests move.
type clock struct{ us atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.us.Store(epoch.UnixMicro())
	return c
}

func (c *clock) now() time.Time            { return time.UnixMicro(c.us.Load()) }
func (c *clock) pass(d time.Duration)      { c.us.Add(d.Microseconds()) }
func (c *clock) options(o Options) Options { o.Now = c.now; return o }

func opened(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	if o.Wait == 0 {
		o.Wait = time.Minute // the race detector makes SQLite 25 times slower
	}
	j, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close(context.Background()) })
	return j
}

// abandon leaves a journal as a killed process would: nothing is given back.
func abandon(j *Journal) {
	j.closing.Do(func() {
		j.w.close()
		j.w.abandon()
		<-j.w.done
		close(j.ended)
		j.shut()
	})
}

// died makes a writer one of a process that is no more; in the tests all are
// of this one.
func died(t *testing.T, j *Journal, writer int64) {
	t.Helper()
	if err := j.act(context.Background(), func(x *tx) error {
		_, err := x.exec(`UPDATE writers SET pid = ? WHERE id = ?`, 1<<30, writer)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func key(id string) taskmodel.Key {
	return taskmodel.Key{Server: "ci", ID: id, Role: taskmodel.Requestor}
}

func working(id string) taskmodel.Task {
	t := taskmodel.Task{Key: key(id), Generation: taskmodel.GenCore, Status: taskmodel.Working, StatusMessage: "Plan",
		FirstHeardAt: sec(0), LastHeardAt: sec(1), StatusSince: sec(0), Standing: taskmodel.Live, StandingSince: sec(0), Tool: "build",
		Transitions: []taskmodel.Transition{{At: sec(0), Status: taskmodel.Working, Message: "Plan"}}}
	return t
}

func ended(id string, s taskmodel.Status, at int) taskmodel.Task {
	t := working(id)
	t.Status, t.EndedAt, t.LastHeardAt, t.StatusSince = s, sec(at), sec(at), sec(at)
	return t
}

func entry(t taskmodel.Task) Entry { return Entry{Target: target, Server: "ci", Task: &t} }

func write(t testing.TB, j *Journal, entries ...Entry) {
	t.Helper()
	if err := j.Write(context.Background(), entries...); err != nil {
		t.Fatal(err)
	}
}

func restore(t testing.TB, j *Journal) Restored {
	t.Helper()
	r, err := j.Restore(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func only(t *testing.T, r Restored) taskmodel.Task {
	t.Helper()
	if len(r.Tasks) != 1 {
		t.Fatalf("%d tasks: %+v", len(r.Tasks), r.Tasks)
	}
	return r.Tasks[0]
}

// Every field of a task survives, but for those that are kept elsewhere or
// mean nothing in another run.
func TestTaskRoundTrip(t *testing.T) {
	full := taskmodel.Task{
		Key:        taskmodel.Key{Server: "ci", ID: "a", Role: taskmodel.Receiver},
		Generation: taskmodel.GenDraft, Status: "odd", StatusMessage: "m",
		CreatedAt: sec(1).UTC(), LastUpdatedAt: sec(2).UTC(), TTL: taskmodel.TTL{Known: true, Unlimited: true, Duration: 3},
		PollInterval: time.Second, ParentID: "p", Children: []taskmodel.Child{{ID: "c", Required: true, Raw: json.RawMessage(`{"x":1}`)}},
		ModelNote: "note", Raw: json.RawMessage(`{}`), Lenient: []string{"x", "y"}, Tool: "build", Args: json.RawMessage(`[]`),
		AskedTTL: taskmodel.TTL{Known: true, Unlimited: true, Duration: time.Hour}, Ours: true, Owner: "agent", Tap: "tap:1-a",
		FirstHeardAt: sec(3), LastHeardAt: sec(4), EndedAt: sec(5), StatusSince: sec(6),
		Standing: taskmodel.Stale, StandingSince: sec(7), Note: "why", CancelRequested: sec(8), CancelNote: "late",
		Progress: &taskmodel.Progress{Value: 1.5, Total: -2, HasTotal: true, Message: "p", At: sec(9)},
		Inputs:   []taskmodel.QuestionID{{Server: "ci", ID: "q"}},
		Transitions: []taskmodel.Transition{{At: sec(1), Status: taskmodel.Submitted},
			{At: sec(6), Status: taskmodel.Working, Message: "m", Note: "n"}},
		Polls: 11, Pushes: 12,
	}
	v := reflect.ValueOf(full)
	elsewhere := map[string]bool{"Outcome": true, "NextPollAt": true, "Pushed": true, "heldSince": true}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != elsewhere[name] {
			t.Errorf("the test is wrong about %s", name)
		}
	}
	for _, want := range []taskmodel.Task{full, {Key: key("")}, {Key: key("x"), Progress: &taskmodel.Progress{}}} {
		got, err := newDecoder("ci").task(encodeTask(&want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
		}
	}
}

// FuzzDecodeTask: a damaged record is an error, never a panic, and what can be
// read is written and read again as the same.
func FuzzDecodeTask(f *testing.F) {
	task := ended("abc", taskmodel.Completed, 5)
	task.Progress = &taskmodel.Progress{Value: 1}
	f.Add(encodeTask(&task))
	f.Add([]byte{0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		task, err := newDecoder("s").task(b)
		if err != nil {
			return
		}
		again, err := newDecoder("s").task(encodeTask(&task))
		if err != nil || again.ID != task.ID || again.Status != task.Status || len(again.Transitions) != len(task.Transitions) {
			t.Fatalf("%v: %+v is not %+v", err, again, task)
		}
	})
}

// Start, kill -9, start again: what was written is there, as restored.
func TestRestoreAfterKill(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Options{})
	w, gone := working("w"), working("g")
	gone.Standing, gone.Note = taskmodel.Gone, "deleted"
	q := taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "w/approve"}, Task: key("w"), Kind: taskmodel.AskForm,
		State: taskmodel.QuestionSending, AskedAt: sec(2), SentAt: sec(3), Schema: json.RawMessage(`{"type":"object"}`)}
	withdrawn := q
	withdrawn.ID.ID, withdrawn.State = "old", taskmodel.QuestionWithdrawn
	a := taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"ok":true}`)}
	write(t, j, entry(w), entry(gone), entry(ended("e", taskmodel.Completed, 9)),
		Entry{Target: target, Question: &q}, Entry{Target: target, Question: &withdrawn}, Entry{Target: target, Answer: &a},
		Entry{Target: target, Session: &Session{ID: "sess", Version: "2025-11-25", Init: json.RawMessage(`{}`), Identity: "me"}},
		Entry{Target: target, Key: key("e"), Outcome: &taskmodel.Outcome{Result: json.RawMessage(`{"r":1}`)}})
	// The same process asks again: the answer is on its way, not lost.
	if r := restore(t, j); r.Questions[0].State != taskmodel.QuestionSending {
		t.Errorf("while its process lives the answer is %s", r.Questions[0].State)
	}
	me := j.me
	abandon(j)

	j = opened(t, dir, Options{})
	died(t, j, me)
	r := restore(t, j)
	by := map[string]taskmodel.Task{}
	for _, task := range r.Tasks {
		by[task.ID] = task
	}
	if len(by) != 3 || by["w"].Standing != taskmodel.Restored || by["e"].Standing != taskmodel.Live || by["g"].Standing != taskmodel.Gone {
		t.Errorf("tasks %+v", r.Tasks)
	}
	if by["w"].Server != "ci" || by["w"].Tool != "build" || len(by["w"].Transitions) != 1 || !by["w"].HeldSince().IsZero() {
		t.Errorf("%+v", by["w"])
	}
	if o := by["e"].Outcome; !o.KeptHere || o.Result != nil || o.IsZero() {
		t.Errorf("outcome %+v", o)
	}
	if len(r.Questions) != 1 || r.Questions[0].State != taskmodel.QuestionUnconfirmed {
		t.Errorf("what was sent and not confirmed must stand so: %+v", r.Questions)
	}
	if q := r.Questions[0]; q.Draft != nil || q.Params != nil {
		t.Errorf("what was not there has become draft %q, params %q", q.Draft, q.Params)
	}
	if len(r.Answers) != 1 || string(r.Answers[0].Content) != `{"ok":true}` || r.Answers[0].Action != taskmodel.Accept {
		t.Errorf("answers %+v", r.Answers)
	}
	if r.Session == nil || r.Session.ID != "sess" || r.Session.Identity != "me" {
		t.Errorf("session %+v", r.Session)
	}
	if other, err := j.Restore(context.Background(), "stdio:unknown"); err != nil || other.Tasks != nil {
		t.Errorf("an unknown server: %+v %v", other, err)
	}
}

func TestAnswerIsDroppedWhenDelivered(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Options{})
	q := taskmodel.Question{ID: taskmodel.QuestionID{ID: "q"}, Task: key("a"), State: taskmodel.QuestionAnswered, Draft: json.RawMessage(`"hunter2-draft"`)}
	a := taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"pw":"hunter2-secret"}`)}
	write(t, j, Entry{Target: target, Question: &q, Answer: &a})
	if !onDisk(t, dir, "hunter2-secret") {
		t.Fatal("the test looks in the wrong place")
	}
	write(t, j, Entry{Target: target, Delivered: &q.ID})
	if r := restore(t, j); len(r.Answers) != 0 || len(r.Questions) != 1 || r.Questions[0].Draft != nil {
		t.Errorf("%+v", r)
	}
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"hunter2-secret", "hunter2-draft"} {
		if onDisk(t, dir, word) {
			t.Errorf("%s stayed on the disk", word)
		}
	}
}

func onDisk(t *testing.T, dir, word string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if b, err := os.ReadFile(n); err == nil && strings.Contains(string(b), word) {
			return true
		}
	}
	return false
}

func TestOutcomeLimits(t *testing.T) {
	j := opened(t, t.TempDir(), Options{ResultMax: 100, ResultsTotal: 250})
	put := func(id string, size int) taskmodel.Outcome {
		write(t, j, Entry{Target: target, Server: "ci", Key: key(id), Outcome: &taskmodel.Outcome{Result: json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)}})
		o, ok, err := j.Outcome(context.Background(), target, id, taskmodel.Requestor)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return o
	}
	if o := put("a", 100); len(o.Result) != 100 || !o.KeptHere || o.TooLarge != 0 {
		t.Errorf("%+v", o)
	}
	if o := put("b", 101); o.Result != nil || o.TooLarge != 101 || o.KeptHere || !strings.Contains(o.Note, "mcptasks result ci/b --save DIR") {
		t.Errorf("%+v", o)
	}
	put("c", 100)
	if o := put("d", 51); o.TooLarge != 51 || !strings.Contains(o.Note, "all results") {
		t.Errorf("over the total: %+v", o)
	}
	if o := put("a", 90); len(o.Result) != 90 {
		t.Errorf("its own old size must not count: %+v", o)
	}
	if o := put("a", 200); len(o.Result) != 90 {
		t.Errorf("a kept result must not give way to one that is not kept: %+v", o)
	}
	e := &taskmodel.RPCError{Code: -5, Message: "no", Data: json.RawMessage(`[1]`)}
	write(t, j, Entry{Target: target, Key: key("e"), Outcome: &taskmodel.Outcome{Err: e}})
	if o, _, _ := j.Outcome(context.Background(), target, "e", taskmodel.Requestor); !reflect.DeepEqual(o.Err, e) {
		t.Errorf("%+v", o)
	}
	if _, ok, err := j.Outcome(context.Background(), target, "none", taskmodel.Requestor); ok || err != nil {
		t.Error(ok, err)
	}
}

// What is in the journal gives way only to what knows better.
func TestTaskRowKnowsBetter(t *testing.T) {
	later := func(task taskmodel.Task, f func(*taskmodel.Task)) taskmodel.Task { f(&task); return task }
	for _, tc := range []struct {
		name       string
		old, new   taskmodel.Task
		other      bool // the second writer is another process
		want       taskmodel.Status
		wantsEnded bool
	}{
		{"an end stays", ended("t", taskmodel.Completed, 5), later(working("t"), func(t *taskmodel.Task) { t.LastHeardAt = sec(9) }), true, taskmodel.Completed, true},
		{"the first end stays", ended("t", taskmodel.Completed, 5), ended("t", taskmodel.Failed, 9), true, taskmodel.Completed, true},
		{"an end replaces", later(working("t"), func(t *taskmodel.Task) { t.LastHeardAt = sec(9) }), ended("t", taskmodel.Failed, 5), true, taskmodel.Failed, true},
		{"another process heard later", later(working("t"), func(t *taskmodel.Task) { t.LastHeardAt = sec(9) }),
			later(working("t"), func(t *taskmodel.Task) { t.Status, t.LastHeardAt = taskmodel.InputRequired, sec(5) }), true, taskmodel.Working, false},
		{"another process heard earlier", working("t"),
			later(working("t"), func(t *taskmodel.Task) { t.Status, t.LastHeardAt = taskmodel.InputRequired, sec(5) }), true, taskmodel.InputRequired, false},
		{"a new task under the old id", later(ended("t", taskmodel.Completed, 5), func(t *taskmodel.Task) { t.CreatedAt = sec(0) }),
			later(working("t"), func(t *taskmodel.Task) { t.CreatedAt = sec(20) }), false, taskmodel.Working, false},
		{"a new task under the id of one of the same second", later(ended("t", taskmodel.Completed, 5), func(t *taskmodel.Task) { t.CreatedAt = sec(20) }),
			later(working("t"), func(t *taskmodel.Task) { t.CreatedAt = sec(20).Add(time.Millisecond) }), false, taskmodel.Working, false},
		{"the same, as another process has read its time", later(ended("t", taskmodel.Completed, 5), func(t *taskmodel.Task) { t.CreatedAt = sec(20) }),
			later(working("t"), func(t *taskmodel.Task) { t.CreatedAt = sec(20).Add(time.Millisecond) }), true, taskmodel.Completed, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			a := opened(t, dir, Options{})
			b := a
			if tc.other {
				b = opened(t, dir, Options{})
			}
			write(t, a, entry(tc.old))
			write(t, b, entry(tc.new))
			if got := only(t, restore(t, a)); got.Status != tc.want || got.Terminal() != tc.wantsEnded {
				t.Errorf("%s", got.Status)
			}
		})
	}
}

func TestForget(t *testing.T) {
	c := newClock()
	j := opened(t, t.TempDir(), c.options(Options{}))
	task := working("a")
	q := taskmodel.Question{ID: taskmodel.QuestionID{ID: "q"}, Task: task.Key, State: taskmodel.QuestionOpen}
	write(t, j, entry(task), Entry{Target: target, Question: &q, Answer: &taskmodel.Answer{Question: q.ID}},
		Entry{Target: target, Key: task.Key, Outcome: &taskmodel.Outcome{Result: json.RawMessage(`1`)}})
	c.pass(time.Minute)
	write(t, j, Entry{Target: target, Key: task.Key, Forget: true, Event: &taskmodel.Event{Kind: taskmodel.EventForgotten, Time: c.now()}})
	if r := restore(t, j); len(r.Tasks)+len(r.Questions)+len(r.Answers) != 0 {
		t.Errorf("%+v", r)
	}
	if _, ok, _ := j.Outcome(context.Background(), target, "a", taskmodel.Requestor); ok {
		t.Error("its result stayed")
	}
	// A process that has not heard of it yet writes its old knowledge.
	write(t, j, entry(task))
	if r := restore(t, j); len(r.Tasks) != 0 {
		t.Error("came back by itself")
	}
	task.FirstHeardAt = sec(120) // taken up again by hand
	write(t, j, entry(task))
	only(t, restore(t, j))
	h, err := j.TaskHistory(context.Background(), target, "a", taskmodel.Requestor, 0)
	if err != nil || len(h) != 1 || h[0].Kind != taskmodel.EventForgotten {
		t.Errorf("the audit trail stays: %+v %v", h, err)
	}
}

// Write is durable when it returns, Queue soon after; the order is kept.
func TestQueueKeepsOrder(t *testing.T) {
	j := opened(t, t.TempDir(), Options{})
	for i := range 2000 {
		j.Queue(Entry{Target: target, Key: key("a"), Event: &taskmodel.Event{Kind: taskmodel.EventStatus, Time: sec(0), Message: fmt.Sprint(i)}})
	}
	if err := j.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	h, err := j.TaskHistory(context.Background(), target, "a", taskmodel.Requestor, 0)
	if err != nil || len(h) != 2000 {
		t.Fatal(len(h), err)
	}
	for i, e := range h {
		if e.Message != fmt.Sprint(i) {
			t.Fatalf("row %d is %s", i, e.Message)
		}
	}
}

// Past its bound the queue drops superseded status entries and nothing else.
func TestQueueDropsOnlyWhatIsSuperseded(t *testing.T) {
	w := &writer{j: &Journal{opts: Options{QueueBound: 10}}, bound: 10, wake: make(chan struct{}, 1)}
	created := entry(working("a"))
	created.Event = &taskmodel.Event{Kind: taskmodel.EventCreated}
	q := entry(working("a"))
	q.Question = &taskmodel.Question{}
	_ = w.put(&item{entries: []Entry{created, q}})
	for range 20 {
		e, f := entry(working("a")), entry(working("b"))
		e.Event = &taskmodel.Event{Kind: taskmodel.EventStatus}
		_ = w.put(&item{entries: []Entry{e, f}})
	}
	w.dropSuperseded()
	var kept []string
	for _, it := range w.queue {
		for _, e := range it.entries {
			switch {
			case e.Question != nil:
				kept = append(kept, "question")
			case e.Event != nil:
				kept = append(kept, string(e.Event.Kind))
			default:
				kept = append(kept, e.Task.ID)
			}
		}
	}
	if got := strings.Join(kept, " "); got != "created question status b" || w.entries != 4 {
		t.Errorf("kept %s (%d)", got, w.entries)
	}
}

func TestHistory(t *testing.T) {
	j := opened(t, t.TempDir(), Options{})
	for i, id := range []string{"a", "ab", "b"} {
		write(t, j, Entry{Target: target, Server: "ci", Key: key(id), Event: &taskmodel.Event{Kind: taskmodel.EventCreated, Time: sec(i), Status: taskmodel.Working, Message: "m"}})
	}
	write(t, j, Entry{Target: "other", Server: "lab", Key: key("a"), Event: &taskmodel.Event{Kind: taskmodel.EventResult, Time: sec(9), Detail: json.RawMessage(`{"bytes":3}`)}})
	for _, tc := range []struct {
		q    HistoryQuery
		want string
	}{
		{HistoryQuery{}, "ci/a ci/ab ci/b lab/a"},
		{HistoryQuery{Target: target}, "ci/a ci/ab ci/b"},
		{HistoryQuery{Server: "lab"}, "lab/a"},
		{HistoryQuery{TaskID: "a"}, "ci/a lab/a"},
		{HistoryQuery{TaskID: "a", Prefix: true}, "ci/a ci/ab lab/a"},
		{HistoryQuery{Limit: 2}, "ci/b lab/a"},
		{HistoryQuery{Since: sec(2)}, "ci/b lab/a"},
		{HistoryQuery{Role: taskmodel.Receiver}, ""},
	} {
		var got []string
		var last HistoryRow
		if err := j.History(context.Background(), tc.q, func(r HistoryRow) error {
			got, last = append(got, r.Server+"/"+r.TaskID), r
			return nil
		}); err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("%+v: %v %v", tc.q, got, err)
		}
		if b, err := json.Marshal(last); err != nil || !json.Valid(b) {
			t.Errorf("%s %v", b, err)
		}
	}
	stop := errors.New("enough")
	if err := j.History(context.Background(), HistoryQuery{}, func(HistoryRow) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	j := opened(t, t.TempDir(), Options{})
	write(t, j, entry(working("7f3a")), entry(working("7f3b")), entry(working("7f")), entry(working("9")))
	for id, want := range map[string]int{"7f": 1, "7f3": 2, "9": 1, "x": 0, "%": 0} {
		if got, err := j.Find(context.Background(), "ci", id, taskmodel.Requestor); err != nil || len(got) != want {
			t.Errorf("%s: %d %v", id, len(got), err)
		}
	}
}

// What may wait is written in its place in the order, with what does not wait;
// and by itself when nothing else comes.
func TestQueueLater(t *testing.T) {
	j := opened(t, t.TempDir(), Options{})
	say := func(words string, later bool) {
		task := working("a")
		task.StatusMessage = words
		j.Queue(Entry{Target: target, Task: &task, Later: later, Event: &taskmodel.Event{Kind: taskmodel.EventStatus, Time: sec(0), Message: words, Task: key("a")}})
	}
	var want []string
	for i := range 2000 { // more than one transaction
		want = append(want, fmt.Sprint(i))
		say(want[i], i%3 != 0)
	}
	check := func() {
		t.Helper()
		h, err := j.TaskHistory(context.Background(), target, "a", taskmodel.Requestor, 0)
		if err != nil || len(h) != len(want) {
			t.Fatalf("%d rows, want %d: %v", len(h), len(want), err)
		}
		for i, e := range h {
			if e.Message != want[i] {
				t.Fatalf("row %d is %s", i, e.Message)
			}
		}
		r, err := j.Restore(context.Background(), target)
		if err != nil || len(r.Tasks) != 1 || r.Tasks[0].StatusMessage != want[len(want)-1] {
			t.Fatalf("%v %v", r.Tasks, err)
		}
	}
	if err := j.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	check()
	want = append(want, "alone")
	say("alone", true)
	for end := time.Now().Add(time.Minute); ; {
		if h, err := j.TaskHistory(context.Background(), target, "a", taskmodel.Requestor, 0); err != nil || time.Now().After(end) {
			t.Fatal("what may wait is never written", err)
		} else if len(h) == len(want) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	check()
	want = append(want, "last")
	say("last", true)
	if err := j.Write(context.Background(), Entry{Target: target, Key: key("b"), Event: &taskmodel.Event{Kind: taskmodel.EventStatus, Time: sec(0)}}); err != nil {
		t.Fatal(err)
	}
	check()
}

// How long a queue is gathered follows the item that can wait least.
func TestQueuePatience(t *testing.T) {
	from := time.Now()
	entries := func(n int, later bool) *item {
		it := &item{due: from.Add(batchWait)}
		if later {
			it.due = from.Add(laterWait)
		}
		for range n {
			it.entries = append(it.entries, Entry{Later: later})
		}
		return it
	}
	awaited := &item{entries: []Entry{{Later: true}}, done: make(chan error, 1)}
	for name, c := range map[string]struct {
		items []*item
		due   time.Time
		now   bool
		soon  int
	}{
		"nothing":                {},
		"what may wait":          {[]*item{entries(3, true), entries(1, true)}, from.Add(laterWait), false, 0},
		"and what may not":       {[]*item{entries(3, true), entries(2, false)}, from.Add(batchWait), false, 2},
		"what may not, and then": {[]*item{entries(2, false), entries(3, true)}, from.Add(batchWait), false, 2},
		"somebody waits":         {[]*item{entries(3, true), awaited}, from.Add(laterWait), true, 0},
		"an act":                 {[]*item{{act: func(*tx) error { return nil }, done: make(chan error, 1)}}, time.Time{}, true, 0},
	} {
		w := &writer{queue: c.items}
		w.reckon()
		if w.haste != (haste{c.due, c.now, c.soon}) {
			t.Errorf("%s: %+v", name, w.haste)
		}
	}
}
