package monitor

import (
	"context"
	"fmt"
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
