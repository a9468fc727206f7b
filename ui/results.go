package ui

import (
	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/ui/result"
	"mcptasks/ui/resultview"
	"mcptasks/ui/safe"
)

// outcomeMsg brings a result.
type outcomeMsg struct {
	key     taskmodel.Key
	outcome taskmodel.Outcome
	err     error
}

// openResult shows a task's result: what is kept here, else the server's, which
// may mean to wait for the task's end.
func (m *model) openResult(k taskmodel.Key) tea.Cmd {
	t, ok := m.env.Board.Task(k)
	if !ok {
		return nil
	}
	if t.Outcome.Result != nil || t.Outcome.Err != nil {
		return m.showOutcome(k, m.name(k), t.Outcome)
	}
	if t.Terminal() {
		m.say("Fetching the result of "+m.name(k)+" …", false)
	} else {
		m.say("Waiting for "+m.name(k)+" to end; its result opens then.", false)
	}
	m.result = k
	ctx := m.ctx
	return func() tea.Msg {
		o, err := m.mon.Fetch(ctx, k)
		return outcomeMsg{k, o, err}
	}
}

func (m *model) showOutcome(k taskmodel.Key, title string, o taskmodel.Outcome) tea.Cmd {
	m.push(result.New(k, title, m.opt.SaveDir, o, resultview.Options{NoImages: m.th.Name == "mono"}))
	return nil
}

func (m *model) outcome(o outcomeMsg) tea.Cmd {
	if o.err != nil {
		m.say(safe.Line(o.err.Error()), true)
		return nil
	}
	if m.result != o.key {
		// The person has gone on meanwhile: nothing opens over what they do.
		m.say("The result of "+m.name(o.key)+" is here; "+m.keys.Result.Label()+" shows it.", false)
		return nil
	}
	m.result = taskmodel.Key{}
	return m.showOutcome(o.key, m.name(o.key), o.outcome)
}
