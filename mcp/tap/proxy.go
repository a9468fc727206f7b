package tap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// A proxy stands in front of an HTTP server.
type proxy struct {
	t      *tap
	base   *url.URL // of the server
	here   string   // our origin
	client *http.Client
	trip   http.RoundTripper
	convs  *convs
}

// idleLimit is how long a connection to the server may lie idle. Servers close
// theirs after five seconds at the least (Node, uvicorn); a message that is sent
// at that moment is lost. Agents' own HTTP clients keep the same distance.
const idleLimit = 4 * time.Second

// HTTP listens at o.Listen and passes everything on to o.URL, streams as they
// come, header fields and sign-in untouched. It prints its address to o.Out and
// returns when ctx ends. Where nothing but loopback may reach it, it refuses
// requests that name another host, as a page in a browser would make them.
func HTTP(ctx context.Context, o Options) error {
	o = o.defaults()
	base, err := url.Parse(o.URL)
	if err != nil || base.Host == "" && base.Scheme != "unix" {
		return fmt.Errorf("%q is no URL of a server", o.URL)
	}
	dial := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	if base.Scheme == "unix" {
		socket := base.Path
		base = &url.URL{Scheme: "http", Host: "localhost", Path: "/"}
		if at, path, ok := strings.Cut(socket, ":"); ok {
			socket, base.Path = at, path
		}
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	if base.Scheme != "http" && base.Scheme != "https" {
		return fmt.Errorf("%q: a server's URL begins with http, https or unix", o.URL)
	}
	l, err := listen(o.Listen, o.Public)
	if err != nil {
		return err
	}
	transport := &http.Transport{DialContext: dial, ForceAttemptHTTP2: true, DisableCompression: true, Proxy: http.ProxyFromEnvironment,
		ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10, MaxIdleConns: 100, MaxIdleConnsPerHost: 100, IdleConnTimeout: idleLimit, TLSHandshakeTimeout: 15 * time.Second}
	return serve(ctx, o, base, l, transport)
}

// serve is HTTP on a listener, with a way to the server.
func serve(ctx context.Context, o Options, base *url.URL, l net.Listener, trip *http.Transport) error {
	defer l.Close()
	defer trip.CloseIdleConnections()
	p := &proxy{t: newTap(o), base: base, here: "http://" + l.Addr().String(), trip: trip, convs: newConvs()}
	p.client = &http.Client{Transport: p.trip, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p.t.link = p
	p.t.begin()

	srv := &http.Server{Handler: p.handler(), ReadHeaderTimeout: 30 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	if _, err := fmt.Fprintf(o.Out, "%s%s\n", p.here, base.EscapedPath()); err != nil {
		o.Log.Warn("printing the address", "err", err)
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	_ = srv.Close() // streams last as long as their clients: they are cut
	p.t.end("the tap was stopped")
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// listen opens the address, which is on loopback unless public.
func listen(address string, public bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: it is HOST:PORT, such as 127.0.0.1:7070", address)
	}
	if !public {
		ips, err := net.LookupIP(orElse(host, "0.0.0.0"))
		if err != nil {
			return nil, fmt.Errorf("--listen %s: %w", address, err)
		}
		for _, ip := range ips {
			if !ip.IsLoopback() {
				return nil, fmt.Errorf("--listen %s: whoever reaches that address reaches the server by it; listen on 127.0.0.1, or say --public", address)
			}
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return l, nil
}

func (p *proxy) handler() http.Handler {
	rp := &httputil.ReverseProxy{
		Transport: p.trip, FlushInterval: -1, BufferPool: new(buffers), ErrorLog: slog.NewLogLogger(p.t.o.Log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = p.base.Scheme, p.base.Host, p.base.Host
			if r.Out.URL.RawQuery == "" && r.Out.URL.Path == p.base.Path {
				r.Out.URL.RawQuery = p.base.RawQuery
			}
			if r.Out.Header.Get("Authorization") == "" && p.base.User != nil {
				r.Out.URL.User = p.base.User
			}
			for _, k := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v, ok := r.In.Header[k]; ok {
					r.Out.Header[k] = v // the agent's own
				}
			}
		},
		ModifyResponse: p.response,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				p.t.q.do(func() { p.t.rec.unreachable(err) })
			}
			if brokeOff(err) {
				panic(http.ErrAbortHandler) // and so do we
			}
			http.Error(w, "mcptasks tap: the server cannot be reached: "+err.Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.t.o.Public && !loopback(r.Host) {
			http.Error(w, "mcptasks tap: this address is for programs on this machine", http.StatusForbidden)
			return
		}
		r, err := p.request(r)
		if err != nil {
			http.Error(w, "mcptasks tap: "+err.Error(), http.StatusBadRequest)
			return
		}
		rp.ServeHTTP(w, r)
	})
}

// buffers are those by which bodies pass: most messages fit into one.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, _ := b.pool.Get().(*[]byte); p != nil {
		return *p
	}
	return make([]byte, 64<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// brokeOff reports whether a server ended the connection in place of an answer.
func brokeOff(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) && (op.Op == "read" || op.Op == "write")
}

// loopback reports whether a request names this machine.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// An exchange is what is known of a request while its answer comes.
type exchange struct {
	c     *conv
	r     *route
	init  bool // it is an initialize: the answer names the session
	post  bool
	apart bool
	agent string // where the conversation leads from, when there is no session
}

type exchangeKey struct{}

// request reads along what the agent sends.
func (p *proxy) request(r *http.Request) (*http.Request, error) {
	c, apart := p.convs.of(r)
	x := &exchange{c: c, apart: apart, post: r.Method == http.MethodPost}
	u := *r.URL
	u.Scheme, u.Host = p.base.Scheme, p.base.Host
	x.r = &route{ctx: r.Context(), url: u.String(), header: r.Header.Clone()}
	if r.Method == http.MethodGet && r.Header.Get(headerSession) == "" && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		// The stream of HTTP+SSE is a session; its first event says where
		// messages go.
		x.c = p.convs.fresh()
		x.c.legacy = true
	}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if !x.post || r.Body == nil || r.Body == http.NoBody || !isJSON(r.Header) {
		return r, nil
	}
	// Messages are small and of no use to a server before their end, so they
	// are read whole; a huge one passes unread.
	b, err := readAll(io.LimitReader(r.Body, maxRead+1), r.ContentLength)
	if err != nil {
		return nil, fmt.Errorf("reading the message: %w", err)
	}
	if len(b) > maxRead {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(b), r.Body), r.Body}
		return r, nil
	}
	// What it says is read when it has been passed on; but the answer to this one
	// names the session.
	if bytes.Contains(b, []byte(`"initialize"`)) {
		m, err := jsonrpc.Decode(bytes.TrimSpace(b), 0)
		if x.init = err == nil && m.Kind == jsonrpc.KindRequest && m.Method == "initialize"; x.init && apart {
			x.agent = "agent " + who(r)
			x.c = p.convs.fresh()
		}
	}
	if apart && !x.init {
		x.r.exchange = fmt.Sprintf("%p", x)
	}
	if a := p.t.answer; a != nil {
		was := len(b)
		if b = a.declare(b, x.c.name); len(b) != was {
			r.Header.Del("Accept-Encoding") // what comes has to be looked at
		}
	}
	x.c.went(x.r)
	p.t.q.put(piece{from: agent, whole: true, conv: x.c, over: x.r, b: b}, false)
	_ = r.Body.Close()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	// Where a connection turns out to be closed before anything was sent, it is
	// sent on another.
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", strconv.Itoa(len(b)))
	}
	return r, nil
}

// readAll is io.ReadAll for a body whose length is known, or -1.
func readAll(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	if length > 0 && length <= maxRead {
		b.Grow(int(length) + bytes.MinRead)
	}
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

func isJSON(h http.Header) bool {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

func isEvents(h http.Header) bool {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t == "text/event-stream"
}

// response reads along what the server answers.
func (p *proxy) response(res *http.Response) error {
	x, _ := res.Request.Context().Value(exchangeKey{}).(*exchange)
	if x == nil {
		return nil
	}
	if x.init && x.apart {
		if id := res.Header.Get(headerSession); id != "" {
			p.convs.lead("session "+id, x.c)
			r := &route{ctx: x.r.ctx, url: x.r.url, header: x.r.header.Clone(), exchange: x.r.exchange}
			r.header.Set(headerSession, id)
			x.c.went(r)
		} else {
			p.convs.lead(x.agent, x.c)
		}
	}
	if res.Request.Method == http.MethodDelete && res.StatusCode < 300 {
		name := x.c.name
		p.t.q.do(func() { p.t.rec.left(name, "the agent has ended its session") })
	}
	switch {
	case isEvents(res.Header):
		e := &eventBody{p: p, x: x, body: res.Body, gzip: encoded(res.Header)}
		e.split.hold = !e.gzip && (p.t.answer != nil || x.c.legacy)
		e.split.look = e.look
		res.Body = e
	case isJSON(res.Header) && x.post:
		return p.whole(res, x)
	}
	return nil
}

func encoded(h http.Header) bool {
	e := h.Get("Content-Encoding")
	return e != "" && e != "identity"
}

// whole reads along an answer that is one JSON text.
func (p *proxy) whole(res *http.Response, x *exchange) error {
	if p.t.answer != nil && p.t.answer.ours(x.c.name) && !encoded(res.Header) {
		b, err := io.ReadAll(io.LimitReader(res.Body, maxHeld))
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		out := p.t.answer.look(b, x.c, x.r)
		if bytes.Equal(out, b) {
			p.t.q.put(piece{from: server, whole: true, conv: x.c, over: x.r, b: b}, false)
		}
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(out)), int64(len(out))
		res.Header.Set("Content-Length", strconv.Itoa(len(out)))
		return nil
	}
	w := &wholeBody{p: p, x: x, body: res.Body, encoding: res.Header.Get("Content-Encoding")}
	if n := res.ContentLength; n > 0 && n <= maxRead {
		w.kept = make([]byte, 0, n)
	}
	res.Body = w
	return nil
}
