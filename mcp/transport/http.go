package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// Eras of HTTP.Dial.
const (
	eraModern = "modern" // Streamable HTTP of 2026-07-28
	eraLegacy = "legacy" // Streamable HTTP of 2025-03-26 to 2025-11-25
	eraSSE    = "sse"    // HTTP+SSE of 2024-11-05
)

// modernVersion is sent where a message brings no version of its own.
const modernVersion = "2026-07-28"

// HTTP speaks to a server at a URL: Streamable HTTP of 2025-11-25 and before
// ("legacy"), of 2026-07-28 ("modern"), and HTTP+SSE of 2024-11-05 ("sse").
type HTTP struct {
	URL    string      // http, https, or unix:///run/x.sock:/mcp
	Header http.Header // added to every request; goes to the server's own origin only
	// Secrets are values that are not to be shown where a server quotes them in
	// an error, beside the credentials of each request.
	Secrets []string
	// Client makes the requests, without following redirects; nil is one made
	// by NewClient from TLS. It must have no Timeout.
	Client *http.Client
	TLS    TLS
	Auth   Authorizer // nil: none
	// Signs is told of each value that the Authorizer gives a request, before the
	// request goes out, so that it can be kept out of what is shown; nil: nobody is.
	Signs func(value string)
	Log   *slog.Logger
	// MaxMessage bounds one message, in bytes; 0 is 64 MiB.
	MaxMessage int64
	// Session and Version take up an earlier session (legacy).
	Session string
	Version string
	// KeepSession says at Close whether the session must live on: then no
	// DELETE is sent. nil: it need not.
	KeepSession func() bool
}

// A SessionConn is what the connections of HTTP offer beside jsonrpc.Conn.
type SessionConn interface {
	jsonrpc.Conn
	// SessionID is the session that the server has given, "" when none.
	SessionID() string
	// SetVersion sets the MCP-Protocol-Version of later requests; a message's
	// own header overrides it.
	SetVersion(v string)
	// Push says how the optional GET stream fares: "" (not asked for), "open",
	// "waiting" (it broke and is tried again) or "none", with the reason.
	Push() (state, why string)
}

// Kind is "http".
func (h *HTTP) Kind() string { return "http" }

// Dial makes a connection for one era. Nothing is sent by it but in "sse",
// where it waits for the endpoint event within ctx.
func (h *HTTP) Dial(ctx context.Context, era string) (jsonrpc.Conn, error) {
	u, socket, err := ParseURL(h.URL)
	if err != nil {
		return nil, err
	}
	if era != eraModern && era != eraLegacy && era != eraSSE {
		return nil, fmt.Errorf("no HTTP transport is called %q", era)
	}
	c := &httpConn{conf: *h, url: u, era: era, log: h.Log, max: h.MaxMessage, done: make(chan struct{}), started: make(chan struct{})}
	if h.Client != nil {
		own := *h.Client
		own.CheckRedirect = noRedirect
		c.client = &own
	} else {
		if c.client, err = NewClient(h.TLS, socket); err != nil {
			return nil, err
		}
		c.ownClient = true
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.max <= 0 {
		c.max = jsonrpc.DefaultMaxMessage
	}
	if era == eraLegacy {
		c.session, c.version = h.Session, h.Version
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if era == eraSSE {
		if err := c.openSSE(ctx); err != nil {
			c.end(err)
			c.wg.Wait()
			return nil, err
		}
	}
	return c, nil
}

// httpConn is one connection of HTTP. The requests in flight are goroutines of
// their own; what they share is under mu.
type httpConn struct {
	conf      HTTP
	era       string
	client    *http.Client
	ownClient bool
	log       *slog.Logger
	max       int64

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	wg     sync.WaitGroup
	done   chan struct{}

	keep    atomic.Bool   // Close sends no DELETE
	started chan struct{} // closed by Start
	sink    jsonrpc.Sink  // set before started is closed

	mu       sync.Mutex
	url      *url.URL // moves on a permanent redirect
	endpoint *url.URL // for POSTs, in sse
	session  string
	version  string
	push     string
	pushWhy  string
	stopPush context.CancelFunc
	listens  chan struct{} // closed when the first try at the push stream has ended, one way or the other; nil: none
	err      error
}

// SessionID is the session that the server has given, "" when none.
func (c *httpConn) SessionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// KeepSession true makes Close leave the session alive on the server, whatever
// HTTP.KeepSession says.
func (c *httpConn) KeepSession(keep bool) { c.keep.Store(keep) }

// SetVersion sets the MCP-Protocol-Version of later requests.
func (c *httpConn) SetVersion(v string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = v
}

// Push says how the GET stream fares.
func (c *httpConn) Push() (state, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.push, c.pushWhy
}

func (c *httpConn) setPush(state, why string) {
	c.mu.Lock()
	changed := c.push != state || c.pushWhy != why
	c.push, c.pushWhy = state, why
	if c.listens != nil {
		close(c.listens)
		c.listens = nil
	}
	c.mu.Unlock()
	if changed {
		c.log.Debug("push stream", "state", state, "why", why)
	}
}

func (c *httpConn) Start(_ context.Context, sink jsonrpc.Sink) error {
	c.mu.Lock()
	if c.sink != nil {
		c.mu.Unlock()
		return errors.New("this connection was started before")
	}
	c.sink = sink
	close(c.started)
	resumed := c.era == eraLegacy && c.session != ""
	c.mu.Unlock()
	if resumed {
		// There will be no notifications/initialized after which to open it.
		c.startPush()
	}
	return nil
}

// Send hands a request to a goroutine of its own; a notification or a response
// it sends itself and returns the server's verdict.
func (c *httpConn) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	select {
	case <-c.started:
	default:
		return errors.New("this connection has not been started")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !c.spawn() {
		return jsonrpc.ErrClosed
	}
	if m.Kind == jsonrpc.KindRequest {
		go func() {
			defer c.wg.Done()
			c.request(ctx, m)
		}()
		return nil
	}
	defer c.wg.Done()
	rctx, stop := c.joined(ctx)
	defer stop()
	err := c.tell(rctx, m)
	if c.ctx.Err() != nil {
		return jsonrpc.ErrClosed
	}
	if err == nil && c.era == eraLegacy && m.Method == "notifications/initialized" {
		c.startPush()
	}
	return err
}

// spawn counts one more goroutine, unless the connection has ended.
func (c *httpConn) spawn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.wg.Add(1)
	return true
}

// joined is the connection's context, ended by ctx too. stop ends it; detach
// alone leaves it to the connection.
func (c *httpConn) joined(ctx context.Context) (context.Context, func()) {
	j, _, stop := c.detachable(ctx)
	return j, stop
}

func (c *httpConn) detachable(ctx context.Context) (j context.Context, detach, stop func()) {
	j, cancel := context.WithCancel(c.ctx)
	undo := context.AfterFunc(ctx, cancel)
	return j, func() { undo() }, func() { undo(); cancel() }
}

// Close ends every stream. In the legacy era it sends DELETE for the session,
// unless KeepSession says that it must live on (2025-11-25 basic/transports,
// Session Management); the answer is waited for two seconds at most.
func (c *httpConn) Close(ctx context.Context) error {
	c.mu.Lock()
	first := c.err == nil
	session := c.session
	c.mu.Unlock()
	if first && c.era == eraLegacy && session != "" && !c.keep.Load() && (c.conf.KeepSession == nil || !c.conf.KeepSession()) {
		dctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		res, err := c.do(dctx, request{method: http.MethodDelete})
		if err == nil {
			res.Body.Close()
		} else {
			c.log.Debug("the session could not be ended", "err", err)
		}
		cancel()
	}
	c.end(jsonrpc.ErrClosed)
	idle := make(chan struct{})
	go func() {
		c.wg.Wait()
		if c.ownClient {
			c.client.CloseIdleConnections()
		}
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end ends the connection for err, once.
func (c *httpConn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	c.cancel()
	close(c.done)
}

func (c *httpConn) Done() <-chan struct{} { return c.done }

func (c *httpConn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

var (
	_ SessionConn  = (*httpConn)(nil)
	_ jsonrpc.Conn = (*stdioConn)(nil)
)
