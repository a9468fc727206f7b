// Package start is the screen that starts a task: a fuzzy choice over all
// tools of all servers, with why one cannot run as a task, then the form of its
// arguments.
//
// It imports kit, act, theme, safe, formview, monitor's values and taskmodel.
// It calls nothing: what to start comes out as an action.
package start

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/act"
	"mcptasks/ui/formview"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// A Call is an earlier start, to be repeated with changes.
type Call struct {
	Server, Tool string
	Args         json.RawMessage
	TTL          time.Duration
	Plain        bool
}

func (c Call) same(d Call) bool {
	return c.Server == d.Server && c.Tool == d.Tool && string(c.Args) == string(d.Args)
}

// recentOf are the latest calls among the board's tasks of ours, so that what
// was started in an earlier run can be repeated, too.
func recentOf(e *kit.Env) []Call {
	type started struct {
		at time.Time
		Call
	}
	var all []started
	e.Board.Tasks(func(t *taskmodel.Task) bool {
		if !t.Ours || t.Tool == "" || t.Role != taskmodel.Requestor || len(t.Args) == 0 {
			return true
		}
		at, _ := t.Born()
		c := started{at, Call{Server: t.Server, Tool: t.Tool, Args: t.Args, TTL: t.AskedTTL.Duration}}
		if i := slices.IndexFunc(all, func(o started) bool { return o.same(c.Call) }); i >= 0 {
			if at.After(all[i].at) {
				all[i].at = at
			}
			return true
		}
		all = append(all, c)
		if len(all) > 64 {
			oldest := 0
			for i := range all {
				if all[i].at.Before(all[oldest].at) {
					oldest = i
				}
			}
			all = slices.Delete(all, oldest, oldest+1)
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b started) int { return b.at.Compare(a.at) })
	var out []Call
	for _, c := range all {
		out = append(out, c.Call)
	}
	return out
}

// A Start is the screen. It is owned by the root's goroutine.
type Start struct {
	edit   kit.Edit
	table  kit.Table
	server string // only this server's tools; "" is all
	recent []Call
	tools  map[string][]taskmodel.Tool // fetched here, over those of the board
	taskID string

	tool  *taskmodel.Tool
	form  *formview.Form
	limit form.Limits // of its schema
	ttl   time.Duration
	plain bool
	asked map[string]bool
	stay  bool   // the last start was to stay here
	begun int    // starts from this form
	past  []Call // earlier starts that the board knows, newest first
}

// Stay reports whether the person wants to start more of these.
func (s *Start) Stay() bool { return s.form != nil && s.stay }

// New makes the screen; recent calls are offered first, the newest first, and l
// bounds the forms of tools.
func New(server string, recent []Call, l form.Limits) *Start {
	return &Start{limit: l, server: server, recent: recent, tools: map[string][]taskmodel.Tool{}, asked: map[string]bool{}}
}

// Under makes the task be started under an id that its server requires.
func (s *Start) Under(taskID string) { s.taskID = taskID }

// ToolsMsg brings a server's tools.
type ToolsMsg struct {
	Server string
	Tools  []taskmodel.Tool
}

// editedMsg brings text that was written in the editor.
type editedMsg struct {
	text string
	err  error
}

// Choose opens the form of a tool at once, filled with args; it reports whether
// the tool is known.
func (s *Start) Choose(e *kit.Env, server, tool string, args json.RawMessage) bool {
	for _, t := range s.all(e) {
		if t.Server == server && t.Name == tool {
			s.open(t, args)
			return true
		}
	}
	return false
}

func (s *Start) open(t taskmodel.Tool, args json.RawMessage) {
	s.tool = &t
	s.plain = t.WhyNotTask != ""
	msg := t.Description
	if len(msg) > 1200 {
		msg = strings.ToValidUTF8(msg[:1200], "") + " …"
	}
	s.form = formview.NewTool(t.InputSchema, msg, args, s.limit)
}

// Context implements kit.Screen.
func (s *Start) Context() keymap.Context {
	if s.form != nil {
		return keymap.Form
	}
	return keymap.Prompt
}

// Typing implements kit.Typer: letters are the search's or the form's.
func (s *Start) Typing() bool { return true }

// Refresh implements kit.Refresher: it fetches the tools of servers that have
// shown none yet.
func (s *Start) Refresh(e *kit.Env) act.Action {
	if s.past == nil {
		s.past = recentOf(e)
	}
	var out act.Batch
	for _, sv := range e.Board.Servers() {
		if sv.State == taskmodel.ServerReady && len(sv.Tools) == 0 && !s.asked[sv.Name] && (s.server == "" || s.server == sv.Name) {
			s.asked[sv.Name] = true
			out = append(out, act.Tools{Server: sv.Name})
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (s *Start) all(e *kit.Env) []taskmodel.Tool {
	var out []taskmodel.Tool
	for _, sv := range e.Board.Servers() {
		if s.server != "" && sv.Name != s.server {
			continue
		}
		tools := sv.Tools
		if t, ok := s.tools[sv.Name]; ok && len(tools) == 0 {
			tools = t
		}
		for _, t := range tools {
			t.Server = sv.Name
			out = append(out, t)
		}
	}
	return out
}

// A row is a tool, or an earlier call of one.
type row struct {
	tool taskmodel.Tool
	call *Call
}

func (s *Start) rows(e *kit.Env) []row {
	all := s.all(e)
	var rows []row
	recent := slices.Clone(s.recent)
	for _, c := range s.past {
		if !slices.ContainsFunc(recent, c.same) {
			recent = append(recent, c)
		}
	}
	for i := range recent {
		c := &recent[i]
		for _, t := range all {
			if t.Server == c.Server && t.Name == c.Tool {
				rows = append(rows, row{t, c})
				break
			}
		}
		if len(rows) == 5 {
			break
		}
	}
	// What can run as a task is what one is here for.
	for _, plain := range []bool{false, true} {
		for _, t := range all {
			if (t.WhyNotTask != "") == plain {
				rows = append(rows, row{tool: t})
			}
		}
	}
	return kit.Best(rows, s.edit.Text(), func(r row) string {
		text := r.tool.Name + " " + r.tool.Title + " " + r.tool.Server
		if r.call != nil {
			return text + " " + string(form.Shown(r.tool.InputSchema, r.call.Args, s.limit))
		}
		return text + " " + r.tool.Description
	})
}

// Update implements kit.Screen.
func (s *Start) Update(e *kit.Env, m tea.Msg) act.Action {
	switch m := m.(type) {
	case ToolsMsg:
		s.tools[m.Server] = m.Tools
		return nil
	case editedMsg:
		if m.err != nil {
			return act.Notice{Text: m.err.Error(), Error: true}
		}
		if s.form != nil {
			s.form.Edited(m.text)
		}
		return nil
	case ttlMsg:
		s.ttl = m.d
		return nil
	}
	if s.form != nil {
		return s.updateForm(e, m)
	}
	k, isKey := m.(tea.KeyPressMsg)
	rows := s.rows(e)
	if isKey {
		keys := e.Keys
		switch {
		case key.Matches(k, keys.Leave.Binding):
			if s.edit.Text() != "" {
				s.edit.Set("")
				s.table.Cursor = 0
				return nil
			}
			return act.Back{}
		case key.Matches(k, keys.HistoryUp.Binding):
			s.table.Cursor = max(s.table.Cursor-1, 0)
			return nil
		case key.Matches(k, keys.HistoryDown.Binding):
			s.table.Cursor = min(s.table.Cursor+1, max(len(rows)-1, 0))
			return nil
		case k.String() == "pgdown":
			s.table.Wheel(s.table.Height(), len(rows))
			return nil
		case k.String() == "pgup":
			s.table.Wheel(-s.table.Height(), len(rows))
			return nil
		case key.Matches(k, keys.Accept.Binding):
			if s.table.Cursor >= len(rows) {
				return nil
			}
			r := rows[s.table.Cursor]
			var args json.RawMessage
			if r.call != nil {
				args, s.ttl = r.call.Args, r.call.TTL
			}
			s.open(r.tool, args)
			if r.call != nil && r.call.Plain {
				s.plain = true
			}
			return nil
		}
	}
	if s.edit.Update(m) {
		s.table.Cursor, s.table.Top = 0, 0
	}
	return nil
}

type ttlMsg struct{ d time.Duration }

func (s *Start) updateForm(e *kit.Env, m tea.Msg) act.Action {
	if k, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, e.Keys.StartTTL.Binding):
			return s.ttlLine(e)
		case key.Matches(k, e.Keys.StartPlain.Binding):
			if s.tool.WhyNotTask != "" && s.plain {
				return act.Notice{Text: "It cannot run as a task: " + safe.Line(s.tool.WhyNotTask), Error: true}
			}
			if s.tool.TaskSupport == "required" && !s.plain {
				return act.Notice{Text: "This tool runs only as a task.", Error: true}
			}
			s.plain = !s.plain
			return nil
		}
	}
	keys := e.Keys
	s.stay = false
	if k, ok := m.(tea.KeyPressMsg); ok && key.Matches(k, keys.StartMore.Binding) {
		// The form knows one key that sends.
		more := *keys
		more.FormSend.Binding = keys.StartMore.Binding
		keys, s.stay = &more, true
	}
	ev := s.form.Update(keys, m)
	switch ev.Kind {
	case formview.Aside:
		s.form, s.tool = nil, nil
	case formview.Send:
		if e.Readonly {
			return act.Notice{Text: "This session is read-only: it starts nothing.", Error: true}
		}
		s.begun++
		return act.Start{Request: monitor.StartRequest{
			Server: s.tool.Server, Tool: s.tool.Name, Args: ev.Content, TTL: s.ttl, Plain: s.plain, TaskID: s.taskID,
		}}
	case formview.Editor:
		return act.Edit{Text: ev.Text, Name: ev.Name, Done: func(text string, err error) tea.Msg { return editedMsg{text, err} }}
	case formview.File:
		return act.Line{Title: "Fill the field from which file?", Done: func(path string) act.Action {
			return act.Read{Path: path, Done: func(text string, err error) tea.Msg { return editedMsg{text, err} }}
		}}
	case formview.Copy:
		return act.Copy{Text: ev.Text, What: ev.Name}
	}
	return nil
}

func (s *Start) ttlLine(e *kit.Env) act.Action {
	sv, _ := e.Board.Server(s.tool.Server)
	if sv.Generation == taskmodel.GenExtension {
		return act.Notice{Text: "2026-07-28 has no time to live to ask for: the server decides."}
	}
	text := ""
	if s.ttl > 0 {
		text = kit.Long(s.ttl)
	}
	return act.Line{Title: "Ask the server to keep the task for how long? (10m, 2h; empty: its own choice)", Text: text, Done: func(text string) act.Action {
		text = strings.TrimSpace(text)
		if text == "" {
			return act.Cmd{Cmd: func() tea.Msg { return ttlMsg{} }}
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return act.Notice{Text: fmt.Sprintf("%q is no length of time; write it like 90s, 10m or 2h.", safe.Line(text)), Error: true}
		}
		return act.Cmd{Cmd: func() tea.Msg { return ttlMsg{d} }}
	}}
}

// Keys implements kit.Screen.
func (s *Start) Keys(e *kit.Env) []keymap.Binding {
	k := e.Keys
	if s.form == nil {
		open := k.Accept
		open.Short = "choose"
		up, down := k.HistoryUp, k.HistoryDown
		up.Short, down.Short = "up", "down"
		return []keymap.Binding{open, up, down, k.Leave}
	}
	send := k.FormSend
	send.Short = "start"
	back := k.FormAside
	back.Short = "back"
	out := []keymap.Binding{send, k.StartMore, back, k.StartTTL, k.StartPlain}
	for _, b := range s.form.Keys(k) {
		if b.Action != send.Action && b.Action != back.Action {
			out = append(out, b)
		}
	}
	return out
}

// Status implements kit.Screen.
func (s *Start) Status(e *kit.Env, w int) (left, right string) {
	th := e.Theme
	if s.form == nil {
		rows := s.rows(e)
		n := len(slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.call != nil }))
		count := kit.Count(n, "tool")
		if earlier := len(rows) - n; earlier > 0 {
			count += ", " + kit.Count(earlier, "earlier call")
		}
		if s.taskID != "" {
			right = th.Dim.Render("for the task that the server wants started as " + kit.ShortID(s.taskID))
		}
		return th.Dim.Render(count), right
	}
	how := "as a task"
	switch {
	case s.plain:
		how = "as a plain call, without a task"
	case s.ttl > 0:
		how += ", asking for " + kit.Long(s.ttl) + " of life"
	}
	if s.taskID != "" {
		how += ", under the id " + kit.ShortID(s.taskID)
	}
	if s.begun > 0 {
		right = th.Dim.Render(kit.Thousands(s.begun) + " started from here")
	}
	return th.Dim.Render("will run " + how), right
}

// View implements kit.Screen.
func (s *Start) View(e *kit.Env, w, h int) string {
	th := e.Theme
	if s.form != nil {
		l := kit.NewLine(w, nil).Add(th.Title, safe.Line(s.tool.Name))
		if s.tool.Title != "" && s.tool.Title != s.tool.Name {
			l.Gap(2).Add(th.Text, safe.Line(s.tool.Title))
		}
		l.Gap(2).Add(th.Dim, "on "+safe.Line(s.tool.Server))
		l.Right(th.Dim, strings.Join(annotations(s.tool), ", "))
		return l.String() + "\n\n" + s.form.View(th, w, max(h-2, 1))
	}
	l := kit.NewLine(w, nil).Add(th.Title, "Start").Gap(2)
	l.Styled(s.edit.View(th, max(w-8, 8)), max(w-8, 8))
	out := l.String() + "\n\n"
	h = max(h-2, 1)
	rows := s.rows(e)
	if len(rows) == 0 {
		return out + kit.Fill(s.nothing(e), h)
	}
	serverW, toolW := 6, 10
	for _, r := range rows {
		serverW = min(max(serverW, safe.Width(safe.Line(r.tool.Server))), 14)
		toolW = min(max(toolW, safe.Width(safe.Line(r.tool.Name))), 28)
	}
	return out + s.table.Draw(th, len(rows), w, h, func(b *kit.Line, i int) {
		r := rows[i]
		text := th.Text
		if r.tool.WhyNotTask != "" {
			text = th.Dim
		}
		b.Gap(1).Cell(th.Dim, safe.Line(r.tool.Server), serverW).Gap(2).Cell(text, safe.Line(r.tool.Name), toolW).Gap(2)
		if r.call != nil {
			b.Add(th.Dim, "again  ").Add(th.Text, safe.Line(string(form.Shown(r.tool.InputSchema, r.call.Args, s.limit))))
			return
		}
		if w >= 76 {
			b.Cell(th.Dim, support(r.tool), 14).Gap(2)
		}
		if r.tool.WhyNotTask != "" {
			b.Add(th.Warn, "no task: "+safe.Line(r.tool.WhyNotTask)).Gap(2)
		}
		for _, a := range annotations(&r.tool) {
			st := th.Dim
			if a == "destructive" {
				st = th.Warn
			}
			b.Add(st, a).Gap(2)
		}
		desc := r.tool.Description
		if desc == "" {
			desc = r.tool.Title
		}
		if len(desc) > 400 {
			desc = strings.ToValidUTF8(desc[:400], "")
		}
		first, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(desc, "\r\n", "\n")), "\n")
		b.Add(th.Dim, safe.Line(first))
	})
}

func support(t taskmodel.Tool) string {
	switch t.TaskSupport {
	case "required":
		return "task only"
	case "optional":
		return "task or plain"
	case "server":
		return "server decides"
	case "forbidden":
		return "plain only"
	}
	return safe.Line(t.TaskSupport)
}

func annotations(t *taskmodel.Tool) []string {
	var out []string
	if t.ReadOnly {
		out = append(out, "read-only")
	}
	if t.Destructive {
		out = append(out, "destructive")
	}
	return out
}

// nothing says why there is no tool to choose.
func (s *Start) nothing(e *kit.Env) []string {
	th := e.Theme
	if s.edit.Text() != "" {
		return []string{"  " + th.Dim.Render("No tool matches; "+e.Keys.Leave.Label()+" clears the search.")}
	}
	lines := []string{"  " + th.Text.Render("No tools are known yet.")}
	for _, sv := range e.Board.Servers() {
		_, state, st := th.OfServer(sv.State)
		line := "  " + th.Dim.Render(safe.PadRight(safe.Line(sv.Name), 14)) + "  " + st.Render(state)
		if sv.ToolsError != "" {
			line += "  " + th.Warn.Render(safe.Line(sv.ToolsError))
		}
		lines = append(lines, line)
	}
	return lines
}
