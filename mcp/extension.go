package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// extension is the requestor's side of the 2026-07-28 tasks extension,
// io.modelcontextprotocol/tasks. It also makes the plain calls of the modern
// era, on servers without the extension too, since a call without a task
// differs only in what it declares.
//
// There is no session, no list and no result request: each request stands for
// itself, states and outcomes come with tasks/get, questions with the state
// (extension_ask.go) or with the call (extension_call.go), pushes on a
// subscription (listen.go).
type extension struct {
	s      *session
	listen *listener
	calls  callQuestions
	over   chan struct{} // closed by close
	once   sync.Once

	seq     atomic.Int64 // orders requests sent and states heard; clocks are too coarse
	emit    sync.Mutex   // held while a state is read and told, so that what is told stands in order; before mu
	mu      sync.Mutex
	asks    map[string]*askedTask // by task id: tasks that have asked something
	waiters waiters               // who waits for a task to move
}

func newExtension(s *session) generation {
	x := &extension{
		s: s, over: make(chan struct{}),
		asks: make(map[string]*askedTask),
	}
	x.calls.open = make(map[string]*callRound)
	x.listen = newListener(s)
	s.setInfo(x.negotiate)
	return x
}

// negotiate says what this server can do (tasks.md, "Capability Negotiation").
func (x *extension) negotiate(i *Info) {
	const noList = "2026-07-28 has no list of tasks; known ids can be added by hand"
	declared := isObject(memberAt(i.Capabilities, "extensions", extensionTasks))
	if g := x.s.opts.Generation; g == taskmodel.GenNone || g == "" && !declared {
		why := "this server does not offer the tasks extension (" + extensionTasks + ")"
		if g == taskmodel.GenNone {
			why = "tasks are switched off for this server"
		}
		i.Generation = taskmodel.GenNone
		i.Can = taskmodel.Can{ListWhy: why, CancelWhy: why, StartWhy: why, PushWhy: why}
		return
	}
	i.Generation = taskmodel.GenExtension
	i.Can = taskmodel.Can{Start: true, Cancel: true, Push: true, ListWhy: noList}
}

// listTools lists the tools. Over HTTP, tools whose header annotations break
// the rules are left out, as a client MUST (server/tools, "x-mcp-header").
func (x *extension) listTools(ctx context.Context) ([]taskmodel.Tool, error) {
	if x.s.transport != "http" {
		return x.s.listTools(ctx, nil)
	}
	return x.s.listTools(ctx, x.dropTool)
}

// dropTool reports whether a tool may not be offered over HTTP, and says why.
func (x *extension) dropTool(t taskmodel.Tool) bool {
	_, err := paramHeaders(t.InputSchema)
	if err != nil {
		x.s.log.Warn("a tool is left out", "server", x.s.server(), "tool", t.Name, "why", err)
		x.s.handler().Log(taskmodel.LogLine{At: time.Now(), Level: "warning", Logger: "mcptasks",
			Text: fmt.Sprintf("the tool %q is left out: %v", t.Name, err)})
	}
	return err != nil
}

// ask sends one request with the metadata and the header fields of the
// modern era. withTasks declares the extension.
func (x *extension) ask(ctx context.Context, method, name string, params map[string]any, withTasks bool) (json.RawMessage, error) {
	p, header := x.s.modernParams(params, withTasks)
	b, err := x.s.call(ctx, method, p, name, header)
	if err != nil {
		return nil, x.explain(doing(method, name), err)
	}
	return b, nil
}

// Get asks for one task's state (tasks.md, "Task Polling").
func (x *extension) Get(ctx context.Context, id string) (taskmodel.Snapshot, error) {
	sent := x.seq.Add(1)
	b, err := x.ask(ctx, "tasks/get", id, map[string]any{"taskId": id}, true)
	if err != nil {
		// The server MUST answer -32602 for an id that it does not know, and
		// there is nothing else in tasks/get that could be invalid.
		if codeOf(err) == codeInvalidParams {
			err = x.s.asKind(doing("tasks/get", id), ErrNotFound, err)
		} else {
			err = x.notNegotiated(doing("tasks/get", id), err)
		}
		return taskmodel.Snapshot{}, err
	}
	snap, err := x.observe(b, sent)
	if err != nil {
		return snap, x.s.wrap(doing("tasks/get", id), err)
	}
	if snap.ID != id {
		return snap, x.s.wrap(doing("tasks/get", id), fmt.Errorf("the server answered about another task, %s", snap.ID))
	}
	return snap, nil
}

// List: this generation has no list, so that nobody's tasks show to others.
func (x *extension) List(context.Context, string, func(string)) (Page, error) {
	return Page{}, x.s.unsupported("listing the tasks", "2026-07-28 has no list of tasks; known ids can be added by hand")
}

// Delete: this generation has no deletion.
func (x *extension) Delete(_ context.Context, id string) error {
	return x.s.unsupported(doing("tasks/delete", id), "2026-07-28 has no deletion of tasks")
}

// Cancel signals the intent to cancel (tasks.md, "Task Cancellation"). The
// server acknowledges and decides by itself, so there is never a snapshot.
func (x *extension) Cancel(ctx context.Context, id string) (*taskmodel.Snapshot, error) {
	_, err := x.ask(ctx, "tasks/cancel", id, map[string]any{"taskId": id}, true)
	if err == nil {
		return nil, nil
	}
	if e := rpcErrorOf(err); e != nil && e.Code == codeInvalidParams {
		if soundsUnknown(e.Message) {
			return nil, x.s.asKind(doing("tasks/cancel", id), ErrNotFound, err)
		}
		return nil, x.s.asKind(doing("tasks/cancel", id), ErrTerminal, err)
	}
	return nil, x.notNegotiated(doing("tasks/cancel", id), err)
}

// Watch wants pushes for these tasks and no others.
func (x *extension) Watch(_ context.Context, ids []string) error {
	if why := x.listen.refused(); why != "" {
		return x.s.unsupported("asking for pushes", why)
	}
	if x.s.getInfo().Generation == taskmodel.GenNone {
		ids = nil // the tools may still change
	}
	x.listen.want(ids)
	return nil
}

// Result gives the outcome that tasks/get inlines. While the task is
// unfinished it polls, no faster than the server asks for, and is woken by
// pushes; it ends with ctx, with the connection, or with the first error.
func (x *extension) Result(ctx context.Context, id string) (taskmodel.Outcome, error) {
	wake, done := x.waiters.wait(id)
	defer done()
	return pollOutcome(ctx, x.s, taskmodel.GenExtension, id, wake, x.over, x.listen.acknowledged, x.Get)
}

// pollOutcome is how Result waits where results are not waited for on the
// server's side (extension, draft).
func pollOutcome(ctx context.Context, s *session, g taskmodel.Generation, id string, wake <-chan taskmodel.Snapshot, over <-chan struct{}, pushed func(string) bool, get func(context.Context, string) (taskmodel.Snapshot, error)) (taskmodel.Outcome, error) {
	for n := 0; ; n++ {
		sent := time.Now()
		snap, err := get(ctx, id)
		if err != nil {
			return taskmodel.Outcome{}, err
		}
		if n > 0 {
			// The polls of a long wait are news to others as well.
			s.handler().Snapshot(taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromGet, AskedAt: sent, HeardAt: time.Now()})
		}
		if snap.Status.Terminal(g) {
			return outcomeOf(s, snap)
		}
		timer := time.NewTimer(politeInterval(snap.PollInterval, pushed != nil && pushed(id)))
		for waiting := true; waiting; {
			var err error
			select {
			case <-timer.C:
				waiting = false
			case snap := <-wake:
				// A push of the end; it need not hold the outcome.
				if waiting = !snap.Status.Terminal(g); !waiting && !snap.Outcome.IsZero() {
					timer.Stop()
					return snap.Outcome, nil
				}
			case <-ctx.Done():
				err = ctx.Err()
			case <-s.peer.Done():
				err = ErrClosed
			case <-over:
				err = ErrClosed
			}
			if err != nil {
				timer.Stop()
				return taskmodel.Outcome{}, s.wrap(doing("tasks/result", id), err)
			}
		}
		timer.Stop()
	}
}

// How Result paces its polls.
const (
	politeFloor   = 500 * time.Millisecond
	politeDefault = 2 * time.Second
	politePushed  = 30 * time.Second // pushes come; polls only make sure
)

func politeInterval(hint time.Duration, pushed bool) time.Duration {
	if hint <= 0 {
		hint = politeDefault
	}
	hint = max(hint, politeFloor)
	if pushed {
		hint = max(hint, politePushed)
	}
	return hint
}

// outcomeOf is the outcome of an ended task, or in words why it has none.
func outcomeOf(s *session, snap taskmodel.Snapshot) (taskmodel.Outcome, error) {
	if !snap.Outcome.IsZero() {
		return snap.Outcome, nil
	}
	why := fmt.Sprintf("the task ended as %s and has no result", snap.Status)
	if snap.StatusMessage != "" {
		why += ": " + snap.StatusMessage
	}
	return taskmodel.Outcome{}, s.wrap(doing("tasks/result", snap.ID), errors.New(why))
}

// observe reads a DetailedTask, files what it asks and tells who waits. sent
// is x.seq from before the request went that raw answers, or for a push from
// when it was heard.
func (x *extension) observe(raw json.RawMessage, sent int64) (taskmodel.Snapshot, error) {
	x.emit.Lock()
	defer x.emit.Unlock()
	snap, err := readDetailed(raw)
	if err != nil {
		return snap, err
	}
	x.file(&snap, sent)
	if snap.Status.Terminal(taskmodel.GenExtension) {
		x.s.tokens.taskOver(snap.ID)
	}
	x.waiters.tell(snap)
	return snap, nil
}

// readDetailed reads a task with what its status inlines: result, error or
// inputRequests (tasks.md, "Task Status"). Questions are read by file.
func readDetailed(raw json.RawMessage) (taskmodel.Snapshot, error) {
	snap, err := readTask(raw, extensionFields)
	if err != nil {
		return snap, err
	}
	result, fault := member(raw, "result"), member(raw, "error")
	switch snap.Status {
	case taskmodel.Completed:
		if result == nil {
			snap.Missing = append(snap.Missing, "result")
		}
		snap.Outcome.Result = result
	case taskmodel.Failed:
		switch {
		case fault != nil && !isNull(fault):
			snap.Outcome.Err = readTaskError(fault, &snap.Lenient)
		case result != nil:
			// isError belongs into completed; some servers fail the task.
			snap.Outcome.Result = result
			snap.Lenient = append(snap.Lenient, "a failed task came with a result in place of an error")
		default:
			snap.Missing = append(snap.Missing, "error")
		}
	case taskmodel.InputRequired:
		if r := member(raw, "inputRequests"); !isObject(r) {
			snap.Missing = append(snap.Missing, "inputRequests")
		}
	}
	if !snap.Outcome.IsZero() {
		snap.Outcome.FetchedAt = time.Now()
	}
	return snap, nil
}

// readTaskError reads the JSON-RPC error of a failed task; a bare text, as the
// draft had it, is read too.
func readTaskError(v json.RawMessage, lenient *[]string) *taskmodel.RPCError {
	if isString(v) {
		*lenient = append(*lenient, "error is a text, not an error object")
		return &taskmodel.RPCError{Message: text(v)}
	}
	e := &taskmodel.RPCError{Message: stringAt(v, "message"), Data: member(v, "data")}
	if n, ok := number(member(v, "code")); ok {
		e.Code = int(n)
	} else {
		*lenient = append(*lenient, "error has no code: "+clip(v))
	}
	if e.Message == "" {
		e.Message = clip(v)
	}
	return e
}

// request: in this era a server MUST NOT send requests (basic/transports), and
// a client writes no responses. What comes is told and dropped.
func (x *extension) request(_ context.Context, r *jsonrpc.Request) bool {
	r.Cancel()
	x.s.handler().Log(taskmodel.LogLine{
		At: time.Now(), Level: "other", Logger: "mcptasks",
		Text: "not answered, a server sends no requests in 2026-07-28: " + string(r.Bytes),
	})
	return true
}

// notification takes what can only come in this generation. The three names
// that task notifications have had are all read.
func (x *extension) notification(n jsonrpc.Notification) bool {
	switch n.Method {
	case "notifications/tasks":
		x.push(n, "")
	case "notifications/tasks/status", "notifications/tasks/created":
		x.push(n, n.Method+" is another generation's name; read as notifications/tasks")
	case "notifications/subscriptions/acknowledged":
		x.listen.acknowledge(n)
	case "notifications/cancelled":
		// Only for a subscription that the server tears down
		// (basic/patterns/cancellation, "Behavior Requirements").
		x.listen.tornDown(n)
	default:
		return false
	}
	return true
}

// push takes one notifications/tasks.
func (x *extension) push(n jsonrpc.Notification, lenient string) {
	now := time.Now()
	raw := n.Params
	if t := member(raw, "task"); isObject(t) && member(raw, "taskId") == nil {
		raw, lenient = t, "the task stands in a member of its own, as in another generation"
	}
	snap, err := x.observe(raw, x.seq.Add(1))
	if err != nil {
		x.s.malformed(n, err)
		return
	}
	if lenient != "" {
		snap.Lenient = append(snap.Lenient, lenient)
	}
	if why := x.listen.stray(n); why != "" {
		snap.Lenient = append(snap.Lenient, why)
	}
	x.s.handler().Snapshot(taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now})
}

// malformed tells of a notification that could not be read; nothing is lost,
// since the next poll says the same.
func (s *session) malformed(n jsonrpc.Notification, err error) {
	s.handler().Log(taskmodel.LogLine{
		At: time.Now(), Level: "other", Logger: "mcptasks", Task: relatedTask(n.Params).task,
		Text: fmt.Sprintf("%s cannot be read (%v): %s", n.Method, err, n.Bytes),
	})
}

// close ends the subscription and the calls that wait for a person.
func (x *extension) close(ctx context.Context) {
	x.once.Do(func() { close(x.over) })
	x.listen.close(ctx)
}

// explain makes errors of the modern era speak: -32021 names the capabilities
// that the server wants declared.
func (x *extension) explain(doing string, err error) error {
	e := rpcErrorOf(err)
	if e == nil || e.Code != codeMissingCaps {
		return err
	}
	words := "the server wants a capability that was not declared"
	if names := capabilityNames(member(e.Data, "requiredCapabilities")); len(names) > 0 {
		words = "the server requires the client to declare " + strings.Join(names, ", ")
	}
	words = ErrNotNegotiated.Error() + ": " + words + " (error -32021: " + e.Message + ")"
	return withKind(&sessionError{server: x.s.server(), doing: doing, words: words, err: e}, ErrNotNegotiated)
}

// notNegotiated makes -32601 on a tasks method what it means: this server does
// not have the extension (any more). The task is not failed for it.
func (x *extension) notNegotiated(doing string, err error) error {
	if codeOf(err) != codeMethodNotFound || errors.Is(err, ErrNotNegotiated) {
		return err
	}
	words := ErrNotNegotiated.Error() + ": the server does not know the method (error -32601); it needs the capability extensions." + extensionTasks
	return withKind(&sessionError{server: x.s.server(), doing: doing, words: words, err: rpcErrorOf(err)}, ErrNotNegotiated)
}

// asKind makes err an error that callers tell apart, with the server's words.
func (s *session) asKind(doing string, kind, err error) error {
	words := kind.Error()
	if e := rpcErrorOf(err); e != nil {
		words += fmt.Sprintf(" (error %d: %s)", e.Code, e.Message)
		err = e
	}
	return withKind(&sessionError{server: s.server(), doing: doing, words: words, err: err}, kind)
}

// capabilityNames flattens a requiredCapabilities object into dotted names.
func capabilityNames(b json.RawMessage) []string {
	var names []string
	var walk func(b json.RawMessage, at string, depth int)
	walk = func(b json.RawMessage, at string, depth int) {
		empty := true
		if isObject(b) && depth < 8 {
			members(b, func(k string, v json.RawMessage) bool {
				empty = false
				walk(v, strings.TrimPrefix(at+"."+k, "."), depth+1)
				return len(names) < 32
			})
		}
		if empty && at != "" {
			names = append(names, at)
		}
	}
	walk(b, "", 0)
	return names
}
