package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/demo/faulty"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/proctest"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// TestMain lets the test's own binary be a server on stdio that goes wrong. The
// first process to take the script does; those after it are well.
func TestMain(m *testing.M) {
	name, ok := os.LookupEnv("FAULTY_SCRIPT")
	if !ok {
		os.Exit(m.Run())
	}
	script := ""
	for _, one := range []string{name, name + ".again"} {
		if os.Rename(one, one+".taken") == nil {
			script = "@" + one + ".taken"
			break
		}
	}
	o := served(taskmodel.Generation(os.Getenv("FAULTY_GENERATION")), os.Getenv("FAULTY_KNOWN") != "")
	if err := faulty.Stdio(context.Background(), o, script); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(0)
}

// served is the demo server of such a process: ten times as fast, so that a
// question comes soon, and has minutes of patience. known has it come with a
// task, under the same id in each process.
func served(gen taskmodel.Generation, known bool) demo.Options {
	o := demo.Options{Generation: gen, Speed: 10, Seed: 11}
	if known {
		o.Tasks = 1
	}
	return o
}

// A processFault is what a real process does at an operation. {at} is where.
type processFault struct {
	name   string
	script string
	says   string // what the person has to be told of the server; "" nothing
	byHand bool   // a person reconnects
	ends   bool   // the process: its tasks are lost
}

var processFaults = []processFault{
	{name: "crashes", script: "{at} crash 3", says: "ended with exit code 3", ends: true},
	{name: "is killed", script: "{at} reset", says: "was ended by a signal (killed)", ends: true},
	{name: "exits in good order", script: "{at} restart lose", says: "ended with exit code 0", ends: true},
	{name: "crashes and leaves a child that holds its output and heeds no SIGTERM", script: "start grandchild; {at} crash 3", says: "ended with exit code 3", ends: true},
	{name: "hangs, ignores the end of its input, and leaves such a child", script: "start grandchild; {at} hang; eof ignore", byHand: true, ends: true},
	{name: "moves its clock an hour on", script: "{at} clock 1h"},
}

// A processOperation is what mcptasks does then: it starts a task with a tool
// and, where there is something to do with it, does that.
type processOperation struct {
	name string
	at   map[taskmodel.Generation]string
	tool string // "" is none: the fault strikes while it connects
	args string
	act  func(p *process, k taskmodel.Key) error
	// known: no task is started, but one taken up by its id, which the server
	// still has in its next process.
	known bool
	// also is said by the server from the start, beside the fault.
	also map[taskmodel.Generation]string
}

// points are where an operation is hit in 2025-11-25, 2026-07-28 and the draft;
// "" where a generation does not have it.
func points(c, x, d string) map[taskmodel.Generation]string {
	return map[taskmodel.Generation]string{core: c, ext: x, draft: d}
}

// silent has a server of 2026-07-28 bring nothing by pushes: what is told there
// is asked for.
var silent = map[taskmodel.Generation]string{ext: "notification:notifications/subscriptions/acknowledged* never; notification:notifications/tasks* never; "}

var processOperations = []processOperation{
	{name: "connect", at: points("response:initialize", "response:server/discover", "response:initialize")},
	{name: "list", at: points("response:tasks/list", "", "response:tasks/list")},
	{name: "known ids", at: points("", "response:tasks/get", ""), known: true},
	{name: "poll", at: points("response:tasks/get", "response:tasks/get", "response:tasks/get"), also: silent, tool: "reindex_search", args: `{"index":"a"}`},
	{name: "push", at: points("notification:notifications/tasks/status", "notification:notifications/tasks", ""), tool: "build", args: `{"target":"api"}`},
	{name: "question", at: points("question:elicitation/create", `response:tasks/get~"inputRequests"`, "question:elicitation/create"), also: silent, tool: "deploy_release", args: `{"service":"api","version":"v4.12.0"}`},
	{name: "answer", at: points("answer:elicitation/create", "response:tasks/update", "answer:elicitation/create"), tool: "deploy_release", args: `{"service":"api","version":"v4.12.0"}`,
		act: func(p *process, k taskmodel.Key) error {
			var q taskmodel.Question
			if err := p.until("the question", func(v *board.Version) bool { var ok bool; q, ok = question(v, k); return ok }); err != nil {
				return err
			}
			// What is said of it differs with the moment at which the end of the
			// process is heard; that it comes back is what counts.
			_ = p.m.Answer(p.ctx, taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(approval)})
			return nil
		}},
	{name: "cancel", at: points("response:tasks/cancel", "response:tasks/cancel", ""), tool: "reindex_search", args: `{"index":"a"}`,
		act: func(p *process, k taskmodel.Key) error {
			_ = p.m.Cancel(p.ctx, k) // as above
			return nil
		}},
	{name: "result", at: points("response:tasks/result", `response:tasks/get~"completed"`, ""), also: silent, tool: "lint_file", args: `{"path":"a.go"}`},
}

// A process is one such server with the monitor on it. Time is real.
type process struct {
	ctx   context.Context
	m     *monitor.Monitor
	known string // the id of a task that each process of the server has

	mu      sync.Mutex
	wake    chan struct{} // closed when something changes, and replaced
	said    []string      // of the server, each sentence once
	struck  bool          // the fault
	started int           // processes
	left    map[int]bool  // the groups of processes that are still there
	kin     []int         // the children that servers left
}

// patience bounds what would otherwise hang; nothing is expected to take so
// long, and nothing is concluded from what took less.
const patience = proctest.Patience

// until waits for what a change of the board or of the processes brings.
func (p *process) until(what string, ok func(v *board.Version) bool) error {
	give := time.NewTimer(patience)
	defer give.Stop()
	for {
		next := p.next() // before looking: what comes meanwhile is not missed
		v := p.m.Board()
		if s, found := v.Server("ci"); found && s.Error != "" {
			p.hear(s.Error)
		}
		if ok(v) {
			return nil
		}
		select {
		case <-next:
		case <-give.C:
			s, _ := v.Server("ci")
			return fmt.Errorf("not in %s: %s; the server is %s %q; said was:\n%s", patience, what, s.State, s.Error, p.heard())
		}
	}
}

// changed wakes all who wait.
func (p *process) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.wake)
	p.wake = make(chan struct{})
}

// next is closed by the next change.
func (p *process) next() <-chan struct{} { p.mu.Lock(); defer p.mu.Unlock(); return p.wake }

// with changes what is known of the processes.
func (p *process) with(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	p.changed()
}

// is looks at what is known of the processes.
func (p *process) is(f func() bool) func(*board.Version) bool {
	return func(*board.Version) bool { p.mu.Lock(); defer p.mu.Unlock(); return f() }
}

func (p *process) hear(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, have := range p.said {
		if have == s {
			return
		}
	}
	p.said = append(p.said, s)
}

func (p *process) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.said, "\n")
}

// stderr is one line that the server wrote there.
func (p *process) stderr(line string) {
	var pid int
	switch n, _ := fmt.Sscanf(line, "grandchild %d", &pid); {
	case n == 1:
		p.with(func() { p.kin = append(p.kin, pid) })
	case strings.HasPrefix(line, "scripted "), strings.HasPrefix(line, "panic: scripted "):
		p.with(func() { p.struck = true })
	}
}

func (p *process) ready(v *board.Version) bool {
	s, _ := v.Server("ci")
	return s.State == taskmodel.ServerReady && s.Error == "" && !s.Listing
}

func (p *process) start(tool, args string) (taskmodel.Key, error) {
	r, err := p.m.Start(p.ctx, monitor.StartRequest{Server: "ci", Tool: tool, Args: json.RawMessage(args)})
	if err == nil && r.Key.ID == "" {
		err = errors.New("a plain result")
	}
	if err != nil {
		return taskmodel.Key{}, fmt.Errorf("starting %s: %w", tool, err)
	}
	return r.Key, nil
}

// TestProcesses puts what only a real process can do at every operation.
func TestProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("signals and sh")
	}
	// They wait most of the time; more at once would only be in each other's way.
	places := make(chan struct{}, 28)
	var wg sync.WaitGroup
	for _, gen := range []taskmodel.Generation{core, ext, draft} {
		for _, f := range processFaults {
			for _, op := range processOperations {
				at := op.at[gen]
				if at == "" || proctest.Race && gen == draft {
					continue
				}
				dir := t.TempDir()
				wg.Go(func() {
					places <- struct{}{}
					defer func() { <-places }()
					if err := runProcess(dir, gen, f, op, at); err != nil {
						t.Errorf("%s, %s, %s: %v", gen, f.name, op.name, err)
					}
				})
			}
		}
	}
	wg.Wait()
}

func runProcess(dir string, gen taskmodel.Generation, f processFault, op processOperation, at string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	script := filepath.Join(dir, "script")
	text := []byte(op.also[gen] + strings.ReplaceAll(f.script, "{at}", at))
	if err := os.WriteFile(script, text, 0o600); err != nil {
		return err
	}
	if gen == ext && op.tool == "" && !op.known && f.says != "" {
		// A program that ends at server/discover is started a second time before
		// anything is said of it: old ones do not survive an unknown request.
		if err := os.WriteFile(script+".again", text, 0o600); err != nil {
			return err
		}
	}
	known := ""
	if op.known {
		s := demo.New(served(gen, true))
		known = s.Handles()[0].ID
		s.Close()
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &process{known: known, ctx: ctx, wake: make(chan struct{}), left: map[int]bool{}}
	spec := monitor.ServerSpec{Name: "ci", Target: "process", Autostart: true,
		Dialer: &transport.Stdio{Command: self, Grace: 300 * time.Millisecond, Stderr: p.stderr,
			Env: append(os.Environ(), "FAULTY_SCRIPT="+script, "FAULTY_GENERATION="+string(gen), "FAULTY_KNOWN="+known),
			Group: func(pid int, gone bool) {
				p.with(func() {
					if gone {
						delete(p.left, pid)
						return
					}
					p.started++
					p.left[pid] = true
				})
			}}}
	if gen != ext { // which is found out, as it is by those who configure nothing
		spec.Generation = gen
	}
	p.m = monitor.New(monitor.Options{Servers: []monitor.ServerSpec{spec}, FetchResults: true, Version: "test"})
	events, deaf := p.m.Events(64)
	var listeners sync.WaitGroup
	listeners.Go(func() {
		for e := range events {
			if e.Task.ID == "" {
				p.hear(e.Message + string(e.Detail))
			}
			p.changed()
		}
	})
	listeners.Go(func() {
		for {
			select {
			case <-p.m.Dirty():
				p.changed()
			case <-ctx.Done():
				return
			}
		}
	})
	done := make(chan error, 1)
	go func() { done <- p.m.Run(ctx) }()
	err = p.through(f, op)
	stop()
	err = errors.Join(err, <-done)
	deaf()
	listeners.Wait()
	// The end of a process is the kernel's to bring about, after it was asked to.
	err = errors.Join(err, p.until("the processes of the server are gone", p.is(func() bool { return len(p.left) == 0 })))
	for _, pid := range p.kin {
		for end := time.Now().Add(patience); proctest.Alive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				return errors.Join(err, fmt.Errorf("the child %d of the server is left", pid))
			}
		}
	}
	return err
}

// through is the fault, what is said of it, and that all is well afterwards.
func (p *process) through(f processFault, op processOperation) error {
	type outcome struct {
		key taskmodel.Key
		err error
	}
	acted := make(chan outcome, 1)
	if op.tool == "" && !op.known {
		acted <- outcome{}
	} else {
		if err := p.until("connected", p.ready); err != nil {
			return err
		}
		go func() {
			var k taskmodel.Key
			var err error
			if op.known {
				// An error says what became of the request; it can be made again.
				_, _ = p.m.Add(p.ctx, "ci", p.known)
			} else {
				k, err = p.start(op.tool, op.args)
			}
			if err == nil && op.act != nil {
				err = op.act(p, k)
			}
			acted <- outcome{k, err}
			p.changed()
		}()
	}
	if err := p.until("the fault", p.is(func() bool { return p.struck || f.says != "" && p.started > 1 })); err != nil {
		return err
	}
	if f.says != "" {
		if err := p.until("it is said of whom that it "+f.says+", and what to do", func(*board.Version) bool {
			said := p.heard()
			return strings.Contains(said, "ci: ") && strings.Contains(said, f.says) && strings.Contains(said, "correct its entry")
		}); err != nil {
			return err
		}
	}
	if f.byHand {
		p.m.Connect("ci")
	}
	if f.ends {
		if err := p.until("another process", p.is(func() bool { return p.started > 1 })); err != nil {
			return err
		}
	}
	if err := p.until("all is well", p.ready); err != nil {
		return err
	}
	var o outcome
	select {
	case o = <-acted:
	case <-time.After(patience):
		return errors.New("what was done does not come back")
	}
	if o.err != nil && (!f.ends || o.key.ID != "") {
		return o.err // else the process may have ended before it told of the task
	}
	if o.key.ID != "" && f.ends {
		// Its end may have been told before.
		if err := p.until("the task is gone, or has ended before", func(v *board.Version) bool {
			t, ok := v.Task(o.key)
			return ok && (t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired || t.Terminal())
		}); err != nil {
			return err
		}
		v := p.m.Board()
		if t, _ := v.Task(o.key); t.Standing == taskmodel.Gone && !t.Terminal() && !strings.Contains(t.Note, "outcome is unknown") {
			return fmt.Errorf("of the task is said %s %q", t.Standing, t.Note)
		}
	}
	if op.known {
		t, err := p.m.Add(p.ctx, "ci", p.known)
		if err != nil {
			return fmt.Errorf("taking up the task that the server has: %w", err)
		}
		if err := p.until("the known task ends", func(v *board.Version) bool { t, ok := v.Task(t.Key); return ok && t.Terminal() }); err != nil {
			return err
		}
	}
	if !f.ends && strings.Contains(p.heard(), string(taskmodel.ServerRetrying)) {
		return fmt.Errorf("trouble was shown: %s", p.heard())
	}
	k, err := p.start("lint_file", `{"path":"after.go"}`)
	if err != nil {
		return err
	}
	return p.until("a task started afterwards ends and its result is here", func(v *board.Version) bool {
		t, _ := v.Task(k)
		return t.Status == taskmodel.Completed && t.Outcome.Result != nil
	})
}

// processTable is the part of FAULTS.md that TestProcesses asserts.
func processTable() string {
	var b strings.Builder
	b.WriteString(`
## Real processes on stdio

A server that is a process of its own does each of these at each operation (`)
	var names []string
	for _, op := range processOperations {
		names = append(names, op.name)
	}
	b.WriteString(strings.Join(names, ", ") + `),
in each generation, where that has them: lists are of 2025-11-25 and the draft, known ids of 2026-07-28; TestProcesses asserts
it. Afterwards a new process serves, a task that is started in it ends and has its result, and of the old one no process is
left, nor any that it had started. A 2026-07-28 server is found out by server/discover, and a program that ends at it is
started a second time before anything is said of it.

| the process | what the person sees |
|---|---|
`)
	for _, f := range processFaults {
		var sees []string
		if f.says != "" {
			sees = append(sees, "server: the program "+f.says)
		}
		if f.byHand {
			sees = append(sees, "(reconnected by hand)")
		}
		if f.ends {
			sees = append(sees, "task gone: its outcome is unknown; or its end, where that was told before")
		}
		if len(sees) == 0 {
			sees = append(sees, "nothing")
		}
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, strings.Join(sees, "<br>"))
	}
	return b.String()
}

// TestProcessTable holds that part up to date where TestMatrix does not run.
func TestProcessTable(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "FAULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !*update && !strings.HasSuffix(string(b), processTable()) {
		t.Error("FAULTS.md does not end with what TestProcesses asserts: go test ./mcp/faults -run TestMatrix -update")
	}
}
