package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/ask"
	"mcptasks/ui/kit"
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
	m.push(ask.New(q, m.generationOf(q), m.opt.Schema))
	return m.draftCompletion(q)
}

// generationOf is what the server of a question speaks, "" when not known.
func (m *model) generationOf(q taskmodel.Question) taskmodel.Generation {
	if t, ok := m.env.Board.Task(q.Task); ok && t.Generation != "" {
		return t.Generation
	}
	s, _ := m.env.Board.Server(q.ID.Server)
	return s.Generation
}

// closeQuestion takes a question's screen away, also from below another.
func (m *model) closeQuestion(id taskmodel.QuestionID) {
	delete(m.drafts, id)
	if a, ok := m.top().(*ask.Ask); ok && a.ID() == id {
		m.pop()
		return
	}
	m.stack = slices.DeleteFunc(m.stack, func(s kit.Screen) bool {
		a, ok := s.(*ask.Ask)
		return ok && a.ID() == id
	})
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
		if q.State != taskmodel.QuestionWithdrawn && (t.Status == taskmodel.InputRequired || q.Repeat.Tool != "") {
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

// calling is what m.await holds while a call is under way and no key was
// pressed since: its person waits for it, so that pages which it wants visited
// may open by themselves.
func calling(server string) taskmodel.Key { return taskmodel.Key{Server: server, Role: "call"} }

// pagesMsg is the end of a call that wants pages visited first.
type pagesMsg struct {
	server, tool string
	questions    []taskmodel.QuestionID
}

// pages shows the first page of a call that the server refused until it was
// visited, where the person waits for that call; else it tells of them.
func (m *model) pages(p pagesMsg) tea.Cmd {
	waits := m.await == calling(p.server)
	m.await = taskmodel.Key{}
	m.env.Board = m.mon.Board()
	m.others(ask.CalledMsg{Server: p.server, Tool: p.tool})
	text := safe.Line(p.server) + " runs " + safe.Line(p.tool) + " only when " + plural(len(p.questions), "a page was", kit.Count(len(p.questions), "page")+" were") + " visited"
	if !waits {
		m.say(text+"; "+m.keys.Inbox.Label()+" shows it.", false)
		return nil
	}
	if a, ok := m.top().(*ask.Ask); ok && slices.Contains(p.questions, a.ID()) {
		m.say(text+".", true)
		return m.do(a.Refresh(&m.env))
	}
	if _, ok := m.top().(*start.Start); ok {
		m.pop()
	}
	cmd := m.openQuestion(p.questions[0])
	m.say(text+".", false)
	return cmd
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
	s := start.New(a.Server, recent, m.opt.Schema)
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
	m.await = calling(r.Server)
	ctx := m.ctx
	return func() tea.Msg {
		reply, err := m.mon.Start(ctx, r)
		var wanted *monitor.PagesError
		if errors.As(err, &wanted) {
			return pagesMsg{r.Server, r.Tool, wanted.Questions}
		}
		if err != nil {
			ended := func() tea.Msg { return ask.CalledMsg{Server: r.Server, Tool: r.Tool} }
			return doneMsg{err: err, then: act.Cmd{Cmd: ended}}
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
	if a, ok := m.top().(*ask.Ask); ok && a.Question().Repeat.Tool == s.tool && a.ID().Server == s.server {
		m.pop() // the call that wanted the page visited
	}
	if s.task.ID != "" {
		if s, ok := m.top().(*start.Start); ok && !s.Stay() {
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
