package journal

import (
	"context"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

func TestTaps(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	tap, screen := opened(t, dir, Options{What: "mcptasks tap"}), opened(t, dir, Options{})
	v := Tap{Target: "npx ev", Label: "tap: ev", Session: "tap:1-a", Started: time.Now().Add(-time.Hour), Agents: []string{"claude-code"},
		Generation: taskmodel.GenCore, Can: taskmodel.Can{Cancel: true}}
	if err := tap.PutTap(ctx, v); err != nil {
		t.Fatal(err)
	}
	look := func(since time.Time) []Tap {
		t.Helper()
		list, err := screen.Taps(ctx, since)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if l := look(time.Now()); len(l) != 0 {
		t.Errorf("without a lease and begun before: %+v", l)
	}
	if l := look(v.Started.Add(-time.Second)); len(l) != 1 || l[0].Live {
		t.Errorf("without a lease: %+v", l)
	}
	if _, ok, err := tap.Acquire(ctx, v.Target, v.Session); !ok || err != nil {
		t.Fatal(ok, err)
	}
	l := look(time.Now())
	if len(l) != 1 || !l[0].Live || l[0].Label != "tap: ev" || l[0].Agents[0] != "claude-code" || !l[0].Can.Cancel || l[0].Holder.What != "mcptasks tap" {
		t.Fatalf("%+v", l)
	}
	v.Ended, v.Why = time.Now(), "the server ended"
	if err := tap.PutTap(ctx, v); err != nil {
		t.Fatal(err)
	}
	if l := look(v.Started); len(l) != 1 || l[0].Live || l[0].Why != "the server ended" {
		t.Errorf("ended: %+v", l)
	}
	if p, err := screen.Prune(ctx, Policy{Age: time.Minute}); err != nil {
		t.Fatal(p, err)
	}
	if l := look(v.Started); len(l) != 1 {
		t.Errorf("pruned although its lease is held: %+v", l)
	}
}

// A task keeps the tap that heard it through the journal.
func TestTaskKeepsItsTap(t *testing.T) {
	j := opened(t, t.TempDir(), Options{})
	task := working("7")
	task.Owner, task.Tap = "claude-code", "tap:1-a"
	write(t, j, entry(task))
	r, err := j.Restore(context.Background(), entry(task).Target)
	if err != nil || len(r.Tasks) != 1 || r.Tasks[0].Owner != "claude-code" || r.Tasks[0].Tap != "tap:1-a" {
		t.Fatalf("%+v %v", r.Tasks, err)
	}
}
