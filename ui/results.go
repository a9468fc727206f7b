package ui

import (
	"encoding/json"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/result"
	"mcptasks/ui/resultview"
	"mcptasks/ui/safe"
)

// outcomeMsg brings a result.
type outcomeMsg struct {
	key     taskmodel.Key
	outcome taskmodel.Outcome
	err     error
}

// openResult shows a task's result: what is kept here, else the server's, which
// may mean to wait for the task's end.
func (m *model) openResult(k taskmodel.Key) tea.Cmd {
	t, ok := m.env.Board.Task(k)
	if !ok {
		return nil
	}
	if t.Outcome.Result != nil || t.Outcome.Err != nil {
		return m.showOutcome(k, m.name(k), t.Outcome)
	}
	if t.Terminal() {
		m.say("Fetching the result of "+m.name(k)+" …", false)
	} else {
		m.say("Waiting for "+m.name(k)+" to end; its result opens then.", false)
	}
	m.result = k
	ctx := m.ctx
	return func() tea.Msg {
		o, err := m.mon.Fetch(ctx, k)
		return outcomeMsg{k, o, err}
	}
}

func (m *model) showOutcome(k taskmodel.Key, title string, o taskmodel.Outcome) tea.Cmd {
	m.push(result.New(k, title, m.opt.SaveDir, o, resultview.Options{NoImages: m.th.Name == "mono", Canvas: m.canvas}))
	return nil
}

func (m *model) outcome(o outcomeMsg) tea.Cmd {
	if o.err != nil {
		m.say(safe.Line(o.err.Error()), true)
		return nil
	}
	if m.result != o.key {
		// The person has gone on meanwhile: nothing opens over what they do.
		m.say("The result of "+m.name(o.key)+" is here; "+m.keys.Result.Label()+" shows it.", false)
		return nil
	}
	m.result = taskmodel.Key{}
	return m.showOutcome(o.key, m.name(o.key), o.outcome)
}

// still is how long a frame has to stand before the pictures in it are written:
// the renderer has drawn it by then.
const still = 50 * time.Millisecond

// picturesMsg brings pictures, encoded, that stood on the screen at a turn.
type picturesMsg struct {
	turn int
	seq  string
}

// pictures writes the pictures of the frame when it has stood still.
func (m *model) pictures() tea.Cmd {
	if !m.paint {
		return nil
	}
	m.paint = false
	ctx := m.ctx
	turn, encode := m.canvas.Pieces()
	return func() tea.Msg {
		timer := time.NewTimer(still)
		defer timer.Stop()
		select {
		case <-timer.C:
			return picturesMsg{turn, encode()}
		case <-ctx.Done():
			return nil
		}
	}
}

// resourceMsg brings a resource that a result links to.
type resourceMsg struct {
	a        act.ReadResource
	contents json.RawMessage
	err      error
}

// readResource reads a resource of the task's server.
func (m *model) readResource(a act.ReadResource) tea.Cmd {
	m.say("Reading "+safe.Truncate(safe.Line(a.URI), 60, safe.Ellipsis)+" …", false)
	m.linked = a.URI
	ctx := m.ctx
	return func() tea.Msg {
		contents, err := m.mon.ReadResource(ctx, a.Task.Server, a.URI)
		return resourceMsg{a, contents, err}
	}
}

// resource shows it as a result of embedded resources, unless the person has
// gone on meanwhile.
func (m *model) resource(r resourceMsg) tea.Cmd {
	switch {
	case r.err != nil:
		m.say(safe.Line(r.err.Error()), true)
		return nil
	case m.linked != r.a.URI:
		m.say("The resource is here; open its link once more to see it.", false)
		return nil
	}
	m.linked = ""
	var contents []json.RawMessage
	if err := json.Unmarshal(r.contents, &contents); err != nil || len(contents) == 0 {
		m.say("The resource has no content.", true)
		return nil
	}
	blocks := make([]json.RawMessage, len(contents))
	for i, c := range contents {
		blocks[i] = append(append([]byte(`{"type":"resource","resource":`), c...), '}')
	}
	raw, err := json.Marshal(map[string]any{"content": blocks})
	if err != nil {
		m.say("The resource cannot be shown: "+err.Error(), true)
		return nil
	}
	name := r.a.Name
	if name == "" {
		name = r.a.URI
	}
	m.push(result.Resource(taskmodel.Key{Server: r.a.Task.Server}, safe.Line(name)+" on "+safe.Line(r.a.Task.Server), m.opt.SaveDir,
		taskmodel.Outcome{Result: raw, FetchedAt: m.now}, resultview.Options{NoImages: m.th.Name == "mono", Canvas: m.canvas}))
	return nil
}
