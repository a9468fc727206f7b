package lean

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

var held [][]byte

// What was used once and is not any more is given back to the system, and not
// while the program is at work.
func TestGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 64 {
			held = append(held, make([]byte, 1<<20))
		}
		held = nil
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { GiveBack(ctx); close(ended) }()
		time.Sleep(3*memoryLook + time.Second)
		synctest.Wait()
		runtime.ReadMemStats(&after)
		stop()
		<-ended
		if h := after.HeapSys - after.HeapReleased; h > 2*after.HeapAlloc+2*memorySlack {
			t.Errorf("%d MB are held with %d in use; before %d", h>>20, after.HeapAlloc>>20, (before.HeapSys-before.HeapReleased)>>20)
		}
	})
}
