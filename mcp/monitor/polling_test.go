package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

func status(code int, after time.Duration) error {
	return fmt.Errorf("ci: polling: %w", &transport.StatusError{Status: code, Header: http.Header{}, RetryAfter: after})
}

// pollInterval in every spelling (read by package mcp into a Duration, 0 where
// it is absent or not valid): default, floor, long hints kept, no overflow.
func TestS5_PollIntervals(t *testing.T) {
	m := New(Options{Seed: 1, Servers: []ServerSpec{{Name: "ci", Dialer: newFake(taskmodel.GenCore)}}})
	s := m.servers[0]
	for _, c := range []struct {
		hint, want time.Duration
	}{
		{0, 2 * time.Second}, {-time.Millisecond, 2 * time.Second}, {time.Microsecond * 500, pollFloor}, {2 * time.Millisecond, pollFloor},
		{5 * time.Second, 5 * time.Second}, {24 * time.Hour, 24 * time.Hour},
		{math.MaxInt64 / 2, math.MaxInt64 / 2},
	} {
		if got := s.pace(taskmodel.Working, c.hint); got != c.want {
			t.Errorf("pace of hint %v is %v, want %v", c.hint, got, c.want)
		}
		w := &watch{interval: s.pace(taskmodel.Working, c.hint)}
		if at := s.next(w, time.Now()); !at.After(time.Now()) {
			t.Errorf("hint %v: the next poll is in the past, %v", c.hint, at)
		}
	}
}

// Each task at its own pace.
func TestS6_EachAtItsOwnPace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.can.List = false
		pace := func(d time.Duration) func(*taskmodel.Snapshot) {
			return func(s *taskmodel.Snapshot) { s.PollInterval = d }
		}
		f.put("fast", taskmodel.Working, pace(500*time.Millisecond))
		f.put("slow", taskmodel.Working, pace(30*time.Second))
		r := run(t, nil, []string{"ci"}, f)
		for _, id := range []string{"fast", "slow"} {
			if _, err := r.m.Add(t.Context(), "ci", id); err != nil {
				t.Fatal(err)
			}
		}
		f.forgetCalls()
		r.sleep(2 * time.Minute)
		if n := f.called("get", "slow"); n < 3 || n > 4 {
			t.Errorf("slow was polled %d times in 2 minutes at 30 s", n)
		}
		if n := f.called("get", "fast"); n < 210 || n > 240 {
			t.Errorf("fast was polled %d times in 2 minutes at 500 ms", n)
		}
		// A changing hint counts from the next answer on.
		f.put("slow", taskmodel.Working, pace(time.Second))
		r.sleep(35 * time.Second)
		f.forgetCalls()
		r.sleep(10 * time.Second)
		if n := f.called("get", "slow"); n < 8 {
			t.Errorf("after its hint changed to 1 s, slow was polled %d times in 10 s", n)
		}
	})
}

// The user's minimum, per monitor and per server.
func TestPollMinimum(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		r := run(t, func(o *Options) { o.Servers[0].PollMin = 10 * time.Second }, []string{"ci"}, f)
		r.sleep(time.Second)
		f.forgetCalls()
		r.sleep(40 * time.Second)
		if n := f.called("get", "x"); n > 4 {
			t.Errorf("polled %d times in 40 s with a minimum of 10 s", n)
		}
	})
}

// One poll that takes 90 s, then a 502: stale, retrying; the status stays.
func TestS7_SlowPollThen502(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		f.put("y", taskmodel.Working)
		f.can.List = false
		var bad atomic.Bool
		f.get = func(ctx context.Context, id string) (taskmodel.Snapshot, error) {
			if id == "x" && bad.Load() {
				if !pause(ctx, 90*time.Second) {
					return taskmodel.Snapshot{}, ctx.Err()
				}
				return taskmodel.Snapshot{}, status(502, 0)
			}
			return f.look(id)
		}
		r := run(t, nil, []string{"ci"}, f)
		for _, id := range []string{"x", "y"} {
			if _, err := r.m.Add(t.Context(), "ci", id); err != nil {
				t.Fatal(err)
			}
		}
		bad.Store(true)
		r.sleep(20 * time.Second)
		if y := r.task("ci", "y"); time.Since(y.LastHeardAt) > 3*time.Second {
			t.Errorf("the other task was last heard %s ago", time.Since(y.LastHeardAt))
		}
		for range 200 {
			r.sleep(time.Second)
			if r.task("ci", "x").Standing == taskmodel.Stale {
				break
			}
		}
		x := r.task("ci", "x")
		if x.Standing != taskmodel.Stale || x.Status != taskmodel.Working || !strings.Contains(x.Note, "retrying") {
			t.Fatalf("x is %s, %s, %q", x.Status, x.Standing, x.Note)
		}
		bad.Store(false)
		r.sleep(20 * time.Second)
		if x := r.task("ci", "x"); x.Standing != taskmodel.Live || x.Note != "" {
			t.Errorf("x is %s (%q) after the server is well again", x.Standing, x.Note)
		}
		if s := r.server("ci"); s.State != taskmodel.ServerReady {
			t.Errorf("the server is %s", s.State)
		}
	})
}

// "Not found": by its TTL expired, else gone; never failed; the last data stay.
// A passed TTL alone drops nothing.
func TestS8_NotFound(t *testing.T) {
	for _, c := range []struct {
		name string
		ttl  taskmodel.TTL
		want taskmodel.Standing
	}{
		{"ttl 0", taskmodel.TTL{Known: true}, taskmodel.Expired},
		{"ttl over", taskmodel.TTL{Known: true, Duration: 5 * time.Second}, taskmodel.Expired},
		{"ttl not over", taskmodel.TTL{Known: true, Duration: time.Hour}, taskmodel.Gone},
		{"unlimited", taskmodel.TTL{Known: true, Unlimited: true}, taskmodel.Gone},
		{"not said", taskmodel.TTL{}, taskmodel.Gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenCore)
				f.put("x", taskmodel.Working, func(s *taskmodel.Snapshot) { s.TTL, s.StatusMessage = c.ttl, "half way" })
				r := run(t, nil, []string{"ci"}, f)
				r.sleep(10 * time.Second)
				if x := r.task("ci", "x"); x.Standing != taskmodel.Live {
					t.Fatalf("before it is dropped x is %s", x.Standing)
				}
				f.drop("x")
				r.sleep(30 * time.Second)
				x := r.task("ci", "x")
				if x.Standing != c.want || x.Status != taskmodel.Working || x.StatusMessage != "half way" || !strings.Contains(x.Note, "outcome is unknown") {
					t.Errorf("x is %s, %s %q, note %q", x.Standing, x.Status, x.StatusMessage, x.Note)
				}
				if n := len(r.heard(taskmodel.EventGone)); n != 1 {
					t.Errorf("%d events say that it is gone", n)
				}
				f.forgetCalls()
				r.sleep(time.Hour)
				if n := f.called("get", "x"); n > goneTries {
					t.Errorf("a task that is gone was asked for %d times in an hour", n)
				}
				// A listing or push that names it brings it back.
				f.put("x", taskmodel.Working)
				f.push("x")
				r.sleep(time.Second)
				if x := r.task("ci", "x"); x.Standing != taskmodel.Live {
					t.Errorf("x is %s after it was heard of again", x.Standing)
				}
			})
		})
	}
}

// A server that needs a moment after its start to know its tasks again.
func TestS9_NotFoundForAMoment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.can.List = false
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		n := 0
		f.hook(func() {
			f.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
				if n++; n <= 2 {
					return taskmodel.Snapshot{}, errFakeNotFound
				}
				return f.look(id)
			}
		})
		r.sleep(20 * time.Second)
		if x := r.task("ci", "x"); x.Standing != taskmodel.Live {
			t.Errorf("x is %s (%s)", x.Standing, x.Note)
		}
		if len(r.heard(taskmodel.EventGone)) != 0 {
			t.Error("it was said to be gone")
		}
	})
}

// A status that no generation has is shown as it is and polled slowly.
func TestS11_UnknownStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", "pondering")
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		f.forgetCalls()
		r.sleep(2 * time.Minute)
		if got := r.task("ci", "x").Status; got != "pondering" {
			t.Errorf("status %q", got)
		}
		if n := f.called("get", "x"); n < 2 || n > 4 {
			t.Errorf("polled %d times in 2 minutes", n)
		}
	})
}

// Errors that are no "not found" fail no task (2026-07-28, -32021 and -32601).
func TestS14_NotNegotiatedFailsNoTask(t *testing.T) {
	for _, code := range []int{-32021, -32601, -32603, -32000} {
		bubble(t, func(t *testing.T) {
			f := newFake(taskmodel.GenExtension)
			f.put("x", taskmodel.Working)
			r := run(t, nil, []string{"ci"}, f)
			if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
				t.Fatal(err)
			}
			f.hook(func() {
				f.get = func(context.Context, string) (taskmodel.Snapshot, error) {
					err := error(&taskmodel.RPCError{Code: code, Message: "words of the server"})
					if code == -32021 || code == -32601 {
						err = errors.Join(mcp.ErrNotNegotiated, err)
					}
					return taskmodel.Snapshot{}, fmt.Errorf("ci: %w", err)
				}
			})
			r.sleep(time.Minute)
			x := r.task("ci", "x")
			if x.Status != taskmodel.Working || x.Standing != taskmodel.Stale || !strings.Contains(x.Note, "words of the server") {
				t.Errorf("%d: x is %s, %s, %q", code, x.Status, x.Standing, x.Note)
			}
			if s := r.server("ci"); s.State != taskmodel.ServerReady {
				t.Errorf("%d: the server is %s", code, s.State)
			}
		})
	}
}

// Retry-After is honoured for that server; others keep their pace.
func TestT7_RetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := newFake(taskmodel.GenCore), newFake(taskmodel.GenCore)
		a.put("x", taskmodel.Working)
		b.put("y", taskmodel.Working)
		r := run(t, nil, []string{"a", "b"}, a, b)
		r.sleep(3 * time.Second)
		once := false
		a.hook(func() {
			a.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
				if !once {
					once = true
					return taskmodel.Snapshot{}, status(429, 20*time.Second)
				}
				return a.look(id)
			}
		})
		r.sleep(2 * time.Second)
		if s := r.server("a"); s.PacedUntil.IsZero() {
			t.Error("the row does not say that the server asked for a pause")
		}
		a.forgetCalls()
		b.forgetCalls()
		r.sleep(15 * time.Second)
		if n := a.total("get") + a.total("list"); n != 0 {
			t.Errorf("%d requests within the pause", n)
		}
		if n := b.total("get"); n < 12 {
			t.Errorf("the other server was polled %d times in 15 s", n)
		}
		r.sleep(10 * time.Second)
		if a.total("get") == 0 {
			t.Error("no polls after the pause")
		}
		if s := r.server("a"); !s.PacedUntil.IsZero() || s.State != taskmodel.ServerReady {
			t.Errorf("after the pause: paced until %v, %s", s.PacedUntil, s.State)
		}
	})
}

// Pause and out-of-turn polls.
func TestPauseAndPoll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(2 * time.Second)
		r.m.Pause(true)
		r.sleep(3 * time.Second)
		f.forgetCalls()
		r.sleep(5 * time.Minute)
		if n := f.total("get") + f.total("list"); n != 0 {
			t.Errorf("%d requests while paused", n)
		}
		f.put("x", taskmodel.Working, func(s *taskmodel.Snapshot) { s.StatusMessage = "pushed" })
		f.push("x")
		if got := r.task("ci", "x").StatusMessage; got != "pushed" {
			t.Errorf("a push while paused: %q", got)
		}
		f.put("x", taskmodel.Working, func(s *taskmodel.Snapshot) { s.StatusMessage = "polled" })
		task, err := r.m.Poll(t.Context(), key("ci", "x"))
		if err != nil || task.StatusMessage != "polled" {
			t.Errorf("Poll while paused: %q %v", task.StatusMessage, err)
		}
		r.m.Pause(false)
		f.forgetCalls()
		r.sleep(5 * time.Second)
		if f.total("get") == 0 {
			t.Error("no polls after the pause")
		}
	})
}

// Never more than the cap in flight, and a hung server costs the others nothing.
func TestPollCap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := newFake(taskmodel.GenCore), newFake(taskmodel.GenCore)
		a.can.List = false
		for i := range 100 {
			a.put(fmt.Sprint("t", i), taskmodel.Working)
		}
		b.put("y", taskmodel.Working)
		r := run(t, nil, []string{"a", "b"}, a, b)
		for i := range 100 {
			if _, err := r.m.Add(t.Context(), "a", fmt.Sprint("t", i)); err != nil {
				t.Fatal(err)
			}
		}
		a.hook(func() { a.latency, a.most = time.Minute, 0 })
		r.sleep(30 * time.Second)
		if a.most > 8 {
			t.Errorf("%d polls in flight, the cap is 8", a.most)
		}
		b.forgetCalls()
		r.sleep(10 * time.Second)
		if n := b.total("get"); n < 8 {
			t.Errorf("the other server was polled %d times", n)
		}
	})
}

// What is selected and what waits for input goes first.
func TestFocusFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.can.List = false
		for i := range 200 {
			f.put(fmt.Sprintf("t%03d", i), taskmodel.Working, func(s *taskmodel.Snapshot) { s.PollInterval = 500 * time.Millisecond })
		}
		f.put("asks", taskmodel.InputRequired)
		r := run(t, nil, []string{"ci"}, f)
		for i := range 200 {
			if _, err := r.m.Add(t.Context(), "ci", fmt.Sprintf("t%03d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.m.Add(t.Context(), "ci", "asks"); err != nil {
			t.Fatal(err)
		}
		r.m.Focus([]taskmodel.Key{key("ci", "t199")})
		f.hook(func() { f.latency = 400 * time.Millisecond }) // 20 a second can be asked, 400 are due
		r.sleep(10 * time.Second)
		f.forgetCalls()
		r.sleep(20 * time.Second)
		if n := f.called("get", "t199"); n < 15 {
			t.Errorf("the task in focus was polled %d times in 20 s", n)
		}
		if n := f.called("get", "asks"); n < 10 {
			t.Errorf("the task that waits for input was polled %d times in 20 s", n)
		}
		if n := f.called("get", "t050"); n == 0 {
			t.Error("another task starves")
		}
	})
}

// Acknowledged pushes stretch polls: under one request a second for 10,000
// tasks, and none is behind what the server pushed (issue H 5).
func TestPushesStretchPolls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenExtension)
		r := run(t, nil, []string{"x"}, f)
		r.sleep(time.Second)
		now := time.Now()
		var ids []string
		for i := range 10_000 {
			id := fmt.Sprintf("t%05d", i)
			ids = append(ids, id)
			f.put(id, taskmodel.Working, func(s *taskmodel.Snapshot) { s.PollInterval = 5 * time.Second })
			s, _ := f.look(id)
			f.last().h.Snapshot(taskmodel.Observation{Snapshot: s, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now})
		}
		r.sleep(2 * time.Second)
		f.mu.Lock()
		watched := len(f.watched)
		f.mu.Unlock()
		if watched != 10_000 {
			t.Fatalf("pushes are wanted for %d tasks", watched)
		}
		f.last().h.Pushing(ids)
		r.sleep(time.Minute) // one more look at each: what happened before was not pushed
		if !r.task("x", "t00000").Pushed {
			t.Error("the row does not say that it is pushed")
		}
		f.forgetCalls()
		const span = 600
		r.sleep(span * time.Second)
		if n := f.total("get"); n >= span {
			t.Errorf("%d requests in %d s", n, span)
		}
		f.put("t05000", taskmodel.Completed)
		f.push("t05000")
		if got := r.task("x", "t05000").Status; got != taskmodel.Completed {
			t.Errorf("the push is not on the board: %s", got)
		}
		f.last().h.Pushing(nil)
		r.sleep(time.Second)
		f.forgetCalls()
		r.sleep(5 * time.Second)
		if n := f.total("get"); n < 5000 {
			t.Errorf("%d polls in 5 s after the pushes ended", n)
		}
	})
}
