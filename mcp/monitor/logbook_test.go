package monitor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// What servers log is bounded by lines of a task, by tasks, and by size in all:
// the newest stays, of the task that logs at present before that of others.
func TestLogBookIsBounded(t *testing.T) {
	key := func(i int) taskmodel.Key {
		return taskmodel.Key{Server: "ci", ID: fmt.Sprint(i), Role: taskmodel.Requestor}
	}
	line := func(n int) taskmodel.LogLine { return taskmodel.LogLine{Text: strings.Repeat("x", n)} }
	m := New(Options{})
	b := m.logs
	for i := range logTasks + 10 {
		b.put(key(i), line(10))
	}
	if len(b.byKey) != logTasks || len(b.order) != logTasks || m.Logs(key(9)) != nil || len(m.Logs(key(10))) != 1 {
		t.Errorf("%d tasks", len(b.byKey))
	}
	for range logPerTask + 5 {
		b.put(key(50), line(10))
	}
	if n := len(m.Logs(key(50))); n != logPerTask {
		t.Errorf("%d lines of one task", n)
	}
	b.most = 100_000
	b.put(key(10), line(90_000))
	if len(m.Logs(key(10))) != 2 || b.bytes > b.most || len(m.Logs(key(logTasks+9))) != 1 {
		t.Errorf("%d bytes of %d tasks, %d lines of its own", b.bytes, len(b.byKey), len(m.Logs(key(10))))
	}
	b.put(key(10), line(90_000)) // no room even without the others
	if n := len(m.Logs(key(10))); n != 1 || b.bytes != 90_000 || len(b.byKey) != 1 {
		t.Errorf("%d lines, %d bytes, %d tasks", n, b.bytes, len(b.byKey))
	}
	b.drop(key(10))
	if b.bytes != 0 || len(b.order) != 0 {
		t.Errorf("%d bytes and %d tasks are left", b.bytes, len(b.order))
	}
}

// A server that says very much in one message costs no more than the bound,
// whatever it says it in.
func TestLongWordsAreClipped(t *testing.T) {
	long := strings.Repeat("wörd ", 1<<20)
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working, func(s *taskmodel.Snapshot) { s.StatusMessage, s.ModelNote = long, long })
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		h := f.last().h
		h.Log(taskmodel.LogLine{At: time.Now(), Level: long, Logger: long, Text: long, Task: "x"})
		h.Progress("x", "", taskmodel.Progress{Value: 1, Message: long})
		r.sleep(time.Second)
		task := r.task("ci", "x")
		l := r.m.Logs(task.Key)[0]
		for what, s := range map[string]string{"status": task.StatusMessage, "note": task.ModelNote, "progress": task.Progress.Message,
			"log": l.Text, "level": l.Level, "logger": l.Logger, "the server's log": r.server("ci").Logs[0].Text} {
			if len(s) > longText+100 || !strings.HasSuffix(s, fmt.Sprintf(" … (%d bytes in all)", len(long))) {
				t.Errorf("%s: %d bytes, ends %q", what, len(s), s[max(0, len(s)-60):])
			}
		}
	})
}
