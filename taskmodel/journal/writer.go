package journal

import (
	"context"
	"database/sql"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	batchMax  = 512                    // entries in one transaction
	batchLen  = 8 << 20                // and bytes, about
	batchWait = 25 * time.Millisecond  // how long entries nobody waits for are gathered
	laterWait = 750 * time.Millisecond // and those that may wait: others see them within two seconds all the same
	laterMost = 1 << 14                // entries that may wait so long
	retryMin  = 500 * time.Millisecond // after a failure of the disk
	retryMax  = 30 * time.Second
	tidyEvery = 2 * time.Second // between truncations of the write-ahead log
)

// A writer is the one goroutine that writes. What it is given it commits in the
// order in which it came, many entries in one transaction.
type writer struct {
	j    *Journal
	conn *sql.Conn
	stmt map[string]*sql.Stmt

	mu      sync.Mutex
	queue   []*item
	entries int   // in the queue
	bytes   int64 // that they hold, about
	closed  bool  // nothing is taken any more
	broken  error // the standing error of the disk, in words
	bound   int   // entries at which superseded ones are dropped next
	most    int64 // bytes at which more than those is given up next
	haste   haste // of what is in the queue
	wake    chan struct{}
	closing chan struct{} // closed by close
	quit    chan struct{} // abandon: end without writing
	done    chan struct{}

	// Only the goroutine's own:
	servers map[string]serverRow
	change  int64 // of the running transaction, 0: none yet
	tidy    bool  // something was deleted that must not stay in the log
	tidied  time.Time
	commits int
	looked  int64 // when was last looked for what intents have left, in µs
}

type serverRow struct {
	id    int64
	label string
}

// An item is one thing to do: entries, or an act in a transaction of its own.
type item struct {
	entries []Entry
	bytes   int64 // that they hold, about; set by put
	act     func(*tx) error
	done    chan error  // one slot; nil: nobody waits
	begun   atomic.Bool // who sets it decides: the writer runs the act, or the waiter gave it up
	due     time.Time   // when it is to be written at last; zero: at once
}

// haste is when the first item of a queue is to be written, and how many entries
// wait that are gathered for a short while only.
type haste struct {
	due  time.Time // zero with now false: there is none
	now  bool      // somebody waits
	soon int       // entries that are not for later
}

func (h *haste) add(it *item) {
	switch {
	case it.done != nil || it.due.IsZero():
		h.now = true
	case h.due.IsZero() || it.due.Before(h.due):
		h.due = it.due
	}
	if !it.later() {
		h.soon += len(it.entries)
	}
}

// later reports whether all entries of an item may wait.
func (it *item) later() bool {
	for i := range it.entries {
		if !it.entries[i].Later {
			return false
		}
	}
	return it.act == nil
}

// A tx is the writer's running transaction.
type tx struct {
	*writer
	now int64
}

func newWriter(j *Journal, conn *sql.Conn) (*writer, error) {
	w := &writer{j: j, conn: conn, stmt: map[string]*sql.Stmt{}, bound: j.opts.QueueBound, most: j.opts.QueueBytes,
		wake: make(chan struct{}, 1), closing: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{}),
		servers: map[string]serverRow{}}
	return w, nil
}

// exec runs a statement, prepared once.
func (w *writer) exec(query string, args ...any) (sql.Result, error) {
	s, err := w.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), args...)
}

func (w *writer) queryRow(query string, args []any, dest ...any) error {
	s, err := w.prepare(query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(context.Background(), args...).Scan(dest...)
}

func (w *writer) prepare(query string) (*sql.Stmt, error) {
	if s, ok := w.stmt[query]; ok {
		return s, nil
	}
	s, err := w.conn.PrepareContext(context.Background(), query)
	if err == nil {
		w.stmt[query] = s
	}
	return s, err
}

// put queues an item; it never blocks.
func (w *writer) put(it *item) error {
	it.weigh()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.queue = append(w.queue, it)
	w.entries += len(it.entries)
	w.bytes += it.bytes
	before := w.haste
	w.haste.add(it)
	if w.entries > w.bound {
		w.dropSuperseded()
		// The next pass when half as much again waits: at an even distance a hundred
		// thousand new tasks, of which none is superseded, would be gone through again
		// and again.
		w.bound = max(w.j.opts.QueueBound, w.entries+w.entries/2)
	}
	if limit := w.j.opts.QueueBytes; w.bytes > w.most && limit > 0 {
		w.lighten(limit - limit/4)
		w.most = max(limit, w.bytes+limit/4)
	}
	// What may wait does not wake who waits for it already.
	if len(w.queue) > 1 && it.later() && w.haste == before && w.entries < laterMost {
		return nil
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.closing)
}

// abandon ends the goroutine without writing the rest.
func (w *writer) abandon() {
	close(w.quit)
}

func (w *writer) run() {
	defer close(w.done)
	defer w.end()
	retry := retryMin
	for {
		batch, closed := w.next()
		batch = slices.DeleteFunc(batch, func(it *item) bool {
			return it.act != nil && !it.begun.CompareAndSwap(false, true)
		})
		if len(batch) == 0 {
			if closed {
				return
			}
			continue
		}
		err := w.commit(batch)
		if err == nil {
			retry = retryMin
			w.setBroken(nil)
			continue
		}
		// The disk is full, read-only or broken: nothing is lost while this process
		// lives, but nobody waits for it.
		w.setBroken(inWords(w.j.path, err))
		w.j.log.Error("the journal cannot be written", "file", w.j.path, "error", err)
		if damaged(err) {
			w.j.markSuspect()
		}
		w.putBack(batch)
		if closed || !w.sleep(retry) {
			return
		}
		retry = min(2*retry, retryMax)
	}
}

func (w *writer) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.closing:
		return true
	case <-w.quit:
		return false
	}
}

// next waits for something to do and takes it off the queue.
func (w *writer) next() (batch []*item, closed bool) {
	w.mu.Lock()
	empty, closed, broken := len(w.queue) == 0, w.closed, w.broken
	w.mu.Unlock()
	if empty && closed {
		return nil, true
	}
	if empty && broken != nil { // is it well again?
		return []*item{{act: func(t *tx) error { _, err := t.nextChange(); return err }}}, false
	}
	if empty {
		var tidy <-chan time.Time
		if w.tidy {
			t := time.NewTimer(max(0, tidyEvery-time.Since(w.tidied)))
			defer t.Stop()
			tidy = t.C
		}
		select {
		case <-w.wake:
		case <-w.closing:
		case <-tidy:
			w.checkpoint()
			return nil, false
		case <-w.quit:
			return nil, true
		}
	}
	if !closed {
		w.gather()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n, entries, bytes := 0, 0, int64(0)
	for n < len(w.queue) && (n == 0 || w.queue[n].act == nil && entries+len(w.queue[n].entries) <= batchMax && bytes < batchLen) {
		entries += len(w.queue[n].entries)
		bytes += w.queue[n].bytes
		if n++; w.queue[n-1].act != nil {
			break // an act has its own transaction: it is run once
		}
	}
	batch = append(batch, w.queue[:n]...)
	clear(w.queue[:n])
	w.queue = w.queue[n:]
	w.entries -= entries
	w.bytes -= bytes
	w.reckon()
	if len(w.queue) == 0 {
		w.queue, w.bound, w.most = nil, w.j.opts.QueueBound, w.j.opts.QueueBytes
	}
	return batch, w.closed
}

// gather lets entries that nobody waits for become more.
func (w *writer) gather() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		wait := w.patience()
		if wait <= 0 {
			return
		}
		t.Reset(wait)
		select {
		case <-w.wake:
		case <-t.C:
		case <-w.closing:
			return
		}
	}
}

// patience is how long the queue may become longer: not at all when somebody
// waits for an item, or when there are many.
func (w *writer) patience() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.haste.now || w.haste.soon >= batchMax || w.entries >= laterMost || w.closed {
		return 0
	}
	return time.Until(w.haste.due)
}

// reckon sets haste anew: the queue is another.
func (w *writer) reckon() {
	w.haste = haste{}
	for _, it := range w.queue {
		w.haste.add(it)
	}
}

// putBack puts entries that were not written before all others. Whoever waits
// is told; acts are not repeated.
func (w *writer) putBack(batch []*item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var back []*item
	for _, it := range append(batch, w.queue...) {
		if it.done != nil {
			it.done <- w.broken
			it.done = nil
		}
		if it.act == nil {
			back = append(back, it)
		}
	}
	w.queue, w.entries, w.bytes = back, 0, 0
	for _, it := range back {
		it.weigh() // what was written of it meanwhile is gone
		w.entries += len(it.entries)
		w.bytes += it.bytes
	}
	w.reckon()
}

func (w *writer) setBroken(err error) {
	w.mu.Lock()
	w.broken = err
	w.mu.Unlock()
}

func (w *writer) standing() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

// commit writes items in one transaction. When one of them is at fault each is
// tried alone, so that it harms no other. The error is of the disk.
func (w *writer) commit(batch []*item) error {
	err := w.transaction(func(t *tx) error {
		for _, it := range batch {
			if err := t.do(it); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err == nil:
		for _, it := range batch {
			it.finish(nil)
		}
		return nil
	case permanent(err) || busy(err):
		return err
	case len(batch) == 1:
		if batch[0].act == nil {
			w.j.log.Error("an entry of the journal was refused", "error", err)
		}
		batch[0].finish(err)
		return nil
	}
	for i := range batch {
		if err := w.commit(batch[i : i+1]); err != nil {
			for _, it := range batch[:i] {
				it.entries, it.act = nil, nil // written already
			}
			return err
		}
	}
	return nil
}

func (it *item) finish(err error) {
	if it.done != nil {
		it.done <- err
		it.done = nil
	}
}

func (w *writer) transaction(f func(*tx) error) (err error) {
	if _, err := w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	w.change = 0
	if err = f(&tx{w, w.j.opts.Now().UnixMicro()}); err == nil {
		_, err = w.exec(`COMMIT`)
	}
	if err != nil {
		_, _ = w.exec(`ROLLBACK`)
		clear(w.servers) // rows that were made may be gone
		return err
	}
	if w.commits++; w.commits%1000 == 0 || w.tidy && time.Since(w.tidied) > tidyEvery {
		w.checkpoint()
	}
	return nil
}

func (t *tx) do(it *item) error {
	if it.act != nil {
		return it.act(t)
	}
	for i := range it.entries {
		if err := t.entry(&it.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// nextChange is the number of this transaction for those who follow.
func (t *tx) nextChange() (int64, error) {
	if t.change != 0 {
		return t.change, nil
	}
	err := t.queryRow(`UPDATE counter SET n = n + 1 RETURNING n`, nil, &t.writer.change)
	return t.writer.change, err
}

// checkpoint moves the write-ahead log into the file and empties it: what was
// deleted must not stay there. While others read it tries again later.
func (w *writer) checkpoint() {
	w.tidied = time.Now()
	var blocked, pages, moved int
	_, _ = w.exec(`PRAGMA busy_timeout = 100`)
	err := w.queryRow(`PRAGMA wal_checkpoint(TRUNCATE)`, nil, &blocked, &pages, &moved)
	_, _ = w.exec(`PRAGMA busy_timeout = 5000`)
	w.tidy = w.tidy && (err != nil || blocked != 0)
}

// end gives back what is held here and closes the connection.
func (w *writer) end() {
	w.mu.Lock()
	w.closed = true
	for _, it := range w.queue {
		it.finish(ErrClosed)
	}
	w.queue = nil
	w.mu.Unlock()
	select {
	case <-w.quit: // no time left
	default:
		_ = w.transaction(func(t *tx) error {
			if _, err := t.exec(`DELETE FROM leases WHERE writer = ?`, w.j.me); err != nil {
				return err
			}
			if _, err := t.exec(`UPDATE intents SET detail = '' WHERE detail <> '' AND sender = ?`, w.j.me); err != nil {
				return err
			}
			_, err := t.exec(`UPDATE writers SET ended = ? WHERE id = ?`, t.now, w.j.me)
			return err
		})
		w.checkpoint()
	}
	for _, s := range w.stmt {
		_ = s.Close()
	}
	_ = w.conn.Close()
}

// act runs f in a transaction of the writer and waits for it.
func (j *Journal) act(ctx context.Context, f func(*tx) error) error {
	if err := j.w.standing(); err != nil {
		return err
	}
	it := &item{act: f, done: make(chan error, 1)}
	done := it.done
	if err := j.w.put(it); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if it.begun.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return <-done // its variables are in use; a transaction does not last
	}
}

// Write commits the entries, in order, before it returns; see Store. While the
// disk fails it returns the standing error at once; the entries stay queued and
// are written when the disk is well again.
func (j *Journal) Write(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := j.w.standing(); err != nil {
		j.Queue(entries...)
		return err
	}
	it := &item{entries: entries, done: make(chan error, 1)}
	done := it.done
	if err := j.w.put(it); err != nil {
		return err
	}
	slow := time.NewTimer(j.opts.Wait)
	defer slow.Stop()
	select {
	case err := <-done:
		return err
	case <-slow.C:
		return ErrSlow
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Queue hands entries to the writer; see Store.
func (j *Journal) Queue(entries ...Entry) {
	if len(entries) > 0 {
		it := &item{entries: entries, due: time.Now().Add(batchWait)}
		if it.later() {
			it.due = it.due.Add(laterWait - batchWait)
		}
		_ = j.w.put(it)
	}
}

// Flush waits until everything queued before is committed.
func (j *Journal) Flush(ctx context.Context) error {
	return j.act(ctx, func(*tx) error { return nil })
}

// Err is the standing error of the disk in words; nil while all is well.
func (j *Journal) Err() error { return j.w.standing() }

func (j *Journal) markSuspect() {
	if f, err := os.OpenFile(suspect(j.path), os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_ = f.Close()
	}
}
