package detail

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/resultview"
	"mcptasks/ui/safe"
	"mcptasks/ui/wirelog"
)

// A Tab is one pane.
type Tab int

// The panes, in the order of the tab key.
const (
	Overview Tab = iota
	Result
	Messages
	Raw
	Wire
	tabs
)

var tabNames = [tabs]string{"Overview", "Result", "Messages", "Raw", "Wire"}

// A Detail is the screen. It is owned by the root's goroutine.
type Detail struct {
	key    taskmodel.Key
	beside bool // stands beside the list
	focus  bool // has the keys; a full one always has
	tab    Tab

	overview kit.Text
	messages kit.Text
	result   resultPane
	raw      rawPane
	wire     *wirelog.Log
	logs     []taskmodel.LogLine
	past     []taskmodel.Event
	follow   bool
	samples  []sample
}

// A sample is the progress at an instant, for the rate.
type sample struct {
	at    time.Time
	value float64
}

// New makes the detail of a task; beside, when it stands beside the list.
func New(k taskmodel.Key, beside bool) *Detail {
	d := &Detail{beside: beside, focus: !beside}
	d.Show(k)
	return d
}

// Show turns to another task; the pane stays.
func (d *Detail) Show(k taskmodel.Key) {
	if d.key == k && d.wire != nil {
		return
	}
	d.key = k
	d.overview, d.messages, d.result, d.raw = kit.Text{}, kit.Text{}, resultPane{}, rawPane{}
	d.logs, d.past, d.samples, d.follow = nil, nil, nil, true
	d.wire = wirelog.New(wirelog.Scope{Server: k.Server, Task: k.ID})
}

// Key is the task shown.
func (d *Detail) Key() taskmodel.Key { return d.key }

// Wanted is the child that the task's server wants started by us under an id
// of its own, when there is one that is not there yet.
func (d *Detail) Wanted(e *kit.Env) (server, id string) {
	t, ok := e.Board.Task(d.key)
	if !ok {
		return "", ""
	}
	for _, c := range t.Children {
		if c.Required {
			if _, there := e.Board.Task(taskmodel.Key{Server: t.Server, ID: c.ID, Role: t.Role}); !there {
				return t.Server, c.ID
			}
		}
	}
	return "", ""
}

// Focus gives or takes the keys.
func (d *Detail) Focus(on bool) { d.focus = on || !d.beside }

// Turn shows a pane.
func (d *Detail) Turn(t Tab) { d.tab = t }

// Feed takes what the monitor keeps about the task; from is the number of the
// oldest wire entry that it keeps.
func (d *Detail) Feed(logs []taskmodel.LogLine, wire []taskmodel.WireEntry, from int64) {
	d.logs = logs
	d.wire.Feed(wire, from)
}

// History takes the audit trail.
func (d *Detail) History(past []taskmodel.Event) { d.past = past }

// WireAfter is the number of the last wire entry that it has.
func (d *Detail) WireAfter() int64 { return d.wire.After() }

// Refresh implements kit.Refresher: it remembers the progress for the rate.
func (d *Detail) Refresh(e *kit.Env) act.Action {
	t, ok := e.Board.Task(d.key)
	if !ok || t.Progress == nil || t.Progress.At.IsZero() {
		return nil
	}
	n := len(d.samples)
	if n > 0 && !t.Progress.At.After(d.samples[n-1].at) {
		return nil
	}
	if n > 0 && t.Progress.Value < d.samples[n-1].value {
		d.samples = nil // it began anew
	}
	d.samples = append(d.samples, sample{t.Progress.At, t.Progress.Value})
	if len(d.samples) > 64 {
		d.samples = slices.Delete(d.samples, 1, 2)
	}
	return nil
}

// Context implements kit.Screen.
func (d *Detail) Context() keymap.Context {
	if d.Typing() {
		return keymap.Prompt
	}
	return keymap.Detail
}

// Typing implements kit.Typer.
func (d *Detail) Typing() bool {
	switch d.tab {
	case Overview:
		return d.overview.Search.Typing
	case Result:
		return d.result.Typing()
	case Messages:
		return d.messages.Search.Typing
	case Raw:
		return d.raw.Typing()
	case Wire:
		return d.wire.Typing()
	}
	return false
}

// Suggestions are how the filter being typed in the pane of messages could go
// on.
func (d *Detail) Suggestions() (all []string, pick int) {
	if d.tab != Wire {
		return nil, -1
	}
	return d.wire.Suggestions()
}

// Fault is what is wrong with that filter.
func (d *Detail) Fault() string {
	if d.tab != Wire {
		return ""
	}
	return d.wire.Fault()
}

// Searching reports whether a search is on in the pane, so that the keys for
// its matches are the pane's.
func (d *Detail) Searching() bool {
	switch d.tab {
	case Overview:
		return d.overview.Search.Pattern != ""
	case Result:
		return d.result.view != nil && d.result.view.Searching()
	case Messages:
		return d.messages.Search.Pattern != ""
	case Raw:
		return d.raw.json.Searching()
	case Wire:
		return d.wire.Searching()
	}
	return false
}

// Work implements kit.Worker.
func (d *Detail) Work() tea.Cmd {
	switch d.tab {
	case Result:
		if d.result.view != nil {
			return d.result.view.Work()
		}
	case Raw:
		return d.raw.json.Work()
	case Wire:
		return d.wire.Work()
	}
	return nil
}

// Update implements kit.Screen.
func (d *Detail) Update(e *kit.Env, m tea.Msg) act.Action {
	if _, laid := m.(resultview.Laid); d.Typing() && !laid {
		return d.pane(e, m)
	}
	if l, ok := m.(resultview.Laid); ok {
		d.result.laid(l)
		d.raw.json.Update(e.Keys, l)
		d.wire.Update(e, l)
		return nil
	}
	k, ok := m.(tea.KeyPressMsg)
	if !ok {
		return d.pane(e, m)
	}
	keys := e.Keys
	one := []taskmodel.Key{d.key}
	switch {
	case key.Matches(k, keys.NextPane.Binding):
		d.tab = (d.tab + 1) % tabs
		return nil
	case key.Matches(k, keys.PrevPane.Binding):
		d.tab = (d.tab + tabs - 1) % tabs
		return nil
	case key.Matches(k, keys.Answer.Binding):
		return act.AnswerTask{Task: d.key}
	case key.Matches(k, keys.Cancel.Binding):
		return act.Cancel{Tasks: one}
	case key.Matches(k, keys.Result.Binding):
		return act.OpenResult{Task: d.key}
	case key.Matches(k, keys.Fetch.Binding):
		return act.Fetch{Tasks: one}
	case key.Matches(k, keys.Forget.Binding):
		return act.Forget{Tasks: one}
	case key.Matches(k, keys.Poll.Binding):
		return act.Poll{Tasks: one}
	case key.Matches(k, keys.Copy.Binding) && d.tab != Wire && d.tab != Raw && !d.result.open(d.tab):
		return d.copy(e)
	case key.Matches(k, keys.Save.Binding) && d.tab != Wire && !d.result.open(d.tab):
		return d.save(e)
	case key.Matches(k, keys.Pager.Binding) && d.tab == Raw:
		if text, name, ok := d.rawText(e); ok {
			return act.Page{Text: text, Name: name}
		}
		return nil
	case key.Matches(k, keys.Editor.Binding) && d.tab == Raw:
		if text, name, ok := d.rawText(e); ok {
			return act.Edit{Text: text, Name: name}
		}
		return nil
	}
	if a, used := d.paneKey(e, k); used {
		return a
	}
	switch {
	case key.Matches(k, keys.Open.Binding):
		if d.beside {
			return act.OpenTask{Task: d.key}
		}
		if d.tab == Result {
			return act.OpenResult{Task: d.key}
		}
	case key.Matches(k, keys.Back.Binding):
		return act.Back{}
	}
	return nil
}

func (d *Detail) pane(e *kit.Env, m tea.Msg) act.Action {
	a, _ := d.paneKey(e, m)
	return a
}

func (d *Detail) paneKey(e *kit.Env, m tea.Msg) (act.Action, bool) {
	switch d.tab {
	case Overview:
		return nil, d.overview.Move(e.Keys, m)
	case Result:
		return d.result.Update(e, m)
	case Messages:
		used := d.messages.Move(e.Keys, m)
		if used {
			d.follow = d.messages.AtEnd()
		}
		return nil, used
	case Raw:
		return d.raw.Update(e, m)
	case Wire:
		if k, ok := m.(tea.KeyPressMsg); ok && key.Matches(k, e.Keys.Back.Binding) && !d.wire.Opened() {
			return nil, false
		}
		return d.wire.Update(e, m), true
	}
	return nil, false
}

func (d *Detail) copy(e *kit.Env) act.Action {
	t, ok := e.Board.Task(d.key)
	if !ok {
		return nil
	}
	return act.Copy{Text: t.Key.String(), What: "the task's name"}
}

func (d *Detail) save(e *kit.Env) act.Action {
	t, ok := e.Board.Task(d.key)
	if !ok {
		return nil
	}
	if d.tab == Raw {
		return act.Save{Name: kit.ShortID(t.ID) + ".json", Data: t.Raw, What: "the raw task"}
	}
	return act.Command{Text: "export "}
}

// rawText is the raw task laid out, with a name for its file.
func (d *Detail) rawText(e *kit.Env) (text, name string, ok bool) {
	t, ok := e.Board.Task(d.key)
	if !ok || len(t.Raw) == 0 {
		return "", "", false
	}
	var b bytes.Buffer
	if json.Indent(&b, t.Raw, "", "  ") != nil {
		b.Reset()
		b.Write(t.Raw)
	}
	return b.String(), kit.ShortID(t.ID) + ".json", true
}

// Keys implements kit.Screen.
func (d *Detail) Keys(e *kit.Env) []keymap.Binding {
	k := e.Keys
	if d.Typing() {
		return []keymap.Binding{k.Accept, k.Leave}
	}
	t, _ := e.Board.Task(d.key)
	out := []keymap.Binding{k.NextPane}
	if t.NeedsPerson() {
		out = append(out, k.Answer)
	}
	if !t.Terminal() {
		out = append(out, k.Cancel, k.Poll)
	}
	out = append(out, k.Result, k.Forget)
	switch d.tab {
	case Raw:
		out = append(out, k.Fold, k.Search, k.Copy, k.Save)
	case Wire:
		out = append(out, k.Open, k.Copy, k.Save)
	default:
		out = append(out, k.Search, k.Copy)
	}
	return out
}

// Status implements kit.Screen.
func (d *Detail) Status(e *kit.Env, w int) (left, right string) {
	th := e.Theme
	switch d.tab {
	case Overview:
		right = d.overview.Status()
	case Result:
		left, right = d.result.Status()
	case Messages:
		right = d.messages.Status()
	case Raw:
		left, right = d.raw.Status()
	case Wire:
		return d.wire.Status(e, w)
	}
	return th.Dim.Render(safe.Truncate(left, max(w-safe.Width(right)-2, 0), safe.Ellipsis)), th.Dim.Render(right)
}
