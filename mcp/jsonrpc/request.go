package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Errors of Request.Reply and Request.Fail.
var (
	ErrReplied   = errors.New("this request has been answered")
	ErrCancelled = errors.New("the other side has cancelled this request")
)

// A Request is one request of the peer, open until it is answered or cancelled.
type Request struct {
	ID     ID
	Method string
	Params json.RawMessage
	Stream string // the stream that it came on
	On     ID     // our request whose stream that is, "" when none
	Bytes  json.RawMessage

	peer   *Peer
	came   time.Time
	before bool // see Reopen
	ctx    context.Context
	stop   context.CancelFunc

	mu      sync.Mutex // held while an answer is on its way
	replied bool
}

// Reply answers with result; nil is an empty object. A second answer is
// ErrReplied. When the transport does not take the answer, the request stays
// open and Reply may be called again.
func (r *Request) Reply(ctx context.Context, result any) error {
	m := Message{Kind: KindResponse, ID: r.ID}
	if result != nil {
		raw, err := marshal(result)
		if err != nil {
			return fmt.Errorf("encode the answer to %s: %w", r.Method, err)
		}
		m.Result = raw
	}
	return r.answer(ctx, m)
}

// Fail answers with an error, under the same rules as Reply.
func (r *Request) Fail(ctx context.Context, e *Error) error {
	if e == nil {
		e = &Error{Code: CodeInternal, Message: "internal error"}
	}
	return r.answer(ctx, Message{Kind: KindResponse, ID: r.ID, Error: e})
}

// Cancel ends the request without an answer, because the peer no longer wants
// one (notifications/cancelled). It says whether the request was still open.
func (r *Request) Cancel() bool {
	if !r.peer.forget(r) {
		return false
	}
	r.stop()
	return true
}

func (r *Request) answer(ctx context.Context, m Message) error {
	b, err := Encode(m)
	if err != nil {
		return fmt.Errorf("answer %s: %w", r.Method, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replied {
		return ErrReplied
	}
	if err := r.peer.open(r); err != nil {
		return fmt.Errorf("answer %s: %w", r.Method, err)
	}
	now := time.Now()
	r.peer.traffic(Traffic{At: now, Out: true, Kind: KindResponse, Method: r.Method, ID: r.ID, Bytes: b, Latency: now.Sub(r.came), Stream: r.Stream})
	err = r.peer.conn.Send(ctx, Outgoing{Bytes: b, Kind: KindResponse, ID: r.ID, InReplyTo: r.ID})
	if err != nil {
		return fmt.Errorf("answer %s: %w", r.Method, err)
	}
	r.replied = true
	r.peer.forget(r)
	r.stop()
	return nil
}

// Reopen makes a request of the peer's anew that it sent earlier, on another
// connection of the same session: a response is a message of its own and needs
// only the id. The handler is not told of it. When the peer
// sends a request under that id, this takes the reopened one's place, and an
// answer to the reopened one is ErrCancelled.
func (p *Peer) Reopen(id ID, method string, params json.RawMessage) *Request {
	r := &Request{ID: id, Method: method, Params: params, peer: p, came: time.Now(), before: true}
	r.ctx, r.stop = context.WithCancel(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil && p.incoming[id] == nil {
		p.incoming[id] = r
	} else {
		r.stop()
	}
	return r
}

// forget takes r out of the open requests and says whether it was there.
func (p *Peer) forget(r *Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.incoming[r.ID] != r {
		return false
	}
	delete(p.incoming, r.ID)
	return true
}

// open says why r cannot be answered, or nil.
func (p *Peer) open(r *Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return p.closed
	}
	if p.incoming[r.ID] != r {
		return ErrCancelled
	}
	return nil
}
