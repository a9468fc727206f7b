package detail

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/result"
	"mcptasks/ui/resultview"
	"mcptasks/ui/safe"
)

// A resultPane is the task's result, when it is here.
type resultPane struct {
	view *resultview.View
	task taskmodel.Key
	of   stampOf
}

// A stampOf tells one outcome from another without comparing payloads.
type stampOf struct {
	at   time.Time
	size int
	err  *taskmodel.RPCError
	kept bool
}

func (r *resultPane) set(e *kit.Env, o taskmodel.Outcome) {
	of := stampOf{o.FetchedAt, len(o.Result), o.Err, o.KeptHere}
	if r.view == nil || of != r.of {
		r.view, r.of = resultview.New(o, resultview.Options{NoImages: e.Theme.Name == "mono", Canvas: e.Canvas}), of
	}
}

// open reports whether the pane is in front and shows a result.
func (r *resultPane) open(t Tab) bool { return t == Result && r.view != nil }

// laid takes layout that was done beside the loop.
func (r *resultPane) laid(l resultview.Laid) {
	if r.view != nil {
		r.view.Laid(l)
	}
}

// Typing reports whether a search is being typed.
func (r *resultPane) Typing() bool { return r.view != nil && r.view.Typing() }

// Update takes a key.
func (r *resultPane) Update(e *kit.Env, m tea.Msg) (act.Action, bool) {
	if r.view == nil {
		return nil, false
	}
	ev, used := r.view.Update(e.Keys, m)
	return result.Event(ev, r.view, "", r.task), used
}

// Status is where the window stands.
func (r *resultPane) Status() (left, right string) {
	if r.view == nil {
		return "", ""
	}
	return r.view.Status()
}

// View draws the result, or why there is none.
func (r *resultPane) View(e *kit.Env, t *taskmodel.Task, w, h int) string {
	o := t.Outcome
	if o.Result != nil || o.Err != nil {
		r.task = t.Key
		r.set(e, o)
		return r.view.View(e.Theme, w, h)
	}
	r.view = nil
	th := e.Theme
	var text string
	switch {
	case o.TooLarge > 0:
		text = "The result has " + kit.Bytes(o.TooLarge) + " and is not kept here. mcptasks result --save DIR fetches it to files."
	case t.Terminal():
		text = "No result is here yet. " + e.Keys.Result.Label() + " fetches it from the server."
	default:
		text = "The task has not ended. " + e.Keys.Result.Label() + " waits for its result."
	}
	var lines []string
	for _, l := range safe.Wrap(text, max(w, 10)) {
		lines = append(lines, th.Dim.Render(l))
	}
	if o.Note != "" {
		lines = append(lines, th.Dim.Render(safe.Truncate(safe.Line(o.Note), w, safe.Ellipsis)))
	}
	return kit.Fill(lines, h)
}
