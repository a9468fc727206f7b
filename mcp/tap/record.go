package tap

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/taskmodel/journal"
)

const (
	maxResult  = 4 << 20     // of a result that is kept; the journal has its own bound too
	maxWaiting = 2000        // entries that wait for the journal to be opened
	saveEvery  = time.Second // for what changes often: progress, polls
	maxListed  = 10_000      // tasks that are followed
)

// A recorder keeps the tasks that were heard of, and writes them down. It is
// the reader's alone.
type recorder struct {
	t       *tap
	board   *board.Board
	rows    map[string]*row
	memory  Memory
	early   []journal.Entry // until the journal is open
	agents  map[string]bool
	info    mcp.Info
	started time.Time
	ended   time.Time
	why     string
}

// person is whose doing it is, in the history, what the tap itself sent.
const person = "a person, through the tap"

// A row is what is kept of a task beside the board.
type row struct {
	conv    string
	status  taskmodel.Status // as it was last written down
	saved   time.Time
	changed bool
	waiters []chan struct{}
}

func newRecorder(t *tap) *recorder {
	return &recorder{t: t, board: board.New(), rows: map[string]*row{}, agents: map[string]bool{}, started: t.o.Now()}
}

// opened takes the journal when it is there.
func (r *recorder) opened(m Memory) {
	r.memory = m
	r.memory.Store.Queue(r.early...)
	r.early = nil
}

func (r *recorder) queue(e journal.Entry) {
	e.Target, e.Server = r.t.o.Target, r.t.label
	switch {
	case r.memory.Store != nil:
		r.memory.Store.Queue(e)
	case r.t.o.Memory == nil:
	case len(r.early) < maxWaiting:
		r.early = append(r.early, e)
	default:
		// The rows' last states are what matters most.
		copy(r.early, r.early[1:])
		r.early[len(r.early)-1] = e
	}
}

func (r *recorder) keeps(tool string) bool { return r.memory.Keep == nil || r.memory.Keep(tool) }

// write writes a task down, with what happened to it.
func (r *recorder) write(id string, e *taskmodel.Event, more func(*journal.Entry)) {
	k := r.t.key(id)
	entry := journal.Entry{Key: k, Event: e}
	if t, ok := r.board.Task(k); ok {
		if !r.keeps(t.Tool) {
			t.Args, t.Raw = nil, nil
		}
		t.Outcome = taskmodel.Outcome{}
		entry.Task = &t
	}
	if more != nil {
		more(&entry)
	}
	if w := r.rows[id]; w != nil {
		w.saved, w.changed = r.t.o.Now(), false
	}
	r.queue(entry)
}

// events writes down what happened to a task.
func (r *recorder) events(id string, events []taskmodel.Event, own string) {
	for _, e := range events {
		was := taskmodel.Status("")
		if w := r.rows[id]; w != nil {
			was, w.status = w.status, e.Status
		}
		switch e.Kind {
		case taskmodel.EventStanding:
			r.write(id, nil, nil)
			continue
		case taskmodel.EventProgress:
			r.often(id)
			continue
		case taskmodel.EventStatus:
			if was == e.Status {
				r.often(id) // other words only
				continue
			}
		case taskmodel.EventResult:
			t, _ := r.board.Task(r.t.key(id))
			r.write(id, &e, func(entry *journal.Entry) {
				o := t.Outcome
				if size := len(o.Result); size > maxResult {
					o = taskmodel.Outcome{TooLarge: int64(size), FetchedAt: o.FetchedAt, Note: "too large to keep; the agent has it"}
				}
				if r.keeps(t.Tool) {
					entry.Outcome = &o
				}
			})
			continue
		}
		if own != "" {
			e.Detail = withBy(e.Detail, own)
		}
		r.write(id, &e, nil)
	}
	if t, ok := r.board.Task(r.t.key(id)); ok && t.Terminal() {
		r.wake(id)
	}
}

// withBy says in a detail whose doing it was.
func withBy(detail json.RawMessage, by string) json.RawMessage {
	m := map[string]any{}
	if len(detail) > 0 && json.Unmarshal(detail, &m) != nil {
		return detail
	}
	m["by"] = by
	b, err := json.Marshal(m)
	if err != nil {
		return detail
	}
	return b
}

// often writes a task down, but not more than once a second; what waits goes
// with the next thing that happens, or with tick.
func (r *recorder) often(id string) {
	w := r.rows[id]
	if w == nil {
		return
	}
	if r.t.o.Now().Sub(w.saved) < saveEvery {
		w.changed = true
		return
	}
	r.write(id, nil, nil)
}

// tick writes down what changed and was not written.
func (r *recorder) tick() {
	for id, w := range r.rows {
		if w.changed && r.t.o.Now().Sub(w.saved) >= saveEvery {
			r.write(id, nil, nil)
		}
	}
}

// hear takes one thing that was heard.
func (r *recorder) hear(h mcp.Heard) {
	if h.Client != "" {
		r.agents[h.Client] = true
	}
	k := r.t.key(h.Task)
	now := r.t.o.Now()
	by := ""
	if h.Own {
		by = person
	}
	switch h.Kind {
	case mcp.HeardClient:
		r.info = h.Info
		return
	case mcp.HeardTask:
		r.statement(h, by)
		return
	case mcp.HeardQuestion, mcp.HeardAnswer, mcp.HeardWithdrawn:
		r.question(h)
		return
	case mcp.HeardWants, "":
		return
	}
	if _, known := r.board.Task(k); !known {
		return
	}
	r.rows[h.Task].conv = h.Conv
	switch h.Kind {
	case mcp.HeardProgress:
		r.events(h.Task, r.board.Change(k, now, func(t *taskmodel.Task) { t.Progress = &h.Progress }), by)
	case mcp.HeardOutcome:
		o := h.Outcome
		r.events(h.Task, r.board.Change(k, now, func(t *taskmodel.Task) {
			if t.Outcome.IsZero() && !(t.Status == taskmodel.Cancelled && o.Err != nil) {
				t.Outcome = o
			}
		}), by)
		r.wake(h.Task)
	case mcp.HeardCancel:
		r.events(h.Task, r.board.Change(k, now, func(t *taskmodel.Task) {
			if t.CancelRequested.IsZero() {
				t.CancelRequested = now
			}
		}), owner(h.Client))
	case mcp.HeardRefused:
		r.events(h.Task, r.board.Change(k, now, func(t *taskmodel.Task) {
			t.CancelRequested, t.CancelNote = time.Time{}, "refused: "+h.Words
		}), by)
	case mcp.HeardGone, mcp.HeardDeleted:
		r.events(h.Task, r.board.Change(k, now, func(t *taskmodel.Task) {
			note := "the server does not know it any more: " + h.Words
			if h.Kind == mcp.HeardDeleted {
				note = owner(h.Client) + " had it deleted on the server"
			}
			standing := taskmodel.Gone
			if at, ok := t.ExpiresAt(); ok && at.Before(now) {
				standing = taskmodel.Expired
			}
			if t.Standing != standing {
				t.Standing, t.Note = standing, note
			}
		}), by)
		r.wake(h.Task)
	}
}

// statement merges what the server said of a task.
func (r *recorder) statement(h mcp.Heard, by string) {
	id := h.Task
	k := r.t.key(id)
	w := r.rows[id]
	if w == nil {
		if h.Observation.Source == taskmodel.FromList && !r.t.stdio {
			return // a listing over HTTP shows everybody's tasks
		}
		if len(r.rows) >= maxListed && !r.makeRoom() {
			return
		}
		w = &row{}
		r.rows[id] = w
	}
	w.conv = h.Conv
	events := r.board.Observe(r.t.label, h.Generation, taskmodel.Requestor, h.Observation)
	r.board.Change(k, r.t.o.Now(), func(t *taskmodel.Task) {
		t.Owner, t.Tap = owner(h.Client), r.t.session
		if c := h.Call; c != nil {
			t.Tool, t.AskedTTL, t.Args = c.Tool, c.TTL, slices.Clone(c.Args)
		}
	})
	if h.Call != nil {
		for i := range events {
			if events[i].Kind == taskmodel.EventCreated {
				events[i].Detail = withTool(events[i].Detail, h.Call.Tool, owner(h.Client))
			}
		}
	}
	if len(events) == 0 {
		r.often(id)
	}
	r.events(id, events, by)
	if t, ok := r.board.Task(k); ok && t.Terminal() {
		r.closeQuestions(t)
	}
}

func withTool(detail json.RawMessage, tool, agent string) json.RawMessage {
	m := map[string]any{}
	if len(detail) > 0 && json.Unmarshal(detail, &m) != nil {
		return detail
	}
	m["tool"], m["by"] = tool, agent
	b, err := json.Marshal(m)
	if err != nil {
		return detail
	}
	return b
}

// makeRoom lets go of tasks that have ended; the journal has them.
func (r *recorder) makeRoom() bool {
	for id := range r.rows {
		k := r.t.key(id)
		if t, ok := r.board.Task(k); !ok || t.Terminal() {
			for _, q := range t.Inputs {
				r.board.DropQuestion(q)
			}
			r.board.Remove(k)
			delete(r.rows, id)
		}
	}
	return len(r.rows) < maxListed
}

// owner is whose session it is.
func owner(client string) string {
	if client == "" {
		return "an agent"
	}
	return client
}

// question takes a question, its answer or its end.
func (r *recorder) question(h mcp.Heard) {
	q := h.Question
	old, known := r.board.Question(q.ID)
	agent := owner(h.Client)
	e := taskmodel.Event{Time: r.t.o.Now(), Server: r.t.label, Task: q.Task, Kind: taskmodel.EventQuestion, Question: q.ID}
	switch h.Kind {
	case mcp.HeardQuestion:
		if known && old.State != taskmodel.QuestionWithdrawn {
			return
		}
		q.Round = 1
		if t, ok := r.board.Task(q.Task); ok {
			q.Round = len(t.Inputs) + 1
			if q.Tool == "" {
				q.Tool = t.Tool
			}
		}
		if r.t.answer == nil || !r.t.answer.ours(h.Conv) {
			// It is not for the person here: shown, and not to be answered.
			q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, "asked of "+agent+", which answers it"
		}
		e.Message = q.Message
		e.Detail = detail(map[string]any{"key": q.Key, "kind": q.Kind, "method": q.Method, "message": q.Message, "round": q.Round, "of": agent})
	case mcp.HeardAnswer:
		if !known {
			return
		}
		key := q.Key
		q = old
		q.State, q.SentAt, q.Draft = taskmodel.QuestionAnswered, r.t.o.Now(), nil
		by := agent
		if h.Own {
			by = person
		}
		e.Kind, e.Message = taskmodel.EventAnswer, "answered by "+by
		e.Detail = detail(map[string]any{"key": key, "action": h.Action, "by": by})
	case mcp.HeardWithdrawn:
		if !known || old.State == taskmodel.QuestionAnswered {
			return
		}
		q = old
		q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, h.Words
		e.Message, e.Detail = "withdrawn: "+h.Words, detail(map[string]any{"key": q.Key, "withdrawn": h.Words})
	}
	r.putQuestion(q, &e)
}

func (r *recorder) putQuestion(q taskmodel.Question, e *taskmodel.Event) {
	r.board.PutQuestion(q)
	if q.Task.ID != "" && r.rows[q.Task.ID] != nil {
		r.write(q.Task.ID, e, func(entry *journal.Entry) { entry.Question = &q })
		return
	}
	r.queue(journal.Entry{Key: q.Task, Event: e, Question: &q})
}

// closeQuestions withdraws what an ended task still asks.
func (r *recorder) closeQuestions(t taskmodel.Task) {
	for _, id := range t.Inputs {
		if q, ok := r.board.Question(id); ok && q.State.Open() {
			q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, "the task ended as "+string(t.Status)
			r.putQuestion(q, nil)
		}
	}
}

// wake tells those who wait for a task that something of note has happened.
func (r *recorder) wake(id string) {
	if w := r.rows[id]; w != nil {
		for _, c := range w.waiters {
			close(c)
		}
		w.waiters = nil
	}
}

// over says of every row what has become of it, when the session is over.
func (r *recorder) over(why string) {
	now := r.t.o.Now()
	r.ended, r.why = now, why
	for _, id := range slices.Sorted(maps.Keys(r.rows)) {
		r.lost(id, why)
	}
	for _, q := range r.board.Publish(now).Questions() {
		if q.State.Open() {
			q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, why
			r.queue(journal.Entry{Key: q.Task, Question: &q})
		}
	}
}

// lost marks one row whose session has ended.
func (r *recorder) lost(id, why string) {
	k := r.t.key(id)
	t, ok := r.board.Task(k)
	switch {
	case !ok:
	case t.Terminal():
		if r.rows[id].changed {
			r.write(id, nil, nil)
		}
	case r.t.stdio:
		// The server's tasks ended with it.
		r.events(id, r.board.Change(k, r.t.o.Now(), func(t *taskmodel.Task) {
			t.Standing, t.Note = taskmodel.Gone, "the session of "+t.Owner+" is over ("+why+"); the task's outcome is unknown"
		}), "")
	default:
		r.stale(id, "nobody reads along any more ("+why+")")
	}
	r.wake(id)
}

// left marks the rows of one agent whose session over HTTP has ended. The
// server may go on with them.
func (r *recorder) left(conv, why string) {
	for id, w := range r.rows {
		if w.conv == conv {
			r.stale(id, why+": nobody asks about it any more")
		}
	}
	r.t.obs.Forget(conv)
}

// unreachable marks the rows of a server that does not answer. The next word
// from it makes them live again.
func (r *recorder) unreachable(err error) {
	for id := range r.rows {
		r.stale(id, "the server cannot be reached: "+err.Error())
	}
}

func (r *recorder) stale(id, why string) {
	k := r.t.key(id)
	if t, ok := r.board.Task(k); !ok || t.Terminal() || t.Standing != taskmodel.Live {
		return
	}
	r.events(id, r.board.Change(k, r.t.o.Now(), func(t *taskmodel.Task) { t.Standing, t.Note = taskmodel.Stale, why }), "")
}

// state is what the journal is told of the tap. ended is when it ended, zero
// while it lasts.
func (r *recorder) state(ended time.Time) journal.Tap {
	i := r.info
	tp := journal.Tap{Target: r.t.o.Target, Label: r.t.label, Session: r.t.session, Started: r.started, Ended: ended,
		Agents: slices.Sorted(maps.Keys(r.agents)), Transport: "stdio", Passive: r.t.o.Passive, Answer: r.t.answer != nil, Why: r.why,
		Generation: i.Generation, Version: i.ProtocolVersion, Server: i.ServerName, ServerVer: i.ServerVersion, Can: i.Can}
	if !r.t.stdio {
		tp.Transport = "http"
	}
	if tp.Passive {
		tp.Can = taskmodel.Can{CancelWhy: "the tap is passive (--passive): it sends nothing of its own"}
	}
	tp.Can.Start, tp.Can.StartWhy = false, "this is the session of "+orElse(strings.Join(tp.Agents, ", "), "an agent")+"; a tap starts nothing in it"
	tp.Can.List, tp.Can.ListWhy = false, ""
	return tp
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func detail(v map[string]any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
