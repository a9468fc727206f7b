package kit

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// An Edit is one line of text that is typed. The zero Edit is empty.
type Edit struct {
	text []rune
	at   int
}

// Set replaces the text and puts the cursor at its end.
func (d *Edit) Set(s string) {
	d.text = []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s))
	d.at = len(d.text)
}

// Text is what was typed.
func (d *Edit) Text() string { return string(d.text) }

// Before is the text left of the cursor.
func (d *Edit) Before() string { return string(d.text[:d.at]) }

// Replace puts s in place of the last n runes before the cursor.
func (d *Edit) Replace(n int, s string) {
	n = min(n, d.at)
	r := []rune(s)
	d.text = slices.Concat(d.text[:d.at-n], r, d.text[d.at:])
	d.at += len(r) - n
}

// Update takes a key or a paste; it reports whether it was one for a line.
func (d *Edit) Update(m tea.Msg) bool {
	switch m := m.(type) {
	case tea.PasteMsg:
		var in Edit
		in.Set(strings.TrimSpace(m.Content))
		d.Replace(0, in.Text())
		return true
	case tea.KeyPressMsg:
		return d.key(m)
	}
	return false
}

func (d *Edit) key(m tea.KeyPressMsg) bool {
	switch m.String() {
	case "left":
		d.at = max(d.at-1, 0)
	case "right":
		d.at = min(d.at+1, len(d.text))
	case "home", "ctrl+a":
		d.at = 0
	case "end", "ctrl+e":
		d.at = len(d.text)
	case "alt+b", "ctrl+left", "alt+left":
		d.at = d.word()
	case "alt+f", "ctrl+right", "alt+right":
		for d.at < len(d.text) && d.text[d.at] == ' ' {
			d.at++
		}
		for d.at < len(d.text) && d.text[d.at] != ' ' {
			d.at++
		}
	case "backspace", "ctrl+h":
		d.cut(max(d.at-1, 0), d.at)
	case "delete":
		d.cut(d.at, min(d.at+1, len(d.text)))
	case "ctrl+w", "alt+backspace":
		d.cut(d.word(), d.at)
	case "ctrl+u":
		d.cut(0, d.at)
	case "ctrl+k":
		d.cut(d.at, len(d.text))
	default:
		if m.Text == "" {
			return false
		}
		d.Replace(0, m.Text)
	}
	return true
}

func (d *Edit) word() int {
	i := d.at
	for i > 0 && d.text[i-1] == ' ' {
		i--
	}
	for i > 0 && d.text[i-1] != ' ' {
		i--
	}
	return i
}

func (d *Edit) cut(from, to int) {
	d.text = slices.Delete(slices.Clone(d.text), from, to)
	d.at = from
}

// View draws the text in w cells with the cell under the cursor, scrolled so
// that the cursor is in view.
func (d *Edit) View(th *theme.Theme, w int) string {
	if w < 2 {
		return strings.Repeat(" ", max(w, 0))
	}
	before, under, after := safe.Line(string(d.text[:d.at])), " ", ""
	if strings.HasSuffix(string(d.text[:d.at]), " ") && !strings.HasSuffix(before, " ") {
		before += " "
	}
	if d.at < len(d.text) {
		under = safe.Line(string(d.text[d.at : d.at+1]))
		if under == "" {
			under = " "
		}
		after = safe.Line(string(d.text[d.at+1:]))
	}
	uw := safe.Width(under)
	if bw := safe.Width(before); bw+uw > w {
		before = ansi.TruncateLeft(before, bw+uw-w+1, "…")
	}
	l := NewLine(w, nil)
	l.Add(th.Text, before).Add(th.Cursor, under).Add(th.Text, after)
	l.To(w)
	return l.String()
}

// A History is the lines that were entered before, newest last.
type History struct {
	lines []string
	at    int // len(lines): the line being typed
	draft string
}

// Add keeps a line; the same line is kept once.
func (h *History) Add(s string) {
	if s = strings.TrimSpace(s); s != "" {
		h.lines = append(slices.DeleteFunc(h.lines, func(l string) bool { return l == s }), s)
		if len(h.lines) > 200 {
			h.lines = h.lines[len(h.lines)-200:]
		}
	}
	h.at = len(h.lines)
}

// Older and Newer walk through the history; typed is what stands in the line
// now.
func (h *History) Older(typed string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.lines) {
		h.draft = typed
	}
	h.at--
	return h.lines[h.at], true
}

// Newer is the way back; past the newest stands what was being typed.
func (h *History) Newer() (string, bool) {
	if h.at >= len(h.lines) {
		return "", false
	}
	h.at++
	if h.at == len(h.lines) {
		return h.draft, true
	}
	return h.lines[h.at], true
}

// Lines gives the history, oldest first.
func (h *History) Lines() []string { return h.lines }
