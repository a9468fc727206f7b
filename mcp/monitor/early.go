package monitor

import (
	"maps"
	"slices"

	"mcptasks/taskmodel"
)

// A question may come before the task that it belongs to is known here: a
// request of the server overtakes the answer to the call that makes the task.

// earlyMost bounds the tasks that are waited for.
const earlyMost = maxQuestions

// asksEarly remembers a question whose task is not on the board. Tasks that
// never came make place, once nothing is asked for them any more.
func (s *server) asksEarly(q taskmodel.Question) {
	if q.Task.ID == "" {
		return
	}
	if len(s.early) >= earlyMost {
		maps.DeleteFunc(s.early, func(_ taskmodel.Key, ids []taskmodel.QuestionID) bool {
			return !slices.ContainsFunc(ids, func(id taskmodel.QuestionID) bool {
				q, ok := s.m.board.Question(id)
				return ok && q.State.Open()
			})
		})
	}
	if len(s.early) < earlyMost {
		s.early[q.Task] = append(s.early[q.Task], q.ID)
	}
}

// settled gives a task that has just come onto the board the questions that came
// before it.
func (s *server) settled(k taskmodel.Key) {
	ids, had := s.early[k]
	if !had {
		return
	}
	delete(s.early, k)
	for _, id := range ids {
		if q, ok := s.m.board.Question(id); ok {
			s.m.board.PutQuestion(q) // which enters it in the task's inputs
		}
	}
	s.named(k)
	s.m.touch()
}

// named gives the questions of a task the tool whose call made it, which may be
// known only when that call is answered.
func (s *server) named(k taskmodel.Key) {
	b := s.m.board
	t, ok := b.Task(k)
	if !ok || t.Tool == "" {
		return
	}
	for _, id := range t.Inputs {
		if q, ok := b.Question(id); ok && q.Tool == "" {
			q.Tool = t.Tool
			b.PutQuestion(q)
		}
	}
}
