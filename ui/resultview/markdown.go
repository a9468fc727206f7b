package resultview

import (
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// maxMarkdown is the longest text that is rendered by itself, in bytes.
const maxMarkdown = 32 << 10

var markdownSigns = regexp.MustCompile("(?m)^(#{1,6} \\S|[-*+] \\S|\\d+\\. \\S|```|> \\S|\\|.*\\|.*\\|)|\\*\\*\\S[^*]*\\*\\*|`[^`\n]+`|\\[[^\\]\n]+\\]\\([^)\n]+\\)")

// looksMarkdown reports whether a text gains by being rendered.
func looksMarkdown(text string) bool {
	return len(text) <= maxMarkdown && markdownSigns.MatchString(text)
}

// markdownParser reads CommonMark with tables, struck-out text and check boxes.
func markdownParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(extension.NewStrikethroughParser(), 500))...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200))...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// renderMarkdown renders a text w cells wide, a line as its pieces. The text is
// sanitised before, and so is each piece after (an entity may stand for a
// control): no link of a server's reaches the terminal as one.
func renderMarkdown(text string, th *theme.Theme, w int) [][]kit.Span {
	src := []byte(safe.Text(text))
	m := &markdown{src: src, th: th}
	lines := m.blocks(markdownParser().Parse(gtext.NewReader(src)), max(w, 10), 0)
	for _, l := range lines {
		for i := range l {
			l[i].Text = safe.Line(l[i].Text)
		}
	}
	return lines
}

// A markdown is one text that is being rendered.
type markdown struct {
	src []byte
	th  *theme.Theme
}

// maxNested is how deeply quotes and lists are moved to the right; what is
// nested more deeply stands under the last of them.
const maxNested = 12

// blocks lays out what is inside a block, with an empty line between its parts
// where the text has them apart.
func (m *markdown) blocks(parent ast.Node, w, depth int) [][]kit.Span {
	var out [][]kit.Span
	tight := false
	if l, ok := parent.(*ast.ListItem); ok {
		list, is := l.Parent().(*ast.List)
		tight = is && list.IsTight
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := m.block(n, w, depth)
		if len(out) > 0 && len(lines) > 0 && !tight {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

func (m *markdown) block(n ast.Node, w, depth int) [][]kit.Span {
	th := m.th
	switch n := n.(type) {
	case *ast.Heading:
		style := th.Title.WithBold()
		var mark []piece
		if n.Level > 1 {
			mark = []piece{{text: "######"[:n.Level] + " ", style: style}}
		}
		return flow(append(mark, m.inline(n, style, nil)...), w)
	case *ast.Blockquote:
		return m.under(n, w, depth, kit.Span{Style: th.Faint, Text: "│ "}, kit.Span{Style: th.Faint, Text: "│ "})
	case *ast.List:
		return m.list(n, w, depth)
	case *ast.ThematicBreak:
		return [][]kit.Span{{{Style: th.Faint, Text: rule(min(w, 24))}}}
	case *ast.FencedCodeBlock:
		return m.code(n, string(n.Language(m.src)))
	case *ast.CodeBlock:
		return m.code(n, "")
	case *ast.HTMLBlock:
		lines := m.raw(n, th.Dim, "")
		if n.HasClosure() {
			lines = append(lines, rawLine(string(n.ClosureLine.Value(m.src)), th.Dim, ""))
		}
		return lines
	case *east.Table:
		return m.table(n, w)
	}
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
		if depth > maxNested {
			return nil
		}
		return m.blocks(n, w, depth+1)
	}
	return flow(m.inline(n, th.Text, nil), w)
}

// under lays out a block to the right of a mark; rest stands before its further
// lines.
func (m *markdown) under(n ast.Node, w, depth int, first, rest kit.Span) [][]kit.Span {
	in := safe.Width(first.Text)
	if depth >= maxNested || w-in < 10 {
		in = 0
	}
	lines := m.blocks(n, w-in, min(depth+1, maxNested))
	if len(lines) == 0 {
		lines = [][]kit.Span{nil}
	}
	for i, l := range lines {
		mark := rest
		if i == 0 {
			mark = first
		}
		if in > 0 || i == 0 {
			lines[i] = append([]kit.Span{mark}, l...)
		}
	}
	return lines
}

func (m *markdown) list(n *ast.List, w, depth int) [][]kit.Span {
	var out [][]kit.Span
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = itoa(number) + ". "
			number++
		}
		if !n.IsTight && len(out) > 0 {
			out = append(out, nil)
		}
		out = append(out, m.under(item, w, depth, kit.Span{Style: m.th.Dim, Text: mark}, kit.Span{Text: spaces(safe.Width(mark))})...)
	}
	return out
}

// code shows a block of code as it is, two cells to the right; JSON is coloured.
func (m *markdown) code(n ast.Node, language string) [][]kit.Span {
	if language == "json" || language == "jsonc" || language == "jsonl" {
		var out [][]kit.Span
		for _, l := range m.raw(n, m.th.Text, "") {
			line := []kit.Span{{Text: "  "}}
			for _, s := range l {
				line = append(line, colourJSON(m.th, s.Text)...)
			}
			out = append(out, line)
		}
		return out
	}
	return m.raw(n, m.th.Dim, "  ")
}

func (m *markdown) raw(n ast.Node, style theme.Style, in string) [][]kit.Span {
	var out [][]kit.Span
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		out = append(out, rawLine(string(s.Value(m.src)), style, in))
	}
	return out
}
