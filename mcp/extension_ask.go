package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"mcptasks/taskmodel"
)

// This file keeps what tasks ask by inputRequests and sends the answers by
// tasks/update (tasks.md, "Task Update Requests").

// An askedTask is what one task has asked so far. Keys are unique over a
// task's life, so they are remembered until the task has ended.
type askedTask struct {
	keys  map[string]*askedKey
	round int  // how many questions there have been
	ended bool // a terminal status was seen: nothing older asks again
}

// An askedKey is one entry of inputRequests.
type askedKey struct {
	q     taskmodel.Question
	since int64 // extension.seq when the question, or its being withdrawn, was heard
	open  bool  // it stands in the newest state
	auto  bool  // roots/list: answered by the program
	busy  bool  // an answer is on its way
	taken bool  // the server acknowledged an answer
}

// taskQuestionID is the id of a task's question: the same in every run and
// every process.
func taskQuestionID(task, key string) string { return url.PathEscape(task) + "/" + key }

// file compares the questions of a state with those known of its task: new
// ones are asked, vanished ones withdrawn, roots answered, and snap.Questions
// is filled. Call with x.emit held.
func (x *extension) file(snap *taskmodel.Snapshot, sent int64) {
	now, seq := time.Now(), x.seq.Add(1)
	terminal := snap.Status.Terminal(taskmodel.GenExtension)
	requests := member(snap.Raw, "inputRequests")
	if !isObject(requests) || terminal {
		requests = nil
	}

	var asked []taskmodel.Question
	var withdrawn []taskmodel.QuestionID
	var roots []string

	x.mu.Lock()
	t := x.asks[snap.ID]
	if t == nil {
		if requests == nil {
			x.mu.Unlock()
			return
		}
		t = &askedTask{keys: make(map[string]*askedKey)}
		x.asks[snap.ID] = t
	}
	present := map[string]bool{}
	members(requests, func(key string, v json.RawMessage) bool {
		if present[key] {
			return true
		}
		present[key] = true
		k := t.keys[key]
		switch {
		case t.ended:
			return true
		case k == nil:
			k = x.newKey(snap.ID, key, v, now, seq)
			t.keys[key] = k
			if k.auto {
				break
			}
			t.round++
			k.q.Round = t.round
			asked = append(asked, k.q)
		case !k.open && k.since > sent:
			// An older state, overtaken by the one that closed the question.
			return true
		case !k.open && k.taken:
			snap.Lenient = append(snap.Lenient, fmt.Sprintf("the key %q came again after it was answered", key))
		case !k.open:
			k.open, k.since = true, seq
			if !k.auto {
				k.q.State = taskmodel.QuestionOpen
				asked = append(asked, k.q)
			}
		}
		if k.auto {
			if !k.busy && !k.taken {
				k.busy = true
				roots = append(roots, key)
			}
			return true
		}
		snap.Questions = append(snap.Questions, k.q)
		return true
	})
	if snap.Questions == nil && requests != nil {
		snap.Questions = []taskmodel.Question{}
	}
	for key, k := range t.keys {
		if present[key] || !k.open || k.since > sent && !terminal {
			continue
		}
		k.open, k.since = false, seq
		if !k.auto && !k.taken {
			k.q.State = taskmodel.QuestionWithdrawn
			withdrawn = append(withdrawn, k.q.ID)
		}
	}
	if terminal {
		t.ended, t.keys = true, nil // an ended task is asked nothing; only that it ended is kept
	}
	x.mu.Unlock()

	why := "the server does not ask this any more"
	if terminal {
		why = fmt.Sprintf("the task ended as %s", snap.Status)
	}
	for _, id := range withdrawn {
		x.s.handler().Withdrawn(id, why)
	}
	for _, q := range asked {
		x.s.handler().Asked(q)
	}
	for _, key := range roots {
		go x.answerRoots(snap.ID, key)
	}
}

// newKey reads one entry of inputRequests.
func (x *extension) newKey(task, key string, v json.RawMessage, now time.Time, seq int64) *askedKey {
	method := stringAt(v, "method")
	q := toolless(askedQuestion(x.s.server(), taskQuestionID(task, key), key, method, member(v, "params"),
		taskmodel.Key{Server: x.s.server(), ID: task, Role: taskmodel.Requestor}, now))
	return &askedKey{q: q, since: seq, open: true, auto: q.Kind == taskmodel.AskRoots}
}

// rootsResult is a ListRootsResult. Without roots of ours the list is empty:
// that tells nothing and lets the task go on.
func (s *session) rootsResult() map[string]any {
	roots := []Root{}
	if s.opts.Roots != nil {
		roots = append(roots, s.opts.Roots()...)
	}
	return map[string]any{"roots": roots}
}

// answerRoots answers a roots/list among a task's questions. An answer that
// did not arrive is tried again when the next state still asks.
func (x *extension) answerRoots(task, key string) {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	err := x.update(ctx, task, key, x.s.rootsResult())
	x.mu.Lock()
	if t := x.asks[task]; t != nil && t.keys[key] != nil {
		k := t.keys[key]
		k.busy = false
		// An answer that was refused once would be refused again.
		k.taken = err == nil || rpcErrorOf(err) != nil
	}
	x.mu.Unlock()
	if err != nil {
		x.s.handler().Log(taskmodel.LogLine{At: time.Now(), Level: "warning", Logger: "mcptasks", Task: task,
			Text: "the roots that the task asked for could not be sent: " + err.Error()})
	}
}

// update sends one answer. Others that the task asks for stay open: a server
// takes partial sets, or ignores what it does not need.
func (x *extension) update(ctx context.Context, task, key string, response any) error {
	_, err := x.ask(ctx, "tasks/update", task, map[string]any{
		"taskId": task, "inputResponses": map[string]any{key: response},
	}, true)
	if err == nil {
		return nil
	}
	if e := rpcErrorOf(err); e != nil && e.Code == codeInvalidParams && soundsUnknown(e.Message) {
		return x.s.asKind(doing("tasks/update", task), ErrNotFound, err)
	}
	return x.notNegotiated(doing("tasks/update", task), err)
}

// answer sends a person's answer: to a task by tasks/update, to a call by
// repeating it. An answer that went before is sent again only because the
// caller says so, never by itself.
func (x *extension) answer(ctx context.Context, a taskmodel.Answer) error {
	if found, err := x.calls.answer(ctx, x.s, a); found {
		return err
	}
	x.mu.Lock()
	task, key, k := x.findKey(a.Question.ID)
	switch {
	case k == nil || !k.open:
		x.mu.Unlock()
		return x.s.wrap("answering", ErrNoQuestion)
	case k.busy:
		x.mu.Unlock()
		return x.s.wrap("answering", errors.New("an answer to this question is being sent already"))
	}
	k.busy = true
	q := k.q
	x.mu.Unlock()

	taken, err := func() (bool, error) {
		if asksTools(q) {
			return false, x.s.unsupported("answering "+q.Key, "it "+noTools+"; cancel the task if it waits for nothing else")
		}
		result, rejected, err := answerResult(q, a, nil)
		if err != nil {
			return false, x.s.wrap("answering "+q.Key, err)
		}
		if rejected != nil {
			// inputResponses have no errors, so a sampling cannot be refused.
			return false, x.s.unsupported("answering "+q.Key, "2026-07-28 gives no way to reject a sampling that a task asks for; answer it, or cancel the task")
		}
		err = x.update(ctx, task, key, result)
		return err == nil, err
	}()

	x.mu.Lock()
	k.busy = false
	switch {
	case taken:
		k.taken = true
		k.q.State, k.q.SentAt = taskmodel.QuestionAnswered, time.Now()
	case rpcErrorOf(err) != nil:
		k.q.State, k.q.Refusal = taskmodel.QuestionRefused, rpcErrorOf(err).Message
	}
	x.mu.Unlock()
	return err
}

// findKey finds a question by its id. Call with x.mu held.
func (x *extension) findKey(id string) (task, key string, k *askedKey) {
	for i := 0; i < len(id); i++ {
		if id[i] != '/' {
			continue
		}
		task, err := url.PathUnescape(id[:i])
		if err != nil {
			return "", "", nil
		}
		t := x.asks[task]
		if t == nil {
			return "", "", nil
		}
		return task, id[i+1:], t.keys[id[i+1:]]
	}
	return "", "", nil
}
