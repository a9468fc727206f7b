package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

const (
	pollFloor   = 500 * time.Millisecond
	pollUnknown = 30 * time.Second // a status that no generation defines
	pollTimeout = 2 * time.Minute
	pushedLeast = 5 * time.Minute // acknowledged pushes: polls only make sure
	pushedEach  = 2 * time.Second // and all of them together stay below one in this time
	failMost    = 5 * time.Minute

	missTries = 3 // "not found" so often in a row before a task is gone
	missFirst = time.Second
	goneFirst = 30 * time.Second // gone tasks are asked for a few times more
	goneTries = 5
)

// pace is the time between two polls of a task: the longest of what the server
// asks for, what the user set, and the floor.
func (s *server) pace(st taskmodel.Status, hint time.Duration) time.Duration {
	d := hint
	if d <= 0 {
		d = s.m.o.PollDefault
	}
	d = max(d, pollFloor, s.m.o.PollMin, s.spec.PollMin)
	if st != "" && !st.Defined(taskmodel.GenDraft) {
		d = max(d, pollUnknown)
	}
	return d
}

// next is when a task that was heard of at the given time is to be polled.
func (s *server) next(w *watch, heard time.Time) time.Time {
	d := w.interval
	if w.pushed {
		d = max(d, pushedLeast, time.Duration(s.pushed)*pushedEach)
	}
	return heard.Add(s.m.jitter(d))
}

// follow sets when a task is polled next, from what was just heard of it.
func (s *server) follow(w *watch, st taskmodel.Status, hint time.Duration, heard time.Time) {
	w.status = st
	w.interval = s.pace(st, hint)
	w.fails, w.missing = 0, 0
	if w.inflight {
		return // its answer sets the time
	}
	s.setDue(w, s.next(w, heard), st == taskmodel.InputRequired)
	s.showNext(w)
	s.arm()
}

// showNext puts the time of the next poll on the rows that are looked at; for
// the others nobody asks.
func (s *server) showNext(w *watch) {
	if !s.inFocus[w.id] {
		return
	}
	s.m.board.Change(s.key(w.id), s.m.now(), func(t *taskmodel.Task) { t.NextPollAt = w.due })
	s.m.touch()
}

// pollNow makes a task due at once.
func (s *server) pollNow(k taskmodel.Key) {
	if w := s.watches[k.ID]; w != nil && !w.inflight && k.Role == taskmodel.Requestor {
		s.setDue(w, s.m.now(), w.urgent)
		s.arm()
	}
}

// arm sets the scheduler's alarm to the first task that is due and may go.
func (s *server) arm() {
	if s.client == nil || s.m.paused.Load() {
		return
	}
	at, ok := s.firstDue()
	if !ok {
		return
	}
	if b := s.blocked(); at.Before(b) {
		at = b
	}
	if s.m.alarms.isSet(s.poller) && !at.Before(s.poller.at) {
		return
	}
	s.m.alarms.set(s.poller, at)
}

func (s *server) firstDue() (time.Time, bool) {
	var at time.Time
	ok := false
	for _, h := range []watchHeap{s.urgent, s.due} {
		if len(h) > 0 && (!ok || h[0].due.Before(at)) {
			at, ok = h[0].due, true
		}
	}
	return at, ok
}

// blocked is until when nothing may be polled.
func (s *server) blocked() time.Time {
	if s.paced.After(s.hold) {
		return s.paced
	}
	return s.hold
}

// schedule polls what is due, as far as the cap on calls in flight allows: the
// focus first, then what waits for input, then the others by their time.
func (s *server) schedule() {
	m := s.m
	now := m.now()
	if s.client == nil || m.paused.Load() {
		return
	}
	if !s.paced.IsZero() && !now.Before(s.paced) {
		s.paced = time.Time{}
		s.change(func(r *taskmodel.Server) { r.PacedUntil = time.Time{} })
	}
	if now.Before(s.blocked()) {
		s.arm()
		return
	}
	if s.holds > 0 {
		s.probe()
		return
	}
	for _, id := range s.focus {
		if w := s.watches[id]; w != nil && w.index >= 0 && !w.due.After(now) && s.inflight <= m.o.PollCap {
			s.poll(w)
		}
	}
	for s.inflight < m.o.PollCap && len(s.urgent) > 0 && !s.urgent[0].due.After(now) {
		s.poll(s.urgent[0])
	}
	if s.list == nil && s.worthListing(now) {
		s.startListing(false)
	}
	for s.inflight < m.o.PollCap && len(s.due) > 0 && !s.due[0].due.After(now) {
		w := s.due[0]
		if s.list != nil && w.sweep != s.list.no && (w.listed || s.list.first) && now.Sub(w.due) < w.interval {
			// A listing that runs is about to tell. Looked at again shortly.
			m.alarms.set(s.poller, now.Add(pollFloor/2))
			return
		}
		s.poll(w)
	}
	if s.inflight < m.o.PollCap {
		s.arm()
	}
}

// probe sends one poll to a server that failed, to see whether it is back.
func (s *server) probe() {
	if s.probing {
		return
	}
	h := &s.urgent
	if len(*h) == 0 {
		h = &s.due
	}
	if len(*h) == 0 {
		return // recheck looks after it
	}
	s.probing = true
	s.poll((*h)[0])
}

// poll sends one tasks/get.
func (s *server) poll(w *watch) {
	m := s.m
	s.unheap(w)
	w.inflight = true
	s.inflight++
	s.polls.add(m.now(), 1)
	s.counted()
	c, conn, ctx := s.client, s.conn, s.connCtx
	asked := m.now()
	m.spawn(func() {
		ctx, stop := context.WithTimeout(ctx, pollTimeout)
		snap, err := c.Tasks().Get(ctx, w.id)
		stop()
		heard := m.now()
		m.post(func() { s.polled(w, conn, asked, heard, snap, err) })
	})
}

// polled takes the answer to a poll.
func (s *server) polled(w *watch, conn int, asked, heard time.Time, snap taskmodel.Snapshot, err error) {
	if conn == s.conn {
		s.inflight--
		s.probing = false
		w.inflight = false
	}
	if s.watches[w.id] != w || conn != s.conn {
		s.heard(conn, err)
		if conn == s.conn {
			s.schedule()
		}
		return
	}
	s.heard(conn, err)
	switch {
	case err == nil:
		s.observe(taskmodel.Requestor, taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromGet, AskedAt: asked, HeardAt: heard})
	case errors.Is(err, mcp.ErrNotFound):
		s.notFound(w, err, heard)
	case conn != s.conn, errors.Is(err, mcp.ErrClosed):
		// The end of the connection says it, for all tasks.
	default:
		s.failed(w, err, heard)
	}
	if w := s.watches[w.id]; w != nil && w.index < 0 && !w.inflight {
		// The answer was stale, or the connection went: it is still to be polled.
		s.setDue(w, s.next(w, heard), w.urgent)
	}
	s.schedule()
}

// failed: a poll failed. The status stays; the standing says that it cannot be
// trusted (field fault S7).
func (s *server) failed(w *watch, err error, now time.Time) {
	w.fails++
	wait := max(w.interval, s.m.backoff(w.fails-1, pollFloor, failMost))
	s.setDue(w, now.Add(s.m.jitter(wait)), w.urgent)
	words := "polls fail, retrying: " + err.Error()
	if notVisible(err) {
		words = "not visible to this sign-in: " + err.Error()
	}
	s.standing(w.id, taskmodel.Stale, words)
	s.showNext(w)
}

// standing changes how far a task's status can be trusted.
func (s *server) standing(id string, st taskmodel.Standing, why string) {
	m := s.m
	k := s.key(id)
	anew := false
	for _, e := range m.board.Change(k, m.now(), func(t *taskmodel.Task) {
		if st == taskmodel.Stale && (t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired) {
			return
		}
		anew = t.Standing != st || t.Note != why
		t.Standing, t.Note = st, why
	}) {
		if e.Kind == taskmodel.EventGone {
			m.history(s, e, nil)
		} else {
			m.emit(e)
		}
	}
	if anew {
		s.saveFor(k)
	}
	m.touch()
}

// saveFor writes down a standing for the processes that show what this one hears.
// Where each process asks for itself, it finds it itself.
func (s *server) saveFor(k taskmodel.Key) {
	if s.lease.held {
		s.m.save(k)
	}
}

// notFound: the server says that it does not know the task. It is asked a few
// times more, since a server that starts again may not have read its own memory
// yet (field faults S8, S9); then the task is expired or gone, never failed.
func (s *server) notFound(w *watch, err error, now time.Time) {
	t, ok := s.m.board.Task(s.key(w.id))
	if !ok {
		s.unwatch(w.id)
		return
	}
	w.missing++
	at, bounded := t.ExpiresAt()
	over := bounded && !at.After(now)
	lost := t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired
	switch {
	case lost:
		if w.missing >= missTries+goneTries {
			// Nothing is asked any more; a listing may still bring it back.
			s.unwatch(w.id)
			return
		}
		s.setDue(w, now.Add(s.m.backoff(w.missing-missTries, goneFirst, failMost)), false)
	case over || w.missing >= missTries:
		s.vanished(w.id, over)
		if w := s.watches[w.id]; w != nil {
			w.missing = max(w.missing, missTries)
			s.setDue(w, now.Add(s.m.backoff(0, goneFirst, failMost)), false)
		}
	default:
		s.setDue(w, now.Add(max(w.interval, s.m.backoff(w.missing, missFirst, failMost))), w.urgent)
		s.standing(w.id, taskmodel.Stale, "the server says that it does not know this task; asking again: "+err.Error())
	}
}

// vanished says that a task is not known to its server any more.
func (s *server) vanished(id string, over bool) {
	st, why := taskmodel.Gone, "the server does not know this task any more; its outcome is unknown"
	switch {
	case over:
		st, why = taskmodel.Expired, "its time to live was over and the server has dropped it; its outcome is unknown"
	case s.startedByOther(id):
		why = "not visible to this sign-in: it was known under another one, and this one is told that there is no such task; its outcome is unknown"
	case s.lost || s.heardInAnother(id):
		why = "not known to this session: the server has forgotten the session in which the task ran; its outcome is unknown"
	}
	if t, ok := s.m.board.Task(s.key(id)); ok && t.Terminal() {
		// What it came to is known.
		why = "the server has dropped this task; what is shown was heard before"
	}
	s.standing(id, st, why)
	s.closeQuestions(s.key(id), "the task is gone: the server does not know it any more")
	s.release(id)
}

// heardInAnother reports whether a task was last heard of before the present
// session began: another process may have found the old one forgotten.
func (s *server) heardInAnother(id string) bool {
	t, ok := s.m.board.Task(s.key(id))
	return ok && s.session != nil && s.session.ID != "" && t.LastHeardAt.Before(s.session.Since)
}

// startedByOther reports whether a task was known before the sign-in became
// another one.
func (s *server) startedByOther(id string) bool {
	t, ok := s.m.board.Task(s.key(id))
	return ok && !s.stranger.IsZero() && t.FirstHeardAt.Before(s.stranger)
}

// Poll asks for one task's state out of turn and gives it as it is then. A task
// that the server does not know comes with its standing and no error.
func (m *Monitor) Poll(ctx context.Context, k taskmodel.Key) (taskmodel.Task, error) {
	s, err := m.server(k.Server)
	if err != nil {
		return taskmodel.Task{}, err
	}
	t, err := m.task(ctx, k)
	if err != nil || k.Role == taskmodel.Receiver {
		return t, err
	}
	if held, herr := s.heldBy(ctx); herr != nil {
		return t, herr
	} else if held {
		_, err := s.viaHolder(ctx, "poll", k, nil)
		if errors.Is(err, errNotBegun) {
			return m.Poll(ctx, k)
		}
		if err != nil && !s.sessionOver(ctx, k) {
			return t, err
		}
		return m.task(ctx, k)
	}
	if err := s.look(ctx, k.ID); err != nil {
		return t, err
	}
	return m.task(ctx, k)
}

// look makes one tasks/get out of turn, with a few tries where the server does
// not know the task, and puts what it says on the board.
func (s *server) look(ctx context.Context, id string) error {
	m := s.m
	var snap taskmodel.Snapshot
	var asked time.Time
	var err error
	for try := 1; try <= missTries; try++ {
		err = s.read(ctx, func(ctx context.Context, c client) (err error) {
			asked = m.now()
			snap, err = c.Tasks().Get(ctx, id)
			return err
		})
		if !errors.Is(err, mcp.ErrNotFound) {
			break
		}
		if try < missTries && !pause(ctx, missFirst/4) {
			break
		}
	}
	heard := m.now()
	derr := m.do(ctx, func() {
		s.polls.add(heard, 1)
		s.counted()
		switch {
		case err == nil:
			s.observe(taskmodel.Requestor, taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromGet, AskedAt: asked, HeardAt: heard})
		case errors.Is(err, mcp.ErrNotFound):
			if t, ok := m.board.Task(s.key(id)); ok {
				at, bounded := t.ExpiresAt()
				s.vanished(id, bounded && !at.After(heard))
				if w := s.watches[id]; w != nil && !w.inflight {
					w.missing = max(w.missing, missTries)
					s.setDue(w, heard.Add(m.backoff(0, goneFirst, failMost)), false)
				}
				err = nil
			}
		}
	})
	if derr != nil {
		return derr
	}
	return err
}

// pause waits; false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// task reads a task from the board as it is now.
func (m *Monitor) task(ctx context.Context, k taskmodel.Key) (taskmodel.Task, error) {
	var t taskmodel.Task
	var ok bool
	if err := m.do(ctx, func() { t, ok = m.board.Task(k) }); err != nil {
		return t, fmt.Errorf("%s: looking at %s: %w", k.Server, k, err)
	}
	if !ok {
		return t, noTask(k)
	}
	return t, nil
}

// Pause stops all polls, or lets them go on; what servers push is still heard.
func (m *Monitor) Pause(on bool) {
	m.paused.Store(on)
	m.post(func() {
		for _, s := range m.servers {
			s.arm()
		}
		m.touch()
	})
}

// Paused reports whether polls are stopped.
func (m *Monitor) Paused() bool { return m.paused.Load() }

// Focus says which tasks to look at first.
func (m *Monitor) Focus(keys []taskmodel.Key) {
	own := append([]taskmodel.Key(nil), keys...)
	m.post(func() {
		for _, s := range m.servers {
			s.focus = s.focus[:0]
			clear(s.inFocus)
		}
		for _, k := range own {
			if s := m.byName[k.Server]; s != nil && k.Role == taskmodel.Requestor {
				s.focus = append(s.focus, k.ID)
				s.inFocus[k.ID] = true
				if w := s.watches[k.ID]; w != nil {
					s.showNext(w)
				}
			}
		}
	})
}
