package ui_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

func TestQuestionNeverStealsTheKeyboard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("enter")
		before := strings.Split(term.Screen(), "\n")
		bells := term.Bells()
		id := taskmodel.QuestionID{Server: "ci", ID: "99"}
		ask := func() {
			mon.Change(func(b *board.Board) {
				b.PutQuestion(taskmodel.Question{ID: id, Task: key("ci", buildID), Tool: "build", Kind: taskmodel.AskForm, Message: "Which linker?", AskedAt: time.Now(), State: taskmodel.QuestionOpen})
			})
			mon.Emit(taskmodel.Event{Time: time.Now(), Server: "ci", Task: key("ci", buildID), Kind: taskmodel.EventQuestion, Question: id})
			term.Settle()
		}
		ask()
		ask() // the same once more
		after := strings.Split(term.Screen(), "\n")
		for i := 1; i < len(after)-1; i++ {
			if after[i] != before[i] && !strings.Contains(after[i], "0s") && !strings.Contains(after[i], "1s") {
				t.Errorf("line %d changed from %q to %q", i, before[i], after[i])
			}
		}
		if !strings.Contains(after[0], "3 questions") {
			t.Errorf("the head says %q", after[0])
		}
		if got := term.Bells() - bells; got != 1 {
			t.Errorf("the bell rang %d times, want once", got)
		}
		if !strings.Contains(term.Title(), "3 questions") {
			t.Errorf("the title is %q", term.Title())
		}
	})
}

func TestAnswerGoesOnceAndTheFormCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "deploy", ID: "7f3a/approve"}
		set := func(f func(*taskmodel.Question)) {
			mon.Change(func(b *board.Board) {
				q, _ := b.Question(id)
				f(&q)
				b.PutQuestion(q)
			})
		}
		mon.OnAnswer = func(taskmodel.Answer) error {
			set(func(q *taskmodel.Question) { q.State = taskmodel.QuestionSending })
			time.Sleep(300 * time.Millisecond)
			set(func(q *taskmodel.Question) { q.State, q.SentAt = taskmodel.QuestionAnswered, time.Now() })
			return nil
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("j", "a")
		term.See("deploy asks, for deploy_release 7f3a91c2", "Decision", "Canary share")
		term.Press("ctrl+s")
		term.See("Sending the answer")
		term.Press("ctrl+s") // a second press sends nothing
		term.Pass(time.Second)
		term.See("/ filter", "Answered; waiting for deploy", "answered, waiting for")
		wantCalls(t, mon, `answer deploy/7f3a/approve accept {"decision":"go","share":25}`)
	})
}

func TestI4_RefusalKeepsTheForm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "deploy", ID: "7f3a/approve"}
		mon.OnAnswer = func(taskmodel.Answer) error {
			mon.Change(func(b *board.Board) {
				q, _ := b.Question(id)
				q.State, q.Refusal = taskmodel.QuestionRefused, "share is too large today"
				b.PutQuestion(q)
			})
			return errors.New("deploy refused the answer: share is too large today")
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("j", "a", "tab")
		term.Press("ctrl+s")
		term.See("share is too large today", "deploy asks", "Canary share")
	})
}

func TestEscPutsAsideAndKeepsTheDraft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("i", "j", "enter", "tab", "backspace", "backspace").Type("42")
		term.Press("esc")
		term.See("Put aside; the draft is kept", "draft kept")
		wantCalls(t, mon)
		term.Press("enter")
		term.See("42")
	})
}

func TestI1_FormsNameServerAndTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.Change(func(b *board.Board) {
			b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "x"}, Kind: taskmodel.AskForm, Message: "Sign in to the artifact store", AskedAt: ago(time.Hour), State: taskmodel.QuestionOpen, Schema: approveSchema})
		})
		term := run(t, mon, 100, 30, nil)
		term.Press("i")
		term.See("(plain call)", "migrate_schema", "deploy_release")
		for _, want := range []string{"ci asks", "ci asks, for migrate_schema 0c55e1d7", "deploy asks, for deploy_release 7f3a91c2"} {
			term.Press("enter")
			term.See(want)
			term.Press("esc", "j")
		}
	})
}

func TestAnswerAsksForTheQuestion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.Change(func(b *board.Board) {
			b.Change(key("ci", buildID), day, func(t *taskmodel.Task) { t.Status = taskmodel.InputRequired })
		})
		term := run(t, mon, 100, 30, nil)
		term.Press("/").Type("tool:build").Press("enter", "a")
		wantCalls(t, mon, "ask ci/"+buildID)
		term.See("Asking ci for its question")
		put := func() {
			mon.Change(func(b *board.Board) {
				id := taskmodel.QuestionID{Server: "ci", ID: "18"}
				b.PutQuestion(taskmodel.Question{ID: id, Task: key("ci", buildID), Tool: "build", Kind: taskmodel.AskForm, Message: "Which linker?", State: taskmodel.QuestionOpen, AskedAt: time.Now()})
				b.Change(key("ci", buildID), day, func(t *taskmodel.Task) { t.Inputs = []taskmodel.QuestionID{id} })
			})
			term.Settle()
		}
		put()
		term.See("ci asks, for build", "Which linker?")
	})
}
