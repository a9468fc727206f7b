// Package wirelog shows the messages that passed between us and the servers:
// one line each, the newest below, with a filter, a pretty view of one message,
// copy and save.
//
// It imports kit, act, safe, theme, resultview (for JSON) and taskmodel. It does no I/O: the root
// feeds it the monitor's entries, which are bounded and have secrets masked.
package wirelog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/resultview"
	"mcptasks/ui/safe"
)

// A Scope is whose messages are shown; empty fields select nothing.
type Scope struct {
	Server string
	Task   string
}

// A Log is the screen, and a pane of the detail. It is owned by the root's
// goroutine.
type Log struct {
	scope   Scope
	entries []taskmodel.WireEntry
	shown   []int // into entries; nil: all
	table   kit.Table
	follow  bool
	still   int // entries that came while not following
	filter  filter
	open    *taskmodel.WireEntry
	json    resultview.JSON
}

// New makes a log for a scope.
func New(s Scope) *Log { return &Log{scope: s, follow: true} }

// Scope is whose messages are shown.
func (l *Log) Scope() Scope { return l.scope }

// Opened reports whether one message is open.
func (l *Log) Opened() bool { return l.open != nil || l.filter.Text != "" }

// After is the number of the last entry that it has.
func (l *Log) After() int64 {
	if n := len(l.entries); n > 0 {
		return l.entries[n-1].Seq
	}
	return 0
}

// Feed appends entries newer than After, and drops those older than from, which
// the monitor has dropped: nothing is held on to that its bounds do not allow.
func (l *Log) Feed(entries []taskmodel.WireEntry, from int64) {
	l.entries = append(l.entries, entries...)
	if l.filter.active() {
		for i := len(l.entries) - len(entries); i < len(l.entries); i++ {
			if l.filter.match(&l.entries[i]) {
				l.shown = append(l.shown, i)
			}
		}
	}
	l.drop(from)
	if l.follow {
		l.table.Cursor = max(l.n()-1, 0)
	} else {
		l.still += len(entries)
	}
}

// drop lets go of the entries before from. The selection stays at its message.
func (l *Log) drop(from int64) {
	gone := 0
	for gone < len(l.entries) && l.entries[gone].Seq < from {
		gone++
	}
	if gone == 0 {
		return
	}
	clear(l.entries[:gone])
	l.entries = l.entries[gone:]
	rows := gone
	if l.filter.active() {
		rows, _ = slices.BinarySearch(l.shown, gone)
		l.shown = slices.Delete(l.shown, 0, rows)
		for i := range l.shown {
			l.shown[i] -= gone
		}
	}
	l.table.Cursor = max(l.table.Cursor-rows, 0)
	l.table.Top = max(l.table.Top-rows, 0)
}

func (l *Log) apply() {
	l.shown = nil
	if l.filter.active() {
		l.shown = []int{}
		for i := range l.entries {
			if l.filter.match(&l.entries[i]) {
				l.shown = append(l.shown, i)
			}
		}
	}
	if l.follow {
		l.table.Cursor = l.n() - 1
	}
}

func (l *Log) n() int {
	if l.filter.active() {
		return len(l.shown)
	}
	return len(l.entries)
}

func (l *Log) at(i int) *taskmodel.WireEntry {
	if l.filter.active() {
		i = l.shown[i]
	}
	return &l.entries[i]
}

// Context implements kit.Screen.
func (l *Log) Context() keymap.Context {
	if l.Typing() {
		return keymap.Prompt
	}
	return keymap.Wire
}

// Typing implements kit.Typer.
func (l *Log) Typing() bool {
	if l.open != nil {
		return l.json.Typing()
	}
	return l.filter.Typing
}

// Searching reports whether a search is on in an open message.
func (l *Log) Searching() bool { return l.open != nil && l.json.Searching() }

// Work implements kit.Worker.
func (l *Log) Work() tea.Cmd { return l.json.Work() }

// Update implements kit.Screen.
func (l *Log) Update(e *kit.Env, m tea.Msg) act.Action {
	if _, ok := m.(resultview.Laid); ok {
		l.json.Update(e.Keys, m)
		return nil
	}
	if l.filter.Typing {
		l.typeFilter(e, m)
		return nil
	}
	if l.open != nil {
		return l.updateOpen(e, m)
	}
	k, ok := m.(tea.KeyPressMsg)
	if !ok {
		if w, ok := m.(tea.MouseWheelMsg); ok {
			l.table.Wheel(map[bool]int{true: -3, false: 3}[w.Button == tea.MouseWheelUp], l.n())
			l.follow = false
		}
		return nil
	}
	keys := e.Keys
	if l.table.Move(keys, k, l.n()) {
		l.follow = l.table.Cursor >= l.n()-1
		if l.follow {
			l.still = 0
		}
		return nil
	}
	switch {
	case key.Matches(k, keys.Open.Binding):
		if l.n() > 0 {
			l.show(l.at(l.table.Cursor))
		}
	case key.Matches(k, keys.Filter.Binding):
		l.filter.Begin(l.complete(e))
	case key.Matches(k, keys.Follow.Binding):
		l.follow = !l.follow
		if l.follow {
			l.still = 0
			l.table.Cursor = l.n() - 1
		}
	case key.Matches(k, keys.Copy.Binding):
		if l.n() > 0 {
			return act.Copy{Text: string(l.at(l.table.Cursor).Bytes), What: "the message"}
		}
	case key.Matches(k, keys.Save.Binding):
		return l.save()
	case key.Matches(k, keys.Back.Binding):
		if l.filter.Text != "" {
			l.filter.Set("")
			l.apply()
			return nil
		}
		return act.Back{}
	}
	return nil
}

// show opens one message.
func (l *Log) show(en *taskmodel.WireEntry) {
	entry := *en
	l.open, l.follow = &entry, false
	l.json = resultview.JSON{}
	l.json.Set(entry.Bytes)
}

// other is the request or the answer that belongs to the open message, -1 when
// it is not here.
func (l *Log) other() int {
	if l.open == nil || l.open.ID == "" {
		return -1
	}
	asks := func(en *taskmodel.WireEntry) bool { return en.Kind == "request" }
	step := 1 // the answer comes after its request
	if !asks(l.open) {
		step = -1
	}
	at, ok := slices.BinarySearchFunc(l.entries, l.open.Seq, func(en taskmodel.WireEntry, seq int64) int { return cmp.Compare(en.Seq, seq) })
	if !ok {
		return -1
	}
	for i := at + step; i >= 0 && i < len(l.entries); i += step {
		en := &l.entries[i]
		if en.Server == l.open.Server && en.ID == l.open.ID && en.Direction != l.open.Direction && asks(en) != asks(l.open) {
			return i
		}
	}
	return -1
}

func (l *Log) updateOpen(e *kit.Env, m tea.Msg) act.Action {
	ev, used := l.json.Update(e.Keys, m)
	if ev.Kind == resultview.Copy {
		return act.Copy{Text: ev.Text, What: ev.Name}
	}
	if used {
		return nil
	}
	k, ok := m.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	switch {
	case key.Matches(k, e.Keys.NextPane.Binding), key.Matches(k, e.Keys.PrevPane.Binding):
		if i := l.other(); i >= 0 {
			l.show(&l.entries[i])
		}
	case key.Matches(k, e.Keys.Back.Binding):
		l.open = nil
	case key.Matches(k, e.Keys.Copy.Binding):
		return act.Copy{Text: string(l.open.Bytes), What: "the message"}
	case key.Matches(k, e.Keys.Save.Binding):
		return act.Save{Name: fmt.Sprintf("message-%d.json", l.open.Seq), Data: l.open.Bytes, What: "the message"}
	case key.Matches(k, e.Keys.Pager.Binding):
		return act.Page{Text: pretty(l.open.Bytes), Name: "message.json"}
	case key.Matches(k, e.Keys.Editor.Binding):
		return act.Edit{Text: pretty(l.open.Bytes), Name: "message.json"}
	}
	return nil
}

func pretty(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// save writes what is shown as JSON Lines, one object a message.
func (l *Log) save() act.Action {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i := range l.n() {
		en := l.at(i)
		row := map[string]any{"time": en.At.UTC().Format(time.RFC3339Nano), "server": en.Server, "direction": en.Direction, "kind": en.Kind}
		for k, v := range map[string]string{"method": en.Method, "id": en.ID, "task": en.Task, "fault": en.Fault} {
			if v != "" {
				row[k] = v
			}
		}
		if en.Latency > 0 {
			row["latencyMs"] = float64(en.Latency.Microseconds()) / 1000
		}
		if json.Valid(en.Bytes) {
			row["message"] = en.Bytes
		} else {
			row["text"] = string(en.Bytes)
		}
		_ = enc.Encode(row)
	}
	return act.Save{Name: "wire.jsonl", Data: b.Bytes(), What: kit.Count(l.n(), "message")}
}

// Keys implements kit.Screen.
func (l *Log) Keys(e *kit.Env) []keymap.Binding {
	k := e.Keys
	switch {
	case l.filter.Typing:
		return []keymap.Binding{k.Accept, k.Leave, k.Complete, k.HistoryUp}
	case l.Typing():
		return []keymap.Binding{k.Accept, k.Leave}
	case l.open != nil && l.other() >= 0:
		pair := k.NextPane
		pair.Short = "its answer"
		if l.open.Kind != "request" {
			pair.Short = "its request"
		}
		return []keymap.Binding{pair, k.Fold, k.FoldAll, k.Search, k.Wrap, k.Copy, k.Save, k.Pager, k.Editor}
	case l.open != nil:
		return []keymap.Binding{k.Fold, k.FoldAll, k.Search, k.Wrap, k.Copy, k.Save, k.Pager, k.Editor}
	}
	if l.n() == 0 {
		return []keymap.Binding{k.Filter, k.Tasks, k.Servers}
	}
	return []keymap.Binding{k.Open, k.Filter, k.Follow, k.Copy, k.Save}
}

// Status implements kit.Screen.
func (l *Log) Status(e *kit.Env, w int) (left, right string) {
	th := e.Theme
	if l.open != nil {
		return th.Dim.Render(safe.Truncate(l.json.Path(), w/2, safe.Ellipsis)), th.Dim.Render(l.json.Status())
	}
	count := kit.Count(len(l.entries), "message")
	if l.filter.active() {
		count = fmt.Sprintf("%s of %s", kit.Thousands(l.n()), count)
	}
	if l.filter.Typing {
		return l.filter.Status(th, count, w)
	}
	left = th.Dim.Render(count)
	if l.filter.Text != "" {
		left += "  " + th.Link.Render(safe.Line(l.filter.Text))
	}
	right = "following"
	if !l.follow {
		right = "stays here"
		if l.still > 0 {
			right += ", " + kit.Thousands(l.still) + " newer"
		}
	}
	return left, th.Dim.Render(right)
}

// View implements kit.Screen.
func (l *Log) View(e *kit.Env, w, h int) string {
	th := e.Theme
	if l.open != nil {
		return l.viewOpen(e, w, h)
	}
	if l.n() == 0 {
		text := "No message has passed yet."
		if len(l.entries) > 0 {
			text = "No message matches the filter; " + e.Keys.Back.Label() + " clears it."
		}
		return kit.Fill([]string{"", "  " + th.Dim.Render(text)}, h)
	}
	serverW := 6
	for _, s := range e.Board.Servers() {
		serverW = min(max(serverW, safe.Width(safe.Line(s.Name))), 14)
	}
	taskCol := l.scope.Task == "" && w >= 76
	fixed := 2 + 12 + 2 + 2 + 2 + 8 + 2 + 7 + 2 + 7
	if l.scope.Server == "" {
		fixed += serverW + 2
	}
	if taskCol {
		fixed += 10
	}
	size := w-fixed >= 12 // else there is no room to say how large a message is
	if !size {
		fixed -= 9
	}
	methodW := max(min(w-fixed, 34), 12)
	wide := w-fixed-methodW >= 18
	head := kit.NewLine(w, nil).Gap(2).Cell(th.Heading, "TIME", 12).Gap(2)
	if l.scope.Server == "" {
		head.Cell(th.Heading, "SERVER", serverW).Gap(2)
	}
	head.Gap(2).Cell(th.Heading, "METHOD", methodW).Gap(2).Cell(th.Heading, "ID", 8).Gap(2)
	if taskCol {
		head.Cell(th.Heading, "TASK", 8).Gap(2)
	}
	head.Num(th.Heading, "TOOK", 7)
	if size {
		head.Gap(2).Num(th.Heading, "SIZE", 7)
	}
	if wide {
		head.Gap(2).Add(th.Heading, "CONTENT")
	}
	return head.String() + "\n" + l.table.Draw(th, l.n(), w, h-1, func(b *kit.Line, i int) {
		en := l.at(i)
		b.Gap(1).Cell(th.Dim, en.At.In(e.Now.Location()).Format("15:04:05.000"), 12).Gap(2)
		if l.scope.Server == "" {
			b.Cell(th.Text, safe.Line(en.Server), serverW).Gap(2)
		}
		arrow, st := "→", th.Status.Working
		if en.Direction == taskmodel.Received {
			arrow, st = "←", th.Status.Done
		}
		text := th.Text
		switch en.Kind {
		case "error":
			st, text = th.Error, th.Error
		case "noise", "stderr", "http":
			st, text = th.Dim, th.Dim
		case "response":
			text = th.Dim
		}
		b.Add(st, arrow).Gap(1).Cell(text, methodWords(en), methodW).Gap(2).Cell(th.Dim, safe.Line(en.ID), 8).Gap(2)
		if taskCol {
			b.Cell(th.Dim, kit.ShortID(en.Task), 8).Gap(2)
		}
		took := ""
		if en.Latency > 0 {
			took = kit.RTT(en.Latency)
		}
		b.Num(th.Dim, took, 7)
		if size {
			b.Gap(2).Num(th.Dim, kit.Bytes(int64(en.Size)), 7)
		}
		if wide {
			b.Gap(2)
			if en.Fault != "" {
				b.Add(th.Warn, safe.Line(en.Fault)).Gap(2)
			}
			b.Add(th.Dim, safe.Line(head512(en.Bytes)))
		} else if en.Fault != "" {
			b.Gap(1).Add(th.Warn, "!")
		}
	})
}

func head512(b []byte) string {
	if len(b) > 512 {
		b = b[:512]
	}
	return string(b)
}

func methodWords(en *taskmodel.WireEntry) string {
	m := safe.Line(en.Method)
	switch {
	case m == "":
		return en.Kind
	case en.Kind == "error":
		return m + " error"
	}
	return m
}

func (l *Log) viewOpen(e *kit.Env, w, h int) string {
	th := e.Theme
	en := l.open
	dir := "sent to "
	if en.Direction == taskmodel.Received {
		dir = "received from "
	}
	line := kit.NewLine(w, nil).Add(th.Title, methodWords(en)).Gap(2).Add(th.Dim, en.Kind+" "+dir+safe.Line(en.Server))
	parts := []string{en.At.In(e.Now.Location()).Format("15:04:05.000")}
	if en.ID != "" {
		parts = append(parts, "id "+safe.Line(en.ID))
	}
	if en.Latency > 0 {
		parts = append(parts, "after "+kit.RTT(en.Latency))
	}
	line.Right(th.Dim, strings.Join(append(parts, kit.Bytes(int64(en.Size))), "  "))
	out := line.String() + "\n"
	h--
	if en.Fault != "" {
		out += th.Warn.Render(safe.Truncate("Breaks its schema: "+safe.Line(en.Fault), w, safe.Ellipsis)) + "\n"
		h--
	}
	if h > 4 {
		out += "\n"
		h--
	}
	return out + l.json.View(th, w, h)
}
