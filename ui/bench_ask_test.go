package ui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/vt"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/transport"
	"mcptasks/ui"
)

// askServer is a server of 2025-11-25 over a pipe: its tasks all work, and it
// asks when it is told to. The peer that serves a connection comes out of peers.
type askServer struct {
	tasks int
	peers chan *jsonrpc.Peer
	peer  *jsonrpc.Peer
	about string // the task that waits for input, "" when none does
	mu    sync.Mutex
}

func (s *askServer) Noise(string, []byte)              {}
func (s *askServer) Notification(jsonrpc.Notification) {}

func (s *askServer) task(id, status string) map[string]any {
	return map[string]any{"taskId": id, "status": status, "createdAt": "2026-11-29T14:00:00Z", "lastUpdatedAt": time.Now().UTC().Format(time.RFC3339Nano),
		"ttl": nil, "pollInterval": 3_600_000, "statusMessage": "step of many, on its way"}
}

func (s *askServer) id(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000000", i) }

const askPage = 1000

func (s *askServer) Request(ctx context.Context, r *jsonrpc.Request) {
	var p struct{ Cursor, TaskID string }
	_ = json.Unmarshal(r.Params, &p)
	var result any = map[string]any{}
	switch r.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": "2025-11-25", "serverInfo": map[string]any{"name": "bench", "version": "1"},
			"capabilities": map[string]any{"tools": map[string]any{}, "tasks": map[string]any{"list": map[string]any{}, "cancel": map[string]any{},
				"requests": map[string]any{"tools": map[string]any{"call": map[string]any{}}}}}}
	case "tools/list":
		result = map[string]any{"tools": []any{}}
	case "tasks/list":
		from := 0
		_, _ = fmt.Sscan(p.Cursor, &from)
		var page []any
		for i := from; i < min(from+askPage, s.tasks); i++ {
			page = append(page, s.task(s.id(i), "working"))
		}
		list := map[string]any{"tasks": page}
		if from+askPage < s.tasks {
			list["nextCursor"] = fmt.Sprint(from + askPage)
		}
		result = list
	case "tasks/get":
		s.mu.Lock()
		status := "working"
		if s.about == p.TaskID {
			status = "input_required"
		}
		s.mu.Unlock()
		result = s.task(p.TaskID, status)
	case "tasks/result":
		return // its task does not end
	}
	_ = r.Reply(ctx, result)
}

func (s *askServer) serve(ctx context.Context, conn jsonrpc.Conn) {
	p := jsonrpc.NewPeer(conn, s, jsonrpc.PeerOptions{})
	if p.Start(ctx) == nil {
		s.peers <- p
		<-p.Done()
	}
}

// say sends a task's status, unasked.
func (s *askServer) say(ctx context.Context, id, status string) error {
	s.mu.Lock()
	s.about = ""
	if status == "input_required" {
		s.about = id
	}
	s.mu.Unlock()
	return s.peer.Notify(ctx, "notifications/tasks/status", s.task(id, status), nil)
}

// A glass is a terminal on which somebody watches for a text.
type glass struct {
	mu   sync.Mutex
	em   *vt.Emulator
	w, h int
	want string
	seen chan time.Time
}

// behind runs a monitor and the program behind the glass, with its output by way
// of out. It gives what is typed into, and what ends both and all else in the
// group.
func (g *glass) behind(ctx context.Context, stop func(), mon *monitor.Monitor, out io.Writer, all *sync.WaitGroup) (typed *io.PipeWriter, end func()) {
	_, _ = g.em.WriteString("\x1b[20h")
	go func() { _, _ = io.Copy(io.Discard, g.em) }()
	keys, typed := io.Pipe()
	all.Go(func() { _ = mon.Run(ctx) })
	all.Go(func() {
		_ = ui.Run(ctx, mon, ui.Options{Theme: "dark", Input: keys, Output: out, Env: []string{"TERM=xterm-256color", "SSH_TTY=none"},
			Program: []tea.ProgramOption{tea.WithoutSignalHandler(), tea.WithWindowSize(g.w, g.h), tea.WithColorProfile(colorprofile.TrueColor)}})
	})
	return typed, func() {
		stop()
		_ = typed.Close()
		if c, ok := g.em.InputPipe().(io.Closer); ok {
			_ = c.Close()
		}
		all.Wait()
	}
}

func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, err := g.em.Write(p)
	g.look()
	return n, err
}

func (g *glass) look() {
	if g.want == "" {
		return
	}
	var b strings.Builder
	for y := range g.h {
		for x := 0; x < g.w; x++ {
			if c := g.em.CellAt(x, y); c != nil && c.Width > 0 {
				b.WriteString(c.Content)
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	text, gone := strings.CutPrefix(g.want, "!")
	if strings.Contains(b.String(), text) != gone {
		g.want = ""
		g.seen <- time.Now()
	}
}

// wait says when the text stood on the screen; with ! before it, when it did
// not.
func (g *glass) wait(b *testing.B, text string) time.Time {
	b.Helper()
	g.mu.Lock()
	g.want = text
	g.look()
	g.mu.Unlock()
	select {
	case at := <-g.seen:
		return at
	case <-time.After(time.Minute):
		g.mu.Lock()
		defer g.mu.Unlock()
		b.Fatalf("%q did not come:\n%s", text, g.em.String())
	}
	return time.Time{}
}

// BenchmarkQuestion goes the whole way of a question at 10,000 tasks on the
// board, with a real monitor and a server over a pipe: from input_required on
// the wire to the badge on the screen, and from the key that sends the answer
// to the answer on the wire. Busy has the server tell 1,000 statuses a second
// meanwhile.
func BenchmarkQuestion(b *testing.B) {
	for _, busy := range []bool{false, true} {
		b.Run(fmt.Sprintf("tasks=10000/busy=%t", busy), func(b *testing.B) { benchQuestion(b, 10_000, busy) })
	}
}

func benchQuestion(b *testing.B, tasks int, busy bool) {
	ctx, stop := context.WithCancel(context.Background())
	srv := &askServer{tasks: tasks, peers: make(chan *jsonrpc.Peer, 1)}
	mon := monitor.New(monitor.Options{FetchResults: true, Servers: []monitor.ServerSpec{{Name: "bench", Target: "bench", Autostart: true, Era: "legacy", Dialer: transport.PipeDialer(srv.serve)}}})
	g := &glass{em: vt.NewEmulator(120, 40), w: 120, h: 40, seen: make(chan time.Time, 1)}
	var all sync.WaitGroup
	typed, end := g.behind(ctx, stop, mon, g, &all)
	defer end()
	srv.peer = <-srv.peers
	g.wait(b, "10,000 tasks")
	press := func(s string) {
		if _, err := typed.Write([]byte(s)); err != nil {
			b.Fatal(err)
		}
	}
	if busy {
		all.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ; {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				for range 10 {
					i++
					id := srv.id(i % (tasks / 2))
					if srv.peer.Notify(ctx, "notifications/tasks/status", srv.task(id, "working"), nil) != nil {
						return
					}
				}
			}
		})
	}
	var toBadge, toWire []time.Duration
	round := 0
	for b.Loop() {
		round++
		id := srv.id(tasks/2 + round%(tasks/2))
		time.Sleep(time.Duration(60+round%17) * time.Millisecond) // not in step with the frames
		began := time.Now()
		if err := srv.say(ctx, id, "input_required"); err != nil {
			b.Fatal(err)
		}
		answered := make(chan time.Time, 1)
		go func() {
			got, err := srv.peer.Call(ctx, jsonrpc.Call{Method: "elicitation/create", Params: map[string]any{
				"message": fmt.Sprint("Which way, round ", round, "?"), "mode": "form",
				"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{"way": map[string]any{"type": "string", "default": "north"}}},
				"_meta":           map[string]any{"io.modelcontextprotocol/related-task": map[string]any{"taskId": id}}}})
			if err == nil && bytes.Contains(got, []byte(`"north"`)) {
				answered <- time.Now()
			}
		}()
		toBadge = append(toBadge, g.wait(b, "1 question ").Sub(began))

		press("i")
		g.wait(b, "oldest first")
		press("\r")
		g.wait(b, fmt.Sprint("Which way, round ", round, "?"))
		g.wait(b, "Nothing to mend")
		began = time.Now()
		press("\x13") // ctrl+s
		select {
		case at := <-answered:
			toWire = append(toWire, at.Sub(began))
		case <-time.After(time.Minute):
			b.Fatal("the answer did not come")
		}
		if err := srv.say(ctx, id, "working"); err != nil {
			b.Fatal(err)
		}
		g.wait(b, "WAITS") // the form has closed
		press("t")
		g.wait(b, "STATUS")
		g.wait(b, "!1 question ")
	}
	b.StopTimer()
	for name, d := range map[string][]time.Duration{"badge": toBadge, "wire": toWire} {
		slices.Sort(d)
		for _, p := range []int{50, 99} {
			b.ReportMetric(float64(d[(len(d)-1)*p/100])/1e6, fmt.Sprintf("%s-p%d-ms", name, p))
		}
	}
	b.ReportMetric(0, "ns/op")
}
