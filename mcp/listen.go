package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// This file keeps one subscription open for pushes (2026-07-28
// basic/patterns/subscriptions; tasks.md, "Task Status Notifications").

const metaSubscription = "io.modelcontextprotocol/subscriptionId"

// How the listener paces itself.
const (
	listenSettle   = 150 * time.Millisecond // a wanted set must rest this long before it is asked for
	listenSettleBy = time.Second            // and is asked for by then at the latest
	listenShrink   = 5 * time.Second        // dropping ids alone is no hurry
	listenAck      = 10 * time.Second       // how long an acknowledgement is waited for
	listenFirst    = time.Second            // backoff after a stream that ended
	listenMost     = time.Minute
	listenLong     = 30 * time.Second // a stream that lasted this long resets the backoff
)

// A listener holds the wanted set of task ids and the streams that serve it: at
// most one that is in force and one that is to take its place. The new one is
// acknowledged before the old one is ended, so that no push falls between.
//
// run owns the streams; the rest only changes what is under mu and wakes it.
type listener struct {
	s    *session
	wake chan struct{} // holds one
	stop chan struct{}
	gone chan struct{} // closed when run has returned; nil before it runs
	once sync.Once

	mu      sync.Mutex
	started bool
	closed  bool
	wanted  []string // sorted
	changed time.Time
	since   time.Time // when the present run of changes began
	why     string    // why there is no push here, "" while there may be
	current *stream
	next    *stream
	told    []string // what Handler.Pushing was last told; nil is none
	denied  bool     // refused, and Handler.Pushing was not told yet
	telling sync.Mutex
}

// A stream is one subscriptions/listen request.
type stream struct {
	id     jsonrpc.ID
	asked  []string
	acked  []string
	heard  bool // the acknowledgement came
	start  time.Time
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the request has ended
	err    error         // why; nil is a graceful end. Set before done is closed
}

func newListener(s *session) *listener {
	return &listener{s: s, wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// want replaces the wanted set.
func (l *listener) want(ids []string) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.why != "" || slices.Equal(ids, l.wanted) && l.started {
		return
	}
	if l.changed.IsZero() || now.Sub(l.changed) > listenSettle {
		l.since = now
	}
	l.wanted, l.changed = ids, now
	if !l.started {
		l.started = true
		l.gone = make(chan struct{})
		go l.run()
	}
	l.poke()
}

func (l *listener) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// refused says why there is no push here; "" while there may be.
func (l *listener) refused() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// acknowledged reports whether pushes for this task are acknowledged.
func (l *listener) acknowledged(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, st := range []*stream{l.current, l.next} {
		if st != nil {
			if _, ok := slices.BinarySearch(st.acked, id); ok {
				return true
			}
		}
	}
	return false
}

// run opens, replaces and reopens the subscription until the listener closes.
func (l *listener) run() {
	defer close(l.gone)
	backoff, notBefore := listenFirst, time.Time{}
	for {
		wait := l.step(time.Now(), &backoff, &notBefore)
		l.tell()
		var timer *time.Timer
		var due <-chan time.Time
		if wait >= 0 {
			timer = time.NewTimer(wait)
			due = timer.C
		}
		l.mu.Lock()
		cur, next := ended(l.current), ended(l.next)
		l.mu.Unlock()
		select {
		case <-l.wake:
		case <-due:
		case <-cur:
		case <-next:
		case <-l.stop:
			if timer != nil {
				timer.Stop()
			}
			return
		case <-l.s.peer.Done():
			if timer != nil {
				timer.Stop()
			}
			l.mu.Lock()
			l.current, l.next = nil, nil
			l.mu.Unlock()
			l.tell()
			return
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

func ended(st *stream) <-chan struct{} {
	if st == nil {
		return nil
	}
	return st.done
}

// step does what is due and says how long nothing else will be (<0: until
// something happens).
func (l *listener) step(now time.Time, backoff *time.Duration, notBefore *time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()

	// Streams that have ended.
	for _, slot := range []**stream{&l.next, &l.current} {
		st := *slot
		if st == nil {
			continue
		}
		select {
		case <-st.done:
		default:
			continue
		}
		*slot = nil
		if why := permanent(st.err); why != "" {
			l.why = why
			l.s.setInfo(func(i *Info) { i.Can.Push, i.Can.PushWhy = false, why })
			l.denied = true
			l.s.log.Info("no pushes", "server", l.s.server(), "why", why)
			continue
		}
		if now.Sub(st.start) >= listenLong {
			*backoff = listenFirst
		}
		d := *backoff/2 + rand.N(*backoff/2+1)
		*notBefore = now.Add(d)
		*backoff = min(*backoff*2, listenMost)
		l.s.log.Debug("a subscription ended", "server", l.s.server(), "err", st.err, "again in", d)
	}
	if l.why != "" {
		l.drop(&l.next, "no pushes here")
		l.drop(&l.current, "no pushes here")
		return -1
	}

	// A new stream takes its place when it is acknowledged, or when it has
	// been silent for so long that waiting helps nobody.
	if st := l.next; st != nil && (st.heard || now.Sub(st.start) >= listenAck) {
		l.drop(&l.current, "replaced by a newer subscription")
		l.current, l.next = st, nil
		*backoff = listenFirst
	}

	filter := l.filter()
	wants := len(l.wanted) > 0 || len(filter) > 0
	switch {
	case !wants:
		l.drop(&l.next, "nothing to listen for")
		if l.current == nil {
			return -1
		}
		if d := listenShrink - now.Sub(l.changed); d > 0 {
			return d
		}
		l.drop(&l.current, "nothing to listen for")
		return -1
	case l.next != nil:
		if slices.Equal(l.next.asked, l.wanted) {
			return listenAck - now.Sub(l.next.start)
		}
		// The set changed again before the acknowledgement: let it come first.
		return max(0, listenAck-now.Sub(l.next.start))
	case l.current != nil && slices.Equal(l.current.asked, l.wanted):
		return -1
	}
	if d := notBefore.Sub(now); d > 0 {
		return d
	}
	settle := listenSettle
	if l.current != nil && subset(l.wanted, l.current.asked) {
		settle = listenShrink
	}
	due := l.changed.Add(settle)
	if by := l.since.Add(listenSettleBy); settle == listenSettle && by.Before(due) {
		due = by
	}
	if d := due.Sub(now); d > 0 {
		return d
	}
	l.next = l.open(l.wanted, filter, now)
	return listenAck
}

// filter is what else is listened for, by the server's declared capabilities.
func (l *listener) filter() map[string]any {
	f := map[string]any{}
	if string(memberAt(l.s.getInfo().Capabilities, "tools", "listChanged")) == "true" {
		f["toolsListChanged"] = true
	}
	return f
}

// open sends one subscriptions/listen. Call with l.mu held.
func (l *listener) open(ids []string, filter map[string]any, now time.Time) *stream {
	ctx, cancel := context.WithCancelCause(context.Background())
	st := &stream{id: l.s.peer.NewID(), asked: ids, start: now, cancel: cancel, done: make(chan struct{})}
	if len(ids) > 0 {
		filter["taskIds"] = ids
	}
	params, header := l.s.modernParams(map[string]any{"notifications": filter}, true)
	go func() {
		_, err := l.s.send(ctx, jsonrpc.Call{Method: "subscriptions/listen", Params: params, Header: header, ID: st.id})
		cancel(nil)
		st.err = err
		close(st.done)
	}()
	return st
}

// drop ends a stream of ours: over HTTP the end of its request closes it, on
// stdio the server must be told (basic/patterns/subscriptions,
// "Cancellation"). Call with l.mu held.
func (l *listener) drop(slot **stream, reason string) {
	st := *slot
	if st == nil {
		return
	}
	*slot = nil
	st.cancel(fmt.Errorf("%s", reason))
	if l.s.transport != "http" {
		go l.s.cancelRequest(st.id, reason)
	}
}

// permanent says why listening again would be useless; "" when it would not.
func permanent(err error) string {
	switch codeOf(err) {
	case codeMethodNotFound:
		return "the server has no subscriptions (error -32601 on subscriptions/listen); polling goes on"
	case codeMissingCaps:
		return "the server does not push tasks to this client (error -32021 on subscriptions/listen); polling goes on"
	}
	switch statusOf(err) {
	case 404, 405, 406, 501:
		return fmt.Sprintf("the server has no subscriptions (HTTP %d on subscriptions/listen); polling goes on", statusOf(err))
	}
	return ""
}

// acknowledge takes notifications/subscriptions/acknowledged.
func (l *listener) acknowledge(n jsonrpc.Notification) {
	var ids []string
	elements(memberAt(n.Params, "notifications", "taskIds"), func(v json.RawMessage) bool {
		if isString(v) {
			ids = append(ids, text(v))
		}
		return true
	})
	slices.Sort(ids)
	l.mu.Lock()
	st := l.find(n)
	if st != nil {
		st.heard = true
		st.acked = slices.DeleteFunc(slices.Compact(ids), func(id string) bool {
			_, asked := slices.BinarySearch(st.asked, id)
			return !asked
		})
	}
	l.mu.Unlock()
	if st == nil {
		l.s.log.Debug("an acknowledgement of no subscription of ours", "server", l.s.server())
		return
	}
	l.poke()
}

// tornDown takes the server's notifications/cancelled for a subscription.
func (l *listener) tornDown(n jsonrpc.Notification) {
	id := jsonrpc.ID(member(n.Params, "requestId"))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, st := range []*stream{l.current, l.next} {
		if st != nil && sameID(st.id, id) {
			st.cancel(fmt.Errorf("the server ended the subscription: %s", stringAt(n.Params, "reason")))
		}
	}
}

// find is the stream that a notification belongs to: by the subscription id in
// its metadata, else by the stream that it came on. Call with l.mu held.
func (l *listener) find(n jsonrpc.Notification) *stream {
	id := jsonrpc.ID(memberAt(n.Params, "_meta", metaSubscription))
	if id == "" {
		id = n.On
	}
	for _, st := range []*stream{l.next, l.current} {
		if st != nil && (sameID(st.id, id) || id == "" && l.next == nil) {
			return st
		}
	}
	return nil
}

// sameID compares ids leniently: a server may echo 7 as "7".
func sameID(a, b jsonrpc.ID) bool { return a == b || a != "" && a.Text() == b.Text() }

// stray says what is wrong with how a push names its subscription, "" when it
// is right. Its content is taken either way.
func (l *listener) stray(n jsonrpc.Notification) string {
	if memberAt(n.Params, "_meta", metaSubscription) == nil {
		return "the notification names no subscription"
	}
	return ""
}

// tell reports the acknowledged set when it has changed.
func (l *listener) tell() {
	l.telling.Lock()
	defer l.telling.Unlock()
	l.mu.Lock()
	var ids []string
	if l.current != nil && l.current.heard || l.next != nil && l.next.heard {
		ids = []string{}
		for _, st := range []*stream{l.current, l.next} {
			if st != nil {
				ids = append(ids, st.acked...)
			}
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	same := (ids == nil) == (l.told == nil) && slices.Equal(ids, l.told) && !l.denied
	l.told, l.denied = ids, false
	l.mu.Unlock()
	if !same {
		l.s.handler().Pushing(slices.Clone(ids))
	}
}

func subset(a, b []string) bool {
	for _, v := range a {
		if _, ok := slices.BinarySearch(b, v); !ok {
			return false
		}
	}
	return true
}

// close ends the streams and waits, within ctx, until they are gone.
func (l *listener) close(ctx context.Context) {
	l.once.Do(func() { close(l.stop) })
	l.mu.Lock()
	l.closed = true
	open := []*stream{l.current, l.next}
	gone := l.gone
	l.drop(&l.next, "closing")
	l.drop(&l.current, "closing")
	l.mu.Unlock()
	if gone != nil {
		select {
		case <-gone:
		case <-ctx.Done():
			return
		}
	}
	for _, st := range open {
		if st == nil {
			continue
		}
		select {
		case <-st.done:
		case <-ctx.Done():
			return
		}
	}
	l.tell()
}
