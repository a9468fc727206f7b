package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

// wantX is an InputRequiredResult.
func wantX(entries, state string) string {
	if entries != "" {
		entries = `,"inputRequests":{` + entries + `}`
	}
	if state != "" {
		entries += `,"requestState":` + state
	}
	return `S> {"result":{"resultType":"input_required"` + entries + "}}\n"
}

const plainX = `S> {"result":{"resultType":"complete","content":[]}}` + "\n"

// startX starts a call beside the test.
func startX(c *Client, call StartCall) chan startedX {
	done := make(chan startedX, 1)
	go func() {
		st, err := c.Tasks().Start(context.Background(), call)
		done <- startedX{st, err}
	}()
	return done
}

type startedX struct {
	Started
	err error
}

func TestXCallAsksBeforeItBecomesATask(t *testing.T) {
	// basic/patterns/mrtr, "Client Requirements": all inputs are constructed
	// before the retry, under another id, with the state echoed exactly; the
	// two mechanisms compose (seps/2663, "Composition").
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", func(o *Options) { o.Roots = func() []Root { return []Root{{URI: "file:///src"}} } })
		// Escapes, HTML and other scripts must come back byte for byte.
		state := `"\u0041<b>&\/世\u2028界\"=="`
		done := s.along(`
			C> first: tools/call {"name":"deploy","arguments":{"to":"prod"},"inputResponses":"-","requestState":"-"}
			` + wantX(formX("who", "who?")+","+formX("why", "why?")+`,"r":{"method":"roots/list"}`, state) + `
			C> second: tools/call {"name":"deploy","arguments":{"to":"prod"},"inputResponses":{"who":{"action":"accept","content":{"v":"me"}},"why":{"action":"decline"},"r":{"roots":[{"uri":"file:///src"}]}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":"*"}}
			` + wantX(formX("who", "sure?"), "") + `
			C> third: tools/call {"name":"deploy","arguments":{"to":"prod"},"inputResponses":{"who":{"action":"accept","content":{"v":"yes"}},"why":"-"},"requestState":"-"}
			S> {"result":{"resultType":"task",` + taskX("T", "working", "") + `}}`)
		started := startX(c, StartCall{Tool: "deploy", Args: json.RawMessage(`{"to":"prod"}`), CallID: "call 7"})
		synctest.Wait()
		qs := e.questions()
		if len(qs) != 2 {
			t.Fatalf("asked %+v", qs)
		}
		for i, q := range qs {
			if q.Task != (taskmodel.Key{}) || q.Tool != "deploy" || !strings.HasPrefix(q.ID.ID, "call:call%207:") || q.Round != i+1 {
				t.Errorf("question without a task: %+v", q)
			}
		}
		if err := c.Answer(t.Context(), answerX(qs[0].ID.ID, "me")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(s.all("tools/call")); n != 1 {
			t.Fatalf("the call went %d times before all was answered", n)
		}
		if err := c.Answer(t.Context(), answerX(qs[0].ID.ID, "other")); err == nil {
			t.Error("the same question was answered twice")
		}
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: qs[1].ID, Action: taskmodel.Decline}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if qs = e.questions(); len(qs) != 3 || qs[2].ID == qs[0].ID {
			t.Fatalf("second round: %+v", qs)
		}
		if err := c.Answer(t.Context(), answerX(qs[2].ID.ID, "yes")); err != nil {
			t.Fatal(err)
		}
		st := <-started
		done()
		if st.err != nil || st.TaskID != "T" {
			t.Errorf("%+v", st)
		}
		calls := s.all("tools/call")
		if string(member(calls[1].params, "requestState")) != state {
			t.Errorf("the state came back as %s, was %s", member(calls[1].params, "requestState"), state)
		}
		if string(calls[0].id) == string(calls[1].id) || string(calls[1].id) == string(calls[2].id) {
			t.Error("the ids of the retries are not their own")
		}
		if err := c.Answer(t.Context(), answerX(qs[2].ID.ID, "late")); !errors.Is(err, ErrNoQuestion) {
			t.Errorf("an answer after the end: %v", err)
		}
	})
}

func TestXStateWithoutQuestionsComesAgain(t *testing.T) {
	// mrtr: without inputRequests the client MAY retry at once; a server that
	// always says so is not called in a hot loop.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		start := time.Now()
		done := s.along("C> tools/call\n" + wantX("", `"1"`) + `C> tools/call {"requestState":"1","inputResponses":"-"}` + "\n" + wantX("", `"2"`) + `C> tools/call {"requestState":"2"}` + "\n" + plainX)
		st := <-startX(c, StartCall{Tool: "b"})
		done()
		if st.err != nil || st.Outcome.Result == nil || len(e.questions()) != 0 {
			t.Errorf("%+v", st)
		}
		if d := time.Since(start); d != againFirst+2*againFirst {
			t.Errorf("it took %v", d)
		}
	})
}

func TestXOnlyRootsNeedNoPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", func(o *Options) { o.Roots = func() []Root { return []Root{{URI: "file:///src"}} } })
		done := s.along("C> tools/call\n" + wantX(`"r":{"method":"roots/list"}`, `"z"`) + `C> tools/call {"requestState":"z","inputResponses":{"r":{"roots":[{"uri":"file:///src"}]}}}` + "\n" + plainX)
		st := <-startX(c, StartCall{Tool: "b"})
		done()
		if st.err != nil || len(e.questions()) != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestI4_RefusedAnswerOfACallMayBeGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		done := s.along("C> tools/call\n" + wantX(formX("k", "?"), `"z"`) + "C> tools/call\n" + `S> {"error":{"code":-32602,"message":"v: too short"}}` + "\n" +
			`C> tools/call {"inputResponses":{"k":{"content":{"v":"longer"}}},"requestState":"z"}` + "\n" + plainX)
		started := startX(c, StartCall{Tool: "b", CallID: "1"})
		synctest.Wait()
		id := e.questions()[0].ID.ID
		if err := c.Answer(t.Context(), answerX(id, "x")); err == nil || !strings.Contains(err.Error(), "v: too short") {
			t.Errorf("err = %v", err)
		}
		if err := c.Answer(t.Context(), answerX(id, "longer")); err != nil {
			t.Error(err)
		}
		if st := <-started; st.err != nil {
			t.Error(st.err)
		}
		done()
	})
}

func TestXCallWithAQuestionEnds(t *testing.T) {
	// Whoever waits for an answer hears when there is nothing to answer any more.
	reject := func(c *Client, s *script, e *ears, stop func()) {
		c.Answer(context.Background(), taskmodel.Answer{Question: e.questions()[0].ID, Action: taskmodel.Decline})
	}
	cases := []struct {
		name     string
		question string
		end      func(c *Client, s *script, e *ears, stop func())
		err      string
		closed   string
	}{
		{"given up", formX("k", "?"), func(c *Client, s *script, e *ears, stop func()) { stop() }, "gave up", "[call:9:1/k: the call was given up]"},
		{"connection lost", formX("k", "?"), func(c *Client, s *script, e *ears, stop func()) { s.conn.Close(context.Background()) }, "connection ended", "[call:9:1/k: the connection ended]"},
		{"connection closed", formX("k", "?"), func(c *Client, s *script, e *ears, stop func()) { c.Close(context.Background(), true) }, "the connection", "[call:9:1/k: the connection"},
		{"sampling rejected", `"k":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, reject, "rejected", "[]"},
		{"sampling with tools rejected", `"k":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}`, func(c *Client, s *script, e *ears, stop func()) {
			if err := c.Answer(context.Background(), taskmodel.Answer{Question: e.questions()[0].ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"role":"assistant"}`)}); !errors.Is(err, ErrUnsupported) {
				t.Errorf("accepted: %v", err)
			}
			reject(c, s, e, stop)
		}, "rejected", "[]"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, e := connectX(t, "stdio", nil)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				done := make(chan error)
				play := s.along("C> tools/call\n" + wantX(tc.question, ""))
				go func() {
					_, err := c.Tasks().Start(ctx, StartCall{Tool: "b", CallID: "9"})
					done <- err
				}()
				play()
				synctest.Wait()
				go tc.end(c, s, e, stop)
				if err := <-done; err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("err = %v", err)
				}
				synctest.Wait()
				if got := fmt.Sprint(e.closed()); !strings.HasPrefix(got, tc.closed) {
					t.Errorf("withdrawn %v, want %s", got, tc.closed)
				}
				if n := len(s.all("tools/call")); n != 1 {
					t.Errorf("the call went %d times", n)
				}
				if n := len(s.all("notifications/cancelled")); n != 0 {
					t.Error("a request that had been answered was cancelled")
				}
			})
		})
	}
}

func TestXLastAnswerDoesNotWaitForALongCall(t *testing.T) {
	// The server has the answer as soon as the repeated call has gone; how long
	// the call then runs is another matter.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		done := s.along("C> tools/call\n" + wantX(formX("k", "?"), "") + "C> tools/call\n")
		startX(c, StartCall{Tool: "b"})
		done2 := make(chan error, 1)
		synctest.Wait()
		start := time.Now()
		go func() { done2 <- c.Answer(context.Background(), answerX(e.questions()[0].ID.ID, "x")) }()
		if err := <-done2; err != nil || time.Since(start) > answerGrace {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		done()
	})
}
