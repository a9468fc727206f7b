package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// receiver runs as tasks what a server asks of us (2025-11-25
// basic/utilities/tasks, with us in the receiver's place): elicitation/create
// and sampling/createMessage. A task is working until the person has answered,
// then completed or failed; it is dropped when its TTL is over.
//
// It belongs to one connection, and by that every task in it to the server
// that asked for it: no other can reach it ("Task Isolation and Access
// Control").
type receiver struct {
	s       *session
	on      bool // declared in initialize
	limits  ReceiverLimits
	cursors string // sets the cursors of this receiver apart

	mu     sync.Mutex
	tasks  map[string]*ownTask
	order  []*ownTask // by creation, for listing
	count  int        // ever created; numbers them
	bucket float64    // calls that may still be made now
	filled time.Time
	ended  bool
}

// An ownTask is one task that the server asked for. All but id, n and the
// request's own data is guarded by receiver.mu.
type ownTask struct {
	id       string
	n        int // from 1, in order of creation
	method   string
	params   json.RawMessage
	question taskmodel.Question
	related  related // the server's own task that it asks for, if any
	created  time.Time
	ttl      time.Duration

	status  taskmodel.Status
	message string
	updated time.Time
	result  json.RawMessage // when completed
	failure *jsonrpc.Error  // when failed or cancelled
	over    chan struct{}   // closed at the end
	expiry  *time.Timer
}

// pollHint is the pollInterval of our tasks: a person answers, not a machine.
const pollHint = 2 * time.Second

// keptPerRunning bounds, in multiples of MaxTasks, the ended tasks that are
// kept until their TTL is over.
const keptPerRunning = 32

// codeBusy answers what is over our limits. The specification has no code for
// it; this one is in the range that JSON-RPC leaves to implementations.
const codeBusy = -32000

// newReceiver makes the receiver of one connection. off is one that takes
// nothing: what a server sends is then handled as if it asked for no task.
func newReceiver(s *session, on bool) *receiver {
	l := s.opts.Receiver
	if l.MaxTTL <= 0 {
		l.MaxTTL = 24 * time.Hour
	}
	if l.DefaultTTL <= 0 {
		l.DefaultTTL = time.Hour
	}
	l.DefaultTTL = min(l.DefaultTTL, l.MaxTTL)
	if l.MaxTasks <= 0 {
		l.MaxTasks = 32
	}
	if l.PageSize <= 0 {
		l.PageSize = 50
	}
	if l.PerSecond <= 0 {
		l.PerSecond = 50
	}
	return &receiver{
		s: s, on: on, limits: l, cursors: uuid.NewString(),
		tasks: map[string]*ownTask{}, bucket: float64(l.PerSecond), filled: time.Now(),
	}
}

// request takes the server's request if it is about tasks of ours; false means
// that it is to be handled as any other. A request type that we did not
// declare is handled as if it carried no task ("Task Support and Handling").
func (v *receiver) request(ctx context.Context, r *jsonrpc.Request) bool {
	if !v.on {
		return false
	}
	var do func(context.Context, *jsonrpc.Request)
	switch r.Method {
	case methodElicit, methodSampling:
		if !isObject(member(r.Params, "task")) || r.Method == methodElicit && v.s.opts.NoElicitation {
			return false
		}
		do = v.create
	case "tasks/get":
		do = v.get
	case "tasks/list":
		do = v.list
	case "tasks/cancel":
		do = v.cancel
	case "tasks/result":
		do = v.result
	default:
		return false
	}
	if !v.allowed() {
		v.s.failNow(ctx, r, codeBusy, fmt.Sprintf("too many task requests: mcptasks takes %d a second", v.limits.PerSecond))
		return true
	}
	do(ctx, r)
	return true
}

// allowed takes one call from the bucket, which fills at PerSecond.
func (v *receiver) allowed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	most := float64(v.limits.PerSecond)
	v.bucket = min(most, v.bucket+now.Sub(v.filled).Seconds()*most)
	v.filled = now
	if v.bucket < 1 {
		return false
	}
	v.bucket--
	return true
}

// create accepts a task-augmented request ("Creating Tasks").
func (v *receiver) create(ctx context.Context, r *jsonrpc.Request) {
	s := v.s
	if mode := stringAt(r.Params, "mode"); r.Method == methodElicit && mode != "" && mode != "form" && mode != "url" {
		s.failNow(ctx, r, codeInvalidParams, "unknown elicitation mode: "+clip([]byte(mode)))
		return
	}
	ttl, err := v.grant(memberAt(r.Params, "task", "ttl"))
	if err != nil {
		s.failNow(ctx, r, codeInvalidParams, err.Error())
		return
	}
	now := time.Now()
	t := &ownTask{
		id: uuid.NewString(), method: r.Method, params: r.Params, created: now, updated: now, ttl: ttl,
		status: taskmodel.Working, message: "waiting for a person", over: make(chan struct{}), related: relatedTask(r.Params),
	}
	t.question = askedQuestion(s.server(), "task:"+t.id, plainID(r.ID), r.Method, r.Params,
		taskmodel.Key{Server: s.server(), ID: t.id, Role: taskmodel.Receiver}, now)
	t.question.Receiver = true

	v.mu.Lock()
	running := 0
	for _, o := range v.order {
		if !o.status.Terminal(taskmodel.GenCore) {
			running++
		}
	}
	full := v.ended || running >= v.limits.MaxTasks || len(v.order) >= v.limits.MaxTasks*keptPerRunning
	if !full {
		v.count++
		t.n = v.count
		v.tasks[t.id] = t
		v.order = append(v.order, t)
		t.expiry = time.AfterFunc(ttl, func() { v.expire(t) })
	}
	snap := v.observe(t, taskmodel.FromCreate)
	task := v.wire(t)
	v.mu.Unlock()
	if full {
		s.failNow(ctx, r, codeBusy, fmt.Sprintf("mcptasks runs %d tasks for a server at once and not more", v.limits.MaxTasks))
		return
	}
	answer := map[string]any{"task": task}
	if m := t.related.meta(); m != nil {
		// The request was caused by a task of the server: its answer says so.
		answer["_meta"] = m
	}
	s.handler().ReceiverTask(snap, ReceiverInfo{Method: t.method, Params: t.params, Event: "created"})
	s.handler().Asked(t.question)
	s.replyNow(ctx, r, answer)
}

// grant is the TTL for one that was asked for, in milliseconds on the wire.
func (v *receiver) grant(asked json.RawMessage) (time.Duration, error) {
	if asked == nil || isNull(asked) {
		return v.limits.DefaultTTL, nil
	}
	ms, ok := number(asked)
	if !ok || ms <= 0 {
		return 0, fmt.Errorf("task.ttl is no positive number of milliseconds: %s", clip(asked))
	}
	return min(span(ms), v.limits.MaxTTL), nil
}

// ownTaskWire is one of our tasks as it goes over the wire (schema, Task).
type ownTaskWire struct {
	ID            string           `json:"taskId"`
	Status        taskmodel.Status `json:"status"`
	StatusMessage string           `json:"statusMessage,omitempty"`
	CreatedAt     string           `json:"createdAt"`
	LastUpdatedAt string           `json:"lastUpdatedAt"`
	TTL           int64            `json:"ttl"`
	PollInterval  int64            `json:"pollInterval"`
}

// wire is t for the wire; v.mu is held.
func (v *receiver) wire(t *ownTask) ownTaskWire {
	return ownTaskWire{
		ID: t.id, Status: t.status, StatusMessage: t.message,
		CreatedAt:     t.created.UTC().Format(time.RFC3339Nano),
		LastUpdatedAt: t.updated.UTC().Format(time.RFC3339Nano),
		TTL:           t.ttl.Milliseconds(), PollInterval: pollHint.Milliseconds(),
	}
}

// observe is t for the board; v.mu is held.
func (v *receiver) observe(t *ownTask, from taskmodel.Source) taskmodel.Observation {
	raw, _ := json.Marshal(v.wire(t))
	now := time.Now()
	o := taskmodel.Observation{Source: from, AskedAt: now, HeardAt: now, Snapshot: taskmodel.Snapshot{
		ID: t.id, Status: t.status, StatusMessage: t.message, CreatedAt: t.created, LastUpdatedAt: t.updated,
		TTL: taskmodel.TTL{Known: true, Duration: t.ttl}, PollInterval: pollHint, Raw: raw,
	}}
	switch {
	case t.result != nil:
		o.Outcome = taskmodel.Outcome{Result: t.result, FetchedAt: t.updated}
	case t.failure != nil && t.status == taskmodel.Failed:
		o.Outcome = taskmodel.Outcome{Err: &taskmodel.RPCError{Code: t.failure.Code, Message: t.failure.Message, Data: t.failure.Data}, FetchedAt: t.updated}
	}
	return o
}

// find gives the task that a request names; otherwise it has answered -32602
// ("Protocol Errors"). The related-task metadata of such a request is ignored.
func (v *receiver) find(ctx context.Context, r *jsonrpc.Request, verb string) *ownTask {
	id := stringAt(r.Params, "taskId")
	v.mu.Lock()
	t := v.tasks[id]
	v.mu.Unlock()
	if t == nil {
		v.s.failNow(ctx, r, codeInvalidParams, "Failed to "+verb+" task: Task not found")
	}
	return t
}

func (v *receiver) get(ctx context.Context, r *jsonrpc.Request) {
	t := v.find(ctx, r, "retrieve")
	if t == nil {
		return
	}
	v.mu.Lock()
	w := v.wire(t)
	v.mu.Unlock()
	v.s.replyNow(ctx, r, w)
}

// result blocks until the task has ended ("Result Retrieval"). The answer
// names its task in the metadata.
func (v *receiver) result(ctx context.Context, r *jsonrpc.Request) {
	t := v.find(ctx, r, "retrieve")
	if t == nil {
		return
	}
	go func() {
		select {
		case <-t.over:
		case <-ctx.Done(): // withdrawn, or the connection ended
			return
		}
		v.mu.Lock()
		result, failure := t.result, t.failure
		snap := v.observe(t, taskmodel.FromGet)
		v.mu.Unlock()
		var err error
		if failure != nil {
			err = r.Fail(ctx, failure)
		} else {
			err = r.Reply(ctx, result)
		}
		if err != nil {
			v.s.log.Debug("could not hand a result over", "server", v.s.server(), "task", t.id, "err", err)
			return
		}
		v.s.handler().ReceiverTask(snap, ReceiverInfo{Method: t.method, Params: t.params, Event: "retrieved"})
	}()
}

// list gives one page, oldest first. A cursor is good on this connection alone.
func (v *receiver) list(ctx context.Context, r *jsonrpc.Request) {
	after := 0
	if c := member(r.Params, "cursor"); c != nil && !isNull(c) {
		n, ok := v.cursor(c)
		if !ok {
			v.s.failNow(ctx, r, codeInvalidParams, "Invalid cursor")
			return
		}
		after = n
	}
	v.mu.Lock()
	page := []ownTaskWire{}
	last, more := 0, false
	for _, t := range v.order {
		if t.n <= after {
			continue
		}
		if len(page) == v.limits.PageSize {
			more = true
			break
		}
		page, last = append(page, v.wire(t)), t.n
	}
	v.mu.Unlock()
	answer := map[string]any{"tasks": page}
	if more {
		answer["nextCursor"] = fmt.Sprintf("%s/%d", v.cursors, last)
	}
	v.s.replyNow(ctx, r, answer)
}

// cursor reads one of our cursors.
func (v *receiver) cursor(c json.RawMessage) (after int, ok bool) {
	if !isString(c) {
		return 0, false
	}
	t := text(c)
	if len(t) <= len(v.cursors)+1 || t[:len(v.cursors)+1] != v.cursors+"/" {
		return 0, false
	}
	if _, err := fmt.Sscanf(t[len(v.cursors)+1:], "%d", &after); err != nil || fmt.Sprintf("%s/%d", v.cursors, after) != t {
		return 0, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return after, after > 0 && after <= v.count
}

// cancel ends a task that has not ended ("Task Cancellation").
func (v *receiver) cancel(ctx context.Context, r *jsonrpc.Request) {
	t := v.find(ctx, r, "cancel")
	if t == nil {
		return
	}
	failure := &jsonrpc.Error{Code: codeBusy, Message: "the task was cancelled"}
	snap, w, ok := v.finish(t, taskmodel.Cancelled, "cancelled by the server that asked for it", nil, failure)
	if !ok {
		v.s.failNow(ctx, r, codeInvalidParams, fmt.Sprintf("Cannot cancel task: already in terminal status '%s'", w.Status))
		return
	}
	v.s.handler().ReceiverTask(snap, ReceiverInfo{Method: t.method, Params: t.params, Event: "cancelled"})
	v.s.handler().Withdrawn(t.question.ID, "the server cancelled the task")
	go func() {
		defer close(t.over)
		if err := r.Reply(ctx, w); err != nil {
			v.s.log.Debug("could not answer", "server", v.s.server(), "method", r.Method, "err", err)
		}
	}()
}

// finish ends a task once; ok is false when it had ended before. Whoever waits
// for the result gets it when the caller then closes t.over.
func (v *receiver) finish(t *ownTask, st taskmodel.Status, message string, result json.RawMessage, failure *jsonrpc.Error) (taskmodel.Observation, ownTaskWire, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.status.Terminal(taskmodel.GenCore) {
		return taskmodel.Observation{}, v.wire(t), false
	}
	t.status, t.message, t.updated = st, message, time.Now()
	t.result, t.failure = result, failure
	return v.observe(t, taskmodel.FromPush), v.wire(t), true
}

// answer takes a person's answer to a question that was asked as a task. The
// server is told of the new status and fetches the result when it likes.
func (v *receiver) answer(ctx context.Context, a taskmodel.Answer) error {
	var t *ownTask
	v.mu.Lock()
	for _, o := range v.order {
		if o.question.ID == a.Question {
			t = o
		}
	}
	v.mu.Unlock()
	if t == nil {
		return fmt.Errorf("%s: %w", v.s.server(), ErrNoQuestion)
	}
	about, _ := json.Marshal(map[string]string{"taskId": t.id})
	result, failure, err := answerResult(t.question, a, map[string]json.RawMessage{relatedTaskKey: about})
	if err != nil {
		return fmt.Errorf("%s: answering %q: %w", v.s.server(), t.question.Key, err)
	}
	st, message := taskmodel.Completed, "a person has answered: "+string(a.Action)
	var raw json.RawMessage
	if failure != nil {
		st, message = taskmodel.Failed, failure.Message
	} else if raw, err = json.Marshal(result); err != nil {
		return fmt.Errorf("%s: answering %q: %w", v.s.server(), t.question.Key, err)
	}
	snap, w, ok := v.finish(t, st, message, raw, failure)
	if !ok {
		return fmt.Errorf("%s: %w", v.s.server(), ErrNoQuestion)
	}
	v.s.handler().ReceiverTask(snap, ReceiverInfo{Method: t.method, Params: t.params, Event: "ended"})
	v.announce(ctx, w)
	close(t.over)
	return nil
}

// announce sends a status notification; it carries no metadata, and that it
// could not be sent does not matter, since nobody may rely on it ("Task
// Notifications").
func (v *receiver) announce(ctx context.Context, w ownTaskWire) {
	if err := v.s.notify(ctx, notifyCore, w, nil); err != nil {
		v.s.log.Debug("could not tell a task's status", "server", v.s.server(), "task", w.ID, "err", err)
	}
}

// expire drops a task whose TTL is over, answered or not.
func (v *receiver) expire(t *ownTask) {
	failure := &jsonrpc.Error{Code: codeInvalidParams, Message: "Failed to retrieve task: Task has expired"}
	snap, _, unanswered := v.finish(t, taskmodel.Cancelled, "its time to live was over", nil, failure)
	v.mu.Lock()
	if unanswered {
		close(t.over)
	} else {
		snap = v.observe(t, taskmodel.FromPush)
	}
	delete(v.tasks, t.id)
	for i, o := range v.order {
		if o == t {
			v.order = append(v.order[:i:i], v.order[i+1:]...)
			break
		}
	}
	v.mu.Unlock()
	v.s.handler().ReceiverTask(snap, ReceiverInfo{Method: t.method, Params: t.params, Event: "expired"})
	if unanswered {
		v.s.handler().Withdrawn(t.question.ID, "its time to live was over before it was answered")
	}
}

// end drops everything when the connection has ended: nobody can fetch it any
// more.
func (v *receiver) end() {
	v.mu.Lock()
	v.ended = true
	open := v.order
	v.order, v.tasks = nil, map[string]*ownTask{}
	v.mu.Unlock()
	for _, t := range open {
		t.expiry.Stop()
		v.mu.Lock()
		unanswered := !t.status.Terminal(taskmodel.GenCore)
		v.mu.Unlock()
		if unanswered {
			v.s.handler().Withdrawn(t.question.ID, "the connection to the server ended")
		}
	}
}
