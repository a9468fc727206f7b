package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

func question(id, task string) taskmodel.Question {
	q := taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: id}, Key: id, Kind: taskmodel.AskForm,
		Method: "elicitation/create", Message: "which one?", Schema: json.RawMessage(`{"type":"object"}`), State: taskmodel.QuestionOpen}
	if task != "" {
		q.Task = key("ci", task)
	}
	return q
}

func accept(id string) taskmodel.Answer {
	return taskmodel.Answer{Question: taskmodel.QuestionID{Server: "ci", ID: id}, Action: taskmodel.Accept, Content: json.RawMessage(`{"a":"secret words"}`)}
}

func (r *rig) question(id string) taskmodel.Question {
	r.t.Helper()
	q, ok := r.board().Question(taskmodel.QuestionID{Server: "ci", ID: id})
	if !ok {
		r.t.Fatalf("question %s is not on the board", id)
	}
	return q
}

// The questions of 2025-11-25 come only while a tasks/result is open: exactly
// one on the transition, polling goes on beside it, several rounds on the one
// request, no time limit, opened again when its stream drops.
func TestS2_OneResultOpenOnTheTransition(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		drop := make(chan struct{})
		var once sync.Once
		f.result = func(ctx context.Context, id string) (taskmodel.Outcome, error) {
			select {
			case <-drop:
				return taskmodel.Outcome{}, fmt.Errorf("ci: %w", errors.New("unexpected EOF"))
			case <-ctx.Done():
				return taskmodel.Outcome{}, ctx.Err()
			}
		}
		r := run(t, nil, []string{"ci"}, f)
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
			t.Fatal(err)
		}
		r.sleep(5 * time.Second)
		if n := f.called("result", "t1"); n != 0 {
			t.Fatalf("tasks/result was opened %d times while the task worked", n)
		}
		f.put("t1", taskmodel.InputRequired)
		r.sleep(5 * time.Minute)
		if n := f.called("result", "t1"); n != 1 {
			t.Fatalf("tasks/result was opened %d times", n)
		}
		f.forgetCalls()
		r.sleep(10 * time.Second)
		if n := f.called("get", "t1"); n < 8 {
			t.Errorf("polled %d times in 10 s beside it", n)
		}
		for round := 1; round <= 3; round++ {
			id := fmt.Sprint("q", round)
			f.last().h.Asked(question(id, "t1"))
			if q := r.question(id); q.Round != round || q.Tool != "deploy" {
				t.Errorf("round %d: %+v", round, q)
			}
			if err := r.m.Answer(t.Context(), accept(id)); err != nil {
				t.Fatal(err)
			}
			f.put("t1", taskmodel.Working)
			r.sleep(3 * time.Second)
			f.put("t1", taskmodel.InputRequired)
			r.sleep(3 * time.Second)
		}
		if n := f.called("result", "t1"); n != 0 {
			t.Errorf("tasks/result was opened %d more times while one was open", n)
		}
		// Its stream drops.
		once.Do(func() { close(drop) })
		synctest.Wait()
		f.hook(func() {
			f.result = func(ctx context.Context, id string) (taskmodel.Outcome, error) {
				<-ctx.Done()
				return taskmodel.Outcome{}, ctx.Err()
			}
		})
		r.sleep(5 * time.Second)
		if n := f.called("result", "t1"); n < 1 || n > 3 {
			t.Errorf("opened again %d times after its stream had dropped", n)
		}
	})
}

// Whose question is it: never opened by itself for a task that was merely
// listed; when the person asks, it is.
func TestS2_ListedTasksOnlyOnAsk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.InputRequired)
		f.result = func(ctx context.Context, id string) (taskmodel.Outcome, error) {
			<-ctx.Done()
			return taskmodel.Outcome{}, ctx.Err()
		}
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(5 * time.Minute)
		if n := f.called("result", "x"); n != 0 {
			t.Fatalf("tasks/result was opened %d times for a task of somebody else", n)
		}
		if err := r.m.Ask(t.Context(), key("ci", "x")); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		if n := f.called("result", "x"); n != 1 {
			t.Errorf("opened %d times on ask", n)
		}
	})
}

// Cancelled while a tasks/result waits: an error of any code, an empty answer,
// or none at all.
func TestS3_CancelledWhileResultWaits(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, gone chan struct{}) (taskmodel.Outcome, error){
		"error": func(_ context.Context, gone chan struct{}) (taskmodel.Outcome, error) {
			<-gone
			return taskmodel.Outcome{Err: &taskmodel.RPCError{Code: -32800, Message: "cancelled"}}, nil
		},
		"empty": func(_ context.Context, gone chan struct{}) (taskmodel.Outcome, error) {
			<-gone
			return taskmodel.Outcome{Result: json.RawMessage(`{}`)}, nil
		},
		"never": func(ctx context.Context, _ chan struct{}) (taskmodel.Outcome, error) {
			<-ctx.Done()
			return taskmodel.Outcome{}, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenCore)
				gone := make(chan struct{})
				f.result = func(ctx context.Context, id string) (taskmodel.Outcome, error) { return end(ctx, gone) }
				r := run(t, nil, []string{"ci"}, f)
				if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "deploy"}); err != nil {
					t.Fatal(err)
				}
				f.put("t1", taskmodel.InputRequired)
				r.sleep(3 * time.Second)
				f.last().h.Asked(question("q", "t1"))
				synctest.Wait()
				if err := r.m.Cancel(t.Context(), key("ci", "t1")); err != nil {
					t.Fatal(err)
				}
				close(gone)
				r.sleep(5 * time.Second)
				if x := r.task("ci", "t1"); x.Status != taskmodel.Cancelled {
					t.Errorf("status %s", x.Status)
				}
				if q := r.question("q"); q.State != taskmodel.QuestionWithdrawn || !strings.Contains(q.Withdrawn, "cancelled") {
					t.Errorf("its question is %s (%q)", q.State, q.Withdrawn)
				}
			})
		})
	}
}

// Two tasks ask at once, a third question belongs to none: each is there with
// its server and task.
func TestI1_SeveralQuestions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("a", taskmodel.InputRequired)
		f.put("b", taskmodel.InputRequired)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		for id, task := range map[string]string{"1": "a", "2": "b", "3": ""} {
			f.last().h.Asked(question(id, task))
		}
		v := r.board()
		if v.OpenQuestions() != 3 {
			t.Fatalf("%d questions are open", v.OpenQuestions())
		}
		for id, task := range map[string]string{"1": "a", "2": "b", "3": ""} {
			q := r.question(id)
			if q.Task.ID != task || q.ID.Server != "ci" {
				t.Errorf("question %s is of %q", id, q.Task)
			}
		}
		if err := r.m.Answer(t.Context(), accept("2")); err != nil {
			t.Fatal(err)
		}
		if f.called("answer", "2") != 1 || f.called("answer", "1") != 0 || r.board().OpenQuestions() != 2 {
			t.Error("the answer went elsewhere")
		}
	})
}

// The same key stays for 20 polls after its answer: no second question, nothing
// sent again; by hand it can be.
func TestI2_AnsweredAndStillAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenExtension)
		f.put("x", taskmodel.InputRequired)
		r := run(t, nil, []string{"ci"}, f)
		if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		f.last().h.Asked(question("x/k", "x"))
		if err := r.m.Answer(t.Context(), accept("x/k")); err != nil {
			t.Fatal(err)
		}
		if err := r.m.Answer(t.Context(), accept("x/k")); err == nil {
			t.Error("answered twice at once")
		}
		for range 20 {
			f.last().h.Asked(question("x/k", "x"))
			r.sleep(time.Second)
		}
		if q := r.question("x/k"); q.State != taskmodel.QuestionAnswered {
			t.Errorf("state %s", q.State)
		}
		if n := len(r.heard(taskmodel.EventQuestion)); n != 1 {
			t.Errorf("%d question events", n)
		}
		if n := f.called("answer", "x/k"); n != 1 {
			t.Errorf("sent %d times", n)
		}
		if err := r.m.Answer(t.Context(), accept("x/k")); err != nil {
			t.Errorf("sending again by hand: %v", err)
		}
		if n := f.called("answer", "x/k"); n != 2 {
			t.Errorf("sent %d times", n)
		}
	})
}

// The server refuses the answer: open again, with its words.
func TestI4_Refused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenExtension)
		f.put("x", taskmodel.InputRequired)
		r := run(t, nil, []string{"ci"}, f)
		if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
			t.Fatal(err)
		}
		f.last().h.Asked(question("x/k", "x"))
		synctest.Wait()
		r.m.SaveDraft(taskmodel.QuestionID{Server: "ci", ID: "x/k"}, json.RawMessage(`{"a":"typed"}`))
		f.hook(func() {
			f.answer = func(context.Context, taskmodel.Answer) error {
				return fmt.Errorf("ci: %w", &taskmodel.RPCError{Code: -32602, Message: "a is not one of b, c"})
			}
		})
		if err := r.m.Answer(t.Context(), accept("x/k")); err == nil {
			t.Error("no error")
		}
		q := r.question("x/k")
		if !q.State.Open() || q.Refusal != "a is not one of b, c" || string(q.Draft) != `{"a":"typed"}` {
			t.Errorf("after the refusal: %+v", q)
		}
		f.hook(func() { f.answer = nil })
		if err := r.m.Answer(t.Context(), accept("x/k")); err != nil {
			t.Errorf("a second answer: %v", err)
		}
	})
}

// The connection breaks while the answer is on its way: sent, outcome unknown,
// and never sent again by the program.
func TestUnconfirmedAnswerIsNotSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, r := asks(t)
		f.hook(func() {
			f.answer = func(context.Context, taskmodel.Answer) error {
				return fmt.Errorf("ci: %w", mcp.ErrClosed)
			}
		})
		err := r.m.Answer(t.Context(), accept("q"))
		if !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("Answer: %v", err)
		}
		f.last().end(errors.New("the program ended"))
		f.last().h.Withdrawn(taskmodel.QuestionID{Server: "ci", ID: "q"}, "the connection ended")
		r.sleep(time.Minute)
		if q := r.question("q"); q.State != taskmodel.QuestionUnconfirmed {
			t.Errorf("state %s", q.State)
		}
		if n := f.called("answer", "q"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// The connection that the answer needs cannot be made: nothing went out, the
// question is open as before with its draft, and the answer can be sent again.
func TestAnswerThatCouldNotBeSentLeavesTheQuestionOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, r := asks(t)
		down := true
		f.hook(func() {
			f.answer = func(context.Context, taskmodel.Answer) error {
				if down {
					return fmt.Errorf("ci: %w", &transport.NotSentError{At: "ci.example", Err: &net.OpError{Op: "dial", Net: "tcp",
						Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, Err: errors.New("connection refused")}})
				}
				return nil
			}
		})
		if err := r.m.Answer(t.Context(), accept("q")); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "was not sent") {
			t.Errorf("Answer: %v", err)
		}
		synctest.Wait()
		if q := r.question("q"); !q.State.Open() || q.Refusal != taskmodel.NotSent+"127.0.0.1:9 cannot be reached, connection refused" {
			t.Errorf("state %s, %q", q.State, q.Refusal)
		}
		f.hook(func() { down = false })
		if err := r.m.Answer(t.Context(), accept("q")); err != nil {
			t.Errorf("once more: %v", err)
		}
		synctest.Wait()
		if q := r.question("q"); q.State != taskmodel.QuestionAnswered {
			t.Errorf("state %s", q.State)
		}
	})
}

// Nobody there: queued and counted, nothing answered, nothing sent at the end.
func TestI9_NothingIsAnsweredByItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.InputRequired)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		f.last().h.Asked(question("q", "x"))
		f.last().h.Asked(question("p", ""))
		r.sleep(24 * time.Hour)
		if r.board().OpenQuestions() != 2 {
			t.Error("a question went away by itself")
		}
		r.end()
		if n := f.total("answer") + f.total("cancel"); n != 0 {
			t.Errorf("%d messages were sent that nobody asked for", n)
		}
	})
}

// A question that comes again on a new connection keeps what was typed.
func TestDraftOutlivesTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.put("x", taskmodel.InputRequired)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		f.last().h.Asked(question("a:1", "x"))
		synctest.Wait()
		r.m.SaveDraft(taskmodel.QuestionID{Server: "ci", ID: "a:1"}, json.RawMessage(`{"a":"typed"}`))
		synctest.Wait()
		f.last().h.Withdrawn(taskmodel.QuestionID{Server: "ci", ID: "a:1"}, "the connection ended")
		f.last().end(errors.New("gone"))
		r.sleep(5 * time.Second)
		f.last().h.Asked(question("b:1", "x"))
		if q := r.question("b:1"); string(q.Draft) != `{"a":"typed"}` || q.Round != 2 {
			t.Errorf("draft %s, round %d", q.Draft, q.Round)
		}
	})
}

// A URL elicitation that is completed elsewhere says so (2025-11-25
// client/elicitation, notifications/elicitation/complete).
func TestI10_CompletedElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		q := question("u", "")
		q.Kind, q.URL, q.ElicitID = taskmodel.AskURL, "https://example.com", "e1"
		f.last().h.Asked(q)
		f.last().h.ElicitationComplete("e1")
		if !r.question("u").Done {
			t.Error("not marked as done")
		}
	})
}

// A task that the server asked us to run shows with its role, its question in
// the inbox; answered, it has ended (2025-11-25, receiver).
func TestReceiverTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		k := taskmodel.Key{Server: "ci", ID: "r1", Role: taskmodel.Receiver}
		obs := func(st taskmodel.Status) taskmodel.Observation {
			now := time.Now()
			return taskmodel.Observation{Snapshot: taskmodel.Snapshot{ID: "r1", Status: st, CreatedAt: now, LastUpdatedAt: now,
				TTL: taskmodel.TTL{Known: true, Duration: time.Hour}}, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now}
		}
		h := f.last().h
		h.ReceiverTask(obs(taskmodel.Working), mcp.ReceiverInfo{Method: "elicitation/create", Params: json.RawMessage(`{"message":"?"}`), Event: "created"})
		q := question("rq", "")
		q.Task, q.Receiver = k, true
		h.Asked(q)
		task, ok := r.board().Task(k)
		if !ok || task.Tool != "elicitation/create" || len(task.Inputs) != 1 {
			t.Fatalf("row %+v", task)
		}
		if _, err := r.m.Poll(t.Context(), k); err != nil {
			t.Errorf("Poll: %v", err)
		}
		if err := r.m.Answer(t.Context(), accept("rq")); err != nil {
			t.Fatal(err)
		}
		h.ReceiverTask(obs(taskmodel.Completed), mcp.ReceiverInfo{Method: "elicitation/create", Event: "ended"})
		h.ReceiverTask(obs(taskmodel.Completed), mcp.ReceiverInfo{Method: "elicitation/create", Event: "retrieved"})
		if task, _ := r.board().Task(k); task.Status != taskmodel.Completed {
			t.Errorf("status %s", task.Status)
		}
		r.sleep(time.Minute)
		if n := f.called("get", "r1"); n != 0 {
			t.Errorf("our own task was asked for at the server %d times", n)
		}
		h.ReceiverTask(obs(taskmodel.Completed), mcp.ReceiverInfo{Event: "expired"})
		if task, _ := r.board().Task(k); task.Standing != taskmodel.Expired || task.Status != taskmodel.Completed {
			t.Errorf("after its time: %s %s", task.Status, task.Standing)
		}
	})
}

// What goes into the history of an answer is which key, not what was said.
func TestAnswerEventHoldsKeysOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, r := asks(t)
		if err := r.m.Answer(t.Context(), accept("q")); err != nil {
			t.Fatal(err)
		}
		events := r.heard(taskmodel.EventAnswer)
		if len(events) != 1 {
			t.Fatalf("%d answer events", len(events))
		}
		d := string(events[0].Detail)
		if strings.Contains(d, "secret words") || !strings.Contains(d, `"fields":["a"]`) || !strings.Contains(d, `"key":"q"`) {
			t.Errorf("detail %s", d)
		}
	})
}

// A server that asks without end has so many questions open here and no more,
// and another's are not counted with them; one that is over makes room.
func TestQuestionsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, other := newFake(taskmodel.GenCore), newFake(taskmodel.GenCore)
		r := run(t, func(o *Options) { o.MaxQuestions = 3 }, []string{"ci", "lab"}, f, other)
		r.sleep(time.Second)
		for i := range 5 {
			f.last().h.Asked(question(fmt.Sprint("q", i), ""))
		}
		q := question("q0", "")
		q.ID.Server = "lab"
		other.last().h.Asked(q)
		r.sleep(time.Second)
		if n := r.board().Counts().Questions; n != 4 {
			t.Errorf("%d questions are open", n)
		}
		if got := r.server("ci").Warning; !strings.HasPrefix(got, "2 further questions are not shown") || r.server("lab").Warning != "" {
			t.Errorf("the rows say %q and %q", got, r.server("lab").Warning)
		}
		f.last().h.Asked(question("q0", "")) // it is open: nothing new
		f.last().h.Withdrawn(taskmodel.QuestionID{Server: "ci", ID: "q4"}, "over")
		r.sleep(time.Second)
		if got := r.server("ci").Warning; !strings.HasPrefix(got, "a further question is not shown") {
			t.Errorf("the row says %q", got)
		}
		f.last().h.Withdrawn(taskmodel.QuestionID{Server: "ci", ID: "q1"}, "over")
		f.last().h.Asked(question("q3", ""))
		r.sleep(time.Second)
		if got := r.server("ci").Warning; got != "" || r.question("q3").State != taskmodel.QuestionOpen {
			t.Errorf("the row says %q, the third is %s", got, r.question("q3").State)
		}
		f.last().h.Withdrawn(taskmodel.QuestionID{Server: "ci", ID: "q2"}, "over")
		r.sleep(time.Second)
		f.last().h.Asked(question("q9", ""))
		r.sleep(time.Second)
		if got := r.question("q9").State; got != taskmodel.QuestionOpen {
			t.Errorf("the next one is %s", got)
		}
	})
}

// Questions that stand open together are one round; what is asked after an answer
// is the next.
func TestRoundsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, r := asks(t)
		f.last().h.Asked(question("r", "x"))
		r.sleep(time.Second)
		if a, b := r.question("q").Round, r.question("r").Round; a != 1 || b != 1 {
			t.Errorf("asked together: rounds %d and %d", a, b)
		}
		for _, id := range []string{"q", "r"} {
			if err := r.m.Answer(t.Context(), accept(id)); err != nil {
				t.Fatal(err)
			}
		}
		f.last().h.Asked(question("s", "x"))
		r.sleep(time.Second)
		if got := r.question("s").Round; got != 2 {
			t.Errorf("asked after the answers: round %d", got)
		}
	})
}

// asks is a monitor whose one server asks the question q for its task x.
func asks(t *testing.T) (*fakeServer, *rig) {
	t.Helper()
	f := newFake(taskmodel.GenCore)
	f.put("x", taskmodel.InputRequired)
	r := run(t, nil, []string{"ci"}, f)
	r.sleep(time.Second)
	f.last().h.Asked(question("q", "x"))
	synctest.Wait()
	return f, r
}
