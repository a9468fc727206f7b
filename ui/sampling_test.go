package ui_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
)

// The command that drafts a completion runs once for a question, however often
// its form is opened meanwhile; that it is at work is said; what it has written is
// in the form, also when that was put aside. A question that is over wants no
// draft.
func TestSamplingCommandRunsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "ci", ID: "s1"}
		set := func(st taskmodel.QuestionState) {
			mon.Change(func(b *board.Board) {
				b.PutQuestion(taskmodel.Question{ID: id, Kind: taskmodel.AskSampling, Method: "sampling/createMessage", Message: "Name the release", AskedAt: ago(time.Hour), State: st,
					Params: []byte(`{"messages":[{"role":"user","content":{"type":"text","text":"Name the release"}}],"maxTokens":10}`)})
			})
		}
		set(taskmodel.QuestionOpen)
		type reply struct {
			text string
			err  error
		}
		runs, replies := 0, make(chan reply)
		term := run(t, mon, 100, 30, func(o *ui.Options) {
			o.Sampling = func(context.Context, string, []byte) (string, error) {
				runs++
				r := <-replies
				return r.text, r.err
			}
		})
		term.Press("i", "enter")
		time.Sleep(time.Second)
		term.Settle().See("The sampling command of ci writes a draft")
		term.Press("esc", "enter")
		term.See("The sampling command of ci writes a draft")
		term.Press("esc")
		replies <- reply{"Autumn", nil}
		term.Settle()
		term.Press("enter")
		term.See("Autumn")
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
		term.Miss("writes a draft")

		id.ID = "s2"
		set(taskmodel.QuestionOpen)
		term.Press("esc", "g", "j", "enter")
		term.See("Name the release")
		replies <- reply{"", errors.New("out of tokens")}
		term.Settle().See("the sampling command of ci: out of tokens")
		term.Press("esc", "enter") // tried again
		replies <- reply{"Winter", nil}
		term.Settle().See("Winter")
		if runs != 3 {
			t.Errorf("it ran %d times", runs)
		}

		id.ID = "s3"
		set(taskmodel.QuestionWithdrawn)
		term.Press("esc", "G", "enter")
		term.Settle().See("Name the release")
		if runs != 3 {
			t.Errorf("it ran for a question that is over")
		}
		time.Sleep(time.Second) // what waits to say that it takes long
	})
}
