package monitor

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// SaveDraft keeps what a person has typed so far, also for the next run. A
// question is its holder's: where another process holds the server, that one is
// asked to keep the draft, and what this one believes of the question's state is
// not written over what is true.
func (m *Monitor) SaveDraft(id taskmodel.QuestionID, draft json.RawMessage) {
	own := slices.Clone(draft)
	m.post(func() {
		s := m.byName[id.Server]
		q, ok := m.board.Question(id)
		if s == nil || !ok || q.State == taskmodel.QuestionAnswered {
			return
		}
		q.Draft = own
		m.board.PutQuestion(q)
		m.touch()
		switch {
		case m.o.Journal == nil || s.tap != nil:
		case s.lease.heldElsewhere():
			s.draftElsewhere(q)
		case s.client != nil && s.shared(s.client):
			s.draftBeside(q)
		default:
			m.o.Journal.Queue(journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Key: q.Task, Question: &q})
		}
	})
}

// draftElsewhere hands a draft to the process that holds the server. Nobody
// waits for it.
func (s *server) draftElsewhere(q taskmodel.Question) {
	m := s.m
	in := journal.Intent{Target: s.spec.Target, Session: s.lease.session, Task: q.Task, Kind: "draft", At: m.now()}
	b, err := json.Marshal(taskmodel.Answer{Question: q.ID, Content: q.Draft})
	if err != nil {
		m.log.Warn("a draft cannot be written down", "server", s.spec.Name, "err", err)
		return
	}
	in.Payload = b
	m.spawn(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(m.ctx), 2*time.Second)
		defer stop()
		if _, err := m.o.Journal.PutIntent(ctx, in); err != nil {
			m.log.Warn("a draft could not be handed on", "server", s.spec.Name, "err", err)
		}
	})
}

// draftBeside writes a draft down where each process asks for itself, unless
// another one has seen the end of the question.
func (s *server) draftBeside(q taskmodel.Question) {
	m := s.m
	entry := journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Key: q.Task, Question: &q}
	j, ok := m.o.Journal.(questionReader)
	if !ok {
		m.o.Journal.Queue(entry)
		return
	}
	m.spawn(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(m.ctx), 2*time.Second)
		theirs, found, err := j.Question(ctx, s.spec.Target, q.ID.ID)
		stop()
		m.post(func() {
			if err == nil && found && !theirs.State.Open() {
				s.answeredElsewhere(q.ID, theirs)
			}
			// As it stands by now: an answer that has gone meanwhile is not undone,
			// nor is a later draft.
			if now, ok := m.board.Question(q.ID); ok && now.State == q.State {
				entry.Question = &now
				m.o.Journal.Queue(entry)
			}
		})
	})
}
