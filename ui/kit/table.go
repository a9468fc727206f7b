package kit

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/ui/theme"
)

// A Table shows a window of any number of rows. It knows nothing of them but
// their count: whoever owns it maps rows to things and keeps the selection by
// key, moving Cursor when rows come, go or move. The cost of a frame follows
// the height of the window.
type Table struct {
	Cursor int
	Top    int
	height int
}

// Move takes a moving key; it reports whether it was one.
func (t *Table) Move(k *keymap.Map, m tea.KeyMsg, n int) bool {
	page := max(t.height-1, 1)
	switch {
	case key.Matches(m, k.Up.Binding):
		t.Cursor--
	case key.Matches(m, k.Down.Binding):
		t.Cursor++
	case key.Matches(m, k.PageUp.Binding):
		t.Cursor -= page
		t.Top -= page
	case key.Matches(m, k.PageDown.Binding):
		t.Cursor += page
		t.Top += page
	case key.Matches(m, k.Top.Binding):
		t.Cursor = 0
	case key.Matches(m, k.Bottom.Binding):
		t.Cursor = n - 1
	default:
		return false
	}
	t.clamp(n)
	return true
}

// Wheel scrolls by a mouse wheel.
func (t *Table) Wheel(lines, n int) {
	t.Cursor += lines
	t.Top += lines
	t.clamp(n)
}

// Follow moves the cursor to row i because its thing moved there. Somebody who
// is at the head of the list stays there; else the row keeps its place on the
// screen.
func (t *Table) Follow(i, n int) {
	if t.Top > 0 {
		t.Top += i - t.Cursor
	}
	t.Cursor = i
	t.clamp(n)
}

func (t *Table) clamp(n int) {
	t.Cursor = max(min(t.Cursor, n-1), 0)
	h := max(t.height, 1)
	t.Top = max(min(t.Top, n-h), 0)
	if t.Cursor < t.Top {
		t.Top = t.Cursor
	}
	if t.Cursor >= t.Top+h {
		t.Top = t.Cursor - h + 1
	}
}

// Window prepares a frame of h rows and says which rows are on it.
func (t *Table) Window(n, h int) (from, to int) {
	t.height = h
	t.clamp(n)
	return t.Top, min(t.Top+h, n)
}

// Height is the number of rows of the last frame.
func (t *Table) Height() int { return t.height }

// Draw draws h lines of w cells: row(i, base) appends to the line; base is the
// selection's style on the selected row. Each line begins with the bar ▌ or a
// space, and a cell for a mark.
func (t *Table) Draw(th *theme.Theme, n, w, h int, row func(l *Line, i int)) string {
	from, to := t.Window(n, h)
	var b strings.Builder
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte('\n')
		}
		var base *theme.Style
		if i == t.Cursor {
			base = &th.Selection
		}
		l := NewLine(w, base)
		if base != nil {
			l.Add(th.Status.Working, "▌")
		} else {
			l.Gap(1)
		}
		row(l, i)
		b.WriteString(l.String())
	}
	lines := max(to-from, 1)
	b.WriteString(strings.Repeat("\n", max(h-lines, 0)))
	return b.String()
}
