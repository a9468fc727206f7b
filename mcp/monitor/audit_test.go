package monitor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// What the audit trail of a task of ours is asked about: what was called, with
// which arguments, and how often it was asked for.
func TestHistoryOfOurOwnCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, with(openJournal(t, t.TempDir(), "mcptasks")), []string{"ci"}, f)
		r.sleep(time.Second)
		rep, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build", Args: json.RawMessage(`{"target":"api"}`)})
		if err != nil {
			t.Fatal(err)
		}
		r.sleep(30 * time.Second)
		f.put(rep.Key.ID, taskmodel.Completed)
		r.sleep(30 * time.Second)
		events, err := r.m.History(t.Context(), rep.Key)
		if err != nil {
			t.Fatal(err)
		}
		made, ended := 0, 0
		for _, e := range events {
			var d struct {
				Tool      string
				Arguments json.RawMessage
				Polls     int
			}
			if err := json.Unmarshal(e.Detail, &d); err != nil {
				t.Fatalf("%s: %s", e.Kind, e.Detail)
			}
			switch {
			case e.Kind == taskmodel.EventCreated:
				if made++; d.Tool != "build" || string(d.Arguments) != `{"target":"api"}` {
					t.Errorf("created: %s", e.Detail)
				}
			case e.Kind == taskmodel.EventStatus && e.Status == taskmodel.Completed:
				if ended++; d.Polls == 0 {
					t.Errorf("completed: %s", e.Detail)
				}
			case e.Kind == taskmodel.EventResult && strings.Contains(string(e.Detail), "working"):
				t.Errorf("result: %s", e.Detail)
			}
		}
		if made != 1 || ended != 1 {
			t.Errorf("created %d times, completed %d times", made, ended)
		}
	})
}
