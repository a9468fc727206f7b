package formview

import (
	"fmt"
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// View implements Model.
func (m *Form) View(th *theme.Theme, w, h int) string {
	foot := m.foot(th, w)
	body := h - len(foot)
	if body < 1 {
		foot, body = nil, h
	}
	m.height = body
	lines, from, to := m.body(th, w, body)
	if !m.free {
		if to > m.top+body {
			m.top = to - body
		}
		if from < m.top || to-from > body {
			m.top = from
		}
		if to <= body && m.focus == 0 && m.raw == nil {
			m.top = 0
		}
	}
	m.top = max(min(m.top, len(lines)-body), 0)
	shown := lines[m.top:min(m.top+body, len(lines))]
	if foot == nil {
		return kit.Fill(shown, h)
	}
	if len(lines) > body {
		last := len(foot) - 1
		at := fmt.Sprintf("lines %d–%d of %d", m.top+1, m.top+len(shown), len(lines))
		if room := w - safe.Width(foot[last]) - safe.Width(at); room >= 2 {
			foot[last] += strings.Repeat(" ", room) + th.Faint.Render(at)
		}
	}
	return kit.Fill(shown, body) + "\n" + strings.Join(foot, "\n")
}

// foot is what stands below the fields: what is asked, or what is to be
// mended.
func (m *Form) foot(th *theme.Theme, w int) []string {
	line := func(s theme.Style, text string) []string {
		return []string{"", s.Render(safe.Truncate(text, w, safe.Ellipsis))}
	}
	switch m.ask {
	case Decline, Cancel:
		return []string{"", confirming(th, m.q, m.ask, m.gen, w)}
	case Send:
		return line(th.Warn, "An answer was sent already. Send once more? y sends it, any other key goes back.")
	}
	switch {
	case m.gone():
		text := "Withdrawn: " + strings.TrimSuffix(safe.Line(orElse(m.q.Withdrawn, "the server no longer asks this")), ".") + "."
		if len(m.Draft()) > 0 && !strings.Contains(text, "kept") {
			text += " What you wrote is kept with it."
		}
		out := []string{""}
		for _, l := range safe.Wrap(text, max(w, 1)) {
			out = append(out, th.Warn.Render(l))
		}
		return out
	case m.rawNote != "":
		return line(th.Error, "! "+safe.Line(m.rawNote))
	case m.note != "":
		return line(th.Dim, safe.Line(m.note))
	case len(m.problems) > 0:
		var names []string
		for _, p := range m.problems {
			switch {
			case p.Field >= 0 && m.raw == nil:
				names = append(names, safe.Line(m.f.Fields[p.Field].Title))
			case p.Path != "":
				names = append(names, safe.Line(p.Path))
			default:
				names = append(names, "the answer "+safe.Line(p.Message))
			}
		}
		s := "things"
		if len(names) == 1 {
			s = "thing"
		}
		style := th.Dim
		if m.tried {
			style = th.FieldError()
		}
		return line(style, fmt.Sprintf("%d %s to mend: %s", len(names), s, strings.Join(names, ", ")))
	}
	if u := m.f.Unchecked(); u != "" {
		return line(th.Warn, safe.Line(u))
	}
	return line(th.Dim, "Nothing to mend.")
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Refused says in words why a question is open again after an answer.
func Refused(q taskmodel.Question) string {
	if strings.HasPrefix(q.Refusal, taskmodel.NotSent) {
		return "The answer was " + safe.Text(q.Refusal)
	}
	return "The server refused the answer: " + safe.Text(orElse(q.Refusal, "it gave no reason"))
}

// body gives all lines, and which of them the focus is in.
func (m *Form) body(th *theme.Theme, w, h int) (lines []string, from, to int) {
	if m.review {
		return m.reviewLines(th, w), 0, 1
	}
	lines = m.above(th, w)
	if m.raw != nil {
		return m.rawLines(th, lines, w, h)
	}
	g := m.grid(w)
	m.cursorLine = 0
	for i := range m.f.Fields {
		b := m.field(th, g, i, w)
		if i == m.focus {
			from, to = len(lines), len(lines)+len(b)
			if len(b) > h { // the whole field does not fit: what the cursor is at does
				from = min(from+m.cursorLine, to-1)
				to = min(from+h, to)
			}
		}
		lines = append(lines, b...)
	}
	if len(m.f.Fields) == 0 {
		lines = append(lines, th.Dim.Render("  There is nothing to fill in."))
	}
	return lines, from, to
}

// above is what stands above the fields.
func (m *Form) above(th *theme.Theme, w int) []string {
	var lines []string
	add := func(s theme.Style, text string) {
		for _, l := range safe.Wrap(strings.TrimSpace(text), min(w, 100)) {
			lines = append(lines, s.Render(l))
		}
	}
	if m.head != nil {
		lines = append(lines, m.head(th, w)...)
	}
	n := len(lines)
	if m.question {
		switch m.q.State {
		case taskmodel.QuestionSending:
			add(th.Status.Working, "● The answer is being sent.")
		case taskmodel.QuestionAnswered:
			add(th.Status.Done, "✓ Answered, waiting for the server.")
		case taskmodel.QuestionUnconfirmed:
			add(th.Warn, "◍ An answer was sent, and it is not known whether the server took it. It is not sent again by itself.")
		case taskmodel.QuestionRefused:
			add(th.Error, "✗ "+Refused(m.q))
			add(th.Dim, "What you wrote is still here.")
		}
	}
	if m.f.RawOnly != "" {
		add(th.Warn, "The answer can be written as JSON only. "+safe.Text(m.f.RawOnly))
	}
	if t := strings.TrimSpace(m.f.Description); t != "" && m.raw == nil {
		add(th.Dim, safe.Text(t))
	}
	for i, note := range m.f.Notes {
		if i == 3 && len(m.f.Notes) > 4 {
			add(th.Dim, fmt.Sprintf("and %d more like it", len(m.f.Notes)-3))
			break
		}
		add(th.Dim, "not checked – "+safe.Text(note))
	}
	if len(lines) > n {
		lines = append(lines, "")
	}
	return lines
}

func (m *Form) rawLines(th *theme.Theme, lines []string, w, h int) ([]string, int, int) {
	lines = append(lines, th.Heading.Render("Answer as JSON"))
	from := len(lines)
	m.raw.multi = true
	rows := m.raw.draw(th, th.Field, max(w, 2), max(h-min(len(lines), 3)-min(len(m.problems), 4), 3), true)
	lines = append(lines, rows...)
	to := len(lines)
	for i, p := range m.problems {
		if i == 8 {
			lines = append(lines, th.Dim.Render(fmt.Sprintf("  and %d more", len(m.problems)-i)))
			break
		}
		for _, l := range safe.Wrap("! "+safe.Line(p.String()), max(w-2, 1)) {
			lines = append(lines, "  "+th.FieldError().Render(l))
		}
	}
	return lines, max(from-1, 0), min(max(to, from+1), max(from-1, 0)+h)
}

func (m *Form) reviewLines(th *theme.Theme, w int) []string {
	lines := []string{th.Heading.Render("This will be sent"), ""}
	content := m.f.Hidden(m.f.Preview(m.d))
	if m.content != nil {
		content = m.content(content)
	}
	for _, l := range safe.Lines(string(safe.JSON([]byte(pretty(content))))) {
		for _, part := range safe.Wrap(l, max(w-2, 1)) {
			lines = append(lines, "  "+th.Text.Render(part))
		}
	}
	return lines
}

// A grid is where the columns of the fields stand.
type grid struct {
	label int // width of the labels
	x     int // where values begin
	value int // width of a value
	side  int // where hints begin, 0: below the value
}

func (m *Form) grid(w int) grid {
	g := grid{label: 8}
	for _, f := range m.f.Fields {
		g.label = max(g.label, safe.Width(label(f)))
	}
	g.label = max(min(g.label, w/3, 32), 4)
	g.x = 2 + g.label + 2
	room := max(w-g.x-1, 4)
	g.value = room
	if room >= 52 {
		g.value = min(room*11/20, 56)
		g.side = g.x + g.value + 2
	}
	return g
}

func label(f form.Field) string {
	t := safe.Line(f.Title)
	if f.Required {
		t += " *"
	}
	return t
}

// inline reports whether a field's choices stand on one line, as last drawn.
func (m *Form) inline(i int) bool {
	n := 0
	for _, c := range m.choices(i) {
		n += safe.Width(c) + 7
	}
	return n-3 <= m.lastRoom
}

// field gives the lines of one field.
func (m *Form) field(th *theme.Theme, g grid, i, w int) []string {
	f, v := m.f.Fields[i], m.d.Values[i]
	on := i == m.focus
	m.lastRoom = max(w-g.x-1, 4)
	var value []string
	wide := false // the value takes the room of the hint
	switch {
	case v.Other != nil && !m.typed(i):
		value = []string{th.Field.Render(safe.Fit("as written: "+safe.Line(string(v.Other)), g.value))}
	case f.Kind == form.Boolean || f.Kind == form.Choice || f.Kind == form.Multi:
		value, wide = m.optionLines(th, i, on)
	default:
		value = m.textLines(th, g, i, on)
	}
	hint, bad := m.hint(i)
	var below []string
	put := func(s theme.Style, text string, most int) {
		for n, l := range safe.Wrap(safe.Text(text), max(w-g.x-1, 4)) {
			if n == most {
				below[len(below)-1] = strings.Repeat(" ", g.x) + s.Render(safe.Ellipsis)
				break
			}
			below = append(below, strings.Repeat(" ", g.x)+s.Render(l))
		}
	}
	style := th.Faint
	if bad {
		style = th.FieldError()
	} else if on {
		style = th.Dim
	}
	side := ""
	if hint != "" {
		if g.side > 0 && !wide && safe.Width(hint) <= w-g.side {
			side = hint
		} else if bad || on || wide {
			put(style, hint, 4)
		}
	}
	if d := strings.TrimSpace(f.Description); d != "" && d != strings.TrimSpace(f.Title) {
		most := 3
		if on {
			most = 12
		}
		put(th.Dim, d, most)
	}
	if f.Unsupported != "" {
		put(th.Warn, "Not supported as a field. "+f.Unsupported+" Write it as JSON, or decline.", 3)
	}
	labels := safe.Wrap(label(f), g.label)
	if len(labels) > 3 {
		labels = append(labels[:2], safe.Truncate(labels[2]+" "+labels[3], g.label, safe.Ellipsis))
	}
	var out []string
	for n := range max(len(value), len(labels)) {
		l := kit.NewLine(w, nil)
		if on {
			l.Add(th.Mark, "▌ ")
		} else {
			l.Gap(2)
		}
		ls := th.Text
		if on {
			ls = th.Title
		}
		if n < len(labels) {
			if text, ok := strings.CutSuffix(labels[n], "*"); ok && f.Required {
				l.Add(ls, text).Add(th.Warn, "*")
			} else {
				l.Add(ls, labels[n])
			}
		}
		l.To(g.x)
		if n < len(value) {
			l.Styled(value[n], safe.Width(value[n]))
		}
		if n == 0 && side != "" {
			l.To(g.side)
			l.Add(style, side)
		}
		out = append(out, l.String())
	}
	out = append(out, below...)
	if len(out) > 1 || len(m.f.Fields) <= 8 {
		out = append(out, "") // room between fields that take several lines
	}
	return out
}

// hint is what stands beside a field: what is wrong with it, else what may be
// filled in.
func (m *Form) hint(i int) (text string, bad bool) {
	for _, p := range m.problems {
		if p.Field == i && (!p.Missing || m.tried) {
			msg := p.Message
			if p.Path != m.f.Fields[i].Name {
				msg = strings.TrimPrefix(strings.TrimPrefix(p.Path, m.f.Fields[i].Name), ".") + " " + msg
			}
			return "! " + safe.Line(msg), true
		}
	}
	f := m.f.Fields[i]
	text = safe.Line(f.Hint())
	if f.Long && f.Kind == form.Text && i == m.focus {
		if text != "" {
			text += ", "
		}
		text += "tab leaves it"
	}
	return text, false
}

func (m *Form) textLines(th *theme.Theme, g grid, i int, on bool) []string {
	f, v := m.f.Fields[i], m.d.Values[i]
	w := g.value
	switch f.Kind {
	case form.Number, form.Integer:
		w = min(w, 24)
	}
	if !on {
		style := th.Field
		switch {
		case !v.Set:
			return []string{th.Faint.Render("not set")}
		case v.Other == nil && v.Text == "":
			return []string{th.Faint.Render("empty")}
		}
		a := m.area(i)
		rows := 1
		if a.multi {
			rows = 3
		}
		lines := a.draw(th, style, w, rows, false)
		if a.multi {
			if all := len(a.rows(a.w)); all > rows {
				lines = append(lines, th.Faint.Render(fmt.Sprintf("%d lines", all)))
			}
		}
		return lines
	}
	a := m.area(i)
	if a.text == "" && !a.multi {
		what := "not set"
		if v.Set {
			what = "empty"
		}
		return []string{th.Cursor.Render(" ") + th.Faint.Render(safe.Fit(" "+what, max(w-1, 0)))}
	}
	lines := a.draw(th, th.FieldOn, w, 8, true)
	if a.multi {
		m.cursorLine = max(a.row(a.rows(a.w))-a.top-1, 0)
		for len(lines) < 3 {
			lines = append(lines, th.FieldOn.Render(strings.Repeat(" ", w)))
		}
	}
	return lines
}

const mostOptions = 10 // shown at once where they stand below each other

// optionLines draws choices: on one line where they fit, else one a line.
func (m *Form) optionLines(th *theme.Theme, i int, on bool) (lines []string, wide bool) {
	f := m.f.Fields[i]
	names := m.choices(i)
	open, full, closed := "( ) ", "(●) ", false
	if f.Kind == form.Multi {
		open, full = "[ ] ", "[x] "
	}
	one := func(l *kit.Line, n int) {
		mark, style := open, th.Text
		if m.picked(i, n) {
			mark = full
		} else if !on {
			style = th.Dim
		}
		if on && n == m.cursor[i] {
			style = th.FieldOn
		}
		l.Add(style, mark+names[n])
	}
	if m.inline(i) {
		l := kit.NewLine(m.lastRoom, nil)
		for n := range names {
			if n > 0 {
				l.Gap(3)
			}
			one(l, n)
		}
		return []string{l.String()}, l.Used() > m.lastRoom*11/20
	}
	from, to := 0, len(names)
	if len(names) > mostOptions {
		if !on {
			closed = true
			to = 0
			for n := range names {
				if m.picked(i, n) {
					l := kit.NewLine(m.lastRoom, nil)
					one(l, n)
					lines = append(lines, l.String())
				}
			}
			if len(lines) > 4 {
				lines = append(lines[:3], th.Dim.Render(fmt.Sprintf("and %d more", len(lines)-3)))
			}
		} else {
			from = max(min(m.cursor[i]-mostOptions/2, len(names)-mostOptions), 0)
			to = from + mostOptions
		}
	}
	if on {
		m.cursorLine = m.cursor[i] - from
	}
	for n := from; n < to; n++ {
		l := kit.NewLine(m.lastRoom, nil)
		one(l, n)
		if f.Kind != form.Boolean {
			if about := safe.Line(f.Options[n].About); about != "" {
				l.Gap(2).Add(th.Dim, about)
			}
		}
		lines = append(lines, l.String())
	}
	if closed || to-from < len(names) {
		lines = append(lines, th.Faint.Render(fmt.Sprintf("%s in all", kit.Count(len(names), "choice"))))
	}
	return lines, true
}
