// Package inbox lists every question of every server: the open ones, oldest
// first, then those that were answered or withdrawn.
//
// It imports kit, act, theme, safe, taskmodel and board. It does no I/O.
package inbox

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// An Inbox is the screen. It is owned by the root's goroutine.
type Inbox struct {
	table  kit.Table
	begun  bool // the selected one was still to be answered when it was last looked at
	sel    taskmodel.QuestionID
	filter kit.FilterLine
}

// New makes the screen.
func New() *Inbox { return &Inbox{} }

// Context implements kit.Screen.
func (x *Inbox) Context() keymap.Context {
	if x.filter.Typing {
		return keymap.Prompt
	}
	return keymap.Inbox
}

// Typing implements kit.Typer.
func (x *Inbox) Typing() bool { return x.filter.Typing }

// Fault is what is wrong with the filter being typed.
func (x *Inbox) Fault() string { return x.filter.Fault }

// Suggestions are the completions to show while a filter is typed.
func (x *Inbox) Suggestions() ([]string, int) { return x.filter.Suggestions() }

func complete(e *kit.Env) func(text string, cursor int) []string {
	return func(text string, cursor int) []string { return board.CompleteFilter(text, cursor, e.Board) }
}

// Server is the selected question's, for actions that concern a server.
func (x *Inbox) Server() string { return x.sel.Server }

func (x *Inbox) questions(e *kit.Env) []taskmodel.Question {
	all := e.Board.Questions()
	// Within a second the order of arrival says nothing; by server and task it
	// is the same each time.
	slices.SortStableFunc(all, func(a, b taskmodel.Question) int {
		return cmp.Or(cmp.Compare(tier(a), tier(b)), a.AskedAt.Truncate(time.Second).Compare(b.AskedAt.Truncate(time.Second)),
			cmp.Compare(a.ID.Server, b.ID.Server), cmp.Compare(a.Task.ID, b.Task.ID))
	})
	if x.filter.Parsed != nil {
		all = slices.DeleteFunc(all, func(q taskmodel.Question) bool { return !x.match(e, q) })
	}
	if len(all) == 0 {
		return all
	}
	i := slices.IndexFunc(all, func(q taskmodel.Question) bool { return q.ID == x.sel })
	open := 0
	for open < len(all) && tier(all[open]) == 0 {
		open++
	}
	switch {
	case i >= 0 && x.begun && open > 0 && all[i].State == taskmodel.QuestionAnswered && tier(all[i]) > 0:
		// It was answered here and has sunk: the next one is at hand.
		i = min(x.table.Cursor, open-1)
	case i < 0:
		i = max(min(x.table.Cursor, len(all)-1), 0)
	}
	x.table.Cursor, x.sel, x.begun = i, all[i].ID, tier(all[i]) == 0
	return all
}

// match reports whether a question passes the filter: that of the list, asked of
// the question's task. What the server asks and the kind of it stand in for the
// task's message; a question of a plain call is as a task that waits for input.
func (x *Inbox) match(e *kit.Env, q taskmodel.Question) bool {
	t, known := e.Board.Task(q.Task)
	if !known {
		t = taskmodel.Task{Key: taskmodel.Key{Server: q.ID.Server, ID: q.Task.ID, Role: q.Task.Role}, Tool: q.Tool, FirstHeardAt: q.AskedAt}
		if q.State.Open() {
			t.Status = taskmodel.InputRequired
		}
	}
	t.StatusMessage = q.Message + " " + string(q.Kind)
	return x.filter.Parsed.Match(&t, e.Now)
}

func tier(q taskmodel.Question) int {
	if q.State.Open() || q.State == taskmodel.QuestionSending || q.State == taskmodel.QuestionAnswered && q.Repeat.Tool != "" {
		return 0 // a page that was agreed to still wants its call made again
	}
	return 1
}

// Update implements kit.Screen.
func (x *Inbox) Update(e *kit.Env, m tea.Msg) act.Action {
	keys := e.Keys
	k, isKey := m.(tea.KeyPressMsg)
	if x.filter.Typing {
		x.filter.Update(keys, m, complete(e))
		return nil
	}
	if !isKey {
		return nil
	}
	qs := x.questions(e)
	if x.table.Move(keys, k, len(qs)) {
		if len(qs) > 0 {
			x.sel, x.begun = qs[x.table.Cursor].ID, false
		}
		return nil
	}
	switch {
	case key.Matches(k, keys.Filter.Binding):
		x.filter.Begin(complete(e))
	case key.Matches(k, keys.Back.Binding):
		if x.filter.Text != "" {
			x.filter.Set("")
			return nil
		}
		return act.Back{}
	case len(qs) == 0:
	case key.Matches(k, keys.Open.Binding), key.Matches(k, keys.Answer.Binding):
		return act.OpenQuestion{ID: x.sel}
	case key.Matches(k, keys.Result.Binding):
		if t := qs[x.table.Cursor].Task; t.ID != "" {
			return act.OpenTask{Task: t}
		}
	case key.Matches(k, keys.Poll.Binding):
		if t := qs[x.table.Cursor].Task; t.ID != "" {
			return act.Poll{Tasks: []taskmodel.Key{t}}
		}
	case key.Matches(k, keys.Copy.Binding):
		return act.Copy{Text: qs[x.table.Cursor].Message, What: "the question"}
	}
	return nil
}

// Keys implements kit.Screen.
func (x *Inbox) Keys(e *kit.Env) []keymap.Binding {
	k := e.Keys
	if x.filter.Typing {
		return []keymap.Binding{k.Accept, k.Leave, k.Complete, k.HistoryUp}
	}
	task := k.Result
	task.Short = "task"
	return []keymap.Binding{k.Answer, task, k.Filter, k.Tasks, k.Servers, k.Copy}
}

// Status implements kit.Screen.
func (x *Inbox) Status(e *kit.Env, w int) (left, right string) {
	th := e.Theme
	n := e.Board.OpenQuestions()
	count := kit.Count(n, "open question")
	if x.filter.Text != "" {
		shown := 0
		for _, q := range x.questions(e) {
			if q.State.Open() {
				shown++
			}
		}
		count = strconv.Itoa(shown) + " of " + count
	}
	if x.filter.Typing {
		return x.filter.Status(th, count, w)
	}
	if x.filter.Text != "" {
		return th.Dim.Render(count) + "  " + th.Link.Render(safe.Line(x.filter.Text)), ""
	}
	return th.Dim.Render(count), th.Dim.Render("oldest first")
}

// View implements kit.Screen.
func (x *Inbox) View(e *kit.Env, w, h int) string {
	th := e.Theme
	qs := x.questions(e)
	if len(qs) == 0 {
		text := "Nobody asks anything. A question rings the bell and is counted in the first line; " + e.Keys.Tasks.Label() + " shows the tasks."
		if x.filter.Text != "" {
			text = "No question matches; " + e.Keys.Back.Label() + " clears the filter."
		}
		lines := []string{""}
		for _, l := range safe.Wrap(text, max(w-4, 10)) {
			lines = append(lines, "  "+th.Dim.Render(l))
		}
		return kit.Fill(lines, h)
	}
	below := x.words(e, qs[x.table.Cursor], w, h)
	h -= len(below)
	serverW, taskW := 6, 12
	for _, q := range qs {
		serverW = min(max(serverW, safe.Width(safe.Line(q.ID.Server))), 14)
		taskW = min(max(taskW, safe.Width(taskName(e, q))), 24)
	}
	kind := w >= 76
	msgW := w - 2 - 7 - 2 - serverW - 2 - taskW - 2 - 2 - 5
	if kind {
		msgW -= 10
	}
	head := kit.NewLine(w, nil).Gap(2).Num(th.Heading, "WAITS", 7).Gap(2).Cell(th.Heading, "SERVER", serverW).Gap(2).
		Cell(th.Heading, "TASK", taskW).Gap(2).Cell(th.Heading, "QUESTION", msgW)
	if kind {
		head.Gap(2).Cell(th.Heading, "KIND", 8)
	}
	head.Gap(2).Num(th.Heading, "TTL", 5)
	out := head.String() + "\n" + x.table.Draw(th, len(qs), w, h-1, func(b *kit.Line, i int) {
		q := qs[i]
		open := q.State.Open()
		text := th.Text
		if !open {
			text = th.Dim
		}
		wait := "·"
		if open {
			wait = e.Wait(q.AskedAt)
		}
		ws := th.Status.Input
		if !open {
			ws = th.Dim
		}
		b.Gap(1).Num(ws, wait, 7).Gap(2).Cell(text, safe.Line(q.ID.Server), serverW).Gap(2).Cell(text, taskName(e, q), taskW).Gap(2)
		end := b.Used() + msgW
		if note := note(e, q); note != "" {
			st := th.Dim
			if q.State == taskmodel.QuestionRefused {
				st = th.Error
			}
			most := max(msgW/2, 10)
			if !open {
				most = max(msgW-15, 10) // what became of it says more than what it was
			}
			if word, _, ok := strings.Cut(note, ":"); ok && safe.Width(note) > most {
				note = word // the reason stands in full below
			}
			b.Cell(st, note, min(safe.Width(note), most)).Cell(th.Faint, " · ", 3)
		}
		if n := end - b.Used(); n > 0 {
			b.Cell(text, safe.Line(q.Message), n)
		}
		if kind {
			b.Gap(2).Cell(th.Dim, safe.Line(string(q.Kind)), 8)
		}
		ttl := "–"
		if t, ok := e.Board.Task(q.Task); ok {
			if at, ok := t.ExpiresAt(); ok {
				ttl = e.Left(at)
			}
		}
		b.Gap(2).Num(th.Dim, ttl, 5)
	})
	for _, l := range below {
		out += "\n" + l
	}
	return out
}

// words are the lines below the table: the selected question in full, with what
// became of it, since a row has seldom room for both. They take the same height
// whatever is selected, so that nothing moves; a low window has none.
func (x *Inbox) words(e *kit.Env, q taskmodel.Question, w, h int) []string {
	const most = 4
	if h < 12 {
		return nil
	}
	th := e.Theme
	var lines []string
	add := func(s theme.Style, text string) {
		for _, l := range safe.Wrap(text, max(w-4, 10)) {
			lines = append(lines, "  "+s.Render(l))
		}
	}
	if n := note(e, q); n != "" {
		st := th.Dim
		if q.State == taskmodel.QuestionRefused {
			st = th.Error
		}
		add(st, strings.ToUpper(n[:1])+strings.TrimSuffix(n[1:], ".")+".")
	}
	add(th.Text, safe.Line(q.Message))
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = safe.Truncate(lines[most-1], w-5, "") + th.Faint.Render(safe.Ellipsis)
	}
	return append([]string{""}, append(lines, make([]string, most-len(lines))...)...)
}

func taskName(e *kit.Env, q taskmodel.Question) string {
	tool := e.ToolOf(q)
	switch {
	case q.Task.ID == "" && tool != "":
		return safe.Line(tool) + " (call)"
	case q.Task.ID == "":
		return "(plain call)"
	case tool != "":
		return safe.Line(tool)
	case q.Receiver:
		return "asked of us"
	}
	return kit.ShortID(q.Task.ID)
}

func note(e *kit.Env, q taskmodel.Question) string {
	switch call := q.Repeat.Tool != ""; {
	case call && q.State == taskmodel.QuestionAnswered && q.Done:
		return "done there: call again"
	case call && q.State == taskmodel.QuestionAnswered:
		return "agreed: call again when done"
	case call && q.State == taskmodel.QuestionWithdrawn:
		return "over: " + safe.Line(q.Withdrawn)
	case q.Kind == taskmodel.AskURL && q.State == taskmodel.QuestionAnswered && q.Done:
		return "done there"
	}
	switch q.State {
	case taskmodel.QuestionSending:
		return "sending"
	case taskmodel.QuestionAnswered:
		if !e.Awaits(q) {
			return "answered"
		}
		return "answered, waiting for the server"
	case taskmodel.QuestionUnconfirmed:
		return "sent, outcome unknown"
	case taskmodel.QuestionWithdrawn:
		return "withdrawn: " + safe.Line(q.Withdrawn)
	case taskmodel.QuestionRefused:
		return kit.Refusal(q)
	}
	if len(q.Draft) > 0 {
		return "draft kept"
	}
	return ""
}
