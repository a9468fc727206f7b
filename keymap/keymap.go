package keymap

import (
	"reflect"
	"strings"

	"charm.land/bubbles/v2/key"
)

// A Context is a set of places in which a key counts. Two actions may share a
// key when their contexts do not meet.
type Context uint32

// The places.
const (
	List Context = 1 << iota
	Detail
	Result
	Servers
	Wire
	Inbox
	Help
	Form   // a question's or a tool's form: letters are typed
	Prompt // one line of text: filter, command, tool search
	Dialog // a confirmation
	Visit  // a question that wants an address visited: letters are commands

	// Screens are those in which letters are commands.
	Screens = List | Detail | Result | Servers | Wire | Inbox | Help
)

var contextNames = []struct {
	c    Context
	name string
}{
	{List, "tasks"}, {Detail, "detail"}, {Result, "result"}, {Servers, "servers"}, {Wire, "wire"},
	{Inbox, "inbox"}, {Help, "help"}, {Form, "form"}, {Prompt, "text line"}, {Dialog, "dialog"}, {Visit, "address"},
}

// String names the places, as the help and the README do.
func (c Context) String() string {
	if c == Screens {
		return "everywhere"
	}
	var names []string
	for _, n := range contextNames {
		if c&n.c != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ", ")
}

// A Binding is one action with its keys. It is a value; the embedded
// key.Binding is what key.Matches takes.
type Binding struct {
	key.Binding
	Action string  // the name in the config file and the command palette
	Short  string  // one or two words, for the last line of a screen
	Long   string  // a clause, for the help and the README
	In     Context // where it counts
	Group  string  // heading in the help
}

// Label is the first key as it is shown: "ctrl+s", "↑", "space".
func (b Binding) Label() string {
	k := b.Keys()
	if len(k) == 0 {
		return ""
	}
	return Pretty(k[0])
}

// Labels are all keys as they are shown, separated by spaces.
func (b Binding) Labels() string {
	var out []string
	for _, k := range b.Keys() {
		out = append(out, Pretty(k))
	}
	return strings.Join(out, " ")
}

// Pretty gives a key's name as it is shown.
func Pretty(k string) string {
	switch k {
	case "up":
		return "↑"
	case "down":
		return "↓"
	case "left":
		return "←"
	case "right":
		return "→"
	case "pgdown":
		return "pgdn"
	}
	return k
}

// A Map is every key there is.
type Map struct {
	// Moving.
	Up, Down, PageUp, PageDown, Top, Bottom, Left, Right Binding
	NextPane, PrevPane, Open, Back                       Binding

	// Going somewhere.
	Tasks, Inbox, Servers, Wire, Command, Help, Quit, Interrupt, Suspend Binding

	// The list.
	Filter, Mark, MarkRange, MarkAll, Unmark, Sort, Reverse, Group, Side Binding

	// Doing something with a task.
	Start, Answer, Cancel, Result, Fetch, Forget, Add, Poll, Pause, Copy, Save Binding

	// Servers.
	Connect, Disconnect, LogLevel, Roots, SignIn Binding

	// Text: results, raw JSON, wire messages.
	Search, NextMatch, PrevMatch, Wrap, Fold, FoldAll, Pager, Editor, OpenFile, Follow Binding

	// Forms.
	FormNext, FormPrev, FormSend, FormDecline, FormCancel, FormAside, FormEditor, FormJSON, FormReview, FormUnset, FormFile, StartMore, StartTTL, StartPlain, VisitOpen, VisitCopy, VisitRetry, FormHelp Binding

	// Dialogs and text lines.
	Yes, No, Complete, HistoryUp, HistoryDown, Accept, Leave Binding

	// The program.
	Mouse, Theme, Redraw Binding
}

func bind(action, keys, short, long string, in Context) Binding {
	b := Binding{Action: action, Short: short, Long: long, In: in}
	b.set(strings.Fields(keys))
	return b
}

func (b *Binding) set(keys []string) {
	if len(keys) == 0 {
		b.Binding = key.NewBinding(key.WithDisabled(), key.WithHelp("", b.Short))
		return
	}
	b.Binding = key.NewBinding(key.WithKeys(keys...), key.WithHelp(Pretty(keys[0]), b.Short))
}

// Default makes the map of the defaults.
func Default() Map {
	m := Map{
		Up:       bind("up", "up k", "up", "one line up", Screens),
		Down:     bind("down", "down j", "down", "one line down", Screens),
		PageUp:   bind("page-up", "pgup ctrl+b ctrl+u", "page up", "one page up", Screens),
		PageDown: bind("page-down", "pgdown ctrl+f ctrl+d", "page down", "one page down", Screens),
		Top:      bind("top", "g home", "top", "to the first line", Screens),
		Bottom:   bind("bottom", "G end", "bottom", "to the last line", Screens),
		Left:     bind("left", "left h", "fold", "fold, or scroll left", Screens),
		Right:    bind("right", "right l", "unfold", "unfold, or scroll right", Screens),
		NextPane: bind("next-pane", "tab", "next pane", "next pane", Screens),
		PrevPane: bind("prev-pane", "shift+tab", "previous pane", "previous pane", Screens),
		Open:     bind("open", "enter", "open", "open what is selected", Screens),
		Back:     bind("back", "esc", "back", "back, close, or clear the filter", Screens),

		Tasks:     bind("tasks", "t", "tasks", "the list of tasks", Screens),
		Inbox:     bind("inbox", "i", "inbox", "the inbox of questions", Screens),
		Servers:   bind("servers", "s", "servers", "the servers", Screens),
		Wire:      bind("wire", "w", "wire", "the wire log: every message in and out", Screens),
		Command:   bind("command", ":", "command", "type a command", Screens),
		Help:      bind("help", "? f1", "help", "this help", Screens),
		Quit:      bind("quit", "q", "quit", "quit; asks when questions are open", Screens),
		Interrupt: bind("interrupt", "ctrl+c", "quit", "twice: quit at once and send nothing", Screens|Form|Prompt|Dialog),
		Suspend:   bind("suspend", "ctrl+z", "suspend", "back to the shell for now (fg returns)", Screens),

		Filter:    bind("filter", "/", "filter", "filter the list", List|Inbox|Servers|Wire),
		Mark:      bind("mark", "space", "mark", "mark or unmark", List),
		MarkRange: bind("mark-range", "v", "mark range", "mark from the last mark to here", List),
		MarkAll:   bind("mark-all", "*", "mark all", "mark all shown", List),
		Unmark:    bind("unmark", "u", "unmark", "unmark all", List),
		Sort:      bind("sort", "o", "sort", "sort by the next column", List),
		Reverse:   bind("reverse", "O", "reverse", "reverse the order", List),
		Group:     bind("group", "b", "group", "group by server, by status, or not", List),
		Side:      bind("side", "d", "details", "show or hide the detail beside the list", List|Detail),

		Start:  bind("start", "n", "start", "start a task: choose a tool, fill its form", List|Detail|Servers|Inbox),
		Answer: bind("answer", "a", "answer", "answer the task's question", List|Detail|Inbox),
		Cancel: bind("cancel", "c", "cancel", "ask the server to cancel it, or all marked", List|Detail),
		Result: bind("result", "r", "result", "the result", List|Detail|Inbox),
		Fetch:  bind("fetch", "F", "fetch", "fetch the result, or those of all marked", List|Detail|Result),
		Forget: bind("forget", "x", "forget", "drop it here, or all marked; asks when unfinished", List|Detail),
		Add:    bind("add", "+", "add", "take up a task by its id", List|Servers),
		Poll:   bind("poll", "f", "poll now", "poll now; on a server: try it now", List|Detail|Servers|Inbox),
		Pause:  bind("pause", "p", "pause", "pause and resume polling", Screens),
		Copy:   bind("copy", "y", "copy", "copy to the clipboard (OSC 52: over SSH too)", Screens),
		Save:   bind("save", "ctrl+s", "save", "save to a file", Screens),

		Connect:    bind("connect", "R", "connect", "connect, or reconnect now", Servers),
		Disconnect: bind("disconnect", "S", "stop", "disconnect and stop trying", Servers),
		LogLevel:   bind("log-level", "L", "log level", "set the level of log messages that the server sends", Servers),
		Roots:      bind("roots", "D", "roots", "set the folders that the server may ask for", Servers),
		SignIn:     bind("sign-in", "I", "sign in", "sign in to the server", Servers),

		Search:    bind("search", "/", "search", "search in the text", Detail|Result|Help),
		NextMatch: bind("next-match", "n", "next", "next match", Result|Wire|Help),
		PrevMatch: bind("prev-match", "N", "previous", "previous match", Result|Wire|Help),
		Wrap:      bind("wrap", "W", "wrap", "wrap long lines, or not", Detail|Result|Wire),
		Fold:      bind("fold", "space", "fold", "fold or unfold here", Detail|Result|Wire),
		FoldAll:   bind("fold-all", "z", "fold all", "fold or unfold everything", List|Detail|Result|Wire),
		Pager:     bind("pager", "P", "pager", "open in $PAGER", Detail|Result|Wire),
		Editor:    bind("editor", "e", "editor", "open in $EDITOR", Detail|Result|Wire),
		OpenFile:  bind("open-block", "O", "open", "open with the system's program, or the browser", Result),
		Follow:    bind("follow", "F", "follow", "follow the newest, or stay", Wire),

		FormNext:    bind("form-next", "tab", "next", "next field", Form),
		FormPrev:    bind("form-prev", "shift+tab", "previous", "previous field", Form),
		FormSend:    bind("form-send", "ctrl+s", "send", "send the answer, or start the task", Form|Visit),
		FormDecline: bind("form-decline", "ctrl+d", "decline", "decline the question (asks once)", Form|Visit),
		FormCancel:  bind("form-cancel", "ctrl+x", "cancel", "cancel the question (asks once)", Form|Visit),
		FormAside:   bind("form-aside", "esc", "put aside", "put aside; the draft is kept, nothing is sent", Form|Visit),
		FormEditor:  bind("form-editor", "ctrl+g", "editor", "write this field in $EDITOR", Form),
		FormJSON:    bind("form-json", "ctrl+o", "as JSON", "edit the answer as JSON, or go back to the fields", Form),
		FormReview:  bind("form-review", "ctrl+r", "review", "show what will be sent", Form),
		FormUnset:   bind("form-unset", "ctrl+u", "unset", "leave an optional field out, or make it empty", Form),
		StartMore:   bind("start-more", "ctrl+n", "start, stay", "start the task and stay in its form, for the next one", Form),
		StartTTL:    bind("start-ttl", "ctrl+t", "time to live", "ask for a time to live when starting a task", Form),
		StartPlain:  bind("start-plain", "ctrl+p", "plain call", "call the tool plainly, or as a task again", Form),
		FormFile:    bind("form-file", "ctrl+f", "from file", "fill this field from a file", Form),
		VisitOpen:   bind("visit-open", "o", "open", "agree and open the address in the browser", Visit),
		VisitCopy:   bind("visit-copy", "y", "copy", "copy the address", Visit),
		VisitRetry:  bind("visit-retry", "r", "retry", "done there: tell the server, or repeat the call", Visit),

		FormHelp: bind("form-help", "f1 alt+h", "help", "the keys of this form", Form|Visit),

		Yes:         bind("yes", "y", "yes", "yes, do it", Dialog),
		No:          bind("no", "n esc", "no", "no, do nothing", Dialog),
		Complete:    bind("complete", "tab", "complete", "complete the word", Prompt),
		HistoryUp:   bind("history-up", "up ctrl+p", "older", "older line, or the line above", Prompt),
		HistoryDown: bind("history-down", "down ctrl+n", "newer", "newer line, or the line below", Prompt),
		Accept:      bind("accept", "enter", "accept", "take what was typed", Prompt),
		Leave:       bind("leave", "esc", "leave", "leave the line", Prompt),

		Mouse:  bind("mouse", "m", "mouse", "mouse on or off (off leaves the terminal's own selection alone)", Screens),
		Theme:  bind("theme", "T", "theme", "next theme", Screens),
		Redraw: bind("redraw", "ctrl+l", "redraw", "draw the screen anew", Screens|Form|Dialog),
	}
	groups := []struct {
		name string
		of   []*Binding
	}{
		{"Move", []*Binding{&m.Up, &m.Down, &m.PageUp, &m.PageDown, &m.Top, &m.Bottom, &m.Left, &m.Right, &m.NextPane, &m.PrevPane, &m.Open, &m.Back}},
		{"Go to", []*Binding{&m.Tasks, &m.Inbox, &m.Servers, &m.Wire, &m.Command, &m.Help, &m.Quit, &m.Interrupt, &m.Suspend}},
		{"List", []*Binding{&m.Filter, &m.Mark, &m.MarkRange, &m.MarkAll, &m.Unmark, &m.Sort, &m.Reverse, &m.Group, &m.Side}},
		{"Tasks", []*Binding{&m.Start, &m.Answer, &m.Cancel, &m.Result, &m.Fetch, &m.Forget, &m.Add, &m.Poll, &m.Pause, &m.Copy, &m.Save}},
		{"Servers", []*Binding{&m.Connect, &m.Disconnect, &m.LogLevel, &m.Roots, &m.SignIn}},
		{"Text", []*Binding{&m.Search, &m.NextMatch, &m.PrevMatch, &m.Wrap, &m.Fold, &m.FoldAll, &m.Pager, &m.Editor, &m.OpenFile, &m.Follow}},
		{"Form", []*Binding{&m.FormNext, &m.FormPrev, &m.FormSend, &m.FormDecline, &m.FormCancel, &m.FormAside, &m.FormEditor, &m.FormJSON, &m.FormReview, &m.FormUnset, &m.FormFile, &m.StartMore, &m.StartTTL, &m.StartPlain, &m.VisitOpen, &m.VisitCopy, &m.VisitRetry, &m.FormHelp}},
		{"Dialog and line", []*Binding{&m.Yes, &m.No, &m.Complete, &m.HistoryUp, &m.HistoryDown, &m.Accept, &m.Leave}},
		{"Program", []*Binding{&m.Mouse, &m.Theme, &m.Redraw}},
	}
	for _, g := range groups {
		for _, b := range g.of {
			b.Group = g.name
		}
	}
	return m
}

// All lists the bindings in the order of the struct. The pointers are into m.
func (m *Map) All() []*Binding {
	v := reflect.ValueOf(m).Elem()
	out := make([]*Binding, 0, v.NumField())
	for i := range v.NumField() {
		out = append(out, v.Field(i).Addr().Interface().(*Binding))
	}
	return out
}

// Action finds a binding by its action's name.
func (m *Map) Action(name string) (*Binding, bool) {
	for _, b := range m.All() {
		if b.Action == name {
			return b, true
		}
	}
	return nil, false
}
