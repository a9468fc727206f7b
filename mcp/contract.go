package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// Options say how to connect to one server.
type Options struct {
	Name   string // the server's name, for errors, keys and questions
	Dialer Dialer // makes connections for the era that is being tried

	// Era forces "modern" (2026-07-28) or "legacy" (initialize); "" finds it.
	Era string
	// Generation forces one generation; "" finds it. GenNone uses no tasks.
	Generation taskmodel.Generation
	// ProbeTimeout bounds the server/discover probe on stdio; 0 is 3 s.
	ProbeTimeout time.Duration

	ClientName    string // "mcptasks"
	ClientVersion string

	Roots func() []Root // nil: roots are not declared

	// Session and Version take up an earlier HTTP session (2025-11-25) without
	// a new initialize; a server that no longer knows it makes Connect return
	// ErrSessionLost.
	Session       string
	Version       string
	SessionInit   json.RawMessage // the InitializeResult that was kept with it
	Receiver      ReceiverLimits
	NoReceiver    bool // do not declare the receiver's side of tasks
	NoElicitation bool // headless runs that can ask nobody still declare it; tests may not
	Handler       Handler
	Log           *slog.Logger
	DraftWait     time.Duration // how long to wait for the draft's created notification; 0 is 2 s
}

// A Root is one root as roots/list gives it.
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// ReceiverLimits bound what a server may ask us to run (2025-11-25). Zero
// values are the defaults that the README states.
type ReceiverLimits struct {
	MaxTTL     time.Duration // 24 h
	DefaultTTL time.Duration // 1 h
	MaxTasks   int           // 32 unfinished per server
	PageSize   int           // 50
	PerSecond  int           // 50 calls
}

// A Dialer makes connections to one server. Package transport has one per kind.
type Dialer interface {
	// Dial connects for the given era: "modern", "legacy" (stdio, Streamable
	// HTTP) or "sse" (the HTTP+SSE transport of 2024-11-05).
	Dial(ctx context.Context, era string) (jsonrpc.Conn, error)
	// Kind is "stdio" or "http".
	Kind() string
}

// A Handler hears what a server says unasked. Its methods are called from the
// connection's goroutines, in the order of arrival on one stream, and must not
// block: the monitor only queues.
type Handler interface {
	// Snapshot: a status notification, an inlined state, a subscription's push.
	Snapshot(taskmodel.Observation)
	// Progress belongs to the task id, or to the call when task is "".
	Progress(task, call string, p taskmodel.Progress)
	// Asked: a question arrived or was seen again (same ID: nothing new).
	Asked(taskmodel.Question)
	// Withdrawn: the server cancelled its request, or the key vanished.
	Withdrawn(id taskmodel.QuestionID, why string)
	// ElicitationComplete: a URL elicitation was completed elsewhere.
	ElicitationComplete(elicitID string)
	// Log: notifications/message, and anything else related to a task that no
	// other method is for (then Level is "other" and Text the raw JSON).
	Log(taskmodel.LogLine)
	// ToolsChanged: fetch the tools again.
	ToolsChanged()
	// Pushing: the set of task ids for which pushes are acknowledged (the
	// extension); nil when the subscription has ended.
	Pushing(ids []string)
	// ReceiverTask: the state of a task that the server asked us to run.
	ReceiverTask(taskmodel.Observation, ReceiverInfo)
	// Wire: one message passed, either way.
	Wire(taskmodel.WireEntry)
}

// ReceiverInfo goes with a task that a server asked us to run.
type ReceiverInfo struct {
	Method string // elicitation/create or sampling/createMessage
	Params json.RawMessage
	Event  string // created | ended | retrieved | cancelled | expired
}

// A Client is one connection to one server with its negotiated era. Safe for
// concurrent use. Connect makes it:
//
//	func Connect(ctx context.Context, o Options) (*Client, error)
//
// Its methods beside Tasks: Info, Tools, CallPlain, Answer, RootsChanged,
// SetLogLevel, Ping, Done, Err, Close.

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
	// List fetches one page; "" is the first.
	List(ctx context.Context, cursor string) (Page, error)
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
	Raw   json.RawMessage
}
