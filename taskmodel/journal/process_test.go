package journal

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// two opens the journal twice, as two processes do, on one clock.
func two(t *testing.T) (a, b *Journal, c *clock) {
	dir := t.TempDir()
	c = newClock()
	return opened(t, dir, c.options(Options{What: "mcptasks"})), opened(t, dir, c.options(Options{What: "mcptasks watch"})), c
}

func acquire(t *testing.T, j *Journal) (Holder, bool) {
	t.Helper()
	h, ok, err := j.Acquire(context.Background(), target, "s")
	if err != nil {
		t.Fatal(err)
	}
	return h, ok
}

// moved makes a writer a process of another machine.
func moved(t *testing.T, j *Journal, writer int64) {
	t.Helper()
	if err := j.act(context.Background(), func(x *tx) error {
		_, err := x.exec(`UPDATE writers SET node = 'elsewhere' WHERE id = ?`, writer)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A process of this machine that is stopped does not keep its servers for ever.
func TestLeaseOfAStoppedProcess(t *testing.T) {
	a, b, c := two(t)
	acquire(t, a)
	c.pass(leaseHere - time.Second)
	if _, ok := acquire(t, b); ok {
		t.Error("taken too soon")
	}
	c.pass(time.Second)
	if _, ok := acquire(t, b); !ok {
		t.Error("kept")
	}
}

func TestLease(t *testing.T) {
	a, b, c := two(t)
	if _, ok := acquire(t, a); !ok {
		t.Fatal("a free lease was refused")
	}
	if h, ok := acquire(t, b); ok || h.What != "mcptasks" || h.PID == 0 {
		t.Errorf("%+v %v", h, ok)
	}
	if _, ok, _ := b.Acquire(context.Background(), target, "another session"); !ok {
		t.Error("another session is another lease")
	}
	for range 5 {
		c.pass(4 * time.Second)
		if _, ok := acquire(t, a); !ok {
			t.Fatal("not renewed")
		}
		if _, ok := acquire(t, b); ok {
			t.Fatal("taken while it was renewed")
		}
	}
	c.pass(leaseLife)
	if _, ok := acquire(t, b); ok {
		t.Error("taken from a process that runs, and is only slow")
	}
	moved(t, b, a.me)
	if _, ok := acquire(t, b); !ok {
		t.Error("a lease that a process elsewhere did not renew for five seconds is dead")
	}
	if h, ok := acquire(t, a); ok || h.What != "mcptasks watch" {
		t.Error("it was taken back")
	}
	if err := a.Release(context.Background(), target, "s"); err != nil {
		t.Fatal(err)
	}
	if _, ok := acquire(t, a); ok {
		t.Error("a gave back what was not its own")
	}
	if err := b.Release(context.Background(), target, "s"); err != nil {
		t.Fatal(err)
	}
	if _, ok := acquire(t, a); !ok {
		t.Error("it was given back")
	}
}

// A killed process need not be waited for on the machine where it ran.
func TestLeaseOfADeadProcess(t *testing.T) {
	a, b, _ := two(t)
	acquire(t, a)
	died(t, b, a.me)
	if h, ok := acquire(t, b); !ok {
		t.Errorf("held by %+v", h)
	}
}

func TestLeaseIsGivenBackAtClose(t *testing.T) {
	a, b, _ := two(t)
	acquire(t, a)
	if err := a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, ok := acquire(t, b); !ok {
		t.Error("not given back")
	}
}

func TestIntents(t *testing.T) {
	a, b, c := two(t)
	ctx := context.Background()
	acquire(t, a)
	id, err := b.PutIntent(ctx, Intent{Target: target, Session: "s", Task: key("t"), Kind: "answer", Payload: json.RawMessage(`{"pw":"hunter2"}`)})
	if err != nil {
		t.Fatal(err)
	}
	state := func() (bool, string, string) {
		done, text, detail, err := b.IntentState(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return done, text, string(detail)
	}
	if done, _, _ := state(); done {
		t.Error("done before it was claimed")
	}
	if _, err := b.ClaimIntents(ctx, target, "s"); !errors.Is(err, ErrNoLease) {
		t.Errorf("claimed without the lease: %v", err)
	}
	if list, err := a.ClaimIntents(ctx, target, "other"); err != nil || list != nil {
		t.Errorf("of another session: %v %v", list, err)
	}
	list, err := a.ClaimIntents(ctx, target, "s")
	if err != nil || len(list) != 1 || list[0].ID != id || list[0].Task != key("t") || string(list[0].Payload) != `{"pw":"hunter2"}` ||
		list[0].From.What != "mcptasks watch" || !list[0].At.Equal(c.now()) {
		t.Fatalf("%+v %v", list, err)
	}
	if list, err := a.ClaimIntents(ctx, target, "s"); err != nil || len(list) != 0 {
		t.Errorf("handed out twice: %v %v", list, err)
	}
	if ok, err := b.WithdrawIntent(ctx, id); ok || err != nil {
		t.Errorf("taken back after it was claimed: %v %v", ok, err)
	}
	if err := a.FinishIntent(ctx, id, "refused", json.RawMessage(`{"code":1}`)); err != nil {
		t.Fatal(err)
	}
	if done, text, detail := state(); !done || text != "refused" || detail != `{"code":1}` {
		t.Errorf("%v %q %q", done, text, detail)
	}
	// The holder dies over the next one: nobody knows, and nobody repeats it.
	if id, err = b.PutIntent(ctx, Intent{Target: target, Session: "s", Task: key("t"), Kind: "cancel"}); err != nil {
		t.Fatal(err)
	}
	if list, err := a.ClaimIntents(ctx, target, "s"); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	died(t, b, a.me)
	if done, text, _ := state(); !done || !strings.Contains(text, "not known") {
		t.Errorf("%v %q", done, text)
	}
	acquire(t, b)
	if list, err := b.ClaimIntents(ctx, target, "s"); err != nil || len(list) != 0 {
		t.Errorf("an act was handed out again: %v %v", list, err)
	}
}

// What an intent carried or brought does not stay in the file for processes
// that are no more: the holder's lease is enough to have it dropped, no further
// act is needed. What nobody began with in time is not begun with.
func TestIntentsLeaveNothingBehind(t *testing.T) {
	const brought, carried, unclaimed = "brought-hunter2", "carried-hunter2", "unclaimed-hunter2"
	a, b, c := two(t)
	ctx := context.Background()
	acquire(t, a)
	put := func(word string) int64 {
		t.Helper()
		id, err := b.PutIntent(ctx, Intent{Target: target, Session: "s", Task: key("t"), Kind: "answer", Payload: json.RawMessage(`"` + word + `"`)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	claim := func(n int) {
		t.Helper()
		if list, err := a.ClaimIntents(ctx, target, "s"); err != nil || len(list) != n {
			t.Fatalf("%v %v", list, err)
		}
	}
	asked := put("x")
	claim(1)
	if err := a.FinishIntent(ctx, asked, "", json.RawMessage(`"`+brought+`"`)); err != nil {
		t.Fatal(err)
	}
	put(carried) // and its holder dies over it
	claim(1)
	late := put(unclaimed)
	holds := func(words ...string) {
		t.Helper()
		var all string
		if err := a.read.QueryRowContext(ctx, `SELECT group_concat(payload || detail) FROM intents`).Scan(&all); err != nil {
			t.Fatal(err)
		}
		for _, w := range []string{brought, carried, unclaimed} {
			if have := strings.Contains(all, w); have != slices.Contains(words, w) {
				t.Errorf("%q in the file: %v", w, have)
			}
		}
	}
	holds(brought, carried, unclaimed)
	renew := func(d time.Duration) {
		for end := c.now().Add(d); c.now().Before(end); c.pass(2 * time.Second) {
			acquire(t, a)
		}
	}
	renew(2*unreadLife + 4*time.Second)
	holds(carried, unclaimed)
	if done, _, _, err := b.IntentState(ctx, late); err != nil || done {
		t.Errorf("given up too early: %v %v", done, err)
	}
	renew(intentLife + unreadLife)
	holds()
	if list, err := a.ClaimIntents(ctx, target, "s"); err != nil || len(list) != 0 {
		t.Errorf("handed out too late: %v %v", list, err)
	}
	if done, text, _, err := b.IntentState(ctx, late); err != nil || !done || text != tooLate {
		t.Errorf("%v %q %v", done, text, err)
	}
}

// The lease is looked at again in the claiming transaction.
func TestClaimRechecksTheLease(t *testing.T) {
	a, b, c := two(t)
	ctx := context.Background()
	acquire(t, a)
	if _, err := b.PutIntent(ctx, Intent{Target: target, Session: "s", Task: key("t"), Kind: "cancel"}); err != nil {
		t.Fatal(err)
	}
	c.pass(leaseHere) // a was asleep
	if _, err := a.ClaimIntents(ctx, target, "s"); !errors.Is(err, ErrNoLease) {
		t.Errorf("with a dead lease: %v", err)
	}
	acquire(t, b)
	if list, err := b.ClaimIntents(ctx, target, "s"); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// However many try, each intent and each act goes to one.
func TestOnceAmongMany(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	const n, acts = 4, 25
	var won, claimed atomic.Int64
	put := opened(t, dir, Options{})
	var all []*Journal
	for range n {
		all = append(all, opened(t, dir, Options{}))
	}
	var wg sync.WaitGroup
	for i, j := range all {
		wg.Go(func() {
			for k := range acts {
				if ok, err := j.ClaimAct(ctx, target, "cancel:"+string(rune('a'+k))); err != nil {
					t.Error(err)
				} else if ok {
					won.Add(1)
				}
				if i == 0 {
					if _, err := put.PutIntent(ctx, Intent{Target: target, Session: "s", Kind: "poll", Task: key("t")}); err != nil {
						t.Error(err)
					}
				}
				if _, ok, err := j.Acquire(ctx, target, "s"); err != nil {
					t.Error(err)
				} else if ok {
					list, err := j.ClaimIntents(ctx, target, "s")
					if err != nil {
						t.Error(err)
					}
					claimed.Add(int64(len(list)))
					_ = j.Release(ctx, target, "s")
				}
			}
		})
	}
	wg.Wait()
	if _, ok, err := put.Acquire(ctx, target, "s"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	rest, err := put.ClaimIntents(ctx, target, "s")
	if err != nil {
		t.Fatal(err)
	}
	if won.Load() != acts || claimed.Load()+int64(len(rest)) != acts {
		t.Errorf("%d acts went to somebody %d times, %d intents were claimed %d times", acts, won.Load(), acts, claimed.Load()+int64(len(rest)))
	}
}

func TestChanges(t *testing.T) {
	a, b, c := two(t)
	ctx := context.Background()
	write(t, a, entry(working("old")))
	from := restore(t, b).Change
	look := func() Changes {
		t.Helper()
		got, err := b.Changes(ctx, target, from)
		if err != nil {
			t.Fatal(err)
		}
		from = got.Change
		return got
	}
	if got := look(); len(got.Tasks)+len(got.Questions)+len(got.Forgotten) != 0 {
		t.Errorf("nothing happened: %+v", got)
	}
	q := taskmodel.Question{ID: taskmodel.QuestionID{ID: "q"}, Task: key("new"), State: taskmodel.QuestionSending}
	write(t, a, entry(working("new")), Entry{Target: target, Question: &q},
		Entry{Target: target, Key: key("new"), Outcome: &taskmodel.Outcome{Result: json.RawMessage(`1`)}})
	write(t, b, entry(working("own")))
	got := look()
	if len(got.Tasks) != 1 || got.Tasks[0].ID != "new" || !got.Tasks[0].Outcome.KeptHere {
		t.Errorf("%+v", got.Tasks)
	}
	if len(got.Questions) != 1 || got.Questions[0].State != taskmodel.QuestionSending {
		t.Errorf("the process that sends it lives: %+v", got.Questions)
	}
	c.pass(time.Second)
	write(t, a, Entry{Target: target, Key: key("old"), Forget: true})
	if got := look(); len(got.Forgotten) != 1 || got.Forgotten[0] != key("old") || len(got.Tasks) != 0 {
		t.Errorf("%+v", got)
	}
	if got := look(); len(got.Forgotten)+len(got.Tasks) != 0 {
		t.Errorf("told twice: %+v", got)
	}
	if got, err := b.Changes(ctx, "nobody", 0); err != nil || len(got.Tasks) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

// What a process that runs says of its tasks holds for those beside it; what one
// wrote that is no more is known from earlier.
func TestStandingOfAnotherProcess(t *testing.T) {
	a, b, _ := two(t)
	ctx := context.Background()
	lost := working("lost")
	lost.Standing, lost.Note = taskmodel.Stale, "polls fail, retrying"
	ended := working("ended")
	ended.Status, ended.Standing, ended.EndedAt = taskmodel.Completed, taskmodel.Stale, ended.LastHeardAt
	write(t, a, entry(working("heard")), entry(lost), entry(ended))
	write(t, b, entry(working("own")))

	r := restore(t, b)
	for _, x := range r.Tasks {
		if want := map[bool]taskmodel.Standing{false: taskmodel.Restored, true: taskmodel.Live}[x.ID == "ended"]; x.Standing != want {
			t.Errorf("restored %s: %s", x.ID, x.Standing)
		}
	}
	want := map[taskmodel.Key]Standing{key("heard"): {taskmodel.Live, ""}, key("lost"): {taskmodel.Stale, "polls fail, retrying"}}
	if !maps.Equal(r.Beside, want) {
		t.Errorf("beside: %+v", r.Beside)
	}
	standings := func() map[string]taskmodel.Standing {
		ch, err := b.Changes(ctx, target, 0)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]taskmodel.Standing{}
		for _, x := range ch.Tasks {
			out[x.ID] = x.Standing
		}
		return out
	}
	if got := standings(); !maps.Equal(got, map[string]taskmodel.Standing{"heard": taskmodel.Live, "lost": taskmodel.Stale, "ended": taskmodel.Live}) {
		t.Errorf("its writer runs: %v", got)
	}
	died(t, b, a.me)
	write(t, b, entry(working("another"))) // so that there is something to look for
	if got := standings(); !maps.Equal(got, map[string]taskmodel.Standing{"heard": taskmodel.Restored, "lost": taskmodel.Restored, "ended": taskmodel.Live}) {
		t.Errorf("its writer is no more: %v", got)
	}
	if r := restore(t, b); r.Beside != nil {
		t.Errorf("beside one that is no more: %+v", r.Beside)
	}
}
