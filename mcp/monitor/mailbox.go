package monitor

import (
	"sync"

	"mcptasks/taskmodel"
)

// A mailbox is how anything reaches the goroutine that owns the board. Putting
// in never blocks. Commands and answers of servers go in as functions, in one
// row; what servers say unasked goes into one lane per server, so that a server
// that floods costs the others nothing.
type mailbox struct {
	mu    sync.Mutex
	cmds  []func()
	lanes []*lane
	wake  chan struct{} // holds one
	shut  bool
}

// A note is one thing that a server said unasked: a snapshot, or anything else
// as a function.
type note struct {
	obs  taskmodel.Observation
	role taskmodel.Role
	do   func()
	n    int // how many notifications it stands for
}

// A lane holds the notes of one server in the order of their arrival.
type lane struct {
	box   *mailbox
	notes []note
	first int                        // index of the first note not taken yet
	last  map[string]int             // by task id: index of its last note, where that may be replaced
	prog  map[string]*progressPosted // progress not taken yet, by task id
}

type progressPosted struct{ p taskmodel.Progress }

// laneSoft is how many notes may wait before notes of one task replace each
// other even where the status changed, unless it is an end.
const laneSoft = 1 << 16

// turn is how many notes of one lane are taken before the next lane is.
const turn = 64

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (b *mailbox) lane() *lane {
	l := &lane{box: b, last: map[string]int{}, prog: map[string]*progressPosted{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lanes = append(b.lanes, l)
	return l
}

// post puts a command in; false when the monitor has ended.
func (b *mailbox) post(f func()) bool {
	b.mu.Lock()
	if b.shut {
		b.mu.Unlock()
		return false
	}
	b.cmds = append(b.cmds, f)
	b.mu.Unlock()
	b.ring()
	return true
}

func (b *mailbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// snapshot puts in what a server said of a task. A later statement of the same
// status takes the place of the one that waits, with its count.
func (l *lane) snapshot(role taskmodel.Role, o taskmodel.Observation) {
	b := l.box
	b.mu.Lock()
	if b.shut {
		b.mu.Unlock()
		return
	}
	if i, ok := l.last[o.ID]; ok && i >= l.first {
		old := &l.notes[i]
		crowded := len(l.notes)-l.first > laneSoft && !old.obs.Status.Terminal(taskmodel.GenCore)
		if old.role == role && old.obs.Source == o.Source && (old.obs.Status == o.Status || crowded) &&
			!o.LastUpdatedAt.Before(old.obs.LastUpdatedAt) {
			old.obs = o
			old.n++
			b.mu.Unlock()
			return
		}
	}
	l.notes = append(l.notes, note{obs: o, role: role, n: 1})
	l.last[o.ID] = len(l.notes) - 1
	b.mu.Unlock()
	b.ring()
}

// do puts anything else in; it is about the task id, or none.
func (l *lane) do(task string, f func()) {
	b := l.box
	b.mu.Lock()
	if b.shut {
		b.mu.Unlock()
		return
	}
	l.notes = append(l.notes, note{do: f})
	delete(l.last, task)
	b.mu.Unlock()
	b.ring()
}

// progress puts in a task's progress; what waits is replaced.
func (l *lane) progress(task string, p taskmodel.Progress, apply func(taskmodel.Progress)) {
	b := l.box
	b.mu.Lock()
	if b.shut {
		b.mu.Unlock()
		return
	}
	if have := l.prog[task]; have != nil {
		have.p = p
		b.mu.Unlock()
		return
	}
	have := &progressPosted{p}
	l.prog[task] = have
	l.notes = append(l.notes, note{do: func() {
		b.mu.Lock()
		p := have.p
		delete(l.prog, task)
		b.mu.Unlock()
		apply(p)
	}})
	b.mu.Unlock()
	b.ring()
}

// take gives what is to be done next: all commands and a turn of each lane.
// lanes[i] belongs to the i-th lane. more says that notes are left.
func (b *mailbox) take(cmds []func(), lanes [][]note) (c []func(), l [][]note, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cmds, b.cmds = b.cmds, cmds[:0]
	for i, ln := range b.lanes {
		n := min(turn, len(ln.notes)-ln.first)
		if i >= len(lanes) {
			lanes = append(lanes, nil)
		}
		lanes[i] = append(lanes[i][:0], ln.notes[ln.first:ln.first+n]...)
		clear(ln.notes[ln.first : ln.first+n])
		ln.first += n
		if ln.first == len(ln.notes) {
			if cap(ln.notes) > 4*turn {
				ln.notes = nil
			}
			ln.notes, ln.first = ln.notes[:0], 0
			clear(ln.last)
		} else {
			more = true
			if ln.first > 16*turn && ln.first > len(ln.notes)/2 {
				ln.compact()
			}
		}
	}
	return cmds, lanes, more
}

// compact drops the notes that were taken, so that a lane that is never empty
// does not grow.
func (l *lane) compact() {
	rest := append([]note(nil), l.notes[l.first:]...)
	for id, i := range l.last {
		if i < l.first {
			delete(l.last, id)
		} else {
			l.last[id] = i - l.first
		}
	}
	l.notes, l.first = rest, 0
}

// close makes the mailbox take nothing more.
func (b *mailbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
	b.cmds = nil
	for _, l := range b.lanes {
		l.notes, l.first = nil, 0
		clear(l.last)
	}
}
