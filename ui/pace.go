package ui

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// How often the renderer looks whether there is a new frame to write: lively
// while something happens, so that a key is not kept waiting for the next look;
// resting when nothing has for a while. Each look wakes a sleeping process, its
// scheduler and a thread or two, a fifth of a millisecond of processor time: at
// a steady 60 a second that was all that a program at rest cost.
const (
	lively  = time.Second / 120
	resting = time.Second / 4
	settled = 50 * time.Millisecond // without a message, until the renderer rests
)

// A pace sets how often the renderer looks. It is safe for concurrent use.
//
// Bubble Tea's renderer has a fixed rate and no handle for it. Its ticker is
// found by the field's name and type; where a version of the library has it
// otherwise, the rate is what it was given at the start, and nothing else
// changes (a test tells of it).
type pace struct {
	mu      sync.Mutex
	program *tea.Program
	ticker  *time.Ticker // nil: not looked for yet, or not found
	lively  bool
	last    time.Time // when something happened last
	rest    *time.Timer
}

func newPace(p *tea.Program) *pace { return &pace{program: p} }

// wake says that something happens: what a message changes shows at the next
// look. It is called on the program's own goroutine, since the ticker is made there.
func (p *pace) wake() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.program != nil {
		p.ticker, p.program = tickerOf(p.program), nil
	}
	if p.ticker == nil {
		return
	}
	p.last = time.Now()
	if p.lively {
		return
	}
	p.lively = true
	p.ticker.Reset(lively)
	if p.rest == nil {
		p.rest = time.AfterFunc(settled, p.settle)
	} else {
		p.rest.Reset(settled)
	}
}

// settle lets the renderer rest when nothing has happened for long enough.
func (p *pace) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.lively {
		return
	}
	if left := settled - time.Since(p.last); left > 0 {
		p.rest.Reset(left)
		return
	}
	p.lively = false
	p.ticker.Reset(resting)
}

// close leaves the ticker alone from now on.
func (p *pace) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ticker, p.program, p.lively = nil, nil, false
	if p.rest != nil {
		p.rest.Stop()
	}
}

// tickerOf is the ticker of a program that runs; nil when it cannot be found.
func tickerOf(p *tea.Program) *time.Ticker {
	f := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !f.IsValid() || f.Type() != reflect.TypeFor[*time.Ticker]() || f.IsNil() {
		return nil
	}
	return (*time.Ticker)(f.UnsafePointer())
}
