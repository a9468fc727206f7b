package monitor

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// one wraps a listing and tells the most requests that it had at a time.
func one(list func(context.Context, string) (mcp.Page, error)) (func(context.Context, string) (mcp.Page, error), *atomic.Int32) {
	var now, most atomic.Int32
	return func(ctx context.Context, cursor string) (mcp.Page, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		return list(ctx, cursor)
	}, &most
}

// The server does not wait while a page is read: a walk takes as long as its
// requests, and the first and the last page's reading. It still has one request
// at a time.
func TestPagesAreAskedForAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const pages, takes, reading = 20, 10 * time.Millisecond, 8 * time.Millisecond
		f := newFake(taskmodel.GenCore)
		var most *atomic.Int32
		f.list, most = one(slowPages(pages, 10, takes))
		f.reading = reading
		r := run(t, nil, []string{"ci"}, f)
		for r.m.Board().Len() < pages*10 {
			select {
			case <-r.m.Dirty():
			case <-time.After(time.Minute):
				t.Fatalf("%d tasks after a minute", r.m.Board().Len())
			}
		}
		if took := time.Since(f.at("list")); took != pages*takes+2*reading {
			t.Errorf("the walk took %s, its requests %s", took, pages*takes)
		}
		if n := most.Load(); n != 1 {
			t.Errorf("%d requests at a time", n)
		}
		if n := f.total("list"); n != pages {
			t.Errorf("%d requests for %d pages", n, pages)
		}
	})
}

// While the loop has no time a few pages wait, and no more are asked for.
func TestFewPagesWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const pages = 30
		f := newFake(taskmodel.GenCore)
		f.list = slowPages(pages, 10, 10*time.Millisecond)
		r := run(t, nil, []string{"ci"}, f)
		busy := make(chan struct{})
		r.sleep(45 * time.Millisecond)
		r.m.post(func() { <-busy })
		before := f.total("list")
		time.Sleep(time.Minute)
		if n := f.total("list") - before; n > pagesAhead+1 {
			t.Errorf("%d pages were asked for while the loop stood still", n)
		}
		close(busy)
		r.sleep(10 * time.Second)
		if n := r.board().Len(); n != pages*10 {
			t.Errorf("%d tasks, want %d", n, pages*10)
		}
		if n := f.total("list"); n != pages {
			t.Errorf("%d requests for %d pages", n, pages)
		}
	})
}

// A page that fails is asked for again, and the walk goes on after it.
func TestPageAheadFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const pages = 12
		f := newFake(taskmodel.GenCore)
		good := slowPages(pages, 10, 10*time.Millisecond)
		var failed atomic.Int32
		f.list = func(ctx context.Context, cursor string) (mcp.Page, error) {
			p, err := good(ctx, cursor)
			if cursor == "7" && failed.Add(1) == 1 {
				return mcp.Page{}, &taskmodel.RPCError{Code: -32603, Message: "Internal error"}
			}
			return p, err
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(20 * time.Second)
		if n := r.board().Len(); n != pages*10 || f.total("list") != pages+1 {
			t.Errorf("%d tasks by %d requests, want %d by %d", n, f.total("list"), pages*10, pages+1)
		}
	})
}

// A server that dies when it is asked for the second page has not been asked for
// it before the first one was there to be seen.
func TestFirstPageIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.reading = 50 * time.Millisecond
		good := slowPages(5, 10, time.Millisecond)
		monitor, shown := make(chan *Monitor, 1), make(chan int, 1)
		f.list = func(ctx context.Context, cursor string) (mcp.Page, error) {
			if cursor == "1" {
				m := <-monitor
				time.Sleep(time.Millisecond)
				shown <- m.Board().Len()
			}
			return good(ctx, cursor)
		}
		r := run(t, nil, []string{"ci"}, f)
		monitor <- r.m
		if n := <-shown; n != 10 {
			t.Errorf("%d tasks were shown when the second page was asked for, want 10", n)
		}
		r.sleep(time.Second)
	})
}
