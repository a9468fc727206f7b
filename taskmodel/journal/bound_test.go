package journal

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// bigResult is a result of n bytes, and a task that ended with it.
func bigResult(id string, n int) Entry {
	t := ended(id, taskmodel.Completed, 2)
	t.Raw = json.RawMessage(`{"taskId":"` + id + `"}`)
	return Entry{Target: target, Server: "ci", Task: &t, Outcome: &taskmodel.Outcome{Result: json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`)}}
}

// While the disk takes nothing, what waits for it does not grow in bytes: of
// what can be had again it keeps the newest, all else stays, nobody waits, and
// nothing that callers hold is changed.
func TestQueueIsBoundedInBytes(t *testing.T) {
	const limit = 4 << 20
	w := &writer{j: &Journal{opts: Options{QueueBound: 1 << 20, QueueBytes: limit}}, bound: 1 << 20, most: limit, wake: make(chan struct{}, 1)}
	gaveUp := &item{act: func(*tx) error { return nil }, done: make(chan error, 1)}
	gaveUp.begun.Store(true)
	_ = w.put(gaveUp)
	waited := &item{act: func(*tx) error { return nil }, done: make(chan error, 1)}
	_ = w.put(waited)
	q := entry(working("q"))
	q.Question = &taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "q"}, Schema: json.RawMessage(`{}`)}
	q.Answer = &taskmodel.Answer{Question: q.Question.ID, Content: json.RawMessage(`{"a":1}`)}
	_ = w.put(&item{entries: []Entry{q}})
	var given []Entry
	for i := range 100 {
		given = append(given, bigResult(fmt.Sprint("t", i), 1<<20))
		_ = w.put(&item{entries: given[i : i+1]})
		if w.bytes > limit {
			t.Fatalf("after %d results %d bytes wait", i+1, w.bytes)
		}
	}
	for i, e := range given {
		if len(e.Outcome.Result) != 1<<20 || e.Task.Raw == nil {
			t.Fatalf("the caller's entry %d was changed", i)
		}
	}
	if w.queue[0] != waited || w.queue[1].entries[0].Answer == nil || w.queue[1].entries[0].Question == nil {
		t.Error("an act that somebody waits for, a question or an answer is gone, or one that nobody waits for is not")
	}
	whole := 0
	for i, it := range w.queue[2:] {
		e := it.entries[0]
		switch o := e.Outcome; {
		case e.Task.ID != fmt.Sprint("t", i) || e.Task.Status != taskmodel.Completed || e.Task.Raw == nil:
			t.Fatalf("row %d is %+v", i, e.Task)
		case o.Result != nil:
			whole++
		case o.TooLarge != 1<<20 || !strings.Contains(o.Note, "Not kept: it has 1.0 MiB, and more than the 4.0 MiB that may wait for the disk") || !strings.Contains(o.Note, "mcptasks result ci/t") || whole > 0:
			t.Fatalf("row %d after %d whole ones: %+v", i, whole, o)
		}
	}
	if whole < 2 || len(w.queue) != 102 {
		t.Errorf("%d items, %d whole results", len(w.queue), whole)
	}

	// Snapshots' texts go when there is nothing else, and where all is small and
	// cannot be had again all of it stays.
	for i := range 40 {
		e := entry(working(fmt.Sprint("r", i)))
		e.Task.Raw = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
		e.Event = &taskmodel.Event{Kind: taskmodel.EventCreated, Detail: json.RawMessage(`{}`)}
		_ = w.put(&item{entries: []Entry{e}})
		if w.bytes > limit {
			t.Fatalf("after %d snapshots %d bytes wait", i+1, w.bytes)
		}
	}
	for i := range 5000 {
		e := entry(working(fmt.Sprint("n", i)))
		e.Answer = &taskmodel.Answer{Content: json.RawMessage(strings.Repeat("1", 1<<10))}
		_ = w.put(&item{entries: []Entry{e}})
	}
	answers, tasks, sum := 0, map[string]bool{}, int64(0)
	for _, it := range w.queue {
		for _, e := range it.entries {
			tasks[e.Task.ID] = true
			if e.Answer != nil {
				answers++
			}
		}
		sum += it.bytes
	}
	if answers != 5001 || len(tasks) != 5141 || sum != w.bytes {
		t.Errorf("%d answers, %d tasks, %d bytes reckoned as %d", answers, len(tasks), sum, w.bytes)
	}
}

// The same with a real file that another process has locked: when it is free
// again all is written, and a result that is not there says why.
func TestResultsThatTheDiskDidNotTake(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Options{QueueBytes: 1 << 20})
	write(t, j, entry(working("first")))
	ctx := context.Background()
	db, err := sql.Open("sqlite", dsn(filepath.Join(dir, FileName), "immediate", false))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lock, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	const n = 40
	for i := range n { // which comes to its end while the file is locked
		j.Queue(bigResult(fmt.Sprint("t", i), 100<<10))
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	// On a machine that is busy enough the lock has stood for a failure meanwhile.
	for deadline := time.Now().Add(time.Minute); j.Flush(ctx) != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("did not get well: %v", j.Err())
		}
	}
	whole := 0
	for i := range n {
		o, ok, err := j.Outcome(ctx, target, fmt.Sprint("t", i), taskmodel.Requestor)
		switch {
		case err != nil || !ok:
			t.Fatalf("%d: %v %v", i, ok, err)
		case bytes.HasPrefix(o.Result, []byte(`"xx`)):
			whole++
		case o.TooLarge != 100<<10 || !strings.Contains(o.Note, "may wait for the disk"):
			t.Errorf("%d: %+v", i, o)
		}
	}
	if whole == 0 || whole == n {
		t.Errorf("%d results of %d are whole", whole, n)
	}
	if got := len(restore(t, j).Tasks); got != n+1 {
		t.Errorf("%d tasks", got)
	}
}
