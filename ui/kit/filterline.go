package kit

import (
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A FilterLine is a filter expression being typed and the one in force, for
// screens that filter something beside tasks by the same grammar. A line that
// does not parse leaves in force what stands before the fault, and says what is
// wrong with it. It is owned by its screen.
type FilterLine struct {
	Text   string        // in force
	Parsed *board.Filter // of Text, nil when that is empty
	Typing bool
	Fault  string // what is wrong with what is being typed

	edit    Edit
	before  string
	history History
	suggest []string
	pick    int // of suggest, while tab walks through it; -1: not yet
}

// Begin starts the typing, at what is in force. complete gives the ways in which
// a text could go on at a cursor (see board.CompleteFilter).
func (f *FilterLine) Begin(complete func(text string, cursor int) []string) {
	f.Typing, f.before, f.Fault, f.pick = true, f.Text, "", -1
	f.edit.Set(f.Text)
	f.suggest = f.complete(complete)
}

func (f *FilterLine) complete(ways func(text string, cursor int) []string) []string {
	return ways(f.edit.Text(), utf8.RuneCountInString(f.edit.Before()))
}

// Set puts a text in force as far as it parses, and reports whether it did as a
// whole.
func (f *FilterLine) Set(text string) bool {
	text = strings.TrimSpace(text)
	good, p, err := board.ParseFilterSoFar(text)
	f.Text, f.Parsed, f.Fault = good, p, ""
	if good == "" {
		f.Parsed = nil
	}
	if err != nil {
		f.Fault = err.Error()
	}
	return err == nil
}

// Update takes a message while the line is typed, and reports whether what is in
// force may have changed.
func (f *FilterLine) Update(k *keymap.Map, m tea.Msg, complete func(text string, cursor int) []string) (changed bool) {
	keep := false
	if p, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(p, k.Leave.Binding):
			f.Typing, f.suggest = false, nil
			f.Set(f.before)
			return true
		case key.Matches(p, k.Accept.Binding):
			if f.Fault == "" {
				f.Typing, f.suggest = false, nil
				f.history.Add(f.Text)
			}
			return false
		case key.Matches(p, k.Complete.Binding):
			if f.pick < 0 {
				f.suggest = f.complete(complete)
			}
			if len(f.suggest) == 0 {
				return false
			}
			f.pick = (f.pick + 1) % len(f.suggest)
			f.edit.Set(f.suggest[f.pick])
			keep = len(f.suggest) > 1
		case key.Matches(p, k.HistoryUp.Binding):
			if s, ok := f.history.Older(f.edit.Text()); ok {
				f.edit.Set(s)
			}
		case key.Matches(p, k.HistoryDown.Binding):
			if s, ok := f.history.Newer(); ok {
				f.edit.Set(s)
			}
		default:
			if !f.edit.Update(m) {
				return false
			}
		}
	} else if !f.edit.Update(m) {
		return false
	}
	f.Set(f.edit.Text())
	if !keep {
		f.suggest, f.pick = f.complete(complete), -1
	}
	return true
}

// Suggestions are the completions to show while the line is typed.
func (f *FilterLine) Suggestions() ([]string, int) { return f.suggest, f.pick }

// Status are the two parts of the status line while the filter is typed: the
// line, and beside it what is wrong, where that has room, or the count.
func (f *FilterLine) Status(th *theme.Theme, count string, w int) (left, right string) {
	right = th.Dim.Render(count)
	fault := safe.Line(f.Fault)
	switch {
	case fault == "":
	case len(f.suggest) > 0: // it is on its way
		right = th.Dim.Render(safe.Truncate(fault, w/2, safe.Ellipsis))
	case safe.Width(fault) <= w/2:
		right = th.Error.Render(fault)
	}
	return th.Key.Render("/") + f.edit.View(th, max(w-safe.Width(right)-3, 8)), right
}
