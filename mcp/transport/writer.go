package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
)

const (
	// takenAfter is when a message counts as taken although the program has not
	// yet read it: a reader that answers on its own goroutine must not wait for
	// a program that itself waits to be read.
	takenAfter = time.Second
	maxQueued  = 32 << 20 // bytes that may wait to be written
)

// writer queues what goes to a program's stdin, so that a program that does not
// read blocks nobody for long.
type writer struct {
	qmu    sync.Mutex
	queue  []*outItem
	queued int
	werr   error
	wake   chan struct{} // holds one
}

type outItem struct {
	b    []byte
	done chan error // holds one
}

func (w *writer) enqueue(b []byte) (*outItem, error) {
	w.qmu.Lock()
	defer w.qmu.Unlock()
	if w.werr != nil {
		return nil, w.werr
	}
	if w.queued > 0 && w.queued+len(b) > maxQueued {
		return nil, errQueueFull
	}
	it := &outItem{b: b, done: make(chan error, 1)}
	w.queue = append(w.queue, it)
	w.queued += len(b)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return it, nil
}

var errQueueFull = errors.New("the server does not read what is sent to it")

// fail makes every waiting and later message fail.
func (w *writer) fail(err error) {
	w.qmu.Lock()
	defer w.qmu.Unlock()
	if w.werr == nil {
		w.werr = err
	}
	for _, it := range w.queue {
		it.done <- err
	}
	w.queue, w.queued = nil, 0
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (c *stdioConn) write() {
	for range c.wake {
		for {
			c.qmu.Lock()
			if c.werr != nil {
				c.qmu.Unlock()
				return
			}
			if len(c.queue) == 0 {
				c.qmu.Unlock()
				break
			}
			it := c.queue[0]
			c.queue[0] = nil
			c.queue = c.queue[1:]
			c.qmu.Unlock()
			_, err := c.stdin.Write(it.b)
			c.qmu.Lock()
			c.queued -= len(it.b)
			c.qmu.Unlock()
			if err != nil {
				err = fmt.Errorf("the program %q no longer reads its stdin: %w", c.command, err)
				it.done <- err
				c.writer.fail(err)
				return
			}
			it.done <- nil
		}
	}
}

// Send writes one message. It returns when the program's pipe has taken it, or
// after a second when it stands in the queue.
func (c *stdioConn) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	line := make([]byte, 0, len(m.Bytes)+1)
	line = append(line, m.Bytes...)
	if bytes.IndexByte(line, '\n') >= 0 {
		// Newlines end messages here; within one they can only be white space.
		line = bytes.ReplaceAll(bytes.ReplaceAll(line, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	}
	line = append(line, '\n')
	it, err := c.enqueue(line)
	if err != nil {
		return c.sendError(err)
	}
	t := time.NewTimer(takenAfter)
	defer t.Stop()
	select {
	case err := <-it.done:
		if err != nil {
			return c.sendError(err)
		}
	case <-t.C:
	case <-ctx.Done():
		// The line may be half written, so it stays in the queue.
		return ctx.Err()
	}
	return nil
}

// sendError prefers the reason why the program is dead, which is known a
// moment later than the broken pipe.
func (c *stdioConn) sendError(err error) error {
	if errors.Is(err, errQueueFull) {
		return err
	}
	select {
	case <-c.done:
		return c.Err()
	case <-time.After(takenAfter):
		return err
	}
}
