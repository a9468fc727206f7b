package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	cancelConfirm = 30 * time.Second // without an end so long after: "not confirmed"
	cancelTimeout = time.Minute
	cancelLook    = 10 * time.Second // for the look before it
	notConfirmed  = "not confirmed: the server has not ended the task"
)

// Cancel asks the server to cancel a task and returns when it has taken the
// request. The status stays the server's word. The task's last state is fetched
// and kept before, since a cancelled task may be deleted at once. Asked twice,
// it is sent once.
func (m *Monitor) Cancel(ctx context.Context, k taskmodel.Key) error {
	if m.o.Readonly {
		return ErrReadonly
	}
	s, err := m.server(k.Server)
	if err != nil {
		return err
	}
	if k.Role == taskmodel.Receiver {
		return fmt.Errorf("%s: the server asked us to run this task; answer its question with cancel instead", k)
	}
	if _, err := m.task(ctx, k); err != nil {
		return err
	}
	if held, herr := s.heldBy(ctx); herr != nil {
		return herr
	} else if held {
		if _, err := s.viaHolder(ctx, "cancel", k, nil); !errors.Is(err, errNotBegun) {
			return err
		}
		return m.Cancel(ctx, k)
	}
	if _, _, err := s.ready(ctx); err != nil {
		return err
	}
	sent := false
	result := make(chan error, 1)
	derr := m.do(ctx, func() {
		if err = ctx.Err(); err != nil {
			return // nobody waits any more, and nothing is on its way
		}
		t, ok := m.board.Task(k)
		now := m.now()
		switch {
		case !ok:
			err = noTask(k)
		case t.Terminal():
			err = sentence(mcp.ErrTerminal, nil, "%s: too late to cancel: the task has ended as %s", k, t.Status)
		case t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired:
			err = sentence(ErrGone, nil, "%s: the task is gone: %s", k, t.Note)
		case s.client == nil:
			err = sentence(ErrUnreachable, nil, "%s: not connected; nothing was sent", s.spec.Name)
		case !s.client.Info().Can.Cancel:
			why := s.client.Info().Can.CancelWhy
			if why == "" {
				why = "the server offers no cancel"
			}
			err = sentence(mcp.ErrUnsupported, nil, "%s: cannot be cancelled: %s", k, why)
		case !t.CancelRequested.IsZero() && t.CancelNote == "",
			t.CancelNote == taskmodel.CancelSending && now.Sub(t.CancelRequested) < 2*cancelTimeout:
			sent = true // once is enough
		default:
			before := t.CancelRequested // when it was asked for before
			m.board.Change(k, now, func(t *taskmodel.Task) { t.CancelRequested, t.CancelNote = time.Time{}, "" })
			// Written down as on its way: what is not heard of after it stands as
			// sent with an unknown outcome.
			for _, e := range m.board.Change(k, now, func(t *taskmodel.Task) { t.CancelRequested, t.CancelNote = now, taskmodel.CancelSending }) {
				m.history(s, e, nil)
			}
			m.touch()
			m.spawn(func() { result <- s.sendCancel(k, before) })
		}
	})
	switch {
	case derr != nil:
		return derr
	case err != nil || sent:
		return err
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return sentence(ErrUnconfirmed, ctx.Err(), "%s: the cancellation is on its way; what becomes of it shows at the task", k)
	case <-m.done:
		return ErrStopped
	}
}

// sendCancel keeps the task's last state, then asks for its end. before is when
// that was asked for before, if it was.
func (s *server) sendCancel(k taskmodel.Key, before time.Time) error {
	m := s.m
	ctx := m.ctx
	rctx, stop := context.WithTimeout(ctx, cancelTimeout)
	c, conn, err := s.ready(rctx)
	stop()
	if err != nil {
		_ = m.do(ctx, func() { s.cancelRefused(k, "not sent: "+err.Error()) })
		return err
	}
	asked := m.now()
	lctx, stop := context.WithTimeout(ctx, cancelLook)
	snap, err := c.Tasks().Get(lctx, k.ID)
	stop()
	heard := m.now()
	ended := taskmodel.Status("")
	gone := false
	if derr := m.do(ctx, func() {
		s.heard(conn, err)
		switch {
		case err == nil:
			s.observe(taskmodel.Requestor, taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromGet, AskedAt: asked, HeardAt: heard})
		case errors.Is(err, mcp.ErrNotFound):
			gone = true
		}
		if t, ok := m.board.Task(k); ok && t.Terminal() {
			ended = t.Status
		}
	}); derr != nil {
		return derr
	}
	switch {
	case ended != "":
		_ = m.do(ctx, func() { s.cancelNote(k, "too late to cancel: the task ended as "+string(ended)) })
		return sentence(mcp.ErrTerminal, nil, "%s: too late to cancel: the task has ended as %s", k, ended)
	case gone:
		_ = m.do(ctx, func() {
			s.cancelRefused(k, "not cancelled: the server does not know the task")
			if w := s.watches[k.ID]; w != nil && !w.inflight {
				s.notFound(w, err, heard)
			}
		})
		return sentence(mcp.ErrNotFound, err, "%s: the server does not know this task any more; nothing was cancelled", k)
	}
	// A look that failed for another reason does not stop a person's cancel.
	if j := m.o.Journal; j != nil {
		wctx, stop := context.WithTimeout(ctx, 2*time.Second)
		if t, terr := m.task(wctx, k); terr == nil {
			t = s.censored(t)
			if werr := j.Write(wctx, journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Key: k, Task: &t}); werr != nil {
				m.log.Warn("a cancellation could not be written down before it was sent", "server", s.spec.Name, "err", werr)
			}
		}
		stop()
		if s.shared(c) {
			cctx, stop := context.WithTimeout(ctx, 2*time.Second)
			mine, cerr := j.ClaimAct(cctx, s.spec.Target, cancelAct(k.ID, before, asked))
			stop()
			if cerr == nil && !mine {
				_ = m.do(ctx, func() { s.cancelSent(k) })
				return nil // another process has just asked for it
			}
		}
	}
	asked = m.now()
	sctx, stop := context.WithTimeout(ctx, cancelTimeout)
	after, err := c.Tasks().Cancel(sctx, k.ID)
	stop()
	heard = m.now()
	var out error
	var unsent *transport.NotSentError
	derr := m.do(ctx, func() {
		s.heard(conn, err)
		switch {
		case err == nil:
			s.cancelSent(k)
			if after != nil && after.Status != "" {
				s.observe(taskmodel.Requestor, taskmodel.Observation{Snapshot: *after, Source: taskmodel.FromCancel, AskedAt: asked, HeardAt: heard})
			}
			s.pollSoon(k)
			s.confirmCancel(k)
		case errors.Is(err, mcp.ErrUnsupported):
			s.cancelRefused(k, "cannot be cancelled: "+err.Error())
			out = sentence(mcp.ErrUnsupported, err, "%s: cannot be cancelled: %v", k, err)
		case errors.Is(err, mcp.ErrTerminal), errors.Is(err, mcp.ErrNotFound):
			out = err // looked at below
		case isRPC(err):
			s.cancelRefused(k, "refused: "+err.Error())
			out = err
		case errors.Is(err, mcp.ErrAuth), errors.Is(err, mcp.ErrSessionLost):
			s.cancelRefused(k, "not sent: "+err.Error())
			out = err
		case errors.As(err, &unsent):
			s.cancelRefused(k, "not sent: "+unsent.Why())
			out = sentence(ErrUnreachable, err, "%s: the cancellation was not sent: %s; ask for it again", k, unsent.Why())
		default:
			s.cancelNote(k, "not confirmed: "+err.Error())
			out = sentence(ErrUnconfirmed, err, "%s: the cancellation was sent, and it is not known whether the server took it: %v", k, err)
		}
	})
	if derr != nil {
		return derr
	}
	if errors.Is(out, mcp.ErrTerminal) || errors.Is(out, mcp.ErrNotFound) {
		return s.tooLate(ctx, k, err)
	}
	return out
}

// tooLate looks at what a task that could not be cancelled came to (field
// fault S10): one tasks/get.
func (s *server) tooLate(ctx context.Context, k taskmodel.Key, cause error) error {
	m := s.m
	asked := m.now()
	var snap taskmodel.Snapshot
	err := s.read(ctx, func(ctx context.Context, c client) (err error) {
		snap, err = c.Tasks().Get(ctx, k.ID)
		return err
	})
	heard := m.now()
	var out error
	derr := m.do(ctx, func() {
		if err == nil {
			s.observe(taskmodel.Requestor, taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromGet, AskedAt: asked, HeardAt: heard})
		} else if w := s.watches[k.ID]; w != nil && errors.Is(err, mcp.ErrNotFound) && !w.inflight {
			s.notFound(w, err, heard)
		}
		t, _ := m.board.Task(k)
		if t.Terminal() {
			s.cancelNote(k, "too late to cancel: the task ended as "+string(t.Status))
			out = sentence(mcp.ErrTerminal, cause, "%s: too late to cancel: the task has ended as %s", k, t.Status)
			return
		}
		s.cancelRefused(k, "refused: "+cause.Error())
		out = cause
	})
	if derr != nil {
		return derr
	}
	return out
}

// cancelAct names a cancellation among processes: what both begin knowing the
// same goes once, and what a person asks for anew goes again.
func cancelAct(id string, before, now time.Time) string {
	if before.IsZero() {
		return fmt.Sprintf("cancel:%s:%d", id, now.Unix()/60)
	}
	return fmt.Sprintf("cancel:%s:after:%d", id, before.UnixMicro())
}

// cancelSent: the server has taken the request.
func (s *server) cancelSent(k taskmodel.Key) {
	if t, ok := s.m.board.Task(k); !ok || t.CancelNote != taskmodel.CancelSending {
		return
	}
	s.m.board.Change(k, s.m.now(), func(t *taskmodel.Task) { t.CancelNote = "" })
	s.m.touch()
	s.m.save(k)
	s.m.saveAll() // until then it stands as not confirmed
}

// cancelNote adds a word of ours to a cancellation that was asked for.
func (s *server) cancelNote(k taskmodel.Key, words string) {
	for _, e := range s.m.board.Change(k, s.m.now(), func(t *taskmodel.Task) { t.CancelNote = words }) {
		s.m.history(s, e, nil)
	}
	s.m.touch()
}

// cancelRefused: nothing was asked for, or the server said no.
func (s *server) cancelRefused(k taskmodel.Key, words string) {
	for _, e := range s.m.board.Change(k, s.m.now(), func(t *taskmodel.Task) { t.CancelRequested, t.CancelNote = time.Time{}, words }) {
		s.m.history(s, e, nil)
	}
	s.m.touch()
}

// confirmCancel says after a while that the server has not ended the task.
func (s *server) confirmCancel(k taskmodel.Key) {
	m := s.m
	m.alarms.at(m.now().Add(cancelConfirm), func() {
		t, ok := m.board.Task(k)
		if ok && !t.Terminal() && !t.CancelRequested.IsZero() && t.CancelNote == "" {
			s.cancelNote(k, notConfirmed)
		}
	})
}
