package demo

import (
	"container/heap"
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// The engine runs jobs. It is one state machine behind one mutex: what happens
// in time is a queue ordered by when and by which was put first, and a single
// timer for its head, so that the same seed and the same calls give the same
// run. It knows nothing of any wire.
//
// Listeners are called with the mutex held, in the order of what happened;
// they only queue and never call back into the engine.
type engine struct {
	mu     sync.Mutex
	clock  func() time.Time
	after  func(time.Duration, func()) func() bool
	speed  float64
	rules  rules
	seed   uint64
	idRand *rand.ChaCha8

	check   *checker
	jobs    map[string]*job
	order   []*job // by seq, without the deleted ones
	seq     int
	expired map[string]bool // ids that a TTL removed, the latest only
	buried  []string

	queue  agenda
	queued int
	stop   func() bool
	armed  time.Time
	now    time.Time // while the queue runs: the due time of what runs
	closed bool
	skew   time.Duration // what its clock is wrong by, in what it says of time

	ended func(j *job) // told of each end, with the mutex held; nil: nobody

	listeners []listener // in the order of their numbers
	nextOwner int
}

// A listener hears what happens.
type listener struct {
	owner int
	hear  func(event)
}

// rules are the points in which the generations' engines differ.
type rules struct {
	first       status // the status a task begins with
	ttlFromEnd  bool   // keepAlive counts from the end of the task
	errorFails  bool   // a tool's isError ends the task as failed
	cooperative bool   // cancel may take its time, or come too late
}

const (
	maxTTL        = 24 * time.Hour
	minTTL        = time.Second
	maxUnfinished = 2000 // tasks that a client may have unfinished
	unlimited     = time.Duration(-1)
	remembered    = 1000 // expired ids
)

func newEngine(o Options, r rules) *engine {
	e := &engine{
		clock: o.Now, after: o.AfterFunc, speed: o.Speed, rules: r, seed: o.Seed,
		check: &checker{}, jobs: map[string]*job{}, expired: map[string]bool{},
	}
	if e.clock == nil {
		e.clock = time.Now
	}
	if e.after == nil {
		e.after = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if e.speed <= 0 {
		e.speed = 1
	}
	var key [32]byte
	if e.seed == 0 {
		// Ids are the only thing between a stranger and a task, so without a
		// seed they come from the system's generator.
		_, _ = crand.Read(key[:])
		e.seed = binary.LittleEndian.Uint64(key[:8])
	} else {
		binary.LittleEndian.PutUint64(key[:8], e.seed)
	}
	e.idRand = rand.NewChaCha8(key)
	return e
}

// time is the engine's present.
func (e *engine) time() time.Time {
	if !e.now.IsZero() {
		return e.now
	}
	return e.clock()
}

// said is the present as the server's clock shows it.
func (e *engine) said() time.Time { return e.time().Add(e.skew) }

// scaled is a duration of work at the engine's speed.
func (e *engine) scaled(d time.Duration) time.Duration {
	if d <= 0 || e.speed == 1 {
		return d
	}
	return time.Duration(float64(d) / e.speed)
}

func (e *engine) newID() string {
	var u uuid.UUID
	_, _ = e.idRand.Read(u[:])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u.String()
}

// at puts f on the agenda. The mutex is held, now and when f is called.
func (e *engine) at(due time.Time, f func()) {
	e.queued++
	heap.Push(&e.queue, entry{due: due, n: e.queued, f: f})
	if e.now.IsZero() {
		e.arm()
	}
}

func (e *engine) arm() {
	if e.closed || len(e.queue) == 0 {
		return
	}
	due := e.queue[0].due
	if e.stop != nil {
		if e.armed.Equal(due) {
			return
		}
		e.stop()
	}
	e.armed = due
	e.stop = e.after(max(due.Sub(e.clock()), 0), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		// A clock that stands still must not keep a timer that has run out
		// from having its effect.
		limit := e.clock()
		if limit.Before(due) {
			limit = due
		}
		e.run(limit)
	})
}

// run does what is due up to limit.
func (e *engine) run(limit time.Time) {
	if e.closed {
		return
	}
	for len(e.queue) > 0 && !e.queue[0].due.After(limit) {
		it := heap.Pop(&e.queue).(entry)
		e.now = it.due
		it.f()
	}
	e.now = time.Time{}
	e.stop = nil
	e.arm()
}

// close stops all work. Nothing is told to anybody.
func (e *engine) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.stop != nil {
		e.stop()
	}
	e.queue = nil
	e.listeners = nil
}

// newOwner is the number of a listener to be, which is also the owner number of
// the tasks that it starts. A listener knows its own before it hears anything.
func (e *engine) newOwner() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nextOwner++
	return e.nextOwner
}

// listen registers the listener of this number; f is called under the mutex.
func (e *engine) listen(owner int, f func(event)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listeners = append(e.listeners, listener{owner, f})
}

// leave removes a listener. Questions that it had taken are free again and
// offered to the others; its plain calls end.
func (e *engine) leave(owner int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listeners = slices.DeleteFunc(e.listeners, func(l listener) bool { return l.owner == owner })
	var plain []*job
	for _, j := range e.order {
		if j.hidden && j.owner == owner {
			plain = append(plain, j)
			continue
		}
		for _, q := range j.questions {
			if q.claimed == owner {
				q.claimed = 0
				e.tell(event{kind: asked, job: j, question: q})
			}
		}
	}
	for _, j := range plain {
		e.end(j, outcome{status: cancelled})
	}
}

// here reports whether a listener is still there.
func (e *engine) here(owner int) bool {
	return slices.ContainsFunc(e.listeners, func(l listener) bool { return l.owner == owner })
}

func (e *engine) tell(ev event) {
	for _, l := range e.listeners {
		l.hear(ev)
	}
}

// with calls f with the job of this id, nil when there is none, under the mutex.
func (e *engine) with(id string, f func(j *job)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.jobs[id]
	if j != nil && j.hidden {
		j = nil
	}
	f(j)
}

// page calls f for up to n visible jobs, newest first, beginning below seq
// (0: at the newest). next is the seq to go on with, 0 at the end.
func (e *engine) page(below, n int, f func(j *job)) (next int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var last *job
	for i := len(e.order) - 1; i >= 0; i-- {
		j := e.order[i]
		if j.hidden || below > 0 && j.seq >= below {
			continue
		}
		if n == 0 {
			return last.seq
		}
		f(j)
		last = j
		n--
	}
	return 0
}

// remove deletes a job.
func (e *engine) remove(j *job, byTTL bool) {
	if e.jobs[j.id] != j {
		return
	}
	e.withdraw(j, "the task was deleted")
	delete(e.jobs, j.id)
	for i, have := range e.order {
		if have == j {
			e.order = append(e.order[:i], e.order[i+1:]...)
			break
		}
	}
	j.epoch++
	j.deleted = true
	if byTTL {
		e.expired[j.id] = true
		e.buried = append(e.buried, j.id)
		if len(e.buried) > remembered {
			delete(e.expired, e.buried[0])
			e.buried = e.buried[1:]
		}
	}
	e.tell(event{kind: removed, job: j})
}

// expireAt arranges a job's deletion.
func (e *engine) expireAt(j *job, due time.Time) {
	j.expiry++
	n := j.expiry
	e.at(due, func() {
		if j.expiry == n {
			e.remove(j, true)
		}
	})
}

// An entry of the agenda.
type entry struct {
	due time.Time
	n   int
	f   func()
}

type agenda []entry

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	if !a[i].due.Equal(a[j].due) {
		return a[i].due.Before(a[j].due)
	}
	return a[i].n < a[j].n
}
func (a *agenda) Push(x any) { *a = append(*a, x.(entry)) }
func (a *agenda) Pop() any {
	old := *a
	it := old[len(old)-1]
	old[len(old)-1] = entry{}
	*a = old[:len(old)-1]
	return it
}
