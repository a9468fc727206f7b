package demo

import (
	"sync"
	"time"
)

// A Manual clock stands still until it is told to go on. Its Now and AfterFunc
// go into Options, for pictures and for tests that do not run under
// testing/synctest. It is safe for concurrent use.
type Manual struct {
	mu     sync.Mutex
	now    time.Time
	timers []*manualTimer
	made   int
}

type manualTimer struct {
	due  time.Time
	made int
	f    func()
}

// NewManual returns a clock that shows t.
func NewManual(t time.Time) *Manual { return &Manual{now: t} }

// Now is the time that the clock shows.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// AfterFunc calls f once the clock has gone on by d. stop prevents it and
// reports whether it did.
func (m *Manual) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	t := &manualTimer{due: m.now.Add(max(d, 0)), made: m.made, f: f}
	m.timers = append(m.timers, t)
	return func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.drop(t)
	}
}

// Advance moves the clock on by d and calls what falls due on the way, in
// order, in the caller's goroutine.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	end := m.now.Add(d)
	for {
		var next *manualTimer
		for _, t := range m.timers {
			if !t.due.After(end) && (next == nil || t.due.Before(next.due) || t.due.Equal(next.due) && t.made < next.made) {
				next = t
			}
		}
		if next == nil {
			break
		}
		m.drop(next)
		if next.due.After(m.now) {
			m.now = next.due
		}
		m.mu.Unlock()
		next.f()
		m.mu.Lock()
	}
	m.now = end
	m.mu.Unlock()
}

func (m *Manual) drop(t *manualTimer) bool {
	for i, have := range m.timers {
		if have == t {
			m.timers = append(m.timers[:i], m.timers[i+1:]...)
			return true
		}
	}
	return false
}
