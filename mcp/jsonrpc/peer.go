package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed: the connection ended before the answer came. Errors of calls wrap
// it together with the connection's own error.
var ErrClosed = errors.New("the connection is closed")

// DefaultMaxMessage bounds one message, in bytes, where nothing else is said.
const DefaultMaxMessage = 64 << 20

// maxIncoming bounds the peer's unanswered requests; further ones are refused.
const maxIncoming = 4096

// A Handler hears what the peer says unasked. Its methods are called from the
// connection's goroutines and must not block.
type Handler interface {
	// Request is one request of the peer. r.Reply or r.Fail answers it, once,
	// later, from any goroutine. ctx ends with the connection or by r.Cancel.
	Request(ctx context.Context, r *Request)
	// Notification comes in the order of arrival on one stream.
	Notification(n Notification)
	// Noise is whatever is no message of use: kind says in a few words why.
	Noise(kind string, b []byte)
}

// A Notification is one notification of the peer.
type Notification struct {
	Method string
	Params json.RawMessage
	Stream string // the stream that it came on
	On     ID     // our request whose stream that is, "" when none
	Bytes  json.RawMessage
}

// Traffic is one message that passed, either way, for the wire log. Bytes are
// shared and must not be changed.
type Traffic struct {
	At      time.Time
	Out     bool
	Kind    Kind   // KindInvalid for noise
	Method  string // for a response: of the request that it answers
	ID      ID
	Bytes   json.RawMessage
	Body    json.RawMessage // a part of Bytes: params, or the result; nil where there is none, or it was not looked for
	Latency time.Duration   // responses: since the request passed
	Stream  string
	Fault   string // what is wrong with it, in words
}

// PeerOptions are all optional.
type PeerOptions struct {
	Log        *slog.Logger
	Traffic    func(Traffic) // must not block
	MaxDepth   int           // nesting; 0 is DefaultMaxDepth
	IDs        func() ID     // makes ids; nil counts up from 1
	MaxMessage int64         // bytes; 0 is DefaultMaxMessage
}

// A Call is one request of ours.
type Call struct {
	Method string
	Params any               // encoded as JSON; nil leaves params out
	Name   string            // Outgoing.Name
	Header map[string]string // Outgoing.Header
	ID     ID                // "" makes one
	OnSent func(ID)          // called once the transport has taken the message
	// Early is called, on Call's goroutine, with a result as soon as it has come:
	// while the wire log still looks at it. It is left out for errors, for calls
	// that are dropped, and where the answer is there as soon. What it is given
	// must not be changed.
	Early func(result json.RawMessage)
}

// A Peer speaks JSON-RPC 2.0 over one Conn, both ways. It is safe for
// concurrent use. It does no protocol of its own: no cancellation message, no
// timeout, no retry.
type Peer struct {
	conn   Conn
	h      Handler
	o      PeerOptions
	last   atomic.Int64
	taken  atomic.Uint32   // messages, for breathe
	ctx    context.Context // of incoming requests
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	calls    map[ID]*call
	incoming map[ID]*Request
	dropped  [64]ID // ring of ids whose answer nobody waits for any more
	ndropped int
	closed   error
}

type call struct {
	method string
	sent   time.Time
	answer chan answer          // holds one
	early  chan json.RawMessage // holds one; nil when nobody wants it
}

type answer struct {
	result json.RawMessage
	err    error
}

// NewPeer makes a peer; nothing moves before Start.
func NewPeer(c Conn, h Handler, o PeerOptions) *Peer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	p := &Peer{conn: c, h: h, o: o, done: make(chan struct{}), calls: map[ID]*call{}, incoming: map[ID]*Request{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Start begins to receive. ctx bounds the start alone; the connection lasts
// until Close or until the other side ends it.
func (p *Peer) Start(ctx context.Context) error {
	if err := p.conn.Start(ctx, sink{p}); err != nil {
		return err
	}
	go func() {
		<-p.conn.Done()
		p.end()
	}()
	return nil
}

// NewID makes an id that this peer has not used, for a Call whose id the caller
// must know beforehand.
func (p *Peer) NewID() ID {
	if p.o.IDs != nil {
		return p.o.IDs()
	}
	return IntID(p.last.Add(1))
}

// Call sends a request and waits for its answer. A JSON-RPC error comes back as
// *Error; the end of the connection as an error that wraps ErrClosed. When ctx
// ends first the call is dropped and the peer is told nothing: a caller that
// wants notifications/cancelled sends it.
func (p *Peer) Call(ctx context.Context, c Call) (json.RawMessage, error) {
	if c.ID == "" {
		c.ID = p.NewID()
	}
	b, err := encodeCall(KindRequest, c.ID, c.Method, c.Params)
	if err != nil {
		return nil, err
	}
	w := &call{method: c.Method, sent: time.Now(), answer: make(chan answer, 1)}
	if c.Early != nil {
		w.early = make(chan json.RawMessage, 1)
	}
	p.mu.Lock()
	switch {
	case p.closed != nil:
		err = p.closed
	case p.calls[c.ID] != nil:
		err = fmt.Errorf("%s: the id %s is in use", c.Method, c.ID)
	default:
		p.calls[c.ID] = w
	}
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	p.traffic(Traffic{At: w.sent, Out: true, Kind: KindRequest, Method: c.Method, ID: c.ID, Bytes: b})
	err = p.conn.Send(ctx, Outgoing{Bytes: b, Kind: KindRequest, ID: c.ID, Method: c.Method, Name: c.Name, Header: c.Header})
	if err != nil {
		// The answer may have come, or the connection may have ended, while
		// Send failed; what was said first counts.
		if a, ok := p.drop(c.ID, w); ok {
			return a.result, a.err
		}
		return nil, fmt.Errorf("send %s: %w", c.Method, err)
	}
	if c.OnSent != nil {
		c.OnSent(c.ID)
	}
	for {
		select {
		case result := <-w.early:
			c.Early(result)
			continue
		case a := <-w.answer:
			return a.result, a.err
		case <-ctx.Done():
		}
		if a, ok := p.drop(c.ID, w); ok {
			return a.result, a.err
		}
		return nil, fmt.Errorf("%s: no answer yet: %w", c.Method, context.Cause(ctx))
	}
}

// drop forgets a call; it returns the answer if there is one already.
func (p *Peer) drop(id ID, w *call) (answer, bool) {
	p.mu.Lock()
	if p.calls[id] == w {
		delete(p.calls, id)
		p.dropped[p.ndropped%len(p.dropped)] = id
		p.ndropped++
	}
	p.mu.Unlock()
	select {
	case a := <-w.answer:
		return a, true
	default:
		return answer{}, false
	}
}

// Notify sends a notification. header is Outgoing.Header and may be nil.
func (p *Peer) Notify(ctx context.Context, method string, params any, header map[string]string) error {
	b, err := encodeCall(KindNotification, "", method, params)
	if err != nil {
		return err
	}
	p.mu.Lock()
	err = p.closed
	p.mu.Unlock()
	if err != nil {
		return err
	}
	p.traffic(Traffic{At: time.Now(), Out: true, Kind: KindNotification, Method: method, Bytes: b})
	if err := p.conn.Send(ctx, Outgoing{Bytes: b, Kind: KindNotification, Method: method, Header: header}); err != nil {
		return fmt.Errorf("send %s: %w", method, err)
	}
	return nil
}

func encodeCall(k Kind, id ID, method string, params any) (json.RawMessage, error) {
	m := Message{Kind: k, ID: id, Method: method}
	if params != nil {
		raw, err := marshal(params)
		if err != nil {
			return nil, fmt.Errorf("encode the params of %s: %w", method, err)
		}
		if string(raw) != "null" {
			m.Params = raw
		}
	}
	return Encode(m)
}

// Incoming finds a request of the peer that is still unanswered.
func (p *Peer) Incoming(id ID) (*Request, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.incoming[id]
	return r, ok
}

// Close ends the connection within ctx and fails all calls that wait.
func (p *Peer) Close(ctx context.Context) error {
	err := p.conn.Close(ctx)
	select {
	case <-p.conn.Done():
		p.end()
	default:
	}
	return err
}

// Done is closed when the connection has ended and every call has failed.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Err says why the connection ended; nil while it lasts.
func (p *Peer) Err() error {
	select {
	case <-p.done:
		return p.conn.Err()
	default:
		return nil
	}
}

// end fails whatever waits, once. It returns when that is done, whoever did it:
// after Close, Err must not be nil because the watcher was there first.
func (p *Peer) end() {
	err := ErrClosed
	if cause := p.conn.Err(); cause != nil && !errors.Is(cause, ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrClosed, cause)
	} else if cause != nil {
		err = cause
	}
	p.mu.Lock()
	if p.closed != nil {
		p.mu.Unlock()
		<-p.done
		return
	}
	p.closed = err
	calls := p.calls
	p.calls, p.incoming = map[ID]*call{}, map[ID]*Request{}
	p.mu.Unlock()
	for _, w := range calls {
		w.answer <- answer{err: err}
	}
	p.cancel()
	close(p.done)
}

func (p *Peer) traffic(t Traffic) {
	if p.o.Traffic != nil {
		p.o.Traffic(t)
	}
}
