package monitor

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// openJournal opens the journal of a folder as a process of its own.
func openJournal(t *testing.T, dir, what string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{What: what})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeJournal(t, j) })
	return j
}

func closeJournal(t *testing.T, j *journal.Journal) {
	t.Helper()
	if err := j.Close(context.Background()); err != nil && !errors.Is(err, journal.ErrClosed) {
		t.Errorf("closing the journal: %v", err)
	}
}

func with(j *journal.Journal) func(*Options) {
	return func(o *Options) { o.Journal = j }
}

// The next run has every task back at once, takes the old session up, and asks
// for those that were unfinished (issue D 2).
func TestRestoreAndResumeTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.session, f.can.List = "s1", false
		j := openJournal(t, dir, "mcptasks")
		r := run(t, with(j), []string{"ci"}, f)
		for range 3 {
			if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build", Args: json.RawMessage(`{"n":1}`)}); err != nil {
				t.Fatal(err)
			}
		}
		f.put("t1", taskmodel.Completed)
		r.sleep(5 * time.Second)
		r.end()
		closeJournal(t, j)

		f.put("t2", taskmodel.Failed) // while nobody looked
		j = openJournal(t, dir, "mcptasks")
		f.hook(func() { f.latency = 3 * time.Second })
		r = run(t, with(j), []string{"ci"}, f)
		r.sleep(100 * time.Millisecond)
		if n := r.board().Len(); n != 3 {
			t.Fatalf("%d tasks are back", n)
		}
		for id, want := range map[string]taskmodel.Standing{"t1": taskmodel.Live, "t2": taskmodel.Restored, "t3": taskmodel.Restored} {
			x := r.task("ci", id)
			if x.Standing != want || x.Tool != "build" || string(x.Args) != `{"n":1}` || !x.Ours {
				t.Errorf("%s: %s, tool %q, args %s, ours %v", id, x.Standing, x.Tool, x.Args, x.Ours)
			}
		}
		if o := f.dial(f.dialCount() - 1); o.Session != "s1" {
			t.Errorf("connected with session %q", o.Session)
		}
		r.sleep(20 * time.Second)
		if x := r.task("ci", "t3"); x.Standing != taskmodel.Live || x.Status != taskmodel.Working {
			t.Errorf("t3: %s %s", x.Status, x.Standing)
		}
		x := r.task("ci", "t2")
		if x.Standing != taskmodel.Live || x.Status != taskmodel.Failed || x.Outcome.IsZero() {
			t.Errorf("t2: %s %s, outcome %+v", x.Status, x.Standing, x.Outcome)
		}
		// The result of t1 was kept, and is served from here.
		f.hook(func() {
			f.result = func(context.Context, string) (taskmodel.Outcome, error) {
				return taskmodel.Outcome{}, errFakeNotFound
			}
		})
		o, err := r.m.Fetch(t.Context(), key("ci", "t1"))
		if err != nil || !o.KeptHere || !strings.Contains(string(o.Result), "t1") {
			t.Errorf("Fetch of a kept result: %+v %v", o, err)
		}
		events, err := r.m.History(t.Context(), key("ci", "t1"))
		if err != nil || len(events) < 3 || events[0].Kind != taskmodel.EventCreated {
			t.Errorf("history: %v %v", events, err)
		}
		if n := len(r.heard(taskmodel.EventCreated)); n != 0 {
			t.Errorf("%d tasks that were known are said to be created", n)
		}
	})
}

// The old session is not known any more: a new one, and the tasks of the old
// one are told apart from lost ones.
func TestRestoreWithALostSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.session = "s1"
		j := openJournal(t, dir, "mcptasks")
		r := run(t, with(j), []string{"ci"}, f)
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
			t.Fatal(err)
		}
		r.sleep(3 * time.Second)
		r.end()
		closeJournal(t, j)
		f.drop("t1")
		f.dialErr = func(_ int, o mcp.Options) error {
			if o.Session != "" {
				return fmt.Errorf("ci: %w", mcp.ErrSessionLost)
			}
			return nil
		}
		f.session = "s2"
		j = openJournal(t, dir, "mcptasks")
		r = run(t, with(j), []string{"ci"}, f)
		r.sleep(time.Minute)
		if s := r.server("ci"); s.State != taskmodel.ServerReady {
			t.Fatalf("row: %s %s", s.State, s.Error)
		}
		x := r.task("ci", "t1")
		if x.Standing != taskmodel.Gone || !strings.Contains(x.Note, "session") || x.Status != taskmodel.Working {
			t.Errorf("%s %s %q", x.Status, x.Standing, x.Note)
		}
	})
}

// What was sent and not confirmed when the process died stands as that, and is
// not sent again; an answer that was not sent is offered, not sent.
func TestRestoreAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenExtension)
		f.put("x", taskmodel.InputRequired)
		j := openJournal(t, dir, "mcptasks")
		r := run(t, with(j), []string{"ci"}, f)
		if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"x/answered", "x/lost", "x/typed"} {
			f.last().h.Asked(question(id, "x"))
		}
		synctest.Wait()
		if err := r.m.Answer(t.Context(), accept("x/answered")); err != nil {
			t.Fatal(err)
		}
		f.hook(func() {
			f.answer = func(context.Context, taskmodel.Answer) error { return fmt.Errorf("ci: %w", mcp.ErrClosed) }
		})
		if err := r.m.Answer(t.Context(), accept("x/lost")); !errors.Is(err, ErrUnconfirmed) {
			t.Fatal(err)
		}
		r.m.SaveDraft(taskmodel.QuestionID{Server: "ci", ID: "x/typed"}, json.RawMessage(`{"a":"half"}`))
		r.sleep(2 * time.Second)
		r.end()
		closeJournal(t, j)
		f.hook(func() { f.answer = nil })
		f.forgetCalls()
		j = openJournal(t, dir, "mcptasks")
		r = run(t, with(j), []string{"ci"}, f)
		r.sleep(time.Second)
		for _, id := range []string{"x/answered", "x/lost", "x/typed"} {
			f.last().h.Asked(question(id, "x")) // the server still asks
		}
		r.sleep(time.Minute)
		if q := r.question("x/answered"); q.State != taskmodel.QuestionAnswered {
			t.Errorf("answered: %s", q.State)
		}
		if q := r.question("x/lost"); q.State != taskmodel.QuestionUnconfirmed {
			t.Errorf("lost: %s", q.State)
		}
		if q := r.question("x/typed"); !q.State.Open() || string(q.Draft) != `{"a":"half"}` {
			t.Errorf("typed: %s %s", q.State, q.Draft)
		}
		if n := f.total("answer"); n != 0 {
			t.Errorf("%d answers were sent by the program", n)
		}
	})
}

// A program's tasks end with the process that held it.
func TestStdioTasksOfADeadProcessAreGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.kind = "stdio"
		j := openJournal(t, dir, "mcptasks")
		r := run(t, with(j), []string{"ci"}, f)
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
			t.Fatal(err)
		}
		r.sleep(2 * time.Second)
		r.end()
		closeJournal(t, j)
		f.drop("t1")
		j = openJournal(t, dir, "mcptasks")
		r = run(t, with(j), []string{"ci"}, f)
		r.sleep(time.Second)
		x := r.task("ci", "t1")
		if x.Standing != taskmodel.Gone || !strings.Contains(x.Note, "program") || x.Status != taskmodel.Working {
			t.Errorf("%s %s %q", x.Status, x.Standing, x.Note)
		}
	})
}

// keep = none: arguments, raw messages and results stay out of the journal.
func TestKeepNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.session = "s1"
		j := openJournal(t, dir, "mcptasks")
		r := run(t, func(o *Options) {
			o.Journal = j
			o.Servers[0].Keep = func(tool string) bool { return tool != "secret" }
		}, []string{"ci"}, f)
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "secret", Args: json.RawMessage(`{"pin":"1234"}`)}); err != nil {
			t.Fatal(err)
		}
		f.put("t1", taskmodel.Completed)
		r.sleep(3 * time.Second)
		if r.task("ci", "t1").Outcome.IsZero() {
			t.Error("the result is not even in memory")
		}
		if err := j.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		got, err := j.Restore(context.Background(), "target:ci")
		if err != nil || len(got.Tasks) != 1 {
			t.Fatalf("%v %v", got, err)
		}
		if x := got.Tasks[0]; x.Args != nil || x.Raw != nil || !x.Outcome.IsZero() {
			t.Errorf("kept: args %s, raw %s, outcome %+v", x.Args, x.Raw, x.Outcome)
		}
	})
}

// Two processes on one state: one holds the server, the other shows its rows
// and has its acts done by it, each once; when the holder ends, the other takes
// the session up.
func TestTwoProcesses(t *testing.T) {
	// That a server speaks HTTP+SSE shows only on a connection, which is given up.
	for kind, dials := range map[string]int{"http": 0, "stdio": 0, "sse": 1} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				f := newFake(taskmodel.GenCore)
				f.kind = kind
				if kind == "http" {
					f.session = "s1"
				}
				f.can.List = false
				ja := openJournal(t, dir, "mcptasks")
				a := run(t, with(ja), []string{"ci"}, f)
				if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
					t.Fatal(err)
				}
				a.sleep(3 * time.Second)

				jb := openJournal(t, dir, "mcptasks watch")
				g := newFake(taskmodel.GenCore)
				g.kind = kind
				b := run(t, with(jb), []string{"ci"}, g)
				b.sleep(3 * time.Second)
				s := b.server("ci")
				if s.HeldBy == "" || !strings.Contains(s.HeldBy, "mcptasks (pid") || g.dialCount() != dials {
					t.Fatalf("held by %q, %s, %d dials", s.HeldBy, s.State, g.dialCount())
				}
				if x := b.task("ci", "t1"); x.Status != taskmodel.Working || !strings.Contains(x.Owner, "held by") {
					t.Errorf("row: %s, owner %q", x.Status, x.Owner)
				}
				if x := b.task("ci", "t1"); x.Standing != taskmodel.Live {
					t.Errorf("a row that its holder hears of is %s", x.Standing)
				}
				b.m.Connect("ci") // changes nothing
				b.sleep(time.Second)
				if s := b.server("ci"); s.State != taskmodel.ServerOff || s.HeldBy == "" || !s.Can.Cancel || g.dialCount() != dials {
					t.Errorf("after Connect: %s, held by %q, can %+v", s.State, s.HeldBy, s.Can)
				}
				if tools, err := b.m.Tools(t.Context(), "ci"); err != nil || len(tools) != 1 || tools[0].Name != "build" {
					t.Errorf("Tools: %v %v", tools, err)
				}
				// What the holder hears shows within two seconds.
				f.hook(func() {
					f.result = func(ctx context.Context, _ string) (taskmodel.Outcome, error) {
						<-ctx.Done()
						return taskmodel.Outcome{}, ctx.Err()
					}
				})
				f.put("t1", taskmodel.InputRequired)
				a.sleep(1100 * time.Millisecond)
				f.last().h.Asked(question("q", "t1"))
				b.sleep(2 * time.Second)
				if x := b.task("ci", "t1"); x.Status != taskmodel.InputRequired {
					t.Errorf("row: %s", x.Status)
				}
				if q := b.question("q"); !q.State.Open() || q.Task != key("ci", "t1") {
					t.Errorf("question: %+v", q)
				}
				// Acts.
				if err := b.m.Answer(t.Context(), accept("q")); err != nil {
					t.Fatalf("Answer: %v", err)
				}
				if n := f.called("answer", "q"); n != 1 {
					t.Errorf("the answer was sent %d times", n)
				}
				// An answer without content arrives without.
				page := question("page", "")
				page.Kind, page.Schema, page.URL = taskmodel.AskURL, nil, "https://example.com/"
				var sent taskmodel.Answer
				f.hook(func() {
					f.answer = func(_ context.Context, a taskmodel.Answer) error { sent = a; return nil }
				})
				f.last().h.Asked(page)
				b.sleep(2 * time.Second)
				if err := b.m.Answer(t.Context(), taskmodel.Answer{Question: page.ID, Action: taskmodel.Accept}); err != nil || sent.Action != taskmodel.Accept || sent.Content != nil {
					t.Errorf("Answer: %v, sent %+v", err, sent)
				}
				reply, err := b.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy", Args: json.RawMessage(`{"a":1}`)})
				if err != nil || reply.Key != key("ci", "t2") {
					t.Fatalf("Start: %+v %v", reply, err)
				}
				if x := b.task("ci", "t2"); x.Tool != "deploy" {
					t.Errorf("row: %+v", x)
				}
				if err := b.m.Cancel(t.Context(), key("ci", "t2")); err != nil {
					t.Errorf("Cancel: %v", err)
				}
				if n := f.called("cancel", "t2"); n != 1 {
					t.Errorf("the cancel was sent %d times", n)
				}
				b.sleep(3 * time.Second)
				if x := b.task("ci", "t2"); x.Status != taskmodel.Cancelled {
					t.Errorf("row: %s", x.Status)
				}
				f.hook(func() { f.result = nil })
				f.put("t1", taskmodel.Completed)
				b.sleep(5 * time.Second)
				o, err := b.m.Fetch(t.Context(), key("ci", "t1"))
				if err != nil || o.Result == nil {
					t.Errorf("Fetch: %+v %v", o, err)
				}
				if err := b.m.Cancel(t.Context(), key("ci", "t1")); err == nil || !strings.Contains(err.Error(), "too late") {
					t.Errorf("Cancel of an ended task: %v", err)
				}
				if g.total("get")+g.total("answer")+g.total("cancel") != 0 {
					t.Error("the second process spoke to the server itself")
				}
				// The holder ends while a task runs; the other takes over.
				if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
					t.Fatal(err)
				}
				a.sleep(time.Second)
				g.session = f.session
				a.end()
				closeJournal(t, ja)
				b.sleep(8 * time.Second)
				s = b.server("ci")
				if s.HeldBy != "" || s.State != taskmodel.ServerReady || g.dialCount() == 0 {
					t.Errorf("after the holder's end: held by %q, %s (%s), %d dials", s.HeldBy, s.State, s.Error, g.dialCount())
				}
				if kind == "http" && g.dial(0).Session != "s1" {
					t.Errorf("took up session %q", g.dial(0).Session)
				}
			})
		})
	}
}

// Servers without a session: each process asks for itself; an answer and a
// cancel go once, and what one hears the other knows.
func TestTwoProcessesWithoutASession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenExtension)
		f.put("x", taskmodel.InputRequired)
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		b := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		if _, err := a.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		b.sleep(3 * time.Second)
		if x := b.task("ci", "x"); x.Standing != taskmodel.Live || b.server("ci").HeldBy != "" {
			t.Errorf("row in the other process: %s, held by %q", x.Standing, b.server("ci").HeldBy)
		}
		f.mu.Lock()
		conns := append([]*fakeClient(nil), f.conns...)
		f.mu.Unlock()
		for _, c := range conns {
			c.h.Asked(question("x/k", "x"))
		}
		synctest.Wait()
		f.hook(func() { f.latency = 100 * time.Millisecond })
		errs := make(chan error, 2)
		go func() { errs <- a.m.Answer(t.Context(), accept("x/k")) }()
		go func() { errs <- b.m.Answer(t.Context(), accept("x/k")) }()
		e1, e2 := <-errs, <-errs
		if (e1 == nil) == (e2 == nil) {
			t.Errorf("answers: %v, %v; want one refused", e1, e2)
		}
		if n := f.called("answer", "x/k"); n != 1 {
			t.Errorf("sent %d times", n)
		}
		f.hook(func() {
			f.cancel = func(context.Context, string) (*taskmodel.Snapshot, error) { return nil, nil }
		})
		go func() { errs <- a.m.Cancel(t.Context(), key("ci", "x")) }()
		go func() { errs <- b.m.Cancel(t.Context(), key("ci", "x")) }()
		<-errs
		<-errs
		if n := f.called("cancel", "x"); n != 1 {
			t.Errorf("cancel was sent %d times", n)
		}
		if err := a.m.Forget(t.Context(), key("ci", "x"), false); err != nil {
			t.Fatal(err)
		}
		b.sleep(3 * time.Second)
		if n := b.board().Len(); n != 0 {
			t.Errorf("forgotten in one process, %d tasks show in the other", n)
		}
	})
}

// A task that another process made, and that had ended before anything was heard
// of it here, is told of like any other, and its result comes: whether its end is
// read from the journal, or the server tells it to every connection.
func TestATaskThatEndedBesideUsIsToldOf(t *testing.T) {
	for _, c := range []struct {
		keep   string
		pushed bool
	}{{"none", false}, {"all", false}, {"none", true}, {"all", true}} {
		t.Run(fmt.Sprintf("keep %s, pushed %v", c.keep, c.pushed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				f := newFake(taskmodel.GenExtension)
				g := newFake(taskmodel.GenExtension) // as the other process meets it
				if c.pushed {
					g = f
				}
				both := func(j *journal.Journal) func(*Options) {
					return func(o *Options) {
						with(j)(o)
						if c.keep == "none" {
							o.Servers[0].Keep = func(string) bool { return false }
						}
					}
				}
				b := run(t, both(openJournal(t, dir, "mcptasks")), []string{"ci"}, g)
				b.sleep(time.Second) // what is there from now on is news to it
				if s := b.server("ci"); s.State != taskmodel.ServerReady {
					t.Fatalf("%s: %s", s.State, s.Error)
				}
				a := run(t, both(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
				if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
					t.Fatal(err)
				}
				f.put("t1", taskmodel.Completed)
				g.put("t1", taskmodel.Completed)
				f.pushAll("t1")
				b.sleep(5 * time.Second)
				if x := b.task("ci", "t1"); x.Status != taskmodel.Completed || x.Outcome.IsZero() {
					t.Errorf("the row here: %s, result %v", x.Status, x.Outcome)
				}
				var told []taskmodel.EventKind
				for _, k := range []taskmodel.EventKind{taskmodel.EventCreated, taskmodel.EventResult} {
					for _, e := range b.heard(k) {
						if e.Task.ID == "t1" {
							told = append(told, k)
						}
					}
				}
				// A result that is kept may be read with its task.
				if len(told) == 0 || told[0] != taskmodel.EventCreated || c.keep == "none" && !slices.Equal(told, []taskmodel.EventKind{taskmodel.EventCreated, taskmodel.EventResult}) {
					t.Errorf("told: %v", told)
				}
			})
		})
	}
}

// That the server has forgotten the session of a task is known to each later
// process, not only to the one that was told (issue D 2).
func TestALostSessionIsRemembered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.session, f.can.List = "s1", false
		use := func(d time.Duration, act func(r *rig)) {
			j := openJournal(t, dir, "mcptasks")
			r := run(t, with(j), []string{"ci"}, f)
			act(r)
			r.sleep(d)
			r.end()
			closeJournal(t, j)
		}
		use(3*time.Second, func(r *rig) {
			if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
				t.Fatal(err)
			}
		})
		f.drop("t1")
		f.hook(func() {
			f.session = "s2"
			f.dialErr = func(_ int, o mcp.Options) error {
				if o.Session == "s1" {
					return fmt.Errorf("ci: %w", mcp.ErrSessionLost)
				}
				return nil
			}
		})
		use(100*time.Millisecond, func(*rig) {}) // it is told, and has no time to look
		r := run(t, with(openJournal(t, dir, "mcptasks watch")), []string{"ci"}, f)
		r.sleep(time.Minute)
		if x := r.task("ci", "t1"); x.Standing != taskmodel.Gone || !strings.Contains(x.Note, "forgotten the session") {
			t.Errorf("%s %q", x.Standing, x.Note)
		}
	})
}

// A killed is a journal whose process has written something and was killed: its
// writer is of a process that is no more.
func killed(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE writers SET pid = 1 << 22, ended = 0`); err != nil {
		t.Fatal(err)
	}
}

// A cancellation whose sender was killed stands as sent with an unknown outcome:
// the program does not send it again, a person can at once (issue D, "Show it").
func TestACancelOfAKilledProcess(t *testing.T) {
	for _, gen := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension} {
		t.Run(string(gen), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				f := newFake(gen)
				hang := make(chan struct{})
				f.cancel = func(ctx context.Context, _ string) (*taskmodel.Snapshot, error) {
					select {
					case <-ctx.Done():
					case <-hang:
					}
					return nil, fmt.Errorf("ci: %w", mcp.ErrClosed)
				}
				f.put("x", taskmodel.Working)
				ja := &cutOff{Journal: openJournal(t, dir, "mcptasks cancel")}
				a := run(t, func(o *Options) { o.Journal = ja }, []string{"ci"}, f)
				if _, err := a.m.Add(t.Context(), "ci", "x"); err != nil {
					t.Fatal(err)
				}
				go func() { _ = a.m.Cancel(t.Context(), key("ci", "x")) }()
				a.sleep(time.Second)
				if x := a.task("ci", "x"); x.CancelNote != taskmodel.CancelSending {
					t.Fatalf("on its way: %q", x.CancelNote)
				}
				ja.dead.Store(true)
				close(hang)
				a.end()
				closeJournal(t, ja.Journal)
				killed(t, dir)
				f.hook(func() { f.cancel = nil })
				f.forgetCalls()

				b := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
				b.sleep(5 * time.Minute)
				if x := b.task("ci", "x"); x.CancelRequested.IsZero() || x.CancelNote != taskmodel.CancelUnknown || x.Status != taskmodel.Working {
					t.Errorf("%s, requested %v, %q", x.Status, x.CancelRequested, x.CancelNote)
				}
				if n := f.total("cancel"); n != 0 {
					t.Errorf("the program sent it %d times by itself", n)
				}
				if err := b.m.Cancel(t.Context(), key("ci", "x")); err != nil || f.total("cancel") != 1 {
					t.Errorf("a person's: %v, sent %d times", err, f.total("cancel"))
				}
				b.sleep(time.Second)
				if x := b.task("ci", "x"); x.CancelNote != "" && x.Status != taskmodel.Cancelled {
					t.Errorf("then %s %q", x.Status, x.CancelNote)
				}
			})
		})
	}
}

// An answer whose sender was killed is not taken for one that was delivered,
// nor sent by another process that had the question open all the time; a person
// who is told so can send it all the same.
func TestAnAnswerOfAKilledProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenExtension)
		hang := make(chan struct{})
		f.answer = func(ctx context.Context, _ taskmodel.Answer) error {
			select {
			case <-ctx.Done():
			case <-hang:
			}
			return fmt.Errorf("ci: %w", mcp.ErrClosed)
		}
		f.put("x", taskmodel.InputRequired)
		ja := &cutOff{Journal: openJournal(t, dir, "mcptasks answer")}
		a := run(t, func(o *Options) { o.Journal = ja }, []string{"ci"}, f)
		if _, err := a.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		b := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		b.sleep(time.Second)
		f.mu.Lock()
		conns := append([]*fakeClient(nil), f.conns...)
		f.mu.Unlock()
		for _, c := range conns {
			c.h.Asked(question("x/k", "x"))
		}
		synctest.Wait()
		go func() { _ = a.m.Answer(t.Context(), accept("x/k")) }()
		a.sleep(100 * time.Millisecond)
		ja.dead.Store(true)
		close(hang)
		a.end()
		closeJournal(t, ja.Journal)
		killed(t, dir)
		f.hook(func() { f.answer = nil })
		f.forgetCalls()
		if err := b.m.Answer(t.Context(), accept("x/k")); !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("Answer: %v", err)
		}
		if q := b.question("x/k"); q.State != taskmodel.QuestionUnconfirmed || f.total("answer") != 0 {
			t.Errorf("%s, sent %d times", q.State, f.total("answer"))
		}
		if err := b.m.Answer(t.Context(), accept("x/k")); err != nil || f.total("answer") != 1 {
			t.Errorf("once more: %v, sent %d times", err, f.total("answer"))
		}
	})
}
