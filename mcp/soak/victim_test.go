package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/demo"
	"mcptasks/mcp/demo/faulty"
	"mcptasks/mcp/memnet"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// A victim is one server of the soak with the person who works on it, and what
// truly happened there.
type victim struct {
	s    *soak
	name string
	gen  taskmodel.Generation
	http bool
	srv  *faulty.Server
	site *memnet.Site
	rng  *rand.Rand // the trouble's
	hand *rand.Rand // the person's, where tasks are started
	eye  *rand.Rand // and where they are tended

	mu      sync.Mutex
	epoch   int // counts the restarts that lost the tasks
	n       int // numbers what is sent, so that it can be told apart on the wire
	begun   map[taskmodel.Key]*deed
	wireSaw map[string][]string // marks that went over the wire, with when and in what
	pressed map[taskmodel.Key]int
	cancels map[taskmodel.Key]int
	ticket  map[taskmodel.QuestionID]time.Time // when last answered
	tried   map[taskmodel.Key]time.Time        // when last asked for
	past    []string                           // the last messages and faults
	hurt    bool                               // something was bad here
}

// remembered is how many messages and faults of a server are kept, for a seed
// repeats a run only as far as the scheduler lets it.
const remembered = 250

func (v *victim) note(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.past) == 2*remembered {
		v.past = append(v.past[:0], v.past[remembered:]...)
	}
	v.past = append(v.past, strings.Clone(what[:min(len(what), 300)]))
}

// bad is soak's, with what happened last at this server said by tell. It is
// called by the soak's own goroutine.
func (v *victim) bad(kind, format string, a ...any) {
	v.hurt = true
	v.s.bad(kind, format, a...)
}

// tell says what happened last where something was bad.
func (v *victim) tell() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hurt {
		v.s.t.Logf("%s, the last of what happened:\n%s", v.name, strings.Join(v.past[max(0, len(v.past)-remembered):], "\n"))
	}
}

// A deed is one task that was started.
type deed struct {
	tool  string
	epoch int
	lost  bool // the server has lost it, or may have
}

// headerMismatch is the code of a call whose header fields were refused.
const headerMismatch = -32020

var (
	marks     = regexp.MustCompile(`(CHG-\d{6}|mark-\d+)`)
	cancelled = regexp.MustCompile(`"taskId":"([^"]+)"`)
)

func newVictim(s *soak, i int) *victim {
	v := &victim{s: s, name: fmt.Sprintf("s%02d", i), rng: rand.New(rand.NewPCG(s.seed, uint64(i))), hand: rand.New(rand.NewPCG(s.seed^0xabcdef, uint64(i))),
		eye: rand.New(rand.NewPCG(s.seed^0x123456, uint64(i)))}
	v.gen = []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenCore, taskmodel.GenExtension, taskmodel.GenExtension, taskmodel.GenDraft}[i%5]
	v.http = i%5 == 1 || i%5 == 3
	srv, err := faulty.New(demo.Options{Generation: v.gen, Name: v.name, Seed: s.seed + uint64(i)*131 + 1}, "")
	if err != nil {
		s.t.Fatal(err)
	}
	v.srv = srv
	srv.Overhear(v.overhear)
	if v.http {
		v.site = memnet.Serve(srv.Handler())
	}
	v.reset()
	return v
}

func (v *victim) reset() {
	v.begun, v.wireSaw, v.pressed, v.cancels = map[taskmodel.Key]*deed{}, map[string][]string{}, map[taskmodel.Key]int{}, map[taskmodel.Key]int{}
	v.ticket, v.tried = map[taskmodel.QuestionID]time.Time{}, map[taskmodel.Key]time.Time{}
}

func (v *victim) spec() monitor.ServerSpec {
	spec := monitor.ServerSpec{Name: v.name, Target: "soak " + v.name, Autostart: true, Dialer: v.srv.Dialer()}
	if v.http {
		spec.Dialer = &transport.HTTP{URL: v.site.URL, Client: v.site.Client}
	}
	if v.gen == taskmodel.GenDraft {
		spec.Generation = taskmodel.GenDraft
	}
	return spec
}

// overhear counts what the client sends that must not go out twice.
func (v *victim) overhear(point, method string, b []byte) {
	what := fmt.Sprintf("%v %s:%s %.900s", time.Since(v.s.begun), point, method, b)
	v.note(what)
	switch point + ":" + method {
	case "response:tools/call":
		// What the server refused for its header fields it has not looked at: the
		// client asks for the tools anew and calls again (2026-07-28, transports,
		// "Client Behavior").
		var m struct {
			ID    json.RawMessage
			Error struct{ Code int }
		}
		if json.Unmarshal(b, &m) != nil || m.Error.Code != headerMismatch {
			return
		}
		id := `"id":` + string(m.ID) + ","
		v.mu.Lock()
		defer v.mu.Unlock()
		for mark, saw := range v.wireSaw {
			v.wireSaw[mark] = slices.DeleteFunc(saw, func(s string) bool {
				return strings.Contains(s, "request:tools/call") && strings.Contains(s, id)
			})
		}
	case "request:tools/call", "request:tasks/update", "answer:elicitation/create":
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, m := range marks.FindAllString(string(b), -1) {
			v.wireSaw[m] = append(v.wireSaw[m], what)
		}
	case "request:tasks/cancel":
		v.mu.Lock()
		defer v.mu.Unlock()
		if m := cancelled.FindSubmatch(b); m != nil {
			id := "cancel " + string(m[1])
			v.wireSaw[id] = append(v.wireSaw[id], what)
		}
	}
}

func (v *victim) fresh(wave int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rng = rand.New(rand.NewPCG(v.s.seed+uint64(wave), uint64(len(v.name))+v.rng.Uint64()))
}

// suffer breaks the server at random until there is calm.
func (v *victim) suffer(calm <-chan struct{}) {
	for {
		wait := time.Duration(5+v.rng.IntN(90)) * time.Second
		select {
		case <-calm:
			return
		case <-time.After(wait):
		}
		script, stuck := v.trouble()
		if script == "lose" {
			v.lose()
			continue
		}
		v.note(fmt.Sprintf("%v fault: %s", time.Since(v.s.begun), script))
		if err := v.srv.Add(script); err != nil {
			v.s.t.Errorf("%s: %v", script, err)
		}
		select {
		case <-calm:
			return
		case <-time.After(time.Duration(5+v.rng.IntN(60)) * time.Second):
		}
		v.s.mu.Lock()
		v.s.sum.faults += len(v.srv.Fired())
		v.s.mu.Unlock()
		v.srv.Clear()
		if stuck {
			v.srv.Restart(true)
		}
		if v.rng.IntN(8) == 0 {
			v.srv.Demo().Skew(time.Duration(v.rng.IntN(7200)-3600) * time.Second)
		}
	}
}

// trouble is one fault, with whether it has to be ended by a restart.
func (v *victim) trouble() (script string, stuck bool) {
	pick := func(of ...string) string { return of[v.rng.IntN(len(of))] }
	if v.rng.IntN(40) == 0 {
		return "lose", false
	}
	point := pick("response:tasks/get", "response:tasks/get", "response:tasks/list", "response:tasks/result", "response:tools/call", "response:tasks/cancel",
		"response:tasks/update", "response", "request:tasks/get", "request:tasks/list", "notification", "notification", "response:initialize", "response:server/discover")
	times := pick("", "*2", "*5", "*")
	if v.http && v.rng.IntN(4) == 0 {
		return pick("post", "post:tasks/get", "post:tasks/list", "post:answer", "get") + times + " " +
			pick("status 500", "status 502", "status 503 Retry-After=5", "status 429 Retry-After=9", "status 404", "status 400 no", "status 302 Location=http://x.example/",
				"type text/html <p>", "empty", "close", "reset", "late 7s", "never"), false
	}
	if !strings.HasPrefix(point, "notification") && v.rng.IntN(8) == 0 {
		point = pick("question:elicitation/create", "answer:elicitation/create", "response:tasks/update")
	}
	actions := []string{"late 3s", "late 20s", "never", "twice", "close", "reset", "restart keep", "hang", "halfclose"}
	switch {
	case strings.HasPrefix(point, "response"):
		actions = append(actions, "swap", `id "x"`, "error -32603 chaos", "error -32000 chaos", "unset result", "broken", "text LOG chaos", "slowly 1ms", "big 300000")
	case strings.HasPrefix(point, "notification"):
		actions = append(actions, "swap", "broken", "text LOG chaos", "repeat 4", "slowly 1ms")
	}
	action := pick(actions...)
	if strings.HasPrefix(action, "slowly") {
		times = "*3"
	}
	return point + times + " " + action, action == "hang" || action == "halfclose"
}

// lose restarts the server without its tasks.
func (v *victim) lose() {
	v.mu.Lock()
	v.epoch++
	for _, d := range v.begun {
		d.lost = true
	}
	v.mu.Unlock()
	v.srv.Restart(false)
}

// heal ends all trouble.
func (v *victim) heal() {
	v.srv.Clear()
	v.srv.Demo().Skew(0)
	v.srv.Restart(true)
}

// work starts the wave's tasks over its first quarter of an hour, and cancels
// some.
func (v *victim) work() {
	var wg sync.WaitGroup
	for range v.s.tasks {
		time.Sleep(time.Duration(v.hand.Int64N(int64(30 * time.Minute / time.Duration(v.s.tasks)))))
		// The draft cancels by the call, which ends with its connection.
		tool := []string{"lint_file", "lint_file", "build", "run_tests", "deploy_release", "deploy_release", "reindex_search", "security_scan"}[v.hand.IntN(8)]
		if v.gen == taskmodel.GenDraft && tool == "reindex_search" {
			tool = "build"
		}
		v.mu.Lock()
		v.n++
		mark := fmt.Sprintf("mark-%d", v.n)
		epoch := v.epoch
		v.mu.Unlock()
		args := map[string]string{"lint_file": `{"path":"%s"}`, "build": `{"target":"api","note":"%s"}`, "run_tests": `{"package":"%s"}`,
			"deploy_release": `{"service":"api","version":"v1.0.0","note":"%s"}`, "reindex_search": `{"index":"%s"}`, "security_scan": `{"note":"%s"}`}[tool]
		cancelIn := time.Duration(5+v.hand.IntN(60)) * time.Second
		wg.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
			defer stop()
			r, err := v.s.m.Start(ctx, monitor.StartRequest{Server: v.name, Tool: tool, Args: json.RawMessage(fmt.Sprintf(args, mark))})
			v.s.mu.Lock()
			switch {
			case err != nil:
				v.s.sum.unconfirmed++
			default:
				v.s.sum.started++
			}
			v.s.mu.Unlock()
			if err != nil || r.Key.ID == "" {
				return
			}
			v.mu.Lock()
			v.begun[r.Key] = &deed{tool: tool, epoch: epoch, lost: epoch != v.epoch}
			v.mu.Unlock()
			if tool != "reindex_search" {
				return
			}
			time.Sleep(cancelIn)
			v.cancel(r.Key)
		})
	}
	wg.Wait()
}

func (v *victim) cancel(k taskmodel.Key) {
	v.mu.Lock()
	v.cancels[k]++
	v.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	err := v.s.m.Cancel(ctx, k)
	v.s.mu.Lock()
	v.s.sum.cancels++
	v.s.mu.Unlock()
	if err != nil && strings.TrimSpace(err.Error()) == context.DeadlineExceeded.Error() {
		v.s.t.Errorf("a cancel ends without words: %v", err)
	}
}

// tend is the person at the board: answers what is asked, sends again by hand
// what had no effect, and cancels what only a cancel ends.
func (v *victim) tend(calm, over <-chan struct{}) {
	quiet := false
	for {
		select {
		case <-over:
			return
		case <-calm:
			quiet = true
		default:
		}
		time.Sleep(time.Duration(3+v.eye.IntN(10)) * time.Second)
		board := v.s.m.Board()
		asks := map[taskmodel.Key][]taskmodel.Question{}
		for _, q := range board.Questions() {
			if q.ID.Server == v.name && q.Task.ID != "" {
				asks[q.Task] = append(asks[q.Task], q)
			}
		}
		var todo []taskmodel.Task
		board.Of(v.name, func(t *taskmodel.Task) bool {
			if !t.Terminal() && t.Standing == taskmodel.Live {
				todo = append(todo, *t)
			}
			return true
		})
		for _, t := range todo {
			switch {
			case t.Status == taskmodel.InputRequired:
				v.face(t, asks[t.Key], quiet)
			case quiet && (t.Tool == "reindex_search" || t.Tool == "" && strings.HasPrefix(t.StatusMessage, "Waiting for the lock")) && time.Since(v.last(t.Key)) > 2*time.Minute:
				v.touch(t.Key)
				v.cancel(t.Key)
			}
		}
	}
}

func (v *victim) last(k taskmodel.Key) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tried[k]
}

func (v *victim) touch(k taskmodel.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tried[k] = time.Now()
}

// face answers a task that waits for input.
func (v *victim) face(t taskmodel.Task, asked []taskmodel.Question, quiet bool) {
	for _, q := range asked {
		if q.State.Open() {
			v.reply(q)
			return
		}
	}
	if time.Since(v.last(t.Key)) < time.Minute || !quiet {
		return
	}
	tries := v.pressed[t.Key]
	v.touch(t.Key)
	for _, q := range asked {
		if (q.State == taskmodel.QuestionAnswered || q.State == taskmodel.QuestionUnconfirmed) && time.Since(q.SentAt) > time.Minute && tries%3 != 2 {
			v.reply(q)
			return
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	v.pressed[t.Key]++
	if v.pressed[t.Key]%3 == 2 {
		v.s.m.Connect(v.name)
		return
	}
	_ = v.s.m.Ask(ctx, t.Key)
}

func (v *victim) reply(q taskmodel.Question) {
	v.mu.Lock()
	v.n++
	ticket := fmt.Sprintf("CHG-%06d", v.n)
	v.pressed[q.Task]++
	v.mu.Unlock()
	v.touch(q.Task)
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	err := v.s.m.Answer(ctx, taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"strategy":"canary","ticket":"` + ticket + `"}`)})
	if err == nil {
		v.s.mu.Lock()
		v.s.sum.answers++
		v.s.mu.Unlock()
	}
}

// open counts the rows that have not come to an end.
func (v *victim) open() (n int) {
	v.s.m.Board().Of(v.name, func(t *taskmodel.Task) bool {
		if !t.Terminal() && t.Standing != taskmodel.Gone && t.Standing != taskmodel.Expired {
			n++
		}
		return true
	})
	return n
}

// stuck reports the rows that do not come to an end though all is well.
func (v *victim) stuck() {
	board := v.s.m.Board()
	row, _ := board.Server(v.name)
	board.Of(v.name, func(t *taskmodel.Task) bool {
		if t.Terminal() || t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
			return true
		}
		var asked []string
		for _, q := range board.Questions() {
			if q.Task == t.Key {
				asked = append(asked, fmt.Sprintf("%s %s %s%s", q.ID.ID, q.State, q.Refusal, q.Withdrawn))
			}
		}
		ours := "not ours"
		if v.begun[t.Key] != nil {
			ours = "ours"
		}
		v.bad(stuckTask, "%s %s (%s, http %v, %s): %s %s %q %q, next poll %v, cancel %q; %q; server %s %q", t.Key, t.Tool, v.gen, v.http, ours, t.Status, t.Standing, t.StatusMessage, t.Note,
			time.Until(t.NextPollAt), t.CancelNote, asked, row.State, row.Error)
		return true
	})
}

// reckon compares the board with what is true.
func (v *victim) reckon() {
	t := v.s.t
	board := v.s.m.Board()
	if s, _ := board.Server(v.name); s.State != taskmodel.ServerReady || s.Error != "" {
		v.bad(unwell, "%s is %s: %s", v.name, s.State, s.Error)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	c, err := mcp.Connect(ctx, mcp.Options{Name: "truth", Dialer: demo.Dialer(v.srv.Demo()), Generation: v.gen, ProbeTimeout: time.Second})
	if err != nil {
		t.Fatalf("asking %s itself: %v", v.name, err)
	}
	defer func() { _ = c.Close(ctx, true) }()
	v.mu.Lock()
	defer v.mu.Unlock()
	sum := &v.s.sum
	for k, d := range v.begun {
		row, ok := board.Task(k)
		if !ok {
			v.bad(lostTask, "%s %s has no row", k, d.tool)
			continue
		}
		truth, err := c.Tasks().Get(ctx, k.ID)
		gone := row.Standing == taskmodel.Gone || row.Standing == taskmodel.Expired
		say := func(kind, format string, a ...any) {
			v.bad(kind, "%s %s (%s): %s; row: %s, %s %q; truth: %s %v", k, d.tool, v.gen, fmt.Sprintf(format, a...), row.Status, row.Standing, row.Note, truth.Status, err)
		}
		switch {
		case d.lost || errors.Is(err, mcp.ErrNotFound):
			if !d.lost {
				say(lostTask, "the server lost it, and nobody made it")
			}
			sum.lost++
			if !row.Terminal() && !gone {
				say(wrongStatus, "it does not exist any more, and the row does not say so")
			}
			continue
		case err != nil:
			say(unwell, "asking failed")
			continue
		case gone:
			say(lostTask, "it exists, and the row says that it is gone")
		case truth.Status != row.Status:
			say(wrongStatus, "wrong status")
		case !row.Terminal():
			say(stuckTask, "stuck")
		}
		switch row.Status {
		case taskmodel.Completed:
			sum.completed++
			if row.Outcome.Result == nil {
				say(noResult, "no result")
				for _, e := range v.s.m.Wire(monitor.WireFilter{Server: v.name, Task: k.ID}) {
					t.Logf("   %s %s %s %s %.200s %s", e.At.Format("04:05.000"), e.Direction, e.Kind, e.Method, e.Bytes, e.Fault)
				}
			} else if d.tool == "deploy_release" && !strings.Contains(string(row.Outcome.Result), `"rolledOut":true`) {
				say(lostAnswer, "its answer was lost, pressed %d times", v.pressed[k])
			}
		case taskmodel.Failed:
			sum.failed++
			if d.tool != "run_tests" && d.tool != "security_scan" {
				say(wrongStatus, "it failed")
			}
		case taskmodel.Cancelled:
			sum.cancelled++
			if v.cancels[k] == 0 {
				say(wrongStatus, "cancelled, and nobody asked")
			}
		}
	}
	// What came of starts that nobody heard the end of shows where the server
	// can list.
	if v.gen != taskmodel.GenExtension {
		for _, h := range v.srv.Demo().Handles() {
			if _, ok := board.Task(taskmodel.Key{Server: v.name, ID: h.ID, Role: taskmodel.Requestor}); !ok {
				v.bad(lostTask, "%s: %s %s is on the server and not on the board", v.name, h.Tool, h.ID)
			}
		}
	}
	for mark, saw := range v.wireSaw {
		n, all := len(saw), strings.Join(saw, "\n")
		if id, ok := strings.CutPrefix(mark, "cancel "); ok {
			if pressed := v.cancels[taskmodel.Key{Server: v.name, ID: id, Role: taskmodel.Requestor}]; n > pressed {
				v.bad(twice, "%s: the cancel of %s went out %d times, pressed %d times\n%s", v.name, id, n, pressed, all)
			}
		} else if n > 1 {
			v.bad(twice, "%s: what carries %s went out %d times\n%s", v.name, mark, n, all)
		}
	}
}

// forget drops all rows and all the server's tasks.
func (v *victim) forget() {
	v.srv.Restart(false)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var keys []taskmodel.Key
	v.s.m.Board().Of(v.name, func(t *taskmodel.Task) bool { keys = append(keys, t.Key); return true })
	for _, k := range keys {
		if err := v.s.m.Forget(ctx, k, false); err != nil {
			v.s.t.Errorf("forgetting %s: %v", k, err)
		}
	}
	v.mu.Lock()
	v.reset()
	v.mu.Unlock()
}

func (v *victim) close() {
	v.srv.Close()
	if v.site != nil {
		v.site.Close()
	}
}
