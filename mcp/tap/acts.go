package tap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	actLimit   = 30 * time.Second // for the answer to one request of ours
	fetchLimit = 10 * time.Minute // for the end of a task whose result is wanted
	fetchPoll  = 5 * time.Second  // how often we look meanwhile, where the agent does not
)

var errPassive = errors.New("this tap is passive (--passive): it sends nothing of its own")

// answered hands an answer to whoever asked. It has been read by then.
func (t *tap) answered(m jsonrpc.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.waiting[m.ID]; c != nil {
		delete(t.waiting, m.ID)
		t.open.Add(-1)
		c <- reply{m: m}
	}
}

// failed tells whoever asked that no answer will come.
func (t *tap) failed(id jsonrpc.ID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.waiting[id]; c != nil {
		delete(t.waiting, id)
		t.open.Add(-1)
		c <- reply{err: err}
	}
}

// A reply is an answer to a request of ours, or why there is none.
type reply struct {
	m   jsonrpc.Message
	err error
}

// request asks the server something in the agent's session and waits for the
// answer, which has been read and recorded when it is here. compose is called by
// the reader.
func (t *tap) request(ctx context.Context, limit time.Duration, compose func(id jsonrpc.ID) (jsonrpc.Outgoing, string, error)) (jsonrpc.Message, error) {
	if t.o.Passive {
		return jsonrpc.Message{}, errPassive
	}
	id := t.newID()
	answer := make(chan reply, 1)
	var m jsonrpc.Outgoing
	var conv string
	var err error
	if aerr := t.ask(ctx, func() {
		if m, conv, err = compose(id); err != nil {
			return
		}
		msg, derr := jsonrpc.Decode(m.Bytes, 0)
		if derr != nil {
			err = derr
			return
		}
		for _, h := range t.obs.Read(mcp.Overheard{Conv: conv, ToServer: true, Own: true, At: t.o.Now(), Message: msg}) {
			t.rec.hear(h)
		}
	}); aerr != nil {
		return jsonrpc.Message{}, aerr
	}
	if err != nil {
		return jsonrpc.Message{}, err
	}
	if m.Kind == jsonrpc.KindRequest {
		// Counted before it goes: from here on the stream is looked at.
		t.mu.Lock()
		t.waiting[id] = answer
		t.open.Add(1)
		t.mu.Unlock()
	}
	if err := t.link.send(ctx, m, conv); err != nil {
		t.forget(id)
		return jsonrpc.Message{}, fmt.Errorf("%s: it could not be sent: %w", t.label, err)
	}
	if m.Kind != jsonrpc.KindRequest {
		return jsonrpc.Message{}, nil
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	select {
	case r := <-answer:
		msg := r.m
		if r.err != nil {
			return msg, fmt.Errorf("%s: %w", t.label, r.err)
		}
		if msg.Error != nil {
			return msg, fmt.Errorf("%s: the server answered with error %d: %s", t.label, msg.Error.Code, msg.Error.Message)
		}
		return msg, nil
	case <-t.read:
		return jsonrpc.Message{}, fmt.Errorf("%s: it was sent, and the session ended before an answer came", t.label)
	case <-ctx.Done():
		// The answer may still come; it is taken out of the stream then, too.
		return jsonrpc.Message{}, fmt.Errorf("%s: it was sent, and no answer has come in time", t.label)
	}
}

// forget drops a request that was not sent.
func (t *tap) forget(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[id] != nil {
		delete(t.waiting, id)
		t.open.Add(-1)
	}
}

// about asks the server about a task.
func (t *tap) about(ctx context.Context, task string, act mcp.Act) (jsonrpc.Message, error) {
	return t.request(ctx, actLimit, func(id jsonrpc.ID) (jsonrpc.Outgoing, string, error) { return t.obs.Request(id, task, act) })
}

// task is a task as it stands.
func (t *tap) task(ctx context.Context, id string) (taskmodel.Task, error) {
	var v taskmodel.Task
	var ok bool
	if err := t.ask(ctx, func() { v, ok = t.rec.board.Task(t.key(id)) }); err != nil {
		return v, err
	}
	if !ok {
		return v, fmt.Errorf("%s: this tap knows no such task", t.key(id))
	}
	return v, nil
}

// carryOut does what another process asks for; the journal hands it out once.
func (t *tap) carryOut(s Store, in journal.Intent) {
	limit := actLimit + 5*time.Second
	if in.Kind == "fetch" {
		limit = fetchLimit
	}
	ctx, stop := context.WithTimeout(t.ctx, limit)
	defer stop()
	out, err := t.act(ctx, s, in)
	words := ""
	var b json.RawMessage
	if err == nil && out != nil {
		b, err = json.Marshal(out)
	}
	if err != nil {
		words = err.Error()
	}
	fctx, end := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer end()
	if err := s.FinishIntent(fctx, in.ID, words, b); err != nil {
		t.o.Log.Warn("saying what became of an act", "err", err)
	}
}

func (t *tap) act(ctx context.Context, s Store, in journal.Intent) (any, error) {
	id := in.Task.ID
	if t.o.Passive {
		return nil, errPassive
	}
	switch in.Kind {
	case "poll":
		_, err := t.about(ctx, id, mcp.ActGet)
		if err == nil {
			t.told(ctx, id, taskmodel.EventStatus, "polled", map[string]any{"act": "poll", "by": person})
		}
		return nil, err
	case "cancel":
		return nil, t.cancel(ctx, id)
	case "fetch":
		o, err := t.fetch(ctx, s, id)
		return o, err
	case "answer":
		var a taskmodel.Answer
		if err := json.Unmarshal(in.Payload, &a); err != nil {
			return nil, fmt.Errorf("%s: reading the answer: %w", t.label, err)
		}
		a.Question.Server = t.label
		if t.answer == nil {
			return nil, fmt.Errorf("%s: the question is for the agent to answer; a tap that is started with --answer asks you in its place", t.label)
		}
		return nil, t.answer.give(ctx, a)
	}
	return nil, fmt.Errorf("%s: this is an agent's session; a tap does not %s in it", t.label, in.Kind)
}

// told writes an act of ours into the history.
func (t *tap) told(ctx context.Context, id string, kind taskmodel.EventKind, words string, d map[string]any) {
	_ = t.ask(ctx, func() {
		v, _ := t.rec.board.Task(t.key(id))
		t.rec.write(id, &taskmodel.Event{Time: t.o.Now(), Server: t.label, Task: t.key(id), Kind: kind, Status: v.Status,
			Message: words, Detail: detail(d)}, nil)
	})
}

// cancel asks for a task's cancellation in the agent's session.
func (t *tap) cancel(ctx context.Context, id string) error {
	v, err := t.task(ctx, id)
	switch {
	case err != nil:
		return err
	case v.Terminal():
		return fmt.Errorf("%s: too late to cancel: the task has ended as %s", v.Key, v.Status)
	}
	if err := t.ask(ctx, func() {
		t.rec.events(id, t.rec.board.Change(v.Key, t.o.Now(), func(t2 *taskmodel.Task) { t2.CancelRequested, t2.CancelNote = t.o.Now(), "" }), person)
	}); err != nil {
		return err
	}
	_, err = t.about(ctx, id, mcp.ActCancel)
	if err != nil {
		_ = t.ask(context.WithoutCancel(ctx), func() {
			t.rec.events(id, t.rec.board.Change(v.Key, t.o.Now(), func(v *taskmodel.Task) {
				if v.CancelNote == "" {
					v.CancelRequested, v.CancelNote = time.Time{}, "not confirmed: "+err.Error()
				}
			}), person)
		})
		return err
	}
	// What came of it the server says when it is asked; once is no burden.
	if _, perr := t.about(ctx, id, mcp.ActGet); perr != nil {
		t.o.Log.Debug("looking after a cancel", "err", perr)
	}
	return nil
}

// fetch gives what a task came to. It never opens tasks/result before the end:
// a question may come by it that the agent is to get.
func (t *tap) fetch(ctx context.Context, s Store, id string) (taskmodel.Outcome, error) {
	for {
		v, err := t.task(ctx, id)
		if err != nil {
			return taskmodel.Outcome{}, err
		}
		if o := v.Outcome; o.Result != nil || o.Err != nil {
			if len(o.Result) > maxResult {
				return taskmodel.Outcome{}, nil // the journal has what there is
			}
			return o, nil
		}
		if v.Standing == taskmodel.Gone || v.Standing == taskmodel.Expired {
			return taskmodel.Outcome{}, fmt.Errorf("%s: no result was heard, and the task is gone: %s", v.Key, v.Note)
		}
		if v.Terminal() {
			return t.result(ctx, v)
		}
		if t.o.Now().Sub(v.LastHeardAt) >= fetchPoll {
			if _, err := t.about(ctx, id, mcp.ActGet); err != nil {
				return taskmodel.Outcome{}, err
			}
		}
		news := make(chan struct{})
		if err := t.ask(ctx, func() {
			if w := t.rec.rows[id]; w != nil {
				w.waiters = append(w.waiters, news)
			}
		}); err != nil {
			return taskmodel.Outcome{}, err
		}
		timer := time.NewTimer(max(v.PollInterval, fetchPoll))
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return taskmodel.Outcome{}, fmt.Errorf("%s: waiting for the task to end: %w", v.Key, ctx.Err())
		}
		timer.Stop()
	}
}

// result fetches the result of a task that has ended.
func (t *tap) result(ctx context.Context, v taskmodel.Task) (taskmodel.Outcome, error) {
	switch {
	case v.Status == taskmodel.Cancelled && v.Generation != taskmodel.GenExtension:
		return taskmodel.Outcome{}, fmt.Errorf("%s: the task was cancelled and has no result", v.Key)
	case v.Generation == taskmodel.GenDraft && v.Status != taskmodel.Completed:
		return taskmodel.Outcome{}, fmt.Errorf("%s: the task ended as %s and has no result; its reason is the status message", v.Key, v.Status)
	}
	msg, err := t.about(ctx, v.ID, mcp.ActResult)
	now, terr := t.task(ctx, v.ID)
	if terr == nil && (now.Outcome.Result != nil || now.Outcome.Err != nil) {
		return now.Outcome, nil // read out of the answer in the words of its generation
	}
	if err != nil {
		return taskmodel.Outcome{}, err
	}
	if v.Generation == taskmodel.GenExtension {
		return taskmodel.Outcome{}, fmt.Errorf("%s: the task ended as %s and has no result", v.Key, v.Status)
	}
	return taskmodel.Outcome{Result: msg.Result, FetchedAt: t.o.Now()}, nil
}
