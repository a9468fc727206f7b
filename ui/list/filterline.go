package list

import (
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
)

// A filterLine is the filter being typed and the one in force.
type filterLine struct {
	text    string // in force
	before  string // what leaving the line goes back to
	edit    kit.Edit
	typing  bool
	err     string
	suggest []string
	pick    int // of suggest, while tab walks through it; -1: not yet
	history kit.History
	origin  taskmodel.Key // what was selected when the typing began
}

func (f *filterLine) begin(sel taskmodel.Key) {
	f.typing, f.before, f.err, f.pick = true, f.text, "", -1
	f.edit.Set(f.text)
	f.suggest, f.origin = nil, sel
}

// SetFilter puts a filter in force; one that does not parse changes nothing
// but the message.
func (l *List) SetFilter(e *kit.Env, text string) act.Action {
	text = strings.TrimSpace(text)
	var f *board.Filter
	if text != "" {
		var err error
		if f, err = board.ParseFilter(text); err != nil {
			l.filter.err = err.Error()
			return act.Notice{Text: "Filter: " + err.Error(), Error: true}
		}
	}
	l.filter.err = ""
	if text == l.filter.text && (f == nil) == (l.set.Filter == nil) {
		return nil
	}
	l.filter.text, l.set.Filter = text, f
	return l.apply(e)
}

func (l *List) typeFilter(e *kit.Env, m tea.Msg) act.Action {
	f := &l.filter
	if k, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, e.Keys.Leave.Binding):
			f.typing = false
			return l.SetFilter(e, f.before)
		case key.Matches(k, e.Keys.Accept.Binding):
			if f.err != "" {
				return nil
			}
			f.typing = false
			f.history.Add(f.text)
			return nil
		case key.Matches(k, e.Keys.Complete.Binding):
			return l.complete(e)
		case key.Matches(k, e.Keys.HistoryUp.Binding):
			if s, ok := f.history.Older(f.edit.Text()); ok {
				f.edit.Set(s)
			}
			return l.typed(e)
		case key.Matches(k, e.Keys.HistoryDown.Binding):
			if s, ok := f.history.Newer(); ok {
				f.edit.Set(s)
			}
			return l.typed(e)
		}
	}
	if f.edit.Update(m) {
		return l.typed(e)
	}
	return nil
}

// typed applies what stands in the line; an error leaves the rows as they are.
func (l *List) typed(e *kit.Env) act.Action {
	f := &l.filter
	f.pick = -1
	text := f.edit.Text()
	f.suggest = board.CompleteFilter(text, utf8.RuneCountInString(f.edit.Before()), e.Board)
	good, _, err := board.ParseFilterSoFar(text)
	if err != nil {
		// What stands before the term being typed counts already.
		a := l.SetFilter(e, good)
		f.err = err.Error()
		return a
	}
	return l.SetFilter(e, text)
}

// complete puts the next suggestion in place of the line.
func (l *List) complete(e *kit.Env) act.Action {
	f := &l.filter
	if f.pick < 0 {
		f.suggest = board.CompleteFilter(f.edit.Text(), utf8.RuneCountInString(f.edit.Before()), e.Board)
	}
	if len(f.suggest) == 0 {
		return nil
	}
	suggest, pick := f.suggest, (f.pick+1)%len(f.suggest)
	f.edit.Set(suggest[pick])
	a := l.typed(e)
	if len(suggest) > 1 {
		f.suggest, f.pick = suggest, pick
	}
	return a
}
