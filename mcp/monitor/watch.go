package monitor

import (
	"container/heap"
	"time"

	"mcptasks/taskmodel"
)

// A watch is what the scheduler knows of one unfinished task.
type watch struct {
	id       string
	due      time.Time
	interval time.Duration // between polls, before backoff
	index    int           // in its heap; -1 outside
	status   taskmodel.Status
	fails    int  // failed polls in a row
	missing  int  // "not found" in a row
	urgent   bool // waits for input: the other heap
	inflight bool
	pushed   bool
	asking   bool // a tasks/result is open for its question
	ask      bool // to be opened once it is heard that the task still waits
	ours     bool
	listed   bool // the last whole listing had it
	sweep    int  // the last listing that had it
	wantedBy int  // the listing that was begun for it
	asks     int  // tasks/result opened in a row without a result
}

type watchHeap []*watch

func (h watchHeap) Len() int { return len(h) }
func (h watchHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].id < h[j].id
}
func (h watchHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *watchHeap) Push(x any) {
	w := x.(*watch)
	w.index = len(*h)
	*h = append(*h, w)
}
func (h *watchHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.index = -1
	return w
}

func (s *server) heapOf(w *watch) *watchHeap {
	if w.urgent {
		return &s.urgent
	}
	return &s.due
}

// setDue puts a watch at its time, into the heap that it belongs to.
func (s *server) setDue(w *watch, at time.Time, urgent bool) {
	if w.index >= 0 && w.urgent != urgent {
		heap.Remove(s.heapOf(w), w.index)
	}
	w.urgent, w.due = urgent, at
	h := s.heapOf(w)
	if w.index >= 0 {
		heap.Fix(h, w.index)
		return
	}
	heap.Push(h, w)
}

// unheap takes a watch out of its heap: it is being polled.
func (s *server) unheap(w *watch) {
	if w.index >= 0 {
		heap.Remove(s.heapOf(w), w.index)
	}
}

// unwatch: the task is not to be polled any more.
func (s *server) unwatch(id string) {
	w := s.watches[id]
	if w == nil {
		return
	}
	s.unheap(w)
	if w.pushed {
		s.pushed--
	}
	delete(s.watches, id)
	s.wantPushes(false)
}

// dueBefore calls f with the watches of a heap that are due before a time,
// until f returns false. Its cost follows their number.
func (h watchHeap) dueBefore(at time.Time, f func(*watch) bool) {
	var walk func(i int) bool
	walk = func(i int) bool {
		if i >= len(h) || h[i].due.After(at) {
			return true
		}
		return f(h[i]) && walk(2*i+1) && walk(2*i+2)
	}
	walk(0)
}
