package resultview

import (
	"strings"
	"testing"

	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

func plainLines(t *testing.T, text string, w int) []string {
	t.Helper()
	th, _ := theme.Named("dark", true)
	var out []string
	for _, l := range renderMarkdown(text, &th, w) {
		out = append(out, strings.TrimRight(plainOf(l), " "))
	}
	return out
}

func TestMarkdown(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		w    int
		want string
	}{
		"headings and paragraphs": {"# One\n\nsome *words* of **weight**\nand ~~no~~ `code`\n\n## Two\nx", 80,
			"One\n\nsome words of weight and no code\n\n## Two\n\nx"},
		"words are wrapped": {"aaa bbb **ccc**ddd eee", 10, "aaa bbb\ncccddd eee"},
		"a word too long":   {"aaa 0123456789abcdef b", 10, "aaa\n0123456789\nabcdef b"},
		"a hard break":      {"one  \ntwo", 80, "one\ntwo"},
		"lists":             {"- a\n- b\n  - c\n    d\n\n3. x\n4. y", 80, "• a\n• b\n  • c d\n\n3. x\n4. y"},
		"loose lists":       {"- a\n\n- b", 80, "• a\n\n• b"},
		"check boxes":       {"- [x] done\n- [ ] open", 80, "• [✓] done\n• [ ] open"},
		"a quote":           {"> aaa bbb ccc ddd", 12, "│ aaa bbb\n│ ccc ddd"},
		"code":              {"```go\nif x {\n\treturn\n}\n```", 80, "  if x {\n      return\n  }"},
		"JSON":              {"```json\n{\"a\": [1, true, \"x\"]}\n```", 80, "  {\"a\": [1, true, \"x\"]}"},
		"links":             {"[here](http://a.example/b) <http://c.example> ![pic](d.png) [http://e.example](http://e.example)", 200, "here http://a.example/b http://c.example image: pic d.png http://e.example"},
		"escapes":           {`\*not\* &amp; &lt;b&gt; a \| b`, 80, "*not* & <b> a | b"},
		"HTML":              {"<b>x</b>\n\n<div>\ny\n</div>", 80, "<b>x</b>\n\n<div>\ny\n</div>"},
		"a rule":            {"a\n\n---\n\nb", 80, "a\n\n────────────────────────\n\nb"},
		"a table":           {"| stage | s |\n|---|--:|\n| compile | 31 |\n| `link` | 2 |", 80, " stage   │  s\n─────────┼────\n compile │ 31\n link    │  2"},
		"a narrow table":    {"| a | b |\n|---|---|\n| one two three | four five |", 20, " a       │ b\n─────────┼──────────\n one two │ four\n three   │ five"},
		"nothing":           {"", 80, ""},
	} {
		if got := strings.Join(plainLines(t, c.text, c.w), "\n"); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// An entity may stand for a control, and nesting for a screen's width: neither
// gets through (field fault U1).
func TestU1_MarkdownIsSafe(t *testing.T) {
	for _, text := range []string{
		"&#27;[31m &#x9b;31m &#8238; &#0; `a&#27;b` [&#27;]8;;x](http://x/&#27;) ",
		strings.Repeat("> ", 400) + "deep", strings.Repeat("- ", 400) + "deep", strings.Repeat("*a ", 3000), strings.Repeat("[", 3000),
		"|" + strings.Repeat("a|", 300) + "\n|" + strings.Repeat("-|", 300) + "\n",
	} {
		for _, w := range []int{1, 10, 80} {
			for _, l := range plainLines(t, text, w) {
				if safe.Line(l) != l {
					t.Fatalf("%q is not safe", l)
				}
			}
		}
	}
}
