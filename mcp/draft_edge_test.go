package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

func TestDPlainCall(t *testing.T) {
	// A call that is not to become a task carries no task metadata; given up,
	// it is taken back.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		done := s.along(`C> tools/call {"name":"b","arguments":{},"_meta":{"progressToken":"*","modelcontextprotocol.io/task":"-"}}` + "\n" + `S> {"result":{"content":[]}}`)
		st := <-startX(c, StartCall{Tool: "b", Plain: true})
		done()
		if st.err != nil || st.TaskID != "" || st.Outcome.Result == nil {
			t.Errorf("%+v", st)
		}
		ctx, stop := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := c.Tasks().Start(ctx, StartCall{Tool: "b", Plain: true})
			gone <- err
		}()
		call := s.next()
		stop()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		s.play(`C> notifications/cancelled {"requestId":` + string(call.id) + `}`)
	})
}

func TestDCreatedTaskWhoseStateIsNotTold(t *testing.T) {
	// No status is made up: the task is there, its state is not known.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		started := startX(c, StartCall{Tool: "b", TaskID: "T"})
		s.play("C> tasks/get\n" + `S> {"error":{"code":-32602,"message":"no"}}` + "\nC> tools/call\n" + createdD("T") + "C> tasks/get\n" + `S> {"error":{"code":-32603,"message":"busy"}}`)
		st := <-started
		if st.err != nil || st.TaskID != "T" || st.Snapshot.Status != "" || fmt.Sprint(st.Snapshot.Missing) != "[status]" {
			t.Errorf("%+v", st)
		}
	})
}

func TestDCallThatFailsAfterItBecameATask(t *testing.T) {
	// The error of the call is news about the task, whose own error counts.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectD(t, nil)
		call := startD(t, c, s, "T")
		s.send(`{"jsonrpc":"2.0","id":` + string(call.id) + `,"error":{"code":-32603,"message":"boom"}}`)
		s.play("C> tasks/get\n" + gotD("T", "failed", `,"error":"boom"`))
		synctest.Wait()
		if seen := e.seen(); len(seen) != 1 || seen[0].Outcome.Err == nil || seen[0].Outcome.Err.Message != "boom" {
			t.Errorf("heard %+v", seen)
		}
	})
}

func TestDManyCreatedAtOnce(t *testing.T) {
	// A flood of notifications makes no flood of requests; a result is not
	// lost in it.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectD(t, nil)
		call := startD(t, c, s, "T")
		for i := range 100 {
			s.play(createdD(fmt.Sprint("N", i)))
		}
		synctest.Wait()
		if n := len(s.all("tasks/get")) - 2; n != draftNews {
			t.Errorf("%d requests for 100 notifications", n)
		}
		s.send(`{"jsonrpc":"2.0","id":` + string(call.id) + `,"result":{"content":[]}}`)
		synctest.Wait()
		for range draftNews {
			m := s.next()
			s.send(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":{` + taskD(stringAt(m.params, "taskId"), "working", "") + `}}`)
		}
		s.play(`C> tasks/get {"taskId":"T"}` + "\n" + gotD("T", "completed", ""))
		synctest.Wait()
		for _, o := range e.seen() {
			if o.ID == "T" && o.Outcome.Result != nil {
				return
			}
		}
		t.Errorf("the result was lost: %+v", e.seen())
	})
}

func TestDResultThatIsGone(t *testing.T) {
	cases := []struct {
		code string
		is   error
	}{
		{`{"code":-32602,"message":"Task has expired"}`, ErrNotFound},
		{`{"code":-32601,"message":"Method not found"}`, ErrUnsupported},
		{`{"code":-32602,"message":"Cannot retrieve result: Task status is 'working', not 'completed'"}`, nil},
	}
	for _, tc := range cases {
		synctest.Test(t, func(t *testing.T) {
			c, s, _ := connectD(t, nil)
			done := s.along("C> tasks/get\n" + gotD("T", "completed", "") + "C> tasks/result\nS> {\"error\":" + tc.code + "}")
			_, err := c.Tasks().Result(t.Context(), "T")
			done()
			if tc.is != nil && !errors.Is(err, tc.is) || errors.Is(err, ErrNotFound) != (tc.is == ErrNotFound) || codeOf(err) == 0 {
				t.Errorf("%s: %v", tc.code, err)
			}
		})
	}
}

func TestDWaitsEndWithTheConnection(t *testing.T) {
	for _, lost := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, s, _ := connectD(t, nil)
			result := make(chan error, 1)
			go func() { _, err := c.Tasks().Result(context.Background(), "T"); result <- err }()
			s.play("C> tasks/get\n" + gotD("T", "working", ""))
			started := startX(c, StartCall{Tool: "b"})
			s.play("C> tools/call")
			synctest.Wait()
			if lost {
				s.conn.Close(context.Background())
			} else if err := c.Close(context.Background(), true); err != nil {
				t.Error(err)
			}
			if err := <-result; !errors.Is(err, ErrClosed) {
				t.Errorf("result: %v", err)
			}
			// Whether there is a task is open, so its id is told.
			if st := <-started; !errors.Is(st.err, ErrClosed) || st.TaskID == "" {
				t.Errorf("start: %+v", st)
			}
		})
	}
}

func TestDNoAnswersAndNoWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectD(t, nil)
		if err := c.Tasks().Watch(t.Context(), []string{"T"}); err != nil {
			t.Error(err)
		}
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: taskmodel.QuestionID{Server: "srv", ID: "x"}, Action: taskmodel.Decline}); !errors.Is(err, ErrNoQuestion) {
			t.Errorf("err = %v", err)
		}
		time.Sleep(time.Hour)
		s.quiet()
	})
}

func TestDToolsThatDoNotRunAsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := strings.Replace(openD, `"tools":{}`, `"tools":{},"tasks":{"requests":{"tools":{"call":false}}}`, 1)
		open = strings.Replace(open, `S> {`, `S! {"jsonrpc":"2.0","id":$last,`, 1)
		c, s, _ := connectScript(t, taskmodel.GenDraft, "stdio", open, nil)
		if _, err := c.Tasks().Start(t.Context(), StartCall{Tool: "b"}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "do not run as tasks") {
			t.Errorf("err = %v", err)
		}
		s.quiet()
	})
}

// 4.6: the result that the call itself brings is not lost when the question
// after the task's state, which it causes, fails: it comes with the next state
// in which the task has completed, however that is heard.
func TestDResultOfTheCallOutlivesAFailedLook(t *testing.T) {
	for name, fails := range map[string]string{
		"an error":       `S> {"error":{"code":-32603,"message":"chaos"}}`,
		"not known":      `S> {"error":{"code":-32602,"message":"Task not found"}}`,
		"cannot be read": `S> {"result":7}`,
		"never answered": "",
	} {
		for _, way := range []string{"get", "list", "push", "result"} {
			t.Run(name+", then "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, s, e := connectD(t, nil)
					started := startX(c, StartCall{Tool: "b"})
					s.play("C> call: tools/call")
					call := s.all("tools/call")[0]
					id := stringAt(call.params, "_meta", metaDraftTask, "taskId")
					s.play(createdD(id) + "C> tasks/get\n" + gotD(id, "working", ""))
					<-started
					s.play(`S> call: {"result":{"content":[{"type":"text","text":"ok"}]}}` + "\nC> tasks/get\n" + fails)
					time.Sleep(draftFetchTime + time.Second)
					synctest.Wait()
					var out taskmodel.Outcome
					switch way {
					case "get":
						done := s.along("C> tasks/get\n" + gotD(id, "completed", ""))
						snap, err := c.Tasks().Get(t.Context(), id)
						done()
						if out = snap.Outcome; err != nil {
							t.Error(err)
						}
					case "list":
						done := s.along("C> tasks/list\nS> {\"result\":{\"tasks\":[{" + taskD(id, "completed", "") + "}]}}")
						page, err := c.Tasks().List(t.Context(), "", nil)
						done()
						if err != nil || len(page.Tasks) != 1 {
							t.Fatal(page, err)
						}
						out = page.Tasks[0].Outcome
					case "push":
						s.play("S> notifications/tasks/status {" + taskD(id, "completed", "") + "}")
						synctest.Wait()
						for _, o := range e.seen() {
							out = o.Outcome
						}
					case "result":
						done := s.along("C> tasks/get\n" + gotD(id, "completed", ""))
						var err error
						out, err = c.Tasks().Result(t.Context(), id)
						done()
						if err != nil {
							t.Error(err)
						}
					}
					if !strings.Contains(string(out.Result), `"ok"`) {
						t.Errorf("outcome %+v", out)
					}
				})
			})
		}
	}
}
