package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// A pushServer is a server of 2025-11-25 over a pipe whose tasks all work until
// it is told otherwise. It takes note of when it was asked about each.
type pushServer struct {
	name     string
	tasks    int
	interval int // pollInterval, ms
	conns    chan jsonrpc.Conn

	mu    sync.Mutex
	ended map[string]bool
	asked map[string][]time.Time
}

func newPushServer(name string, tasks, interval int) *pushServer {
	return &pushServer{name: name, tasks: tasks, interval: interval, conns: make(chan jsonrpc.Conn, 1), ended: map[string]bool{}, asked: map[string][]time.Time{}}
}

func (s *pushServer) id(i int) string { return fmt.Sprintf("%s-%06d", s.name, i) }

func (s *pushServer) state(id, words string) []byte {
	status := "working"
	if s.ended[id] {
		status = "completed"
	}
	return fmt.Appendf(nil, `{"taskId":%q,"status":%q,"statusMessage":%q,"createdAt":"2026-11-29T14:00:00Z","lastUpdatedAt":%q,"ttl":null,"pollInterval":%d}`,
		id, status, words, time.Now().UTC().Format(time.RFC3339Nano), s.interval)
}

func (s *pushServer) Noise(string, []byte)              {}
func (s *pushServer) Notification(jsonrpc.Notification) {}

func (s *pushServer) Request(ctx context.Context, r *jsonrpc.Request) {
	var p struct{ TaskID string }
	_ = json.Unmarshal(r.Params, &p)
	s.mu.Lock()
	defer s.mu.Unlock()
	var result any = map[string]any{}
	switch r.Method {
	case "initialize":
		result = json.RawMessage(`{"protocolVersion":"2025-11-25","serverInfo":{"name":"bench","version":"1"},"capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}`)
	case "tools/list":
		result = json.RawMessage(`{"tools":[]}`)
	case "tasks/list":
		var list []json.RawMessage
		for i := range s.tasks {
			list = append(list, s.state(s.id(i), "on its way"))
			s.asked[s.id(i)] = append(s.asked[s.id(i)], time.Now())
		}
		result = map[string]any{"tasks": list}
	case "tasks/get":
		result = json.RawMessage(s.state(p.TaskID, "on its way"))
		s.asked[p.TaskID] = append(s.asked[p.TaskID], time.Now())
	case "tasks/result":
		result = json.RawMessage(`{"content":[]}`)
	}
	_ = r.Reply(ctx, result)
}

func (s *pushServer) serve(ctx context.Context, conn jsonrpc.Conn) {
	p := jsonrpc.NewPeer(conn, s, jsonrpc.PeerOptions{})
	if p.Start(ctx) == nil {
		s.conns <- conn
		<-p.Done()
	}
}

// push tells a task's status, unasked; end says that it has ended.
func (s *pushServer) push(ctx context.Context, conn jsonrpc.Conn, id, words string, end bool) error {
	s.mu.Lock()
	if end {
		s.ended[id] = true
	}
	b := s.state(id, words)
	s.mu.Unlock()
	return conn.Send(ctx, jsonrpc.Outgoing{Kind: jsonrpc.KindNotification, Method: "notifications/tasks/status",
		Bytes: slices.Concat([]byte(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":`), b, []byte(`}`))})
}

// late is by how much, at most, a question about a task that had not ended came
// later after the one before it than the server had wished.
func (s *pushServer) late() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := time.Duration(0)
	for id, at := range s.asked {
		if !s.ended[id] {
			at = append(at, time.Now())
		}
		for i := 1; i < len(at); i++ {
			most = max(most, at[i].Sub(at[i-1])-time.Duration(s.interval)*time.Millisecond)
		}
	}
	return most
}

// A counter counts what is written to a terminal: each frame is one write.
type counter struct {
	*glass
	writes atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.glass.Write(p)
}

const (
	floodRate = 50_000 // notifications a second
	floodFor  = 10 * time.Second
)

// BenchmarkFlood has one server tell 50,000 statuses a second for ten seconds
// while another, beside it, tells of ten ends a second and wants to be asked once
// a second about each of its tasks. Reported are how many the first got rid of,
// how often the screen was drawn with nobody at the keyboard, how long a key took
// to its frame, how long an end of the other server's took to the board, how late
// it was polled, and how long the flood's last words took. A status that is lost
// fails it.
func BenchmarkFlood(b *testing.B) {
	for b.Loop() {
		flood(b)
	}
	b.ReportMetric(0, "ns/op")
}

func flood(b *testing.B) {
	ctx, stop := context.WithCancel(context.Background())
	loud, calm := newPushServer("loud", 200, 3_600_000), newPushServer("calm", 120, 1000)
	spec := func(s *pushServer) monitor.ServerSpec {
		return monitor.ServerSpec{Name: s.name, Target: s.name, Autostart: true, Era: "legacy", Dialer: transport.PipeDialer(s.serve)}
	}
	mon := monitor.New(monitor.Options{Servers: []monitor.ServerSpec{spec(loud), spec(calm)}})
	events, deaf := mon.Events(1 << 16)
	defer deaf()
	g := &counter{glass: &glass{em: vt.NewEmulator(120, 40), w: 120, h: 40, seen: make(chan time.Time, 1)}}
	var all sync.WaitGroup
	typed, end := g.behind(ctx, stop, mon, g, &all)
	defer end()
	loudConn, calmConn := <-loud.conns, <-calm.conns
	g.wait(b, fmt.Sprint(loud.tasks+calm.tasks, " tasks"))

	// Ends of the calm server's, as the board tells of them.
	told := map[string]time.Time{}
	heard := make(chan map[string]time.Duration, 1)
	var toldMu sync.Mutex
	hearing, enough := context.WithCancel(ctx)
	go func() {
		took := map[string]time.Duration{}
		defer func() { heard <- took }()
		for {
			select {
			case e := <-events:
				toldMu.Lock()
				at, ok := told[e.Task.ID]
				if _, before := took[e.Task.ID]; ok && !before && e.Kind == taskmodel.EventStatus && e.Status == taskmodel.Completed {
					took[e.Task.ID] = time.Since(at)
				}
				toldMu.Unlock()
			case <-hearing.Done():
				return
			}
		}
	}()

	var work sync.WaitGroup
	began := time.Now()
	sent := 0
	work.Go(func() {
		for time.Since(began) < floodFor {
			for due := int(time.Since(began).Seconds() * floodRate); sent < due; sent++ {
				if loud.push(ctx, loudConn, loud.id(sent%loud.tasks), fmt.Sprint("step ", sent), false) != nil {
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	work.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; i < calm.tasks-20 && time.Since(began) < floodFor; i++ {
			<-tick.C
			id := calm.id(i)
			toldMu.Lock()
			told[id] = time.Now()
			toldMu.Unlock()
			if calm.push(ctx, calmConn, id, "done", true) != nil {
				return
			}
		}
	})

	time.Sleep(time.Second)
	writes, from := g.writes.Load(), time.Now()
	time.Sleep(3 * time.Second)
	redraws := float64(g.writes.Load()-writes) / time.Since(from).Seconds()

	press := func(s string) {
		if _, err := typed.Write([]byte(s)); err != nil {
			b.Fatal(err)
		}
	}
	var frames []time.Duration
	for i := 0; time.Since(began) < floodFor-200*time.Millisecond; i++ {
		time.Sleep(time.Duration(30+i%17) * time.Millisecond) // not in step with the frames
		at := time.Now()
		press("?")
		frames = append(frames, g.wait(b, "this help").Sub(at))
		time.Sleep(time.Duration(30+i%13) * time.Millisecond)
		at = time.Now()
		press("t")
		frames = append(frames, g.wait(b, "!this help").Sub(at))
	}
	work.Wait()
	rate := float64(sent) / time.Since(began).Seconds()

	// The flood's last words, and nothing lost.
	last := time.Now()
	for i := range loud.tasks {
		if err := loud.push(ctx, loudConn, loud.id(i), "done", true); err != nil {
			b.Fatal(err)
		}
	}
	ended := func(s *pushServer, n int) bool {
		v := mon.Board()
		for i := range n {
			if t, ok := v.Task(taskmodel.Key{Server: s.name, ID: s.id(i), Role: taskmodel.Requestor}); !ok || t.Status != taskmodel.Completed {
				return false
			}
		}
		return true
	}
	for !ended(loud, loud.tasks) {
		if time.Since(last) > time.Minute {
			t, _ := mon.Board().Task(taskmodel.Key{Server: "loud", ID: loud.id(0), Role: taskmodel.Requestor})
			row, _ := mon.Board().Server("loud")
			b.Fatalf("ends of the flooding server's tasks are lost: of the first is known %+v, of the server %+v", t, row)
		}
		time.Sleep(time.Millisecond)
	}
	behind := time.Since(last)
	late := calm.late()
	time.Sleep(200 * time.Millisecond)
	enough()
	took := <-heard
	if !ended(calm, len(told)) || len(took) != len(told) || len(told) < 50 {
		b.Fatalf("of %d ends on the other server %d were heard of", len(told), len(took))
	}

	at := func(d []time.Duration, p int) float64 {
		slices.Sort(d)
		return float64(d[(len(d)-1)*p/100]) / 1e6
	}
	var ends []time.Duration
	for _, d := range took {
		ends = append(ends, d)
	}
	b.ReportMetric(rate, "notifications/s")
	b.ReportMetric(redraws, "redraws/s")
	b.ReportMetric(at(frames, 50), "key-p50-ms")
	b.ReportMetric(at(frames, 99), "key-p99-ms")
	b.ReportMetric(at(ends, 50), "other-push-p50-ms")
	b.ReportMetric(at(ends, 99), "other-push-p99-ms")
	b.ReportMetric(float64(late)/1e6, "other-poll-late-ms")
	b.ReportMetric(float64(behind)/1e6, "behind-ms")
}
