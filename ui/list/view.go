package list

import (
	"fmt"
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// View implements kit.Screen.
func (l *List) View(e *kit.Env, w, h int) string {
	l.clock(e)
	n := l.view.Len()
	if n == 0 {
		return l.empty(e, w, h)
	}
	body := h - 1
	from, to := l.table.Window(n, body)
	rows := l.view.Rows(from, to-from)
	l.measure(e, rows)
	slots := l.layout(w - 2)
	out := l.header(e, slots, w)
	if body <= 0 {
		return out
	}
	return out + "\n" + l.table.Draw(e.Theme, n, w, body, func(b *kit.Line, i int) {
		if i-from < len(rows) {
			l.row(e, b, rows[i-from], slots)
		}
	})
}

// empty says why there is nothing and what to do about it.
func (l *List) empty(e *kit.Env, w, h int) string {
	th := e.Theme
	k := e.Keys
	var lines []string
	say := func(s string) {
		for _, part := range safe.Wrap(s, max(w-4, 10)) {
			lines = append(lines, "  "+th.Text.Render(part))
		}
	}
	dim := func(s string) {
		for _, part := range safe.Wrap(s, max(w-4, 10)) {
			lines = append(lines, "  "+th.Dim.Render(part))
		}
	}
	lines = append(lines, "")
	servers := e.Board.Servers()
	switch {
	case l.filter.text != "" && e.Board.Len() > 0:
		say(fmt.Sprintf("None of %s matches the filter.", kit.Count(e.Board.Len(), "task")))
		dim(fmt.Sprintf("%s clears it, %s changes it.", k.Back.Label(), k.Filter.Label()))
	case len(servers) == 0:
		words := l.opt.Empty
		if len(words) == 0 {
			words = []string{"No servers yet."}
		}
		say(words[0])
		for _, s := range words[1:] {
			if s == "" || safe.Width(s) <= w-2 {
				lines = append(lines, "  "+th.Dim.Render(safe.Line(s)))
				continue
			}
			dim(s)
		}
	default:
		say("No tasks yet.")
		dim(fmt.Sprintf("%s starts one, %s takes one up by its id, %s shows the servers.", k.Start.Label(), k.Add.Label(), k.Servers.Label()))
		lines = append(lines, "")
		for _, s := range servers {
			name := safe.Line(s.Name)
			switch {
			case s.State == taskmodel.ServerConnecting:
				dim(name + "  connecting …")
			case s.Error != "":
				say(name + "  " + strings.TrimPrefix(safe.Line(s.Error), name+": "))
				if !s.RetryAt.IsZero() && s.RetryAt.After(e.Now) {
					dim("    next try in " + e.Left(s.RetryAt))
				}
			case s.ListIncomplete != "":
				dim(name + "  " + safe.Line(s.ListIncomplete))
			case !s.Can.List && s.Can.ListWhy != "":
				dim(name + "  cannot list its tasks: " + safe.Line(s.Can.ListWhy))
			case s.State == taskmodel.ServerOff:
				dim(name + "  off; " + k.Servers.Label() + " then " + k.Connect.Label() + " starts it")
			}
		}
	}
	return kit.Fill(lines, h)
}

// Status implements kit.Screen.
func (l *List) Status(e *kit.Env, w int) (left, right string) {
	th := e.Theme
	f := &l.filter
	count := fmt.Sprintf("%s of %s", kit.Thousands(l.view.Matched()), kit.Thousands(e.Board.Len()))
	if f.typing {
		right = th.Dim.Render(count)
		if f.err != "" {
			st := th.Error
			if len(f.suggest) > 0 {
				st = th.Dim // it is on its way
			}
			if safe.Width(safe.Line(f.err)) <= w/2 || len(f.suggest) > 0 {
				right = st.Render(safe.Truncate(safe.Line(f.err), max(w/2, 10), safe.Ellipsis))
			}
		} else if l.busy {
			right = th.Dim.Render("…")
		}
		room := w - safe.Width(right) - 3
		return th.Key.Render("/") + f.edit.View(th, min(max(room, 8), w-1)), right
	}
	var b strings.Builder
	if f.text != "" {
		b.WriteString(th.Text.Render(count) + "  " + th.Link.Render(safe.Line(f.text)))
	} else {
		b.WriteString(th.Dim.Render(kit.Count(e.Board.Len(), "task")))
	}
	if n := len(l.marks); n > 0 {
		b.WriteString("  " + th.Mark.Render(fmt.Sprintf("• %d marked", n)))
	}
	if l.busy {
		b.WriteString("  " + th.Dim.Render("sorting …"))
	}
	sorted := "sorted by " + string(l.set.Sort)
	if l.set.Sort == "needs" {
		sorted = "sorted by needs, age"
	}
	if l.set.Reverse {
		sorted += ", reversed"
	}
	if l.set.Group != "" {
		sorted = "by " + l.set.Group + ", " + sorted
	}
	return b.String(), th.Dim.Render(sorted)
}

// Fault is what is wrong with the filter being typed.
func (l *List) Fault() string { return l.filter.err }

// Suggestions are the completions to show while a filter is typed.
func (l *List) Suggestions() ([]string, int) { return l.filter.suggest, l.filter.pick }
