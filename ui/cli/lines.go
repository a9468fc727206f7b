package cli

import (
	"bufio"
	"context"
	"io"
	"strings"
)

// Lines reads a terminal line by line. Its Read can be given up, which a read
// of a terminal itself cannot: the line that was being waited for is then the
// next one's. It is safe for concurrent use; readers take turns.
type Lines struct {
	in      *bufio.Reader
	turn    chan struct{} // held by who reads; guards pending
	pending chan line
}

type line struct {
	text string
	err  error
}

// NewLines reads lines from in.
func NewLines(in io.Reader) *Lines {
	return &Lines{in: bufio.NewReader(in), turn: make(chan struct{}, 1)}
}

// Read gives the next line without its end. A last line without an end counts;
// after it the error is io.EOF.
func (l *Lines) Read(ctx context.Context) (string, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if l.pending == nil {
		got := make(chan line, 1)
		l.pending = got
		go func() {
			text, err := l.in.ReadString('\n')
			if text != "" {
				err = nil
			}
			got <- line{strings.TrimRight(text, "\r\n"), err}
		}()
	}
	select {
	case got := <-l.pending:
		l.pending = nil
		return got.text, got.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
