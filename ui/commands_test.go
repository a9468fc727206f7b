package ui_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/ui/screentest"
)

func entering(term *screentest.Terminal) func(string) {
	return func(line string) { term.Press(":").Type(line).Press("enter") }
}

// Each setting of :set does what it says, and a wrong one is told.
func TestSettingsByName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 120, 30, nil)
		enter := entering(term)
		first := func() string { return term.Line(4) }
		enter("set sort=id")
		term.See("sorted by id")
		if before := first(); !strings.Contains(before, "migrate_schema") {
			t.Errorf("by id, what needs a person first: %s", before)
		}
		enter("set needs-first=off")
		enter("set ended-last=off")
		if got := first(); !strings.Contains(got, "0c55e1d7") {
			t.Errorf("the smallest id is not first: %s", got)
		}
		enter("set reverse=on")
		if got := first(); !strings.Contains(got, "b81f20aa") {
			t.Errorf("reversed, the greatest id is not first: %s", got)
		}
		enter("set reverse=off")
		if got := first(); !strings.Contains(got, "0c55e1d7") {
			t.Errorf("turned back: %s", got)
		}
		enter("set columns=tool,message")
		term.See("TOOL").Miss("SERVER", "TTL")
		enter("set columns=default")
		term.See("SERVER", "TTL")
		for line, want := range map[string]string{
			"set columns=colour": "colour", "set sort=colour": `sort cannot be "colour"`, "set colour=red": `There is nothing called "colour" to set`, "set images=huge": "huge",
		} {
			enter(line)
			term.See(want)
		}
	})
}

func TestStartByName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.OnStart = func(monitor.StartRequest) (monitor.StartReply, error) {
			return monitor.StartReply{Key: key("ci", buildID)}, nil
		}
		term := run(t, mon, 100, 30, nil)
		entering(term)("start ci build")
		term.See("Build the whole tree.", "Target")
		term.Type("api").Press("ctrl+s")
		if calls := strings.Join(mon.Calls(), "\n"); !strings.Contains(calls, `start ci/build {"target":"api"`) {
			t.Errorf("asked for %s", calls)
		}
	})
}

// :export writes the selected tasks with their messages, and never over a file
// that is there without being told to.
func TestExport(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.Entries = wire()
		term := run(t, mon, 120, 30, nil)
		enter := entering(term)
		enter("export")
		term.See("export needs a file")
		path := filepath.Join(t.TempDir(), "one.jsonl")
		enter("export " + path)
		term.See("Saved 1 task to")
		var row struct {
			Tool                  string
			Task                  struct{ TaskID string }
			Messages, Transitions []json.RawMessage
		}
		b, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(b, &row) != nil || row.Tool != "migrate_schema" || row.Task.TaskID != migrateID || len(row.Messages) != 5 {
			t.Fatalf("%v: %s", err, b)
		}
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		enter("export " + path)
		term.See("is there already")
		term.Pass(3 * time.Second).Press("n")
		if b, _ := os.ReadFile(path); string(b) != "mine" {
			t.Errorf("left alone, the file holds %s", b)
		}
		term.Press("*")
		enter("export " + path)
		term.Pass(3 * time.Second).Press("y")
		term.See("Saved 7 tasks to")
		if b, _ := os.ReadFile(path); strings.Count(string(b), "\n") != 7 {
			t.Errorf("written over, the file holds %s", b)
		}
	})
}

// A result is copied, saved and fetched again from its screen, and of several
// tasks at once from the list.
func TestResultTakenAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.OnFetch = func(taskmodel.Key) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{Result: json.RawMessage(`{"content":[{"type":"text","text":"again"}]}`)}, nil
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("F")
		term.See("A result can be fetched when its task has ended")
		term.Press("j", "j", "j", "j", "r")
		term.See("3 of 412 tests failed")
		before := len(term.OSC())
		term.Press("y")
		if got := term.OSC()[before:]; !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "52;c;") }) {
			t.Errorf("nothing was copied: %q", got)
		}
		dir := filepath.Join(t.TempDir(), "saved")
		term.Press("ctrl+s")
		term.See("Save every block of the result in which folder?")
		term.Press("ctrl+u").Type(dir).Press("enter")
		term.See("Saved")
		files, err := os.ReadDir(dir)
		if err != nil || len(files) == 0 {
			t.Errorf("saved %v, %v", files, err)
		}
		term.Press("F", "esc", "esc", "*", "F")
		term.See("Fetch the results of 3 tasks on 2 servers?", "not 4: not ended yet")
		term.Press("y")
		term.See("Fetched 3 results.")
		n := 0
		for _, c := range mon.Calls() {
			if strings.HasPrefix(c, "fetch ") {
				n++
			}
		}
		if n != 4 {
			t.Errorf("fetched %d times", n)
		}
	})
}

// Whatever screen is in front, y copies what is selected and ctrl+s asks where
// to save it.
func TestCopyAndSaveEverywhere(t *testing.T) {
	for name, keys := range map[string][]string{
		"the raw task": {"enter", "tab", "tab", "tab"}, "a message": {"w", "k", "enter"}, "the wire log": {"w"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mon := fleet()
				mon.Entries = wire()
				dir := t.TempDir()
				term := run(t, mon, 100, 30, nil)
				term.Press(keys...)
				before := len(term.OSC())
				term.Press("y")
				if got := term.OSC()[before:]; !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "52;c;") }) {
					t.Errorf("nothing was copied: %q\n%s", got, term.Screen())
				}
				term.Press("ctrl+s")
				term.See("Save ")
				path := filepath.Join(dir, "it.json")
				term.Press("ctrl+u").Type(path).Press("enter")
				term.See("Saved ")
				if b, err := os.ReadFile(path); err != nil || len(b) == 0 {
					t.Errorf("saved %q, %v", b, err)
				}
			})
		})
	}
}
