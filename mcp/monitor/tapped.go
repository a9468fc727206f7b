package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// This file shows the tasks of sessions that are not ours: taps stand between
// agents and their servers (package tap) and write down what they hear. Each
// tapped server is a row that nobody configured, found in the journal. It is
// held by its taps, as a server is held by another process, and what is asked
// for here they carry out.

const (
	tapsEvery  = time.Second
	tapsKept   = 24 * time.Hour         // how long an ended session's tasks are shown to those who start later
	tappedTick = 300 * time.Millisecond // how often a tapped server's rows are read
)

// A tapFinder is a journal that knows of taps.
type tapFinder interface {
	Taps(ctx context.Context, since time.Time) ([]journal.Tap, error)
}

// tapped is what a tapped server has in place of a connection: its taps, by
// their sessions.
type tapped struct {
	taps  map[string]journal.Tap
	ready bool // the rows were read
}

// finder is the journal to look for taps in; nil when none are to be shown.
func (m *Monitor) finder() tapFinder {
	if m.o.Taps == nil {
		return nil
	}
	f, _ := m.o.Journal.(tapFinder)
	return f
}

// firstTaps is called by New, so that who waits for the first states waits for
// theirs too.
func (m *Monitor) firstTaps() {
	f := m.finder()
	if f == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), tapsEvery)
	defer stop()
	list, err := f.Taps(ctx, m.now().Add(-tapsKept))
	if err != nil {
		m.log.Warn("looking for taps", "err", err)
		return
	}
	m.foundTaps(list)
}

// lookForTaps looks for taps, beside the loop, and again after a while.
func (m *Monitor) lookForTaps() {
	f := m.finder()
	if f == nil {
		return
	}
	since := m.now().Add(-tapsKept)
	m.spawn(func() {
		ctx, stop := context.WithTimeout(m.ctx, 5*time.Second)
		defer stop()
		list, err := f.Taps(ctx, since)
		m.post(func() {
			m.alarms.set(m.tapper, m.now().Add(tapsEvery))
			if err != nil {
				m.log.Debug("looking for taps", "err", err)
				return
			}
			m.foundTaps(list)
		})
	})
}

// foundTaps makes the rows of the servers that are tapped.
func (m *Monitor) foundTaps(list []journal.Tap) {
	byTarget := map[string][]journal.Tap{}
	for _, t := range list {
		byTarget[t.Target] = append(byTarget[t.Target], t)
	}
	for _, t := range list {
		s, known := m.tapped[t.Target]
		if !known {
			if !t.Live && !t.Tasks || !m.o.Taps(t.Label) || m.asksItself(t.Target) && !t.Live {
				continue // nothing to show, or a server of ours that is asked itself
			}
			s = newServer(m, ServerSpec{Name: m.freeName(t.Label), Target: t.Target, Source: taskmodel.SourceTap})
			s.tap = &tapped{taps: map[string]journal.Tap{}}
			s.lease.holder = "the tap"
			s.row.State, s.row.Error, s.row.Transport = taskmodel.ServerConnecting, "", t.Transport
			m.tapped[t.Target] = s
			m.servers = append(m.servers, s)
			m.names.Lock()
			m.byName[s.spec.Name] = s
			m.names.Unlock()
			m.board.PutServer(s.row)
			if m.ctx != nil { // else Run begins it with the others
				s.begin()
			}
		}
		old, had := s.tap.taps[t.Session]
		s.tap.taps[t.Session] = t
		if had && old.Live && !t.Live {
			s.tapOver(t)
		}
	}
	for target, s := range m.tapped {
		if taps := byTarget[target]; len(taps) > 0 {
			s.tapRow(taps)
		}
	}
}

// asksItself reports whether a configured HTTP server has the target.
func (m *Monitor) asksItself(target string) bool {
	for _, s := range m.servers {
		if s.tap == nil && s.spec.Target == target && s.spec.Dialer != nil && s.spec.Dialer.Kind() != "stdio" {
			return true
		}
	}
	return false
}

// freeName makes a label a name that no other server has.
func (m *Monitor) freeName(label string) string {
	name := strings.ReplaceAll(label, "/", ":")
	for n := 2; m.byName[name] != nil; n++ {
		name = fmt.Sprintf("%s %d", label, n)
	}
	return name
}

// tapRow says on a tapped server's row what its taps are.
func (s *server) tapRow(taps []journal.Tap) {
	last := taps[len(taps)-1]
	var agents, holders []string
	live := false
	for _, t := range taps {
		if !t.Live {
			continue
		}
		live, last = true, t
		for _, a := range t.Agents {
			if !contains(agents, a) {
				agents = append(agents, a)
			}
		}
		holders = append(holders, fmt.Sprintf("%d", t.Holder.PID))
	}
	state, words, held := taskmodel.ServerReady, "", ""
	switch {
	case !s.tap.ready:
		state = taskmodel.ServerConnecting
	case !live:
		state, words = taskmodel.ServerOff, "the session is over"
		if last.Why != "" {
			words += ": " + last.Why
		} else {
			words += ": the tap was ended without a word"
		}
	default:
		held = "a tap (pid " + strings.Join(holders, ", ") + ")"
		if len(agents) > 0 {
			held += " in the session of " + strings.Join(agents, ", ")
		}
		if last.Passive {
			held += "; it is passive"
		}
	}
	r := s.row
	if r.HeldBy != held || r.Generation != last.Generation || r.ProtocolVersion != last.Version || r.Can != last.Can || r.ServerName != last.Server {
		s.change(func(r *taskmodel.Server) {
			r.HeldBy, r.Transport = held, last.Transport
			r.ProtocolVersion, r.ServerName, r.ServerVersion, r.Can = last.Version, last.Server, last.ServerVer, last.Can
			if last.Generation != "" {
				r.Generation = last.Generation
			}
		})
	}
	if r.State != state || r.Error != words {
		s.state(state, words)
	}
}

func contains(list []string, v string) bool {
	for _, l := range list {
		if l == v {
			return true
		}
	}
	return false
}

// tapReady is called when a tapped server's rows were read.
func (s *server) tapReady() {
	s.tap.ready = true
	var all []journal.Tap
	for _, t := range s.tap.taps {
		all = append(all, t)
		if !t.Live {
			s.tapOver(t)
		}
	}
	s.tapRow(all)
	s.m.alarms.set(s.lease.tick, s.m.now())
}

// tapOver marks the rows of a tap that was ended before it could do so itself.
func (s *server) tapOver(t journal.Tap) {
	m := s.m
	for id := range s.watches {
		k := s.key(id)
		v, ok := m.board.Task(k)
		if !ok || v.Tap != t.Session || v.Terminal() || v.Standing == taskmodel.Gone || v.Standing == taskmodel.Expired {
			continue
		}
		standing, why := taskmodel.Gone, "the session of "+v.Owner+" is over, and with it the server; the task's outcome is unknown"
		if t.Transport != "stdio" {
			standing, why = taskmodel.Stale, "the tap has ended: nobody reads along in the session of "+v.Owner+" any more"
		}
		for _, e := range m.board.Change(k, m.now(), func(v *taskmodel.Task) { v.Standing, v.Note = standing, why }) {
			m.emit(e)
		}
		s.closeMirrored(v, why)
		if standing == taskmodel.Gone {
			s.unwatch(id)
		}
		s.release(id)
	}
	m.touch()
}

// closeMirrored closes the questions of a task, here alone.
func (s *server) closeMirrored(t taskmodel.Task, why string) {
	for _, id := range t.Inputs {
		if q, ok := s.m.board.Question(id); ok && q.State.Open() {
			q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, why
			s.m.board.PutQuestion(q)
		}
	}
}

// mirrors reports whether a journalled task is for this server to show: those
// of taps are for tapped servers alone, as long as the tap lives or the task
// cannot outlive it.
func (s *server) mirrors(t taskmodel.Task) bool {
	if s.tap != nil {
		return t.Tap != ""
	}
	if t.Tap == "" {
		return true
	}
	if s.spec.Dialer == nil || s.spec.Dialer.Kind() == "stdio" {
		return false
	}
	p := s.m.tapped[s.spec.Target]
	return p == nil || !p.tap.taps[t.Tap].Live
}

// asksHere reports whether a journalled question is for this server to show.
func (s *server) asksHere(q taskmodel.Question) bool {
	heard := strings.HasPrefix(q.ID.ID, "tap:") || strings.HasPrefix(q.ID.ID, "call:tap:")
	if q.Task.ID == "" || s.tap == nil && heard {
		return heard == (s.tap != nil)
	}
	if s.tap == nil {
		return true
	}
	_, ok := s.m.board.Task(q.Task)
	return ok
}

// tapFor is the session of the tap that an act goes to.
func (s *server) tapFor(k taskmodel.Key, question string) (string, error) {
	session := ""
	if t, ok := s.m.board.Task(k); ok {
		session = t.Tap
	}
	for name, t := range s.tap.taps {
		if session == "" && t.Live && (question == "" || strings.Contains(question, name)) {
			session = name
		}
	}
	if t := s.tap.taps[session]; !t.Live {
		why := t.Why
		if why == "" {
			why = "its tap has ended"
		}
		return "", sentence(ErrUnreachable, nil, "%s: the agent's session is over (%s); nothing can be asked in it", s.spec.Name, why)
	}
	return session, nil
}

// questionOf is the id of the question that an act answers.
func questionOf(kind string, payload json.RawMessage) string {
	var a taskmodel.Answer
	if kind != "answer" || json.Unmarshal(payload, &a) != nil {
		return ""
	}
	return a.Question.ID
}

// catchUp reads what a tap has just written, so that who asked for it sees it.
func (s *server) catchUp(ctx context.Context) {
	m := s.m
	var since int64
	if m.do(ctx, func() { since = s.lease.since }) != nil {
		return
	}
	if ch, err := m.o.Journal.Changes(ctx, s.spec.Target, since); err == nil {
		_ = m.do(ctx, func() { s.changes(ch) })
	}
}

// sessionOver reports whether a task was heard in an agent's session that has
// ended: what is known of it is all that there will be.
func (s *server) sessionOver(ctx context.Context, k taskmodel.Key) bool {
	over := false
	_ = s.m.do(ctx, func() {
		if s.tap != nil {
			_, err := s.tapFor(k, "")
			over = err != nil
		}
	})
	return over
}
