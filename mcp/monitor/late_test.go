package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// A look that hangs does not keep a person's cancel from going out, and a
// cancel that is never answered ends in words.
func TestCancelBehindALookThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		hang := func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("ci: gave up: %w", ctx.Err()) }
		f.hook(func() {
			f.get = func(ctx context.Context, _ string) (taskmodel.Snapshot, error) {
				return taskmodel.Snapshot{}, hang(ctx)
			}
			f.cancel = func(ctx context.Context, _ string) (*taskmodel.Snapshot, error) { return nil, hang(ctx) }
		})
		done := make(chan error, 1)
		go func() { done <- r.m.Cancel(t.Context(), key("ci", "x")) }()
		r.sleep(15 * time.Second)
		if n := f.called("cancel", "x"); n != 1 {
			t.Errorf("sent %d times within 15 s", n)
		}
		if err := <-done; !errors.Is(err, ErrUnconfirmed) || !strings.HasPrefix(err.Error(), "ci/x: ") {
			t.Errorf("Cancel: %v", err)
		}
		if x := r.task("ci", "x"); !strings.HasPrefix(x.CancelNote, "not confirmed") {
			t.Errorf("note %q", x.CancelNote)
		}
	})
}

// An error in place of the result of a task that has completed is an error of
// the request: it is said, tried again, and not kept as what the task came to.
func TestCompletedTaskWithoutItsResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		f.result = func(context.Context, string) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{Err: &taskmodel.RPCError{Code: -32603, Message: "out of luck"}}, nil
		}
		r := run(t, func(o *Options) { o.FetchResults = true }, []string{"ci"}, f)
		r.sleep(time.Second)
		f.put("x", taskmodel.Completed)
		f.push("x")
		r.sleep(10 * time.Second)
		if x := r.task("ci", "x"); !x.Outcome.IsZero() || !strings.Contains(x.Note, "out of luck") {
			t.Errorf("outcome %+v, note %q", x.Outcome, x.Note)
		}
		if out, err := r.m.Fetch(t.Context(), key("ci", "x")); err != nil || out.Err == nil {
			t.Errorf("by hand: %+v, %v", out, err)
		}
		f.hook(func() { f.result = nil })
		r.sleep(2 * time.Minute)
		if x := r.task("ci", "x"); x.Outcome.Result == nil || x.Note != "" {
			t.Errorf("afterwards: %+v, note %q", x.Outcome, x.Note)
		}
	})
}

// The end of a task may be heard, by a listing, before the call that made it is
// answered: its result is fetched all the same.
func TestEndHeardBeforeTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, func(o *Options) { o.FetchResults = true }, []string{"ci"}, f)
		r.sleep(time.Second)
		f.hook(func() {
			f.start = func(context.Context, mcp.StartCall) (mcp.Started, error) {
				f.put("x", taskmodel.Completed)
				f.push("x")
				time.Sleep(5 * time.Second)
				return mcp.Started{TaskID: "x", Snapshot: snap("x", taskmodel.Working)}, nil
			}
		})
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
			t.Fatal(err)
		}
		r.sleep(5 * time.Second)
		if x := r.task("ci", "x"); x.Status != taskmodel.Completed || x.Outcome.Result == nil || !x.Ours {
			t.Errorf("%s, outcome %+v, ours %v", x.Status, x.Outcome, x.Ours)
		}
	})
}
