package list

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A column is one kind of cell. width is without the gap of two before it.
type column struct {
	name  string
	title string
	sort  board.SortColumn
	num   bool // right aligned
	draw  func(l *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int)
}

var columns = []column{
	{"status", "STATUS", board.SortStatus, false, drawStatus},
	{"server", "SERVER", board.SortServer, false, drawServer},
	{"tool", "TOOL", board.SortTool, false, drawTool},
	{"task", "TASK", board.SortID, false, drawID},
	{"message", "MESSAGE", board.SortMessage, false, drawMessage},
	{"progress", "PROGRESS", board.SortProgress, false, drawProgress},
	{"age", "AGE", board.SortAge, true, drawAge},
	{"ttl", "TTL", board.SortTTL, true, drawTTL},
	{"heard", "HEARD", board.SortHeard, true, drawHeard},
}

// dropped is the order in which columns give way when the window is narrow.
// Some steps take no column away: "bar" leaves of the progress its percentage,
// "slim" cuts long names of tools and "short" those of servers. Whose task it is stays almost
// the longest: with several servers a row without it cannot be told from others.
var dropped = []string{"heard", "task", "bar", "slim", "progress", "short", "ttl", "age", "server", "tool"}

// ColumnNames lists the columns that there are.
func ColumnNames() []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return out
}

// CheckColumns reports a name that is no column, or a width that is none: a
// column is written as its name, or as "tool:24" with its width in cells.
func CheckColumns(names []string) error {
	for _, n := range names {
		n, w, sized := strings.Cut(n, ":")
		if cells, err := strconv.Atoi(w); sized && (err != nil || cells < 1 || cells > 200) {
			return fmt.Errorf("the width of the column %q is a number from 1 to 200, not %q", n, w)
		}
		if !slices.Contains(ColumnNames(), n) {
			return fmt.Errorf("no column is called %q (there are %s)", n, strings.Join(ColumnNames(), ", "))
		}
	}
	return nil
}

// A slot is a column with the width it got.
type slot struct {
	*column
	w int
}

// layout chooses columns for a width. The message takes what is left.
func (l *List) layout(w int) []slot {
	names, sized := ColumnNames(), map[string]int{}
	if len(l.opt.Columns) > 0 {
		names = nil
		for _, c := range l.opt.Columns {
			n, w, _ := strings.Cut(c, ":")
			names = append(names, n)
			sized[n], _ = strconv.Atoi(w) // they were checked
		}
	}
	out := map[string]bool{}
	fixed := func(n string) int {
		if w := sized[n]; w > 0 {
			return w
		}
		switch n {
		case "status":
			return 14
		case "server":
			if out["short"] {
				return min(max(l.serverW, 6), 10)
			}
			return min(max(l.serverW, 6), 14)
		case "tool":
			if out["slim"] {
				return min(max(l.toolW, 8), 14)
			}
			return min(max(l.toolW, 8), 20)
		case "task":
			return 8
		case "progress":
			if out["bar"] {
				return 4
			}
			return 13
		case "age", "ttl":
			return 4
		case "heard":
			return 5
		}
		return 0
	}
	total := func() int {
		sum := -2 // no gap before the first
		for _, n := range names {
			if !out[n] {
				sum += fixed(n) + 2
			}
		}
		return sum
	}
	want := func(n string) int { // the room that the message should have
		switch n {
		case "heard":
			return 40
		case "task":
			return 30
		case "bar":
			return 26
		case "slim":
			return 24
		case "progress":
			return 22
		case "short":
			return 20
		case "ttl":
			return 18
		case "age":
			return 16
		}
		return 12
	}
	message := slices.Contains(names, "message") && sized["message"] == 0
	if len(l.opt.Columns) == 0 && l.servers == 1 {
		out["server"] = true // it would say the same in every row
	}
	for _, d := range dropped {
		need := total()
		if message && w-need >= want(d) || !message && need <= w {
			continue
		}
		out[d] = true
	}
	var slots []slot
	for _, n := range names {
		if out[n] {
			continue
		}
		i := slices.Index(ColumnNames(), n)
		s := slot{&columns[i], fixed(n)}
		if n == "message" && message {
			s.w = max(w-total(), 0)
		}
		slots = append(slots, s)
	}
	return slots
}

// measure widens the server and the tool column to what is on the screen; they
// never shrink again, so that nothing jumps while one scrolls.
func (l *List) measure(e *kit.Env, rows []board.Row) {
	servers := e.Board.Servers()
	l.servers = len(servers)
	for _, s := range servers {
		l.serverW = max(l.serverW, safe.Width(safe.Line(s.Name)))
	}
	for _, r := range rows {
		if r.Task != nil {
			l.toolW = max(l.toolW, safe.Width(safe.Line(r.Task.Tool)))
		}
	}
}

func (l *List) header(e *kit.Env, slots []slot, w int) string {
	th := e.Theme
	b := kit.NewLine(w, nil).Gap(2)
	for i, s := range slots {
		if i > 0 {
			b.Gap(2)
		}
		title := s.title
		if s.sort == l.set.Sort {
			arrow := "▾"
			if l.set.Reverse {
				arrow = "▴"
			}
			title += arrow
		}
		if s.name == "progress" && s.w < 8 {
			title = "%"
			b.Num(th.Heading, title, s.w)
			continue
		}
		if s.num {
			b.Num(th.Heading, title, s.w)
		} else {
			b.Cell(th.Heading, title, s.w)
		}
	}
	return b.String()
}

func (l *List) row(e *kit.Env, b *kit.Line, r board.Row, slots []slot) {
	th := e.Theme
	if r.Task == nil {
		l.drawHeading(e, b, r)
		return
	}
	if l.marks[r.Task.Key] {
		b.Add(th.Mark, "•")
	} else {
		b.Gap(1)
	}
	for i, s := range slots {
		if i > 0 {
			b.Gap(2)
		}
		s.draw(l, e, b, r.Task, s.w)
	}
}

func drawStatus(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	g, word, st := e.Theme.OfStatus(t.Status)
	if t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
		st = e.Theme.Dim
	}
	b.Cell(st, g+" "+word, w)
}

func drawServer(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	b.Cell(e.Theme.Text, safe.Line(t.Server), w)
}

func drawTool(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	switch {
	case t.Tool == "" && t.Role == taskmodel.Receiver:
		b.Cell(e.Theme.Dim, "asked of us", w)
	case t.Tool == "":
		b.Cell(e.Theme.Dim, "–", w)
	case t.ParentID != "":
		b.Cell(e.Theme.Text, "└ "+safe.Line(t.Tool), w)
	default:
		b.Cell(e.Theme.Text, safe.Line(t.Tool), w)
	}
}

func drawID(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	b.Cell(e.Theme.Dim, kit.ShortID(t.ID), w)
}

// drawMessage puts what we know of the row's trust before the server's words.
func drawMessage(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	end := b.Used() + w
	th := e.Theme
	text := th.Text
	if t.Terminal() || t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
		text = th.Dim
	}
	first := true
	part := func(s theme.Style, words string) {
		if words == "" || b.Used() >= end {
			return
		}
		if !first {
			if end-b.Used() < 6 { // there is more, and no room for any of it
				b.Cell(th.Faint, " …", end-b.Used())
				return
			}
			b.Cell(th.Faint, " · ", 3)
		}
		first = false
		b.Cell(s, words, min(safe.Width(words), end-b.Used()))
	}
	for _, p := range Notes(e, t) {
		part(p.Style, p.Text)
	}
	part(text, safe.Line(message(e, t)))
	b.To(min(end, b.Used()+b.Left()))
}

// Notes are our words on a task, apart from the server's: how far its status
// can be trusted, whether cancellation was asked for, whose it is.
func Notes(e *kit.Env, t *taskmodel.Task) []kit.Span {
	th := e.Theme
	var out []kit.Span
	add := func(s theme.Style, text string) { out = append(out, kit.Span{Style: s, Text: text}) }
	switch t.Standing {
	case taskmodel.Stale:
		add(th.Warn, "stale "+e.Age(t.StandingSince)+", retrying")
	case taskmodel.Gone:
		add(th.Warn, "gone, outcome unknown")
	case taskmodel.Expired:
		add(th.Dim, "expired")
	case taskmodel.Restored:
		if !t.Terminal() {
			add(th.Dim, "restored, not seen yet")
		}
	}
	if at, ok := t.ExpiresAt(); ok && !t.Terminal() && (t.Standing == taskmodel.Live || t.Standing == taskmodel.Stale) {
		switch left := at.Sub(e.Now); {
		case left <= 0:
			add(th.Warn, "its time is over")
		case left < soon(t):
			add(th.Warn, "ends in "+e.Left(at))
		default:
			e.Until(at.Add(-soon(t)))
		}
	}
	if !t.CancelRequested.IsZero() && !t.Terminal() {
		note := "cancel requested"
		if t.CancelNote != "" {
			note += " (" + safe.Line(t.CancelNote) + ")"
		}
		add(th.Warn, note)
	} else if t.CancelNote != "" {
		add(th.Dim, safe.Line(t.CancelNote))
	}
	if t.Role == taskmodel.Receiver {
		add(th.Dim, "asked of us")
	}
	if t.Owner != "" {
		add(th.Dim, safe.Line(t.Owner))
	}
	if t.Status == taskmodel.InputRequired && answered(e, t) {
		add(th.Dim, "answered, waiting for the server")
	}
	return out
}

// soon is how long before its end a task's time to live is warned of: a tenth
// of it, at least a minute, but never from the start.
func soon(t *taskmodel.Task) time.Duration {
	return min(max(time.Minute, t.TTL.Duration/10), t.TTL.Duration/2)
}

// answered reports whether all of the task's questions have an answer that the
// server took or that is on its way.
func answered(e *kit.Env, t *taskmodel.Task) bool {
	any := false
	for _, q := range e.QuestionsOf(t.Key) {
		if q.State.Open() {
			return false
		}
		any = any || q.State == taskmodel.QuestionSending || q.State == taskmodel.QuestionAnswered
	}
	return any
}

// message is what to show of the server's words: a waiting task's question
// goes before its status message when there is only one of them.
func message(e *kit.Env, t *taskmodel.Task) string {
	if t.StatusMessage != "" {
		return t.StatusMessage
	}
	if t.Status == taskmodel.InputRequired {
		if q, ok := e.OpenQuestion(t.Key); ok {
			return q.Message
		}
	}
	if t.Outcome.Err != nil {
		return t.Outcome.Err.Message
	}
	if t.Progress != nil && !t.Terminal() {
		return t.Progress.Message
	}
	return ""
}

func drawProgress(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	th := e.Theme
	f, ok := kit.Fraction(t.Progress)
	full := th.Bar
	if t.Terminal() {
		full = th.Dim
	}
	switch {
	case ok && w >= 13:
		n := int(f*8 + 0.5)
		if n == 8 && f < 1 {
			n = 7
		}
		b.Cell(full, strings.Repeat("━", n), n).Cell(th.Faint, strings.Repeat("─", 8-n), 8-n)
		if t.Terminal() {
			b.Gap(w - 8)
		} else {
			b.Num(th.Text, fmt.Sprintf("%d%%", int(f*100)), w-8)
		}
	case ok:
		b.Num(th.Text, fmt.Sprintf("%d%%", int(f*100)), w)
	case t.Progress != nil && !t.Terminal():
		b.Num(th.Text, kit.Number(t.Progress.Value), w)
	default:
		b.Gap(w)
	}
}

func drawAge(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	at, exact := t.Born()
	if at.IsZero() {
		b.Num(e.Theme.Dim, "–", w)
		return
	}
	s := e.Age(at)
	if !exact {
		s = "~" + s
	}
	b.Num(e.Theme.Dim, s, w)
}

func drawTTL(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	th := e.Theme
	at, ok := t.ExpiresAt()
	switch {
	case t.TTL.Unlimited:
		b.Num(th.Dim, "∞", w)
	case !t.TTL.Known:
		b.Num(th.Dim, "–", w)
	case !ok: // the draft counts from the end
		b.Num(th.Dim, "+"+kit.Short(t.TTL.Duration), w)
	case !at.After(e.Now):
		b.Num(th.Dim, "over", w)
	default:
		s := th.Dim
		if !t.Terminal() && at.Sub(e.Now) < soon(t) {
			s = th.Warn
		}
		b.Num(s, e.Left(at), w)
	}
}

func drawHeard(_ *List, e *kit.Env, b *kit.Line, t *taskmodel.Task, w int) {
	if t.LastHeardAt.IsZero() || t.Terminal() {
		b.Num(e.Theme.Dim, "–", w)
		return
	}
	b.Num(e.Theme.Dim, e.Age(t.LastHeardAt), w)
}
