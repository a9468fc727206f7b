package taskmodel

import (
	"encoding/json"
	"time"
)

// ServerState is the state of the connection to a server.
type ServerState string

const (
	ServerConnecting ServerState = "connecting"
	ServerReady      ServerState = "ready"
	ServerRetrying   ServerState = "retrying"
	ServerAuth       ServerState = "auth"   // waits for a sign-in
	ServerOff        ServerState = "off"    // not started, or stopped by the person
	ServerFailed     ServerState = "failed" // will not be tried again by itself (a bad entry, an unset variable)
)

// Can says what a server can do with tasks, and in words why not.
type Can struct {
	List      bool
	Cancel    bool
	Start     bool
	Push      bool
	Delete    bool // the draft
	ListWhy   string
	CancelWhy string
	StartWhy  string
	PushWhy   string
}

// SourceTap is the Source of a server that nobody configured: it is tapped.
const SourceTap = "a tap"

// A Server is what is known of one server and of the connection to it.
type Server struct {
	Name            string
	Target          string // canonical, secrets masked: what it is keyed by across runs
	Transport       string // stdio | http | sse
	Source          string // the file or flag it was configured in
	State           ServerState
	StateSince      time.Time
	Generation      Generation
	ProtocolVersion string
	ServerName      string // serverInfo, raw
	ServerVersion   string
	Instructions    string
	Can             Can
	Capabilities    json.RawMessage
	Error           string // the last error in words, with what to do next
	RetryAt         time.Time
	Attempts        int
	RTT             time.Duration   // of the last answered request
	RTTs            []time.Duration // the last ones, oldest first
	PollsPerMinute  int
	PushesPerMinute int
	Pushing         bool      // pushes come on this connection: one was heard, or a subscription was acknowledged
	PacedUntil      time.Time // Retry-After in force
	ListIncomplete  string    // why the listing lacks tasks, "" when it is whole
	Listing         bool      // pages are still being fetched
	HeldBy          string    // another mcptasks process holds the session
	Warning         string    // standing: "certificate not checked", …
	Stderr          []string  // the last lines, raw
	Logs            []LogLine
	LogLevel        string
	Roots           []string
	Tools           []Tool
	ToolsError      string
	Identity        string // whom we are signed in as, when known
}

// A LogLine is one log message or stderr line of a server, raw.
type LogLine struct {
	At     time.Time
	Level  string
	Logger string
	Text   string
	Task   string // related task id, "" when none
}

// A Tool is one tool of a server.
type Tool struct {
	Server       string
	Name         string
	Title        string
	Description  string
	TaskSupport  string // required | optional | forbidden | server
	WhyNotTask   string // why it cannot run as a task here, "" when it can
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	ReadOnly     bool
	Destructive  bool
	Raw          json.RawMessage
}

// Direction is which way a wire message went.
type Direction string

const (
	Sent     Direction = "out"
	Received Direction = "in"
)

// A WireEntry is one message (or one piece of noise) on the wire. Bytes are as
// they were, with secrets masked where the transport put them.
type WireEntry struct {
	Seq       int64
	At        time.Time
	Server    string
	Direction Direction
	Kind      string        // request | response | error | notification | noise | stderr | http
	Method    string        // of the request that a response answers, too
	ID        string        // JSON-RPC id as text, with quotes when it is a string
	Task      string        // task id when the message names one
	Latency   time.Duration // responses: since the request
	Size      int
	Bytes     json.RawMessage // may be no JSON for noise
	Fault     string          // where it breaks the schema of its generation
}
