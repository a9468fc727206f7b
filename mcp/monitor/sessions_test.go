package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// asking makes the fake one that hands questions out on tasks/result, which
// blocks, and that takes up on a resumed session what it asked in it before.
func asking(f *fakeServer, session string) {
	f.session = session
	f.can.List = false
	f.result = func(ctx context.Context, _ string) (taskmodel.Outcome, error) {
		<-ctx.Done()
		return taskmodel.Outcome{}, ctx.Err()
	}
	f.dialErr = func(_ int, o mcp.Options) error {
		if o.Session != "" && o.Session != f.session {
			return fmt.Errorf("ci: %w", mcp.ErrSessionLost)
		}
		for _, q := range o.Asked {
			o.Handler.Asked(q)
		}
		return nil
	}
}

// An interrupted is a process that started a task, heard its question and
// typed a draft, and has ended.
func interrupted(t *testing.T, dir string, f *fakeServer) {
	t.Helper()
	j := openJournal(t, dir, "mcptasks")
	r := run(t, with(j), []string{"ci"}, f)
	if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
		t.Fatal(err)
	}
	f.put("t1", taskmodel.InputRequired)
	r.sleep(3 * time.Second)
	f.last().h.Asked(question("tag:7", "t1"))
	synctest.Wait()
	r.m.SaveDraft(taskmodel.QuestionID{Server: "ci", ID: "tag:7"}, json.RawMessage(`{"a":"half"}`))
	r.sleep(2 * time.Second)
	r.end()
	closeJournal(t, j)
	f.forgetCalls()
}

// The next run takes the session up and with it the question that was heard
// before: a server may hand it out once (issue D 2, field fault I9).
func TestI9_AQuestionOutlivesTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		asking(f, "s1")
		interrupted(t, dir, f)
		r := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		r.sleep(3 * time.Second)
		o := f.dial(f.dialCount() - 1)
		if o.Session != "s1" || len(o.Asked) != 1 || o.Asked[0].ID.ID != "tag:7" {
			t.Fatalf("session %q, taken up %+v", o.Session, o.Asked)
		}
		if q := r.question("tag:7"); q.State != taskmodel.QuestionOpen || string(q.Draft) != `{"a":"half"}` {
			t.Errorf("%s, draft %s", q.State, q.Draft)
		}
		// A further question comes on a tasks/result: one is open again.
		if n := f.called("result", "t1"); n != 1 {
			t.Errorf("tasks/result was opened %d times", n)
		}
		if err := r.m.Answer(t.Context(), accept("tag:7")); err != nil {
			t.Fatal(err)
		}
		if n := f.called("answer", "tag:7"); n != 1 {
			t.Errorf("sent %d times", n)
		}
		if q := r.question("tag:7"); q.State != taskmodel.QuestionAnswered {
			t.Errorf("%s", q.State)
		}
	})
}

// Where the connection that asked is of another program, or of another
// session, the question is withdrawn with a notice and the draft is kept.
func TestQuestionsOfAnEndedAskerAreWithdrawn(t *testing.T) {
	for _, kind := range []string{"http", "stdio"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				f := newFake(taskmodel.GenCore)
				f.kind = kind
				if asking(f, "s1"); kind == "stdio" {
					f.session = ""
				}
				interrupted(t, dir, f)
				if kind == "http" {
					f.hook(func() { f.session = "s2" })
				}
				r := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
				r.sleep(3 * time.Second)
				q := r.question("tag:7")
				if q.State != taskmodel.QuestionWithdrawn || q.Withdrawn == "" || string(q.Draft) != `{"a":"half"}` {
					t.Errorf("%s (%s), draft %s", q.State, q.Withdrawn, q.Draft)
				}
				if err := r.m.Answer(t.Context(), accept("tag:7")); !errors.Is(err, ErrNoQuestion) || f.total("answer") != 0 {
					t.Errorf("Answer: %v, sent %d", err, f.total("answer"))
				}
				events, err := r.m.History(t.Context(), key("ci", "t1"))
				if err != nil || !strings.Contains(fmt.Sprint(events), "withdrawn: ") {
					t.Errorf("history: %v %v", events, err)
				}
				// It asks again on its own: what was typed is there.
				f.last().h.Asked(question("tag2:1", "t1"))
				if q := r.question("tag2:1"); q.State != taskmodel.QuestionOpen || string(q.Draft) != `{"a":"half"}` {
					t.Errorf("asked again: %s, draft %s", q.State, q.Draft)
				}
			})
		})
	}
}

// A person who makes a connection anew, or one that broke, loses no question
// of the session.
func TestAQuestionOutlivesAReconnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		asking(f, "s1")
		r := run(t, with(openJournal(t, t.TempDir(), "mcptasks")), []string{"ci"}, f)
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
			t.Fatal(err)
		}
		f.put("t1", taskmodel.InputRequired)
		r.sleep(3 * time.Second)
		f.last().h.Asked(question("tag:7", "t1"))
		synctest.Wait()
		r.m.Connect("ci")
		r.sleep(3 * time.Second)
		if n := f.dialCount(); n != 2 || r.question("tag:7").State != taskmodel.QuestionOpen {
			t.Fatalf("%d dials, %s", n, r.question("tag:7").State)
		}
		// Answered elsewhere: the task goes on, and nobody takes the question back.
		f.last().h.Asked(question("tag:8", "t1")) // asked on this connection
		f.put("t1", taskmodel.Working)
		r.sleep(3 * time.Second)
		if q := r.question("tag:7"); q.State != taskmodel.QuestionWithdrawn || !strings.Contains(q.Withdrawn, "working") {
			t.Errorf("%s (%s)", q.State, q.Withdrawn)
		}
		if q := r.question("tag:8"); q.State != taskmodel.QuestionOpen {
			t.Errorf("%s: the server takes back itself what it asked on this connection", q.State)
		}
	})
}

// The era that was found is tried first on the next connection, so that no
// server is probed twice; when that fails for what the server speaks, it is
// found anew at once, and not when the server is merely not there.
func TestEraIsFoundOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		r.m.Connect("ci")
		r.sleep(time.Second)
		if a, b := f.dial(0).Era, f.dial(1).Era; a != "" || b != "legacy" {
			t.Fatalf("eras %q, then %q", a, b)
		}
		f.hook(func() {
			f.dialErr = func(n int, o mcp.Options) error {
				if n == 3 {
					return fmt.Errorf("ci: connecting: %w", errRefused)
				}
				if o.Era == "legacy" {
					return fmt.Errorf("ci: opening the connection: %w", &taskmodel.RPCError{Code: -32022, Message: "only 2026-07-28 here"})
				}
				return nil
			}
		})
		r.m.Connect("ci")
		r.sleep(5 * time.Second)
		var eras []string
		for i := 2; i < f.dialCount(); i++ {
			eras = append(eras, f.dial(i).Era)
		}
		if got := strings.Join(eras, ","); got != "legacy,legacy," {
			t.Errorf("tried %q; want the known era when the server was away, again, then none", got)
		}
		if s := r.server("ci"); s.State != taskmodel.ServerReady {
			t.Errorf("%s %s", s.State, s.Error)
		}
	})
}

var errRefused = errors.New("connection refused")

// A cutOff journal is that of a process that was killed: nothing of it is
// renewed, written or released any more.
type cutOff struct {
	*journal.Journal
	dead atomic.Bool
}

var errKilled = errors.New("killed")

func (c *cutOff) Acquire(ctx context.Context, target, session string) (journal.Holder, bool, error) {
	if c.dead.Load() {
		return journal.Holder{}, false, errKilled
	}
	return c.Journal.Acquire(ctx, target, session)
}

func (c *cutOff) ClaimIntents(ctx context.Context, target, session string) ([]journal.Intent, error) {
	if c.dead.Load() {
		return nil, errKilled
	}
	return c.Journal.ClaimIntents(ctx, target, session)
}

func (c *cutOff) Queue(e ...journal.Entry) {
	if !c.dead.Load() {
		c.Journal.Queue(e...)
	}
}

func (c *cutOff) Write(ctx context.Context, e ...journal.Entry) error {
	if c.dead.Load() {
		return errKilled
	}
	return c.Journal.Write(ctx, e...)
}

// What is asked of a holder at the moment of its death is done by who takes
// over, once, whether or not it is the one who asked.
func TestAHolderDiesOverAnAct(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		asking(f, "s1")
		ja := &cutOff{Journal: openJournal(t, dir, "mcptasks")}
		a := run(t, func(o *Options) { o.Journal = ja }, []string{"ci"}, f)
		if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
			t.Fatal(err)
		}
		a.sleep(3 * time.Second)
		g := newFake(taskmodel.GenCore)
		asking(g, "s1")
		g.put("t1", taskmodel.Working)
		b := run(t, with(openJournal(t, dir, "mcptasks watch")), []string{"ci"}, g)
		b.sleep(2 * time.Second)
		if b.server("ci").HeldBy == "" {
			t.Fatal("not held")
		}
		ja.dead.Store(true)
		began := time.Now()
		if err := b.m.Cancel(t.Context(), key("ci", "t1")); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		// It is taken for a process that is only slow for a while.
		if d := time.Since(began); d > 18*time.Second {
			t.Errorf("it took %v", d)
		}
		if n := g.called("cancel", "t1") + f.called("cancel", "t1"); n != 1 {
			t.Errorf("sent %d times", n)
		}
		b.sleep(2 * time.Second)
		if x := b.task("ci", "t1"); x.Status != taskmodel.Cancelled || x.Owner != "" {
			t.Errorf("%s, owner %q", x.Status, x.Owner)
		}
	})
}

// While a program is held by another process its tasks and questions are alive
// there: the second one shows them so from the first moment.
func TestStdioHeldElsewhereIsNotGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.kind = "stdio"
		asking(f, "")
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
			t.Fatal(err)
		}
		f.put("t1", taskmodel.InputRequired)
		a.sleep(3 * time.Second)
		f.last().h.Asked(question("tag:7", "t1"))
		a.sleep(2 * time.Second)
		g := newFake(taskmodel.GenCore)
		g.kind = "stdio"
		b := run(t, with(openJournal(t, dir, "mcptasks watch")), []string{"ci"}, g)
		b.sleep(time.Second)
		if x := b.task("ci", "t1"); x.Standing != taskmodel.Live || !strings.Contains(x.Owner, "held by mcptasks (pid") {
			t.Errorf("%s, owner %q, note %q", x.Standing, x.Owner, x.Note)
		}
		if q := b.question("tag:7"); q.State != taskmodel.QuestionOpen {
			t.Errorf("%s (%s)", q.State, q.Withdrawn)
		}
		if err := b.m.Answer(t.Context(), accept("tag:7")); err != nil || f.called("answer", "tag:7") != 1 {
			t.Errorf("Answer: %v, sent %d", err, f.called("answer", "tag:7"))
		}
		b.sleep(2 * time.Second)
		if q := b.question("tag:7"); q.State != taskmodel.QuestionAnswered {
			t.Errorf("%s", q.State)
		}
	})
}

// The program was killed while an answer was on its way: it stands as sent with
// an unknown outcome, what was sent is offered again as the draft, and the
// program sends nothing by itself.
func TestAnUndeliveredAnswerIsOfferedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		asking(f, "s1")
		ja := &cutOff{Journal: openJournal(t, dir, "mcptasks")}
		a := run(t, func(o *Options) { o.Journal = ja }, []string{"ci"}, f)
		if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
			t.Fatal(err)
		}
		f.put("t1", taskmodel.InputRequired)
		a.sleep(3 * time.Second)
		f.last().h.Asked(question("tag:7", "t1"))
		synctest.Wait()
		f.hook(func() {
			f.answer = func(ctx context.Context, _ taskmodel.Answer) error {
				ja.dead.Store(true)
				<-ctx.Done()
				return ctx.Err()
			}
		})
		go func() { _ = a.m.Answer(t.Context(), accept("tag:7")) }()
		a.sleep(time.Second)
		a.end()
		if err := ja.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		f.hook(func() { f.answer = nil })
		f.forgetCalls()
		r := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		r.sleep(time.Minute)
		q := r.question("tag:7")
		if q.State != taskmodel.QuestionUnconfirmed || string(q.Draft) != `{"a":"secret words"}` || f.total("answer") != 0 {
			t.Errorf("%s, draft %s, sent %d", q.State, q.Draft, f.total("answer"))
		}
		if err := r.m.Answer(t.Context(), accept("tag:7")); err != nil || f.called("answer", "tag:7") != 1 {
			t.Errorf("sent again by the person: %v, %d", err, f.called("answer", "tag:7"))
		}
	})
}

// A task that the server does not show to whom we are signed in as now is told
// apart from a lost one, and from one of a lost session (issue D 2).
func TestNotVisibleToThisSignIn(t *testing.T) {
	for _, c := range []struct{ before, after, session, want string }{
		{"ada", "bob", "s2", "not visible to this sign-in"},
		{"ada", "bob", "", "not visible to this sign-in"},
		{"ada", "ada", "s2", "not known to this session"},
		{"", "", "s2", "not known to this session"},
		{"ada", "ada", "", "does not know this task"},
		{"ada", "ada", "s1", "does not know this task"},
	} {
		t.Run(c.before+" "+c.after+" "+c.session, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				f := newFake(taskmodel.GenCore)
				asking(f, "s1")
				if f.identity = c.before; c.session == "" {
					f.session = ""
				}
				j := openJournal(t, dir, "mcptasks")
				r := run(t, with(j), []string{"ci"}, f)
				if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
					t.Fatal(err)
				}
				r.sleep(3 * time.Second)
				r.end()
				closeJournal(t, j)
				f.drop("t1")
				f.hook(func() { f.identity, f.session = c.after, c.session })
				r = run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
				r.sleep(time.Minute)
				x := r.task("ci", "t1")
				if x.Standing != taskmodel.Gone || !strings.Contains(x.Note, c.want) || x.Status != taskmodel.Working {
					t.Errorf("%s %s: %q", x.Status, x.Standing, x.Note)
				}
				if s := r.server("ci"); s.Identity != c.after {
					t.Errorf("signed in as %q", s.Identity)
				}
			})
		})
	}
}

// A server that refuses one task, with the status that says so, does not lose it.
func TestRefusedTasksAreNotLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("mine", taskmodel.Working)
		f.put("theirs", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(3 * time.Second)
		f.hook(func() {
			f.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
				if id == "theirs" {
					return taskmodel.Snapshot{}, fmt.Errorf("ci: %w", &transport.StatusError{Status: 403})
				}
				return f.look(id)
			}
			f.can.List = false
		})
		r.m.Connect("ci")
		r.sleep(10 * time.Second)
		if x := r.task("ci", "theirs"); x.Standing != taskmodel.Stale || !strings.Contains(x.Note, "not visible to this sign-in") {
			t.Errorf("theirs: %s %q", x.Standing, x.Note)
		}
		if x := r.task("ci", "mine"); x.Standing != taskmodel.Live || r.server("ci").State != taskmodel.ServerReady {
			t.Errorf("mine: %s, %s", x.Standing, r.server("ci").State)
		}
		f.hook(func() { f.get = nil })
		r.sleep(5 * time.Minute)
		if x := r.task("ci", "theirs"); x.Standing != taskmodel.Live {
			t.Errorf("shown again: %s %q", x.Standing, x.Note)
		}
	})
}

// Where each process asks for itself, a question that vanishes because another
// process answered it is answered, and not withdrawn; one that vanishes by
// itself is withdrawn.
func TestAnsweredByAnotherProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenExtension)
		f.put("x", taskmodel.InputRequired)
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		if _, err := a.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		b := run(t, with(openJournal(t, dir, "mcptasks answer")), []string{"ci"}, f)
		b.sleep(2 * time.Second)
		f.mu.Lock()
		conns := append([]*fakeClient(nil), f.conns...)
		f.mu.Unlock()
		for _, c := range conns {
			c.h.Asked(question("x/k", "x"))
			c.h.Asked(question("x/l", "x"))
		}
		synctest.Wait()
		if err := b.m.Answer(t.Context(), accept("x/k")); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"x/k", "x/l"} {
			conns[0].h.Withdrawn(taskmodel.QuestionID{Server: "ci", ID: id}, "the server does not ask this any more")
		}
		a.sleep(100 * time.Millisecond)
		if q := a.question("x/k"); q.State != taskmodel.QuestionAnswered && q.State != taskmodel.QuestionSending {
			t.Errorf("%s (%s)", q.State, q.Withdrawn)
		}
		if q := a.question("x/l"); q.State != taskmodel.QuestionWithdrawn {
			t.Errorf("%s", q.State)
		}
		a.sleep(2 * time.Second)
		if q := a.question("x/k"); q.State != taskmodel.QuestionAnswered {
			t.Errorf("later: %s (%s)", q.State, q.Withdrawn)
		}
		events, err := a.m.History(t.Context(), key("ci", "x"))
		if err != nil || strings.Count(fmt.Sprint(events), "withdrawn: ") != 1 {
			t.Errorf("history: %v %v", events, err)
		}
	})
}

// A slow journal is one whose leases take a while to be had.
type slowLease struct {
	*journal.Journal
	delay atomic.Int64 // of the first
	fails atomic.Int64 // so many are not answered at all
}

func (s *slowLease) Acquire(ctx context.Context, target, session string) (journal.Holder, bool, error) {
	if s.fails.Add(-1) >= 0 {
		<-ctx.Done()
		return journal.Holder{}, false, ctx.Err()
	}
	if !pause(ctx, time.Duration(s.delay.Swap(0))) {
		return journal.Holder{}, false, ctx.Err()
	}
	return s.Journal.Acquire(ctx, target, session)
}

// What the holder of a server writes while a second process still asks for the
// lease is not lost on that one: a question, other words, that a task is gone.
func TestWhatIsWrittenWhileTheLeaseIsAskedForIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.kind = "stdio"
		asking(f, "")
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		for range 2 {
			if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
				t.Fatal(err)
			}
		}
		a.sleep(3 * time.Second)
		g := newFake(taskmodel.GenCore)
		g.kind = "stdio"
		slow := &slowLease{Journal: openJournal(t, dir, "mcptasks wait")}
		slow.delay.Store(int64(4500 * time.Millisecond))
		b := run(t, func(o *Options) { o.Journal = slow }, []string{"ci"}, g)
		b.sleep(200 * time.Millisecond)
		f.put("t1", taskmodel.InputRequired)
		f.push("t1")
		f.last().h.Asked(question("tag:7", "t1"))
		f.drop("t2")
		_, _ = a.m.Poll(t.Context(), key("ci", "t2"))
		a.sleep(15 * time.Second)
		if b.server("ci").HeldBy == "" {
			t.Fatal("not held")
		}
		if x := b.task("ci", "t1"); x.Status != taskmodel.InputRequired || len(x.Inputs) != 1 {
			t.Errorf("t1: %s, asks %v", x.Status, x.Inputs)
		}
		if q := b.question("tag:7"); !q.State.Open() {
			t.Errorf("the question is %q", q.State)
		}
		if x := b.task("ci", "t2"); x.Standing != taskmodel.Gone {
			t.Errorf("t2: %s %s", x.Status, x.Standing)
		}
	})
}

// A journal that gives no answer for a while is no leave to take a program that
// another process runs, and its tasks for lost.
func TestASlowJournalDoesNotGiveTheServerAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.kind = "stdio"
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
			t.Fatal(err)
		}
		a.sleep(3 * time.Second)
		g := newFake(taskmodel.GenCore)
		g.kind = "stdio"
		slow := &slowLease{Journal: openJournal(t, dir, "mcptasks wait")}
		slow.fails.Store(2)
		b := run(t, func(o *Options) { o.Journal = slow }, []string{"ci"}, g)
		b.sleep(20 * time.Second)
		if s := b.server("ci"); s.HeldBy == "" || g.dialCount() != 0 {
			t.Errorf("held by %q, started %d times", s.HeldBy, g.dialCount())
		}
		for _, r := range []*rig{a, b} {
			if x := r.task("ci", "t1"); x.Standing != taskmodel.Live {
				t.Errorf("%s %s %q", x.Status, x.Standing, x.Note)
			}
		}
	})
}

// A full or read-only disk says at once that there is no lease: it delays no
// connection, and a locked one does not delay it once more after the last try.
func TestAJournalThatFailsDelaysNoConnection(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		after time.Duration
	}{
		{"full", errors.New("the journal cannot be written: the disk is full"), 0},
		{"slow", context.DeadlineExceeded, (leaseTries - 1) * leaseEvery},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenCore)
				f.kind = "stdio"
				bad := &noLease{Journal: openJournal(t, t.TempDir(), "mcptasks"), err: c.err}
				r := run(t, func(o *Options) { o.Journal = bad }, []string{"ci"}, f)
				r.sleep(c.after + leaseEvery/2)
				if n := f.dialCount(); n != 1 {
					t.Errorf("dialled %d times after %s", n, c.after)
				}
			})
		})
	}
}

type noLease struct {
	*journal.Journal
	err error
}

func (n *noLease) Acquire(context.Context, string, string) (journal.Holder, bool, error) {
	return journal.Holder{}, false, n.err
}

// Two processes that connect to one server in the same instant open a session
// each; one of them is given up, and with it no task: all that is started in
// either runs in the session that is kept, and its end shows in both.
func TestTwoProcessesConnectInTheSameInstant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		var rigs []*rig
		var fakes []*fakeServer
		for i := range 2 {
			f := newFake(taskmodel.GenCore)
			f.session = fmt.Sprintf("s%d", i+1)
			f.can.List = false
			f.dialErr = func(int, mcp.Options) error { time.Sleep(time.Second); return nil } // both are on their way
			fakes = append(fakes, f)
			rigs = append(rigs, run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f))
		}
		rigs[0].sleep(3 * time.Second)
		holder, other := 0, 1
		if rigs[0].server("ci").HeldBy != "" {
			holder, other = 1, 0
		}
		a, b, f, g := rigs[holder], rigs[other], fakes[holder], fakes[other]
		if a.server("ci").State != taskmodel.ServerReady || a.server("ci").HeldBy != "" || b.server("ci").HeldBy == "" {
			t.Fatalf("held by %q and %q", a.server("ci").HeldBy, b.server("ci").HeldBy)
		}
		if e := g.ended(); len(e) != 1 || !e[0] {
			t.Errorf("the session that was given up was ended: %v", e)
		}
		for i, r := range rigs {
			rep, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.look(rep.Key.ID); err != nil {
				t.Errorf("the task of process %d is not in the session that is kept: %v", i, err)
			}
		}
		f.put("t1", taskmodel.Completed)
		f.put("t2", taskmodel.Failed)
		a.sleep(5 * time.Second)
		for _, r := range rigs {
			if x, y := r.task("ci", "t1"), r.task("ci", "t2"); x.Status != taskmodel.Completed || y.Status != taskmodel.Failed {
				t.Errorf("%s and %s", x.Status, y.Status)
			}
		}
		// The holder ends; the other takes up its session, not one of its own.
		f.put("t2", taskmodel.Working)
		a.end()
		g.hook(func() { g.session = f.session })
		b.sleep(10 * time.Second)
		if s := b.server("ci"); s.State != taskmodel.ServerReady || s.HeldBy != "" {
			t.Errorf("%s, held by %q", s.State, s.HeldBy)
		}
	})
}
