// Package notify decides what a person is told of and how: the window's title,
// the terminal's progress bar (OSC 9;4) and program status (OSC 7501), the bell,
// the terminal's notifications (OSC 9, 99 or 777), and a hook command that gets
// the task as JSON. Each question and each end of a task is told once.
//
// It imports taskmodel, board, safe and Bubble Tea. It keeps what was told and
// runs nothing itself: Tell says what to do.
package notify

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/safe"
)

// Rules are a person's wishes, from [notify] in the configuration.
type Rules struct {
	NoBell     bool
	NoTerminal bool // no terminal notifications
	NoTitle    bool
	NoStatus   bool // neither progress bar nor program status
	Hook       []string
	OnlyAfter  time.Duration // tell of ends only when the task was at work at least this long
	Filter     string        // tell only of tasks that match
	// Focused tells also while the window has the focus; by default
	// notifications, and the bell for ends, are for those who look elsewhere. The
	// bell for a question rings in any case.
	Focused bool
	// Style is how the terminal takes notifications: "osc9" (the default),
	// "osc99" (kitty) or "osc777".
	Style string
}

// A Teller keeps what was told already. It is owned by the root's goroutine.
type Teller struct {
	rules  Rules
	filter *board.Filter
	asked  map[taskmodel.QuestionID]bool
	ended  map[taskmodel.Key]bool
	belled time.Time
	waits  map[taskmodel.Key]bool // told that it needs input, before its question came
}

// New makes a teller.
func New(r Rules) (Teller, error) {
	t := Teller{rules: r, asked: map[taskmodel.QuestionID]bool{}, ended: map[taskmodel.Key]bool{}, waits: map[taskmodel.Key]bool{}}
	switch r.Style {
	case "", "osc9", "osc99", "osc777":
	default:
		return t, fmt.Errorf("notify style: there is no %q; there are osc9, osc99 and osc777", r.Style)
	}
	if r.Filter != "" {
		f, err := board.ParseFilter(r.Filter)
		if err != nil {
			return t, fmt.Errorf("notify filter: %w", err)
		}
		t.filter = f
	}
	return t, nil
}

// Seen marks the questions that are open now as told: they were there before
// the person looked.
func (t *Teller) Seen(v *board.Version) {
	for _, q := range v.Questions() {
		t.asked[q.ID] = true
	}
}

// A Telling is what is to be done for some events.
type Telling struct {
	Bell   bool
	Notes  []string         // terminal notifications, as escape sequences
	Hooked []taskmodel.Task // for each of them the hook runs
	Kind   []taskmodel.EventKind
}

// Tell decides about events. focused is whether the window has the focus, as
// far as is known.
func (t *Teller) Tell(events []taskmodel.Event, v *board.Version, now time.Time, focused bool) Telling {
	var out Telling
	quiet := focused && !t.rules.Focused
	note := func(title, text string) {
		if !quiet && !t.rules.NoTerminal && len(out.Notes) < 5 {
			out.Notes = append(out.Notes, t.sequence(title, text))
		}
	}
	hook := func(k taskmodel.Key, kind taskmodel.EventKind) {
		if task, ok := v.Task(k); ok && len(t.rules.Hook) > 0 && len(out.Hooked) < 50 {
			out.Hooked = append(out.Hooked, task)
			out.Kind = append(out.Kind, kind)
		}
	}
	for _, ev := range events {
		task, known := v.Task(ev.Task)
		if known && !t.filter.Match(&task, now) {
			continue
		}
		name := safe.Line(ev.Server)
		if known && task.Tool != "" {
			name = safe.Line(task.Tool) + " on " + name
		}
		switch ev.Kind {
		case taskmodel.EventQuestion:
			// A question that was completed elsewhere wants nobody any more: what
			// it was for is told by the end of its task.
			q, ok := v.Question(ev.Question)
			if !ok || !q.State.Open() || q.Done || t.asked[ev.Question] {
				continue
			}
			t.asked[ev.Question] = true
			if t.waits[ev.Task] {
				delete(t.waits, ev.Task)
				continue
			}
			out.Bell = out.Bell || !t.rules.NoBell
			note("mcptasks: input needed", name+": "+safe.Line(q.Message))
			hook(ev.Task, ev.Kind)
		case taskmodel.EventStatus, taskmodel.EventGone:
			if ev.Kind == taskmodel.EventStatus && ev.Status == taskmodel.InputRequired {
				if !known || task.Status != taskmodel.InputRequired || t.waits[ev.Task] || hasOpen(v, &task) {
					continue
				}
				t.waits[ev.Task] = true
				out.Bell = out.Bell || !t.rules.NoBell
				note("mcptasks: input needed", name+": "+safe.Line(task.StatusMessage))
				hook(ev.Task, ev.Kind)
				continue
			}
			delete(t.waits, ev.Task)
			if !known || ev.Kind == taskmodel.EventStatus && !task.Terminal() || t.ended[ev.Task] {
				continue
			}
			t.ended[ev.Task] = true
			if at, _ := task.Born(); now.Sub(at) < t.rules.OnlyAfter {
				continue
			}
			word := string(ev.Status)
			if ev.Kind == taskmodel.EventGone {
				word = "gone"
			}
			out.Bell = out.Bell || !quiet && !t.rules.NoBell
			note("mcptasks: "+safe.Line(word), name+": "+safe.Line(task.StatusMessage))
			hook(ev.Task, ev.Kind)
		}
	}
	// Many at once, as at the start, are one ring.
	if out.Bell && now.Sub(t.belled) < time.Second {
		out.Bell = false
	} else if out.Bell {
		t.belled = now
	}
	return out
}

func hasOpen(v *board.Version, task *taskmodel.Task) bool {
	for _, id := range task.Inputs {
		if q, ok := v.Question(id); ok && q.State.Open() {
			return true
		}
	}
	return false
}

func (t *Teller) sequence(title, text string) string {
	// The texts are sanitised: they hold no control byte that could end the
	// sequence. Semicolons part its fields in some kinds.
	text = safe.Truncate(text, 160, safe.Ellipsis)
	switch t.rules.Style {
	case "osc99":
		enc := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		return "\x1b]99;i=1:d=0:e=1;" + enc(title) + "\x1b\\\x1b]99;i=1:p=body:e=1;" + enc(text) + "\x1b\\"
	case "osc777":
		return "\x1b]777;notify;" + strings.ReplaceAll(title, ";", ",") + ";" + strings.ReplaceAll(text, ";", ",") + "\x1b\\"
	}
	return "\x1b]9;" + title + ": " + text + "\x1b\\"
}

// View sets what the terminal is told beside the frame.
func (t *Teller) View(v *tea.View, b *board.Version) {
	c := b.Counts()
	working := c.ByStatus[taskmodel.Working] + c.ByStatus[taskmodel.Submitted] - c.Lost
	if !t.rules.NoTitle {
		switch {
		case c.Questions > 0:
			v.WindowTitle = fmt.Sprintf("mcptasks ? %s", plural(c.Questions, "question"))
		case working > 0:
			v.WindowTitle = fmt.Sprintf("mcptasks ● %d working", working)
		default:
			v.WindowTitle = "mcptasks"
		}
	}
	if t.rules.NoStatus {
		return
	}
	switch {
	case c.Questions > 0:
		v.ProgressBar = tea.NewProgressBar(tea.ProgressBarWarning, 100)
		v.ProgramStatus = &tea.ProgramStatus{State: tea.ProgramStateBlocked, Kind: tea.ProgramStatusKindQuestion, App: "mcptasks", Message: plural(c.Questions, "question")}
	case working > 0:
		v.ProgressBar = tea.NewProgressBar(tea.ProgressBarIndeterminate, 0)
		v.ProgramStatus = &tea.ProgramStatus{State: tea.ProgramStateWorking, App: "mcptasks", Message: fmt.Sprintf("%d working", working)}
	default:
		v.ProgramStatus = &tea.ProgramStatus{State: tea.ProgramStateIdle, App: "mcptasks"}
	}
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
