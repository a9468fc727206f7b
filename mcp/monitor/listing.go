package monitor

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// A sweep is one walk through a server's listing, page after page. Cursors are
// opaque: they are sent back as they came and only compared.
type sweep struct {
	no      int
	first   bool // the first one on this connection
	whole   bool // to the end; else it may stop when all that was due has been seen
	cursor  string
	cursors map[string]bool
	pages   int
	seen    map[uint64]struct{} // hashes of ids
	barren  int                 // pages in a row with nothing new
	again   bool                // the second walk, after a refused cursor
	want    int                 // due tasks not seen yet
	covered int                 // watches refreshed
	tries   int                 // failures of the present page in a row
	ahead   *pageAhead          // asks for the pages, from the first one on
	start   time.Time
}

const (
	relistEvery = 45 * time.Second       // to find tasks that others started
	relistPage  = 250 * time.Millisecond // and no more than four pages a second for that
	listTimeout = 2 * time.Minute
	listTries   = 3
	listBarren  = 50 // pages in a row without a new task: the server goes in circles
)

var idHash = maphash.MakeSeed()

// resume is called when a connection is ready: the tasks that are known are
// asked for, and the listing shows the others.
func (s *server) resume() {
	now := s.m.now()
	n := 0
	for id, w := range s.watches {
		w.fails, w.missing, w.asking = 0, 0, false
		// Spread: a thousand tasks must not be due in one instant.
		s.setDue(w, now.Add(time.Duration(n/s.m.o.PollCap)*5*time.Millisecond), w.urgent)
		n++
		if t, ok := s.m.board.Task(s.key(id)); ok && t.Status == taskmodel.InputRequired {
			if w.ask = t.Standing != taskmodel.Live; !w.ask {
				s.maybeAsk(w, t)
			}
		}
	}
	s.wantPushes(true)
	s.startListing(true)
	s.arm()
	s.pumpResults()
}

// relist is the lister's alarm.
func (s *server) relist() { s.startListing(true) }

// startListing begins a walk if the server has a listing and none runs.
func (s *server) startListing(whole bool) {
	if s.client == nil || s.list != nil {
		return
	}
	now := s.m.now()
	if s.m.paused.Load() && s.pages > 0 {
		s.m.alarms.set(s.lister, now.Add(relistEvery))
		return
	}
	if b := s.blocked(); now.Before(b) {
		s.m.alarms.set(s.lister, b)
		return
	}
	info := s.client.Info()
	if s.cannot || !info.Can.List {
		s.cannotList(info.Can.ListWhy)
		return
	}
	s.sweepNo++
	s.list = &sweep{no: s.sweepNo, first: s.pages == 0, whole: whole, start: now,
		cursors: map[string]bool{}, seen: map[uint64]struct{}{}}
	if !whole {
		horizon := now.Add(s.horizon())
		for _, h := range []watchHeap{s.due, s.urgent} {
			h.dueBefore(horizon, func(w *watch) bool {
				if w.listed {
					s.list.want++
					w.wantedBy = s.list.no
				}
				return true
			})
		}
	}
	if s.list.first {
		s.change(func(r *taskmodel.Server) { r.Listing = true })
	}
	s.page()
}

func (s *server) cannotList(why string) {
	if s.row.Generation == taskmodel.GenNone || s.row.Can.ListWhy != "" && !s.row.Can.List && s.cannot {
		return
	}
	s.cannot = true
	if why == "" {
		why = "cannot list: the server does not know tasks/list; known tasks go on, others can be added by id"
	}
	s.change(func(r *taskmodel.Server) { r.Can.List, r.Can.ListWhy, r.Listing = false, why, false })
}

// page asks for the next page of the walk.
func (s *server) page() {
	m, l := s.m, s.list
	conn, cursor := s.conn, l.cursor
	s.polls.add(m.now(), 1)
	s.counted()
	if l.ahead == nil || l.cursor == "" {
		l.ahead.stop() // it walked from a cursor that the server has given up
		l.ahead = &pageAhead{m: m, ctx: s.connCtx, c: s.client, whole: l.whole}
	}
	ahead := l.ahead
	m.spawn(func() {
		p := ahead.take(cursor)
		m.post(func() {
			if conn == s.conn && s.list == l {
				s.paged(l, p.asked, p.heard, p.page, p.err)
			}
			s.heard(conn, p.err)
		})
	})
}

// paged takes one page.
func (s *server) paged(l *sweep, asked, heard time.Time, p mcp.Page, err error) {
	m := s.m
	if err != nil {
		s.pageFailed(l, err, heard)
		return
	}
	l.tries = 0
	l.pages++
	fresh := false
	for i := range p.Tasks {
		if id := p.Tasks[i].ID; id != "" {
			h := maphash.String(idHash, id)
			if _, again := l.seen[h]; !again {
				l.seen[h] = struct{}{}
				fresh = true
			}
		}
	}
	if fresh {
		l.barren = 0
	} else {
		l.barren++
	}
	why, last := l.ends(p)
	if !last && l.whole {
		// The server works on the next page while this one is put on the board.
		s.turnPage(l, p.Next)
	}
	for i := range p.Tasks {
		snap := p.Tasks[i]
		if snap.ID == "" || s.forgets(snap.ID) {
			continue
		}
		w := s.watches[snap.ID]
		if w == nil && s.count >= m.o.MaxTasksPerServer {
			if _, known := m.board.Task(s.key(snap.ID)); !known {
				s.endListing(l, fmt.Sprintf("more than %d tasks; raise limits.tasks_per_server to see the others", m.o.MaxTasksPerServer), heard)
				return
			}
		}
		if w != nil && w.sweep != l.no {
			if w.wantedBy == l.no {
				l.want--
			}
			l.covered++
		}
		s.observe(taskmodel.Requestor, taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromList, AskedAt: asked, HeardAt: heard})
		if w := s.watches[snap.ID]; w != nil {
			w.sweep, w.listed = l.no, true
		}
	}
	switch {
	case last:
		s.endListing(l, why, heard)
	case l.whole:
		if l.first && l.pages == 1 {
			m.hurry()
		}
	case l.want <= 0:
		// All that was due has been seen.
		s.list = nil
		s.arm()
	default:
		s.turnPage(l, p.Next)
	}
}

// ends reports whether a walk ends with a page, and in words why it does not
// reach the list's end.
func (l *sweep) ends(p mcp.Page) (why string, yes bool) {
	switch {
	case p.Next == "":
		return p.Cut, true
	case p.Next == l.cursor || l.cursors[p.Next]:
		return fmt.Sprintf("the server repeats its cursors (after %d pages), so that the list cannot be walked to its end", l.pages), true
	case l.barren >= listBarren:
		return fmt.Sprintf("the server sent %d pages without a new task, so that the list seems to have no end", l.barren), true
	}
	return "", false
}

// turnPage goes on to the next page.
func (s *server) turnPage(l *sweep, cursor string) {
	l.cursors[cursor] = true
	l.cursor = cursor
	s.page()
}

// pageFailed takes an error in place of a page.
func (s *server) pageFailed(l *sweep, err error, now time.Time) {
	var rpc *taskmodel.RPCError
	switch {
	case errors.Is(err, mcp.ErrUnsupported):
		s.list = nil
		s.cannotList("cannot list: " + err.Error())
		s.arm()
	case errors.Is(err, mcp.ErrSessionLost), errors.Is(err, mcp.ErrAuth), errors.Is(err, mcp.ErrClosed), errors.Is(err, context.Canceled):
		s.list = nil // the connection's end has its own way
		s.m.alarms.set(s.lister, now.Add(relistEvery))
	case errors.As(err, &rpc) && rpc.Code == -32602 && l.cursor != "" && !l.again:
		// The server does not take its own cursor any more: once more from page
		// 1. What is known stays.
		l.again, l.cursor, l.barren = true, "", 0
		clear(l.cursors)
		s.page()
	case errors.As(err, &rpc) && rpc.Code == -32602 && l.cursor != "":
		s.endListing(l, "the server refused its own cursor twice: "+err.Error(), now)
	case l.tries+1 < listTries && (rpc == nil || rpc.Code == -32603):
		l.tries++
		wait := max(s.m.backoff(l.tries-1, retryFirst, retryMost), retryAfter(err))
		s.m.alarms.at(now.Add(wait), func() {
			if s.list == l && s.client != nil {
				s.page()
			}
		})
	default:
		s.listFail++
		s.endListing(l, "listing failed: "+err.Error(), now)
	}
}

// endListing ends a walk that went as far as it could. why says what is
// lacking. What is known and was not listed is not dropped: its polls tell.
func (s *server) endListing(l *sweep, why string, now time.Time) {
	s.list = nil
	l.ahead.stop()
	if l.first {
		// All of it is what a person waits for. It comes once for a connection, so
		// that it needs no pace.
		s.m.touch()
		s.m.alarms.set(s.m.publisher, s.m.now())
	}
	if why == "" {
		s.listFail = 0
		s.listed = l.covered
		s.unlisted(l)
	}
	s.pages = max(l.pages, 1)
	if s.row.Listing || s.row.ListIncomplete != why {
		s.change(func(r *taskmodel.Server) { r.Listing, r.ListIncomplete = false, why })
	}
	for _, h := range []watchHeap{s.due, s.urgent} {
		if len(h) > 0 && why == "" {
			for _, w := range h {
				w.listed = w.sweep == l.no
			}
		}
	}
	wait := max(relistEvery, time.Duration(s.pages)*relistPage)
	s.m.alarms.set(s.lister, now.Add(s.m.jitter(wait)))
	s.arm()
}

// unlisted lets go of the forgotten tasks that the server does not have any more:
// nothing will bring them back.
func (s *server) unlisted(l *sweep) {
	for id, f := range s.forgot {
		_, listed := l.seen[maphash.String(idHash, id)]
		switch {
		case listed:
			f.missed = 0
		case f.at.Before(l.start):
			f.missed++ // a listing may lack a task now and then
		}
		if s.forgot[id] = f; f.missed >= forgetAfter {
			delete(s.forgot, id)
		}
	}
}

// A forgotten is a task that the person does not want to see any more.
type forgotten struct {
	at     time.Time
	missed int // whole listings in a row that did not have it
}

// forgetAfter is how many listings must lack a forgotten task before it is
// forgotten that it was.
const forgetAfter = 3

// forgetFor is how long a server without lists may still tell of a forgotten
// task: what is under way on a stream when it is forgotten, and no more.
const forgetFor = time.Hour

func (s *server) forget(id string) {
	now := s.m.now()
	if s.cannot {
		for id, f := range s.forgot {
			if now.Sub(f.at) > forgetFor {
				delete(s.forgot, id)
			}
		}
	}
	s.forgot[id] = forgotten{at: now}
}

func (s *server) forgets(id string) bool {
	_, yes := s.forgot[id]
	return yes
}

// horizon is how far ahead of its time a task may be refreshed by a listing:
// half the pace of the tasks of this server, as far as they share one.
func (s *server) horizon() time.Duration {
	if len(s.due) == 0 {
		return 0
	}
	return s.due[0].interval / 2
}

// worthListing reports whether one walk through the listing refreshes the due
// tasks for fewer requests than asking for each. It looks at no more tasks than
// there are pages.
func (s *server) worthListing(now time.Time) bool {
	if s.cannot || s.pages == 0 || len(s.due) <= s.pages || s.due[0].due.After(now) || s.listFail > 0 {
		return false
	}
	n := 0
	s.due.dueBefore(now.Add(s.horizon()), func(w *watch) bool {
		if w.listed {
			n++
		}
		return n <= s.pages
	})
	return n > s.pages
}
