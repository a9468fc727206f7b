package monitor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	answerTimeout = time.Minute
	resendAfter   = 5 * time.Second // a person may send again what the server took and still asks
	askAgainMost  = time.Minute
	askPatience   = 3 * time.Second // before a person's further press opens the way of a question anew
	maxQuestions  = 1000            // open ones of one server
	mostLeft      = 10_000          // of those that are not shown, the ones that are counted
	pastQuestions = 1000            // answered and withdrawn ones of one server that are shown
)

// passOver leaves a question to its server, and has the server's row say so.
func (s *server) passOver(id taskmodel.QuestionID) {
	if len(s.left) == 0 {
		s.m.log.Warn("too many open questions; further ones are not shown (limits.questions)", "server", s.spec.Name)
	}
	if len(s.left) < mostLeft && !s.left[id] {
		s.left[id] = true
		s.rows = true
		s.m.touch()
	}
}

// taken is called when a question is shown, or is no more asked.
func (s *server) taken(id taskmodel.QuestionID) {
	if s.left[id] {
		delete(s.left, id)
		s.rows = true
		s.m.touch()
	}
}

// leftWords say how many questions are left to the server.
func (s *server) leftWords() string {
	n := len(s.left)
	many := strconv.Itoa(n)
	switch {
	case n == 0:
		return ""
	case n == 1:
		return "a further question is not shown: so many are open (limits.questions)"
	case n >= mostLeft:
		many = "more than " + many
	}
	return many + " further questions are not shown: so many are open (limits.questions)"
}

// asked takes a question, or one that was seen again.
func (s *server) asked(q taskmodel.Question, conn int) {
	m := s.m
	if s.forgets(q.Task.ID) && q.Task.ID != "" && q.Task.Role == taskmodel.Requestor {
		return
	}
	old, seen := m.board.Question(q.ID)
	if (!seen || old.State == taskmodel.QuestionWithdrawn) && m.board.OpenQuestionsOf(s.spec.Name) >= cmp.Or(m.o.MaxQuestions, maxQuestions) {
		s.passOver(q.ID)
		return
	}
	s.taken(q.ID)
	if seen {
		switch old.State {
		case taskmodel.QuestionWithdrawn:
			// Asked again: open again, with what had been typed.
			q.Round = old.Round
			if sameAsk(old, q) {
				q.Draft = old.Draft
			}
		default:
			// Answered, being sent, unconfirmed or open: nothing new (I2).
			if s.was[q.ID] == conn {
				delete(s.older, q.ID)
			} else {
				s.older[q.ID] = true
			}
			s.was[q.ID] = conn
			return
		}
	}
	t, known := m.board.Task(q.Task)
	if known {
		if q.Tool == "" {
			q.Tool = t.Tool
		}
		for _, id := range t.Inputs {
			o, ok := m.board.Question(id)
			if !ok || id == q.ID {
				continue
			}
			if o.State.Open() {
				q.Round = max(q.Round, o.Round) // asked together
			} else {
				q.Round = max(q.Round, o.Round+1)
			}
			if o.State == taskmodel.QuestionWithdrawn && o.Draft != nil && q.Draft == nil && sameAsk(o, q) {
				q.Draft = o.Draft // the same question on a new connection
			}
		}
	}
	q.Round = max(q.Round, 1)
	q.State = taskmodel.QuestionOpen
	if q.AskedAt.IsZero() {
		q.AskedAt = m.now()
	}
	s.was[q.ID] = conn
	m.board.PutQuestion(q)
	if !known {
		s.asksEarly(q)
	}
	m.hurry()
	s.m.history(s, taskmodel.Event{Time: m.now(), Server: s.spec.Name, Task: q.Task, Kind: taskmodel.EventQuestion,
		Status: t.Status, Question: q.ID, Message: q.Message,
		Detail: detail(map[string]any{"key": q.Key, "kind": q.Kind, "method": q.Method, "message": q.Message, "round": q.Round})},
		func(e *journal.Entry) { e.Question = &q })
}

func sameAsk(a, b taskmodel.Question) bool {
	return a.Task == b.Task && a.Kind == b.Kind && a.Message == b.Message && string(a.Schema) == string(b.Schema)
}

// withdrawn: the server does not want an answer (any more).
func (s *server) withdrawn(id taskmodel.QuestionID, why string) {
	m := s.m
	s.taken(id)
	q, ok := m.board.Question(id)
	if !ok {
		return
	}
	switch q.State {
	case taskmodel.QuestionAnswered, taskmodel.QuestionWithdrawn, taskmodel.QuestionUnconfirmed:
		return
	case taskmodel.QuestionSending:
		return // what becomes of the answer says what is true
	}
	if j, ok := m.o.Journal.(questionReader); ok && s.client != nil && s.shared(s.client) {
		// Where each process asks for itself, another may have answered it.
		m.spawn(func() {
			ctx, stop := context.WithTimeout(m.ctx, time.Second)
			defer stop()
			theirs, found, err := j.Question(ctx, s.spec.Target, id.ID)
			if err != nil {
				m.log.Debug("looking for a question in the journal", "server", s.spec.Name, "err", err)
			}
			m.post(func() {
				if found && !theirs.State.Open() && theirs.State != taskmodel.QuestionWithdrawn {
					s.answeredElsewhere(id, theirs)
				} else {
					s.withdraw(id, why)
				}
			})
		})
		return
	}
	s.withdraw(id, why)
}

// A questionReader is a journal that tells how a question stands.
type questionReader interface {
	Question(ctx context.Context, target, id string) (taskmodel.Question, bool, error)
}

// answeredElsewhere takes from the journal how a question stands that another
// process has answered.
func (s *server) answeredElsewhere(id taskmodel.QuestionID, theirs taskmodel.Question) {
	q, ok := s.m.board.Question(id)
	if !ok || !q.State.Open() {
		return
	}
	q.State, q.SentAt, q.Refusal, q.Draft = theirs.State, theirs.SentAt, "", nil
	q.Withdrawn = theirs.Withdrawn
	s.m.board.PutQuestion(q)
	s.m.touch()
}

// withdraw closes a question that is open.
func (s *server) withdraw(id taskmodel.QuestionID, why string) {
	m := s.m
	q, ok := m.board.Question(id)
	if !ok || !q.State.Open() {
		return
	}
	q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, why
	delete(s.was, id)
	delete(s.older, id)
	m.board.PutQuestion(q)
	s.retire(id)
	m.touch()
	m.history(s, taskmodel.Event{Time: m.now(), Server: s.spec.Name, Task: q.Task, Kind: taskmodel.EventQuestion,
		Question: id, Message: "withdrawn: " + why, Detail: detail(map[string]any{"key": q.Key, "withdrawn": why})},
		s.entryOf(q))
}

// retire bounds the questions that are over: the oldest leave the board; the
// history has them.
func (s *server) retire(id taskmodel.QuestionID) {
	s.past = append(s.past, id)
	for len(s.past) > pastQuestions {
		old := s.past[0]
		s.past = s.past[1:]
		q, ok := s.m.board.Question(old)
		if !ok || q.State.Open() || q.State == taskmodel.QuestionSending {
			continue // asked again since
		}
		if t, ok := s.m.board.Task(q.Task); ok && !t.Terminal() && q.State == taskmodel.QuestionAnswered {
			// Its key must not be asked again while the task runs.
			s.past = append(s.past, old)
			if len(s.past) > 2*pastQuestions {
				s.past = s.past[len(s.past)-2*pastQuestions:]
			}
			break
		}
		s.m.board.DropQuestion(old)
		delete(s.was, old)
	}
}

// completedElsewhere: a URL elicitation was completed in the browser.
func (s *server) completedElsewhere(elicitID string) {
	for id := range s.was {
		s.completed(id, elicitID)
	}
	for id := range s.visits {
		s.completed(id, elicitID)
	}
}

func (s *server) completed(id taskmodel.QuestionID, elicitID string) {
	if q, ok := s.m.board.Question(id); ok && q.ElicitID == elicitID && !q.Done {
		q.Done = true
		s.m.board.PutQuestion(q)
		s.m.touch()
		s.m.history(s, taskmodel.Event{Time: s.m.now(), Server: s.spec.Name, Task: q.Task, Kind: taskmodel.EventQuestion,
			Question: id, Message: "completed in the browser", Detail: detail(map[string]any{"key": q.Key, "done": true})},
			s.entryOf(q))
	}
}

// maybeAsk opens the way by which a task's question comes, where that is ours
// to do: only for tasks started or added here, since a server may take the
// question from another client's queue (field fault S2).
func (s *server) maybeAsk(w *watch, t taskmodel.Task) {
	if t.Ours && t.Generation == taskmodel.GenCore && !s.m.o.NoAsk && !s.m.o.Readonly {
		s.openAsk(w)
	}
}

// openAsk keeps exactly one tasks/result open while its task is unfinished.
func (s *server) openAsk(w *watch) {
	if w.asking || s.client == nil {
		return
	}
	w.asking = true
	s.openResult(w.id, false, 0)
}

// askAgain opens the way of a task's questions anew, for a person who sees that
// the task waits and has nothing to answer: what the server put beside the open
// tasks/result was lost, or has been answered in vain.
func (s *server) askAgain(w *watch) {
	w.ours = true // the person has said so
	f := s.results[w.id]
	if !w.asking || f == nil {
		s.openAsk(w)
		return
	}
	if s.m.now().Sub(f.opened) < askPatience {
		return
	}
	w.asks = 0
	f.stop() // when it has ended it is opened again
}

// askEnded is told that the open tasks/result of a task has ended without its
// result; where the task still waits, it is opened again.
func (s *server) askEnded(id string) {
	w := s.watches[id]
	if w == nil {
		return
	}
	w.asking = false
	w.asks++
	m := s.m
	m.alarms.at(m.now().Add(m.backoff(w.asks-1, retryFirst/2, askAgainMost)), func() {
		if w := s.watches[id]; w != nil && w.status == taskmodel.InputRequired {
			if t, ok := m.board.Task(s.key(id)); ok {
				if w.ours {
					s.openAsk(w)
				} else {
					s.maybeAsk(w, t)
				}
			}
		}
	})
}

// Ask opens the way by which the task's question comes, also where that is not
// done by itself. It does not wait for the question.
func (m *Monitor) Ask(ctx context.Context, k taskmodel.Key) error {
	s, err := m.server(k.Server)
	if err != nil {
		return err
	}
	t, err := m.task(ctx, k)
	switch {
	case err != nil:
		return err
	case t.Terminal():
		return fmt.Errorf("%s: the task has ended as %s and asks nothing", k, t.Status)
	case t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired:
		return sentence(ErrGone, nil, "%s: the task is gone: %s", k, t.Note)
	}
	if held, err := s.heldBy(ctx); held || err != nil {
		return err // its holder hears the questions; they show here too
	}
	if _, _, err := s.ready(ctx); err != nil {
		return err
	}
	if t.Generation != taskmodel.GenCore {
		return s.look(ctx, k.ID) // questions come with the state, or on any stream
	}
	return m.do(ctx, func() {
		w := s.watches[k.ID]
		if w == nil {
			return
		}
		if t, _ := m.board.Task(k); slices.ContainsFunc(t.Inputs, func(id taskmodel.QuestionID) bool {
			q, ok := m.board.Question(id)
			return ok && q.State.Open()
		}) {
			w.ours = true
			s.openAsk(w)
			return
		}
		s.askAgain(w)
	})
}
