package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// draft is the requestor's side of SEP-1686 as it was proposed: the client
// makes the task's id and sends it in the call's metadata, the server says by
// notifications/tasks/created that polling can begin, and the call's own
// answer still comes at the end (draft_start.go).
//
// What differs from 2025-11-25: submitted and unknown, keepAlive counted from
// the end, pollFrequency, error as a text, no times, a result only when
// completed, tasks/delete, and cancellation by the call's request id.
type draft struct {
	s    *session
	over chan struct{} // closed by close
	once sync.Once
	news chan struct{} // bounds the states fetched because of a notification

	mu      sync.Mutex
	calls   map[string]*draftCall // by task id: calls made on this connection
	parents map[string]string     // child to parent, as childTasks named them
	waiters waiters               // who waits for a task to move
}

const (
	metaDraftTask  = "modelcontextprotocol.io/task"
	draftNews      = 4                // states fetched at once because of notifications
	draftLinger    = 10 * time.Second // how long the call's own answer is waited for after the task's end
	draftParents   = 4096             // remembered children at most
	draftFetchTime = 30 * time.Second
)

func newDraft(s *session) generation {
	d := &draft{
		s: s, over: make(chan struct{}), news: make(chan struct{}, draftNews),
		calls: make(map[string]*draftCall), parents: make(map[string]string),
	}
	s.setInfo(func(i *Info) {
		i.Generation = taskmodel.GenDraft
		i.Can = draftCan(i.Capabilities)
	})
	return d
}

// draftCan reads the tasks capability where it is declared. It is never
// required (SEP-1686, "Backward Compatibility"): what is not denied is tried.
func draftCan(capabilities json.RawMessage) taskmodel.Can {
	can := taskmodel.Can{Start: true, List: true, Cancel: true, Delete: true, Push: true}
	t := member(capabilities, "tasks")
	denied := func(paths ...[]string) bool {
		for _, p := range paths {
			if v := memberAt(t, p...); string(v) == "false" {
				return true
			}
		}
		return false
	}
	if string(t) == "false" || denied([]string{"requests", "tools", "call"}, []string{"tools", "call"}) {
		can.Start, can.StartWhy = false, "the server declares that tools do not run as tasks"
	}
	if denied([]string{"list"}) {
		can.List, can.ListWhy = false, "the server declares that it does not list tasks"
	}
	if denied([]string{"cancel"}) {
		can.Cancel, can.CancelWhy = false, "the server declares that it does not cancel tasks"
	}
	if denied([]string{"delete"}) {
		can.Delete = false
	}
	return can
}

// relatedMeta is the metadata that every message about a task carries (4.7).
func relatedMeta(id string) map[string]any {
	return map[string]any{relatedTaskDraftKey: map[string]any{"taskId": id}}
}

// taskParams are the params of a request about one task.
func draftParams(id string) map[string]any {
	return map[string]any{"taskId": id, "_meta": relatedMeta(id)}
}

// Get asks for one task's state (3.2).
func (d *draft) Get(ctx context.Context, id string) (taskmodel.Snapshot, error) {
	b, err := d.s.call(ctx, "tasks/get", draftParams(id), id, nil)
	if err != nil {
		switch codeOf(err) {
		case codeInvalidParams:
			// 7.1: an invalid or nonexistent taskId.
			err = d.s.asKind(doing("tasks/get", id), ErrNotFound, err)
		case codeMethodNotFound:
			err = d.s.asKind(doing("tasks/get", id), ErrUnsupported, err)
		}
		return taskmodel.Snapshot{}, err
	}
	snap, err := d.observe(b, id)
	if err == nil && snap.ID != id {
		err = fmt.Errorf("the server answered about another task, %s", snap.ID)
	}
	if err != nil {
		return snap, d.s.wrap(doing("tasks/get", id), err)
	}
	return snap, nil
}

// List fetches one page (3.5).
func (d *draft) List(ctx context.Context, cursor string, next func(string)) (Page, error) {
	p := map[string]any{}
	if cursor != "" {
		p["cursor"] = cursor
	}
	b, err := d.s.send(ctx, jsonrpc.Call{Method: "tasks/list", Params: p, Early: early(next)})
	if err != nil {
		if codeOf(err) == codeMethodNotFound {
			why := "the server does not list tasks (error -32601 on tasks/list)"
			d.s.setInfo(func(i *Info) { i.Can.List, i.Can.ListWhy = false, why })
			return Page{}, d.s.unsupported(doing("tasks/list", ""), why)
		}
		return Page{}, err
	}
	page := Page{Raw: b}
	page.Next, page.Cut = nextCursor(member(b, "nextCursor"))
	list := member(b, "tasks")
	if !isArray(list) {
		return page, d.s.wrap(doing("tasks/list", ""), fmt.Errorf("the answer has no list of tasks: %s", clip(b)))
	}
	elements(list, func(v json.RawMessage) bool {
		snap, err := d.observe(v, "")
		if err != nil {
			d.s.handler().Log(taskmodel.LogLine{At: time.Now(), Level: "warning", Logger: "mcptasks",
				Text: "a row of tasks/list cannot be read: " + err.Error()})
			return true
		}
		page.Tasks = append(page.Tasks, snap)
		return true
	})
	return page, nil
}

// Result gives what the call would have returned. A server has it only when
// the task has completed (4.6); until then this polls. A failed task has its
// error and nothing else, which tasks/result would not tell.
func (d *draft) Result(ctx context.Context, id string) (taskmodel.Outcome, error) {
	wake, done := d.waiters.wait(id)
	defer done()
	return pollOutcome(ctx, d.s, taskmodel.GenDraft, id, wake, d.over, nil, func(ctx context.Context, id string) (taskmodel.Snapshot, error) {
		snap, err := d.Get(ctx, id)
		if err == nil && snap.Status == taskmodel.Completed && snap.Outcome.IsZero() {
			snap.Outcome, err = d.fetch(ctx, id)
		}
		return snap, err
	})
}

// fetch sends tasks/result (3.3). A JSON-RPC error that is not about the
// request itself is the outcome.
func (d *draft) fetch(ctx context.Context, id string) (taskmodel.Outcome, error) {
	b, err := d.s.call(ctx, "tasks/result", draftParams(id), id, nil)
	if err == nil {
		return taskmodel.Outcome{Result: b, FetchedAt: time.Now()}, nil
	}
	switch codeOf(err) {
	case codeInvalidParams:
		if soundsUnknown(rpcErrorOf(err).Message) {
			err = d.s.asKind(doing("tasks/result", id), ErrNotFound, err)
		}
	case codeMethodNotFound:
		err = d.s.asKind(doing("tasks/result", id), ErrUnsupported, err)
	}
	return taskmodel.Outcome{}, err
}

// Cancel takes back the call that started the task (4.8): the draft has no
// other way, so it works only for calls of this connection. It brings no
// confirmation; the caller polls.
func (d *draft) Cancel(ctx context.Context, id string) (*taskmodel.Snapshot, error) {
	what := doing("tasks/cancel", id)
	d.mu.Lock()
	c := d.calls[id]
	var ended bool
	if c != nil {
		ended = c.ended
	}
	d.mu.Unlock()
	switch {
	case c == nil:
		return nil, d.s.unsupported(what, "this draft of tasks cancels by the id of the call that started the task, and that call was not made on this connection")
	case ended:
		return nil, withKind(&sessionError{server: d.s.server(), doing: what, words: ErrTerminal.Error(), err: ErrTerminal}, ErrTerminal)
	}
	return nil, d.withdraw(ctx, c, "cancelled by the user")
}

// withdraw sends notifications/cancelled for a call.
func (d *draft) withdraw(ctx context.Context, c *draftCall, reason string) error {
	return d.s.notify(ctx, "notifications/cancelled", map[string]any{
		"requestId": c.req, "reason": reason, "_meta": relatedMeta(c.id),
	}, nil)
}

// Delete removes the task on the server (3.6), which may refuse.
func (d *draft) Delete(ctx context.Context, id string) error {
	_, err := d.s.call(ctx, "tasks/delete", draftParams(id), id, nil)
	if err == nil {
		d.forget(id)
		return nil
	}
	switch e := rpcErrorOf(err); {
	case e == nil:
	case e.Code == codeMethodNotFound:
		d.s.setInfo(func(i *Info) { i.Can.Delete = false })
		return d.s.unsupported(doing("tasks/delete", id), "the server does not delete tasks (error -32601 on tasks/delete)")
	case e.Code == codeInvalidParams && soundsUnknown(e.Message):
		return d.s.asKind(doing("tasks/delete", id), ErrNotFound, err)
	}
	return err
}

// Watch: pushes need no asking here.
func (d *draft) Watch(context.Context, []string) error { return nil }

// request: a server's request that is augmented with a task is processed
// plainly, as a receiver without tasks MUST (4.1), and so like any other.
func (d *draft) request(context.Context, *jsonrpc.Request) bool { return false }

// answer: all of the draft's questions are requests of the server, which the
// session answers.
func (d *draft) answer(_ context.Context, a taskmodel.Answer) error {
	return d.s.wrap("answering", ErrNoQuestion)
}

// notification takes the three names that task notifications have had in the
// drafts: created carries nothing but the id, the others a state.
func (d *draft) notification(n jsonrpc.Notification) bool {
	switch n.Method {
	case notifyDraftCreated, "notifications/tasks/status", "notifications/tasks":
	default:
		return false
	}
	now := time.Now()
	raw := n.Params
	if t := member(raw, "task"); isObject(t) {
		raw = t
	}
	id := stringAt(raw, "taskId")
	if id == "" {
		id = relatedTask(n.Params).task
	}
	if id == "" {
		d.s.malformed(n, errors.New("it names no task"))
		return true
	}
	if n.Method == notifyDraftCreated {
		d.created(id)
	}
	if stringAt(raw, "status") == "" {
		if n.Method != notifyDraftCreated || !d.mine(id) {
			d.fetchNews(id, taskmodel.Outcome{})
		}
		return true
	}
	snap, err := d.observe(raw, id)
	if err != nil {
		d.s.malformed(n, err)
		return true
	}
	if n.Method == "notifications/tasks" {
		snap.Lenient = append(snap.Lenient, "notifications/tasks is another generation's name")
	}
	d.s.handler().Snapshot(taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now})
	return true
}

// fetchNews asks for a state because something has happened to the task. When
// too many such questions are in flight already the next poll will do.
func (d *draft) fetchNews(id string, o taskmodel.Outcome) {
	select {
	case d.news <- struct{}{}:
	default:
		if o.IsZero() {
			return
		}
		// An outcome must not be lost; it waits for its turn.
		go func() {
			select {
			case d.news <- struct{}{}:
				d.fetchNow(id, o)
			case <-d.over:
			case <-d.s.peer.Done():
			}
		}()
		return
	}
	go d.fetchNow(id, o)
}

func (d *draft) fetchNow(id string, o taskmodel.Outcome) {
	defer func() { <-d.news }()
	ctx, stop := context.WithTimeout(context.Background(), draftFetchTime)
	defer stop()
	sent := time.Now()
	snap, err := d.Get(ctx, id)
	if err != nil {
		d.s.log.Debug("no state after a notification", "server", d.s.server(), "task", id, "err", err)
		return
	}
	if snap.Status == taskmodel.Completed && snap.Outcome.IsZero() {
		snap.Outcome = o
	}
	d.s.handler().Snapshot(taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromGet, AskedAt: sent, HeardAt: time.Now()})
}

// readDraft reads one task object with what only the draft has in it. id stands
// in where the object has none of its own (a notification by metadata).
func readDraft(raw json.RawMessage, id string) (taskmodel.Snapshot, error) {
	snap, err := readTask(raw, draftFields)
	if err != nil && snap.ID == "" && isObject(raw) {
		// The related-task metadata names the task as well.
		if r := relatedTask(raw); r.task != "" {
			id = r.task
		}
		if id != "" {
			snap.ID, err = id, nil
			snap.Lenient = append(snap.Lenient, "the task has no taskId; its metadata names it")
		}
	}
	if err != nil {
		return snap, err
	}
	if fault := member(raw, "error"); fault != nil && !isNull(fault) {
		e := &taskmodel.RPCError{}
		if isString(fault) {
			e.Message = text(fault) // 7.2: a text, with no code
		} else {
			e = readTaskError(fault, &snap.Lenient)
			snap.Lenient = append(snap.Lenient, "error is an object, not a text")
		}
		if snap.Status == taskmodel.Failed || snap.Status == taskmodel.Unknown {
			snap.Outcome = taskmodel.Outcome{Err: e, FetchedAt: time.Now(), Note: "this draft of tasks gives the reason of a failure as text alone"}
		}
		if snap.StatusMessage == "" {
			snap.StatusMessage = e.Message
		}
	}
	snap.ParentID = stringAt(raw, "parentTaskId")
	elements(member(raw, "childTasks"), func(v json.RawMessage) bool {
		c := taskmodel.Child{Raw: v}
		if isString(v) {
			c.ID = text(v)
		} else {
			c.ID = stringAt(v, "taskId")
			// A child that names its tool is one that the client is to start.
			c.Required = stringAt(v, "toolName") != ""
		}
		if c.ID == "" {
			snap.Lenient = append(snap.Lenient, "a child task has no id: "+clip(v))
			return true
		}
		snap.Children = append(snap.Children, c)
		return true
	})
	return snap, nil
}

// observe reads one task object and tells who waits; see readDraft.
func (d *draft) observe(raw json.RawMessage, id string) (taskmodel.Snapshot, error) {
	snap, err := readDraft(raw, id)
	if err != nil {
		return snap, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range snap.Children {
		if len(d.parents) < draftParents {
			d.parents[c.ID] = snap.ID
		}
	}
	if snap.Status.Terminal(taskmodel.GenDraft) {
		d.s.tokens.taskOver(snap.ID)
		c := d.calls[snap.ID]
		if c != nil && snap.Status == taskmodel.Completed && snap.Outcome.IsZero() {
			// The call's answer was here before: the question after the state
			// that was made because of it may have failed.
			snap.Outcome, c.result = c.result, taskmodel.Outcome{}
		}
		if c != nil && !c.ended {
			c.ended = true
			// The call's own answer may be under way; a server that answers
			// only by the task leaves it open for ever.
			time.AfterFunc(draftLinger, func() { c.stop(errors.New("the task has ended")) })
		}
	}
	d.waiters.tell(snap)
	return snap, nil
}

func (d *draft) mine(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[id] != nil
}

// forget drops what is known of a task.
func (d *draft) forget(id string) {
	d.mu.Lock()
	c := d.calls[id]
	delete(d.calls, id)
	d.mu.Unlock()
	if c != nil {
		c.stop(errors.New("the task was deleted"))
	}
}

// close ends the waits. Calls in flight end with the connection; nothing is
// cancelled by it.
func (d *draft) close(context.Context) { d.once.Do(func() { close(d.over) }) }
