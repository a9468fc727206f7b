package resultview

import (
	"bytes"
	"sort"
	"strings"
	"unicode"

	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A doc is a piece of the page, line by line. Lines are made when asked for.
type doc interface {
	// Len is how many lines it has.
	Len() int
	// Spans is line i, sanitised.
	Spans(th *theme.Theme, i int) []kit.Span
	// Find gives the lines that hold the pattern, ascending.
	Find(pattern string) []int
}

// maxLine is the most bytes of one line; a longer one goes on in the next, so
// that no line costs more than a glance.
const maxLine = 4096

// A textDoc is plain text of any size: only where its lines begin is known.
type textDoc struct {
	raw    string
	starts []int
	style  func(th *theme.Theme) theme.Style
}

func newText(raw string, style func(*theme.Theme) theme.Style) *textDoc {
	raw = strings.TrimRight(raw, "\r\n")
	d := &textDoc{raw: raw, style: style, starts: make([]int, 1, 1+len(raw)/64)}
	for from := 0; from < len(raw); {
		n := strings.IndexByte(raw[from:], '\n')
		end := from + n + 1
		if n < 0 {
			end = len(raw)
		}
		for end-from > maxLine+1 {
			from = cutAt(raw, from, end)
			d.starts = append(d.starts, from)
		}
		if end >= len(raw) {
			break
		}
		d.starts = append(d.starts, end)
		from = end
	}
	return d
}

// cutAt is where a line that is too long goes on: after a space when one is
// near, and never within a rune.
func cutAt(raw string, from, end int) int {
	at := min(from+maxLine, end)
	if sp := strings.LastIndexByte(raw[at-200:at], ' '); sp >= 0 {
		return at - 200 + sp + 1
	}
	for k := 0; k < 4 && at > from+1 && raw[at]&0xc0 == 0x80; k++ {
		at--
	}
	return at
}

func (d *textDoc) Len() int { return len(d.starts) }

func (d *textDoc) line(i int) string {
	end := len(d.raw)
	if i+1 < len(d.starts) {
		end = d.starts[i+1]
	}
	return strings.TrimRight(d.raw[d.starts[i]:end], "\r\n")
}

func (d *textDoc) Spans(th *theme.Theme, i int) []kit.Span {
	return []kit.Span{{Style: d.style(th), Text: strings.ReplaceAll(safe.Text(d.line(i)), "\n", " ")}}
}

func (d *textDoc) Find(pattern string) []int { return findIn([]byte(d.raw), d.starts, pattern) }

// findIn finds the lines of raw, beginning at starts, that hold the pattern;
// without capitals it ignores case.
func findIn(raw []byte, starts []int, pattern string) []int {
	if pattern == "" || len(starts) == 0 {
		return nil
	}
	p := []byte(pattern)
	if strings.IndexFunc(pattern, unicode.IsUpper) < 0 {
		raw = lower(raw)
	}
	var out []int
	for from := 0; from < len(raw); {
		n := bytes.Index(raw[from:], p)
		if n < 0 {
			break
		}
		i := sort.SearchInts(starts, from+n+1) - 1
		if i >= 0 && (len(out) == 0 || out[len(out)-1] != i) {
			out = append(out, i)
		}
		if i+1 >= len(starts) {
			break
		}
		from = max(starts[i+1], from+n+1)
	}
	return out
}

// lower is ToLower for ASCII letters: it keeps every offset.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// A lineDoc is a few lines that are made already.
type lineDoc struct {
	lines func(th *theme.Theme) [][]kit.Span
}

func (d lineDoc) all() [][]kit.Span                       { return d.lines(&theme.Theme{}) }
func (d lineDoc) Len() int                                { return len(d.all()) }
func (d lineDoc) Spans(th *theme.Theme, i int) []kit.Span { return d.lines(th)[i] }
func (d lineDoc) Find(pattern string) []int {
	var out []int
	for i, l := range d.all() {
		if _, _, ok := match(plainOf(l), pattern); ok {
			out = append(out, i)
		}
	}
	return out
}

// A styledDoc is text that has its styles already.
type styledDoc struct{ lines [][]kit.Span }

func (d styledDoc) Len() int { return len(d.lines) }

func (d styledDoc) Spans(_ *theme.Theme, i int) []kit.Span { return d.lines[i] }

func (d styledDoc) Find(pattern string) []int {
	var out []int
	for i, l := range d.lines {
		if _, _, ok := match(plainOf(l), pattern); ok {
			out = append(out, i)
		}
	}
	return out
}

func plainOf(spans []kit.Span) string {
	if len(spans) == 1 {
		return spans[0].Text
	}
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

func match(text, pattern string) (from, to int, ok bool) {
	if strings.IndexFunc(pattern, unicode.IsUpper) < 0 {
		text = string(lower([]byte(text)))
	}
	i := strings.Index(text, pattern)
	return i, i + len(pattern), i >= 0 && pattern != ""
}

// cut gives the piece of spans between two byte offsets of their text.
func cut(spans []kit.Span, from, to int) []kit.Span {
	var out []kit.Span
	at := 0
	for _, s := range spans {
		a, b := max(from, at), min(to, at+len(s.Text))
		if a < b {
			out = append(out, kit.Span{Style: s.Style, Text: s.Text[a-at : b-at]})
		}
		at += len(s.Text)
	}
	return out
}

// mark puts the matches of a pattern into another style.
func mark(spans []kit.Span, pattern string, style theme.Style) []kit.Span {
	text := plainOf(spans)
	var out []kit.Span
	pos := 0
	for pos < len(text) {
		from, to, ok := match(text[pos:], pattern)
		if !ok {
			break
		}
		out = append(out, cut(spans, pos, pos+from)...)
		for _, s := range cut(spans, pos+from, pos+to) {
			out = append(out, kit.Span{Style: style, Text: s.Text})
		}
		pos += to
	}
	return append(out, cut(spans, pos, len(text))...)
}
