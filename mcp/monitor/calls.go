package monitor

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// A callKeeper is a journal that keeps which calls are on their way.
type callKeeper interface {
	BeginCall(ctx context.Context, target, label, id string, detail json.RawMessage) error
	EndCall(ctx context.Context, target, id string) error
	LostCalls(ctx context.Context, target string) ([]journal.LostCall, error)
}

// noteCall writes down that a call goes out, with the arguments as they may be
// kept. What it returns is called when it is known what came of it, and written
// down; a monitor that ends before leaves it to the next to say that nobody
// knows.
func (s *server) noteCall(tool string, args json.RawMessage) (known func()) {
	m := s.m
	j, ok := m.o.Journal.(callKeeper)
	if !ok {
		return func() {}
	}
	d := map[string]any{"tool": tool}
	if s.keeps(tool) && json.Valid(args) {
		d["arguments"] = args
	}
	id := uuid.NewString()
	bounded := func(f func(ctx context.Context) error) {
		ctx, stop := context.WithTimeout(m.ctx, time.Second)
		defer stop()
		if err := f(ctx); err != nil {
			m.log.Warn("a call could not be written down", "server", s.spec.Name, "err", err)
		}
	}
	bounded(func(ctx context.Context) error { return j.BeginCall(ctx, s.spec.Target, s.spec.Name, id, detail(d)) })
	return func() {
		if m.ctx.Err() == nil {
			bounded(func(ctx context.Context) error { return j.EndCall(ctx, s.spec.Target, id) })
		}
	}
}

// afterCalls goes on with next, on the loop, when what became of the calls of
// earlier runs is told.
func (s *server) afterCalls(next func()) {
	if _, ok := s.m.o.Journal.(callKeeper); !ok {
		next()
		return
	}
	s.m.spawn(func() {
		s.lostCalls()
		s.m.post(next)
	})
}

// lostCalls says of calls of earlier runs that nobody knows what came of them.
// It is not called on the loop.
func (s *server) lostCalls() {
	m := s.m
	j, ok := m.o.Journal.(callKeeper)
	if !ok {
		return
	}
	lost, err := j.LostCalls(m.ctx, s.spec.Target)
	if err != nil {
		m.log.Warn("reading the journal", "server", s.spec.Name, "err", err)
	}
	if len(lost) == 0 {
		return
	}
	m.post(func() {
		for _, c := range lost {
			m.emit(taskmodel.Event{Time: m.now(), Server: s.spec.Name, Kind: taskmodel.EventError, Message: c.Words(), Detail: c.Detail})
		}
		s.change(func(r *taskmodel.Server) { r.Warning = join(r.Warning, lost[len(lost)-1].Words()) })
	})
}
