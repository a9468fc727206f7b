package faults

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/proctest"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

var update = flag.Bool("update", false, "write FAULTS.md anew from what the tests see")

// A fault is one thing that goes wrong. Its script has {at} where the point
// stands at which the operation is hit, {post} for that of HTTP.
type fault struct {
	name   string
	script string
	http   bool // HTTP's own
	stuck  bool // does not end by itself: the server is started again, with its tasks
	loses  bool // the server's tasks are gone afterwards
	kinds  string
}

// The kinds of messages that a fault can hit: r response, n notification, q
// question (the server's request), a answer (the client's response).
const every = "rnqa"

var faults = []fault{
	{name: "comes 5 s late", script: "{at}* late 5s", kinds: every},
	{name: "comes 5 min late", script: "{at}* late 5m", kinds: every},
	{name: "never comes", script: "{at}* never", kinds: every},
	{name: "comes twice", script: "{at}* twice", kinds: every},
	{name: "is overtaken by the next one", script: "{at}* swap", kinds: "rnq"},
	{name: "comes under another id", script: `{at}* id "stranger"`, kinds: "r"},
	{name: "is an error", script: "{at}* error -32603 out of luck", kinds: "r"},
	{name: "lacks its result", script: "{at}* unset result", kinds: "r"},
	{name: "is broken JSON", script: "{at}* broken", kinds: "rnq"},
	{name: "is a log line", script: "{at}* text INFO listening on :8080", kinds: "rnq"},
	{name: "is JSON but no JSON-RPC", script: `{at}* text {"level":"info"}`, kinds: "rnq"},
	{name: "has 20 MB", script: "{at}*2 big 20000000", kinds: "rnq"},
	{name: "comes byte by byte", script: "{at}*9 slowly 1ms", kinds: "rnq"},
	{name: "closes the connection", script: "{at}* close", kinds: every},
	{name: "resets the connection", script: "{at}* reset", kinds: every},
	{name: "half-closes the connection", script: "{at}* halfclose", stuck: true, kinds: every},
	{name: "crashes the server, tasks lost", script: "{at} crash 3", loses: true, kinds: every},
	{name: "hangs the server", script: "{at} hang", stuck: true, kinds: every},
	{name: "restarts the server, tasks kept", script: "{at} restart keep", kinds: every},
	{name: "restarts the server, tasks lost", script: "{at} restart lose", loses: true, kinds: every},
	{name: "sets the clock an hour on", script: "{at} clock 1h", kinds: every},
	{name: "sets the clock an hour back", script: "{at} clock -1h", kinds: every},
	{name: "is a redirect elsewhere", script: "{post}* status 302 Location=http://elsewhere.example/mcp", http: true, kinds: every},
	{name: "is a 400", script: "{post}* status 400 no thanks", http: true, kinds: every},
	{name: "is a 401", script: "{post}* status 401", http: true, kinds: every},
	{name: "is a 404", script: "{post}* status 404 gone", http: true, kinds: every},
	{name: "is a 429 with Retry-After", script: "{post}* status 429 Retry-After=7 slow down", http: true, kinds: every},
	{name: "is a 500", script: "{post}* status 500 <h1>oops</h1>", http: true, kinds: every},
	{name: "is a 503 with Retry-After", script: "{post}* status 503 Retry-After=7 later", http: true, kinds: every},
	{name: "is HTML", script: "{post}* type text/html <html>login</html>", http: true, kinds: every},
	{name: "is empty", script: "{post}* empty", http: true, kinds: every},
	{name: "is cut gzip", script: "{post}* gzip", http: true, kinds: "r"},
	{name: "has headers that take 20 s", script: "{post}* slowheaders 20s", http: true, kinds: "r"},
}

// An operation is what mcptasks does when the fault strikes.
type operation struct {
	name string
	what string // for the table; %s is the method
	gen  map[taskmodel.Generation]hit
	o    worldOptions
	do   func(c *cell)
}

// A hit is where a fault strikes at an operation in one generation.
type hit struct {
	kind   string // of the message
	at     string // its point
	post   string // of HTTP
	method string // for the table
}

func hits(kind, point, method string) hit {
	return hit{kind: kind, at: point + ":" + method, post: "post:" + method, method: method}
}

const (
	core  = taskmodel.GenCore
	ext   = taskmodel.GenExtension
	draft = taskmodel.GenDraft
)

// A cell is one pair of fault and operation on one transport.
type cell struct {
	*world
	f     fault
	op    operation
	hit   hit
	tried bool // an answer was sent
}

func (c *cell) strike() {
	script := strings.NewReplacer("{at}", c.hit.at, "{post}", c.hit.post).Replace(c.f.script)
	if err := c.s.Add(script); err != nil {
		c.t.Fatal(err)
	}
}

// lift takes the fault away after a while of it.
func (c *cell) lift() {
	for range 360 {
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		c.look(c.m.Board())
	}
	if len(c.s.Fired()) == 0 {
		c.t.Errorf("the fault did not strike\n%s", c.dump())
	}
	c.s.Clear()
	if c.f.stuck {
		c.s.Restart(true)
	}
}

// over reports whether a task has come to what it had to: an end, or gone
// where the server has lost it.
func (c *cell) over(v *board.Version, k taskmodel.Key) bool {
	t, ok := v.Task(k)
	return ok && (t.Terminal() || c.f.loses && (t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired))
}

// ends asserts how a task ended.
func (c *cell) ends(k taskmodel.Key, want taskmodel.Status) {
	c.t.Helper()
	t := c.task(k)
	if t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
		return
	}
	if t.Status != want {
		c.t.Errorf("the task ended as %s, want %s\n%s", t.Status, want, c.dump())
	}
}

var operations = []operation{
	{name: "connect", what: "%s, from the start",
		gen: map[taskmodel.Generation]hit{core: hits("r", "response", "initialize"), ext: hits("r", "response", "server/discover"), draft: hits("r", "response", "initialize")},
		o:   worldOptions{tasks: 3, quiet: true}, do: func(c *cell) {
			c.strike()
			c.run()
			c.lift()
			c.must("connected", 10*time.Minute, c.ready)
		}},
	{name: "list", what: "%s from its second page on, 120 tasks",
		gen: map[taskmodel.Generation]hit{core: {"r", "response:tasks/list#2", "post:tasks/list#2", "tasks/list"}, draft: {"r", "response:tasks/list#2", "post:tasks/list#2", "tasks/list"}},
		o:   worldOptions{tasks: 120, pageSize: 50, quiet: true}, do: func(c *cell) {
			c.strike()
			c.run()
			time.Sleep(100 * time.Millisecond)
			if n := c.m.Board().Len(); n < 50 {
				c.t.Errorf("the first page is not shown at once: %d tasks", n)
			}
			c.lift()
			c.must("the whole list", 10*time.Minute, func(v *board.Version) bool {
				s, _ := v.Server("ci")
				return v.Len() >= 120 && s.ListIncomplete == "" && !s.Listing
			})
		}},
	{name: "poll", what: "%s of a task that runs",
		gen: map[taskmodel.Generation]hit{core: hits("r", "response", "tasks/get"), ext: hits("r", "response", "tasks/get"), draft: hits("r", "response", "tasks/get")},
		do: func(c *cell) {
			if c.gen == ext {
				// Where pushes are promised, polls are rare.
				_ = c.s.Add("notification:notifications/subscriptions/acknowledged* never; notification:notifications/tasks* never")
			}
			c.run2()
			k := c.start("reindex_search", `{"index":"a"}`)
			time.Sleep(7 * time.Second)
			c.strike()
			c.lift()
			c.well()
			if t := c.task(k); t.Status != taskmodel.Working {
				c.t.Errorf("the task is %s", t.Status)
			}
		}},
	{name: "push", what: "%s of a task that ends (HTTP's own faults: the stream that brings it)",
		gen: map[taskmodel.Generation]hit{core: {"n", "notification:notifications/tasks/status", "get", "notifications/tasks/status"},
			ext: {"n", "notification:notifications/tasks", "post:subscriptions/listen", "notifications/tasks"}},
		do: func(c *cell) {
			if c.f.http {
				c.strike() // the stream is opened with the connection
			}
			c.run2()
			k := c.start("build", `{"target":"api"}`)
			if !c.f.http {
				c.strike()
			}
			c.lift()
			c.must("the end is heard", 10*time.Minute, func(v *board.Version) bool { return c.over(v, k) })
			c.ends(k, taskmodel.Completed)
		}},
	{name: "question", what: "%s, which brings the question of a task of ours",
		gen: map[taskmodel.Generation]hit{core: hits("q", "question", "elicitation/create"), ext: hits("r", "response", "tasks/get"), draft: hits("q", "question", "elicitation/create")},
		do: func(c *cell) {
			c.run2()
			k := c.start("deploy_release", `{"service":"api","version":"v4.12.0"}`)
			c.strike()
			c.lift()
			c.answered(k)
		}},
	{name: "answer", what: "a person's answer to it, %s",
		gen: map[taskmodel.Generation]hit{core: {"a", "answer:elicitation/create", "post:answer", "the response"}, ext: hits("r", "response", "tasks/update"),
			draft: {"a", "answer:elicitation/create", "post:answer", "the response"}},
		do: func(c *cell) {
			c.run2()
			k := c.start("deploy_release", `{"service":"api","version":"v4.12.0"}`)
			c.must("the question", 2*time.Minute, func(v *board.Version) bool { _, ok := question(v, k); return ok })
			c.strike()
			q, _ := question(c.m.Board(), k)
			c.reply(q.ID)
			c.lift()
			c.answered(k)
		}},
	{name: "cancel", what: "%s",
		gen: map[taskmodel.Generation]hit{core: hits("r", "response", "tasks/cancel"), ext: hits("r", "response", "tasks/cancel")},
		do: func(c *cell) {
			c.run2()
			k := c.start("reindex_search", `{"index":"a"}`)
			time.Sleep(7 * time.Second)
			c.strike()
			press := func() {
				ctx, stop := c.ctx()
				defer stop()
				if err := c.m.Cancel(ctx, k); err != nil {
					c.note("cancelling says: %v", err)
				}
			}
			press()
			c.lift()
			c.must("the server", 10*time.Minute, c.ready)
			if !c.wait(time.Minute, func(v *board.Version) bool { return c.over(v, k) }) {
				c.note("(cancelled a second time)")
				press()
			}
			c.must("cancelled", 10*time.Minute, func(v *board.Version) bool { return c.over(v, k) })
			c.ends(k, taskmodel.Cancelled)
		}},
	{name: "result", what: "%s of a task that has ended",
		gen: map[taskmodel.Generation]hit{core: hits("r", "response", "tasks/result")},
		do: func(c *cell) {
			c.run2()
			c.strike()
			k := c.start("lint_file", `{"path":"a.go"}`)
			c.lift()
			c.must("the end", 10*time.Minute, func(v *board.Version) bool { return c.over(v, k) })
			if c.task(k).Outcome.IsZero() && !c.wait(3*time.Minute, func(v *board.Version) bool { t, _ := v.Task(k); return !t.Outcome.IsZero() }) {
				ctx, stop := c.ctx()
				defer stop()
				out, err := c.m.Fetch(ctx, k)
				if err != nil && !c.f.loses || err == nil && out.Result == nil {
					c.t.Errorf("the result cannot be had afterwards: %v %+v\n%s", err, out, c.dump())
				}
				if err != nil {
					c.note("`r` says: %v", err)
				} else {
					c.note("(the result came with `r`)")
				}
			}
		}},
}

// run2 runs and waits until the server is ready.
func (c *cell) run2() {
	c.run()
	c.must("connected", 10*time.Minute, c.ready)
}

func (c *cell) reply(q taskmodel.QuestionID) {
	c.tried = true
	if err := c.answer(q); err != nil {
		c.note("answering says: %v", err)
	}
	time.Sleep(5 * time.Second)
}

// answered sees to it, as a person does, that a task's question is answered,
// and that it has the effect.
func (c *cell) answered(k taskmodel.Key) {
	c.t.Helper()
	asked := 0
	for range 20 {
		c.must("the server", 5*time.Minute, c.ready)
		if c.wait(100*time.Second, func(v *board.Version) bool {
			if c.over(v, k) {
				return true
			}
			// A version of the board may have the question before the status: no time
			// would pass until the next one.
			_, open := question(v, k)
			t, _ := v.Task(k)
			return open && c.ready(v) && t.Status == taskmodel.InputRequired
		}) && c.over(c.m.Board(), k) {
			break
		}
		if c.task(k).Status != taskmodel.InputRequired {
			continue
		}
		if q, open := question(c.m.Board(), k); open {
			if c.tried {
				c.note("(answered a second time)")
			}
			c.reply(q.ID)
			continue
		}
		// The screens send again what was answered, and ask for the question
		// where there is none.
		sent := false
		for _, q := range c.m.Board().Questions() {
			if q.Task == k && q.State != taskmodel.QuestionWithdrawn && !sent && asked == 0 {
				sent = true
				c.note("(sent again by hand)")
				c.reply(q.ID)
			}
		}
		if asked++; !sent && asked > 1 {
			c.note("(reconnected by hand)")
			c.m.Connect("ci")
			continue
		}
		if !sent {
			c.note("(`a` asks for the question)")
			ctx, stop := c.ctx()
			if err := c.m.Ask(ctx, k); err != nil {
				c.note("asking says: %v", err)
			}
			stop()
		}
	}
	c.must("answered and ended", time.Minute, func(v *board.Version) bool { return c.over(v, k) })
	c.ends(k, taskmodel.Completed)
	if t := c.task(k); t.Status == taskmodel.Completed {
		c.must("the result", 5*time.Minute, func(v *board.Version) bool { t, _ := v.Task(k); return t.Outcome.Result != nil })
		switch out := string(c.task(k).Outcome.Result); {
		case strings.Contains(out, `"rolledOut":true`):
		case c.gen == draft && c.carrier == "http" && strings.Contains(out, "nobody approved in time"):
			// The draft has no request by which a question comes again within
			// the session.
			c.note("(the question cannot be had again; the server goes on without an answer in its own time)")
		default:
			c.t.Errorf("the answer is not in the result: %s", out)
		}
	}
}

// TestMatrix puts every fault at every operation, in each generation that has
// it, on both transports. What the person sees is compared with FAULTS.md; that
// the status on the board is never other than the server's, that nothing is sent
// twice by itself, and that all is well afterwards is asserted in each.
func TestMatrix(t *testing.T) {
	if proctest.Race {
		t.Skip("more than a thousand cells take too long with the race detector; .ci/run runs them without it")
	}
	var mu sync.Mutex
	seen := map[string][]string{}
	t.Run("cells", func(t *testing.T) {
		for _, op := range operations {
			for gen, hit := range op.gen {
				for _, f := range faults {
					for _, carrier := range []string{"pipe", "http"} {
						if !applies(f, op, hit, carrier) {
							continue
						}
						name := cellName(op, gen, f, carrier)
						t.Run(name, func(t *testing.T) {
							t.Parallel()
							synctest.Test(t, func(t *testing.T) {
								o := op.o
								o.carrier, o.gen, o.quiet = carrier, gen, true
								c := &cell{world: newWorld(t, o), f: f, op: op, hit: hit}
								op.do(c)
								sees := c.sights()
								c.well()
								c.honest()
								mu.Lock()
								seen[name] = sees
								mu.Unlock()
							})
						})
					}
				}
			}
		}
	})
	if t.Failed() {
		return
	}
	path := filepath.Join("..", "FAULTS.md")
	want := []byte(table(seen))
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, string(have), string(want))
}

func cellName(op operation, gen taskmodel.Generation, f fault, carrier string) string {
	return fmt.Sprintf("%s/%s/%s/%s", op.name, gen, f.name, carrier)
}

// applies reports whether a pair of fault and operation is one.
func applies(f fault, op operation, h hit, carrier string) bool {
	switch {
	case !strings.Contains(f.kinds, h.kind), f.http && carrier == "pipe", f.http && h.kind == "q":
		return false
	case h.kind == "a" && f.name == "is a 404":
		// A server that disowns a session for one message, and keeps its
		// question in it, cannot be reached by anything from here.
		return false
	}
	return true
}

// honest asserts that the board never said of a task what no server said, and
// that the program sent nothing by itself that a person has to ask for.
func (c *cell) honest() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, said := range c.said {
		for i, st := range said {
			if st.Terminal(c.gen) && i != len(said)-1 {
				c.t.Errorf("%s left its end: %v", k, said)
			}
		}
	}
	if n := c.heard["request:tasks/cancel"]; c.op.name != "cancel" && n > 0 || n > 2 {
		c.t.Errorf("%d cancels were sent", n)
	}
	if n := c.heard["request:tools/call"]; n > c.calls {
		c.t.Errorf("%d calls were sent for %d", n, c.calls)
	}
}
