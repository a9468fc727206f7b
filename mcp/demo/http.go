package demo

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mcptasks/taskmodel"
)

// Handler serves the server over HTTP: Streamable HTTP of its generation at
// every path but two, and beside it, for the two generations that have
// sessions, the HTTP+SSE transport of 2024-11-05 at /sse and /messages.
func (s *Server) Handler() http.Handler {
	if s.opts.Generation == taskmodel.GenExtension {
		return http.HandlerFunc(s.serveModern)
	}
	return http.HandlerFunc(s.legacy.serve)
}

const (
	maxBody   = 64 << 20
	keepAlive = 15 * time.Second // a comment on a stream that is silent for so long
)

// welcome checks what all HTTP requests have in common: false means that the
// request was answered.
func welcome(w http.ResponseWriter, r *http.Request) bool {
	// "Security": an Origin that is not ours is a page somewhere that talks to
	// a server on this machine.
	if o := r.Header.Get("Origin"); o != "" {
		u, err := url.Parse(o)
		if err != nil || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" && u.Host != r.Host {
			refuse(w, http.StatusForbidden, codeRequest, "the Origin "+o+" may not talk to this server")
			return false
		}
	}
	return true
}

// accepts reports whether the Accept header lists a media type.
func accepts(r *http.Request, want string) bool {
	major, _, _ := strings.Cut(want, "/")
	for _, line := range r.Header.Values("Accept") {
		for _, part := range strings.Split(line, ",") {
			t, _, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err == nil && (t == want || t == "*/*" || t == major+"/*") {
				return true
			}
		}
	}
	return false
}

// body reads the message of a POST; nil means that the request was answered.
func body(w http.ResponseWriter, r *http.Request) []byte {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, codeRequest, "Content-Type is not application/json")
		return nil
	}
	if !accepts(r, "application/json") || !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, codeRequest, "Accept lists application/json and text/event-stream")
		return nil
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, codeRequest, "the body could not be read: "+err.Error())
		return nil
	}
	if len(b) == 0 {
		refuse(w, http.StatusBadRequest, codeParse, "empty body")
		return nil
	}
	return b
}

// refuse answers with a status and a JSON-RPC error without an id.
func refuse(w http.ResponseWriter, status, code int, message string) {
	refuseWith(w, status, nil, &rpcError{Code: code, Message: message})
}

func refuseWith(w http.ResponseWriter, status int, id json.RawMessage, e *rpcError) {
	var b json.RawMessage
	if validID(id) {
		b = enc(errorMessage{"2.0", id, e})
	} else {
		b = enc(struct {
			V     string    `json:"jsonrpc"`
			Error *rpcError `json:"error"`
		}{"2.0", e})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// An sse writes one event stream.
type sse struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func openSSE(w http.ResponseWriter) sse {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := sse{w, http.NewResponseController(w)}
	_ = s.c.Flush()
	return s
}

// event writes one event; id and name are left out when "".
func (s sse) event(name, id string, data []byte) error {
	var b strings.Builder
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	for _, line := range strings.Split(string(data), "\n") {
		b.WriteString("data: " + line + "\n")
	}
	b.WriteString("\n")
	if _, err := io.WriteString(s.w, b.String()); err != nil {
		return err
	}
	return s.c.Flush()
}

func (s sse) comment(text string) error {
	if _, err := io.WriteString(s.w, ": "+text+"\n\n"); err != nil {
		return err
	}
	return s.c.Flush()
}
