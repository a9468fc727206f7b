package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// sink keeps the Conn's side of a Peer off its public surface.
type sink struct{ p *Peer }

func (s sink) Message(b json.RawMessage, stream string, on ID) {
	p := s.p
	if int64(len(b)) > p.o.MaxMessage {
		p.broken(b, stream, fmt.Sprintf("a message of %d bytes, more than the %d allowed", len(b), p.o.MaxMessage))
		return
	}
	p.breathe()
	if !IsBatch(b) {
		p.message(b, stream, on)
		return
	}
	parts, ok := Split(b)
	if !ok || len(parts) == 0 {
		p.broken(b, stream, "not JSON-RPC")
		return
	}
	for _, part := range parts {
		p.message(part, stream, on)
	}
}

// breathe lets others run now and then. While a server floods, its messages are
// read without a wait in between, and what a person does would have to wait for
// the slices of time of those who read them.
func (p *Peer) breathe() {
	if p.taken.Add(1)%breath == 0 {
		runtime.Gosched()
	}
}

// breath is after how many messages a peer lets others run: less than half a
// millisecond's work.
const breath = 16

// A Carrier is an error that came with a message all the same: the server
// answered the request, but not as its transport has it.
type Carrier interface {
	// Message is that answer as it came, and in words what is wrong with it; nil
	// when there was none.
	Message() (b []byte, fault string)
}

func (s sink) Failed(id ID, err error) {
	var c Carrier
	if errors.As(err, &c) {
		if b, fault := c.Message(); b != nil {
			s.p.carried(id, b, fault)
		}
	}
	if !s.p.finish(id, answer{err: err}) {
		s.p.o.Log.Debug("a request failed that nobody waits for", "id", string(id), "err", err)
	}
}

func (s sink) Noise(kind string, b []byte) { s.p.noise(b, "", kind) }

func (p *Peer) noise(b []byte, stream, kind string) {
	p.traffic(Traffic{At: time.Now(), Kind: KindInvalid, Bytes: b, Stream: stream, Fault: kind})
	p.h.Noise(kind, b)
}

// broken deals with what could not be decoded. An answer whose id can still be
// made out fails its call at once, so that nobody waits for ever.
func (p *Peer) broken(b []byte, stream, why string) {
	p.noise(b, stream, why)
	if kind, id := Peek(b); kind == KindResponse && id != "null" {
		p.finish(id, answer{err: fmt.Errorf("the server's answer cannot be read: %s", why)})
	}
}

func (p *Peer) message(b json.RawMessage, stream string, on ID) {
	m, err := Decode(b, p.o.MaxDepth)
	if err != nil {
		why := err.Error()
		if errors.Is(err, ErrShape) && m.Version == "" && m.ID == "" {
			why = ErrShape.Error() // a log line in JSON needs no explanation
		}
		p.broken(b, stream, why)
		if errors.Is(err, ErrShape) && m.Version == "2.0" && m.ID != "" && m.Method == "" {
			p.finish(m.ID, answer{err: fmt.Errorf("the server's answer holds neither a result nor an error")})
		}
		return
	}
	fault := ""
	if m.Version != "2.0" {
		if m.Kind != KindResponse || !p.waiting(m.ID) {
			p.noise(b, stream, `not JSON-RPC: no "jsonrpc":"2.0"`)
			return
		}
		fault = `no "jsonrpc":"2.0"`
	}
	switch m.Kind {
	case KindResponse:
		p.response(m, b, stream, on, fault)
	case KindRequest:
		p.request(m, b, stream, on)
	case KindNotification:
		p.traffic(Traffic{At: time.Now(), Kind: KindNotification, Method: m.Method, Bytes: b, Body: m.Params, Stream: stream})
		p.h.Notification(Notification{Method: m.Method, Params: m.Params, Stream: stream, On: on, Bytes: b})
	}
}

func (p *Peer) waiting(id ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id] != nil
}

func (p *Peer) response(m Message, b json.RawMessage, stream string, on ID, fault string) {
	now := time.Now()
	id := m.ID
	if id == "" || id == "null" {
		// JSON-RPC 2.0 section 5: the peer could not make out our id. Only a
		// stream of its own tells which request is meant.
		if id = on; id == "" {
			p.noise(b, stream, "an error that answers no request: "+m.Error.Error())
			return
		}
		fault = "the answer has no id"
	}
	p.mu.Lock()
	w := p.calls[id]
	delete(p.calls, id)
	late := w == nil && p.wasDropped(id)
	if w != nil {
		p.dropped[p.ndropped%len(p.dropped)] = id
		p.ndropped++
	}
	p.mu.Unlock()
	if w == nil {
		why := "an answer to no request"
		if late {
			why = "a late or repeated answer"
		}
		p.traffic(Traffic{At: now, Kind: KindResponse, ID: id, Bytes: b, Stream: stream, Fault: why})
		p.h.Noise(why, b)
		return
	}
	if w.early != nil && m.Error == nil {
		w.early <- m.Result
	}
	p.traffic(Traffic{At: now, Kind: KindResponse, Method: w.method, ID: id, Bytes: b, Body: m.Result, Latency: now.Sub(w.sent), Stream: stream, Fault: fault})
	a := answer{result: m.Result}
	if m.Error != nil {
		a = answer{err: m.Error}
	}
	w.answer <- a
}

// wasDropped needs p.mu.
func (p *Peer) wasDropped(id ID) bool {
	for _, d := range p.dropped {
		if d == id {
			return true
		}
	}
	return false
}

// carried shows an answer that came in an error.
func (p *Peer) carried(id ID, b []byte, fault string) {
	now := time.Now()
	t := Traffic{At: now, Kind: KindResponse, ID: id, Bytes: b, Fault: fault}
	p.mu.Lock()
	if w := p.calls[id]; w != nil {
		t.Method, t.Latency = w.method, now.Sub(w.sent)
	}
	p.mu.Unlock()
	p.traffic(t)
}

func (p *Peer) finish(id ID, a answer) bool {
	p.mu.Lock()
	w := p.calls[id]
	delete(p.calls, id)
	p.mu.Unlock()
	if w == nil {
		return false
	}
	w.answer <- a
	return true
}

func (p *Peer) request(m Message, b json.RawMessage, stream string, on ID) {
	r := &Request{ID: m.ID, Method: m.Method, Params: m.Params, Stream: stream, On: on, Bytes: b, peer: p, came: time.Now()}
	r.ctx, r.stop = context.WithCancel(p.ctx)
	p.mu.Lock()
	old := p.incoming[m.ID]
	if old != nil && old.before {
		old.stop()
		old = nil
	}
	closed, double, full := p.closed != nil, old != nil, len(p.incoming) >= maxIncoming
	if !closed && !double && !full {
		p.incoming[m.ID] = r
	}
	p.mu.Unlock()
	switch {
	case closed:
		r.stop()
	case double:
		r.stop()
		p.noise(b, stream, "a request whose id is in use by another")
	case full:
		r.stop()
		p.noise(b, stream, fmt.Sprintf("a request beyond the %d that may wait", maxIncoming))
	default:
		p.traffic(Traffic{At: r.came, Kind: KindRequest, Method: m.Method, ID: m.ID, Bytes: b, Body: m.Params, Stream: stream})
		p.h.Request(r.ctx, r)
	}
}
