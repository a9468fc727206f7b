package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcptasks/taskmodel"
)

// serverAsks reads a request of the server: a question for the client's person.
func (o *Observer) serverAsks(c *conversation, m Overheard) []Heard {
	method := m.Message.Method
	if method != methodElicit && method != methodSampling {
		return nil
	}
	rel := relatedTask(m.Message.Params)
	task, tool := rel.task, ""
	if on := c.calls[m.Exchange+"\x00"+string(m.On)]; on != nil && m.On != "" {
		tool = on.call.Tool
		if task == "" && on.method == "tasks/result" {
			task = on.task
		}
	}
	var key taskmodel.Key
	if task != "" {
		key = taskmodel.Key{Server: o.server, ID: task, Role: taskmodel.Requestor}
	}
	q := askedQuestion(o.server, c.tag+":"+m.Message.ID.String(), plainID(m.Message.ID), method, m.Message.Params, key, m.At)
	q.Tool = tool
	if len(c.asks) >= maxOverheard {
		clear(c.asks)
	}
	c.asks[string(m.Message.ID)] = q
	return []Heard{{Kind: HeardQuestion, Task: task, Question: q}}
}

// serverTells reads a notification.
func (o *Observer) serverTells(c *conversation, m Overheard) []Heard {
	p := m.Message.Params
	switch m.Message.Method {
	case notifyCore, notifyExtension, notifyDraftCreated:
		return o.pushed(c, m)
	case "notifications/progress":
		pr := taskmodel.Progress{At: m.At, Message: stringAt(p, "message")}
		var ok bool
		if pr.Value, ok = number(member(p, "progress")); !ok {
			return nil
		}
		pr.Total, pr.HasTotal = number(member(p, "total"))
		task := c.tokens[tokenText(member(p, "progressToken"))]
		if task == "" {
			task = relatedTask(p).task
		}
		if task == "" {
			return nil
		}
		return []Heard{{Kind: HeardProgress, Task: task, Progress: pr}}
	case "notifications/cancelled":
		id := string(member(p, "requestId"))
		if q, ok := c.asks[id]; ok {
			delete(c.asks, id)
			return []Heard{{Kind: HeardWithdrawn, Task: q.Task.ID, Question: q, Words: "the server withdrew it"}}
		}
	}
	return nil
}

func (o *Observer) pushed(c *conversation, m Overheard) []Heard {
	raw := m.Message.Params
	if t := member(raw, "task"); isObject(t) && member(raw, "taskId") == nil {
		raw = t
	}
	id := stringAt(raw, "taskId")
	if id == "" {
		id = relatedTask(m.Message.Params).task
	}
	if id == "" {
		return nil
	}
	gen := o.known(id, c.gen(nil))
	call := c.drafts[id]
	if m.Message.Method == notifyDraftCreated || call != nil {
		gen = taskmodel.GenDraft
	}
	h := Heard{Kind: HeardTask, Task: id, Generation: gen}
	if m.Message.Method == notifyDraftCreated && call != nil && !call.made {
		call.made = true
		h.Call = &call.call
		if call.token != "" {
			c.tokens[call.token] = id
		}
	}
	h.Observation = taskmodel.Observation{Snapshot: unheard(id), Source: taskmodel.FromPush, AskedAt: m.At, HeardAt: m.At}
	if h.Call != nil {
		h.Observation.Source, h.Observation.AskedAt = taskmodel.FromCreate, call.at
	}
	if stringAt(raw, "status") != "" {
		snap, err := readIn(gen, raw, id)
		if err != nil {
			return nil
		}
		h.Observation.Snapshot = snap
	} else if h.Call == nil {
		return nil
	}
	return append([]Heard{h}, o.questions(h)...)
}

// readIn reads a task in the words of its generation.
func readIn(gen taskmodel.Generation, raw json.RawMessage, id string) (taskmodel.Snapshot, error) {
	switch gen {
	case taskmodel.GenExtension:
		snap, err := readDetailed(raw)
		if errors.Is(err, errNoTaskID) && id != "" {
			snap.ID, err = id, nil
		}
		return snap, err
	case taskmodel.GenDraft:
		return readDraft(raw, id)
	}
	return readTaskAs(raw, id, coreFields)
}

// questions compares what a state of the extension asks with what it asked
// before (tasks.md, "Task Update Requests").
func (o *Observer) questions(h Heard) []Heard {
	if h.Generation != taskmodel.GenExtension || h.Kind != HeardTask {
		return nil
	}
	snap := h.Observation.Snapshot
	t := o.tasks[snap.ID]
	if t == nil {
		t = &observedTask{gen: h.Generation}
		o.tasks[snap.ID] = t
	}
	var out []Heard
	now := map[string]bool{}
	requests := member(snap.Raw, "inputRequests")
	if !isObject(requests) || snap.Status.Terminal(h.Generation) {
		requests = nil
	}
	key := taskmodel.Key{Server: o.server, ID: snap.ID, Role: taskmodel.Requestor}
	members(requests, func(k string, v json.RawMessage) bool {
		now[k] = true
		if t.asked[k] {
			return true
		}
		q := askedQuestion(o.server, taskQuestionID(snap.ID, k), k, stringAt(v, "method"), member(v, "params"), key, h.Observation.HeardAt)
		if q.Kind != taskmodel.AskRoots {
			out = append(out, Heard{Kind: HeardQuestion, Task: snap.ID, Generation: h.Generation, Question: q})
		}
		return true
	})
	for k, open := range t.asked {
		if open && !now[k] {
			out = append(out, Heard{Kind: HeardWithdrawn, Task: snap.ID, Generation: h.Generation, Words: "the server does not ask this any more",
				Question: taskmodel.Question{ID: taskmodel.QuestionID{Server: o.server, ID: taskQuestionID(snap.ID, k)}, Task: key, Key: k}})
		}
	}
	t.asked = now
	return out
}

// serverAnswers reads the answer to a request.
func (o *Observer) serverAnswers(c *conversation, m Overheard) []Heard {
	at := m.Exchange + "\x00" + string(m.Message.ID)
	call := c.calls[at]
	if call == nil {
		return nil
	}
	delete(c.calls, at)
	var out []Heard
	if e := m.Message.Error; e != nil {
		out = o.refused(c, call, &taskmodel.RPCError{Code: e.Code, Message: e.Message, Data: e.Data}, m.At)
	} else {
		out = o.answered(c, call, m)
	}
	for i := range out {
		out[i].Own = call.own
	}
	return out
}

func (o *Observer) refused(c *conversation, call *overheardCall, e *taskmodel.RPCError, at time.Time) []Heard {
	gen := o.known(call.task, c.gen(call))
	h := Heard{Task: call.task, Generation: gen, Words: e.Message}
	switch {
	case call.method == "tasks/get" && e.Code == codeInvalidParams,
		call.method != "tools/call" && e.Code == codeInvalidParams && soundsUnknown(e.Message) && !soundsTerminal(e.Message):
		h.Kind = HeardGone
	case call.method == "tasks/cancel":
		h.Kind = HeardRefused
	case call.method == "tasks/result" && e.Code != codeMethodNotFound && gen == taskmodel.GenCore,
		call.method == "tools/call" && call.made && gen == taskmodel.GenDraft:
		// The server gives exactly what the request would have given.
		h.Kind, h.Outcome = HeardOutcome, taskmodel.Outcome{Err: e, FetchedAt: at}
	default:
		return nil
	}
	return []Heard{h}
}

func (o *Observer) answered(c *conversation, call *overheardCall, m Overheard) []Heard {
	b := m.Message.Result
	gen := o.known(call.task, c.gen(call))
	statement := func(src taskmodel.Source, raw json.RawMessage, id string) []Heard {
		snap, err := readIn(gen, raw, id)
		if err != nil {
			return nil
		}
		if src == taskmodel.FromGet && id != "" {
			snap.ID = id
		}
		h := Heard{Kind: HeardTask, Task: snap.ID, Generation: gen,
			Observation: taskmodel.Observation{Snapshot: snap, Source: src, AskedAt: call.at, HeardAt: m.At}}
		return append([]Heard{h}, o.questions(h)...)
	}
	switch call.method {
	case "initialize", "server/discover":
		return []Heard{o.introduced(c, call, b)}
	case "tools/call":
		return o.called(c, call, b, m.At)
	case "tasks/get":
		return statement(taskmodel.FromGet, b, call.task)
	case "tasks/list":
		var out []Heard
		elements(member(b, "tasks"), func(v json.RawMessage) bool {
			out = append(out, statement(taskmodel.FromList, v, stringAt(v, "taskId"))...)
			return true
		})
		return out
	case "tasks/result":
		return []Heard{{Kind: HeardOutcome, Task: call.task, Generation: gen, Outcome: taskmodel.Outcome{Result: b, Note: outcome(b).Note, FetchedAt: m.At}}}
	case "tasks/cancel":
		if gen == taskmodel.GenExtension || stringAt(b, "status") == "" && stringAt(b, "task", "status") == "" {
			return nil
		}
		return statement(taskmodel.FromCancel, b, call.task)
	case "tasks/delete":
		return []Heard{{Kind: HeardDeleted, Task: call.task, Generation: gen}}
	case "tasks/update":
		var out []Heard
		for key, a := range call.answers {
			k := taskmodel.Key{Server: o.server, ID: call.task, Role: taskmodel.Requestor}
			out = append(out, Heard{Kind: HeardAnswer, Task: call.task, Generation: gen, Action: a,
				Question: taskmodel.Question{ID: taskmodel.QuestionID{Server: o.server, ID: taskQuestionID(call.task, key)}, Task: k, Key: key}})
		}
		return out
	}
	return nil
}

// introduced reads what the handshake found.
func (o *Observer) introduced(c *conversation, call *overheardCall, b json.RawMessage) Heard {
	i := &c.info
	if call.method == "initialize" {
		i.Era, i.ProtocolVersion = eraLegacy, stringAt(b, "protocolVersion")
		i.ServerName, i.ServerVersion = stringAt(b, "serverInfo", "name"), stringAt(b, "serverInfo", "version")
		i.Generation = taskmodel.GenDraft // until it shows that it has no tasks at all
		if i.ProtocolVersion == versionCore {
			i.Generation = taskmodel.GenNone
			if isObject(memberAt(b, "capabilities", "tasks")) {
				i.Generation = taskmodel.GenCore
			}
		}
	} else {
		info := memberAt(b, "_meta", metaServerInfo)
		if info == nil {
			info = member(b, "serverInfo")
		}
		i.ServerName, i.ServerVersion = stringAt(info, "name"), stringAt(info, "version")
	}
	i.Capabilities = member(b, "capabilities")
	switch i.Generation {
	case taskmodel.GenDraft:
		i.Can = draftCan(i.Capabilities)
	case taskmodel.GenExtension:
		i.Can = taskmodel.Can{Cancel: true}
	default:
		i.Can = coreCan(*i, "")
	}
	return Heard{Kind: HeardClient, Generation: i.Generation, Info: *i}
}

// called reads what became of a tool call.
func (o *Observer) called(c *conversation, call *overheardCall, b json.RawMessage, at time.Time) []Heard {
	gen := c.gen(call)
	if call.task != "" {
		// The draft's own answer comes when the task has ended.
		if !call.made {
			return nil
		}
		return []Heard{{Kind: HeardOutcome, Task: call.task, Generation: taskmodel.GenDraft, Outcome: taskmodel.Outcome{Result: b, FetchedAt: at}}}
	}
	var snap taskmodel.Snapshot
	if call.modern {
		raw := b
		switch kind := stringAt(b, "resultType"); {
		case kind == "input_required":
			return []Heard{{Kind: HeardWants, Generation: gen, Call: &call.call}}
		case isObject(member(b, "task")) && member(b, "taskId") == nil:
			raw = member(b, "task")
		case kind != "task" && (member(b, "taskId") == nil || member(b, "content") != nil):
			return nil
		}
		var err error
		if snap, err = readDetailed(raw); err != nil {
			return nil
		}
	} else {
		st := readStarted(b, false)
		if st.TaskID == "" {
			return nil
		}
		gen, snap = taskmodel.GenCore, st.Snapshot
	}
	if call.token != "" {
		if len(c.tokens) >= maxOverheard {
			clear(c.tokens)
		}
		c.tokens[call.token] = snap.ID
	}
	h := Heard{Kind: HeardTask, Task: snap.ID, Generation: gen, Call: &call.call,
		Observation: taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromCreate, AskedAt: call.at, HeardAt: at}}
	return append([]Heard{h}, o.questions(h)...)
}

// errNotHere is for acts that a conversation does not allow.
func (o *Observer) errNotHere(task, why string) error {
	return fmt.Errorf("%s/%s: %s", o.server, task, why)
}
