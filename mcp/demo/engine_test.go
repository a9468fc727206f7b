package demo

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

// The same seed gives the same run, byte by byte, and another seed another.
func TestDeterminism(t *testing.T) {
	run := func(seed uint64) string {
		var out string
		synctest.Test(t, func(t *testing.T) {
			_, c := core2025(t, Options{Tasks: 60, Arrivals: 10, Seed: seed})
			c.startTask("build", map[string]any{"target": "web"}, "_meta", map[string]any{"progressToken": 1})
			time.Sleep(10 * time.Minute)
			c.must("tasks/list", nil)
			synctest.Wait()
			out = strings.Join(c.said(), "\n")
		})
		return out
	}
	a, b := run(7), run(7)
	if a != b {
		la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
		for i := range min(len(la), len(lb)) {
			if la[i] != lb[i] {
				t.Fatalf("line %d differs:\n%s\n%s", i, la[i], lb[i])
			}
		}
		t.Fatalf("%d and %d lines", len(la), len(lb))
	}
	if a == run(8) {
		t.Error("another seed gives the same run")
	}
	if n := strings.Count(a, "\n"); n < 60 {
		t.Errorf("only %d messages", n)
	}
}

// No status follows a terminal one, in any generation, whatever happens.
func TestNoWayOutOfTheEnd(t *testing.T) {
	for _, g := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension, taskmodel.GenDraft} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{Generation: g, Tasks: 120, Arrivals: 20, Seed: 3})
			defer s.Close()
			ended := map[string]status{}
			s.engine.listen(s.engine.newOwner(), func(ev event) {
				if ev.kind != changed {
					return
				}
				if was := ended[ev.job.id]; was != "" {
					t.Errorf("%s: %s after %s", ev.job.tool.name, ev.job.status, was)
				}
				if ev.job.status.terminal() {
					ended[ev.job.id] = ev.job.status
				}
			})
			for range 30 {
				time.Sleep(time.Minute)
				for _, h := range s.Handles() {
					s.engine.with(h.ID, func(j *job) {
						if j != nil && j.seq%7 == 0 && !j.status.terminal() {
							s.engine.cancelLocked(j)
						}
					})
				}
			}
			if len(ended) < 20 {
				t.Errorf("only %d ends", len(ended))
			}
		})
	}
}

// A start has every state to show.
func TestPopulation(t *testing.T) {
	for g, want := range map[taskmodel.Generation][]status{
		taskmodel.GenCore:      {working, inputRequired, completed, failed},
		taskmodel.GenExtension: {working, inputRequired, completed, failed},
		taskmodel.GenDraft:     {submitted, working, inputRequired, completed, failed, unknown},
	} {
		clock := NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
		s := New(Options{Generation: g, Tasks: 100, Seed: 5, Now: clock.Now, AfterFunc: clock.AfterFunc})
		have := map[status]int{}
		for _, h := range s.Handles() {
			s.engine.with(h.ID, func(j *job) { have[j.status]++ })
		}
		if n := len(s.Handles()); n != 100 {
			t.Errorf("%s: %d tasks", g, n)
		}
		for _, st := range want {
			if have[st] == 0 {
				t.Errorf("%s: none is %s: %v", g, st, have)
			}
		}
		clock.Advance(5 * time.Minute) // nothing but the manual clock moves it
		s.Close()
	}
}

// Speed makes work shorter and leaves what a client asked for alone.
func TestSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := core2025(t, Options{Speed: 20})
		begin := time.Now()
		id := c.startTask("build", map[string]any{"target": "api"}, "task", map[string]any{"ttl": 60000})
		c.must("tasks/result", map[string]any{"taskId": id})
		if d := time.Since(begin); d > 4*time.Second {
			t.Errorf("took %v", d)
		}
		if g := c.must("tasks/get", map[string]any{"taskId": id}); g.at("ttl") != 60000.0 {
			t.Errorf("ttl: %v", g)
		}
	})
}

// A start with ten thousand tasks has them all.
func TestManyTasks(t *testing.T) {
	s := New(Options{Tasks: 10_000, Seed: 1})
	defer s.Close()
	if n := len(s.Handles()); n != 10_000 {
		t.Errorf("%d tasks", n)
	}
}

func BenchmarkStartWithManyTasks(b *testing.B) {
	for b.Loop() {
		New(Options{Tasks: 10_000, Seed: 1}).Close()
	}
}
