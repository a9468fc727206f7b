package monitor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// The whole way of a task that is started here: connect, start, poll, end,
// result, and Run's clean end.
func TestStartWatchFetch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, nil, []string{"ci"}, f)
		reply, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build", Args: []byte(`{"a":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		if reply.Key != key("ci", "t1") {
			t.Fatalf("started %v", reply.Key)
		}
		task := r.task("ci", "t1")
		if task.Tool != "build" || !task.Ours || task.Status != taskmodel.Working || string(task.Args) != `{"a":1}` {
			t.Fatalf("row is %+v", task)
		}
		r.sleep(3 * time.Second)
		f.put("t1", taskmodel.Completed)
		r.sleep(2 * time.Second)
		task = r.task("ci", "t1")
		if task.Status != taskmodel.Completed || task.Outcome.Result == nil {
			t.Fatalf("after its end: %+v", task)
		}
		if n := f.called("result", "t1"); n != 1 {
			t.Errorf("result fetched %d times, want 1", n)
		}
		n := f.called("get", "t1")
		r.sleep(time.Minute)
		if got := f.called("get", "t1"); got != n {
			t.Errorf("an ended task was polled %d more times", got-n)
		}
		o, err := r.m.Fetch(t.Context(), key("ci", "t1"))
		if err != nil || o.Result == nil {
			t.Errorf("Fetch: %v %v", o, err)
		}
		if n := f.called("result", "t1"); n != 1 {
			t.Errorf("the result that was kept was asked for again")
		}
	})
}

func TestListsAllAndPagesShowAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.latency = 10 * time.Millisecond
		for i := range 6000 {
			f.put(fmt.Sprintf("t%04d", i), taskmodel.Completed)
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(10 * time.Millisecond)
		if n := r.board().Len(); n < 50 || n >= 6000 {
			t.Errorf("after the first page %d tasks show", n)
		}
		if !r.server("ci").Listing {
			t.Error("the row does not say that pages are still being fetched")
		}
		r.sleep(5 * time.Second)
		if n := r.board().Len(); n != 6000 {
			t.Errorf("%d tasks show, want 6000", n)
		}
		if s := r.server("ci"); s.ListIncomplete != "" || s.Listing {
			t.Errorf("incomplete %q, listing %v", s.ListIncomplete, s.Listing)
		}
	})
}

func TestMethodsFailWithWordsWhenStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		r.end()
		if _, err := r.m.Start(context.Background(), StartRequest{Server: "ci", Tool: "x"}); err == nil {
			t.Error("Start works after the end")
		}
		if _, err := r.m.Poll(context.Background(), key("nope", "x")); err == nil {
			t.Error("Poll knows a server that is not configured")
		}
		if _, stop := r.m.Events(1); stop == nil {
			t.Error("Events after the end gives no stop")
		}
	})
}
