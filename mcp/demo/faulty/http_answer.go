package faulty

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

var errGone = errors.New("the connection was ended by the script")

// An answer stands between the demo server's handler and the client: it takes
// the messages out of what the handler writes, one JSON object or the events
// of a stream, and sends them through the rules.
type answer struct {
	s      *Server
	quit   <-chan struct{} // of the server as it was when the request came
	real   http.ResponseWriter
	r      *http.Request
	link   *link
	header http.Header
	code   int
	mode   *rule         // gzip, slowheaders or halfclose, of the whole answer
	slow   time.Duration // between two bytes, of the whole answer

	body   bytes.Buffer // what of the answer has not been handed on
	stream bool
	late   sync.WaitGroup

	mu   sync.Mutex // one event at a time
	gone bool
	hold bool // an answer was lost: the stream stays open
}

func (x *answer) Header() http.Header { return x.header }

func (x *answer) WriteHeader(code int) {
	x.code = code
	x.s.keep(x.header.Get(sessionHeader), x.link)
	if strings.HasPrefix(x.header.Get("Content-Type"), "text/event-stream") {
		x.stream = true
		x.commit()
	}
}

// commit sends the header.
func (x *answer) commit() {
	for name, values := range x.header {
		x.real.Header()[name] = values
	}
	x.real.WriteHeader(x.code)
}

func (x *answer) Write(b []byte) (int, error) {
	x.mu.Lock()
	gone := x.gone
	x.mu.Unlock()
	if gone {
		return 0, errGone
	}
	x.body.Write(b)
	if x.stream {
		for {
			event, ok := cutEvent(&x.body)
			if !ok {
				break
			}
			x.event(event)
		}
	}
	return len(b), nil
}

// FlushError is what http.ResponseController looks for.
func (x *answer) FlushError() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.gone {
		return errGone
	}
	if x.stream {
		return http.NewResponseController(x.real).Flush()
	}
	return nil
}

// cutEvent takes one whole event out of a buffer.
func cutEvent(b *bytes.Buffer) (string, bool) {
	i := bytes.Index(b.Bytes(), []byte("\n\n"))
	if i < 0 {
		return "", false
	}
	return string(b.Next(i + 2)), true
}

// event sends one event of a stream through the rules.
func (x *answer) event(e string) {
	var head, data []string
	for _, l := range strings.Split(strings.TrimSuffix(e, "\n\n"), "\n") {
		if d, ok := strings.CutPrefix(l, "data: "); ok {
			data = append(data, d)
		} else {
			head = append(head, l)
		}
	}
	body := strings.Join(data, "\n")
	if !strings.HasPrefix(body, "{") {
		x.put([]byte(e), x.slow) // a comment, a priming event, an endpoint
		return
	}
	for _, a := range x.link.outgoing([]byte(body)) {
		switch a.do {
		case "deliver":
			var b strings.Builder
			for _, l := range head {
				b.WriteString(l + "\n")
			}
			for _, l := range strings.Split(string(a.bytes), "\n") {
				b.WriteString("data: " + l + "\n")
			}
			b.WriteString("\n")
			event, slow := []byte(b.String()), max(a.slow, x.slow)
			if a.after <= 0 {
				if a.once.take() {
					x.put(event, slow)
				}
				continue
			}
			x.late.Go(func() {
				if x.sleep(a.after) && a.once.take() {
					x.put(event, slow)
				}
			})
		case "never":
			x.hold = x.hold || a.reply
		default:
			x.perform(a)
		}
	}
}

// put writes to a stream that is open.
func (x *answer) put(b []byte, slow time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.gone {
		return
	}
	c := http.NewResponseController(x.real)
	if slow <= 0 {
		_, _ = x.real.Write(b)
		_ = c.Flush()
		return
	}
	for i := range b {
		if _, err := x.real.Write(b[i : i+1]); err != nil || c.Flush() != nil || !x.sleep(slow) {
			return
		}
	}
}

// finish is called when the handler is done.
func (x *answer) finish() {
	x.late.Wait()
	x.mu.Lock()
	gone := x.gone
	x.mu.Unlock()
	switch {
	case gone:
	case x.stream:
		if x.hold {
			await(x.r, x.quit)
		}
	case x.body.Len() == 0 || !strings.HasPrefix(x.header.Get("Content-Type"), "application/json"):
		x.commit()
		_, _ = x.real.Write(x.body.Bytes())
	default:
		x.object()
	}
}

// object sends an answer that is one JSON object through the rules.
func (x *answer) object() {
	x.s.keep(x.header.Get(sessionHeader), x.link)
	var deliver []act
	lost := false
	for _, a := range x.link.outgoing(x.body.Bytes()) {
		switch a.do {
		case "deliver":
			deliver = append(deliver, a)
		case "never":
			lost = true
		default:
			if x.perform(a) {
				return
			}
		}
	}
	switch {
	case len(deliver) == 0:
		if lost {
			await(x.r, x.quit)
		}
	case len(deliver) > 1:
		// Several messages in answer to one POST can only be a stream.
		x.header.Set("Content-Type", "text/event-stream")
		x.commit()
		for _, a := range deliver {
			if x.sleep(a.after) && a.once.take() {
				x.put(fmt.Appendf(nil, "event: message\ndata: %s\n\n", bytes.ReplaceAll(a.bytes, []byte("\n"), []byte("\ndata: "))), max(a.slow, x.slow))
			}
		}
	default:
		a := deliver[0]
		if !x.sleep(a.after) {
			return
		}
		if !a.once.take() {
			await(x.r, x.quit) // it went out beside another
			return
		}
		x.whole(a.bytes, max(a.slow, x.slow))
	}
}

// whole writes one JSON answer in the mode that was asked for.
func (x *answer) whole(b []byte, slow time.Duration) {
	switch {
	case x.mode == nil:
		x.commit()
		x.put(b, slow)
	case x.mode.action == "gzip":
		var z bytes.Buffer
		g := gzip.NewWriter(&z)
		_, _ = g.Write(b)
		_ = g.Close()
		x.header.Set("Content-Encoding", "gzip")
		x.commit()
		_, _ = x.real.Write(z.Bytes()[:z.Len()/2])
	case x.mode.action == "halfclose":
		x.half(b)
	case x.mode.action == "slowheaders":
		x.slowHeaders(b, x.mode.wait)
	}
}

// hijack takes the connection; nil where that cannot be done, and then the
// handler is aborted.
func (x *answer) hijack() (net.Conn, *bytes.Buffer) {
	x.mu.Lock()
	x.gone = true
	x.mu.Unlock()
	c, rw, err := http.NewResponseController(x.real).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = rw.Flush()
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", x.code, http.StatusText(x.code))
	_ = x.header.Write(&head)
	return c, &head
}

// abort ends the connection without an answer, by RST if it can.
func (x *answer) abort(reset bool) {
	c, _ := x.hijack()
	if t, ok := c.(*net.TCPConn); ok && reset {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// half sends half of an answer and then FIN, and goes on reading for a while.
func (x *answer) half(b []byte) {
	committed := x.stream
	c, head := x.hijack()
	defer func() { _ = c.Close() }()
	if !committed {
		fmt.Fprintf(head, "Content-Length: %d\r\n\r\n", max(len(b), 2))
		head.Write(b[:len(b)/2])
		_, _ = c.Write(head.Bytes())
	}
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		_ = t.CloseWrite()
	} else {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.Copy(io.Discard, c)
}

// slowHeaders sends the header byte by byte over d, then the body.
func (x *answer) slowHeaders(b []byte, d time.Duration) {
	c, head := x.hijack()
	defer func() { _ = c.Close() }()
	fmt.Fprintf(head, "Content-Length: %d\r\nConnection: close\r\n\r\n", len(b))
	pause := d / time.Duration(head.Len())
	for _, one := range head.Bytes() {
		if _, err := c.Write([]byte{one}); err != nil {
			return
		}
		time.Sleep(pause)
	}
	_, _ = c.Write(b)
}
