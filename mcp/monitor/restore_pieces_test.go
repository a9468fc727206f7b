package monitor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// left puts down n tasks as an earlier run of "ci" left them: every third has
// ended with its result, the others work.
func left(t *testing.T, j *journal.Journal, n int) {
	t.Helper()
	for i := range n {
		x := taskmodel.Task{Key: key("ci", fmt.Sprintf("old-%05d", i)), Generation: taskmodel.GenCore, Status: taskmodel.Working,
			Standing: taskmodel.Live, Tool: "build", FirstHeardAt: time.Now(), LastHeardAt: time.Now(), PollInterval: time.Hour}
		e := journal.Entry{Target: "target:ci", Server: "ci", Task: &x}
		if i%3 == 0 {
			x.Status, x.EndedAt = taskmodel.Completed, time.Now()
			e.Outcome = &taskmodel.Outcome{Result: []byte(`{"content":[]}`)}
		}
		j.Queue(e)
	}
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Thousands of tasks come back in pieces: each once, those that may still run
// with a watch, and nothing of it is said to have happened.
func TestRestoreManyTasks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 3000
		j := openJournal(t, t.TempDir(), "mcptasks")
		left(t, j, n)
		f := newFake(taskmodel.GenCore)
		f.hook(func() { f.latency = time.Hour }) // it says nothing
		r := run(t, with(j), []string{"ci"}, f)
		r.sleep(time.Second)
		v := r.board()
		if v.Len() != n {
			t.Fatalf("%d tasks are back", v.Len())
		}
		if c := v.Counts(); c.ByStatus[taskmodel.Completed] != n/3 || c.ByStatus[taskmodel.Working] != n-n/3 {
			t.Errorf("counts %+v", c)
		}
		for i, want := range []taskmodel.Standing{taskmodel.Live, taskmodel.Restored, taskmodel.Restored} {
			if x := r.task("ci", fmt.Sprintf("old-%05d", n-3+i)); x.Standing != want || x.Outcome.KeptHere != (i == 0) {
				t.Errorf("%s: %s, outcome %+v", x.Key, x.Standing, x.Outcome)
			}
		}
		var watches, count int
		if err := r.m.do(t.Context(), func() {
			s := r.m.byName["ci"]
			watches, count = len(s.watches), s.count
		}); err != nil {
			t.Fatal(err)
		}
		if watches != n-n/3 || count != n {
			t.Errorf("%d watches and %d tasks counted", watches, count)
		}
		if s, ok := v.Server("ci"); !ok || s.Generation != taskmodel.GenCore {
			t.Errorf("generation %q", s.Generation)
		}
		if ev := r.heard(taskmodel.EventCreated); len(ev) != 0 {
			t.Errorf("%d tasks that were known are said to be created", len(ev))
		}
	})
}

// halfway is a journal that breaks while it is read.
type halfway struct{ *journal.Journal }

var errHalfway = errors.New("the disk is gone")

func (h halfway) RestoreEach(ctx context.Context, target string, f func([]taskmodel.Task)) (journal.Restored, error) {
	first := true
	_, err := h.Journal.RestoreEach(ctx, target, func(tasks []taskmodel.Task) {
		if first {
			f(tasks)
		}
		first = false
	})
	return journal.Restored{}, errors.Join(err, errHalfway)
}

// What was read before the journal broke is shown, with a word that it is not
// all, and the server is connected to as ever.
func TestRestoreBreaksHalfway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), "mcptasks")
		left(t, j, 3000)
		r := run(t, func(o *Options) { o.Journal = halfway{j} }, []string{"ci"}, newFake(taskmodel.GenCore))
		r.sleep(100 * time.Millisecond)
		v := r.board()
		if v.Len() == 0 || v.Len() == 3000 {
			t.Errorf("%d tasks", v.Len())
		}
		s, _ := v.Server("ci")
		if want := "what was known from earlier runs could not be read: " + errHalfway.Error(); s.Warning != want || s.State != taskmodel.ServerReady {
			t.Errorf("%s, %q", s.State, s.Warning)
		}
	})
}
