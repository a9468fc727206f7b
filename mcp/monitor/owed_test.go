package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// However the fetch of an ended task's result fails, and however often within
// reason, the result is here in the end; while it is not, the task's row or the
// server's says why.
func TestResultIsNotGivenUp(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("ci: gave up: %w", context.Cause(ctx))
	}
	cases := []struct {
		name  string
		gen   taskmodel.Generation
		fails int
		fault func(ctx context.Context, f *fakeServer) (taskmodel.Outcome, error)
		said  bool // the task's row says why, meanwhile
	}{
		{"never answered", taskmodel.GenCore, 4, func(ctx context.Context, _ *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{}, hang(ctx)
		}, true},
		{"never answered (draft)", taskmodel.GenDraft, 4, func(ctx context.Context, _ *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{}, hang(ctx)
		}, true},
		{"an error of the request as error (draft)", taskmodel.GenDraft, 5, func(context.Context, *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{}, fmt.Errorf("ci: %w", &taskmodel.RPCError{Code: -32603, Message: "chaos"})
		}, true},
		{"an error in its place", taskmodel.GenCore, 5, func(context.Context, *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{Err: &taskmodel.RPCError{Code: -32603, Message: "chaos"}}, nil
		}, true},
		{"unreadable", taskmodel.GenExtension, 5, func(context.Context, *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{}, errors.New("the answer cannot be read")
		}, true},
		{"not known for a moment", taskmodel.GenCore, 2, func(context.Context, *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{}, errFakeNotFound
		}, true},
		{"HTTP 502", taskmodel.GenCore, 5, func(context.Context, *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{}, status(502, 0)
		}, true},
		{"the stream broke", taskmodel.GenCore, 5, func(context.Context, *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{}, fmt.Errorf("ci: %w", io.ErrUnexpectedEOF)
		}, true},
		{"the connection ends each time", taskmodel.GenCore, 12, func(_ context.Context, f *fakeServer) (taskmodel.Outcome, error) {
			f.last().end(errors.New("the connection broke"))
			return taskmodel.Outcome{}, fmt.Errorf("ci: %w", mcp.ErrClosed)
		}, false},
		{"the session is lost", taskmodel.GenCore, 5, func(context.Context, *fakeServer) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{}, fmt.Errorf("ci: %w", mcp.ErrSessionLost)
		}, false},
	}
	for _, early := range []bool{false, true} {
		for _, c := range cases {
			name := c.name
			if early {
				if c.gen != taskmodel.GenCore {
					continue
				}
				name += ", opened for a question before the end"
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := newFake(c.gen)
					f.start = func(context.Context, mcp.StartCall) (mcp.Started, error) {
						f.put("x", taskmodel.Working)
						return mcp.Started{TaskID: "x", Snapshot: snap("x", taskmodel.Working)}, nil
					}
					n := 0
					f.result = func(ctx context.Context, id string) (taskmodel.Outcome, error) {
						n++
						if s, _ := f.look(id); !s.Status.Terminal(c.gen) {
							return taskmodel.Outcome{}, hang(ctx) // and the end does not end it
						}
						if n <= c.fails {
							return c.fault(ctx, f)
						}
						return taskmodel.Outcome{Result: []byte(`{"content":[]}`)}, nil
					}
					r := run(t, nil, []string{"ci"}, f)
					r.sleep(time.Second)
					if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"}); err != nil {
						t.Fatal(err)
					}
					if early {
						f.put("x", taskmodel.InputRequired)
						f.push("x")
						r.sleep(time.Second)
						if n != 1 {
							t.Fatalf("tasks/result was opened %d times for the question", n)
						}
					}
					f.put("x", taskmodel.Completed)
					f.push("x")
					said := false
					for range 24 * 60 { // two hours
						r.sleep(5 * time.Second)
						x := r.task("ci", "x")
						if x.Outcome.Result != nil {
							if x.Note != "" {
								t.Errorf("the result is here, and the row says %q", x.Note)
							}
							if said != c.said {
								t.Errorf("the row said why: %v, want %v", said, c.said)
							}
							return
						}
						if strings.HasPrefix(x.Note, noResult) && strings.HasSuffix(x.Note, "tried again") {
							said = true
						}
					}
					t.Errorf("no result after two hours and %d tries; the row says %q", n, r.task("ci", "x").Note)
				})
			})
		}
	}
}

// What cannot be fetched says so in words, with what to do, and a person who
// asks gets what is there then.
func TestResultThatCannotBeFetchedSaysSo(t *testing.T) {
	for name, fault := range map[string]error{
		"does not know the task": errFakeNotFound,
		"unsupported":            fmt.Errorf("ci: the server knows no tasks/result: %w", mcp.ErrUnsupported),
		"broken for hours":       errors.New("the answer cannot be read"),
		"hangs for hours":        nil,
		"the connection ended":   fmt.Errorf("ci: %w", mcp.ErrClosed),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenCore)
				f.put("x", taskmodel.Working)
				f.result = func(ctx context.Context, _ string) (taskmodel.Outcome, error) {
					if fault == nil {
						<-ctx.Done()
						return taskmodel.Outcome{}, context.Cause(ctx)
					}
					if errors.Is(fault, mcp.ErrClosed) {
						f.last().end(errors.New("the connection broke"))
					}
					return taskmodel.Outcome{}, fault
				}
				r := run(t, nil, []string{"ci"}, f)
				r.sleep(time.Second)
				f.put("x", taskmodel.Failed)
				f.push("x")
				r.sleep(20 * time.Hour)
				x := r.task("ci", "x")
				if !strings.HasPrefix(x.Note, noResult) || !strings.HasSuffix(x.Note, "; asking for the result tries again") || strings.Contains(x.Note, ": ;") {
					t.Errorf("the row says %q", x.Note)
				}
				f.hook(func() { f.result = nil })
				if out, err := r.m.Fetch(t.Context(), key("ci", "x")); err != nil || out.Result == nil {
					t.Errorf("by hand: %+v, %v", out, err)
				}
				if x := r.task("ci", "x"); x.Outcome.Result == nil || x.Note != "" {
					t.Errorf("afterwards: %+v, note %q", x.Outcome, x.Note)
				}
			})
		})
	}
}

// A person who waits for the result of an ended task waits on when one request
// is never answered, and when he goes the request goes with him.
func TestPersonWaitsForAHungResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Completed)
		n, open := 0, 0
		f.result = func(ctx context.Context, _ string) (taskmodel.Outcome, error) {
			if n++; n == 3 {
				return taskmodel.Outcome{Result: []byte(`{"content":[]}`)}, nil
			}
			open++
			<-ctx.Done()
			open--
			return taskmodel.Outcome{}, context.Cause(ctx)
		}
		r := run(t, func(o *Options) { o.FetchResults = false }, []string{"ci"}, f)
		r.sleep(time.Second)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := r.m.Fetch(ctx, key("ci", "x"))
		stop()
		r.sleep(time.Second)
		if !errors.Is(err, context.DeadlineExceeded) || open != 0 {
			t.Errorf("Fetch: %v; %d requests are open after nobody waits", err, open)
		}
		out, err := r.m.Fetch(t.Context(), key("ci", "x"))
		if err != nil || out.Result == nil || n != 3 {
			t.Errorf("Fetch: %+v, %v after %d requests", out, err, n)
		}
	})
}

// A result that an earlier run did not get is fetched by the next, as long as
// the server may have it.
func TestResultOwedByAnEarlierRun(t *testing.T) {
	for name, c := range map[string]struct {
		ours  bool
		ttl   time.Duration
		later time.Duration
		want  int
	}{
		"a minute later":         {true, 0, time.Minute, 1},
		"not ours":               {false, 0, time.Minute, 0},
		"days later":             {true, 0, 72 * time.Hour, 0},
		"after its time to live": {true, 10 * time.Minute, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				f := newFake(taskmodel.GenCore)
				mark := func(s *taskmodel.Snapshot) {
					if c.ttl > 0 {
						s.TTL = taskmodel.TTL{Known: true, Duration: c.ttl}
					}
				}
				f.put("x", taskmodel.Working, mark)
				f.result = func(ctx context.Context, _ string) (taskmodel.Outcome, error) {
					<-ctx.Done()
					return taskmodel.Outcome{}, context.Cause(ctx)
				}
				j := openJournal(t, dir, "mcptasks")
				r := run(t, with(j), []string{"ci"}, f)
				r.sleep(time.Second)
				if c.ours {
					if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
						t.Fatal(err)
					}
				}
				f.put("x", taskmodel.Completed, mark)
				f.push("x")
				r.sleep(5 * time.Second)
				r.end() // killed while the result was on its way
				closeJournal(t, j)

				time.Sleep(c.later)
				f.hook(func() { f.result = nil })
				f.forgetCalls()
				r = run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
				r.sleep(time.Minute)
				if n := f.called("result", "x"); n != c.want {
					t.Errorf("fetched %d times, want %d", n, c.want)
				}
				if x := r.task("ci", "x"); x.Outcome.IsZero() == (c.want > 0) {
					t.Errorf("outcome %+v", x.Outcome)
				}
			})
		})
	}
}
