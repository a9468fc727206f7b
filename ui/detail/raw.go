package detail

import (
	tea "charm.land/bubbletea/v2"

	"mcptasks/ui/act"
	"mcptasks/ui/kit"
)

// A rawPane is the task as its server last sent it.
type rawPane struct {
	json kit.JSON
}

// Typing reports whether a search is being typed.
func (r *rawPane) Typing() bool { return r.json.Typing() }

// Update takes a key.
func (r *rawPane) Update(e *kit.Env, m tea.Msg) (act.Action, bool) {
	return nil, r.json.Update(e.Keys, m)
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
