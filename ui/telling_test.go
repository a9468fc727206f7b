package ui_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
	"mcptasks/ui/notify"
	"mcptasks/ui/screentest"
)

// What a terminal is told by, as bytes.
const (
	titleBytes    = "\x1b]2;"      // OSC 2, the window's title
	title0Bytes   = "\x1b]0;"      // OSC 0, the same
	progressBytes = "\x1b]9;4"     // OSC 9;4, the progress bar
	statusBytes   = "\x1b]7501"    // OSC 7501, the program's status
	noteBytes     = "\x1b]9;mcp"   // OSC 9, a notification
	note99Bytes   = "\x1b]99;"     // OSC 99, kitty's
	note777Bytes  = "\x1b]777;not" // OSC 777, rxvt's
)

// E10 and C1: each way of telling is on by itself, and what is switched off in
// [notify] writes not one byte, from the start to the end.
func TestTellingIsSwitchedOff(t *testing.T) {
	all := []string{"bell", titleBytes, progressBytes, statusBytes, noteBytes}
	for _, tt := range []struct {
		name  string
		rules notify.Rules
		want  []string
	}{
		{"all on", notify.Rules{}, all},
		{"no bell", notify.Rules{NoBell: true}, all[1:]},
		{"no title", notify.Rules{NoTitle: true}, []string{"bell", progressBytes, statusBytes, noteBytes}},
		{"no status", notify.Rules{NoStatus: true}, []string{"bell", titleBytes, noteBytes}},
		{"no notifications", notify.Rules{NoTerminal: true}, all[:4]},
		{"kitty's notifications", notify.Rules{Style: "osc99"}, append(all[:4:4], note99Bytes)},
		{"rxvt's notifications", notify.Rules{Style: "osc777"}, append(all[:4:4], note777Bytes)},
		{"nothing", notify.Rules{NoBell: true, NoTitle: true, NoStatus: true, NoTerminal: true}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mon := fleet()
				term := run(t, mon, 100, 30, func(o *ui.Options) { o.Notify = tt.rules }, screentest.Keep())
				term.Send(tea.BlurMsg{})
				askAndEnd(mon)
				term.Pass(3 * time.Second)
				term.Press("q").Press("y") // the quit asks, with questions open
				if err := term.Wait(); err != nil {
					t.Fatal(err)
				}
				got := term.Bytes()
				want := map[string]bool{}
				for _, w := range tt.want {
					want[w] = true
				}
				for _, seq := range []string{titleBytes, title0Bytes, progressBytes, statusBytes, noteBytes, note99Bytes, note777Bytes} {
					if has := bytes.Contains(got, []byte(seq)); has != want[seq] {
						t.Errorf("%q was written: %v", seq, has)
					}
				}
				if rang := term.Bells() > 0; rang != want["bell"] {
					t.Errorf("the bell rang %d times", term.Bells())
				}
			})
		})
	}
}

// askAndEnd lets a task ask something and another one fail.
func askAndEnd(mon *screentest.Monitor) {
	q := taskmodel.QuestionID{Server: "ci", ID: "new"}
	build := key("ci", "b81f20aa-0000-4000-8000-000000000002")
	mon.Change(func(b *board.Board) {
		b.PutQuestion(taskmodel.Question{ID: q, Task: build, Tool: "build", Kind: taskmodel.AskForm, Message: "Which target?", AskedAt: day, State: taskmodel.QuestionOpen})
		t, _ := b.Task(key("lab", "91d0c3f4-0000-4000-8000-000000000003"))
		t.Status, t.StatusMessage = taskmodel.Failed, "no bench"
		b.Insert(t)
	})
	mon.Emit(taskmodel.Event{Time: day, Server: "ci", Task: build, Kind: taskmodel.EventQuestion, Question: q})
	mon.Emit(taskmodel.Event{Time: day, Server: "lab", Task: key("lab", "91d0c3f4-0000-4000-8000-000000000003"), Kind: taskmodel.EventStatus, Status: taskmodel.Failed})
}

// A page that the server calls completed (notifications/elicitation/complete,
// 2025-11-25, client features, elicitation) rings no bell and notifies nobody: a
// question that is done needs no person. What its task comes to is told by the
// rules for ends.
func TestCompletionNoticeRingsNoBell(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		q := taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "page"}, Task: key("ci", "b81f20aa-0000-4000-8000-000000000002"), Tool: "build",
			Kind: taskmodel.AskURL, URL: "https://id.example/grant", Message: "Sign in", AskedAt: day, State: taskmodel.QuestionAnswered}
		mon.Change(func(b *board.Board) { b.PutQuestion(q) })
		term := run(t, mon, 100, 30, nil)
		term.Send(tea.BlurMsg{})
		bells, oscs := term.Bells(), len(term.OSC())
		q.Done = true
		mon.Change(func(b *board.Board) { b.PutQuestion(q) })
		mon.Emit(taskmodel.Event{Time: day, Server: "ci", Task: q.Task, Kind: taskmodel.EventQuestion, Question: q.ID, Message: "completed in the browser"})
		term.Pass(2 * time.Second)
		if term.Bells() != bells {
			t.Errorf("the bell rang %d times for what is done", term.Bells()-bells)
		}
		for _, s := range term.OSC()[oscs:] {
			if s[:3] != "9;4" && s[:4] != "7501" {
				t.Errorf("a notification was written: %q", s)
			}
		}
		term.Press("i").See("done there")
		mon.Change(func(b *board.Board) {
			done, _ := b.Task(q.Task)
			done.Status = taskmodel.Completed
			b.Insert(done)
		})
		mon.Emit(taskmodel.Event{Time: day, Server: "ci", Task: q.Task, Kind: taskmodel.EventStatus, Status: taskmodel.Completed})
		term.Pass(2 * time.Second)
		if term.Bells() != bells+1 {
			t.Errorf("the end of its task rang %d times", term.Bells()-bells)
		}
	})
}

// The bell for ends is for those who look elsewhere, for long tasks, for those
// that the filter lets through, and one ring for many.
func TestEndsRingByRule(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules notify.Rules
		focus bool
		bells int
	}{
		{"elsewhere", notify.Rules{}, false, 1},
		{"looking", notify.Rules{}, true, 0},
		{"looking, and told all the same", notify.Rules{Focused: true}, true, 1},
		{"only long ones", notify.Rules{OnlyAfter: time.Hour}, false, 0},
		{"long enough", notify.Rules{OnlyAfter: 5 * time.Minute}, false, 1},
		{"filtered out", notify.Rules{Filter: "server:ci"}, false, 0},
		{"filtered in", notify.Rules{Filter: "server:lab status:failed"}, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mon := fleet()
				term := run(t, mon, 100, 30, func(o *ui.Options) { o.Notify = tt.rules })
				if !tt.focus {
					term.Send(tea.BlurMsg{})
				}
				sim := key("lab", "91d0c3f4-0000-4000-8000-000000000003")
				mon.Change(func(b *board.Board) {
					for i := range 30 {
						b.Insert(taskmodel.Task{Key: key("lab", fmt.Sprint(i)), Generation: taskmodel.GenDraft, Status: taskmodel.Failed, FirstHeardAt: ago(8 * time.Minute)})
					}
					s, _ := b.Task(sim)
					s.Status = taskmodel.Failed
					b.Insert(s)
				})
				mon.Emit(taskmodel.Event{Time: day, Server: "lab", Task: sim, Kind: taskmodel.EventStatus, Status: taskmodel.Failed})
				for i := range 30 {
					mon.Emit(taskmodel.Event{Time: day, Server: "lab", Task: key("lab", fmt.Sprint(i)), Kind: taskmodel.EventStatus, Status: taskmodel.Failed})
				}
				term.Pass(500 * time.Millisecond)
				if term.Bells() != tt.bells {
					t.Errorf("the bell rang %d times, not %d", term.Bells(), tt.bells)
				}
			})
		})
	}
}

// I9: a question that came before the screen was there, or comes while the
// person is elsewhere, is queued and counted; at quit, however that comes,
// nothing is sent unless the person says so.
func TestI9_QuestionsWaitAndQuittingSendsNothing(t *testing.T) {
	ways := []struct {
		name string
		quit func(term *screentest.Terminal)
		sent []string
	}{
		{"q, and yes to quitting", func(term *screentest.Terminal) {
			term.Press("q")
			term.See("Quit with 3 open questions?", "Quitting sends nothing")
			term.Press("y")
		}, nil},
		{":q!", func(term *screentest.Terminal) { term.Press(":").Type("q!").Press("enter") }, nil},
		{"ctrl+c twice", func(term *screentest.Terminal) { term.Press("ctrl+c", "ctrl+c") }, nil},
		{"the process is ended", func(term *screentest.Terminal) { term.Close() }, nil},
		{"declined by the person's word", func(term *screentest.Terminal) { term.Press("q", "d").Pass(time.Second) },
			[]string{"answer ci/17 decline ", "answer ci/late decline ", "answer deploy/7f3a/approve decline "}},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mon := fleet() // two questions are open before the screen is there
				term := run(t, mon, 100, 30, nil)
				term.See("2 questions")
				term.Press("n").Type("bui").Press("enter").Type("al") // elsewhere: in a form of one's own
				late := taskmodel.QuestionID{Server: "ci", ID: "late"}
				mon.Change(func(b *board.Board) {
					b.PutQuestion(taskmodel.Question{ID: late, Task: key("ci", buildID), Tool: "build", Kind: taskmodel.AskForm, Message: "Which linker?",
						AskedAt: time.Now(), State: taskmodel.QuestionOpen})
				})
				mon.Emit(taskmodel.Event{Time: time.Now(), Server: "ci", Task: key("ci", buildID), Kind: taskmodel.EventQuestion, Question: late})
				term.Settle()
				term.Type("l").See("3 questions", "all")
				term.Press("esc", "esc", "esc").See("sorted by")
				term.Pass(10 * time.Minute)
				term.See("3 questions")
				wantCalls(t, mon)
				way.quit(term)
				_ = term.Wait()
				got := mon.Calls()
				slices.Sort(got)
				if !slices.Equal(got, way.sent) {
					t.Errorf("sent %q, want %q", got, way.sent)
				}
			})
		})
	}
}
