package ui

import (
	"context"
	"encoding/json"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// A Monitor is what the screens and the commands need of package monitor.
// *monitor.Monitor has it. Methods with a context may wait for a server and
// are called from a tea.Cmd, never from Update; the others return at once.
// Errors are sentences for a person.
type Monitor interface {
	// Board is the last published version: immutable, never nil.
	Board() *board.Version
	// Dirty has one slot; it is filled when a version was published since it
	// was last drained.
	Dirty() <-chan struct{}
	// Events streams what happens from now on; stop ends it. A reader that is
	// slower than buffer loses nothing that matters: events are queued.
	Events(buffer int) (events <-chan taskmodel.Event, stop func())

	Start(ctx context.Context, r monitor.StartRequest) (monitor.StartReply, error)
	Cancel(ctx context.Context, k taskmodel.Key) error
	Answer(ctx context.Context, a taskmodel.Answer) error
	// Fetch gives the result: the one kept here, else the server's. It waits
	// for a task that runs.
	Fetch(ctx context.Context, k taskmodel.Key) (taskmodel.Outcome, error)
	// Ask opens the way by which the task's question comes (tasks/result in
	// 2025-11-25) on a task that was merely listed: the person pressed a.
	Ask(ctx context.Context, k taskmodel.Key) error
	Poll(ctx context.Context, k taskmodel.Key) (taskmodel.Task, error)
	Add(ctx context.Context, server, id string) (taskmodel.Task, error)
	Forget(ctx context.Context, k taskmodel.Key, deleteThere bool) error
	Tools(ctx context.Context, server string) ([]taskmodel.Tool, error)
	// ReadResource gives the contents of a resource that a result links to, as
	// the server sent them: a list of objects with text or a blob.
	ReadResource(ctx context.Context, server, uri string) (json.RawMessage, error)

	Connect(server string) // start, or reconnect now
	Disconnect(server string)
	Pause(on bool)
	Paused() bool
	Focus(keys []taskmodel.Key) // look at these first
	SaveDraft(q taskmodel.QuestionID, draft json.RawMessage)
	SetRoots(server string, roots []string)
	SetLogLevel(ctx context.Context, server, level string) error
	Wire(f monitor.WireFilter) []taskmodel.WireEntry
	WireFrom() int64
	// Logs are the messages related to one task, oldest first.
	Logs(k taskmodel.Key) []taskmodel.LogLine
	// History is the audit trail of one task, from the journal when there is one.
	History(ctx context.Context, k taskmodel.Key) ([]taskmodel.Event, error)
}
