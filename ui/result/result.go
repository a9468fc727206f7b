// Package result is the screen of one result: whose it is, and package
// resultview below it.
//
// It imports kit, act, theme, safe, resultview and taskmodel. It saves and
// opens nothing itself: that comes out as actions, with commands where a disk
// is needed.
package result

import (
	"path/filepath"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/resultview"
	"mcptasks/ui/safe"
)

// A Result is the screen. It is owned by the root's goroutine.
type Result struct {
	task  taskmodel.Key
	what  string // "Result of "
	title string // sanitised
	dir   string // where files are saved
	out   taskmodel.Outcome
	view  *resultview.View
}

// New makes the screen of an outcome; task is zero for a call without one.
func New(task taskmodel.Key, title, dir string, o taskmodel.Outcome, opt resultview.Options) *Result {
	return &Result{task: task, what: "Result of ", title: title, dir: dir, out: o, view: resultview.New(o, opt)}
}

// Resource makes the screen of a resource that was read from a task's server.
func Resource(server taskmodel.Key, title, dir string, o taskmodel.Outcome, opt resultview.Options) *Result {
	r := New(server, title, dir, o, opt)
	r.what = "Resource "
	return r
}

// Context implements kit.Screen.
func (r *Result) Context() keymap.Context {
	if r.view.Typing() {
		return keymap.Prompt
	}
	return keymap.Result
}

// Typing implements kit.Typer.
func (r *Result) Typing() bool { return r.view.Typing() }

// Searching reports whether a search is on.
func (r *Result) Searching() bool { return r.view.Searching() }

// Work implements kit.Worker.
func (r *Result) Work() tea.Cmd { return r.view.Work() }

// savedMsg ends a save.
type savedMsg struct {
	view  *resultview.View
	names []string
	err   error
}

// Update implements kit.Screen.
func (r *Result) Update(e *kit.Env, m tea.Msg) act.Action {
	if s, ok := m.(savedMsg); ok {
		if s.view != r.view {
			return nil
		}
		return Saved(s.names, s.err)
	}
	if l, ok := m.(resultview.Laid); ok {
		r.view.Laid(l)
		return nil
	}
	if k, ok := m.(tea.KeyPressMsg); ok && !r.Typing() {
		switch {
		case key.Matches(k, e.Keys.Back.Binding) && !r.view.Searching():
			return act.Back{}
		case key.Matches(k, e.Keys.Fetch.Binding) && r.task.ID != "":
			return act.Fetch{Tasks: []taskmodel.Key{r.task}}
		}
	}
	ev, _ := r.view.Update(e.Keys, m)
	return Event(ev, r.view, r.dir, r.task)
}

// Saved says what was saved.
func Saved(names []string, err error) act.Action {
	if err != nil {
		return act.Notice{Text: "Saving the result: " + err.Error(), Error: true}
	}
	dir := ""
	if len(names) > 0 {
		dir = " in " + filepath.Dir(names[0])
	}
	return act.Notice{Text: "Saved " + kit.Count(len(names), "file") + dir + "."}
}

// Event makes an action of what the person wants of a result.
func Event(ev resultview.Event, v *resultview.View, dir string, task taskmodel.Key) act.Action {
	switch ev.Kind {
	case resultview.Copy:
		return act.Copy{Text: ev.Text, What: ev.Name}
	case resultview.Save:
		return act.Line{Title: "Save every block of the result in which folder?", Text: filepath.Join(dir, "result"), Done: func(path string) act.Action {
			if path = strings.TrimSpace(path); path == "" {
				return nil
			}
			return act.Cmd{Cmd: func() tea.Msg {
				names, err := v.Save(path)
				return savedMsg{v, names, err}
			}}
		}}
	case resultview.Pager:
		return act.Page{Text: ev.Text, Name: ev.Name}
	case resultview.Editor:
		return act.Edit{Text: ev.Text, Name: ev.Name}
	case resultview.Open:
		data, err := ev.Block.Bytes()
		if err != nil {
			return act.Notice{Text: "The block cannot be read: " + err.Error(), Error: true}
		}
		return act.Ask{Title: "Save this block and open it with the system's program?",
			Lines: []string{ev.Block.Line(), "The program is chosen by the file's kind, which the server has said."},
			Yes:   act.OpenFile{Name: ev.Block.FileName(), Data: data}, Label: "open it", NoLabel: "leave it"}
	case resultview.ReadLink:
		name := ev.Block.Title
		if name == "" {
			name = ev.Block.Name
		}
		return act.ReadResource{Task: task, URI: ev.Text, Name: name}
	case resultview.Visit:
		u := safe.JudgeURL(ev.Text)
		if !u.OK {
			return act.Notice{Text: "This link cannot be opened in the browser: " + u.Why, Error: true}
		}
		return act.Ask{Title: "Open this address in the browser?", Lines: []string{safe.Line(ev.Text)},
			Yes: act.Browse{URL: ev.Text}, Label: "open it", NoLabel: "leave it"}
	}
	return nil
}

// Keys implements kit.Screen.
func (r *Result) Keys(e *kit.Env) []keymap.Binding {
	if r.Typing() {
		return []keymap.Binding{e.Keys.Accept, e.Keys.Leave}
	}
	return r.view.Keys(e.Keys)
}

// Status implements kit.Screen.
func (r *Result) Status(e *kit.Env, w int) (left, right string) {
	l, right := r.view.Status()
	th := e.Theme
	return th.Dim.Render(safe.Truncate(l, max(w-safe.Width(right)-3, 0), safe.Ellipsis)), th.Dim.Render(right)
}

// View implements kit.Screen.
func (r *Result) View(e *kit.Env, w, h int) string {
	th := e.Theme
	l := kit.NewLine(w, nil).Add(th.Text, r.what).Add(th.Title, r.title)
	note := ""
	if r.out.KeptHere {
		note = "kept here"
	}
	if !r.out.FetchedAt.IsZero() {
		if note != "" {
			note += ", "
		}
		note += "fetched " + e.AgeLong(r.out.FetchedAt) + " ago"
	}
	l.Right(th.Dim, note)
	if h < 6 {
		return l.String() + "\n" + r.view.View(th, w, max(h-1, 1))
	}
	return l.String() + "\n\n" + r.view.View(th, w, h-2)
}
