package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// wants is error -32042 as a connection gives it.
func wants(pages ...mcp.URLElicitation) error {
	rpc := &taskmodel.RPCError{Code: -32042, Message: "This request requires more information."}
	return fmt.Errorf("ci: calling sign: %w", &mcp.URLElicitationError{Elicitations: pages, Err: rpc})
}

// A call that ends with -32042 puts its pages among the questions; consent
// sends nothing, the server's notice shows, and the call is made again only on
// request (2025-11-25 client/elicitation, "URL Elicitation Required Error").
func TestI10_PagesOfARefusedCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		one := mcp.URLElicitation{ID: "e1", URL: "https://a.example/?id=e1", Message: "Sign in"}
		two := mcp.URLElicitation{ID: "e2", URL: "https://b.example/", Message: "Then here"}
		answer := wants(one, two)
		calls := 0
		f.start = func(context.Context, mcp.StartCall) (mcp.Started, error) {
			calls++
			if answer != nil {
				return mcp.Started{}, answer
			}
			return mcp.Started{Outcome: taskmodel.Outcome{Result: json.RawMessage(`{"content":[]}`)}}, nil
		}
		answers := 0
		f.answer = func(context.Context, taskmodel.Answer) error { answers++; return nil }
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		call := StartRequest{Server: "ci", Tool: "sign", Args: json.RawMessage(`{"a":1}`), Plain: true}
		start := func() []taskmodel.QuestionID {
			t.Helper()
			_, err := r.m.Start(t.Context(), call)
			var pages *PagesError
			var wanted *mcp.URLElicitationError
			if !errors.As(err, &pages) || !errors.As(err, &wanted) {
				t.Fatalf("the call ended with %v", err)
			}
			return pages.Questions
		}
		q := func(id taskmodel.QuestionID) taskmodel.Question {
			t.Helper()
			q, ok := r.board().Question(id)
			if !ok {
				t.Fatalf("%v is not on the board", id)
			}
			return q
		}
		ids := start()
		if len(ids) != 2 || r.board().OpenQuestions() != 2 {
			t.Fatalf("questions %v", ids)
		}
		first := q(ids[0])
		if first.Kind != taskmodel.AskURL || first.URL != one.URL || first.Message != "Sign in" || first.Tool != "sign" || !first.Repeat.Plain || string(first.Repeat.Args) != `{"a":1}` {
			t.Errorf("the question is %+v", first)
		}
		agree := func(id taskmodel.QuestionID, what taskmodel.Action) error {
			return r.m.Answer(t.Context(), taskmodel.Answer{Question: id, Action: what})
		}
		if err := agree(ids[0], taskmodel.Accept); err != nil {
			t.Fatal(err)
		}
		if got := q(ids[0]); got.State != taskmodel.QuestionAnswered {
			t.Errorf("after consent it is %s", got.State)
		}
		// The connection may go: no server waits for this question.
		f.last().end(errors.New("gone"))
		r.sleep(time.Minute)
		if got := q(ids[1]); got.State != taskmodel.QuestionOpen {
			t.Errorf("with its connection it became %s: %s", got.State, got.Withdrawn)
		}
		f.last().h.ElicitationComplete("e1")
		if !q(ids[0]).Done {
			t.Error("the server's notice is not shown")
		}
		r.sleep(time.Hour)
		if calls != 1 || answers != 0 {
			t.Errorf("%d calls and %d answers went out by themselves", calls-1, answers)
		}
		// Made again, it still wants one of them: that one is open again.
		answer = wants(one)
		again := start()
		if len(again) != 1 || again[0] != ids[0] {
			t.Fatalf("the second time: %v", again)
		}
		if got := q(ids[0]); got.State != taskmodel.QuestionOpen || got.Round != 2 || got.Done {
			t.Errorf("wanted again it is %s, round %d, done %t", got.State, got.Round, got.Done)
		}
		if got := q(ids[1]); got.State != taskmodel.QuestionWithdrawn {
			t.Errorf("not wanted any more it is %s", got.State)
		}
		// And when the call goes through, all is over.
		answer = nil
		if _, err := r.m.Start(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if got := q(ids[0]); got.State != taskmodel.QuestionWithdrawn || !strings.Contains(got.Withdrawn, "made again") {
			t.Errorf("after the call it is %s: %s", got.State, got.Withdrawn)
		}
		if err := agree(ids[0], taskmodel.Accept); !errors.Is(err, ErrNoQuestion) {
			t.Errorf("consent to what is over: %v", err)
		}
		// Declined: the call is not made again, and another's page stays.
		answer = wants(one)
		id := start()[0]
		if err := agree(id, taskmodel.Decline); err != nil {
			t.Fatal(err)
		}
		if got := q(id); got.State != taskmodel.QuestionWithdrawn || answers != 0 {
			t.Errorf("declined it is %s, %d answers sent", got.State, answers)
		}
	})
}

// A task whose outcome is that error asks too: its outcome is what the call
// would have given (2025-11-25 tasks, "Result Retrieval").
func TestI10_PagesOfATasksOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.result = func(context.Context, string) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{Err: &taskmodel.RPCError{Code: -32042, Message: "visit",
				Data: json.RawMessage(`{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.example/","message":"Sign in"}]}`)}}, nil
		}
		f.start = func(context.Context, mcp.StartCall) (mcp.Started, error) {
			f.put("x", taskmodel.Working)
			s, err := f.look("x")
			return mcp.Started{TaskID: "x", Snapshot: s}, err
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		f.put("theirs", taskmodel.Working) // one that is not ours asks nothing of us
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "sign", Args: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		f.put("x", taskmodel.Failed)
		f.put("theirs", taskmodel.Failed)
		r.sleep(time.Minute)
		task := r.task("ci", "x")
		if len(task.Inputs) != 1 || r.board().OpenQuestions() != 1 {
			t.Fatalf("the task's questions are %v, %d are open", task.Inputs, r.board().OpenQuestions())
		}
		q, _ := r.board().Question(task.Inputs[0])
		if q.Repeat.Tool != "sign" || q.Repeat.Plain || q.Task.ID != "x" {
			t.Errorf("the question is %+v", q)
		}
		r.sleep(time.Hour)
		if got, _ := r.board().Question(q.ID); !got.State.Open() {
			t.Errorf("it became %s: %s", got.State, got.Withdrawn)
		}
	})
}
