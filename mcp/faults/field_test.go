package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// The faults seen in the field, each put before the real monitor over both
// transports. What the single parts do in them is tested where the parts are.

// both runs f over stdio's stand-in and over HTTP, each in a bubble.
func both(t *testing.T, o worldOptions, f func(t *testing.T, w *world)) {
	t.Helper()
	for _, carrier := range []string{"pipe", "http"} {
		t.Run(carrier, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := o
				o.carrier = carrier
				f(t, newWorld(t, o))
			})
		})
	}
}

func (w *world) add(script string) {
	w.t.Helper()
	if err := w.s.Add(script); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) server() taskmodel.Server {
	s, _ := w.m.Board().Server("ci")
	return s
}

// status waits for a task's status.
func (w *world) status(k taskmodel.Key, st taskmodel.Status) {
	w.t.Helper()
	w.must(fmt.Sprintf("%s is %s", k, st), 3*time.Minute, func(v *board.Version) bool { t, _ := v.Task(k); return t.Status == st })
}

// asks waits for a task's question.
func (w *world) asks(k taskmodel.Key) (q taskmodel.Question) {
	w.t.Helper()
	w.must("the question of "+k.String(), 3*time.Minute, func(v *board.Version) bool {
		var ok bool
		q, ok = question(v, k)
		return ok
	})
	return q
}

// sent counts the messages at a point that hold a text.
func (w *world) sent(point, method, text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, m := range w.all {
		if m.point == point && m.method == method && bytes.Contains(m.bytes, []byte(text)) {
			n++
		}
	}
	return n
}

const quiet = "notification:notifications/tasks/status* never" // no pushes

func TestL1_CursorsInACircle(t *testing.T) {
	for name, script := range map[string]string{
		"one for ever": `response:tasks/list* set result.nextCursor "SAME"; request:tasks/list* unset params.cursor`,
		"there and back": `response:tasks/list set result.nextCursor "A"; response:tasks/list#2 set result.nextCursor "B"; response:tasks/list#3 set result.nextCursor "A"
			request:tasks/list* unset params.cursor`,
	} {
		t.Run(name, func(t *testing.T) {
			both(t, worldOptions{tasks: 60, script: script}, func(t *testing.T, w *world) {
				w.sleep(5 * time.Second)
				if s := w.server(); !strings.Contains(s.ListIncomplete, "repeats its cursors") && w.count("request:tasks/list") > 1 {
					t.Errorf("said: %q", s.ListIncomplete)
				}
				if n := w.m.Board().Len(); n < 50 || n > 60 {
					t.Errorf("%d rows", n)
				}
				if n := w.count("request:tasks/list"); n > 6 {
					t.Errorf("%d pages in five seconds", n)
				}
			})
		})
	}
	t.Run("6,000 all show", func(t *testing.T) {
		both(t, worldOptions{tasks: 6000}, func(t *testing.T, w *world) {
			w.must("6,000 rows", time.Minute, func(v *board.Version) bool { return v.Len() == 6000 })
			if s := w.server(); s.ListIncomplete != "" {
				t.Errorf("incomplete: %s", s.ListIncomplete)
			}
		})
	})
}

func TestL2_ListingThatLacksALiveTask(t *testing.T) {
	both(t, worldOptions{tasks: 20, script: "response:tasks/list#2* set result.tasks []"}, func(t *testing.T, w *world) {
		w.sleep(3 * time.Minute)
		if n := w.m.Board().Len(); n != 20 {
			t.Errorf("%d rows after listings without any", n)
		}
		w.m.Board().Tasks(func(task *taskmodel.Task) bool {
			if task.Standing == taskmodel.Stale {
				t.Errorf("%s is %s: %s", task.ID, task.Standing, task.Note)
			}
			return true
		})
	})
}

func TestL2_PagesThatOverlapAndSkip(t *testing.T) {
	page := func(ids string) string {
		var rows []string
		for _, id := range strings.Split(ids, "") {
			rows = append(rows, fmt.Sprintf(`{"taskId":%q,"status":"completed","createdAt":"2000-01-01T00:00:00Z","lastUpdatedAt":"2000-01-01T00:00:00Z","ttl":null}`, id))
		}
		return "set result.tasks [" + strings.Join(rows, ",") + "]"
	}
	both(t, worldOptions{tasks: 30, pageSize: 10, script: "response:tasks/list " + page("abca") + "; response:tasks/list#2 " + page("bcd") + "; response:tasks/list#3 " + page("df")}, func(t *testing.T, w *world) {
		w.sleep(5 * time.Second)
		if s := w.server(); s.ListIncomplete != "" || w.m.Board().Len() != 5 {
			t.Errorf("%d rows, want a, b, c, d and f once each; %q", w.m.Board().Len(), s.ListIncomplete)
		}
	})
}

func TestL3_CannotList(t *testing.T) {
	for name, script := range map[string]string{
		"method not found": "response:tasks/list* error -32601 Method not found",
		"not declared":     "response:initialize* unset result.capabilities.tasks.list",
	} {
		t.Run(name, func(t *testing.T) {
			both(t, worldOptions{script: script}, func(t *testing.T, w *world) {
				k := w.start("reindex_search", `{"index":"a"}`)
				other := w.s.Demo().Handles()
				w.sleep(30 * time.Second)
				if s := w.server(); s.State != taskmodel.ServerReady || s.Error != "" || s.Can.List || !strings.Contains(s.Can.ListWhy, "list") {
					t.Errorf("row: %s %q, can list %v %q", s.State, s.Error, s.Can.List, s.Can.ListWhy)
				}
				if task := w.task(k); task.Polls < 3 || task.Standing != taskmodel.Live {
					t.Errorf("the known task: %d polls, %s", task.Polls, task.Standing)
				}
				ctx, stop := w.ctx()
				defer stop()
				if _, err := w.m.Add(ctx, "ci", other[0].ID); err != nil {
					t.Errorf("added by hand: %v", err)
				}
			})
		})
	}
}

func TestS1_FailedTaskShowsItsOwnError(t *testing.T) {
	both(t, worldOptions{}, func(t *testing.T, w *world) {
		k := w.start("run_tests", `{"package":"./billing/..."}`)
		w.status(k, taskmodel.Failed)
		w.must("its result", time.Minute, func(v *board.Version) bool { t, _ := v.Task(k); return !t.Outcome.IsZero() })
		if out := string(w.task(k).Outcome.Result); !strings.Contains(out, `"isError":true`) || !strings.Contains(out, "TestInvoiceRounding") {
			t.Errorf("result: %s", out)
		}
	})
}

func TestS2_ThreeRoundsByOneResult(t *testing.T) {
	both(t, worldOptions{}, func(t *testing.T, w *world) {
		k := w.start("migrate_schema", `{"database":"orders"}`)
		answered := 0
		for ; !w.task(k).Terminal() && answered < 20; answered++ {
			q := w.asks(k)
			if q.Round != answered+1 && q.Round != answered { // two can be asked at once
				t.Errorf("question %d is shown as round %d", answered+1, q.Round)
			}
			gets := w.count("request:tasks/get")
			w.sleep(3 * time.Minute) // no time limit of ours
			if w.count("request:tasks/get") == gets {
				t.Error("it is not polled beside the open result")
			}
			ctx, stop := w.ctx()
			if err := w.m.Answer(ctx, taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: fill(t, q.Schema)}); err != nil {
				t.Errorf("question %d: %v", answered+1, err)
			}
			stop()
			w.wait(3*time.Minute, func(v *board.Version) bool {
				_, open := question(v, k)
				t, _ := v.Task(k)
				return open || t.Terminal()
			})
		}
		if answered < 3 {
			t.Errorf("%d rounds", answered)
		}
		w.must("the end", 20*time.Minute, func(v *board.Version) bool { t, _ := v.Task(k); return t.Terminal() && !t.Outcome.IsZero() })
		if n := w.count("request:tasks/result"); n != 1 {
			t.Errorf("tasks/result was opened %d times", n)
		}
	})
}

// fill answers the forms of migrate_schema.
func fill(t *testing.T, schema json.RawMessage) json.RawMessage {
	t.Helper()
	for field, content := range map[string]string{
		"owner": `{"owner":"Ada","email":"ada@example.com","workers":2}`, "isolation": `{"mode":"copy","isolation":"rr","tables":["orders"],"readOnly":true}`,
		"phrase": `{"phrase":"orders"}`, "maxMinutes": `{"start":"2026-12-01T22:00:00Z"}`,
	} {
		if bytes.Contains(schema, []byte(`"`+field+`"`)) {
			return json.RawMessage(content)
		}
	}
	t.Fatalf("an unknown form: %s", schema)
	return nil
}

func TestS3_CancelledWhileItsResultIsOpen(t *testing.T) {
	for name, script := range map[string]string{
		"an error of any code": "response:tasks/result* error -32000 cancelled",
		"an empty answer":      "response:tasks/result* set result {}; response:tasks/result* unset error",
		"none at all":          "response:tasks/result* never",
	} {
		t.Run(name, func(t *testing.T) {
			both(t, worldOptions{script: script}, func(t *testing.T, w *world) {
				k := w.start("deploy_release", `{"service":"api","version":"v4.12.0"}`)
				w.asks(k)
				ctx, stop := w.ctx()
				defer stop()
				if err := w.m.Cancel(ctx, k); err != nil {
					t.Errorf("Cancel: %v", err)
				}
				w.sleep(20 * time.Second)
				if task := w.task(k); task.Status != taskmodel.Cancelled || task.Standing != taskmodel.Live {
					t.Errorf("row: %s, %s %q", task.Status, task.Standing, task.Note)
				}
				if _, open := question(w.m.Board(), k); open {
					t.Error("the question is still open")
				}
				short, end := context.WithTimeout(context.Background(), 10*time.Second)
				defer end()
				if _, err := w.m.Fetch(short, k); err == nil || short.Err() != nil {
					t.Errorf("r: %v", err)
				}
			})
		})
	}
}

func TestS4_ResultThatIsNone(t *testing.T) {
	both(t, worldOptions{script: `response:tasks/result* set result {"weather":"fine"}`}, func(t *testing.T, w *world) {
		k := w.start("lint_file", `{"path":"a.go"}`)
		w.must("an outcome", 2*time.Minute, func(v *board.Version) bool { t, _ := v.Task(k); return !t.Outcome.IsZero() })
		if task := w.task(k); task.Status != taskmodel.Completed || !strings.Contains(string(task.Outcome.Result), `"weather"`) {
			t.Errorf("%s, %s", task.Status, task.Outcome.Result)
		}
	})
}

func TestS5_PollIntervals(t *testing.T) {
	for _, tc := range []struct {
		hint     string
		min, max int // polls in a minute
	}{
		{"-1", 20, 32}, {"0", 20, 32}, {"0.5", 60, 125}, {"2", 60, 125}, {`"5000"`, 10, 32}, {"null", 20, 32}, {"1e12", 0, 2}, {"30000", 1, 3},
	} {
		t.Run(tc.hint, func(t *testing.T) {
			both(t, worldOptions{script: "response:tasks/call set x 1; response* set result.pollInterval " + tc.hint + "; response:tools/call* set result.task.pollInterval " + tc.hint + "; response:tasks/list* error -32601"}, func(t *testing.T, w *world) {
				k := w.start("reindex_search", `{"index":"a"}`)
				w.sleep(2 * time.Second)
				before := w.count("request:tasks/get")
				w.sleep(time.Minute)
				if n := w.count("request:tasks/get") - before; n < tc.min || n > tc.max {
					t.Errorf("%d polls in a minute, want %d to %d", n, tc.min, tc.max)
				}
				if task := w.task(k); task.PollInterval < 0 {
					t.Errorf("shown as %v", task.PollInterval)
				}
			})
		})
	}
}

func TestS6_EachAtItsOwnPace(t *testing.T) {
	both(t, worldOptions{script: "response:tasks/list* error -32601;" + quiet}, func(t *testing.T, w *world) {
		fast := w.start("build", `{"target":"api"}`)          // every second
		slow := w.start("warm_cache", `{"region":"eu-west"}`) // every ten
		middle := w.start("reindex_search", `{"index":"a"}`)  // every five
		w.sleep(30 * time.Second)
		for _, x := range []struct {
			k        taskmodel.Key
			min, max int
		}{{fast, 25, 32}, {slow, 2, 5}, {middle, 5, 8}} {
			if n := w.sent("request", "tasks/get", x.k.ID); n < x.min || n > x.max {
				t.Errorf("%s: %d polls in 30 s, want %d to %d", w.task(x.k).Tool, n, x.min, x.max)
			}
		}
	})
}

func TestS7_SlowPollThenAnError(t *testing.T) {
	both(t, worldOptions{script: quiet + "; response:tasks/list* error -32601"}, func(t *testing.T, w *world) {
		k := w.start("reindex_search", `{"index":"a"}`)
		w.sleep(6 * time.Second)
		w.add("response:tasks/get late 90s")
		if w.carrier == "http" {
			w.add("post:tasks/get#2*4 status 502")
		} else {
			w.add("response:tasks/get#2*4 error -32603 bad gateway")
		}
		w.sleep(95 * time.Second)
		w.must("stale", time.Minute, func(v *board.Version) bool { t, _ := v.Task(k); return t.Standing == taskmodel.Stale })
		if task := w.task(k); task.Status != taskmodel.Working || !strings.Contains(task.Note, "retrying") {
			t.Errorf("row: %s, %s", task.Status, task.Note)
		}
		w.must("live again", 5*time.Minute, func(v *board.Version) bool { t, _ := v.Task(k); return t.Standing == taskmodel.Live && t.Note == "" })
	})
	t.Run("ttl", func(t *testing.T) {
		both(t, worldOptions{script: "response:tools/call unset result.task.ttl; response:tools/call#2 set result.task.ttl null; response:tasks/get* never; response:tasks/list* never;" + quiet}, func(t *testing.T, w *world) {
			absent, null := w.start("build", `{"target":"api"}`), w.start("build", `{"target":"web"}`)
			w.sleep(100 * time.Millisecond)
			if a, n := w.task(absent).TTL, w.task(null).TTL; a.Known || !n.Unlimited {
				t.Errorf("absent %+v, null %+v", a, n)
			}
		})
	})
}

func TestS8_GoneAtItsTTL(t *testing.T) {
	both(t, worldOptions{}, func(t *testing.T, w *world) {
		export := w.start("nightly_export", `{}`) // kept for 90 s, runs longer
		ctx, stop := w.ctx()
		defer stop()
		r, err := w.m.Start(ctx, monitor.StartRequest{Server: "ci", Tool: "deploy_release", Args: json.RawMessage(`{"service":"api","version":"v1.2.3"}`), TTL: 40 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		q := w.asks(r.Key)
		w.m.SaveDraft(q.ID, json.RawMessage(`{"ticket":"CHG-1"}`))
		w.sleep(3 * time.Minute)
		for _, k := range []taskmodel.Key{export, r.Key} {
			if task := w.task(k); task.Standing != taskmodel.Expired || task.Terminal() || !strings.Contains(task.Note, "outcome is unknown") {
				t.Errorf("%s: %s, %s %q", task.Tool, task.Status, task.Standing, task.Note)
			}
		}
		if now, _ := w.m.Board().Question(q.ID); now.State != taskmodel.QuestionWithdrawn || now.Withdrawn == "" || now.Draft == nil {
			t.Errorf("the form: %s %q, draft %s", now.State, now.Withdrawn, now.Draft)
		}
	})
}

func TestS9_RestartedServerKnowsNothing(t *testing.T) {
	both(t, worldOptions{}, func(t *testing.T, w *world) {
		k := w.start("reindex_search", `{"index":"a"}`)
		w.sleep(7 * time.Second)
		w.s.Restart(false)
		w.sleep(20 * time.Second)
		before := w.sent("request", "tasks/get", k.ID)
		w.sleep(10 * time.Minute)
		task := w.task(k)
		if task.Standing != taskmodel.Gone || task.Status != taskmodel.Working || w.carrier == "http" && !strings.Contains(task.Note, "not known to this session") {
			t.Errorf("%s, %s %q", task.Status, task.Standing, task.Note)
		}
		if n := w.sent("request", "tasks/get", k.ID) - before; n > 12 {
			t.Errorf("it is still asked for: %d times in ten minutes", n)
		}
	})
}
