package mcp

import (
	"sync"

	"mcptasks/taskmodel"
)

// waiters are those who wait for the next snapshot of a task, from whichever
// way it comes. Safe for concurrent use; the zero value is ready.
type waiters struct {
	mu sync.Mutex
	by map[string]map[chan taskmodel.Snapshot]bool
}

// wait gives the channel on which the next snapshot of the task comes. done
// must be called.
func (v *waiters) wait(id string) (next <-chan taskmodel.Snapshot, done func()) {
	w := make(chan taskmodel.Snapshot, 1)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = make(map[string]map[chan taskmodel.Snapshot]bool)
	}
	if v.by[id] == nil {
		v.by[id] = make(map[chan taskmodel.Snapshot]bool)
	}
	v.by[id][w] = true
	return w, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.by[id], w)
		if len(v.by[id]) == 0 {
			delete(v.by, id)
		}
	}
}

// tell hands a snapshot to all who wait for its task. It never blocks: who has
// not read the last one yet looks at the task anyway.
func (v *waiters) tell(s taskmodel.Snapshot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for w := range v.by[s.ID] {
		select {
		case w <- s:
		default:
		}
	}
}
