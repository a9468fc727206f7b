package formview

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/uax29/v2/graphemes"

	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// An area is text that is edited, of one line or of many. The cursor stands
// between grapheme clusters. The zero area is empty.
type area struct {
	text  string
	at    int // byte offset of the cursor
	multi bool
	mask  bool
	w     int // cells, as last drawn: what up and down go by
	top   int // first row shown
}

func newArea(text string, multi, mask bool) *area {
	a := &area{multi: multi, mask: mask, w: 40}
	a.set(text)
	return a
}

func (a *area) set(text string) {
	a.text = a.clean(text)
	a.at = len(a.text)
	a.top = 0
}

// clean makes pasted text fit the area; control bytes other than the tab stay
// out of what a person sends by accident.
func (a *area) clean(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && a.multi, r == '\t' && a.multi:
			return r
		case r == '\n', r == '\t':
			return ' '
		case r < 0x20 || r >= 0x7f && r <= 0x9f:
			return -1
		}
		return r
	}, s)
}

func (a *area) insert(s string) {
	s = a.clean(s)
	a.text = a.text[:a.at] + s + a.text[a.at:]
	a.at += len(s)
}

// prev and next are the cluster borders beside the cursor.
func (a *area) prev() int {
	from := strings.LastIndexByte(a.text[:a.at], '\n') + 1
	if from == a.at {
		return max(a.at-1, 0)
	}
	last := from
	g := graphemes.FromString(a.text[from:a.at])
	for g.Next() {
		last = from + g.Start()
	}
	return last
}

func (a *area) next() int {
	if a.at >= len(a.text) {
		return a.at
	}
	g := graphemes.FromString(a.text[a.at:])
	g.Next()
	return a.at + len(g.Value())
}

func (a *area) word(back bool) int {
	space := func(i int) bool { return a.text[i] == ' ' || a.text[i] == '\n' || a.text[i] == '\t' }
	i := a.at
	if back {
		for i > 0 && space(i-1) {
			i--
		}
		for i > 0 && !space(i-1) {
			i--
		}
		return i
	}
	for i < len(a.text) && space(i) {
		i++
	}
	for i < len(a.text) && !space(i) {
		i++
	}
	return i
}

func (a *area) cut(from, to int) {
	a.text = a.text[:from] + a.text[to:]
	a.at = from
}

// update takes a key or a paste and reports whether it used it. A move past
// the first or the last row is not used, so that it can leave the field.
func (a *area) update(m tea.Msg) bool {
	switch m := m.(type) {
	case tea.PasteMsg:
		a.insert(m.Content)
		return true
	case tea.KeyPressMsg:
		return a.key(m)
	}
	return false
}

func (a *area) key(m tea.KeyPressMsg) bool {
	switch m.String() {
	case "left", "ctrl+b":
		a.at = a.prev()
	case "right":
		a.at = a.next()
	case "home", "ctrl+a":
		rows := a.rows(a.w)
		a.at = rows[a.row(rows)].from
	case "end", "ctrl+e":
		rows := a.rows(a.w)
		a.at = rows[a.row(rows)].end(a.text)
	case "ctrl+home":
		a.at = 0
	case "ctrl+end":
		a.at = len(a.text)
	case "alt+b", "ctrl+left", "alt+left":
		a.at = a.word(true)
	case "alt+f", "ctrl+right", "alt+right":
		a.at = a.word(false)
	case "backspace", "ctrl+h":
		a.cut(a.prev(), a.at)
	case "delete":
		a.cut(a.at, a.next())
	case "ctrl+w", "alt+backspace":
		a.cut(a.word(true), a.at)
	case "ctrl+k":
		to := strings.IndexByte(a.text[a.at:], '\n')
		if to < 0 {
			to = len(a.text) - a.at
		}
		a.cut(a.at, a.at+max(to, min(1, len(a.text)-a.at)))
	case "up":
		return a.vertical(-1)
	case "down":
		return a.vertical(1)
	case "enter", "shift+enter", "ctrl+j":
		if !a.multi {
			return false
		}
		a.insert("\n")
	default:
		if m.Text == "" {
			return false
		}
		a.insert(m.Text)
	}
	return true
}

func (a *area) vertical(d int) bool {
	if !a.multi {
		return false
	}
	rows := a.rows(a.w)
	i := a.row(rows)
	if i+d < 0 || i+d >= len(rows) {
		return false
	}
	x := safe.Width(safe.Line(a.text[rows[i].from:a.at]))
	to := rows[i+d]
	a.at = to.from
	g := graphemes.FromString(a.text[to.from:to.end(a.text)])
	used := 0
	for g.Next() {
		w := cellWidth(g.Value())
		if used+w > x {
			break
		}
		used += w
		a.at = to.from + g.End()
	}
	return true
}

// A row is one line on the screen: a piece of the text without its line break.
type row struct{ from, to int }

// end is the last place of the cursor in the row: where a long line was broken
// that is before the row's last cluster, for after it the next row begins.
func (r row) end(text string) int {
	if r.to >= len(text) || text[r.to] == '\n' {
		return r.to
	}
	last := r.from
	g := graphemes.FromString(text[r.from:r.to])
	for g.Next() {
		last = r.from + g.Start()
	}
	return last
}

func cellWidth(cluster string) int {
	if cluster == "\t" {
		return 1
	}
	return safe.Width(safe.Line(cluster))
}

// rows breaks the text into rows of at most w cells, at spaces where it can.
func (a *area) rows(w int) []row {
	w = max(w, 2)
	var out []row
	start := 0
	for {
		end := strings.IndexByte(a.text[start:], '\n')
		if end < 0 {
			end = len(a.text)
		} else {
			end += start
		}
		if !a.multi {
			return append(out, row{0, len(a.text)})
		}
		from, used, space := start, 0, -1
		g := graphemes.FromString(a.text[start:end])
		for g.Next() {
			cw := cellWidth(g.Value())
			at := start + g.Start()
			if used+cw > w && at > from {
				cut := at
				if space > from {
					cut = space
				}
				out = append(out, row{from, cut})
				used = safe.Width(safe.Line(a.text[cut:at]))
				from, space = cut, -1
			}
			used += cw
			if g.Value() == " " {
				space = start + g.End()
			}
		}
		out = append(out, row{from, end})
		if end == len(a.text) {
			return out
		}
		start = end + 1
	}
}

// row is the index of the row that the cursor is in.
func (a *area) row(rows []row) int {
	for i := len(rows) - 1; i > 0; i-- {
		if a.at >= rows[i].from {
			return i
		}
	}
	return 0
}

// draw gives at most h rows of w cells, filled to w, scrolled so that the
// cursor is in view; cursor says whether it is shown.
func (a *area) draw(th *theme.Theme, style theme.Style, w, h int, cursor bool) []string {
	if !a.multi {
		return []string{a.drawLine(th, style, w, cursor)}
	}
	a.w = max(w-1, 1) // one cell for the cursor at a line's end
	rows := a.rows(a.w)
	h = max(min(h, len(rows)), 1)
	if cursor {
		at := a.row(rows)
		a.top = min(max(a.top, at-h+1), at)
	}
	a.top = max(min(a.top, len(rows)-h), 0)
	out := make([]string, 0, h)
	for i := a.top; i < a.top+h; i++ {
		r := rows[i]
		if cursor && i == a.row(rows) {
			out = append(out, a.cursorLine(th, style, r, w))
			continue
		}
		out = append(out, style.Render(fit(visible(a.text[r.from:r.to]), w)))
	}
	return out
}

func (a *area) cursorLine(th *theme.Theme, style theme.Style, r row, w int) string {
	under, after := " ", ""
	if a.at < r.to {
		n := a.next()
		under, after = visible(a.text[a.at:n]), visible(a.text[n:r.to])
	}
	l := kit.NewLine(w, nil)
	l.Add(style, visible(a.text[r.from:a.at])).Add(th.Cursor, under).Add(style, after)
	left := l.Left()
	return l.String() + style.Render(strings.Repeat(" ", left))
}

func (a *area) drawLine(th *theme.Theme, style theme.Style, w int, cursor bool) string {
	text, at := a.text, a.at
	if a.mask {
		text = strings.Repeat("•", len([]rune(a.text)))
		at = len("•") * len([]rune(a.text[:a.at]))
	}
	if !cursor {
		return style.Render(fit(visible(text), w))
	}
	b := area{text: text, at: at}
	before := visible(text[:at])
	if n := safe.Width(before) - (w - 2); n > 0 { // scrolled: the end before the cursor
		g := graphemes.FromString(text[:at])
		from, dropped := 0, 0
		for dropped < n+1 && g.Next() {
			dropped += cellWidth(g.Value())
			from = g.End()
		}
		before = safe.Ellipsis + visible(text[from:at])
	}
	under, after := " ", ""
	if at < len(text) {
		n := b.next()
		under, after = visible(text[at:n]), visible(text[n:])
	}
	l := kit.NewLine(w, nil)
	l.Add(style, before).Add(th.Cursor, under).Add(style, after)
	left := l.Left()
	return l.String() + style.Render(strings.Repeat(" ", left))
}

// visible is typed text as it is drawn: a tab is one space, and spaces at the
// ends stay.
func visible(s string) string { return safe.Line(s) }

// fit makes what is being written w cells wide. Unlike safe.Fit it leaves each
// sign as it is: the cursor stands between them.
func fit(s string, w int) string {
	return safe.PadRight(safe.Truncate(s, w, safe.Ellipsis), max(w, 0))
}
