package ui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/ask"
	"mcptasks/ui/safe"
)

// slowDraft is how long a command may write at a draft until it is told of.
const slowDraft = 500 * time.Millisecond

// A drafting is a command that writes at the draft of a completion, or has
// written it while its question was put aside.
type drafting struct {
	done bool
	text string
}

type (
	// draftedMsg brings what a command has written.
	draftedMsg struct {
		id   taskmodel.QuestionID
		text string
		err  error
	}
	// slowDraftMsg comes when a command has been at work for a while.
	slowDraftMsg struct{ id taskmodel.QuestionID }
)

// draftCompletion has the server's command draft the completion that a question
// is about, once: a model may be behind it. Where somebody has begun to write, or
// the question is over, nothing is drafted.
func (m *model) draftCompletion(q taskmodel.Question) tea.Cmd {
	if q.Kind != taskmodel.AskSampling || m.opt.Sampling == nil || len(q.Draft) > 0 || !q.State.Open() {
		return nil
	}
	if d := m.drafts[q.ID]; d != nil {
		if d.done {
			return m.fillDraft(q.ID, d.text)
		}
		m.sayDrafting(q.ID)
		return nil
	}
	m.drafts[q.ID] = &drafting{}
	ctx, draft := m.ctx, m.opt.Sampling
	return tea.Batch(
		func() tea.Msg {
			text, err := draft(ctx, q.ID.Server, q.Params)
			return draftedMsg{q.ID, text, err}
		},
		tea.Tick(slowDraft, func(time.Time) tea.Msg { return slowDraftMsg{q.ID} }))
}

// drafted takes what a command has written.
func (m *model) drafted(msg draftedMsg) tea.Cmd {
	if msg.err != nil || msg.text == "" {
		delete(m.drafts, msg.id) // it may be tried again
		if msg.err != nil {
			m.say(fmt.Sprintf("the sampling command of %s: %v", msg.id.Server, msg.err), true)
		}
		return nil
	}
	m.drafts[msg.id] = &drafting{true, msg.text}
	return m.fillDraft(msg.id, msg.text)
}

// fillDraft puts a draft into the form of its question, where that is open.
func (m *model) fillDraft(id taskmodel.QuestionID, text string) tea.Cmd {
	for _, s := range m.stack {
		if a, ok := s.(*ask.Ask); ok && a.ID() == id {
			return m.do(a.Update(&m.env, ask.FillMsg{ID: id, Name: "text", Text: text}))
		}
	}
	return nil
}

// sayDrafting says that there is something to wait for.
func (m *model) sayDrafting(id taskmodel.QuestionID) {
	d := m.drafts[id]
	if a, ok := m.top().(*ask.Ask); ok && a.ID() == id && d != nil && !d.done {
		m.notice = notice{"The sampling command of " + safe.Line(id.Server) + " writes a draft …", false, m.now.Add(act.After)}
	}
}
