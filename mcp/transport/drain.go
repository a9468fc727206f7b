package transport

import (
	"errors"
	"io"
	"os"
	"time"
)

// drainMost bounds what is read of a pipe after its deadline, in bytes: no pipe
// holds more by itself, but who still writes to it could go on for ever.
const drainMost = 1 << 20

// A pipeReader reads our end of a program's output. The read deadline that is set
// when the program is dead ends the wait for more, and loses nothing of what the
// program had written before: a reader that runs late still finds it.
type pipeReader struct {
	f    *os.File
	late bool // the deadline has passed
	left int  // bytes that may still be read then
}

// Read is io.Reader's; after the deadline it gives what is there, then io.EOF.
func (r *pipeReader) Read(b []byte) (int, error) {
	if !r.late {
		n, err := r.f.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		r.late, r.left = true, drainMost
		_ = r.f.SetReadDeadline(time.Time{}) // nothing is even tried under one that has passed
	}
	n, err := readNow(r.f, b[:min(len(b), r.left)])
	if n <= 0 || err != nil {
		return 0, io.EOF
	}
	r.left -= n
	return n, nil
}
