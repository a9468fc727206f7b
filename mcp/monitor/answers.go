package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// Answer sends a person's answer. It returns when the server took it, or with
// an error: then the question says where it stands. An answer is sent once; a
// question that was answered and is still asked may be answered again by the
// person after a while.
func (m *Monitor) Answer(ctx context.Context, a taskmodel.Answer) error {
	return m.answer(ctx, a, true)
}

// answer is Answer; look says that of a question which was withdrawn the server
// may be asked first.
func (m *Monitor) answer(ctx context.Context, a taskmodel.Answer, look bool) error {
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
	result := make(chan error, 1)
	var doubtful taskmodel.Key // a task that may ask it again
	derr := m.do(ctx, func() {
		if err = ctx.Err(); err != nil {
			return // nobody waits any more, and nothing is on its way
		}
		q, ok := m.board.Question(a.Question)
		now := m.now()
		switch {
		case !ok:
			err = sentence(ErrNoQuestion, nil, "%s: this question is not known any more", a.Question.Server)
		case q.State == taskmodel.QuestionSending && now.Sub(q.SentAt) < 2*answerTimeout:
			err = fmt.Errorf("%s: an answer to this question is being sent already", a.Question.Server)
		case q.State == taskmodel.QuestionWithdrawn:
			err = sentence(ErrNoQuestion, nil, "%s: the question was withdrawn: %s", a.Question.Server, q.Withdrawn)
			if t, ok := m.board.Task(q.Task); ok && t.Standing == taskmodel.Gone && s.watches[t.ID] != nil {
				doubtful = q.Task
			}
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
		before, c, conn := q.State, s.client, s.conn
		q.State, q.SentAt, q.Refusal = taskmodel.QuestionSending, now, ""
		m.board.PutQuestion(q)
		m.touch()
		// From here on it goes its way, whether or not the caller waits.
		m.spawn(func() { result <- s.sendAnswer(q, a, c, conn, before) })
	})
	if derr != nil {
		return derr
	}
	if doubtful.ID != "" && look {
		// It was withdrawn since whoever asked it was taken for gone with an
		// earlier process; the one look more at the task was yet to come.
		if _, perr := m.Poll(ctx, doubtful); perr == nil {
			return m.answer(ctx, a, false)
		}
	}
	if err != nil {
		return err
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
	state, words := taskmodel.QuestionAnswered, ""
	var rpc *taskmodel.RPCError
	var unsent *transport.NotSentError
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
	case errors.As(err, &unsent):
		state, words = taskmodel.QuestionRefused, taskmodel.NotSent+unsent.Why()
		out = sentence(ErrUnreachable, err, "%s: the answer was not sent: %s; it can be sent again", s.spec.Name, unsent.Why())
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
