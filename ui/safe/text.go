package safe

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// TabWidth is the distance of tab stops in Text.
const TabWidth = 4

// maxMarks bounds the combining marks on one base: more than any language
// needs, fewer than it takes to draw over the lines above.
const maxMarks = 6

// newline stands for a line break within Line.
const newline = '⏎'

// Line gives s as a single line. Escape sequences, bidirectional controls and
// zero-width characters are removed, other control characters are shown as
// their pictures (␀, ␈, ␍), a run of line breaks becomes one ⏎ and a tab a
// space. Line breaks at the ends are dropped.
func Line(s string) string {
	if plain(s, false) {
		return s
	}
	return clean(s, false)
}

// Text gives s with its line breaks (as \n) and with tabs expanded to stops of
// TabWidth; everything else is as in Line.
func Text(s string) string {
	if plain(s, true) {
		return s
	}
	return clean(s, true)
}

// Lines gives Text split at its line breaks; a line break at the end opens no
// further line.
func Lines(s string) []string {
	return strings.Split(strings.TrimSuffix(Text(s), "\n"), "\n")
}

// plain reports whether s is printable ASCII, the usual case, so that it costs
// no allocation.
func plain(s string, multi bool) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 && !(multi && c == '\n') || c >= 0x7f {
			return false
		}
	}
	return true
}

// A cleaner builds sanitised text.
type cleaner struct {
	out     strings.Builder
	multi   bool
	last    rune // last rune written, 0 at the start of a line
	marks   int  // combining marks since the last base
	line    int  // where the present line starts in out
	stop    int  // where out was last at a tab stop, with a space before it; 0: not yet
	pending bool // a line break is due before the next visible rune (single line only)
}

func clean(s string, multi bool) string {
	c := cleaner{multi: multi}
	c.out.Grow(len(s))
	var noEnd [2]bool // no string terminator follows: [with BEL, without]
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n <= 1 {
			// A lone byte, C1 or not, is no text; terminals in 8-bit mode would act on it.
			c.put(utf8.RuneError)
			i++
			continue
		}
		switch {
		case r == 0x1b || r >= 0x80 && r <= 0x9f && r != 0x85:
			if k := sequence(s[i:], &noEnd); k > 0 {
				i += k
				continue
			}
			if r == 0x1b {
				c.put('␛')
			} else {
				c.put(utf8.RuneError)
			}
		case r == '\r':
			if strings.HasPrefix(s[i+n:], "\n") {
				i += n
				continue // \r\n is one break
			}
			c.put('␍')
		case r == '\n', r == 0x85, r == 0x2028, r == 0x2029, r == '\v', r == '\f':
			c.breakLine()
		case r == '\t':
			c.tab()
		case r < 0x20:
			c.put(0x2400 + r)
		case r == 0x7f:
			c.put('␡')
		case r == zwj:
			next, _ := utf8.DecodeRuneInString(s[i+n:])
			if joins(c.last) && pictographic(next) {
				c.mark(r)
			}
		case r == 0xfe0e || r == 0xfe0f:
			if c.last > 0x2000 || c.last == '#' || c.last == '*' || c.last >= '0' && c.last <= '9' || c.last == 0xa9 || c.last == 0xae {
				if c.last != 0xfe0e && c.last != 0xfe0f {
					c.mark(r)
				}
			}
		case invisible(r):
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc):
			c.mark(r)
		case r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef:
			c.put(utf8.RuneError)
		default:
			c.put(r)
		}
		i += n
	}
	c.close()
	return c.out.String()
}

const zwj = 0x200d

// close ends a line. A rune that would take what follows into its cluster gets
// something of its own to take.
func (c *cleaner) close() {
	if c.last >= 0x300 && oneCluster(string(c.last)+"x") {
		c.out.WriteRune('◌')
	}
	c.last = 0
}

func oneCluster(s string) bool {
	g := graphemes.FromString(s)
	return g.Next() && len(g.Value()) == len(s)
}

func (c *cleaner) flush() {
	if c.pending {
		c.pending = false
		c.close()
		if c.out.Len() > 0 {
			c.out.WriteRune(newline)
		}
	}
}

// put writes a rune that stands by itself.
func (c *cleaner) put(r rune) {
	if (c.pending || c.last == 0) && r >= 0x300 && oneCluster("x"+string(r)) {
		c.mark(r) // a mark of a newer Unicode than unicode's tables
		return
	}
	c.flush()
	c.out.WriteRune(r)
	c.last, c.marks = r, 0
}

// mark writes a rune that belongs to the one before it. At the start of a line
// it gets a base of its own, else it would join what stands beside it on the
// screen.
func (c *cleaner) mark(r rune) {
	if c.pending || c.last == 0 {
		c.put('◌')
	}
	c.marks++
	if c.marks > maxMarks {
		return
	}
	c.out.WriteRune(r)
	c.last = r
}

func (c *cleaner) breakLine() {
	c.marks = 0
	if c.multi {
		c.close()
		c.out.WriteByte('\n')
		c.line, c.last = c.out.Len(), 0
		return
	}
	c.pending = true
}

func (c *cleaner) tab() {
	n := 1
	if c.multi {
		// Measured from the last stop, so that a line full of tabs costs no more
		// than its length; with the space before it, which a mark may stand on.
		at := 0
		if c.stop > c.line {
			at = Width(c.out.String()[c.stop-1:]) - 1
		} else {
			at = Width(c.out.String()[c.line:])
		}
		n = TabWidth - at%TabWidth
	}
	for range n {
		c.put(' ')
	}
	c.stop = c.out.Len()
}

// invisible reports whether r draws nothing or turns the direction of others.
func invisible(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case unicode.Is(unicode.Cf, r): // soft hyphen, zero-width, bidi, tags, BOM
		return true
	case r == 0x034f, r == 0x17b4, r == 0x17b5, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0:
		return true // grapheme joiner and the fillers
	case r >= 0x180b && r <= 0x180f, r >= 0xfe00 && r <= 0xfe0d, r >= 0xe0000 && r <= 0xe0fff:
		return true // variation selectors, tags, unassigned ignorables
	case r >= 0x2065 && r <= 0x2069, r >= 0xfff0 && r <= 0xfff8:
		return true
	}
	return false
}

// joins reports whether a joiner after r can make one picture of two.
func joins(r rune) bool {
	return pictographic(r) || r == 0xfe0f || r >= 0x1f3fb && r <= 0x1f3ff
}

// pictographic is a generous range of the runes that emoji are made of.
func pictographic(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff || r == 0x3030 || r == 0x303d
}

// sequence gives the length of the escape sequence at the start of s, or 0
// when there is none that is complete: then its text is shown, so that nothing
// is hidden by a sequence that no terminal would take as one.
func sequence(s string, noEnd *[2]bool) int {
	var kind byte
	i := 0
	if s[0] == 0x1b {
		if len(s) < 2 {
			return 0
		}
		kind, i = s[1], 2
	} else { // C1 in UTF-8: 0xc2 0x80+x stands for ESC 0x40+x
		kind, i = s[1]-0x40, 2
	}
	switch {
	case kind == '[':
		for ; i < len(s) && s[i] >= 0x30 && s[i] <= 0x3f; i++ {
		}
		for ; i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f; i++ {
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		return 0
	case kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_':
		bel := 1
		if kind == ']' {
			bel = 0
		}
		if noEnd[bel] {
			return 0
		}
		for ; i < len(s); i++ {
			switch {
			case s[i] == 0x07 && kind == ']':
				return i + 1
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
				return i + 2
			}
		}
		noEnd[bel] = true
		return 0
	case s[0] != 0x1b:
		return 2
	case kind >= 0x20 && kind <= 0x2f: // charset and the like
		for ; i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f; i++ {
		}
		if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
			return i + 1
		}
		return 0
	case kind >= 0x30 && kind <= 0x7e:
		return 2
	}
	return 0
}
