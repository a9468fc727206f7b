package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// recorder is a Sink and a Handler that keeps everything.
type recorder struct {
	mu     sync.Mutex
	msgs   []string // "stream|req|text"
	noise  []string // "kind: text"
	failed map[jsonrpc.ID]error
	change chan struct{}
}

func newRecorder() *recorder {
	return &recorder{failed: map[jsonrpc.ID]error{}, change: make(chan struct{}, 1)}
}

func (r *recorder) poke() {
	select {
	case r.change <- struct{}{}:
	default:
	}
}

func (r *recorder) Message(b json.RawMessage, stream string, req jsonrpc.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.msgs = append(r.msgs, fmt.Sprintf("%s|%s|%s", stream, req, b))
	r.poke()
}

func (r *recorder) Failed(id jsonrpc.ID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[id] = err
	r.poke()
}

func (r *recorder) Noise(kind string, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(b) > 200 {
		b = b[:200]
	}
	r.noise = append(r.noise, kind+": "+string(b))
	r.poke()
}

// until waits for ok, which is called with the lock held.
func (r *recorder) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		yes := ok()
		r.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-r.change:
		case <-limit:
			r.mu.Lock()
			defer r.mu.Unlock()
			t.Fatalf("%s did not happen; messages %.500q, noise %.500q, failed %v", what, r.msgs, r.noise, r.failed)
		}
	}
}

// peerHandler records what a peer is told.
type peerHandler struct {
	mu    sync.Mutex
	noise []string
	notes chan jsonrpc.Notification
	reqs  chan *jsonrpc.Request
}

func newPeerHandler() *peerHandler {
	return &peerHandler{notes: make(chan jsonrpc.Notification, 1000), reqs: make(chan *jsonrpc.Request, 100)}
}

func (h *peerHandler) Request(_ context.Context, r *jsonrpc.Request) { h.reqs <- r }
func (h *peerHandler) Notification(n jsonrpc.Notification)           { h.notes <- n }
func (h *peerHandler) Noise(kind string, b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noise = append(h.noise, fmt.Sprintf("%s: %.80s", kind, b))
}

func ctxFor(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func mustCall(t *testing.T, p *jsonrpc.Peer, method string, params any) json.RawMessage {
	t.Helper()
	res, err := p.Call(ctxFor(t), jsonrpc.Call{Method: method, Params: params})
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return res
}
