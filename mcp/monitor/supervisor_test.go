package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// A server that is not there: retrying with backoff that shows, alone; it comes
// back.
func TestReconnectWithBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := newFake(taskmodel.GenCore), newFake(taskmodel.GenCore)
		var down atomic.Bool
		down.Store(true)
		a.dialErr = func(int, mcp.Options) error {
			if down.Load() {
				return errors.New("a: connecting: connection refused")
			}
			return nil
		}
		a.put("x", taskmodel.Working)
		b.put("y", taskmodel.Working)
		r := run(t, nil, []string{"a", "b"}, a, b)
		r.sleep(500 * time.Millisecond)
		s := r.server("a")
		if s.State != taskmodel.ServerRetrying || s.Attempts != 1 || !s.RetryAt.After(time.Now()) || !strings.Contains(s.Error, "refused") {
			t.Fatalf("row: %s, %d attempts, at %v, %q", s.State, s.Attempts, s.RetryAt, s.Error)
		}
		r.sleep(10 * time.Minute)
		if n := a.dialCount(); n < 10 || n > 25 {
			t.Errorf("%d tries in ten minutes", n)
		}
		if r.server("b").State != taskmodel.ServerReady || time.Since(r.task("b", "y").LastHeardAt) > 3*time.Second {
			t.Error("the other server suffers")
		}
		down.Store(false)
		r.sleep(2 * time.Minute)
		if s := r.server("a"); s.State != taskmodel.ServerReady || s.Error != "" || s.Attempts != 0 {
			t.Errorf("row: %s, %q", s.State, s.Error)
		}
		r.task("a", "x")
	})
}

// The person does not wait for the backoff.
func TestConnectNowAndDisconnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		r.m.Disconnect("ci")
		r.sleep(time.Second)
		if s := r.server("ci"); s.State != taskmodel.ServerOff || s.Error == "" {
			t.Errorf("row: %s %q", s.State, s.Error)
		}
		if x := r.task("ci", "x"); x.Standing != taskmodel.Stale || x.Status != taskmodel.Working {
			t.Errorf("its task is %s, %s", x.Status, x.Standing)
		}
		f.forgetCalls()
		r.sleep(time.Hour)
		if n := f.total("get") + f.total("list"); n != 0 || f.dialCount() != 1 {
			t.Errorf("%d requests to a server that is stopped, %d dials", n, f.dialCount())
		}
		r.m.Connect("ci")
		r.sleep(3 * time.Second)
		if x := r.task("ci", "x"); x.Standing != taskmodel.Live {
			t.Errorf("after Connect its task is %s", x.Standing)
		}
		r.m.Connect("ci") // anew
		r.sleep(time.Second)
		if f.dialCount() != 3 || r.server("ci").State != taskmodel.ServerReady {
			t.Errorf("%d dials, %s", f.dialCount(), r.server("ci").State)
		}
	})
}

// Not started by itself, and disabled: shown with the reason. What a person
// asks of the former starts it.
func TestAutostartAndDisabled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := newFake(taskmodel.GenCore), newFake(taskmodel.GenCore)
		r := run(t, func(o *Options) {
			o.Servers[0].Autostart = false
			o.Servers[1].Disabled = "the variable TOKEN is not set"
		}, []string{"a", "b"}, a, b)
		r.sleep(time.Minute)
		if a.dialCount()+b.dialCount() != 0 {
			t.Fatal("something was started")
		}
		if s := r.server("a"); s.State != taskmodel.ServerOff || s.Error == "" {
			t.Errorf("a: %s %q", s.State, s.Error)
		}
		if s := r.server("b"); s.State != taskmodel.ServerFailed || !strings.Contains(s.Error, "TOKEN") {
			t.Errorf("b: %s %q", s.State, s.Error)
		}
		r.m.Connect("b")
		if _, err := r.m.Tools(t.Context(), "b"); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "TOKEN") {
			t.Errorf("Tools of a disabled server: %v", err)
		}
		if tools, err := r.m.Tools(t.Context(), "a"); err != nil || len(tools) != 1 || tools[0].Server != "a" {
			t.Errorf("Tools: %v %v", tools, err)
		}
		if b.dialCount() != 0 {
			t.Error("a disabled server was started")
		}
	})
}

// The program is not there: failed, not tried again by itself.
func TestMissingProgramIsFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.dialErr = func(int, mcp.Options) error {
			return fmt.Errorf("ci: connecting: %w", &exec.Error{Name: "npxx", Err: exec.ErrNotFound})
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Hour)
		if s := r.server("ci"); s.State != taskmodel.ServerFailed || f.dialCount() != 1 {
			t.Errorf("%s after %d tries", s.State, f.dialCount())
		}
		_, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "b"})
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "npxx") {
			t.Errorf("Start: %v", err)
		}
	})
}

// A program that exits at once, again and again, is not started in a storm.
func TestT4_CrashLoopBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.kind = "stdio"
		r := run(t, nil, []string{"ci"}, f)
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				f.mu.Lock()
				n := len(f.conns)
				f.mu.Unlock()
				if n > 0 {
					f.last().end(errors.New("ci: the program ended with exit code 3; the last it wrote to stderr: boom"))
				}
				select {
				case <-time.After(100 * time.Millisecond):
				case <-stop:
					return
				}
			}
		}()
		r.sleep(10 * time.Minute)
		close(stop)
		<-done
		if n := f.dialCount(); n > 25 {
			t.Errorf("started %d times in ten minutes", n)
		}
		if s := r.server("ci"); s.State != taskmodel.ServerRetrying || !strings.Contains(s.Error, "exit code 3") {
			t.Errorf("row: %s %q", s.State, s.Error)
		}
	})
}

// The server forgot the session: one new connection for all who wait, without
// the old id; reads are repeated, a tools/call never (2025-11-25
// basic/transports, "Session Management").
func TestT1_SessionLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.session = "s1"
		for i := range 20 {
			f.put(fmt.Sprint("t", i), taskmodel.Working)
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(3 * time.Second)
		lost := fmt.Errorf("ci: %w", mcp.ErrSessionLost)
		old := f.last()
		f.hook(func() {
			f.session = "s2"
			f.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
				if f.last() == old {
					return taskmodel.Snapshot{}, lost
				}
				return f.look(id)
			}
			f.start = func(_ context.Context, c mcp.StartCall) (mcp.Started, error) {
				if f.last() == old {
					return mcp.Started{}, lost
				}
				return mcp.Started{TaskID: "new", Snapshot: snap("new", taskmodel.Working)}, nil
			}
		})
		f.forgetCalls()
		type polled struct {
			task taskmodel.Task
			err  error
		}
		answers := make(chan polled, 5)
		for i := range 5 {
			go func() {
				task, err := r.m.Poll(t.Context(), key("ci", fmt.Sprint("t", i)))
				answers <- polled{task, err}
			}()
		}
		_, serr := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "b"})
		for range 5 {
			if p := <-answers; p.err != nil || p.task.Standing != taskmodel.Live {
				t.Errorf("a read was not repeated: %v", p.err)
			}
		}
		if !errors.Is(serr, mcp.ErrSessionLost) && serr != nil {
			t.Errorf("Start: %v", serr)
		}
		if n := f.called("start", "b"); n != 1 {
			t.Errorf("tools/call was sent %d times", n)
		}
		if n := f.dialCount(); n != 2 {
			t.Errorf("%d connections, want one new one for all", n)
		}
		if f.dial(1).Session != "" {
			t.Errorf("the lost session %q was offered again", f.dial(1).Session)
		}
		r.sleep(5 * time.Second)
		if s := r.server("ci"); s.State != taskmodel.ServerReady {
			t.Errorf("row: %s", s.State)
		}
	})
}

// After the session is lost its tasks are not known to the new one (S9).
func TestS9_NotKnownToThisSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.session = "s1"
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(3 * time.Second)
		old := f.last()
		f.hook(func() {
			f.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
				if f.last() == old {
					return taskmodel.Snapshot{}, fmt.Errorf("ci: %w", mcp.ErrSessionLost)
				}
				return f.look(id)
			}
		})
		f.drop("x")
		r.sleep(time.Minute)
		x := r.task("ci", "x")
		if x.Standing != taskmodel.Gone || !strings.Contains(x.Note, "not known to this session") || x.Status != taskmodel.Working {
			t.Errorf("x is %s, %s: %q", x.Status, x.Standing, x.Note)
		}
	})
}

// 401 in mid-session: "sign in", polls pause, no storm; they resume.
func TestT5_SignInNeeded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		for i := range 20 {
			f.put(fmt.Sprint("t", i), taskmodel.Working)
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(3 * time.Second)
		var out atomic.Bool
		out.Store(true)
		refused := fmt.Errorf("ci: %w", mcp.ErrAuth)
		f.hook(func() {
			f.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
				if out.Load() {
					return taskmodel.Snapshot{}, refused
				}
				return f.look(id)
			}
			f.list = func(_ context.Context, c string) (mcp.Page, error) {
				if out.Load() {
					return mcp.Page{}, refused
				}
				return f.page(c)
			}
			f.dialErr = func(int, mcp.Options) error {
				if out.Load() {
					return refused
				}
				return nil
			}
		})
		r.sleep(3 * time.Second)
		s := r.server("ci")
		if s.State != taskmodel.ServerAuth || !strings.Contains(s.Error, "mcptasks login ci") {
			t.Fatalf("row: %s %q", s.State, s.Error)
		}
		if _, err := r.m.Poll(t.Context(), key("ci", "t1")); !errors.Is(err, mcp.ErrAuth) {
			t.Errorf("Poll: %v", err)
		}
		f.forgetCalls()
		dials := f.dialCount()
		r.sleep(time.Hour)
		if n := f.total("get") + f.total("list"); n != 0 {
			t.Errorf("%d polls while a sign-in is wanted", n)
		}
		if n := f.dialCount() - dials; n > 15 {
			t.Errorf("%d tries in an hour", n)
		}
		out.Store(false)
		r.m.Connect("ci")
		r.sleep(5 * time.Second)
		if s := r.server("ci"); s.State != taskmodel.ServerReady {
			t.Errorf("row: %s %q", s.State, s.Error)
		}
		if x := r.task("ci", "t1"); x.Standing != taskmodel.Live {
			t.Errorf("its task is %s", x.Standing)
		}
	})
}

// The server fails as a whole: one poll at a time sees whether it is back, not
// each task's.
func TestFailingServerIsProbed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.can.List = false
		for i := range 50 {
			f.put(fmt.Sprint("t", i), taskmodel.Working)
		}
		r := run(t, nil, []string{"ci"}, f)
		for i := range 50 {
			if _, err := r.m.Add(t.Context(), "ci", fmt.Sprint("t", i)); err != nil {
				t.Fatal(err)
			}
		}
		r.sleep(3 * time.Second)
		var bad atomic.Bool
		bad.Store(true)
		f.hook(func() {
			f.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
				if bad.Load() {
					return taskmodel.Snapshot{}, fmt.Errorf("ci: polling: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
				}
				return f.look(id)
			}
		})
		r.sleep(5 * time.Second)
		s := r.server("ci")
		if s.State != taskmodel.ServerRetrying || s.RetryAt.IsZero() || s.Attempts == 0 {
			t.Errorf("row: %s, at %v, %d", s.State, s.RetryAt, s.Attempts)
		}
		f.forgetCalls()
		r.sleep(10 * time.Minute)
		if n := f.total("get"); n < 5 || n > 25 {
			t.Errorf("%d polls to a dead server in ten minutes", n)
		}
		bad.Store(false)
		r.sleep(2 * time.Minute)
		if s := r.server("ci"); s.State != taskmodel.ServerReady || s.Error != "" {
			t.Errorf("row: %s %q", s.State, s.Error)
		}
		n := 0
		r.board().Tasks(func(t *taskmodel.Task) bool {
			if t.Standing == taskmodel.Live {
				n++
			}
			return true
		})
		if n != 50 {
			t.Errorf("%d of 50 tasks are live again", n)
		}
	})
}

// No DELETE at quit while tasks of the session run (issue D 2).
func TestQuitKeepsTheSessionOfRunningTasks(t *testing.T) {
	for _, running := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			f := newFake(taskmodel.GenCore)
			f.session = "s1"
			st := taskmodel.Completed
			if running {
				st = taskmodel.Working
			}
			f.put("x", st)
			r := run(t, nil, []string{"ci"}, f)
			r.sleep(time.Second)
			r.end()
			if len(f.ended()) != 1 || f.ended()[0] == running {
				t.Errorf("running %v: closed with endSession %v", running, f.ended())
			}
		})
	}
}
