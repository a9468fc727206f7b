package board

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func sec(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

func key(server, id string) taskmodel.Key {
	return taskmodel.Key{Server: server, ID: id, Role: taskmodel.Requestor}
}

func see(id string, s taskmodel.Status, src taskmodel.Source, at int) taskmodel.Observation {
	return taskmodel.Observation{Source: src, AskedAt: sec(at), HeardAt: sec(at),
		Snapshot: taskmodel.Snapshot{ID: id, Status: s, LastUpdatedAt: sec(at)}}
}

func kindsOf(events []taskmodel.Event) (out []taskmodel.EventKind) {
	for _, e := range events {
		out = append(out, e.Kind)
	}
	return out
}

// What goes into a row comes out of it.
func TestRowKeepsTheWholeTask(t *testing.T) {
	full := taskmodel.Task{
		Key:        taskmodel.Key{Server: "ci", ID: "a", Role: taskmodel.Receiver},
		Generation: taskmodel.GenDraft, Status: taskmodel.Working, StatusMessage: "m",
		CreatedAt: sec(1), LastUpdatedAt: sec(2), TTL: taskmodel.TTL{Known: true, Unlimited: true, Duration: 3},
		PollInterval: time.Second, ParentID: "p", Children: []taskmodel.Child{{ID: "c", Required: true}},
		ModelNote: "note", Raw: json.RawMessage(`{}`), Lenient: []string{"x"}, Tool: "build", Args: json.RawMessage(`[]`),
		AskedTTL: taskmodel.TTL{Known: true, Duration: time.Hour}, Ours: true, Owner: "agent", Tap: "tap:1-a",
		FirstHeardAt: sec(3), LastHeardAt: sec(4), EndedAt: sec(5), StatusSince: sec(6),
		Standing: taskmodel.Stale, StandingSince: sec(7), Note: "why", CancelRequested: sec(8), CancelNote: "late",
		Progress: &taskmodel.Progress{Value: 1, Total: 2, HasTotal: true, At: sec(9)},
		Inputs:   []taskmodel.QuestionID{{Server: "ci", ID: "q"}},
		Transitions: []taskmodel.Transition{{At: sec(1), Status: taskmodel.Submitted},
			{At: sec(6), Status: taskmodel.Working, Message: "m", Note: "n"}},
		Outcome: taskmodel.Outcome{Result: json.RawMessage(`1`), FetchedAt: sec(10), KeptHere: true, Note: "o"},
		Polls:   11, Pushes: 12, NextPollAt: sec(13), Pushed: true,
	}
	full = full.Hold(sec(4))
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the test forgets %s", v.Type().Field(i).Name)
		}
	}
	short := taskmodel.Task{Key: key("ci", "b"), Status: taskmodel.Working, StatusMessage: "m", StatusSince: sec(1), FirstHeardAt: sec(1),
		Transitions: []taskmodel.Transition{{At: sec(1), Status: taskmodel.Working, Message: "m"}}}
	h := heads{}
	for _, want := range []taskmodel.Task{full, short, {Key: key("x", "")}} {
		if got := *h.pack(&want, nil, 1).task(); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if far := sec(0).AddDate(7000, 0, 0); !instant(micros(far), time.UTC).Equal(far) {
		t.Error("a year far away does not survive")
	}
}

func TestObserve(t *testing.T) {
	b := New()
	look := func(o taskmodel.Observation) []taskmodel.EventKind {
		return kindsOf(b.Observe("ci", taskmodel.GenCore, taskmodel.Requestor, o))
	}
	for _, step := range []struct {
		o    taskmodel.Observation
		want []taskmodel.EventKind
	}{
		{see("a", taskmodel.Working, taskmodel.FromCreate, 1), []taskmodel.EventKind{taskmodel.EventCreated}},
		{see("a", taskmodel.Working, taskmodel.FromGet, 2), nil},
		{see("a", taskmodel.InputRequired, taskmodel.FromPush, 3), []taskmodel.EventKind{taskmodel.EventStatus}},
		{see("a", taskmodel.Working, taskmodel.FromPush, 1), nil},
		{see("a", taskmodel.Completed, taskmodel.FromGet, 5), []taskmodel.EventKind{taskmodel.EventStatus}},
		{see("a", taskmodel.Working, taskmodel.FromGet, 6), []taskmodel.EventKind{taskmodel.EventError}},
		{see("a", taskmodel.Working, taskmodel.FromGet, 7), nil},
	} {
		if got := look(step.o); !slices.Equal(got, step.want) {
			t.Errorf("%s at %v: %v, want %v", step.o.Status, step.o.HeardAt, got, step.want)
		}
	}
	if got := b.WantPoll(); !slices.Equal(got, []taskmodel.Key{key("ci", "a")}) {
		t.Errorf("the older-looking push asks for a poll of %v", got)
	}
	if b.WantPoll() != nil {
		t.Error("asked twice")
	}
	task, _ := b.Task(key("ci", "a"))
	if task.Polls != 4 || task.Pushes != 1 {
		t.Errorf("polls %d pushes %d", task.Polls, task.Pushes)
	}
}

// L4: two servers hand out the same task id, and one of them asks us for it.
func TestL4_SameIDIsManyTasks(t *testing.T) {
	b := New()
	b.Observe("ci", taskmodel.GenCore, taskmodel.Requestor, see("1", taskmodel.Working, taskmodel.FromGet, 1))
	b.Observe("lab", taskmodel.GenDraft, taskmodel.Requestor, see("1", taskmodel.Failed, taskmodel.FromGet, 1))
	b.Observe("lab", taskmodel.GenCore, taskmodel.Receiver, see("1", taskmodel.Cancelled, taskmodel.FromGet, 1))
	v := b.Publish(sec(2))
	if v.Len() != 3 {
		t.Fatalf("%d tasks", v.Len())
	}
	if got, _ := v.Task(key("lab", "1")); got.Status != taskmodel.Failed {
		t.Error(got.Status)
	}
	if n := v.Counts().ByServer["lab"][taskmodel.Cancelled]; n != 1 {
		t.Errorf("counts %+v", v.Counts())
	}
	if got := v.Find("lab", "1", taskmodel.Receiver); len(got) != 1 || got[0].Role != taskmodel.Receiver {
		t.Errorf("found %v", got)
	}
}

func TestChange(t *testing.T) {
	b := New()
	k := key("ci", "a")
	if e := b.Change(k, sec(0), func(*taskmodel.Task) { t.Error("called for nothing") }); e != nil {
		t.Error(e)
	}
	b.Insert(taskmodel.Task{Key: k, Status: taskmodel.Working, Generation: taskmodel.GenCore, Standing: taskmodel.Live})
	for _, step := range []struct {
		f    func(*taskmodel.Task)
		want taskmodel.EventKind
	}{
		{func(t *taskmodel.Task) { t.Standing, t.Note = taskmodel.Stale, "polls fail" }, taskmodel.EventStanding},
		{func(t *taskmodel.Task) { t.Standing = taskmodel.Gone }, taskmodel.EventGone},
		{func(t *taskmodel.Task) { t.CancelRequested = sec(1) }, taskmodel.EventCancel},
		{func(t *taskmodel.Task) { t.CancelNote = "too late to cancel" }, taskmodel.EventCancel},
		{func(t *taskmodel.Task) { t.Progress = &taskmodel.Progress{Value: 1} }, taskmodel.EventProgress},
		{func(t *taskmodel.Task) { t.Outcome.Result = json.RawMessage(`{}`) }, taskmodel.EventResult},
	} {
		if got := kindsOf(b.Change(k, sec(3), step.f)); !slices.Equal(got, []taskmodel.EventKind{step.want}) {
			t.Errorf("%v, want %v", got, step.want)
		}
	}
	if got, _ := b.Task(k); got.Status != taskmodel.Working || !got.StandingSince.Equal(sec(3)) {
		t.Errorf("%+v", got)
	}
	if !b.Remove(k) || b.Remove(k) || b.Len() != 0 {
		t.Error("remove")
	}
}

func TestQuestions(t *testing.T) {
	b := New()
	k := key("ci", "a")
	b.Insert(taskmodel.Task{Key: k, Status: taskmodel.InputRequired})
	q := func(id string, at int, s taskmodel.QuestionState) taskmodel.Question {
		return taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: id}, Task: k, AskedAt: sec(at), State: s}
	}
	b.PutQuestion(q("x", 1, taskmodel.QuestionAnswered))
	b.PutQuestion(q("y", 3, taskmodel.QuestionOpen))
	b.PutQuestion(q("z", 2, taskmodel.QuestionSending))
	if n := b.OpenQuestionsOf("ci"); n != 1 || b.OpenQuestionsOf("lab") != 0 {
		t.Errorf("%d are open of ci", n)
	}
	v := b.Publish(sec(9))
	var order []string
	for _, q := range v.Questions() {
		order = append(order, q.ID.ID)
	}
	if strings.Join(order, "") != "zyx" || v.OpenQuestions() != 1 || v.Counts().Questions != 1 {
		t.Errorf("order %v, open %d", order, v.OpenQuestions())
	}
	if task, _ := v.Task(k); len(task.Inputs) != 3 {
		t.Errorf("inputs %v", task.Inputs)
	}
	b.PutQuestion(q("y", 3, taskmodel.QuestionAnswered))
	b.PutQuestion(q("w", 4, taskmodel.QuestionOpen))
	if b.PutQuestion(q("w", 4, taskmodel.QuestionOpen)); b.OpenQuestionsOf("ci") != 1 {
		t.Errorf("%d are open of ci", b.OpenQuestionsOf("ci"))
	}
	b.DropQuestion(taskmodel.QuestionID{Server: "ci", ID: "w"})
	b.DropQuestion(taskmodel.QuestionID{Server: "ci", ID: "z"})
	if n := b.OpenQuestionsOf("ci"); n != 0 {
		t.Errorf("%d are open of ci", n)
	}
	after := b.Publish(sec(10))
	if task, _ := after.Task(k); len(task.Inputs) != 2 || after.OpenQuestions() != 0 {
		t.Errorf("inputs %v, open %d", task.Inputs, after.OpenQuestions())
	}
	if v.OpenQuestions() != 1 || len(v.Questions()) != 3 {
		t.Error("an older version changed")
	}
}

func TestServersAndChildren(t *testing.T) {
	b := New()
	for _, n := range []string{"b", "a", "b"} {
		b.PutServer(taskmodel.Server{Name: n, Attempts: b.Len()})
	}
	child := func(id, parent string) taskmodel.Task { return taskmodel.Task{Key: key("a", id), ParentID: parent} }
	b.Insert(child("p", ""))
	b.Insert(child("c2", "p"))
	b.Insert(child("c1", "p"))
	b.Insert(child("d", "pp"))
	b.Insert(child("d", "q"))
	v := b.Publish(sec(1))
	if s := v.Servers(); len(s) != 2 || s[0].Name != "b" || s[1].Name != "a" {
		t.Errorf("%+v", s)
	}
	if got := v.Children(key("a", "p")); !slices.Equal(got, []taskmodel.Key{key("a", "c1"), key("a", "c2")}) {
		t.Errorf("children %v", got)
	}
	if got := v.Children(key("a", "pp")); got != nil {
		t.Errorf("children of a parent that was replaced: %v", got)
	}
	b.Remove(key("a", "c1"))
	b.DropServer("b")
	if got := b.Publish(sec(2)).Children(key("a", "p")); len(got) != 1 {
		t.Errorf("children %v", got)
	}
	if len(v.Servers()) != 2 || len(v.Children(key("a", "p"))) != 2 {
		t.Error("an older version changed")
	}
	if got := v.Find("a", "c", taskmodel.Requestor); len(got) != 2 {
		t.Errorf("find %v", got)
	}
}

// A server that invents a status word for every task costs bounded counts.
func TestS11_InventedStatusWordsAreBounded(t *testing.T) {
	b := New()
	for i := range 1000 {
		b.Insert(taskmodel.Task{Key: key("x", fmt.Sprint(i)), Status: taskmodel.Status(fmt.Sprintf("word%d", i))})
	}
	c := b.Publish(sec(1)).Counts()
	if len(c.ByStatus) != maxWords+1 || c.ByStatus[otherWords] != 1000-maxWords {
		t.Errorf("%d words, %d others", len(c.ByStatus), c.ByStatus[otherWords])
	}
	for i := range 1000 {
		b.Remove(key("x", fmt.Sprint(i)))
	}
	if c := b.Publish(sec(1)).Counts(); len(c.ByStatus) != 0 || len(c.ByServer) != 0 {
		t.Errorf("left over: %+v", c)
	}
}

// What its server calls working and knows no more is counted apart.
func TestLostTasksAreCounted(t *testing.T) {
	b := New()
	for i, st := range []taskmodel.Status{taskmodel.Working, taskmodel.Submitted, taskmodel.Completed, taskmodel.InputRequired} {
		b.Insert(taskmodel.Task{Key: key("ci", fmt.Sprint(i)), Status: st})
	}
	lost := func(want int) {
		t.Helper()
		if c := b.Publish(sec(1)).Counts(); c.Lost != want || c.ByStatus[taskmodel.Working] > 1 {
			t.Errorf("%+v, want %d lost", c, want)
		}
	}
	lost(0)
	for i, st := range []taskmodel.Standing{taskmodel.Gone, taskmodel.Expired, taskmodel.Gone, taskmodel.Gone} {
		b.Change(key("ci", fmt.Sprint(i)), sec(1), func(t *taskmodel.Task) { t.Standing = st })
	}
	lost(2)
	b.Change(key("ci", "0"), sec(1), func(t *taskmodel.Task) { t.Standing = taskmodel.Live })
	lost(1)
	b.Remove(key("ci", "1"))
	lost(0)
}

func TestPublishWithoutChangeIsTheSameVersion(t *testing.T) {
	b := New()
	b.Insert(taskmodel.Task{Key: key("a", "1")})
	v := b.Publish(sec(1))
	if b.Publish(sec(2)) != v {
		t.Error("a new version of the same")
	}
	if Empty().Len() != 0 || Empty().Questions() != nil {
		t.Error("empty is not")
	}
}

// The detail of a status event is written by hand where its words are plain: it
// must be what encoding/json makes of it, whatever the words are.
func TestStatusDetailIsJSON(t *testing.T) {
	for _, d := range []statusDetail{
		{}, {Status: taskmodel.Working}, {From: taskmodel.Working, Status: taskmodel.Completed, StatusMessage: "All steps are done", Source: taskmodel.FromList},
		{Status: taskmodel.Failed, StatusMessage: `it said "no" & <left>`, Tool: "build\\x", Note: "a\tb"},
		{Status: "größer", Tool: "\x7f", Note: "\u2028"}, {Status: "\xff", StatusMessage: "日本"}, {StatusMessage: "~ !#$%'()*+,-./:;=?@[]^_`{|}"},
	} {
		want, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.json(); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// What ObserveTask gives is what Task would give then, and nothing where
// nothing happened.
func TestObserveTaskGivesTheTask(t *testing.T) {
	b := New()
	now := time.Date(2026, 1, 1, 12, 0, 0, 123456789, time.UTC)
	o := taskmodel.Observation{Source: taskmodel.FromList, AskedAt: now, HeardAt: now, Snapshot: taskmodel.Snapshot{
		ID: "a", Status: taskmodel.Working, CreatedAt: now.Add(-time.Hour), LastUpdatedAt: now, Raw: []byte(`{"taskId":"a"}`)}}
	for i, st := range []taskmodel.Status{taskmodel.Working, taskmodel.Working, taskmodel.Completed} {
		o.Status = st
		o.AskedAt, o.HeardAt = now.Add(time.Duration(i)*time.Second), now.Add(time.Duration(i)*time.Second)
		got, events := b.ObserveTask("ci", taskmodel.GenCore, taskmodel.Requestor, o)
		want, ok := b.Task(taskmodel.Key{Server: "ci", ID: "a", Role: taskmodel.Requestor})
		if !ok {
			t.Fatal("there is no task")
		}
		if i == 1 {
			if got != nil || len(events) != 0 {
				t.Errorf("the same again gave %v and %v", got, events)
			}
			continue
		}
		if len(events) != 1 || got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v with %d events, the board has %+v", st, got, len(events), want)
		}
	}
}
