package tap

import (
	"sync"
	"time"
)

// A side is who sent something.
type side int

const (
	agent  side = iota // the client: Claude Code, an IDE, a script
	server             // its server
)

// queueBound is how many bytes may wait to be read. Past it reading is
// dropped, traffic never.
const queueBound = 32 << 20

// A piece is something that passed: a run of bytes of a stream, or one whole
// message.
type piece struct {
	at    time.Time
	from  side
	whole bool   // b is one message
	own   bool   // ours: sent by the tap, or an answer to that
	gap   bool   // bytes are missing before b
	conv  *conv  // HTTP: the conversation; nil on stdio
	over  *route // HTTP: how the agent's request went
	b     []byte
	do    func() // in place of all that: called in order
}

// A queue lies between passing and reading. Putting in copies, never waits,
// and costs some microseconds.
type queue struct {
	mu     sync.Mutex
	items  []piece
	bytes  int
	gaps   [2]bool
	lost   int64
	wake   chan struct{}
	closed bool
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// pass puts a run of a stream in.
func (q *queue) pass(from side, b []byte) {
	if len(b) == 0 {
		return
	}
	q.put(piece{from: from, b: b}, false)
}

// put puts a piece in; its bytes are copied. must keeps it where others are
// dropped.
func (q *queue) put(p piece, must bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.bytes+len(p.b) > queueBound && !must {
		q.lost += int64(len(p.b))
		if !p.whole {
			q.gaps[p.from] = true
		}
		return
	}
	if !p.whole && p.do == nil && q.gaps[p.from] {
		p.gap, q.gaps[p.from] = true, false
	}
	if p.at.IsZero() {
		p.at = time.Now()
	}
	if p.b != nil {
		p.b = append([]byte(nil), p.b...)
	}
	q.bytes += len(p.b)
	q.items = append(q.items, p)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// do has f called by the reader, after all that is in the queue now.
func (q *queue) do(f func()) { q.put(piece{do: f}, true) }

// take gives all that waits; ok is false when nothing will come any more.
func (q *queue) take(old []piece) (items []piece, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, q.items = q.items, old[:0]
	q.bytes = 0
	return items, !q.closed || len(items) > 0
}

// close lets nothing more in. What is there is still read.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.wake)
	}
}
