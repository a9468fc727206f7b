package ui_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
	"mcptasks/ui/screentest"
)

const (
	migrateID = "0c55e1d7-0000-4000-8000-000000000001"
	deployID  = "7f3a91c2-0000-4000-8000-000000002e7d"
	buildID   = "b81f20aa-0000-4000-8000-000000000002"
	testsID   = "44ab09ee-0000-4000-8000-000000000004"
)

func wantCalls(t *testing.T, mon *screentest.Monitor, want ...string) {
	t.Helper()
	got := mon.Calls()
	got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "draft ") })
	if !slices.Equal(got, want) {
		t.Errorf("the monitor was asked for\n  %q\nwant\n  %q", got, want)
	}
}

// U4: the selection stays with its task when rows come, go and move.
func TestU4_SelectionIsByTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 24, nil)
		term.Press("j", "j")
		selected := func(want string) {
			t.Helper()
			if row := term.Row("▌"); !strings.Contains(row, want) {
				t.Errorf("selected is %q, want the one with %q\n%s", row, want, term.Screen())
			}
		}
		selected("Linking")
		mon.Change(func(b *board.Board) {
			for i := range 5 {
				b.Insert(taskmodel.Task{Key: key("ci", string(rune('a'+i))), Generation: taskmodel.GenCore, Status: taskmodel.Working, Tool: "newer", CreatedAt: day, FirstHeardAt: day, Standing: taskmodel.Live})
			}
		})
		term.Settle()
		term.See("newer")
		selected("Linking")
		mon.Change(func(b *board.Board) { b.Remove(key("deploy", deployID)) })
		term.Settle()
		selected("Linking")
		term.Press("o", "o", "O")
		selected("Linking")
		mon.Change(func(b *board.Board) { b.Remove(key("ci", buildID)) })
		term.Settle()
		if !strings.Contains(term.Screen(), "▌") {
			t.Errorf("nothing is selected after the task went\n%s", term.Screen())
		}
	})
}

func TestCancelAsksFirstAndNamesWhat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("c")
		term.See("Ask ci to cancel this task?", "ci: migrate_schema 0c55e1d7")
		term.Press("n")
		wantCalls(t, mon)
		// All marked, on several servers; what has ended is left out and said.
		term.Press("*", "c")
		term.See("Ask for 4 tasks on 3 servers to be cancelled?", "ci: 2 tasks, migrate_schema 0c55e1d7, build b81f20aa", "not 3: ended already")
		term.Press("x", "j", "enter") // no key but y does it
		wantCalls(t, mon)
		term.Press("y")
		got := mon.Calls()
		slices.Sort(got)
		want := []string{"cancel ci/" + migrateID, "cancel ci/" + buildID, "cancel deploy/" + deployID, "cancel lab/91d0c3f4-0000-4000-8000-000000000003"}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("asked for %q, want %q", got, want)
		}
		term.See("Cancel requested for 4 tasks.")
	})
}

func TestCancelIsOffWithItsReason(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.Change(func(b *board.Board) {
			s, _ := b.Server("ci")
			s.Can.Cancel, s.Can.CancelWhy = false, "the server declares no cancel"
			b.PutServer(s)
		})
		term := run(t, mon, 100, 30, nil)
		term.Press("c")
		term.See("Not cancelled: ci: the server declares no cancel.")
		term.Press("G", "c")
		term.See("Not cancelled: ended already.")
		wantCalls(t, mon)
	})
}

func TestErrorsAreSentencesInTheStatusLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.OnCancel = func(taskmodel.Key) error { return errors.New("ci: it is too late to cancel, the task has ended") }
		term := run(t, mon, 100, 30, nil)
		term.Press("c", "y")
		term.See("ci: it is too late to cancel, the task has ended")
		term.Pass(20 * time.Second)
		term.Miss("too late to cancel")
	})
}

func TestForgetAsksOnUnfinishedOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("x")
		term.See("Forget this task here?", "It has not ended")
		term.Press("n", "G", "x")
		wantCalls(t, mon, "forget deploy/5e1177aa-0000-4000-8000-000000000006 delete=false")
		term.Miss("warm_cache  ")
	})
}

func TestForgetOffersDeletionInTheDraft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.Change(func(b *board.Board) {
			s, _ := b.Server("lab")
			s.State, s.Can = taskmodel.ServerReady, taskmodel.Can{Delete: true, List: true}
			b.PutServer(s)
		})
		term := run(t, mon, 100, 30, nil)
		term.Press("/").Type("server:lab").Press("enter", "x")
		term.See("d delete on the server too")
		term.Press("d")
		wantCalls(t, mon, "forget lab/91d0c3f4-0000-4000-8000-000000000003 delete=true")
	})
}

// A question that comes never takes the keyboard: a badge, one bell, a title.
func TestNotificationsOnlyWhenUnfocused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		end := func(id string) {
			mon.Change(func(b *board.Board) {
				b.Change(key("ci", id), time.Now(), func(t *taskmodel.Task) { t.Status, t.StatusMessage = taskmodel.Completed, "all; done" })
			})
			ev := taskmodel.Event{Time: time.Now(), Server: "ci", Task: key("ci", id), Kind: taskmodel.EventStatus, Status: taskmodel.Completed}
			mon.Emit(ev)
			mon.Emit(ev)
			term.Settle()
		}
		notes := func() (n int) {
			for _, o := range term.OSC() {
				if strings.HasPrefix(o, "9;mcptasks") {
					n++
				}
			}
			return n
		}
		end(buildID)
		if notes() != 0 {
			t.Errorf("notified %q although the window has the focus", term.OSC())
		}
		term.Send(tea.BlurMsg{})
		end(migrateID)
		if notes() != 1 {
			t.Errorf("%d notifications, want one: %q", notes(), term.OSC())
		}
	})
}

func TestQuitAsksWhenQuestionsAreOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("q")
		term.See("Quit with 2 open questions?", "Quitting sends nothing")
		term.Press("n")
		term.See("sorted by")
		term.Press("q", "y")
		if err := term.Wait(); err != nil {
			t.Error(err)
		}
		wantCalls(t, mon)
	})
}

func TestQuitCanDeclineAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("q", "d")
		if err := term.Wait(); err != nil {
			t.Error(err)
		}
		wantCalls(t, mon, "answer ci/17 decline ", "answer deploy/7f3a/approve decline ")
	})
}

func TestInterruptTwiceQuitsAndSendsNothing(t *testing.T) {
	for _, keys := range [][]string{nil, {"j", "a"}, {":"}, {"/"}, {"q"}, {"n"}} {
		bubble(t, func(t *testing.T) {
			mon := fleet()
			term := run(t, mon, 100, 30, nil)
			term.Press(keys...)
			term.Press("ctrl+c")
			term.See("once more to quit")
			term.Pass(3 * time.Second)
			term.Press("ctrl+c") // too late: it counts as the first
			term.See("once more to quit")
			term.Press("ctrl+c")
			if err := term.Wait(); err != nil {
				t.Error(err)
			}
			wantCalls(t, mon)
		})
	}
}

// I4: the server refuses the answer: the form stays with its values and the
// server's words.
// I1: each form names its server and its task.
// A question whose task was merely listed is asked for only when the person
// presses a; then it opens.
func TestStartFormToMonitor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.OnStart = func(r monitor.StartRequest) (monitor.StartReply, error) {
			k := key(r.Server, "f00dcafe-1")
			mon.Change(func(b *board.Board) {
				b.Insert(taskmodel.Task{Key: k, Generation: taskmodel.GenCore, Status: taskmodel.Working, Tool: r.Tool, CreatedAt: time.Now(), FirstHeardAt: time.Now(), Standing: taskmodel.Live, Ours: true})
			})
			return monitor.StartReply{Key: k}, nil
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("n").Type("bui")
		term.Press("enter").Type("all")
		term.Press("ctrl+t").Type("10m").Press("enter")
		term.See("asking for 10m of life")
		term.Press("ctrl+s")
		wantCalls(t, mon, `start ci/build {"target":"all","clean":false} ttl=10m0s plain=false id=`)
		term.See("Started build on ci.")
		if row := term.Row("▌"); !strings.Contains(row, "build             ") || !strings.Contains(row, " 0s") {
			t.Errorf("the started task is not selected: %q", row)
		}
		// The call is offered again, to be repeated with changes.
		term.Press("n")
		term.See(`again  {"target":"all","clean":false}`)
		term.Press("enter")
		term.See("all", "asking for 10m of life")
	})
}

func TestWhyAToolCannotRunAsATask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("n").Type("drop")
		term.See("no task: the server forbids it for this tool", "destructive")
		term.Press("enter")
		term.See("will run as a plain call, without a task")
		term.Press("ctrl+p")
		term.See("It cannot run as a task")
	})
}

func TestReadonlyDoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, func(o *ui.Options) { o.Readonly = true })
		term.See("read-only")
		for _, keys := range [][]string{{"c"}, {"n"}, {"+"}, {"a", "ctrl+s", "esc"}, {"i", "enter", "ctrl+d", "y", "esc", "t"}} {
			term.Press(keys...)
		}
		wantCalls(t, mon)
	})
}

func TestResultOfUnfinishedTaskDoesNotStealTheScreen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.OnFetch = func(taskmodel.Key) (taskmodel.Outcome, error) {
			time.Sleep(5 * time.Second)
			return taskmodel.Outcome{Result: []byte(`{"content":[{"type":"text","text":"built it"}]}`)}, nil
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("j", "j", "r")
		term.See("Waiting for build b81f20aa on ci to end")
		term.Pass(6 * time.Second)
		term.See("Result of build b81f20aa on ci", "built it")
		term.Press("esc", "r", "s")
		term.Pass(6 * time.Second)
		term.Miss("built it")
		term.See("is here; r shows it", "configured in")
	})
}

func TestReboundKeysWorkAndAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := keymap.Default()
		if err := m.Rebind(map[string][]string{"cancel": {"K"}, "result": {}, "inbox": {"ctrl+n"}}); err != nil {
			t.Fatal(err)
		}
		mon := fleet()
		term := run(t, mon, 120, 30, func(o *ui.Options) { o.Keys = &m })
		term.See("K cancel", "ctrl+n inbox 2")
		term.Miss("r result")
		term.Press("c")
		term.Miss("Ask ci to cancel")
		term.Press("K")
		term.See("Ask ci to cancel this task?")
		term.Press("n", "ctrl+n")
		term.See("oldest first")
		term.Press("?")
		term.See("ctrl+n")
	})
}

// The inbox takes the terms of the list's filter, and says how many it shows.
func TestInboxFilterTakesFields(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 120, 30, nil)
		term.Press("i").See("2 open questions")
		term.Press("/").Type("server:nobody")
		term.See("0 of 2 open questions", "No question matches")
		term.Press("esc").See("2 open questions")
		term.Press("/").Type("status:input_required").Press("enter")
		term.See("2 of 2 open questions  status:input_required")
		term.Miss("No question matches")
	})
}

func TestCommandLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, func(o *ui.Options) { o.Views = map[string]string{"red": "status:failed"} })
		enter := func(line string) { term.Press(":").Type(line).Press("enter") }
		enter("view red")
		term.See("1 of 7  status:failed")
		term.Press("esc")
		term.See("7 tasks")
		enter("sort server")
		term.See("sorted by server")
		enter("set group=status")
		term.See("by status, sorted by server")
		enter("group none")
		enter("servers")
		term.See("configured in")
		enter("server lab")
		term.See("lab-server --stdio")
		enter("tasks")
		enter("theme mono")
		enter("theme neon")
		term.See(`no theme is called "neon"`)
		enter("theme dark")
		term.Miss("no theme is called")
		enter("nonsense")
		term.See(`There is no command "nonsense".`)
		enter("top")
		enter("cancel")
		term.See("Ask ")
		term.Press("n")
		enter("connect lab")
		enter("pause")
		enter("add ci/abc")
		wantCalls(t, mon, "connect lab", "pause true", "add ci/abc")
		term.Press(":", "up")
		term.See(":add ci/abc")
		term.Press("esc")
		enter("q")
		term.See("Quit with 2 open questions?")
	})
}

func TestFilterLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 100, 30, nil)
		term.Press("/").Type("server:ci")
		term.See("4 of 7")
		term.Type(" status:comp")
		term.Press("tab")
		term.See("status:completed", "1 of 7")
		term.Press("enter")
		term.See("1 of 7  server:ci status:completed")
		term.Press("/", "ctrl+u").Type("bogus:1")
		term.See("column 1")
		term.Press("enter") // is not taken while it does not parse
		term.See("column 1")
		term.Press("esc")
		term.See("server:ci status:completed") // what was before
		term.Press("esc")
		term.See("7 tasks")
		term.Press("/", "up")
		term.See("/server:ci status:completed")
	})
}

func TestPausePollCopyServersGoToTheMonitor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("p")
		term.See("polling paused")
		term.Press("p", "f", "y")
		term.See("Copied the task's name")
		if osc := strings.Join(term.OSC(), "\n"); !strings.Contains(osc, "52;c;") {
			t.Errorf("nothing was copied by OSC 52: %q", osc)
		}
		term.Press("s", "G", "R", "S", "L", "ctrl+u").Type("debug").Press("enter", "D").Type("/srv").Press("enter")
		wantCalls(t, mon, "pause true", "pause false", "poll ci/"+migrateID, "connect lab", "disconnect lab", "loglevel lab debug", "roots lab [/srv]")
	})
}

// SEP-1686's future fields: children are shown under their parent, and one that
// the server requires is started under the id that it gives.
func TestChildTheServerRequiresIsStartedUnderItsID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.Change(func(b *board.Board) {
			b.Change(key("ci", buildID), day, func(t *taskmodel.Task) {
				t.Children = []taskmodel.Child{{ID: testsID}, {ID: "child-of-ours", Required: true}}
			})
		})
		term := run(t, mon, 120, 40, nil)
		term.Press("j", "j", "enter")
		term.See("children", "✗ failed", "child-of-ours", "ours to start; n starts it")
		term.Press("n").Type("run_te").Press("enter")
		term.See("under the id child-of")
		term.Press("ctrl+s")
		wantCalls(t, mon, "start ci/run_tests {} ttl=0s plain=false id=child-of-ours")
	})
}

func TestMouseIsOffUntilAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 100, 30, nil)
		click := func(y int) { term.Send(tea.MouseClickMsg{X: 20, Y: y, Button: tea.MouseLeft}) }
		click(6)
		if !strings.Contains(term.Row("▌"), "migrate_schema") {
			t.Error("a click counts although the mouse is off")
		}
		term.Press("m")
		term.See("Mouse on")
		click(6)
		if !strings.Contains(term.Row("▌"), "build") {
			t.Errorf("the click selected %q", term.Row("▌"))
		}
		click(6)
		term.See("Overview")
	})
}

func TestMarksAndRanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 100, 30, nil)
		term.Press("space", "j", "j", "v")
		term.See("• 4 marked")
		term.Press("u")
		term.Miss("marked")
		term.Press("*")
		term.See("• 7 marked")
		term.Press("esc")
		term.Miss("marked")
		term.Press("/").Type("server:ci").Press("enter", "*")
		term.See("• 4 marked")
	})
}
