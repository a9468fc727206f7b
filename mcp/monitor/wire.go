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

// WireFrom is the number of the oldest message that is still kept; those before
// it have been dropped.
func (m *Monitor) WireFrom() int64 { return m.wire.from() }

func (w *wireRing) from() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head < len(w.entries) {
		return w.entries[w.head].Seq
	}
	return w.seq + 1
}
