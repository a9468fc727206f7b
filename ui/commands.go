package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/act"
	"mcptasks/ui/graphics"
	"mcptasks/ui/kit"
	"mcptasks/ui/list"
	"mcptasks/ui/palette"
	"mcptasks/ui/safe"
	"mcptasks/ui/servers"
)

// A command is one word of the command line beside the keymap's actions.
type command struct {
	name string
	args string // as the help shows them
	help string
	run  func(m *model, arg string) tea.Cmd
	// values completes the argument.
	values func(m *model, arg string) []string
}

// setKeys are what :set sets.
func setKeys() string {
	var names []string
	for _, s := range settings {
		names = append(names, s.key)
	}
	return strings.Join(names, ", ")
}

// commands lists them in the order in which they are offered.
func commands() []command {
	return []command{
		{"q", "", "quit", func(m *model, _ string) tea.Cmd { return m.askQuit() }, nil},
		{"q!", "", "quit at once, send nothing", func(m *model, _ string) tea.Cmd { m.quit = true; return nil }, nil},
		{"server", "NAME", "the server's screen", (*model).cmdServer, (*model).serverNames},
		{"view", "NAME", "a named filter; :save-view makes one", (*model).cmdView, (*model).viewNames},
		{"save-view", "NAME", "name the filter in force", (*model).cmdSaveView, (*model).savedNames},
		{"drop-view", "NAME", "forget a saved view", (*model).cmdDropView, (*model).savedNames},
		{"filter", "EXPR", "filter the list", func(m *model, s string) tea.Cmd {
			m.clear()
			return m.do(m.list.SetFilter(&m.env, s))
		}, func(m *model, s string) []string {
			return board.CompleteFilter(s, len([]rune(s)), m.env.Board)
		}},
		{"theme", "NAME", "another look", (*model).cmdTheme, func(m *model, _ string) []string { return m.themes() }},
		{"set", "KEY=VALUE", setKeys(), (*model).cmdSet, (*model).setValues},
		{"sort", "COLUMN", "sort the list", func(m *model, s string) tea.Cmd { return m.set("sort", s) }, func(*model, string) []string { return list.Sorts() }},
		{"group", "server|status|none", "group the list", func(m *model, s string) tea.Cmd { return m.set("group", s) }, func(*model, string) []string { return []string{"server", "status", "none"} }},
		{"export", "FILE", "the marked or selected tasks with their messages, as JSON Lines", (*model).cmdExport, nil},
		{"log", "", "the program's own log", (*model).cmdLog, nil},
		{"start", "SERVER TOOL", "start a tool", (*model).cmdStart, (*model).toolNames},
		{"add", "SERVER/TASKID", "take up a task by its id", (*model).cmdAdd, func(m *model, s string) []string {
			var out []string
			for _, n := range m.serverNames(s) {
				out = append(out, n+"/")
			}
			return out
		}},
		{"connect", "SERVER", "connect, or reconnect now", func(m *model, s string) tea.Cmd { return m.onServer(s, act.Connect{Server: s}) }, (*model).serverNames},
		{"disconnect", "SERVER", "disconnect and stop trying", func(m *model, s string) tea.Cmd { return m.onServer(s, act.Disconnect{Server: s}) }, (*model).serverNames},
		{"login", "SERVER", "sign in", func(m *model, s string) tea.Cmd { return m.onServer(s, act.SignIn{Server: s}) }, (*model).serverNames},
	}
}

func (m *model) openPalette(text string) {
	m.palette = palette.New(text, &m.past, m.complete)
}

func (m *model) typeCommand(msg tea.Msg) tea.Cmd {
	done, line := m.palette.Update(&m.env, msg)
	if !done {
		return nil
	}
	m.palette = nil
	if line == "" {
		return nil
	}
	m.notice = notice{} // what an earlier command said is not said of this one
	return m.command(line)
}

// command carries out a line: a command, or an action of the keymap by its
// name.
func (m *model) command(line string) tea.Cmd {
	name, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	arg = strings.TrimSpace(arg)
	if arg != "" || !m.isAction(name) {
		for _, c := range commands() {
			if c.name == name {
				return c.run(m, arg)
			}
		}
	}
	if b, ok := m.keys.Action(name); ok {
		return m.action(b.Action)
	}
	if name == "quit" {
		return m.askQuit()
	}
	var near []string
	for _, s := range m.complete(name) {
		near = append(near, s.Line)
	}
	text := fmt.Sprintf("There is no command %q.", safe.Line(name))
	if len(near) > 0 {
		text += " Near: " + strings.Join(near[:min(3, len(near))], ", ")
	} else {
		text += " " + m.keys.Command.Label() + " lists them all."
	}
	m.say(text, true)
	return nil
}

func (m *model) isAction(name string) bool {
	_, ok := m.keys.Action(name)
	return ok
}

// action does what the key of an action would do on the screen in front.
func (m *model) action(name string) tea.Cmd {
	b, _ := m.keys.Action(name)
	keys := b.Keys()
	if !b.Enabled() {
		// A key was taken away; the action is still there by name.
		old := m.keys
		defer func() { m.keys = old }()
		const hidden = "f63"
		b.SetKeys(hidden)
		b.SetEnabled(true)
		keys = []string{hidden}
	}
	return m.typed(press(keys[0]))
}

// press makes the key message for a key's name.
func press(name string) tea.KeyPressMsg {
	k := tea.Key{}
	for {
		switch {
		case strings.HasPrefix(name, "ctrl+"):
			k.Mod |= tea.ModCtrl
			name = name[5:]
			continue
		case strings.HasPrefix(name, "alt+"):
			k.Mod |= tea.ModAlt
			name = name[4:]
			continue
		case strings.HasPrefix(name, "shift+"):
			k.Mod |= tea.ModShift
			name = name[6:]
			continue
		}
		break
	}
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "space": tea.KeySpace, "up": tea.KeyUp, "down": tea.KeyDown,
		"left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
		"backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "insert": tea.KeyInsert, "f63": tea.KeyF63}
	if c, ok := codes[name]; ok {
		k.Code = c
		return tea.KeyPressMsg(k)
	}
	var n int
	if _, err := fmt.Sscanf(name, "f%d", &n); err == nil && n >= 1 && n <= 63 && len(name) > 1 {
		k.Code = tea.KeyF1 + rune(n-1)
		return tea.KeyPressMsg(k)
	}
	r := []rune(name)
	k.Code = r[0]
	if k.Mod == 0 {
		k.Text = name
	}
	return tea.KeyPressMsg(k)
}

// complete lists what a line could become.
func (m *model) complete(text string) []palette.Suggestion {
	name, arg, hasArg := strings.Cut(text, " ")
	if hasArg {
		for _, c := range commands() {
			if c.name != name || c.values == nil {
				continue
			}
			var out []palette.Suggestion
			values := c.values(m, arg)
			if c.name != "filter" {
				values = kit.Best(values, arg, func(s string) string { return s })
			}
			for _, v := range values {
				if len(out) == 50 {
					break
				}
				help := c.help
				if name == "set" {
					help = m.settingHelp(v)
				}
				if text, ok := m.view(v); ok && strings.HasSuffix(name, "view") {
					help = text
				}
				out = append(out, palette.Suggestion{Line: name + " " + v, Help: safe.Line(help)})
			}
			return out
		}
		return nil
	}
	var all []palette.Suggestion
	for _, c := range commands() {
		if c.name == "q!" {
			continue
		}
		line := c.name
		if c.args != "" {
			line += " "
		}
		all = append(all, palette.Suggestion{Line: line, Help: strings.TrimSpace(c.args + "  " + c.help)})
	}
	top := m.top().Context()
	for _, b := range m.keys.All() {
		if b.In&top == 0 || b.Action == "command" || b.Action == "up" || b.Action == "down" || b.Action == "interrupt" || slices.ContainsFunc(commands(), func(c command) bool { return c.name == b.Action }) {
			continue
		}
		all = append(all, palette.Suggestion{Line: b.Action, Help: b.Long, Keys: b.Label()})
	}
	if name == "" {
		return all
	}
	var exact, rest []palette.Suggestion
	for _, s := range kit.Best(all, name, func(s palette.Suggestion) string { return s.Line }) {
		if strings.HasPrefix(s.Line, name) {
			exact = append(exact, s)
		} else {
			rest = append(rest, s)
		}
	}
	return append(exact, rest...)
}

func (m *model) serverNames(string) []string {
	var out []string
	for _, s := range m.env.Board.Servers() {
		out = append(out, s.Name)
	}
	return out
}

func (m *model) toolNames(string) []string {
	var out []string
	for _, s := range m.env.Board.Servers() {
		for _, t := range s.Tools {
			out = append(out, s.Name+" "+t.Name)
		}
	}
	return out
}

func (m *model) onServer(name string, a act.Action) tea.Cmd {
	if _, ok := m.env.Board.Server(name); !ok {
		m.say(fmt.Sprintf("No server is called %q.", safe.Line(name)), true)
		return nil
	}
	return m.do(a)
}

func (m *model) cmdServer(arg string) tea.Cmd {
	if _, ok := m.env.Board.Server(arg); !ok && arg != "" {
		m.say(fmt.Sprintf("No server is called %q.", safe.Line(arg)), true)
		return nil
	}
	m.clear()
	s := servers.New()
	s.Select(arg)
	m.push(s)
	return nil
}

func (m *model) cmdTheme(arg string) tea.Cmd {
	if err := m.setTheme(arg); err != nil {
		m.say(err.Error(), true)
	}
	return nil
}

func (m *model) cmdSet(arg string) tea.Cmd {
	k, v, ok := strings.Cut(arg, "=")
	if !ok {
		k, v, _ = strings.Cut(arg, " ")
	}
	return m.set(strings.TrimSpace(k), strings.TrimSpace(v))
}

func (m *model) set(k, v string) tea.Cmd {
	on := v == "on" || v == "true" || v == "yes" || v == ""
	var a act.Action
	ok := true
	switch k {
	case "sort":
		a, ok = m.list.SetSort(&m.env, v)
	case "reverse":
		a = m.list.SetReverse(&m.env, on)
	case "group":
		a, ok = m.list.SetGroup(&m.env, v)
	case "columns":
		var names []string
		if v != "" && v != "default" {
			names = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
		}
		if err := m.list.SetColumns(names); err != nil {
			m.say(err.Error(), true)
		}
		return nil
	case "details":
		m.sideOn = on
	case "mouse":
		m.mouse = on
	case "theme":
		return m.cmdTheme(v)
	case "images":
		if err := m.canvas.Set(v); err != nil {
			m.say(err.Error(), true)
		}
		return nil
	case "needs-first":
		_, last := m.list.Order()
		a = m.list.SetOrder(&m.env, on, last)
	case "ended-last":
		first, _ := m.list.Order()
		a = m.list.SetOrder(&m.env, first, on)
	default:
		m.say(fmt.Sprintf("There is nothing called %q to set: %s.", safe.Line(k), setKeys()), true)
		return nil
	}
	if !ok {
		m.say(fmt.Sprintf("%s cannot be %q.", k, safe.Line(v)), true)
		return nil
	}
	return m.do(a)
}

// A setting is one key of :set with what it says now.
type setting struct {
	key, help string
	now       func(m *model) string
	values    func(m *model) []string
}

func onOff(*model) []string { return []string{"on", "off"} }

func word(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// settings are the keys of :set, in the order in which they are offered.
var settings = []setting{
	{"sort", "the order of the list", func(m *model) string { return m.list.Sorted() }, func(*model) []string { return list.Sorts() }},
	{"reverse", "turn the order", func(m *model) string { return word(m.list.Reversed()) }, onOff},
	{"group", "headings in the list", func(m *model) string { return m.list.Grouped() }, func(*model) []string { return []string{"server", "status", "none"} }},
	{"columns", "columns in their order, as tool:24 with a width", func(m *model) string { return m.list.Columns() },
		func(*model) []string { return []string{"default", strings.Join(list.ColumnNames(), ",")} }},
	{"details", "the task beside the list on wide windows", func(m *model) string { return word(m.sideOn) }, onOff},
	{"mouse", "click and wheel", func(m *model) string { return word(m.mouse) }, onOff},
	{"theme", "the look", func(m *model) string { return m.theme }, (*model).themes},
	{"images", "how pictures are shown", func(m *model) string { return m.canvas.Setting() },
		func(*model) []string { return append([]string{"auto"}, graphics.Modes()...) }},
	{"needs-first", "what needs a person rises", func(m *model) string { first, _ := m.list.Order(); return word(first) }, onOff},
	{"ended-last", "what has ended sinks", func(m *model) string { _, last := m.list.Order(); return word(last) }, onOff},
}

func (m *model) setValues(string) []string {
	var out []string
	for _, s := range settings {
		for _, v := range s.values(m) {
			out = append(out, s.key+"="+v)
		}
	}
	return out
}

// settingHelp says what a setting does and which value counts now.
func (m *model) settingHelp(line string) string {
	k, v, _ := strings.Cut(line, "=")
	for _, s := range settings {
		if s.key != k {
			continue
		}
		if s.now(m) == v {
			return s.help + " (now)"
		}
		return s.help
	}
	return ""
}

func (m *model) cmdStart(arg string) tea.Cmd {
	server, tool, _ := strings.Cut(arg, " ")
	return m.do(act.OpenStart{Server: server, Tool: strings.TrimSpace(tool)})
}

func (m *model) cmdAdd(arg string) tea.Cmd {
	l, ok := m.addLine("").(act.Line)
	if !ok {
		return nil
	}
	if arg == "" {
		return m.do(l)
	}
	return m.do(l.Done(arg))
}

// cmdExport writes tasks with their messages.
func (m *model) cmdExport(arg string) tea.Cmd {
	targets := m.list.Targets()
	if s, ok := m.top().(interface{ Key() taskmodel.Key }); ok {
		targets = []taskmodel.Key{s.Key()}
	}
	if len(targets) == 0 {
		m.say("No task is selected.", true)
		return nil
	}
	what := kit.Count(len(targets), "task")
	if arg == "" {
		m.say("export needs a file: :export tasks.jsonl", true)
		return nil
	}
	v, ctx, bundle := m.env.Board, m.ctx, m.opt.Bundle
	return func() tea.Msg {
		var b bytes.Buffer
		for _, k := range targets {
			t, ok := v.Task(k)
			if !ok {
				continue
			}
			wire := m.mon.Wire(monitor.WireFilter{Server: k.Server, Task: k.ID})
			var err error
			if bundle != nil {
				err = bundle(ctx, k, wire, &b)
			} else {
				err = plainBundle(&b, t, wire)
			}
			if err != nil {
				return doneMsg{err: fmt.Errorf("exporting %s: %w", k, err)}
			}
		}
		return doneMsg{then: saveTo{path: arg, data: b.Bytes(), what: what}}
	}
}

func plainBundle(b *bytes.Buffer, t taskmodel.Task, wire []taskmodel.WireEntry) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	row := map[string]any{"task": plainJSON(t), "tool": t.Tool}
	if json.Valid(t.Args) {
		row["arguments"] = t.Args
	}
	if json.Valid(t.Raw) {
		row["raw"] = t.Raw
	}
	if json.Valid(t.Outcome.Result) {
		row["result"] = t.Outcome.Result
	}
	var hist []map[string]any
	for _, tr := range t.Transitions {
		hist = append(hist, map[string]any{"time": tr.At.UTC().Format(time.RFC3339Nano), "status": tr.Status, "message": tr.Message})
	}
	row["transitions"] = hist
	var msgs []map[string]any
	for _, e := range wire {
		msg := map[string]any{"time": e.At.UTC().Format(time.RFC3339Nano), "direction": e.Direction, "method": e.Method}
		if json.Valid(e.Bytes) {
			msg["message"] = e.Bytes
		}
		msgs = append(msgs, msg)
	}
	row["messages"] = msgs
	return enc.Encode(row)
}
