package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

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
func relatedTask(b json.RawMessage) related { return relatedIn(member(b, "_meta")) }

// relatedIn is relatedTask for who has the _meta object.
func relatedIn(meta json.RawMessage) related {
	var r related
	members(meta, func(k string, v json.RawMessage) bool {
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

// wantsTools reports whether a sampling request comes with tools; null is none.
func wantsTools(params json.RawMessage) bool {
	given := func(name string) bool {
		v := member(params, name)
		return v != nil && string(v) != "null"
	}
	return given("tools") || given("toolChoice")
}

const noTools = "asks for a completion with tools, and mcptasks does not declare sampling.tools, so that it cannot be answered"

// toolless makes a completion with tools that is among the input requests of the
// extension a question that is not supported. The schema of 2026-07-28
// (CreateMessageRequestParams, "tools") wants an error where sampling.tools is
// not declared, and input responses have no errors: nothing is sent for it.
func toolless(q taskmodel.Question) taskmodel.Question {
	if q.Kind == taskmodel.AskSampling && wantsTools(q.Params) {
		words := "the server " + noTools
		if q.Message != "" {
			words += "; it says: " + q.Message
		}
		q.Kind, q.Message = taskmodel.AskUnsupported, words
	}
	return q
}

// asksTools reports whether a question is such a one.
func asksTools(q taskmodel.Question) bool {
	return q.Kind == taskmodel.AskUnsupported && q.Method == methodSampling
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
	kind := q.Kind
	if asksTools(q) { // which callers do not accept
		kind = taskmodel.AskSampling
	}
	switch kind {
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
