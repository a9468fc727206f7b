// Package help is the help screen: every key that counts, by place, made from
// the keymap, with a few words on reading the list.
//
// It imports kit, keymap, theme and safe.
package help

import (
	"cmp"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// A Help is the screen.
type Help struct {
	from keymap.Context // where ? was pressed: its keys come first
	text kit.Text
}

// New makes the help for someone who comes from a place.
func New(from keymap.Context) *Help { return &Help{from: from} }

// Context implements kit.Screen.
func (h *Help) Context() keymap.Context {
	if h.text.Search.Typing {
		return keymap.Prompt
	}
	return keymap.Help
}

// Typing implements kit.Typer.
func (h *Help) Typing() bool { return h.text.Search.Typing }

// Update implements kit.Screen.
func (h *Help) Update(e *kit.Env, m tea.Msg) act.Action {
	if h.text.Move(e.Keys, m) {
		return nil
	}
	if k, ok := m.(tea.KeyPressMsg); ok && key.Matches(k, e.Keys.Back.Binding) {
		return act.Back{}
	}
	return nil
}

// Keys implements kit.Screen.
func (h *Help) Keys(e *kit.Env) []keymap.Binding {
	return []keymap.Binding{e.Keys.Search, e.Keys.Down, e.Keys.PageDown}
}

// Status implements kit.Screen.
func (h *Help) Status(e *kit.Env, w int) (left, right string) {
	return e.Theme.Dim.Render("[keys] in the config file binds other keys"), e.Theme.Dim.Render(h.text.Status())
}

// View implements kit.Screen.
func (h *Help) View(e *kit.Env, w, height int) string {
	lines := h.lines(e, w)
	h.text.N = len(lines)
	h.text.Lines = func(i int) []kit.Span { return lines[i] }
	return h.text.View(e.Theme, w, height)
}

func (h *Help) lines(e *kit.Env, w int) [][]kit.Span {
	th := e.Theme
	var blocks [][][]kit.Span
	where := map[string]string{} // what to say of the place, for keys of elsewhere
	block := func(title string, bs []keymap.Binding) {
		rows := [][]kit.Span{{{Style: th.Title, Text: title}}}
		for _, b := range bs {
			rows = append(rows, []kit.Span{{Style: th.Key, Text: safe.PadRight(b.Labels(), 14) + " "}, {Style: th.Text, Text: b.Long}, {Style: th.Dim, Text: where[b.Action]}})
		}
		blocks = append(blocks, append(rows, nil))
	}
	in := h.from
	if in&(keymap.Screens|keymap.Form|keymap.Visit) == 0 {
		in = keymap.List
	}
	here := e.Keys.Sections(in)
	// What one came for goes before how to move about.
	order := []string{"Form", "Tasks", "Servers", "Text", "Go to", "List", "Move", "Program"}
	slices.SortStableFunc(here, func(a, b keymap.Section) int {
		return cmp.Compare(slices.Index(order, a.Name), slices.Index(order, b.Name))
	})
	for _, s := range here {
		block(s.Name, s.Bindings)
	}
	shown := map[string]bool{}
	for _, s := range here {
		for _, b := range s.Bindings {
			shown[b.Action] = true
		}
	}
	for _, s := range e.Keys.Sections(^keymap.Context(0)) {
		var rest []keymap.Binding
		for _, b := range s.Bindings {
			if !shown[b.Action] {
				if s.Name != "Form" && s.Name != "Dialog and line" && s.Name != "Servers" {
					where[b.Action] = "  " + b.In.String()
				}
				rest = append(rest, b)
			}
		}
		if len(rest) > 0 {
			title := s.Name
			if title == "List" || title == "Tasks" || title == "Go to" || title == "Move" {
				title += ", elsewhere"
			}
			block(title, rest)
		}
	}
	words := [][]kit.Span{{{Style: th.Title, Text: "Statuses"}}}
	for _, s := range []taskmodel.Status{taskmodel.InputRequired, taskmodel.Working, taskmodel.Submitted, taskmodel.Completed,
		taskmodel.Failed, taskmodel.Cancelled, taskmodel.Unknown} {
		g, word, st := th.OfStatus(s)
		words = append(words, []kit.Span{{Style: st, Text: safe.PadRight(g+" "+word, 15)}, {Style: th.Text, Text: statusHelp[s]}})
	}
	for _, l := range []string{"", "stale: polls fail at present; restored: known from an earlier run, not yet seen again;",
		"gone: the server does not know it; expired: nor should it, its time was over.",
		"A ~ before an age counts from when we first heard; a + before a TTL counts from the task's end."} {
		words = append(words, []kit.Span{{Style: th.Dim, Text: l}})
	}
	words = append(words, nil)
	filter := [][]kit.Span{{{Style: th.Title, Text: "Filter"}}}
	for _, p := range [][2]string{
		{"build canary", "words, fuzzy, in any column; all must match"}, {"/v2\\.\\d+/", "a regular expression"},
		{"status:failed,cancelled", "one of several values"}, {"!server:lab", "not that one"},
		{"age:>5m ttl:<1m", "older than, less left than"}, {"has:input has:result", "waits for input, has a result"},
		{"tool: id: msg: gen: standing:", "the other fields"},
	} {
		filter = append(filter, []kit.Span{{Style: th.Link, Text: safe.PadRight(p[0], 30) + " "}, {Style: th.Text, Text: p[1]}})
	}
	blocks = append(blocks, words, append(filter, nil))
	if w < 130 {
		var out [][]kit.Span
		for _, b := range blocks {
			out = append(out, b...)
		}
		return out
	}
	return columns(blocks, w)
}

var statusHelp = map[taskmodel.Status]string{
	taskmodel.InputRequired: "the task waits for a person",
	taskmodel.Working:       "the server works on it",
	taskmodel.Submitted:     "accepted, not begun (draft)",
	taskmodel.Completed:     "ended with a result",
	taskmodel.Failed:        "ended with an error",
	taskmodel.Cancelled:     "ended because somebody cancelled it",
	taskmodel.Unknown:       "the server does not know how it ended (draft), or a word that no generation has",
}

// columns lays the blocks out in two columns of about the same height.
func columns(blocks [][][]kit.Span, w int) [][]kit.Span {
	total := 0
	for _, b := range blocks {
		total += len(b)
	}
	var left, right [][]kit.Span
	for _, b := range blocks {
		if len(right) == 0 && len(left)+len(b) <= total/2+3 {
			left = append(left, b...)
		} else {
			right = append(right, b...)
		}
	}
	lw := w/2 - 2
	var out [][]kit.Span
	for i := range max(len(left), len(right)) {
		var row []kit.Span
		used := 0
		if i < len(left) {
			for _, s := range left[i] {
				s.Text = safe.Truncate(s.Text, max(lw-used, 0), safe.Ellipsis)
				used += safe.Width(s.Text)
				row = append(row, s)
			}
		}
		if i < len(right) {
			row = append(row, kit.Span{Text: strings.Repeat(" ", lw+3-used)})
			row = append(row, right[i]...)
		}
		out = append(out, row)
	}
	return out
}
