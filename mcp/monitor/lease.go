package monitor

import (
	"context"
	"errors"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	leaseEvery = time.Second
	leaseTries = 3       // before a journal that gives no answer counts as none
	stdioLease = "stdio" // a program has no session; one process runs it at a time
	sseLease   = "sse"   // nor has HTTP+SSE: what a server knows there is its connection's
	httpLease  = "http"  // the one session over Streamable HTTP, whatever its id
)

// A lease is the right to connect to a server as far as other processes on the
// same journal are concerned: one holds it, the others show what it writes.
type lease struct {
	session string // what is leased: "http", "stdio", "sse", or "" when nothing is
	held    bool
	holder  string // in words, when another has it
	since   int64  // for Changes
	read    int64  // since was it when the journal was last read whole
	busy    bool
	tick    *alarm
}

// heldElsewhere reports whether another process holds the server.
func (l *lease) heldElsewhere() bool { return l.holder != "" }

// enter connects, if no other process holds the server.
func (s *server) enter() {
	m := s.m
	if m.o.Journal == nil || s.spec.Dialer == nil {
		s.dial()
		return
	}
	switch {
	case s.spec.Dialer.Kind() == "stdio":
		s.lease.session = stdioLease
	case s.spec.Era == "sse" || s.era == "sse":
		s.lease.session = sseLease
	case s.session != nil && s.session.ID != "" && !s.session.Ended:
		s.lease.session = httpLease
	default:
		s.lease.session = ""
	}
	if s.lease.session == "" {
		s.dial()
		return
	}
	session := s.lease.session
	s.state(taskmodel.ServerConnecting, "")
	m.spawn(func() {
		var h journal.Holder
		var ok bool
		var err error
		// A slow disk is no answer: who takes a server that another process holds
		// takes the tasks of that one for lost.
		for try := 1; ; try++ {
			ctx, stop := context.WithTimeout(m.ctx, 5*time.Second)
			h, ok, err = m.o.Journal.Acquire(ctx, s.spec.Target, session)
			stop()
			if !journal.Busy(err) || try == leaseTries || !pause(m.ctx, leaseEvery) {
				break
			}
		}
		m.post(func() {
			if !s.want {
				return
			}
			if err != nil {
				m.log.Warn("taking the lease", "server", s.spec.Name, "err", err)
				ok = true // without a journal that works, nobody can be asked
			}
			if s.lease.session == session {
				s.leased(ok, h)
			}
		})
	})
}

// leased takes what became of taking or renewing the lease.
func (s *server) leased(ok bool, h journal.Holder) {
	switch {
	case ok && s.lease.heldElsewhere():
		// Its holder is gone. What it wrote last counts, its session too.
		s.lease.holder, s.lease.held = "", true
		s.takeOver()
	case ok:
		s.lease.held = true
		if s.client == nil && !s.dialling && !s.m.alarms.isSet(s.retry) {
			s.dial()
		}
	default:
		words := holderWords(h)
		anew := s.lease.holder != words
		s.lease.held, s.lease.holder = false, words
		if s.client != nil || s.dialling {
			s.drop(false)
		}
		s.m.alarms.drop(s.retry)
		if s.row.State != taskmodel.ServerOff || anew {
			s.change(func(r *taskmodel.Server) {
				r.HeldBy = words
				// Its holder knows what the server can do, and says so when asked.
				r.Can = taskmodel.Can{Start: true, Cancel: true, ListWhy: "its tasks are those that " + words + " writes down",
					PushWhy: "what " + words + " hears shows here"}
			})
			s.state(taskmodel.ServerOff, "held by "+words+", which does what is asked for here")
		}
		if anew {
			s.borrow()
			// What was written before this was known was taken as from a process
			// beside us: in part, and without its questions. It is read again.
			s.lease.since = s.lease.read
		}
	}
}

// borrow marks what was read from the journal as what it is while another
// process holds the server: that process hears of it, and what it says of it is
// true here. What it has not heard of yet stays as what is known from earlier.
func (s *server) borrow() {
	for id := range s.watches {
		k := s.key(id)
		theirs, told := s.beside[k]
		s.m.board.Change(k, s.m.now(), func(t *taskmodel.Task) {
			t.Owner = "held by " + s.lease.holder
			if told && t.Standing == taskmodel.Restored {
				t.Standing, t.Note = theirs.Standing, theirs.Note
			}
		})
	}
	s.beside = nil
	s.m.touch()
}

// takeOver reads the journal again and connects. What the other process had is
// known from before until it is heard of here.
func (s *server) takeOver() {
	for id := range s.watches {
		s.m.board.Change(s.key(id), s.m.now(), func(t *taskmodel.Task) {
			t.Owner = ""
			if (t.Standing == taskmodel.Live || t.Standing == taskmodel.Stale) && !t.Terminal() {
				t.Standing, t.Note = taskmodel.Restored, "known from "+s.row.HeldBy
			}
		})
	}
	s.change(func(r *taskmodel.Server) { r.HeldBy = "" })
	s.restore(func() {
		s.afterCalls(func() {
			if s.want {
				s.enter()
			}
		})
	})
}

// oneConnection asks for the lease of a server that turned out to have something
// of the connection's own (HTTP+SSE, or a session), before anything is asked of
// it, and reports who has it if another process does: of two that connect in the
// same instant one has the tasks, and the other gives its connection up.
func (s *server) oneConnection(ctx context.Context, c client) (lease string, h journal.Holder, elsewhere bool) {
	switch i := c.Info(); {
	case s.m.o.Journal == nil:
		return "", h, false
	case i.Transport == "sse":
		lease = sseLease
	case i.Session != "":
		lease = httpLease
	default:
		return "", h, false
	}
	h, ok, err := s.m.o.Journal.Acquire(ctx, s.spec.Target, lease)
	return lease, h, err == nil && !ok
}

// claimLease is called when a connection is there: its session is ours. ""
// means that it has none.
func (s *server) claimLease(session string) {
	m := s.m
	if m.o.Journal == nil {
		return
	}
	if session == "" && s.spec.Dialer != nil && s.spec.Dialer.Kind() == "stdio" {
		session = stdioLease
	}
	if session == "" && s.client != nil && s.client.Info().Transport == "sse" {
		session = sseLease
	}
	if session != "" && session != stdioLease && session != sseLease {
		session = httpLease
	}
	if s.lease.session == session && (session == "" || s.lease.held) {
		return
	}
	s.releaseLease()
	s.lease.session = session
	if session == "" {
		return
	}
	m.spawn(func() {
		ctx, stop := context.WithTimeout(m.ctx, 5*time.Second)
		_, ok, err := m.o.Journal.Acquire(ctx, s.spec.Target, session)
		stop()
		m.post(func() {
			if s.lease.session == session && err == nil && ok {
				s.lease.held = true
			}
		})
	})
}

// releaseLease gives the lease back, if it is ours.
func (s *server) releaseLease() {
	m := s.m
	if m.o.Journal == nil || !s.lease.held {
		s.lease.session = ""
		return
	}
	session := s.lease.session
	s.lease.session, s.lease.held = "", false
	m.spawn(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if err := m.o.Journal.Release(ctx, s.spec.Target, session); err != nil {
			m.log.Debug("giving a lease back", "server", s.spec.Name, "err", err)
		}
	})
}

// leaseTick renews the lease, takes what others ask for, and reads what they
// wrote. One tick runs at a time.
func (s *server) leaseTick() {
	m := s.m
	every := leaseEvery
	if s.tap != nil {
		every = tappedTick
	}
	m.alarms.set(s.lease.tick, m.now().Add(every))
	if s.lease.busy {
		return
	}
	s.lease.busy = true
	session, want, since := s.lease.session, s.want, s.lease.since
	mine := s.lease.held
	m.spawn(func() {
		ctx, stop := context.WithTimeout(m.ctx, 5*time.Second)
		defer stop()
		var h journal.Holder
		var ok bool
		var lerr, ierr error
		var intents []journal.Intent
		if session != "" && want {
			h, ok, lerr = m.o.Journal.Acquire(ctx, s.spec.Target, session)
			if ok && lerr == nil && mine {
				intents, ierr = m.o.Journal.ClaimIntents(ctx, s.spec.Target, session)
			}
		}
		ch, cerr := m.o.Journal.Changes(ctx, s.spec.Target, since)
		m.post(func() {
			s.lease.busy = false
			if err := errors.Join(lerr, ierr, cerr); err != nil {
				m.log.Debug("journal", "server", s.spec.Name, "err", err)
			}
			if cerr == nil {
				s.changes(ch)
			}
			s.remembers()
			if session != "" && want && lerr == nil && s.lease.session == session && s.want {
				s.leased(ok, h)
			}
			for _, in := range intents {
				s.carryOut(in)
			}
		})
	})
}

// A troubled journal is one that tells what keeps it from being written.
type troubled interface{ Err() error }

// remembers says on the server's row when nothing is written down any more, and
// takes it back when that is over.
func (s *server) remembers() {
	words := ""
	if s.m.o.Forgetful != "" {
		words = forgets + s.m.o.Forgetful
	} else if j, ok := s.m.o.Journal.(troubled); ok {
		if err := j.Err(); err != nil {
			why := journal.Why(err)
			if why == "" {
				why = "the journal cannot be written"
			}
			words = forgets + why
		}
	}
	if words == s.trouble {
		return
	}
	s.change(func(*taskmodel.Server) { s.trouble = words }) // which putRow adds
}

const forgets = "nothing is remembered: "
