package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"mcptasks/taskmodel"
)

// form is one entry of inputRequests.
func formX(key, message string) string {
	return `"` + key + `":{"method":"elicitation/create","params":{"mode":"form","message":"` + message + `","requestedSchema":{"type":"object","properties":{"v":{"type":"string"}}}}}`
}

func asksX(id string, entries ...string) string {
	return gotX(id, "input_required", `,"inputRequests":{`+strings.Join(entries, ",")+`}`)
}

const ackX = `S> {"result":{"resultType":"complete"}}` + "\n"

func answerX(id, v string) taskmodel.Answer {
	return taskmodel.Answer{Question: taskmodel.QuestionID{Server: "srv", ID: id}, Action: taskmodel.Accept, Content: json.RawMessage(`{"v":"` + v + `"}`)}
}

func TestXQuestionsPartialAnswersAndRounds(t *testing.T) {
	// tasks.md, "Task Update Requests": several requests at once, partial
	// answers, each key once, keys remembered; I1: each names its task.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		get := func() taskmodel.Snapshot {
			t.Helper()
			snap, err := c.Tasks().Get(t.Context(), "T/1")
			if err != nil {
				t.Fatal(err)
			}
			return snap
		}
		done := s.along(`C> tasks/get
			` + asksX("T/1", formX("a/b", "first?"), formX("c", "second?")) + `
			C> tasks/get
			` + asksX("T/1", formX("a/b", "first?"), formX("c", "second?")))
		if snap := get(); len(snap.Questions) != 2 {
			t.Fatalf("questions %v", snap.Questions)
		}
		get()
		done()
		qs := e.questions()
		if len(qs) != 2 {
			t.Fatalf("asked %d times, want 2: the same keys again are no new questions", len(qs))
		}
		for i, want := range []struct{ key, message string }{{"a/b", "first?"}, {"c", "second?"}} {
			q := qs[i]
			if q.Key != want.key || q.Message != want.message || q.Round != i+1 || q.Kind != taskmodel.AskForm || len(q.Schema) == 0 ||
				q.Task != (taskmodel.Key{Server: "srv", ID: "T/1", Role: taskmodel.Requestor}) || q.ID.ID != taskQuestionID("T/1", want.key) {
				t.Errorf("question %d: %+v", i, q)
			}
		}

		// One of two is answered; the other stays open and the answered key
		// stands in the state for a while (I2).
		done = s.along(`C> tasks/update {"taskId":"T/1","inputResponses":{"a/b":{"action":"accept","content":{"v":"x"}},"c":"-"},"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
			` + ackX + `
			C> tasks/get
			` + asksX("T/1", formX("a/b", "first?"), formX("c", "second?")) + `
			C> tasks/get
			` + asksX("T/1", formX("c", "second?")) + `
			C> tasks/update {"taskId":"T/1","inputResponses":{"c":{"action":"decline","content":"-"}}}
			` + ackX + `
			C> tasks/get
			` + asksX("T/1", formX("d", "third?")) + `
			C> tasks/update {"inputResponses":{"d":{"action":"cancel","content":"-"}}}
			` + ackX + `
			C> tasks/get
			` + gotX("T/1", "working", ""))
		if err := c.Answer(t.Context(), answerX(qs[0].ID.ID, "x")); err != nil {
			t.Fatal(err)
		}
		if s.all("tasks/update")[0].out.Name != "T/1" {
			t.Errorf("Mcp-Name of tasks/update is %q", s.all("tasks/update")[0].out.Name)
		}
		if snap := get(); snap.Questions[0].State != taskmodel.QuestionAnswered || snap.Questions[1].State != taskmodel.QuestionOpen {
			t.Errorf("states %v, %v", snap.Questions[0].State, snap.Questions[1].State)
		}
		get()
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: qs[1].ID, Action: taskmodel.Decline, Content: json.RawMessage(`{"v":"never sent"}`)}); err != nil {
			t.Fatal(err)
		}
		get()
		qs = e.questions()
		if len(qs) != 3 || qs[2].Round != 3 {
			t.Fatalf("third round: %+v", qs)
		}
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: qs[2].ID, Action: taskmodel.Cancel}); err != nil {
			t.Fatal(err)
		}
		get()
		done()
		if w := e.closed(); len(w) != 0 {
			t.Errorf("answered questions were withdrawn: %v", w)
		}
		if len(e.questions()) != 3 {
			t.Errorf("asked %d times", len(e.questions()))
		}
	})
}

func TestI2_AnsweredKeyStaysForTwentyPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		poll := "C> tasks/get\n" + asksX("T", formX("k", "?"))
		done := s.along(poll + "C> tasks/update\n" + ackX + strings.Repeat(poll, 20) + "C> tasks/update\n" + ackX)
		c.Tasks().Get(t.Context(), "T")
		id := e.questions()[0].ID.ID
		if err := c.Answer(t.Context(), answerX(id, "x")); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			snap, err := c.Tasks().Get(t.Context(), "T")
			if err != nil || len(snap.Questions) != 1 || snap.Questions[0].State != taskmodel.QuestionAnswered || snap.Questions[0].SentAt.IsZero() {
				t.Fatalf("%+v, %v", snap.Questions, err)
			}
		}
		if len(e.questions()) != 1 || len(s.all("tasks/update")) != 1 {
			t.Errorf("asked %d times, answered %d times", len(e.questions()), len(s.all("tasks/update")))
		}
		// A person may send it again by hand.
		if err := c.Answer(t.Context(), answerX(id, "x")); err != nil {
			t.Error(err)
		}
		done()
	})
}

func TestI4_RefusedAnswerLeavesTheQuestionOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		done := s.along("C> tasks/get\n" + asksX("T", formX("k", "?")) +
			"C> tasks/update\n" + `S> {"error":{"code":-32602,"message":"v: must be a branch"}}` + "\n" +
			"C> tasks/get\n" + asksX("T", formX("k", "?")) +
			"C> tasks/update\n" + ackX)
		c.Tasks().Get(t.Context(), "T")
		id := e.questions()[0].ID.ID
		err := c.Answer(t.Context(), answerX(id, "x"))
		if err == nil || !strings.Contains(err.Error(), "v: must be a branch") || errors.Is(err, ErrNotFound) {
			t.Errorf("err = %v", err)
		}
		snap, _ := c.Tasks().Get(t.Context(), "T")
		if q := snap.Questions[0]; q.State != taskmodel.QuestionRefused || q.Refusal != "v: must be a branch" {
			t.Errorf("question %+v", q)
		}
		if err := c.Answer(t.Context(), answerX(id, "main")); err != nil {
			t.Error(err)
		}
		done()
		if len(e.questions()) != 1 || len(e.closed()) != 0 {
			t.Errorf("asked %v, withdrawn %v", e.questions(), e.closed())
		}
	})
}

func TestXQuestionsAreWithdrawn(t *testing.T) {
	// A key that vanishes unanswered, and a task that ends while it asks.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		done := s.along("C> tasks/get\n" + asksX("T", formX("a", "?"), formX("b", "?")) + "C> tasks/get\n" + asksX("T", formX("b", "?")) + "C> tasks/get\n" + gotX("T", "cancelled", ""))
		for range 3 {
			if _, err := c.Tasks().Get(t.Context(), "T"); err != nil {
				t.Fatal(err)
			}
		}
		done()
		want := []string{"T/a: the server does not ask this any more", "T/b: the task ended as cancelled"}
		if got := e.closed(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("withdrawn %q, want %q", got, want)
		}
		if err := c.Answer(t.Context(), answerX("T/a", "x")); !errors.Is(err, ErrNoQuestion) {
			t.Errorf("an answer to a closed question: %v", err)
		}
		s.quiet()
	})
}

func TestXOvertakenStatesAskNothingAgain(t *testing.T) {
	// An answer to a poll that was sent before a push had arrived is older
	// than the push: it neither withdraws what the push asked nor asks again
	// what the push closed.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		push := func(status, more string) {
			s.play(`S> notifications/tasks {"_meta":{"io.modelcontextprotocol/subscriptionId":9},` + taskX("T", status, more) + "}")
			synctest.Wait()
		}
		poll := func() (reply func(string)) {
			go c.Tasks().Get(context.Background(), "T")
			m := s.next()
			return func(body string) {
				s.send(strings.Replace(strings.TrimPrefix(strings.TrimSpace(body), "S> "), "{", `{"jsonrpc":"2.0","id":`+string(m.id)+",", 1))
				synctest.Wait()
			}
		}
		late := poll()
		synctest.Wait()
		push("input_required", `,"inputRequests":{`+formX("k", "?")+`}`)
		late(gotX("T", "working", ""))
		if len(e.questions()) != 1 || len(e.closed()) != 0 {
			t.Errorf("asked %d, withdrawn %v", len(e.questions()), e.closed())
		}
		late = poll()
		synctest.Wait()
		push("working", "")
		late(asksX("T", formX("k", "?")))
		if len(e.questions()) != 1 || len(e.closed()) != 1 {
			t.Errorf("asked %d, withdrawn %v", len(e.questions()), e.closed())
		}
		late = poll()
		synctest.Wait()
		push("completed", `,"result":{}`)
		late(asksX("T", formX("new", "?")))
		if len(e.questions()) != 1 {
			t.Errorf("an ended task asked %v", e.questions())
		}
	})
}

func TestXKeyUsedAgainAfterItsAnswer(t *testing.T) {
	// tasks.md: a server MUST NOT reuse a key. It is not asked again, and told.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		done := s.along("C> tasks/get\n" + asksX("T", formX("k", "?")) + "C> tasks/update\n" + ackX + "C> tasks/get\n" + gotX("T", "working", "") + "C> tasks/get\n" + asksX("T", formX("k", "again?")))
		c.Tasks().Get(t.Context(), "T")
		c.Answer(t.Context(), answerX("T/k", "x"))
		c.Tasks().Get(t.Context(), "T")
		snap, _ := c.Tasks().Get(t.Context(), "T")
		done()
		if len(e.questions()) != 1 || !strings.Contains(fmt.Sprint(snap.Lenient), `"k" came again`) {
			t.Errorf("asked %d, lenient %v", len(e.questions()), snap.Lenient)
		}
	})
}

func TestXRootsAreAnsweredByThemselves(t *testing.T) {
	// client/roots; T6: no person is needed for roots, once for each key.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", func(o *Options) {
			o.Roots = func() []Root { return []Root{{URI: "file:///src", Name: "src"}} }
		})
		done := s.along("C> tasks/get\n" + asksX("T", `"r":{"method":"roots/list"}`) + `
			C> tasks/update {"taskId":"T","inputResponses":{"r":{"roots":[{"uri":"file:///src","name":"src"}]}}}
			` + ackX + "C> tasks/get\n" + asksX("T", `"r":{"method":"roots/list"}`))
		snap, err := c.Tasks().Get(t.Context(), "T")
		if err != nil || len(snap.Questions) != 0 {
			t.Fatalf("%+v, %v", snap.Questions, err)
		}
		synctest.Wait()
		c.Tasks().Get(t.Context(), "T")
		done()
		synctest.Wait()
		s.quiet()
		if len(e.questions()) != 0 {
			t.Errorf("a person was asked: %v", e.questions())
		}
	})
}

func TestXKindsOfQuestions(t *testing.T) {
	// tasks.md: each entry as the equivalent standalone request; what is not
	// known is shown and never dropped (I7).
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		s.loose = true
		done := s.along("C> tasks/get\n" + asksX("T",
			`"u":{"method":"elicitation/create","params":{"mode":"url","message":"sign in","url":"https://a.example/x","elicitationId":"E"}}`,
			`"s":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"capital?"}}],"maxTokens":9}}`,
			`"x":{"method":"foo/bar","params":{}}`) + `
			C> tasks/update {"inputResponses":{"u":{"action":"accept","content":"-"}}}
			` + ackX + `
			C> tasks/update {"inputResponses":{"s":{"role":"assistant","model":"person","content":{"type":"text","text":"Paris"}}}}
			` + ackX)
		c.Tasks().Get(t.Context(), "T")
		qs := e.questions()
		if len(qs) != 3 || qs[0].Kind != taskmodel.AskURL || qs[0].URL != "https://a.example/x" || qs[1].Kind != taskmodel.AskSampling || qs[1].Message != "capital?" || qs[2].Kind != taskmodel.AskUnsupported {
			t.Fatalf("%+v", qs)
		}
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: qs[0].ID, Action: taskmodel.Accept}); err != nil {
			t.Error(err)
		}
		// inputResponses have no errors: a sampling cannot be rejected.
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: qs[1].ID, Action: taskmodel.Decline}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "cancel the task") {
			t.Errorf("err = %v", err)
		}
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: qs[1].ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"role":"assistant","model":"person","content":{"type":"text","text":"Paris"}}`)}); err != nil {
			t.Error(err)
		}
		done()
	})
}

// A completion with tools is asked of one who does not declare sampling.tools:
// schema 2026-07-28, CreateMessageRequestParams.tools, wants an error, for which
// inputResponses have no place. It is shown as what cannot be answered, and
// nothing is sent. Null is no tools.
func TestXSamplingWithToolsIsUnsupported(t *testing.T) {
	params := func(more string) string {
		return `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"capital?"}}],"maxTokens":9` + more + `}}`
	}
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		s.loose = true // null is not what the schema has
		done := s.along("C> tasks/get\n" + asksX("T", `"a":`+params(`,"tools":[{"name":"w","inputSchema":{"type":"object"}}]`),
			`"b":`+params(`,"toolChoice":{"mode":"none"}`), `"c":`+params(`,"tools":null,"toolChoice":null`)))
		c.Tasks().Get(t.Context(), "T")
		done()
		qs := e.questions()
		if len(qs) != 3 || qs[2].Kind != taskmodel.AskSampling {
			t.Fatalf("%+v", qs)
		}
		for _, q := range qs[:2] {
			if q.Kind != taskmodel.AskUnsupported || q.Method != methodSampling || !strings.Contains(q.Message, "sampling.tools") || !strings.Contains(q.Message, "capital?") {
				t.Errorf("%s: %s %q", q.Key, q.Kind, q.Message)
			}
			for _, a := range []taskmodel.Answer{
				{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"role":"assistant","model":"person","content":{"type":"text","text":"Paris"}}`)},
				{Question: q.ID, Action: taskmodel.Decline},
			} {
				if err := c.Answer(t.Context(), a); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "cancel the task") {
					t.Errorf("%s %s: %v", q.Key, a.Action, err)
				}
			}
		}
		synctest.Wait()
		s.quiet()
	})
}

func TestXOneAnswerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectX(t, "stdio", nil)
		done := s.along("C> tasks/get\n" + asksX("T", formX("k", "?")))
		c.Tasks().Get(t.Context(), "T")
		done()
		go c.Answer(context.Background(), answerX("T/k", "x"))
		m := s.next()
		if err := c.Answer(t.Context(), answerX("T/k", "x")); err == nil || !strings.Contains(err.Error(), "being sent already") {
			t.Errorf("a double press: %v", err)
		}
		s.send(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":{"resultType":"complete"}}`)
		synctest.Wait()
		s.quiet()
	})
}
