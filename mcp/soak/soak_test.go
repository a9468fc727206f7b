package soak

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/monitor"
)

// TestSoak lets the monitor watch many servers that fail at random, with a
// person who starts, answers and cancels, and compares what it says in the end
// with what was true: no task lost or stuck, no end that is another, no answer,
// call or cancel lost or sent twice, and nothing left over. Time is the
// bubble's: a wave is some 40 minutes of it.
func TestSoak(t *testing.T) {
	long := length(t)
	servers, tasks, seed := 8, 16, uint64(1)
	if long > 0 {
		servers, tasks, seed = 50, 20, rand.Uint64N(1_000_000)+1
	}
	servers, tasks = number(t, "MCPTASKS_SOAK_SERVERS", servers), number(t, "MCPTASKS_SOAK_TASKS", tasks)
	seed = uint64(number(t, "MCPTASKS_SOAK_SEED", int(seed)))
	t.Logf("seed %d, %d servers, %d tasks on each in a wave; again: MCPTASKS_SOAK_SEED=%d MCPTASKS_SOAK_SERVERS=%d MCPTASKS_SOAK_TASKS=%d",
		seed, servers, tasks, seed, servers, tasks)
	files, children, begun := openFiles(t), childrenOf(t, os.Getpid()), wall()
	var s *soak
	synctest.Test(t, func(t *testing.T) {
		s = newSoak(t, seed, servers, tasks)
		defer s.end()
		// The memory of a long run is compared over waves, of which there must
		// be some however slow the machine.
		for s.waves == 0 || long > 0 && (wall().Sub(begun) < long || s.waves < 8 && wall().Sub(begun) < 2*long) {
			s.wave()
			if t.Failed() {
				break
			}
		}
		s.flat()
	})
	s.sum.files = max(0, openFiles(t)-files)
	s.sum.children = max(0, childrenOf(t, os.Getpid())-children)
	if s.sum.files > 0 {
		t.Errorf("%d files are left open", s.sum.files)
	}
	if s.sum.children > 0 {
		t.Errorf("%d child processes are left", s.sum.children)
	}
	t.Log(s.report(wall().Sub(begun)))
}

// openFiles counts this process's open files; 0 where that cannot be known.
func openFiles(t *testing.T) int {
	t.Helper()
	r, w, err := os.Pipe() // what the runtime needs for any file is open afterwards
	if err != nil {
		t.Fatal(err)
	}
	_, _ = r.Close(), w.Close()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(d)
}

// childrenOf counts a process's children; 0 where that cannot be known.
func childrenOf(t *testing.T, pid int) (n int) {
	t.Helper()
	d, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range d {
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid; the name may hold anything.
		rest := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(rest) > 1 && rest[1] == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}

// A soak is the servers, the monitor and the model of what truly happened.
type soak struct {
	t       *testing.T
	seed    uint64
	tasks   int
	servers []*victim
	m       *monitor.Monitor
	stop    context.CancelFunc
	done    chan struct{}
	begun   time.Time     // by the bubble's clock
	lasted  time.Duration // by it
	before  int           // goroutines
	left    int           // and those that are left

	waves int
	heap  []uint64 // in use at the end of each wave
	sum   tally
	mu    sync.Mutex
}

// A tally counts what happened, and what must not.
type tally struct {
	started, unconfirmed, lost, completed, failed, cancelled, answers, cancels, faults int

	wrong           map[string]int // by kind
	files, children int
}

// What must not be.
const (
	lostTask    = "lost tasks"
	lostAnswer  = "lost answers"
	twice       = "doubled calls, answers or cancels"
	wrongStatus = "wrong statuses"
	stuckTask   = "tasks stuck"
	noResult    = "results that never came"
	unwell      = "servers that are not well again"
	leftOver    = "rows left after all was forgotten"
)

// bad counts and says what must not be.
func (s *soak) bad(kind, format string, a ...any) {
	s.mu.Lock()
	s.sum.wrong[kind]++
	s.mu.Unlock()
	s.t.Errorf(kind+": "+format, a...)
}

func newSoak(t *testing.T, seed uint64, servers, tasks int) *soak {
	s := &soak{before: runtime.NumGoroutine(), t: t, seed: seed, tasks: tasks, done: make(chan struct{}), begun: time.Now(), sum: tally{wrong: map[string]int{}}}
	var specs []monitor.ServerSpec
	for i := range servers {
		v := newVictim(s, i)
		s.servers = append(s.servers, v)
		specs = append(specs, v.spec())
	}
	s.m = monitor.New(monitor.Options{Servers: specs, FetchResults: true, Seed: seed | 1, Version: "soak", WireEntries: 200})
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.done)
		_ = s.m.Run(ctx)
	}()
	return s
}

// wave is a time of trouble, a time of calm, and the reckoning.
func (s *soak) wave() {
	s.waves++
	var people, trouble sync.WaitGroup
	calm := make(chan struct{})
	over := make(chan struct{})
	for _, v := range s.servers {
		v.fresh(s.waves)
		trouble.Go(func() { v.suffer(calm) })
		people.Go(func() { v.work() })
		people.Go(func() { v.tend(calm, over) })
	}
	time.Sleep(20 * time.Minute)
	close(calm)
	trouble.Wait()
	for _, v := range s.servers {
		v.heal()
	}
	// All is well now: what is still open must come to an end by itself, with
	// the person answering.
	settled := false
	for range 40 {
		time.Sleep(30 * time.Second)
		if settled = s.settled(); settled {
			break
		}
	}
	if !settled {
		for _, v := range s.servers {
			v.stuck()
		}
	}
	time.Sleep(3 * time.Minute) // results
	close(over)
	people.Wait()
	synctest.Wait()
	for _, v := range s.servers {
		v.reckon()
		v.tell()
	}
	s.clean()
}

func (s *soak) settled() bool {
	for _, v := range s.servers {
		if v.open() > 0 {
			return false
		}
	}
	return true
}

// clean forgets what the wave left, on both sides, and weighs the rest.
func (s *soak) clean() {
	for _, v := range s.servers {
		v.forget()
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	if n := s.m.Board().Len(); n > 0 {
		s.bad(leftOver, "%d", n)
	}
	runtime.GC()
	runtime.GC()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	s.heap = append(s.heap, ms.HeapAlloc)
}

// report says what was done and what was found.
func (s *soak) report(took time.Duration) string {
	x := s.sum
	var b strings.Builder
	line := func(what string, v any) { fmt.Fprintf(&b, "  %-42s %v\n", what, v) }
	fmt.Fprintf(&b, "soak, seed %d\n", s.seed)
	line("servers", len(s.servers))
	line("waves, on the wall, by the servers' clock", fmt.Sprintf("%d, %v, %v", s.waves, took.Round(time.Second), s.lasted.Round(time.Minute)))
	line("faults that acted", x.faults)
	line("calls, of them not confirmed", fmt.Sprintf("%d, %d", x.started+x.unconfirmed, x.unconfirmed))
	line("completed, failed, cancelled", fmt.Sprintf("%d, %d, %d", x.completed, x.failed, x.cancelled))
	line("lost by their servers, and shown so", x.lost)
	line("answers taken, cancels asked", fmt.Sprintf("%d, %d", x.answers, x.cancels))
	for _, kind := range []string{lostTask, lostAnswer, twice, wrongStatus, stuckTask, noResult, unwell, leftOver} {
		line(kind, x.wrong[kind])
	}
	line("goroutines, files, child processes left", fmt.Sprintf("%d, %d, %d", s.left, x.files, x.children))
	var mb []string
	for _, h := range s.heap {
		mb = append(mb, fmt.Sprintf("%.1f", float64(h)/(1<<20)))
	}
	line("live heap after each wave, MB", strings.Join(mb, " "))
	if n := len(s.heap); n >= 6 {
		line("growth over the second half", fmt.Sprintf("%+.1f %%", 100*(s.growth()-1)))
	}
	return b.String()
}

// growth is by how much the live heap has grown over the second half of the
// waves.
func (s *soak) growth() float64 {
	half := s.heap[len(s.heap)/2:]
	third := max(1, len(half)/3)
	mean := func(h []uint64) (sum float64) {
		for _, x := range h {
			sum += float64(x) / float64(len(h))
		}
		return sum
	}
	return mean(half[len(half)-third:]) / mean(half[:third])
}

// flat asserts that the second half of the waves did not grow by a tenth.
func (s *soak) flat() {
	if len(s.heap) >= 6 && s.growth() > 1.1 {
		s.t.Errorf("memory grew by %.1f %% over the second half of the waves", 100*(s.growth()-1))
	}
}

func (s *soak) end() {
	s.stop()
	<-s.done
	for _, v := range s.servers {
		v.close()
	}
	s.lasted = time.Since(s.begun)
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	if s.left = max(0, runtime.NumGoroutine()-s.before); s.left > 0 {
		s.t.Errorf("%d goroutines are left", s.left)
	}
}
