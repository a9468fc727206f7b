package monitor

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// What a server has asked the process for that holds it is not over because
// another process looks at the same state: also where that finds out only on a
// connection of its own that the server is held (HTTP+SSE).
func TestReceiverTasksOfTheHolderGoOn(t *testing.T) {
	for _, kind := range []string{"http", "stdio", "sse"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				f := newFake(taskmodel.GenCore)
				f.kind = kind
				if kind == "http" {
					f.session = "s1"
				}
				ja := openJournal(t, dir, "mcptasks")
				a := run(t, with(ja), []string{"ci"}, f)
				a.sleep(3 * time.Second)
				k := taskmodel.Key{Server: "ci", ID: "r1", Role: taskmodel.Receiver}
				now := time.Now()
				h := f.last().h
				h.ReceiverTask(taskmodel.Observation{Snapshot: taskmodel.Snapshot{ID: "r1", Status: taskmodel.Working, CreatedAt: now, LastUpdatedAt: now,
					TTL: taskmodel.TTL{Known: true, Duration: time.Hour}}, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now},
					mcp.ReceiverInfo{Method: "elicitation/create", Params: json.RawMessage(`{"message":"?"}`), Event: "created"})
				q := question("rq", "")
				q.Task, q.Receiver = k, true
				h.Asked(q)
				a.sleep(3 * time.Second)

				g := newFake(taskmodel.GenCore)
				g.kind, g.session = kind, f.session
				b := run(t, with(openJournal(t, dir, "mcptasks watch")), []string{"ci"}, g)
				b.sleep(5 * time.Second)
				if s := b.server("ci"); s.HeldBy == "" {
					t.Fatalf("%s, held by nobody", s.State)
				}
				for name, r := range map[string]*rig{"the holder": a, "the other": b} {
					if x, ok := r.board().Task(k); !ok || x.Standing == taskmodel.Gone || r == a && x.Standing != taskmodel.Live || x.Status != taskmodel.Working {
						t.Errorf("%s shows the task as %s, %s %q", name, x.Status, x.Standing, x.Note)
					}
					if x, ok := r.board().Question(q.ID); !ok || !x.State.Open() {
						t.Errorf("%s shows the question as %s: %s", name, x.State, x.Withdrawn)
					}
				}
				// With the holder's end they are over, and whoever comes next says so.
				a.end()
				closeJournal(t, ja)
				b.sleep(8 * time.Second)
				synctest.Wait()
				if x, _ := b.board().Task(k); x.Standing != taskmodel.Gone {
					t.Errorf("after the holder's end: %s %q", x.Standing, x.Note)
				}
				if x, ok := b.board().Question(q.ID); ok && x.State.Open() {
					t.Errorf("after the holder's end the question is %s", x.State)
				}
			})
		})
	}
}
