package detail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// request is the tool's arguments, one a line.
func (d *Detail) request(e *kit.Env, t *taskmodel.Task) block {
	th := e.Theme
	b := block{title: "Request", hang: 1}
	if len(t.Args) == 0 {
		return block{}
	}
	dec := json.NewDecoder(bytes.NewReader(t.Args))
	tok, err := dec.Token()
	if err != nil || tok != json.Delim('{') {
		b.lines = append(b.lines, []kit.Span{{Style: th.Text, Text: safe.Truncate(safe.Line(string(t.Args)), 400, safe.Ellipsis)}})
		return b
	}
	type arg struct{ name, value string }
	var args []arg
	w := 0
	for dec.More() && len(args) < 200 {
		name, err := dec.Token()
		if err != nil {
			break
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			break
		}
		a := arg{safe.Line(fmt.Sprint(name)), safe.Truncate(safe.Line(oneLine(v)), 400, safe.Ellipsis)}
		w = max(w, min(safe.Width(a.name), 20))
		args = append(args, a)
	}
	for _, a := range args {
		b.lines = append(b.lines, []kit.Span{{Style: th.Dim, Text: safe.Fit(a.name, w) + "  "}, {Style: th.Text, Text: a.value}})
	}
	if len(args) == 0 {
		b.lines = append(b.lines, []kit.Span{{Style: th.Dim, Text: "no arguments"}})
	}
	return b
}

func oneLine(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// viewMessages is everything that was said around the task, as a log that
// follows.
func (d *Detail) viewMessages(e *kit.Env, t *taskmodel.Task, w, h int) string {
	th := e.Theme
	type msg struct {
		at   time.Time
		kind string
		st   theme.Style
		text string
	}
	var all []msg
	for _, tr := range t.Transitions {
		if tr.Message != "" {
			_, word, st := th.OfStatus(tr.Status)
			all = append(all, msg{tr.At, word, st, tr.Message})
		}
	}
	for _, l := range d.logs {
		st := th.Dim
		switch l.Level {
		case "warning", "notice":
			st = th.Warn
		case "error", "critical", "alert", "emergency":
			st = th.Error
		}
		text := l.Text
		if l.Logger != "" {
			text = l.Logger + ": " + text
		}
		all = append(all, msg{l.At, safe.Line(l.Level), st, text})
	}
	slices.SortStableFunc(all, func(a, b msg) int { return a.at.Compare(b.at) })
	var lines [][]kit.Span
	for _, m := range all {
		for i, part := range safe.Wrap(safe.Text(m.text), max(w-27, 16)) {
			if i == 0 {
				lines = append(lines, []kit.Span{{Style: th.Dim, Text: stamp(m.at, e.Now) + "  "}, {Style: m.st, Text: safe.Fit(m.kind, 13) + "  "}, {Style: th.Text, Text: part}})
			} else {
				lines = append(lines, []kit.Span{{Text: strings.Repeat(" ", 25)}, {Style: th.Text, Text: part}})
			}
		}
	}
	if len(lines) == 0 {
		lines = [][]kit.Span{{{Style: th.Dim, Text: "Nothing was said about this task yet."}}}
	}
	d.messages.N = len(lines)
	d.messages.Lines = func(i int) []kit.Span { return lines[i] }
	if d.follow {
		d.messages.Top = len(lines)
	}
	return d.messages.View(th, w, h)
}
