package transport

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

const (
	stderrLines = 200
	stderrWidth = 4 << 10 // bytes kept of one line
)

// A tail keeps the last lines of a stream. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
	next  int
}

func (t *tail) add(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) < stderrLines {
		t.lines = append(t.lines, s)
		return
	}
	t.lines[t.next] = s
	t.next = (t.next + 1) % stderrLines
}

// last gives the last n lines, oldest first.
func (t *tail) last(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(append([]string{}, t.lines[t.next:]...), t.lines[:t.next]...)
	return all[max(0, len(all)-n):]
}

// drain reads r to its end, whatever comes, so that the writer never blocks.
func (t *tail) drain(r io.Reader, each func(string)) {
	take := func(b []byte) {
		s := strings.ToValidUTF8(string(b), "\uFFFD")
		t.add(s)
		if each != nil {
			each(s)
		}
	}
	_ = eachLine(r, lineBuffer, func(b []byte) {
		take(bytes.Clone(b[:min(len(b), stderrWidth)]))
	}, func(head, _ []byte, _ int64) {
		take(bytes.Clone(head[:min(len(head), stderrWidth)]))
	})
}
