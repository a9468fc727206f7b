package monitor

import (
	"context"
	"errors"
	"strings"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// This file sees to it that no result of an ended task is given up silently. A
// fetch by ourselves that failed, in whatever way, leaves a debt: it is tried
// again after a while that grows, and when that is given up the task's row says
// why there is no result, and that asking for it tries again.

const (
	owedTries  = 20              // fetches that fail, before it is left to the person: about an hour
	owedMisses = 3               // of them, those in which the server does not know the task
	owedMost   = 5 * time.Minute // between two of them
	owedFresh  = 24 * time.Hour  // how old the end of a task may be whose result an earlier run did not get
)

// A debt is a result that is still to be fetched.
type debt struct {
	tries  int // failed in a row
	misses int // of them "not found"
	again  *alarm
}

// oweFor takes a fetch of ours that failed.
func (s *server) oweFor(id string, f *fetch, conn int, err error) {
	switch {
	case f.early && f.hung:
		// The end of the task did not end it. A request of its own gets the
		// result.
		if t, ok := s.m.board.Task(s.key(id)); ok {
			s.wantResult(t)
		}
	case errors.Is(err, mcp.ErrUnsupported):
		s.owe(id, err.Error(), 0)
	case errors.Is(err, mcp.ErrNotFound):
		// A server that starts again may not have read its own memory yet
		// (field faults S8, S9).
		d := s.owing[id]
		d.misses++
		s.owing[id] = d
		most := owedTries
		if d.misses >= owedMisses {
			most = 0
		}
		s.owe(id, "the server does not know the task any more", most)
	case f.hung:
		s.owe(id, "the server did not answer in time", owedTries)
	case conn != s.conn, errors.Is(err, mcp.ErrClosed), errors.Is(err, context.Canceled):
		// The server's row says what happened, as long as it is tried again.
		if s.owing[id].tries < owedTries {
			s.owe(id, "", owedTries)
		} else {
			s.owe(id, "the connection ended each time: "+err.Error(), owedTries)
		}
	default:
		s.owe(id, err.Error(), owedTries)
	}
}

// owe notes that a result could not be fetched, and tries again unless it has
// failed more than so many times. The task's row says why, "" leaves that to the
// server's.
func (s *server) owe(id, why string, most int) {
	m := s.m
	k := s.key(id)
	d := s.owing[id]
	m.alarms.drop(d.again)
	if d.tries++; d.tries > most {
		delete(s.owing, id)
		s.resultNote(k, why+"; asking for the result tries again")
		return
	}
	if why != "" {
		s.resultNote(k, why+"; it is tried again")
	}
	d.again = m.alarms.at(m.now().Add(m.backoff(d.tries, retryFirst, owedMost)), func() {
		t, ok := m.board.Task(k)
		if !ok || !t.Terminal() || !t.Outcome.IsZero() || s.fetchable(t) != "" {
			delete(s.owing, id) // it is here, or its standing says why not
			return
		}
		s.wantResult(t)
	})
	s.owing[id] = d
}

// paid: the result is here, or is not wanted any more.
func (s *server) paid(id string) {
	if d, ok := s.owing[id]; ok {
		s.m.alarms.drop(d.again)
		delete(s.owing, id)
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
	s.m.save(k)
	s.m.touch()
}

// inheritDebts takes up the results that an earlier process, or the holder
// before us, did not get: of those tasks of ours that ended a short while ago on
// a server that can still have them.
func (s *server) inheritDebts(ids []string) {
	if !s.m.o.FetchResults || s.tap != nil || s.spec.Dialer == nil || s.spec.Dialer.Kind() == "stdio" {
		return
	}
	now := s.m.now()
	for _, id := range ids {
		t, ok := s.m.board.Task(s.key(id))
		if !ok || !t.Ours || !t.Terminal() || !t.Outcome.IsZero() || !s.keeps(t.Tool) || s.fetchable(t) != "" || now.Sub(t.EndedAt) > owedFresh {
			continue
		}
		if at, bounded := t.ExpiresAt(); bounded && !at.After(now) {
			continue
		}
		s.wantResult(t)
	}
}
