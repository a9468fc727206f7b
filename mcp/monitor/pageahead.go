package monitor

import (
	"context"
	"slices"
	"sync"
	"time"

	"mcptasks/mcp"
)

// pagesAhead is how many pages of a whole walk may be under way or wait to be
// taken: while the loop puts one on the board the next is being read, the one
// after it is on its way, and the server works on another.
const pagesAhead = 4

// A pageAhead asks for the pages of one walk. Each request goes out as soon as
// the page before it has told its cursor, so that the server need not wait for
// what is done here with a page; one request at a time is under way all the
// same. Whether the walk goes on is the walk's to say: what was asked for in vain
// is not looked at. It is safe for concurrent use.
type pageAhead struct {
	m     *Monitor
	ctx   context.Context // of the connection
	c     client
	whole bool // else no page is asked for before it is wanted

	mu    sync.Mutex
	pages []*asked        // not taken yet, in the order of the walk
	last  *asked          // the one that was asked for last
	known map[string]bool // cursors that were asked for
	over  bool            // the walk has ended
}

// An asked is one page that was asked for. The page, and when it was heard, are
// there when done is closed.
type asked struct {
	cursor string
	next   string // as soon as it is known; guarded by the pageAhead's lock
	asked  time.Time
	done   chan struct{}
	heard  time.Time
	page   mcp.Page
	err    error
}

// take gives the page at a cursor and waits for it. A page is given once: who
// wants it again has it asked for again. It is called by one of the monitor's jobs.
func (a *pageAhead) take(cursor string) *asked {
	a.mu.Lock()
	i := slices.IndexFunc(a.pages, func(p *asked) bool { return p.cursor == cursor })
	if i < 0 {
		i = len(a.pages)
		a.ask(cursor)
	}
	p := a.pages[i]
	a.pages = slices.Delete(a.pages, i, i+1)
	a.more()
	a.mu.Unlock()
	<-p.done
	return p
}

// ask sends the request for a page. It needs the lock, and runs within a job.
func (a *pageAhead) ask(cursor string) {
	p := &asked{cursor: cursor, asked: a.m.now(), done: make(chan struct{})}
	a.pages, a.last = append(a.pages, p), p
	if a.known == nil {
		a.known = map[string]bool{}
	}
	a.known[cursor] = true
	var next func(string)
	if a.whole && cursor != "" {
		// Not before the first page is on the board: a server that dies at the
		// second must not take that with it, page and end racing each other.
		next = func(cursor string) { a.tells(p, cursor) }
	}
	a.m.spawn(func() {
		ctx, stop := context.WithTimeout(a.ctx, listTimeout)
		defer stop()
		p.page, p.err = a.c.Tasks().List(ctx, p.cursor, next)
		p.heard = a.m.now()
		close(p.done)
	})
}

// tells takes note of the cursor that a page told.
func (a *pageAhead) tells(p *asked, next string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.next = next
	if p == a.last {
		a.more()
	}
}

// stop ends it: nothing is asked for any more. A nil pageAhead has ended.
func (a *pageAhead) stop() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
}

// more asks for the page after the last one, if its cursor is known and there is
// room. It needs the lock.
func (a *pageAhead) more() {
	next := a.last.next
	if a.over || next == "" || a.known[next] || len(a.pages) >= pagesAhead {
		return // at the end, in a circle, or full: that is for the walk to say
	}
	a.ask(next)
}
