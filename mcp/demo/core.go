package demo

import (
	"encoding/json"
	"slices"
	"time"
)

// core is the wire of 2025-11-25: its tasks are made on request, asked about
// by tasks/get, and answered by a tasks/result that waits. Sections cited are
// those of basic/utilities/tasks of that revision.
type core struct {
	*legacy
	waiting map[string][]*inbound // tasks/result, by task
}

const (
	coreVersion = "2025-11-25"
	coreRelated = "io.modelcontextprotocol/related-task"
)

var coreRules = rules{first: working, errorFails: true}

func newCore(s *session) *core {
	c := &core{legacy: newLegacy(s), waiting: map[string][]*inbound{}}
	c.versions = coreVersions
	c.related = coreRelated
	c.known = []string{"logging/setLevel", "tools/list", "tools/call", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel"}
	c.features = func(version string) json.RawMessage {
		if version != coreVersion {
			return compact(`{"logging":{},"tools":{"listChanged":true}}`)
		}
		return compact(`{"logging":{},"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`)
	}
	return c
}

// coreTask is a Task of this revision.
type coreTask struct {
	ID      string `json:"taskId"`
	Status  status `json:"status"`
	Message string `json:"statusMessage,omitempty"`
	Created string `json:"createdAt"`
	Updated string `json:"lastUpdatedAt"`
	TTL     *int64 `json:"ttl"`
	Poll    int64  `json:"pollInterval"`
}

func showCore(j *job) coreTask {
	return coreTask{j.id, j.status, j.message, stamp(j.created), stamp(j.updated), millis(j.ttl), j.poll.Milliseconds()}
}

// tasks reports whether the negotiated version has tasks.
func (c *core) tasks() bool { return c.version == coreVersion }

func (c *core) request(r *inbound) {
	if c.handle(r) {
		return
	}
	if !c.tasks() && r.method != "tools/list" && r.method != "tools/call" {
		r.fail(codeMethod, "Method not found: %s", r.method)
		return
	}
	srv := c.s.srv
	switch r.method {
	case "tools/list":
		c.listTools(r, func(t *tool) *listedTool {
			lt := t.listed()
			if !c.tasks() {
				if t.support == required {
					return nil
				}
				return lt
			}
			lt.Execution = &execution{t.support}
			return lt
		})
	case "tools/call":
		c.callTool(r)
	case "tasks/list":
		srv.list(r, func(j *job) any { return showCore(j) })
	case "tasks/get":
		if id, ok := taskID(r); ok {
			srv.engine.with(id, func(j *job) {
				if j == nil {
					notFound(r, id)
					return
				}
				r.reply(enc(showCore(j)))
			})
		}
	case "tasks/result":
		c.result(r)
	case "tasks/cancel":
		c.cancel(r)
	}
}

func (c *core) callTool(r *inbound) {
	call, ok := readCall(r)
	if !ok {
		return
	}
	asTask := false
	var ttl *time.Duration
	if c.tasks() && len(call.Task) > 0 {
		asTask = true
		var p struct {
			TTL *float64 `json:"ttl"`
		}
		if !isObject(call.Task) || json.Unmarshal(call.Task, &p) != nil || p.TTL != nil && *p.TTL < 0 {
			r.fail(codeParams, "task is no object with a ttl in milliseconds")
			return
		}
		if p.TTL != nil {
			// A ttl beyond what a Duration holds is beyond every maximum too.
			d := time.Duration(min(*p.TTL, float64(maxTTL.Milliseconds()))) * time.Millisecond
			ttl = &d
		}
	}
	// "Tool-Level Negotiation".
	switch {
	case asTask && call.tool.support == forbidden:
		r.fail(codeMethod, "Tool %s does not support task augmentation", call.tool.name)
		return
	case !asTask && call.tool.support == required:
		r.fail(codeMethod, "Tool %s requires task augmentation", call.tool.name)
		return
	}
	if !asTask {
		st := call.job(c.s, c.caps, true)
		if st.steps == nil && call.tool.visitFirst && c.tasks() {
			if !c.unlocked(r, call) {
				return
			}
			st.visited = true
		}
		c.callPlain(r, st)
		return
	}
	st := call.job(c.s, c.caps, false)
	st.ttl = ttl
	st.begun = func(j *job) {
		// "Tasks MUST begin in the working status", and the answer goes before
		// anything else is said of the task.
		r.reply(splice(enc(map[string]any{"task": showCore(j)}), "_meta", map[string]any{
			coreRelated: map[string]string{"taskId": j.id},
			"io.modelcontextprotocol/model-immediate-response": "The work goes on; its task is " + j.id + ".",
		}))
	}
	if err := c.s.srv.engine.begin(st); err != nil {
		r.fail(codeInternal, "%v", err)
	}
}

// unlocked answers a plain call with -32042 until the page that it names was
// visited (client/elicitation, "URL Elicitation Required Error").
func (c *core) unlocked(r *inbound, call toolCall) bool {
	if !c.caps.url {
		return true // the tool's own error says what is missing
	}
	srv := c.s.srv
	key := call.tool.name + " " + string(call.Args)
	srv.mu.Lock()
	seen := srv.visited[key]
	srv.mu.Unlock()
	if seen {
		return true
	}
	e := srv.engine
	e.mu.Lock()
	id := e.newID()
	c.visits[id] = true
	e.at(e.time().Add(e.scaled(8*time.Second)), func() {
		srv.mu.Lock()
		srv.visited[key] = true
		srv.mu.Unlock()
		e.tell(event{kind: visited, elicitID: id})
	})
	e.mu.Unlock()
	r.failWith(&rpcError{Code: -32042, Message: "Unlock the signing key first", Data: enc(map[string]any{
		"elicitations": []any{page("unlock", "Unlock the signing key in your browser, then call again.",
			"https://keys.example/unlock?challenge="+id[:8], id).params},
	})})
	return false
}

// result answers a tasks/result: at once when the task has ended, else when it
// ends ("Result Retrieval"). Meanwhile the task's questions go out beside it.
func (c *core) result(r *inbound) {
	id, ok := taskID(r)
	if !ok {
		return
	}
	e := c.s.srv.engine
	r.whenGivenUp(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		c.forget(id, r)
	})
	e.with(id, func(j *job) {
		switch {
		case j == nil:
			notFound(r, id)
		case j.status.terminal():
			c.giveResult(r, j)
		default:
			c.waiting[id] = append(c.waiting[id], r)
			for _, q := range slices.Clone(j.questions) {
				// A question that went out beside a tasks/result which nobody
				// reads any more is put again beside this one.
				if a := c.asked[q]; a != nil && a.about != nil && (!a.about.open() || !c.s.out.attached(string(a.about.id))) {
					c.retract(q, "asked again beside a new tasks/result")
				}
				c.offer(j, q)
			}
		}
	})
}

func (c *core) forget(id string, r *inbound) {
	c.waiting[id] = slices.DeleteFunc(c.waiting[id], func(have *inbound) bool { return have == r })
	if len(c.waiting[id]) == 0 {
		delete(c.waiting, id)
	}
}

// giveResult: exactly what the request would have returned, with the metadata
// that it MUST carry ("Related Task Metadata"). A task that was cancelled has
// no such thing; it gets an error.
func (c *core) giveResult(r *inbound, j *job) {
	switch {
	case j.out.err != nil:
		r.failWith(j.out.err)
	case j.out.result == nil:
		r.fail(codeInternal, "The task was cancelled")
	default:
		r.reply(c.relate(j, j.out.result))
	}
}

// cancel: -32602 for a task that has ended; else the task is cancelled before
// the answer ("Task Cancellation").
func (c *core) cancel(r *inbound) {
	id, ok := taskID(r)
	if !ok {
		return
	}
	e := c.s.srv.engine
	e.with(id, func(j *job) {
		switch {
		case j == nil:
			notFound(r, id)
		case j.status.terminal():
			r.fail(codeParams, "Cannot cancel task: already in terminal status '%s'", j.status)
		default:
			e.cancelLocked(j)
			r.reply(enc(showCore(j)))
		}
	})
}

func (c *core) notification(method string, params json.RawMessage) {
	if c.legacy.notification(method, params) || method != "notifications/cancelled" {
		return
	}
	// For a task this does nothing: the request that made it was answered long
	// ago ("Task Cancellation" has tasks/cancel for it).
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) == nil {
		c.s.giveUp(p.ID)
	}
}

func (c *core) event(ev event) {
	j := ev.job
	c.legacy.event(ev)
	switch ev.kind {
	case changed:
		if j.hidden {
			return
		}
		if c.live && c.tasks() && ev.was != j.status {
			// Without related-task metadata: the id is in the params.
			c.s.notify("notifications/tasks/status", enc(showCore(j)), "")
		}
		if j.status.terminal() {
			for _, r := range c.waiting[j.id] {
				c.giveResult(r, j)
			}
			delete(c.waiting, j.id)
		}
	case asked:
		c.offer(j, ev.question)
	case removed:
		for _, r := range c.waiting[j.id] {
			r.fail(codeParams, "Failed to retrieve task: Task has expired")
		}
		delete(c.waiting, j.id)
	}
}

// offer puts a question to this client if it is this client's: a task's, when
// a tasks/result of it is open here; a plain call's, beside the call.
func (c *core) offer(j *job, q *question) {
	if q.claimed != 0 {
		return
	}
	if q.delegate {
		if j.owner == c.s.owner {
			c.delegate(j, q)
		}
		return
	}
	if r := c.plain[j]; r != nil {
		c.put(j, q, r)
		return
	}
	for _, r := range slices.Backward(c.waiting[j.id]) {
		if r.open() && c.s.out.attached(string(r.id)) {
			c.put(j, q, r)
			return
		}
	}
}
