// Package ask is the screen of one question: who asks and for what, how long it
// waits, and the form, address or completion of package formview below it.
//
// It imports kit, act, theme, safe, formview, taskmodel and monitor's values. It
// sends nothing itself: answers, drafts and everything else come out as actions.
package ask

import (
	"fmt"
	"path"
	"strings"

	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/act"
	"mcptasks/ui/formview"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// An Ask is the screen. It is owned by the root's goroutine.
type Ask struct {
	q     taskmodel.Question
	model formview.Model
	sent  bool // an answer went from here
	calls bool // the call that wanted the page visited is under way again
}

// CalledMsg is the end of a call that was made from a question's screen.
type CalledMsg struct{ Server, Tool string }

// Done closes the screen of a question, wherever it stands.
type Done struct{ ID taskmodel.QuestionID }

// New opens a question; gen is what its server speaks, "" when not known, and l
// bounds its form.
func New(q taskmodel.Question, gen taskmodel.Generation, l form.Limits) *Ask {
	return &Ask{q: q, model: formview.New(q, gen, l)}
}

// ID is the question shown.
func (a *Ask) ID() taskmodel.QuestionID { return a.q.ID }

// Question is the question shown.
func (a *Ask) Question() taskmodel.Question { return a.q }

// Context implements kit.Screen.
func (a *Ask) Context() keymap.Context { return a.model.Context() }

// Typing implements kit.Typer: all keys are the form's.
func (a *Ask) Typing() bool { return true }

// editedMsg brings text that was written in the editor or read from a file.
type editedMsg struct {
	id   taskmodel.QuestionID
	text string
	err  error
}

// FillMsg puts a draft that a command has written into a field.
type FillMsg struct {
	ID         taskmodel.QuestionID
	Name, Text string
}

// Refresh implements kit.Refresher: it takes the question's newer state.
func (a *Ask) Refresh(e *kit.Env) act.Action {
	q, ok := e.Board.Question(a.q.ID)
	if !ok {
		if a.sent {
			return act.Batch{Done{a.q.ID}, act.Notice{Text: "Answered."}}
		}
		if a.q.State != taskmodel.QuestionWithdrawn {
			a.q.State, a.q.Withdrawn = taskmodel.QuestionWithdrawn, "the server no longer asks"
			a.model.SetQuestion(a.q)
		}
		return nil
	}
	was := a.q.State
	a.q = q
	a.model.SetQuestion(q)
	if !a.sent || was == q.State {
		return nil
	}
	switch {
	case q.State == taskmodel.QuestionAnswered && q.Kind == taskmodel.AskURL:
		// One has agreed and now goes there: the address, its copy and what
		// comes after stay in view.
	case q.State == taskmodel.QuestionAnswered:
		return act.Batch{Done{a.q.ID}, act.Notice{Text: "Answered; waiting for " + safe.Line(q.ID.Server) + " to go on."}}
	case q.State == taskmodel.QuestionWithdrawn && q.Repeat.Tool != "":
		return Done{a.q.ID}
	}
	return nil
}

// Update implements kit.Screen.
func (a *Ask) Update(e *kit.Env, m tea.Msg) act.Action {
	switch m := m.(type) {
	case editedMsg:
		if m.id != a.q.ID {
			return nil
		}
		if m.err != nil {
			return act.Notice{Text: m.err.Error(), Error: true}
		}
		return a.event(e, a.model.Edited(m.text))
	case CalledMsg:
		if m.Server == a.q.ID.Server && m.Tool == a.q.Repeat.Tool {
			a.calls = false
		}
	case FillMsg:
		if m.ID != a.q.ID {
			return nil
		}
		return a.event(e, a.model.Fill(m.Name, m.Text))
	case tea.KeyPressMsg, tea.PasteMsg, tea.MouseWheelMsg:
		return a.event(e, a.model.Update(e.Keys, m))
	}
	return nil
}

func (a *Ask) event(e *kit.Env, ev formview.Event) act.Action {
	var out act.Batch
	if ev.Changed {
		out = append(out, act.Draft{ID: a.q.ID, Draft: a.model.Draft()})
	}
	id := a.q.ID
	answer := func(what taskmodel.Action) {
		if e.Readonly {
			out = append(out, act.Notice{Text: "This session is read-only: it answers nothing.", Error: true})
			return
		}
		a.sent = true
		out = append(out, act.Answer{Answer: taskmodel.Answer{Question: id, Action: what, Content: ev.Content}})
	}
	if ev.Open != "" && (!e.Readonly || ev.Kind != formview.Send) {
		out = append(out, act.Browse{URL: ev.Open})
	}
	switch ev.Kind {
	case formview.Send:
		answer(taskmodel.Accept)
	case formview.Retry:
		if a.q.Repeat.Tool != "" {
			out = append(out, a.again(e))
			break
		}
		answer(taskmodel.Accept)
	case formview.CancelTask:
		out = append(out, act.Cancel{Tasks: []taskmodel.Key{a.q.Task}})
	case formview.Decline:
		answer(taskmodel.Decline)
	case formview.Cancel:
		answer(taskmodel.Cancel)
	case formview.Aside:
		out = append(out, act.Back{})
		if len(a.model.Draft()) > 0 && a.q.State.Open() {
			out = append(out, act.Notice{Text: "Put aside; the draft is kept and nothing was sent."})
		}
	case formview.Editor:
		out = append(out, act.Edit{Text: ev.Text, Name: ev.Name, Done: func(text string, err error) tea.Msg { return editedMsg{id, text, err} }})
	case formview.File:
		out = append(out, act.Line{Title: "Fill the field from which file?", Done: func(path string) act.Action {
			return act.Read{Path: path, Done: func(text string, err error) tea.Msg { return editedMsg{id, text, err} }}
		}})
	case formview.Copy:
		out = append(out, act.Copy{Text: ev.Text, What: ev.Name})
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// again makes the call again that was refused until its pages were visited.
func (a *Ask) again(e *kit.Env) act.Action {
	if e.Readonly {
		return act.Notice{Text: "This session is read-only: it starts nothing.", Error: true}
	}
	if a.calls {
		return act.Notice{Text: "The call is under way."}
	}
	c := a.q.Repeat
	start := act.Start{Request: monitor.StartRequest{Server: a.q.ID.Server, Tool: c.Tool, Args: c.Args, TTL: c.TTL, Plain: c.Plain}}
	left := 0
	for _, q := range a.siblings(e) {
		if q.State.Open() {
			left++
		}
	}
	if left == 0 {
		a.calls = true
		return start
	}
	return act.Ask{Title: "Call " + safe.Line(c.Tool) + " again all the same?", Label: "call again", NoLabel: "go back", Yes: start,
		Lines: []string{"The server wants " + kit.Count(left, "more page") + " visited first; the call may be refused once more."}}
}

// siblings are the questions that came together with this one: those of its
// task, or the pages of its call.
func (a *Ask) siblings(e *kit.Env) []taskmodel.Question {
	if a.q.Repeat.Tool == "" {
		return e.QuestionsOf(a.q.Task)
	}
	group, _ := path.Split(a.q.ID.ID)
	var out []taskmodel.Question
	for _, q := range e.Board.Questions() {
		if q.ID.Server == a.q.ID.Server && q.Repeat.Tool != "" && strings.HasPrefix(q.ID.ID, group) && q.State != taskmodel.QuestionWithdrawn {
			out = append(out, q)
		}
	}
	return out
}

// Keys implements kit.Screen.
func (a *Ask) Keys(e *kit.Env) []keymap.Binding { return a.model.Keys(e.Keys) }

// Status implements kit.Screen.
func (a *Ask) Status(e *kit.Env, w int) (left, right string) {
	th := e.Theme
	switch a.q.State {
	case taskmodel.QuestionSending:
		left = th.Text.Render("Sending the answer …")
	case taskmodel.QuestionAnswered:
		left = th.Dim.Render("Answered, waiting for the server.")
		if a.calls {
			left = th.Text.Render("Calling " + safe.Line(a.q.Repeat.Tool) + " again …")
		} else if a.q.Repeat.Tool != "" {
			left = th.Dim.Render("Agreed; nothing was sent to the server.")
		}
	case taskmodel.QuestionUnconfirmed:
		left = th.Warn.Render("Sent, outcome unknown: it is not sent again by itself.")
	}
	if sv, ok := e.Board.Server(a.q.ID.Server); ok && left == "" && a.q.State.Open() && sv.State != taskmodel.ServerReady {
		_, state, _ := th.OfServer(sv.State)
		if sv.RetryAt.After(e.Now) {
			state = "retry in " + e.Left(sv.RetryAt)
		}
		left = th.Warn.Render("No connection now, " + state + "; what you write is kept.")
	}
	if t, ok := e.Board.Task(a.q.Task); ok && a.q.State != taskmodel.QuestionWithdrawn {
		if at, ok := t.ExpiresAt(); ok && at.After(e.Now) {
			right = th.Dim.Render("task ends in " + e.LeftLong(at))
		}
	}
	return left, right
}

// View implements kit.Screen.
func (a *Ask) View(e *kit.Env, w, h int) string {
	th := e.Theme
	q := a.q
	l := kit.NewLine(w, nil)
	l.Add(th.Title, safe.Line(q.ID.Server)).Add(th.Text, " asks")
	switch {
	case q.Task.ID != "" && q.Receiver:
		l.Add(th.Dim, ", as task "+kit.ShortID(q.Task.ID)+" of ours")
	case q.Task.ID != "":
		name := safe.Line(e.ToolOf(q))
		if name == "" {
			name = "task"
		}
		l.Add(th.Text, ", for ").Add(th.Title, name).Add(th.Dim, " "+kit.ShortID(q.Task.ID))
	case q.Tool != "":
		l.Add(th.Text, ", for a call of ").Add(th.Title, safe.Line(q.Tool))
	}
	right := ""
	if n, of := a.place(e); of > 1 {
		right = fmt.Sprintf("%d of %d   ", n, of)
	}
	if q.Round > 1 {
		right += fmt.Sprintf("round %d   ", q.Round)
	}
	if q.State.Open() {
		right += e.Wait(q.AskedAt)
	}
	l.Right(th.Dim, right)
	out := l.String() + "\n"
	h--
	if h > 6 {
		out += "\n"
		h--
	}
	return out + a.model.View(th, w, h)
}

// place is which of its task's open questions this one is.
func (a *Ask) place(e *kit.Env) (n, of int) {
	for _, q := range a.siblings(e) {
		if !q.State.Open() && q.ID != a.q.ID && q.Repeat.Tool == "" {
			continue
		}
		of++
		if q.ID == a.q.ID {
			n = of
		}
	}
	return n, of
}
