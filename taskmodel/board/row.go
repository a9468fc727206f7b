package board

import (
	"encoding/json"
	"strings"
	"time"

	"mcptasks/taskmodel"
)

// A row is a taskmodel.Task as the board keeps it: a third of the size, since
// a hundred thousand of them are kept. Times are microseconds since 1970 (0:
// none), the words that many tasks have in common are shared in a head, and
// what few tasks have is in an extra. A row is never written to once it is in
// the tree: versions and views share it.
type row struct {
	head *head
	id   string
	msg  string
	raw  json.RawMessage
	loc  *time.Location // of the times that are ours
	x    *extra         // nil: all of it is zero

	created, updated           int64 // the server's
	first, heard, ended        int64 // ours
	since, standingSince, held int64
	nextPoll                   int64
	ttl                        time.Duration
	poll                       time.Duration
	transitions                []taskmodel.Transition // nil with oneStep
	polls, pushes              uint32
	rev                        uint64
	letters                    letters // of id and message
	flags                      flags
}

type flags uint8

const (
	ttlKnown flags = 1 << iota
	ttlUnlimited
	ours
	pushed
	oneStep // the time line is the present status alone
)

// A head is what many tasks share.
type head struct {
	key   taskmodel.Key // ID empty
	gen   taskmodel.Generation
	tool  string
	owner string
	tap   string
	status
}

type status struct {
	status   taskmodel.Status
	standing taskmodel.Standing
}

// An extra is what few tasks have.
type extra struct {
	parent      string
	children    []taskmodel.Child
	modelNote   string
	lenient     []string
	args        json.RawMessage
	askedTTL    taskmodel.TTL
	note        string
	cancelAsked int64
	cancelNote  string
	progress    *taskmodel.Progress
	inputs      []taskmodel.QuestionID
	outcome     taskmodel.Outcome
}

func (x *extra) zero() bool {
	return x.parent == "" && x.children == nil && x.modelNote == "" && x.lenient == nil && x.args == nil &&
		x.askedTTL == (taskmodel.TTL{}) && x.note == "" && x.cancelAsked == 0 && x.cancelNote == "" &&
		x.progress == nil && x.inputs == nil && x.outcome.IsZero() && x.outcome.Note == ""
}

// maxHeads bounds the table of shared heads: past it (a server that invents a
// status word for every task) the table starts again; old rows keep theirs.
const maxHeads = 4096

// heads makes one head out of many equal ones. It belongs to the board's goroutine.
type heads map[head]*head

func (h heads) get(v head) *head {
	if p, ok := h[v]; ok {
		return p
	}
	if len(h) >= maxHeads {
		clear(h)
	}
	// The words may be pieces of a message a megabyte long; own copies let it go.
	// And an own variable: v itself would be on the heap at each call.
	own := v
	own.key.Server, own.tool = strings.Clone(v.key.Server), strings.Clone(v.tool)
	own.owner, own.tap = strings.Clone(v.owner), strings.Clone(v.tap)
	own.status.status = taskmodel.Status(strings.Clone(string(v.status.status)))
	p := &own
	h[own] = p
	return p
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	if us := t.UnixMicro(); us != 0 {
		return us
	}
	return 1
}

func instant(us int64, loc *time.Location) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).In(loc)
}

// pack makes the row of a task; old is the row that it takes the place of (nil:
// none), whose memory is used again where nothing changed.
func (h heads) pack(t *taskmodel.Task, old *row, rev uint64) *row {
	r := h.bare(t)
	r.rev = rev
	if old != nil {
		r.id, r.msg, r.raw = old.id, old.msg, old.raw
	}
	if r.id != t.ID || old == nil {
		r.id = strings.Clone(t.ID)
	}
	if r.msg != t.StatusMessage {
		r.msg = strings.Clone(t.StatusMessage)
	}
	if string(r.raw) != string(t.Raw) { // a part of a page would keep the whole page
		r.raw = append(json.RawMessage(nil), t.Raw...)
	}
	r.letters = lettersOf(r.id) | lettersOf(r.msg)
	return r
}

// bare is a row without what tasks do not share: id, message and raw form.
func (h heads) bare(t *taskmodel.Task) *row {
	r := &row{
		head: h.get(head{key: taskmodel.Key{Server: t.Server, Role: t.Role}, gen: t.Generation, tool: t.Tool,
			owner: t.Owner, tap: t.Tap, status: status{t.Status, t.Standing}}),
		loc:     t.FirstHeardAt.Location(),
		created: micros(t.CreatedAt), updated: micros(t.LastUpdatedAt),
		first: micros(t.FirstHeardAt), heard: micros(t.LastHeardAt), ended: micros(t.EndedAt),
		since: micros(t.StatusSince), standingSince: micros(t.StandingSince), held: micros(t.HeldSince()),
		nextPoll: micros(t.NextPollAt), ttl: t.TTL.Duration, poll: t.PollInterval,
		polls: uint32(t.Polls), pushes: uint32(t.Pushes),
	}
	r.flag(ttlKnown, t.TTL.Known)
	r.flag(ttlUnlimited, t.TTL.Unlimited)
	r.flag(ours, t.Ours)
	r.flag(pushed, t.Pushed)
	if n := len(t.Transitions); n == 1 && micros(t.Transitions[0].At) == r.since && t.Transitions[0].Status == t.Status &&
		t.Transitions[0].Message == t.StatusMessage && t.Transitions[0].Note == "" {
		r.flag(oneStep, true)
	} else if n > 0 {
		r.transitions = t.Transitions
	}
	x := extra{t.ParentID, t.Children, t.ModelNote, t.Lenient, t.Args, t.AskedTTL, t.Note,
		micros(t.CancelRequested), t.CancelNote, t.Progress, t.Inputs, t.Outcome}
	if !x.zero() {
		r.x = &x
	}
	return r
}

func (r *row) flag(f flags, on bool) {
	if on {
		r.flags |= f
	}
}

func (r *row) has(f flags) bool { return r.flags&f != 0 }

// unpack fills t with the task again. The server's own times come back in UTC,
// ours in the location in which they were given.
func (r *row) unpack(t *taskmodel.Task) {
	*t = taskmodel.Task{
		Key: r.key(), Generation: r.head.gen,
		Status: r.head.status.status, StatusMessage: r.msg,
		CreatedAt: instant(r.created, time.UTC), LastUpdatedAt: instant(r.updated, time.UTC),
		TTL:          taskmodel.TTL{Known: r.has(ttlKnown), Unlimited: r.has(ttlUnlimited), Duration: r.ttl},
		PollInterval: r.poll, Raw: r.raw, Tool: r.head.tool, Ours: r.has(ours), Owner: r.head.owner, Tap: r.head.tap,
		FirstHeardAt: instant(r.first, r.loc), LastHeardAt: instant(r.heard, r.loc), EndedAt: instant(r.ended, r.loc),
		StatusSince: instant(r.since, r.loc), Standing: r.head.standing, StandingSince: instant(r.standingSince, r.loc),
		Transitions: r.transitions, Polls: int(r.polls), Pushes: int(r.pushes),
		NextPollAt: instant(r.nextPoll, r.loc), Pushed: r.has(pushed),
	}
	if r.has(oneStep) {
		t.Transitions = []taskmodel.Transition{{At: t.StatusSince, Status: t.Status, Message: t.StatusMessage}}
	}
	if x := r.x; x != nil {
		t.ParentID, t.Children, t.ModelNote, t.Lenient = x.parent, x.children, x.modelNote, x.lenient
		t.Args, t.AskedTTL, t.Note = x.args, x.askedTTL, x.note
		t.CancelRequested, t.CancelNote = instant(x.cancelAsked, r.loc), x.cancelNote
		t.Progress, t.Inputs, t.Outcome = x.progress, x.inputs, x.outcome
	}
	*t = t.Hold(instant(r.held, r.loc))
}

func (r *row) task() *taskmodel.Task {
	t := new(taskmodel.Task)
	r.unpack(t)
	return t
}

func (r *row) key() taskmodel.Key {
	k := r.head.key
	k.ID = r.id
	return k
}

func (r *row) status() taskmodel.Status { return r.head.status.status }

func (r *row) terminal() bool { return r.status().Terminal(r.head.gen) }

// lost reports whether a task at work is not known to its server any more.
func (r *row) lost() bool {
	at := r.status() == taskmodel.Working || r.status() == taskmodel.Submitted
	return at && (r.head.standing == taskmodel.Gone || r.head.standing == taskmodel.Expired)
}

func (r *row) needsPerson() bool {
	s := r.head.standing
	return r.status() == taskmodel.InputRequired && s != taskmodel.Gone && s != taskmodel.Expired
}

// born is the instant to count the age from, as taskmodel.Task.Born.
func (r *row) born() int64 {
	if r.created != 0 {
		return r.created
	}
	return r.first
}

// end is when an ended task ended, by the server's word where there is one.
func (r *row) end() int64 {
	if r.updated != 0 {
		return r.updated
	}
	return r.ended
}

// expires is as taskmodel.Task.ExpiresAt; 0: never, or not known.
func (r *row) expires() int64 {
	if !r.has(ttlKnown) || r.has(ttlUnlimited) {
		return 0
	}
	from := r.born()
	if r.head.gen == taskmodel.GenDraft {
		if r.ended == 0 {
			return 0
		}
		from = r.ended
	}
	return from + r.ttl.Microseconds()
}

func (r *row) parent() string {
	if r.x == nil {
		return ""
	}
	return r.x.parent
}

// lessKey is the order of the tree: server, role, id.
func lessKey(a, b *row) bool {
	if a.head != b.head {
		if c := strings.Compare(a.head.key.Server, b.head.key.Server); c != 0 {
			return c < 0
		}
		if c := strings.Compare(string(a.head.key.Role), string(b.head.key.Role)); c != 0 {
			return c < 0
		}
	}
	return a.id < b.id
}

// probe is a row to look a key up with.
func probe(k taskmodel.Key) *row {
	return &row{head: &head{key: taskmodel.Key{Server: k.Server, Role: k.Role}}, id: k.ID}
}
