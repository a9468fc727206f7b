package resultview

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"mcptasks/ui/kit"
	"mcptasks/ui/resultview/blocks"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// maxJSONLines bounds what is laid out; beyond it a document is shown as text.
const maxJSONLines = 3_000_000

// A jsonDoc is one JSON document laid out with one member a line. Only where
// its lines are in the bytes is kept.
type jsonDoc struct {
	raw    []byte
	lines  []jsonLine
	shown  []int32 // lines that no fold hides; nil: all
	folded map[int32]bool
	signs  bool // a sign before each line that can be folded
	part   bool // only the head of the document is laid out
}

type jsonLine struct {
	name, nameEnd int32 // the key with its quotes; equal: none
	from, to      int32 // the value; of a container its first byte
	end           int32 // of a container: the line of its last byte; 0: no container
	count         int32 // of a container: its entries
	indent        int16
	comma         bool
}

// errHead ends a layout of which only the head is wanted.
var errHead = errors.New("the head is laid out")

// newJSON lays a document out; what is no JSON, or too much of it, is an error.
func newJSON(raw []byte) (*jsonDoc, error) {
	d := &jsonDoc{raw: raw, folded: map[int32]bool{}}
	if len(raw) > 1<<31-2 {
		return nil, errors.New("too large")
	}
	n := bytes.Count(raw, []byte(",")) + 2*bytes.Count(raw, []byte("{")) + 2*bytes.Count(raw, []byte("[")) + 1
	d.lines = make([]jsonLine, 0, min(n, maxJSONLines, len(raw)/2+1))
	s := &blocks.Scanner{B: raw}
	if err := d.value(s, 0, 0, 0, maxJSONLines); err != nil {
		if errors.Is(err, errHead) {
			err = errors.New("too much to lay out")
		}
		return nil, err
	}
	if s.Peek() != 0 {
		return nil, errors.New("something follows the JSON")
	}
	return d, nil
}

// newHead lays out the first lines of a document that takes longer than a
// frame as a whole. What is no JSON is found out only as far as it goes.
func newHead(raw []byte, lines int) (*jsonDoc, error) {
	if len(raw) > 1<<31-2 {
		return nil, errors.New("too large")
	}
	d := &jsonDoc{raw: raw, folded: map[int32]bool{}, lines: make([]jsonLine, 0, lines+1)}
	err := d.value(&blocks.Scanner{B: raw}, 0, 0, 0, lines)
	if err != nil && !errors.Is(err, errHead) {
		return nil, err
	}
	d.part = err != nil
	return d, nil
}

func (d *jsonDoc) value(s *blocks.Scanner, name, nameEnd, indent, most int) error {
	if indent > 1000 {
		return errors.New("too much to lay out")
	}
	if len(d.lines) >= most {
		return errHead
	}
	c := s.Peek()
	at := len(d.lines)
	d.lines = append(d.lines, jsonLine{name: int32(name), nameEnd: int32(nameEnd), from: int32(s.I), indent: int16(indent)})
	if c != '{' && c != '[' {
		v, err := s.Value()
		d.lines[at].to = d.lines[at].from + int32(len(v))
		return err
	}
	d.lines[at].to = d.lines[at].from + 1
	last := c + 2
	s.I++
	n := 0
	for s.Peek() != last {
		if n > 0 {
			if s.Peek() != ',' {
				return errors.New("a comma is missing")
			}
			s.I++
			s.Space()
		}
		from, to := 0, 0
		if c == '{' {
			s.Space()
			from = s.I
			if _, err := s.String(); err != nil {
				return err
			}
			to = s.I
			if s.Peek() != ':' {
				return errors.New("a colon is missing")
			}
			s.I++
			s.Space()
		}
		i := len(d.lines)
		if i > at+1 {
			d.comma(at, i)
		}
		if err := d.value(s, from, to, indent+1, most); err != nil {
			return err
		}
		n++
	}
	s.I++
	d.lines[at].count = int32(n)
	if n == 0 {
		d.lines[at].to = int32(s.I)
		return nil
	}
	d.lines[at].end = int32(len(d.lines))
	d.lines = append(d.lines, jsonLine{from: int32(s.I - 1), to: int32(s.I), indent: int16(indent)})
	return nil
}

// comma marks the entry that ends before line i as followed by another.
func (d *jsonDoc) comma(parent, i int) {
	last := &d.lines[i-1]
	last.comma = true
	// the opening line of a container that ends there shows it when it is folded
	if c := d.raw[last.from]; (c == '}' || c == ']') && last.to-last.from == 1 {
		for k := i - 2; k > parent; k-- {
			if int(d.lines[k].end) == i-1 {
				d.lines[k].comma = true
				return
			}
			if d.lines[k].end == 0 && d.lines[k].indent <= last.indent {
				return
			}
		}
	}
}

func (d *jsonDoc) Len() int {
	if d.shown != nil {
		return len(d.shown)
	}
	return len(d.lines)
}

func (d *jsonDoc) at(i int) int {
	if d.shown != nil {
		return int(d.shown[i])
	}
	return i
}

func (d *jsonDoc) Spans(th *theme.Theme, i int) []kit.Span {
	n := d.at(i)
	l := d.lines[n]
	out := make([]kit.Span, 0, 6)
	if l.indent > 0 {
		out = append(out, kit.Span{Text: strings.Repeat(" ", 2*min(int(l.indent), 40))})
	}
	if d.signs {
		sign := "  "
		switch {
		case l.end != 0 && d.folded[int32(n)]:
			sign = "▸ "
		case l.end != 0:
			sign = "▾ "
		}
		out = append(out, kit.Span{Style: th.Faint, Text: sign})
	}
	if l.nameEnd > l.name {
		out = append(out, kit.Span{Style: th.Name1, Text: clip(d.raw[l.name:l.nameEnd], 200)}, kit.Span{Style: th.Dim, Text: ": "})
	}
	text := clip(d.raw[l.from:l.to], maxLine)
	style := th.Dim
	switch c := d.raw[l.from]; {
	case c == '"':
		style = th.String
	case c == '-' || c >= '0' && c <= '9':
		style = th.Number
	case c == 't' || c == 'f' || c == 'n':
		style = th.Word
	}
	if l.end != 0 && d.folded[int32(n)] {
		text += " … " + string(d.raw[l.from]+2)
	}
	out = append(out, kit.Span{Style: style, Text: text})
	if l.comma && (l.end == 0 || d.folded[int32(n)]) {
		out = append(out, kit.Span{Style: th.Dim, Text: ","})
	}
	if l.end != 0 && d.folded[int32(n)] {
		noun := "item"
		if d.raw[l.from] == '{' {
			noun = "member"
		}
		out = append(out, kit.Span{Style: th.Faint, Text: "  " + kit.Count(int(l.count), noun)})
	}
	return out
}

// clip is the head of a piece of JSON, sanitised. Strings are shown as they
// are escaped on the wire, so that nothing in them is invisible.
func clip(b []byte, n int) string {
	if len(b) <= n {
		return safe.Line(string(b))
	}
	return safe.Line(strings.ToValidUTF8(string(b[:n]), "")) + safe.Ellipsis + " (" + blocks.Bytes(int64(len(b))) + ")"
}

func (d *jsonDoc) Find(pattern string) []int {
	starts := make([]int, len(d.lines))
	for i, l := range d.lines {
		starts[i] = int(l.from)
		if l.nameEnd > l.name {
			starts[i] = int(l.name)
		}
	}
	hits := findIn(d.raw, starts, pattern)
	if d.shown == nil {
		return hits
	}
	var out []int
	k := 0
	for i, n := range d.shown {
		for k < len(hits) && hits[k] < int(n) {
			k++
		}
		if k < len(hits) && hits[k] == int(n) {
			out = append(out, i)
		}
	}
	return out
}

// fold closes or opens the container at shown line i (or the one around it)
// and gives the shown line to be at afterwards.
func (d *jsonDoc) fold(i int, on bool) int {
	if i < 0 || i >= d.Len() {
		return i
	}
	n := d.opener(d.at(i))
	if on && (d.lines[n].end == 0 || d.folded[int32(n)]) {
		n = d.parent(n)
	}
	if n < 0 || d.lines[n].end == 0 {
		return i
	}
	if on {
		d.folded[int32(n)] = true
	} else {
		delete(d.folded, int32(n))
	}
	d.layOut()
	return d.find(n)
}

// foldAll closes all below the first level; when that is closed it opens
// everything.
func (d *jsonDoc) foldAll(i int) int {
	n := 0
	if i >= 0 && i < d.Len() {
		n = d.at(i)
	}
	before := len(d.folded)
	for k, l := range d.lines {
		if l.end != 0 && l.indent == 1 {
			d.folded[int32(k)] = true
		}
	}
	if len(d.folded) == before {
		d.folded = map[int32]bool{}
	} else {
		for n > 0 && d.lines[n].indent > 1 {
			n = d.parent(n)
		}
	}
	d.layOut()
	return d.find(max(n, 0))
}

func (d *jsonDoc) layOut() {
	if len(d.folded) == 0 {
		d.shown = nil
		return
	}
	d.shown = d.shown[:0]
	if d.shown == nil {
		d.shown = []int32{}
	}
	for i := int32(0); int(i) < len(d.lines); i++ {
		d.shown = append(d.shown, i)
		if d.folded[i] {
			i = d.lines[i].end
		}
	}
}

// find is where line n is shown, or what hides it.
func (d *jsonDoc) find(n int) int {
	if d.shown == nil {
		return n
	}
	lo, hi := 0, len(d.shown)
	for lo < hi {
		mid := (lo + hi) / 2
		if int(d.shown[mid]) <= n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return max(lo-1, 0)
}

// opener is the line that begins the container which ends on line n; of any
// other line it is that line.
func (d *jsonDoc) opener(n int) int {
	if c := d.raw[d.lines[n].from]; c != '}' && c != ']' {
		return n
	}
	for k := n - 1; k >= 0; k-- {
		if int(d.lines[k].end) == n {
			return k
		}
	}
	return n
}

// parent is the line of the container around line n, -1 for the outermost.
func (d *jsonDoc) parent(n int) int {
	indent := d.lines[n].indent
	if indent == 0 {
		return -1
	}
	for k := n - 1; k >= 0; k-- {
		if l := d.lines[k]; l.indent < indent && l.to-l.from == 1 && (d.raw[l.from] == '{' || d.raw[l.from] == '[') {
			return k
		}
	}
	return -1
}

// path is the place of shown line i: $.a[2]["odd name"].
func (d *jsonDoc) path(i int) string {
	if i < 0 || i >= d.Len() {
		return ""
	}
	var parts []string
	for n := d.at(i); n > 0; {
		l := d.lines[n]
		if k := d.opener(n); k != n { // an end stands for its beginning
			n = k
			continue
		}
		p := d.parent(n)
		if p < 0 {
			break
		}
		if l.nameEnd > l.name {
			parts = append(parts, member(d.raw[l.name:l.nameEnd]))
		} else {
			index := 0
			for k := p + 1; k < n; k++ {
				if e := int(d.lines[k].end); e != 0 {
					k = e
				}
				index++
			}
			parts = append(parts, "["+strconv.Itoa(index)+"]")
		}
		n = p
	}
	var b strings.Builder
	b.WriteByte('$')
	for k := len(parts) - 1; k >= 0; k-- {
		b.WriteString(parts[k])
	}
	return b.String()
}

func member(quoted []byte) string {
	name := blocks.Unquote(quoted)
	if name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0 {
		return "." + name
	}
	return "[" + safe.Line(string(quoted)) + "]"
}

// valueAt is the JSON of the value on shown line i, as it came.
func (d *jsonDoc) valueAt(i int) []byte {
	l := d.lines[d.opener(d.at(i))]
	if l.end != 0 {
		return d.raw[l.from:d.lines[l.end].to]
	}
	return d.raw[l.from:l.to]
}
