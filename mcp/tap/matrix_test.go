//go:build unix

package tap

import (
	"context"
	"encoding/json"
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
	"mcptasks/mcp/proctest"
	"mcptasks/taskmodel"
)

// A fault is one thing that goes wrong; its script has {at} where the point
// stands at which an operation is hit, {post} for that of HTTP.
type fault struct {
	name   string
	script string
	http   bool // HTTP's own
	stuck  bool // ends when the server is started again
	kinds  string
}

// every is all kinds of messages that a fault can hit: r response, n
// notification, q question (the server's request), a answer (the client's).
const every = "rnqa"

// faults are those of the matrix in package faults.
var faults = []fault{
	{name: "late 5 s", script: "{at}* late 5s", kinds: every},
	{name: "late 5 min", script: "{at}* late 5m", kinds: every},
	{name: "never", script: "{at}* never", kinds: every},
	{name: "twice", script: "{at}* twice", kinds: every},
	{name: "overtaken", script: "{at}* swap", kinds: "rnq"},
	{name: "another id", script: `{at}* id "stranger"`, kinds: "r"},
	{name: "error", script: "{at}* error -32603 out of luck", kinds: "r"},
	{name: "no result", script: "{at}* unset result", kinds: "r"},
	{name: "broken JSON", script: "{at}* broken", kinds: "rnq"},
	{name: "log line", script: "{at}* text INFO listening on :8080", kinds: "rnq"},
	{name: "no JSON-RPC", script: `{at}* text {"level":"info"}`, kinds: "rnq"},
	{name: "20 MB", script: "{at}*2 big 20000000", kinds: "rnq"},
	{name: "byte by byte", script: "{at}*9 slowly 1ms", kinds: "rnq"},
	{name: "close", script: "{at}* close", kinds: every},
	{name: "reset", script: "{at}* reset", kinds: every},
	{name: "half-close", script: "{at}* halfclose", stuck: true, kinds: every},
	{name: "crash", script: "{at} crash 3", kinds: every},
	{name: "hang", script: "{at} hang", stuck: true, kinds: every},
	{name: "restart with tasks", script: "{at} restart keep", kinds: every},
	{name: "restart without tasks", script: "{at} restart lose", kinds: every},
	{name: "clock on", script: "{at} clock 1h", kinds: every},
	{name: "clock back", script: "{at} clock -1h", kinds: every},
	{name: "302", script: "{post}* status 302 Location=http://elsewhere.example/mcp", http: true, kinds: every},
	{name: "400", script: "{post}* status 400 no thanks", http: true, kinds: every},
	{name: "401", script: "{post}* status 401", http: true, kinds: every},
	{name: "404", script: "{post}* status 404 gone", http: true, kinds: every},
	{name: "429", script: "{post}* status 429 Retry-After=7 slow down", http: true, kinds: every},
	{name: "500", script: "{post}* status 500 <h1>oops</h1>", http: true, kinds: every},
	{name: "503", script: "{post}* status 503 Retry-After=7 later", http: true, kinds: every},
	{name: "HTML", script: "{post}* type text/html <html>login</html>", http: true, kinds: every},
	{name: "empty", script: "{post}* empty", http: true, kinds: every},
	{name: "cut gzip", script: "{post}* gzip", http: true, kinds: "r"},
	{name: "slow headers", script: "{post}* slowheaders 20s", http: true, kinds: "r"},
}

// A hit is where a fault strikes at an operation in one generation.
type hit struct{ kind, at, post string }

func hits(kind, point, method string) hit { return hit{kind, point + ":" + method, "post:" + method} }

const (
	core  = taskmodel.GenCore
	ext   = taskmodel.GenExtension
	draft = taskmodel.GenDraft
)

// An operation is what the agent does when the fault strikes.
type operation struct {
	name  string
	gen   map[taskmodel.Generation]hit
	tasks int
	do    func(a *watched)
}

var operations = []operation{
	{name: "connect", tasks: 3,
		gen: map[taskmodel.Generation]hit{core: hits("r", "response", "initialize"), ext: hits("r", "response", "server/discover"), draft: hits("r", "response", "initialize")},
		do: func(a *watched) {
			a.strike()
			a.connect()
		}},
	{name: "list", tasks: 60,
		gen: map[taskmodel.Generation]hit{core: {"r", "response:tasks/list#2", "post:tasks/list#2"}, draft: {"r", "response:tasks/list#2", "post:tasks/list#2"}},
		do: func(a *watched) {
			a.strike()
			cursor := ""
			for range 4 {
				a.do("list", func(ctx context.Context) (any, error) {
					p, err := a.c.Tasks().List(ctx, cursor, nil)
					cursor = p.Next
					return p, err
				})
			}
		}},
	{name: "poll",
		gen: map[taskmodel.Generation]hit{core: hits("r", "response", "tasks/get"), ext: hits("r", "response", "tasks/get"), draft: hits("r", "response", "tasks/get")},
		do: func(a *watched) {
			a.start("reindex_search", `{"index":"a"}`)
			a.strike()
			for range 4 {
				a.get()
				time.Sleep(pause)
			}
		}},
	{name: "push",
		gen: map[taskmodel.Generation]hit{core: {"n", "notification:notifications/tasks/status", "get"},
			ext: {"n", "notification:notifications/tasks", "post:subscriptions/listen"}},
		do: func(a *watched) {
			a.start("build", `{"target":"api"}`)
			if !a.http {
				a.strike()
			}
			a.do("watch", func(ctx context.Context) (any, error) { return nil, a.c.Tasks().Watch(ctx, []string{a.task}) })
		}},
	{name: "question",
		gen: map[taskmodel.Generation]hit{core: hits("q", "question", "elicitation/create"), ext: hits("r", "response", "tasks/get"), draft: hits("q", "question", "elicitation/create")},
		do: func(a *watched) {
			a.start("deploy_release", `{"service":"api","version":"v4.12.0"}`)
			a.strike()
			a.question()
		}},
	{name: "answer",
		gen: map[taskmodel.Generation]hit{core: {"a", "answer:elicitation/create", "post:answer"}, ext: hits("r", "response", "tasks/update"),
			draft: {"a", "answer:elicitation/create", "post:answer"}},
		do: func(a *watched) {
			a.start("deploy_release", `{"service":"api","version":"v4.12.0"}`)
			a.question()
			a.strike()
			a.mu.Lock()
			asked := slices.Clone(a.asked)
			a.mu.Unlock()
			if len(asked) == 0 {
				a.t.Fatalf("no question came\n%s", a.transcript())
			}
			a.do("answer", func(ctx context.Context) (any, error) {
				return nil, a.c.Answer(ctx, taskmodel.Answer{Question: asked[0], Action: taskmodel.Accept, Content: json.RawMessage(`{"strategy":"canary","ticket":"CHG-20417"}`)})
			})
			time.Sleep(2 * pause)
			a.get()
		}},
	{name: "cancel",
		gen: map[taskmodel.Generation]hit{core: hits("r", "response", "tasks/cancel"), ext: hits("r", "response", "tasks/cancel")},
		do: func(a *watched) {
			a.start("reindex_search", `{"index":"a"}`)
			a.strike()
			a.do("cancel", func(ctx context.Context) (any, error) { return a.c.Tasks().Cancel(ctx, a.task) })
			time.Sleep(pause)
			a.get()
		}},
	{name: "result",
		gen: map[taskmodel.Generation]hit{core: hits("r", "response", "tasks/result")},
		do: func(a *watched) {
			a.start("lint_file", `{"path":"a.go"}`)
			a.strike()
			a.do("result", func(ctx context.Context) (any, error) { return a.c.Tasks().Result(ctx, a.task) })
		}},
}

// No two of these end at an instant at which something else happens: of that,
// which comes first is chance.
const (
	patience = 39770 * time.Millisecond // of the agent
	pause    = 5370 * time.Millisecond
	opened   = 117190 * time.Millisecond // how long tasks/result is open for a question
)

// A watched is an agent of which all is written down that it meets, with the
// time at which it does.
type watched struct {
	t     *testing.T
	s     *faulty.Server
	d     mcp.Dialer
	gen   taskmodel.Generation
	rule  string
	http  bool // the fault is HTTP's own
	begun time.Time
	c     *mcp.Client
	task  string

	mu    sync.Mutex
	asked []taskmodel.QuestionID
	lines []string
	ends  map[string]taskmodel.Status // as the agent heard them
}

// random is what a client makes up anew each time.
var random = regexp.MustCompile(`("progressToken":)"[^"]*"`)

func (a *watched) note(format string, v ...any) {
	line := fmt.Sprintf("%12.6f ", time.Since(a.begun).Seconds()) + random.ReplaceAllString(fmt.Sprintf(format, v...), "$1")
	if len(line) > 6000 {
		line = fmt.Sprintf("%s … (%d)", line[:300], len(line))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, line)
}

// transcript has what falls on one instant in the order of the alphabet: what
// comes on two streams at once comes in any order.
func (a *watched) transcript() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortStableFunc(a.lines, strings.Compare)
	return strings.Join(a.lines, "\n")
}

func (a *watched) strike() {
	if err := a.s.Add(a.rule); err != nil {
		a.t.Fatal(err)
	}
}

func (a *watched) connect() {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	c, err := mcp.Connect(ctx, mcp.Options{Name: "ci", Dialer: a.d, Generation: a.forced(), ClientName: "agent", ClientVersion: "1", Handler: a,
		ProbeTimeout: 3 * time.Second, DraftWait: 2 * time.Second})
	a.note("connected: %s", words(err))
	if err == nil {
		a.c = c
	}
}

// forced is the generation where it cannot be found out.
func (a *watched) forced() taskmodel.Generation {
	if a.gen == draft {
		return draft
	}
	return ""
}

// do does one thing on a connection that lives.
func (a *watched) do(what string, f func(ctx context.Context) (any, error)) {
	if a.c != nil {
		select {
		case <-a.c.Done():
			a.note("the connection has ended: %s", words(a.c.Err()))
			a.leave()
		default:
		}
	}
	if a.c == nil {
		a.connect()
	}
	if a.c == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	v, err := f(ctx)
	b, _ := json.Marshal(v)
	a.note("%s: %s %s", what, b, words(err))
}

func (a *watched) leave() {
	if a.c != nil {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		a.note("closed: %s", words(a.c.Close(ctx, true)))
		a.c = nil
	}
}

func (a *watched) start(tool, args string) {
	a.do("start", func(ctx context.Context) (any, error) {
		st, err := a.c.Tasks().Start(ctx, mcp.StartCall{Tool: tool, Args: json.RawMessage(args), CallID: "c", TaskID: a.forcedID()})
		a.task = st.TaskID
		return st, err
	})
}

func (a *watched) forcedID() string {
	if a.gen == draft {
		return "6a1f0c3e-5b7d-4e02-9c11-8f2d3b4a5c6d"
	}
	return ""
}

func (a *watched) get() {
	a.do("get", func(ctx context.Context) (any, error) {
		v, err := a.c.Tasks().Get(ctx, a.task)
		if err == nil {
			a.heard(taskmodel.Observation{Snapshot: v})
		}
		return v, err
	})
}

// question does what brings a question: it opens tasks/result, or polls.
func (a *watched) question() {
	if a.gen == ext {
		for range 6 {
			a.get()
			time.Sleep(2 * pause)
		}
		return
	}
	if c := a.c; c != nil {
		go func() {
			ctx, stop := context.WithTimeout(context.Background(), opened)
			defer stop()
			o, err := c.Tasks().Result(ctx, a.task)
			a.note("result: %s %s", o.Result, words(err))
		}()
	}
	time.Sleep(opened / 2)
}

// play is one cell: the operation, the fault for two minutes, and how it goes on
// without it.
func (a *watched) play(op operation, f fault) {
	if op.name == "push" && f.http {
		a.strike() // the stream is opened with the connection
	}
	if op.name != "connect" {
		a.connect()
	}
	op.do(a)
	time.Sleep(opened)
	if len(a.s.Fired()) == 0 {
		a.t.Errorf("the fault did not strike\n%s", a.transcript())
	}
	a.s.Clear()
	if f.stuck {
		a.s.Restart(true)
	}
	if f.name == "late 5 min" {
		time.Sleep(5 * time.Minute)
	}
	time.Sleep(2 * pause)
	if a.c != nil && a.task != "" {
		a.get()
	}
	a.leave()
	a.start("lint_file", `{"path":"after.go"}`)
	time.Sleep(20 * time.Second)
	a.get()
	a.leave()
}

func (a *watched) heard(o taskmodel.Observation) {
	if o.Status.Terminal(a.gen) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.ends[o.ID] == "" {
			a.ends[o.ID] = o.Status
		}
	}
}

func (a *watched) Wire(e taskmodel.WireEntry) {
	a.note("wire %s %s %s %s", e.Direction, e.Kind, e.Bytes, e.Fault)
}
func (a *watched) Asked(q taskmodel.Question) {
	a.mu.Lock()
	a.asked = append(a.asked, q.ID)
	a.mu.Unlock()
}
func (a *watched) Snapshot(o taskmodel.Observation)                   { a.heard(o) }
func (*watched) Progress(string, string, taskmodel.Progress)          {}
func (a *watched) Withdrawn(q taskmodel.QuestionID, why string)       { a.note("withdrawn %s", why) }
func (*watched) ElicitationComplete(string)                           {}
func (*watched) Log(taskmodel.LogLine)                                {}
func (*watched) ToolsChanged()                                        {}
func (a *watched) Pushing(ids []string)                               { a.note("pushing %v", ids) }
func (*watched) ReceiverTask(taskmodel.Observation, mcp.ReceiverInfo) {}

// run plays a cell in a bubble of its own, with a tap or without.
func run(t *testing.T, op operation, f fault, gen taskmodel.Generation, carrier string, o *Options) (transcript string) {
	synctest.Test(t, func(t *testing.T) {
		s, err := faulty.New(demo.Options{Generation: gen, Name: "ci", Tasks: op.tasks, Seed: 11, PageSize: 20}, "")
		if err != nil {
			t.Fatal(err)
		}
		hit := op.gen[gen]
		a := &watched{t: t, s: s, gen: gen, http: f.http, begun: time.Now(), ends: map[string]taskmodel.Status{},
			rule: strings.NewReplacer("{at}", hit.at, "{post}", hit.post).Replace(f.script)}
		if op.name != "poll" { // once is enough for what is too long to be read along
			a.rule = strings.Replace(a.rule, "big 20000000", "big 300000", 1)
		}
		s.Overhear(func(point, method string, b []byte) {
			if strings.Contains(string(b), `"reason":"closing"`) {
				return // whether it still comes is chance
			}
			if point == "request" || point == "told" || point == "answer" {
				a.note("server hears %s %s %s", point, method, b)
			}
		})
		rows := &shelf{tasks: map[string]taskmodel.Task{}}
		if o != nil {
			over := *o
			over.Name, over.Target, over.Memory = "ci", target, rows.memory
			o = &over
		}
		var end func()
		if carrier == "http" {
			a.d, end = httpDialer(s, o)
		} else {
			var wait sync.WaitGroup
			a.d, end = stdioDialer{s, o, &wait}, wait.Wait
		}
		a.play(op, f)
		s.Close()
		end()
		time.Sleep(time.Minute) // what goes on by itself comes to its end
		transcript = a.transcript()
		if op.name == "push" && carrier == "http" {
			transcript = timeless(transcript)
		}
		for id, v := range rows.rows() {
			if said := a.ends[id]; said != "" && v.Status != said {
				t.Errorf("%s is %s in the journal, and the agent heard %s", id, v.Status, said)
			}
		}
	})
	return transcript
}

// TestMatrix puts every fault at every operation in each generation, over stdio
// and over HTTP, with a tap and without one, and wants to see no difference:
// every message that the agent gets, when it gets it, every error that it meets,
// and every message that the server gets. The clock is that of testing/synctest,
// so a tap that delayed anything by any time would show.
//
// What happens at one instant may happen in two orders, without a tap too; a
// difference is one that stays over several runs of both.
func TestMatrix(t *testing.T) {
	n := 0
	for _, op := range operations {
		for _, gen := range generations {
			hit, ok := op.gen[gen]
			for _, f := range faults {
				for _, carrier := range []string{"stdio", "http"} {
					if !ok || !strings.Contains(f.kinds, hit.kind) || f.http && (carrier == "stdio" || hit.kind == "q") {
						continue
					}
					n++
					if proctest.Race && n%11 != 0 {
						continue // a thousand are too many for it; .ci/run runs them without
					}
					o := Options{Passive: carrier == "stdio" && n%4 < 2}
					t.Run(fmt.Sprintf("%s/%s/%s/%s", op.name, gen, f.name, carrier), func(t *testing.T) {
						t.Parallel()
						var direct, tapped []string
						for range 6 {
							direct = append(direct, run(t, op, f, gen, carrier, nil))
							tapped = append(tapped, run(t, op, f, gen, carrier, &o))
							if slices.ContainsFunc(tapped, func(s string) bool { return slices.Contains(direct, s) }) {
								return
							}
						}
						t.Errorf("looking %v: %s", o.Passive, difference(direct[0], tapped[0]))
					})
				}
			}
		}
	}
	if n < 900 {
		t.Errorf("only %d cells", n)
	}
}

var (
	instant = regexp.MustCompile(`(?m)^ *[\d.]+ `)
	counted = regexp.MustCompile(`"(id|io.modelcontextprotocol/subscriptionId)":\d+`)
)

// timeless is what happened, without when and how often: a client takes up a
// broken stream again after a time that it draws.
func timeless(transcript string) string {
	lines := strings.Split(counted.ReplaceAllString(instant.ReplaceAllString(transcript, ""), `"$1":N`), "\n")
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// difference is where two transcripts part.
func difference(direct, tapped string) string {
	a, b := strings.Split(direct, "\n"), strings.Split(tapped, "\n")
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(0, i-3)
	return fmt.Sprintf("from line %d on\nwithout a tap:\n%s\nthrough it:\n%s", i, clip(a[from:min(len(a), i+6)]), clip(b[from:min(len(b), i+6)]))
}

func clip(lines []string) string {
	var out []string
	for _, l := range lines {
		out = append(out, l[:min(len(l), 300)])
	}
	return strings.Join(out, "\n")
}
