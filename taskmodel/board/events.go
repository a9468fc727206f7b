package board

import (
	"time"

	"mcptasks/taskmodel"
)

// statusDetail is the history's detail of a status event.
type statusDetail struct {
	From          taskmodel.Status `json:"from,omitempty"`
	Status        taskmodel.Status `json:"status"`
	StatusMessage string           `json:"statusMessage,omitempty"`
	Tool          string           `json:"tool,omitempty"`
	Source        taskmodel.Source `json:"source,omitempty"`
	Note          string           `json:"note,omitempty"`
}

// eventOf says what a change by Merge is to those who listen.
func eventOf(t *taskmodel.Task, c taskmodel.Change, o taskmodel.Observation) (taskmodel.Event, bool) {
	e := taskmodel.Event{Time: o.HeardAt, Server: t.Server, Task: t.Key, Status: t.Status, Message: t.StatusMessage}
	d := statusDetail{From: c.From, Status: t.Status, StatusMessage: t.StatusMessage, Source: o.Source, Note: c.Note}
	switch c.Kind {
	case taskmodel.ChangeCreated, taskmodel.ChangeReplaced:
		e.Kind = taskmodel.EventCreated
		d.Tool = t.Tool
	case taskmodel.ChangeStatus:
		e.Kind = taskmodel.EventStatus
	case taskmodel.ChangeMessage:
		e.Kind = taskmodel.EventStatus
	case taskmodel.ChangeContradiction:
		e.Kind = taskmodel.EventError
		e.Message = t.Note
	case taskmodel.ChangeStanding:
		e.Kind = taskmodel.EventStanding
		e.Message = c.Note
	case taskmodel.ChangeOutcome:
		e.Kind = taskmodel.EventResult
		e.Detail = outcomeDetail(t.Outcome)
		return e, true
	default:
		return e, false
	}
	e.Detail = d.json()
	return e, true
}

// json is the detail as encoding/json writes it. Thousands of tasks come at
// once when a server is listed, most of them in plain words.
func (d *statusDetail) json() []byte {
	out := make([]byte, 0, 128)
	for _, m := range [...]struct{ name, value string }{
		{"from", string(d.From)}, {"status", string(d.Status)}, {"statusMessage", d.StatusMessage},
		{"tool", d.Tool}, {"source", string(d.Source)}, {"note", d.Note},
	} {
		if m.value == "" && m.name != "status" {
			continue
		}
		if !plain(m.value) {
			return detail(d)
		}
		sep := byte(',')
		if len(out) == 0 {
			sep = '{'
		}
		out = append(append(out, sep, '"'), m.name...)
		out = append(append(out, `":"`...), m.value...)
		out = append(out, '"')
	}
	return append(out, '}')
}

// plain reports whether a text stands in JSON as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// changed says what a Change of what only we know is to those who listen.
func (b *Board) changed(was, t *taskmodel.Task, now time.Time) []taskmodel.Event {
	var events []taskmodel.Event
	say := func(kind taskmodel.EventKind, message string, d any) {
		e := taskmodel.Event{Time: now, Server: t.Server, Task: t.Key, Kind: kind, Status: t.Status, Message: message, Detail: detail(d)}
		events = append(events, b.number(e))
	}
	if t.Standing != was.Standing {
		kind := taskmodel.EventStanding
		if t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
			kind = taskmodel.EventGone
		}
		say(kind, t.Note, map[string]any{"from": was.Standing, "standing": t.Standing, "note": t.Note})
	}
	if !t.CancelRequested.IsZero() && was.CancelRequested.IsZero() {
		say(taskmodel.EventCancel, "cancel requested", map[string]any{"requested": true})
	} else if t.CancelNote != was.CancelNote && t.CancelNote != "" {
		say(taskmodel.EventCancel, t.CancelNote, map[string]any{"note": t.CancelNote})
	}
	if p := t.Progress; p != nil && (was.Progress == nil || *p != *was.Progress) {
		d := map[string]any{"progress": p.Value}
		if p.HasTotal {
			d["total"] = p.Total
		}
		if p.Message != "" {
			d["message"] = p.Message
		}
		say(taskmodel.EventProgress, p.Message, d)
	}
	if !t.Outcome.IsZero() && was.Outcome.IsZero() {
		e := taskmodel.Event{Time: now, Server: t.Server, Task: t.Key, Kind: taskmodel.EventResult, Status: t.Status, Detail: outcomeDetail(t.Outcome)}
		events = append(events, b.number(e))
	}
	return events
}

func outcomeDetail(o taskmodel.Outcome) []byte {
	d := map[string]any{}
	switch {
	case o.Err != nil:
		d["error"] = o.Err
	case o.TooLarge > 0:
		d["bytes"], d["kept"] = o.TooLarge, false
	default:
		d["bytes"] = len(o.Result)
	}
	if o.Note != "" {
		d["note"] = o.Note
	}
	return detail(d)
}
