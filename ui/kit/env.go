package kit

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/act"
	"mcptasks/ui/graphics"
	"mcptasks/ui/theme"
)

// An Env is what a screen needs to draw one frame and to take one message. The
// root owns it; screens keep no part of it.
type Env struct {
	Theme    *theme.Theme
	Keys     *keymap.Map
	Now      time.Time
	Board    *board.Version
	Readonly bool
	Paused   bool
	Canvas   *graphics.Canvas // how pictures are shown; nil: half blocks
	next     time.Time

	indexed *board.Version // the version that asked was made from
	asked   map[taskmodel.Key][]taskmodel.Question
}

// Begin starts a frame at an instant.
func (e *Env) Begin(now time.Time) {
	e.Now, e.next = now, time.Time{}
}

// Awaits reports whether a question's task still waits for its answer, after it
// was given.
func (e *Env) Awaits(q taskmodel.Question) bool {
	t, ok := e.Board.Task(q.Task)
	return ok && t.NeedsPerson()
}

// Until says that something drawn in this frame changes at t.
func (e *Env) Until(t time.Time) {
	if t.After(e.Now) && (e.next.IsZero() || t.Before(e.next)) {
		e.next = t
	}
}

// Next is when the frame drawn since Begin goes out of date by the clock alone;
// zero when nothing shown ticks.
func (e *Env) Next() time.Time { return e.next }

// QuestionsOf are the questions of a task, those that are open or being sent
// first, the oldest of them first. The slice is not to be written to.
func (e *Env) QuestionsOf(k taskmodel.Key) []taskmodel.Question {
	if e.indexed != e.Board {
		e.indexed, e.asked = e.Board, map[taskmodel.Key][]taskmodel.Question{}
		for _, q := range e.Board.Questions() {
			if q.Task.ID != "" {
				e.asked[q.Task] = append(e.asked[q.Task], q)
			}
		}
	}
	return e.asked[k]
}

// OpenQuestion is the oldest question of a task that can be answered now.
func (e *Env) OpenQuestion(k taskmodel.Key) (taskmodel.Question, bool) {
	for _, q := range e.QuestionsOf(k) {
		if q.State.Open() {
			return q, true
		}
	}
	return taskmodel.Question{}, false
}

// ToolOf is the tool of a question's task or call, "" when it is not known.
func (e *Env) ToolOf(q taskmodel.Question) string {
	if q.Tool == "" && q.Task.ID != "" {
		if t, ok := e.Board.Task(q.Task); ok {
			return t.Tool
		}
	}
	return q.Tool
}

// A Screen is a plain component: it takes messages and says what it wants, and
// it draws itself into lines. It is owned by the root's goroutine.
type Screen interface {
	// Context is where its keys are looked up.
	Context() keymap.Context
	// Update takes a key or another message that the root did not use itself.
	Update(e *Env, m tea.Msg) act.Action
	// View draws exactly h lines of at most w cells, joined by line breaks.
	View(e *Env, w, h int) string
	// Keys are those to show in the last line, the most useful first.
	Keys(e *Env) []keymap.Binding
	// Status is the left and the right part of the line above the keys.
	Status(e *Env, w int) (left, right string)
}

// A Refresher wants to know when the board has changed, before it draws.
type Refresher interface {
	Refresh(e *Env) act.Action
}

// A Typer says that letters are text now, so that no other key but ctrl+c
// reaches the root.
type Typer interface{ Typing() bool }

// A Worker has work left after a frame that is not to hold up the loop, as the
// layout of a large document. It is asked while it is in front; the message of
// the command comes back to its Update.
type Worker interface{ Work() tea.Cmd }
