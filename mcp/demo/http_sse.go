package demo

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// The HTTP+SSE transport of 2024-11-05: one GET stream for all that the server
// says, which begins with where to POST; POSTs are answered with 202.

// oldOutlet puts everything on the one stream.
type oldOutlet struct{ st *stream }

func (o oldOutlet) deliver(b json.RawMessage, _ jsonrpc.Kind, _, _ string) { o.st.append(b, false) }
func (o oldOutlet) attached(string) bool                                   { return true }

func (h *legacyHTTP) serveOldStream(w http.ResponseWriter, r *http.Request) {
	h.srv.engine.mu.Lock()
	id := h.srv.engine.newID()
	h.srv.engine.mu.Unlock()
	st := &stream{name: "old", changed: make(chan struct{})}
	hs := &httpSession{id: id, over: make(chan struct{}), get: st, byReq: map[string]*stream{}, byID: map[string]*stream{}}
	hs.ses = newSession(h.srv, oldOutlet{st})
	h.mu.Lock()
	h.sessions[id] = hs
	h.order = append(h.order, id)
	h.mu.Unlock()
	defer h.remove(hs)
	out := openSSE(w)
	if out.event("endpoint", "", []byte("/messages?sessionId="+url.QueryEscape(id))) != nil {
		return
	}
	from := 0
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		st.mu.Lock()
		from = max(from, st.begin)
		batch, changed := st.events[from-st.begin:], st.changed
		st.mu.Unlock()
		for _, b := range batch {
			if out.event("message", "", b) != nil {
				return
			}
			from++
		}
		select {
		case <-changed:
		case <-tick.C:
			if out.comment("still here") != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-hs.over:
			return
		}
	}
}

func (h *legacyHTTP) serveOldPost(w http.ResponseWriter, r *http.Request) {
	hs := h.find(r.URL.Query().Get("sessionId"))
	if hs == nil {
		refuse(w, http.StatusNotFound, codeRequest, "Session not found")
		return
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, codeRequest, "the body could not be read")
		return
	}
	if _, _, bad := parse(b); bad != nil {
		refuse(w, http.StatusBadRequest, bad.Code, bad.Message)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	hs.ses.message(b, r.Header)
}
