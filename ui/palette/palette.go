// Package palette is the command line `:`: one line of text with history, and
// above it what it could become. What the commands are is the root's business,
// which hands in the completions.
//
// It imports kit, dialog, theme and safe.
package palette

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/ui/dialog"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// A Suggestion is a whole line and what it would do.
type Suggestion struct {
	Line string
	Help string
	Keys string // the key that does the same
}

// A Palette is the open command line.
type Palette struct {
	edit     kit.Edit
	history  *kit.History
	complete func(text string) []Suggestion
	shown    []Suggestion
	pick     int // -1: what is typed counts
}

// New opens the line with a text.
func New(text string, history *kit.History, complete func(string) []Suggestion) *Palette {
	p := &Palette{history: history, complete: complete, pick: -1}
	p.edit.Set(text)
	p.shown = complete(text)
	return p
}

// Update takes a message. done closes the line; line is then what was entered,
// "" when it was left.
func (p *Palette) Update(e *kit.Env, m tea.Msg) (done bool, line string) {
	if k, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, e.Keys.Leave.Binding):
			return true, ""
		case key.Matches(k, e.Keys.Accept.Binding):
			line = strings.TrimSpace(p.edit.Text())
			p.history.Add(line)
			return true, line
		case key.Matches(k, e.Keys.Complete.Binding), k.String() == "shift+tab":
			p.walk(k.String() != "shift+tab")
			return false, ""
		case key.Matches(k, e.Keys.HistoryUp.Binding):
			if s, ok := p.history.Older(p.edit.Text()); ok {
				p.set(s)
			}
			return false, ""
		case key.Matches(k, e.Keys.HistoryDown.Binding):
			if s, ok := p.history.Newer(); ok {
				p.set(s)
			}
			return false, ""
		case k.String() == "backspace" && p.edit.Text() == "":
			return true, ""
		}
	}
	if p.edit.Update(m) {
		p.pick = -1
		p.shown = p.complete(p.edit.Text())
	}
	return false, ""
}

func (p *Palette) set(s string) {
	p.edit.Set(s)
	p.pick = -1
	p.shown = p.complete(s)
}

func (p *Palette) walk(forward bool) {
	n := len(p.shown)
	if n == 0 {
		return
	}
	if n == 1 {
		p.set(p.shown[0].Line)
		return
	}
	switch {
	case forward:
		p.pick = (p.pick + 1) % n
	case p.pick <= 0:
		p.pick = n - 1
	default:
		p.pick--
	}
	p.edit.Set(p.shown[p.pick].Line)
}

// Line draws the line itself.
func (p *Palette) Line(e *kit.Env, w int) string {
	return e.Theme.Key.Render(":") + p.edit.View(e.Theme, w-1)
}

// Over draws the suggestions over the lowest lines of a body.
func (p *Palette) Over(e *kit.Env, body string, w, h int) string {
	th := e.Theme
	n := min(len(p.shown), 10, max(h-2, 0))
	if n == 0 {
		return body
	}
	from := max(0, p.pick-n+1)
	lw, hw := 0, 0
	for _, s := range p.shown[from : from+n] {
		lw = max(lw, safe.Width(safe.Line(s.Line)))
		hw = max(hw, safe.Width(s.Help))
	}
	lw = min(lw, w/2)
	hw = min(hw, w-lw-16)
	var block []string
	for i, s := range p.shown[from : from+n] {
		var base = &th.Selection
		if from+i != p.pick {
			base = nil
		}
		l := kit.NewLine(lw+hw+12, base)
		l.Gap(1).Cell(th.Text, safe.Line(s.Line), lw).Gap(2).Cell(th.Dim, s.Help, hw).Gap(1).Num(th.Faint, s.Keys, 7).Gap(1)
		block = append(block, th.Faint.Render("│")+l.String()+th.Faint.Render("│"))
	}
	return dialog.Overlay(body, block, 0, h-n, w)
}
