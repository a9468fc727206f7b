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

// core is the tasks of 2025-11-25 (basic/utilities/tasks): the server makes
// the ids, tasks/result blocks, and a question comes as a request of the
// server while it does. It also serves legacy servers without tasks, for plain
// calls.
//
// The related-task metadata is never in what core sends for tasks/get,
// tasks/list, tasks/result and tasks/cancel ("Associating Task-Related
// Messages"): there the taskId parameter says it.
type core struct {
	s    *session
	recv *receiver
}

const (
	notifyCore      = "notifications/tasks/status"
	notifyExtension = "notifications/tasks"
	metaModelNote   = "io.modelcontextprotocol/model-immediate-response"
)

// newCore makes the generation for a session whose handshake is over, and says
// in its Info what it can do. receives says that we offered to run the
// server's requests as tasks.
func newCore(s *session, receives bool) generation {
	c := &core{s: s, recv: newReceiver(s, receives)}
	s.setInfo(func(i *Info) { i.Can = coreCan(*i, s.opts.Generation) })
	return c
}

// coreCan reads the server's capabilities ("Server Capabilities").
func coreCan(i Info, forced taskmodel.Generation) taskmodel.Can {
	var can taskmodel.Can
	if i.Generation != taskmodel.GenCore {
		why := "this server has no tasks"
		if forced == taskmodel.GenNone {
			why = "tasks are switched off for this server"
		}
		return taskmodel.Can{ListWhy: why, CancelWhy: why, StartWhy: why, PushWhy: why}
	}
	tasks := member(i.Capabilities, "tasks")
	can.List = declared(member(tasks, "list"))
	can.Cancel = declared(member(tasks, "cancel"))
	can.Start = declared(memberAt(tasks, "requests", "tools", "call"))
	can.PushWhy = "2025-11-25 promises no notifications; they are used when they come"
	if !can.List {
		can.ListWhy = "the server declares no tasks.list"
	}
	if !can.Cancel {
		can.CancelWhy = "the server declares no tasks.cancel"
	}
	if !can.Start {
		can.StartWhy = "the server declares no tasks.requests.tools.call"
	}
	return can
}

// declared reports whether a capability is there: it is an object, and some
// servers write true.
func declared(v json.RawMessage) bool { return isObject(v) || string(v) == "true" }

// Start calls a tool, as a task unless c.Plain says otherwise ("Tool-Level
// Negotiation"). It sends the call once and never again.
func (c *core) Start(ctx context.Context, call StartCall) (Started, error) {
	s := c.s
	if err := c.mayStart(ctx, call); err != nil {
		return Started{}, err
	}
	args := call.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	token := s.tokens.newToken(call.CallID)
	params := map[string]any{
		"name": call.Tool, "arguments": args,
		"_meta": map[string]any{"progressToken": token},
	}
	if !call.Plain {
		task := map[string]any{}
		if call.TTL > 0 {
			task["ttl"] = call.TTL.Milliseconds()
		}
		params["task"] = task
	}
	id := s.peer.NewID()
	end := s.calls.begin(id, call.Tool, "")
	defer end()
	b, err := s.send(ctx, jsonrpc.Call{Method: "tools/call", Params: params, Name: call.Tool, ID: id})
	if err != nil {
		s.tokens.over(token)
		if call.Plain && ctx.Err() != nil {
			// Only for what is no task (basic/utilities/cancellation).
			s.cancelRequest(id, "the person does not want the result any more")
		}
		return Started{}, startError(err, call)
	}
	st := readStarted(b, !call.Plain)
	if st.TaskID == "" {
		s.tokens.over(token)
	} else {
		s.tokens.becameTask(token, st.TaskID)
	}
	return st, nil
}

// mayStart applies the rules about who may be called how.
func (c *core) mayStart(ctx context.Context, call StartCall) error {
	s := c.s
	info := s.getInfo()
	do := doing("tools/call", call.Tool)
	if call.Plain && info.Generation != taskmodel.GenCore {
		return nil
	}
	if !call.Plain && !info.Can.Start {
		return s.unsupported(do, "it cannot run as a task: "+info.Can.StartWhy)
	}
	t, found, known := s.tools.tool(call.Tool)
	if !known {
		if _, err := s.listTools(ctx, nil); err != nil {
			if call.Plain {
				return nil // the server will say what it thinks of it
			}
			return err
		}
		t, found, _ = s.tools.tool(call.Tool)
	}
	switch {
	case !found && !call.Plain:
		return s.unsupported(do, "the server lists no such tool")
	case !found:
		return nil
	case call.Plain && info.Can.Start && t.TaskSupport == supportRequired:
		return withKind(&sessionError{server: s.server(), doing: do,
			words: ErrTaskRequired.Error() + "; start it as a task"}, ErrTaskRequired)
	case !call.Plain && t.WhyNotTask != "":
		return s.unsupported(do, "it cannot run as a task: "+t.WhyNotTask)
	}
	return nil
}

// startError tells a refusal for want of a task from others (field fault S13):
// -32601 by the rules for tools, -32600 by those for receivers.
func startError(err error, call StartCall) error {
	e := rpcErrorOf(err)
	if e == nil || !call.Plain {
		return err
	}
	if (e.Code == codeMethodNotFound || e.Code == codeInvalidRequest) && mentionsTask(e.Message) {
		return withKind(err, ErrTaskRequired)
	}
	return err
}

// readStarted reads the answer to a tools/call: a CreateTaskResult, or the
// call's own result where the server made no task (field fault S13).
func readStarted(b json.RawMessage, asked bool) Started {
	task, lenient := member(b, "task"), ""
	if !isObject(task) && member(b, "content") == nil && isString(member(b, "taskId")) {
		task, lenient = b, "the task stands in the answer itself, not in its member task"
	}
	if isObject(task) && member(b, "content") == nil {
		snap, err := readTask(task, coreFields)
		if err == nil {
			if lenient != "" {
				snap.Lenient = append(snap.Lenient, lenient)
			}
			snap.ModelNote = stringAt(b, "_meta", metaModelNote)
			return Started{TaskID: snap.ID, Snapshot: snap}
		}
		return Started{
			Outcome: taskmodel.Outcome{Result: b, FetchedAt: time.Now(), Note: "the server speaks of a task but names none: " + err.Error()},
			Note:    "the server speaks of a task but gives it no id, so that it cannot be followed",
		}
	}
	st := Started{Outcome: outcome(b)}
	if asked {
		st.Note = "a task was asked for; the server made none and answered at once"
	}
	return st
}

// outcome is a result as it came, with a note where it is no tool result
// (field fault S4). The payload is not touched.
func outcome(b json.RawMessage) taskmodel.Outcome {
	o := taskmodel.Outcome{Result: b, FetchedAt: time.Now()}
	switch {
	case !isObject(b):
		o.Note = "this is no tool result: it is no JSON object"
	case !isArray(member(b, "content")) && member(b, "structuredContent") == nil:
		o.Note = "this is no tool result: it has no content"
		if empty(b) {
			o.Note = "the server gave an empty answer"
		}
	}
	return o
}

// empty reports whether an object has no members but _meta.
func empty(b json.RawMessage) bool {
	none := true
	members(b, func(k string, _ json.RawMessage) bool {
		none = k == "_meta"
		return none
	})
	return none
}

// Get asks for one task's state ("Getting Tasks").
func (c *core) Get(ctx context.Context, id string) (taskmodel.Snapshot, error) {
	if why := c.none(); why != "" {
		return taskmodel.Snapshot{}, c.s.unsupported(doing("tasks/get", id), why)
	}
	b, err := c.s.call(ctx, "tasks/get", map[string]any{"taskId": id}, id, nil)
	if err != nil {
		return taskmodel.Snapshot{}, taskError(err)
	}
	return c.snapshot(b, id, "tasks/get")
}

// snapshot reads an answer that is one task.
func (c *core) snapshot(b json.RawMessage, id, method string) (taskmodel.Snapshot, error) {
	snap, err := readTaskAs(b, id, coreFields)
	if err != nil {
		return snap, c.s.wrap(doing(method, id), err)
	}
	if snap.Status.Terminal(taskmodel.GenCore) {
		c.s.tokens.taskOver(id)
	}
	return snap, nil
}

// readTaskAs reads the task that was asked for by id. The id of the question
// counts: an answer without one, or with another, is still about that task,
// and is told so.
func readTaskAs(b json.RawMessage, id string, names fieldNames) (taskmodel.Snapshot, error) {
	nested := false
	if t := member(b, "task"); isObject(t) && member(b, "status") == nil {
		b, nested = t, true
	}
	snap, err := readTask(b, names)
	if err != nil && !errors.Is(err, errNoTaskID) {
		return snap, err
	}
	if nested {
		snap.Lenient = append(snap.Lenient, "the task stands in the member task")
	}
	if snap.ID != "" && snap.ID != id {
		snap.Lenient = append(snap.Lenient, fmt.Sprintf("the answer is for task %q, asked was %q", snap.ID, id))
	}
	snap.ID = id
	return snap, nil
}

// List fetches one page ("Listing Tasks"). The cursor is the server's and is
// not looked into.
func (c *core) List(ctx context.Context, cursor string, next func(string)) (Page, error) {
	if can := c.s.getInfo().Can; !can.List {
		return Page{}, c.s.unsupported(doing("tasks/list", ""), can.ListWhy)
	}
	params := map[string]any{}
	if cursor != "" {
		params["cursor"] = cursor
	}
	b, err := c.s.send(ctx, jsonrpc.Call{Method: "tasks/list", Params: params, Early: early(next)})
	if err != nil {
		if codeOf(err) == codeMethodNotFound {
			err = withKind(err, ErrUnsupported)
		}
		return Page{}, err
	}
	return c.s.readPage(b, coreFields)
}

// Result waits for what the original request would have returned ("Retrieving
// Task Results"). Nothing but ctx ends the wait; when it does, the server is
// told nothing before the connection closes, unless by ErrNotWanted. A
// JSON-RPC error is the outcome too: the server returns exactly what the
// request would have returned.
func (c *core) Result(ctx context.Context, id string) (taskmodel.Outcome, error) {
	s := c.s
	if why := c.none(); why != "" {
		return taskmodel.Outcome{}, s.unsupported(doing("tasks/result", id), why)
	}
	req := s.peer.NewID()
	end := s.calls.begin(req, "", id)
	defer end()
	b, err := s.send(ctx, jsonrpc.Call{Method: "tasks/result", Params: map[string]any{"taskId": id}, Name: id, ID: req})
	if err == nil {
		o := outcome(b)
		if other := relatedTask(b).task; other != "" && other != id {
			o.Note = join(o.Note, fmt.Sprintf("the answer says that it belongs to task %q", other))
		}
		return o, nil
	}
	switch {
	case ctx.Err() == nil:
	case errors.Is(context.Cause(ctx), ErrNotWanted):
		s.cancelRequest(req, ErrNotWanted.Error())
	default:
		s.calls.leave(req)
	}
	e := rpcErrorOf(err)
	switch {
	case e == nil:
		return taskmodel.Outcome{}, err
	case e.Code == codeInvalidParams && soundsUnknown(e.Message):
		return taskmodel.Outcome{}, withKind(err, ErrNotFound)
	case e.Code == codeMethodNotFound:
		return taskmodel.Outcome{}, withKind(err, ErrUnsupported)
	}
	return taskmodel.Outcome{Err: e, FetchedAt: time.Now()}, nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// Cancel asks for cancellation ("Cancelling Tasks"); notifications/cancelled
// is never used for a task. -32602 means that the task has ended already
// (ErrTerminal: look at it with Get) or is not known (ErrNotFound). Servers
// answer with the task, or with nothing of use (field fault S12): then the
// snapshot is nil.
func (c *core) Cancel(ctx context.Context, id string) (*taskmodel.Snapshot, error) {
	if can := c.s.getInfo().Can; !can.Cancel {
		return nil, c.s.unsupported(doing("tasks/cancel", id), can.CancelWhy)
	}
	b, err := c.s.call(ctx, "tasks/cancel", map[string]any{"taskId": id}, id, nil)
	if err != nil {
		e := rpcErrorOf(err)
		switch {
		case e == nil:
			return nil, err
		case e.Code == codeMethodNotFound:
			return nil, withKind(err, ErrUnsupported)
		case e.Code != codeInvalidParams:
			return nil, err
		case soundsUnknown(e.Message) && !soundsTerminal(e.Message):
			return nil, withKind(err, ErrNotFound)
		}
		return nil, withKind(err, ErrTerminal)
	}
	if member(b, "status") == nil && member(member(b, "task"), "status") == nil {
		return nil, nil
	}
	snap, err := c.snapshot(b, id, "tasks/cancel")
	if err != nil {
		return nil, err
	}
	return &snap, nil
}

// Delete is the draft's.
func (c *core) Delete(_ context.Context, id string) error {
	return c.s.unsupported(doing("tasks/delete", id), "only the draft of tasks can delete")
}

// Watch is a no-op: status notifications need no asking here.
func (c *core) Watch(context.Context, []string) error { return nil }

// none says why there are no tasks to ask for, "" when there are.
func (c *core) none() string {
	if i := c.s.getInfo(); i.Generation != taskmodel.GenCore {
		return i.Can.ListWhy
	}
	return ""
}

// taskError marks the errors by which a server says that it does not know a
// task ("Protocol Errors": -32602). Other codes count only with the words.
func taskError(err error) error {
	e := rpcErrorOf(err)
	switch {
	case e == nil:
		return err
	case e.Code == codeInvalidParams:
		return withKind(err, ErrNotFound)
	case e.Code == codeMethodNotFound:
		return withKind(err, ErrUnsupported)
	case mentionsTask(e.Message) && soundsUnknown(e.Message):
		return withKind(err, ErrNotFound)
	}
	return err
}

// notification takes status notifications ("Task Status Notification"); those
// of the other generations are read too, and told.
func (c *core) notification(n jsonrpc.Notification) bool {
	if n.Method != notifyCore && (n.Method != notifyExtension || c.none() != "") {
		return false
	}
	task := n.Params
	if t := member(task, "task"); isObject(t) && member(task, "status") == nil {
		task = t
	}
	snap, err := readTask(task, coreFields)
	if err != nil {
		c.s.log.Warn("a status notification names no task", "server", c.s.server(), "err", err)
		return true
	}
	if n.Method != notifyCore {
		snap.Lenient = append(snap.Lenient, n.Method+" is another generation's notification")
	}
	if snap.Status.Terminal(taskmodel.GenCore) {
		c.s.tokens.taskOver(snap.ID)
	}
	now := time.Now()
	c.s.handler().Snapshot(taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now})
	return true
}

// request takes what concerns us as a receiver.
func (c *core) request(ctx context.Context, r *jsonrpc.Request) bool { return c.recv.request(ctx, r) }

// answer is for the questions that were asked of us as tasks.
func (c *core) answer(ctx context.Context, a taskmodel.Answer) error { return c.recv.answer(ctx, a) }

// close withdraws what is open (see leave).
func (c *core) close(ctx context.Context) { c.leave(ctx) }

// leave withdraws every tasks/result that the server may still be at
// (basic/utilities/cancellation). Where the session goes on without us, the
// server would else hand the task's next question to a stream that nobody
// reads. It withdraws a request and never a task: a task comes of a call. Its
// caller goes on hearing what comes meanwhile.
func (c *core) leave(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	var wg sync.WaitGroup
	for _, id := range c.s.calls.results() {
		wg.Go(func() { c.s.withdrawRequest(ctx, id, "the connection is being closed") })
	}
	wg.Wait()
}
