package ui

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/notify"
	"mcptasks/ui/screentest"
)

// runAll runs a command and those that it batches, one after the other.
func runAll(t *testing.T, c tea.Cmd) {
	if c == nil {
		return
	}
	switch m := c().(type) {
	case tea.BatchMsg:
		for _, c := range m {
			runAll(t, c)
		}
	case doneMsg:
		if m.err != nil {
			t.Error(m.err)
		}
	}
}

// E10: the hook gets what the rules let through, once, as JSON on its stdin.
func TestHookGetsWhatTheRulesLetThrough(t *testing.T) {
	tee, err := exec.LookPath("tee")
	if err != nil {
		t.Skip("there is no tee here")
	}
	now := time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)
	mon := screentest.NewMonitor()
	task := func(id, tool string, age time.Duration) taskmodel.Key {
		k := taskmodel.Key{Server: "ci", ID: id, Role: taskmodel.Requestor}
		mon.Change(func(b *board.Board) {
			b.Insert(taskmodel.Task{Key: k, Generation: taskmodel.GenCore, Status: taskmodel.Completed, Tool: tool, CreatedAt: now.Add(-age), EndedAt: now})
		})
		return k
	}
	got := filepath.Join(t.TempDir(), "got")
	m, err := newModel(t.Context(), mon, Options{Now: func() time.Time { return now }, Env: []string{"TERM=xterm"},
		Notify: notify.Rules{Hook: []string{tee, "-a", got}, Filter: "tool:build", OnlyAfter: time.Minute, NoTerminal: true}})
	if err != nil {
		t.Fatal(err)
	}
	var events []taskmodel.Event
	for _, k := range []taskmodel.Key{task("long", "build", time.Hour), task("short", "build", time.Second), task("other", "lint", time.Hour), task("long", "build", time.Hour)} {
		events = append(events, taskmodel.Event{Time: now, Server: "ci", Task: k, Kind: taskmodel.EventStatus, Status: taskmodel.Completed})
	}
	m.begin()
	runAll(t, m.tell(events))
	b, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	var one struct {
		Event string
		Task  struct{ TaskID, Server, Status, Tool string }
	}
	if err := json.Unmarshal(b, &one); err != nil {
		t.Fatalf("the hook got %q: %v", b, err) // more than one document is an error, too
	}
	if one.Event != "status" || one.Task.TaskID != "long" || one.Task.Server != "ci" || one.Task.Status != "completed" || one.Task.Tool != "build" {
		t.Errorf("the hook got %s", b)
	}
}
