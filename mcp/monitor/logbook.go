package monitor

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"mcptasks/taskmodel"
)

const (
	logPerTask = 500
	logTasks   = 2000
	logBytes   = 16 << 20 // of all tasks
	logLines   = 200      // of a server
	// longText is how much of one message, of a log or of a task's status, is
	// kept; the wire log has the whole of it for a while.
	longText = 16 << 10
)

// clipped is a server's words within their bound.
func clipped(s string) string {
	if len(s) <= longText {
		return s
	}
	return strings.ToValidUTF8(s[:longText], "") + fmt.Sprintf(" … (%d bytes in all)", len(s))
}

// A logBook keeps the messages related to tasks: a bounded number for each
// task, of a bounded number of tasks, and a bounded size in all.
type logBook struct {
	mu    sync.Mutex
	byKey map[taskmodel.Key][]taskmodel.LogLine
	order []taskmodel.Key // by their first line, oldest first
	bytes int
	most  int // bytes
}

func newLogBook() *logBook {
	return &logBook{byKey: map[taskmodel.Key][]taskmodel.LogLine{}, most: logBytes}
}

func sizeOf(lines ...taskmodel.LogLine) (n int) {
	for _, l := range lines {
		n += len(l.Text) + len(l.Logger) + len(l.Level)
	}
	return n
}

func (b *logBook) put(k taskmodel.Key, l taskmodel.LogLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, had := b.byKey[k]; !had {
		if len(b.order) >= logTasks {
			b.remove(b.order[0])
		}
		b.order = append(b.order, k)
	}
	lines := b.byKey[k]
	if n := len(lines) - logPerTask + 1; n > 0 {
		b.bytes -= sizeOf(lines[:n]...)
		lines = slices.Clone(lines[n:])
	}
	b.bytes += sizeOf(l)
	// Other tasks make room first, the oldest before the others; then the task's
	// own older lines.
	for b.bytes > b.most && len(b.order) > 1 {
		i := 0
		if b.order[0] == k {
			i = 1
		}
		b.remove(b.order[i])
	}
	n := 0
	for ; b.bytes > b.most && n < len(lines); n++ {
		b.bytes -= sizeOf(lines[n])
	}
	if n > 0 {
		lines = slices.Clone(lines[n:])
	}
	b.byKey[k] = append(lines, l)
}

// remove forgets a task's lines.
func (b *logBook) remove(k taskmodel.Key) {
	lines, had := b.byKey[k]
	if !had {
		return
	}
	b.bytes -= sizeOf(lines...)
	delete(b.byKey, k)
	if i := slices.Index(b.order, k); i >= 0 {
		b.order = append(b.order[:i:i], b.order[i+1:]...)
	}
}

func (b *logBook) drop(k taskmodel.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(k)
}

// Logs are the messages related to one task that came in this run, oldest first.
func (m *Monitor) Logs(k taskmodel.Key) []taskmodel.LogLine {
	m.logs.mu.Lock()
	defer m.logs.mu.Unlock()
	return slices.Clone(m.logs.byKey[k])
}
