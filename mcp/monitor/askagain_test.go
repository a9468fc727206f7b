package monitor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// S2, I2, their kind: a question that was lost on its way, or answered in vain,
// is put again when the person presses: the open tasks/result is given up, which
// the server is told, and another is opened. By itself nothing of that happens.
func TestS2_AskedAgainByHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("a", taskmodel.Working)
		given := 0
		f.result = func(ctx context.Context, _ string) (taskmodel.Outcome, error) {
			<-ctx.Done()
			if context.Cause(ctx) == mcp.ErrNotWanted {
				f.hook(func() { given++ })
			}
			return taskmodel.Outcome{}, fmt.Errorf("ci: %w", ctx.Err())
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		if _, err := r.m.Add(t.Context(), "ci", "a"); err != nil {
			t.Fatal(err)
		}
		f.put("a", taskmodel.InputRequired)
		r.sleep(20 * time.Second)
		press := func(want, gave int) {
			t.Helper()
			if err := r.m.Ask(t.Context(), key("ci", "a")); err != nil {
				t.Fatal(err)
			}
			r.sleep(2 * time.Second)
			if n := f.called("result", "a"); n != want {
				t.Errorf("tasks/result was opened %d times, want %d", n, want)
			}
			f.hook(func() {
				if given != gave {
					t.Errorf("given up %d times, want %d", given, gave)
				}
			})
		}
		if n := f.called("result", "a"); n != 1 {
			t.Errorf("opened %d times by itself", n)
		}
		press(2, 1)
		press(2, 1) // in quick succession it is one
		r.sleep(10 * time.Second)
		f.last().h.Asked(question("q", "a"))
		r.sleep(time.Second)
		press(2, 1) // its question is here
	})
}
