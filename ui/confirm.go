package ui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/dialog"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
)

// byServer counts and names tasks by their servers: "ci: 2 tasks, build
// b81f20aa, …".
func (m *model) byServer(tasks []taskmodel.Key) []string {
	var order []string
	names := map[string][]string{}
	for _, k := range tasks {
		if names[k.Server] == nil {
			order = append(order, k.Server)
		}
		t, _ := m.env.Board.Task(k)
		n := strings.TrimSpace(safe.Line(t.Tool) + " " + kit.ShortID(k.ID))
		names[k.Server] = append(names[k.Server], n)
	}
	var out []string
	for _, s := range order {
		n := names[s]
		shown := strings.Join(n[:min(len(n), 3)], ", ")
		if len(n) > 3 {
			shown += fmt.Sprintf(" and %d more", len(n)-3)
		}
		if len(tasks) > 1 {
			shown = kit.Count(len(n), "task") + ", " + shown
		}
		out = append(out, fmt.Sprintf("%s: %s", safe.Line(s), shown))
	}
	return out
}

func onServers(tasks []taskmodel.Key) string {
	seen := map[string]bool{}
	for _, k := range tasks {
		seen[k.Server] = true
	}
	if len(seen) == 1 {
		return "on " + safe.Line(tasks[0].Server)
	}
	return fmt.Sprintf("on %d servers", len(seen))
}

// confirmCancel asks before it cancels, and says which of the tasks cannot be
// cancelled and why.
func (m *model) confirmCancel(tasks []taskmodel.Key) tea.Cmd {
	if m.refuse("cancels") {
		return nil
	}
	var can []taskmodel.Key
	why := map[string]int{}
	var order []string
	not := func(reason string) {
		if why[reason] == 0 {
			order = append(order, reason)
		}
		why[reason]++
	}
	for _, k := range tasks {
		t, ok := m.env.Board.Task(k)
		s, known := m.env.Board.Server(k.Server)
		switch {
		case !ok:
			not("no longer on the list")
		case t.Terminal():
			not("ended already")
		case t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired:
			not("not known to the server any more")
		case !t.CancelRequested.IsZero():
			not("cancel was requested already")
		case known && !s.Can.Cancel && k.Role == taskmodel.Requestor && (s.State == taskmodel.ServerReady || s.Can.CancelWhy != ""):
			reason := s.Can.CancelWhy
			if reason == "" {
				reason = "this server offers no cancel"
			}
			not(safe.Line(k.Server) + ": " + safe.Line(reason))
		default:
			can = append(can, k)
		}
	}
	var lines []string
	for _, r := range order {
		if len(tasks) == 1 {
			m.say("Not cancelled: "+r+".", true)
			return nil
		}
		lines = append(lines, fmt.Sprintf("not %d: %s", why[r], r))
	}
	if len(can) == 0 {
		m.say("Nothing to cancel: "+strings.Join(order, "; ")+".", true)
		return nil
	}
	title := "Ask " + safe.Line(can[0].Server) + " to cancel this task?"
	label := "cancel it"
	if len(can) > 1 {
		title = fmt.Sprintf("Ask for %s %s to be cancelled?", kit.Count(len(can), "task"), onServers(can))
		label = "cancel " + kit.Count(len(can), "task")
	}
	m.dialogs.Push(dialog.Confirm{Ask: act.Ask{
		Title: title, Lines: append(m.byServer(can), lines...), Yes: reallyCancel{can}, Label: label, NoLabel: "keep",
	}})
	return nil
}

func (m *model) cancelAll(tasks []taskmodel.Key) tea.Cmd {
	what := "Cancel requested for " + kit.Count(len(tasks), "task") + "."
	if len(tasks) == 1 {
		what = "Cancel requested for " + m.name(tasks[0]) + "."
	}
	return m.bulk(tasks, what, m.mon.Cancel)
}

// confirmFetch asks before it fetches the results of more than one task.
func (m *model) confirmFetch(tasks []taskmodel.Key) tea.Cmd {
	var ended []taskmodel.Key
	for _, k := range tasks {
		if t, ok := m.env.Board.Task(k); ok && t.Terminal() {
			ended = append(ended, k)
		}
	}
	if len(ended) < 2 {
		return m.fetchAll(tasks)
	}
	lines := m.byServer(ended)
	if n := len(tasks) - len(ended); n > 0 {
		lines = append(lines, fmt.Sprintf("not %d: not ended yet", n))
	}
	m.dialogs.Push(dialog.Confirm{Ask: act.Ask{
		Title: fmt.Sprintf("Fetch the results of %s %s?", kit.Count(len(ended), "task"), onServers(ended)),
		Lines: lines, Yes: reallyFetch{ended}, Label: "fetch " + kit.Count(len(ended), "result"), NoLabel: "leave them",
	}})
	return nil
}

// confirmForget asks on unfinished tasks, and where the server can be asked to
// delete its side too.
func (m *model) confirmForget(tasks []taskmodel.Key) tea.Cmd {
	var running, there []taskmodel.Key
	for _, k := range tasks {
		t, ok := m.env.Board.Task(k)
		if !ok {
			continue
		}
		if !t.Terminal() && t.Standing != taskmodel.Gone && t.Standing != taskmodel.Expired {
			running = append(running, k)
		}
		if s, ok := m.env.Board.Server(k.Server); ok && s.Can.Delete {
			there = append(there, k)
		}
	}
	if len(running) == 0 && len(there) == 0 && len(tasks) == 1 {
		return m.forgetAll(tasks, false)
	}
	title := "Forget this task here?"
	label := "forget it here"
	if len(tasks) > 1 {
		title = fmt.Sprintf("Forget %s %s here?", kit.Count(len(tasks), "task"), onServers(tasks))
		label = "forget " + kit.Count(len(tasks), "task")
	}
	lines := m.byServer(tasks)
	switch {
	case len(running) == 1 && len(tasks) == 1:
		lines = append(lines, "It has not ended: it goes on at its server, and is on the list again if the server lists it.")
	case len(running) > 0:
		lines = append(lines, fmt.Sprintf("%d of them %s not ended and %s on at their servers.", len(running), plural(len(running), "has", "have"), plural(len(running), "goes", "go")))
	}
	ask := act.Ask{Title: title, Lines: lines, Yes: reallyForget{tasks, false}, Label: label, NoLabel: "keep"}
	if len(there) > 0 && !m.opt.Readonly {
		ask.Other = []act.Choice{{Key: "d", Label: "delete on the server too", Do: reallyForget{tasks, true}}}
	}
	m.dialogs.Push(dialog.Confirm{Ask: ask})
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func (m *model) forgetAll(tasks []taskmodel.Key, there bool) tea.Cmd {
	if len(m.stack) > 0 {
		m.clear()
	}
	what := "Forgot " + kit.Count(len(tasks), "task") + "."
	if len(tasks) == 1 {
		what = "Forgot " + m.name(tasks[0]) + "."
	}
	v := m.env.Board
	return m.bulk(tasks, what, func(ctx context.Context, k taskmodel.Key) error {
		del := there
		if del {
			s, ok := v.Server(k.Server)
			del = ok && s.Can.Delete
		}
		return m.mon.Forget(ctx, k, del)
	})
}

// askQuit quits; with open questions it asks what to do with them first. By
// default nothing is sent.
func (m *model) askQuit() tea.Cmd {
	var open []taskmodel.QuestionID
	var lines []string
	for _, q := range m.env.Board.Questions() {
		if !q.State.Open() {
			continue
		}
		open = append(open, q.ID)
		if len(lines) < 5 {
			lines = append(lines, safe.Line(q.ID.Server)+": "+safe.Truncate(safe.Line(q.Message), 60, safe.Ellipsis))
		}
	}
	if len(open) == 0 {
		m.quit = true
		return nil
	}
	if n := len(open) - len(lines); n > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", n))
	}
	lines = append(lines, "", "Quitting sends nothing: the questions stay open at their servers, and drafts are kept.")
	ask := act.Ask{Title: "Quit with " + kit.Count(len(open), "open question") + "?", Lines: lines,
		Yes: quitNow{}, Label: "quit, send nothing", NoLabel: "stay"}
	if !m.opt.Readonly {
		ask.Other = []act.Choice{{Key: "d", Label: "decline all and quit", Do: declineAll{open}}}
	}
	m.dialogs.Push(dialog.Confirm{Ask: ask})
	return nil
}

// declineAll declines the questions that the person has seen counted, then
// quits.
func (m *model) declineAll(ids []taskmodel.QuestionID) tea.Cmd {
	ctx := m.ctx
	m.say("Declining "+kit.Count(len(ids), "question")+" …", false)
	return func() tea.Msg {
		for _, id := range ids {
			if err := m.mon.Answer(ctx, taskmodel.Answer{Question: id, Action: taskmodel.Decline}); err != nil {
				return doneMsg{err: fmt.Errorf("not quitting: %w", err)}
			}
		}
		return doneMsg{then: quitNow{}}
	}
}
