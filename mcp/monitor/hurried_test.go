package monitor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// An act whose caller gives up before the loop gets to it is not shown as on its
// way: nothing is sent for it, and the next one need not wait.
func TestAnActGivenUpBeforeItBeganIsNotOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenExtension)
		f.put("x", taskmodel.InputRequired)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		f.last().h.Asked(question("x/k", "x"))
		r.sleep(time.Second)
		for _, name := range []string{"answer", "cancel"} {
			act := func(ctx context.Context) error { return r.m.Answer(ctx, accept("x/k")) }
			if name == "cancel" {
				act = func(ctx context.Context) error { return r.m.Cancel(ctx, key("ci", "x")) }
			}
			if err := act(overdue{t.Context()}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			x, q := r.task("ci", "x"), r.question("x/k")
			if n := f.total(name); n != 0 || !x.CancelRequested.IsZero() || q.State == taskmodel.QuestionSending {
				t.Errorf("%s: sent %d times, stands as %q, %s", name, n, x.CancelNote, q.State)
			}
			if err := act(t.Context()); err != nil || f.total(name) != 1 {
				t.Errorf("the next %s: %v", name, err)
			}
		}
	})
}

// An overdue context has ended as far as the loop can see.
type overdue struct{ context.Context }

func (overdue) Err() error { return context.Canceled }

// Questions whose tasks never come do not keep later ones from their tasks.
func TestTasksThatNeverComeMakePlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		if err := r.m.do(t.Context(), func() {
			s := r.m.byName["ci"]
			for i := range earlyMost {
				q := question(fmt.Sprint("q", i), fmt.Sprint("never", i))
				q.State = taskmodel.QuestionWithdrawn
				r.m.board.PutQuestion(q)
				s.asksEarly(q)
			}
		}); err != nil {
			t.Fatal(err)
		}
		f.last().h.Asked(question("tag:7", "x"))
		r.sleep(time.Second)
		f.put("x", taskmodel.InputRequired)
		f.push("x")
		r.sleep(time.Second)
		if x := r.task("ci", "x"); len(x.Inputs) != 1 {
			t.Errorf("asks %v", x.Inputs)
		}
	})
}
