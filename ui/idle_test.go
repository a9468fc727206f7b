package ui_test

import (
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/screentest"
)

// Nothing ticks when nothing shown ticks, and then nothing is written.
func TestIdleWritesNothing(t *testing.T) {
	still := func() *screentest.Monitor {
		m := screentest.NewMonitor()
		m.Change(func(b *board.Board) {
			b.PutServer(taskmodel.Server{Name: "ci", State: taskmodel.ServerReady, Generation: taskmodel.GenCore})
		})
		return m
	}
	tests := map[string]struct {
		mon  func() *screentest.Monitor
		keys []string
		most int64 // bytes in ten minutes
	}{
		"no servers":     {mon: screentest.NewMonitor},
		"no tasks":       {mon: still},
		"help":           {mon: still, keys: []string{"?"}},
		"ended long ago": {mon: ended, most: 3000},
		"a clock ticks":  {mon: fleet, most: -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				term := run(t, tt.mon(), 100, 30, nil)
				term.Press(tt.keys...)
				term.Pass(2 * time.Second)
				before := term.Written()
				term.Pass(10 * time.Minute)
				got := term.Written() - before
				switch {
				case tt.most < 0:
					if got < 600*5 {
						t.Errorf("a screen with a clock wrote %d bytes in ten minutes: the clock stands still", got)
					}
					if got > 600*2048 {
						t.Errorf("a screen with a clock wrote %d bytes a second", got/600)
					}
				case got > tt.most:
					t.Errorf("%d bytes were written in ten idle minutes, want at most %d", got, tt.most)
				}
			})
		})
	}
}

// ended are tasks whose ages are told in hours.
func ended() *screentest.Monitor {
	m := screentest.NewMonitor()
	m.Change(func(b *board.Board) {
		for i := range 20 {
			b.Insert(taskmodel.Task{Key: key("ci", string(rune('a'+i))), Generation: taskmodel.GenCore, Status: taskmodel.Completed, Tool: "build",
				CreatedAt: ago(5 * time.Hour), FirstHeardAt: ago(5 * time.Hour), EndedAt: ago(4 * time.Hour), Standing: taskmodel.Live, TTL: taskmodel.TTL{Known: true, Unlimited: true}})
		}
	})
	return m
}

// All clocks on the screen step together, on full seconds.
func TestClocksStepTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 120, 30, nil)
		term.See("14:02:31", "retry in 4s", "stale 12s")
		term.Pass(time.Second)
		term.See("14:02:32", "retry in 3s", "stale 13s")
		term.Pass(5 * time.Minute)
		term.See("14:07:")
	})
}
