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
)

// An Inbox is the screen. It is owned by the root's goroutine.
type Inbox struct {
	table  kit.Table
	sel    taskmodel.QuestionID
	edit   kit.Edit
	typing bool
	filter string
}

// New makes the screen.
func New() *Inbox { return &Inbox{} }

// Context implements kit.Screen.
func (x *Inbox) Context() keymap.Context {
	if x.typing {
		return keymap.Prompt
	}
	return keymap.Inbox
}

// Typing implements kit.Typer.
func (x *Inbox) Typing() bool { return x.typing }

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
	if x.filter != "" {
		all = slices.DeleteFunc(all, func(q taskmodel.Question) bool { return !x.match(e, q) })
	}
	if i := slices.IndexFunc(all, func(q taskmodel.Question) bool { return q.ID == x.sel }); i >= 0 {
		x.table.Cursor = i
	} else if len(all) > 0 {
		x.table.Cursor = max(min(x.table.Cursor, len(all)-1), 0)
		x.sel = all[x.table.Cursor].ID
	}
	return all
}

// match reports whether a question passes the filter. Bare words are looked for
// in what the row shows; terms with a field are the list's own, asked of the
// question's task.
func (x *Inbox) match(e *kit.Env, q taskmodel.Question) bool {
	t, known := e.Board.Task(q.Task)
	if !known {
		t = taskmodel.Task{Key: taskmodel.Key{Server: q.ID.Server, ID: q.Task.ID, Role: q.Task.Role}, Tool: q.Tool}
	}
	t.StatusMessage = q.Message
	text := strings.ToLower(q.ID.Server + " " + q.Tool + " " + q.Message + " " + string(q.Kind) + " " + q.Task.ID)
	for _, w := range strings.Fields(x.filter) {
		if strings.ContainsAny(w, ":!/") {
			// A term that is still being typed holds nothing back.
			if f, err := board.ParseFilter(w); err == nil {
				if !f.Match(&t, e.Now) {
					return false
				}
				continue
			}
			if strings.Contains(w, ":") {
				continue
			}
		}
		if !strings.Contains(text, strings.ToLower(w)) {
			return false
		}
	}
	return true
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
	if x.typing {
		switch {
		case isKey && key.Matches(k, keys.Leave.Binding):
			x.typing, x.filter = false, ""
		case isKey && key.Matches(k, keys.Accept.Binding):
			x.typing = false
		case x.edit.Update(m):
			x.filter = x.edit.Text()
		}
		return nil
	}
	if !isKey {
		return nil
	}
	qs := x.questions(e)
	if x.table.Move(keys, k, len(qs)) {
		if len(qs) > 0 {
			x.sel = qs[x.table.Cursor].ID
		}
		return nil
	}
	switch {
	case key.Matches(k, keys.Filter.Binding):
		x.typing = true
		x.edit.Set(x.filter)
	case key.Matches(k, keys.Back.Binding):
		if x.filter != "" {
			x.filter = ""
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
	if x.typing {
		return []keymap.Binding{k.Accept, k.Leave}
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
	if strings.TrimSpace(x.filter) != "" {
		shown := 0
		for _, q := range x.questions(e) {
			if q.State.Open() {
				shown++
			}
		}
		count = strconv.Itoa(shown) + " of " + count
	}
	if x.typing {
		return th.Key.Render("/") + x.edit.View(th, max(w-safe.Width(count)-4, 8)), th.Dim.Render(count)
	}
	if x.filter != "" {
		return th.Dim.Render(count) + "  " + th.Link.Render(safe.Line(x.filter)), ""
	}
	return th.Dim.Render(count), th.Dim.Render("oldest first")
}

// View implements kit.Screen.
func (x *Inbox) View(e *kit.Env, w, h int) string {
	th := e.Theme
	qs := x.questions(e)
	if len(qs) == 0 {
		text := "Nobody asks anything."
		if x.filter != "" {
			text = "No question matches; " + e.Keys.Back.Label() + " clears the filter."
		}
		return kit.Fill([]string{"", "  " + th.Dim.Render(text)}, h)
	}
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
	return head.String() + "\n" + x.table.Draw(th, len(qs), w, h-1, func(b *kit.Line, i int) {
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
		return "refused: " + safe.Line(q.Refusal)
	}
	if len(q.Draft) > 0 {
		return "draft kept"
	}
	return ""
}
