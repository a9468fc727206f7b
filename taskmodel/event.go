package taskmodel

import (
	"encoding/json"
	"time"
)

// EventKind is what happened; the words are those of `mcptasks history`.
type EventKind string

const (
	EventCreated   EventKind = "created"
	EventStatus    EventKind = "status"
	EventQuestion  EventKind = "question"
	EventAnswer    EventKind = "answer"
	EventCancel    EventKind = "cancel"
	EventResult    EventKind = "result"
	EventGone      EventKind = "gone"
	EventError     EventKind = "error"
	EventForgotten EventKind = "forgotten"
	EventServer    EventKind = "server" // the connection's state changed; not in the history of a task
	EventLog       EventKind = "log"    // a message of the server
	EventProgress  EventKind = "progress"
	EventStanding  EventKind = "standing"
)

// An Event is one thing that happened, as a value that could travel.
type Event struct {
	Seq      int64
	Time     time.Time
	Server   string
	Task     Key // zero when it is about the server alone
	Kind     EventKind
	Status   Status
	Question QuestionID
	Message  string          // in words
	Detail   json.RawMessage // the history's detail object
}
