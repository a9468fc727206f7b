package formview

import (
	"encoding/json"
	"fmt"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A visit is a question that wants the person to go to an address. Nothing is
// opened before the person agrees.
type visit struct {
	q    taskmodel.Question
	gen  taskmodel.Generation
	v    safe.Verdict
	ask  EventKind
	note string
	top  int
	h    int
	long int // lines in all, as last drawn
}

func newVisit(q taskmodel.Question, gen taskmodel.Generation) *visit {
	return &visit{q: q, gen: gen, v: safe.JudgeURL(q.URL)}
}

func (m *visit) Context() keymap.Context   { return keymap.Visit }
func (m *visit) Draft() json.RawMessage    { return nil }
func (m *visit) Edited(string) Event       { return Event{} }
func (m *visit) Fill(string, string) Event { return Event{} }

func (m *visit) SetQuestion(q taskmodel.Question) {
	if q.State != m.q.State || q.Done != m.q.Done {
		m.ask, m.note = None, ""
	}
	if q.URL != m.q.URL {
		m.v = safe.JudgeURL(q.URL)
	}
	m.q = q
}

func (m *visit) sent() bool {
	switch m.q.State {
	case taskmodel.QuestionSending, taskmodel.QuestionAnswered, taskmodel.QuestionUnconfirmed:
		return true
	}
	return false
}

func (m *visit) Update(k *keymap.Map, msg tea.Msg) Event {
	km, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return Event{}
	}
	if m.ask != None {
		what := m.ask
		m.ask = None
		again := map[EventKind]keymap.Binding{Decline: k.FormDecline, Cancel: k.FormCancel}[what]
		if key.Matches(km, again.Binding) || km.String() == "y" {
			return Event{Kind: what}
		}
		return Event{}
	}
	switch {
	case key.Matches(km, k.FormAside.Binding):
		return Event{Kind: Aside}
	case m.q.State == taskmodel.QuestionWithdrawn:
	case key.Matches(km, k.VisitCopy.Binding):
		// What is copied is what would be opened; a refused address as it came.
		text := m.v.Open
		if text == "" {
			text = m.v.Full
		}
		return Event{Kind: Copy, Text: text, Name: "the address"}
	case key.Matches(km, k.VisitOpen.Binding):
		switch {
		case !m.v.OK:
			m.note = "It is not opened. " + m.v.Why
		case m.sent():
			return Event{Kind: None, Open: m.v.Open}
		default:
			return Event{Kind: Send, Open: m.v.Open}
		}
	case key.Matches(km, k.FormSend.Binding):
		switch {
		case !m.v.OK:
			m.note = "It cannot be agreed to. " + m.v.Why
		case m.sent():
			m.note = "You have agreed already."
		default:
			return Event{Kind: Send}
		}
	case key.Matches(km, k.VisitRetry.Binding):
		if m.sent() {
			return Event{Kind: Retry}
		}
		m.note = "Agree first: " + k.VisitOpen.Label() + " opens the address, " + k.FormSend.Label() + " only agrees."
	case key.Matches(km, k.FormDecline.Binding):
		m.ask = Decline
	case key.Matches(km, k.FormCancel.Binding):
		m.ask = Cancel
	default:
		switch km.String() {
		case "up", "k":
			m.top--
		case "down", "j":
			m.top++
		case "pgup":
			m.top -= max(m.h-1, 1)
		case "pgdown":
			m.top += max(m.h-1, 1)
		}
		m.top = max(min(m.top, m.long-m.h), 0)
	}
	return Event{}
}

func (m *visit) View(th *theme.Theme, w, h int) string {
	lines := wording(m.q.Message)(th, w)
	add := func(label string, s theme.Style, text string) {
		for i, l := range safe.Wrap(text, max(w-12, 4)) {
			if i > 0 {
				label = ""
			}
			lines = append(lines, "  "+th.Dim.Render(safe.Fit(label, 10))+s.Render(l))
		}
	}
	server := safe.Line(m.q.ID.Server)
	add("Server", th.Text, server)
	call := safe.Line(m.q.Repeat.Tool)
	if call != "" {
		add("For", th.Text, "a call of "+call+", which the server refused until this is done")
	}
	add("Host", th.Title, orElse(m.v.Host, "none"))
	lines = append(lines, "")
	add("Address", th.Link, m.v.Full)
	lines = append(lines, "")
	if !m.v.OK {
		add("Refused", th.Error, "✗ "+m.v.Why)
	}
	for i, t := range m.v.Warnings {
		add([]string{"Mind", ""}[min(i, 1)], th.Warn, "! "+t)
	}
	if !m.v.OK || len(m.v.Warnings) > 0 {
		lines = append(lines, "")
	}
	var state string
	style := th.Dim
	switch m.q.State {
	case taskmodel.QuestionSending:
		state = "● Your consent is being sent."
	case taskmodel.QuestionAnswered:
		state, style = "◌ You agreed. Finish there; the server may say when it is done. r says so by hand.", th.Status.Working
		if call != "" {
			state = "◌ You agreed. Finish there, then make the call of " + call + " again with r. The server may say when it is done; nothing is called by itself."
		}
	case taskmodel.QuestionUnconfirmed:
		state, style = "◍ Your consent was sent, and it is not known whether the server took it.", th.Warn
	case taskmodel.QuestionRefused:
		state, style = "✗ "+safe.Line(Refused(m.q)), th.Error
	case taskmodel.QuestionWithdrawn:
		state, style = "Withdrawn: "+safe.Line(orElse(m.q.Withdrawn, "the server no longer asks this")), th.Warn
		if call != "" {
			state, style = "Over: "+safe.Line(m.q.Withdrawn)+".", th.Dim
		}
	default:
		if m.v.OK {
			state = "Nothing is opened before you agree. mcptasks sends nothing of what you do there."
		}
		if call != "" && m.q.Round > 1 {
			state = "The call was made again, and the server still wants this page visited. " + state
		}
	}
	if m.q.Done && m.q.State != taskmodel.QuestionWithdrawn {
		state, style = "✓ Done: the server says that it was completed.", th.Status.Done
		if call != "" {
			state += " Make the call of " + call + " again with r."
		}
	}
	for _, l := range safe.Wrap(state, min(w, 100)) {
		lines = append(lines, style.Render(l))
	}
	foot := ""
	switch {
	case m.ask != None:
		foot = confirming(th, m.q, m.ask, m.gen, w)
	case m.note != "":
		foot = th.Dim.Render(safe.Truncate(m.note, w, safe.Ellipsis))
	}
	return page(th, lines, foot, &m.top, &m.h, &m.long, w, h)
}

// page draws lines scrolled to top, with one line at the foot.
func page(th *theme.Theme, lines []string, foot string, top, height, long *int, w, h int) string {
	*height, *long = max(h-1, 1), len(lines)
	*top = max(min(*top, *long-*height), 0)
	if h < 2 {
		return kit.Fill(lines, h)
	}
	if foot == "" && *long > *height {
		foot = th.Faint.Render(safe.Truncate(fmt.Sprintf("lines %d–%d of %d", *top+1, min(*top+*height, *long), *long), w, safe.Ellipsis))
	}
	return kit.Fill(lines[*top:min(*top+*height, *long)], *height) + "\n" + foot
}

func (m *visit) Keys(k *keymap.Map) []keymap.Binding {
	switch {
	case m.q.State == taskmodel.QuestionWithdrawn:
		return []keymap.Binding{k.FormAside}
	case !m.v.OK:
		return []keymap.Binding{k.FormDecline, k.FormCancel, k.FormAside, k.VisitCopy}
	case m.sent():
		again := k.VisitRetry
		if m.q.Repeat.Tool != "" {
			again.Short = "call again"
			return []keymap.Binding{again, k.VisitOpen, k.VisitCopy, k.FormDecline, k.FormAside}
		}
		return []keymap.Binding{again, k.VisitOpen, k.VisitCopy, k.FormAside}
	}
	open, agree := k.VisitOpen, k.FormSend
	open.Short, agree.Short = "agree and open", "only agree"
	return []keymap.Binding{open, agree, k.VisitCopy, k.FormDecline, k.FormCancel, k.FormAside}
}

// An unknown is a question of a kind that cannot be answered here: it can be
// declined and cancelled.
type unknown struct {
	visit
}

func newUnknown(q taskmodel.Question, gen taskmodel.Generation) *unknown {
	return &unknown{visit{q: q, gen: gen}}
}

func (m *unknown) SetQuestion(q taskmodel.Question) { m.q = q }

func (m *unknown) Update(k *keymap.Map, msg tea.Msg) Event {
	km, ok := msg.(tea.KeyPressMsg)
	if ok && m.ask == None && (key.Matches(km, k.VisitOpen.Binding) || key.Matches(km, k.FormSend.Binding) || key.Matches(km, k.VisitRetry.Binding) || key.Matches(km, k.VisitCopy.Binding)) {
		return Event{}
	}
	if ok && m.ask == None && mute(m.q, m.gen) {
		switch {
		case key.Matches(km, k.FormDecline.Binding):
			return Event{}
		case key.Matches(km, k.FormCancel.Binding):
			return Event{Kind: CancelTask}
		}
	}
	return m.visit.Update(k, msg)
}

func (m *unknown) View(th *theme.Theme, w, h int) string {
	lines := wording(m.q.Message)(th, w)
	way := "It can be declined."
	if mute(m.q, m.gen) {
		way = noNo + " Put it aside, or cancel the task."
	}
	for _, l := range safe.Wrap("! mcptasks cannot answer this kind of question ("+safe.Line(orElse(m.q.Method, string(m.q.Kind)))+"). "+way, w) {
		lines = append(lines, th.Warn.Render(l))
	}
	lines = append(lines, "")
	for _, l := range safe.Lines(pretty(m.q.Params)) {
		lines = append(lines, "  "+th.Dim.Render(safe.Truncate(l, max(w-2, 1), safe.Ellipsis)))
	}
	foot := ""
	if m.ask != None {
		foot = confirming(th, m.q, m.ask, m.gen, w)
	}
	return page(th, lines, foot, &m.top, &m.h, &m.long, w, h)
}

func (m *unknown) Keys(k *keymap.Map) []keymap.Binding {
	if mute(m.q, m.gen) {
		task := k.FormCancel
		task.Short = "cancel task"
		return []keymap.Binding{task, k.FormAside}
	}
	return []keymap.Binding{k.FormDecline, k.FormCancel, k.FormAside}
}
