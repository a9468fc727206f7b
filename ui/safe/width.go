package safe

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/displaywidth"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Ellipsis is the tail that Fit cuts with.
const Ellipsis = "…"

// Width is the number of cells that s takes, by grapheme cluster. Our own
// styling in s counts nothing.
func Width(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// Truncate cuts s between clusters so that with tail it takes at most w cells;
// when it fits already it is given back as it is. Styling in s is kept.
func Truncate(s string, w int, tail string) string {
	if w <= 0 {
		return ""
	}
	if Width(s) <= w {
		return s
	}
	if t := Width(tail); t > w {
		tail = ""
	}
	return ansi.Truncate(s, w, tail)
}

// PadRight fills s with spaces on its right to w cells. It never cuts.
func PadRight(s string, w int) string {
	if n := w - Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// PadLeft fills s with spaces on its left to w cells. It never cuts.
func PadLeft(s string, w int) string {
	if n := w - Width(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// Fit makes s exactly w cells wide: cut with an ellipsis, or filled on its
// right. Its pictures are those of Even, so that what stands behind is in its
// column.
func Fit(s string, w int) string { return PadRight(Truncate(Even(s), w, Ellipsis), max(w, 0)) }

// FitLeft is Fit with the filling on the left, for numbers.
func FitLeft(s string, w int) string { return PadLeft(Truncate(Even(s), w, Ellipsis), max(w, 0)) }

// Even gives unstyled s with each picture that is composed of several (a family,
// a skin tone, a coloured sign, a key cap) drawn by its first one where terminals
// measure it differently: those with grapheme clusters (mode 2027) as one, the
// others by its parts, which pushes all that stands behind it out of its column.
// Scripts in which letters compose are left as they are: they would be spoilt.
func Even(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] < 0x80
	}
	if plain {
		return s
	}
	var out strings.Builder
	kept := 0 // of s, in out
	for g := graphemes.FromString(s); g.Next(); {
		c := g.Value()
		first, n := utf8.DecodeRuneInString(c)
		if len(c) == n || unicode.In(first, unicode.L, unicode.M) || ansi.StringWidth(c) == ansi.StringWidthWc(c) {
			continue
		}
		out.WriteString(s[kept : g.Start()+n])
		kept = g.End()
	}
	if kept == 0 {
		return s
	}
	out.WriteString(s[kept:])
	return out.String()
}

// Wrap breaks sanitised, unstyled text into lines of at most w cells (at least
// 1): at spaces where there are any, else between clusters. A cluster that is
// wider than w is shown as an ellipsis. The result is never empty.
func Wrap(s string, w int) []string {
	w = max(w, 1)
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		out = wrapLine(out, line, w)
	}
	return out
}

func wrapLine(out []string, line string, w int) []string {
	if Width(line) <= w {
		return append(out, line)
	}
	var cur strings.Builder
	used, begun := 0, false // cells in cur; whether cur holds anything worth a line
	emit := func() {
		out = append(out, cur.String())
		cur.Reset()
		used, begun = 0, false
	}
	for rest := line; rest != ""; {
		n := len(rest) - len(strings.TrimLeft(rest, " "))
		gap := rest[:n]
		rest = rest[n:]
		end := strings.IndexByte(rest, ' ')
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		rest = rest[end:]
		if word == "" {
			break // spaces at the end
		}
		ww := Width(word)
		if used+n+ww <= w {
			cur.WriteString(gap)
			cur.WriteString(word)
			used, begun = used+n+ww, true
			continue
		}
		if begun {
			emit()
		}
		if ww <= w {
			cur.WriteString(word)
			used, begun = ww, true
			continue
		}
		g := displaywidth.StringGraphemes(word)
		for g.Next() {
			cl, cw := g.Value(), g.Width()
			if cw > w {
				cl, cw = Ellipsis, 1
			}
			if used+cw > w {
				emit()
			}
			cur.WriteString(cl)
			used, begun = used+cw, true
		}
	}
	if begun || len(out) == 0 {
		emit()
	}
	return out
}
