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

// Who shows what another process hears shows what that one knows of it: that it
// hears it, that it cannot be asked for, and when that changes (issue D5). A task
// that its holder has not heard of itself is known from earlier here too.
func TestStandingOfTheHolderShowsBesideIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.session, f.can.List = "s1", false
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		for range 2 {
			if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
				t.Fatal(err)
			}
		}
		a.sleep(3 * time.Second)
		broken := errors.New("ci: the server answers with 500")
		f.hook(func() {
			f.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
				if id == "t1" {
					return taskmodel.Snapshot{}, broken
				}
				return f.look(id)
			}
		})
		a.sleep(20 * time.Second)
		if x := a.task("ci", "t1"); x.Standing != taskmodel.Stale {
			t.Fatalf("at its holder: %s", x.Standing)
		}
		g := newFake(taskmodel.GenCore)
		b := run(t, with(openJournal(t, dir, "mcptasks watch")), []string{"ci"}, g)
		b.sleep(3 * time.Second)
		if x := b.task("ci", "t1"); x.Standing != taskmodel.Stale || !strings.Contains(x.Note, "500") || x.Owner == "" {
			t.Errorf("polls fail at its holder: %s %q, owner %q", x.Standing, x.Note, x.Owner)
		}
		if x := b.task("ci", "t2"); x.Standing != taskmodel.Live || x.Note != "" {
			t.Errorf("its holder hears of it: %s %q", x.Standing, x.Note)
		}
		f.hook(func() { f.get = nil })
		for range 60 {
			if a.sleep(time.Second); a.task("ci", "t1").Standing == taskmodel.Live {
				break
			}
		}
		b.sleep(3 * time.Second)
		if x := b.task("ci", "t1"); x.Standing != taskmodel.Live || x.Note != "" {
			t.Errorf("its holder hears of it again: %s %q", x.Standing, x.Note)
		}
		// The holder's connection is lost, and comes back.
		f.hook(func() { f.dialErr = func(int, mcp.Options) error { return fmt.Errorf("ci: %w", mcp.ErrClosed) } })
		f.last().end(mcp.ErrClosed)
		b.sleep(4 * time.Second)
		for _, id := range []string{"t1", "t2"} {
			if x := b.task("ci", id); x.Standing != taskmodel.Stale || x.Note == "" || b.server("ci").HeldBy == "" {
				t.Errorf("its holder is not connected: %s %q", x.Standing, x.Note)
			}
		}
		f.hook(func() { f.dialErr = nil })
		a.m.Connect("ci")
		b.sleep(10 * time.Second)
		if x := b.task("ci", "t2"); x.Standing != taskmodel.Live {
			t.Errorf("its holder is connected again: %s %q", x.Standing, x.Note)
		}
		if n := g.total("get"); n != 0 {
			t.Errorf("asked %d times beside the holder", n)
		}
	})
}

// The holder itself knows a task from earlier only.
func TestRestoredAtTheHolderIsNotLiveBesideIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.session, f.can.List = "s1", false
		ja := openJournal(t, dir, "mcptasks start")
		a := run(t, with(ja), []string{"ci"}, f)
		if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
			t.Fatal(err)
		}
		a.sleep(3 * time.Second)
		a.end()
		closeJournal(t, ja)
		f.hook(func() { f.dialErr = func(int, mcp.Options) error { return fmt.Errorf("ci: %w", mcp.ErrClosed) } })
		b := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		b.sleep(3 * time.Second)
		c := run(t, with(openJournal(t, dir, "mcptasks watch")), []string{"ci"}, newFake(taskmodel.GenCore))
		c.sleep(3 * time.Second)
		if x := c.task("ci", "t1"); x.Standing != taskmodel.Restored || c.server("ci").HeldBy == "" {
			t.Errorf("%s %q, held by %q", x.Standing, x.Note, c.server("ci").HeldBy)
		}
		f.hook(func() { f.dialErr = nil })
		b.m.Connect("ci")
		c.sleep(10 * time.Second)
		if x := c.task("ci", "t1"); x.Standing != taskmodel.Live || x.Note != "" {
			t.Errorf("its holder has heard of it: %s %q", x.Standing, x.Note)
		}
	})
}
