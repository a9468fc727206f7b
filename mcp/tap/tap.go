package tap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// Options make a tap.
type Options struct {
	// Command is the server on stdio; Env and Dir are as in exec.Cmd.
	Command []string
	Env     []string
	Dir     string
	In      io.Reader // from the agent
	Out     io.Writer // to the agent
	Err     io.Writer // the server's stderr; an *os.File is handed down as it is
	// CloseOut closes Out when the server has ended and all is passed, before
	// the last is written down.
	CloseOut bool
	Signals  bool // take the process's signals and hand them on

	// URL is the server over HTTP, Listen where the agent is listened for.
	URL    string
	Listen string
	Public bool // Listen need not be loopback

	Name    string // the server's, in the list
	Target  string // canonical, secrets masked: what the journal goes by
	Passive bool   // nothing is ever sent
	Answer  bool   // see answer.go
	// Memory opens the journal. It is called beside the traffic; when it fails,
	// the tap passes and nothing is remembered. nil: no memory.
	Memory func(ctx context.Context) (Memory, error)
	Log    *slog.Logger
	Now    func() time.Time

	made func(*tap) // for tests
}

// A Memory is the journal with what belongs to it.
type Memory struct {
	Store Store
	Keep  func(tool string) bool // arguments and results may be kept; nil: all
	Close func(ctx context.Context) error
}

// A Store is what the tap needs of the journal; *journal.Journal has it.
type Store interface {
	journal.Store
	PutTap(ctx context.Context, t journal.Tap) error
}

func (o Options) defaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Err == nil {
		o.Err = io.Discard
	}
	return o
}

// A link sends something of ours to the server, in the agent's session.
type link interface {
	send(ctx context.Context, m jsonrpc.Outgoing, conv string) error
}

// line is the link on stdio.
type line struct{ up *joint }

func (l *line) send(_ context.Context, m jsonrpc.Outgoing, _ string) error {
	return l.up.send(append(append([]byte(nil), m.Bytes...), '\n'))
}

// A tap is one server that is tapped.
type tap struct {
	o       Options
	label   string // in the list
	session string // of the lease
	tag     string // begins every id of ours
	q       *queue
	link    link
	down    *joint // to the agent, on stdio
	stdio   bool
	rewrite *rewriter // --answer, stdio

	seq     atomic.Int64
	open    atomic.Int32 // requests of ours without an answer
	broken  atomic.Bool  // the agent does not read any more
	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan reply

	// The reader's alone.
	obs    *mcp.Observer
	rec    *recorder
	split  [2]splitter
	answer *answering

	ctx  context.Context // of what goes on beside the traffic
	stop context.CancelFunc
	jobs sync.WaitGroup
	read chan struct{} // closed when the reader has ended
}

func newTap(o Options) *tap {
	var b [8]byte
	_, _ = rand.Read(b[:])
	t := &tap{
		o: o, label: "tap: " + o.Name, session: fmt.Sprintf("tap:%d-%s", os.Getpid(), hex.EncodeToString(b[:4])),
		tag: "mcptasks-tap:" + hex.EncodeToString(b[:]) + "-", q: newQueue(), stdio: o.URL == "",
		waiting: map[jsonrpc.ID]chan reply{}, read: make(chan struct{}),
	}
	t.obs = mcp.NewObserver(t.label, t.session)
	t.rec = newRecorder(t)
	if o.Answer && !o.Passive {
		t.answer = newAnswering(t)
		if t.stdio {
			t.rewrite = &rewriter{a: t.answer}
		}
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	if o.made != nil {
		o.made(t)
	}
	return t
}

// begin starts what goes on beside the traffic.
func (t *tap) begin() {
	go func() {
		defer close(t.read)
		t.reading()
	}()
	t.jobs.Go(t.remember)
}

// end reads what is left, says what became of the rows, and closes the journal.
// It takes a moment at most.
func (t *tap) end(why string) {
	t.q.do(func() {
		for i := range t.split {
			from := side(i)
			t.split[i].end(func(l []byte) { t.text(&piece{from: from}, l) })
		}
		t.rec.over(why)
	})
	t.q.close()
	limit := time.NewTimer(2 * farewell)
	defer limit.Stop()
	select {
	case <-t.read:
	case <-limit.C:
		t.o.Log.Warn("the end of the session was not read in time")
		t.stop() // what goes on beside the traffic ends when all is read
		return
	}
	t.stop()
	done := make(chan struct{})
	go func() { t.jobs.Wait(); close(done) }()
	select {
	case <-done:
	case <-limit.C:
		t.o.Log.Warn("the end of the session was not written down in time")
	}
}

// breakOut notes that the agent reads no more.
func (t *tap) breakOut()       { t.broken.Store(true) }
func (t *tap) outBroken() bool { return t.broken.Load() }

// memory is the journal, once it is open.
func (t *tap) remember() {
	if t.o.Memory == nil {
		return
	}
	var m Memory
	for {
		var err error
		if m, err = t.o.Memory(t.ctx); err == nil {
			break
		}
		t.o.Log.Warn("nothing is remembered", "err", err)
		select {
		case <-time.After(10 * time.Second):
		case <-t.ctx.Done():
			return
		}
	}
	if t.ask(t.ctx, func() { t.rec.opened(m) }) != nil {
		<-t.read // a short session: all was read before the journal was open
		t.rec.opened(m)
	}
	t.hold(m)
	// What was read last is queued; it gets a moment to be written.
	<-t.read
	ctx, stop := context.WithTimeout(context.Background(), farewell)
	defer stop()
	if err := m.Store.PutTap(ctx, t.rec.state(t.rec.ended)); err != nil {
		t.o.Log.Debug("saying that the tap has ended", "err", err)
	}
	if m.Close != nil {
		if err := m.Close(ctx); err != nil {
			t.o.Log.Warn("closing the journal", "err", err)
		}
	}
}

const (
	leaseEvery  = time.Second
	intentEvery = 200 * time.Millisecond
)

// hold keeps the lease, says what the tap is, and takes what others ask for,
// until the end.
func (t *tap) hold(m Memory) {
	tick := time.NewTicker(intentEvery)
	defer tick.Stop()
	var renewed time.Time
	said := ""
	for {
		now := t.o.Now()
		if now.Sub(renewed) >= leaseEvery {
			ctx, stop := context.WithTimeout(t.ctx, leaseEvery)
			if _, ok, err := m.Store.Acquire(ctx, t.o.Target, t.session); err != nil || !ok {
				t.o.Log.Debug("holding the lease", "err", err)
			} else {
				renewed = now
			}
			var tp journal.Tap
			if t.ask(ctx, func() { t.rec.tick(); tp = t.rec.state(time.Time{}) }) == nil {
				if words := fmt.Sprint(tp); words != said {
					if err := m.Store.PutTap(ctx, tp); err == nil {
						said = words
					}
				}
			}
			stop()
		}
		ctx, stop := context.WithTimeout(t.ctx, leaseEvery)
		intents, err := m.Store.ClaimIntents(ctx, t.o.Target, t.session)
		stop()
		if err != nil && t.ctx.Err() == nil {
			t.o.Log.Debug("taking what others ask for", "err", err)
		}
		for _, in := range intents {
			t.jobs.Go(func() { t.carryOut(m.Store, in) })
		}
		select {
		case <-tick.C:
		case <-t.ctx.Done():
			return
		}
	}
}

// ask has f run by the reader and waits for it.
func (t *tap) ask(ctx context.Context, f func()) error {
	done := make(chan struct{})
	t.q.do(func() { f(); close(done) })
	select {
	case <-done:
		return nil
	case <-t.read:
		select {
		case <-done:
			return nil
		default:
			return errEnded
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// key is the key of a task here.
func (t *tap) key(id string) taskmodel.Key {
	return taskmodel.Key{Server: t.label, ID: id, Role: taskmodel.Requestor}
}
