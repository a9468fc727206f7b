package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// Before the cancel goes a tasks/get whose answer is kept (issue A 4).
func TestCancelLooksFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		f.cancel = func(_ context.Context, id string) (*taskmodel.Snapshot, error) {
			f.drop(id) // deleted at once
			return nil, nil
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		f.put("x", taskmodel.Working, func(s *taskmodel.Snapshot) { s.StatusMessage = "the last word" })
		f.forgetCalls()
		if err := r.m.Cancel(t.Context(), key("ci", "x")); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		if len(f.log) < 2 || f.log[0].method != "get" || f.log[1].method != "cancel" {
			t.Errorf("sent %v", f.log)
		}
		f.mu.Unlock()
		r.sleep(time.Minute)
		x := r.task("ci", "x")
		if x.StatusMessage != "the last word" || x.Status != taskmodel.Working || x.Standing != taskmodel.Gone {
			t.Errorf("x is %s %q, %s", x.Status, x.StatusMessage, x.Standing)
		}
	})
}

// Cancel on a finished task: one tasks/get, the true end, "too late to cancel";
// a double press sends once.
func TestS10_TooLateToCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.can.List = false
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		f.hook(func() {
			f.cancel = func(_ context.Context, id string) (*taskmodel.Snapshot, error) {
				f.put(id, taskmodel.Completed) // between the look and the cancel
				return nil, fmt.Errorf("ci: %w", errors.Join(mcp.ErrTerminal, &taskmodel.RPCError{Code: -32602, Message: "already in terminal status 'completed'"}))
			}
		})
		f.forgetCalls()
		err := r.m.Cancel(t.Context(), key("ci", "x"))
		if !errors.Is(err, mcp.ErrTerminal) || !strings.Contains(err.Error(), "too late to cancel") {
			t.Errorf("Cancel: %v", err)
		}
		if n := f.called("get", "x"); n != 2 {
			t.Errorf("%d gets, want one before and one after", n)
		}
		x := r.task("ci", "x")
		if x.Status != taskmodel.Completed || !strings.Contains(x.CancelNote, "too late") {
			t.Errorf("x is %s, %q", x.Status, x.CancelNote)
		}
		if err := r.m.Cancel(t.Context(), key("ci", "x")); !errors.Is(err, mcp.ErrTerminal) {
			t.Errorf("again: %v", err)
		}
		if n := f.called("cancel", "x"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

func TestS10_DoublePressSendsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		f.latency = 100 * time.Millisecond
		f.cancel = func(context.Context, string) (*taskmodel.Snapshot, error) { return nil, nil }
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		done := make(chan error, 3)
		for range 3 {
			go func() { done <- r.m.Cancel(t.Context(), key("ci", "x")) }()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := f.called("cancel", "x"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// {}, a bare ack or a task for an answer, and the work goes on: "cancel
// requested" until the server says otherwise; "not confirmed" after a while;
// never cancelled by us.
func TestS12_CancelRequestedUntilTheServerSays(t *testing.T) {
	for name, answer := range map[string]func(f *fakeServer) *taskmodel.Snapshot{
		"ack":  func(*fakeServer) *taskmodel.Snapshot { return nil },
		"task": func(f *fakeServer) *taskmodel.Snapshot { s, _ := f.look("x"); return &s },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenCore)
				f.put("x", taskmodel.Working)
				f.cancel = func(context.Context, string) (*taskmodel.Snapshot, error) { return answer(f), nil }
				r := run(t, nil, []string{"ci"}, f)
				r.sleep(time.Second)
				if err := r.m.Cancel(t.Context(), key("ci", "x")); err != nil {
					t.Fatal(err)
				}
				x := r.task("ci", "x")
				if x.Status != taskmodel.Working || x.CancelRequested.IsZero() || x.CancelNote != "" {
					t.Fatalf("x is %s, requested %v, %q", x.Status, x.CancelRequested, x.CancelNote)
				}
				r.sleep(cancelConfirm + time.Second)
				if x := r.task("ci", "x"); !strings.Contains(x.CancelNote, "not confirmed") || x.Status != taskmodel.Working {
					t.Errorf("after a while: %s, %q", x.Status, x.CancelNote)
				}
				// It may be asked for again, and the work may complete.
				if err := r.m.Cancel(t.Context(), key("ci", "x")); err != nil {
					t.Error(err)
				}
				if n := f.called("cancel", "x"); n != 2 {
					t.Errorf("sent %d times", n)
				}
				f.put("x", taskmodel.Completed)
				r.sleep(3 * time.Second)
				if x := r.task("ci", "x"); x.Status != taskmodel.Completed || !strings.Contains(x.CancelNote, "too late") {
					t.Errorf("at its end: %s, %q", x.Status, x.CancelNote)
				}
			})
		})
	}
}

// A cancellation for which there was no connection is not said to be on its way
// to anybody, and can be asked for again at once.
func TestCancelThatCouldNotBeSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		down := true
		f.cancel = func(context.Context, string) (*taskmodel.Snapshot, error) {
			if down {
				return nil, fmt.Errorf("ci: %w", &transport.NotSentError{At: "ci.example", Err: errors.New("the certificate of ci.example is for another name")})
			}
			return nil, nil
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		if err := r.m.Cancel(t.Context(), key("ci", "x")); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnconfirmed) || !strings.Contains(err.Error(), "was not sent: the certificate") {
			t.Errorf("Cancel: %v", err)
		}
		if x := r.task("ci", "x"); !x.CancelRequested.IsZero() || !strings.HasPrefix(x.CancelNote, "not sent: the certificate") {
			t.Errorf("requested %v, %q", x.CancelRequested, x.CancelNote)
		}
		f.hook(func() { down = false })
		if err := r.m.Cancel(t.Context(), key("ci", "x")); err != nil {
			t.Errorf("once more: %v", err)
		}
		if x := r.task("ci", "x"); x.CancelRequested.IsZero() || x.CancelNote != "" {
			t.Errorf("then requested %v, %q", x.CancelRequested, x.CancelNote)
		}
	})
}

func TestCancelWhereThereIsNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.can.Cancel, f.can.CancelWhy = false, "the server declares no tasks.cancel"
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		err := r.m.Cancel(t.Context(), key("ci", "x"))
		if !errors.Is(err, mcp.ErrUnsupported) || !strings.Contains(err.Error(), "declares no tasks.cancel") {
			t.Errorf("Cancel: %v", err)
		}
		if f.total("cancel") != 0 || !r.task("ci", "x").CancelRequested.IsZero() {
			t.Error("something was asked for")
		}
	})
}

func TestReadonlyRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		r := run(t, func(o *Options) { o.Readonly = true }, []string{"ci"}, f)
		r.sleep(time.Second)
		_, serr := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "b"})
		for name, err := range map[string]error{
			"Start": serr, "Cancel": r.m.Cancel(t.Context(), key("ci", "x")), "Answer": r.m.Answer(t.Context(), accept("q")),
			"Forget": r.m.Forget(t.Context(), key("ci", "x"), true),
		} {
			if !errors.Is(err, ErrReadonly) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := f.total("start") + f.total("cancel") + f.total("answer") + f.total("delete"); n != 0 {
			t.Errorf("%d requests went out", n)
		}
	})
}

// Deletion that is refused keeps the row (draft, tasks/delete).
func TestForgetDeleteRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenDraft)
		f.put("x", taskmodel.Completed)
		f.remove = func(context.Context, string) error {
			return fmt.Errorf("ci: %w", &taskmodel.RPCError{Code: -32602, Message: "not yours"})
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		if err := r.m.Forget(t.Context(), key("ci", "x"), true); err == nil || !strings.Contains(err.Error(), "kept here") {
			t.Errorf("Forget: %v", err)
		}
		r.task("ci", "x")
		f.hook(func() { f.remove = nil })
		if err := r.m.Forget(t.Context(), key("ci", "x"), true); err != nil {
			t.Error(err)
		}
		if r.board().Len() != 0 {
			t.Error("still there")
		}
	})
}

// failed (2025-11-25): the result holds the tool's own error; it is fetched.
func TestS1_FailedTaskHasAResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		f.put("before", taskmodel.Failed)
		f.result = func(_ context.Context, id string) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{Result: json.RawMessage(`{"isError":true,"content":[]}`)}, nil
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(3 * time.Second)
		f.put("x", taskmodel.Failed)
		r.sleep(3 * time.Second)
		if x := r.task("ci", "x"); !strings.Contains(string(x.Outcome.Result), "isError") || x.Status != taskmodel.Failed {
			t.Errorf("x is %s with %s", x.Status, x.Outcome.Result)
		}
		if n := f.called("result", "before"); n != 0 {
			t.Errorf("the result of a task that had ended before we saw it was fetched %d times", n)
		}
	})
}

// A result that is no tool result is kept as it came, with a note (S4).
func TestS4_NoToolResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Completed)
		f.result = func(_ context.Context, id string) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{Result: json.RawMessage(`"huh"`), Note: "this is no tool result"}, nil
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		o, err := r.m.Fetch(t.Context(), key("ci", "x"))
		if err != nil || string(o.Result) != `"huh"` || o.Note == "" {
			t.Errorf("Fetch: %+v %v", o, err)
		}
	})
}

// At most four results in flight by themselves.
func TestResultsFourAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		for i := range 20 {
			f.put(fmt.Sprint("t", i), taskmodel.Working)
		}
		now, most := 0, 0
		f.result = func(ctx context.Context, id string) (taskmodel.Outcome, error) {
			f.mu.Lock()
			now++
			most = max(most, now)
			f.mu.Unlock()
			pause(ctx, time.Second)
			f.mu.Lock()
			now--
			f.mu.Unlock()
			return taskmodel.Outcome{Result: json.RawMessage(`{"content":[]}`)}, nil
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(2 * time.Second)
		for i := range 20 {
			f.put(fmt.Sprint("t", i), taskmodel.Completed)
		}
		r.sleep(20 * time.Second)
		if n := f.total("result"); n != 20 || most != fetchesMost {
			t.Errorf("%d results, %d at once", n, most)
		}
	})
}

// Fetch waits for a task that runs, and ends with words when it is gone.
func TestFetchWaitsForTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		f.put("y", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		type got struct {
			o   taskmodel.Outcome
			err error
		}
		c, d := make(chan got, 1), make(chan got, 1)
		go func() { o, err := r.m.Fetch(t.Context(), key("ci", "x")); c <- got{o, err} }()
		go func() { o, err := r.m.Fetch(t.Context(), key("ci", "y")); d <- got{o, err} }()
		r.sleep(time.Hour)
		if n := f.called("result", "x"); n != 0 {
			t.Errorf("tasks/result of a listed task was opened while it ran")
		}
		f.put("x", taskmodel.Completed)
		f.drop("y")
		r.sleep(time.Minute)
		if g := <-c; g.err != nil || g.o.Result == nil {
			t.Errorf("Fetch: %+v", g)
		}
		if g := <-d; !errors.Is(g.err, ErrGone) {
			t.Errorf("Fetch of a task that is gone: %v", g.err)
		}
	})
}

// Over its limit a result is not kept; it can still be fetched.
func TestResultTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		big := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 5000) + `"}]}`)
		f.result = func(context.Context, string) (taskmodel.Outcome, error) { return taskmodel.Outcome{Result: big}, nil }
		r := run(t, func(o *Options) { o.MaxResultBytes = 1000 }, []string{"ci"}, f)
		r.sleep(2 * time.Second)
		f.put("x", taskmodel.Completed)
		r.sleep(3 * time.Second)
		if x := r.task("ci", "x"); x.Outcome.TooLarge != int64(len(big)) || x.Outcome.Result != nil {
			t.Errorf("outcome %+v", x.Outcome)
		}
		o, err := r.m.Fetch(t.Context(), key("ci", "x"))
		if err != nil || string(o.Result) != string(big) {
			t.Errorf("Fetch: %d bytes, %v", len(o.Result), err)
		}
	})
}
