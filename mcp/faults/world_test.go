package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/demo"
	"mcptasks/mcp/demo/faulty"
	"mcptasks/mcp/memnet"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// A world is one faulty server with the real monitor on it, and a person who
// looks at the board. It lives in a synctest bubble.
type world struct {
	t       *testing.T
	carrier string // "pipe" | "http"
	gen     taskmodel.Generation
	s       *faulty.Server
	wire    *memnet.Site // of HTTP
	m       *monitor.Monitor
	stop    context.CancelFunc
	ended   chan struct{}

	mu    sync.Mutex
	watch map[taskmodel.Key]bool // tasks of which is told; nil: none
	sees  []string
	heard map[string]int // messages by point and method
	all   []message
	said  map[taskmodel.Key][]taskmodel.Status
	calls int // tools that were called
}

type message struct {
	point, method string
	bytes         []byte
}

type worldOptions struct {
	carrier  string
	gen      taskmodel.Generation
	tasks    int
	script   string
	pageSize int
	quiet    bool // not run yet
}

func newWorld(t *testing.T, o worldOptions) *world {
	t.Helper()
	if o.gen == "" {
		o.gen = taskmodel.GenCore
	}
	s, err := faulty.New(demo.Options{Generation: o.gen, Name: "ci", Tasks: o.tasks, Seed: 11, PageSize: o.pageSize}, o.script)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, carrier: o.carrier, gen: o.gen, s: s, ended: make(chan struct{}), watch: map[taskmodel.Key]bool{}, heard: map[string]int{}, said: map[taskmodel.Key][]taskmodel.Status{}}
	s.Overhear(func(point, method string, b []byte) {
		w.mu.Lock()
		w.heard[point+":"+method]++
		if len(b) < 1<<12 {
			w.all = append(w.all, message{point, method, b})
		}
		w.mu.Unlock()
	})
	spec := monitor.ServerSpec{Name: "ci", Target: "faulty", Autostart: true, Dialer: s.Dialer()}
	if o.gen == taskmodel.GenDraft {
		spec.Generation = o.gen
	}
	if o.carrier == "http" {
		w.wire = memnet.Serve(s.Handler())
		spec.Dialer = &transport.HTTP{URL: w.wire.URL, Client: w.wire.Client}
	}
	w.m = monitor.New(monitor.Options{Servers: []monitor.ServerSpec{spec}, FetchResults: true, Seed: 5, Version: "test"})
	if !o.quiet {
		w.run()
	}
	return w
}

// run starts the monitor and waits until nothing moves any more.
func (w *world) run() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.m.Run(ctx)
	}()
	go func() {
		defer close(w.ended)
		for {
			select {
			case <-w.m.Dirty():
				w.listen(w.m.Board())
			case <-done:
				return
			}
		}
	}()
	w.t.Cleanup(w.close)
	synctest.Wait()
}

func (w *world) close() {
	w.stop()
	<-w.ended
	w.s.Close()
	if w.wire != nil {
		w.wire.Close()
	}
	time.Sleep(time.Minute) // what the server still does by itself comes to its end
	synctest.Wait()
}

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	again   = regexp.MustCompile(`\(tried \d+ times, again in [^)]*\)`)
	numbers = regexp.MustCompile(`\b(column|position|offset|after|of|than|at|id|lasted|byte) "?\d[\d_,.a-z]*"?`)
)

var doing = regexp.MustCompile(`\b(asking how task \S+ stands|listing the tasks|listing the tools|fetching the result of task \S+): `)

// plain takes out of a sentence what differs from run to run.
func plain(s string) string {
	s = uuids.ReplaceAllString(s, "TASK")
	s = again.ReplaceAllString(s, "(tried N times, again in Ns)")
	s = numbers.ReplaceAllString(s, "$1 N")
	return strings.ReplaceAll(strings.ReplaceAll(s, "ci/TASK", "TASK"), "ci: ", "")
}

// note remembers what a person sees, each sentence once.
func (w *world) note(format string, a ...any) {
	line := plain(fmt.Sprintf(format, a...))
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.sees, line) {
		w.sees = append(w.sees, line)
	}
}

// listen remembers every status that the board gives a task.
func (w *world) listen(v *board.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.Tasks(func(t *taskmodel.Task) bool {
		if said := w.said[t.Key]; len(said) == 0 || said[len(said)-1] != t.Status {
			w.said[t.Key] = append(said, t.Status)
		}
		return true
	})
}

// look notes what is out of order on a version of the board. It is called when
// nothing moves: what a person would not see either is not seen.
func (w *world) look(v *board.Version) {
	if s, ok := v.Server("ci"); ok {
		if s.Error != "" {
			// Of several requests in one instant any may be the first to fail.
			w.note("server %s: %s", s.State, doing.ReplaceAllString(s.Error, ""))
		}
		if s.State == taskmodel.ServerConnecting && time.Since(s.StateSince) > 10*time.Second {
			w.note("server connecting, for longer than it should")
		}
		if s.Listing && time.Since(s.StateSince) > 10*time.Second {
			w.note("the list is still being fetched")
		}
		if s.ListIncomplete != "" {
			w.note("list incomplete: %s", s.ListIncomplete)
		}
		if s.Can.ListWhy != "" && w.gen != taskmodel.GenExtension {
			w.note("%s", s.Can.ListWhy)
		}
	}
	v.Tasks(func(t *taskmodel.Task) bool {
		w.mu.Lock()
		watched := w.watch[t.Key]
		w.mu.Unlock()
		if !watched {
			return true
		}
		if t.Standing != taskmodel.Live {
			w.note("task %s: %s", t.Standing, t.Note)
		} else if t.Note != "" {
			w.note("task: %s", t.Note)
		}
		if t.CancelNote != "" {
			w.note("cancel %s", t.CancelNote)
		}
		for _, x := range t.Transitions {
			if x.Note != "" {
				w.note("time line: %s", x.Note)
			}
		}
		return true
	})
	for _, q := range v.Questions() {
		w.mu.Lock()
		watched := q.Task.ID == "" || w.watch[q.Task]
		w.mu.Unlock()
		if !watched {
			// Over HTTP a question comes on a stream of its own: whether one of a task
			// that was merely listed is there before its session is lost is chance.
			continue
		}
		switch {
		case q.State == taskmodel.QuestionWithdrawn && !strings.HasPrefix(q.Withdrawn, "the task ended"):
			w.note("question withdrawn: %s", q.Withdrawn)
		case q.State == taskmodel.QuestionRefused:
			w.note("question refused: %s", q.Refusal)
		case q.State == taskmodel.QuestionUnconfirmed:
			w.note("answer sent, outcome unknown")
		}
	}
}

// wait waits on the bubble's clock until ok, and reports whether it came to be.
func (w *world) wait(most time.Duration, ok func(v *board.Version) bool) bool {
	for end := time.Now().Add(most); ; time.Sleep(250 * time.Millisecond) {
		synctest.Wait()
		v := w.m.Board()
		w.look(v)
		if ok(v) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

func (w *world) must(what string, most time.Duration, ok func(v *board.Version) bool) {
	w.t.Helper()
	if !w.wait(most, ok) {
		w.t.Fatalf("not within %v: %s\n%s", most, what, w.dump())
	}
}

func (w *world) ready(v *board.Version) bool {
	s, _ := v.Server("ci")
	return s.State == taskmodel.ServerReady && s.Error == "" && !s.Listing
}

func (w *world) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard[what]
}

// ctx is the patience of a person.
func (w *world) ctx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Minute)
}

// start starts a task, which must succeed.
func (w *world) start(tool, args string) taskmodel.Key {
	w.t.Helper()
	ctx, stop := w.ctx()
	defer stop()
	w.calls++
	r, err := w.m.Start(ctx, monitor.StartRequest{Server: "ci", Tool: tool, Args: json.RawMessage(args)})
	if errors.Is(err, mcp.ErrSessionLost) {
		// A call goes out once; the person starts it again.
		w.calls++
		w.must("a new session", time.Minute, w.ready)
		r, err = w.m.Start(ctx, monitor.StartRequest{Server: "ci", Tool: tool, Args: json.RawMessage(args)})
	}
	if err != nil || r.Key.ID == "" {
		w.t.Fatalf("starting %s: %+v %v\n%s", tool, r, err, w.dump())
	}
	w.mu.Lock()
	w.watch[r.Key] = true
	w.mu.Unlock()
	return r.Key
}

func (w *world) task(k taskmodel.Key) taskmodel.Task {
	t, _ := w.m.Board().Task(k)
	return t
}

// question is the open question of a task.
func question(v *board.Version, k taskmodel.Key) (taskmodel.Question, bool) {
	for _, q := range v.Questions() {
		if q.Task == k && q.State.Open() {
			return q, true
		}
	}
	return taskmodel.Question{}, false
}

var wireMax = 12

const approval = `{"strategy":"canary","ticket":"CHG-20417"}`

func (w *world) answer(q taskmodel.QuestionID) error {
	ctx, stop := w.ctx()
	defer stop()
	return w.m.Answer(ctx, taskmodel.Answer{Question: q, Action: taskmodel.Accept, Content: json.RawMessage(approval)})
}

// truth asks the server behind the script, on a connection without faults.
func (w *world) truth(f func(ctx context.Context, t mcp.Tasks)) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	c, err := mcp.Connect(ctx, mcp.Options{Name: "truth", Dialer: demo.Dialer(w.s.Demo()), Generation: w.gen, ProbeTimeout: time.Second})
	if err != nil {
		w.t.Fatalf("asking the server itself: %v", err)
	}
	f(ctx, c.Tasks())
	_ = c.Close(ctx, true)
}

// well asserts that all is well now: the server is ready, what is on the board
// is what the server says, and a task can be started, watched and read.
func (w *world) well() {
	w.t.Helper()
	w.must("the server is well", 15*time.Minute, w.ready)
	w.must("the rows are live", 15*time.Minute, func(v *board.Version) bool {
		ok := true
		v.Tasks(func(t *taskmodel.Task) bool {
			ok = ok && (t.Standing == taskmodel.Live || t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired)
			return ok
		})
		s, _ := v.Server("ci")
		return ok && s.ListIncomplete == ""
	})
	k := w.start("lint_file", `{"path":"after.go"}`)
	w.must("a task started afterwards ends and its result is here", 2*time.Minute, func(v *board.Version) bool {
		t, _ := v.Task(k)
		return t.Status == taskmodel.Completed && t.Outcome.Result != nil
	})
	v := w.m.Board()
	w.truth(func(ctx context.Context, tasks mcp.Tasks) {
		v.Tasks(func(t *taskmodel.Task) bool {
			if t.Role == taskmodel.Receiver {
				return true
			}
			s, err := tasks.Get(ctx, t.ID)
			lost := t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired
			switch {
			case err != nil && !lost && !t.Terminal():
				w.t.Errorf("%s is %s on the board and unknown to the server", t.Key, t.Status)
			case err == nil && lost:
				w.t.Errorf("%s is %s on the board and %s on the server", t.Key, t.Standing, s.Status)
			case err == nil && s.Status != t.Status:
				w.t.Errorf("%s is %s on the board and %s on the server", t.Key, t.Status, s.Status)
			}
			return true
		})
	})
}

// sights are the sentences so far.
func (w *world) sights() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sees)
}

func (w *world) dump() string {
	var b strings.Builder
	v := w.m.Board()
	for _, s := range v.Servers() {
		fmt.Fprintf(&b, "server %s %s %q listing %v incomplete %q\n", s.Name, s.State, s.Error, s.Listing, s.ListIncomplete)
	}
	n := 0
	v.Tasks(func(t *taskmodel.Task) bool {
		fmt.Fprintf(&b, "  %s %s %s %s %q outcome %v\n", t.ID, t.Tool, t.Status, t.Standing, t.Note, !t.Outcome.IsZero())
		n++
		return n < 8
	})
	for _, q := range v.Questions() {
		fmt.Fprintf(&b, "  question %s %s of %s: %s%s\n", q.ID.ID, q.State, q.Task, q.Refusal, q.Withdrawn)
	}
	fmt.Fprintf(&b, "  sights: %s\n  fired: %d", strings.Join(w.sights(), "\n          "), len(w.s.Fired()))
	for _, e := range w.m.Wire(monitor.WireFilter{Max: wireMax}) {
		fmt.Fprintf(&b, "\n  %s %s %s %s %.160s %s", e.At.Format("04:05.000"), e.Direction, e.Kind, e.Method, e.Bytes, e.Fault)
	}
	return b.String()
}
