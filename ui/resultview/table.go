package resultview

import (
	"errors"
	"slices"
	"strings"

	"mcptasks/ui/kit"
	"mcptasks/ui/resultview/blocks"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

const (
	tableColumns = 24  // at most
	tableSample  = 500 // rows that decide on the widths
	tableCell    = 40  // cells of the widest column
)

// A tableDoc shows a list of flat objects, a column for each member.
type tableDoc struct {
	raw   []byte
	rows  [][2]int // where each object is in raw
	cols  []string
	width []int
	num   []bool
}

// newTable makes a table of a list of flat objects, or of an object whose only
// list is one.
func newTable(raw []byte) (*tableDoc, bool) {
	s := blocks.Scanner{B: raw}
	switch s.Peek() {
	case '[':
		return tableOf(raw)
	case '{':
		var lists [][]byte
		err := s.Object(func(_, v []byte) error {
			if len(v) > 0 && v[0] == '[' {
				lists = append(lists, v)
			}
			return nil
		}, 0)
		if err == nil && len(lists) == 1 {
			return tableOf(lists[0])
		}
	}
	return nil, false
}

var errNoTable = errors.New("no list of flat objects")

func tableOf(raw []byte) (*tableDoc, bool) {
	t := &tableDoc{raw: raw}
	s := blocks.Scanner{B: raw}
	flat := true
	index := map[string]int{}
	numbers := map[int]bool{}
	err := s.Array(func(v []byte) error {
		if len(v) == 0 || v[0] != '{' || !flat || len(t.cols) > tableColumns {
			return errNoTable
		}
		to := s.I
		t.rows = append(t.rows, [2]int{to - len(v), to})
		if len(t.rows) > tableSample {
			return nil
		}
		o := blocks.Scanner{B: v}
		return o.Object(func(k, v []byte) error {
			name := blocks.Unquote(k)
			i, ok := index[name]
			if !ok {
				i = len(t.cols)
				index[name] = i
				t.cols = append(t.cols, name)
				t.width = append(t.width, safe.Width(safe.Line(name)))
				numbers[i] = true
			}
			if v[0] == '{' || v[0] == '[' {
				flat = flat && len(v) == 2
			}
			c := cell(v)
			t.width[i] = min(max(t.width[i], safe.Width(c)), tableCell)
			if c != "" && v[0] != '-' && (v[0] < '0' || v[0] > '9') {
				numbers[i] = false
			}
			return nil
		}, 0)
	}, 0)
	if err != nil || !flat || len(t.rows) == 0 || len(t.cols) == 0 || len(t.cols) > tableColumns {
		return nil, false
	}
	t.num = make([]bool, len(t.cols))
	for i := range t.cols {
		t.num[i] = numbers[i]
	}
	return t, true
}

// cell is a value as it stands in a table.
func cell(v []byte) string {
	switch {
	case v[0] == '"':
		if len(v) > 2000 {
			v = append(slices.Clone(v[:2000]), '"')
		}
		return safe.Line(blocks.Unquote(v))
	case string(v) == "null":
		return ""
	}
	return safe.Line(string(v))
}

func (t *tableDoc) Len() int { return len(t.rows) + 1 }

func (t *tableDoc) Spans(th *theme.Theme, i int) []kit.Span {
	var out []kit.Span
	put := func(c int, style theme.Style, text string) {
		fit := safe.Fit
		if t.num[c] {
			fit = safe.FitLeft
		}
		out = append(out, kit.Span{Style: style, Text: fit(text, t.width[c])}, kit.Span{Text: "  "})
	}
	if i == 0 {
		for c, name := range t.cols {
			put(c, th.Heading, safe.Line(name))
		}
		return out
	}
	values := make([][]byte, len(t.cols))
	o := blocks.Scanner{B: t.raw[t.rows[i-1][0]:t.rows[i-1][1]]}
	_ = o.Object(func(k, v []byte) error { // it was read before
		if c := slices.Index(t.cols, blocks.Unquote(k)); c >= 0 {
			values[c] = v
		}
		return nil
	}, 0)
	for c, v := range values {
		if v == nil {
			put(c, th.Faint, "")
			continue
		}
		style := th.Text
		if v[0] == 't' || v[0] == 'f' {
			style = th.Word
		}
		put(c, style, cell(v))
	}
	return out
}

func (t *tableDoc) Find(pattern string) []int {
	var out []int
	for i := range t.Len() {
		if _, _, ok := match(plainOf(t.Spans(&theme.Theme{}, i)), pattern); ok {
			out = append(out, i)
		}
	}
	return out
}

// looksJSON reports whether a text is worth trying as JSON.
func looksJSON(text string) bool {
	t := strings.TrimSpace(text)
	return len(t) > 1 && (t[0] == '{' && t[len(t)-1] == '}' || t[0] == '[' && t[len(t)-1] == ']')
}
