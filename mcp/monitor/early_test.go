package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// A question overtakes the answer to the call that makes its task: it is the
// task's as soon as that is known, with the tool that was called.
func TestAQuestionBeforeItsTask(t *testing.T) {
	for _, first := range []string{"the answer", "a notification"} {
		t.Run(first, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenCore)
				r := run(t, nil, []string{"ci"}, f)
				r.sleep(time.Second)
				f.hook(func() {
					f.start = func(context.Context, mcp.StartCall) (mcp.Started, error) {
						f.put("x", taskmodel.InputRequired)
						f.last().h.Asked(question("tag:7", "x"))
						time.Sleep(time.Second)
						if first == "a notification" {
							f.push("x")
							time.Sleep(time.Second)
						}
						return mcp.Started{TaskID: "x", Snapshot: snap("x", taskmodel.Working)}, nil
					}
				})
				if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
					t.Fatal(err)
				}
				if x := r.task("ci", "x"); len(x.Inputs) != 1 || x.Inputs[0].ID != "tag:7" {
					t.Errorf("asks %v", x.Inputs)
				}
				if q := r.question("tag:7"); q.Tool != "deploy" || !q.State.Open() {
					t.Errorf("the question is of %q and %s", q.Tool, q.State)
				}
				// It ends with its task.
				f.put("x", taskmodel.Cancelled)
				f.push("x")
				r.sleep(time.Second)
				if q := r.question("tag:7"); q.State != taskmodel.QuestionWithdrawn {
					t.Errorf("after the task's end it is %s", q.State)
				}
			})
		})
	}
}

// What was forgotten stays so in the next run: the server's listing and its
// notifications do not bring it back; starting or adding it does.
func TestForgottenStaysForgottenInTheNextRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		f.put("y", taskmodel.Working)
		j := openJournal(t, dir, "mcptasks")
		r := run(t, with(j), []string{"ci"}, f)
		r.sleep(2 * time.Second)
		if err := r.m.Forget(t.Context(), key("ci", "x"), false); err != nil {
			t.Fatal(err)
		}
		r.sleep(2 * time.Second)
		r.end()
		closeJournal(t, j)
		r = run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		r.sleep(2 * time.Minute)
		f.push("x")
		r.sleep(time.Second)
		if _, ok := r.board().Task(key("ci", "x")); ok {
			t.Error("it is back")
		}
		if _, ok := r.board().Task(key("ci", "y")); !ok {
			t.Error("y is not there")
		}
		if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		r.task("ci", "x")
	})
}

// A draft that is typed in a process that does not hold the server is kept by
// the holder, and what this one believes of the question is not written over
// what the holder knows.
func TestDraftBesideTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.kind = "stdio"
		asking(f, "")
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		if _, err := a.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
			t.Fatal(err)
		}
		f.put("t1", taskmodel.InputRequired)
		f.push("t1")
		a.sleep(time.Second)
		f.last().h.Asked(question("tag:7", "t1"))
		f.last().h.Asked(question("tag:8", "t1"))
		a.sleep(2 * time.Second)
		g := newFake(taskmodel.GenCore)
		g.kind = "stdio"
		jb := openJournal(t, dir, "mcptasks")
		b := run(t, with(jb), []string{"ci"}, g)
		b.sleep(2 * time.Second)
		b.m.SaveDraft(taskmodel.QuestionID{Server: "ci", ID: "tag:7"}, json.RawMessage(`{"a":"half"}`))
		b.sleep(3 * time.Second)
		if q := a.question("tag:7"); string(q.Draft) != `{"a":"half"}` {
			t.Errorf("the holder has %s", q.Draft)
		}
		// Withdrawn there in the moment in which it is typed at here.
		f.last().h.Withdrawn(taskmodel.QuestionID{Server: "ci", ID: "tag:8"}, "not needed any more")
		a.sleep(200 * time.Millisecond)
		b.m.SaveDraft(taskmodel.QuestionID{Server: "ci", ID: "tag:8"}, json.RawMessage(`{"a":"late"}`))
		b.sleep(5 * time.Second)
		for name, r := range map[string]*rig{"the holder": a, "the other": b} {
			if q := r.question("tag:8"); q.State != taskmodel.QuestionWithdrawn {
				t.Errorf("%s has it %s", name, q.State)
			}
		}
		if q, ok, err := jb.Question(t.Context(), "target:ci", "tag:8"); err != nil || !ok || q.State != taskmodel.QuestionWithdrawn {
			t.Errorf("the journal has it %s (%v, %v)", q.State, ok, err)
		}
	})
}

// What is forgotten does not pile up: when the server has let go of such a task
// too, so does the monitor.
func TestForgottenDoNotPileUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.Working)
		f.put("y", taskmodel.Working)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(2 * time.Second)
		for _, id := range []string{"x", "y"} {
			if err := r.m.Forget(t.Context(), key("ci", id), false); err != nil {
				t.Fatal(err)
			}
		}
		f.drop("x")
		kept := func() (n int) {
			if err := r.m.do(t.Context(), func() { n = len(r.m.byName["ci"].forgot) }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		r.sleep(relistEvery + 10*time.Second)
		if n := kept(); n != 2 {
			t.Errorf("after one listing %d are remembered", n)
		}
		r.sleep(5 * relistEvery)
		if n := kept(); n != 1 {
			t.Errorf("%d are remembered", n)
		}
		if n := r.board().Len(); n != 0 {
			t.Errorf("%d tasks are back", n)
		}
	})
}

// A server without lists never shows that it has let go of a task; there the
// time tells.
func TestForgottenDoNotPileUpWithoutLists(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenExtension)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(2 * time.Second)
		for i := range 5 {
			id := fmt.Sprint("t", i)
			f.put(id, taskmodel.Working)
			if _, err := r.m.Add(t.Context(), "ci", id); err != nil {
				t.Fatal(err)
			}
			if err := r.m.Forget(t.Context(), key("ci", id), false); err != nil {
				t.Fatal(err)
			}
			r.sleep(forgetFor / 2)
		}
		n := 0
		if err := r.m.do(t.Context(), func() { n = len(r.m.byName["ci"].forgot) }); err != nil {
			t.Fatal(err)
		}
		if n > 3 {
			t.Errorf("%d are remembered", n)
		}
		if n := r.board().Len(); n != 0 {
			t.Errorf("%d tasks are back", n)
		}
	})
}
