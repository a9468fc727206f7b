package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	fetchesMost   = 4         // results in flight of one server, those that wait for a question apart
	inlineMost    = 256 << 10 // a result up to this size stays in memory beside the journal
	fetchTries    = 3
	hungAfter     = 10 * time.Second // an open tasks/result that is not answered so long after the end is given up
	fetchAttempts = 2 * time.Minute  // how long the first fetches of an ended task's result may take; each further one twice as long
	fetchEven     = 2                // further fetches that get no more time: a fault may be over by then
	fetchRounds   = 4                // doublings of it
)

// A fetch is one tasks/result that is open, with those who wait for it.
type fetch struct {
	waiters []chan fetched
	counted bool   // one of the four
	wanted  bool   // by ourselves: where it fails, the result is owed (owed.go)
	early   bool   // opened before the task's end, for its question
	hung    bool   // given up: the task has ended and it was not answered
	round   int    // how many for the same waiters were given up before it
	stop    func() // gives it up; the server is told
	opened  time.Time
}

type fetched struct {
	out taskmodel.Outcome
	err error
}

// wantResult fetches the result of a task that ended before our eyes.
func (s *server) wantResult(t taskmodel.Task) {
	if !s.m.o.FetchResults || s.fetchable(t) != "" || !t.Outcome.IsZero() || s.queued[t.ID] {
		return
	}
	s.waiting = append(s.waiting, t.ID)
	s.queued[t.ID] = true
	s.pumpResults()
}

// fetchable says why an ended task has no result to fetch; "" when it may have.
func (s *server) fetchable(t taskmodel.Task) string {
	switch {
	case t.Status == taskmodel.Cancelled:
		return "the task was cancelled and has no result"
	case t.Generation == taskmodel.GenDraft && t.Status != taskmodel.Completed:
		return fmt.Sprintf("the task ended as %s and has no result; its reason is the status message", t.Status)
	case t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired:
		return "the server does not know this task any more: " + t.Note
	}
	return ""
}

// pumpResults opens as many fetches as may be open. One that is open already,
// for the task's question or for a person, becomes ours too.
func (s *server) pumpResults() {
	for s.client != nil && s.fetches < fetchesMost && len(s.waiting) > 0 {
		id := s.waiting[0]
		s.waiting = s.waiting[1:]
		delete(s.queued, id)
		if t, ok := s.m.board.Task(s.key(id)); ok && t.Outcome.IsZero() && s.fetchable(t) == "" {
			s.openResult(id, true, 0).wanted = true
		}
	}
}

// openResult opens the one tasks/result of a task if it is not open. That of a
// task that has ended is given up some time, so that a server that never
// answers is asked again; before the end nothing of ours cuts it short.
func (s *server) openResult(id string, counted bool, round int) *fetch {
	m := s.m
	if f := s.results[id]; f != nil {
		return f
	}
	f := &fetch{counted: counted, round: round, opened: m.now()}
	s.results[id] = f
	if counted {
		s.fetches++
	}
	limit := time.Duration(0)
	if t, ok := m.board.Task(s.key(id)); !ok || !t.Terminal() {
		f.early = true
	} else {
		limit = fetchAttempts << min(max(0, max(round, s.owing[id].tries)-fetchEven), fetchRounds)
	}
	c, conn := s.client, s.conn
	ctx, stop := context.WithCancelCause(s.connCtx)
	f.stop = func() { stop(mcp.ErrNotWanted) }
	m.spawn(func() {
		defer stop(nil)
		if limit > 0 {
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, limit)
			defer end()
		}
		out, err := c.Tasks().Result(ctx, id)
		hung := err != nil && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded)
		if out.FetchedAt.IsZero() {
			out.FetchedAt = m.now()
		}
		m.post(func() {
			f.hung = f.hung || hung
			s.resulted(id, f, conn, out, err)
		})
	})
	return f
}

// resulted takes what a tasks/result came to.
func (s *server) resulted(id string, f *fetch, conn int, out taskmodel.Outcome, err error) {
	m := s.m
	if f.counted {
		s.fetches--
	}
	if s.results[id] == f {
		delete(s.results, id)
	}
	s.heard(conn, err)
	k := s.key(id)
	t, ok := m.board.Task(k)
	reply := func(out taskmodel.Outcome, err error) {
		for _, w := range f.waiters {
			w <- fetched{out, err}
		}
	}
	defer s.pumpResults()
	switch {
	case ok && f.hung && err != nil && s.client != nil && s.fetchable(t) == "" && len(f.waiters) > 0:
		// The end of the task did not end it, or it took too long. Those who
		// wait go on waiting, for a request of its own.
		again := s.openResult(id, false, f.round+1)
		again.wanted = again.wanted || f.wanted
		again.waiters = append(again.waiters, f.waiters...)
	case !ok:
		reply(out, err)
	case err == nil && !t.Terminal() && out.Err != nil:
		// An error while the task runs, or is being cancelled: what the task
		// came to is for its status to say (field fault S3).
		reply(out, nil)
		s.pollNow(k)
		s.askEnded(id)
	case err == nil && !t.Terminal():
		// The result is there, so the task has ended; the status follows.
		s.putOutcome(k, out)
		reply(out, nil)
		if w := s.watches[id]; w != nil {
			w.asking = false
		}
		s.pollNow(k)
	case err == nil && t.Status == taskmodel.Cancelled && out.Err != nil:
		reply(out, nil)
	case err == nil && t.Status == taskmodel.Completed && out.Err != nil:
		// A task that has completed has a result: this is an error of the
		// request, and is not kept as what the task came to.
		reply(out, nil)
		if f.wanted {
			s.owe(id, fmt.Sprintf("the server answered with error %d: %s", out.Err.Code, out.Err.Message), owedTries)
		}
	case err == nil:
		s.paid(id)
		s.putOutcome(k, out)
		s.resultNote(k, "")
		reply(out, nil)
	case !t.Terminal():
		reply(out, err)
		s.askEnded(id)
	default:
		reply(out, err)
		if f.wanted {
			s.oweFor(id, f, conn, err)
		}
	}
}

// putOutcome puts a fetched result on the board and keeps it.
func (s *server) putOutcome(k taskmodel.Key, out taskmodel.Outcome) {
	m := s.m
	if t, ok := m.board.Task(k); !ok || !t.Outcome.IsZero() && t.Outcome.TooLarge == 0 {
		return // what was inlined, or fetched before, stays
	}
	for _, e := range m.board.Change(k, m.now(), func(t *taskmodel.Task) { t.Outcome = out }) {
		t, _ := m.board.Task(k)
		if e.Kind == taskmodel.EventResult {
			s.keepOutcome(t, e)
		} else {
			m.emit(e)
		}
	}
	m.touch()
	if t, ok := m.board.Task(k); ok {
		s.outcomePages(t)
	}
}

// keepOutcome writes a result into the journal, within the limits, and takes
// large ones off the board: Fetch reads them from the journal.
func (s *server) keepOutcome(t taskmodel.Task, e taskmodel.Event) {
	m := s.m
	size := int64(len(t.Outcome.Result))
	if t.Outcome.Err != nil {
		size += int64(len(t.Outcome.Err.Data)) + int64(len(t.Outcome.Err.Message))
	}
	kept := false
	m.history(s, e, func(entry *journal.Entry) {
		if !s.keeps(t.Tool) || size > m.o.MaxResultBytes {
			return
		}
		o := t.Outcome
		entry.Outcome = &o
		kept = true
	})
	short := taskmodel.Outcome{}
	switch {
	case size > m.o.MaxResultBytes:
		short = taskmodel.Outcome{TooLarge: size, FetchedAt: t.Outcome.FetchedAt,
			Note: fmt.Sprintf("too large to keep (%d bytes); `mcptasks result %s --save DIR` fetches it", size, t.Key)}
	case kept && size > inlineMost:
		short = taskmodel.Outcome{KeptHere: true, FetchedAt: t.Outcome.FetchedAt, Note: t.Outcome.Note}
	default:
		return
	}
	m.board.Change(t.Key, m.now(), func(t *taskmodel.Task) { t.Outcome = short })
}

// Fetch gives what the original request would have returned: what is kept here,
// else the server's. For a task that runs it waits for the end, as long as ctx
// lasts.
func (m *Monitor) Fetch(ctx context.Context, k taskmodel.Key) (taskmodel.Outcome, error) {
	s, err := m.server(k.Server)
	if err != nil {
		return taskmodel.Outcome{}, err
	}
	for {
		t, err := m.task(ctx, k)
		if err != nil {
			return taskmodel.Outcome{}, err
		}
		if o := t.Outcome; o.Result != nil || o.Err != nil {
			return o, nil
		}
		if o, ok := s.kept(ctx, k); ok {
			return o, nil
		}
		if k.Role == taskmodel.Receiver {
			return taskmodel.Outcome{}, fmt.Errorf("%s: the answer was given by you; it is not kept", k)
		}
		if held, herr := s.heldBy(ctx); herr != nil {
			return taskmodel.Outcome{}, herr
		} else if held {
			o, err := s.fetchElsewhere(ctx, k)
			if errors.Is(err, errNotBegun) {
				continue
			}
			return o, err
		}
		if t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
			return taskmodel.Outcome{}, sentence(ErrGone, mcp.ErrNotFound, "%s: no result was kept, and the task is gone: %s", k, t.Note)
		}
		if t.Terminal() {
			if why := s.fetchable(t); why != "" {
				return taskmodel.Outcome{}, fmt.Errorf("%s: %s", k, why)
			}
			return s.fetch(ctx, k)
		}
		// The end is heard by polls and pushes. Of a task of ours the result is
		// waited for as well: a question may come that way.
		var end chan struct{}
		if err := m.do(ctx, func() {
			if t, ok := m.board.Task(k); ok && !t.Terminal() && t.Standing != taskmodel.Gone && t.Standing != taskmodel.Expired {
				end = make(chan struct{})
				s.ends[k.ID] = append(s.ends[k.ID], end)
			}
		}); err != nil {
			return taskmodel.Outcome{}, err
		}
		if end == nil {
			continue
		}
		if _, _, err := s.ready(ctx); err != nil {
			return taskmodel.Outcome{}, err
		}
		select {
		case <-end:
		case <-ctx.Done():
			return taskmodel.Outcome{}, fmt.Errorf("%s: waiting for the task to end: %w", k, ctx.Err())
		case <-m.done:
			return taskmodel.Outcome{}, ErrStopped
		}
	}
}

// kept reads a result from the journal.
func (s *server) kept(ctx context.Context, k taskmodel.Key) (taskmodel.Outcome, bool) {
	if s.m.o.Journal == nil {
		return taskmodel.Outcome{}, false
	}
	o, ok, err := s.m.o.Journal.Outcome(ctx, s.spec.Target, k.ID, k.Role)
	if err != nil {
		s.m.log.Warn("reading a kept result", "task", k.String(), "err", err)
		return o, false
	}
	if !ok || o.Result == nil && o.Err == nil {
		return o, false
	}
	o.KeptHere = true
	return o, true
}

// fetch asks the server for the result of an ended task, or joins the request
// that is open for it.
func (s *server) fetch(ctx context.Context, k taskmodel.Key) (taskmodel.Outcome, error) {
	m := s.m
	var last error
	for try := 0; try < fetchTries; try++ {
		if _, _, err := s.ready(ctx); err != nil {
			return taskmodel.Outcome{}, err
		}
		answer := make(chan fetched, 1)
		off := false
		if err := m.do(ctx, func() {
			if s.client == nil {
				off = true
				return
			}
			f := s.openResult(k.ID, false, 0)
			f.waiters = append(f.waiters, answer)
		}); err != nil {
			return taskmodel.Outcome{}, err
		}
		if off {
			continue
		}
		select {
		case r := <-answer:
			if r.err == nil {
				return r.out, nil
			}
			last = r.err
			if !errors.Is(r.err, mcp.ErrSessionLost) && !errors.Is(r.err, mcp.ErrClosed) && !errors.Is(r.err, context.Canceled) {
				return taskmodel.Outcome{}, r.err
			}
		case <-ctx.Done():
			m.post(func() { s.leave(k.ID, answer) })
			return taskmodel.Outcome{}, fmt.Errorf("%s: fetching the result: %w", k, ctx.Err())
		case <-m.done:
			return taskmodel.Outcome{}, ErrStopped
		}
	}
	return taskmodel.Outcome{}, last
}

// leave: one who waited for a result does so no more. A request that nobody
// wants any more is taken back.
func (s *server) leave(id string, answer chan fetched) {
	f := s.results[id]
	if f == nil {
		return
	}
	f.waiters = slices.DeleteFunc(f.waiters, func(w chan fetched) bool { return w == answer })
	if len(f.waiters) == 0 && !f.wanted && !f.early {
		f.stop()
	}
}
