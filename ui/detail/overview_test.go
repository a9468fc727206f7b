package detail

import (
	"strings"
	"testing"

	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// Words too long for their column go on under themselves; nothing is lost but
// the spaces at a break, and no line is wider than the column.
func TestFlow(t *testing.T) {
	row := func(texts ...string) []kit.Span {
		var out []kit.Span
		for _, s := range texts {
			out = append(out, kit.Span{Text: s})
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		row     []kit.Span
		hang, w int
		want    []string
	}{
		{"it fits", row("12:00  ", "created"), 1, 40, []string{"12:00  created"}},
		{"words", row("12:00  ", "one two three four five six"), 1, 24, []string{"12:00  one two three", "       four five six"}},
		{"a note behind", row("12:00  ", "one two three", "  a note of ours that is long"), 1, 26, []string{"12:00  one two three", "       a note of ours that", "       is long"}},
		{"a word as long as two lines", row("ab ", strings.Repeat("x", 40)), 1, 24, []string{"ab " + strings.Repeat("x", 21), "   " + strings.Repeat("x", 19)}},
		{"wide letters", row("ab ", "漢字漢字漢字漢字漢字漢字漢字"), 1, 21, []string{"ab 漢字漢字漢字漢字漢", "   字漢字漢字"}},
		{"no room for words", row(strings.Repeat("m", 20), "one two three four"), 1, 30, []string{strings.Repeat("m", 20) + "one two three four"}},
		{"margin only", row("one two three four five six seven"), 3, 20, []string{"one two three four", "five six seven"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range flow(tt.row, tt.hang, tt.w) {
				line := ""
				for _, s := range r {
					line += s.Text
				}
				if len(tt.want) > 1 && safe.Width(line) > tt.w {
					t.Errorf("%q has %d cells, the column %d", line, safe.Width(line), tt.w)
				}
				got = append(got, strings.TrimRight(line, " "))
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}
