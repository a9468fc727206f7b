package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// questions are those requests of the server that a person has to answer and
// has not yet.
type questions struct {
	mu   sync.Mutex
	open map[string]*question // by QuestionID.ID
}

// A question is one of them, with the request to reply to.
type question struct {
	q       taskmodel.Question
	req     *jsonrpc.Request
	related related
	busy    bool // an answer is on its way
}

// ErrNoQuestion is returned for an answer to a question that is not open on
// this connection (any more).
var ErrNoQuestion = errors.New("this question is not open any more")

// connectionTag makes the ids of one connection's questions its own. A server
// numbers its requests from 0 on each connection; an HTTP session that is
// taken up again goes on with its numbers, so there the tag comes from it.
func connectionTag(httpSession string) string {
	if httpSession == "" {
		return uuid.NewString()[:8]
	}
	sum := sha256.Sum256([]byte(httpSession))
	return hex.EncodeToString(sum[:4])
}

// questionID is the stable id of the question that the server's request id asks.
func (s *session) questionID(id jsonrpc.ID) string { return s.tag + ":" + id.String() }

// ask puts a request of the server before the person: Handler.Asked now,
// Request.Reply when session.reply is called with the answer. tool is that of
// the plain call that it came in, "" when that is not known.
func (s *session) ask(r *jsonrpc.Request, tool string) {
	rel := relatedTask(r.Params)
	var key taskmodel.Key
	of := rel.task
	if of == "" {
		of = s.calls.task(r.On)
	}
	if of != "" {
		key = taskmodel.Key{Server: s.server(), ID: of, Role: taskmodel.Requestor}
	}
	id := s.questionID(r.ID)
	q := askedQuestion(s.server(), id, plainID(r.ID), r.Method, r.Params, key, time.Now())
	q.Tool = tool

	s.asked.mu.Lock()
	old, other := s.asked.open[id], false
	switch {
	case old != nil && old.q.Method == q.Method && bytes.Equal(old.q.Params, q.Params):
		// It comes again, in a session that was taken up: the same question, to
		// be answered where it came last.
		old.req, old.related = r, rel
		q = old.q
	default:
		other = old != nil
		s.asked.open[id] = &question{q: q, req: r, related: rel}
	}
	s.asked.mu.Unlock()
	if other {
		s.handler().Withdrawn(q.ID, "the server asks something else by now")
	}
	s.handler().Asked(q)
}

// reopen takes up questions that came over this HTTP session on an earlier
// connection. Their ids name the session and the server's request.
func (s *session) reopen(list []taskmodel.Question) {
	for _, q := range list {
		id, ok := strings.CutPrefix(q.ID.ID, s.tag+":")
		if !ok || q.Receiver || !json.Valid([]byte(id)) {
			continue
		}
		p := &question{q: q, req: s.peer.Reopen(jsonrpc.ID(id), q.Method, q.Params), related: relatedTask(q.Params)}
		s.asked.mu.Lock()
		if s.asked.open[q.ID.ID] == nil {
			s.asked.open[q.ID.ID] = p
		}
		s.asked.mu.Unlock()
		s.handler().Asked(q)
	}
}

// reply sends a person's answer to a question that came as a request; found is
// false when there is no such question here. A question stays open when the
// answer could not be sent.
func (s *session) reply(ctx context.Context, a taskmodel.Answer) (found bool, err error) {
	s.asked.mu.Lock()
	p := s.asked.open[a.Question.ID]
	if p == nil {
		s.asked.mu.Unlock()
		return false, nil
	}
	if p.busy {
		s.asked.mu.Unlock()
		return true, fmt.Errorf("%s: an answer to this question is being sent already", s.server())
	}
	p.busy = true
	req, rel := p.req, p.related
	s.asked.mu.Unlock()

	err = func() error {
		result, rpc, err := answerResult(p.q, a, rel.meta())
		switch {
		case err != nil:
			return fmt.Errorf("%s: answering %q: %w", s.server(), p.q.Key, err)
		case rpc != nil:
			if m := rel.meta(); m != nil {
				// An error has no _meta; its data can name the task.
				rpc.Data, _ = json.Marshal(map[string]any{"_meta": m})
			}
			err = req.Fail(ctx, rpc)
		default:
			err = req.Reply(ctx, result)
		}
		if err != nil {
			return s.wrap("answering the question "+p.q.Key, err)
		}
		return nil
	}()
	over := errors.Is(err, jsonrpc.ErrCancelled) || errors.Is(err, jsonrpc.ErrReplied)
	if over {
		// The server took the question back while the answer was under way.
		err = withKind(err, ErrNoQuestion)
	}

	s.asked.mu.Lock()
	p.busy = false
	if (err == nil || over) && s.asked.open[a.Question.ID] == p {
		delete(s.asked.open, a.Question.ID)
	}
	s.asked.mu.Unlock()
	return true, err
}

// withdraw closes the question that the server's request id asked, because the
// server does not want the answer any more; false when there is none.
func (s *session) withdraw(id jsonrpc.ID, why string) bool {
	qid := s.questionID(id)
	s.asked.mu.Lock()
	p := s.asked.open[qid]
	delete(s.asked.open, qid)
	s.asked.mu.Unlock()
	if p == nil {
		return false
	}
	s.handler().Withdrawn(p.q.ID, why)
	return true
}

// withdrawAll closes every open question when the connection has ended. No
// answer to them can be sent any more.
func (s *session) withdrawAll(why string) {
	s.asked.mu.Lock()
	open := s.asked.open
	s.asked.open = make(map[string]*question)
	s.asked.mu.Unlock()
	for _, p := range open {
		s.handler().Withdrawn(p.q.ID, why)
	}
}

// plainID is a request id without its quotes, for a person to type.
func plainID(id jsonrpc.ID) string {
	if isString([]byte(id)) {
		return text([]byte(id))
	}
	return id.String()
}
