package monitor

import (
	"context"
	"errors"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// restore reads what is known from earlier runs and then goes on with next, on
// the loop.
func (s *server) restore(next func()) {
	m := s.m
	if m.o.Journal == nil {
		next()
		return
	}
	m.spawn(func() {
		r, err := m.o.Journal.Restore(m.ctx, s.spec.Target)
		m.post(func() {
			if err != nil {
				m.log.Warn("reading the journal", "server", s.spec.Name, "err", err)
				s.change(func(r *taskmodel.Server) {
					r.Warning = join(r.Warning, "what was known from earlier runs could not be read: "+err.Error())
				})
			} else {
				s.restored(r)
			}
			m.alarms.set(s.lease.tick, m.now().Add(leaseEvery))
			next()
		})
	})
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// restored puts what was read on the board: tasks, questions, and the answers
// that were not delivered, which are offered again and never sent by the
// program.
func (s *server) restored(r journal.Restored) {
	s.session = r.Session
	s.lease.since = r.Change
	s.heir = true
	for _, t := range r.Tasks {
		s.adopt(t)
		if s.client == nil && s.row.Generation == taskmodel.GenNone && t.Generation != "" && t.Generation != taskmodel.GenNone {
			// Until a connection says so itself.
			s.change(func(r *taskmodel.Server) { r.Generation = t.Generation })
		}
	}
	if r.Session != nil && s.client == nil && s.row.ProtocolVersion == "" {
		s.change(func(row *taskmodel.Server) { row.ProtocolVersion = r.Session.Version })
	}
	undelivered := map[string]taskmodel.Answer{}
	for _, a := range r.Answers {
		undelivered[a.Question.ID] = a
	}
	for _, q := range r.Questions {
		q.ID.Server = s.spec.Name
		if q.Task.ID != "" {
			q.Task.Server = s.spec.Name
		}
		if a, had := undelivered[q.ID.ID]; had && q.Draft == nil {
			q.Draft = a.Content
		}
		s.m.board.PutQuestion(q)
		s.was[q.ID] = 0
	}
	s.m.touch()
}

// adopt puts a task from the journal on the board if it is not there.
func (s *server) adopt(t taskmodel.Task) {
	m := s.m
	t.Server = s.spec.Name
	if t.Role == "" {
		t.Role = taskmodel.Requestor
	}
	if old, ok := m.board.Task(t.Key); ok {
		if old.Standing != taskmodel.Restored {
			return
		}
	} else {
		s.count++
	}
	m.board.Insert(t)
	if !t.Terminal() && t.Role == taskmodel.Requestor {
		w := s.watch(t)
		if t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
			w.missing = missTries // one look more, then slowly
		}
		s.setDue(w, m.now(), t.Status == taskmodel.InputRequired)
	}
}

const (
	leaseEvery  = time.Second
	leaseLimit  = 900 * time.Millisecond // a slow disk must not pile up
	stdioLease  = "stdio"
	changesMost = 10_000
)

// A lease is the right to connect to a server as far as other processes on the
// same journal are concerned: one holds it, the others show what it writes.
type lease struct {
	session string // what is leased: the HTTP session, "stdio", or "" when nothing is
	held    bool
	holder  string // in words, when another has it
	since   int64  // for Changes
	busy    bool
	tick    *alarm
}

// heldElsewhere reports whether another process holds the server.
func (l *lease) heldElsewhere() bool { return l.holder != "" }

// enter connects, if no other process holds the server.
func (s *server) enter() {
	m := s.m
	if m.o.Journal == nil || s.spec.Dialer == nil {
		s.dial()
		return
	}
	switch {
	case s.spec.Dialer.Kind() == "stdio":
		s.lease.session = stdioLease
	case s.session != nil && s.session.ID != "" && !s.session.Ended:
		s.lease.session = s.session.ID
	default:
		s.lease.session = ""
	}
	if s.lease.session == "" {
		s.dial()
		return
	}
	session := s.lease.session
	s.state(taskmodel.ServerConnecting, "")
	m.spawn(func() {
		ctx, stop := context.WithTimeout(m.ctx, 5*time.Second)
		h, ok, err := m.o.Journal.Acquire(ctx, s.spec.Target, session)
		stop()
		m.post(func() {
			if !s.want {
				return
			}
			if err != nil {
				m.log.Warn("taking the lease", "server", s.spec.Name, "err", err)
				ok = true // without a journal that works, nobody can be asked
			}
			if s.lease.session == session {
				s.leased(ok, h)
			}
		})
	})
}

// leased takes what became of taking or renewing the lease.
func (s *server) leased(ok bool, h journal.Holder) {
	switch {
	case ok && s.lease.heldElsewhere():
		// Its holder is gone. What it wrote last counts, its session too.
		s.lease.holder, s.lease.held = "", true
		s.takeOver()
	case ok:
		s.lease.held = true
		if s.client == nil && !s.dialling && !s.m.alarms.isSet(s.retry) {
			s.dial()
		}
	case !s.lease.heldElsewhere() || s.lease.holder != holderWords(h):
		s.lease.held, s.lease.holder = false, holderWords(h)
		if s.client != nil || s.dialling {
			s.drop(false)
		}
		s.m.alarms.drop(s.retry)
		s.change(func(r *taskmodel.Server) { r.HeldBy = s.lease.holder })
		s.state(taskmodel.ServerOff, "held by "+s.lease.holder+", which does what is asked for here")
		s.borrow()
	}
}

// borrow marks what was read from the journal as what it is while another
// process holds the server: that process hears of it, and writes it down.
func (s *server) borrow() {
	for id := range s.watches {
		s.m.board.Change(s.key(id), s.m.now(), func(t *taskmodel.Task) {
			t.Owner = "held by " + s.lease.holder
			if t.Standing == taskmodel.Restored || t.Standing == taskmodel.Stale {
				t.Standing, t.Note = taskmodel.Live, ""
			}
		})
	}
	s.m.touch()
}

// takeOver reads the journal again and connects. What the other process had is
// known from before until it is heard of here.
func (s *server) takeOver() {
	for id := range s.watches {
		s.m.board.Change(s.key(id), s.m.now(), func(t *taskmodel.Task) {
			t.Owner = ""
			if t.Standing == taskmodel.Live && !t.Terminal() {
				t.Standing, t.Note = taskmodel.Restored, "known from "+s.row.HeldBy
			}
		})
	}
	s.change(func(r *taskmodel.Server) { r.HeldBy = "" })
	s.restore(func() {
		if s.want {
			s.enter()
		}
	})
}

// claimLease is called when a connection is there: its session is ours. ""
// means that it has none.
func (s *server) claimLease(session string) {
	m := s.m
	if m.o.Journal == nil {
		return
	}
	if session == "" && s.spec.Dialer != nil && s.spec.Dialer.Kind() == "stdio" {
		session = stdioLease
	}
	if s.lease.session == session && (session == "" || s.lease.held) {
		return
	}
	s.releaseLease()
	s.lease.session = session
	if session == "" {
		return
	}
	m.spawn(func() {
		ctx, stop := context.WithTimeout(m.ctx, 5*time.Second)
		_, ok, err := m.o.Journal.Acquire(ctx, s.spec.Target, session)
		stop()
		m.post(func() {
			if s.lease.session == session && err == nil && ok {
				s.lease.held = true
			}
		})
	})
}

// releaseLease gives the lease back, if it is ours.
func (s *server) releaseLease() {
	m := s.m
	if m.o.Journal == nil || !s.lease.held {
		s.lease.session = ""
		return
	}
	session := s.lease.session
	s.lease.session, s.lease.held = "", false
	m.spawn(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if err := m.o.Journal.Release(ctx, s.spec.Target, session); err != nil {
			m.log.Debug("giving a lease back", "server", s.spec.Name, "err", err)
		}
	})
}

// leaseTick renews the lease, takes what others ask for, and reads what they
// wrote. One tick runs at a time.
func (s *server) leaseTick() {
	m := s.m
	m.alarms.set(s.lease.tick, m.now().Add(leaseEvery))
	if s.lease.busy {
		return
	}
	s.lease.busy = true
	session, want, since := s.lease.session, s.want, s.lease.since
	mine := s.lease.held
	m.spawn(func() {
		ctx, stop := context.WithTimeout(m.ctx, 5*time.Second)
		defer stop()
		var h journal.Holder
		var ok bool
		var lerr, ierr error
		var intents []journal.Intent
		if session != "" && want {
			h, ok, lerr = m.o.Journal.Acquire(ctx, s.spec.Target, session)
			if ok && lerr == nil && mine {
				intents, ierr = m.o.Journal.ClaimIntents(ctx, s.spec.Target, session)
			}
		}
		ch, cerr := m.o.Journal.Changes(ctx, s.spec.Target, since)
		m.post(func() {
			s.lease.busy = false
			if err := errors.Join(lerr, ierr, cerr); err != nil {
				m.log.Debug("journal", "server", s.spec.Name, "err", err)
			}
			if cerr == nil {
				s.changes(ch)
			}
			if session != "" && want && lerr == nil && s.lease.session == session && s.want {
				s.leased(ok, h)
			}
			for _, in := range intents {
				s.carryOut(in)
			}
		})
	})
}

// changes takes what other processes wrote.
func (s *server) changes(c journal.Changes) {
	m := s.m
	s.lease.since = max(s.lease.since, c.Change)
	now := m.now()
	for _, t := range c.Tasks {
		t.Server = s.spec.Name
		if t.Role == "" {
			t.Role = taskmodel.Requestor
		}
		if s.forgot[t.ID] && t.Role == taskmodel.Requestor {
			continue
		}
		old, known := m.board.Task(t.Key)
		switch {
		case s.lease.heldElsewhere():
			s.mirror(t, old, known)
		case !known:
			s.adopt(t)
			s.arm()
			m.touch()
		case t.Role == taskmodel.Requestor:
			// Each process asks for itself here; an end that another heard is an end.
			if t.Terminal() && !old.Terminal() {
				s.observe(t.Role, taskmodel.Observation{Snapshot: snapshotOf(t), Source: taskmodel.FromJournal,
					AskedAt: t.LastHeardAt, HeardAt: t.LastHeardAt})
			}
			if !t.CancelRequested.IsZero() && old.CancelRequested.IsZero() {
				m.board.Change(t.Key, now, func(o *taskmodel.Task) { o.CancelRequested, o.CancelNote = t.CancelRequested, t.CancelNote })
				m.touch()
			}
		}
	}
	for _, q := range c.Questions {
		q.ID.Server = s.spec.Name
		if q.Task.ID != "" {
			q.Task.Server = s.spec.Name
		}
		old, known := m.board.Question(q.ID)
		if known && old.State == q.State || !known && !s.lease.heldElsewhere() && q.State != taskmodel.QuestionAnswered {
			continue
		}
		if known && !s.lease.heldElsewhere() && q.State != taskmodel.QuestionAnswered && q.State != taskmodel.QuestionUnconfirmed {
			continue
		}
		if q.Draft == nil {
			q.Draft = old.Draft
		}
		m.board.PutQuestion(q)
		s.was[q.ID] = s.conn
		m.touch()
		if !known && q.State.Open() {
			m.emit(taskmodel.Event{Time: now, Server: s.spec.Name, Task: q.Task, Kind: taskmodel.EventQuestion, Question: q.ID,
				Message: q.Message, Detail: detail(map[string]any{"key": q.Key, "kind": q.Kind, "message": q.Message})})
		}
	}
	for _, k := range c.Forgotten {
		k.Server = s.spec.Name
		if t, ok := m.board.Task(k); ok {
			s.unwatch(k.ID)
			for _, id := range t.Inputs {
				m.board.DropQuestion(id)
				delete(s.was, id)
			}
			if m.board.Remove(k) {
				s.count--
			}
			s.release(k.ID)
			m.touch()
		}
		if k.Role != taskmodel.Receiver {
			s.forgot[k.ID] = true
		}
	}
}

// mirror shows a row of a server that another process holds.
func (s *server) mirror(t, old taskmodel.Task, known bool) {
	m := s.m
	now := m.now()
	t.Owner = "held by " + s.lease.holder
	if t.Standing == taskmodel.Restored && !t.Terminal() {
		t.Standing = taskmodel.Live // its holder hears of it
	}
	t.Inputs = old.Inputs
	if !known {
		s.count++
	}
	m.board.Insert(t)
	m.touch()
	kind := taskmodel.EventCreated
	switch {
	case !known:
	case old.Status != t.Status || old.StatusMessage != t.StatusMessage:
		kind = taskmodel.EventStatus
	case old.Standing != t.Standing:
		kind = taskmodel.EventStanding
	default:
		kind = ""
	}
	if kind != "" {
		m.emit(taskmodel.Event{Time: now, Server: s.spec.Name, Task: t.Key, Kind: kind, Status: t.Status, Message: t.StatusMessage,
			Detail: detail(map[string]any{"from": old.Status, "status": t.Status, "statusMessage": t.StatusMessage})})
	}
	if t.Terminal() || t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
		s.unwatch(t.ID)
		s.release(t.ID)
	} else if t.Role == taskmodel.Requestor {
		s.watch(t) // without a time: nothing is polled here
	}
}

// snapshotOf is the server's side of a task, as another process heard it.
func snapshotOf(t taskmodel.Task) taskmodel.Snapshot {
	return taskmodel.Snapshot{ID: t.ID, Status: t.Status, StatusMessage: t.StatusMessage, CreatedAt: t.CreatedAt,
		LastUpdatedAt: t.LastUpdatedAt, TTL: t.TTL, PollInterval: t.PollInterval, ParentID: t.ParentID, Children: t.Children,
		ModelNote: t.ModelNote, Raw: t.Raw, Lenient: t.Lenient}
}
