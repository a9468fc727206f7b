package ui_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
)

func TestViewsAreSavedAndKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "views.json")
	opt := func(o *ui.Options) {
		o.ViewsFile, o.Views = file, map[string]string{"fixed": "server:deploy"}
	}
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 100, 30, opt)
		command := func(line string) { term.Press(":").Type(line).Press("enter").Pass(time.Second) }
		command("save-view mine")
		term.See("No filter is in force that could be saved")
		term.Press("/").Type("status:working server:ci").Press("enter")
		command("save-view two words")
		term.See("A view's name is one word")
		command("save-view fixed")
		term.See("stands in the configuration file")
		command("save-view mine")
		term.See("Saved status:working server:ci as the view")
		term.Press("esc").See("7 tasks")
		command("view fixed")
		term.See("2 of 7", "server:deploy")
		command("view nothere")
		term.See("there are fixed, mine.")
		term.Press(":").Type("view m")
		term.See("view mine  status:working server:ci")
		term.Press("esc")
		command("drop-view fixed")
		term.See("is dropped there")
	})
	if s, err := os.Stat(file); err != nil || s.Mode().Perm() != 0o600 {
		t.Fatalf("the file is %v, %v", s, err)
	}
	// The next run has it, and can drop it.
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 100, 30, opt)
		term.Press(":").Type("view mine").Press("enter")
		term.See("1 of 7", "status:working server:ci")
		term.Press(":").Type("drop-view mine").Press("enter").Pass(time.Second)
		term.See(`Dropped the view "mine".`)
	})
	if b, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(b)) != "{}" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	// What is no file of views is as none.
	for _, text := range []string{"no json", `{"bad":"age:>5parsecs","good":"build"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		bubble(t, func(t *testing.T) {
			term := run(t, fleet(), 100, 30, opt)
			term.Press(":").Type("view ").See("view fixed").Miss("view bad")
			if good := strings.Contains(text, "good"); term.Has("view good") != good {
				t.Errorf("of %s: %s", text, term.Screen())
			}
		})
	}
}

func TestLogIsShownFromItsEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("level=INFO msg=old\n", 60_000)+"level=WARN msg=\"the last \x1b[31mline\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 100, 30, func(o *ui.Options) { o.LogFile = file })
		term.Press(":").Type("log").Press("enter").Pass(time.Second)
		term.See("The log, ", "the last ", "msg=old")
		term.Press("/").Type("last").Press("enter").See("1 of 1 match")
		term.Press("esc", "esc").See("sorted by")
	})
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 100, 30, func(o *ui.Options) { o.LogFile = file + ".none" })
		term.Press(":").Type("log").Press("enter").Pass(time.Second).See("the log: open")
	})
	bubble(t, func(t *testing.T) {
		run(t, fleet(), 100, 30, nil).Press(":").Type("log").Press("enter").See("mcptasks --log FILE writes one")
	})
}

// Several starts in a row: the form stays, and what was started before can be
// repeated with changes.
func TestStartsInARow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		x, _ := mon.Board().Task(key("ci", buildID))
		mon.Change(func(b *board.Board) {
			x.Args = json.RawMessage(`{"target":"web"}`)
			b.Insert(x)
		})
		n := 0
		mon.OnStart = func(r monitor.StartRequest) (monitor.StartReply, error) {
			n++
			return monitor.StartReply{Key: key("ci", "new-"+string(rune('0'+n)))}, nil
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("n").See(`again  {"target":"web"}`).Type("build web")
		term.Press("enter").See("Target", "web", "ctrl+n start, stay")
		term.Press("ctrl+n").See("Started build on ci.", "Target")
		term.Type("-2").Press("ctrl+n").Pass(10 * time.Second).See("2 started from here")
		term.Type("-3").Press("ctrl+s").See("Started build on ci.", "STATUS").Miss("Target")
		var got []string
		for _, c := range mon.Calls() {
			if strings.HasPrefix(c, "start ") {
				got = append(got, strings.Fields(c)[2])
			}
		}
		if want := `{"target":"web"} {"target":"web-2"} {"target":"web-2-3"}`; strings.Join(got, " ") != want {
			t.Errorf("started %q, want %q", got, want)
		}
	})
}

// E9: a task's time is warned of before it is over, in words, and when it
// comes to that no key is needed.
func TestTTLIsWarnedOfInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		x, _ := mon.Board().Task(key("ci", buildID))
		mon.Change(func(b *board.Board) {
			x.CreatedAt, x.TTL = ago(0), minutes(10)
			b.Insert(x)
		})
		term := run(t, mon, 120, 30, nil)
		term.Pass(8*time.Minute + 55*time.Second)
		if row := term.Row("build  "); strings.Contains(row, "ends in") {
			t.Errorf("warned too early: %s", row)
		}
		term.Pass(10 * time.Second)
		if row := term.Row("b81f20aa"); !strings.Contains(row, "ends in 55s") {
			t.Errorf("not warned: %s", row)
		}
		term.Pass(2 * time.Minute)
		if row := term.Row("b81f20aa"); !strings.Contains(row, "its time is over") || !strings.Contains(row, "● working") {
			t.Errorf("when it is over: %s", row)
		}
	})
}
