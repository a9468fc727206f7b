package monitor

import (
	"sync"

	"mcptasks/taskmodel"
)

// A wireRing keeps the newest messages of all servers, within a number of
// entries and of bytes. It has a lock of its own: the wire never waits for the
// board.
type wireRing struct {
	mu      sync.Mutex
	entries []taskmodel.WireEntry // oldest first, from head on
	head    int
	bytes   int64
	seq     int64
	max     int
	maxSize int64
}

func newWireRing(entries int, bytes int64) *wireRing {
	return &wireRing{max: entries, maxSize: bytes}
}

func (w *wireRing) put(e taskmodel.WireEntry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	e.Seq = w.seq
	if e.Size == 0 {
		e.Size = len(e.Bytes)
	}
	if int64(len(e.Bytes)) > w.maxSize/4 {
		// One message must not push all others out; its head is kept.
		e.Bytes = append([]byte(nil), e.Bytes[:w.maxSize/4]...)
	}
	w.entries = append(w.entries, e)
	w.bytes += int64(len(e.Bytes))
	for len(w.entries)-w.head > w.max || w.bytes > w.maxSize && len(w.entries)-w.head > 1 {
		w.bytes -= int64(len(w.entries[w.head].Bytes))
		w.entries[w.head] = taskmodel.WireEntry{}
		w.head++
	}
	if w.head > w.max {
		w.entries = append([]taskmodel.WireEntry(nil), w.entries[w.head:]...)
		w.head = 0
	}
}

func (w *wireRing) read(f WireFilter) []taskmodel.WireEntry {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []taskmodel.WireEntry
	for i := len(w.entries) - 1; i >= w.head; i-- {
		e := w.entries[i]
		if e.Seq <= f.After {
			break
		}
		if f.Server != "" && e.Server != f.Server || f.Task != "" && e.Task != f.Task {
			continue
		}
		out = append(out, e)
		if f.Max > 0 && len(out) == f.Max {
			break
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Wire returns messages that passed, oldest first. Their bytes are shared and
// not to be written to.
func (m *Monitor) Wire(f WireFilter) []taskmodel.WireEntry { return m.wire.read(f) }

// A logBook keeps the messages related to tasks: a bounded number for each
// task, of a bounded number of tasks.
type logBook struct {
	mu    sync.Mutex
	byKey map[taskmodel.Key][]taskmodel.LogLine
	order []taskmodel.Key // by their first line, oldest first
}

const (
	logPerTask = 500
	logTasks   = 2000
	logLines   = 200 // of a server
)

func newLogBook() *logBook { return &logBook{byKey: map[taskmodel.Key][]taskmodel.LogLine{}} }

func (b *logBook) put(k taskmodel.Key, l taskmodel.LogLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, had := b.byKey[k]
	if !had {
		if len(b.order) >= logTasks {
			delete(b.byKey, b.order[0])
			b.order = append([]taskmodel.Key(nil), b.order[1:]...)
		}
		b.order = append(b.order, k)
	}
	if len(lines) >= logPerTask {
		lines = append([]taskmodel.LogLine(nil), lines[len(lines)-logPerTask+1:]...)
	}
	b.byKey[k] = append(lines, l)
}

func (b *logBook) drop(k taskmodel.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, had := b.byKey[k]; !had {
		return
	}
	delete(b.byKey, k)
	for i, o := range b.order {
		if o == k {
			b.order = append(b.order[:i:i], b.order[i+1:]...)
			break
		}
	}
}

// Logs are the messages related to one task that came in this run, oldest first.
func (m *Monitor) Logs(k taskmodel.Key) []taskmodel.LogLine {
	m.logs.mu.Lock()
	defer m.logs.mu.Unlock()
	return append([]taskmodel.LogLine(nil), m.logs.byKey[k]...)
}
