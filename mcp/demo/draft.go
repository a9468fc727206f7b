package demo

import (
	"encoding/json"
	"slices"
	"time"
)

// draft is the wire of SEP-1686 as it was proposed: the client makes the
// task's id and puts it into the metadata of any call; the call is still
// answered in the end, and a notification says that the task was made.
// Sections cited are those of SEP-1686.
type draft struct {
	*legacy
	calls map[*job]*inbound // calls whose tasks were made in this session
}

const (
	draftRelated = "modelcontextprotocol.io/related-task"
	draftTaskKey = "modelcontextprotocol.io/task"
)

var (
	draftRules    = rules{first: submitted, ttlFromEnd: true}
	draftVersions = []string{"2025-06-18", "2025-03-26", "2024-11-05"}
	coreVersions  = []string{coreVersion, "2025-06-18", "2025-03-26", "2024-11-05"}
)

func newDraft(s *session) *draft {
	d := &draft{legacy: newLegacy(s), calls: map[*job]*inbound{}}
	d.beside = d.calls
	d.versions = draftVersions
	d.related = draftRelated
	d.known = []string{"logging/setLevel", "tools/list", "tools/call", "tasks/get", "tasks/result", "tasks/list", "tasks/delete"}
	d.features = func(string) json.RawMessage {
		return compact(`{"logging":{},"tools":{"listChanged":true},"tasks":{"list":{},"delete":{},"requests":{"tools":{"call":{}}}}}`)
	}
	// Questions of tasks that no client of ours started go to the first client
	// that is there for them.
	d.ready = func() {
		e := s.srv.engine
		for _, j := range e.order {
			for _, q := range slices.Clone(j.questions) {
				d.offer(j, q)
			}
		}
	}
	return d
}

// draftTask is a task of this proposal: no times, and an error in words.
type draftTask struct {
	ID        string  `json:"taskId"`
	Status    status  `json:"status"`
	KeepAlive *int64  `json:"keepAlive"`
	Poll      int64   `json:"pollFrequency"`
	Error     string  `json:"error,omitempty"`
	Parent    string  `json:"parentTaskId,omitempty"`
	Children  []child `json:"childTasks,omitempty"`
}

func showDraft(j *job) draftTask {
	t := draftTask{ID: j.id, Status: j.status, KeepAlive: millis(j.ttl), Poll: j.poll.Milliseconds(), Parent: j.parent, Children: j.children}
	if j.status == failed || j.status == unknown {
		t.Error = j.message
	}
	return t
}

func (d *draft) request(r *inbound) {
	if d.handle(r) {
		return
	}
	srv := d.s.srv
	switch r.method {
	case "tools/list":
		d.listTools(r, func(t *tool) *listedTool { return t.listed() })
	case "tools/call":
		d.callTool(r)
	case "tasks/list":
		srv.list(r, func(j *job) any { return showDraft(j) })
	case "tasks/get", "tasks/result", "tasks/delete":
		id, ok := taskID(r)
		if !ok {
			return
		}
		srv.engine.with(id, func(j *job) {
			if j == nil {
				notFound(r, id)
				return
			}
			switch r.method {
			case "tasks/get":
				r.reply(d.relate(j, enc(showDraft(j))))
			case "tasks/result":
				// 4.6: of a completed task only, and 7.1's error for the rest.
				if j.status != completed {
					r.fail(codeParams, "Cannot retrieve result: Task status is '%s', not 'completed'", j.status)
					return
				}
				r.reply(d.relate(j, orEmpty(j.out.result)))
			case "tasks/delete":
				// 4.10: a receiver may refuse; this one does while there is work.
				if !j.status.terminal() {
					r.fail(codeParams, "Cannot delete task: Task status is '%s'", j.status)
					return
				}
				reply := d.relate(j, json.RawMessage("{}"))
				srv.engine.remove(j, false)
				r.reply(reply)
			}
		})
	}
}

func (d *draft) callTool(r *inbound) {
	call, ok := readCall(r)
	if !ok {
		return
	}
	raw, asTask := call.Meta[draftTaskKey]
	if !asTask || call.tool.support == forbidden {
		// 4.1: what does not support tasks is processed as ever.
		d.callPlain(r, call.job(d.s, d.caps, true))
		return
	}
	var p struct {
		ID        *string  `json:"taskId"`
		KeepAlive *float64 `json:"keepAlive"`
		Parent    *string  `json:"parentTaskId"`
	}
	if json.Unmarshal(raw, &p) != nil || p.ID == nil || *p.ID == "" || p.KeepAlive != nil && *p.KeepAlive < 0 {
		r.fail(codeParams, "%s needs a taskId, a string, and may have a keepAlive in milliseconds", draftTaskKey)
		return
	}
	e := d.s.srv.engine
	st := call.job(d.s, d.caps, false)
	st.id = *p.ID
	if p.Parent != nil {
		st.parent = *p.Parent
	}
	if p.KeepAlive != nil {
		ms := time.Duration(min(*p.KeepAlive, float64(maxTTL.Milliseconds()))) * time.Millisecond
		st.ttl = &ms
	}
	st.begun = func(j *job) {
		d.calls[j] = r
		// 3.4: the notification says that polling can begin.
		d.s.notify("notifications/tasks/created", d.relate(j, json.RawMessage("{}")), string(r.id))
	}
	// 4.8: the call's id is how its task is cancelled.
	r.whenGivenUp(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for j, have := range d.calls {
			if have == r {
				delete(d.calls, j)
				e.end(j, outcome{status: cancelled})
				return
			}
		}
	})
	switch err := e.begin(st); err {
	case nil:
	case errExists:
		r.fail(codeParams, "Task ID already exists: %s", st.id)
	case errParent:
		r.fail(codeParams, "Parent task not found: %s", st.parent)
	default:
		r.fail(codeInternal, "%v", err)
	}
}

func (d *draft) notification(method string, params json.RawMessage) {
	if d.legacy.notification(method, params) || method != "notifications/cancelled" {
		return
	}
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) == nil {
		d.s.giveUp(p.ID)
	}
}

func (d *draft) event(ev event) {
	j := ev.job
	d.legacy.event(ev)
	switch ev.kind {
	case changed:
		if r := d.calls[j]; r != nil && j.status.terminal() {
			delete(d.calls, j)
			switch {
			case j.out.err != nil:
				r.failWith(j.out.err)
			case j.status == completed:
				r.reply(d.relate(j, orEmpty(j.out.result)))
			default:
				r.fail(codeInternal, "%s", j.message)
			}
		}
	case asked:
		d.offer(j, ev.question)
	case removed:
		if r := d.calls[j]; r != nil {
			delete(d.calls, j)
			r.fail(codeParams, "Failed to retrieve task: Task has expired")
		}
	}
}

// offer puts a question to this client at once (4.4): beside the call if the
// call was this client's, else if the task is nobody's who is here.
func (d *draft) offer(j *job, q *question) {
	if q.claimed != 0 || !d.live {
		return
	}
	if r := d.plain[j]; r != nil {
		d.put(j, q, r)
		return
	}
	if r := d.calls[j]; r != nil {
		d.put(j, q, r)
		return
	}
	if e := d.s.srv.engine; !j.hidden && (j.owner == 0 || !e.here(j.owner)) {
		d.put(j, q, nil)
	}
}
