package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// This file starts tasks of the draft. The call, its answer, and the
// notification that a task was made race with each other; whichever comes
// first is used (SEP-1686, "Graceful Degradation").

// How a call whose created-notification does not come is looked after.
const (
	draftWait      = 2 * time.Second // Options.DraftWait
	draftPollFirst = 500 * time.Millisecond
	draftPollMost  = 10 * time.Second
	draftRetries   = 2 // repeats under the same id, each only after tasks/get
)

// A draftCall is a tools/call of ours that carries a task id.
type draftCall struct {
	id      string     // of the task
	req     jsonrpc.ID // of the call, by which it is cancelled
	token   string
	created chan struct{} // closed when the server said that there is a task
	once    sync.Once
	answer  chan draftAnswer // holds one: the call's own answer
	stop    context.CancelCauseFunc
	prior   *draftCall // an earlier call under the same id, that was lost
	ended   bool       // under draft.mu: the task is in a terminal status
	handed  bool       // under draft.mu: Start has returned it as a task
	// result, under draft.mu, is the call's own answer that no state of the task
	// has been told with yet.
	result taskmodel.Outcome
}

type draftAnswer struct {
	result json.RawMessage
	err    error
}

// Start calls a tool under a task id that we make. It returns as soon as there
// is a task or a plain answer. On an error that leaves open whether there is a
// task, Started.TaskID is set all the same: the same call under the same id is
// then safe, since it asks first.
func (d *draft) Start(ctx context.Context, c StartCall) (Started, error) {
	if c.Plain {
		return d.plain(ctx, c)
	}
	if can := d.s.getInfo().Can; !can.Start {
		return Started{}, d.s.unsupported(doing("tools/call", c.Tool), "it cannot run as a task: "+can.StartWhy)
	}
	id := c.TaskID
	if id == "" {
		id = uuid.NewString()
	} else if st, err := d.existing(ctx, id); err == nil || !errors.Is(err, ErrNotFound) {
		// A given id may have been used by an earlier try; only a server that
		// does not know it may be called again.
		if err != nil {
			st.TaskID = id
		}
		return st, err
	}
	for try := 0; ; try++ {
		st, err := d.try(ctx, c, id)
		if err == nil || ctx.Err() != nil || d.s.ended() || try >= draftRetries {
			return st, err
		}
		if rpcErrorOf(err) != nil || errors.Is(err, ErrAuth) || errors.Is(err, ErrSessionLost) || errors.Is(err, ErrClosed) {
			return st, err
		}
		// The call was lost on the way. Whether it arrived only the server can
		// say, and only if it did not may it be repeated.
		known, gerr := d.existing(ctx, id)
		switch {
		case gerr == nil:
			return known, nil
		case !errors.Is(gerr, ErrNotFound):
			st.TaskID = id
			return st, err
		}
		if perr := pause(ctx, d.over, draftPollFirst); perr != nil {
			return st, err
		}
	}
}

// existing is a task that is there already.
func (d *draft) existing(ctx context.Context, id string) (Started, error) {
	snap, err := d.Get(ctx, id)
	if err != nil {
		return Started{}, err
	}
	return Started{TaskID: id, Snapshot: snap}, nil
}

// try makes the call once and waits for what comes of it.
func (d *draft) try(ctx context.Context, c StartCall, id string) (Started, error) {
	what := doing("tools/call", c.Tool)
	call := d.send(c, id)
	wait := d.s.opts.DraftWait
	if wait <= 0 {
		wait = draftWait
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	poll := draftPollFirst
	polls := true
	for {
		select {
		case <-call.created:
			select {
			case a := <-call.answer:
				return d.answered(ctx, c, call, a)
			default:
			}
			return d.asTask(ctx, call)
		case a := <-call.answer:
			return d.answered(ctx, c, call, a)
		case <-timer.C:
			// The notification is late or lost. The server may not know tasks
			// at all; then its plain answer is all that will come.
			if !polls {
				continue
			}
			st, err := d.existing(ctx, id)
			switch {
			case err == nil:
				d.hand(call)
				return st, nil
			case errors.Is(err, ErrUnsupported):
				polls = false
			case ctx.Err() != nil:
				continue
			default:
				timer.Reset(poll)
				poll = min(2*poll, draftPollMost)
			}
		case <-d.over:
			return Started{TaskID: id}, d.s.wrap(what, ErrClosed)
		case <-ctx.Done():
			select {
			case <-call.created:
				// There is a task, whoever asked for it.
				d.hand(call)
				return Started{TaskID: id, Snapshot: unheard(id)}, nil
			default:
			}
			// Nobody waits for the call any more and no task is known.
			go func() {
				nctx, stop := context.WithTimeout(context.Background(), time.Second)
				defer stop()
				if err := d.withdraw(nctx, call, "the caller gave up"); err != nil {
					d.s.log.Debug("could not withdraw a call", "server", d.s.server(), "err", err)
				}
				d.forget(id)
			}()
			return Started{TaskID: id}, d.s.wrap(what, ctx.Err())
		}
	}
}

// send sends the call and keeps it open: its answer comes when the task ends.
func (d *draft) send(c StartCall, id string) *draftCall {
	cctx, stop := context.WithCancelCause(context.Background())
	call := &draftCall{
		id: id, req: d.s.peer.NewID(), token: d.s.tokens.newToken(c.CallID),
		created: make(chan struct{}), answer: make(chan draftAnswer, 1), stop: stop,
	}
	task := map[string]any{"taskId": id}
	if c.TTL > 0 {
		task["keepAlive"] = c.TTL.Milliseconds()
	}
	d.mu.Lock()
	if parent := d.parents[id]; parent != "" {
		task["parentTaskId"] = parent
	}
	call.prior = d.calls[id]
	d.calls[id] = call
	d.mu.Unlock()

	over := d.s.calls.begin(call.req, c.Tool, id)
	go func() {
		b, err := d.s.send(cctx, jsonrpc.Call{
			Method: "tools/call", Name: c.Tool, ID: call.req,
			Params: callParams(c, map[string]any{"progressToken": call.token, metaDraftTask: task}),
		})
		over()
		stop(nil)
		a := draftAnswer{b, err}
		d.mu.Lock()
		handed := call.handed
		if !handed {
			call.answer <- a
		}
		d.mu.Unlock()
		if handed {
			d.late(call, a)
		}
	}()
	return call
}

// callParams are the params of a tools/call.
func callParams(c StartCall, meta map[string]any) map[string]any {
	args := c.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	return map[string]any{"name": c.Tool, "arguments": args, "_meta": meta}
}

// hand notes that Start gives the call back as a task: its answer, which may
// be here already, is news about the task from now on.
func (d *draft) hand(call *draftCall) {
	d.s.tokens.becameTask(call.token, call.id)
	d.mu.Lock()
	call.handed = true
	d.mu.Unlock()
	select {
	case a := <-call.answer:
		d.late(call, a)
	default:
	}
}

// late takes the call's answer after the task was handed out: the task has
// ended, and its result is here.
func (d *draft) late(call *draftCall, a draftAnswer) {
	d.mu.Lock()
	ended := call.ended
	d.mu.Unlock()
	if d.s.ended() || ended && a.err != nil {
		return
	}
	var o taskmodel.Outcome
	if a.err == nil {
		o = taskmodel.Outcome{Result: a.result, FetchedAt: time.Now()}
		d.mu.Lock()
		call.result = o
		d.mu.Unlock()
	} else if rpcErrorOf(a.err) == nil {
		return // the stream broke; polling goes on
	}
	d.fetchNews(call.id, o)
}

// asTask gives a call back as the task that it has become.
func (d *draft) asTask(ctx context.Context, call *draftCall) (Started, error) {
	snap, err := d.Get(ctx, call.id)
	d.hand(call)
	if err != nil {
		// The server has said that there is a task. Its state is not known yet
		// and is not made up; the next poll will tell.
		d.s.log.Debug("no state of a task just created", "server", d.s.server(), "task", call.id, "err", err)
		snap = unheard(call.id)
	}
	return Started{TaskID: call.id, Snapshot: snap}, nil
}

// unheard is the snapshot of a task whose state is not known.
func unheard(id string) taskmodel.Snapshot {
	return taskmodel.Snapshot{ID: id, Missing: []string{"status"},
		Lenient: []string{"the server said that the task was created, and nothing of its state"}}
}

// answered takes the call's own answer where it came first.
func (d *draft) answered(ctx context.Context, c StartCall, call *draftCall, a draftAnswer) (Started, error) {
	made := false
	select {
	case <-call.created:
		made = true
	default:
	}
	if e := rpcErrorOf(a.err); e != nil && e.Code == codeInvalidParams && soundsTaken(e.Message) {
		// 7.1: the id is in use, so an earlier try has made the task.
		if st, err := d.existing(ctx, call.id); err == nil {
			d.hand(call)
			d.credit(call)
			return st, nil
		}
	}
	if a.err != nil && !made {
		d.s.tokens.over(call.token)
		if rpcErrorOf(a.err) != nil {
			d.forget(call.id)
			return Started{}, a.err
		}
		return Started{TaskID: call.id}, a.err
	}
	if made || relatedTask(a.result).task == call.id {
		// The task ended at once, or the server answers the call at its
		// creation. Either way it can be asked about.
		st, err := d.existing(ctx, call.id)
		if err == nil || made {
			d.hand(call)
			if err != nil {
				st = Started{TaskID: call.id, Snapshot: unheard(call.id)}
			}
			if st.Snapshot.Status == taskmodel.Completed && st.Snapshot.Outcome.IsZero() && a.err == nil {
				st.Snapshot.Outcome = taskmodel.Outcome{Result: a.result, FetchedAt: time.Now()}
			}
			return st, nil
		}
	}
	d.s.tokens.over(call.token)
	d.forget(call.id)
	return Started{
		Outcome: taskmodel.Outcome{Result: a.result, FetchedAt: time.Now()},
		Note:    "the server answered at once and made no task",
	}, nil
}

// credit makes an earlier call under the same id the one that the task is
// cancelled by: it, and not this one, has made the task. Without an earlier
// one on this connection the task cannot be cancelled from here.
func (d *draft) credit(call *draftCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if call.prior == nil {
		delete(d.calls, call.id)
		return
	}
	call.prior.ended = call.prior.ended || call.ended
	d.calls[call.id] = call.prior
}

// created notes that the server has made a task of a call of ours.
func (d *draft) created(id string) {
	d.mu.Lock()
	c := d.calls[id]
	d.mu.Unlock()
	if c != nil {
		c.once.Do(func() { close(c.created) })
	}
}

// plain calls a tool without a task.
func (d *draft) plain(ctx context.Context, c StartCall) (Started, error) {
	token := d.s.tokens.newToken(c.CallID)
	defer d.s.tokens.over(token)
	req := d.s.peer.NewID()
	defer d.s.calls.begin(req, c.Tool, "")()
	b, err := d.s.send(ctx, jsonrpc.Call{
		Method: "tools/call", Name: c.Tool, ID: req,
		Params: callParams(c, map[string]any{"progressToken": token}),
	})
	if err != nil {
		if ctx.Err() != nil {
			d.s.cancelRequest(req, "the caller gave up")
		}
		return Started{}, err
	}
	return Started{Outcome: taskmodel.Outcome{Result: b, FetchedAt: time.Now()}}, nil
}

// soundsTaken reports whether an error says that a task id is in use.
func soundsTaken(message string) bool {
	m := strings.ToLower(message)
	for _, w := range []string{"already exist", "already in use", "already used", "already been", "duplicate", "in use"} {
		if strings.Contains(m, w) {
			return true
		}
	}
	return false
}
