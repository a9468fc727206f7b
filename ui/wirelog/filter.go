package wirelog

import (
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/kit"
)

// A filter is the list's grammar over messages: status: is the kind of the
// message, tool: its method, id: the JSON-RPC id or the task's, msg: and plain
// words its content, server: and age: as they are.
type filter struct {
	text   string
	edit   kit.Edit
	typing bool
	before string
	err    string
	parsed *board.Filter
	now    time.Time
	hist   kit.History
}

func (f *filter) active() bool { return f.parsed != nil }

func (f *filter) begin() {
	f.typing, f.before, f.err = true, f.text, ""
	f.edit.Set(f.text)
}

func (f *filter) set(text string) bool {
	text = strings.TrimSpace(text)
	f.err = ""
	if text == "" {
		f.text, f.parsed = "", nil
		return true
	}
	p, err := board.ParseFilter(text)
	if err != nil {
		f.err = err.Error()
		return false
	}
	f.text, f.parsed = text, p
	return true
}

func (f *filter) match(en *taskmodel.WireEntry) bool {
	if f.parsed == nil {
		return true
	}
	id := en.Task
	if id == "" {
		id = strings.Trim(en.ID, `"`)
	}
	msg := string(en.Bytes)
	if len(msg) > 64<<10 {
		msg = msg[:64<<10]
	}
	t := taskmodel.Task{
		Key:    taskmodel.Key{Server: en.Server, ID: id, Role: taskmodel.Requestor},
		Status: taskmodel.Status(en.Kind), Tool: en.Method,
		StatusMessage: string(en.Direction) + " " + en.Kind + " " + en.Method + " " + strconv.Quote(en.ID) + " " + msg,
		CreatedAt:     en.At, FirstHeardAt: en.At,
	}
	return f.parsed.Match(&t, f.now)
}

func (l *Log) typeFilter(e *kit.Env, m tea.Msg) {
	f := &l.filter
	f.now = e.Now
	if k, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, e.Keys.Leave.Binding):
			f.typing = false
			f.set(f.before)
			l.apply()
			return
		case key.Matches(k, e.Keys.Accept.Binding):
			if f.err == "" {
				f.typing = false
				f.hist.Add(f.text)
			}
			return
		case key.Matches(k, e.Keys.HistoryUp.Binding):
			if s, ok := f.hist.Older(f.edit.Text()); ok {
				f.edit.Set(s)
			}
		case key.Matches(k, e.Keys.HistoryDown.Binding):
			if s, ok := f.hist.Newer(); ok {
				f.edit.Set(s)
			}
		default:
			if !f.edit.Update(m) {
				return
			}
		}
	} else if !f.edit.Update(m) {
		return
	}
	if f.set(f.edit.Text()) {
		l.apply()
	}
}
