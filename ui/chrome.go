package ui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/dialog"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// The smallest window that the screens are laid out for.
const (
	minW, minH = 40, 10
	sideW      = 160 // from here on the detail stands beside the list
)

// View implements tea.Model: the frame that Update drew, with what the
// terminal is told beside it. Pointer fields are compared by pointer and are
// made anew each time.
func (m *model) View() tea.View {
	v := tea.NewView(m.frame)
	v.AltScreen = true
	v.ReportFocus = true
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if m.quit {
		// What the terminal was told last stays with it: nothing is at work here.
		m.teller.View(&v, board.Empty())
		return v
	}
	m.teller.View(&v, m.env.Board)
	return v
}

// draw makes the frame.
func (m *model) draw() {
	if m.w < minW || m.h < minH {
		m.frame, _ = m.canvas.Lift(m.tooSmall(), true)
		return
	}
	var b strings.Builder
	b.WriteString(m.headLine())
	b.WriteByte('\n')
	tall := m.h >= 18
	used := 3 // head, status, keys
	if tall {
		b.WriteString(m.serverLine())
		b.WriteString("\n\n")
		used += 3 // servers, a blank line below them, one above the status
	}
	h := m.h - used
	rest := m.body(m.w, h) + "\n"
	if tall {
		rest += "\n"
	}
	b.WriteString(m.spill(rest))
	b.WriteString(m.statusLine())
	b.WriteByte('\n')
	b.WriteString(m.keyLine())
	var changed bool
	m.frame, changed = m.canvas.Lift(b.String(), m.dialogs.Top() != nil || m.palette != nil)
	m.paint = m.paint || changed
}

// bodyTop is the line on which the body begins.
func (m *model) bodyTop() int {
	if m.h >= 18 {
		return 3
	}
	return 1
}

func (m *model) tooSmall() string {
	c := m.env.Board.Counts()
	text := fmt.Sprintf("mcptasks needs a window of %d×%d; this one is %d×%d.", minW, minH, m.w, m.h)
	if m.w*m.h < 120 {
		text = fmt.Sprintf("%d×%d is too small", m.w, m.h)
	}
	if n := c.Questions; n > 0 && m.h > 3 {
		text += " " + kit.Count(n, "question") + "."
	}
	return kit.Fill(safe.Wrap(text, max(m.w, 1)), max(m.h, 1))
}

// sideShown reports whether the detail stands beside the list.
func (m *model) sideShown() bool {
	return m.sideOn && m.w >= sideW && len(m.stack) == 0 && m.h >= 16
}

func (m *model) toggleSide() {
	m.sideOn = !m.sideOn
	m.sideKey = false
	m.side.Focus(false)
	if m.w < sideW {
		m.say(fmt.Sprintf("The detail stands beside the list from %d columns on; this window has %d.", sideW, m.w), false)
	}
}

func (m *model) body(w, h int) string {
	var out string
	if len(m.stack) == 0 && m.sideShown() {
		lw := w*3/5 - 2
		rw := w - lw - 3
		left := m.list.View(&m.env, lw, h)
		if k, ok := m.list.Selected(); ok {
			m.side.Show(k)
		}
		rule := " " + m.th.Faint.Render("│") + " "
		out = kit.Columns(left, m.side.View(&m.env, rw, h), lw, rule, h)
	} else {
		out = m.top().View(&m.env, w, h)
	}
	if m.palette != nil {
		out = m.palette.Over(&m.env, out, w, h)
	}
	if m.dialogs.Top() != nil {
		out = m.dialogs.Over(&m.env, out, w, h)
	} else if s, ok := m.top().(suggester); ok && m.palette == nil {
		out = m.suggestions(s, out, w, h)
	}
	return out
}

// A suggester has a line being typed and knows how it could go on.
type suggester interface {
	Typing() bool
	Suggestions() (all []string, pick int)
	Fault() string // what is wrong with it, "" when nothing is
}

// suggestions shows how the filter being typed could go on.
func (m *model) suggestions(s suggester, body string, w, h int) string {
	if !s.Typing() {
		return body
	}
	all, pick := s.Suggestions()
	if len(all) == 0 {
		// A fault that has no room beside the line stands above it.
		fault := safe.Line(s.Fault())
		if safe.Width(fault) <= w/2 {
			return body
		}
		var block []string
		for _, l := range safe.Wrap(fault, w) {
			block = append(block, m.th.Error.Render(safe.PadRight(l, w)))
		}
		block = block[:min(len(block), h)]
		return dialog.Overlay(body, block, 0, h-len(block), w)
	}
	n := min(len(all), 8, h-2)
	from := 0
	if pick >= n {
		from = pick - n + 1
	}
	var block []string
	bw := 0
	for _, s := range all[from : from+n] {
		bw = max(bw, safe.Width(safe.Line(s)))
	}
	bw = min(bw, w-6)
	for i, s := range all[from : from+n] {
		st := m.th.Dim
		if from+i == pick {
			st = m.th.Text.On(m.th.Selection)
		}
		block = append(block, m.th.Faint.Render("│")+" "+st.Render(safe.Fit(safe.Line(s), bw))+" "+m.th.Faint.Render("│"))
	}
	return dialog.Overlay(body, block, 0, h-n, w)
}

// headLine counts what there is; only what needs a person has colour.
func (m *model) headLine() string {
	th, c := &m.th, m.env.Board.Counts()
	l := kit.NewLine(m.w, nil)
	l.Add(th.Title, "mcptasks")
	parts := []kit.Span{{Style: th.Text, Text: kit.Count(c.Total, "task")}}
	count := func(n int, text string, s theme.Style) {
		if n > 0 {
			parts = append(parts, kit.Span{Style: s, Text: text})
		}
	}
	working := c.ByStatus[taskmodel.Working] + c.ByStatus[taskmodel.Submitted] - c.Lost
	count(working, kit.Thousands(working)+" working", th.Dim)
	count(c.Questions, kit.Count(c.Questions, "question"), th.Status.Input)
	count(c.ByStatus[taskmodel.Failed], kit.Thousands(c.ByStatus[taskmodel.Failed])+" failed", th.Status.Failed)
	// Where there is no room for all, the questions stay longest.
	for room := l.Left(); len(parts) > 1; {
		need := 0
		for _, p := range parts {
			need += 2 + safe.Width(p.Text)
		}
		if need <= room {
			break
		}
		if last := len(parts) - 1; parts[last].Style != th.Status.Input {
			parts = parts[:last]
		} else {
			parts = append(parts[:last-1], parts[last])
		}
	}
	for _, p := range parts {
		l.Gap(2).Add(p.Style, p.Text)
	}
	right := ""
	switch {
	case m.env.Readonly:
		right = "read-only"
	case m.env.Paused:
		right = "polling paused"
	case m.running():
		right = "polling"
	}
	if m.running() {
		right += "   " + m.now.Format("15:04:05")
		m.env.Until(m.now.Truncate(second).Add(second))
	}
	st := th.Dim
	if m.env.Paused {
		st = th.Warn
	}
	l.Right(st, right)
	return l.String()
}

// running reports whether anything is going on that a clock belongs to.
func (m *model) running() bool {
	c := m.env.Board.Counts()
	return c.ByStatus[taskmodel.Working]+c.ByStatus[taskmodel.Submitted]+c.ByStatus[taskmodel.InputRequired] > 0
}

// serverLine says how each connection stands, in as many words as fit.
func (m *model) serverLine() string {
	servers := m.env.Board.Servers()
	for _, words := range []int{3, 2, 1} {
		l := kit.NewLine(m.w, nil)
		ok := true
		for i, s := range servers {
			if i > 0 {
				l.Gap(5)
			}
			for _, sp := range m.serverWords(s, words) {
				if ok = ok && safe.Width(sp.Text) <= l.Left(); ok {
					l.Add(sp.Style, sp.Text)
				}
			}
		}
		if ok {
			return l.String()
		}
	}
	states := map[taskmodel.ServerState]int{}
	for _, s := range servers {
		states[s.State]++
	}
	// What wants a look keeps its word the longest.
	order := []taskmodel.ServerState{taskmodel.ServerAuth, taskmodel.ServerFailed, taskmodel.ServerRetrying, taskmodel.ServerConnecting,
		taskmodel.ServerReady, taskmodel.ServerOff}
	for _, loose := range []struct{ gap, words int }{{3, 6}, {2, 6}, {2, 3}, {2, 0}} {
		l := kit.NewLine(1000, nil)
		l.Add(m.th.Dim, kit.Count(len(servers), "server"))
		for i, st := range order {
			n := states[st]
			if n == 0 {
				continue
			}
			g, w, style := m.th.OfServer(st)
			text := fmt.Sprint(n)
			if i < loose.words {
				text += " " + w
			}
			l.Gap(loose.gap).Add(style, g).Gap(1).Add(m.th.Dim, text)
		}
		if l.Used() <= m.w || loose.words == 0 {
			return safe.Truncate(l.String(), m.w, safe.Ellipsis)
		}
	}
	return ""
}

func (m *model) serverWords(s taskmodel.Server, words int) []kit.Span {
	th := &m.th
	g, state, style := th.OfServer(s.State)
	out := []kit.Span{{Style: style, Text: g}, {Style: th.Text, Text: " " + safe.Line(s.Name)}}
	if s.State != taskmodel.ServerReady {
		text := state
		if s.State == taskmodel.ServerRetrying && s.RetryAt.After(m.env.Now) {
			text = "retry in " + m.env.Left(s.RetryAt)
		}
		if words == 3 && s.Error != "" {
			text += ": " + kit.Gist(s.Error, s.Name, 48)
		}
		if words >= 2 || s.State == taskmodel.ServerFailed || s.State == taskmodel.ServerAuth {
			out = append(out, kit.Span{Style: th.Dim, Text: "  " + text})
		}
		return out
	}
	if words == 1 {
		return out
	}
	if s.Generation != "" {
		gen := string(s.Generation)
		if s.Generation == taskmodel.GenNone {
			gen = "no tasks"
		}
		out = append(out, kit.Span{Style: th.Dim, Text: "  " + gen})
	}
	if s.Warning != "" {
		out = append(out, kit.Span{Style: th.Warn, Text: "  " + safe.Line(s.Warning)})
	}
	if s.HeldBy != "" {
		out = append(out, kit.Span{Style: th.Dim, Text: "  held by " + safe.Line(s.HeldBy)})
	}
	if words == 3 {
		if s.Pushing {
			out = append(out, kit.Span{Style: th.Dim, Text: "  push"})
		}
		if s.RTT > 0 {
			out = append(out, kit.Span{Style: th.Dim, Text: "  " + kit.RTT(s.RTT)})
		}
		if s.Listing {
			out = append(out, kit.Span{Style: th.Dim, Text: "  listing …"})
		}
	}
	return out
}

// noticeLines is the notice of the status line, wrapped: a sentence of an error
// is worth nothing when its end is cut off.
func (m *model) noticeLines() []string {
	if m.notice.text == "" || !m.now.Before(m.notice.until) || m.palette != nil {
		return nil
	}
	lines := safe.Wrap(safe.Line(m.notice.text), m.w)
	if most := max(min(6, m.h-8), 1); len(lines) > most {
		last := lines[most-1]
		lines = lines[:most]
		lines[most-1] = safe.Truncate(last+" …", m.w, safe.Ellipsis)
	}
	return lines
}

// spill lays all but the last line of a long notice over the end of what stands
// above the status line; nothing moves for it.
func (m *model) spill(above string) string {
	lines := m.noticeLines()
	if len(lines) < 2 {
		return above
	}
	st := m.th.Text
	if m.notice.bad {
		st = m.th.Error
	}
	rows := strings.Split(strings.TrimSuffix(above, "\n"), "\n")
	from := len(rows) - (len(lines) - 1)
	for i, l := range lines[:len(lines)-1] {
		rows[from+i] = st.Render(l)
	}
	return strings.Join(rows, "\n") + "\n"
}

func (m *model) statusLine() string {
	if m.palette != nil && m.now.Sub(m.quitAt) > 2*time.Second {
		return m.palette.Line(&m.env, m.w)
	}
	if m.notice.text != "" && m.now.Before(m.notice.until) {
		m.env.Until(m.notice.until)
		st := m.th.Text
		if m.notice.bad {
			st = m.th.Error
		}
		lines := m.noticeLines()
		if len(lines) == 0 {
			lines = []string{safe.Line(m.notice.text)}
		}
		return kit.NewLine(m.w, nil).Add(st, lines[len(lines)-1]).String()
	}
	m.notice = notice{}
	left, right := m.top().Status(&m.env, m.w)
	l := kit.NewLine(m.w, nil)
	lw, rw := safe.Width(left), safe.Width(right)
	if lw > m.w {
		return safe.Truncate(left, m.w, safe.Ellipsis)
	}
	l.Styled(left, lw)
	if gap := min(lw, 1) * 3; l.Left() > gap {
		more := m.moreKeys(l.Left() - gap - rw - min(rw, 1)*2)
		if n := safe.Width(more); n > 0 {
			l.Gap(gap).Styled(more, n)
		}
	}
	if rw > 0 && rw+2 <= l.Left() {
		l.To(m.w - rw)
		l.Styled(right, rw)
	}
	return l.String()
}

// keyBindings are the keys that count in front, the most useful first, and those
// that have their place in any case: help, and the way out.
func (m *model) keyBindings() (keys, end []keymap.Binding) {
	switch d := m.dialogs.Top(); {
	case d != nil:
		return d.Keys(&m.env), nil
	case m.palette != nil:
		return []keymap.Binding{m.keys.Accept, m.keys.Leave, m.keys.Complete, m.keys.HistoryUp}, nil
	}
	top := m.top()
	keys = top.Keys(&m.env)
	if m.onForm() {
		return keys, []keymap.Binding{m.keys.FormHelp}
	}
	switch t, ok := top.(kit.Typer); {
	case ok && t.Typing():
		return keys, nil
	case top != kit.Screen(m.list):
		return keys, []keymap.Binding{m.keys.Back, m.keys.Help}
	}
	return keys, []keymap.Binding{m.keys.Help, m.keys.Quit}
}

// onForm reports whether a form or an address is in front: its keys are many, and
// none of them can be guessed.
func (m *model) onForm() bool {
	return m.dialogs.Top() == nil && m.palette == nil && m.top().Context()&(keymap.Form|keymap.Visit) != 0
}

// keyLine says what can be done here.
func (m *model) keyLine() string {
	keys, end := m.keyBindings()
	line, _ := keyLine(&m.th, m.w, keys, end, m.env.Board.OpenQuestions())
	return line
}

// moreKeys are the keys of a form that had no room in the last line; they stand
// in the status line, which a form seldom needs.
func (m *model) moreKeys(w int) string {
	if !m.onForm() {
		return ""
	}
	keys, end := m.keyBindings()
	_, rest := keyLine(&m.th, m.w, keys, end, 0)
	var fit []keymap.Binding
	for _, b := range rest {
		need := safe.Width(b.Label()) + 1 + safe.Width(b.Short)
		if len(fit) > 0 {
			need += keyGap(m.w)
		}
		if need <= w {
			w -= need
			fit = append(fit, b)
		}
	}
	line, _ := keyLine(&m.th, m.w, fit, nil, 0)
	return line
}

// keyGap is how far keys stand apart in a window of w columns.
func keyGap(w int) int {
	if w < 100 {
		return 2
	}
	return 3
}

// keyLine writes keys with their words into w cells; those of end have their
// place in any case. rest are those that had no room.
func keyLine(th *theme.Theme, w int, keys, end []keymap.Binding, questions int) (line string, rest []keymap.Binding) {
	word := func(b keymap.Binding) string {
		if b.Action == "inbox" && questions > 0 {
			return fmt.Sprintf("%s %d", b.Short, questions)
		}
		return b.Short
	}
	size := func(b keymap.Binding) int { return safe.Width(b.Label()) + 1 + safe.Width(word(b)) }
	gap := keyGap(w)
	room := w
	for _, b := range end {
		room -= size(b) + gap
	}
	l := kit.NewLine(w, nil)
	put := func(b keymap.Binding) {
		if l.Used() > 0 {
			l.Gap(gap)
		}
		l.Add(th.Key, b.Label()).Gap(1)
		st := th.Dim
		if b.Action == "inbox" && questions > 0 {
			st = th.Status.Input
		}
		l.Add(st, word(b))
	}
	for _, b := range keys {
		if !b.Enabled() {
			continue
		}
		need := size(b)
		if l.Used() > 0 {
			need += gap
		}
		if len(rest) > 0 || l.Used()+need > room {
			rest = append(rest, b)
			continue
		}
		put(b)
	}
	for _, b := range end {
		if b.Enabled() && l.Used()+gap+size(b) <= w {
			put(b)
		}
	}
	return l.String(), rest
}
