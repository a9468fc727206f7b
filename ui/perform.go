package ui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/ask"
	"mcptasks/ui/detail"
	"mcptasks/ui/dialog"
	"mcptasks/ui/help"
	"mcptasks/ui/inbox"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/servers"
	"mcptasks/ui/start"
	"mcptasks/ui/wirelog"
)

// do carries out what a screen asked for. Whatever takes time or can wait
// becomes a command.
func (m *model) do(a act.Action) tea.Cmd {
	switch a := a.(type) {
	case nil:
		return nil
	case act.Batch:
		var cmds []tea.Cmd
		for _, one := range a {
			cmds = append(cmds, m.do(one))
		}
		return tea.Batch(cmds...)
	case act.Cmd:
		return a.Cmd
	case act.Back:
		m.pop()
	case act.Goto:
		return m.goTo(a.Screen)
	case act.OpenTask:
		d := detail.New(a.Task, false)
		m.push(d)
		return tea.Batch(m.reload(), m.history(a.Task))
	case act.OpenWire:
		m.stack = nil
		m.push(wirelog.New(wirelog.Scope{Server: a.Server, Task: a.Task.ID}))
		return m.reload()
	case act.OpenResult:
		return m.openResult(a.Task)
	case act.OpenQuestion:
		return m.openQuestion(a.ID)
	case act.AnswerTask:
		return m.answerTask(a.Task)
	case act.OpenStart:
		return m.openStart(a)
	case act.Filter:
		return m.do(m.list.SetFilter(&m.env, a.Text))
	case act.Command:
		m.openPalette(a.Text)
	case act.Cancel:
		return m.confirmCancel(a.Tasks)
	case act.Forget:
		return m.confirmForget(a.Tasks)
	case act.Fetch:
		return m.confirmFetch(a.Tasks)
	case reallyFetch:
		return m.fetchAll(a.tasks)
	case act.Poll:
		return m.pollAll(a.Tasks)
	case reallyCancel:
		return m.cancelAll(a.tasks)
	case reallyForget:
		return m.forgetAll(a.tasks, a.there)
	case quitNow:
		m.quit = true
	case declineAll:
		return m.declineAll(a.questions)
	case act.Answer:
		return m.answer(a.Answer)
	case ask.Done:
		m.closeQuestion(a.ID)
	case act.Draft:
		m.mon.SaveDraft(a.ID, a.Draft)
	case act.Start:
		return m.start(a)
	case act.Tools:
		return m.tools(a.Server)
	case act.Connect:
		m.mon.Connect(a.Server)
		m.say("Connecting to "+safe.Line(a.Server)+" …", false)
	case act.Disconnect:
		m.mon.Disconnect(a.Server)
		m.say(safe.Line(a.Server)+" is off; "+m.keys.Connect.Label()+" starts it again.", false)
	case act.SignIn:
		return m.signIn(a.Server)
	case act.Roots:
		m.mon.SetRoots(a.Server, a.Roots)
		folders := "no folder"
		if n := len(a.Roots); n > 0 {
			folders = kit.Count(n, "folder")
		}
		m.say(safe.Line(a.Server)+" may ask for "+folders+" now.", false)
	case act.LogLevel:
		return m.run(func(ctx context.Context) (string, error) {
			return safe.Line(a.Server) + " sends messages from " + a.Level + " on.", m.mon.SetLogLevel(ctx, a.Server, a.Level)
		})
	case act.Copy:
		m.say(fmt.Sprintf("Copied %s, %s.", a.What, kit.Bytes(int64(len(a.Text)))), false)
		return tea.SetClipboard(a.Text)
	case act.Save:
		m.dialogs.Push(dialog.NewLine(m.saveLine(a)))
	case saveTo:
		return m.save(a)
	case act.ReadResource:
		return m.readResource(a)
	case act.Edit:
		return m.edit(a)
	case act.Read:
		return readFile(a)
	case act.Page:
		return m.page(a)
	case act.Browse:
		return browse(m.ctx, a.URL)
	case act.OpenFile:
		return openData(m.ctx, a)
	case act.Notice:
		m.say(a.Text, a.Error)
	case act.Ask:
		m.dialogs.Push(dialog.Confirm{Ask: a})
	case act.Line:
		m.dialogs.Push(dialog.NewLine(a))
	case selectTask:
		m.clear()
		m.list.Select(a.key)
	case addTask:
		return m.add(a.server, a.id)
	}
	return nil
}

type (
	reallyCancel struct{ tasks []taskmodel.Key }
	reallyFetch  struct{ tasks []taskmodel.Key }
	reallyForget struct {
		tasks []taskmodel.Key
		there bool
	}
	quitNow    struct{}
	declineAll struct{ questions []taskmodel.QuestionID }
	addTask    struct{ server, id string }
	saveTo     struct {
		path string
		data []byte
		what string
		over bool
	}
)

// run makes a command whose end is a sentence.
func (m *model) run(f func(ctx context.Context) (string, error)) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		text, err := f(ctx)
		if err != nil {
			return doneMsg{err: err}
		}
		return doneMsg{text: text}
	}
}

func (m *model) push(s kit.Screen) {
	m.notice = notice{}
	m.sideKey = false
	m.side.Focus(false)
	m.stack = append(m.stack, s)
}

func (m *model) pop() {
	if n := len(m.stack); n > 0 {
		m.notice = notice{}
		m.leave(m.stack[n-1])
		m.stack = m.stack[:n-1]
		return
	}
	if m.sideKey {
		m.sideKey = false
		m.side.Focus(false)
	}
}

// leave lets a screen that is closed keep what was typed in it.
func (m *model) leave(s kit.Screen) {
	if c, ok := s.(interface{ Close() act.Action }); ok {
		if a := c.Close(); a != nil {
			m.do(a)
		}
	}
}

func (m *model) clear() {
	for len(m.stack) > 0 {
		m.pop()
	}
}

func (m *model) goTo(name string) tea.Cmd {
	switch name {
	case "help":
		in := m.top().Context()
		if _, ok := m.top().(*help.Help); ok {
			m.pop()
			return nil
		}
		m.push(help.New(in))
		return nil
	case "tasks":
		m.clear()
	case "inbox":
		m.clear()
		m.push(inbox.New())
	case "servers":
		m.clear()
		m.push(servers.New())
	case "wire":
		return m.do(act.OpenWire{})
	}
	return nil
}

// reload feeds the screens in view with what the monitor keeps beside the
// board. Both reads return at once.
func (m *model) reload() tea.Cmd {
	feed := func(d *detail.Detail) {
		k := d.Key()
		if k.ID == "" {
			return
		}
		d.Refresh(&m.env)
		d.Feed(m.mon.Logs(k), m.mon.Wire(monitor.WireFilter{Server: k.Server, Task: k.ID, After: d.WireAfter(), Max: 2000}), m.mon.WireFrom())
	}
	switch s := m.top().(type) {
	case *detail.Detail:
		feed(s)
	case *wirelog.Log:
		sc := s.Scope()
		s.Feed(m.mon.Wire(monitor.WireFilter{Server: sc.Server, Task: sc.Task, After: s.After()}), m.mon.WireFrom())
	default:
		if m.sideShown() {
			if k, ok := m.list.Selected(); ok {
				m.side.Show(k)
				feed(m.side)
			}
		}
	}
	return nil
}

// historyMsg brings a task's audit trail.
type historyMsg struct {
	key  taskmodel.Key
	past []taskmodel.Event
}

func (m *model) history(k taskmodel.Key) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		past, err := m.mon.History(ctx, k)
		if err != nil {
			return nil
		}
		return historyMsg{k, past}
	}
}

func (m *model) pause() tea.Cmd {
	on := !m.mon.Paused()
	m.mon.Pause(on)
	m.env.Paused = on
	if on {
		m.say("Polling is paused; pushes still come. "+m.keys.Pause.Label()+" resumes.", false)
	} else {
		m.say("Polling again.", false)
	}
	return nil
}

// bulk runs one call for each task and tells how it went.
func (m *model) bulk(tasks []taskmodel.Key, did string, f func(ctx context.Context, k taskmodel.Key) error) tea.Cmd {
	return m.run(func(ctx context.Context) (string, error) {
		sem := make(chan struct{}, 8)
		errs := make(chan error, len(tasks))
		for _, k := range tasks {
			sem <- struct{}{}
			go func() {
				defer func() { <-sem }()
				errs <- f(ctx, k)
			}()
		}
		var bad []error
		for range tasks {
			if err := <-errs; err != nil {
				bad = append(bad, err)
			}
		}
		switch {
		case len(bad) == 0:
			return did, nil
		case len(tasks) == 1:
			return "", bad[0]
		}
		return "", fmt.Errorf("%d of %s: %w", len(bad), kit.Count(len(tasks), "task"), errors.Join(bad[0]))
	})
}

func (m *model) name(k taskmodel.Key) string {
	t, ok := m.env.Board.Task(k)
	if ok && t.Tool != "" {
		return safe.Line(t.Tool) + " " + kit.ShortID(k.ID) + " on " + safe.Line(k.Server)
	}
	return kit.ShortID(k.ID) + " on " + safe.Line(k.Server)
}

func (m *model) pollAll(tasks []taskmodel.Key) tea.Cmd {
	what := "Polled " + kit.Count(len(tasks), "task") + "."
	if len(tasks) == 1 {
		what = "Polled " + m.name(tasks[0]) + "."
	}
	return m.bulk(tasks, what, func(ctx context.Context, k taskmodel.Key) error {
		_, err := m.mon.Poll(ctx, k)
		return err
	})
}

func (m *model) fetchAll(tasks []taskmodel.Key) tea.Cmd {
	ended := tasks[:0:0]
	for _, k := range tasks {
		if t, ok := m.env.Board.Task(k); ok && t.Terminal() {
			ended = append(ended, k)
		}
	}
	if len(ended) == 0 {
		m.say("A result can be fetched when its task has ended; "+m.keys.Result.Label()+" waits for one.", false)
		return nil
	}
	m.say("Fetching "+kit.Count(len(ended), "result")+" …", false)
	return m.bulk(ended, "Fetched "+kit.Count(len(ended), "result")+".", func(ctx context.Context, k taskmodel.Key) error {
		_, err := m.mon.Fetch(ctx, k)
		return err
	})
}

// refuse says no in a read-only session.
func (m *model) refuse(what string) bool {
	if m.opt.Readonly {
		m.say("This session is read-only: it "+what+" nothing.", true)
	}
	return m.opt.Readonly
}

func (m *model) addLine(server string) act.Action {
	if m.env.Readonly {
		m.refuse("adds")
		return nil
	}
	text := ""
	if server == "" {
		if s := m.env.Board.Servers(); len(s) == 1 {
			server = s[0].Name
		}
	}
	if server != "" {
		text = server + "/"
	}
	return act.Line{
		Title: "Take up a task by its id, as SERVER/TASKID",
		Text:  text,
		Suggest: func(s string) []string {
			var out []string
			for _, sv := range m.env.Board.Servers() {
				if n := sv.Name + "/"; strings.HasPrefix(n, s) && n != s {
					out = append(out, n)
				}
			}
			return out
		},
		Done: func(s string) act.Action {
			server, id, ok := strings.Cut(strings.TrimSpace(s), "/")
			if !ok || server == "" || id == "" {
				return act.Notice{Text: "Write it as SERVER/TASKID.", Error: true}
			}
			if _, ok := m.env.Board.Server(server); !ok {
				return act.Notice{Text: fmt.Sprintf("No server is called %q.", safe.Line(server)), Error: true}
			}
			return addTask{server, id}
		},
	}
}

func (m *model) add(server, id string) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		t, err := m.mon.Add(ctx, server, id)
		if err != nil {
			return doneMsg{err: err}
		}
		return doneMsg{text: "Took up " + kit.ShortID(t.ID) + " on " + safe.Line(server) + ".", then: selectTask{t.Key}}
	}
}

type selectTask struct{ key taskmodel.Key }

func (m *model) signIn(server string) tea.Cmd {
	if m.opt.SignIn == nil {
		m.say("Sign in with: mcptasks login "+safe.Line(server), false)
		return nil
	}
	m.say("Signing in to "+safe.Line(server)+"; a browser window opens …", false)
	return m.run(func(ctx context.Context) (string, error) {
		return "Signed in to " + safe.Line(server) + ".", m.opt.SignIn(ctx, server)
	})
}

func (m *model) tools(server string) tea.Cmd {
	ctx := m.ctx
	return func() tea.Msg {
		tools, err := m.mon.Tools(ctx, server)
		if err != nil {
			return doneMsg{err: err}
		}
		return start.ToolsMsg{Server: server, Tools: tools}
	}
}

// tell rings, notifies and runs the hook for what has happened.
func (m *model) tell(events []taskmodel.Event) tea.Cmd {
	m.env.Board = m.mon.Board()
	cmds := []tea.Cmd{m.do(m.list.Refresh(&m.env))}
	t := m.teller.Tell(events, m.env.Board, m.now, m.focused)
	if t.Bell {
		cmds = append(cmds, tea.Raw("\a"))
	}
	for _, n := range t.Notes {
		cmds = append(cmds, tea.Raw(n))
	}
	for i := range t.Hooked {
		cmds = append(cmds, m.hook(t.Hooked[i], t.Kind[i]))
	}
	return tea.Batch(cmds...)
}
