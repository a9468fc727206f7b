package monitor

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// A Monitor watches the configured servers. New makes it, Run runs it; every
// method is safe for concurrent use and may be called before Run: what waits
// for a server then waits for Run too.
type Monitor struct {
	o       Options
	log     *slog.Logger
	now     func() time.Time
	connect connectFunc

	version atomic.Pointer[board.Version]
	dirty   chan struct{}
	paused  atomic.Bool
	mail    *mailbox
	hub     *hub
	wire    *wireRing
	logs    *logBook
	started atomic.Bool
	ending  chan struct{} // closed when the loop has ended
	done    chan struct{} // closed when the connections are closed too
	jobs    sync.WaitGroup

	// ctx is the run's; it is set before the loop starts and read only by what
	// the loop started.
	ctx context.Context

	// What follows is the loop's alone.
	board     *board.Board
	rng       *rand.Rand
	servers   []*server
	byName    map[string]*server // changed under names
	names     sync.RWMutex
	tapped    map[string]*server // by target
	tapper    *alarm
	alarms    alarms
	publisher *alarm
	saver     *alarm
	published time.Time
	hurried   time.Time
	changed   bool
	seq       int64
	outbox    []taskmodel.Event      // to be handed out with the next version
	unsaved   map[taskmodel.Key]bool // rows to be journalled by and by
	lanes     [][]note
	cmds      []func()
}

const (
	publishEvery = 50 * time.Millisecond // at most 20 versions a second
	closeGrace   = 5 * time.Second       // for the servers, at the end
)

// New makes a monitor of the servers. It connects to nothing before Run.
func New(o Options) *Monitor {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MaxTasksPerServer, 200_000)
	def(&o.WireEntries, 5_000)
	def(&o.PollCap, 8)
	if o.MaxResultBytes <= 0 {
		o.MaxResultBytes = 4 << 20
	}
	if o.WireBytes <= 0 {
		o.WireBytes = 16 << 20
	}
	if o.PollDefault <= 0 {
		o.PollDefault = 2 * time.Second
	}
	m := &Monitor{
		o: o, log: o.Log, now: o.Now, connect: dial,
		dirty: make(chan struct{}, 1), mail: newMailbox(), hub: newHub(),
		wire: newWireRing(o.WireEntries, o.WireBytes), logs: newLogBook(),
		ending: make(chan struct{}), done: make(chan struct{}), board: board.New(),
		rng:    rand.New(rand.NewPCG(o.Seed, o.Seed^0x9e3779b97f4a7c15)),
		byName: map[string]*server{}, tapped: map[string]*server{}, unsaved: map[taskmodel.Key]bool{},
	}
	m.publisher = &alarm{do: m.publish, index: -1}
	m.saver = &alarm{do: m.saveAll, index: -1}
	m.tapper = &alarm{do: m.lookForTaps, index: -1}
	for _, spec := range o.Servers {
		if m.byName[spec.Name] != nil {
			m.log.Warn("a server is configured twice; the first is used", "server", spec.Name)
			continue
		}
		s := newServer(m, spec)
		m.servers = append(m.servers, s)
		m.byName[spec.Name] = s
		m.board.PutServer(s.row)
	}
	m.firstTaps()
	m.published = m.now()
	m.version.Store(m.board.Publish(m.published))
	return m
}

// Board is the last published version: immutable, never nil.
func (m *Monitor) Board() *board.Version { return m.version.Load() }

// Dirty has one slot; it is filled when a version was published since it was
// last drained.
func (m *Monitor) Dirty() <-chan struct{} { return m.dirty }

// Run connects and watches until ctx ends. It returns when every connection is
// closed, every program that it started has ended, and none of its goroutines
// is left; nothing is answered or cancelled by it on the way. It can run once.
func (m *Monitor) Run(ctx context.Context) error {
	if !m.started.CompareAndSwap(false, true) {
		return sentence(ErrStopped, nil, "a monitor runs once")
	}
	// What runs for the monitor ends with it, not before the connections are
	// closed in order.
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.ctx = own
	for _, s := range m.servers {
		s.begin()
	}
	if m.finder() != nil {
		m.alarms.set(m.tapper, m.now().Add(tapsEvery))
	}
	m.loop(ctx)
	close(m.ending)
	m.shutdown(stop)
	stop()
	return nil
}

// loop is the goroutine that owns the board.
func (m *Monitor) loop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		more := m.turn()
		if ctx.Err() != nil {
			return
		}
		if more {
			runtime.Gosched() // a flood must not keep the keyboard waiting
			continue
		}
		wait := time.Hour
		if at, ok := m.alarms.next(); ok {
			// A millisecond at least: a clock that stands still must not spin.
			wait = max(at.Sub(m.now()), time.Millisecond)
		}
		timer.Reset(wait)
		select {
		case <-m.mail.wake:
		case <-timer.C:
		case <-ctx.Done():
			m.turn() // what was asked for before the end
			return
		}
	}
}

// turn does what is there to be done now; true when more is left.
func (m *Monitor) turn() bool {
	var more bool
	m.cmds, m.lanes, more = m.mail.take(m.cmds, m.lanes)
	for i, f := range m.cmds {
		f()
		m.cmds[i] = nil
	}
	for i, notes := range m.lanes {
		for j := range notes {
			n := &notes[j]
			if n.do != nil {
				n.do()
			} else {
				m.servers[i].heardPush(n)
			}
			*n = note{}
		}
	}
	for _, k := range m.board.WantPoll() {
		if s := m.byName[k.Server]; s != nil {
			s.pollNow(k)
		}
	}
	m.alarms.run(m.now())
	return more
}

// touch says that the board has changed; a version follows soon, and never
// more than 20 a second.
func (m *Monitor) touch() {
	if m.changed {
		return
	}
	m.changed = true
	at := m.published.Add(publishEvery)
	if now := m.now(); at.Before(now) {
		at = now
	}
	m.alarms.set(m.publisher, at)
}

// hurry is touch for what a person waits for: the version comes at once, also
// shortly after another, once in the time between two of them.
func (m *Monitor) hurry() {
	m.touch()
	if now := m.now(); now.Sub(m.hurried) >= publishEvery {
		m.hurried = now
		m.alarms.set(m.publisher, now)
	}
}

func (m *Monitor) publish() {
	for _, s := range m.servers {
		s.putRow()
	}
	m.changed = false
	m.published = m.now()
	m.version.Store(m.board.Publish(m.published))
	if len(m.outbox) > 0 {
		m.hub.emit(m.outbox)
		m.outbox = nil
	}
	select {
	case m.dirty <- struct{}{}:
	default:
	}
}

// spawn runs f beside the loop; Run waits for it. Called on the loop, or by
// what was spawned.
func (m *Monitor) spawn(f func()) {
	m.jobs.Add(1)
	go func() {
		defer m.jobs.Done()
		f()
	}()
}

// do runs f on the loop and waits for it.
func (m *Monitor) do(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	if !m.mail.post(func() { f(); close(ran) }) {
		return ErrStopped
	}
	select {
	case <-ran:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.done:
		select {
		case <-ran:
			return nil
		default:
			return ErrStopped
		}
	}
}

// post runs f on the loop, some time.
func (m *Monitor) post(f func()) { m.mail.post(f) }

// server gives a server by name, from any goroutine. What is there once stays.
func (m *Monitor) server(name string) (*server, error) {
	m.names.RLock()
	defer m.names.RUnlock()
	if s := m.byName[name]; s != nil {
		return s, nil
	}
	return nil, noServer(name)
}

// shutdown closes everything. The loop has ended: what it owned is this
// goroutine's now.
func (m *Monitor) shutdown(stop context.CancelFunc) {
	ctx, end := context.WithTimeout(context.Background(), closeGrace)
	defer end()
	var wg sync.WaitGroup
	for _, s := range m.servers {
		if l, ok := s.client.(leaver); ok {
			wg.Go(func() { l.Leave(ctx) })
		}
	}
	wg.Wait()
	m.lastWords()
	for _, s := range m.servers {
		wg.Add(1)
		last := s.farewell()
		go func() {
			defer wg.Done()
			last(ctx)
		}()
	}
	wg.Wait()
	m.saveAll()
	stop()
	m.mail.close()
	// Those who wait for the loop must not wait for ever.
	close(m.done)
	m.jobs.Wait()
	if m.changed {
		m.publish()
	}
	m.hub.close()
}

// A leaver is a client that says before its end what it does not wait for.
type leaver interface{ Leave(ctx context.Context) }

// lastWords takes what servers said unasked after the loop's last turn: a
// question that was handed out to us is written down for the next run.
func (m *Monitor) lastWords() {
	for more := true; more; {
		_, m.lanes, more = m.mail.take(nil, m.lanes)
		for i, notes := range m.lanes {
			for j := range notes {
				if n := &notes[j]; n.do != nil {
					n.do()
				} else {
					m.servers[i].heardPush(n)
				}
				notes[j] = note{}
			}
		}
	}
}

// jitter is d and up to a tenth more.
func (m *Monitor) jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return d + time.Duration(m.rng.Int64N(int64(d)/10+1))
}

// backoff is the n-th wait (from 0) that begins with first and doubles up to
// most, a fifth more or less.
func (m *Monitor) backoff(n int, first, most time.Duration) time.Duration {
	n = max(n, 0)
	d := most
	if n < 30 && first<<n < most && first<<n > 0 {
		d = first << n
	}
	return d*4/5 + time.Duration(m.rng.Int64N(int64(d)*2/5+1))
}
