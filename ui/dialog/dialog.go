// Package dialog holds what opens over a screen: confirmations that name what
// will happen, and one line of text that is asked for. A stack of them takes
// the keys first; one that opened by itself, not by a key, swallows keys until
// the person has paused, so that nothing is confirmed by somebody who was
// typing elsewhere.
//
// It imports kit, act, theme and safe. It does no I/O.
package dialog

import (
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"mcptasks/keymap"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// Grace is how long no key may have been pressed before a dialog that opened
// by itself listens.
const Grace = 700 * time.Millisecond

// A Dialog is one box.
type Dialog interface {
	// Update takes a message; done closes the dialog, and the action is carried
	// out after that.
	Update(e *kit.Env, m tea.Msg) (done bool, a act.Action)
	// Parts draws its inside, at most w cells wide.
	Parts(e *kit.Env, w int) Parts
	// Keys are shown in the last line.
	Keys(e *kit.Env) []keymap.Binding
	Context() keymap.Context
}

// A Stack is the open dialogs, the last on top.
type Stack struct {
	open []entry
}

type entry struct {
	d     Dialog
	alone bool // opened by itself
	quiet time.Time
}

// Push opens a dialog because of a key.
func (s *Stack) Push(d Dialog) { s.open = append(s.open, entry{d: d}) }

// PushAlone opens a dialog that no key asked for.
func (s *Stack) PushAlone(d Dialog, now time.Time) {
	s.open = append(s.open, entry{d: d, alone: true, quiet: now.Add(Grace)})
}

// Top is the dialog that takes the keys; nil when there is none.
func (s *Stack) Top() Dialog {
	if len(s.open) == 0 {
		return nil
	}
	return s.open[len(s.open)-1].d
}

// Close closes all.
func (s *Stack) Close() { s.open = nil }

// Update gives a message to the top dialog.
func (s *Stack) Update(e *kit.Env, now time.Time, m tea.Msg) act.Action {
	i := len(s.open) - 1
	t := &s.open[i]
	if _, ok := m.(tea.KeyMsg); ok && t.alone {
		if now.Before(t.quiet) {
			t.quiet = now.Add(Grace)
			return nil
		}
		t.alone = false
	}
	done, a := t.d.Update(e, m)
	if done {
		s.open = append(s.open[:i:i], s.open[i+1:]...)
	}
	return a
}

// Over draws the top dialog over a body of w×h cells.
func (s *Stack) Over(e *kit.Env, body string, w, h int) string {
	d := s.Top()
	if d == nil {
		return body
	}
	inner := min(w-6, 72)
	lines := d.Parts(e, inner).fit(max(h-2, 1), e.Theme)
	bw := 0
	for _, l := range lines {
		bw = max(bw, safe.Width(l))
	}
	th := e.Theme
	box := []string{th.Faint.Render("╭" + strings.Repeat("─", bw+4) + "╮")}
	for _, l := range lines {
		box = append(box, th.Faint.Render("│")+"  "+safe.PadRight(l, bw)+"  "+th.Faint.Render("│"))
	}
	box = append(box, th.Faint.Render("╰"+strings.Repeat("─", bw+4)+"╯"))
	return Overlay(body, box, (w-bw-6)/2, max((h-len(box))/3, 0), w)
}

// Parts are the lines of a dialog from top to bottom. Where there is no room for
// all, the rest is shortened first, then the words; the answer stays longest.
type Parts struct {
	Title  []string
	Words  []string
	Answer []string // where one types, or what can be chosen
	Rest   []string
}

// fit gives at most h lines.
func (p Parts) fit(h int, th *theme.Theme) []string {
	h -= len(p.Answer)
	h -= len(p.Title)
	words := p.Words
	if len(words) > max(h, 0) {
		words = slices.Clone(words[:max(h, 0)])
		if n := len(words); n > 0 {
			words[n-1] = th.Dim.Render(safe.Ellipsis)
		}
	}
	h -= len(words)
	out := slices.Concat(p.Title, words, p.Answer, p.Rest[:min(max(h, 0), len(p.Rest))])
	if h < 0 { // not even for the title
		out = out[-h:]
	}
	return out
}

// Overlay lays a block over a body at column x and line y.
func Overlay(body string, block []string, x, y, w int) string {
	lines := strings.Split(body, "\n")
	for i, b := range block {
		if y+i >= len(lines) {
			break
		}
		line := lines[y+i]
		left := safe.PadRight(ansi.Truncate(line, x, ""), x)
		right := ""
		if end := x + safe.Width(b); end < safe.Width(line) {
			right = ansi.TruncateLeft(line, end, "")
		}
		lines[y+i] = left + ansi.ResetStyle + b + ansi.ResetStyle + right
	}
	return strings.Join(lines, "\n")
}

// A Confirm asks before something is done.
type Confirm struct {
	act.Ask
}

// Context implements Dialog.
func (c Confirm) Context() keymap.Context { return keymap.Dialog }

// Update implements Dialog.
func (c Confirm) Update(e *kit.Env, m tea.Msg) (bool, act.Action) {
	k, ok := m.(tea.KeyPressMsg)
	if !ok {
		return false, nil
	}
	switch {
	case key.Matches(k, e.Keys.Yes.Binding):
		return true, c.Yes
	case key.Matches(k, e.Keys.No.Binding):
		return true, nil
	}
	for _, o := range c.Other {
		if k.String() == o.Key {
			return true, o.Do
		}
	}
	return false, nil
}

// Parts implements Dialog.
func (c Confirm) Parts(e *kit.Env, w int) Parts {
	th := e.Theme
	var p Parts
	for _, l := range safe.Wrap(c.Title, w) {
		p.Title = append(p.Title, th.Title.Render(l))
	}
	if len(c.Ask.Lines) > 0 {
		p.Words = append(p.Words, "")
	}
	for _, t := range c.Ask.Lines {
		for _, l := range safe.Wrap(t, w) {
			p.Words = append(p.Words, th.Dim.Render(l))
		}
	}
	p.Words = append(p.Words, "")
	p.Answer = c.choices(e, w)
	return p
}

func (c Confirm) choices(e *kit.Env, w int) []string {
	th := e.Theme
	label := c.Label
	if label == "" {
		label = "yes"
	}
	choice := func(k, text string) string { return th.Key.Render(k) + " " + th.Text.Render(text) }
	parts := []string{choice(e.Keys.Yes.Label(), label)}
	for _, o := range c.Other {
		parts = append(parts, choice(o.Key, o.Label))
	}
	no := c.NoLabel
	if no == "" {
		no = "no"
	}
	parts = append(parts, choice(e.Keys.No.Label(), no))
	line := strings.Join(parts, "    ")
	if safe.Width(line) > w {
		return parts
	}
	return []string{line}
}

// Keys implements Dialog.
func (c Confirm) Keys(e *kit.Env) []keymap.Binding {
	return []keymap.Binding{e.Keys.Yes, e.Keys.No}
}

// A Line asks for one line of text.
type Line struct {
	act.Line
	edit  kit.Edit
	pick  int
	shown []string
}

// NewLine makes the dialog.
func NewLine(a act.Line) *Line {
	l := &Line{Line: a, pick: -1}
	l.edit.Set(a.Text)
	return l
}

// Context implements Dialog.
func (l *Line) Context() keymap.Context { return keymap.Prompt }

// Update implements Dialog.
func (l *Line) Update(e *kit.Env, m tea.Msg) (bool, act.Action) {
	if k, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, e.Keys.Leave.Binding):
			return true, nil
		case key.Matches(k, e.Keys.Accept.Binding):
			return true, l.Done(l.edit.Text())
		case key.Matches(k, e.Keys.Complete.Binding):
			if l.Suggest == nil {
				return false, nil
			}
			if l.pick < 0 {
				l.shown = l.Suggest(l.edit.Text())
			}
			if len(l.shown) > 0 {
				l.pick = (l.pick + 1) % len(l.shown)
				l.edit.Set(l.shown[l.pick])
			}
			return false, nil
		}
	}
	if l.edit.Update(m) {
		l.pick = -1
	}
	return false, nil
}

// Parts implements Dialog.
func (l *Line) Parts(e *kit.Env, w int) Parts {
	th := e.Theme
	var p Parts
	for _, t := range safe.Wrap(l.Title, w) {
		p.Title = append(p.Title, th.Title.Render(t))
	}
	for _, line := range l.Line.Lines {
		for _, t := range safe.Wrap(line, w) {
			p.Words = append(p.Words, th.Dim.Render(t))
		}
	}
	p.Words = append(p.Words, "")
	p.Answer = []string{l.edit.View(th, max(min(w, 60), 8))}
	p.Rest = l.below(e, w)
	return p
}

// below are the ways in which the line could go on, and what takes it.
func (l *Line) below(e *kit.Env, w int) []string {
	th := e.Theme
	out := []string{""}
	if l.Suggest != nil {
		all := l.shown
		if l.pick < 0 {
			all = l.Suggest(l.edit.Text())
		}
		const most = 8
		from := max(min(l.pick-most+1, len(all)-most), 0)
		for i, s := range all[from:min(from+most, len(all))] {
			st := th.Dim
			if from+i == l.pick {
				st = th.Text
			}
			line := st.Render(safe.Truncate(safe.Line(s), w, safe.Ellipsis))
			if s == l.Mark && l.Mark != "" {
				line += th.Mark.Render("  " + l.Marked)
			}
			out = append(out, line)
		}
		if len(all) > 0 {
			out = append(out, "")
		}
	}
	return append(out, th.Key.Render(e.Keys.Accept.Label())+" "+th.Text.Render("take it")+"    "+
		th.Key.Render(e.Keys.Leave.Label())+" "+th.Text.Render("leave"))
}

// Keys implements Dialog.
func (l *Line) Keys(e *kit.Env) []keymap.Binding {
	return []keymap.Binding{e.Keys.Accept, e.Keys.Leave, e.Keys.Complete}
}
