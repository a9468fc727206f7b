package demo

import (
	"encoding/json"
	"time"
)

// This file is the other direction of 2025-11-25: the server is the requestor
// and the client the receiver. A delegated question goes out with a task
// field; the client answers with a task of its own, which is polled and whose
// result is fetched.

const (
	delegateTTL  = 10 * time.Minute
	delegatePoll = time.Second
)

// delegate asks the client to run a question as a task. The engine's mutex is
// held.
func (c *core) delegate(j *job, q *question) {
	if !c.live || !c.tasks() {
		return
	}
	q.claimed = c.s.owner
	e := c.s.srv.engine
	d := &delegation{c: c, job: j, key: q.key, jobID: j.id}
	c.asked[q] = &asking{job: j, key: q.key, abandon: d.abandon}
	d.settle = func() { delete(c.asked, q) }
	params := splice(c.relate(j, q.params), "task", map[string]any{"ttl": delegateTTL.Milliseconds()})
	d.about = c.about(j)
	c.s.call(q.method, params, d.about, func(result json.RawMessage, err *rpcError) {
		var made struct {
			Task *struct {
				ID     string   `json:"taskId"`
				Status status   `json:"status"`
				Poll   *float64 `json:"pollInterval"`
			} `json:"task"`
		}
		if err != nil || json.Unmarshal(result, &made) != nil {
			d.finish(nil)
			return
		}
		if made.Task == nil || made.Task.ID == "" {
			d.finish(result) // the client answered as if no task had been asked for
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		d.task = made.Task.ID
		d.pollAfter(made.Task.Poll)
	})
}

// A delegation is one task at the client. Its fields belong to the engine's
// mutex.
type delegation struct {
	c      *core
	job    *job
	jobID  string
	key    string
	about  string
	task   string // the client's id for it
	over   bool
	settle func()
}

// pollAfter asks for the client's task again after its suggested interval.
func (d *delegation) pollAfter(hint *float64) {
	wait := delegatePoll
	if hint != nil && *hint > 0 && *hint < float64(time.Hour.Milliseconds()) {
		wait = time.Duration(*hint) * time.Millisecond
	}
	e := d.c.s.srv.engine
	e.at(e.time().Add(wait), func() {
		if d.over || d.job.deleted || d.job.status.terminal() {
			return
		}
		d.c.s.call("tasks/get", enc(map[string]string{"taskId": d.task}), d.about, func(result json.RawMessage, err *rpcError) {
			var t struct {
				Status status   `json:"status"`
				Poll   *float64 `json:"pollInterval"`
			}
			if err != nil || json.Unmarshal(result, &t) != nil {
				d.finish(nil)
				return
			}
			if !t.Status.terminal() {
				e.mu.Lock()
				defer e.mu.Unlock()
				d.pollAfter(t.Poll)
				return
			}
			d.c.s.call("tasks/result", enc(map[string]string{"taskId": d.task}), d.about, func(result json.RawMessage, err *rpcError) {
				if err != nil {
					result = nil
				}
				d.finish(result)
			})
		})
	})
}

// finish hands the answer, nil when there is none, to the job.
func (d *delegation) finish(result json.RawMessage) {
	e := d.c.s.srv.engine
	e.mu.Lock()
	if d.over {
		e.mu.Unlock()
		return
	}
	d.over = true
	d.settle()
	e.mu.Unlock()
	if e.answer(d.jobID, map[string]json.RawMessage{d.key: result}) != nil {
		_ = e.answer(d.jobID, map[string]json.RawMessage{d.key: nil})
	}
}

// abandon cancels the client's task when ours has ended without it.
func (d *delegation) abandon() {
	d.over = true
	if d.task != "" {
		d.c.s.call("tasks/cancel", enc(map[string]string{"taskId": d.task}), d.about, func(json.RawMessage, *rpcError) {})
	}
}
