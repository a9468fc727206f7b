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
