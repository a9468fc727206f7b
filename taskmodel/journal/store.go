package journal

import (
	"context"
	"encoding/json"
	"time"

	"mcptasks/taskmodel"
)

var (
	_ Store     = (*Journal)(nil)
	_ Historian = (*Journal)(nil)
)

// A Store is what the monitor and the commands need of a journal. *Journal has
// it; a nil Store means that the program runs without memory.
//
// Servers are keyed by target (canonical, secrets masked), never by name: Key.
// Server in what is returned is the label last used, and callers overwrite it.
type Store interface {
	// Write commits the entries, in order, before it returns. When the disk is
	// slow it gives up waiting after a second with ErrSlow (the entries are
	// still queued and will be written); the caller then goes on with a note.
	Write(ctx context.Context, entries ...Entry) error
	// Queue hands the entries to the writer, which commits them in batches. It
	// never blocks, and nobody waits for the disk. Past its bound in entries it
	// drops the oldest status entries of tasks that have newer ones queued. Past
	// its bound in bytes, which only a disk that takes nothing brings it to, it
	// gives up the payloads of results (that they were there is kept, with why
	// they are not), then snapshots' raw texts and events' details, the oldest
	// first. It never gives up a handle, a status, a question or an answer.
	Queue(entries ...Entry)
	// Restore reads what is known of one server: tasks that are not forgotten,
	// with transitions and open questions; results without their payloads.
	Restore(ctx context.Context, target string) (Restored, error)
	// Outcome reads the result that was kept for a task.
	Outcome(ctx context.Context, target string, id string, role taskmodel.Role) (taskmodel.Outcome, bool, error)
	// Changes returns what other processes wrote for the target since the given
	// change number, and the number to ask from next time. It is cheap when
	// nothing changed (one read of data_version).
	Changes(ctx context.Context, target string, since int64) (Changes, error)

	// Acquire takes or renews the lease on (target, session). holder is who has
	// it when ok is false. A lease not renewed for five seconds is
	// dead, for fifteen where its holder is a process of this machine that runs.
	Acquire(ctx context.Context, target, session string) (holder Holder, ok bool, err error)
	Release(ctx context.Context, target, session string) error
	// PutIntent asks the lease's holder to act; IntentState tells what became
	// of it. ClaimIntents rechecks the lease in the claiming transaction and
	// hands each intent out once.
	PutIntent(ctx context.Context, in Intent) (id int64, err error)
	ClaimIntents(ctx context.Context, target, session string) ([]Intent, error)
	FinishIntent(ctx context.Context, id int64, errText string, detail json.RawMessage) error
	IntentState(ctx context.Context, id int64) (done bool, errText string, detail json.RawMessage, err error)
	// ClaimAct marks an effect (answer or cancel) on servers without a session
	// as taken by this process; ok is false when another did it before. An act
	// that a person wants repeated needs another name.
	ClaimAct(ctx context.Context, target, act string) (ok bool, err error)
}

// A Historian gives the audit trail of a task; *Journal is one.
type Historian interface {
	TaskHistory(ctx context.Context, target, id string, role taskmodel.Role, limit int) ([]taskmodel.Event, error)
}

// An Entry is one thing to write. Only the set fields are written; Task names
// the row that Event, Question, Answer and Outcome belong to (Key may stand
// for it).
type Entry struct {
	Target string
	Server string // label
	Key    taskmodel.Key
	Task   *taskmodel.Task // the whole row (Args and Raw empty where keep is none)
	Event  *taskmodel.Event
	// Question keeps a question with its state; its draft too.
	Question *taskmodel.Question
	// Answer keeps an answer's content while it is undelivered; Delivered drops
	// it, keeping only which key was answered and how.
	Answer    *taskmodel.Answer
	Delivered *taskmodel.QuestionID
	Outcome   *taskmodel.Outcome
	Session   *Session
	Forget    bool
	// Later says that a queued entry may wait until others are written, the
	// greater part of a second at most: what a server would tell again.
	Later bool
}

// A Session is an HTTP session to be taken up by the next run.
type Session struct {
	ID       string
	Version  string
	Init     json.RawMessage
	Identity string
	Since    time.Time // when it began; what was last heard before that was another session's
	Ended    bool
}

// Restored is what is known of a server from earlier runs.
type Restored struct {
	Tasks     []taskmodel.Task // Standing is Restored for those that may still run
	Questions []taskmodel.Question
	Answers   []taskmodel.Answer // undelivered: to be offered, never sent by themselves
	Forgotten []taskmodel.Key    // a listing does not bring them back
	Session   *Session
	Change    int64 // for Changes
	// Beside is what other processes that still run have written of those tasks
	// that come as Restored: for who shows what another process hears.
	Beside map[taskmodel.Key]Standing
}

// A Standing is how far a task's status can be trusted, and why.
type Standing struct {
	Standing taskmodel.Standing
	Note     string
}

// Changes is what others wrote. A task's Standing is what its writer says of it
// as long as that process runs, and Restored after that.
type Changes struct {
	Tasks     []taskmodel.Task
	Questions []taskmodel.Question
	Forgotten []taskmodel.Key
	Change    int64
}

// A Holder is another process that holds a lease.
type Holder struct {
	PID  int
	Host string
	What string // "mcptasks", "mcptasks watch", …
}

// An Intent is an act that another process asks the holder to carry out.
type Intent struct {
	ID      int64
	Target  string
	Session string
	Task    taskmodel.Key
	Kind    string // answer | cancel | draft | fetch | poll | start | tools
	Payload json.RawMessage
	At      time.Time
	From    Holder
}
