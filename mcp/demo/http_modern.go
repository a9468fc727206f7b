package demo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// serveModern is Streamable HTTP of 2026-07-28: one POST for one request, no
// session, no GET. Sections cited are those of basic/transports/streamable-http.
func (s *Server) serveModern(w http.ResponseWriter, r *http.Request) {
	if !welcome(w, r) {
		return
	}
	if r.Method != http.MethodPost {
		// "Earlier Streamable HTTP Revisions".
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, codeRequest, "this server takes POST only; it speaks "+modernVersion)
		return
	}
	b := body(w, r)
	if b == nil {
		return
	}
	m, kind, bad := parse(b)
	switch {
	case bad != nil:
		refuseWith(w, http.StatusBadRequest, m.ID, bad)
		return
	case kind == jsonrpc.KindResponse:
		refuse(w, http.StatusBadRequest, codeRequest, "a client sends no responses in "+modernVersion)
		return
	case kind == jsonrpc.KindNotification:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if bad := s.checkHeaders(r.Header, m); bad != nil {
		refuseWith(w, http.StatusBadRequest, m.ID, bad)
		return
	}
	x := &exchange{wake: make(chan struct{}, 1)}
	ses := newSession(s, x)
	defer ses.close()
	ses.message(b, r.Header)
	x.serve(w, r, s, func() { ses.giveUp(m.ID) }, ses)
}

// checkHeaders compares the header with the body ("Server Validation").
func (s *Server) checkHeaders(h http.Header, m envelope) *rpcError {
	mismatch := func(format string, a ...any) *rpcError {
		return &rpcError{Code: codeHeader, Message: "Header mismatch: " + fmt.Sprintf(format, a...)}
	}
	var p struct {
		Name   *string                    `json:"name"`
		TaskID *string                    `json:"taskId"`
		Args   json.RawMessage            `json:"arguments"`
		Meta   map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(orEmpty(m.Params), &p)
	version := h.Get("MCP-Protocol-Version")
	if version == "" {
		return mismatch("MCP-Protocol-Version is missing; this server speaks %s", modernVersion)
	}
	var inBody string
	_ = json.Unmarshal(p.Meta[metaVersion], &inBody)
	if inBody != "" && inBody != version {
		return mismatch("MCP-Protocol-Version '%s' does not match body value '%s'", version, inBody)
	}
	if version != modernVersion {
		return unsupportedVersion(version)
	}
	if got := h.Get("Mcp-Method"); got != m.Method {
		return mismatch("Mcp-Method '%s' does not match body value '%s'", got, m.Method)
	}
	var want *string
	switch m.Method {
	case "tools/call", "prompts/get":
		want = p.Name
	case "tasks/get", "tasks/update", "tasks/cancel":
		// tasks, "Streamable HTTP: Routing Headers".
		want = p.TaskID
	}
	if want != nil {
		got, ok := headerValue(h, "Mcp-Name")
		if !ok || got != *want {
			return mismatch("Mcp-Name '%s' does not match body value '%s'", got, *want)
		}
	}
	if m.Method == "tools/call" && p.Name != nil {
		return s.checkParams(h, *p.Name, p.Args, mismatch)
	}
	return nil
}

// checkParams compares the Mcp-Param-* fields of a tool's annotated arguments,
// which in this server are top-level strings.
func (s *Server) checkParams(h http.Header, name string, args json.RawMessage, mismatch func(string, ...any) *rpcError) *rpcError {
	t := s.tool(name)
	if t == nil {
		return nil
	}
	var in struct {
		Properties map[string]struct {
			Header string `json:"x-mcp-header"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(t.input, &in)
	var values map[string]json.RawMessage
	_ = json.Unmarshal(orEmpty(args), &values)
	for prop, p := range in.Properties {
		if p.Header == "" {
			continue
		}
		field := "Mcp-Param-" + p.Header
		var want string
		v := values[prop]
		present := v != nil && string(v) != "null" && json.Unmarshal(v, &want) == nil
		got, ok := headerValue(h, field)
		_, sent := h[http.CanonicalHeaderKey(field)]
		if present && (!ok || got != want) || !present && sent {
			return mismatch("%s '%s' does not match body value '%s'", field, got, want)
		}
	}
	return nil
}

// headerValue reads a field that may be in the Base64 form ("Value Encoding").
func headerValue(h http.Header, name string) (string, bool) {
	vs := h.Values(name)
	if len(vs) != 1 {
		return "", false
	}
	v := vs[0]
	if inner, ok := strings.CutPrefix(v, "=?base64?"); ok {
		if inner, ok := strings.CutSuffix(inner, "?="); ok {
			b, err := base64.StdEncoding.DecodeString(inner)
			return string(b), err == nil
		}
	}
	for i := range len(v) {
		if v[i] < 0x20 && v[i] != '\t' || v[i] > 0x7e {
			return v, false
		}
	}
	return v, true
}

// An exchange is the outlet of one POST: its answer is one JSON object when
// nothing comes before it, else an event stream.
type exchange struct {
	mu    sync.Mutex
	queue []exchanged
	wake  chan struct{}
}

type exchanged struct {
	b    json.RawMessage
	last bool
}

func (x *exchange) deliver(b json.RawMessage, kind jsonrpc.Kind, _, _ string) {
	x.mu.Lock()
	x.queue = append(x.queue, exchanged{b, kind == jsonrpc.KindResponse})
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

func (x *exchange) attached(string) bool { return true }

func (x *exchange) take() []exchanged {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queue
	x.queue = nil
	return q
}

// serve writes what comes until the response was written or the client has
// gone, which cancels the request ("Cancellation").
func (x *exchange) serve(w http.ResponseWriter, r *http.Request, s *Server, giveUp func(), ses *session) {
	var out *sse
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		for _, m := range x.take() {
			if out == nil && m.last {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(statusOf(m.b))
				_, _ = w.Write(m.b)
				return
			}
			if out == nil {
				o := openSSE(w)
				out = &o
			}
			if out.event("message", "", m.b) != nil {
				giveUp()
				return
			}
			if m.last {
				return
			}
		}
		select {
		case <-x.wake:
		case <-tick.C:
			if out != nil && out.comment("still here") != nil {
				giveUp()
				return
			}
		case <-r.Context().Done():
			giveUp()
			return
		case <-s.done:
			if e, ok := ses.speak.(*extension); ok {
				e.goodbye()
			}
			for _, m := range x.take() {
				if out != nil {
					_ = out.event("message", "", m.b)
				}
			}
			if out == nil {
				refuse(w, http.StatusServiceUnavailable, codeInternal, "the server is closing")
			}
			return
		}
	}
}

// statusOf is the HTTP status of a response: an unknown method is 404
// ("Protocol Version Header"), what the request itself lacks is 400.
func statusOf(b json.RawMessage) int {
	var m struct {
		Error *rpcError `json:"error"`
	}
	_ = json.Unmarshal(b, &m)
	if m.Error == nil {
		return http.StatusOK
	}
	switch m.Error.Code {
	case codeMethod:
		return http.StatusNotFound
	case codeHeader, codeCapability, codeVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
