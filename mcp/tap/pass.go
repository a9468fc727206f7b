package tap

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// errEnded is what an act meets when the agent has ended its side.
var errEnded = errors.New("the agent has ended the session")

// passBuffer is how much is read at once.
const passBuffer = 64 << 10

// A joint writes to one side what the other sends, as it comes, and between two
// of its lines what we send.
type joint struct {
	mu     sync.Mutex
	w      io.Writer
	mid    bool     // inside a line of the other's
	own    [][]byte // ours, waiting for the line's end
	closed bool
}

// pass writes a run of the other side's bytes.
func (u *joint) pass(b []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return errEnded
	}
	if len(u.own) > 0 {
		i := bytes.LastIndexByte(b, '\n') + 1
		if i == 0 && u.mid {
			_, err := u.w.Write(b)
			return err
		}
		if _, err := u.w.Write(b[:i]); err != nil {
			return err
		}
		for _, line := range u.own {
			if _, err := u.w.Write(line); err != nil {
				return err
			}
		}
		u.own, u.mid, b = nil, false, b[i:]
	}
	if len(b) == 0 {
		return nil
	}
	u.mid = b[len(b)-1] != '\n'
	_, err := u.w.Write(b)
	return err
}

// send puts a line of ours, with its newline, between two of the other's. When
// that is in the middle of one it goes after it.
func (u *joint) send(line []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed:
		return errEnded
	case u.mid:
		u.own = append(u.own, line)
		return nil
	}
	_, err := u.w.Write(line)
	return err
}

// close ends what is written to, as the other side has done.
func (u *joint) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.closed = true
		if c, ok := u.w.(io.Closer); ok {
			_ = c.Close()
		}
	}
}

// maxHeld is the longest line that is kept back to be looked at; a longer one
// is passed unread.
const maxHeld = 64 << 20

// A downstream writes to the agent what the server sends. While nothing of
// ours can be among it, bytes pass as they come. Else whole lines are looked
// at, and those that answer us are taken out. A line's beginning is of no use
// to the agent without its end, so nothing comes later by that.
type downstream struct {
	w    *joint
	q    *queue
	some func() bool              // something of ours may come
	look func(line []byte) []byte // what the agent is to get of a line
	raw  bool                     // inside a line that was passed
	held []byte
	out  []byte // lines to be written at once
}

// pass takes a run of the server's bytes.
func (d *downstream) pass(b []byte) error {
	if len(d.held) == 0 && !d.some() {
		d.raw = b[len(b)-1] != '\n'
		d.q.pass(server, b)
		return d.w.pass(b)
	}
	d.out = d.out[:0]
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n') + 1
		if d.raw {
			if i == 0 {
				i = len(b)
			}
			d.out = append(d.out, b[:i]...)
			d.raw, b = b[i-1] != '\n', b[i:]
			continue
		}
		if i == 0 {
			d.held = append(d.held, b...)
			if len(d.held) > maxHeld || !maybeMessage(d.held) {
				d.out = append(d.out, d.held...)
				d.held, d.raw = nil, true
			}
			break
		}
		line := b[:i]
		if len(d.held) > 0 {
			d.held = append(d.held, line...)
			line, d.held = d.held, nil
		}
		b = b[i:]
		d.out = append(d.out, d.look(line)...)
	}
	return d.flush()
}

func (d *downstream) flush() error {
	if len(d.out) == 0 {
		return nil
	}
	d.q.pass(server, d.out)
	return d.w.pass(d.out)
}

// end passes what the server left unfinished.
func (d *downstream) end() error {
	d.out, d.held = append(d.out[:0], d.held...), nil
	return d.flush()
}

// maybeMessage reports whether a line's beginning may be a JSON-RPC message.
func maybeMessage(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	b = bytes.TrimLeft(b, " \t\r")
	return len(b) == 0 || b[0] == '{' || b[0] == '['
}
