package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/demo"
	"mcptasks/mcp/demo/faulty"
	"mcptasks/mcp/memnet"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

func TestS10_CancelOfAFinishedTask(t *testing.T) {
	both(t, worldOptions{script: quiet + "; response:tasks/get* never; response:tasks/list* error -32601"}, func(t *testing.T, w *world) {
		k := w.start("lint_file", `{"path":"a.go"}`)
		w.sleep(20 * time.Second)
		if w.task(k).Status != taskmodel.Working {
			t.Fatal("it is known already")
		}
		w.s.Clear()
		w.add("response:tasks/get error -32603 once more") // the look before it tells nothing
		errs := make(chan error, 2)
		for range 2 { // pressed twice
			go func() {
				ctx, stop := w.ctx()
				defer stop()
				errs <- w.m.Cancel(ctx, k)
			}()
		}
		late := 0
		for range 2 {
			if err := <-errs; errors.Is(err, mcp.ErrTerminal) && strings.Contains(err.Error(), "too late to cancel") {
				late++
			}
		}
		w.sleep(5 * time.Second)
		if task := w.task(k); task.Status != taskmodel.Completed || !strings.Contains(task.CancelNote, "too late") || late == 0 {
			t.Errorf("%s, %q, %d said so", task.Status, task.CancelNote, late)
		}
		if n := w.count("request:tasks/cancel"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

func TestS11_LeavesItsEndAndStrangeWords(t *testing.T) {
	both(t, worldOptions{script: `response:tasks/list* error -32601`}, func(t *testing.T, w *world) {
		k := w.start("lint_file", `{"path":"a.go"}`)
		w.status(k, taskmodel.Completed)
		w.add(`response:tasks/get* set result.status "working"`)
		ctx, stop := w.ctx()
		defer stop()
		if _, err := w.m.Poll(ctx, k); err != nil {
			t.Error(err)
		}
		w.sleep(time.Second)
		task := w.task(k)
		if last := task.Transitions[len(task.Transitions)-1]; task.Status != taskmodel.Completed || !strings.Contains(last.Note+task.Note, "working") {
			t.Errorf("%s, note %q, time line %+v", task.Status, task.Note, task.Transitions)
		}
		w.s.Clear()
		strange := w.start("reindex_search", `{"index":"a"}`)
		w.add(`response:tasks/get* set result.status "pondering"`)
		w.status(strange, "pondering")
		before := w.sent("request", "tasks/get", strange.ID)
		w.sleep(2 * time.Minute)
		if n := w.sent("request", "tasks/get", strange.ID) - before; n > 5 {
			t.Errorf("%d polls in two minutes", n)
		}
	})
}

func TestS12_CancelThatIsOnlyHeard(t *testing.T) {
	// The server takes the cancel for something else and works on.
	for name, script := range map[string]string{
		"{}":         `request:tasks/cancel* set method "ping"`,
		"a bare ack": `request:tasks/cancel* set method "ping"; response:tasks/cancel* set result {"ok":true}`,
		"null":       `request:tasks/cancel* set method "ping"; response:tasks/cancel* set result null`,
		"a task":     `request:tasks/cancel* set method "tasks/get"`,
		"a lie":      `request:tasks/cancel* set method "ping"; response:tasks/cancel* set result {"cancelled":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			both(t, worldOptions{script: script}, func(t *testing.T, w *world) {
				k := w.start("build", `{"target":"api"}`)
				w.sleep(5 * time.Second)
				ctx, stop := w.ctx()
				defer stop()
				if err := w.m.Cancel(ctx, k); err != nil {
					t.Fatal(err)
				}
				w.sleep(15 * time.Second)
				if task := w.task(k); task.Status != taskmodel.Working || task.CancelRequested.IsZero() {
					t.Errorf("%s, cancel requested %v", task.Status, task.CancelRequested)
				}
				w.status(k, taskmodel.Completed)
				w.sleep(time.Second)
				if task := w.task(k); !strings.Contains(task.CancelNote, "too late") {
					t.Errorf("note %q", task.CancelNote)
				}
			})
		})
	}
}

func TestS13_PlainResults(t *testing.T) {
	both(t, worldOptions{script: "request:tools/call unset params.task"}, func(t *testing.T, w *world) {
		ctx, stop := w.ctx()
		defer stop()
		r, err := w.m.Start(ctx, monitor.StartRequest{Server: "ci", Tool: "lint_file", Args: json.RawMessage(`{"path":"a.go"}`)})
		if err != nil || r.Key.ID != "" || r.Outcome.Result == nil {
			t.Errorf("a plain result: %+v, %v", r, err)
		}
		_, err = w.m.Start(ctx, monitor.StartRequest{Server: "ci", Tool: "deploy_release", Args: json.RawMessage(`{"service":"api","version":"v1.0.0"}`), Plain: true})
		if !errors.Is(err, mcp.ErrTaskRequired) || !strings.Contains(err.Error(), "start it as one") {
			t.Errorf("a plain call of a task-only tool: %v", err)
		}
	})
}

func TestS14_NotNegotiated(t *testing.T) {
	for name, script := range map[string]string{
		"-32021": `response:tasks/get* error -32021 tasks missing`, "-32601": `response:tasks/get* error -32601 Method not found`, "other": "response:tasks/get* error -32000 the disk is full",
	} {
		t.Run(name, func(t *testing.T) {
			both(t, worldOptions{gen: ext, script: "notification:notifications/subscriptions/acknowledged* never; " + script}, func(t *testing.T, w *world) {
				k := w.start("reindex_search", `{"index":"a"}`)
				w.sleep(time.Minute)
				task := w.task(k)
				want := "not negotiated"
				if name == "other" {
					want = "the disk is full"
				}
				if task.Status != taskmodel.Working || !strings.Contains(task.Note+w.server().Error, want) {
					t.Errorf("%s, %s %q, row %q", task.Status, task.Standing, task.Note, w.server().Error)
				}
			})
		})
	}
}

func TestS15_ExtensionSaysWhatItCalls(t *testing.T) {
	// The demo server refuses what lacks the headers, and notes params.task.
	both(t, worldOptions{gen: ext}, func(t *testing.T, w *world) {
		k := w.start("lint_file", `{"path":"a.go"}`)
		w.status(k, taskmodel.Completed)
		if n := w.sent("request", "tools/call", `"task":`); n != 0 {
			t.Errorf("params.task was sent %d times", n)
		}
	})
}

func TestS16_NamesOfOtherGenerations(t *testing.T) {
	both(t, worldOptions{script: `response:tools/call set result.task.ttlMs 61000; response:tools/call#2 set result.task.keepAlive 62000; request:tasks/get* never; request:tasks/list* never; ` + quiet}, func(t *testing.T, w *world) {
		w.add(`response:tools/call unset result.task.ttl`) // never due: the first rule acts
		k := w.start("reindex_search", `{"index":"a"}`)
		w.sleep(time.Second)
		if ttl := w.task(k).TTL; !ttl.Known || ttl.Duration <= 0 {
			t.Errorf("ttl %+v", ttl)
		}
	})
}

func TestI1_TwoTasksAskAtOnce(t *testing.T) {
	both(t, worldOptions{}, func(t *testing.T, w *world) {
		a := w.start("deploy_release", `{"service":"api","version":"v1.0.0"}`)
		b := w.start("deploy_release", `{"service":"web","version":"v2.0.0"}`)
		qa, qb := w.asks(a), w.asks(b)
		if qa.Task != a || qb.Task != b || qa.Tool != "deploy_release" || qa.ID == qb.ID {
			t.Errorf("%+v\n%+v", qa, qb)
		}
		if err := w.answer(qb.ID); err != nil {
			t.Fatal(err)
		}
		w.status(b, taskmodel.Completed)
		if st := w.task(a).Status; st != taskmodel.InputRequired {
			t.Errorf("the other is %s", st)
		}
		if n := w.sent("answer", "elicitation/create", b.ID); n != 1 {
			t.Errorf("the answer does not name its task (%d)", n)
		}
		if n := w.sent("answer", "elicitation/create", a.ID); n != 0 {
			t.Errorf("an answer names the other task")
		}
	})
}

func TestI2_AnsweredAndStillAsked(t *testing.T) {
	both(t, worldOptions{gen: ext, script: "notification:notifications/subscriptions/acknowledged* never; request:tasks/update set params.inputResponses {}"}, func(t *testing.T, w *world) {
		k := w.start("deploy_release", `{"service":"api","version":"v1.0.0"}`)
		q := w.asks(k)
		if err := w.answer(q.ID); err != nil { // acknowledged, and without effect
			t.Fatal(err)
		}
		w.sleep(2 * time.Minute)
		now, _ := w.m.Board().Question(q.ID)
		if now.State != taskmodel.QuestionAnswered || w.m.Board().OpenQuestions() != 0 {
			t.Errorf("state %s, %d open", now.State, w.m.Board().OpenQuestions())
		}
		if n := w.count("request:tasks/update"); n != 1 {
			t.Errorf("sent %d times", n)
		}
		if err := w.answer(q.ID); err != nil {
			t.Errorf("by hand: %v", err)
		}
		w.status(k, taskmodel.Completed)
	})
}

func TestI4_RefusedAnswer(t *testing.T) {
	both(t, worldOptions{gen: ext}, func(t *testing.T, w *world) {
		k := w.start("deploy_release", `{"service":"api","version":"v1.0.0"}`)
		q := w.asks(k)
		ctx, stop := w.ctx()
		defer stop()
		err := w.m.Answer(ctx, taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"strategy":"canary","ticket":"none"}`)})
		if err == nil || !strings.Contains(err.Error(), "ticket") {
			t.Errorf("Answer: %v", err)
		}
		w.sleep(20 * time.Second)
		if now, _ := w.m.Board().Question(q.ID); now.State != taskmodel.QuestionRefused || !strings.Contains(now.Refusal, "ticket") {
			t.Errorf("%s, %q", now.State, now.Refusal)
		}
		if err := w.answer(q.ID); err != nil {
			t.Errorf("mended: %v", err)
		}
		w.status(k, taskmodel.Completed)
	})
}

func TestI9_NothingIsAnsweredByItself(t *testing.T) {
	for _, gen := range []taskmodel.Generation{core, ext, draft} {
		t.Run(string(gen), func(t *testing.T) {
			both(t, worldOptions{gen: gen}, func(t *testing.T, w *world) {
				k := w.start("deploy_release", `{"service":"api","version":"v1.0.0"}`)
				w.asks(k)
				w.sleep(5 * time.Minute)
				w.stop() // quit, with the question open
				<-w.ended
				w.sleep(10 * time.Second)
				for _, m := range w.all {
					if m.point == "answer" && m.method == "elicitation/create" || m.point == "request" && m.method == "tasks/update" {
						t.Errorf("sent: %s", m.bytes)
					}
				}
			})
		})
	}
}

func TestI10_PageWithoutACompletionNotice(t *testing.T) {
	both(t, worldOptions{script: "notification:notifications/elicitation/complete* never"}, func(t *testing.T, w *world) {
		k := w.start("sign_artifact", `{"artifact":"api.tar.zst"}`)
		q := w.asks(k)
		if q.Kind != taskmodel.AskURL || !strings.HasPrefix(q.URL, "https://keys.example/") {
			t.Fatalf("%s %s", q.Kind, q.URL)
		}
		ctx, stop := w.ctx()
		defer stop()
		if err := w.m.Answer(ctx, taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept}); err != nil {
			t.Fatal(err)
		}
		w.status(k, taskmodel.Completed)
		if n := w.sent("answer", "elicitation/create", `"content"`); n != 0 {
			t.Error("consent carries content")
		}
	})
}

func TestT1_OneNewSessionForAll(t *testing.T) {
	for name, lose := range map[string]func(w *world){
		"404": func(w *world) { w.s.Restart(true) },
		"400": func(w *world) { w.add("post:tasks/get status 400 Bad Request: No valid session ID provided") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, worldOptions{carrier: "http"})
				var keys []taskmodel.Key
				for range 12 {
					keys = append(keys, w.start("reindex_search", `{"index":"a"}`))
				}
				w.sleep(10 * time.Second)
				calls := w.count("request:tools/call")
				lose(w)
				ctx, stop := w.ctx()
				defer stop()
				errs := make(chan error, len(keys))
				for _, k := range keys {
					go func() { _, err := w.m.Poll(ctx, k); errs <- err }()
				}
				for range keys {
					if err := <-errs; err != nil {
						t.Errorf("a read was not repeated: %v", err)
					}
				}
				w.sleep(20 * time.Second)
				if n := w.count("request:initialize"); n != 2 {
					t.Errorf("%d sessions", n)
				}
				if n := w.count("request:tools/call"); n != calls {
					t.Error("a call was repeated")
				}
				for _, k := range keys {
					if task := w.task(k); task.Standing != taskmodel.Live {
						t.Errorf("%s %q", task.Standing, task.Note)
					}
				}
			})
		})
	}
}

func TestT2_NoPushStream(t *testing.T) {
	for _, answer := range []string{"status 405", "status 404", "status 406", "status 501", "type text/html <p>hello</p>", "empty", "close"} {
		t.Run(answer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, worldOptions{carrier: "http", script: "get* " + answer})
				k := w.start("build", `{"target":"api"}`)
				w.status(k, taskmodel.Completed)
				w.sleep(10 * time.Minute)
				if s := w.server(); s.State != taskmodel.ServerReady || s.Error != "" {
					t.Errorf("row: %s %q", s.State, s.Error)
				}
				n := 0
				for _, f := range w.s.Fired() {
					if strings.HasPrefix(f, "get*") {
						n++
					}
				}
				if n == 0 || n > 40 {
					t.Errorf("the stream was tried %d times in ten minutes", n)
				}
			})
		})
	}
}

func TestT5_SignInWantedInMidSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldOptions{carrier: "http"})
		for range 10 {
			w.start("reindex_search", `{"index":"a"}`)
		}
		w.sleep(10 * time.Second)
		w.add("post* status 401; get* status 401")
		w.sleep(10 * time.Second)
		before := len(w.s.Fired())
		w.sleep(10 * time.Minute)
		if s := w.server(); s.State != taskmodel.ServerAuth || !strings.Contains(s.Error, "mcptasks login ci") {
			t.Errorf("row: %s %q", s.State, s.Error)
		}
		if n := len(w.s.Fired()) - before; n > 30 {
			t.Errorf("%d requests in ten minutes", n)
		}
		w.s.Clear()
		w.well()
	})
}

func TestT6_TheServersOwnRequests(t *testing.T) {
	for id, method := range map[string]string{"p1": "ping", "p2": "roots/list", "p3": "foo/bar"} {
		t.Run(method, func(t *testing.T) {
			both(t, worldOptions{}, func(t *testing.T, w *world) {
				k := w.start("deploy_release", `{"service":"api","version":"v1.0.0"}`)
				w.asks(k) // while a form is open
				w.add(fmt.Sprintf(`response:tasks/get before {"jsonrpc":"2.0","id":%q,"method":%q}`, id, method))
				w.sleep(10 * time.Second)
				if n := w.sent("answer", "", `"`+id+`"`); n != 1 {
					t.Errorf("answered %d times", n)
				}
				if n := w.sent("answer", "", `-32601`); (n == 1) != (method == "foo/bar") {
					t.Errorf("-32601 %d times", n)
				}
				if _, open := question(w.m.Board(), k); !open {
					t.Error("the form is gone")
				}
			})
		})
	}
}

// Questions of no task come while a task's form is open: each is put to the
// person beside it, and answered under its own id, in its own type.
func TestI1_T6_QuestionsOfNoTask(t *testing.T) {
	for id, ask := range map[string]string{
		`7`:     `"method":"elicitation/create","params":{"mode":"form","message":"and you?","requestedSchema":{"type":"object","properties":{"strategy":{"type":"string"}}}}`,
		`"7"`:   `"method":"elicitation/create","params":{"message":"and you?","requestedSchema":{"type":"object","properties":{"strategy":{"type":"string"}}}}`,
		`"s-1"`: `"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"name it"}}],"maxTokens":10}`,
	} {
		t.Run(id, func(t *testing.T) {
			both(t, worldOptions{}, func(t *testing.T, w *world) {
				k := w.start("deploy_release", `{"service":"api","version":"v1.0.0"}`)
				w.asks(k)
				w.add(`response:tasks/get before {"jsonrpc":"2.0","id":` + id + `,` + ask + `}`)
				var q taskmodel.Question
				w.must("the question of no task", time.Minute, func(v *board.Version) bool {
					for _, q = range v.Questions() {
						if q.Task.ID == "" {
							return true
						}
					}
					return false
				})
				w.sleep(time.Minute)
				if n := w.sent("answer", "", `"id":`+id+`,`); n != 0 {
					t.Errorf("answered %d times by itself", n)
				}
				a := taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"strategy":"canary"}`)}
				if q.Kind == taskmodel.AskSampling {
					a.Content = json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"moss"},"model":"me"}`)
				}
				ctx, stop := w.ctx()
				defer stop()
				if err := w.m.Answer(ctx, a); err != nil {
					t.Fatal(err)
				}
				if n := w.sent("answer", "", `"id":`+id+`,`); n != 1 || w.sent("answer", "", "related-task") != 0 {
					t.Errorf("answered %d times, %d of them as if for a task", n, w.sent("answer", "", "related-task"))
				}
				if _, open := question(w.m.Board(), k); !open {
					t.Error("the task's form is gone")
				}
			})
		})
	}
}

func TestT7_RetryAfterForOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers [2]*faulty.Server
		var specs []monitor.ServerSpec
		var gets [2]atomic.Int64
		for i := range servers {
			s, err := faulty.New(demo.Options{Seed: uint64(i + 1), Tasks: 1}, "")
			if err != nil {
				t.Fatal(err)
			}
			s.Overhear(func(point, method string, _ []byte) {
				if point == "request" && method == "tasks/get" {
					gets[i].Add(1)
				}
			})
			site := memnet.Serve(s.Handler())
			defer func() { s.Close(); site.Close() }()
			servers[i] = s
			specs = append(specs, monitor.ServerSpec{Name: fmt.Sprint("s", i), Target: fmt.Sprint(i), Autostart: true, Dialer: &transport.HTTP{URL: site.URL, Client: site.Client}})
		}
		m := monitor.New(monitor.Options{Servers: specs, Seed: 1})
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		defer func() { stop(); <-done }()
		synctest.Wait()
		for i := range servers {
			if _, err := m.Start(ctx, monitor.StartRequest{Server: fmt.Sprint("s", i), Tool: "reindex_search", Args: json.RawMessage(`{"index":"a"}`)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		if err := servers[0].Add("post* status 429 Retry-After=60"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		servers[0].Clear()
		before := [2]int64{gets[0].Load(), gets[1].Load()}
		time.Sleep(45 * time.Second)
		synctest.Wait()
		if n := gets[0].Load() - before[0]; n != 0 {
			t.Errorf("asked %d times though it wants to be left alone", n)
		}
		if n := gets[1].Load() - before[1]; n < 8 {
			t.Errorf("the other was polled %d times only", n)
		}
		if s, _ := m.Board().Server("s0"); s.PacedUntil.IsZero() {
			t.Error("the row does not say that it is paced")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s, _ := m.Board().Server("s0"); gets[0].Load() == before[0] || s.State != taskmodel.ServerReady {
			t.Errorf("afterwards: %s, %d polls", s.State, gets[0].Load()-before[0])
		}
	})
}

func TestL4_TwoServersOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var specs []monitor.ServerSpec
		for _, name := range []string{"a", "b"} {
			d := demo.New(demo.Options{Seed: 3, Tasks: 5})
			defer d.Close()
			specs = append(specs, monitor.ServerSpec{Name: name, Target: name, Autostart: true, Dialer: demo.Dialer(d)})
		}
		m := monitor.New(monitor.Options{Servers: specs, Seed: 1})
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		defer func() { stop(); <-done }()
		time.Sleep(time.Second)
		ids := map[string]int{}
		m.Board().Tasks(func(t *taskmodel.Task) bool { ids[t.ID]++; return true })
		if len(ids) != 5 || m.Board().Len() != 10 {
			t.Errorf("%d rows of %d ids", m.Board().Len(), len(ids))
		}
	})
}

func TestU1_RemoteTextIsKeptRaw(t *testing.T) {
	// The bytes stay for copy and save; the screens clean them.
	both(t, worldOptions{script: `response:tasks/get* set result.statusMessage "\u001b]52;c;cHduZWQ=\u0007\u202eevil\u0000"; ` + quiet}, func(t *testing.T, w *world) {
		k := w.start("reindex_search", `{"index":"a"}`)
		w.must("the text", time.Minute, func(v *board.Version) bool {
			t, _ := v.Task(k)
			return t.StatusMessage == "\x1b]52;c;cHduZWQ=\a\u202eevil\x00"
		})
	})
}
