package monitor

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// T1, its kind: a server that forgets each new session at once is tried again
// with a growing wait, as one that fails, and is no reason for a storm.
func TestT1_NoStormOfSessions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.session = "s"
		f.put("a", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(3 * time.Second)
		lost := fmt.Errorf("ci: %w", mcp.ErrSessionLost)
		f.hook(func() {
			f.get = func(context.Context, string) (taskmodel.Snapshot, error) { return taskmodel.Snapshot{}, lost }
			f.list = func(context.Context, string) (mcp.Page, error) { return mcp.Page{}, lost }
		})
		before := f.dialCount()
		r.sleep(2 * time.Minute)
		if n := f.dialCount() - before; n < 3 || n > 14 {
			t.Errorf("%d new sessions in two minutes", n)
		}
		if s := r.server("ci"); s.Error == "" {
			t.Errorf("row: %s without a word", s.State)
		}
		f.hook(func() { f.get, f.list = nil, nil })
		r.sleep(2 * time.Minute)
		if s, task := r.server("ci"), r.task("ci", "a"); s.State != taskmodel.ServerReady || task.Standing != taskmodel.Live {
			t.Errorf("afterwards: %s %q, %s", s.State, s.Error, task.Standing)
		}
	})
}

// A server that failed once and is asked nothing more is asked whether it is
// back, though its tasks have ended or are pushed; its row does not say
// "retrying" for ever.
func TestServerThatFailedOnceComesBack(t *testing.T) {
	for _, pushed := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			f := newFake(taskmodel.GenExtension)
			f.can.List = false
			f.put("a", taskmodel.Working)
			r := run(t, nil, []string{"ci"}, f)
			r.sleep(time.Second)
			if _, err := r.m.Add(t.Context(), "ci", "a"); err != nil {
				t.Fatal(err)
			}
			f.hook(func() {
				f.cancel = func(context.Context, string) (*taskmodel.Snapshot, error) {
					return nil, fmt.Errorf("ci cannot be reached: %w", io.EOF)
				}
			})
			if pushed {
				f.last().h.Pushing([]string{"a"})
				r.sleep(5 * time.Second)
			}
			if err := r.m.Cancel(t.Context(), key("ci", "a")); err == nil {
				t.Fatal("no error")
			}
			r.sleep(100 * time.Millisecond)
			if s := r.server("ci"); s.State != taskmodel.ServerRetrying {
				t.Fatalf("row: %s", s.State)
			}
			if !pushed {
				f.put("a", taskmodel.Completed)
				f.push("a")
			}
			r.sleep(10 * time.Second)
			if s := r.server("ci"); s.State != taskmodel.ServerReady || s.Error != "" {
				t.Errorf("pushed %v: %s %q", pushed, s.State, s.Error)
			}
		})
	}
}
