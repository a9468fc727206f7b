package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

func snap(id string, st taskmodel.Status) taskmodel.Snapshot {
	return taskmodel.Snapshot{ID: id, Status: st, PollInterval: time.Second}
}

// Listing that never ends: the same cursor again and again, A→B→A, and ever new
// cursors with the same tasks (2025-11-25 basic/utilities/tasks, "Listing Tasks").
func TestL1_ListingThatGoesInCircles(t *testing.T) {
	pages := map[string]struct {
		list  func(n int) func(context.Context, string) (mcp.Page, error)
		words string
	}{
		"the same cursor": {func(int) func(context.Context, string) (mcp.Page, error) {
			return func(_ context.Context, c string) (mcp.Page, error) {
				return mcp.Page{Tasks: []taskmodel.Snapshot{snap("a", taskmodel.Working)}, Next: "A"}, nil
			}
		}, "repeats its cursors"},
		"A B A": {func(int) func(context.Context, string) (mcp.Page, error) {
			return func(_ context.Context, c string) (mcp.Page, error) {
				next := map[string]string{"": "A", "A": "B", "B": "A"}[c]
				return mcp.Page{Tasks: []taskmodel.Snapshot{snap("a", taskmodel.Working), snap("t"+c, taskmodel.Working)}, Next: next}, nil
			}
		}, "repeats its cursors"},
		"ever new cursors": {func(int) func(context.Context, string) (mcp.Page, error) {
			n := 0
			return func(_ context.Context, c string) (mcp.Page, error) {
				n++
				return mcp.Page{Tasks: []taskmodel.Snapshot{snap("a", taskmodel.Working)}, Next: fmt.Sprint("c", n)}, nil
			}
		}, "no end"},
		"a cursor that cannot be sent back": {func(int) func(context.Context, string) (mcp.Page, error) {
			return func(context.Context, string) (mcp.Page, error) {
				return mcp.Page{Tasks: []taskmodel.Snapshot{snap("a", taskmodel.Working)}, Cut: "the server's cursor for the next page is no string: {}"}, nil
			}
		}, "is no string"},
	}
	for name, c := range pages {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenCore)
				f.list = c.list(0)
				f.get = func(_ context.Context, id string) (taskmodel.Snapshot, error) {
					return snap(id, taskmodel.Working), nil
				}
				r := run(t, nil, []string{"ci"}, f)
				r.sleep(5 * time.Second)
				s := r.server("ci")
				if !strings.Contains(s.ListIncomplete, c.words) {
					t.Errorf("ListIncomplete is %q, want it to say %q", s.ListIncomplete, c.words)
				}
				if n := f.total("list"); n > 60 {
					t.Errorf("%d pages were asked for", n)
				}
				seen := 0
				r.board().Keys(func(k taskmodel.Key) bool {
					if k.ID == "a" {
						seen++
					}
					return true
				})
				if seen != 1 {
					t.Errorf("task a shows %d times", seen)
				}
			})
		})
	}
}

// A cursor that the server refuses (-32602) is walked once more from page 1;
// what is known stays, and the row says that the list is incomplete.
func TestRefusedCursor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		walks := 0
		f.list = func(_ context.Context, c string) (mcp.Page, error) {
			if c != "" {
				return mcp.Page{}, fmt.Errorf("ci: %w", &taskmodel.RPCError{Code: -32602, Message: "Invalid cursor"})
			}
			walks++
			return mcp.Page{Tasks: []taskmodel.Snapshot{snap("a", taskmodel.Completed)}, Next: "2"}, nil
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(10 * time.Second)
		if walks != 2 {
			t.Errorf("page 1 was fetched %d times, want 2", walks)
		}
		if s := r.server("ci"); !strings.Contains(s.ListIncomplete, "refused") {
			t.Errorf("ListIncomplete is %q", s.ListIncomplete)
		}
		if r.board().Len() != 1 {
			t.Error("what was known is gone")
		}
	})
}

// Pages that overlap or skip: merged by id; a live task that one listing lacks
// stays, and is asked for.
func TestL2_ListingLacksALiveTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		for _, id := range []string{"a", "b", "c"} {
			f.put(id, taskmodel.Working)
		}
		lists := 0
		f.list = func(_ context.Context, c string) (mcp.Page, error) {
			lists++
			if lists == 1 {
				return mcp.Page{Tasks: []taskmodel.Snapshot{snap("a", taskmodel.Working), snap("b", taskmodel.Working), snap("c", taskmodel.Working)}}, nil
			}
			return mcp.Page{Tasks: []taskmodel.Snapshot{snap("a", taskmodel.Working), snap("b", taskmodel.Working), snap("b", taskmodel.Working)}}, nil
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(3 * time.Minute)
		if lists < 3 {
			t.Fatalf("listed %d times in three minutes", lists)
		}
		if n := r.board().Len(); n != 3 {
			t.Errorf("%d tasks show, want 3", n)
		}
		c := r.task("ci", "c")
		if c.Standing != taskmodel.Live || time.Since(c.LastHeardAt) > 3*time.Second {
			t.Errorf("the task that the listing lacks is %s, last heard %s ago", c.Standing, time.Since(c.LastHeardAt))
		}
	})
}

// Tasks of one and the same createdAt on pages that overlap, are empty or skip
// one: each shows once, and what a page skipped shows with the next listing.
func TestL2_PagesOfOneMoment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		at := time.Now()
		row := func(id string) taskmodel.Snapshot {
			s := snap(id, taskmodel.Completed)
			s.CreatedAt, s.LastUpdatedAt = at, at
			return s
		}
		pages := map[string]mcp.Page{
			"":  {Tasks: []taskmodel.Snapshot{row("a"), row("b"), row("a")}, Next: "2"},
			"2": {Tasks: []taskmodel.Snapshot{row("b"), row("c")}, Next: "3"},
			"3": {Next: "4"},
			"4": {Tasks: []taskmodel.Snapshot{row("e"), row("a")}},
		}
		f.list = func(_ context.Context, c string) (mcp.Page, error) { return pages[c], nil }
		r := run(t, nil, []string{"ci"}, f)
		shown := func() string {
			r.sleep(5 * time.Second)
			var ids []string
			r.board().Tasks(func(t *taskmodel.Task) bool { ids = append(ids, t.ID); return true })
			slices.Sort(ids)
			return strings.Join(ids, "")
		}
		if got := shown(); got != "abce" {
			t.Errorf("at first %s show", got)
		}
		f.hook(func() { pages["3"] = mcp.Page{Tasks: []taskmodel.Snapshot{row("d")}} }) // and another is lacking
		r.sleep(2 * time.Minute)
		if got := shown(); got != "abcde" {
			t.Errorf("then %s show", got)
		}
		if s := r.server("ci"); s.ListIncomplete != "" {
			t.Errorf("incomplete: %s", s.ListIncomplete)
		}
	})
}

// tasks/list is not there: known ids go on, an id can be added by hand, and the
// row says so.
func TestL3_CannotList(t *testing.T) {
	for name, refuse := range map[string]func(f *fakeServer){
		"-32601": func(f *fakeServer) {
			f.list = func(context.Context, string) (mcp.Page, error) {
				return mcp.Page{}, fmt.Errorf("ci: %w", errors.Join(mcp.ErrUnsupported, &taskmodel.RPCError{Code: -32601, Message: "Method not found"}))
			}
		},
		"not declared": func(f *fakeServer) { f.can.List, f.can.ListWhy = false, "the server declares no tasks.list" },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenCore)
				refuse(f)
				f.put("hand", taskmodel.Working)
				r := run(t, nil, []string{"ci"}, f)
				r.sleep(time.Second)
				s := r.server("ci")
				if s.State != taskmodel.ServerReady || s.Can.List || s.Can.ListWhy == "" || s.ListIncomplete != "" {
					t.Fatalf("row: state %s, can list %v (%q), incomplete %q", s.State, s.Can.List, s.Can.ListWhy, s.ListIncomplete)
				}
				task, err := r.m.Add(t.Context(), "ci", "hand")
				if err != nil || !task.Ours {
					t.Fatalf("Add: %+v %v", task, err)
				}
				f.put("hand", taskmodel.Completed)
				r.sleep(3 * time.Second)
				if got := r.task("ci", "hand").Status; got != taskmodel.Completed {
					t.Errorf("status %s", got)
				}
				if n := f.total("list"); n > 1 {
					t.Errorf("listed %d times", n)
				}
				if _, err := r.m.Add(t.Context(), "ci", "nope"); !errors.Is(err, mcp.ErrNotFound) {
					t.Errorf("adding an unknown id: %v", err)
				}
				if r.board().Len() != 1 {
					t.Error("the unknown id was added")
				}
			})
		})
	}
}

func TestL4_TwoServersOneID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := newFake(taskmodel.GenCore), newFake(taskmodel.GenCore)
		a.put("x", taskmodel.Working)
		b.put("x", taskmodel.Completed)
		r := run(t, nil, []string{"a", "b"}, a, b)
		r.sleep(time.Second)
		if r.task("a", "x").Status != taskmodel.Working || r.task("b", "x").Status != taskmodel.Completed {
			t.Error("two servers' tasks of one id are not two tasks")
		}
	})
}

// A forgotten task is not brought back by the next listing or push.
func TestForgottenStaysForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		if err := r.m.Forget(t.Context(), key("ci", "x"), false); err != nil {
			t.Fatal(err)
		}
		f.push("x")
		r.sleep(2 * time.Minute)
		if n := r.board().Len(); n != 0 {
			t.Errorf("%d tasks show", n)
		}
		if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		r.task("ci", "x")
	})
}

// One sweep of the list refreshes many due tasks for fewer requests than a
// tasks/get each; no task is ever more than two intervals behind (issue H 5).
func TestPollsAreCoalescedIntoListings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.perPage, f.latency = 100, 2*time.Millisecond
		for i := range 10_000 {
			f.put(fmt.Sprintf("t%05d", i), taskmodel.Working, func(s *taskmodel.Snapshot) { s.PollInterval = 5 * time.Second })
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(15 * time.Second)
		f.forgetCalls()
		const span = 60
		r.sleep(span * time.Second)
		n := f.total("list") + f.total("get")
		if perSecond := float64(n) / span; perSecond > 25 {
			t.Errorf("%.1f requests a second (%d lists, %d gets)", perSecond, f.total("list"), f.total("get"))
		}
		now := time.Now()
		var worst time.Duration
		r.board().Tasks(func(t *taskmodel.Task) bool {
			worst = max(worst, now.Sub(t.LastHeardAt))
			return true
		})
		if worst > 10*time.Second {
			t.Errorf("a task is %s behind", worst)
		}
	})
}

// A few tasks on a long list are asked for one by one.
func TestFewDueTasksArePolledAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		for i := range 2000 {
			f.put(fmt.Sprintf("d%05d", i), taskmodel.Completed)
		}
		for i := range 10 {
			f.put(fmt.Sprintf("w%d", i), taskmodel.Working)
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(5 * time.Second)
		f.forgetCalls()
		r.sleep(30 * time.Second)
		if n := f.total("list"); n > 0 {
			t.Errorf("%d pages listed for ten tasks", n)
		}
		if n := f.total("get"); n < 250 {
			t.Errorf("%d gets in 30 s for ten tasks at 1 s", n)
		}
	})
}
