package list

import (
	"context"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
)

// syncRows is up to how many tasks a filter or an order is applied within
// Update; beyond, a command does it and the old rows stay until it is done.
const syncRows = 3000

// Options are a person's settings from the configuration.
type Options struct {
	Columns []string // names of columns in their order; nil: the defaults
	Sort    board.SortColumn
	Reverse bool
	Group   string
	Filter  string
	// NoNeedsFirst and NoEndedLast switch off that tasks which need a person
	// rise and ended ones sink.
	NoNeedsFirst bool
	NoEndedLast  bool
	Empty        []string // what to say when there are no servers
}

// A List is the screen. It is owned by the root's goroutine.
type List struct {
	opt      Options
	view     *board.View
	set      board.Settings
	table    kit.Table
	sel      taskmodel.Key
	wanted   taskmodel.Key // to be selected as soon as it is there
	heading  string        // selected instead of a task
	began    time.Time     // when the list was first drawn
	held     bool          // the selection stays with its task, wherever that goes
	marks    map[taskmodel.Key]bool
	lastMark taskmodel.Key
	filter   filterLine
	busy     bool               // a command filters
	stop     context.CancelFunc // of that command
	stale    bool               // what the command makes is not wanted any more
	toolW    int
	serverW  int
	servers  int // how many there are
}

// New makes the list. A filter in the options that does not parse is given
// back as an error and left out.
func New(o Options) (*List, error) {
	l := &List{opt: o, view: board.NewView(), marks: map[taskmodel.Key]bool{}}
	if o.Sort == "" {
		o.Sort = board.SortNeeds
	}
	l.set = board.Settings{Sort: o.Sort, Reverse: o.Reverse, Group: o.Group, Folded: map[string]bool{},
		NeedsFirst: !o.NoNeedsFirst, EndedLast: !o.NoEndedLast}
	var err error
	if o.Filter != "" {
		var f *board.Filter
		if f, err = board.ParseFilter(o.Filter); err == nil {
			l.set.Filter = f
			l.filter.text = o.Filter
		}
	}
	l.view.Set(l.set)
	return l, err
}

// arriving is how long after the start the cursor stays on the first row while
// the servers' tasks come in, as long as nobody has touched it: which server
// answered first says nothing about what to look at.
const arriving = 3 * time.Second

// A viewMsg brings a view that a command has filled, or that it has given up.
type viewMsg struct{ view *board.View }

// Context implements kit.Screen.
func (l *List) Context() keymap.Context {
	if l.filter.typing {
		return keymap.Prompt
	}
	return keymap.List
}

// Typing implements kit.Typer.
func (l *List) Typing() bool { return l.filter.typing }

// Refresh implements kit.Refresher: it takes the board's newest version.
func (l *List) Refresh(e *kit.Env) act.Action {
	l.view.Update(e.Board)
	for k := range l.marks {
		if _, ok := e.Board.Task(k); !ok {
			delete(l.marks, k)
		}
	}
	if l.began.IsZero() {
		l.began = e.Now
	}
	l.held = l.held || e.Now.Sub(l.began) >= arriving
	l.settle()
	return nil
}

// settle brings the cursor back to what was selected.
func (l *List) settle() {
	n := l.view.Len()
	if n == 0 {
		return
	}
	if i := l.view.Index(l.wanted); i >= 0 {
		l.sel, l.heading, l.wanted, l.held = l.wanted, "", taskmodel.Key{}, true
		l.table.Cursor = i
		l.table.Wheel(0, n)
		return
	}
	if l.filter.typing && l.view.Index(l.filter.origin) >= 0 {
		l.sel, l.heading = l.filter.origin, ""
	}
	if !l.held && l.wanted == (taskmodel.Key{}) {
		l.table.Cursor = 0
		l.table.Wheel(0, n)
		l.take()
		return
	}
	if l.heading != "" {
		if i := l.view.IndexHeading(l.heading); i >= 0 {
			l.table.Follow(i, n)
			return
		}
	} else if l.sel != (taskmodel.Key{}) {
		if i := l.view.Index(l.sel); i >= 0 {
			l.table.Follow(i, n)
			return
		}
	}
	l.table.Cursor = min(l.table.Cursor, n-1)
	l.take()
}

// take remembers what the cursor is on.
func (l *List) take() {
	if n := l.view.Len(); l.table.Cursor < n {
		r := l.view.Row(l.table.Cursor)
		if r.Task != nil {
			l.sel, l.heading = r.Task.Key, ""
		} else {
			l.sel, l.heading = taskmodel.Key{}, r.Heading
		}
	}
}

// Selected is the task under the cursor.
func (l *List) Selected() (taskmodel.Key, bool) {
	return l.sel, l.sel != (taskmodel.Key{}) && l.view.Len() > 0
}

// Select moves the cursor to a task, now or when it comes, unless the person
// moves it first.
func (l *List) Select(k taskmodel.Key) {
	l.wanted = k
	l.settle()
}

// Targets are the marked tasks, or the one under the cursor, in the order of
// the list.
func (l *List) Targets() []taskmodel.Key {
	if len(l.marks) == 0 {
		if k, ok := l.Selected(); ok {
			return []taskmodel.Key{k}
		}
		return nil
	}
	out := make([]taskmodel.Key, 0, len(l.marks))
	for k := range l.marks {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b taskmodel.Key) int {
		return l.view.Index(a) - l.view.Index(b)
	})
	return out
}

// Shown are the keys of the rows on the screen, for the monitor to look at
// first; the selected one leads.
func (l *List) Shown() []taskmodel.Key {
	var out []taskmodel.Key
	if k, ok := l.Selected(); ok {
		out = append(out, k)
	}
	for _, r := range l.view.Rows(l.table.Top, max(l.table.Height(), 1)) {
		if r.Task != nil && r.Task.Key != l.sel {
			out = append(out, r.Task.Key)
		}
	}
	return out
}

// Update implements kit.Screen.
func (l *List) Update(e *kit.Env, m tea.Msg) act.Action {
	if m, ok := m.(viewMsg); ok {
		return l.filled(e, m.view)
	}
	if l.filter.typing {
		return l.typeFilter(e, m)
	}
	switch m := m.(type) {
	case tea.KeyPressMsg:
		l.held = true
		return l.key(e, m)
	case tea.MouseWheelMsg:
		d := 3
		if m.Button == tea.MouseWheelUp {
			d = -3
		}
		l.held = true
		l.table.Wheel(d, l.view.Len())
		l.take()
	}
	return nil
}

// Click selects the row at line y of the table's view and reports whether it
// was selected already.
func (l *List) Click(y int) (again bool) {
	i := l.table.Top + y - 1 // the heading of the columns
	if y < 1 || i < 0 || i >= l.view.Len() {
		return false
	}
	l.held = true
	again = i == l.table.Cursor
	l.table.Cursor = i
	l.take()
	return again
}

func (l *List) key(e *kit.Env, m tea.KeyPressMsg) act.Action {
	k := e.Keys
	n := l.view.Len()
	if l.table.Move(k, m, n) {
		l.wanted = taskmodel.Key{}
		l.take()
		return nil
	}
	sel, ok := l.Selected()
	targets := l.Targets()
	switch {
	case key.Matches(m, k.Open.Binding):
		if ok {
			return act.OpenTask{Task: sel}
		}
		l.fold(e, l.heading, !l.set.Folded[l.heading])
	case key.Matches(m, k.Left.Binding):
		l.fold(e, l.groupHere(), true)
	case key.Matches(m, k.Right.Binding):
		l.fold(e, l.groupHere(), false)
	case key.Matches(m, k.FoldAll.Binding):
		return l.foldAll(e)
	case key.Matches(m, k.Back.Binding):
		return l.back(e)
	case key.Matches(m, k.Filter.Binding):
		l.filter.begin(l.sel)
	case key.Matches(m, k.Mark.Binding):
		l.mark(sel, ok)
		l.table.Cursor = min(l.table.Cursor+1, n-1)
		l.take()
	case key.Matches(m, k.MarkRange.Binding):
		l.markRange()
	case key.Matches(m, k.MarkAll.Binding):
		l.markAll()
	case key.Matches(m, k.Unmark.Binding):
		clear(l.marks)
	case key.Matches(m, k.Sort.Binding):
		return l.sortNext(e)
	case key.Matches(m, k.Reverse.Binding):
		l.set.Reverse = !l.set.Reverse
		return l.apply(e)
	case key.Matches(m, k.Group.Binding):
		l.set.Group = map[string]string{"": "server", "server": "status", "status": ""}[l.set.Group]
		l.set.Folded = map[string]bool{}
		return l.apply(e)
	case len(targets) == 0:
		return nil
	case key.Matches(m, k.Answer.Binding):
		if ok {
			return act.AnswerTask{Task: sel}
		}
	case key.Matches(m, k.Cancel.Binding):
		return act.Cancel{Tasks: targets}
	case key.Matches(m, k.Result.Binding):
		if ok {
			return act.OpenResult{Task: sel}
		}
	case key.Matches(m, k.Fetch.Binding):
		return act.Fetch{Tasks: targets}
	case key.Matches(m, k.Forget.Binding):
		return act.Forget{Tasks: targets}
	case key.Matches(m, k.Poll.Binding):
		return act.Poll{Tasks: targets}
	case key.Matches(m, k.Copy.Binding):
		return l.copy(targets)
	case key.Matches(m, k.Save.Binding):
		return act.Command{Text: "export "}
	case key.Matches(m, k.Wire.Binding) && ok:
		return act.OpenWire{}
	}
	return nil
}

func (l *List) back(e *kit.Env) act.Action {
	switch {
	case len(l.marks) > 0:
		clear(l.marks)
	case l.filter.text != "":
		return l.SetFilter(e, "")
	}
	return nil
}

func (l *List) copy(keys []taskmodel.Key) act.Action {
	text := ""
	for i, k := range keys {
		if i > 0 {
			text += "\n"
		}
		text += k.String()
	}
	what := "the task's name"
	if len(keys) > 1 {
		what = "the names of " + kit.Count(len(keys), "task")
	}
	return act.Copy{Text: text, What: what}
}

func (l *List) mark(k taskmodel.Key, ok bool) {
	if !ok {
		return
	}
	if l.marks[k] {
		delete(l.marks, k)
	} else {
		l.marks[k] = true
	}
	l.lastMark = k
}

func (l *List) markRange() {
	from := l.view.Index(l.lastMark)
	if from < 0 {
		from = l.table.Cursor
	}
	a, b := min(from, l.table.Cursor), max(from, l.table.Cursor)
	for _, r := range l.view.Rows(a, b-a+1) {
		if r.Task != nil {
			l.marks[r.Task.Key] = true
			l.lastMark = r.Task.Key
		}
	}
}

func (l *List) markAll() {
	l.view.Keys(func(k taskmodel.Key) bool {
		l.marks[k] = true
		return true
	})
}

func (l *List) groupHere() string {
	if l.heading != "" || l.set.Group == "" {
		return l.heading
	}
	return l.view.HeadingOf(l.sel)
}

func (l *List) fold(e *kit.Env, heading string, on bool) {
	if heading == "" || l.set.Group == "" || l.set.Folded[heading] == on {
		return
	}
	l.setFolded(map[string]bool{heading: on})
	l.sel, l.heading = taskmodel.Key{}, heading
	l.reset(e)
}

// setFolded replaces the map: views that commands fill hold the old one.
func (l *List) setFolded(change map[string]bool) {
	next := map[string]bool{}
	for k, v := range l.set.Folded {
		next[k] = v
	}
	for k, v := range change {
		next[k] = v
	}
	l.set.Folded = next
}

func (l *List) foldAll(e *kit.Env) act.Action {
	if l.set.Group == "" {
		return act.Notice{Text: "Nothing is grouped; " + e.Keys.Group.Label() + " groups the list."}
	}
	change, any := map[string]bool{}, false
	for i := range l.view.Len() {
		if r := l.view.Row(i); r.Task == nil {
			change[r.Heading] = true
			any = any || !l.set.Folded[r.Heading]
		}
	}
	for k := range change {
		change[k] = any
	}
	l.setFolded(change)
	l.reset(e)
	return nil
}

func (l *List) reset(e *kit.Env) {
	if l.busy {
		l.again()
		return
	}
	l.view.Set(l.set)
	l.view.Update(e.Board)
	l.settle()
}

// again has the command that is under way stop, and another begin after it.
func (l *List) again() {
	l.stop()
	l.stale = true
}

// apply makes the settings count, at once or by a command. There is one command
// at a time: a fast typist's would take each other's time, and the screen's. One
// that is under way is told to stop, and the next begins when it has.
func (l *List) apply(e *kit.Env) act.Action {
	if l.busy {
		l.again()
		return nil
	}
	if e.Board.Len() <= syncRows {
		l.reset(e)
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	l.busy, l.stop = true, stop
	set, v, w := l.set, e.Board, l.view.Fork()
	return act.Cmd{Cmd: func() tea.Msg {
		w.Set(set)
		w.Try(ctx, v)
		return viewMsg{w}
	}}
}

// filled takes the view that the command has made, or begins anew.
func (l *List) filled(e *kit.Env, w *board.View) act.Action {
	l.stop()
	stale := l.stale
	l.busy, l.stale = false, false
	if stale {
		return l.apply(e)
	}
	l.view = w
	l.view.Update(e.Board)
	l.settle()
	return nil
}

var sorts = []board.SortColumn{board.SortNeeds, board.SortAge, board.SortStatus, board.SortServer, board.SortTool,
	board.SortID, board.SortMessage, board.SortProgress, board.SortTTL, board.SortHeard}

func (l *List) sortNext(e *kit.Env) act.Action {
	i := slices.Index(sorts, l.set.Sort)
	l.set.Sort = sorts[(i+1)%len(sorts)]
	l.set.Reverse = false
	return l.apply(e)
}

// SetSort orders the list by a column, for the command line.
func (l *List) SetSort(e *kit.Env, c string) (act.Action, bool) {
	if !slices.Contains(sorts, board.SortColumn(c)) {
		return nil, false
	}
	l.set.Sort = board.SortColumn(c)
	return l.apply(e), true
}

// SetReverse turns the order, for the command line.
func (l *List) SetReverse(e *kit.Env, on bool) act.Action {
	l.set.Reverse = on
	return l.apply(e)
}

// SetGroup groups the list, for the command line.
func (l *List) SetGroup(e *kit.Env, g string) (act.Action, bool) {
	if g == "none" || g == "off" {
		g = ""
	}
	if g != "" && g != "server" && g != "status" {
		return nil, false
	}
	l.set.Group, l.set.Folded = g, map[string]bool{}
	return l.apply(e), true
}

// SetOrder switches needs-first and ended-last, for the command line.
func (l *List) SetOrder(e *kit.Env, needsFirst, endedLast bool) act.Action {
	l.set.NeedsFirst, l.set.EndedLast = needsFirst, endedLast
	return l.apply(e)
}

// Order gives the two settings of SetOrder.
func (l *List) Order() (needsFirst, endedLast bool) { return l.set.NeedsFirst, l.set.EndedLast }

// SetColumns chooses and orders the columns; nil is the defaults.
func (l *List) SetColumns(names []string) error {
	if err := CheckColumns(names); err != nil {
		return err
	}
	l.opt.Columns = names
	return nil
}

// Sorted is the column by which the list is sorted.
func (l *List) Sorted() string { return string(l.set.Sort) }

// Reversed reports whether the order is turned.
func (l *List) Reversed() bool { return l.set.Reverse }

// Grouped is what the list is grouped by, "none" when it is not.
func (l *List) Grouped() string {
	if l.set.Group == "" {
		return "none"
	}
	return l.set.Group
}

// Columns are those that were chosen, "default" when none were.
func (l *List) Columns() string {
	if len(l.opt.Columns) == 0 {
		return "default"
	}
	return strings.Join(l.opt.Columns, ",")
}

// FilterText is the filter in force.
func (l *List) FilterText() string { return l.filter.text }

// Sorts lists the columns that a list can be sorted by.
func Sorts() []string {
	var out []string
	for _, s := range sorts {
		out = append(out, string(s))
	}
	return out
}

// Keys implements kit.Screen.
func (l *List) Keys(e *kit.Env) []keymap.Binding {
	k := e.Keys
	if l.filter.typing {
		return []keymap.Binding{k.Accept, k.Leave, k.Complete, k.HistoryUp}
	}
	if l.view.Len() == 0 {
		return []keymap.Binding{k.Start, k.Add, k.Servers, k.Filter, k.Inbox, k.Wire, k.Command}
	}
	return []keymap.Binding{k.Open, k.Answer, k.Cancel, k.Result, k.Start, k.Filter, k.Inbox, k.Servers, k.Wire, k.Mark, k.Sort}
}

// clock applies a filter that looks at the clock, and tells the frame when its
// answer may change next.
func (l *List) clock(e *kit.Env) {
	if !l.set.Filter.Clocked() {
		return
	}
	if l.view.Tick(e.Now) {
		l.settle()
	}
	if at := l.set.Filter.Next(e.Now); !at.IsZero() {
		e.Until(at)
	}
}
