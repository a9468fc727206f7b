package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/demo/faulty"
	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

const (
	serveEnv = "MCPTASKS_SOAK_SERVE" // makes this binary a server: what it is to be, as JSON
	markEnv  = "MCPTASKS_SOAK_MARK"  // by which all that we started is found
	patience = 2 * time.Minute       // for what has to come: a machine may be busy
)

// A program is what a server process is to be.
type program struct {
	Generation taskmodel.Generation
	Seed       uint64
	Script     string
}

// serve is the child process.
func serve() int {
	var p program
	if err := json.Unmarshal([]byte(os.Getenv(serveEnv)), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := faulty.Stdio(context.Background(), demo.Options{Generation: p.Generation, Name: "soak", Seed: p.Seed, Speed: 100}, p.Script); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A mortal is a server that is a child process, and another one after each of
// its deaths, with a script drawn anew until there is calm.
type mortal struct {
	name string
	gen  taskmodel.Generation
	exe  string
	mark string

	mu   sync.Mutex
	rng  *rand.Rand
	calm bool
	life int // counts the processes
}

func (p *mortal) Kind() string { return "stdio" }

func (p *mortal) Dial(ctx context.Context, era string) (jsonrpc.Conn, error) {
	p.mu.Lock()
	p.life++
	prog := program{Generation: p.gen, Seed: p.rng.Uint64()}
	if !p.calm {
		prog.Script = p.script()
	}
	p.mu.Unlock()
	b, err := json.Marshal(prog)
	if err != nil {
		return nil, err
	}
	s := &transport.Stdio{Command: p.exe, Env: append(os.Environ(), serveEnv+"="+string(b), markEnv+"="+p.mark)}
	return s.Dial(ctx, era)
}

// script is how the next process will fail.
func (p *mortal) script() string {
	pick := func(of ...string) string { return of[p.rng.IntN(len(of))] }
	nth := fmt.Sprintf("#%d", 3+p.rng.IntN(12))
	s := pick("response", "response:tasks/get", "response:tools/call", "notification", "request:tasks/get", "request:tasks/result") + nth + " " +
		pick("crash 3", "crash 0", "reset", "close", "halfclose", "hang", "restart", "stderr 100000", "late 1s")
	if p.rng.IntN(3) == 0 {
		s += "; start grandchild"
	}
	if p.rng.IntN(3) == 0 {
		s += "; eof ignore"
	}
	return s
}

func (p *mortal) lives() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// TestSoakProcesses has servers that are real programs and die in every way,
// with the monitor starting them again: every task that was heard of comes to an
// end or is said to be gone, none of a living process is lost, and in the end no
// process, of theirs or of what they started, no file and no goroutine is left.
func TestSoakProcesses(t *testing.T) {
	servers, tasks := 3, 6
	seed := uint64(number(t, "MCPTASKS_SOAK_SEED", 1))
	if length(t) > 0 {
		servers, tasks = 8, 40
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := openFiles(t)
	mark := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	var mortals []*mortal
	var specs []monitor.ServerSpec
	for i := range servers {
		p := &mortal{name: fmt.Sprintf("p%d", i), gen: []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension, taskmodel.GenDraft}[i%3],
			exe: exe, mark: mark, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		mortals = append(mortals, p)
		spec := monitor.ServerSpec{Name: p.name, Target: p.name, Autostart: true, Dialer: p}
		if p.gen == taskmodel.GenDraft {
			spec.Generation = p.gen
		}
		specs = append(specs, spec)
	}
	m := monitor.New(monitor.Options{Servers: specs, FetchResults: true, Seed: seed, Version: "soak"})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	ended := false
	end := func() {
		if !ended {
			ended = true
			stop()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	}
	defer end()

	// A time of trouble.
	var mu sync.Mutex
	begun := map[taskmodel.Key]int{} // with the process that runs it
	var people sync.WaitGroup
	for _, p := range mortals {
		people.Go(func() {
			for i := range tasks {
				sctx, stop := context.WithTimeout(ctx, 10*time.Second)
				life := p.lives()
				r, err := m.Start(sctx, monitor.StartRequest{Server: p.name, Tool: []string{"lint_file", "build", "run_tests"}[i%3],
					Args: json.RawMessage([]string{`{"path":"a.go"}`, `{"target":"api"}`, `{"package":"x"}`}[i%3])})
				stop()
				if err == nil && r.Key.ID != "" {
					mu.Lock()
					begun[r.Key] = life
					mu.Unlock()
				}
				if i%2 == 1 {
					m.Connect(p.name) // another process
				}
			}
		})
	}
	people.Wait()

	// Calm. What was begun is over now, since stdio's tasks end with their
	// program; what is begun from now on ends well.
	for _, p := range mortals {
		p.mu.Lock()
		p.calm = true
		p.mu.Unlock()
		m.Connect(p.name)
	}
	last := map[taskmodel.Key]bool{}
	for _, p := range mortals {
		sctx, stop := context.WithTimeout(ctx, patience)
		var r monitor.StartReply
		for sctx.Err() == nil {
			// The process of before may be the one that is still there.
			if r, err = m.Start(sctx, monitor.StartRequest{Server: p.name, Tool: "lint_file", Args: json.RawMessage(`{"path":"b.go"}`)}); err == nil {
				break
			}
			m.Connect(p.name)
		}
		stop()
		if err != nil {
			t.Fatalf("%s is not well again: %v", p.name, err)
		}
		last[r.Key] = true
	}
	open := func() (what string) {
		v := m.Board()
		v.Tasks(func(x *taskmodel.Task) bool {
			gone := x.Standing == taskmodel.Gone || x.Standing == taskmodel.Expired
			switch {
			case last[x.Key] && (x.Status != taskmodel.Completed || x.Outcome.Result == nil):
				what = fmt.Sprintf("%s, started in the calm, is %s %s %q", x.Key, x.Status, x.Standing, x.Note)
			case !x.Terminal() && !gone:
				what = fmt.Sprintf("%s is %s %s %q", x.Key, x.Status, x.Standing, x.Note)
			}
			return what == ""
		})
		return what
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	for what := open(); what != ""; what = open() {
		select {
		case <-m.Dirty():
		case <-wait.C:
			t.Fatalf("stuck: %s", what)
		}
	}
	v := m.Board()
	for k := range begun {
		if _, ok := v.Task(k); !ok {
			t.Errorf("lost: %s has no row", k)
		}
	}
	lives := 0
	for _, p := range mortals {
		lives += p.lives()
	}
	end()

	left := marked(t, mark)
	for limit := time.Now().Add(patience); len(left) > 0 && time.Now().Before(limit); left = marked(t, mark) {
		time.Sleep(50 * time.Millisecond) // SIGKILL was sent; the kernel takes its time
	}
	if len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if n := openFiles(t) - files; n > 0 {
		t.Errorf("%d files are left open", n)
	}
	t.Logf("seed %d: %d servers in %d processes, %d tasks begun in trouble; 0 lost, 0 stuck, %d processes left", seed, servers, lives, len(begun), len(left))
}

// marked are the command lines of the processes with our mark in their
// environment; none where that cannot be known.
func marked(t *testing.T, mark string) (left []string) {
	t.Helper()
	d, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range d {
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || !bytes.Contains(env, []byte(markEnv+"="+mark)) {
			continue
		}
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && len(line) > 0 {
			left = append(left, e.Name()+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return left
}
