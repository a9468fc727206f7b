package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mcptasks/taskmodel"
)

// Tasks come in pieces, in the order of role and id, each once and with its
// result; together they are what Restore gives.
func TestRestoreInPieces(t *testing.T) {
	j := opened(t, t.TempDir(), Options{QueueBound: 1 << 30})
	const n = 3*piece + 7
	for i := range n {
		task := working(fmt.Sprintf("%06d", (i*7919)%n))
		if i%50 == 1 {
			task.Role = taskmodel.Receiver
		}
		j.Queue(entry(task))
		switch {
		case i%10 == 0:
			j.Queue(Entry{Target: target, Key: task.Key, Outcome: &taskmodel.Outcome{Result: json.RawMessage(`{"content":[]}`)}})
		case i%10 == 5:
			j.Queue(Entry{Target: target, Key: task.Key, Forget: true})
		}
	}
	if err := j.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	var pieces int
	var tasks []taskmodel.Task
	r, err := j.RestoreEach(context.Background(), target, func(some []taskmodel.Task) {
		pieces++
		tasks = append(tasks, some...)
	})
	if err != nil || r.Tasks != nil {
		t.Fatalf("%v, and %d tasks beside the pieces", err, len(r.Tasks))
	}
	if forgotten := (n + 4) / 10; len(r.Forgotten) != forgotten || len(tasks) != n-forgotten {
		t.Fatalf("%d tasks and %d forgotten of %d", len(tasks), len(r.Forgotten), n)
	}
	if pieces < 3 {
		t.Errorf("%d pieces", pieces)
	}
	if !slices.IsSortedFunc(tasks, func(a, b taskmodel.Task) int {
		if a.Role != b.Role {
			return roleNumber(a.Role) - roleNumber(b.Role)
		}
		return strings.Compare(a.ID, b.ID)
	}) {
		t.Error("the tasks are not in the order of role and id")
	}
	results := 0
	for _, task := range tasks {
		if slices.Contains(r.Forgotten, task.Key) {
			t.Errorf("%s is forgotten and is there", task.Key)
		}
		if task.Outcome.KeptHere {
			results++
		}
		if len(task.Transitions) != 1 || task.Standing != taskmodel.Restored {
			t.Fatalf("%+v", task)
		}
	}
	if results != (n+9)/10 {
		t.Errorf("%d results", results)
	}
	if whole := restore(t, j); !reflect.DeepEqual(whole.Tasks, tasks) || !reflect.DeepEqual(whole.Forgotten, r.Forgotten) {
		t.Error("Restore gives others than RestoreEach")
	}
}

// A row that cannot be read costs that task alone.
func TestRestorePassesOverABrokenRow(t *testing.T) {
	j := opened(t, t.TempDir(), Options{})
	write(t, j, entry(working("a")), entry(working("b")), entry(working("c")))
	db, err := sql.Open("sqlite", dsn(j.Path(), "immediate", false))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE tasks SET doc = x'03ffffffff' WHERE task = 'b'`); err != nil {
		t.Fatal(err)
	}
	r := restore(t, j)
	if len(r.Tasks) != 2 || r.Tasks[0].ID != "a" || r.Tasks[1].ID != "c" || r.Tasks[1].Status != taskmodel.Working {
		t.Errorf("%+v", r.Tasks)
	}
}

// When the walk is broken off, nothing is handed on any more once RestoreEach
// has returned.
func TestRestoreBrokenOff(t *testing.T) {
	j := opened(t, t.TempDir(), Options{QueueBound: 1 << 30})
	for i := range 20 * piece {
		j.Queue(entry(working(fmt.Sprintf("%06d", i))))
	}
	if err := j.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	calls, returned := 0, false
	_, err := j.RestoreEach(ctx, target, func([]taskmodel.Task) {
		if returned {
			t.Error("called after the end")
		}
		calls++
		stop()
	})
	returned = true
	if err == nil || calls == 0 || calls == 20 {
		t.Errorf("%v after %d pieces", err, calls)
	}
	if tasks := restore(t, j).Tasks; len(tasks) != 20*piece {
		t.Errorf("%d tasks afterwards", len(tasks))
	}
}
