package monitor

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// A tapRig is a tap as the journal shows it to others.
type tapRig struct {
	t *testing.T
	j *journal.Journal
	v journal.Tap
}

func newTapRig(t *testing.T, j *journal.Journal) *tapRig {
	t.Helper()
	p := &tapRig{t, j, journal.Tap{Target: "npx ev", Label: "tap: ev", Session: "tap:1-a", Started: time.Now(), Agents: []string{"claude-code"},
		Transport: "stdio", Generation: taskmodel.GenCore, Can: taskmodel.Can{Cancel: true}}}
	p.renew()
	return p
}

func (p *tapRig) renew() {
	p.t.Helper()
	if err := p.j.PutTap(context.Background(), p.v); err != nil {
		p.t.Fatal(err)
	}
	if _, ok, err := p.j.Acquire(context.Background(), p.v.Target, p.v.Session); !ok || err != nil {
		p.t.Fatal(ok, err)
	}
}

func (p *tapRig) write(id string, s taskmodel.Status) {
	p.t.Helper()
	now := time.Now()
	v := taskmodel.Task{Key: taskmodel.Key{Server: p.v.Label, ID: id, Role: taskmodel.Requestor}, Generation: taskmodel.GenCore, Status: s, Tool: "build",
		Owner: "claude-code", Tap: p.v.Session, FirstHeardAt: now, LastHeardAt: now, Standing: taskmodel.Live}
	if err := p.j.Write(context.Background(), journal.Entry{Target: p.v.Target, Server: p.v.Label, Key: v.Key, Task: &v}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tapRig) session(o *Options) { o.Taps = func(string) bool { return true } }

// A tap on a server that nobody configured is a row, its tasks are in the list
// as the agent's, acts go to it, and when it is killed the rows say so.
func TestTappedServerIsShownAndAskedThroughItsTap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		p := newTapRig(t, openJournal(t, dir, "mcptasks tap"))
		p.write("t1", taskmodel.Working)
		j := openJournal(t, dir, "mcptasks")
		r := run(t, func(o *Options) { o.Journal = j; p.session(o) }, nil)
		synctest.Wait()
		k := taskmodel.Key{Server: "tap: ev", ID: "t1", Role: taskmodel.Requestor}
		r.sleep(500 * time.Millisecond)
		v, ok := r.m.Board().Task(k)
		if !ok || v.Owner != "claude-code" || v.Standing != taskmodel.Live || v.Status != taskmodel.Working {
			t.Fatalf("%+v %v", v, ok)
		}
		s, ok := r.m.Board().Server("tap: ev")
		if !ok || s.State != taskmodel.ServerReady || !strings.Contains(s.HeldBy, "claude-code") || !s.Can.Cancel || s.Source != taskmodel.SourceTap {
			t.Errorf("%+v", s)
		}
		p.renew()
		p.write("t2", taskmodel.InputRequired)
		r.sleep(500 * time.Millisecond)
		if _, ok := r.m.Board().Task(taskmodel.Key{Server: "tap: ev", ID: "t2", Role: taskmodel.Requestor}); !ok {
			t.Error("a later task does not show")
		}

		answered := make(chan error, 1)
		go func() { answered <- r.m.Cancel(t.Context(), k) }()
		var in []journal.Intent
		for range 50 {
			p.renew()
			var err error
			if in, err = p.j.ClaimIntents(context.Background(), p.v.Target, p.v.Session); err != nil {
				t.Fatal(err)
			}
			if len(in) > 0 {
				break
			}
			r.sleep(100 * time.Millisecond)
		}
		if len(in) != 1 || in[0].Kind != "cancel" || in[0].Task.ID != "t1" {
			t.Fatalf("%+v", in)
		}
		p.write("t1", taskmodel.Cancelled)
		if err := p.j.FinishIntent(context.Background(), in[0].ID, "", nil); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if v, _ := r.m.Board().Task(k); v.Status != taskmodel.Cancelled {
			t.Errorf("after the cancel: %s", v.Status)
		}

		// The tap has stopped: its lease is not renewed.
		r.sleep(18 * time.Second)
		v, _ = r.m.Board().Task(taskmodel.Key{Server: "tap: ev", ID: "t2", Role: taskmodel.Requestor})
		if v.Standing != taskmodel.Gone || !strings.Contains(v.Note, "claude-code is over") {
			t.Errorf("%s %q", v.Standing, v.Note)
		}
		if s, _ := r.m.Board().Server("tap: ev"); s.State != taskmodel.ServerOff {
			t.Errorf("%+v", s.State)
		}
		if err := r.m.Cancel(t.Context(), v.Key); err == nil || !strings.Contains(err.Error(), "session is over") {
			t.Errorf("an act in a session that is over: %v", err)
		}
	})
}
