package kit

import (
	"strings"
	"unicode/utf8"

	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A Line is one row of the screen being put together. Texts given to it are
// sanitised already and hold no line break.
type Line struct {
	b    strings.Builder
	used int
	max  int
	base *theme.Style // of a selected row
}

// NewLine begins a row of at most w cells. base, when not nil, is the style of
// the whole row (a selection).
func NewLine(w int, base *theme.Style) *Line { return &Line{max: w, base: base} }

// Left is how many cells are free.
func (l *Line) Left() int { return l.max - l.used }

// Used is how many cells are taken.
func (l *Line) Used() int { return l.used }

func (l *Line) put(s theme.Style, text string, w int) {
	if l.base != nil {
		s = s.On(*l.base)
	}
	l.b.WriteString(s.Render(text))
	l.used += w
}

// Add appends text, cut where the row ends.
func (l *Line) Add(s theme.Style, text string) *Line {
	w := safe.Width(text)
	if w > l.Left() {
		text = safe.Truncate(text, l.Left(), safe.Ellipsis)
		w = safe.Width(text)
	}
	if w > 0 {
		l.put(s, text, w)
	}
	return l
}

// Cell appends text made exactly w cells wide, words left.
func (l *Line) Cell(s theme.Style, text string, w int) *Line {
	if w = min(w, l.Left()); w > 0 {
		l.put(s, safe.Fit(text, w), w)
	}
	return l
}

// Num appends text made exactly w cells wide, right aligned.
func (l *Line) Num(s theme.Style, text string, w int) *Line {
	if w = min(w, l.Left()); w > 0 {
		l.put(s, safe.FitLeft(text, w), w)
	}
	return l
}

// Styled appends text that carries its own styles and is w cells wide; it is
// left out where it does not fit.
func (l *Line) Styled(text string, w int) *Line {
	if w <= l.Left() {
		l.b.WriteString(text)
		l.used += w
	}
	return l
}

// Gap appends n spaces.
func (l *Line) Gap(n int) *Line {
	if n = min(n, l.Left()); n > 0 {
		l.put(theme.Style{}, strings.Repeat(" ", n), n)
	}
	return l
}

// To fills up to column x.
func (l *Line) To(x int) *Line { return l.Gap(x - l.used) }

// Right puts text at the right edge when there is room for it with two cells
// between; else it is left out.
func (l *Line) Right(s theme.Style, text string) *Line {
	w := safe.Width(text)
	if w == 0 || w+2 > l.Left() {
		return l
	}
	l.To(l.max - w)
	return l.Add(s, text)
}

// String ends the row; a selected one is filled to its width.
func (l *Line) String() string {
	if l.base != nil {
		l.To(l.max)
	}
	return l.b.String()
}

// Fill makes exactly h lines of a text, cutting or adding empty ones.
func Fill(lines []string, h int) string {
	if len(lines) > h {
		lines = lines[:max(h, 0)]
	}
	return strings.Join(lines, "\n") + strings.Repeat("\n", max(h-max(len(lines), 1), 0))
}

// Columns puts two blocks of h lines side by side: the left one w cells wide,
// gap between them.
func Columns(left, right string, w int, gap string, h int) string {
	ls, rs := strings.Split(left, "\n"), strings.Split(right, "\n")
	out := make([]string, h)
	at := func(s []string, i int) string {
		if i < len(s) {
			return s[i]
		}
		return ""
	}
	for i := range h {
		l := at(ls, i)
		out[i] = l + strings.Repeat(" ", max(w-cells(l), 0)) + gap + at(rs, i)
	}
	return strings.Join(out, "\n")
}

// narrow are signs of our own that take one cell; most rows have no others
// beside ASCII.
const narrow = "●◌✓✗–◍━─…▌·│▾▸•∞└→←"

// cells is safe.Width with a short way for rows that we have drawn.
func cells(s string) int {
	n := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == 0x1b && i+1 < len(s) && s[i+1] == '[':
			for i += 2; i < len(s) && (s[i] < 0x40 || s[i] > 0x7e); i++ {
			}
			i++
		case c >= 0x20 && c < 0x7f:
			n++
			i++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if !strings.ContainsRune(narrow, r) {
				return safe.Width(s)
			}
			n++
			i += size
		}
	}
	return n
}
