package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/ask"
	"mcptasks/ui/safe"
	"mcptasks/ui/start"
)

// openQuestion shows a question's form.
func (m *model) openQuestion(id taskmodel.QuestionID) tea.Cmd {
	q, ok := m.env.Board.Question(id)
	if !ok {
		m.say("The server no longer asks this.", true)
		return nil
	}
	m.push(ask.New(q))
	if q.Kind != taskmodel.AskSampling || m.opt.Sampling == nil || len(q.Draft) > 0 {
		return nil
	}
	ctx, draft := m.ctx, m.opt.Sampling
	return func() tea.Msg {
		text, err := draft(ctx, id.Server, q.Params)
		if err != nil {
			return doneMsg{err: fmt.Errorf("the sampling command of %s: %w", id.Server, err)}
		}
		if text == "" {
			return nil
		}
		return ask.FillMsg{ID: id, Name: "text", Text: text}
	}
}

// answerTask opens the task's question; where the server has not put it yet,
// it asks for it, because the person wants to answer.
func (m *model) answerTask(k taskmodel.Key) tea.Cmd {
	if q, ok := m.env.OpenQuestion(k); ok {
		return m.openQuestion(q.ID)
	}
	t, ok := m.env.Board.Task(k)
	if !ok {
		return nil
	}
	// Answered questions can be looked at and sent again by hand.
	for _, q := range m.env.QuestionsOf(k) {
		if q.State != taskmodel.QuestionWithdrawn && t.Status == taskmodel.InputRequired {
			return m.openQuestion(q.ID)
		}
	}
	if t.Status != taskmodel.InputRequired {
		m.say(m.name(k)+" asks nothing.", false)
		return nil
	}
	if m.refuse("answers") {
		return nil
	}
	m.await = k
	m.say("Asking "+safe.Line(k.Server)+" for its question …", false)
	return m.run(func(ctx context.Context) (string, error) { return "", m.mon.Ask(ctx, k) })
}

// awaited opens the question that the person asked for by pressing a, when it
// comes before any other key.
func (m *model) awaited() tea.Cmd {
	if m.await == (taskmodel.Key{}) {
		return nil
	}
	q, ok := m.env.OpenQuestion(m.await)
	if !ok {
		return nil
	}
	m.await = taskmodel.Key{}
	m.notice = notice{}
	return m.openQuestion(q.ID)
}

func (m *model) answer(a taskmodel.Answer) tea.Cmd {
	if m.refuse("answers") {
		return nil
	}
	return m.run(func(ctx context.Context) (string, error) {
		if err := m.mon.Answer(ctx, a); err != nil {
			return "", err
		}
		switch a.Action {
		case taskmodel.Decline:
			return "Declined.", nil
		case taskmodel.Cancel:
			return "Cancelled the question.", nil
		}
		return "", nil
	})
}

func (m *model) openStart(a act.OpenStart) tea.Cmd {
	if m.refuse("starts") {
		return nil
	}
	var recent []start.Call
	for _, c := range m.calls {
		r := c.Request
		recent = append(recent, start.Call{Server: r.Server, Tool: r.Tool, Args: r.Args, TTL: r.TTL, Plain: r.Plain})
	}
	s := start.New(a.Server, recent)
	s.Under(a.TaskID)
	if a.Tool != "" && !s.Choose(&m.env, a.Server, a.Tool, a.Args) {
		m.say(fmt.Sprintf("%s has no tool called %q that is known here.", safe.Line(a.Server), safe.Line(a.Tool)), true)
	}
	m.push(s)
	return m.do(s.Refresh(&m.env))
}

// startedMsg is the end of a start.
type startedMsg struct {
	task    taskmodel.Key
	server  string
	tool    string
	note    string
	outcome taskmodel.Outcome
}

func (m *model) start(a act.Start) tea.Cmd {
	m.calls = append([]act.Start{a}, slices.DeleteFunc(m.calls, func(c act.Start) bool {
		return c.Request.Server == a.Request.Server && c.Request.Tool == a.Request.Tool && string(c.Request.Args) == string(a.Request.Args)
	})...)
	m.calls = m.calls[:min(len(m.calls), 20)]
	r := a.Request
	m.say("Starting "+safe.Line(r.Tool)+" on "+safe.Line(r.Server)+" …", false)
	ctx := m.ctx
	return func() tea.Msg {
		reply, err := m.mon.Start(ctx, r)
		if err != nil {
			return doneMsg{err: err}
		}
		return startedMsg{reply.Key, r.Server, r.Tool, reply.Note, reply.Outcome}
	}
}

// started leaves the form: a task is selected in the list, a finished call's
// result is shown.
func (m *model) started(s startedMsg) tea.Cmd {
	text := "Started " + safe.Line(s.tool) + " on " + safe.Line(s.server) + "."
	if s.note != "" {
		text += " " + safe.Line(s.note)
	}
	if s.task.ID != "" {
		if _, ok := m.top().(*start.Start); ok {
			m.clear()
		}
		m.list.Select(s.task)
		m.say(text, false)
		return nil
	}
	if _, ok := m.top().(*start.Start); ok {
		m.pop()
	}
	m.say(safe.Line(s.tool)+" answered at once, without a task."+pad(s.note), false)
	return m.showOutcome(taskmodel.Key{Server: s.server}, safe.Line(s.tool)+" on "+safe.Line(s.server), s.outcome)
}

func pad(note string) string {
	if note == "" {
		return ""
	}
	return " " + safe.Line(note)
}

// hook runs the person's command with the event's task as JSON on its stdin.
func (m *model) hook(t taskmodel.Task, kind taskmodel.EventKind) tea.Cmd {
	var data json.RawMessage
	if m.opt.TaskJSON != nil {
		data = m.opt.TaskJSON(t, m.env.Board)
	} else {
		data = plainJSON(t)
	}
	payload, err := json.Marshal(map[string]any{"event": kind, "time": m.now, "task": data})
	if err != nil {
		return nil
	}
	return runHook(m.ctx, m.opt.Notify.Hook, payload)
}

// plainJSON is a task in the names of the command line's JSON, without what
// takes the board to know.
func plainJSON(t taskmodel.Task) json.RawMessage {
	b, _ := json.Marshal(map[string]any{
		"server": t.Server, "taskId": t.ID, "role": t.Role, "generation": t.Generation, "status": t.Status,
		"statusMessage": t.StatusMessage, "tool": t.Tool, "standing": t.Standing, "note": t.Note,
	})
	return b
}
