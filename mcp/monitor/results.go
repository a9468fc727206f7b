package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	fetchesMost    = 4         // results in flight of one server, those that wait for a question apart
	inlineMost     = 256 << 10 // a result up to this size stays in memory beside the journal
	fetchTries     = 3
	fetchAgainMost = 8                // fetches by ourselves that broke, before it is left to the person
	hungAfter      = 10 * time.Second // an open tasks/result that is not answered so long after the end is given up
	fetchAttempts  = 2 * time.Minute  // how long one fetch of an ended task's result may take
)

// A fetch is one tasks/result that is open, with those who wait for it.
type fetch struct {
	waiters []chan fetched
	counted bool   // one of the four
	hung    bool   // given up: the task has ended and it was not answered
	stop    func() // gives it up; the server is told
	opened  time.Time
	tries   int
}

type fetched struct {
	out taskmodel.Outcome
	err error
}

// wantResult fetches the result of a task that ended before our eyes.
func (s *server) wantResult(t taskmodel.Task) {
	if !s.m.o.FetchResults || s.fetchable(t) != "" || !t.Outcome.IsZero() {
		return
	}
	s.waiting = append(s.waiting, t.ID)
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

// pumpResults opens as many fetches as may be open.
func (s *server) pumpResults() {
	for s.client != nil && s.fetches < fetchesMost && len(s.waiting) > 0 {
		id := s.waiting[0]
		s.waiting = s.waiting[1:]
		if t, ok := s.m.board.Task(s.key(id)); ok && t.Outcome.IsZero() {
			s.openResult(id, true)
		}
	}
}

// openResult opens the one tasks/result of a task if it is not open.
func (s *server) openResult(id string, counted bool) *fetch {
	m := s.m
	f := s.results[id]
	if f == nil {
		f = &fetch{}
		s.results[id] = f
	} else if f.tries > 0 {
		return f
	}
	f.tries++
	if counted {
		f.counted = true
		s.fetches++
	}
	c, conn := s.client, s.conn
	ctx, stop := context.WithCancelCause(s.connCtx)
	f.stop, f.opened = func() { stop(mcp.ErrNotWanted) }, m.now()
	m.spawn(func() {
		defer stop(nil)
		if counted {
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, fetchAttempts)
			defer end()
		}
		out, err := c.Tasks().Result(ctx, id)
		if out.FetchedAt.IsZero() {
			out.FetchedAt = m.now()
		}
		m.post(func() { s.resulted(id, f, conn, out, err) })
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
	case ok && f.hung && err != nil && s.client != nil && s.fetchable(t) == "":
		// It was opened for a question, and the end of the task did not end
		// it. A request of its own gets the result.
		again := s.openResult(id, false)
		again.waiters = append(again.waiters, f.waiters...)
		return
	case !ok:
		reply(out, err)
		return
	case err == nil && !t.Terminal() && out.Err != nil:
		// An error while the task runs, or is being cancelled: what the task
		// came to is for its status to say (field fault S3).
		reply(out, nil)
		s.pollNow(k)
		s.askEnded(id)
		return
	case err == nil && !t.Terminal():
		// The result is there, so the task has ended; the status follows.
		s.putOutcome(k, out)
		reply(out, nil)
		if w := s.watches[id]; w != nil {
			w.asking = false
		}
		s.pollNow(k)
		return
	case err == nil && t.Status == taskmodel.Cancelled && out.Err != nil:
		reply(out, nil)
		return
	case err == nil && t.Status == taskmodel.Completed && out.Err != nil:
		// A task that has completed has a result: this is an error of the
		// request, and is not kept as what the task came to.
		reply(out, nil)
		if f.counted {
			s.fetchLater(id, fmt.Sprintf("the server answered with error %d: %s", out.Err.Code, out.Err.Message))
		}
		return
	case err == nil:
		delete(s.refetch, id)
		s.putOutcome(k, out)
		s.resultNote(k, "")
		reply(out, nil)
		return
	}
	reply(out, err)
	if !t.Terminal() {
		s.askEnded(id)
		return
	}
	if f.counted && !errors.Is(err, mcp.ErrNotFound) && !errors.Is(err, mcp.ErrUnsupported) && !isRPC(err) {
		if conn != s.conn || errors.Is(err, mcp.ErrClosed) {
			s.fetchLater(id, "") // the server's row says what happened
		} else {
			s.fetchLater(id, err.Error())
		}
		return
	}
	if f.counted && errors.Is(err, mcp.ErrNotFound) {
		s.resultNote(k, "the server does not know the task any more")
	}
}

const noResult = "the result could not be fetched: "

// resultNote says at an ended task why its result is not here; "" that it is.
func (s *server) resultNote(k taskmodel.Key, why string) {
	t, ok := s.m.board.Task(k)
	if !ok || !t.Terminal() || why == "" && !strings.HasPrefix(t.Note, noResult) {
		return
	}
	if why != "" {
		why = noResult + why
	}
	s.m.board.Change(k, s.m.now(), func(t *taskmodel.Task) { t.Note = why })
	s.m.touch()
}

// fetchLater tries a fetch again that failed, a bounded number of times. The
// task's row says why, "" leaves that to the server's.
func (s *server) fetchLater(id, why string) {
	m := s.m
	if s.refetch[id]++; s.refetch[id] > fetchAgainMost {
		delete(s.refetch, id)
		s.resultNote(s.key(id), why)
		return
	}
	if why != "" {
		s.resultNote(s.key(id), why+"; it is tried again")
	}
	m.alarms.at(m.now().Add(m.backoff(s.refetch[id], retryFirst, retryMost)), func() {
		if t, ok := m.board.Task(s.key(id)); ok && t.Terminal() {
			s.wantResult(t)
		}
	})
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
			f := s.openResult(k.ID, false)
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
			return taskmodel.Outcome{}, fmt.Errorf("%s: fetching the result: %w", k, ctx.Err())
		case <-m.done:
			return taskmodel.Outcome{}, ErrStopped
		}
	}
	return taskmodel.Outcome{}, last
}
