package formview

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A Form is the view of a form: a question's, or that of a tool's arguments.
type Form struct {
	f        *form.Form
	d        form.Draft
	question bool // may be declined and cancelled
	q        taskmodel.Question
	gen      taskmodel.Generation                               // what the server speaks
	head     func(th *theme.Theme, w int) []string              // above the fields
	content  func(answer json.RawMessage) (out json.RawMessage) // what is sent, when it is not the answer itself
	broken   string                                             // why the schema cannot be used

	problems   []form.Problem
	fresh      json.RawMessage // the draft of one who has filled in nothing
	focus      int
	cursor     []int // among a field's options
	areas      map[int]*area
	raw        *area // the answer as JSON; nil: as fields
	rawNote    string
	review     bool
	tried      bool // to send: missing fields are marked from then on
	ask        EventKind
	note       string
	top        int  // first line shown
	free       bool // scrolled by hand: the focused field may be out of view
	height     int
	cursorLine int // of the focused field's lines, that with its cursor
	lastRoom   int // cells for choices, as last drawn
}

// NewTool makes the form of a tool's arguments. message is shown above it, raw;
// args, when not empty, fill it.
func NewTool(schema json.RawMessage, message string, args json.RawMessage, l form.Limits) *Form {
	m := newForm(schema, nil, l)
	m.head = wording(message)
	if len(args) > 0 {
		if d, err := m.f.FromJSON(args); err == nil {
			m.d = d
			m.changed()
		}
	}
	return m
}

func newQuestion(q taskmodel.Question, gen taskmodel.Generation, l form.Limits) *Form {
	m := newForm(q.Schema, q.Draft, l)
	m.question, m.q, m.gen = true, q, gen
	m.head = wording(q.Message)
	return m
}

func newForm(schema, draft json.RawMessage, l form.Limits) *Form {
	f, err := form.Parse(schema, l)
	m := &Form{}
	if err != nil {
		f = form.RawOnly(err)
		m.broken = err.Error()
	}
	m.setForm(f, draft)
	return m
}

func (m *Form) setForm(f *form.Form, draft json.RawMessage) {
	m.f, m.fresh = f, f.MarshalDraft(f.Start())
	m.areas = map[int]*area{}
	m.cursor = make([]int, len(f.Fields))
	var err error
	if m.d, err = f.UnmarshalDraft(draft); err != nil {
		m.note = "The draft that was kept could not be read."
	}
	for i := range m.cursor {
		if p := m.d.Values[i].Picked; len(p) > 0 {
			m.cursor[i] = p[0]
		}
	}
	if m.d.Raw != nil {
		m.raw = newArea(*m.d.Raw, true, false)
	}
	m.check()
}

// wording shows a server's words above the fields.
func wording(raw string) func(*theme.Theme, int) []string {
	return func(th *theme.Theme, w int) []string {
		text := strings.TrimSpace(safe.Text(raw))
		if text == "" {
			return nil
		}
		var out []string
		for _, l := range safe.Wrap(text, min(w, 100)) {
			out = append(out, th.Text.Render(l))
		}
		return append(out, "")
	}
}

func (m *Form) check() { m.problems = m.f.Problems(m.d) }

func (m *Form) changed() Event {
	m.check()
	m.note = ""
	return Event{Changed: true}
}

// Context implements Model.
func (m *Form) Context() keymap.Context { return keymap.Form }

// Draft implements Model. A form as it is before anything is filled in is
// nothing to keep, nor is one with nothing but something secret in it.
func (m *Form) Draft() json.RawMessage {
	if d := m.f.MarshalDraft(m.d); !bytes.Equal(d, m.fresh) {
		return d
	}
	return nil
}

// Answer is the content as it would be sent, and whether it may be.
func (m *Form) Answer() (json.RawMessage, bool) {
	a, err := m.f.Answer(m.d)
	return a, err == nil
}

// Problems says how many things keep the answer from being sent.
func (m *Form) Problems() int { return len(m.problems) }

// SetQuestion implements Model.
func (m *Form) SetQuestion(q taskmodel.Question) {
	if q.State != m.q.State {
		m.ask, m.note = None, ""
	}
	q.Schema, q.Draft = m.q.Schema, m.q.Draft
	m.q = q
}

// Fill implements Model.
func (m *Form) Fill(name, text string) Event {
	i := m.f.Field(name)
	if i < 0 || m.raw != nil {
		return Event{}
	}
	if m.d.Values[i].Text != "" { // a command takes its time, and its person did not wait
		m.note = "A draft has come; what you typed stays."
		return Event{}
	}
	m.setText(i, text)
	delete(m.areas, i)
	return m.changed()
}

func (m *Form) setText(i int, text string) {
	v := form.Value{Set: text != "", Text: text}
	if m.f.Fields[i].Kind == form.List && strings.TrimSpace(text) == "" {
		v.Set = false
	}
	m.d.Values[i] = v
}

// Edited implements Model.
func (m *Form) Edited(text string) Event {
	text = strings.TrimSuffix(text, "\n")
	if m.raw != nil {
		m.raw.set(text)
		s := m.raw.text
		m.d.Raw = &s
		return m.changed()
	}
	if len(m.f.Fields) == 0 || !m.typed(m.focus) {
		return Event{}
	}
	a := newArea(text, m.many(m.focus) || strings.Contains(text, "\n") && m.f.Fields[m.focus].Kind == form.Text, m.f.Fields[m.focus].Secret)
	m.areas[m.focus] = a
	m.setText(m.focus, a.text)
	return m.changed()
}

// typed reports whether a field is filled by typing text.
func (m *Form) typed(i int) bool {
	switch m.f.Fields[i].Kind {
	case form.Boolean, form.Choice, form.Multi:
		return false
	}
	return true
}

// many reports whether a field's text has several lines.
func (m *Form) many(i int) bool {
	f := m.f.Fields[i]
	return f.Long || f.Kind == form.List || f.Kind == form.JSON || f.Kind == form.Text && strings.Contains(m.d.Values[i].Text, "\n")
}

// area gives the editor of a field.
func (m *Form) area(i int) *area {
	a, ok := m.areas[i]
	if !ok {
		v := m.d.Values[i]
		text := v.Text
		if v.Other != nil {
			text = string(v.Other)
		}
		a = newArea(text, m.many(i), m.f.Fields[i].Secret)
		m.areas[i] = a
	}
	return a
}

// Update implements Model.
func (m *Form) Update(k *keymap.Map, msg tea.Msg) Event {
	switch msg := msg.(type) {
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			m.scroll(-3)
		case tea.MouseWheelDown:
			m.scroll(3)
		}
		return Event{}
	case tea.PasteMsg:
		if m.ask != None || m.review || m.gone() {
			return Event{}
		}
		return m.edit(msg)
	case tea.KeyPressMsg:
		return m.key(k, msg)
	}
	return Event{}
}

// gone reports whether the question has been withdrawn.
func (m *Form) gone() bool { return m.question && m.q.State == taskmodel.QuestionWithdrawn }

func (m *Form) key(k *keymap.Map, msg tea.KeyPressMsg) Event {
	if m.ask != None {
		return m.confirm(k, msg)
	}
	if m.gone() {
		if key.Matches(msg, k.FormAside.Binding) {
			return Event{Kind: Aside}
		}
		return Event{}
	}
	switch {
	case key.Matches(msg, k.FormAside.Binding):
		if m.review {
			m.review = false
			return Event{}
		}
		return Event{Kind: Aside}
	case key.Matches(msg, k.FormSend.Binding):
		return m.send(false)
	case m.question && mute(m.q, m.gen) && key.Matches(msg, k.FormDecline.Binding):
		m.note = noWay
		return Event{}
	case m.question && mute(m.q, m.gen) && key.Matches(msg, k.FormCancel.Binding):
		return Event{Kind: CancelTask}
	case m.question && key.Matches(msg, k.FormDecline.Binding):
		m.ask = Decline
		return Event{}
	case m.question && key.Matches(msg, k.FormCancel.Binding):
		m.ask = Cancel
		return Event{}
	case key.Matches(msg, k.FormReview.Binding):
		m.review = !m.review
		m.top = 0
		return Event{}
	case key.Matches(msg, k.FormJSON.Binding):
		return m.toggleJSON()
	}
	if m.review || m.raw == nil {
		switch msg.String() {
		case "pgup":
			m.scroll(-max(m.height-2, 1))
			return Event{}
		case "pgdown":
			m.scroll(max(m.height-2, 1))
			return Event{}
		}
	}
	if m.review {
		switch msg.String() {
		case "up":
			m.scroll(-1)
		case "down":
			m.scroll(1)
		}
		return Event{}
	}
	if key.Matches(msg, k.FormEditor.Binding) {
		return m.editor()
	}
	if key.Matches(msg, k.FormFile.Binding) && (m.raw != nil || len(m.f.Fields) > 0 && m.typed(m.focus)) {
		return Event{Kind: File}
	}
	if m.raw != nil {
		return m.edit(msg)
	}
	switch {
	case key.Matches(msg, k.FormNext.Binding):
		m.step(1)
		return Event{}
	case key.Matches(msg, k.FormPrev.Binding):
		m.step(-1)
		return Event{}
	case key.Matches(msg, k.FormUnset.Binding):
		return m.unset()
	}
	return m.edit(msg)
}

func (m *Form) confirm(k *keymap.Map, msg tea.KeyPressMsg) Event {
	what := m.ask
	m.ask = None
	again := map[EventKind]keymap.Binding{Decline: k.FormDecline, Cancel: k.FormCancel, Send: k.FormSend}[what]
	if !key.Matches(msg, again.Binding) && !key.Matches(msg, k.Yes.Binding) {
		return Event{}
	}
	if what == Send {
		return m.send(true)
	}
	return Event{Kind: what}
}

func (m *Form) send(again bool) Event {
	if m.question && !again {
		switch m.q.State {
		case taskmodel.QuestionSending:
			m.note = "It is being sent."
			return Event{}
		case taskmodel.QuestionAnswered, taskmodel.QuestionUnconfirmed:
			m.ask = Send
			return Event{}
		}
	}
	m.tried = true
	m.check()
	answer, err := m.f.Answer(m.d)
	if err != nil {
		m.review = false
		if p := m.problems; len(p) > 0 && m.raw == nil {
			if i := slices.IndexFunc(p, func(p form.Problem) bool { return p.Field >= 0 }); i >= 0 {
				m.setFocus(p[i].Field)
			}
		}
		m.free = false
		return Event{}
	}
	if m.content != nil {
		answer = m.content(answer)
	}
	return Event{Kind: Send, Content: answer}
}

func (m *Form) toggleJSON() Event {
	m.review, m.free, m.rawNote = false, false, ""
	if m.raw == nil {
		text := m.f.Pretty(m.d)
		m.raw = newArea(text, true, false)
		m.raw.at, m.top = 0, 0
		m.d.Raw = &text
		m.check()
		return Event{Changed: true}
	}
	if m.f.RawOnly != "" {
		m.rawNote = "This answer can be written as JSON only."
		return Event{}
	}
	d, err := m.f.FromJSON(json.RawMessage(m.raw.text))
	if err != nil {
		m.rawNote = "It cannot go back into the fields: " + err.Error() + "."
		return Event{}
	}
	m.d, m.raw = d, nil
	m.areas = map[int]*area{}
	return m.changed()
}

func (m *Form) editor() Event {
	if m.raw != nil {
		return Event{Kind: Editor, Text: m.raw.text, Name: "answer.json"}
	}
	if len(m.f.Fields) == 0 || !m.typed(m.focus) || m.f.Fields[m.focus].Secret {
		return Event{}
	}
	name := "field.txt"
	if m.f.Fields[m.focus].Kind == form.JSON {
		name = "field.json"
	}
	return Event{Kind: Editor, Text: m.area(m.focus).text, Name: name}
}

func (m *Form) scroll(d int) {
	m.top = max(m.top+d, 0)
	m.free = true
}

func (m *Form) setFocus(i int) {
	m.focus = max(min(i, len(m.f.Fields)-1), 0)
	m.free = false
}

func (m *Form) step(d int) {
	if n := len(m.f.Fields); n > 0 {
		m.setFocus((m.focus + d + n) % n)
	}
}

// unset leaves the field out; on a text that is left out already it makes the
// empty text.
func (m *Form) unset() Event {
	if len(m.f.Fields) == 0 {
		return Event{}
	}
	i := m.focus
	v := &m.d.Values[i]
	kind := m.f.Fields[i].Kind
	switch {
	case v.Set:
		*v = form.Value{}
	case kind == form.Text || kind == form.Multi || kind == form.List:
		*v = form.Value{Set: true}
	}
	delete(m.areas, i)
	m.free = false
	return m.changed()
}

// edit gives a key or a paste to what has the focus.
func (m *Form) edit(msg tea.Msg) Event {
	if m.raw != nil {
		if !m.raw.update(msg) {
			return Event{}
		}
		m.rawNote, m.free = "", false
		if *m.d.Raw == m.raw.text {
			return Event{}
		}
		s := m.raw.text
		m.d.Raw = &s
		return m.changed()
	}
	if len(m.f.Fields) == 0 {
		return Event{}
	}
	i := m.focus
	m.free = false
	if !m.typed(i) {
		if km, ok := msg.(tea.KeyPressMsg); ok {
			return m.pick(i, km)
		}
		return Event{}
	}
	a := m.area(i)
	before := a.text
	if a.update(msg) {
		if a.text == before {
			return Event{}
		}
		m.setText(i, a.text)
		return m.changed()
	}
	return m.leave(msg)
}

// leave takes the keys by which one goes on to another field.
func (m *Form) leave(msg tea.Msg) Event {
	if km, ok := msg.(tea.KeyPressMsg); ok {
		switch km.String() {
		case "up":
			m.setFocus(m.focus - 1)
		case "down":
			m.setFocus(m.focus + 1)
		case "enter":
			m.step(1)
		}
	}
	return Event{}
}

// Keys implements Model.
func (m *Form) Keys(k *keymap.Map) []keymap.Binding {
	if m.gone() {
		return []keymap.Binding{k.FormAside}
	}
	out := []keymap.Binding{k.FormSend}
	switch {
	case !m.question:
	case mute(m.q, m.gen):
		task := k.FormCancel
		task.Short = "cancel task"
		out = append(out, task)
	default:
		out = append(out, k.FormDecline, k.FormCancel)
	}
	out = append(out, k.FormAside)
	review, asJSON := k.FormReview, k.FormJSON
	switch {
	case m.review:
		review.Short = "go on writing"
		return append(out, review)
	case m.raw != nil:
		if m.f.RawOnly == "" {
			asJSON.Short = "as fields"
		}
		out = append(out, review, asJSON, k.FormEditor)
	default:
		out = append(out, k.FormNext, review, asJSON)
		if len(m.f.Fields) > 0 && m.typed(m.focus) {
			out = append(out, k.FormEditor)
		}
		out = append(out, k.FormUnset)
	}
	return out
}
