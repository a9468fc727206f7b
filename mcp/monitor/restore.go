package monitor

import (
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// restore reads what is known from earlier runs and then goes on with next, on
// the loop.
func (s *server) restore(next func()) {
	m := s.m
	if m.o.Journal == nil {
		s.remembers()
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
	if s.session != nil && s.row.Identity == "" {
		s.change(func(row *taskmodel.Server) { row.Identity = r.Session.Identity })
	}
	s.lease.since, s.lease.read = r.Change, r.Change
	s.heir = true
	for _, k := range r.Forgotten {
		if k.Role != taskmodel.Receiver {
			s.forget(k.ID)
		}
	}
	for _, t := range r.Tasks {
		if !s.mirrors(t) {
			continue
		}
		if s.tap != nil {
			t.Server = s.spec.Name
			s.mirror(t, taskmodel.Task{}, false)
			continue
		}
		s.adopt(t)
		if s.client == nil && s.row.Generation == taskmodel.GenNone && t.Generation != "" && t.Generation != taskmodel.GenNone {
			// Until a connection says so itself.
			s.change(func(r *taskmodel.Server) { r.Generation = t.Generation })
		}
	}
	if r.Session != nil && s.client == nil && s.row.ProtocolVersion == "" {
		s.change(func(row *taskmodel.Server) { row.ProtocolVersion = r.Session.Version })
	}
	s.inheritDebts(r.Tasks)
	undelivered := map[string]taskmodel.Answer{}
	for _, a := range r.Answers {
		undelivered[a.Question.ID] = a
	}
	for _, q := range r.Questions {
		q.ID.Server = s.spec.Name
		if q.Task.ID != "" {
			q.Task.Server = s.spec.Name
		}
		if !s.asksHere(q) {
			continue
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
	s.settled(t.Key)
	if !t.Terminal() && t.Role == taskmodel.Requestor {
		if !t.CancelRequested.IsZero() && t.CancelNote == "" {
			s.confirmCancel(t.Key)
		}
		w := s.watch(t)
		if t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
			w.missing = missTries // one look more, then slowly
		}
		s.setDue(w, m.now(), t.Status == taskmodel.InputRequired)
	}
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
		if s.forgets(t.ID) && t.Role == taskmodel.Requestor || !s.mirrors(t) {
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
			if !t.CancelRequested.IsZero() && (old.CancelRequested.IsZero() || old.CancelNote == taskmodel.CancelSending) {
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
		if !s.asksHere(q) {
			continue
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
		if _, ok := m.board.Task(q.Task); !ok {
			s.asksEarly(q)
		}
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
			s.forget(k.ID)
		}
	}
}

// mirror shows a row of a server that another process holds.
func (s *server) mirror(t, old taskmodel.Task, known bool) {
	m := s.m
	now := m.now()
	if s.tap == nil {
		if t.Owner = ""; !t.Terminal() {
			t.Owner = "held by " + s.lease.holder
		}
	}
	if t.Standing == taskmodel.Restored && !t.Terminal() {
		t.Standing, t.Note = taskmodel.Live, "" // its holder hears of it
	}
	t.Inputs = old.Inputs
	if !known {
		s.count++
	}
	m.board.Insert(t)
	if !known {
		s.settled(t.Key)
	}
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
