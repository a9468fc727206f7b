package mcp

import (
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

// Metadata keys by which messages name the task that they belong to.
const (
	relatedTaskKey      = "io.modelcontextprotocol/related-task" // 2025-11-25
	relatedTaskDraftKey = "modelcontextprotocol.io/related-task" // SEP-1686
)

// The methods by which something is asked of the person.
const (
	methodElicit   = "elicitation/create"
	methodSampling = "sampling/createMessage"
	methodRoots    = "roots/list"
)

// A related is the related-task metadata of a message: the task's id, and the
// key and value as they were sent, to be echoed.
type related struct {
	task  string
	key   string
	value json.RawMessage
}

// relatedTask reads the related-task metadata of params or of a result, under
// either generation's key.
func relatedTask(b json.RawMessage) related {
	var r related
	members(member(b, "_meta"), func(k string, v json.RawMessage) bool {
		if k == relatedTaskKey || k == relatedTaskDraftKey {
			if id := stringAt(v, "taskId"); id != "" {
				r = related{task: id, key: k, value: v}
			}
		}
		return true
	})
	return r
}

// meta is the _meta object that echoes r; nil when there is none.
func (r related) meta() map[string]json.RawMessage {
	if r.task == "" {
		return nil
	}
	return map[string]json.RawMessage{r.key: r.value}
}

// askedQuestion reads what a server asks into a Question. It is the same for a
// request of the server (2025-11-25, draft) and for an entry of inputRequests
// (the extension): method and params are those of elicitation/create,
// sampling/createMessage or roots/list; any other method is a question that we
// do not support. id is stable for as long as the question is open; key is the
// name by which a person picks it; task is zero when it belongs to none.
func askedQuestion(server, id, key, method string, params json.RawMessage, task taskmodel.Key, at time.Time) taskmodel.Question {
	q := taskmodel.Question{
		ID:      taskmodel.QuestionID{Server: server, ID: id},
		Task:    task,
		Key:     key,
		Method:  method,
		Params:  params,
		AskedAt: at,
		State:   taskmodel.QuestionOpen,
		Kind:    taskmodel.AskUnsupported,
	}
	switch method {
	case methodElicit:
		q.Message = stringAt(params, "message")
		// A request without mode is a form (2025-11-25 client/elicitation).
		switch mode := stringAt(params, "mode"); mode {
		case "", "form":
			q.Kind = taskmodel.AskForm
			q.Schema = member(params, "requestedSchema")
		case "url":
			q.Kind = taskmodel.AskURL
			q.URL = stringAt(params, "url")
			q.ElicitID = stringAt(params, "elicitationId")
		default:
			if q.Message == "" {
				q.Message = "an elicitation in the unknown mode " + mode
			}
		}
	case methodSampling:
		q.Kind = taskmodel.AskSampling
		q.Message = stringAt(params, "systemPrompt")
		if m := lastMessage(params); m != "" {
			q.Message = m
		}
	case methodRoots:
		q.Kind = taskmodel.AskRoots
		q.Message = "which folders may be used"
	default:
		q.Message = "a request that mcptasks does not know: " + method
	}
	return q
}

// lastMessage is the text of the last message of a sampling request.
func lastMessage(params json.RawMessage) string {
	var last json.RawMessage
	elements(member(params, "messages"), func(v json.RawMessage) bool { last = v; return true })
	content := member(last, "content")
	if isObject(content) {
		return stringAt(content, "text")
	}
	var b strings.Builder
	elements(content, func(v json.RawMessage) bool {
		if t := stringAt(v, "text"); t != "" {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(t)
		}
		return true
	})
	return b.String()
}

// answerResult is the result that an answer becomes: an ElicitResult, or the
// sampling result that the person wrote. An error is what goes back in its
// place (a rejected sampling); both nil means that the answer does not fit.
func answerResult(q taskmodel.Question, a taskmodel.Answer, meta map[string]json.RawMessage) (any, *jsonrpc.Error, error) {
	switch q.Kind {
	case taskmodel.AskSampling:
		if a.Action != taskmodel.Accept {
			return nil, &jsonrpc.Error{Code: codeUserRejected, Message: "User rejected sampling request"}, nil
		}
		r, err := withMeta(a.Content, meta)
		if err != nil {
			return nil, nil, fmt.Errorf("the completion is no JSON object: %w", err)
		}
		return r, nil, nil
	case taskmodel.AskForm, taskmodel.AskURL, taskmodel.AskUnsupported:
		switch a.Action {
		case taskmodel.Accept:
			if q.Kind == taskmodel.AskUnsupported && a.Content == nil {
				return nil, nil, errors.New("a question of an unknown kind can only be accepted with content")
			}
		case taskmodel.Decline, taskmodel.Cancel:
		default:
			return nil, nil, fmt.Errorf("no such answer: %q", a.Action)
		}
		r := elicitResult{Action: a.Action, Meta: meta}
		// Content only with accept and in form mode (client/elicitation,
		// "Response Actions"); an accepted URL is consent, nothing more.
		if a.Action == taskmodel.Accept && q.Kind != taskmodel.AskURL {
			if r.Content = a.Content; r.Content == nil {
				r.Content = json.RawMessage("{}")
			}
		}
		return r, nil, nil
	}
	return nil, nil, fmt.Errorf("a question of kind %s cannot be answered by a person", q.Kind)
}

type elicitResult struct {
	Meta    map[string]json.RawMessage `json:"_meta,omitempty"`
	Action  taskmodel.Action           `json:"action"`
	Content json.RawMessage            `json:"content,omitempty"`
}

// withMeta adds metadata to a JSON object and leaves the rest as it is; keys
// that the object's own _meta has too are replaced.
func withMeta(b json.RawMessage, meta map[string]json.RawMessage) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("null is no object")
	}
	if len(meta) == 0 {
		return b, nil
	}
	own := map[string]json.RawMessage{}
	if isObject(m["_meta"]) {
		if err := json.Unmarshal(m["_meta"], &own); err != nil {
			return nil, err
		}
	}
	for k, v := range meta {
		own[k] = v
	}
	mb, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	m["_meta"] = mb
	return json.Marshal(m)
}

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
	if old := s.asked.open[id]; old != nil {
		// A resumed stream may bring a request again: the same question, to
		// be answered where it came last.
		old.req, old.related = r, rel
		q = old.q
	} else {
		s.asked.open[id] = &question{q: q, req: r, related: rel}
	}
	s.asked.mu.Unlock()
	s.handler().Asked(q)
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
	s.asked.mu.Unlock()

	err = func() error {
		result, rpc, err := answerResult(p.q, a, p.related.meta())
		switch {
		case err != nil:
			return fmt.Errorf("%s: answering %q: %w", s.server(), p.q.Key, err)
		case rpc != nil:
			if m := p.related.meta(); m != nil {
				// An error has no _meta; its data can name the task.
				rpc.Data, _ = json.Marshal(map[string]any{"_meta": m})
			}
			err = p.req.Fail(ctx, rpc)
		default:
			err = p.req.Reply(ctx, result)
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
