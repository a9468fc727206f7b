package monitor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// still is a monitor whose loop is turned by hand, at a clock that stands until
// it is set: the cost of the loop alone, without a server's.
func still(b *testing.B, gen taskmodel.Generation, tasks int) (*Monitor, *server, *time.Time) {
	b.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := newFake(gen)
	m := New(Options{Seed: 1, Now: func() time.Time { return now },
		Servers: []ServerSpec{{Name: "ci", Target: "t", Dialer: f}}})
	ctx, stop := context.WithCancel(context.Background())
	b.Cleanup(func() { stop(); m.mail.close(); close(m.done); m.jobs.Wait() })
	m.ctx = ctx
	s := m.servers[0]
	c := &fakeClient{f: f, done: make(chan struct{})}
	s.client, s.connCtx, s.connEnd, s.want = c, ctx, stop, true
	s.row.Generation, s.row.State = gen, taskmodel.ServerReady
	for i := range tasks {
		s.observe(taskmodel.Requestor, seen(fmt.Sprintf("task-%06d", i), taskmodel.FromList, now))
	}
	m.publish()
	m.paused.Store(true) // nothing goes out by itself
	return m, s, &now
}

func seen(id string, from taskmodel.Source, now time.Time) taskmodel.Observation {
	return taskmodel.Observation{Source: from, AskedAt: now, HeardAt: now, Snapshot: taskmodel.Snapshot{
		ID: id, Status: taskmodel.Working, StatusMessage: "stage 3 of 10", CreatedAt: now.Add(-time.Hour), LastUpdatedAt: now,
		PollInterval: 5 * time.Second, TTL: taskmodel.TTL{Known: true, Duration: time.Hour},
	}}
}

// One page of 100 rows at 10,000 tasks. At 5 s and 10,000 tasks there are 20 a
// second: the cost of polling is 20 of these and 20 publishings a second.
func BenchmarkPage100At10000(b *testing.B) {
	m, s, now := still(b, taskmodel.GenCore, 10_000)
	page := mcp.Page{Tasks: make([]taskmodel.Snapshot, 100), Next: "next"}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		*now = now.Add(50 * time.Millisecond)
		for i := range page.Tasks {
			page.Tasks[i] = seen(fmt.Sprintf("task-%06d", n%10_000), taskmodel.FromList, *now).Snapshot
			n++
		}
		l := &sweep{no: n, whole: true, cursors: map[string]bool{}, seen: map[uint64]struct{}{}}
		s.list = l
		s.client.(*fakeClient).f.list = nil
		l.cursor = "next" // so that the walk ends here and asks for nothing
		s.paged(l, now.Add(-time.Millisecond), *now, page, nil)
		m.publish()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "µs/task")
}

// A notification from the handler to the board, at 10,000 tasks, with a version
// published every 50 ms of 50,000 a second.
func BenchmarkIngest(b *testing.B) {
	m, s, now := still(b, taskmodel.GenCore, 10_000)
	h := &ears{s, s.conn}
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = fmt.Sprintf("task-%06d", i)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		*now = now.Add(20 * time.Microsecond)
		o := seen(ids[n%len(ids)], taskmodel.FromPush, *now)
		o.StatusMessage = ids[(n/7)%len(ids)]
		h.Snapshot(o)
		n++
		if n%256 == 0 {
			m.turn()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "notifications/s")
}

// The same task told of again and again while the loop is busy elsewhere: what
// waits is bounded.
func BenchmarkIngestCoalesced(b *testing.B) {
	m, s, now := still(b, taskmodel.GenCore, 100)
	h := &ears{s, s.conn}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		h.Snapshot(seen("task-000007", taskmodel.FromPush, *now))
		if n++; n%100_000 == 0 {
			m.turn()
		}
	}
}

// The scheduler when nothing is due costs the same at any number of tasks.
func BenchmarkScheduleNothingDue(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, s, _ := still(b, taskmodel.GenCore, n)
			m.paused.Store(false)
			s.pages = 1
			b.ReportAllocs()
			for b.Loop() {
				s.schedule()
			}
		})
	}
}

// An answer to a poll, at 10,000 tasks: merged and due again.
func BenchmarkPolled(b *testing.B) {
	m, s, now := still(b, taskmodel.GenCore, 10_000)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		*now = now.Add(time.Millisecond)
		id := fmt.Sprintf("task-%06d", n%10_000)
		n++
		w := s.watches[id]
		s.unheap(w)
		w.inflight = true
		s.inflight++
		s.polled(w, s.conn, *now, *now, seen(id, taskmodel.FromGet, *now).Snapshot, nil)
		if n%64 == 0 {
			m.publish()
		}
	}
}

// 10,000 tasks from the journal to the first version of the board (issue D:
// under 100 ms).
func BenchmarkRestore10000(b *testing.B) {
	dir := b.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = j.Close(context.Background()) }()
	now := time.Now()
	for i := range 10_000 {
		o := seen(fmt.Sprintf("task-%06d", i), taskmodel.FromGet, now)
		t, _ := taskmodel.Merge(taskmodel.Task{Key: key("ci", o.ID)}, false, o, taskmodel.GenCore, now)
		t.Tool, t.Args, t.Raw = "build", []byte(`{"target":"api"}`), []byte(`{"taskId":"x","status":"working","ttl":60000}`)
		j.Queue(journal.Entry{Target: "t", Server: "ci", Key: t.Key, Task: &t})
		if i%1000 == 999 {
			if err := j.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		m := New(Options{Seed: 1, Journal: j, Servers: []ServerSpec{{Name: "ci", Target: "t", Dialer: newFake(taskmodel.GenCore)}}})
		ctx, stop := context.WithCancel(context.Background())
		m.ctx = ctx
		s := m.servers[0]
		ready := false
		s.restore(func() { ready = true })
		for !ready {
			<-m.mail.wake
			m.turn()
		}
		m.publish()
		if n := m.Board().Len(); n != 10_000 {
			b.Fatalf("%d tasks", n)
		}
		stop()
		m.jobs.Wait()
	}
}
