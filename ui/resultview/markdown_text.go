package resultview

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A piece is text in one style; at a break the line ends.
type piece struct {
	text  string
	style theme.Style
	brk   bool
}

// inline gives the text inside a block in its styles.
func (m *markdown) inline(parent ast.Node, style theme.Style, out []piece) []piece {
	th := m.th
	say := func(s string, st theme.Style) { out = append(out, piece{text: s, style: st}) }
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			say(m.words(n.Segment.Value(m.src), n.IsRaw()), style)
			if n.HardLineBreak() {
				out = append(out, piece{brk: true})
			} else if n.SoftLineBreak() {
				say(" ", style)
			}
		case *ast.String:
			say(m.words(n.Value, n.IsRaw() || n.IsCode()), style)
		case *ast.CodeSpan:
			var b strings.Builder
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					b.Write(t.Segment.Value(m.src))
				}
			}
			say(strings.ReplaceAll(b.String(), "\n", " "), with(style, th.String))
		case *ast.Emphasis:
			in := style
			if n.Level > 1 {
				in.Bold = true
			} else {
				in.Italic = true
			}
			out = m.inline(n, in.On(theme.Style{}), out)
		case *east.Strikethrough:
			in := style
			in.Strike = true
			out = m.inline(n, in.On(theme.Style{}), out)
		case *east.TaskCheckBox:
			mark := "[ ] "
			if n.IsChecked {
				mark = "[✓] "
			}
			say(mark, style)
		case *ast.Link:
			out = m.link(n, string(n.Destination), style, out)
		case *ast.Image:
			say("image: ", th.Dim)
			out = m.link(n, string(n.Destination), style, out)
		case *ast.AutoLink:
			say(string(n.Label(m.src)), with(style, th.Link))
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				s := n.Segments.At(i)
				say(string(s.Value(m.src)), th.Dim)
			}
		default:
			out = m.inline(n, style, out)
		}
	}
	return out
}

// link shows a link's text and, where that is not the same, where it leads.
func (m *markdown) link(n ast.Node, to string, style theme.Style, out []piece) []piece {
	from := len(out)
	out = m.inline(n, with(style, m.th.Link), out)
	said := ""
	for _, p := range out[from:] {
		said += p.text
	}
	if to = strings.TrimSpace(to); to != "" && to != said && !strings.HasPrefix(to, "#") {
		if said != "" {
			out = append(out, piece{text: " ", style: style})
		}
		out = append(out, piece{text: to, style: m.th.Dim})
	}
	return out
}

// with is a style on top of another one.
func with(base, s theme.Style) theme.Style {
	s.Bold, s.Italic, s.Strike = s.Bold || base.Bold, s.Italic || base.Italic, s.Strike || base.Strike
	return s.On(theme.Style{})
}

// words resolves the escapes and entities of a text.
func (m *markdown) words(b []byte, raw bool) string {
	if raw {
		return string(b)
	}
	return html.UnescapeString(string(util.UnescapePunctuations(b)))
}

// flow fills lines of w cells with pieces; a word that is longer than a line is
// cut.
func flow(pieces []piece, w int) [][]kit.Span {
	var out [][]kit.Span
	var line []kit.Span
	used := 0
	put := func(text string, style theme.Style) {
		if n := len(line); n > 0 && line[n-1].Style == style {
			line[n-1].Text += text
		} else {
			line = append(line, kit.Span{Style: style, Text: text})
		}
		used += safe.Width(text)
	}
	end := func() {
		if n := len(line); n > 0 {
			line[n-1].Text = strings.TrimRightFunc(line[n-1].Text, unicode.IsSpace)
		}
		out = append(out, line)
		line, used = nil, 0
	}
	// A word may consist of pieces of several styles: it is not parted there.
	var word []piece
	width := 0
	flush := func() {
		if len(word) == 0 {
			return
		}
		if used > 0 && used+width > w {
			end()
		}
		for _, p := range word {
			for safe.Width(p.text) > w-used && safe.Width(p.text) > 0 {
				head := safe.Truncate(p.text, w-used, "")
				if head == "" {
					if used == 0 {
						break
					}
					end()
					continue
				}
				put(head, p.style)
				p.text = p.text[len(head):]
				end()
			}
			if p.text != "" {
				put(p.text, p.style)
			}
		}
		word, width = nil, 0
	}
	for _, p := range pieces {
		if p.brk {
			flush()
			end()
			continue
		}
		for _, part := range parts.FindAllString(p.text, -1) {
			if part[0] == ' ' || part[0] == '\t' || part[0] == '\n' {
				flush()
				if used > 0 && used < w {
					put(" ", p.style)
				}
				continue
			}
			word = append(word, piece{text: part, style: p.style})
			width += safe.Width(part)
		}
	}
	flush()
	if len(line) > 0 {
		end()
	}
	return out
}

// parts are words and the space between them.
var parts = regexp.MustCompile(`[ \t\n]+|[^ \t\n]+`)

func rawLine(s string, style theme.Style, in string) []kit.Span {
	s = strings.ReplaceAll(strings.TrimRight(s, "\r\n"), "\t", "    ")
	if s == "" {
		return nil
	}
	if in == "" {
		return []kit.Span{{Style: style, Text: s}}
	}
	return []kit.Span{{Text: in}, {Style: style, Text: s}}
}

// table lays a table out in the width at hand. Cells that are too long are
// broken into lines.
func (m *markdown) table(n *east.Table, w int) [][]kit.Span {
	var rows [][][]piece
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		var row [][]piece
		style := m.th.Text
		if _, head := r.(*east.TableHeader); head {
			style = m.th.Heading.WithBold()
		}
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			row = append(row, m.inline(c, style, nil))
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil
	}
	columns := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			if i < len(columns) {
				width := 0
				for _, p := range c {
					width += safe.Width(p.text)
				}
				columns[i] = max(columns[i], width, 1)
			}
		}
	}
	narrow(columns, w-3*(len(columns)-1)-2)
	bar := kit.Span{Style: m.th.Faint, Text: " │ "}
	var out [][]kit.Span
	for at, row := range rows {
		cells := make([][][]kit.Span, len(columns))
		height := 1
		for i := range columns {
			if i < len(row) {
				cells[i] = flow(row[i], columns[i])
			}
			height = max(height, len(cells[i]))
		}
		for y := range height {
			line := []kit.Span{{Text: " "}}
			for i, width := range columns {
				if i > 0 {
					line = append(line, bar)
				}
				used := 0
				var text []kit.Span
				if y < len(cells[i]) {
					text = cells[i][y]
				}
				for _, s := range text {
					used += safe.Width(s.Text)
				}
				left, right := 0, max(0, width-used)
				if i < len(n.Alignments) {
					switch n.Alignments[i] {
					case east.AlignRight:
						left, right = right, 0
					case east.AlignCenter:
						left, right = right/2, right-right/2
					}
				}
				line = append(append(line, kit.Span{Text: spaces(left)}), text...)
				if i < len(columns)-1 {
					line = append(line, kit.Span{Text: spaces(right)})
				}
			}
			out = append(out, line)
		}
		if at == 0 {
			var b strings.Builder
			for i, width := range columns {
				if i > 0 {
					b.WriteString("─┼─")
				} else {
					b.WriteString("─")
				}
				b.WriteString(rule(width))
			}
			out = append(out, []kit.Span{{Style: m.th.Faint, Text: b.String() + "─"}})
		}
	}
	return out
}

// narrow makes columns narrower until they fill no more than w cells: the widest
// ones first, none to less than three.
func narrow(columns []int, w int) {
	sum := 0
	for _, c := range columns {
		sum += c
	}
	for sum > w {
		most := 0
		for i, c := range columns {
			if c > columns[most] {
				most = i
			}
		}
		if columns[most] <= 3 {
			return
		}
		columns[most]--
		sum--
	}
}

func rule(n int) string   { return strings.Repeat("─", max(0, n)) }
func spaces(n int) string { return strings.Repeat(" ", max(0, n)) }
func itoa(n int) string   { return strconv.Itoa(n) }

// tokens of a line of JSON; what is none stays as it is.
var tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"\s*:|"(?:[^"\\]|\\.)*"?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b`)

// colourJSON gives a line of JSON in the colours of JSON.
func colourJSON(th *theme.Theme, line string) []kit.Span {
	var out []kit.Span
	at := 0
	for _, m := range tokens.FindAllStringIndex(line, -1) {
		if m[0] > at {
			out = append(out, kit.Span{Style: th.Dim, Text: line[at:m[0]]})
		}
		token, style := line[m[0]:m[1]], th.Number
		switch {
		case token[0] == '"' && token[len(token)-1] == ':':
			style = th.Name1
		case token[0] == '"':
			style = th.String
		case token[0] == 't' || token[0] == 'f' || token[0] == 'n':
			style = th.Word
		}
		out = append(out, kit.Span{Style: style, Text: token})
		at = m[1]
	}
	if at < len(line) {
		out = append(out, kit.Span{Style: th.Dim, Text: line[at:]})
	}
	return out
}
