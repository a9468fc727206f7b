package tap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// This file is --answer: where an agent does not declare that it can be asked
// (elicitation), the tap declares it to the server in its place, takes the
// questions out of the stream, and a person answers them in mcptasks. That
// declaration is the one thing that a tap changes in what the agent sends.

// answerLimit is how long a person may take.
const answerLimit = 24 * time.Hour

// answering is what --answer keeps. What passes is looked at by the goroutines
// that pass it, so all of it is under the lock.
type answering struct {
	t *tap

	mu     sync.Mutex
	convs  map[string]bool       // those that we declared for
	taken  map[string]bool       // by conversation and id: requests of the server that the agent did not get
	calls  map[string][]byte     // by conversation and id: calls of the modern era that we declared for
	open   map[string]*askedHere // by the question's id
	opened map[string]bool       // tasks whose tasks/result is open for their question's sake
	rounds int
}

// An askedHere is a question that the person is to answer.
type askedHere struct {
	q       taskmodel.Question
	conv    string
	request jsonrpc.ID            // of the server's request, "" where there is none
	given   chan taskmodel.Answer // of a call: takes one
}

func newAnswering(t *tap) *answering {
	return &answering{t: t, convs: map[string]bool{}, taken: map[string]bool{}, calls: map[string][]byte{},
		open: map[string]*askedHere{}, opened: map[string]bool{}}
}

func within(conv string, id jsonrpc.ID) string { return conv + "\x00" + string(id) }

// declare makes the one change, in a message of the agent.
func (a *answering) declare(b []byte, conv string) []byte {
	if !bytes.Contains(b, []byte("apabilities")) {
		return b
	}
	m, err := jsonrpc.Decode(bytes.TrimSpace(b), 0)
	if err != nil || m.Kind != jsonrpc.KindRequest {
		return b
	}
	out, ok := mcp.DeclareElicitation(b)
	if !ok {
		return b
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.convs[conv] = true
	if m.Method == "tools/call" {
		if len(a.calls) > 1000 {
			clear(a.calls) // calls that were never answered
		}
		a.calls[within(conv, m.ID)] = bytes.Clone(bytes.TrimSpace(out))
	}
	return out
}

// ours reports whether a conversation's questions are for the person here.
func (a *answering) ours(conv string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.convs[conv]
}

func (a *answering) taking() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.convs) > 0
}

// look gives what the agent is to get of a message of the server: the same,
// another, or nothing.
func (a *answering) look(b []byte, c *conv, r *route) []byte {
	conv := c.key()
	if !a.ours(conv) {
		return b
	}
	text := bytes.TrimSpace(b)
	elicit, cancelled := bytes.Contains(text, []byte("elicitation/create")), bytes.Contains(text, []byte("notifications/cancelled"))
	wants := bytes.Contains(text, []byte("input_required"))
	if !elicit && !cancelled && !wants {
		return b
	}
	m, err := jsonrpc.Decode(text, 0)
	if err != nil {
		return b
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case m.Kind == jsonrpc.KindRequest && m.Method == "elicitation/create":
		a.taken[within(conv, m.ID)] = true
	case m.Method == "notifications/cancelled" && a.taken[within(conv, mcp.CancelledID(m.Params))]:
	case m.Kind == jsonrpc.KindResponse && a.calls[within(conv, m.ID)] != nil:
		call := a.calls[within(conv, m.ID)]
		delete(a.calls, within(conv, m.ID))
		if _, _, ok := a.t.obs.Wants("", m.Result, time.Time{}); !ok {
			return b
		}
		m.Result = bytes.Clone(m.Result)
		if c == nil {
			a.t.jobs.Go(func() {
				// The agent waits for its answer; the stream goes on meanwhile.
				_ = a.t.down.send(append(a.settle(a.t.ctx, conv, call, m), '\n'))
			})
			break
		}
		a.mu.Unlock()
		a.t.q.put(piece{from: server, whole: true, conv: c, over: r, b: text}, true)
		line := a.settle(r.ctx, conv, call, m) // nothing else comes on this stream
		a.mu.Lock()
		return line
	default:
		return b
	}
	a.t.q.put(piece{from: server, whole: true, conv: c, over: r, b: text}, true)
	return nil
}

// settle asks the person what a call wants, repeats the call with that, and
// gives the answer that the agent gets in the end.
func (a *answering) settle(ctx context.Context, conv string, call []byte, first jsonrpc.Message) []byte {
	result := first.Result
	for {
		a.mu.Lock()
		a.rounds++
		name := fmt.Sprint(a.rounds)
		a.mu.Unlock()
		questions, state, ok := a.t.obs.Wants(name, result, a.t.o.Now())
		if !ok {
			break
		}
		answers, err := a.collect(ctx, conv, questions)
		if err != nil {
			return failure(first.ID, "nobody answered what the server asks: "+err.Error())
		}
		reply, err := a.t.request(ctx, answerLimit, func(id jsonrpc.ID) (jsonrpc.Outgoing, string, error) {
			b, err := mcp.Repeat(call, id, answers, state)
			return jsonrpc.Outgoing{Kind: jsonrpc.KindRequest, ID: id, Method: "tools/call", Name: mcp.ToolOf(call), Bytes: b}, conv, err
		})
		switch {
		case reply.Error != nil:
			return response(first.ID, map[string]any{"error": reply.Error})
		case err != nil:
			return failure(first.ID, err.Error())
		}
		result = reply.Result
	}
	return response(first.ID, map[string]any{"result": result})
}

func failure(id jsonrpc.ID, words string) []byte {
	return response(id, map[string]any{"error": jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: words}})
}

func response(id jsonrpc.ID, body map[string]any) []byte {
	body["jsonrpc"], body["id"] = "2.0", id
	b, err := json.Marshal(body)
	if err != nil {
		return nil
	}
	return b
}

// collect asks the questions of a call and waits for the answers.
func (a *answering) collect(ctx context.Context, conv string, questions []taskmodel.Question) (map[string]any, error) {
	answers := map[string]any{}
	var all []*askedHere
	for _, q := range questions {
		if q.Kind == taskmodel.AskRoots {
			answers[q.Key] = map[string]any{"roots": []any{}}
			continue
		}
		h := &askedHere{q: q, conv: conv, given: make(chan taskmodel.Answer, 1)}
		all = append(all, h)
		a.mu.Lock()
		a.open[q.ID.ID] = h
		a.mu.Unlock()
		if err := a.t.ask(ctx, func() { a.t.rec.hear(mcp.Heard{Kind: mcp.HeardQuestion, Conv: conv, Question: q}) }); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	for _, h := range all {
		select {
		case v := <-h.given:
			result, err := mcp.AnswerResult(h.q, v)
			if err != nil {
				return nil, err
			}
			answers[h.q.Key] = result
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return answers, nil
}

// asked keeps a question for the person; the reader calls it.
func (a *answering) asked(h mcp.Heard, m jsonrpc.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.convs[h.Conv] {
		return
	}
	v := &askedHere{q: h.Question, conv: h.Conv}
	if m.Kind == jsonrpc.KindRequest {
		v.request = m.ID
	}
	a.open[h.Question.ID.ID] = v
}

// heard takes what the reader heard: it opens the way of a question where a
// server asks only while tasks/result is open, and the agent will not open it.
func (a *answering) heard(h mcp.Heard) {
	switch {
	case h.Kind == mcp.HeardWithdrawn:
		a.mu.Lock()
		delete(a.open, h.Question.ID.ID)
		a.mu.Unlock()
	case h.Kind == mcp.HeardTask && h.Generation == taskmodel.GenCore && h.Observation.Status == taskmodel.InputRequired:
		a.mu.Lock()
		again := a.opened[h.Task] || !a.convs[h.Conv]
		a.opened[h.Task] = true
		a.mu.Unlock()
		if again {
			return
		}
		a.t.jobs.Go(func() {
			_, err := a.t.request(a.t.ctx, answerLimit, func(id jsonrpc.ID) (jsonrpc.Outgoing, string, error) {
				return a.t.obs.Request(id, h.Task, mcp.ActResult)
			})
			if err != nil {
				a.t.o.Log.Debug("opening the way of a question", "task", h.Task, "err", err)
			}
			a.mu.Lock()
			delete(a.opened, h.Task)
			a.mu.Unlock()
		})
	}
}

// give sends a person's answer in the agent's session.
func (a *answering) give(ctx context.Context, v taskmodel.Answer) error {
	a.mu.Lock()
	h := a.open[v.Question.ID]
	delete(a.open, v.Question.ID)
	a.mu.Unlock()
	if h == nil {
		return fmt.Errorf("%s: this question is not open any more, or it is the agent's to answer", a.t.label)
	}
	if h.given != nil {
		h.given <- v
		return a.t.ask(ctx, func() {
			a.t.rec.hear(mcp.Heard{Kind: mcp.HeardAnswer, Own: true, Conv: h.conv, Question: h.q, Action: v.Action})
		})
	}
	_, err := a.t.request(ctx, actLimit, func(id jsonrpc.ID) (jsonrpc.Outgoing, string, error) {
		if h.request == "" {
			return a.t.obs.Update(id, h.q, v)
		}
		m, err := a.t.obs.Reply(h.request, h.q, v)
		return m, h.conv, err
	})
	if err != nil {
		a.mu.Lock()
		a.open[v.Question.ID] = h
		a.mu.Unlock()
	}
	return err
}

// A rewriter looks at what an agent sends on stdio, line by line, for the
// declaration.
type rewriter struct {
	a    *answering
	part []byte
	raw  bool // inside a line that is passed as it comes
}

// pass gives what goes on to the server of a run of bytes.
func (w *rewriter) pass(b []byte) []byte {
	var out []byte
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n') + 1
		switch {
		case w.raw:
			if i == 0 {
				i = len(b)
			}
			out = append(out, b[:i]...)
			w.raw, b = b[i-1] != '\n', b[i:]
		case i == 0:
			w.part = append(w.part, b...)
			if len(w.part) > maxHeld || !maybeMessage(w.part) {
				out, w.part, w.raw = append(out, w.part...), nil, true
			}
			return out
		default:
			line := append(w.part, b[:i]...)
			w.part, b = nil, b[i:]
			out = append(out, w.a.declare(line, "")...)
		}
	}
	return out
}

// end gives what was kept back of a line that was never ended.
func (w *rewriter) end() []byte { return w.a.declare(w.part, "") }
