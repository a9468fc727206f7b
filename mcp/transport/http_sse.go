package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"mcptasks/mcp/jsonrpc"
)

// openSSE opens the stream of the HTTP+SSE transport (2024-11-05
// basic/transports) and waits for its endpoint event. The stream is the
// connection: its end is the connection's.
func (c *httpConn) openSSE(ctx context.Context) error {
	sctx, stop := context.WithCancel(c.ctx)
	undo := context.AfterFunc(ctx, stop)
	defer undo()
	body, err := c.get(sctx, "")
	if err != nil {
		stop()
		return err
	}
	ready := make(chan error, 1)
	if !c.spawn() {
		stop()
		body.Close()
		return jsonrpc.ErrClosed
	}
	go func() {
		defer c.wg.Done()
		defer stop()
		err := c.readSSE(sctx, body, ready)
		select {
		case ready <- fmt.Errorf("the stream ended before the endpoint event: %w", err):
		default:
		}
		c.end(err)
	}()
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the server's stream is open but its endpoint event does not come: %w", ctx.Err())
	}
}

func (c *httpConn) readSSE(ctx context.Context, body io.ReadCloser, ready chan<- error) error {
	defer body.Close()
	undo := context.AfterFunc(ctx, func() { body.Close() })
	defer undo()
	// Before Start there is nobody to hand anything to.
	open := func() bool {
		select {
		case <-c.started:
			return true
		case <-ctx.Done():
			return false
		}
	}
	known := false
	err := eachEvent(body, c.max, eventFunc{
		event: func(e event) {
			if e.name == "endpoint" {
				if known {
					return // moving the endpoint in mid-connection is not foreseen
				}
				known = true
				ready <- c.setEndpoint(string(e.data))
				return
			}
			if open() {
				c.deliver(e, func(b []byte) { c.sink.Message(b, "sse", "") })
			}
		},
		long: func(head []byte, n int) {
			if !open() {
				return
			}
			why := c.tooLong(head, n)
			if kind, id := jsonrpc.Peek(head); kind == jsonrpc.KindResponse {
				c.sink.Failed(id, fmt.Errorf("the server's answer is too long: %s", why))
			}
		},
	})
	if err != nil {
		return fmt.Errorf("the server's event stream broke: %w", err)
	}
	return errors.New("the server closed its event stream")
}

// setEndpoint resolves where messages are to be posted, relative to the URL of
// the stream (RFC 3986); it must be of the same origin.
func (c *httpConn) setEndpoint(data string) error {
	data = strings.TrimSpace(data)
	ref, err := url.Parse(data)
	if err != nil || data == "" {
		return errors.New("the server's endpoint event holds no URL")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.url.ResolveReference(ref)
	u.Fragment = ""
	if !sameOrigin(c.url, u) {
		return fmt.Errorf("the server wants messages posted to %s://%s, another origin, to which nothing is sent", u.Scheme, u.Host)
	}
	c.endpoint = u
	return nil
}
