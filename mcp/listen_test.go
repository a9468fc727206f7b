package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

// ackX acknowledges the subscription with the label L for these ids.
func ackedX(label, ids string) string {
	return `S> notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":$` + label + `},"notifications":{"taskIds":[` + ids + `]}}` + "\n"
}

func pushX(label, id, status, more string) string {
	return `S> notifications/tasks {"_meta":{"io.modelcontextprotocol/subscriptionId":$` + label + `},` + taskX(id, status, more) + "}\n"
}

func watchX(t *testing.T, c *Client, ids ...string) {
	t.Helper()
	if err := c.Tasks().Watch(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
}

func lastPushing(e *ears) string {
	p := e.pushes()
	if len(p) == 0 {
		return "never told"
	}
	if p[len(p)-1] == nil {
		return "none"
	}
	return fmt.Sprint(p[len(p)-1])
}

func TestXListenAndPush(t *testing.T) {
	// tasks.md, "Task Status Notifications": taskIds in the filter, the
	// acknowledged ones in the answer, each push a whole DetailedTask;
	// patterns/subscriptions: correlated by subscription id.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		watchX(t, c, "B", "A", "B")
		time.Sleep(50 * time.Millisecond)
		watchX(t, c, "C", "A", "B")
		done := s.along(`
			C> L1: subscriptions/listen {"notifications":{"taskIds":["A","B","C"],"toolsListChanged":"-"},"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
			` + ackedX("L1", `"C","A","never asked"`) +
			pushX("L1", "A", "working", `,"statusMessage":"half"`) +
			pushX("L1", "C", "completed", `,"result":{"content":[]}`) +
			pushX("L1", "B", "input_required", `,"inputRequests":{`+formX("k", "?")+`}`))
		done()
		synctest.Wait()
		s.quiet()
		if got := lastPushing(e); got != "[A C]" {
			t.Errorf("acknowledged %s", got)
		}
		seen := e.seen()
		if len(seen) != 3 || seen[0].Source != taskmodel.FromPush || seen[0].StatusMessage != "half" || len(seen[0].Lenient) != 0 ||
			string(seen[1].Outcome.Result) != `{"content":[]}` || seen[0].AskedAt.IsZero() || seen[0].HeardAt.IsZero() {
			t.Errorf("heard %+v", seen)
		}
		if qs := e.questions(); len(qs) != 1 || qs[0].ID.ID != "B/k" {
			t.Errorf("asked %+v", qs)
		}
	})
}

func TestXListenAgainBeforeTheOldOneEnds(t *testing.T) {
	// patterns/subscriptions, "Multiple Concurrent Subscriptions" and
	// "Cancellation": the new stream is acknowledged before the old one is
	// ended, so that no push is lost between; on stdio by a notification, over
	// HTTP by the end of the stream alone.
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, e := connectX(t, kind, nil)
				watchX(t, c, "A")
				s.play(`C> L1: subscriptions/listen {"notifications":{"taskIds":["A"]}}` + "\n" + ackedX("L1", `"A"`))
				synctest.Wait()
				watchX(t, c, "A", "B")
				s.play(`C> L2: subscriptions/listen {"notifications":{"taskIds":["A","B"]}}` + "\n" + pushX("L1", "A", "working", ""))
				time.Sleep(time.Second)
				s.quiet()
				if first := s.all("subscriptions/listen")[0]; first.ctx.Err() != nil {
					t.Error("the old stream ended before the new one was acknowledged")
				}
				s.play(ackedX("L2", `"A","B"`) + pushX("L2", "B", "working", ""))
				synctest.Wait()
				if got := lastPushing(e); got != "[A B]" {
					t.Errorf("acknowledged %s", got)
				}
				for _, p := range e.pushes() {
					if !slices.Contains(p, "A") {
						t.Errorf("A was not pushed for a while: %v", e.pushes())
					}
				}
				if n := len(e.seen()); n != 2 {
					t.Errorf("%d pushes heard", n)
				}
				if first := s.all("subscriptions/listen")[0]; first.ctx.Err() == nil {
					t.Error("the old stream lives on")
				}
				if kind == "stdio" {
					s.play(`C> notifications/cancelled {"requestId":` + string(s.all("subscriptions/listen")[0].id) + `}`)
				}
				s.quiet()
			})
		})
	}
}

func TestXListenShrinksLater(t *testing.T) {
	// A task that has ended need not be taken off at once; an empty set ends
	// the subscription.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		watchX(t, c, "A", "B")
		s.play("C> L1: subscriptions/listen\n" + ackedX("L1", `"A","B"`))
		synctest.Wait()
		watchX(t, c, "A")
		time.Sleep(listenShrink - time.Second)
		s.quiet()
		s.play(`C> L2: subscriptions/listen {"notifications":{"taskIds":["A"]}}` + "\n" + ackedX("L2", `"A"`) + `C> notifications/cancelled {"requestId":$L1}`)
		synctest.Wait()
		watchX(t, c)
		s.play(`C> notifications/cancelled {"requestId":$L2}`)
		synctest.Wait()
		if got := lastPushing(e); got != "none" {
			t.Errorf("acknowledged %s", got)
		}
		time.Sleep(time.Hour)
		s.quiet()
	})
}

func TestXListenAgainWhenTheStreamEnds(t *testing.T) {
	// patterns/subscriptions, "Graceful Closure" and "Cancellation": a result,
	// an error, or the server's notifications/cancelled ends the stream; the
	// client listens again, more and more slowly.
	ends := map[string]string{
		"gracefully":   `S> L1: {"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":$L1}}}`,
		"by an error":  `S> L1: {"error":{"code":-32603,"message":"restarting"}}`,
		"torn down":    `S> notifications/cancelled {"requestId":$L1,"reason":"shutdown"}`,
		"ids unwanted": `S> L1: {"error":{"code":-32602,"message":"unknown task"}}`,
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, e := connectX(t, "stdio", nil)
				watchX(t, c, "A")
				s.play("C> L1: subscriptions/listen\n" + ackedX("L1", `"A"`))
				synctest.Wait()
				s.play(end)
				synctest.Wait()
				if got := lastPushing(e); got != "none" {
					t.Errorf("after the end still %s", got)
				}
				start := time.Now()
				s.play("C> L1: subscriptions/listen\n" + ackedX("L1", `"A"`))
				if d := time.Since(start); d < listenFirst/2 || d > listenFirst {
					t.Errorf("listened again after %v", d)
				}
				synctest.Wait()
				if got := lastPushing(e); got != "[A]" {
					t.Errorf("acknowledged %s", got)
				}
			})
		})
	}
}

func TestT2_XListenThatAlwaysEndsBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectX(t, "stdio", nil)
		watchX(t, c, "A")
		start := time.Now()
		for range 20 {
			s.play(`C> subscriptions/listen` + "\n" + `S> {"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`)
		}
		if d := time.Since(start); d < 5*time.Minute || d > 20*time.Minute {
			t.Errorf("20 streams in %v", d)
		}
	})
}

func TestT2_XNoSubscriptionsHere(t *testing.T) {
	// -32601 and -32021: no pushes, said in words; polling goes on.
	for _, code := range []string{"-32601", "-32021"} {
		synctest.Test(t, func(t *testing.T) {
			c, s, e := connectX(t, "stdio", nil)
			watchX(t, c, "A")
			s.play("C> subscriptions/listen\n" + `S> {"error":{"code":` + code + `,"message":"no"}}`)
			time.Sleep(time.Hour)
			s.quiet()
			if can := c.Info().Can; can.Push || !strings.Contains(can.PushWhy, code) {
				t.Errorf("can %+v", can)
			}
			if err := c.Tasks().Watch(t.Context(), []string{"B"}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "polling goes on") {
				t.Errorf("err = %v", err)
			}
			if got := lastPushing(e); got != "none" { // so that who shows it looks again
				t.Errorf("pushing %s", got)
			}
		})
	}
}

func TestXListenWithoutAnAcknowledgement(t *testing.T) {
	// The server MUST acknowledge; one that does not is not taken at its word,
	// and its pushes are heard all the same.
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		watchX(t, c, "A")
		s.play("C> L1: subscriptions/listen\n" + pushX("L1", "A", "working", ""))
		time.Sleep(time.Hour)
		s.quiet()
		if got := lastPushing(e); got != "never told" || len(e.seen()) != 1 {
			t.Errorf("pushing %s, heard %d", got, len(e.seen()))
		}
		watchX(t, c, "A", "B")
		s.play("C> L2: subscriptions/listen\n" + ackedX("L2", `"A","B"`) + `C> notifications/cancelled {"requestId":$L1}`)
	})
}

func TestXPushesOfOtherShapes(t *testing.T) {
	// A server that mixes names of generations is read leniently and marked,
	// and so is a push that names no subscription.
	synctest.Test(t, func(t *testing.T) {
		_, s, e := connectX(t, "stdio", nil)
		s.loose = true
		s.play(`S> notifications/tasks {` + taskX("A", "working", "") + `}
			S> notifications/tasks/status {"_meta":{"io.modelcontextprotocol/subscriptionId":"7"},` + taskX("B", "working", "") + `}
			S> notifications/tasks {"_meta":{"io.modelcontextprotocol/subscriptionId":7},"task":{` + taskX("C", "working", "") + `}}`)
		synctest.Wait()
		want := []string{"names no subscription", "notifications/tasks/status is another generation's name", "a member of its own"}
		seen := e.seen()
		if len(seen) != len(want) {
			t.Fatalf("heard %+v", seen)
		}
		for i, w := range want {
			if !strings.Contains(fmt.Sprint(seen[i].Lenient), w) {
				t.Errorf("%d: marked %v, want %q", i, seen[i].Lenient, w)
			}
		}
	})
}

func TestXListensForTools(t *testing.T) {
	// patterns/subscriptions, "Notification Filter".
	synctest.Test(t, func(t *testing.T) {
		open := strings.Replace(openX, `"tools": {}`, `"tools": {"listChanged": true}`, 1)
		c, s, e := connectScript(t, taskmodel.GenExtension, "stdio", open, nil)
		watchX(t, c)
		s.play(`C> L1: subscriptions/listen {"notifications":{"toolsListChanged":true,"taskIds":"-"}}
			S> notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":$L1},"notifications":{"toolsListChanged":true}}
			S> notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":$L1}}`)
		synctest.Wait()
		if e.tools != 1 {
			t.Errorf("heard %d changes of the tools", e.tools)
		}
	})
}

func TestXCloseEndsTheSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, e := connectX(t, "stdio", nil)
		watchX(t, c, "A")
		s.play("C> L1: subscriptions/listen\n" + ackedX("L1", `"A"`))
		synctest.Wait()
		if err := c.Close(context.Background(), true); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := lastPushing(e); got != "none" {
			t.Errorf("pushing %s", got)
		}
	})
}

func TestXResultIsWokenByAPush(t *testing.T) {
	// tasks.md: with notifications a client need not poll.
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := connectX(t, "stdio", nil)
		watchX(t, c, "A")
		s.play("C> L1: subscriptions/listen\n" + ackedX("L1", `"A"`))
		synctest.Wait()
		done := make(chan taskmodel.Outcome)
		go func() {
			o, err := c.Tasks().Result(context.Background(), "A")
			if err != nil {
				t.Error(err)
			}
			done <- o
		}()
		s.play("C> tasks/get\n" + gotX("A", "working", ""))
		time.Sleep(20 * time.Second)
		s.quiet()
		s.play(pushX("L1", "A", "working", "") + pushX("L1", "A", "completed", `,"result":{"content":[]}`))
		if o := <-done; string(o.Result) != `{"content":[]}` {
			t.Errorf("%+v", o)
		}
		s.quiet()
	})
}
