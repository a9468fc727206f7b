package detail

import (
	"slices"
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// A block is a heading with lines under it. The first hang spans of a line are
// its margin: where the rest has to go on, it goes on under itself.
type block struct {
	title string
	lines [][]kit.Span
	hang  int
}

func (d *Detail) viewOverview(e *kit.Env, t *taskmodel.Task, w, h int) string {
	left := []block{d.timeline(e, t, w)}
	right := []block{d.request(e, t), d.progress(e, t, w), d.facts(e, t)}
	// Long words go on in further lines where there is room for all of them. Else
	// a line is as long as it is: the pane Messages has them whole.
	lines := d.overviewLines(e, t, left, right, w, flow)
	if len(lines) > h {
		lines = d.overviewLines(e, t, left, right, w, asIs)
	}
	d.overview.N = len(lines)
	d.overview.Lines = func(i int) []kit.Span { return lines[i] }
	return d.overview.View(e.Theme, w, h)
}

// A fit breaks a line for a column of w cells.
type fit func(row []kit.Span, hang, w int) [][]kit.Span

func asIs(row []kit.Span, _, _ int) [][]kit.Span { return [][]kit.Span{row} }

// overviewLines lays the blocks out beside each other, or below each other where
// that is too narrow.
func (d *Detail) overviewLines(e *kit.Env, t *taskmodel.Task, left, right []block, w int, fit fit) [][]kit.Span {
	var lines [][]kit.Span
	if q := d.questions(e, t, w); len(q.lines) > 0 {
		lines = append(stack(e, []block{q}, w, asIs), nil)
	}
	if w < 90 {
		return append(lines, stack(e, slices.Concat(right[:1], left, right[1:]), w-1, fit)...)
	}
	lw := min(w*11/20, 76)
	a, b := stack(e, left, lw-3, fit), stack(e, right, w-lw-1, fit)
	for i := range max(len(a), len(b)) {
		var row []kit.Span
		used := 0
		if i < len(a) {
			row, used = cut(a[i], lw-3)
		}
		if i < len(b) {
			row = append(row, kit.Span{Text: strings.Repeat(" ", max(lw-used, 0))})
			row = append(row, b[i]...)
		}
		lines = append(lines, row)
	}
	return lines
}

// stack puts blocks below each other, without the empty ones.
func stack(e *kit.Env, blocks []block, w int, fit fit) [][]kit.Span {
	var out [][]kit.Span
	for _, b := range blocks {
		if len(b.lines) == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, nil)
		}
		out = append(out, []kit.Span{{Style: e.Theme.Heading, Text: b.title}})
		for _, row := range b.lines {
			out = append(out, fit(row, b.hang, w)...)
		}
	}
	return out
}

// cut cuts a line to w cells and says how many it has.
func cut(spans []kit.Span, w int) (out []kit.Span, used int) {
	for _, s := range spans {
		if used >= w {
			break
		}
		s.Text = safe.Truncate(s.Text, w-used, safe.Ellipsis)
		used += safe.Width(s.Text)
		out = append(out, s)
	}
	return out, used
}

// leastFlow is the narrowest column in which words are worth wrapping.
const leastFlow = 16

// flow breaks a line into several of at most w cells.
func flow(spans []kit.Span, hang, w int) [][]kit.Span {
	hang = min(hang, len(spans)-1)
	total, margin := 0, 0
	for i, s := range spans {
		if total += safe.Width(s.Text); i < hang {
			margin = total
		}
	}
	if total <= w || w-margin < leastFlow {
		return asIs(spans, hang, w)
	}
	var out [][]kit.Span
	row, used := slices.Clone(spans[:hang]), margin
	for _, s := range spans[hang:] {
		if n := safe.Width(s.Text); used+n <= w {
			row, used = append(row, s), used+n
			continue
		}
		text := s.Text
		if used > margin { // what stands there already keeps its line
			out = append(out, row)
			row, text = []kit.Span{{Text: strings.Repeat(" ", margin)}}, strings.TrimLeft(text, " ")
		}
		for i, l := range safe.Wrap(text, w-margin) {
			if i > 0 {
				out = append(out, row)
				row = []kit.Span{{Text: strings.Repeat(" ", margin)}}
			}
			row, used = append(row, kit.Span{Style: s.Style, Text: l}), margin+safe.Width(l)
		}
	}
	return append(out, row)
}
