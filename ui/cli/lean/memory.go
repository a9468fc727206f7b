package lean

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	memoryLook  = 3 * time.Second
	memorySlack = 8 << 20  // bytes that may lie unused before they are given back
	memoryBusy  = 24 << 20 // allocated between two looks: it is at work, and will use them
)

// GiveBack gives the system back what the program has used and does not
// use any more, until ctx ends: a long listing takes several times the memory of
// the tasks that come of it, and a program that is open all day should not keep
// that. It looks every few seconds, and collects only where there is much to give
// and nothing has grown since the last look. When the program is calm for the
// first time, and each time after it has given back, it drops its text as well.
func GiveBack(ctx context.Context) {
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	var m runtime.MemStats
	var allocated, live uint64
	began := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		runtime.ReadMemStats(&m)
		calm := m.TotalAlloc-allocated < memoryBusy
		allocated = m.TotalAlloc
		if calm && m.HeapSys-m.HeapReleased > 2*live+memorySlack {
			debug.FreeOSMemory()
			runtime.ReadMemStats(&m)
			live = m.HeapAlloc
			began = false
		}
		if calm && !began {
			DropText()
			began = true
		}
	}
}
