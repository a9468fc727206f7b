package wirelog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/kit"
)

// A filter is the list's grammar over messages: status: is the kind of the
// message, tool: its method, id: the JSON-RPC id or the task's, msg: and plain
// words its content, server: and age: as they are.
type filter struct {
	kit.FilterLine
	now time.Time
}

func (f *filter) active() bool { return f.Parsed != nil }

func (f *filter) match(en *taskmodel.WireEntry) bool {
	if f.Parsed == nil {
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
	return f.Parsed.Match(&t, f.now)
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

// complete gives the ways in which a filter's text could go on.
func (l *Log) complete(e *kit.Env) func(text string, cursor int) []string {
	return func(text string, cursor int) []string {
		all := board.CompleteWith(text, cursor, func(name string) []string { return l.words(e, name) })
		return slices.DeleteFunc(all, func(s string) bool {
			last := s[strings.LastIndexByte(s, ' ')+1:]
			return strings.HasSuffix(last, ":") && !slices.Contains(fields, strings.TrimLeft(last, "!"))
		})
	}
}

// Fault is what is wrong with the filter being typed.
func (l *Log) Fault() string { return l.filter.Fault }

// Suggestions are the completions to show while a filter is typed.
func (l *Log) Suggestions() ([]string, int) { return l.filter.Suggestions() }

func (l *Log) typeFilter(e *kit.Env, m tea.Msg) {
	l.filter.now = e.Now
	if l.filter.Update(e.Keys, m, l.complete(e)) {
		l.apply()
	}
}
