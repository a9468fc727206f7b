package monitor

import (
	"context"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/taskmodel/journal"
)

// restore reads what is known from earlier runs and then goes on with next, on
// the loop. Tasks come onto the board while the rest of them is read.
func (s *server) restore(next func()) {
	m := s.m
	if m.o.Journal == nil {
		s.remembers()
		next()
		return
	}
	m.spawn(func() {
		k := &recall{s: s}
		r, err := k.read()
		m.post(func() {
			if err != nil {
				m.log.Warn("reading the journal", "server", s.spec.Name, "err", err)
				s.change(func(r *taskmodel.Server) {
					r.Warning = join(r.Warning, "what was known from earlier runs could not be read: "+err.Error())
				})
			} else {
				k.done(r)
			}
			m.alarms.set(s.lease.tick, m.now().Add(leaseEvery))
			next()
		})
	})
}

// A recall is one reading of what is known of a server.
type recall struct {
	s    *server
	owed []string // the loop's: tasks of ours that have ended without a result
	n    int      // the loop's: pieces taken
}

// showEvery is how many pieces come onto the board between two versions of it:
// each costs the screen a sort, so that the first is shown, and then few.
const showEvery = 16

// read reads the journal, beside the loop. Tasks that it has handed to the loop in
// pieces are not among those that it returns.
func (k *recall) read() (journal.Restored, error) {
	s := k.s
	j, ok := s.m.o.Journal.(interface {
		RestoreEach(ctx context.Context, target string, f func([]taskmodel.Task)) (journal.Restored, error)
	})
	if !ok || s.tap != nil { // what is tapped is told of task by task
		return s.m.o.Journal.Restore(s.m.ctx, s.spec.Target)
	}
	return j.RestoreEach(s.m.ctx, s.spec.Target, k.piece)
}

// piece takes some of the tasks, beside the loop.
func (k *recall) piece(tasks []taskmodel.Task) {
	s := k.s
	own := tasks[:0]
	var tapped []taskmodel.Task
	for _, t := range tasks {
		t.Server = s.spec.Name
		if t.Tap != "" {
			tapped = append(tapped, t)
			continue
		}
		own = append(own, t)
	}
	batch := board.Prepare(own)
	s.m.post(func() {
		k.adopt(batch)
		for _, t := range tapped {
			if s.mirrors(t) {
				s.adopt(t)
				k.shown(&t)
			}
		}
		if k.n%showEvery == 0 {
			s.m.touch()
		}
		k.n++
	})
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// done puts what was read on the board: tasks, questions, and the answers that
// were not delivered, which are offered again and never sent by the program.
func (k *recall) done(r journal.Restored) {
	s := k.s
	s.session = r.Session
	if s.session != nil && s.row.Identity == "" {
		s.change(func(row *taskmodel.Server) { row.Identity = r.Session.Identity })
	}
	s.lease.since, s.lease.read = r.Change, r.Change
	if s.beside = nil; len(r.Beside) > 0 {
		s.beside = make(map[taskmodel.Key]journal.Standing, len(r.Beside))
		for k, st := range r.Beside {
			k.Server = s.spec.Name
			s.beside[k] = st
		}
	}
	s.heir = true
	for _, f := range r.Forgotten {
		if f.Role != taskmodel.Receiver {
			s.forget(f.ID)
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
		k.shown(&t)
	}
	if r.Session != nil && s.client == nil && s.row.ProtocolVersion == "" {
		s.change(func(row *taskmodel.Server) { row.ProtocolVersion = r.Session.Version })
	}
	s.inheritDebts(k.owed)
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
	s.m.hurry() // this is what a person sees first
}

// shown is called with each task that was put on the board from the journal.
func (k *recall) shown(t *taskmodel.Task) {
	s := k.s
	if s.client == nil && s.row.Generation == taskmodel.GenNone && t.Generation != "" && t.Generation != taskmodel.GenNone {
		// Until a connection says so itself.
		s.change(func(r *taskmodel.Server) { r.Generation = t.Generation })
	}
	if t.Ours && t.Outcome.IsZero() && t.Terminal() {
		k.owed = append(k.owed, t.ID)
	}
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
	s.expect(&t, m.now())
}

// adopt is the server's adopt for a batch.
func (k *recall) adopt(b *board.Batch) {
	s := k.s
	now := s.m.now()
	var settled []taskmodel.Key
	s.m.board.Adopt(b, func(t *taskmodel.Task, known bool) {
		if !known {
			s.count++
		}
		if _, early := s.early[t.Key]; early {
			settled = append(settled, t.Key)
		}
		s.expect(t, now)
		k.shown(t)
	})
	for _, e := range settled {
		s.settled(e)
	}
}

// expect watches a task from the journal if there is more to be heard of it. It
// leaves the board alone.
func (s *server) expect(t *taskmodel.Task, now time.Time) {
	if t.Role != taskmodel.Requestor || t.Terminal() {
		return
	}
	if !t.CancelRequested.IsZero() && t.CancelNote == "" {
		s.confirmCancel(t.Key)
	}
	w := s.watch(*t)
	if t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
		w.missing = missTries // one look more, then slowly
	}
	s.setDue(w, now, t.Status == taskmodel.InputRequired)
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
			restored(&t)
			s.adopt(t)
			s.arm()
			m.touch()
			s.heardBeside(t.Key)
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

// restored takes back what another process says of how far a task can be
// trusted: where each asks for itself, it is yet to be heard of here.
func restored(t *taskmodel.Task) {
	if !t.Terminal() && (t.Standing == taskmodel.Live || t.Standing == taskmodel.Stale && t.Tap == "") {
		t.Standing, t.Note = taskmodel.Restored, "known from an earlier run"
	}
}

// heardBeside tells of a task that another process has made or found since this
// one began. It may have ended before it was read here: nothing more is heard of
// it then, and its result is asked for as if its end had been heard here.
func (s *server) heardBeside(k taskmodel.Key) {
	t, ok := s.m.board.Task(k)
	if !ok {
		return
	}
	s.m.emit(taskmodel.Event{Time: s.m.now(), Server: s.spec.Name, Task: k, Kind: taskmodel.EventCreated, Status: t.Status, Message: t.StatusMessage,
		Detail: detail(map[string]any{"status": t.Status, "statusMessage": t.StatusMessage})})
	if k.Role == taskmodel.Requestor && t.Terminal() {
		s.wantResult(t)
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
	if s.tap != nil && t.Standing == taskmodel.Restored && !t.Terminal() {
		t.Standing, t.Note = taskmodel.Live, "" // that its tap has ended tapOver tells
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
