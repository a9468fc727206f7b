package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"mcptasks/mcp/jsonrpc"
)

const (
	maxRedirects = 5
	bodyJSON     = 64 << 10 // kept of a JSON error body
	bodyOther    = 200      // kept of any other
	// stall is how long a JSON body that has begun may stand still.
	stall = time.Minute
)

// A request is what do sends.
type request struct {
	method string
	accept string
	msg    *jsonrpc.Outgoing // POST
	lastID string            // Last-Event-ID
	stream bool              // a stream is wanted: no compression that a proxy might buffer
}

// do sends one HTTP request, signs it, follows redirects within the origin, and
// repeats it once when the Authorizer could do something about a 401 or 403. It
// returns an answer of status 2xx, or an error.
func (c *httpConn) do(ctx context.Context, r request) (*http.Response, error) {
	c.mu.Lock()
	target := c.url
	if c.era == eraSSE && r.method == http.MethodPost {
		target = c.endpoint
	}
	c.mu.Unlock()
	challenged := false
	for redirects := 0; ; {
		res, err := c.once(ctx, r, target)
		if err != nil {
			return nil, err
		}
		switch s := res.StatusCode; {
		case s >= 200 && s < 300:
			return res, nil
		case (s == http.StatusUnauthorized || s == http.StatusForbidden) && c.conf.Auth != nil && !challenged:
			challenged = true
			h := res.Header
			status := c.statusError(res)
			retry, err := c.conf.Auth.Challenge(ctx, s, h)
			if errors.Is(err, ErrTryLater) {
				return nil, err
			}
			if err != nil {
				return nil, fmt.Errorf("%w (%w)", authError{err}, status)
			}
			if !retry {
				return nil, status
			}
		case s >= 300 && s < 400 && s != http.StatusNotModified && redirects < maxRedirects:
			next, err := c.redirect(res, r, target)
			if err != nil {
				return nil, err
			}
			redirects++
			if s == http.StatusMovedPermanently || s == http.StatusPermanentRedirect {
				c.mu.Lock()
				if c.url == target {
					c.url = next
				}
				c.mu.Unlock()
			}
			target = next
		default:
			return nil, c.statusError(res)
		}
	}
}

// redirect gives the place to which a request moves: within the same origin
// alone, so that neither credentials nor the session go to another.
func (c *httpConn) redirect(res *http.Response, r request, from *url.URL) (*url.URL, error) {
	status := c.statusError(res)
	ref, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.Header.Get("Location") == "" {
		return nil, fmt.Errorf("a redirect leads nowhere: %w", status)
	}
	next := from.ResolveReference(ref)
	next.Fragment = ""
	if !sameOrigin(from, next) {
		return nil, fmt.Errorf("the server redirects to %s://%s, another origin, to which nothing is sent; if that is right, configure that URL: %w", next.Scheme, next.Host, status)
	}
	if res.StatusCode == http.StatusSeeOther && r.method != http.MethodGet {
		return nil, status
	}
	return next, nil
}

// once sends one HTTP request and returns whatever answer comes.
func (c *httpConn) once(ctx context.Context, r request, target *url.URL) (*http.Response, error) {
	var body io.Reader
	if r.msg != nil {
		body = bytes.NewReader(r.msg.Bytes)
	}
	var try attempt
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, try.trace()), r.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("User-Agent", "mcptasks")
	for k, vs := range c.conf.Header {
		req.Header[http.CanonicalHeaderKey(k)] = append([]string(nil), vs...)
	}
	if c.conf.Auth != nil {
		h, err := c.conf.Auth.Header(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, authError{err}
		}
		for k, vs := range h {
			req.Header[http.CanonicalHeaderKey(k)] = append([]string(nil), vs...)
			for _, v := range vs {
				if c.conf.Signs != nil {
					c.conf.Signs(v)
				}
			}
		}
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.stream {
		req.Header.Set("Accept-Encoding", "identity")
		req.Header.Set("Cache-Control", "no-store")
	}
	if r.lastID != "" {
		req.Header.Set("Last-Event-ID", r.lastID)
	}
	c.protocolHeaders(req.Header, r.msg)
	res, err := c.client.Do(req)
	if err != nil {
		if err = netError(err, target.Host); try.unsent() {
			err = &NotSentError{At: target.Host, Err: err}
		}
		return nil, err
	}
	return res, nil
}

// protocolHeaders sets what the era asks for.
func (c *httpConn) protocolHeaders(h http.Header, m *jsonrpc.Outgoing) {
	c.mu.Lock()
	session, version := c.session, c.version
	c.mu.Unlock()
	initialize := m != nil && m.Method == "initialize"
	switch c.era {
	case eraLegacy:
		if session != "" && !initialize {
			h.Set("Mcp-Session-Id", session)
		}
		if version != "" && !initialize {
			h.Set("Mcp-Protocol-Version", version)
		}
	case eraModern:
		h.Set("Mcp-Protocol-Version", modernVersion)
		if version != "" {
			h.Set("Mcp-Protocol-Version", version)
		}
		if m != nil && m.Method != "" {
			h.Set("Mcp-Method", EncodeHeader(m.Method))
			if m.Name != "" {
				h.Set("Mcp-Name", EncodeHeader(m.Name))
			}
		}
	}
	if m == nil {
		return
	}
	h.Set("Content-Type", "application/json")
	for k, v := range m.Header {
		if !headerSafe(v) {
			v = EncodeHeader(v)
		}
		h.Set(k, v)
	}
}

// statusError reads what an answer that is no success says, and closes it.
func (c *httpConn) statusError(res *http.Response) *StatusError {
	defer res.Body.Close()
	e := &StatusError{Status: res.StatusCode, Header: res.Header.Clone(), RetryAfter: retryAfter(res.Header, time.Now())}
	e.Header.Del("Set-Cookie")
	// The body of an error is small; a server that keeps it open is not waited for.
	timer := time.AfterFunc(5*time.Second, func() { res.Body.Close() })
	b, _ := io.ReadAll(io.LimitReader(res.Body, bodyJSON))
	timer.Stop()
	secrets := c.secrets(res.Request)
	b = masked(secrets, b)
	if at := e.Header.Get("Location"); at != "" {
		e.Header.Set("Location", string(masked(secrets, []byte(at))))
	}
	t := bytes.TrimSpace(b)
	if len(t) > 0 && t[0] == '{' {
		if m, err := jsonrpc.Decode(t, 0); err == nil && m.Error != nil {
			e.RPC = m.Error
		}
	} else {
		b = b[:min(len(b), bodyOther)]
	}
	e.Body = b
	return e
}

const acceptBoth = "application/json, text/event-stream"

// tell sends a notification or a response (2025-11-25 basic/transports, Sending
// Messages 4): any 2xx will do, but for a page, which is what a proxy or a login
// gives in the server's place.
func (c *httpConn) tell(ctx context.Context, m jsonrpc.Outgoing) error {
	res, err := c.do(ctx, request{method: http.MethodPost, accept: acceptBoth, msg: &m})
	if err != nil {
		c.noteStatus(err)
		return err
	}
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	finish(res.Body)
	if mediaType == "text/html" {
		return errors.New("the server answered with a page (text/html) and has not taken the message; is this the URL of an MCP server?")
	}
	return nil
}

// finish reads a little of a body that does not matter, so that its connection
// can be used again, and closes it.
func finish(body io.ReadCloser) {
	timer := time.AfterFunc(time.Second, func() { body.Close() })
	_, _ = io.CopyN(io.Discard, body, bodyJSON)
	timer.Stop()
	body.Close()
}

// noteStatus shows an HTTP error with its body to the wire log.
func (c *httpConn) noteStatus(err error) {
	var st *StatusError
	if errors.As(err, &st) {
		c.sink.Noise(fmt.Sprintf("HTTP %d %s", st.Status, http.StatusText(st.Status)), st.Body)
	}
}

// request sends one request and brings in its answer, or says why none comes.
func (c *httpConn) request(ctx context.Context, m jsonrpc.Outgoing) {
	rctx, detach, stop := c.detachable(ctx)
	defer stop()
	if m.Method == "initialize" {
		c.newSession("")
	}
	kind := "post"
	switch m.Method {
	case "subscriptions/listen":
		kind = "listen"
	case "tools/call", "tasks/result":
		c.ears(rctx)
	}
	s := &stream{c: c, name: kind + " " + m.ID.Text(), id: m.ID, detach: detach}
	if err := s.run(rctx, m); err != nil && ctx.Err() == nil && c.ctx.Err() == nil {
		var st *StatusError
		if !errors.As(err, &st) || st.RPC == nil { // a message is shown as one
			c.noteStatus(err)
		}
		c.sink.Failed(m.ID, err)
	}
}

// newSession takes what initialize brought; the push stream of an earlier one
// ends.
func (c *httpConn) newSession(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = id
	if id == "" && c.stopPush != nil {
		c.stopPush()
		c.stopPush = nil
	}
}

// A stream is one request of ours with all that comes in answer to it.
type stream struct {
	c        *httpConn
	name     string
	id       jsonrpc.ID
	detach   func() // the caller's context no longer matters
	answered bool
	lastID   string
	retry    time.Duration // the server's last word on it; negative: none
}

func (s *stream) run(ctx context.Context, m jsonrpc.Outgoing) error {
	c := s.c
	res, err := c.do(ctx, request{method: http.MethodPost, accept: acceptBoth, msg: &m, stream: m.Method == "subscriptions/listen"})
	if err != nil {
		return err
	}
	if id := res.Header.Get("Mcp-Session-Id"); m.Method == "initialize" && c.era == eraLegacy && id != "" {
		if !visible(id) {
			res.Body.Close()
			return errors.New("the server's session id holds characters that the protocol forbids")
		}
		c.newSession(id)
	}
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case mediaType == "text/event-stream":
		return s.events(ctx, res.Body)
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		return s.body(res, false)
	case c.era == eraSSE:
		finish(res.Body) // the answer comes on the stream
		return nil
	case mediaType == "" && res.StatusCode != http.StatusAccepted && res.StatusCode != http.StatusNoContent:
		return s.body(res, true)
	}
	finish(res.Body)
	if mediaType == "" || res.StatusCode == http.StatusAccepted {
		return fmt.Errorf("the server took %s (%d) but gives no answer to it", m.Method, res.StatusCode)
	}
	return fmt.Errorf("the server answered %s with %s instead of JSON; is this the URL of an MCP server?", m.Method, mediaType)
}

// body takes one JSON text as the answer.
func (s *stream) body(res *http.Response, guess bool) error {
	defer res.Body.Close()
	c := s.c
	b, err := readAll(res.Body, c.max)
	if err != nil {
		return err
	}
	b = bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF")))
	if len(b) == 0 || guess && b[0] != '{' && b[0] != '[' {
		if c.era == eraSSE {
			return nil
		}
		return errors.New("the server's answer holds no JSON")
	}
	s.message(b)
	if !s.answered && c.era != eraSSE {
		return errors.New("the server's answer is not one to this request")
	}
	return nil
}

// message hands on one JSON text and notes whether it answers the request.
func (s *stream) message(b []byte) {
	if s.answers(b) {
		s.answered = true
		// The caller may end its context as soon as it has the answer; that must
		// not cost the connection.
		s.detach()
	}
	s.c.sink.Message(b, s.name, s.id)
}

func (s *stream) answers(b []byte) bool {
	if parts, ok := jsonrpc.Split(b); ok {
		for _, p := range parts {
			if s.answers(p) {
				return true
			}
		}
		return false
	}
	m, err := jsonrpc.Decode(b, 0)
	if err != nil || m.Kind != jsonrpc.KindResponse {
		return false
	}
	// An error whose id the server could not make out belongs to this request.
	return m.ID == s.id || m.Version == "2.0" && (m.ID == "null" || m.ID == "")
}

// readAll reads a body up to limit. Once it has begun it must go on: a server
// that stops in the middle is given a minute.
func readAll(body io.ReadCloser, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	var stalled atomic.Bool
	timer := time.AfterFunc(time.Hour, func() { stalled.Store(true); body.Close() })
	timer.Stop()
	defer timer.Stop()
	chunk := make([]byte, 32<<10)
	for {
		n, err := body.Read(chunk)
		timer.Reset(stall)
		buf.Write(chunk[:n])
		if int64(buf.Len()) > limit {
			return nil, fmt.Errorf("the server's answer is longer than the %d bytes allowed", limit)
		}
		switch {
		case err == io.EOF:
			return buf.Bytes(), nil
		case err != nil && stalled.Load():
			return nil, fmt.Errorf("the server's answer stopped in the middle, after %d bytes", buf.Len())
		case err != nil:
			return nil, fmt.Errorf("the server's answer was cut off after %d bytes: %w", buf.Len(), err)
		}
	}
}
