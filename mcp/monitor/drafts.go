package monitor

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
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

// draftEvery is the least time between two drafts of one question that leave
// this process, in which others look at them.
const draftEvery = 300 * time.Millisecond

// A drafting is the way of one question's drafts out of this process: one at a
// time, in turn, and not with every key that is typed. What is typed while one
// is on its way replaces what waits; the last one is always sent, also when the
// program ends.
type drafting struct {
	mu   sync.Mutex
	next func() // sends the latest, nil when it has been sent
	over bool   // nobody looks at next any more
}

// draft sends a draft by way of send as soon as it may go.
func (s *server) draft(id taskmodel.QuestionID, send func()) {
	m := s.m
	if d := s.drafts[id]; d != nil {
		d.mu.Lock()
		over := d.over
		d.next = send
		d.mu.Unlock()
		if !over {
			return
		}
	}
	d := &drafting{next: send}
	s.drafts[id] = d
	m.spawn(func() {
		for {
			d.mu.Lock()
			send := d.next
			d.next, d.over = nil, send == nil
			d.mu.Unlock()
			if send == nil {
				m.post(func() {
					if s.drafts[id] == d {
						delete(s.drafts, id)
					}
				})
				return
			}
			send()
			select {
			case <-time.After(draftEvery):
			case <-m.ending: // the loop adds nothing any more
			}
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
	s.draft(q.ID, func() {
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
	s.draft(q.ID, func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(m.ctx), 2*time.Second)
		theirs, found, err := j.Question(ctx, s.spec.Target, q.ID.ID)
		stop()
		ended := err == nil && found && !theirs.State.Open()
		// As it stands by now: an answer that has gone meanwhile is not undone, nor
		// is a later draft.
		put := func() {
			if now, ok := m.board.Question(q.ID); ok && now.State == q.State {
				entry.Question = &now
				m.o.Journal.Queue(entry)
			}
		}
		if m.do(context.WithoutCancel(m.ctx), func() {
			if ended {
				s.answeredElsewhere(q.ID, theirs)
			}
			put()
		}) != nil && !ended {
			put() // the loop has ended, and nobody changes the board any more
		}
	})
}
