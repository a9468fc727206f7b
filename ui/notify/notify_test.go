package notify

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

var now = time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)

func key(id string) taskmodel.Key {
	return taskmodel.Key{Server: "ci", ID: id, Role: taskmodel.Requestor}
}

// version has one ended task, one that waits for input, and a question on it.
func version() *board.Version {
	b := board.New()
	b.Insert(taskmodel.Task{Key: key("done"), Generation: taskmodel.GenCore, Status: taskmodel.Failed, Tool: "run_tests", StatusMessage: "3 of 412; failed", CreatedAt: now.Add(-3 * time.Minute)})
	b.Insert(taskmodel.Task{Key: key("asks"), Generation: taskmodel.GenCore, Status: taskmodel.InputRequired, Tool: "deploy", CreatedAt: now.Add(-3 * time.Minute), Inputs: []taskmodel.QuestionID{{Server: "ci", ID: "1"}}})
	b.Insert(taskmodel.Task{Key: key("listed"), Generation: taskmodel.GenCore, Status: taskmodel.InputRequired, Tool: "sign", CreatedAt: now.Add(-3 * time.Minute)})
	b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "1"}, Task: key("asks"), Message: "Go \x1b]0;on?", State: taskmodel.QuestionOpen})
	for id, st := range map[string]taskmodel.QuestionState{"visited": taskmodel.QuestionAnswered, "early": taskmodel.QuestionOpen} {
		b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: id}, Kind: taskmodel.AskURL, Message: "Sign in", State: st, Done: true})
	}
	return b.Publish(now)
}

var (
	failed  = taskmodel.Event{Server: "ci", Task: key("done"), Kind: taskmodel.EventStatus, Status: taskmodel.Failed}
	asked   = taskmodel.Event{Server: "ci", Task: key("asks"), Kind: taskmodel.EventQuestion, Question: taskmodel.QuestionID{Server: "ci", ID: "1"}}
	visited = taskmodel.Event{Server: "ci", Task: key("asks"), Kind: taskmodel.EventQuestion, Question: taskmodel.QuestionID{Server: "ci", ID: "visited"}}
	early   = taskmodel.Event{Server: "ci", Task: key("asks"), Kind: taskmodel.EventQuestion, Question: taskmodel.QuestionID{Server: "ci", ID: "early"}}
	needs   = taskmodel.Event{Server: "ci", Task: key("listed"), Kind: taskmodel.EventStatus, Status: taskmodel.InputRequired}
)

func TestTell(t *testing.T) {
	tests := []struct {
		name    string
		rules   Rules
		events  []taskmodel.Event
		focused bool
		bell    bool
		notes   int
		hooked  int
	}{
		{"question, looking", Rules{}, []taskmodel.Event{asked}, true, true, 0, 0},
		{"question, elsewhere", Rules{}, []taskmodel.Event{asked}, false, true, 1, 0},
		{"question twice in one batch", Rules{}, []taskmodel.Event{asked, asked}, false, true, 1, 0},
		{"no bell", Rules{NoBell: true}, []taskmodel.Event{asked}, false, false, 1, 0},
		{"no notifications", Rules{NoTerminal: true}, []taskmodel.Event{asked, failed}, false, true, 0, 0},
		{"end, elsewhere", Rules{}, []taskmodel.Event{failed, failed}, false, true, 1, 0},
		{"end, looking", Rules{}, []taskmodel.Event{failed}, true, false, 0, 0},
		{"end, no bell", Rules{NoBell: true}, []taskmodel.Event{failed}, false, false, 1, 0},
		{"a page was visited, and the server says so", Rules{}, []taskmodel.Event{visited}, false, false, 0, 0},
		{"a page was visited before it was told of", Rules{Hook: []string{"x"}}, []taskmodel.Event{early}, false, false, 0, 0},
		{"end, looking, told anyway", Rules{Focused: true}, []taskmodel.Event{failed}, true, true, 1, 0},
		{"end of a short task", Rules{OnlyAfter: 10 * time.Minute}, []taskmodel.Event{failed}, false, false, 0, 0},
		{"end of a long task", Rules{OnlyAfter: time.Minute}, []taskmodel.Event{failed}, false, true, 1, 0},
		{"filtered out", Rules{Filter: "tool:other"}, []taskmodel.Event{failed, asked}, false, false, 0, 0},
		{"filtered in", Rules{Filter: "tool:deploy"}, []taskmodel.Event{failed, asked}, false, true, 1, 0},
		{"a listed task needs input", Rules{}, []taskmodel.Event{needs}, false, true, 1, 0},
		{"hook", Rules{Hook: []string{"x"}}, []taskmodel.Event{failed, asked}, true, true, 0, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tl, err := New(tt.rules)
			if err != nil {
				t.Fatal(err)
			}
			got := tl.Tell(tt.events, version(), now, tt.focused)
			if got.Bell != tt.bell || len(got.Notes) != tt.notes || len(got.Hooked) != tt.hooked {
				t.Errorf("bell %v, notes %q, %d hooks; want %v, %d, %d", got.Bell, got.Notes, len(got.Hooked), tt.bell, tt.notes, tt.hooked)
			}
			for _, n := range got.Notes {
				if strings.Count(n, "\x1b") > 2 {
					t.Errorf("a server's escape is in %q", n)
				}
			}
			if again := tl.Tell(tt.events, version(), now.Add(time.Hour), tt.focused); again.Bell || len(again.Notes) > 0 || len(again.Hooked) > 0 {
				t.Errorf("told twice: %+v", again)
			}
		})
	}
}

func TestManyAtOnceAreOneRing(t *testing.T) {
	tl, _ := New(Rules{})
	first := tl.Tell([]taskmodel.Event{asked}, version(), now, true)
	second := tl.Tell([]taskmodel.Event{needs}, version(), now.Add(100*time.Millisecond), true)
	if !first.Bell || second.Bell {
		t.Errorf("rang %v and %v", first.Bell, second.Bell)
	}
}

func TestSeenQuestionsAreNotTold(t *testing.T) {
	tl, _ := New(Rules{})
	tl.Seen(version())
	if got := tl.Tell([]taskmodel.Event{asked}, version(), now, false); got.Bell || len(got.Notes) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestStyles(t *testing.T) {
	for style, want := range map[string]string{"": "\x1b]9;mcptasks: failed: run_tests on ci: 3 of 412; failed\x1b\\", "osc777": "\x1b]777;notify;mcptasks: failed;run_tests on ci: 3 of 412, failed\x1b\\"} {
		tl, _ := New(Rules{Style: style})
		if got := tl.Tell([]taskmodel.Event{failed}, version(), now, false); len(got.Notes) != 1 || got.Notes[0] != want {
			t.Errorf("%s: %q, want %q", style, got.Notes, want)
		}
	}
}

func TestFilterError(t *testing.T) {
	if _, err := New(Rules{Style: "osc8"}); err == nil || !strings.Contains(err.Error(), `no "osc8"`) {
		t.Errorf("error %v", err)
	}
	if _, err := New(Rules{Filter: "bogus:1"}); err == nil || !strings.Contains(err.Error(), "notify filter") {
		t.Errorf("error %v", err)
	}
}

func TestView(t *testing.T) {
	tl, _ := New(Rules{})
	var v tea.View
	tl.View(&v, version())
	if v.WindowTitle != "mcptasks ? 2 questions" || v.ProgramStatus == nil || v.ProgramStatus.State != tea.ProgramStateBlocked || v.ProgressBar == nil {
		t.Errorf("%q %+v %+v", v.WindowTitle, v.ProgramStatus, v.ProgressBar)
	}
	v = tea.View{}
	tl.View(&v, board.Empty())
	if v.WindowTitle != "mcptasks" || v.ProgramStatus.State != tea.ProgramStateIdle || v.ProgressBar != nil {
		t.Errorf("idle: %q %+v %+v", v.WindowTitle, v.ProgramStatus, v.ProgressBar)
	}
	off, _ := New(Rules{NoTitle: true, NoStatus: true})
	v = tea.View{}
	off.View(&v, version())
	if v.WindowTitle != "" || v.ProgramStatus != nil || v.ProgressBar != nil {
		t.Error("what was switched off is told")
	}
}
