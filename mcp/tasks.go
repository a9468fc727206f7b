package mcp

import (
	"context"
	"encoding/json"
	"time"

	"mcptasks/taskmodel"
)

// Info is what the handshake found.
type Info struct {
	Era             string // modern | legacy
	Transport       string // stdio | http | sse
	Generation      taskmodel.Generation
	ProtocolVersion string
	ServerName      string
	ServerVersion   string
	Instructions    string
	Capabilities    json.RawMessage
	Init            json.RawMessage // the whole InitializeResult or DiscoverResult
	Session         string          // HTTP session id, "" when none
	Can             taskmodel.Can
}

// Tasks is what every generation offers. A method that a generation does not
// have returns ErrUnsupported. Errors from the server are *taskmodel.RPCError
// (wrapped); ErrNotFound wraps those by which the generation says that it does
// not know the id.
type Tasks interface {
	// Start calls a tool so that it may become a task.
	Start(ctx context.Context, c StartCall) (Started, error)
	// Get asks for one task's state now.
	Get(ctx context.Context, id string) (taskmodel.Snapshot, error)
	// List fetches one page; "" is the first. next, when it is not nil, may be
	// called with the next page's cursor as soon as that is known, before the
	// page itself has been read, on List's goroutine; it must not block. The
	// Page's own Next is what counts.
	List(ctx context.Context, cursor string, next func(cursor string)) (Page, error)
	// Result fetches (2025-11-25: waits for) what the original request would
	// have returned. It has no time limit but ctx's. Questions that the server
	// asks on its stream go to Handler.Asked.
	Result(ctx context.Context, id string) (taskmodel.Outcome, error)
	// Cancel asks for cancellation. The snapshot is the server's, if it gave one.
	Cancel(ctx context.Context, id string) (*taskmodel.Snapshot, error)
	// Delete removes the task on the server (draft).
	Delete(ctx context.Context, id string) error
	// Watch tells which tasks pushes are wanted for (extension); it replaces
	// the set of an earlier call. No-op where pushes need no asking.
	Watch(ctx context.Context, ids []string) error
}

// A StartCall is one tool call.
type StartCall struct {
	Tool   string
	Args   json.RawMessage // an object; nil is {}
	TTL    time.Duration   // asked for; 0 is not asked for
	Plain  bool            // not as a task; the capability is then not declared (extension)
	CallID string          // names the call for Handler.Progress and for questions without a task
	// TaskID forces the id in the draft, where the client makes it; "" makes one.
	TaskID string
}

// Started is what became of a StartCall: a task, or a finished call.
type Started struct {
	TaskID   string // "" when the call finished without a task
	Snapshot taskmodel.Snapshot
	Outcome  taskmodel.Outcome // a plain result where no task was made
	Note     string            // "2026-07-28 has no ttl to ask for", …
}

// A Page is one page of a listing.
type Page struct {
	Tasks []taskmodel.Snapshot
	Next  string // "" at the end
	Cut   string // why it ends here though the server has more; "" where it does not
	Raw   json.RawMessage
}
