package wirelog

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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

	suggest []string
	pick    int // of suggest, while tab walks through it; -1: not yet
}

func (f *filter) active() bool { return f.parsed != nil }

func (f *filter) begin() {
	f.typing, f.before, f.err = true, f.text, ""
	f.suggest, f.pick = nil, -1
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

// words are the values that a field can have in this log.
func (l *Log) words(e *kit.Env, name string) []string {
	var out []string
	seen := map[string]bool{"": true}
	add := func(words ...string) {
		for _, w := range words {
			if !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		}
	}
	of := func(get func(en *taskmodel.WireEntry) string) {
		for i := range l.entries {
			if add(get(&l.entries[i])); len(out) == 200 {
				break
			}
		}
		slices.Sort(out)
	}
	switch name {
	case "status":
		of(func(en *taskmodel.WireEntry) string { return en.Kind })
	case "tool":
		of(func(en *taskmodel.WireEntry) string { return en.Method })
	case "id":
		of(func(en *taskmodel.WireEntry) string { return en.Task })
	case "server":
		for _, s := range e.Board.Servers() {
			add(s.Name)
		}
	case "age":
		add(">1m", "<1m", ">5m", "<5m", ">1h", "<1h")
	}
	return out
}

// fields are those of the grammar that say something of a message.
var fields = []string{"status:", "server:", "tool:", "id:", "msg:", "age:"}

func (l *Log) complete(e *kit.Env) []string {
	f := &l.filter
	all := board.CompleteWith(f.edit.Text(), utf8.RuneCountInString(f.edit.Before()), func(name string) []string { return l.words(e, name) })
	return slices.DeleteFunc(all, func(s string) bool {
		last := s[strings.LastIndexByte(s, ' ')+1:]
		return strings.HasSuffix(last, ":") && !slices.Contains(fields, strings.TrimLeft(last, "!"))
	})
}

// Fault is what is wrong with the filter being typed.
func (l *Log) Fault() string { return l.filter.err }

// Suggestions are the completions to show while a filter is typed.
func (l *Log) Suggestions() ([]string, int) { return l.filter.suggest, l.filter.pick }

func (l *Log) typeFilter(e *kit.Env, m tea.Msg) {
	f := &l.filter
	f.now = e.Now
	keep := false
	defer func() {
		if !f.typing {
			f.suggest = nil
		} else if !keep {
			f.suggest, f.pick = l.complete(e), -1
		}
	}()
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
		case key.Matches(k, e.Keys.Complete.Binding):
			if f.pick < 0 {
				f.suggest = l.complete(e)
			}
			if len(f.suggest) == 0 {
				return
			}
			f.pick = (f.pick + 1) % len(f.suggest)
			f.edit.Set(f.suggest[f.pick])
			keep = len(f.suggest) > 1
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
	text := f.edit.Text()
	if !f.set(text) {
		// What stands before the term being typed counts already.
		err := f.err
		f.set(text[:max(strings.LastIndexByte(text, ' '), 0)])
		f.err = err
	}
	l.apply()
}
