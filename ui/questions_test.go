package ui_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/taskmodel/form"
	"mcptasks/ui"
)

func TestQuestionNeverStealsTheKeyboard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("enter")
		before := strings.Split(term.Screen(), "\n")
		bells := term.Bells()
		id := taskmodel.QuestionID{Server: "ci", ID: "99"}
		ask := func() {
			mon.Change(func(b *board.Board) {
				b.PutQuestion(taskmodel.Question{ID: id, Task: key("ci", buildID), Tool: "build", Kind: taskmodel.AskForm, Message: "Which linker?", AskedAt: time.Now(), State: taskmodel.QuestionOpen})
			})
			mon.Emit(taskmodel.Event{Time: time.Now(), Server: "ci", Task: key("ci", buildID), Kind: taskmodel.EventQuestion, Question: id})
			term.Settle()
		}
		ask()
		ask() // the same once more
		after := strings.Split(term.Screen(), "\n")
		for i := 1; i < len(after)-1; i++ {
			if after[i] != before[i] && !strings.Contains(after[i], "0s") && !strings.Contains(after[i], "1s") {
				t.Errorf("line %d changed from %q to %q", i, before[i], after[i])
			}
		}
		if !strings.Contains(after[0], "3 questions") {
			t.Errorf("the head says %q", after[0])
		}
		if got := term.Bells() - bells; got != 1 {
			t.Errorf("the bell rang %d times, want once", got)
		}
		if !strings.Contains(term.Title(), "3 questions") {
			t.Errorf("the title is %q", term.Title())
		}
	})
}

// Who answers one question after the other has the next one at hand, and stays
// where it is looked at what was answered.
func TestInboxGoesOnToTheNextQuestion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		ask := func(id string, age time.Duration, st taskmodel.QuestionState) {
			mon.Change(func(b *board.Board) {
				b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: id}, Kind: taskmodel.AskForm, Message: "Question " + id, AskedAt: time.Now().Add(-age), State: st})
			})
		}
		for i, id := range []string{"one", "two", "three"} {
			ask(id, time.Hour-time.Duration(i)*time.Minute, taskmodel.QuestionOpen)
		}
		term := run(t, mon, 100, 30, nil)
		at := func(want string) {
			t.Helper()
			term.Settle()
			for _, l := range strings.Split(term.Screen(), "\n") {
				if strings.HasPrefix(l, "▌") && !strings.Contains(l, want) {
					t.Errorf("selected is %q, want %q", l, want)
				}
			}
			term.See("▌")
		}
		term.Press("i")
		at("Question one")
		ask("one", time.Hour, taskmodel.QuestionSending)
		at("Question one")
		ask("one", time.Hour, taskmodel.QuestionAnswered)
		at("Question two")
		ask("two", time.Hour-time.Minute, taskmodel.QuestionWithdrawn) // nobody here did that: it stays in view
		at("Question two")
		term.Press("G")
		at("Question two")
		term.Press("k") // to the one that was answered, which is over
		at("Question one")
		ask("four", time.Minute, taskmodel.QuestionOpen)
		at("Question one")
	})
}

func TestAnswerGoesOnceAndTheFormCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "deploy", ID: "7f3a/approve"}
		set := func(f func(*taskmodel.Question)) {
			mon.Change(func(b *board.Board) {
				q, _ := b.Question(id)
				f(&q)
				b.PutQuestion(q)
			})
		}
		mon.OnAnswer = func(taskmodel.Answer) error {
			set(func(q *taskmodel.Question) { q.State = taskmodel.QuestionSending })
			time.Sleep(300 * time.Millisecond)
			set(func(q *taskmodel.Question) { q.State, q.SentAt = taskmodel.QuestionAnswered, time.Now() })
			return nil
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("j", "a")
		term.See("deploy asks, for deploy_release 7f3a91c2", "Decision", "Canary share")
		term.Press("ctrl+s")
		term.See("Sending the answer")
		term.Press("ctrl+s") // a second press sends nothing
		term.Pass(time.Second)
		term.See("/ filter", "Answered; waiting for deploy", "answered, waiting for")
		wantCalls(t, mon, `answer deploy/7f3a/approve accept {"decision":"go","share":25}`)
	})
}

func TestI4_RefusalKeepsTheForm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "deploy", ID: "7f3a/approve"}
		mon.OnAnswer = func(taskmodel.Answer) error {
			mon.Change(func(b *board.Board) {
				q, _ := b.Question(id)
				q.State, q.Refusal = taskmodel.QuestionRefused, "share is too large today"
				b.PutQuestion(q)
			})
			return errors.New("deploy refused the answer: share is too large today")
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("j", "a", "tab")
		term.Press("ctrl+s")
		term.See("share is too large today", "deploy asks", "Canary share")
	})
}

func TestEscPutsAsideAndKeepsTheDraft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		term := run(t, mon, 100, 30, nil)
		term.Press("i", "j", "enter", "tab", "backspace", "backspace").Type("42")
		term.Press("esc")
		term.See("Put aside; the draft is kept", "draft kept")
		wantCalls(t, mon)
		term.Press("enter")
		term.See("42")
		mon = fleet()
		term = run(t, mon, 100, 30, nil)
		term.Press("i", "j", "enter", "esc") // nothing was written
		if screen := term.Screen(); strings.Contains(screen, "Put aside") || strings.Contains(screen, "draft kept") {
			t.Errorf("a draft is spoken of:\n%s", screen)
		}
	})
}

func TestI1_FormsNameServerAndTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.Change(func(b *board.Board) {
			b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "x"}, Kind: taskmodel.AskForm, Message: "Sign in to the artifact store", AskedAt: ago(time.Hour), State: taskmodel.QuestionOpen, Schema: approveSchema})
		})
		term := run(t, mon, 100, 30, nil)
		term.Press("i")
		term.See("(plain call)", "migrate_schema", "deploy_release")
		for _, want := range []string{"ci asks", "ci asks, for migrate_schema 0c55e1d7", "deploy asks, for deploy_release 7f3a91c2"} {
			term.Press("enter")
			term.See(want)
			term.Press("esc", "j")
		}
	})
}

func TestAnswerAsksForTheQuestion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		mon.Change(func(b *board.Board) {
			b.Change(key("ci", buildID), day, func(t *taskmodel.Task) { t.Status = taskmodel.InputRequired })
		})
		term := run(t, mon, 100, 30, nil)
		term.Press("/").Type("tool:build").Press("enter", "a")
		wantCalls(t, mon, "ask ci/"+buildID)
		term.See("Asking ci for its question")
		put := func() {
			mon.Change(func(b *board.Board) {
				id := taskmodel.QuestionID{Server: "ci", ID: "18"}
				b.PutQuestion(taskmodel.Question{ID: id, Task: key("ci", buildID), Tool: "build", Kind: taskmodel.AskForm, Message: "Which linker?", State: taskmodel.QuestionOpen, AskedAt: time.Now()})
				b.Change(key("ci", buildID), day, func(t *taskmodel.Task) { t.Inputs = []taskmodel.QuestionID{id} })
			})
			term.Settle()
		}
		put()
		term.See("ci asks, for build", "Which linker?")
	})
}

// I10: a call that ends with -32042 (2025-11-25 client/elicitation, "URL
// Elicitation Required Error") opens its page where the person waits for it:
// host, marks of danger, consent, copy; the call is made again on request.
func TestI10_PageOfARefusedCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "ci", ID: "page/1/e1"}
		put := func(f func(*taskmodel.Question)) {
			mon.Change(func(b *board.Board) {
				q, ok := b.Question(id)
				if !ok {
					q = taskmodel.Question{ID: id, Tool: "drop_cache", Kind: taskmodel.AskURL, Method: "tools/call", ElicitID: "e1", State: taskmodel.QuestionOpen, AskedAt: time.Now(), Round: 1,
						Message: "Unlock the key in your browser.", URL: "http://keys.example@xn--80ak6aa92e.com:8443/unlock?c=$(id)", Repeat: taskmodel.Call{Tool: "drop_cache", Args: json.RawMessage(`{}`), Plain: true}}
				}
				f(&q)
				b.PutQuestion(q)
			})
		}
		refuse := true
		mon.OnStart = func(monitor.StartRequest) (monitor.StartReply, error) {
			if !refuse {
				time.Sleep(2 * time.Second)
				put(func(q *taskmodel.Question) {
					q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, "the call was made again"
				})
				return monitor.StartReply{Outcome: taskmodel.Outcome{Result: json.RawMessage(`{"content":[{"type":"text","text":"emptied it"}]}`)}}, nil
			}
			put(func(*taskmodel.Question) {})
			return monitor.StartReply{}, &monitor.PagesError{Questions: []taskmodel.QuestionID{id}, Err: errors.New("ci: the server wants 1 page(s) visited first")}
		}
		mon.OnAnswer = func(taskmodel.Answer) error {
			put(func(q *taskmodel.Question) { q.State = taskmodel.QuestionAnswered })
			return nil
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("n").Type("drop").Press("enter", "ctrl+s")
		term.See("ci asks, for a call of drop_cache", "Unlock the key in your browser.", "xn--80ak6aa92e.com:8443", "Nothing is opened before you agree")
		term.See("refused until this is done", "a user name before the host", "Its port is 8443", "not encrypted")
		start := `start ci/drop_cache {} ttl=0s plain=true id=`
		wantCalls(t, mon, start)
		term.Press("y")
		term.See("Copied the address")
		term.Press("r") // not before consent
		wantCalls(t, mon, start)
		term.Press("ctrl+s") // consent without opening it here
		term.See("You agreed.", "r call again")
		term.Pass(10 * time.Second)
		term.See("nothing was sent to the server")
		put(func(q *taskmodel.Question) { q.Done = true })
		term.Settle()
		term.See("✓ Done", "again with r")
		term.Press("esc", "i")
		term.See("done there: call again", "drop_cache (call)")
		wantCalls(t, mon, start, "answer ci/page/1/e1 accept ")
		refuse = false
		term.Press("G")
		for range 3 {
			if strings.Contains(term.Row("▌"), "drop_cache (call)") {
				break
			}
			term.Press("k")
		}
		term.Press("enter", "r", "r") // twice, and called once
		term.See("The call is under way.")
		term.Pass(3 * time.Second)
		term.See("emptied it")
		wantCalls(t, mon, start, "answer ci/page/1/e1 accept ", start)
		term.Press("esc")
		term.See("over: the call was made again")
	})
}

// I10: where the person went on meanwhile nothing opens; a failed task opens its
// page with a.
func TestI10_PageWaitsInTheInbox(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "ci", ID: "page/1/e1"}
		mon.OnStart = func(monitor.StartRequest) (monitor.StartReply, error) {
			time.Sleep(5 * time.Second)
			mon.Change(func(b *board.Board) {
				b.PutQuestion(taskmodel.Question{ID: id, Task: key("ci", testsID), Tool: "run_tests", Kind: taskmodel.AskURL, State: taskmodel.QuestionOpen, AskedAt: time.Now(),
					Message: "Sign in to the lab.", URL: "https://lab.example/", Repeat: taskmodel.Call{Tool: "run_tests"}})
			})
			return monitor.StartReply{}, &monitor.PagesError{Questions: []taskmodel.QuestionID{id}, Err: errors.New("visit")}
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("n").Type("run_te").Press("enter", "ctrl+s", "esc", "esc", "esc")
		term.Pass(6 * time.Second)
		term.See("only when a page was visited; i shows it", "STATUS")
		term.Press("/").Type("status:failed").Press("enter", "a")
		term.See("ci asks, for run_tests", "lab.example", "Sign in to the lab.")
		term.Press("ctrl+d")
		term.See("sends nothing; the call is not made again")
	})
}

// I2: an answer was taken and the same key stays: answered, waiting for the
// server; nothing pops up and nothing is sent again but by hand, on consent.
func TestI2_AnsweredKeyThatStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "deploy", ID: "7f3a/approve"}
		mon.OnAnswer = func(taskmodel.Answer) error {
			mon.Change(func(b *board.Board) {
				q, _ := b.Question(id)
				q.State, q.SentAt = taskmodel.QuestionAnswered, time.Now()
				b.PutQuestion(q)
			})
			return nil
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("j", "a", "ctrl+s")
		term.See("Answered; waiting for deploy", "1 question ")
		bells := term.Bells()
		for i := range 20 { // the key stays in every state that is polled
			mon.Change(func(b *board.Board) {
				b.Change(key("deploy", deployID), time.Now(), func(t *taskmodel.Task) { t.Polls, t.LastHeardAt = 20+i, time.Now() })
			})
			mon.Emit(taskmodel.Event{Time: time.Now(), Server: "deploy", Task: key("deploy", deployID), Kind: taskmodel.EventQuestion, Question: id})
			term.Pass(5 * time.Second)
		}
		term.See("sorted by", "answered, waiting for")
		if term.Bells() != bells {
			t.Errorf("the bell rang %d times more", term.Bells()-bells)
		}
		sent := `answer deploy/7f3a/approve accept {"decision":"go","share":25}`
		wantCalls(t, mon, sent)
		term.Press("i")
		term.See("answered, waiting for the server")
		term.Press("t", "a") // by hand, and asked once
		term.See("Answered, waiting for the server.")
		term.Press("ctrl+s")
		term.See("Send once more?")
		term.Press("q")
		wantCalls(t, mon, sent)
		term.Press("ctrl+s", "y")
		wantCalls(t, mon, sent, sent)
	})
}

// A form whose server is lost stays open with what was typed, and says that there
// is no connection; an answer that could not go out leaves it open.
func TestFormSaysThatTheConnectionIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "deploy", ID: "7f3a/approve"}
		state := func(st taskmodel.ServerState, err string) {
			mon.Change(func(b *board.Board) {
				s, _ := b.Server("deploy")
				s.State, s.Error, s.RetryAt = st, err, time.Now().Add(4*time.Second)
				b.PutServer(s)
			})
		}
		term := run(t, mon, 100, 30, nil)
		term.Press("j", "a", "tab", "backspace", "backspace").Type("42")
		term.Miss("No connection")
		state(taskmodel.ServerRetrying, "deploy: asking how task 7f3a91c2-0000-4000-8000-000000002e7d stands: deploy.example cannot be reached: connect: connection refused")
		term.Settle()
		term.See("No connection now, retry in 4s; what you write is kept.", "42", "ctrl+s send")
		mon.Change(func(b *board.Board) {
			q, _ := b.Question(id)
			q.State, q.Refusal = taskmodel.QuestionRefused, taskmodel.NotSent+"127.0.0.1:8080 cannot be reached, connection refused"
			b.PutQuestion(q)
		})
		term.Settle()
		term.See("The answer was not sent: 127.0.0.1:8080 cannot be reached", "What you wrote is still here.", "42")
		term.Miss("refused the answer")
		state(taskmodel.ServerReady, "")
		term.Settle()
		term.Miss("No connection")
		term.Press("ctrl+s") // without a second question: nothing went out before
		wantCalls(t, mon, `answer deploy/7f3a/approve accept {"decision":"go","share":42}`)
	})
}

// S8: a task is gone at its TTL while its form is open: "gone", never "failed";
// the form closes to typing with a notice, and what was typed stays in view.
func TestS8_FormOfATaskThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mon := fleet()
		id := taskmodel.QuestionID{Server: "deploy", ID: "7f3a/approve"}
		term := run(t, mon, 100, 30, nil)
		term.Press("j", "a", "tab", "backspace", "backspace").Type("42")
		term.See("deploy asks, for deploy_release", "42")
		mon.Change(func(b *board.Board) {
			b.Change(key("deploy", deployID), time.Now(), func(t *taskmodel.Task) {
				t.Standing, t.Note = taskmodel.Expired, "its time to live is over; outcome unknown"
			})
			q, _ := b.Question(id)
			q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, "the task is gone, its outcome unknown"
			b.PutQuestion(q)
		})
		term.Settle()
		term.See("Withdrawn: the task is gone, its outcome unknown", "42")
		term.Type("7").Press("ctrl+s", "ctrl+d", "y")
		wantCalls(t, mon)
		term.Miss("427")
		term.Press("esc")
		term.See("deploy_release", "expired")
		if row := term.Row("deploy_release"); strings.Contains(row, "failed") {
			t.Errorf("the row says %q", row)
		}
	})
}

// What a person allows a form to cost holds for the form that is shown.
func TestFormsKeepToTheConfiguredLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limits form.Limits
		sees   []string
	}{
		"as they are":   {form.Limits{}, []string{"Decision", "Canary share"}},
		"fewer fields":  {form.Limits{Fields: 1}, []string{"at most 1 are shown", "limits.schema_fields", "JSON only"}},
		"fewer levels":  {form.Limits{Depth: 2}, []string{"nested more than 2", "limits.schema_depth", "JSON only"}},
		"fewer bytes":   {form.Limits{Bytes: 20}, []string{"at most 20 are read", "(limits.schema)", "JSON only"}},
		"fewer choices": {form.Limits{Options: 1}, []string{"at most 1 are shown", "limits.schema_choices", "Canary share"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				term := run(t, fleet(), 130, 40, func(o *ui.Options) { o.Schema = tc.limits })
				term.Press("j", "a")
				term.See(tc.sees...)
			})
		})
	}
}
