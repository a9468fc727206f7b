package monitor

import (
	"slices"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// heardPush takes a status that the server told unasked.
func (s *server) heardPush(n *note) {
	if n.obs.ID == "" || s.forgets(n.obs.ID) {
		return
	}
	if n.obs.Source == taskmodel.FromPush {
		s.pushes.add(s.m.now(), n.n)
		s.counted()
		s.pushesCome(true)
	}
	if s.watches[n.obs.ID] == nil && s.count >= s.m.o.MaxTasksPerServer {
		if _, known := s.m.board.Task(s.key(n.obs.ID)); !known {
			return // the listing says that there are more
		}
	}
	s.observe(n.role, n.obs)
}

// observe is the way of every statement of a server about a task: merge,
// schedule, tell, write down.
func (s *server) observe(role taskmodel.Role, o taskmodel.Observation) {
	m := s.m
	o.StatusMessage, o.ModelNote = clipped(o.StatusMessage), clipped(o.ModelNote)
	gen := s.row.Generation
	before := m.board.Len()
	// A glance that finds what is remembered as it was has nothing to write down.
	asItWas := false
	if m.o.Glance {
		t, ok := m.board.Task(taskmodel.Key{Server: s.spec.Name, ID: o.ID, Role: role})
		asItWas = ok && t.Standing == taskmodel.Restored
	}
	now, events := m.board.ObserveTask(s.spec.Name, gen, role, o)
	s.count += m.board.Len() - before
	if len(s.early) > 0 && m.board.Len() > before {
		k := taskmodel.Key{Server: s.spec.Name, ID: o.ID, Role: role}
		if s.settled(k); now != nil { // with its questions
			if t, ok := m.board.Task(k); ok {
				now = &t
			}
		}
	}
	m.touch()
	w := s.watches[o.ID]
	if role == taskmodel.Receiver {
		w = nil
	}
	if len(events) == 0 && w != nil {
		s.follow(w, w.status, o.PollInterval, o.HeardAt)
		if t, ok := m.board.Task(s.key(w.id)); ok && w.ask && t.Status == taskmodel.InputRequired {
			w.ask = false
			s.maybeAsk(w, t)
		}
		return
	}
	k := taskmodel.Key{Server: s.spec.Name, ID: o.ID, Role: role}
	if len(events) == 0 {
		if role == taskmodel.Receiver {
			return
		}
		// Ended, and no news; or taken up again after it was gone.
		if t, ok := m.board.Task(k); ok && !t.Terminal() {
			s.follow(s.watch(t), t.Status, t.PollInterval, o.HeardAt)
		}
		return
	}
	t := *now
	was := taskmodel.Status("")
	if w != nil {
		was = w.status
	}
	for _, e := range events {
		switch {
		case e.Kind == taskmodel.EventStatus && w != nil && was == t.Status:
			m.emit(e) // other words only
			m.save(k)
		case e.Kind == taskmodel.EventStanding:
			m.emit(e)
			if !asItWas {
				m.save(k)
			}
		case e.Kind == taskmodel.EventResult:
			s.keepOutcome(t, e)
		default:
			// A listing brings thousands at once, and would bring them again.
			later := e.Kind == taskmodel.EventCreated && o.Source == taskmodel.FromList && !t.Ours
			if later && m.o.Glance && t.Terminal() {
				m.emit(s.audited(e, now))
				continue
			}
			m.historyOf(s, e, now, func(entry *journal.Entry) { entry.Later = later })
		}
	}
	if role == taskmodel.Receiver {
		return
	}
	if t.Terminal() {
		// An end that a server tells unasked is news, also of a task that was not
		// heard of before it.
		s.over(t, w != nil || o.Source == taskmodel.FromPush && events[0].Kind == taskmodel.EventCreated)
		return
	}
	if w == nil {
		w = s.watch(t)
	}
	s.follow(w, t.Status, t.PollInterval, o.HeardAt)
	switch {
	case t.Status == taskmodel.InputRequired && (was != taskmodel.InputRequired || w.ask):
		w.ask = false
		s.maybeAsk(w, t)
	case t.Status != taskmodel.InputRequired && was == taskmodel.InputRequired:
		s.outlived(t)
	}
}

// watch makes the watch of an unfinished task.
func (s *server) watch(t taskmodel.Task) *watch {
	if w := s.watches[t.ID]; w != nil {
		return w
	}
	w := &watch{id: t.ID, index: -1, status: t.Status, ours: t.Ours}
	w.interval = s.pace(t.Status, t.PollInterval)
	s.watches[t.ID] = w
	s.wantPushes(true)
	return w
}

// over is called when a task has ended. seen says that it was unfinished when
// this process last heard of it.
func (s *server) over(t taskmodel.Task, seen bool) {
	if w := s.watches[t.ID]; w != nil {
		s.unwatch(t.ID)
	}
	if len(t.Inputs) > 0 {
		s.closeQuestions(t.Key, "the task ended as "+string(t.Status))
	}
	if !t.CancelRequested.IsZero() && t.Status != taskmodel.Cancelled && slices.Contains([]string{"", notConfirmed, taskmodel.CancelSending, taskmodel.CancelUnknown}, t.CancelNote) {
		s.cancelNote(t.Key, "too late to cancel: the task ended as "+string(t.Status))
	}
	s.release(t.ID)
	if f := s.results[t.ID]; f != nil {
		if t.Status == taskmodel.Cancelled {
			f.stop() // it may never be answered (field fault S3)
		} else {
			s.m.alarms.at(s.m.now().Add(hungAfter), func() {
				if s.results[t.ID] == f {
					f.hung = true
					f.stop()
				}
			})
		}
	}
	if seen {
		s.wantResult(t)
	}
}

// release wakes those who wait for a task's end.
func (s *server) release(id string) {
	for _, c := range s.ends[id] {
		close(c)
	}
	delete(s.ends, id)
}

// progress takes a progress report.
func (s *server) progress(task, call string, p taskmodel.Progress) {
	m := s.m
	if p.At.IsZero() {
		p.At = m.now()
	}
	if task == "" {
		d := map[string]any{"progress": p.Value, "call": call}
		if p.HasTotal {
			d["total"] = p.Total
		}
		m.emit(taskmodel.Event{Time: p.At, Server: s.spec.Name, Kind: taskmodel.EventProgress, Message: p.Message, Detail: detail(d)})
		return
	}
	for _, e := range m.board.Change(s.key(task), m.now(), func(t *taskmodel.Task) { t.Progress = &p }) {
		m.emit(e)
	}
	m.touch()
}

// receiverTask shows a task that the server asked us to run.
func (s *server) receiverTask(o taskmodel.Observation, info mcp.ReceiverInfo) {
	m := s.m
	k := taskmodel.Key{Server: s.spec.Name, ID: o.ID, Role: taskmodel.Receiver}
	switch info.Event {
	case "retrieved":
		m.history(s, taskmodel.Event{Time: o.HeardAt, Server: s.spec.Name, Task: k, Kind: taskmodel.EventResult,
			Status: o.Status, Message: "the server has fetched the result", Detail: detail(map[string]any{"retrieved": true})}, nil)
		return
	case "expired":
		s.observe(taskmodel.Receiver, o)
		for _, e := range m.board.Change(k, m.now(), func(t *taskmodel.Task) {
			t.Standing, t.Note = taskmodel.Expired, "its time to live was over; the server cannot fetch it any more"
		}) {
			m.history(s, e, nil)
		}
		m.touch()
		return
	}
	s.observe(taskmodel.Receiver, o)
	if info.Event == "created" {
		m.board.Change(k, m.now(), func(t *taskmodel.Task) {
			t.Tool, t.Note = info.Method, "the server asked us to run this"
			if s.keeps(info.Method) {
				t.Args = info.Params
			}
		})
		m.save(k)
		m.touch()
	}
}

// pushing takes the set of tasks for which pushes are acknowledged.
func (s *server) pushing(ids []string) {
	m := s.m
	now := m.now()
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	var changed []*watch
	for id, w := range s.watches {
		if w.pushed != set[id] {
			w.pushed = set[id]
			if w.pushed {
				s.pushed++
			} else {
				s.pushed--
			}
			changed = append(changed, w)
		}
	}
	if s.client != nil {
		s.pushesCome(ids != nil)
		s.learn()
	}
	if len(changed) == 0 {
		return
	}
	for _, w := range changed {
		m.board.Change(s.key(w.id), now, func(t *taskmodel.Task) { t.Pushed = w.pushed })
		if w.inflight || w.index < 0 {
			continue
		}
		if w.pushed {
			// One more look soon: what happened before the acknowledgement was
			// not pushed.
			if soon := now.Add(m.jitter(w.interval)); soon.Before(w.due) {
				s.setDue(w, soon, w.urgent)
			}
		} else if at := now.Add(m.jitter(w.interval)); at.Before(w.due) {
			s.setDue(w, at, w.urgent)
		}
	}
	m.touch()
	s.arm()
}

// pushesCome says on the server's row whether pushes come: with proof, which is
// the acknowledgement of a subscription, or a notification that was heard.
func (s *server) pushesCome(yes bool) {
	if s.row.Pushing != yes && s.client != nil {
		s.change(func(r *taskmodel.Server) { r.Pushing = yes })
	}
}

// wantPushes sees to it that the set of tasks for which pushes are wanted is
// told to the server soon; more hurries more than less.
func (s *server) wantPushes(more bool) {
	if s.client == nil || s.row.Generation != taskmodel.GenExtension {
		return
	}
	wait := time.Second
	if more {
		wait = 100 * time.Millisecond
	}
	if at := s.m.now().Add(wait); !s.m.alarms.isSet(s.watcher) || at.Before(s.watcher.at) {
		s.m.alarms.set(s.watcher, at)
	}
}

func (s *server) askPushes() {
	if s.client == nil {
		return
	}
	ids := make([]string, 0, len(s.watches))
	for id, w := range s.watches {
		if w.missing < missTries {
			ids = append(ids, id)
		}
	}
	c, ctx, m := s.client, s.connCtx, s.m
	m.spawn(func() {
		if err := c.Tasks().Watch(ctx, ids); err != nil {
			m.log.Debug("asking for pushes", "server", s.spec.Name, "err", err)
			m.post(s.learn)
		}
	})
}

// closeQuestions withdraws what a task still asks.
func (s *server) closeQuestions(k taskmodel.Key, why string) {
	t, ok := s.m.board.Task(k)
	if !ok {
		return
	}
	for _, id := range t.Inputs {
		if q, ok := s.m.board.Question(id); ok && q.State != taskmodel.QuestionAnswered && q.State != taskmodel.QuestionWithdrawn {
			if q.State == taskmodel.QuestionUnconfirmed || q.State == taskmodel.QuestionSending {
				continue // "sent, outcome unknown" is what is true of it
			}
			s.withdrawn(id, why)
		}
	}
}
