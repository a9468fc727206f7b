package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// A status of a job. The wire names are the same in all generations.
type status string

const (
	submitted     status = "submitted"
	working       status = "working"
	inputRequired status = "input_required"
	completed     status = "completed"
	failed        status = "failed"
	cancelled     status = "cancelled"
	unknown       status = "unknown"
)

func (s status) terminal() bool {
	return s == completed || s == failed || s == cancelled || s == unknown
}

// A job is one run of one tool. Its fields belong to the engine's mutex.
type job struct {
	id       string
	seq      int
	tool     *tool
	args     json.RawMessage
	hidden   bool // a plain call: no task, not listed
	owner    int  // the listener that started it, 0 for none
	token    json.RawMessage
	caps     clientCaps
	parent   string
	logLevel int // 2026-07-28: from which level on the call wants log messages; -1 none

	status  status
	message string
	created time.Time
	updated time.Time
	ended   time.Time
	ttl     time.Duration // unlimited, or what was granted
	poll    time.Duration

	progress, total float64
	progressNote    string

	questions []*question // open ones, in the order in which they were asked
	usedKeys  map[string]bool
	answers   map[string]json.RawMessage
	then      func(answers map[string]json.RawMessage) []step
	children  []child

	out outcome

	steps     []step
	epoch     int // counts the waits; a timer of an earlier one has no effect
	expiry    int
	stopping  bool
	committed bool // past the point of no return: a cooperative cancel comes too late
	deleted   bool
	rng       *rand.Rand
}

// An outcome is how a job ended.
type outcome struct {
	status  status
	message string
	result  json.RawMessage // an object without _meta and resultType
	isError bool
	err     *rpcError
}

// A child is a task that the client is to run for another one (draft, future
// work in SEP-1686).
type child struct {
	TaskID    string          `json:"taskId"`
	ToolName  string          `json:"toolName"`
	Arguments json.RawMessage `json:"arguments"`
}

// A question is one request of the server to the client that a job waits for.
type question struct {
	key      string
	method   string
	params   json.RawMessage // an object without _meta
	schema   json.RawMessage // of an elicitation's form; nil else
	elicitID string          // URL mode
	delegate bool            // to be asked as a task at the client; the job goes on being "working"
	claimed  int             // the listener that has put it to its client
}

// eventKind says what happened.
type eventKind int

const (
	changed   eventKind = iota // status or message
	progress                   // a progress notification is due
	logged                     // a log message
	asked                      // a question is open and free
	withdrawn                  // a question will take no answer any more
	removed                    // the job is gone
	visited                    // a URL elicitation was completed
	retooled                   // the list of tools changed
	arrived                    // a job started by itself
)

type event struct {
	kind     eventKind
	job      *job
	question *question
	level    string
	text     string
	why      string
	elicitID string
	was      status // changed: before
}

// A step is one thing that a job does.
type step struct {
	wait     time.Duration
	set      bool // message, progress and total below count
	message  string
	progress float64
	total    float64
	level    string // a log line
	text     string
	ask      []question
	patience time.Duration // the job goes on without answers after this; 0 waits for ever
	then     func(answers map[string]json.RawMessage) []step
	children []child
	hang     bool
	commit   bool
	end      *outcome
}

func stage(d time.Duration, message string, progress, total float64) step {
	return step{wait: d, set: true, message: message, progress: progress, total: total}
}

func logLine(level, text string) step { return step{level: level, text: text} }

func ask(message string, then func(map[string]json.RawMessage) []step, q ...question) step {
	return step{message: message, ask: q, then: then}
}

func finish(o outcome) step { return step{end: &o} }

// A start says what job to make.
type start struct {
	id      string // "" makes one
	tool    *tool
	args    json.RawMessage
	hidden  bool
	owner   int
	token   json.RawMessage
	caps    clientCaps
	ttl     *time.Duration // what was asked for
	parent  string
	at      time.Time // zero: now
	steps   []step    // instead of the tool's script
	visited bool      // the page that the tool wants visited was visited
	// begun is called with the mutex held before the first step, so that what
	// the job does at once finds whoever waits for it.
	begun func(j *job)
}

var (
	errExists  = errors.New("a task of this id exists already")
	errTooMany = fmt.Errorf("this server runs at most %d unfinished tasks", maxUnfinished)
	errNoTask  = errors.New("no such task")
	errNoSuch  = errors.New("no such question is open")
	errParent  = errors.New("no such parent task")
)

// begin makes a job and lets it take its first step.
func (e *engine) begin(s start) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.beginLocked(s)
}

func (e *engine) beginLocked(s start) error {
	if s.id == "" {
		s.id = e.newID()
	} else if e.jobs[s.id] != nil || e.expired[s.id] {
		return errExists
	}
	if s.parent != "" && e.jobs[s.parent] == nil {
		return errParent
	}
	if s.owner != 0 {
		unfinished := 0
		for _, j := range e.order {
			if j.owner != 0 && !j.status.terminal() {
				unfinished++
			}
		}
		if unfinished >= maxUnfinished {
			return errTooMany
		}
	}
	now := s.at
	if now.IsZero() {
		now = e.time()
	}
	e.seq++
	j := &job{
		id: s.id, seq: e.seq, tool: s.tool, args: s.args, hidden: s.hidden, owner: s.owner,
		token: s.token, caps: s.caps, parent: s.parent, status: e.rules.first,
		created: now.Add(e.skew), updated: now.Add(e.skew), logLevel: -1, ttl: e.grant(s.tool, s.ttl), poll: s.tool.poll,
		usedKeys: map[string]bool{}, rng: rand.New(rand.NewPCG(e.seed, uint64(e.seq))),
	}
	if s.hidden {
		j.status = working
	}
	if j.poll == 0 {
		j.poll = 2 * time.Second
	}
	j.poll = max(e.scaled(j.poll), min(j.poll, 250*time.Millisecond))
	if j.steps = s.steps; j.steps == nil {
		j.steps = s.tool.script(&work{job: j, engine: e, rng: j.rng, args: s.args, caps: s.caps, visited: s.visited})
	}
	e.jobs[j.id] = j
	e.order = append(e.order, j)
	if !e.rules.ttlFromEnd && j.ttl != unlimited && !s.hidden {
		e.expireAt(j, now.Add(j.ttl))
	}
	if s.begun != nil {
		s.begun(j)
	}
	if !s.hidden {
		e.tell(event{kind: changed, job: j})
	}
	wait := time.Duration(0)
	if j.status == submitted {
		wait = s.tool.queue
		j.message = "Queued"
		if wait == 0 {
			wait = 1500 * time.Millisecond
		}
	}
	e.resume(j, now.Add(e.scaled(wait)))
	return nil
}

// grant decides a task's TTL.
func (e *engine) grant(t *tool, asked *time.Duration) time.Duration {
	ttl := t.ttl
	if ttl == 0 {
		ttl = 2 * time.Hour
	}
	if ttl != unlimited {
		ttl = max(e.scaled(ttl), minTTL)
	}
	if asked != nil {
		ttl = min(max(*asked, minTTL), maxTTL)
		if t.maxTTL > 0 {
			ttl = min(ttl, max(e.scaled(t.maxTTL), minTTL))
		}
	}
	return ttl
}

// resume lets the job take its next step when due.
func (e *engine) resume(j *job, due time.Time) {
	j.epoch++
	n := j.epoch
	e.at(due, func() {
		if j.epoch == n && !j.deleted && !j.status.terminal() {
			e.advance(j)
		}
	})
}

// advance takes steps until one waits.
func (e *engine) advance(j *job) {
	if j.status == submitted {
		e.become(j, working, "")
	}
	for len(j.steps) > 0 {
		s := j.steps[0]
		j.steps = j.steps[1:]
		if s.commit {
			j.committed = true
		}
		if s.level != "" {
			e.tell(event{kind: logged, job: j, level: s.level, text: s.text})
		}
		if s.set {
			e.report(j, s)
		}
		switch {
		case s.end != nil:
			e.end(j, *s.end)
			return
		case s.hang:
			j.epoch++
			return
		case len(s.ask) > 0:
			e.ask(j, s)
			return
		case len(s.children) > 0:
			j.children = append(j.children, s.children...)
			e.become(j, working, s.message)
			j.epoch++
			e.childEnded(j)
			return
		case s.wait > 0:
			e.resume(j, e.time().Add(e.scaled(s.wait)))
			return
		}
	}
	e.end(j, outcome{status: completed, result: textResult("Done.")})
}

// report sets message and progress.
func (e *engine) report(j *job, s step) {
	if s.total > 0 && s.progress > j.progress {
		j.progress, j.total, j.progressNote = s.progress, s.total, s.message
		if len(j.token) > 0 {
			e.tell(event{kind: progress, job: j})
		}
	}
	if s.message != "" && s.message != j.message {
		j.message = s.message
		j.updated = e.said()
		if !j.hidden {
			e.tell(event{kind: changed, job: j, was: j.status})
		}
	}
}

// become moves a job to a status that is not terminal.
func (e *engine) become(j *job, s status, message string) {
	if j.status.terminal() {
		return
	}
	was := j.status
	j.status = s
	if message != "" {
		j.message = message
	}
	j.updated = e.said()
	if !j.hidden {
		e.tell(event{kind: changed, job: j, was: was})
	}
}

// end moves a job to a terminal status, which it never leaves.
func (e *engine) end(j *job, o outcome) {
	if j.status.terminal() || j.deleted {
		return
	}
	e.withdraw(j, "the task has ended")
	if o.status == "" {
		o.status = completed
	}
	if o.status == completed && o.isError && e.rules.errorFails {
		o.status = failed
	}
	if o.message == "" {
		switch o.status {
		case cancelled:
			o.message = "Cancelled by request"
		case failed:
			if o.err != nil {
				o.message = o.err.Message
			}
		}
	}
	j.epoch++
	was := j.status
	j.out = o
	j.status = o.status
	j.message = o.message
	j.updated = e.said()
	j.ended = e.time()
	j.steps = nil
	if e.rules.ttlFromEnd && j.ttl != unlimited && !j.hidden {
		e.expireAt(j, j.ended.Add(j.ttl))
	}
	e.tell(event{kind: changed, job: j, was: was})
	if j.hidden {
		e.remove(j, false)
	}
	if e.ended != nil {
		e.ended(j)
	}
	if p := e.jobs[j.parent]; p != nil {
		e.childEnded(p)
	}
}

// childEnded goes on with a job whose children have all ended.
func (e *engine) childEnded(p *job) {
	if p.status.terminal() || len(p.children) == 0 {
		return
	}
	missing, running := 0, 0
	for _, c := range p.children {
		switch j := e.jobs[c.TaskID]; {
		case j == nil && !e.expired[c.TaskID]:
			missing++
		case j != nil && !j.status.terminal():
			running++
		}
	}
	if missing+running > 0 {
		m := fmt.Sprintf("Waiting for %d of %d sub-tasks", missing+running, len(p.children))
		if m != p.message {
			e.become(p, working, m)
		}
		return
	}
	e.resume(p, e.time().Add(e.scaled(2*time.Second)))
}

// cancelLocked stops a job that has not ended. Cooperatively it may take its
// time, and may come too late.
func (e *engine) cancelLocked(j *job) {
	if !e.rules.cooperative || j.hidden {
		e.end(j, outcome{status: cancelled})
		return
	}
	if j.stopping || j.committed {
		return // acknowledged; the work has its own way
	}
	j.stopping = true
	e.withdraw(j, "the task is being cancelled")
	j.steps = []step{stage(1500*time.Millisecond, "Stopping", 0, 0), finish(outcome{status: cancelled})}
	if j.status == inputRequired {
		j.status = working
	}
	e.advance(j)
}
