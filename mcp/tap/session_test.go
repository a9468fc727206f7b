//go:build unix

package tap

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/demo"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// An agent is a client of ours behind a tap, with the journal that the tap
// writes to as another process sees it.
type agentSession struct {
	t   *testing.T
	ctx context.Context
	c   *mcp.Client
	j   *journal.Journal

	mu    sync.Mutex
	wire  []taskmodel.WireEntry
	asked chan taskmodel.Question
}

func (a *agentSession) Wire(e taskmodel.WireEntry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wire = append(a.wire, e)
}
func (a *agentSession) Asked(q taskmodel.Question) {
	select {
	case a.asked <- q:
	default:
	}
}
func (*agentSession) Snapshot(taskmodel.Observation)                       {}
func (*agentSession) Progress(string, string, taskmodel.Progress)          {}
func (*agentSession) Withdrawn(taskmodel.QuestionID, string)               {}
func (*agentSession) ElicitationComplete(string)                           {}
func (*agentSession) Log(taskmodel.LogLine)                                {}
func (*agentSession) ToolsChanged()                                        {}
func (*agentSession) Pushing([]string)                                     {}
func (*agentSession) ReceiverTask(taskmodel.Observation, mcp.ReceiverInfo) {}

const target = "the server"

// A way is how an agent reaches a server of a generation through a tap: it
// gives a dialer and ends the tap.
type way struct {
	name string
	era  string // forced, "" finds it
	open func(t *testing.T, dir string, gen taskmodel.Generation, speed float64, flags ...string) mcp.Dialer
}

var ways = []way{
	{"stdio", "", func(t *testing.T, dir string, gen taskmodel.Generation, speed float64, flags ...string) mcp.Dialer {
		cmd := tapProcess(t, dir, flags, program("demo", string(gen), fmt.Sprint(speed))...)
		return &transport.Stdio{Command: cmd.Path, Args: cmd.Args[1:]}
	}},
	{"http", "", func(t *testing.T, dir string, gen taskmodel.Generation, speed float64, flags ...string) mcp.Dialer {
		return &transport.HTTP{URL: tapHTTP(t, dir, gen, speed, "/mcp", flags...)}
	}},
	{"sse", "sse", func(t *testing.T, dir string, gen taskmodel.Generation, speed float64, flags ...string) mcp.Dialer {
		return &transport.HTTP{URL: tapHTTP(t, dir, gen, speed, "/sse", flags...)}
	}},
}

// tapHTTP serves a demo server and a tap in front of it, and gives the tap's URL.
func tapHTTP(t *testing.T, dir string, gen taskmodel.Generation, speed float64, path string, flags ...string) string {
	t.Helper()
	s := demo.New(demo.Options{Generation: gen, Speed: speed, Seed: 7})
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close(); s.Close() })
	return startHTTP(t, Options{URL: srv.URL + path, Listen: "127.0.0.1:0", Name: "ci", Target: target, Memory: memoryIn(dir),
		Passive: slices.Contains(flags, "--passive"), Answer: slices.Contains(flags, "--answer")})
}

func startHTTP(t *testing.T, o Options) string {
	t.Helper()
	r, w := io.Pipe()
	o.Out = w
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- HTTP(ctx, o) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(generous):
			t.Error("the tap does not end")
		}
	})
	buf := make([]byte, 200)
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(buf[:n]))
}

func throughTap(t *testing.T, d mcp.Dialer, dir, era string, o mcp.Options) *agentSession {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*generous)
	t.Cleanup(stop)
	a := &agentSession{t: t, ctx: ctx, asked: make(chan taskmodel.Question, 100)}
	var err error
	if a.j, err = journal.Open(dir, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), generous)
		defer stop()
		_ = a.j.Close(ctx)
	})
	o.Name, o.Dialer, o.Era, o.ClientName, o.ClientVersion, o.Handler = "x", d, era, "claude-code", "1", a
	if a.c, err = mcp.Connect(ctx, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

func (a *agentSession) close() {
	ctx, stop := context.WithTimeout(context.Background(), generous)
	defer stop()
	if a.c != nil {
		if err := a.c.Close(ctx, true); err != nil {
			a.t.Errorf("closing: %v", err)
		}
		a.c = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.wire {
		if strings.Contains(string(e.Bytes), "mcptasks-tap:") && e.Direction == taskmodel.Received {
			a.t.Errorf("the agent was shown what is the tap's: %s", e.Bytes)
		}
	}
}

// until looks into the journal until a task there is as wanted.
func (a *agentSession) until(id string, ok func(taskmodel.Task) bool) taskmodel.Task {
	a.t.Helper()
	var last taskmodel.Task
	for {
		r, err := a.j.Restore(a.ctx, target)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, v := range r.Tasks {
			if v.ID == id || id == "" {
				if last = v; ok(v) {
					return v
				}
			}
		}
		select {
		case <-time.After(40 * time.Millisecond):
		case <-a.ctx.Done():
			a.t.Fatalf("the journal has %+v of %s", last, id)
		}
	}
}

// question waits for a question in a state.
func (a *agentSession) question(task string, s taskmodel.QuestionState) taskmodel.Question {
	a.t.Helper()
	since := int64(0)
	for {
		ch, err := a.j.Changes(a.ctx, target, since)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, q := range ch.Questions {
			if q.State == s && (q.Task.ID == task || task == "*") {
				return q
			}
		}
		select {
		case <-time.After(40 * time.Millisecond):
		case <-a.ctx.Done():
			a.t.Fatalf("no question %s of %s", s, task)
		}
	}
}

// intend asks the tap to act, as another process does.
func (a *agentSession) intend(kind string, id string, payload any) (json.RawMessage, error) {
	a.t.Helper()
	session := ""
	for session == "" {
		taps, err := a.j.Taps(a.ctx, time.Time{})
		if err != nil {
			a.t.Fatal(err)
		}
		for _, v := range taps {
			if v.Live {
				session = v.Session
			}
		}
	}
	var b json.RawMessage
	if payload != nil {
		b, _ = json.Marshal(payload)
	}
	in, err := a.j.PutIntent(a.ctx, journal.Intent{Target: target, Session: session, Kind: kind, Payload: b,
		Task: taskmodel.Key{Server: "tap: ci", ID: id, Role: taskmodel.Requestor}})
	if err != nil {
		a.t.Fatal(err)
	}
	for {
		done, words, detail, err := a.j.IntentState(a.ctx, in)
		switch {
		case err != nil:
			a.t.Fatal(err)
		case done && words != "":
			return detail, fmt.Errorf("%s", words)
		case done:
			return detail, nil
		}
		select {
		case <-time.After(40 * time.Millisecond):
		case <-a.ctx.Done():
			a.t.Fatalf("nobody did %s", kind)
		}
	}
}

func (a *agentSession) history(id string) string {
	var b strings.Builder
	_ = a.j.History(a.ctx, journal.HistoryQuery{Target: target, TaskID: id}, func(r journal.HistoryRow) error {
		fmt.Fprintf(&b, "%s %s %s\n", r.Event, r.Status, r.Detail)
		return nil
	})
	return b.String()
}

// pollEnd polls as an agent does, until the task or the session has ended.
func (a *agentSession) pollEnd(id string) taskmodel.Snapshot {
	c := a.c
	for {
		s, err := c.Tasks().Get(a.ctx, id)
		if err != nil || s.Status.Terminal(c.Info().Generation) {
			return s
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-a.ctx.Done():
			return s
		}
	}
}

func (a *agentSession) start(tool, args string) mcp.Started {
	a.t.Helper()
	st, err := a.c.Tasks().Start(a.ctx, mcp.StartCall{Tool: tool, Args: json.RawMessage(args), TTL: 10 * time.Minute, CallID: "c"})
	if err != nil {
		a.t.Fatal(err)
	}
	return st
}

var generations = []taskmodel.Generation{taskmodel.GenDraft, taskmodel.GenCore, taskmodel.GenExtension}

// everyWay runs a test for each generation on each transport that it has.
func everyWay(t *testing.T, f func(t *testing.T, w way, gen taskmodel.Generation)) {
	for _, w := range ways {
		for _, gen := range generations {
			if w.name == "sse" && gen == taskmodel.GenExtension {
				continue // 2026-07-28 has no such transport
			}
			t.Run(w.name+"/"+string(gen), func(t *testing.T) {
				t.Parallel()
				f(t, w, gen)
			})
		}
	}
}

// A tool call that becomes a task is recorded with tool and arguments, under the
// agent's name; so are its states, its end and its result.
func TestReadsAlong(t *testing.T) {
	everyWay(t, func(t *testing.T, w way, gen taskmodel.Generation) {
		dir := t.TempDir()
		a := throughTap(t, w.open(t, dir, gen, 20), dir, w.era, mcp.Options{})
		if g := a.c.Info().Generation; g != gen {
			t.Fatalf("generation %s", g)
		}
		st := a.start("build", `{"target":"api"}`)
		v := a.until(st.TaskID, func(v taskmodel.Task) bool {
			return v.Tool != "" && (v.Progress != nil || gen == taskmodel.GenExtension)
		})
		if v.Tool != "build" || string(v.Args) != `{"target":"api"}` || v.Owner != "claude-code" || !strings.HasPrefix(v.Tap, "tap:") || v.Generation != gen || v.Ours {
			t.Errorf("%+v", v)
		}
		if gen != taskmodel.GenExtension && (!v.AskedTTL.Known || v.AskedTTL.Duration != 10*time.Minute) {
			t.Errorf("asked for: %+v", v.AskedTTL)
		}
		if s := a.pollEnd(st.TaskID); s.Status != taskmodel.Completed {
			t.Fatalf("%+v", s)
		}
		want, err := a.c.Tasks().Result(a.ctx, st.TaskID)
		if err != nil {
			t.Fatal(err)
		}
		a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Status == taskmodel.Completed && v.Outcome.KeptHere })
		o, ok, err := a.j.Outcome(a.ctx, target, st.TaskID, taskmodel.Requestor)
		if err != nil || !ok || string(o.Result) != string(want.Result) {
			t.Errorf("kept %s, the agent got %s, %v", o.Result, want.Result, err)
		}
		if h := a.history(st.TaskID); !strings.Contains(h, "created") || !strings.Contains(h, "status completed") || !strings.Contains(h, "result") {
			t.Errorf("history:\n%s", h)
		}
		taps, err := a.j.Taps(a.ctx, time.Time{})
		if err != nil || len(taps) != 1 || !taps[0].Live || taps[0].Label != "tap: ci" || taps[0].Generation != gen || taps[0].Agents[0] != "claude-code" {
			t.Errorf("%+v %v", taps, err)
		}
	})
}

// What a person asks for is sent in the agent's session, and stands in the
// history; the agent is shown none of it.
func TestActsOfAPerson(t *testing.T) {
	everyWay(t, func(t *testing.T, w way, gen taskmodel.Generation) {
		dir := t.TempDir()
		a := throughTap(t, w.open(t, dir, gen, 20), dir, w.era, mcp.Options{})
		st := a.start("reindex_search", `{"index":"docs"}`)
		a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Tool != "" })
		if _, err := a.intend("poll", st.TaskID, nil); err != nil {
			t.Fatal(err)
		}
		if v := a.until(st.TaskID, func(taskmodel.Task) bool { return true }); v.Status != taskmodel.Working && v.Status != taskmodel.Submitted {
			t.Errorf("%+v", v)
		}
		if _, err := a.intend("start", "", nil); err == nil || !strings.Contains(err.Error(), "agent's session") {
			t.Errorf("start: %v", err)
		}
		if _, err := a.intend("answer", "", taskmodel.Answer{}); err == nil || !strings.Contains(err.Error(), "--answer") {
			t.Errorf("answer: %v", err)
		}
		if _, err := a.intend("cancel", st.TaskID, nil); err != nil {
			t.Fatal(err)
		}
		a.pollEnd(st.TaskID)
		v := a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Terminal() })
		if v.Status != taskmodel.Cancelled || v.CancelRequested.IsZero() {
			t.Errorf("%+v", v)
		}
		if h := a.history(st.TaskID); !strings.Contains(h, `"act":"poll"`) || !strings.Contains(h, `cancel working {"by":"a person, through the tap"`) {
			t.Errorf("history:\n%s", h)
		}
	})
}

// A result that the agent has not fetched is fetched when a person asks, once
// the task has ended.
func TestFetchesAResult(t *testing.T) {
	everyWay(t, func(t *testing.T, w way, gen taskmodel.Generation) {
		dir := t.TempDir()
		a := throughTap(t, w.open(t, dir, gen, 50), dir, w.era, mcp.Options{})
		st := a.start("build", `{"target":"api"}`)
		a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Tool != "" })
		go a.pollEnd(st.TaskID)
		b, err := a.intend("fetch", st.TaskID, nil) // waits for the end
		if err != nil {
			t.Fatal(err)
		}
		var o taskmodel.Outcome
		if err := json.Unmarshal(b, &o); err != nil || !strings.Contains(string(o.Result), "Built api") {
			t.Errorf("%s %v", b, err)
		}
		if v := a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Outcome.KeptHere && v.Terminal() }); v.Status != taskmodel.Completed {
			t.Errorf("%+v", v)
		}
	})
}

// --passive: nothing is sent.
func TestPassive(t *testing.T) {
	for _, w := range ways[:2] {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := throughTap(t, w.open(t, dir, taskmodel.GenCore, 20, "--passive"), dir, w.era, mcp.Options{})
			st := a.start("build", `{"target":"api"}`)
			a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Tool != "" })
			for _, kind := range []string{"poll", "cancel", "fetch", "answer"} {
				if _, err := a.intend(kind, st.TaskID, taskmodel.Answer{}); err == nil || !strings.Contains(err.Error(), "passive") {
					t.Errorf("%s: %v", kind, err)
				}
			}
		})
	}
}

// The agent's questions are the agent's: they are recorded, with their answers,
// and are not open here.
func TestQuestionsAreTheAgents(t *testing.T) {
	everyWay(t, func(t *testing.T, w way, gen taskmodel.Generation) {
		dir := t.TempDir()
		a := throughTap(t, w.open(t, dir, gen, 20), dir, w.era, mcp.Options{})
		st := a.start("deploy_release", `{"service":"api","version":"v4.12.0","environment":"production"}`)
		go func() { _, _ = a.c.Tasks().Result(a.ctx, st.TaskID) }()
		var q taskmodel.Question
		select {
		case q = <-a.asked:
		case <-a.ctx.Done():
			t.Fatal("the agent was asked nothing")
		}
		kept := a.question(st.TaskID, taskmodel.QuestionWithdrawn)
		if !strings.Contains(kept.Withdrawn, "asked of claude-code") || kept.Message != q.Message || kept.Kind != q.Kind {
			t.Errorf("%+v", kept)
		}
		if err := a.c.Answer(a.ctx, taskmodel.Answer{Question: q.ID, Action: taskmodel.Decline}); err != nil {
			t.Fatal(err)
		}
		a.question(st.TaskID, taskmodel.QuestionAnswered)
		if h := a.history(st.TaskID); !strings.Contains(h, "question") || !strings.Contains(h, `"action":"decline","by":"claude-code"`) {
			t.Errorf("history:\n%s", h)
		}
	})
}

// --answer: an agent that does not declare elicitation is asked nothing; the
// person answers in its place, and the task goes on.
func TestAnswersInTheAgentsPlace(t *testing.T) {
	everyWay(t, func(t *testing.T, w way, gen taskmodel.Generation) {
		dir := t.TempDir()
		a := throughTap(t, w.open(t, dir, gen, 20, "--answer"), dir, w.era, mcp.Options{NoElicitation: true})
		st := a.start("deploy_release", `{"service":"api","version":"v4.12.0","environment":"production"}`)
		go a.pollEnd(st.TaskID)
		q := a.question(st.TaskID, taskmodel.QuestionOpen)
		if q.Schema == nil {
			t.Fatalf("%+v", q)
		}
		if _, err := a.intend("answer", st.TaskID, taskmodel.Answer{Question: q.ID, Action: taskmodel.Decline}); err != nil {
			t.Fatal(err)
		}
		a.question(st.TaskID, taskmodel.QuestionAnswered)
		v := a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Terminal() })
		if h := a.history(st.TaskID); !strings.Contains(h, `"action":"decline","by":"a person, through the tap"`) {
			t.Errorf("history:\n%s", h)
		}
		select {
		case q := <-a.asked:
			if gen != taskmodel.GenExtension { // there the state tells, and no one has to look at it
				t.Errorf("the agent was asked %+v", q)
			}
		default:
		}
		_ = v
		if _, err := a.intend("answer", st.TaskID, taskmodel.Answer{Question: q.ID, Action: taskmodel.Decline}); err == nil {
			t.Error("an answer was taken twice")
		}
	})
}

// The session ends: rows that had not ended say what became of them, and no
// lease is left.
func TestRowsSayWhatBecameOfThem(t *testing.T) {
	for _, tt := range []struct {
		way      way
		standing taskmodel.Standing
		note     string
	}{
		{ways[0], taskmodel.Gone, "the session of claude-code is over (the server ended with exit code 0)"},
		{ways[1], taskmodel.Stale, "the agent has ended its session"},
		{ways[2], taskmodel.Stale, "the stream of its session has ended"},
	} {
		t.Run(tt.way.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := throughTap(t, tt.way.open(t, dir, taskmodel.GenCore, 1), dir, tt.way.era, mcp.Options{})
			st := a.start("build", `{"target":"api"}`)
			a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Tool != "" })
			a.close()
			v := a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Standing == tt.standing })
			if v.Status != taskmodel.Working || !strings.Contains(v.Note, tt.note) {
				t.Errorf("%+v", v)
			}
			if tt.way.name == "stdio" {
				taps, err := a.j.Taps(a.ctx, time.Time{})
				if err != nil || len(taps) != 1 || taps[0].Live || taps[0].Why != "the server ended with exit code 0" {
					t.Errorf("%+v %v", taps, err)
				}
				if h := a.history(st.TaskID); !strings.Contains(h, "gone working") {
					t.Errorf("history:\n%s", h)
				}
			}
		})
	}
}

// --answer in 2026-07-28, where a call itself may want input before a task is
// made of it: the agent gets its answer when the person has given theirs.
func TestAnswersWhatACallWants(t *testing.T) {
	for _, w := range ways[:2] {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := throughTap(t, w.open(t, dir, taskmodel.GenExtension, 50, "--answer"), dir, w.era, mcp.Options{NoElicitation: true})
			started := make(chan mcp.Started, 1)
			go func() {
				st, err := a.c.Tasks().Start(a.ctx, mcp.StartCall{Tool: "rotate_secret", Args: json.RawMessage(`{"secret":"s"}`), CallID: "c"})
				if err != nil {
					t.Error(err)
				}
				started <- st
			}()
			q := a.question("", taskmodel.QuestionOpen)
			if !strings.HasPrefix(q.ID.ID, "call:tap:") || q.Schema == nil {
				t.Errorf("%+v", q)
			}
			if _, err := a.intend("answer", "", taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept,
				Content: json.RawMessage(`{"environment":"stg","reason":"because"}`)}); err != nil {
				t.Fatal(err)
			}
			select {
			case st := <-started:
				if st.TaskID == "" {
					t.Fatalf("%+v", st)
				}
				v := a.until(st.TaskID, func(v taskmodel.Task) bool { return v.Tool != "" })
				if v.Tool != "rotate_secret" || v.Owner != "claude-code" {
					t.Errorf("%s of %s", v.Tool, v.Owner)
				}
			case <-a.ctx.Done():
				t.Fatal("the call was not answered")
			}
		})
	}
}
