package taskmodel

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// maxTransitions bounds the time line that one task keeps in memory; a server
// that flaps between two states for days must not grow it. The journal has all.
const maxTransitions = 100

// ChangeKind says what one Merge did.
type ChangeKind string

const (
	ChangeCreated       ChangeKind = "created"       // the task was not known before
	ChangeReplaced      ChangeKind = "replaced"      // a new task runs under the id of an older one
	ChangeStatus        ChangeKind = "status"        // the status is another
	ChangeMessage       ChangeKind = "message"       // the same status with other words
	ChangeStanding      ChangeKind = "standing"      // the task is live again
	ChangeOutcome       ChangeKind = "outcome"       // the message carried the result or the error
	ChangeContradiction ChangeKind = "contradiction" // an ended task was said to be something else
	ChangeStale         ChangeKind = "stale"         // nothing was changed: the message is older than what is held
	ChangePoll          ChangeKind = "poll"          // a push looks older: the truth has to be asked for at once
)

// A Change is one thing that a Merge did, or why it did nothing.
type Change struct {
	Kind ChangeKind
	From Status // status, contradiction: what was held
	To   Status // status, contradiction: what came
	Note string // in words, for the time line
}

// Merge says what is known of a task after a server's statement about it. It
// is the one place with an opinion on that. t is what is held (only its Key
// and Generation are looked at when exists is false), o what came, gen the
// generation it was said in. now is used where o has no HeardAt.
//
// The rules, in the order in which they apply:
//
//   - A creation that is later than the ended, restored or lost task of the
//     same id begins a new task: servers that count their tasks start again. So
//     does, whatever became of that one, a creation that was asked for later.
//   - Something restored from disk yields to anything live and never replaces
//     it, except that an end heard by another process is an end.
//   - The first terminal status wins; whatever contradicts it is noted once.
//     A terminal status is never stale: no generation lets a task leave it.
//   - A snapshot is stale when its request was sent before the snapshot that
//     we hold had arrived and its lastUpdatedAt is not newer. It changes nothing.
//   - A push that looks older than what is held changes nothing and asks for a
//     poll: clocks step, streams overtake each other.
//   - Anything else replaces the whole server's side of the task: an optional
//     field that it lacks is gone, a required one keeps its old value with a note.
//
// What only we know is never touched. Merging the same statement twice is the
// same as merging it once. The slices of t are not written into.
func Merge(t Task, exists bool, o Observation, gen Generation, now time.Time) (Task, []Change) {
	if o.HeardAt.IsZero() {
		o.HeardAt = now
	}
	if o.AskedAt.IsZero() {
		o.AskedAt = o.HeardAt
	}
	if !exists {
		return create(t.Key, o, gen), []Change{{Kind: ChangeCreated, To: o.Status}}
	}
	if anew(t, o) {
		n := create(t.Key, o, gen)
		return n, []Change{{Kind: ChangeReplaced, From: t.Status, To: o.Status,
			Note: "the server began a new task under this id"}}
	}
	ended, ends := t.Terminal(), o.Status.Terminal(gen)
	if o.Source == FromJournal && (ended || !ends) && (!restored(t) || o.HeardAt.Before(t.LastHeardAt)) {
		return t, nil
	}
	if ended && o.Status != "" && o.Status != t.Status {
		return contradict(t, o)
	}
	if !ends || ended {
		if stale(t, o) {
			return t, []Change{{Kind: ChangeStale, From: t.Status, To: o.Status}}
		}
		if o.Source == FromPush && looksOlder(t, o) {
			return t, []Change{{Kind: ChangePoll, From: t.Status, To: o.Status,
				Note: "a notification looks older than what is known"}}
		}
	}
	return replace(t, o, gen)
}

// create makes the first row of a task.
func create(k Key, o Observation, gen Generation) Task {
	if k.ID == "" {
		k.ID = o.ID
	}
	t := Task{Key: k, FirstHeardAt: o.HeardAt, Standing: Live, StandingSince: o.HeardAt}
	if o.Source == FromJournal && !o.Status.Terminal(gen) {
		t.Standing = Restored
	}
	serverSide(&t, o, gen)
	t.StatusSince = o.HeardAt
	if t.Terminal() {
		t.EndedAt = o.HeardAt
	}
	t.Transitions = []Transition{{At: o.HeardAt, Status: t.Status, Message: t.StatusMessage}}
	return t
}

// anew reports whether o is about another task than t, under the same id.
func anew(t Task, o Observation) bool {
	if o.Source == FromJournal || t.CreatedAt.IsZero() || !o.CreatedAt.After(t.CreatedAt) {
		return false
	}
	if o.Source == FromCreate && o.AskedAt.After(t.FirstHeardAt) {
		return true // the call that made it was sent when the other was known
	}
	if !o.CreatedAt.After(t.CreatedAt.Add(time.Second)) {
		return false // the same instant, written in another way
	}
	lost := t.Standing == Gone || t.Standing == Expired
	if o.Source == FromCreate {
		return lost || t.Terminal() || restored(t)
	}
	return lost || t.Terminal() && restored(t)
}

// restored reports whether nothing live has been heard of t in this process.
func restored(t Task) bool { return t.heldSince.IsZero() }

// stale reports whether the request that o answers was sent before what we
// hold had arrived, with nothing in it that proves it to be newer.
func stale(t Task, o Observation) bool {
	if o.Source == FromPush || restored(t) && t.Standing != Gone && t.Standing != Expired {
		return false
	}
	held := t.heldSince
	if (t.Standing == Gone || t.Standing == Expired) && t.StandingSince.After(held) {
		held = t.StandingSince // "not found" is an answer too
	}
	return o.AskedAt.Before(held) && !o.LastUpdatedAt.After(t.LastUpdatedAt)
}

func looksOlder(t Task, o Observation) bool {
	return !restored(t) && !o.LastUpdatedAt.IsZero() && o.LastUpdatedAt.Before(t.LastUpdatedAt)
}

// contradict keeps the first end and notes once what the server says now.
func contradict(t Task, o Observation) (Task, []Change) {
	if o.Source == FromJournal {
		return t, nil
	}
	if stale(t, o) || o.Source == FromPush && looksOlder(t, o) {
		// Sent before the end was: an ordinary latecomer, no contradiction.
		return t, []Change{{Kind: ChangeStale, From: t.Status, To: o.Status}}
	}
	note := "contradicted: " + string(o.Status)
	var changes []Change
	noted := slices.ContainsFunc(t.Transitions, func(x Transition) bool { return x.Note == note })
	if !noted {
		t.Transitions = appendTransition(t.Transitions,
			Transition{At: o.HeardAt, Status: t.Status, Message: o.StatusMessage, Note: note})
		changes = append(changes, Change{Kind: ChangeContradiction, From: t.Status, To: o.Status, Note: note})
	}
	changes = append(changes, revive(&t, o)...)
	t.Note = fmt.Sprintf("the server says %q now; the first end is kept", string(o.Status))
	return t, changes
}

// replace takes the whole server's side from o.
func replace(t Task, o Observation, gen Generation) (Task, []Change) {
	was, words, had := t.Status, t.StatusMessage, !t.Outcome.IsZero()
	first := restored(t)
	changes := revive(&t, o)
	serverSide(&t, o, gen)
	note := ""
	if first && o.Source != FromJournal && t.Status != was {
		note = "changed while mcptasks was not there"
	}
	switch {
	case t.Status != was:
		t.StatusSince = o.HeardAt
		if t.Terminal() {
			t.EndedAt = o.HeardAt
		}
		t.Transitions = appendTransition(t.Transitions,
			Transition{At: o.HeardAt, Status: t.Status, Message: t.StatusMessage, Note: note})
		changes = append(changes, Change{Kind: ChangeStatus, From: was, To: t.Status, Note: note})
	case t.StatusMessage != words:
		if t.StatusMessage != "" {
			t.Transitions = appendTransition(t.Transitions,
				Transition{At: o.HeardAt, Status: t.Status, Message: t.StatusMessage})
		}
		changes = append(changes, Change{Kind: ChangeMessage, From: was, To: t.Status})
	}
	if t.Terminal() && t.EndedAt.IsZero() {
		t.EndedAt = o.HeardAt
	}
	if !had && !t.Outcome.IsZero() {
		changes = append(changes, Change{Kind: ChangeOutcome, To: t.Status})
	}
	return t, changes
}

// revive marks the task as heard of, and as live when it was not.
func revive(t *Task, o Observation) []Change {
	if o.Source == FromJournal {
		return nil
	}
	if o.HeardAt.After(t.LastHeardAt) {
		t.LastHeardAt = o.HeardAt
	}
	if o.HeardAt.After(t.heldSince) {
		t.heldSince = o.HeardAt
	}
	if t.Standing == Live {
		return nil
	}
	from := t.Standing
	t.Standing, t.StandingSince, t.Note = Live, o.HeardAt, ""
	return []Change{{Kind: ChangeStanding, Note: "live again, was " + string(from)}}
}

// serverSide replaces what the server said.
func serverSide(t *Task, o Observation, gen Generation) {
	if gen != "" && gen != GenNone || t.Generation == "" {
		t.Generation = gen
	}
	lenient := o.Lenient
	keep := func(name string) {
		lenient = append(slices.Clip(lenient),
			fmt.Sprintf("The server left out %s, which its generation requires; the earlier value is kept.", name))
	}
	if o.Status != "" {
		t.Status = o.Status
	}
	t.StatusMessage = o.StatusMessage
	if !o.CreatedAt.IsZero() { // a creation cannot be taken back
		t.CreatedAt = o.CreatedAt
	}
	lacks := missing(o.Missing)
	if !o.LastUpdatedAt.IsZero() || !lacks.updated {
		t.LastUpdatedAt = o.LastUpdatedAt
	}
	if o.TTL.Known || !lacks.ttl {
		t.TTL = o.TTL
	}
	if o.PollInterval > 0 || !lacks.poll {
		t.PollInterval = o.PollInterval
	}
	for _, name := range o.Missing {
		keep(name)
	}
	t.ParentID, t.Children = o.ParentID, o.Children
	if o.ModelNote != "" { // it comes once, with the creation
		t.ModelNote = o.ModelNote
	}
	if o.Raw != nil {
		t.Raw = o.Raw
	}
	t.Lenient = lenient
	if !o.Outcome.IsZero() && (t.Outcome.IsZero() || t.Outcome.KeptHere || !sameOutcome(t.Outcome, o.Outcome)) && t.Terminal() {
		t.Outcome = o.Outcome
		if t.Outcome.FetchedAt.IsZero() {
			t.Outcome.FetchedAt = o.HeardAt
		}
	}
	if o.HeardAt.After(t.LastHeardAt) {
		t.LastHeardAt = o.HeardAt
	}
	if o.Source != FromJournal && o.HeardAt.After(t.heldSince) {
		t.heldSince = o.HeardAt
	}
}

type lacking struct{ updated, ttl, poll bool }

// missing reads the wire names of all generations: names moved between drafts.
func missing(names []string) (l lacking) {
	for _, n := range names {
		switch n {
		case "lastUpdatedAt":
			l.updated = true
		case "ttl", "ttlMs", "keepAlive":
			l.ttl = true
		case "pollInterval", "pollIntervalMs", "pollFrequency":
			l.poll = true
		}
	}
	return l
}

func sameOutcome(a, b Outcome) bool {
	if (a.Err == nil) != (b.Err == nil) || !bytes.Equal(a.Result, b.Result) {
		return false
	}
	return a.Err == nil || a.Err.Code == b.Err.Code && a.Err.Message == b.Err.Message && bytes.Equal(a.Err.Data, b.Err.Data)
}

// appendTransition copies: versions of the board share the slice. Past the
// bound the oldest that only repeats its predecessor's status goes first, and
// the first of all stays.
func appendTransition(s []Transition, t Transition) []Transition {
	out := make([]Transition, 0, len(s)+1)
	out = append(out, s...)
	out = append(out, t)
	if len(out) <= maxTransitions {
		return out
	}
	drop := 1
	for i := 1; i < len(out)-1; i++ {
		if out[i].Status == out[i-1].Status && out[i].Note == "" {
			drop = i
			break
		}
	}
	return slices.Delete(out, drop, drop+1)
}

// HeldSince is when the snapshot that is held arrived; zero when all that is
// known of the task was restored from disk.
func (t Task) HeldSince() time.Time { return t.heldSince }

// Hold returns t as if the snapshot that is held had arrived at the given
// instant; zero makes it one that was restored. Stores that keep tasks in
// another form need it.
func (t Task) Hold(at time.Time) Task {
	t.heldSince = at
	return t
}
