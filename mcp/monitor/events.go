package monitor

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// A hub hands events to those who listen. Emitting never blocks: each listener
// has a queue of its own and a goroutine that empties it.
type hub struct {
	mu     sync.Mutex
	subs   map[*subscriber]bool
	closed bool
	wg     sync.WaitGroup
}

type subscriber struct {
	mu      sync.Mutex
	queue   []taskmodel.Event
	prog    map[taskmodel.Key]int // index in queue of a progress that waits: it may be replaced
	thinned int                   // how many were left by the last thin
	wake    chan struct{}
	stop    chan struct{}
	once    sync.Once
	end     bool // no more will come
	out     chan taskmodel.Event
}

func newHub() *hub { return &hub{subs: map[*subscriber]bool{}} }

// Events streams what happens from now on, in order; stop ends it. The channel
// is closed after stop, or when the monitor has ended and all was read. A reader
// that is slower than the buffer loses nothing but progress reports that newer
// ones have overtaken.
func (m *Monitor) Events(buffer int) (events <-chan taskmodel.Event, stop func()) {
	s := &subscriber{
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
		prog: map[taskmodel.Key]int{}, out: make(chan taskmodel.Event, max(buffer, 1)),
	}
	h := m.hub
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		close(s.out)
		return s.out, func() {}
	}
	h.subs[s] = true
	h.wg.Add(1)
	h.mu.Unlock()
	go func() {
		defer h.wg.Done()
		s.pump()
		h.mu.Lock()
		delete(h.subs, s)
		h.mu.Unlock()
	}()
	return s.out, func() { s.once.Do(func() { close(s.stop) }) }
}

func (s *subscriber) pump() {
	defer close(s.out)
	for {
		s.mu.Lock()
		batch, end := s.queue, s.end
		s.queue = nil
		clear(s.prog)
		s.mu.Unlock()
		for _, e := range batch {
			select {
			case s.out <- e:
			case <-s.stop:
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		if end {
			return
		}
		select {
		case <-s.wake:
		case <-s.stop:
			return
		}
	}
}

func (s *subscriber) put(events []taskmodel.Event) {
	s.mu.Lock()
	for _, e := range events {
		if e.Kind == taskmodel.EventProgress && e.Task.ID != "" {
			// The numbers stay in order: the newer one takes the last place.
			if i, ok := s.prog[e.Task]; ok && i == len(s.queue)-1 {
				s.queue[i] = e
				continue
			}
			s.prog[e.Task] = len(s.queue)
		}
		s.queue = append(s.queue, e)
	}
	if len(s.queue) > crowd && len(s.queue) > 2*s.thinned {
		s.thin()
	}
	s.mu.Unlock()
	s.ring()
}

// crowd is how many events may wait for a slow reader before progress reports
// that newer ones have overtaken are dropped.
const crowd = 1 << 14

func (s *subscriber) thin() {
	last := map[taskmodel.Key]int{}
	for i, e := range s.queue {
		if e.Kind == taskmodel.EventProgress {
			last[e.Task] = i
		}
	}
	kept := s.queue[:0]
	for i, e := range s.queue {
		if e.Kind != taskmodel.EventProgress || last[e.Task] == i {
			kept = append(kept, e)
		}
	}
	clear(s.queue[len(kept):])
	s.queue, s.thinned = kept, len(kept)
	clear(s.prog)
}

func (s *subscriber) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (h *hub) emit(events []taskmodel.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		s.put(events)
	}
}

// readersGrace is how long the end waits for those who still read events.
const readersGrace = 200 * time.Millisecond

// close ends all listeners after they have read what waits, if they read at
// all: those that do not within the grace are ended.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	subs := make([]*subscriber, 0, len(h.subs))
	for s := range h.subs {
		subs = append(subs, s)
	}
	h.mu.Unlock()
	for _, s := range subs {
		s.mu.Lock()
		s.end = true
		s.mu.Unlock()
		s.ring()
	}
	done := make(chan struct{})
	go func() { h.wg.Wait(); close(done) }()
	timer := time.NewTimer(readersGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		for _, s := range subs {
			s.once.Do(func() { close(s.stop) })
		}
		<-done
	}
}

// emit numbers an event. It is handed out with the next version of the board,
// so that who hears of something finds it there.
func (m *Monitor) emit(e taskmodel.Event) taskmodel.Event {
	m.seq++
	e.Seq = m.seq
	if m.hub.heard() {
		m.outbox = append(m.outbox, e)
	}
	m.touch()
	return e
}

// heard reports whether anybody listens.
func (h *hub) heard() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) > 0
}

// history emits an event about a task and writes it into the journal with the
// task as it is now. extra is added to the entry.
func (m *Monitor) history(s *server, e taskmodel.Event, extra func(*journal.Entry)) {
	if t, ok := m.board.Task(e.Task); ok {
		m.historyOf(s, e, &t, extra)
		return
	}
	m.historyOf(s, e, nil, extra)
}

// historyOf is history for those who have the task at hand, as it is on the
// board; nil: it is not there.
func (m *Monitor) historyOf(s *server, e taskmodel.Event, t *taskmodel.Task, extra func(*journal.Entry)) {
	e = m.emit(s.audited(e, t))
	if m.o.Journal == nil {
		return
	}
	entry := journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Key: e.Task, Event: &e}
	if t != nil {
		kept := s.censored(*t)
		entry.Task = &kept
	}
	if extra != nil {
		extra(&entry)
	}
	delete(m.unsaved, e.Task)
	m.o.Journal.Queue(entry)
}

// audited adds to an event what the audit trail is asked about later: with
// which tool and arguments a task of ours was made, and how often it was polled
// and pushed until it ended.
func (s *server) audited(e taskmodel.Event, t *taskmodel.Task) taskmodel.Event {
	switch {
	case e.Kind == taskmodel.EventCreated && s.making != nil:
		e.Detail = adding(e.Detail, s.making)
		s.making = nil
	case t == nil:
	case e.Kind == taskmodel.EventStatus && t.Terminal(), e.Kind == taskmodel.EventGone:
		e.Detail = adding(e.Detail, map[string]any{"polls": t.Polls, "pushes": t.Pushes})
	case e.Kind == taskmodel.EventResult && t.Terminal():
		e.Status = t.Status
	}
	return e
}

// adding adds members to an event's detail.
func adding(detail json.RawMessage, more map[string]any) json.RawMessage {
	m := map[string]any{}
	if len(detail) > 0 && json.Unmarshal(detail, &m) != nil {
		return detail
	}
	maps.Copy(m, more)
	b, err := json.Marshal(m)
	if err != nil {
		return detail
	}
	return b
}

// save writes a task's row into the journal within a second; several changes
// in that time are one write.
func (m *Monitor) save(k taskmodel.Key) {
	if m.o.Journal == nil {
		return
	}
	m.unsaved[k] = true
	if !m.alarms.isSet(m.saver) {
		m.alarms.set(m.saver, m.now().Add(time.Second))
	}
}

func (m *Monitor) saveAll() {
	if m.o.Journal == nil || len(m.unsaved) == 0 {
		return
	}
	entries := make([]journal.Entry, 0, len(m.unsaved))
	for k := range m.unsaved {
		s := m.byName[k.Server]
		t, ok := m.board.Task(k)
		if !ok || s == nil {
			continue
		}
		t = s.censored(t)
		entries = append(entries, journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Key: k, Task: &t})
	}
	clear(m.unsaved)
	m.o.Journal.Queue(entries...)
}

// censored is the task as it may go to the disk.
func (s *server) censored(t taskmodel.Task) taskmodel.Task {
	if !s.keeps(t.Tool) {
		t.Args, t.Raw = nil, nil
	}
	t.Outcome = taskmodel.Outcome{} // goes in an entry of its own
	return t
}

func (s *server) keeps(tool string) bool { return s.spec.Keep == nil || s.spec.Keep(tool) }

// detail is an event's detail object.
func detail(v map[string]any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
