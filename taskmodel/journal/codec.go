package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"mcptasks/taskmodel"
)

// A task is kept as one value of numbered fields, since reading ten thousand of
// them must not be felt at the start; JSON takes ten times as long. A field is
// its number and kind in a varint, then a varint or a length and bytes. Fields
// that are zero are left out, numbers that are not known are passed over, and a
// number is never given to another field.
const (
	fID = iota + 1
	fReceiver
	fGeneration
	fStatus
	fMessage
	fCreated
	fUpdated
	fTTLKnown
	fTTLUnlimited
	fTTL
	fPoll
	fParent
	fChild
	fModelNote
	fRaw
	fLenient
	fTool
	fArgs
	fAskedTTLKnown
	fAskedTTL
	fOurs
	fOwner
	fFirstHeard
	fLastHeard
	fEnded
	fStatusSince
	fStanding
	fStandingSince
	fNote
	fCancelRequested
	fCancelNote
	fProgress
	fInput
	fTransition
	fPolls
	fPushes
	fAskedTTLUnlimited
	fTap
)

// Fields of the values inside, each numbered for itself.
const (
	gA = iota + 1
	gB
	gC
	gD
	gE
)

type encoder struct{ b []byte }

func (e *encoder) number(field int, v int64) {
	if v == 0 {
		return
	}
	e.b = binary.AppendUvarint(e.b, uint64(field)<<1)
	e.b = binary.AppendVarint(e.b, v)
}

func (e *encoder) bool(field int, v bool) {
	if v {
		e.number(field, 1)
	}
}

func (e *encoder) time(field int, t time.Time) { e.number(field, micros(t)) }

func encodeBytes[T ~string | ~[]byte](e *encoder, field int, v T) {
	if len(v) == 0 {
		return
	}
	e.b = binary.AppendUvarint(e.b, uint64(field)<<1|1)
	e.b = binary.AppendUvarint(e.b, uint64(len(v)))
	e.b = append(e.b, v...)
}

// group writes a value of several fields, also when all of them are zero.
func (e *encoder) group(field int, f func(*encoder)) {
	var in encoder
	f(&in)
	e.b = binary.AppendUvarint(e.b, uint64(field)<<1|1)
	e.b = binary.AppendUvarint(e.b, uint64(len(in.b)))
	e.b = append(e.b, in.b...)
}

// encodeTask gives the kept form of a task. The outcome is kept elsewhere.
func encodeTask(t *taskmodel.Task) []byte {
	e := &encoder{b: make([]byte, 0, 256+len(t.Raw)+len(t.Args))}
	encodeBytes(e, fID, t.ID)
	e.bool(fReceiver, t.Role == taskmodel.Receiver)
	encodeBytes(e, fGeneration, t.Generation)
	encodeBytes(e, fStatus, t.Status)
	encodeBytes(e, fMessage, t.StatusMessage)
	e.time(fCreated, t.CreatedAt)
	e.time(fUpdated, t.LastUpdatedAt)
	e.bool(fTTLKnown, t.TTL.Known)
	e.bool(fTTLUnlimited, t.TTL.Unlimited)
	e.number(fTTL, int64(t.TTL.Duration))
	e.number(fPoll, int64(t.PollInterval))
	encodeBytes(e, fParent, t.ParentID)
	for _, c := range t.Children {
		e.group(fChild, func(e *encoder) {
			encodeBytes(e, gA, c.ID)
			e.bool(gB, c.Required)
			encodeBytes(e, gC, c.Raw)
		})
	}
	encodeBytes(e, fModelNote, t.ModelNote)
	encodeBytes(e, fRaw, t.Raw)
	for _, l := range t.Lenient {
		encodeBytes(e, fLenient, l)
	}
	encodeBytes(e, fTool, t.Tool)
	encodeBytes(e, fArgs, t.Args)
	e.bool(fAskedTTLKnown, t.AskedTTL.Known)
	e.bool(fAskedTTLUnlimited, t.AskedTTL.Unlimited)
	e.number(fAskedTTL, int64(t.AskedTTL.Duration))
	e.bool(fOurs, t.Ours)
	encodeBytes(e, fOwner, t.Owner)
	encodeBytes(e, fTap, t.Tap)
	e.time(fFirstHeard, t.FirstHeardAt)
	e.time(fLastHeard, t.LastHeardAt)
	e.time(fEnded, t.EndedAt)
	e.time(fStatusSince, t.StatusSince)
	encodeBytes(e, fStanding, t.Standing)
	e.time(fStandingSince, t.StandingSince)
	encodeBytes(e, fNote, t.Note)
	e.time(fCancelRequested, t.CancelRequested)
	encodeBytes(e, fCancelNote, t.CancelNote)
	if p := t.Progress; p != nil {
		e.group(fProgress, func(e *encoder) {
			e.number(gA, int64(math.Float64bits(p.Value)))
			e.number(gB, int64(math.Float64bits(p.Total)))
			e.bool(gC, p.HasTotal)
			encodeBytes(e, gD, p.Message)
			e.time(gE, p.At)
		})
	}
	for _, q := range t.Inputs {
		encodeBytes(e, fInput, q.ID)
	}
	for _, s := range t.Transitions {
		e.group(fTransition, func(e *encoder) {
			e.time(gA, s.At)
			encodeBytes(e, gB, s.Status)
			encodeBytes(e, gC, s.Message)
			encodeBytes(e, gD, s.Note)
		})
	}
	e.number(fPolls, int64(t.Polls))
	e.number(fPushes, int64(t.Pushes))
	return e.b
}

var errDoc = errors.New("a record of the journal cannot be read")

// A decoder reads kept tasks. It shares the words that they have in common.
type decoder struct {
	words  map[string]string
	server string // label
	steps  []taskmodel.Transition
}

func newDecoder(label string) *decoder { return &decoder{words: map[string]string{}, server: label} }

// word gives one string for all equal ones; of those that are too many, copies.
func (d *decoder) word(b []byte) string {
	if s, ok := d.words[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(d.words) < 4096 {
		d.words[s] = s
	}
	return s
}

// A fieldReader goes through the fields of a value. It is a loop of its caller's
// and no function that is called for each, since ten thousand tasks have a
// quarter of a million fields.
type fieldReader struct {
	rest  []byte
	field int
	v     int64  // the number, or the length
	b     []byte // the bytes, a part of the value
	bad   bool   // the value is none
}

func (r *fieldReader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	tag, ok := r.uvarint()
	if !ok || tag>>1 > 1<<20 {
		return r.broken()
	}
	r.field = int(tag >> 1)
	v, ok := r.uvarint()
	if !ok {
		return r.broken()
	}
	if tag&1 == 0 {
		r.v, r.b = int64(v>>1), nil // a varint's zigzag
		if v&1 != 0 {
			r.v = ^r.v
		}
		return true
	}
	if v > uint64(len(r.rest)) {
		return r.broken()
	}
	r.v, r.b, r.rest = int64(v), r.rest[:v], r.rest[v:]
	return true
}

func (r *fieldReader) uvarint() (uint64, bool) {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // most of them
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v), true
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		return 0, false
	}
	r.rest = r.rest[n:]
	return v, true
}

func (r *fieldReader) broken() bool {
	r.rest, r.bad = nil, true
	return false
}

func (r *fieldReader) err() error {
	if r.bad {
		return errDoc
	}
	return nil
}

// task reads a kept task. It keeps nothing of b.
func (d *decoder) task(b []byte) (t taskmodel.Task, err error) {
	err = d.read(&t, b)
	return t, err
}

// read is task into a zero value, which is of no use after an error.
func (d *decoder) read(t *taskmodel.Task, b []byte) error {
	t.Server, t.Role = d.server, taskmodel.Requestor
	d.steps = d.steps[:0]
	r := fieldReader{rest: b}
	for r.next() {
		v, b := r.v, r.b
		switch r.field {
		case fID:
			t.ID = string(b)
		case fReceiver:
			t.Role = taskmodel.Receiver
		case fGeneration:
			t.Generation = taskmodel.Generation(d.word(b))
		case fStatus:
			t.Status = taskmodel.Status(d.word(b))
		case fMessage:
			t.StatusMessage = d.word(b)
		case fCreated:
			t.CreatedAt = theirs(v)
		case fUpdated:
			t.LastUpdatedAt = theirs(v)
		case fTTLKnown:
			t.TTL.Known = true
		case fTTLUnlimited:
			t.TTL.Unlimited = true
		case fTTL:
			t.TTL.Duration = time.Duration(v)
		case fPoll:
			t.PollInterval = time.Duration(v)
		case fParent:
			t.ParentID = string(b)
		case fChild:
			c, err := child(b)
			if err != nil {
				return err
			}
			t.Children = append(t.Children, c)
		case fModelNote:
			t.ModelNote = string(b)
		case fRaw:
			t.Raw = clone(b)
		case fLenient:
			t.Lenient = append(t.Lenient, d.word(b))
		case fTool:
			t.Tool = d.word(b)
		case fArgs:
			t.Args = clone(b)
		case fAskedTTLKnown:
			t.AskedTTL.Known = true
		case fAskedTTLUnlimited:
			t.AskedTTL.Unlimited = true
		case fAskedTTL:
			t.AskedTTL.Duration = time.Duration(v)
		case fOurs:
			t.Ours = true
		case fOwner:
			t.Owner = d.word(b)
		case fTap:
			t.Tap = d.word(b)
		case fFirstHeard:
			t.FirstHeardAt = local(v)
		case fLastHeard:
			t.LastHeardAt = local(v)
		case fEnded:
			t.EndedAt = local(v)
		case fStatusSince:
			t.StatusSince = local(v)
		case fStanding:
			t.Standing = taskmodel.Standing(d.word(b))
		case fStandingSince:
			t.StandingSince = local(v)
		case fNote:
			t.Note = d.word(b)
		case fCancelRequested:
			t.CancelRequested = local(v)
		case fCancelNote:
			t.CancelNote = d.word(b)
		case fProgress:
			p, err := d.progress(b)
			if err != nil {
				return err
			}
			t.Progress = p
		case fInput:
			t.Inputs = append(t.Inputs, taskmodel.QuestionID{Server: d.server, ID: string(b)})
		case fTransition:
			s, err := d.transition(b)
			if err != nil {
				return err
			}
			d.steps = append(d.steps, s)
		case fPolls:
			t.Polls = int(v)
		case fPushes:
			t.Pushes = int(v)
		}
	}
	if len(d.steps) > 0 {
		t.Transitions = slices.Clone(d.steps)
	}
	return r.err()
}

func clone(b []byte) json.RawMessage { return append(json.RawMessage(nil), b...) }

func child(b []byte) (c taskmodel.Child, err error) {
	r := fieldReader{rest: b}
	for r.next() {
		switch r.field {
		case gA:
			c.ID = string(r.b)
		case gB:
			c.Required = true
		case gC:
			c.Raw = clone(r.b)
		}
	}
	return c, r.err()
}

func (d *decoder) progress(b []byte) (*taskmodel.Progress, error) {
	p := new(taskmodel.Progress)
	r := fieldReader{rest: b}
	for r.next() {
		switch r.field {
		case gA:
			p.Value = math.Float64frombits(uint64(r.v))
		case gB:
			p.Total = math.Float64frombits(uint64(r.v))
		case gC:
			p.HasTotal = true
		case gD:
			p.Message = d.word(r.b)
		case gE:
			p.At = local(r.v)
		}
	}
	return p, r.err()
}

func (d *decoder) transition(b []byte) (s taskmodel.Transition, err error) {
	r := fieldReader{rest: b}
	for r.next() {
		switch r.field {
		case gA:
			s.At = local(r.v)
		case gB:
			s.Status = taskmodel.Status(d.word(r.b))
		case gC:
			s.Message = d.word(r.b)
		case gD:
			s.Note = d.word(r.b)
		}
	}
	return s, r.err()
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

// local and theirs read times back: ours in the local zone, a server's in UTC.
func local(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func theirs(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func roleNumber(r taskmodel.Role) int {
	if r == taskmodel.Receiver {
		return 1
	}
	return 0
}

func roleOf(n int) taskmodel.Role {
	if n == 1 {
		return taskmodel.Receiver
	}
	return taskmodel.Requestor
}
