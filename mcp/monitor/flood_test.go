package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// 50,000 notifications a second: nothing lost, at most 20 versions a second, and
// the other server does not notice.
func TestFlood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := newFake(taskmodel.GenCore), newFake(taskmodel.GenCore)
		for i := range 100 {
			a.put(fmt.Sprint("t", i), taskmodel.Working)
		}
		b.put("y", taskmodel.Working)
		r := run(t, nil, []string{"a", "b"}, a, b)
		r.sleep(time.Second)
		h := a.last().h
		versions := 0
		stop := make(chan struct{})
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for {
				select {
				case <-r.m.Dirty():
					versions++
				case <-stop:
					return
				}
			}
		}()
		start := time.Now()
		for tick := range 100 { // one second
			for i := range 500 {
				s := snap(fmt.Sprint("t", i%100), taskmodel.Working)
				s.StatusMessage = fmt.Sprint(tick, ".", i)
				s.PollInterval = time.Hour // no poll says otherwise
				s.CreatedAt, s.LastUpdatedAt = start, time.Now()
				h.Snapshot(taskmodel.Observation{Snapshot: s, Source: taskmodel.FromPush, AskedAt: time.Now(), HeardAt: time.Now()})
			}
			time.Sleep(10 * time.Millisecond)
		}
		s := snap("t7", taskmodel.Completed)
		s.CreatedAt, s.LastUpdatedAt = start, time.Now()
		h.Snapshot(taskmodel.Observation{Snapshot: s, Source: taskmodel.FromPush, AskedAt: time.Now(), HeardAt: time.Now()})
		r.sleep(time.Second)
		close(stop)
		<-watched
		if versions > 45 {
			t.Errorf("%d versions in two seconds", versions)
		}
		if got := r.task("a", "t7").Status; got != taskmodel.Completed {
			t.Errorf("the end was lost: %s", got)
		}
		if got := r.task("a", "t8").StatusMessage; got != "99.408" {
			t.Errorf("the last words are %q", got)
		}
		if got := r.server("a").PushesPerMinute; got < 50_000 {
			t.Errorf("%d pushes a minute are shown", got)
		}
		if time.Since(r.task("b", "y").LastHeardAt) > 3*time.Second {
			t.Error("the other server's task was not polled")
		}
	})
}

// Events are numbered, in order, and none is lost to a slow reader.
func TestEventsLoseNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		for i := range 200 {
			f.put(fmt.Sprintf("t%03d", i), taskmodel.Working)
		}
		r := run(t, nil, []string{"ci"}, f)
		events, stop := r.m.Events(1)
		r.sleep(2 * time.Second)
		for i := range 200 {
			f.put(fmt.Sprintf("t%03d", i), taskmodel.Completed)
		}
		r.sleep(5 * time.Second)
		created, ended := 0, 0
		last := int64(0)
		for len(events) > 0 || ended < 200 {
			e := <-events
			if e.Seq <= last {
				t.Fatalf("event %d after %d", e.Seq, last)
			}
			last = e.Seq
			switch {
			case e.Kind == taskmodel.EventCreated:
				created++
			case e.Kind == taskmodel.EventStatus && e.Status == taskmodel.Completed:
				ended++
			}
			synctest.Wait()
		}
		if created != 200 || ended != 200 {
			t.Errorf("%d created, %d ended", created, ended)
		}
		stop()
		for range events {
		}
	})
}

// The wire ring is bounded by entries and bytes, and can be filtered.
func TestWireRing(t *testing.T) {
	m := New(Options{WireEntries: 10, WireBytes: 1000})
	for i := range 100 {
		m.wire.put(taskmodel.WireEntry{Server: fmt.Sprint("s", i%2), Task: fmt.Sprint("t", i%3), Bytes: json.RawMessage(`"x"`)})
	}
	all := m.Wire(WireFilter{})
	if len(all) != 10 || all[9].Seq != 100 || all[0].Seq != 91 {
		t.Errorf("%d entries, %d to %d", len(all), all[0].Seq, all[len(all)-1].Seq)
	}
	if from := m.WireFrom(); from != 91 {
		t.Errorf("the oldest kept is said to be %d", from)
	}
	if from := New(Options{}).WireFrom(); from != 1 {
		t.Errorf("the oldest of none is said to be %d", from)
	}
	if got := m.Wire(WireFilter{Server: "s1", After: 95}); len(got) != 3 {
		t.Errorf("%d entries of s1 after 95", len(got))
	}
	if got := m.Wire(WireFilter{Max: 2}); len(got) != 2 || got[1].Seq != 100 {
		t.Errorf("newest two: %v", got)
	}
	for range 10 {
		m.wire.put(taskmodel.WireEntry{Bytes: json.RawMessage(strings.Repeat("x", 400))})
	}
	if m.wire.bytes > 1000 {
		t.Errorf("%d bytes are kept, the bound is 1000", m.wire.bytes)
	}
}

// Logs of a task, the server's, stderr, progress.
func TestLogsAndProgress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		h := f.last().h
		for i := range 1000 {
			h.Log(taskmodel.LogLine{At: time.Now(), Level: "info", Text: fmt.Sprint(i), Task: "x"})
		}
		h.Progress("x", "", taskmodel.Progress{Value: 3, Total: 10, HasTotal: true, Message: "compiling"})
		x := r.task("ci", "x")
		if x.Progress == nil || x.Progress.Value != 3 || x.Progress.Message != "compiling" {
			t.Errorf("progress %+v", x.Progress)
		}
		if l := r.m.Logs(key("ci", "x")); len(l) != logPerTask || l[len(l)-1].Text != "999" {
			t.Errorf("%d lines", len(l))
		}
		if s := r.server("ci"); len(s.Logs) != logLines {
			t.Errorf("%d lines on the server's row", len(s.Logs))
		}
		if len(r.heard(taskmodel.EventProgress)) != 1 {
			t.Error("no progress event")
		}
		if err := r.m.SetLogLevel(t.Context(), "ci", "debug"); err != nil || r.server("ci").LogLevel != "debug" {
			t.Errorf("log level: %v, %q", err, r.server("ci").LogLevel)
		}
		r.m.SetRoots("ci", []string{"/srv/a b"})
		r.sleep(time.Second)
		if row := r.server("ci"); f.total("roots") != 1 || len(row.Roots) != 1 || row.Roots[0] != "file:///srv/a%20b" {
			t.Errorf("told %d times; the row has the roots %q", f.total("roots"), row.Roots)
		}
		if roots := f.dial(0).Roots(); len(roots) != 1 || roots[0].URI != "file:///srv/a%20b" {
			t.Errorf("roots %v", roots)
		}
	})
}

// A root is written as a shell has it, or as a URI.
func TestRootsAreFoldersOrURIs(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	for in, want := range map[string]string{
		"/srv/data": "file:///srv/data", "~": "file:///home/ann", "~/src/~x": "file:///home/ann/src/~x", "file:///opt/x%20y": "file:///opt/x%20y",
	} {
		if got := rootOf(in).URI; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// S13: a task was asked for and a plain result came; a plain call to a tool
// that runs only as a task is refused with what to do.
func TestS13_PlainResults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.start = func(_ context.Context, c mcp.StartCall) (mcp.Started, error) {
			if c.Plain {
				return mcp.Started{}, fmt.Errorf("ci: %w", mcp.ErrTaskRequired)
			}
			return mcp.Started{Outcome: taskmodel.Outcome{Result: json.RawMessage(`{"content":[]}`)}, Note: "the server answered at once"}, nil
		}
		r := run(t, nil, []string{"ci"}, f)
		reply, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "b"})
		if err != nil || reply.Key.ID != "" || reply.Outcome.Result == nil || reply.Note == "" {
			t.Errorf("%+v %v", reply, err)
		}
		_, err = r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "b", Plain: true})
		if !errors.Is(err, mcp.ErrTaskRequired) || !strings.HasSuffix(err.Error(), "start it as one") {
			t.Errorf("plain: %v", err)
		}
	})
}

// The caller of Start gives up; the task that comes of it shows all the same.
func TestStartOutlivesItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.latency = 5 * time.Second
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(10 * time.Second)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := r.m.Start(ctx, StartRequest{Server: "ci", Tool: "b"}); !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("Start: %v", err)
		}
		r.sleep(10 * time.Second)
		if x := r.task("ci", "t1"); x.Tool != "b" || !x.Ours {
			t.Errorf("row %+v", x)
		}
	})
}
