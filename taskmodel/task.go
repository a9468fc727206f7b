package taskmodel

import (
	"encoding/json"
	"time"
)

// A Key names one task: the server it lives on, who runs it, and its id there.
// Two servers may hand out the same id; they are two tasks. Keys are
// comparable and are what selections, marks and memory go by.
type Key struct {
	Server string // the server's configured name, unique in this process
	ID     string // the task id, opaque
	Role   Role   // who asked: us (Requestor), or the server (Receiver)
}

// Role says which side of the task we are on.
type Role string

const (
	Requestor Role = "requestor" // we asked the server to run it
	Receiver  Role = "receiver"  // the server asked us to run it
)

// String gives the form that the command line takes: SERVER/ID, or SERVER/@ID
// for a task that the server asked us to run.
func (k Key) String() string {
	if k.Role == Receiver {
		return k.Server + "/@" + k.ID
	}
	return k.Server + "/" + k.ID
}

// Generation is one of the three systems of tasks that MCP has had.
type Generation string

const (
	GenNone      Generation = "none"       // the server has no tasks
	GenDraft     Generation = "draft"      // SEP-1686 as proposed
	GenCore      Generation = "2025-11-25" // the experimental core feature
	GenExtension Generation = "2026-07-28" // io.modelcontextprotocol/tasks
)

// Status is the server's own word for how a task stands. Any word can come;
// the constants are those that some generation defines.
type Status string

const (
	Submitted     Status = "submitted" // draft only
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
	Unknown       Status = "unknown" // draft only, terminal there
)

// Terminal reports whether the status is an end in the given generation.
// A word that the generation does not define is never an end.
func (s Status) Terminal(g Generation) bool {
	switch s {
	case Completed, Failed, Cancelled:
		return true
	case Unknown:
		return g == GenDraft
	}
	return false
}

// Defined reports whether the generation defines this status word.
func (s Status) Defined(g Generation) bool {
	switch s {
	case Working, InputRequired, Completed, Failed, Cancelled:
		return true
	case Submitted, Unknown:
		return g == GenDraft
	}
	return false
}

// Standing says how far the status can be trusted; Status never changes
// because of it.
type Standing string

const (
	Live     Standing = "live"
	Stale    Standing = "stale"    // polls fail at present
	Expired  Standing = "expired"  // the server does not know it, and its time was over
	Gone     Standing = "gone"     // the server does not know it; its time was not over or not known
	Restored Standing = "restored" // known from an earlier run, not yet seen again
)

// A TTL is a time to live as a server states it. The zero value means that
// the server did not say, which is not the same as unlimited.
type TTL struct {
	Known     bool
	Unlimited bool          // null on the wire
	Duration  time.Duration // from creation; in the draft (keepAlive) from the end
}

// Progress is the last progress report for a task. Total is meaningful only
// when HasTotal.
type Progress struct {
	Value    float64
	Total    float64
	HasTotal bool
	Message  string
	At       time.Time
}

// A Transition is one change of status as we heard it.
type Transition struct {
	At      time.Time // when we heard it
	Status  Status
	Message string
	Note    string // ours: "restored from an earlier run", "contradicted: working", …
}

// RPCError is a JSON-RPC error as the server sent it.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return e.Message }

// An Outcome is what the original request would have returned: a result or an
// error, never both. The zero value means that there is none (yet).
type Outcome struct {
	Result    json.RawMessage // the payload, untouched
	Err       *RPCError
	FetchedAt time.Time
	KeptHere  bool   // served from the journal: the server may no longer have it; without a Result it is still on the disk
	TooLarge  int64  // >0: not kept, this many bytes; fetch it to a file
	Note      string // ours
}

// IsZero reports whether there is no outcome.
func (o Outcome) IsZero() bool {
	return o.Result == nil && o.Err == nil && o.TooLarge == 0 && !o.KeptHere
}

// A Child is a task under this one, as SEP-1686's future work names it.
type Child struct {
	ID       string
	Required bool // the server asks the client to start it under this id
	Raw      json.RawMessage
}

// A Task is all that is known of one task. It is a value: the board's versions
// share the slices in it, so nobody may write into them.
type Task struct {
	Key
	Generation Generation

	// What the server said, replaced as a whole by each newer Snapshot.
	Status        Status
	StatusMessage string
	CreatedAt     time.Time // zero: the server has not said (the draft never does)
	LastUpdatedAt time.Time // zero: not said
	TTL           TTL
	PollInterval  time.Duration // 0: not said or not valid
	ParentID      string
	Children      []Child
	ModelNote     string // the server's note for the model (model-immediate-response)
	Raw           json.RawMessage
	Lenient       []string // what was read against the schema, one sentence each

	// What only we know; no Snapshot touches it.
	Tool            string // "" : not known
	Args            json.RawMessage
	AskedTTL        TTL
	Ours            bool   // started or added here (decides who may open tasks/result)
	Owner           string // whose session it is when not ours: an agent's name, "held by pid 4711", …
	Tap             string // the lease of the tap that reads along in that session: acts go there; "" when there is none
	FirstHeardAt    time.Time
	LastHeardAt     time.Time
	EndedAt         time.Time // when a terminal status was first heard
	StatusSince     time.Time // when the present status was first heard
	Standing        Standing
	StandingSince   time.Time
	Note            string    // why the standing is what it is, or another word of ours
	CancelRequested time.Time // zero: not asked
	CancelNote      string    // CancelSending, CancelUnknown, "too late to cancel", "not confirmed", …
	Progress        *Progress
	Inputs          []QuestionID // open and answered questions, oldest first
	Transitions     []Transition // oldest first
	Outcome         Outcome
	Polls           int
	Pushes          int
	NextPollAt      time.Time
	Pushed          bool // a subscription is acknowledged for it

	// heldSince is when the snapshot that is held arrived; zero: nothing live
	// was heard in this process. Merge alone decides by it.
	heldSince time.Time
}

// Terminal reports whether the task has ended as far as its server has said.
func (t Task) Terminal() bool { return t.Status.Terminal(t.Generation) }

// NeedsPerson reports whether the task waits for input.
func (t Task) NeedsPerson() bool {
	return t.Status == InputRequired && t.Standing != Gone && t.Standing != Expired
}

// Born is the instant to count the age from and whether it is the server's
// own (false: it is only when we first heard of the task; show it with ~).
func (t Task) Born() (at time.Time, exact bool) {
	if !t.CreatedAt.IsZero() {
		return t.CreatedAt, true
	}
	return t.FirstHeardAt, false
}

// ExpiresAt is the instant at which the server may drop the task, and whether
// there is one. In the draft the time counts from the end of the task.
func (t Task) ExpiresAt() (time.Time, bool) {
	if !t.TTL.Known || t.TTL.Unlimited {
		return time.Time{}, false
	}
	if t.Generation == GenDraft {
		if t.EndedAt.IsZero() {
			return time.Time{}, false
		}
		return t.EndedAt.Add(t.TTL.Duration), true
	}
	born, _ := t.Born()
	return born.Add(t.TTL.Duration), true
}

// What the way of a cancellation is while nobody has said what became of it.
const (
	// CancelSending: the request is about to go, or on its way.
	CancelSending = "being sent"
	// CancelUnknown: the process that sent it ended before it knew; the program
	// does not send it again by itself.
	CancelUnknown = "sent, outcome unknown: the mcptasks that sent it ended before the server answered"
)
