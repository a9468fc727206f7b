package detail

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/ui/kit"
	"mcptasks/ui/list"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// View implements kit.Screen.
func (d *Detail) View(e *kit.Env, w, h int) string {
	th := e.Theme
	t, ok := e.Board.Task(d.key)
	if !ok {
		msg := "No task is selected."
		if d.key.ID != "" {
			msg = "This task is no longer on the list."
		}
		return kit.Fill([]string{"", " " + th.Dim.Render(safe.Truncate(msg, max(w-1, 0), "…"))}, h)
	}
	head := d.head(e, &t, w)
	if h > len(head)+4 {
		head = append(head, d.tabLine(e, w), "")
	}
	body := max(h-len(head), 1)
	var out string
	switch d.tab {
	case Overview:
		out = d.viewOverview(e, &t, w, body)
	case Result:
		out = d.result.View(e, &t, w, body)
	case Messages:
		out = d.viewMessages(e, &t, w, body)
	case Raw:
		out = d.raw.View(e, t.Raw, w, body)
	case Wire:
		out = d.wire.View(e, w, body)
	}
	return strings.Join(head, "\n") + "\n" + out
}

// head is who the task is and how it stands.
func (d *Detail) head(e *kit.Env, t *taskmodel.Task, w int) []string {
	th := e.Theme
	tool := safe.Line(t.Tool)
	if tool == "" {
		tool = "task"
		if t.Role == taskmodel.Receiver {
			tool = "asked of us"
		}
	}
	origin := safe.Line(t.Server) + "  " + string(t.Generation)
	if t.Pushed {
		origin += "  push"
	}
	l := kit.NewLine(w, nil)
	l.Add(th.Title, tool).Gap(2).Add(th.Dim, safe.Truncate(safe.Line(t.ID), max(w-safe.Width(tool)-safe.Width(origin)-6, 8), safe.Ellipsis))
	l.Right(th.Dim, origin)
	lines := []string{l.String()}

	l = kit.NewLine(w, nil)
	g, word, st := th.OfStatus(t.Status)
	l.Add(st, g+" "+word)
	if !t.StatusSince.IsZero() {
		if t.Terminal() {
			l.Add(th.Dim, " "+e.AgeLong(t.StatusSince)+" ago")
		} else {
			l.Add(th.Dim, " for "+e.AgeLong(t.StatusSince))
		}
	}
	for _, part := range d.times(e, t) {
		if safe.Width(part.Text)+3 <= l.Left() {
			l.Gap(3).Add(part.Style, part.Text)
		}
	}
	lines = append(lines, l.String())
	if notes := list.Notes(e, t); len(notes) > 0 || t.Note != "" {
		l = kit.NewLine(w, nil)
		for i, n := range notes {
			if i > 0 {
				l.Add(th.Faint, " · ")
			}
			if t.Tap != "" && n.Text == safe.Line(t.Owner) {
				l.Add(n.Style, "in the session of ")
			}
			l.Add(n.Style, n.Text)
		}
		if t.Note != "" {
			if len(notes) > 0 {
				l.Add(th.Faint, " · ")
			}
			l.Add(th.Dim, safe.Line(t.Note))
		}
		lines = append(lines, l.String())
	}
	return append(lines, "")
}

func (d *Detail) times(e *kit.Env, t *taskmodel.Task) []kit.Span {
	th := e.Theme
	var out []kit.Span
	if at, exact := t.Born(); !at.IsZero() {
		s := "age " + e.AgeLong(at)
		if !exact {
			s = "first heard " + e.AgeLong(at) + " ago"
		}
		out = append(out, kit.Span{Style: th.Dim, Text: s})
	}
	if s, warn := life(e, t); s != "" {
		st := th.Dim
		if warn {
			st = th.Warn
		}
		out = append(out, kit.Span{Style: st, Text: s})
	}
	out = append(out, kit.Span{Style: th.Dim, Text: polled(t)})
	return out
}

// life says how long the server keeps the task.
func life(e *kit.Env, t *taskmodel.Task) (s string, warn bool) {
	at, ok := t.ExpiresAt()
	switch {
	case t.TTL.Unlimited:
		return "kept without limit", false
	case !t.TTL.Known:
		return "time to live not said", false
	case !ok:
		return "kept " + kit.Long(t.TTL.Duration) + " after its end", false
	case !at.After(e.Now):
		return "its time of " + kit.Long(t.TTL.Duration) + " is over", true
	}
	if t.Terminal() {
		return fmt.Sprintf("kept there %s more", e.LeftLong(at)), false
	}
	return fmt.Sprintf("ends in %s (%s of life)", e.LeftLong(at), kit.Long(t.TTL.Duration)), !t.Terminal() && at.Sub(e.Now) < time.Minute
}

func polled(t *taskmodel.Task) string {
	s := fmt.Sprintf("polled %s", times(t.Polls))
	if t.PollInterval > 0 {
		s += ", every " + kit.Every(t.PollInterval)
	}
	if t.Pushes > 0 {
		s += ", " + kit.Count(t.Pushes, "push")
		s = strings.Replace(s, "pushs", "pushes", 1)
	}
	return s
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return kit.Thousands(n) + " times"
}

func (d *Detail) tabLine(e *kit.Env, w int) string {
	th := e.Theme
	l := kit.NewLine(w, nil)
	for i, n := range tabNames {
		if i > 0 {
			l.Gap(3)
		}
		st := th.Dim
		if Tab(i) == d.tab {
			st = th.Title
			st.Underline = true
			st = st.WithBold()
			if d.beside && !d.focus {
				st = th.Text
			}
		}
		l.Add(st, n)
	}
	return l.String()
}

func stamp(at, now time.Time) string {
	if at.IsZero() {
		return "        "
	}
	if now.Sub(at) > 20*time.Hour {
		return at.In(now.Location()).Format("Jan 2 15:04")
	}
	return at.In(now.Location()).Format("15:04:05")
}

// timeline is the task's states with how long each took.
func (d *Detail) timeline(e *kit.Env, t *taskmodel.Task, w int) block {
	th := e.Theme
	b := block{title: "Timeline", hang: 3}
	type entry struct {
		at    time.Time
		spans []kit.Span
	}
	var all []entry
	add := func(at time.Time, spans ...kit.Span) {
		all = append(all, entry{at, append([]kit.Span{{Style: th.Dim, Text: stamp(at, e.Now) + "  "}}, spans...)})
	}
	if !t.CreatedAt.IsZero() {
		add(t.CreatedAt, kit.Span{Style: th.Text, Text: "created"})
	} else if !t.FirstHeardAt.IsZero() {
		add(t.FirstHeardAt, kit.Span{Style: th.Dim, Text: "first heard"})
	}
	for i, tr := range t.Transitions {
		g, word, st := th.OfStatus(tr.Status)
		took := ""
		switch {
		case i+1 < len(t.Transitions):
			took = kit.Clock(max(t.Transitions[i+1].At.Sub(tr.At), 0))
		case !tr.Status.Terminal(t.Generation) && t.Standing != taskmodel.Gone && t.Standing != taskmodel.Expired:
			took = e.Wait(tr.At)
		}
		spans := []kit.Span{{Style: st, Text: safe.PadRight(g+" "+word, 15)}, {Style: th.Dim, Text: safe.PadLeft(took, 7) + "  "}}
		if tr.Message != "" {
			spans = append(spans, kit.Span{Style: th.Text, Text: safe.Line(tr.Message)})
		}
		if tr.Note != "" {
			spans = append(spans, kit.Span{Style: th.Warn, Text: "  " + safe.Line(tr.Note)})
		}
		add(tr.At, spans...)
	}
	if !t.CancelRequested.IsZero() {
		add(t.CancelRequested, kit.Span{Style: th.Warn, Text: "cancel requested"})
	}
	if t.Standing != taskmodel.Live && !t.StandingSince.IsZero() {
		add(t.StandingSince, kit.Span{Style: th.Warn, Text: string(t.Standing)})
	}
	for _, ev := range d.past {
		switch ev.Kind {
		case taskmodel.EventAnswer, taskmodel.EventResult, taskmodel.EventError:
			add(ev.Time, kit.Span{Style: th.Dim, Text: safe.PadRight(string(ev.Kind), 15)}, kit.Span{Style: th.Dim, Text: "         "}, kit.Span{Style: th.Dim, Text: safe.Line(ev.Message)})
		}
	}
	slices.SortStableFunc(all, func(x, y entry) int { return x.at.Compare(y.at) })
	for _, a := range all {
		b.lines = append(b.lines, a.spans)
	}
	return b
}

// questions are what was asked, the open ones first.
func (d *Detail) questions(e *kit.Env, t *taskmodel.Task, w int) block {
	th := e.Theme
	b := block{title: "Questions"}
	for _, q := range e.QuestionsOf(t.Key) {
		var spans []kit.Span
		if q.State.Open() {
			msg, lead := safe.Line(q.Message), "  "
			spans = []kit.Span{{Style: th.Status.Input, Text: "? "}, {Style: th.Text, Text: msg}}
			if safe.Width(msg)+40 > w {
				for i, l := range safe.Wrap(msg, max(w-3, 10)) {
					if spans = []kit.Span{{Text: "  "}, {Style: th.Text, Text: l}}; i == 0 {
						spans[0] = kit.Span{Style: th.Status.Input, Text: "? "}
					}
					b.lines = append(b.lines, spans)
				}
				spans, lead = nil, "  "
			}
			spans = append(spans, kit.Span{Style: th.Dim, Text: lead + safe.Line(string(q.Kind)) + "  waiting " + e.Wait(q.AskedAt)})
			if q.State == taskmodel.QuestionRefused {
				spans = append(spans, kit.Span{Style: th.Error, Text: "  " + kit.Refusal(q)})
			}
			if len(q.Draft) > 0 {
				spans = append(spans, kit.Span{Style: th.Dim, Text: "  draft kept"})
			}
			spans = append(spans, kit.Span{Style: th.Key, Text: "   " + e.Keys.Answer.Label()}, kit.Span{Style: th.Dim, Text: " answer"})
		} else {
			lead := "· "
			for _, l := range safe.Wrap(safe.Line(q.Message)+"  "+StateWords(e, q), max(w-3, 10)) {
				b.lines = append(b.lines, []kit.Span{{Style: th.Dim, Text: lead + l}})
				lead = "  "
			}
			continue
		}
		b.lines = append(b.lines, spans)
	}
	return b
}

// StateWords says where a question stands.
func StateWords(e *kit.Env, q taskmodel.Question) string {
	switch q.State {
	case taskmodel.QuestionOpen:
		return "open"
	case taskmodel.QuestionSending:
		return "sending the answer"
	case taskmodel.QuestionAnswered:
		words := "answered"
		if !q.SentAt.IsZero() {
			words += " " + e.AgeLong(q.SentAt) + " ago"
		}
		if e.Awaits(q) {
			words += ", waiting for the server"
		}
		return words
	case taskmodel.QuestionRefused:
		return kit.Refusal(q)
	case taskmodel.QuestionUnconfirmed:
		return "sent, outcome unknown"
	case taskmodel.QuestionWithdrawn:
		return "withdrawn: " + safe.Line(q.Withdrawn)
	}
	return safe.Line(string(q.State))
}

func (d *Detail) progress(e *kit.Env, t *taskmodel.Task, w int) block {
	th := e.Theme
	b := block{title: "Progress"}
	p := t.Progress
	if p == nil {
		return block{}
	}
	full := th.Bar
	if t.Terminal() {
		full = th.Dim
	}
	if f, ok := kit.Fraction(p); ok {
		n := int(f*24 + 0.5)
		if n == 24 && f < 1 {
			n = 23
		}
		b.lines = append(b.lines, []kit.Span{
			{Style: full, Text: strings.Repeat("━", n)}, {Style: th.Faint, Text: strings.Repeat("─", 24-n)},
			{Style: th.Text, Text: fmt.Sprintf("  %d%%", int(f*100))},
			{Style: th.Dim, Text: fmt.Sprintf("  %s of %s", kit.Number(p.Value), kit.Number(p.Total))},
		})
	} else {
		b.lines = append(b.lines, []kit.Span{{Style: th.Text, Text: kit.Number(p.Value)}, {Style: th.Dim, Text: " so far, of a total that the server has not said"}})
	}
	if s := d.rate(e, t); s != "" && !t.Terminal() {
		b.lines = append(b.lines, []kit.Span{{Style: th.Dim, Text: s}})
	}
	if p.Message != "" && p.Message != t.StatusMessage {
		b.lines = append(b.lines, []kit.Span{{Style: th.Text, Text: safe.Line(p.Message)}})
	}
	return b
}

// rate says how fast it goes and, from that, about how long it takes still.
func (d *Detail) rate(e *kit.Env, t *taskmodel.Task) string {
	p := t.Progress
	var from sample
	switch n := len(d.samples); {
	case n >= 2 && d.samples[n-1].at.Sub(d.samples[0].at) >= 5*time.Second:
		from = d.samples[0]
	case !t.CreatedAt.IsZero() && p.At.Sub(t.CreatedAt) >= 5*time.Second:
		from = sample{t.CreatedAt, 0}
	default:
		return ""
	}
	gone := p.At.Sub(from.at)
	done := p.Value - from.value
	if done <= 0 || gone <= 0 {
		return ""
	}
	per := done / gone.Seconds()
	unit := "s"
	if per < 0.5 {
		per, unit = per*60, "min"
	}
	s := fmt.Sprintf("%s a %s", kit.Number(float64(int(per*10))/10), map[string]string{"s": "second", "min": "minute"}[unit])
	if p.HasTotal && p.Total > p.Value {
		left := time.Duration((p.Total - p.Value) / done * float64(gone))
		if left > 0 && left < 1000*time.Hour {
			s += ", about " + kit.Long(left.Round(time.Second)) + " to go"
		}
	}
	return s
}

// facts are the rest: what was granted, how it is watched, what belongs to it.
func (d *Detail) facts(e *kit.Env, t *taskmodel.Task) block {
	th := e.Theme
	b := block{title: "Task", hang: 1}
	add := func(name, text string, st theme.Style) {
		if text != "" {
			b.lines = append(b.lines, []kit.Span{{Style: th.Dim, Text: safe.PadRight(name, 14)}, {Style: st, Text: text}})
		}
	}
	ttl := granted(t)
	if t.AskedTTL.Known && t.AskedTTL.Duration > 0 {
		ttl += ", asked for " + kit.Long(t.AskedTTL.Duration)
	}
	add("time to live", ttl, th.Text)
	if !t.LastHeardAt.IsZero() {
		add("last heard", e.AgeLong(t.LastHeardAt)+" ago", th.Text)
	}
	if !t.Terminal() && !t.NextPollAt.IsZero() && t.NextPollAt.After(e.Now) {
		add("next poll", "in "+e.LeftLong(t.NextPollAt), th.Text)
	}
	if !t.CreatedAt.IsZero() {
		add("created", t.CreatedAt.In(e.Now.Location()).Format("2006-01-02 15:04:05"), th.Text)
	}
	add("whose", whose(t), th.Text)
	add("parent", safe.Line(t.ParentID), th.Text)
	d.children(e, t, &b)
	add("to the model", safe.Line(t.ModelNote), th.Text)
	for _, s := range t.Lenient {
		add("read so", safe.Line(s), th.Warn)
	}
	return b
}

// children are the tasks under this one: those that the server names, and
// those that name this one as their parent.
func (d *Detail) children(e *kit.Env, t *taskmodel.Task, b *block) {
	th := e.Theme
	label := "children"
	row := func(spans ...kit.Span) {
		b.lines = append(b.lines, append([]kit.Span{{Style: th.Dim, Text: safe.PadRight(label, 14)}}, spans...))
		label = ""
	}
	seen := map[string]bool{}
	one := func(id string, required bool) {
		if seen[id] {
			return
		}
		seen[id] = true
		if c, ok := e.Board.Task(taskmodel.Key{Server: t.Server, ID: id, Role: t.Role}); ok {
			g, word, st := th.OfStatus(c.Status)
			row(kit.Span{Style: st, Text: safe.PadRight(g+" "+word, 15)}, kit.Span{Style: th.Text, Text: safe.Line(c.Tool) + " "}, kit.Span{Style: th.Dim, Text: kit.ShortID(id)})
			return
		}
		row(kit.Span{Style: th.Text, Text: safe.Line(id)})
		if required {
			b.lines = append(b.lines, []kit.Span{{Text: safe.PadRight("", 14)}, {Style: th.Warn, Text: "ours to start; "}, {Style: th.Key, Text: e.Keys.Start.Label()}, {Style: th.Dim, Text: " starts it"}})
		}
	}
	for _, c := range t.Children {
		one(c.ID, c.Required)
	}
	for i, k := range e.Board.Children(t.Key) {
		if i == 50 {
			row(kit.Span{Style: th.Dim, Text: "and more"})
			break
		}
		one(k.ID, false)
	}
}

func whose(t *taskmodel.Task) string {
	switch {
	case t.Role == taskmodel.Receiver:
		return "asked of us by the server"
	case t.Tap != "":
		return "of " + safe.Line(t.Owner) + ", heard by a tap"
	case t.Owner != "":
		return safe.Line(t.Owner)
	case t.Ours:
		return "started or added here"
	}
	return "another client's, listed by the server"
}

func granted(t *taskmodel.Task) string {
	switch {
	case t.TTL.Unlimited:
		return "unlimited"
	case !t.TTL.Known:
		return "not said"
	case t.Generation == taskmodel.GenDraft:
		return kit.Long(t.TTL.Duration) + " from its end"
	}
	return kit.Long(t.TTL.Duration) + " granted"
}
