package mcp

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/google/uuid"

	"mcptasks/taskmodel"
)

// tokens are the progress tokens in use: each belongs to a call, and to a task
// as soon as the call has become one. A task's token stays valid over the
// task's whole life (2025-11-25 tasks, "Task Progress Notifications").
type tokens struct {
	mu    sync.Mutex
	calls map[string]tokenOwner // by token
	tasks map[string]string     // task id to token
}

type tokenOwner struct{ call, task string }

// newToken makes a token for a call. It is a uuid and no counter, since a
// session that is taken up by a later process still uses the earlier tokens.
func (t *tokens) newToken(call string) string {
	tok := uuid.NewString()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = make(map[string]tokenOwner)
		t.tasks = make(map[string]string)
	}
	t.calls[tok] = tokenOwner{call: call}
	return tok
}

// becameTask says that the call with this token is a task now.
func (t *tokens) becameTask(token, task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.calls[token]; ok {
		o.task = task
		t.calls[token] = o
		t.tasks[task] = token
	}
}

// over forgets a token whose call ended without a task.
func (t *tokens) over(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.calls[token]; ok {
		delete(t.calls, token)
		delete(t.tasks, o.task)
	}
}

// taskOver forgets the token of a task that has ended.
func (t *tokens) taskOver(task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tok, ok := t.tasks[task]; ok {
		delete(t.tasks, task)
		delete(t.calls, tok)
	}
}

// owner is what a token belongs to.
func (t *tokens) owner(token string) (call, task string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.calls[token]
	return o.call, o.task, ok
}

// progress passes a notifications/progress on; what nobody knows is dropped,
// since a late report of a call that has ended means nothing to anyone.
func (s *session) progress(params json.RawMessage) {
	p := taskmodel.Progress{At: time.Now(), Message: stringAt(params, "message")}
	var ok bool
	if p.Value, ok = number(member(params, "progress")); !ok {
		return
	}
	p.Total, p.HasTotal = number(member(params, "total"))
	var token string
	if v := member(params, "progressToken"); isString(v) {
		token = text(v)
	} else {
		token = string(v)
	}
	call, task, known := s.tokens.owner(token)
	if task == "" {
		// After a restart only the metadata tells whose progress it is.
		task = relatedTask(params).task
	}
	if !known && task == "" {
		return
	}
	s.handler().Progress(task, call, p)
}

func number(v json.RawMessage) (float64, bool) {
	if v == nil || isString(v) {
		return 0, false
	}
	var f float64
	if json.Unmarshal(v, &f) != nil {
		return 0, false
	}
	return f, true
}
