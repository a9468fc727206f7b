//go:build linux

package survive

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/proctest"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// killRounds is how often the program is killed, over all servers.
const killRounds = 204

// TestKilledAtRandomPoints kills the real program at random points of all that it
// does, in all three generations and over both transports, and starts it again
// each time (issue D, "Show it"). After each restart: nothing that was
// journalled is lost; what was sent and not confirmed stands as that, and the
// program never sends it again; no status is one that the server never said.
//
// MCPTASKS_SEED repeats a run, as far as processes can be repeated.
func TestKilledAtRandomPoints(t *testing.T) {
	if proctest.Race {
		t.Skip("the race detector makes SQLite 25 times slower; it runs without")
	}
	rounds := killRounds
	if testing.Short() {
		rounds = 12
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("MCPTASKS_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("MCPTASKS_SEED=%d", seed)
	program(t)
	n := 0
	for _, gen := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension, taskmodel.GenDraft} {
		for _, overHTTP := range []bool{true, false} {
			n++
			v := uint64(n)
			p := newPlace(t, gen, overHTTP, 30)
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				k := newKiller(t, p, rand.New(rand.NewPCG(seed, v)))
				for i := range rounds / 6 {
					k.round()
					if t.Failed() {
						t.Fatalf("in round %d, MCPTASKS_SEED=%d", i, seed)
					}
				}
				k.end()
			})
		}
	}
}

// A killer is the person who starts, answers and cancels, and the one who kills.
type killer struct {
	t    *testing.T
	p    *place
	u    *user
	rng  *rand.Rand
	j    *journal.Journal // what is on disk, as another process sees it
	n    int              // numbers the marks
	hits map[string]int

	started map[string]string // task by mark, of those that the program said it had started
	pressed map[string]int    // cancellations that a person asked for, by task
	tickets []ticket
	before  journal.Restored
	past    []string
}

// A ticket is an answer that a person gave.
type ticket struct {
	mark string
	task string
}

func newKiller(t *testing.T, p *place, rng *rand.Rand) *killer {
	k := &killer{t: t, p: p, u: newUser(t, p), rng: rng, started: map[string]string{}, pressed: map[string]int{}, hits: map[string]int{}}
	for _, begin := range []func() *action{k.deploy, k.deploy, k.reindex} {
		k.n++
		a := begin()
		a.run = k.u.want(0, a.args...)
		a.finish(k)
	}
	k.j = k.u.look()
	return k
}

func (k *killer) target() string {
	if k.p.http {
		return k.p.target
	}
	return strings.ReplaceAll(k.p.target, "'", "")
}

// known is what is on disk now.
func (k *killer) known() (journal.Restored, []string) {
	k.t.Helper()
	r, err := k.j.Restore(context.Background(), k.target())
	if err != nil {
		k.t.Fatal(err)
	}
	var past []string
	err = k.j.History(context.Background(), journal.HistoryQuery{}, func(h journal.HistoryRow) error {
		past = append(past, fmt.Sprintf("%d %s %s %s", h.ID, h.TaskID, h.Event, h.Detail))
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return r, past
}

// round lets the program do something, kills it, and looks at what is left.
func (k *killer) round() {
	k.n++
	r, _ := k.known()
	var beside *running // a process that holds the server meanwhile
	act := k.act(r)
	if k.rng.IntN(4) == 0 {
		if k.rng.IntN(2) == 0 {
			beside = k.u.begin("watch")
		} else {
			beside = k.u.screens().running
		}
	}

	// When: some time after its start, or when the server gets a message of a kind,
	// before the server has it; then it may be lost on the way.
	point := []string{"", "", "", "tasks/get", "tasks/result", "tasks/list", "initialize", "server/discover"}[k.rng.IntN(8)]
	if act.kind != "" && k.rng.IntN(5) < 3 {
		point = act.kind
	}
	delay := time.Duration(k.rng.IntN(300_000)) * time.Microsecond
	if point == act.kind {
		delay += 500 * time.Millisecond // its message comes, if it can
	}
	drop := k.rng.IntN(2) == 0
	linger := time.Duration(k.rng.IntN(2)*k.rng.IntN(15_000)) * time.Microsecond
	target := func() *running { return act.run }
	if beside != nil && k.rng.IntN(2) == 0 {
		target = func() *running { return beside }
	}
	shot := make(chan struct{})
	var mu sync.Mutex
	fired := false
	k.p.on(func(kind, mark string) bool {
		mu.Lock()
		defer mu.Unlock()
		if fired || point == "" || kind != point {
			return false
		}
		fired = true
		if linger > 0 {
			go func() { time.Sleep(linger); close(shot) }()
			return false
		}
		target().kill()
		// Nobody but the process that is no more has sent it.
		act.cut, act.lost = kind == act.kind && mark == act.mark && beside == nil, drop
		close(shot)
		return drop
	})
	mu.Lock()
	act.begin(k)
	mu.Unlock()
	select {
	case <-shot:
	case <-time.After(delay):
	case <-act.run.done:
	}
	k.before, k.past = k.known()
	target().kill()
	<-target().done
	mu.Lock()
	fired = true
	mu.Unlock()
	k.p.on(nil)
	if target() != act.run {
		// The act goes on without its holder, and has its time for that.
		select {
		case <-act.run.done:
		case <-time.After(100 * time.Millisecond):
			act.run.kill()
			<-act.run.done
		}
	} else if beside != nil {
		beside.kill()
		<-beside.done
	}
	k.hits[act.name]++
	act.finish(k)
	k.check()
	k.unknown(act)
}

// An action is one command of a person.
type action struct {
	name string
	kind string // of the message that it sends
	args []string
	mark string
	task string
	run  *running
	ui   bool
	cut  bool // its process was killed as soon as the message was out
	lost bool // and the server did not get the message
}

func (a *action) begin(k *killer) {
	if a.ui {
		a.run = k.u.screens().running
		return
	}
	a.run = k.u.begin(a.args...)
}

// act chooses what the person does.
func (k *killer) act(r journal.Restored) *action {
	var running []string
	for _, x := range r.Tasks {
		if !x.Terminal() && x.Ours && x.Standing != taskmodel.Gone && x.Standing != taskmodel.Expired {
			running = append(running, x.ID)
		}
	}
	var asking []taskmodel.Question
	for _, q := range r.Questions {
		if q.State.Open() && q.Task.ID != "" {
			asking = append(asking, q)
		}
	}
	var waiting []string // the server waits for input, and the question was not heard here
	for _, x := range r.Tasks {
		if x.Status == taskmodel.InputRequired {
			waiting = append(waiting, x.ID)
		}
	}
	switch c := k.rng.IntN(10); {
	case c < 3 && len(asking)+len(waiting) > 0:
		id := ""
		if len(asking) > 0 {
			id = asking[k.rng.IntN(len(asking))].Task.ID
		} else {
			id = waiting[k.rng.IntN(len(waiting))]
		}
		mark := fmt.Sprintf("CHG-%06d", k.n)
		k.tickets = append(k.tickets, ticket{mark, id})
		return &action{name: "answer", kind: "answer", mark: mark, task: id,
			args: []string{"answer", "p/" + id, "--accept", `{"strategy":"canary","ticket":"` + mark + `"}`}}
	case c < 5 && len(running) > 2:
		id := running[k.rng.IntN(len(running))]
		k.pressed[id]++
		return &action{name: "cancel", kind: "cancel", task: id, args: []string{"cancel", "p/" + id}}
	case c < 6 && len(running) > 0:
		return &action{name: "screens", ui: true}
	case c < 7:
		return &action{name: "watch", args: []string{"watch"}}
	case c < 8 && k.rng.IntN(2) == 0:
		return k.reindex()
	default:
		return k.deploy()
	}
}

// deploy is a task that asks a question in mid-run.
func (k *killer) deploy() *action {
	mark := fmt.Sprintf("v9.9.%d", k.n)
	return &action{name: "start", kind: "tools/call", mark: mark,
		args: []string{"start", "p", "deploy_release", "service=api", "version=" + mark, "environment=staging", "-o", "json"}}
}

// reindex is a task that ends only when it is cancelled.
func (k *killer) reindex() *action {
	mark := fmt.Sprintf("idx-%d", k.n)
	return &action{name: "start", kind: "tools/call", mark: mark, args: []string{"start", "p", "reindex_search", "index=" + mark, "-o", "json"}}
}

// finish notes what the program said before it was killed.
func (a *action) finish(k *killer) {
	if a.name != "start" {
		return
	}
	var x task
	if json.Unmarshal([]byte(a.run.out.String()), &x) == nil && x.TaskID != "" {
		k.started[a.mark] = x.TaskID
	}
}

// check starts the program again and compares what it shows with what was on
// disk, with what the server was sent, and with what it said.
func (k *killer) check() {
	t := k.t
	var list []task
	r := k.u.run("ls", "p", "-o", "json")
	if err := json.Unmarshal([]byte(r.out.String()), &list); err != nil || r.code != 0 {
		t.Errorf("ls: exit %d, %v: %s%s", r.code, err, r.out.String(), r.errs.String())
		return
	}
	shown := map[string]task{}
	for _, x := range list {
		shown[x.TaskID] = x
		if st := taskmodel.Status(x.Status); st.Terminal(k.p.gen) && !k.p.ended(x.TaskID, x.Status) {
			t.Errorf("%s is shown as %s, which the server never said", x.TaskID, x.Status)
		}
	}
	for mark, id := range k.started {
		x, ok := shown[id]
		if !ok {
			t.Errorf("%s was said to be started, and is lost", id)
		} else if x.Tool == "" {
			t.Errorf("%s (%s) has lost its tool", id, mark)
		}
	}
	now, past := k.known()
	k.nothingLost(now, past)
	states := map[string]taskmodel.Question{}
	for _, q := range now.Questions {
		states[q.Task.ID+" "+q.ID.ID] = q
	}
	for _, tk := range k.tickets {
		if n := k.p.marked(tk.mark); n > 1 {
			t.Errorf("the answer %s went out %d times", tk.mark, n)
		} else if n == 1 && !answered(now, tk.task) {
			t.Errorf("the answer %s was sent, and every question of %s stands as if nothing had been: %+v", tk.mark, tk.task, questionsOf(now, tk.task))
		}
	}
	kept := map[string]bool{}
	for _, a := range now.Answers {
		kept[a.Question.ID] = len(a.Content) > 0
	}
	for _, q := range now.Questions {
		if q.State == taskmodel.QuestionSending {
			t.Errorf("%s is being sent, by nobody", q.ID.ID)
		}
		if q.State == taskmodel.QuestionUnconfirmed && !kept[q.ID.ID] {
			t.Errorf("what was typed for %s is lost", q.ID.ID)
		}
	}
	for mark := range k.started {
		if n := k.p.marked(mark); n != 1 {
			t.Errorf("the call %s went out %d times", mark, n)
		}
	}
	for id, n := range k.pressed {
		sent := k.p.cancels(id)
		if sent > n {
			t.Errorf("%s was cancelled %d times, and a person asked for it %d times", id, sent, n)
		}
		if x, ok := shown[id]; ok && sent > 0 && !x.CancelRequested && x.Status != "cancelled" && x.Note == "" {
			t.Errorf("a cancellation of %s was sent, and nothing says so: %+v", id, x)
		}
	}
}

// unknown: what was sent and not confirmed stands as that.
func (k *killer) unknown(a *action) {
	if !a.cut {
		return
	}
	k.hits[a.name+" cut off"]++
	now, past := k.known()
	if a.kind == "tools/call" && !slices.ContainsFunc(past, func(line string) bool {
		return strings.Contains(line, " error ") && strings.Contains(line, `"`+a.mark+`"`) && strings.Contains(line, "outcome unknown")
	}) {
		k.t.Errorf("the call %s was sent and not confirmed, and the history does not say so", a.mark)
	}
	for _, x := range now.Tasks {
		if x.ID != a.task || a.kind != "cancel" || x.Terminal() || x.Standing == taskmodel.Gone || x.Standing == taskmodel.Expired {
			continue
		}
		if x.CancelRequested.IsZero() || x.CancelNote != taskmodel.CancelUnknown {
			k.t.Errorf("%s: the cancellation was sent and not confirmed, and stands as requested %v, %q", x.ID, x.CancelRequested, x.CancelNote)
		}
	}
	if a.kind != "answer" || !a.lost {
		return
	}
	for _, q := range now.Questions {
		if q.Task.ID == a.task && q.State == taskmodel.QuestionUnconfirmed {
			return
		}
	}
	k.t.Errorf("the answer %s to %s was sent and not confirmed, and stands as %v", a.mark, a.task, questionsOf(now, a.task))
}

func questionsOf(r journal.Restored, id string) (out []string) {
	for _, q := range r.Questions {
		if q.Task.ID == id {
			out = append(out, q.ID.ID+" "+string(q.State))
		}
	}
	return out
}

// answered reports whether a question of the task stands as answered, or as sent
// with an unknown outcome, or the task has gone on.
func answered(r journal.Restored, id string) bool {
	for _, q := range r.Questions {
		if q.Task.ID == id && (q.State == taskmodel.QuestionAnswered || q.State == taskmodel.QuestionUnconfirmed) {
			return true
		}
	}
	return false
}

// nothingLost compares what was on disk before the kill with what is now.
func (k *killer) nothingLost(now journal.Restored, past []string) {
	t := k.t
	have := map[string]bool{}
	for _, line := range past {
		have[line] = true
	}
	for _, line := range k.past {
		if !have[line] {
			t.Errorf("lost of the history: %s", line)
		}
	}
	tasks := map[string]taskmodel.Task{}
	for _, x := range now.Tasks {
		tasks[x.ID] = x
	}
	for _, old := range k.before.Tasks {
		x, ok := tasks[old.ID]
		switch {
		case !ok:
			t.Errorf("%s is lost", old.ID)
		case old.Terminal() && x.Status != old.Status:
			t.Errorf("%s had ended as %s and is %s", old.ID, old.Status, x.Status)
		case old.Tool != "" && x.Tool != old.Tool, string(x.Args) != string(old.Args), old.Ours && !x.Ours:
			t.Errorf("%s: lost what only we knew: %+v, was %+v", old.ID, x, old)
		case old.Outcome.KeptHere && !x.Outcome.KeptHere:
			t.Errorf("%s: its result is lost", old.ID)
		case len(x.Transitions) < len(old.Transitions):
			t.Errorf("%s: its time line is shorter", old.ID)
		}
	}
}

// end looks at each task once more in peace: what has ended is shown as ended,
// and as what.
func (k *killer) end() {
	t := k.t
	var ids []string
	for _, id := range k.started {
		ids = append(ids, "p/"+id)
	}
	if len(ids) == 0 && !testing.Short() {
		t.Fatal("nothing was ever started")
	}
	k.u.run(append([]string{"get", "-o", "json"}, ids...)...)
	k.before, k.past = k.known()
	k.check()
	unknown := 0
	for _, q := range k.before.Questions {
		if q.State == taskmodel.QuestionUnconfirmed {
			unknown++
		}
	}
	cancels := 0
	for _, x := range k.before.Tasks {
		if x.CancelNote == taskmodel.CancelUnknown {
			cancels++
		}
	}
	t.Logf("%d tasks, %d answers, killed while %v; at the end %d answers and %d cancellations stand as sent with an unknown outcome",
		len(k.before.Tasks), len(k.tickets), k.hits, unknown, cancels)
}
