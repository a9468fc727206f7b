package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	dialStdio  = 3 * time.Minute // a program may have to be fetched first
	dialHTTP   = time.Minute
	retryFirst = time.Second
	retryMost  = time.Minute
	authFirst  = 30 * time.Second // a sign-in elsewhere (mcptasks login) is found by these tries
	authMost   = 10 * time.Minute
	steady     = 10 * time.Second // a connection that lasted so long was a good one
)

// begin is called once, at the start of the run.
func (s *server) begin() {
	s.want = s.spec.Autostart && s.spec.Disabled == "" && s.spec.Dialer != nil
	if s.want {
		s.state(taskmodel.ServerConnecting, "")
	}
	s.restore(func() {
		s.afterCalls(func() {
			switch {
			case s.tap != nil:
				s.tapReady()
			case s.want:
				s.enter()
			}
		})
	})
}

// dial makes a connection, beside the loop.
func (s *server) dial() {
	m := s.m
	if !s.want || s.dialling || s.client != nil || s.lease.heldElsewhere() {
		return
	}
	m.alarms.drop(s.retry)
	if s.lease.held {
		s.inherit() // else it shows on the connection whether another process has it
	}
	s.dialling = true
	s.conn++
	clear(s.left) // they were asked on the last connection
	conn := s.conn
	s.state(taskmodel.ServerConnecting, "")
	o := mcp.Options{
		Name: s.spec.Name, Dialer: s.spec.Dialer, Era: s.spec.Era, Generation: s.spec.Generation,
		NoSSE: s.spec.NoSSE, MaxDepth: m.o.MaxDepth,
		ClientName: "mcptasks", ClientVersion: m.o.Version,
		Roots:      func() []mcp.Root { return *s.root.Load() },
		NoReceiver: s.spec.NoReceiver, Handler: &ears{s, conn}, Log: m.log,
	}
	if s.session != nil && s.session.ID != "" && !s.session.Ended {
		o.Session, o.Version, o.SessionInit = s.session.ID, s.session.Version, s.session.Init
		o.Asked = s.unanswered()
	} else if o.Era == "" || o.Era == "auto" {
		o.Era = s.era
	}
	limit := dialHTTP
	if s.spec.Dialer.Kind() == "stdio" {
		limit = dialStdio
	}
	ctx, end := context.WithCancel(m.ctx)
	s.connCtx, s.connEnd = ctx, end
	m.spawn(func() {
		dctx, stop := context.WithTimeout(ctx, limit)
		c, err := s.connect(dctx, o)
		who := ""
		if err == nil {
			who = identity(dctx, o.Dialer)
		}
		lease, holder, elsewhere := "", journal.Holder{}, false
		if err == nil {
			lease, holder, elsewhere = s.oneConnection(dctx, c)
		}
		stop()
		taken := make(chan struct{})
		m.post(func() {
			close(taken)
			if elsewhere && conn == s.conn && s.want {
				if s.lease.session = lease; lease == sseLease {
					s.era = "sse"
				}
				s.leased(false, holder)
			}
			if err == nil && conn == s.conn {
				s.inherit()
				s.signedInAs(who)
			}
			s.dialled(conn, c, err, o)
		})
		select {
		case <-taken:
			return
		case <-m.ending:
		}
		select {
		case <-taken:
		default:
			if c != nil { // nobody is there to take it any more
				cctx, stop := context.WithTimeout(context.Background(), closeGrace)
				defer stop()
				if err := c.Close(cctx, o.Session == ""); err != nil {
					m.log.Debug("closing a connection", "server", s.spec.Name, "err", err)
				}
			}
		}
	})
}

// dialled takes what became of a dial.
func (s *server) dialled(conn int, c client, err error, o mcp.Options) {
	m := s.m
	session := o.Session
	if conn != s.conn || !s.want {
		if c != nil {
			s.closeLater(c, session == "")
		}
		return
	}
	s.dialling = false
	if err != nil {
		s.connEnd()
		switch {
		case session != "" && errors.Is(err, mcp.ErrSessionLost):
			s.renew(err)
		case s.era != "" && session == "" && o.Era == s.era && !unreachable(err):
			// It is not what it was: it is looked at anew.
			s.era = ""
			s.dial()
		case errors.Is(err, mcp.ErrAuth):
			s.authNeeded(err)
		case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
			// Trying again would not help until somebody installs it.
			s.state(taskmodel.ServerFailed, err.Error()+"; correct the entry or install the program, then reconnect")
			s.staleAll("the server cannot be started")
		default:
			s.again(err)
		}
		return
	}
	info := c.Info()
	now := m.now()
	s.client, s.since, s.beside = c, now, nil
	s.hold, s.holds, s.probing, s.paced = time.Time{}, 0, false, time.Time{}
	s.sessionID, s.era = info.Session, eraOf(info)
	s.cannot, s.toolsKnown, s.pages = false, false, 0
	s.change(func(r *taskmodel.Server) {
		r.Transport = info.Transport
		r.Generation, r.ProtocolVersion = info.Generation, info.ProtocolVersion
		r.ServerName, r.ServerVersion, r.Instructions = info.ServerName, info.ServerVersion, info.Instructions
		r.Can, r.Capabilities, r.Pushing = info.Can, info.Capabilities, false
		r.Attempts, r.PacedUntil, r.ListIncomplete = 0, time.Time{}, ""
	})
	s.state(taskmodel.ServerReady, "")
	s.keepSession()
	s.lane.do("", func() { s.unclaimed(conn) }) // after what was asked while it connected
	m.spawn(func() {
		select {
		case <-c.Done():
		case <-m.done:
			return
		}
		m.post(func() { s.ended(conn, c.Err()) })
	})
	s.resume()
}

// learn takes what the connection may have found since it was made: the
// generation (a legacy server may show late that it speaks the draft), whether
// there are pushes.
func (s *server) learn() {
	if s.client == nil {
		return
	}
	i := s.client.Info()
	if s.cannot {
		i.Can.List, i.Can.ListWhy = false, s.row.Can.ListWhy
	}
	if i.Generation != s.row.Generation || i.Can != s.row.Can {
		if i.Generation != s.row.Generation {
			s.cannot = false
			s.m.alarms.set(s.lister, s.m.now())
		}
		s.change(func(r *taskmodel.Server) { r.Generation, r.Can = i.Generation, i.Can })
	}
}

// again tries later, and says when.
func (s *server) again(err error) {
	m := s.m
	wait := m.backoff(s.attempts, retryFirst, retryMost)
	if after := retryAfter(err); after > 0 {
		wait = max(wait, after)
	}
	s.attempts++
	at := m.now().Add(wait)
	s.change(func(r *taskmodel.Server) { r.RetryAt, r.Attempts = at, s.attempts })
	s.state(taskmodel.ServerRetrying, err.Error()+whatToDo(err))
	m.alarms.set(s.retry, at)
	s.staleAll("the server is not reachable: " + err.Error())
}

// whatToDo is what a person can do about a server that is tried again by itself,
// as a further part of the sentence, "" where that is to wait.
func whatToDo(err error) string {
	var exit *transport.ExitError
	if errors.As(err, &exit) {
		return "; if it keeps ending, run its command in a terminal to see why, and correct its entry"
	}
	return ""
}

// authNeeded waits for a sign-in. Polls pause; the rare tries find a sign-in
// that was made in another terminal, and are no storm.
func (s *server) authNeeded(err error) {
	m := s.m
	wait := m.backoff(s.attempts, authFirst, authMost)
	s.attempts++
	at := m.now().Add(wait)
	s.change(func(r *taskmodel.Server) { r.Attempts = s.attempts })
	words := err.Error()
	switch {
	case s.spec.NoLogin:
		words += "; correct what its entry signs in with"
	case !strings.Contains(words, "mcptasks login"):
		words += "; sign in with `mcptasks login " + s.spec.Name + "`"
	}
	s.state(taskmodel.ServerAuth, words)
	s.change(func(r *taskmodel.Server) { r.RetryAt = at })
	m.alarms.set(s.retry, at)
	s.staleAll("the server wants a sign-in")
}

// ended is called when a connection has ended by itself.
func (s *server) ended(conn int, err error) {
	if conn != s.conn || s.client == nil {
		return
	}
	if err == nil {
		err = fmt.Errorf("%s: the connection ended", s.spec.Name)
	}
	s.drop(false)
	if s.m.now().Sub(s.since) >= steady {
		s.attempts = 0
	}
	if errors.Is(err, mcp.ErrSessionLost) {
		s.renew(err)
		return
	}
	s.again(err)
}

// drop forgets the present connection and closes it beside the loop.
func (s *server) drop(endSession bool) {
	c := s.client
	s.client, s.dialling = nil, false
	s.conn++ // what it says from now on is an old connection's
	if s.connEnd != nil {
		s.connEnd()
	}
	s.m.alarms.drop(s.lister)
	s.m.alarms.drop(s.watcher)
	s.m.alarms.drop(s.poller)
	s.m.alarms.drop(s.checker)
	s.list = nil
	s.change(func(r *taskmodel.Server) { r.Listing = false })
	s.pushing(nil)
	for _, w := range s.watches {
		w.inflight, w.asking = false, false
	}
	s.inflight, s.probing = 0, false
	if c != nil {
		s.closeLater(c, endSession)
	}
}

func (s *server) closeLater(c client, endSession bool) {
	s.m.spawn(func() {
		ctx, stop := context.WithTimeout(context.Background(), closeGrace)
		defer stop()
		if err := c.Close(ctx, endSession); err != nil {
			s.m.log.Debug("closing a connection", "server", s.spec.Name, "err", err)
		}
	})
}

// forgetSession: the server does not know our session any more. Its tasks may
// live on in it, or be gone; polls tell (field fault S9).
func (s *server) forgetSession() {
	old := s.session
	s.session, s.lost = nil, true
	if old != nil && s.m.o.Journal != nil {
		ended := *old
		ended.Ended = true
		s.m.o.Journal.Queue(journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Session: &ended})
	}
	s.releaseLease()
}

// identity says as whom a server is asked, "" where that is nobody or not known.
func identity(ctx context.Context, d mcp.Dialer) string {
	if i, ok := d.(interface {
		Identity(context.Context) string
	}); ok {
		return i.Identity(ctx)
	}
	return ""
}

// signedInAs learns as whom the server is asked from now on. What another one
// started it may not show us.
func (s *server) signedInAs(who string) {
	before := s.row.Identity
	if before == who {
		return
	}
	if before != "" {
		s.stranger = s.m.now()
	}
	s.change(func(r *taskmodel.Server) { r.Identity = who })
}

// keepSession writes an HTTP session into the journal, for the next run.
func (s *server) keepSession() {
	id, version, init := s.client.Session()
	if id == "" {
		s.session = nil
		if who := s.row.Identity; who != "" && s.m.o.Journal != nil {
			s.m.o.Journal.Queue(journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Session: &journal.Session{Identity: who}})
		}
		s.claimLease("")
		return
	}
	since := s.m.now()
	if s.session != nil && s.session.ID == id && !s.session.Since.IsZero() {
		since = s.session.Since
	}
	s.session = &journal.Session{ID: id, Version: version, Init: init, Identity: s.row.Identity, Since: since}
	if s.m.o.Journal != nil {
		own := *s.session
		s.m.o.Journal.Queue(journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Session: &own})
	}
	s.claimLease(id)
}

// staleAll marks every unfinished task as one whose status cannot be asked for.
func (s *server) staleAll(why string) {
	now := s.m.now()
	for id := range s.watches {
		anew := false
		for _, e := range s.m.board.Change(s.key(id), now, func(t *taskmodel.Task) {
			if t.Standing == taskmodel.Live || t.Standing == taskmodel.Stale {
				anew = t.Standing == taskmodel.Live || t.Note != why
				t.Standing, t.Note = taskmodel.Stale, why
			}
		}) {
			s.m.emit(e)
		}
		if anew {
			s.saveFor(s.key(id))
		}
	}
	s.m.touch()
}

// Connect starts a server that is off, tries one that waits at once, and makes
// a new connection where there is one.
func (m *Monitor) Connect(name string) {
	m.post(func() {
		s := m.byName[name]
		if s == nil || s.spec.Dialer == nil || s.spec.Disabled != "" {
			return
		}
		s.want, s.attempts = true, 0
		if s.client != nil || s.dialling {
			s.drop(false)
		}
		s.enter()
	})
}

// Disconnect stops a server until Connect. A program that it started ends.
func (m *Monitor) Disconnect(name string) {
	m.post(func() {
		s := m.byName[name]
		if s == nil || s.spec.Disabled != "" || s.tap != nil {
			return
		}
		s.want = false
		m.alarms.drop(s.retry)
		if s.client != nil || s.dialling {
			s.drop(!s.running())
		}
		s.releaseLease()
		s.state(taskmodel.ServerOff, "stopped by you; connect it to go on")
		s.staleAll("the server is stopped")
	})
}

// running reports whether the present session may still be needed: for tasks
// that are unfinished, or ended and their results nowhere but there.
func (s *server) running() bool {
	if len(s.watches) > 0 {
		return true
	}
	now, needed := s.m.now(), false
	s.m.board.Publish(now).Tasks(func(t *taskmodel.Task) bool {
		if t.Server == s.spec.Name && t.Ours && t.Terminal() && t.Outcome.IsZero() && s.fetchable(*t) == "" {
			at, bounded := t.ExpiresAt()
			needed = !bounded || at.After(now)
		}
		return !needed
	})
	return needed
}

// farewell prepares the end: what it returns is run beside the others'.
func (s *server) farewell() func(context.Context) {
	m := s.m
	c := s.client
	end := !s.running()
	if s.connEnd != nil {
		s.connEnd()
	}
	session, held := s.session, s.lease.held
	if c != nil && end && session != nil && m.o.Journal != nil {
		gone := *session
		gone.Ended = true
		m.o.Journal.Queue(journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Session: &gone})
	}
	s.client = nil
	lease := s.lease.session
	return func(ctx context.Context) {
		if c != nil {
			if err := c.Close(ctx, end); err != nil {
				m.log.Debug("closing a connection", "server", s.spec.Name, "err", err)
			}
		}
		if held && m.o.Journal != nil {
			if err := m.o.Journal.Release(ctx, s.spec.Target, lease); err != nil {
				m.log.Debug("giving a lease back", "server", s.spec.Name, "err", err)
			}
		}
	}
}

// ready waits until the server can be asked, and gives its client with the
// number of the connection. It is called beside the loop. A server that is off
// is started; one that failed is an error at once, in words.
func (s *server) ready(ctx context.Context) (client, int, error) {
	m := s.m
	kicked := false
	for {
		var c client
		var conn int
		var turn chan struct{}
		var err error
		derr := m.do(ctx, func() {
			c, conn, turn = s.client, s.conn, s.turn
			if c != nil {
				return
			}
			switch s.row.State {
			case taskmodel.ServerOff:
				switch {
				case s.lease.heldElsewhere():
					err = sentence(ErrUnreachable, nil, "%s: held by %s", s.spec.Name, s.row.HeldBy)
				case !kicked && s.spec.Dialer != nil && s.spec.Disabled == "":
					s.want, kicked = true, true
					s.enter()
					turn = s.turn
				}
			case taskmodel.ServerFailed:
				err = sentence(ErrUnreachable, nil, "%s: %s", s.spec.Name, s.row.Error)
			case taskmodel.ServerAuth:
				err = sentence(mcp.ErrAuth, ErrUnreachable, "%s", s.row.Error)
			case taskmodel.ServerRetrying:
				err = sentence(ErrUnreachable, nil, "%s (tried %d times, again in %s)", s.row.Error, s.row.Attempts,
					max(0, s.row.RetryAt.Sub(m.now())).Round(100*time.Millisecond))
			}
		})
		switch {
		case derr != nil:
			return nil, 0, fmt.Errorf("%s: waiting for the server: %w", s.spec.Name, derr)
		case err != nil:
			return nil, 0, err
		case c != nil:
			return c, conn, nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("%s: waiting for the server: %w", s.spec.Name, context.Cause(ctx))
		case <-m.done:
			return nil, 0, ErrStopped
		}
	}
}

// read makes a request that changes nothing, beside the loop: it is made again
// when the session was lost or the connection broke, on the new one.
func (s *server) read(ctx context.Context, f func(context.Context, client) error) error {
	for try := 0; ; try++ {
		c, conn, err := s.ready(ctx)
		if err != nil {
			return err
		}
		err = f(ctx, c)
		s.m.post(func() { s.heard(conn, err) })
		if try < 2 && ctx.Err() == nil && (errors.Is(err, mcp.ErrSessionLost) || errors.Is(err, mcp.ErrClosed)) {
			// The loop may not have noticed the end yet.
			if derr := s.m.do(ctx, func() {
				if s.conn == conn && s.client == c {
					s.ended(conn, err)
				}
			}); derr != nil {
				return err
			}
			if errors.Is(err, mcp.ErrClosed) {
				s.m.post(func() { s.dialNow() })
			}
			continue
		}
		return err
	}
}

// dialNow tries at once where a retry waits.
func (s *server) dialNow() {
	if s.m.alarms.isSet(s.retry) && s.attempts <= 1 {
		s.dial()
	}
}
