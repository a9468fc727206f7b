// Package textview is the screen of a plain text of ours, as the program's log:
// scrolled, searched, copied, at its end first.
//
// It imports kit, act, keymap and safe.
package textview

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// A View is the screen. It is owned by the root's goroutine.
type View struct {
	title string
	raw   string
	lines []string
	text  kit.Text
}

// New makes the screen; title is sanitised, the text need not be.
func New(title, text string) *View {
	v := &View{title: title, raw: text, lines: safe.Lines(text)}
	for len(v.lines) > 0 && v.lines[len(v.lines)-1] == "" {
		v.lines = v.lines[:len(v.lines)-1]
	}
	v.text.Top = len(v.lines)
	return v
}

// Context implements kit.Screen.
func (v *View) Context() keymap.Context {
	if v.Typing() {
		return keymap.Prompt
	}
	return keymap.Help
}

// Typing implements kit.Typer.
func (v *View) Typing() bool { return v.text.Search.Typing }

// Searching reports whether a search is on.
func (v *View) Searching() bool { return v.text.Search.Pattern != "" }

// Update implements kit.Screen.
func (v *View) Update(e *kit.Env, m tea.Msg) act.Action {
	if v.text.Move(e.Keys, m) {
		return nil
	}
	k, ok := m.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	switch {
	case key.Matches(k, e.Keys.Copy.Binding):
		return act.Copy{Text: v.raw, What: "the text"}
	case key.Matches(k, e.Keys.Pager.Binding):
		return act.Page{Text: v.raw, Name: "log.txt"}
	case key.Matches(k, e.Keys.Back.Binding):
		return act.Back{}
	}
	return nil
}

// Keys implements kit.Screen.
func (v *View) Keys(e *kit.Env) []keymap.Binding {
	if v.Typing() {
		return []keymap.Binding{e.Keys.Accept, e.Keys.Leave}
	}
	return []keymap.Binding{e.Keys.Search, e.Keys.PageUp, e.Keys.PageDown, e.Keys.Copy, e.Keys.Pager}
}

// Status implements kit.Screen.
func (v *View) Status(e *kit.Env, w int) (left, right string) {
	return e.Theme.Dim.Render(kit.Count(len(v.lines), "line")), e.Theme.Dim.Render(v.text.Status())
}

// View implements kit.Screen.
func (v *View) View(e *kit.Env, w, h int) string {
	th := e.Theme
	v.text.N = len(v.lines)
	v.text.Lines = func(i int) []kit.Span { return []kit.Span{{Style: th.Text, Text: v.lines[i]}} }
	if len(v.lines) == 0 {
		return kit.Fill([]string{kit.NewLine(w, nil).Add(th.Title, v.title).String(), "", "  " + th.Dim.Render("Nothing is in it yet.")}, h)
	}
	if h < 4 {
		return v.text.View(th, w, h)
	}
	return kit.NewLine(w, nil).Add(th.Title, v.title).String() + "\n\n" + v.text.View(th, w, h-2)
}
