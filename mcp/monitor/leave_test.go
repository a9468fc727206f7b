package monitor

import (
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// A server hands a question out once, to the tasks/result that is open. One that
// comes while we say that we do not wait any more is ours all the same: it is
// written down, for whoever comes next.
func TestAQuestionThatComesWhileLeavingIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("a", taskmodel.InputRequired)
		q := question("q", "a")
		f.leave = func(c *fakeClient) {
			if len(f.endings) > 0 {
				t.Error("the connection was closed before")
			}
			c.h.Asked(q)
		}
		dir := t.TempDir()
		j := openJournal(t, dir, "first")
		r := run(t, func(o *Options) { o.Journal = j }, []string{"ci"}, f)
		r.sleep(time.Second)
		if _, err := r.m.Add(t.Context(), "ci", "a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Second)
		r.end()
		if got, ok := r.m.Board().Question(q.ID); !ok || got.State != taskmodel.QuestionOpen {
			t.Errorf("the board has %+v", got)
		}
		closeJournal(t, j) // it writes what is left
		j = openJournal(t, dir, "second")
		if got, found, err := j.Question(t.Context(), "target:ci", q.ID.ID); err != nil || !found || got.State != taskmodel.QuestionOpen {
			t.Errorf("the journal has %+v, %v, %v", got, found, err)
		}
	})
}
