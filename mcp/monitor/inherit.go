package monitor

import (
	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// This file decides what becomes of that which an earlier connection, or an
// earlier process, has left open: questions, and tasks that cannot outlive
// their program.

// inherit is called once after the journal was read, when it is settled that
// this process is the one that connects: whoever held the server before is no
// more. What lived in his program, or in his connection, is over.
func (s *server) inherit() {
	if !s.heir {
		return
	}
	s.heir = false
	m := s.m
	stdio := s.spec.Dialer != nil && s.spec.Dialer.Kind() == "stdio"
	var lost []taskmodel.Task
	m.board.Publish(m.now()).Tasks(func(t *taskmodel.Task) bool {
		if t.Server == s.spec.Name && !t.Terminal() && t.Standing == taskmodel.Restored && (stdio || t.Role == taskmodel.Receiver) {
			lost = append(lost, *t)
		}
		return true
	})
	for _, t := range lost {
		why := "the program that ran it has ended with the mcptasks that had started it; its outcome is unknown"
		if t.Role == taskmodel.Receiver {
			why = "the connection over which the server asked for it has ended"
		}
		for _, e := range m.board.Change(t.Key, m.now(), func(t *taskmodel.Task) { t.Standing, t.Note = taskmodel.Gone, why }) {
			m.history(s, e, nil)
		}
		s.closeQuestions(t.Key, why)
		if w := s.watches[t.ID]; w != nil && t.Role == taskmodel.Requestor {
			w.missing = missTries // one look more, then slowly
		}
		s.release(t.ID)
	}
	for id := range s.was {
		if q, ok := m.board.Question(id); ok && (stdio || q.Receiver) {
			s.withdrawn(id, s.askerGone())
		}
	}
	m.touch()
}

// askerGone says in words why a question of an earlier connection cannot be
// answered any more.
func (s *server) askerGone() string {
	if s.spec.Dialer != nil && s.spec.Dialer.Kind() == "stdio" {
		return "the program that asked has ended; what was typed is kept"
	}
	return "the session in which it was asked is over; what was typed is kept"
}

// unanswered are the questions that a session which is taken up may still want
// answers to.
func (s *server) unanswered() []taskmodel.Question {
	var out []taskmodel.Question
	for id := range s.was {
		q, ok := s.m.board.Question(id)
		if !ok || q.Receiver || !q.State.Open() && q.State != taskmodel.QuestionUnconfirmed {
			continue
		}
		if t, ok := s.m.board.Task(q.Task); ok && (t.Terminal() || t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired) {
			continue
		}
		out = append(out, q)
	}
	return out
}

// unclaimed closes the questions that a new connection did not take up: its
// server, or its session, is another one. The extension has no part in it,
// there a question belongs to its task and comes again with the task's state.
func (s *server) unclaimed(conn int) {
	if conn != s.conn || s.client == nil || s.client.Info().Era == "modern" {
		return
	}
	for id, was := range s.was {
		if was != conn {
			s.withdrawn(id, s.askerGone())
		}
	}
}

// outlived closes the questions of earlier connections when their task does not
// wait for input any more. What was asked on the present one the server takes
// back itself.
func (s *server) outlived(t taskmodel.Task) {
	for _, id := range t.Inputs {
		if s.older[id] {
			s.withdrawn(id, "the task does not wait for it any more: it is "+string(t.Status))
		}
	}
}

// eraOf is what to try first on the next connection: what the last one found, so
// that a server is not probed each time.
func eraOf(i mcp.Info) string {
	if i.Transport == "sse" {
		return "sse"
	}
	return i.Era
}
