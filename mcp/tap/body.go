package tap

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/url"
)

// A wholeBody passes an answer and keeps it to be read when it is whole.
type wholeBody struct {
	p        *proxy
	x        *exchange
	body     io.ReadCloser
	encoding string
	kept     []byte
	over     bool
}

func (w *wholeBody) Read(b []byte) (int, error) {
	n, err := w.body.Read(b)
	if len(w.kept)+n <= maxRead {
		w.kept = append(w.kept, b[:n]...)
	} else {
		w.over = true
	}
	if err == io.EOF {
		w.done()
	}
	return n, err
}

func (w *wholeBody) done() {
	b := w.kept
	w.kept = nil
	if w.over || len(b) == 0 {
		return
	}
	switch w.encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		if b, err = io.ReadAll(io.LimitReader(z, maxRead)); err != nil {
			return
		}
	default:
		w.p.t.o.Log.Info("an answer is not read: its encoding is not known", "encoding", w.encoding)
		return
	}
	w.p.t.q.put(piece{from: server, whole: true, conv: w.x.c, over: w.x.r, b: b}, false)
}

func (w *wholeBody) Close() error { return w.body.Close() }

// An eventBody passes a stream of events and has each of them read.
type eventBody struct {
	p     *proxy
	x     *exchange
	body  io.ReadCloser
	split eventSplitter
	gzip  bool // compressed: passed unread
	buf   []byte
	out   []byte // to be handed on
	err   error
	ended bool
}

func (e *eventBody) Read(b []byte) (int, error) {
	if e.gzip {
		return e.body.Read(b)
	}
	if !e.split.hold {
		n, err := e.body.Read(b)
		e.split.feed(b[:n])
		e.end(err)
		return n, err
	}
	for len(e.out) == 0 && e.err == nil {
		if e.buf == nil {
			e.buf = make([]byte, 32<<10)
		}
		var n int
		n, e.err = e.body.Read(e.buf)
		e.out = append(e.out[:0], e.split.feed(e.buf[:n])...)
		if e.err != nil {
			e.out = append(e.out, e.split.end()...)
		}
	}
	n := copy(b, e.out)
	e.out = e.out[n:]
	if len(e.out) > 0 {
		return n, nil
	}
	e.end(e.err)
	return n, e.err
}

// end notes that the stream has ended: that of HTTP+SSE was the session.
func (e *eventBody) end(err error) {
	if err == nil || e.ended {
		return
	}
	e.ended = true
	if e.x.c.legacy {
		t, name := e.p.t, e.x.c.name
		t.q.do(func() { t.rec.left(name, "the stream of its session has ended") })
	}
}

func (e *eventBody) Close() error {
	err := e.body.Close()
	e.end(io.ErrClosedPipe)
	return err
}

// look reads an event and gives what the agent gets of it.
func (e *eventBody) look(v streamEvent) []byte {
	p, x := e.p, e.x
	if v.name == "endpoint" && x.c.legacy {
		return e.endpoint(v)
	}
	if len(v.data) == 0 || v.name != "" && v.name != "message" {
		return v.bytes
	}
	out := v.data
	if e.split.hold {
		out = p.t.lookAt(v.data, x.c, x.r)
	}
	switch {
	case bytes.Equal(out, v.data):
		p.t.q.put(piece{from: server, whole: true, conv: x.c, over: x.r, b: v.data}, false)
		return v.bytes
	case out == nil && v.id != nil:
		return append(append([]byte(nil), v.id...), "\n\n"...) // where the agent would resume
	case out == nil:
		return nil
	}
	var b []byte
	if v.id != nil {
		b = append(append(b, v.id...), '\n')
	}
	b = append(b, "event: message\ndata: "...)
	return append(append(b, out...), "\n\n"...)
}

// endpoint takes the event by which HTTP+SSE says where messages go. An address
// that is not relative leads past us; then it is made ours.
func (e *eventBody) endpoint(v streamEvent) []byte {
	u, err := url.Parse(string(bytes.TrimSpace(v.data)))
	if err != nil {
		return v.bytes
	}
	stream, err := url.Parse(e.x.r.url)
	if err != nil {
		return v.bytes
	}
	to := stream.ResolveReference(u)
	if to.Host != e.p.base.Host || to.Scheme != e.p.base.Scheme {
		return v.bytes
	}
	e.p.convs.lead("endpoint "+to.RequestURI(), e.x.c)
	if u.Host == "" {
		return v.bytes
	}
	return []byte("event: endpoint\ndata: " + e.p.here + to.RequestURI() + "\n\n")
}
