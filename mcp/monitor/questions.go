package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	answerTimeout = time.Minute
	resendAfter   = 5 * time.Second // a person may send again what the server took and still asks
	askAgainMost  = time.Minute
	askPatience   = 3 * time.Second // before a person's further press opens the way of a question anew
	maxQuestions  = 1000            // open ones of one server
	pastQuestions = 1000            // answered and withdrawn ones of one server that are shown
)

// asked takes a question, or one that was seen again.
func (s *server) asked(q taskmodel.Question, conn int) {
	m := s.m
	if s.forgets(q.Task.ID) && q.Task.ID != "" && q.Task.Role == taskmodel.Requestor {
		return
	}
	if s.openQuestions() >= cmp.Or(m.o.MaxQuestions, maxQuestions) {
		m.log.Warn("too many open questions; a further one is not shown (limits.questions)", "server", s.spec.Name)
		return
	}
	old, seen := m.board.Question(q.ID)
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
			q.Round = max(q.Round, o.Round+1)
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

func (s *server) openQuestions() int {
	n := 0
	for id := range s.was {
		if q, ok := s.m.board.Question(id); ok && q.State.Open() {
			n++
		}
	}
	return n
}

func sameAsk(a, b taskmodel.Question) bool {
	return a.Task == b.Task && a.Kind == b.Kind && a.Message == b.Message && string(a.Schema) == string(b.Schema)
}

// withdrawn: the server does not want an answer (any more).
func (s *server) withdrawn(id taskmodel.QuestionID, why string) {
	m := s.m
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

// Answer sends a person's answer. It returns when the server took it, or with
// an error: then the question says where it stands. An answer is sent once; a
// question that was answered and is still asked may be answered again by the
// person after a while.
func (m *Monitor) Answer(ctx context.Context, a taskmodel.Answer) error {
	if m.o.Readonly {
		return ErrReadonly
	}
	s, err := m.server(a.Question.Server)
	if err != nil {
		return err
	}
	if page, err := s.answerPage(ctx, a); page {
		return err
	}
	if held, herr := s.heldBy(ctx); herr != nil {
		return herr
	} else if held {
		if err := s.answerElsewhere(ctx, a); !errors.Is(err, errNotBegun) {
			return err
		}
		return m.Answer(ctx, a)
	}
	if _, _, err := s.ready(ctx); err != nil {
		return err
	}
	var q taskmodel.Question
	var c client
	var conn int
	var before taskmodel.QuestionState
	derr := m.do(ctx, func() {
		var ok bool
		q, ok = m.board.Question(a.Question)
		now := m.now()
		switch {
		case !ok:
			err = sentence(ErrNoQuestion, nil, "%s: this question is not known any more", a.Question.Server)
		case q.State == taskmodel.QuestionSending && now.Sub(q.SentAt) < 2*answerTimeout:
			err = fmt.Errorf("%s: an answer to this question is being sent already", a.Question.Server)
		case q.State == taskmodel.QuestionWithdrawn:
			err = sentence(ErrNoQuestion, nil, "%s: the question was withdrawn: %s", a.Question.Server, q.Withdrawn)
		case q.State == taskmodel.QuestionAnswered && now.Sub(q.SentAt) < resendAfter:
			err = fmt.Errorf("%s: answered %s ago; the server has taken the answer", a.Question.Server, now.Sub(q.SentAt).Round(time.Second))
		case s.client == nil:
			err = sentence(ErrUnreachable, nil, "%s: not connected; the draft is kept", a.Question.Server)
		default:
			err = fits(q, a)
		}
		if err != nil {
			return
		}
		before = q.State
		c, conn = s.client, s.conn
		q.State, q.SentAt, q.Refusal = taskmodel.QuestionSending, now, ""
		m.board.PutQuestion(q)
		m.touch()
	})
	if derr != nil {
		return derr
	}
	if err != nil {
		return err
	}
	// From here on it goes its way, whether or not the caller waits.
	result := make(chan error, 1)
	if !m.mail.post(func() { m.spawn(func() { result <- s.sendAnswer(q, a, c, conn, before) }) }) {
		return ErrStopped
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return sentence(ErrUnconfirmed, ctx.Err(), "%s: the answer is on its way; what becomes of it shows at the question", s.spec.Name)
	case <-m.done:
		return ErrStopped
	}
}

// fits says what is wrong with an answer before anything is sent.
func fits(q taskmodel.Question, a taskmodel.Answer) error {
	var o map[string]json.RawMessage
	switch {
	case a.Action != taskmodel.Accept && a.Action != taskmodel.Decline && a.Action != taskmodel.Cancel:
		return fmt.Errorf("%s: an answer accepts, declines or cancels; %q is none of these", q.ID.Server, a.Action)
	case a.Action != taskmodel.Accept:
		return nil
	case a.Content == nil && (q.Kind == taskmodel.AskSampling || q.Kind == taskmodel.AskUnsupported):
		return fmt.Errorf("%s: this question can be accepted only with content", q.ID.Server)
	case a.Content != nil && (json.Unmarshal(a.Content, &o) != nil || o == nil):
		return fmt.Errorf("%s: the content of an answer is a JSON object", q.ID.Server)
	}
	return nil
}

// takenBefore is an error where another process has sent an answer to a
// question that is open here: also where that process ended over it, so that
// nobody knows what became of it.
func (s *server) takenBefore(q taskmodel.Question) error {
	m := s.m
	j, ok := m.o.Journal.(questionReader)
	if !ok {
		return nil
	}
	ctx, stop := context.WithTimeout(m.ctx, time.Second)
	theirs, found, err := j.Question(ctx, s.spec.Target, q.ID.ID)
	stop()
	if err != nil || !found {
		return nil // as if there were no journal
	}
	switch theirs.State {
	case taskmodel.QuestionSending, taskmodel.QuestionAnswered, taskmodel.QuestionUnconfirmed:
	default:
		return nil
	}
	_ = m.do(m.ctx, func() {
		if q, ok := m.board.Question(q.ID); ok && q.State == taskmodel.QuestionSending {
			q.State, q.SentAt = theirs.State, theirs.SentAt
			m.board.PutQuestion(q)
			m.touch()
		}
	})
	if theirs.State == taskmodel.QuestionUnconfirmed {
		return sentence(ErrUnconfirmed, nil, "%s: another mcptasks sent an answer to this question and ended before it knew what became of it; nothing was sent now (answer again to send all the same)", s.spec.Name)
	}
	return fmt.Errorf("%s: another mcptasks has answered this question", s.spec.Name)
}

// sendAnswer writes the answer down, sends it once, and says what became of it.
func (s *server) sendAnswer(q taskmodel.Question, a taskmodel.Answer, c client, conn int, before taskmodel.QuestionState) error {
	m := s.m
	again := !before.Open()
	note := ""
	kept := a
	kept.Content = s.hide(q.Schema, a.Content)
	if before == taskmodel.QuestionOpen && s.shared(c) {
		if err := s.takenBefore(q); err != nil {
			return err
		}
	}
	if j := m.o.Journal; j != nil {
		ctx, stop := context.WithTimeout(m.ctx, 2*time.Second)
		err := j.Write(ctx, journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Key: q.Task, Question: &q, Answer: &kept})
		if err != nil {
			note = "not written down before it was sent: " + err.Error()
			m.log.Warn("an answer could not be written down before it was sent", "server", s.spec.Name, "err", err)
		}
		stop()
		if s.shared(c) {
			act := "answer:" + q.ID.ID
			if again {
				act += fmt.Sprintf(":again:%d", q.SentAt.Unix()/60)
			}
			cctx, stop := context.WithTimeout(m.ctx, 2*time.Second)
			mine, err := j.ClaimAct(cctx, s.spec.Target, act)
			stop()
			if err == nil && !mine {
				err := fmt.Errorf("%s: another mcptasks has answered this question", s.spec.Name)
				_ = m.do(m.ctx, func() { s.answerDone(q.ID, taskmodel.QuestionAnswered, "", a, "answered by another mcptasks") })
				return err
			}
		}
	}
	ctx, stop := context.WithTimeout(m.ctx, answerTimeout)
	err := c.Answer(ctx, a)
	if errors.Is(err, mcp.ErrNoQuestion) && q.Task.ID != "" && q.Task.Role == taskmodel.Requestor && c.Info().Generation == taskmodel.GenExtension {
		// A question that was remembered is not known to a new connection before
		// the task's state was asked for on it; nothing has been sent.
		if _, gerr := c.Tasks().Get(ctx, q.Task.ID); gerr == nil {
			err = c.Answer(ctx, a)
		}
	}
	stop()
	err = s.secrets.refusal(err)
	state, words := taskmodel.QuestionAnswered, ""
	var rpc *taskmodel.RPCError
	var out error
	switch {
	case err == nil:
	case errors.Is(err, mcp.ErrNoQuestion) && again:
		// What is known of the first answer stays as it is.
		if state = before; state != taskmodel.QuestionAnswered {
			state = taskmodel.QuestionUnconfirmed
		}
		words := "the server asks again if it wants one"
		_ = m.do(m.ctx, func() {
			if w := s.watches[q.Task.ID]; w != nil && conn == s.conn && w.status == taskmodel.InputRequired && s.row.Generation == taskmodel.GenCore {
				words = "the server is asked to put it again if it still waits"
				s.askAgain(w)
			}
		})
		out = sentence(ErrNoQuestion, err, "%s: this question has had its answer, and takes no other; %s", s.spec.Name, words)
	case errors.Is(err, mcp.ErrNoQuestion):
		state, words = taskmodel.QuestionWithdrawn, "the server does not ask this any more"
		out = sentence(ErrNoQuestion, err, "%s: the server does not ask this any more; nothing was sent", s.spec.Name)
	case errors.Is(err, mcp.ErrUnsupported):
		state, words = taskmodel.QuestionRefused, err.Error()
		out = err
	case errors.As(err, &rpc):
		state, words = taskmodel.QuestionRefused, rpc.Message
		out = err
	case errors.Is(err, mcp.ErrAuth), errors.Is(err, mcp.ErrSessionLost):
		// The server refused the message itself: nothing was taken.
		state, words = taskmodel.QuestionRefused, err.Error()
		out = err
	case answered(err):
		state, words = taskmodel.QuestionRefused, err.Error()
		out = err
	default:
		state = taskmodel.QuestionUnconfirmed
		out = sentence(ErrUnconfirmed, err, "%s: the answer was sent, and it is not known whether the server took it: %v", s.spec.Name, err)
	}
	m.post(func() {
		s.heard(conn, err)
		s.answerDone(q.ID, state, words, a, note)
		if state == taskmodel.QuestionAnswered && q.Task.ID != "" {
			s.pollSoon(q.Task)
		}
	})
	return out
}

// pollSoon makes a task due within the shortest pace.
func (s *server) pollSoon(k taskmodel.Key) {
	w := s.watches[k.ID]
	if w == nil || w.inflight || k.Role == taskmodel.Receiver {
		return
	}
	if at := s.m.now().Add(pollFloor); at.Before(w.due) {
		s.setDue(w, at, w.urgent)
		s.arm()
	}
}

// answerDone puts the end of an answer's way on the board and into the history:
// which key was answered and how, not with what.
func (s *server) answerDone(id taskmodel.QuestionID, st taskmodel.QuestionState, words string, a taskmodel.Answer, note string) {
	m := s.m
	q, ok := m.board.Question(id)
	if !ok {
		return
	}
	q.State, q.Refusal = st, ""
	switch st {
	case taskmodel.QuestionRefused:
		q.Refusal = words
	case taskmodel.QuestionWithdrawn:
		q.Withdrawn = words
	case taskmodel.QuestionAnswered:
		q.Draft = nil
	}
	m.board.PutQuestion(q)
	if st == taskmodel.QuestionAnswered {
		s.retire(id)
	}
	m.touch()
	d := map[string]any{"key": q.Key, "action": a.Action, "state": st}
	if keys := topKeys(a.Content); len(keys) > 0 && q.Kind == taskmodel.AskForm {
		d["fields"] = keys
	}
	if words != "" {
		d["refusal"] = words
	}
	if note != "" {
		d["note"] = note
	}
	message := map[taskmodel.QuestionState]string{
		taskmodel.QuestionAnswered: "answered: " + string(a.Action), taskmodel.QuestionRefused: "the server refused the answer: " + words,
		taskmodel.QuestionUnconfirmed: "sent, outcome unknown", taskmodel.QuestionWithdrawn: words,
	}[st]
	m.history(s, taskmodel.Event{Time: m.now(), Server: s.spec.Name, Task: q.Task, Kind: taskmodel.EventAnswer,
		Question: id, Message: message, Detail: detail(d)},
		func(e *journal.Entry) {
			e.Question = &q
			if st != taskmodel.QuestionUnconfirmed && st != taskmodel.QuestionRefused {
				e.Delivered = &id
			}
		})
	if q.Receiver || q.Task.ID == "" {
		return
	}
	// A task that ended while its answer was on the way is asked nothing more.
	if t, ok := m.board.Task(q.Task); ok && t.Terminal() && q.State.Open() {
		s.withdrawn(id, "the task ended as "+string(t.Status))
	}
}

// topKeys are the names in an answer's content.
func topKeys(content json.RawMessage) []string {
	var o map[string]json.RawMessage
	if json.Unmarshal(content, &o) != nil {
		return nil
	}
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
