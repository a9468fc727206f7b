package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// This file makes tool calls of the modern era: the answer may be a result, a
// task, or a question on the way to either (basic/patterns/mrtr).

// How a call is repeated when the server wants no input but says to come
// again (an InputRequiredResult with requestState alone).
const (
	againFirst = 250 * time.Millisecond
	againMost  = 10 * time.Second
)

// Start calls a tool. Whether a task comes of it is the server's to decide; a
// plain call does not declare the extension, so that none may. When the server
// asks something on the way, Start waits for the answers, which come by
// answer, as long as ctx lasts.
func (x *extension) Start(ctx context.Context, c StartCall) (Started, error) {
	if can := x.s.getInfo().Can; !c.Plain && !can.Start {
		return Started{}, x.s.unsupported(doing("tools/call", c.Tool), "it cannot run as a task: "+can.StartWhy)
	}
	args := c.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var carry map[string]any // inputResponses and requestState of a repeated call
	var round *callRound
	refreshed := false
	again := againFirst
	for n := 1; ; n++ {
		b, err := x.callTool(ctx, c, args, carry, round)
		if err != nil {
			if codeOf(err) == codeHeaderMismatch && !refreshed && x.s.transport == "http" {
				// The server refused the header fields before it looked at the
				// call: its schema may have changed ("Client Behavior").
				refreshed = true
				if _, lerr := x.s.listTools(ctx, x.dropTool); lerr == nil {
					continue
				}
			}
			if round != nil && round.refused(err) {
				// The answer was refused; the person may give another.
				if carry, err = x.await(ctx, round); err == nil {
					continue
				}
			} else if round != nil {
				round.over(err)
			}
			return Started{}, x.callError(c, err)
		}
		if round != nil {
			round.over(nil)
			round = nil
		}
		switch kind := stringAt(b, "resultType"); kind {
		case "input_required":
			requests, state := member(b, "inputRequests"), member(b, "requestState")
			if requests == nil && state == nil {
				return Started{}, x.callError(c, fmt.Errorf("the server wants input and does not say which: %s", clip(b)))
			}
			round = x.calls.begin(x.s, c, n, requests)
			round.state = state
			if len(round.keys) == 0 {
				// Nothing for a person: roots, or only a state to come back with.
				carry = repeatWith(round.fixed, state)
				if len(round.fixed) == 0 {
					carry = repeatWith(nil, state)
					if err := pause(ctx, x.over, again); err != nil {
						return Started{}, x.callError(c, err)
					}
					again = min(2*again, againMost)
				}
				round = nil
				continue
			}
			again = againFirst
			for _, q := range round.questions() {
				x.s.handler().Asked(q)
			}
			if carry, err = x.await(ctx, round); err != nil {
				return Started{}, x.callError(c, err)
			}
		case "", "complete", "task":
			return x.started(c, b, kind)
		default:
			return Started{}, x.callError(c, fmt.Errorf("the server answered with a result of an unknown type %q: %s", kind, clip(b)))
		}
	}
}

// started reads what became of a call.
func (x *extension) started(c StartCall, b json.RawMessage, kind string) (Started, error) {
	var st Started
	if c.TTL > 0 && !c.Plain {
		st.Note = "2026-07-28 has no time to live to ask for; the server decides"
	}
	raw, lenient := b, ""
	if kind != "task" {
		task := member(b, "task")
		switch {
		case isObject(task) && member(task, "taskId") != nil:
			raw, lenient = task, "the task stands in a member of its own, as in another generation"
		case member(b, "taskId") != nil && member(b, "status") != nil && member(b, "content") == nil:
			lenient = "the task came without resultType"
		default:
			st.Outcome = taskmodel.Outcome{Result: b, FetchedAt: time.Now()}
			return st, nil
		}
	}
	snap, err := x.observe(raw, x.seq.Add(1))
	if err != nil {
		return st, x.callError(c, fmt.Errorf("the server made a task of the call, but it cannot be read: %w", err))
	}
	if lenient != "" {
		snap.Lenient = append(snap.Lenient, lenient)
	}
	if c.Plain {
		snap.Lenient = append(snap.Lenient, "the call did not allow a task, and the server made one")
	}
	st.TaskID, st.Snapshot = snap.ID, snap
	return st, nil
}

// callTool sends one tools/call. When ctx ends before the answer, the call is
// cancelled: over HTTP by the end of its stream, on stdio by a notification
// (basic/patterns/cancellation, "Transport-Specific Cancellation").
func (x *extension) callTool(ctx context.Context, c StartCall, args json.RawMessage, carry map[string]any, round *callRound) (json.RawMessage, error) {
	token := x.s.tokens.newToken(c.CallID)
	params := map[string]any{"name": c.Tool, "arguments": args, "_meta": map[string]any{"progressToken": token}}
	maps.Copy(params, carry)
	params, header := x.s.modernParams(params, !c.Plain)
	if mirrored := x.mirrored(ctx, c.Tool, args); len(mirrored) > 0 {
		header = maps.Clone(header)
		if header == nil {
			header = make(map[string]string)
		}
		maps.Copy(header, mirrored)
	}
	id := x.s.peer.NewID()
	call := jsonrpc.Call{Method: "tools/call", Params: params, Name: c.Tool, Header: header, ID: id}
	if round != nil {
		call.OnSent = func(jsonrpc.ID) { round.sent() }
	}
	b, err := x.s.send(ctx, call)
	if err != nil {
		x.s.tokens.over(token)
		if ctx.Err() != nil && x.s.transport != "http" {
			x.s.cancelRequest(id, "the caller gave up")
		}
		return nil, err
	}
	if task := stringAt(b, "taskId"); task != "" {
		x.s.tokens.becameTask(token, task)
	} else {
		x.s.tokens.over(token)
	}
	return b, nil
}

// mirrored are the Mcp-Param-* fields of a call over HTTP. The tool's schema
// is needed for them, so the tools are listed if they never were.
func (x *extension) mirrored(ctx context.Context, tool string, args json.RawMessage) map[string]string {
	if x.s.transport != "http" {
		return nil
	}
	t, found, known := x.s.tools.tool(tool)
	if !known {
		if _, err := x.s.listTools(ctx, x.dropTool); err != nil {
			x.s.log.Debug("could not list the tools before a call", "server", x.s.server(), "err", err)
			return nil
		}
		t, found, _ = x.s.tools.tool(tool)
	}
	if !found {
		return nil
	}
	headers, err := paramHeaders(t.InputSchema)
	if err != nil {
		return nil
	}
	return mirrorArguments(headers, args)
}

// callError makes the error of a call a sentence, and tells a tool that runs
// only as a task by the capability that it wants.
func (x *extension) callError(c StartCall, err error) error {
	what := doing("tools/call", c.Tool)
	if e := rpcErrorOf(err); e != nil && e.Code == codeMissingCaps {
		ours := member(memberAt(e.Data, "requiredCapabilities", "extensions"), extensionTasks) != nil
		if ours && c.Plain {
			return withKind(&sessionError{server: x.s.server(), doing: what, err: e, words: ErrTaskRequired.Error() + "; start it as a task"}, ErrTaskRequired)
		}
		return x.explain(what, err)
	}
	return x.s.wrap(what, err)
}

// await waits until every question of a round is answered and gives what the
// repeated call carries.
func (x *extension) await(ctx context.Context, r *callRound) (map[string]any, error) {
	why, err := "", error(nil)
	select {
	case <-r.ready():
		if r.rejected != nil {
			why, err = "it was declined", r.rejected
			break
		}
		return repeatWith(r.responses(), r.state), nil
	case <-ctx.Done():
		why, err = "the call was given up", ctx.Err()
	case <-x.s.peer.Done():
		why, err = "the connection ended", ErrClosed
	case <-x.over:
		why, err = "the connection is being closed", ErrClosed
	}
	for _, id := range x.calls.end(r, err) {
		x.s.handler().Withdrawn(id, why)
	}
	return nil, err
}

// repeatWith are the members that a repeated call has beside those of the
// first. The state is echoed as it came, byte for byte.
func repeatWith(responses map[string]any, state json.RawMessage) map[string]any {
	m := map[string]any{}
	if responses != nil {
		m["inputResponses"] = responses
	}
	if state != nil {
		m["requestState"] = state
	}
	return m
}

func pause(ctx context.Context, over <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		return ErrClosed
	}
}

// callQuestions are the questions that calls wait for.
type callQuestions struct {
	mu   sync.Mutex
	open map[string]*callRound // by QuestionID.ID
}

// A callRound is what one InputRequiredResult asks.
type callRound struct {
	all   *callQuestions
	keys  map[string]*callKey // by QuestionID.ID
	order []string
	fixed map[string]any // answered by the program: roots
	state json.RawMessage

	done     chan struct{} // closed when all is answered, or one is rejected
	rejected error         // set before done is closed: the person rejected a sampling
	last     *callAnswer   // the answer that completed the round and is on its way
}

type callKey struct {
	q        taskmodel.Question
	response any // nil: not answered yet
}

// A callAnswer is an answer whose sender waits to hear what became of it.
type callAnswer struct {
	id   string
	once sync.Once
	sent chan struct{}
	end  chan error
}

// answerGrace is how long the sender of a call's last answer waits for a
// refusal after the repeated call has gone.
const answerGrace = 2 * time.Second

// begin opens a round for the questions of an InputRequiredResult.
func (c *callQuestions) begin(s *session, call StartCall, n int, requests json.RawMessage) *callRound {
	r := &callRound{all: c, keys: make(map[string]*callKey), fixed: make(map[string]any), done: make(chan struct{})}
	now := time.Now()
	name := call.CallID
	if name == "" {
		name = s.tag
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	members(requests, func(key string, v json.RawMessage) bool {
		id := fmt.Sprintf("call:%s:%d/%s", url.PathEscape(name), n, key)
		q := toolless(askedQuestion(s.server(), id, key, stringAt(v, "method"), member(v, "params"), taskmodel.Key{}, now))
		if q.Kind == taskmodel.AskRoots {
			r.fixed[key] = s.rootsResult()
			return true
		}
		if r.keys[id] != nil {
			return true
		}
		q.Tool, q.Round = call.Tool, len(r.order)+1
		r.keys[id] = &callKey{q: q}
		r.order = append(r.order, id)
		c.open[id] = r
		return true
	})
	return r
}

func (r *callRound) questions() []taskmodel.Question {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	var out []taskmodel.Question
	for _, id := range r.order {
		out = append(out, r.keys[id].q)
	}
	return out
}

func (r *callRound) ready() <-chan struct{} {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	return r.done
}

func (r *callRound) responses() map[string]any {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	m := maps.Clone(r.fixed)
	for _, k := range r.keys {
		m[k.q.Key] = k.response
	}
	return m
}

// answer takes a person's answer to a call's question. The last one of a round
// waits until the repeated call has gone, and a little longer for a refusal.
func (c *callQuestions) answer(ctx context.Context, s *session, a taskmodel.Answer) (found bool, err error) {
	c.mu.Lock()
	r := c.open[a.Question.ID]
	if r == nil {
		c.mu.Unlock()
		if strings.HasPrefix(a.Question.ID, "call:") {
			return true, s.wrap("answering", ErrNoQuestion)
		}
		return false, nil
	}
	k := r.keys[a.Question.ID]
	if k.response != nil {
		c.mu.Unlock()
		return true, s.wrap("answering "+k.q.Key, errors.New("this question has been answered; the call goes on when the others are, too"))
	}
	if asksTools(k.q) && a.Action == taskmodel.Accept {
		c.mu.Unlock()
		return true, s.unsupported("answering "+k.q.Key, "it "+noTools+"; decline it, and the call is given up")
	}
	result, rejected, err := answerResult(k.q, a, nil)
	if err != nil {
		c.mu.Unlock()
		return true, s.wrap("answering "+k.q.Key, err)
	}
	if rejected != nil {
		// Whoever rejects a sampling need not repeat the call (client/sampling,
		// "Error Handling"): the server does not wait.
		r.rejected = errors.New("the sampling was rejected, so the call was not repeated")
		k.response = rejected // answered, as far as it goes
		close(r.done)
		c.mu.Unlock()
		return true, nil
	}
	k.response = result
	for _, other := range r.keys {
		if other.response == nil {
			c.mu.Unlock()
			return true, nil
		}
	}
	last := &callAnswer{id: a.Question.ID, sent: make(chan struct{}), end: make(chan error, 1)}
	r.last = last
	close(r.done)
	c.mu.Unlock()

	select {
	case err := <-last.end:
		return true, err
	case <-ctx.Done():
		return true, s.wrap("answering "+k.q.Key, ctx.Err())
	case <-last.sent:
	}
	t := time.NewTimer(answerGrace)
	defer t.Stop()
	select {
	case err := <-last.end:
		return true, err
	case <-ctx.Done():
	case <-t.C:
	}
	return true, nil
}

// sent says that the repeated call has gone.
func (r *callRound) sent() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.last != nil {
		r.last.once.Do(func() { close(r.last.sent) })
	}
}

// over ends the round: its questions are no longer open.
func (r *callRound) over(err error) {
	r.all.end(r, err)
}

// refused reports whether err is the server's refusal of the answer (-32602)
// and, if so, opens the last question again.
func (r *callRound) refused(err error) bool {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	last := r.last
	if last == nil || codeOf(err) != codeInvalidParams {
		return false
	}
	k := r.keys[last.id]
	k.response = nil
	k.q.State, k.q.Refusal = taskmodel.QuestionRefused, rpcErrorOf(err).Message
	r.last, r.done = nil, make(chan struct{})
	last.end <- err
	return true
}

// end closes a round and gives the ids of the questions that were not answered.
func (c *callQuestions) end(r *callRound, err error) []taskmodel.QuestionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var open []taskmodel.QuestionID
	for _, id := range r.order {
		if c.open[id] != r {
			continue
		}
		delete(c.open, id)
		if r.keys[id].response == nil {
			open = append(open, r.keys[id].q.ID)
		}
	}
	if r.last != nil {
		select {
		case r.last.end <- err:
		default:
		}
		r.last = nil
	}
	return open
}
