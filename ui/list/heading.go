package list

import (
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// headed is the order of the statuses in a group's heading: what needs a person
// first, then what goes on, then how the rest ended.
var headed = []taskmodel.Status{taskmodel.InputRequired, taskmodel.Working, taskmodel.Submitted, taskmodel.Failed, taskmodel.Unknown,
	taskmodel.Completed, taskmodel.Cancelled}

// drawHeading draws a group's heading: its name, how many tasks it has, and how
// they stand, in as many words as there is room for.
func (l *List) drawHeading(e *kit.Env, b *kit.Line, r board.Row) {
	th := e.Theme
	sign := "▾"
	if r.Folded {
		sign = "▸"
	}
	b.Gap(1).Add(th.Dim, sign).Gap(1)
	if l.set.Group == "status" {
		glyph, word, st := th.OfStatus(taskmodel.Status(r.Heading))
		b.Add(st, glyph).Gap(1).Add(th.Title, safe.Line(word)).Gap(2).Add(th.Dim, kit.Count(r.Count, "task"))
		return
	}
	b.Add(th.Title, safe.Line(r.Heading)).Gap(2).Add(th.Dim, kit.Count(r.Count, "task"))
	for _, words := range []int{3, 2, 1} {
		parts := standing(e, r, words)
		need := 0
		for _, p := range parts {
			need += 3 + safe.Width(p[0].Text) + safe.Width(p[1].Text)
		}
		if need > b.Left() && words > 1 {
			continue
		}
		for _, p := range parts {
			if 3+safe.Width(p[0].Text)+safe.Width(p[1].Text) > b.Left() {
				break // what stands last matters least
			}
			b.Gap(3).Add(p[0].Style, p[0].Text).Add(p[1].Style, p[1].Text)
		}
		return
	}
}

// standing says how many tasks of a group have which status: with 3 each with
// its word, with 2 those that ended well or were cancelled as one number, with 1
// by glyphs alone, as the rows below have them.
func standing(e *kit.Env, r board.Row, words int) [][2]kit.Span {
	th := e.Theme
	var out [][2]kit.Span
	ended, named := 0, 0
	for _, s := range headed {
		n := r.ByStatus[s]
		named += n
		if n == 0 {
			continue
		}
		if words == 2 && (s == taskmodel.Completed || s == taskmodel.Cancelled) {
			ended += n
			continue
		}
		glyph, word, st := th.OfStatus(s)
		text := " " + kit.Thousands(n)
		if words > 1 {
			text += " " + word
		}
		out = append(out, [2]kit.Span{{Style: st, Text: glyph}, {Style: th.Dim, Text: text}})
	}
	if ended > 0 {
		glyph, _, st := th.OfStatus(taskmodel.Completed)
		out = append(out, [2]kit.Span{{Style: st, Text: glyph}, {Style: th.Dim, Text: " " + kit.Thousands(ended) + " ended"}})
	}
	if other := r.Count - named; other > 0 { // statuses that no generation has
		out = append(out, [2]kit.Span{{}, {Style: th.Dim, Text: kit.Thousands(other) + " other"}})
	}
	return out
}
