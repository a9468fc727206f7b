package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"mcptasks/mcp/jsonrpc"
)

const (
	maxResumes    = 5                // attempts in a row that failed
	maxEmpty      = 10               // resumed streams in a row that brought nothing, without retry
	afterAnswer   = 2 * time.Second  // for the server to end a stream after its answer
	mostBackoff   = 30 * time.Second // between attempts at a POST's stream
	mostPushWait  = time.Minute      // between attempts at the push stream
	firstPushWait = 2 * time.Second  // for the push stream, before the first call
	shortLived    = 5 * time.Second  // a push stream that ends sooner ended at once
	maxShort      = 6                // such streams in a row, then there is no push
)

// errNoStream is a 2xx that is no event stream.
var errNoStream = errors.New("the server answered with something that is no event stream")

// events reads the stream in answer to a POST, and what continues it after the
// server or the network has closed the connection (2025-11-25 basic/transports,
// Resumability and Redelivery). In the modern era nothing continues it.
func (s *stream) events(ctx context.Context, body io.ReadCloser) error {
	failures, empty := 0, 0
	s.retry = -1
	for {
		got, err := s.read(ctx, body)
		if s.answered {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.c.era != eraLegacy || s.lastID == "" {
			if err != nil {
				return fmt.Errorf("the stream broke before the answer: %w", err)
			}
			return errors.New("the server ended the stream without an answer")
		}
		if got {
			empty = 0
		} else if s.retry < 0 {
			if empty++; empty >= maxEmpty {
				return errors.New("the server ends the stream again and again without an answer")
			}
		}
		for {
			wait := s.retry
			if wait < 0 {
				wait = backoff(max(failures, empty), mostBackoff)
			} else if failures > 0 {
				wait = max(wait, backoff(failures, mostBackoff))
			}
			if !sleep(ctx, wait) {
				return ctx.Err()
			}
			body, err = s.c.get(ctx, s.lastID)
			if err == nil {
				failures = 0
				break
			}
			var st *StatusError
			var pause time.Duration
			if errors.As(err, &st) && st.Status == http.StatusBadRequest {
				// It is about the stream, whatever the words: a session that is
				// lost shows at the next request.
				return fmt.Errorf("the stream broke before the answer and cannot be resumed: %v", err)
			}
			if errors.Is(err, errNoStream) || st != nil && !transient(st.Status) {
				return fmt.Errorf("the stream broke before the answer and cannot be resumed: %w", err)
			} else if st != nil {
				pause = st.RetryAfter
			}
			if failures++; failures > maxResumes {
				return fmt.Errorf("the stream broke before the answer and cannot be resumed: %w", err)
			}
			if pause > 0 && !sleep(ctx, pause) {
				return ctx.Err()
			}
		}
	}
}

// transient statuses are worth another attempt.
func transient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// read takes one connection's worth of the stream; got says whether an event
// came.
func (s *stream) read(ctx context.Context, body io.ReadCloser) (got bool, err error) {
	defer body.Close()
	// What is not read by itself at the end of ctx (a foreign RoundTripper) is
	// cut off by this.
	undo := context.AfterFunc(ctx, func() { body.Close() })
	defer undo()
	var timer *time.Timer
	err = eachEvent(body, s.c.max, eventFunc{
		event: func(e event) {
			got = true
			if e.hasID {
				s.lastID = e.id
			}
			if e.retry >= 0 {
				s.retry = e.retry
			}
			s.c.deliver(e, s.message)
			if s.answered && timer == nil {
				timer = time.AfterFunc(afterAnswer, func() { body.Close() })
			}
		},
		long: func(head []byte, n int) {
			got = true
			why := s.c.tooLong(head, n)
			if _, id := jsonrpc.Peek(head); id == s.id {
				s.answered = true
				s.c.sink.Failed(s.id, fmt.Errorf("the server's answer is too long: %s", why))
			}
		},
	})
	if timer != nil {
		timer.Stop()
	}
	return got, err
}

func (c *httpConn) tooLong(head []byte, n int) string {
	why := fmt.Sprintf("an event of %d bytes, more than the %d allowed", n, c.max)
	c.sink.Noise(why, head[:min(len(head), bodyOther)])
	return why
}

// deliver hands the data of one event to message, or what is no message to the
// log of noise.
func (c *httpConn) deliver(e event, message func([]byte)) {
	b := e.data
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t') {
		i++
	}
	switch {
	case i == len(b):
		// An event that only carries its id primes the client to reconnect.
	case e.name != "" && e.name != "message":
		c.sink.Noise(fmt.Sprintf("an event of the unknown type %q", e.name), b)
	case b[i] != '{' && b[i] != '[':
		c.sink.Noise("an event that is no message", b)
	case e.cut:
		if _, err := jsonrpc.Decode(b, 0); err != nil {
			c.sink.Noise("an event that was cut off", b)
			return
		}
		message(b)
	default:
		message(b)
	}
}

// get opens an event stream by GET.
func (c *httpConn) get(ctx context.Context, lastID string) (io.ReadCloser, error) {
	res, err := c.do(ctx, request{method: http.MethodGet, accept: "text/event-stream", lastID: lastID, stream: true})
	if err != nil {
		return nil, err
	}
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if mediaType != "text/event-stream" || res.StatusCode == http.StatusNoContent {
		finish(res.Body)
		return nil, fmt.Errorf("%w (status %d, %s)", errNoStream, res.StatusCode, mediaType)
	}
	return res.Body, nil
}

// sleep waits; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// startPush opens the optional GET stream of the session (2025-11-25
// basic/transports, Listening for Messages from the Server) and keeps it open.
func (c *httpConn) startPush() {
	if !c.spawn() {
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	if c.stopPush != nil {
		c.stopPush()
	}
	c.stopPush = cancel
	if c.listens == nil {
		c.listens = make(chan struct{})
	}
	c.mu.Unlock()
	go func() {
		defer c.wg.Done()
		defer cancel()
		c.pushLoop(ctx)
	}()
}

// ears waits until the push stream is open or known not to be, two seconds at
// most. A server may put a call's question on that stream (2025-11-25
// basic/transports, Listening for Messages from the Server), and some drop it
// for good while nobody listens.
func (c *httpConn) ears(ctx context.Context) {
	c.mu.Lock()
	listens := c.listens
	c.mu.Unlock()
	if listens == nil {
		return
	}
	timer := time.NewTimer(firstPushWait)
	defer timer.Stop()
	select {
	case <-listens:
	case <-timer.C:
		c.mu.Lock()
		if c.listens == listens { // no call after this waits again
			close(listens)
			c.listens = nil
		}
		c.mu.Unlock()
	case <-ctx.Done():
	}
}

func (c *httpConn) pushLoop(ctx context.Context) {
	lastID, retry := "", time.Duration(-1)
	failures, short := 0, 0
	for ctx.Err() == nil {
		body, err := c.get(ctx, lastID)
		wait := time.Duration(0)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			var st *StatusError
			isStatus := errors.As(err, &st)
			if errors.Is(err, errNoStream) || isStatus && !transient(st.Status) && st.Status != http.StatusUnauthorized && st.Status != http.StatusForbidden {
				c.noPush(err.Error())
				return
			}
			failures++
			c.setPush("waiting", err.Error())
			wait = backoff(failures, mostPushWait)
			if isStatus {
				wait = max(wait, st.RetryAfter)
				if st.Status == http.StatusUnauthorized || st.Status == http.StatusForbidden {
					wait = mostPushWait // no storm; the calls will tell about it
				}
			}
		} else {
			failures = 0
			c.setPush("open", "")
			began, got := time.Now(), false
			undo := context.AfterFunc(ctx, func() { body.Close() })
			_ = eachEvent(body, c.max, eventFunc{
				event: func(e event) {
					if e.hasID {
						lastID = e.id
					}
					if e.retry >= 0 {
						retry = e.retry
					}
					if len(e.data) > 0 {
						got = true
					}
					c.deliver(e, func(b []byte) { c.sink.Message(b, "get", "") })
				},
				long: func(head []byte, n int) { c.tooLong(head, n) },
			})
			undo()
			body.Close()
			if ctx.Err() != nil {
				return
			}
			switch {
			case got || time.Since(began) > shortLived:
				short = 0
			case retry < 0:
				short++
			}
			if short >= maxShort {
				c.noPush("the server closes the stream at once, every time")
				return
			}
			c.setPush("waiting", "the server closed the stream")
			if wait = retry; retry < 0 {
				wait = backoff(short, mostPushWait)
			}
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

func (c *httpConn) noPush(why string) {
	c.setPush("none", why)
	c.sink.Noise("no push: "+why, nil)
}
