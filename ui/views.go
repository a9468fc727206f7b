package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel/board"
	"mcptasks/ui/safe"
)

// loadViews reads the views that were saved from the screens. A file that
// cannot be read is as one that is not there: views are no reason not to start.
func loadViews(path string) map[string]string {
	out := readViews(path)
	maps.DeleteFunc(out, func(_, text string) bool {
		_, err := board.ParseFilter(text)
		return err != nil
	})
	return out
}

// view is the filter of a named view; the configuration's go before the saved.
func (m *model) view(name string) (string, bool) {
	if text, ok := m.opt.Views[name]; ok {
		return text, true
	}
	text, ok := m.views[name]
	return text, ok
}

func (m *model) viewNames(string) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(m.opt.Views)), maps.Keys(m.views))
	slices.Sort(names)
	return slices.Compact(names)
}

func (m *model) cmdView(arg string) tea.Cmd {
	text, ok := m.view(arg)
	if ok {
		m.clear()
		return m.do(m.list.SetFilter(&m.env, text))
	}
	names := m.viewNames("")
	switch {
	case len(names) == 0:
		m.say("No view is named yet: filter the list, then :save-view NAME.", arg != "")
	case arg == "":
		m.say("Views: "+strings.Join(names, ", "), false)
	default:
		m.say(fmt.Sprintf("No view is called %q; there are %s.", safe.Line(arg), strings.Join(names, ", ")), true)
	}
	return nil
}

// cmdSaveView names the filter in force.
func (m *model) cmdSaveView(name string) tea.Cmd {
	text := m.list.FilterText()
	switch _, fixed := m.opt.Views[name]; {
	case name == "" || strings.ContainsAny(name, " \t\"="):
		m.say("A view's name is one word: :save-view mine", true)
	case text == "":
		m.say("No filter is in force that could be saved; "+m.keys.Filter.Label()+" filters the list.", true)
	case fixed:
		m.say(fmt.Sprintf("The view %q stands in the configuration file; take another name.", safe.Line(name)), true)
	default:
		return m.keepView(name, text, fmt.Sprintf("Saved %s as the view %q; :view %s shows it.", safe.Line(text), safe.Line(name), safe.Line(name)))
	}
	return nil
}

// cmdDropView forgets a saved view.
func (m *model) cmdDropView(name string) tea.Cmd {
	if _, fixed := m.opt.Views[name]; fixed {
		m.say(fmt.Sprintf("The view %q stands in the configuration file and is dropped there.", safe.Line(name)), true)
		return nil
	}
	if _, ok := m.views[name]; !ok {
		m.say(fmt.Sprintf("No saved view is called %q.", safe.Line(name)), true)
		return nil
	}
	return m.keepView(name, "", fmt.Sprintf("Dropped the view %q.", safe.Line(name)))
}

// keepView names a view, or drops it where text is "".
func (m *model) keepView(name, text, done string) tea.Cmd {
	m.views = maps.Clone(m.views)
	if m.views[name] = text; text == "" {
		delete(m.views, name)
	}
	file := m.saved
	file.set(name, text)
	return func() tea.Msg {
		if err := file.write(); err != nil {
			return doneMsg{err: fmt.Errorf("the view counts, but was not written: %w", err)}
		}
		return doneMsg{text: done}
	}
}

// savedNames are the views that can be dropped.
func (m *model) savedNames(string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.views)), func(n string) bool { _, fixed := m.opt.Views[n]; return fixed })
}

// maxLog is how much of the end of the log is shown.
const maxLog = 1 << 20

// cmdLog shows the end of the program's own log.
func (m *model) cmdLog(string) tea.Cmd {
	path := m.opt.LogFile
	if path == "" {
		m.say("No log is written; mcptasks --log FILE writes one.", false)
		return nil
	}
	return func() tea.Msg {
		text, err := tailOf(path, maxLog)
		if err != nil {
			return doneMsg{err: fmt.Errorf("the log: %w", err)}
		}
		return logMsg{path, text}
	}
}

// logMsg brings the end of the log.
type logMsg struct{ path, text string }

func tailOf(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	s, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !s.Mode().IsRegular() {
		return "", &fs.PathError{Op: "read", Path: path, Err: errors.New("it is no file")}
	}
	from := max(s.Size()-most, 0)
	b := make([]byte, s.Size()-from)
	n, err := f.ReadAt(b, from)
	if err != nil && n < len(b) {
		b = b[:n]
	}
	text := string(b)
	if _, rest, ok := strings.Cut(text, "\n"); ok && from > 0 {
		text = rest
	}
	return text, nil
}
