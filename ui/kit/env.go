package kit

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/act"
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
	next     time.Time
}

// Begin starts a frame at an instant.
func (e *Env) Begin(now time.Time) {
	e.Now, e.next = now, time.Time{}
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
