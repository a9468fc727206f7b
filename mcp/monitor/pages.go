package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/taskmodel/journal"
)

// This file puts the pages that error -32042 names (2025-11-25
// client/elicitation, "URL Elicitation Required Error") among the questions. No
// server waits for an answer to them: consent sends nothing, and the call is
// made again only when the person says so. They live as long as this process,
// since the call has ended and its session may not outlive it.

// pagesMost bounds the pages of one error, and those of one server.
const pagesMost = 50

// A PagesError is the end of a call that wants pages visited first, where they
// were put among the questions: there a person goes on. It unwraps to the
// *mcp.URLElicitationError.
type PagesError struct {
	Questions []taskmodel.QuestionID // in the server's order; never empty
	Err       error
}

func (e *PagesError) Error() string { return e.Err.Error() }
func (e *PagesError) Unwrap() error { return e.Err }

// Start calls a tool, as a task unless the request says otherwise, and returns
// when the server has made the task or answered at once. A call goes out once:
// it is never repeated by itself, whatever happens to it. Where results are
// fetched by themselves, a call that is refused until pages are visited puts
// these among the questions and ends with a *PagesError.
func (m *Monitor) Start(ctx context.Context, r StartRequest) (StartReply, error) {
	reply, err := m.begin(ctx, r)
	if !m.o.FetchResults {
		return reply, err
	}
	s, serr := m.server(r.Server)
	if serr != nil {
		return reply, err
	}
	var wanted *mcp.URLElicitationError
	var rpc *taskmodel.RPCError
	call := taskmodel.Call{Tool: r.Tool, Args: slices.Clone(r.Args), TTL: r.TTL, Plain: r.Plain}
	switch {
	case errors.As(err, &wanted):
		var put []taskmodel.QuestionID
		if derr := m.do(ctx, func() { put = s.putPages(call, taskmodel.Key{}, wanted) }); derr == nil && len(put) > 0 {
			return reply, &PagesError{Questions: put, Err: err}
		}
	case err == nil, errors.As(err, &rpc):
		// The server took the call up: what it had wanted first is over.
		_ = m.do(ctx, func() { s.closePages(call, nil, "the call was made again") })
	}
	return reply, err
}

// outcomePages does the same for a task that ended with that error: its outcome
// is what the call would have given.
func (s *server) outcomePages(t taskmodel.Task) {
	wanted := mcp.URLElicitations(t.Outcome.Err)
	if wanted == nil || !s.m.o.FetchResults || !t.Ours || t.Tool == "" || !s.keeps(t.Tool) || form.Asks(s.schema(t.Tool), s.m.o.Schema) {
		return // not ours to call again, or with what is not kept
	}
	s.putPages(taskmodel.Call{Tool: t.Tool, Args: t.Args, TTL: t.AskedTTL.Duration}, t.Key, wanted)
}

func sameCall(a, b taskmodel.Call) bool {
	return a.Tool == b.Tool && a.Plain == b.Plain && cmp.Or(string(a.Args), "{}") == cmp.Or(string(b.Args), "{}")
}

// putPages puts the pages that a call wants visited among the questions. Where
// the same call wanted them before, what it still wants is open again and the
// rest is over.
func (s *server) putPages(call taskmodel.Call, task taskmodel.Key, wanted *mcp.URLElicitationError) []taskmodel.QuestionID {
	m := s.m
	known := map[string]taskmodel.Question{} // by id, else address
	group := "page/" + uuid.NewString() + "/"
	for id := range s.visits {
		if q, ok := m.board.Question(id); ok && sameCall(q.Repeat, call) {
			known[cmp.Or(q.ElicitID, q.URL)] = q
			group = id.ID[:strings.LastIndexByte(id.ID, '/')+1]
		}
	}
	var put []taskmodel.QuestionID
	for i, e := range wanted.Elicitations {
		if i == pagesMost || len(s.visits) >= pagesMost*4 {
			m.log.Warn("too many pages to visit; further ones are not shown", "server", s.spec.Name)
			break
		}
		name := cmp.Or(e.ID, e.URL)
		q, again := known[name]
		if !again {
			q = taskmodel.Question{ID: taskmodel.QuestionID{Server: s.spec.Name, ID: group + url.PathEscape(name)}, Task: task,
				Tool: call.Tool, Key: cmp.Or(e.ID, fmt.Sprint(i+1)), Kind: taskmodel.AskURL, Method: "tools/call", ElicitID: e.ID}
		}
		if slices.Contains(put, q.ID) {
			continue
		}
		q.Message, q.URL, q.Repeat, q.State, q.Done, q.Withdrawn = e.Message, e.URL, call, taskmodel.QuestionOpen, false, ""
		q.AskedAt, q.Round = m.now(), q.Round+1
		s.visits[q.ID] = true
		m.board.PutQuestion(q)
		put = append(put, q.ID)
		m.history(s, taskmodel.Event{Time: m.now(), Server: s.spec.Name, Task: q.Task, Kind: taskmodel.EventQuestion,
			Question: q.ID, Message: q.Message, Detail: detail(map[string]any{"key": q.Key, "kind": q.Kind, "method": q.Method,
				"message": q.Message, "round": q.Round, "tool": call.Tool})}, nil)
	}
	s.closePages(call, put, "the call does not want it any more")
	m.hurry()
	return put
}

// closePages ends the questions of a call but for those of keep.
func (s *server) closePages(call taskmodel.Call, keep []taskmodel.QuestionID, why string) {
	for id := range s.visits {
		q, ok := s.m.board.Question(id)
		switch {
		case !ok:
			delete(s.visits, id) // forgotten with its task
		case sameCall(q.Repeat, call) && !slices.Contains(keep, id):
			s.closePage(q, why)
		}
	}
}

func (s *server) closePage(q taskmodel.Question, why string) {
	delete(s.visits, q.ID)
	q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, why
	s.m.board.PutQuestion(q)
	s.retire(q.ID)
	s.m.touch()
}

// answerPage takes the person's word on a page. It is false when the question is
// another kind.
func (s *server) answerPage(ctx context.Context, a taskmodel.Answer) (bool, error) {
	m := s.m
	var page bool
	var err error
	derr := m.do(ctx, func() { // which may come after ctx has ended: it shares nothing with what is then returned
		q, ok := m.board.Question(a.Question)
		if page = ok && q.Repeat.Tool != ""; !page {
			return
		}
		switch {
		case q.State == taskmodel.QuestionWithdrawn:
			err = sentence(ErrNoQuestion, nil, "%s: this is over: %s", s.spec.Name, q.Withdrawn)
			return
		case a.Action == taskmodel.Accept:
			q.State, q.SentAt = taskmodel.QuestionAnswered, m.now()
			m.board.PutQuestion(q)
			m.touch()
		default:
			why := "you declined; the call is not made again"
			if a.Action == taskmodel.Cancel {
				why = "you cancelled it; the call is not made again"
			}
			s.closePage(q, why)
		}
		m.history(s, taskmodel.Event{Time: m.now(), Server: s.spec.Name, Task: q.Task, Kind: taskmodel.EventAnswer, Question: q.ID,
			Message: "answered: " + string(a.Action), Detail: detail(map[string]any{"key": q.Key, "action": a.Action, "note": "nothing is sent for it"})}, nil)
	})
	if derr != nil {
		return true, derr
	}
	return page, err
}

// entryOf adds a question to an entry of the journal; pages are not kept there.
func (s *server) entryOf(q taskmodel.Question) func(*journal.Entry) {
	return func(e *journal.Entry) {
		if q.Repeat.Tool == "" {
			e.Question = &q
		}
	}
}
