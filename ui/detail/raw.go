package detail

import (
	tea "charm.land/bubbletea/v2"

	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/resultview"
)

// A rawPane is the task as its server last sent it.
type rawPane struct {
	json resultview.JSON
}

// Typing reports whether a search is being typed.
func (r *rawPane) Typing() bool { return r.json.Typing() }

// Update takes a key; the document copies the value under its cursor itself.
func (r *rawPane) Update(e *kit.Env, m tea.Msg) (act.Action, bool) {
	ev, used := r.json.Update(e.Keys, m)
	if ev.Kind == resultview.Copy {
		return act.Copy{Text: ev.Text, What: ev.Name}, true
	}
	return nil, used
}

// View draws the document.
func (r *rawPane) View(e *kit.Env, raw []byte, w, h int) string {
	if len(raw) == 0 {
		return kit.Fill([]string{e.Theme.Dim.Render("The server has not sent this task yet.")}, h)
	}
	r.json.Set(raw)
	return r.json.View(e.Theme, w, h)
}

// Status is the path under the cursor and where the window stands.
func (r *rawPane) Status() (left, right string) { return r.json.Path(), r.json.Status() }
