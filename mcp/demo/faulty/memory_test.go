package faulty

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/jsonrpc"
)

// A heard is one thing that came, and when.
type heard struct {
	at   time.Duration
	text string
}

// A raw is a client that sends text and keeps what comes.
type raw struct {
	t     *testing.T
	conn  jsonrpc.Conn
	begun time.Time

	mu  sync.Mutex
	got []heard
}

func (c *raw) Message(b json.RawMessage, _ string, _ jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, heard{time.Since(c.begun), string(b)})
}
func (c *raw) Failed(id jsonrpc.ID, err error) { c.t.Errorf("%s failed: %v", id, err) }
func (c *raw) Noise(kind string, _ []byte)     { c.t.Errorf("noise: %s", kind) }

func (c *raw) send(format string, a ...any) {
	_ = c.conn.Send(context.Background(), jsonrpc.Outgoing{Bytes: fmt.Appendf(nil, format, a...)})
}

// having are the messages with this in them.
func (c *raw) having(part string) []heard {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []heard
	for _, h := range c.got {
		if strings.Contains(h.text, part) {
			out = append(out, h)
		}
	}
	return out
}

const hello = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

// dial connects and shakes hands.
func dial(t *testing.T, s *Server) *raw {
	t.Helper()
	c, err := s.Dialer().Dial(t.Context(), "legacy")
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{t: t, conn: c, begun: time.Now()}
	if err := c.Start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	r.send("%s", hello)
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	synctest.Wait()
	return r
}

func broken(t *testing.T, script string, tasks int) *Server {
	t.Helper()
	s, err := New(demo.Options{Tasks: tasks, Seed: 1}, script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Each fault of a message, in memory: three pings, the second of which is hit.
func TestMessageFaults(t *testing.T) {
	for _, tc := range []struct {
		script string
		want   []string // what comes to 1, 2, 3, in order, as "seconds text"
	}{
		{"", []string{`0 {"jsonrpc":"2.0","id":1,"result":{}}`, `0 {"jsonrpc":"2.0","id":2,"result":{}}`, `0 {"jsonrpc":"2.0","id":3,"result":{}}`}},
		{"response:ping#2 late 5s", []string{`0 "id":1`, `0 "id":3`, `5 "id":2`}},
		{"response:ping#2 never", []string{`0 "id":1`, `0 "id":3`}},
		{"request:ping#2 never", []string{`0 "id":1`, `0 "id":3`}},
		{"request:ping#2 late 3s", []string{`0 "id":1`, `0 "id":3`, `3 "id":2`}},
		{"response:ping#2 twice", []string{`0 "id":1`, `0 "id":2`, `0 "id":2`, `0 "id":3`}},
		{"response:ping#2 repeat 3", []string{`0 "id":1`, `0 "id":2`, `0 "id":2`, `0 "id":2`, `0 "id":3`}},
		{"response:ping#2 swap", []string{`0 "id":1`, `0 "id":3`, `0 "id":2`}},
		{"response:ping#3 swap", []string{`0 "id":1`, `0 "id":2`, `2 "id":3`}},
		{`response:ping#2 id "stranger"`, []string{`0 "id":1`, `0 "id":"stranger"`, `0 "id":3`}},
		{"response:ping#2 error -32603 out of luck", []string{`0 "id":1`, `0 "error":{"code":-32603,"message":"out of luck"},"id":2`, `0 "id":3`}},
		{"response:ping#2 broken", []string{`0 "id":1`, `0 {"jsonrpc":"2.0",`, `0 "id":3`}},
		{"response:ping#2 text starting up…", []string{`0 "id":1`, `0 starting up…`, `0 "id":3`}},
		{"response:ping#2 before {}", []string{`0 "id":1`, `0 {}`, `0 "id":2`, `0 "id":3`}},
		{"response:ping#2 set result.x [1]", []string{`0 "id":1`, `0 "result":{"x":[1]}`, `0 "id":3`}},
		{"response:ping#2 unset result", []string{`0 "id":1`, `0 {"id":2,"jsonrpc":"2.0"}`, `0 "id":3`}},
		{"response:ping#2 slowly 100ms", []string{`0 "id":1`, `0 "id":3`, `3.6 "id":2`}},
		{"response:ping#2*2 never; response:ping never", []string{}},
		{"response:ping* never", []string{}},
		{"response* never", []string{}},
		{"response:ping#2 halfclose", []string{`0 "id":1`}},
		{"response:ping#2 hang", []string{`0 "id":1`}},
	} {
		t.Run(tc.script, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := broken(t, "", 0)
				c := dial(t, s)
				if err := s.Add(tc.script); err != nil {
					t.Fatal(err)
				}
				c.got, c.begun = nil, time.Now()
				for i := 1; i <= 3; i++ {
					c.send(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)
					synctest.Wait()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(c.got) != len(tc.want) {
					t.Fatalf("got %v", c.got)
				}
				for i, w := range tc.want {
					at, text, _ := strings.Cut(w, " ")
					if !strings.Contains(c.got[i].text, text) || fmt.Sprint(c.got[i].at.Seconds()) != at {
						t.Errorf("%d: got %v, want %s", i, c.got[i], w)
					}
				}
				if tc.script != "" && len(s.Fired()) == 0 {
					t.Error("nothing fired")
				}
			})
		})
	}
}

// A message of 20 MB comes whole.
func TestBig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := broken(t, "response:ping big 20000000", 0)
		c := dial(t, s)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		synctest.Wait()
		last := c.got[len(c.got)-1].text
		if n := len(last); n < 19_999_000 || n > 20_000_100 || !json.Valid([]byte(last)) {
			t.Errorf("%d bytes", n)
		}
	})
}

// Each fault of a connection, in memory, and that a new one is well.
func TestConnectionFaults(t *testing.T) {
	for _, tc := range []struct {
		script string
		err    error
		tasks  bool // the tasks are still there afterwards
	}{
		{"response:ping close", errClosed, true},
		{"response:ping reset", errReset, true},
		{"response:ping crash 3", errReset, false},
		{"response:ping restart keep", errRestarted, true},
		{"response:ping restart lose", errRestarted, false},
		{"request:ping close", errClosed, true},
	} {
		t.Run(tc.script, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := broken(t, tc.script, 5)
				id := s.Demo().Handles()[0].ID
				c := dial(t, s)
				c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				<-c.conn.Done()
				if !errors.Is(c.conn.Err(), tc.err) {
					t.Errorf("ended with %v", c.conn.Err())
				}
				if len(c.having(`"id":1`)) != 0 {
					t.Error("answered all the same")
				}
				if err := c.conn.Send(t.Context(), jsonrpc.Outgoing{Bytes: []byte("{}")}); err == nil {
					t.Error("a connection that has ended takes messages")
				}
				again := dial(t, s)
				again.send(`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":%q}}`, id)
				synctest.Wait()
				if found := len(again.having(`"taskId":"`+id)) > 0; found != tc.tasks {
					t.Errorf("tasks there: %v, want %v: %v", found, tc.tasks, again.got)
				}
			})
		})
	}
}

// Faults at the beginning of a connection.
func TestStartFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := broken(t, "start close; start#2 late 4s; start#3 hang", 0)
		if _, err := s.Dialer().Dial(t.Context(), ""); !errors.Is(err, errClosed) {
			t.Errorf("first: %v", err)
		}
		begun := time.Now()
		c := dial(t, s)
		if d := time.Since(begun); d != 4*time.Second || len(c.got) == 0 {
			t.Errorf("second: after %v, %v", d, c.got)
		}
		c = dial(t, s)
		time.Sleep(time.Minute)
		if len(c.got) != 0 {
			t.Errorf("third: %v", c.got)
		}
		if c = dial(t, s); len(c.got) == 0 {
			t.Error("fourth: not well again")
		}
		if !strings.HasPrefix(c.s().Dialer().Kind(), "stdio") {
			t.Error("kind")
		}
	})
}

func (c *raw) s() *Server { return c.conn.(*conn).s }

// Notifications are lost, repeated and late; a clock steps back.
func TestNotificationFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := broken(t, "notification:notifications/tasks/status never; notification:notifications/tasks/status#2 repeat 3; notification:notifications/tasks/status#3 late 30s", 0)
		c := dial(t, s)
		start := func(n int) {
			c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"reindex_search","arguments":{"index":"a"},"task":{}}}`, n)
			synctest.Wait()
		}
		count := func() int { return len(c.having(`"notifications/tasks/status"`)) }
		start(1)
		if count() != 0 {
			t.Error("not lost")
		}
		start(2)
		if count() != 3 {
			t.Errorf("%d, not repeated", count())
		}
		start(3)
		if count() != 3 {
			t.Error("not late")
		}
		time.Sleep(31 * time.Second)
		if count() != 4 {
			t.Error("lost, not late")
		}
		if err := s.Add("request:tools/call clock -1h"); err != nil {
			t.Fatal(err)
		}
		start(4)
		want := time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04")
		if len(c.having(`"createdAt":"`+want)) == 0 {
			t.Errorf("no time of %s: %v", want, c.got[len(c.got)-1])
		}
		s.Clear()
		before := count()
		start(5)
		if count() != before+1 {
			t.Error("after Clear all is well")
		}
	})
}

// Questions, answers and what the client tells can be hit too.
func TestOtherPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := broken(t, `told:notifications/cancelled never; question:elicitation/create set params.message "Changed"; answer:elicitation/create never`, 0)
		c := dial(t, s)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy_release","arguments":{"service":"api","version":"v1.0.0"},"task":{}}}`)
		synctest.Wait()
		var made struct {
			Result struct{ Task struct{ TaskID string } }
		}
		_ = json.Unmarshal([]byte(c.having(`"id":1`)[0].text), &made)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":%q}}`, made.Result.Task.TaskID)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		asked := c.having(`"elicitation/create"`)
		if len(asked) != 1 || !strings.Contains(asked[0].text, `"Changed"`) {
			t.Fatalf("asked: %v", asked)
		}
		var q struct{ ID json.RawMessage }
		_ = json.Unmarshal([]byte(asked[0].text), &q)
		c.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, q.ID)
		time.Sleep(time.Minute)
		if len(c.having(`"id":2`)) != 0 {
			t.Error("the answer was to be lost")
		}
		if got := strings.Join(s.Fired(), "|"); !strings.Contains(got, "told:") || !strings.Contains(got, "question:") || !strings.Contains(got, "answer:") {
			t.Errorf("fired: %s", got)
		}
	})
}

// What is no script says so.
func TestScripts(t *testing.T) {
	for _, bad := range []string{
		"nowhere close", "response explode", "response late", "response late soon", "response#0 never", "response#x never",
		"response*0 never", "response*x never", "response set", "response repeat x", "response id", "response",
	} {
		if _, err := parse(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("response never\nget close\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(demo.Options{Seed: 1}, "@"+file)
	if err != nil || len(s.book.rules) != 2 {
		t.Fatalf("from a file: %v", err)
	}
	s.Close()
	if _, err := New(demo.Options{}, "@"+file+".not"); err == nil {
		t.Error("a file that is not there")
	}
	rules, err := parse("# a comment\nresponse:tasks/get#2*3 late 3s ; post set x \"a;b\"\n\n get:* close")
	if err != nil || len(rules) != 3 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	if r := rules[0]; r.point != "response" || r.method != "tasks/get" || r.nth != 2 || r.times != 3 || r.wait != 3*time.Second {
		t.Errorf("got %+v", r)
	}
	if rules[1].arg != `x "a;b"` || rules[2].method != "" {
		t.Errorf("got %+v %+v", rules[1], rules[2])
	}
	var k book
	if err := k.add(`response:tasks/get~"completed"#2 reset; response:*~working close`); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		method, message, does string
	}{
		{"tasks/get", `{"status":"completed"}`, ""}, {"tasks/list", `{"status":"completed"}`, ""}, {"tasks/get", `{"status":"failed"}`, ""},
		{"tasks/get", `{"status":"completed"}`, "reset"}, {"tasks/list", `{"status":"working"}`, "close"}, {"tasks/get", `{"status":"completed"}`, ""},
	} {
		does := ""
		if r := k.due("response", c.method, []byte(c.message)); r != nil {
			does = r.action
		}
		if does != c.does {
			t.Errorf("message %d: %q, want %q", i, does, c.does)
		}
	}
}

// Paths reach into arrays, and what cannot be reached is left alone.
func TestPaths(t *testing.T) {
	in := `{"result":{"tasks":[{"ttl":1},{"ttl":2}]}}`
	for _, tc := range []struct{ path, value, want string }{
		{"result.tasks.1.ttl", `"x"`, `{"result":{"tasks":[{"ttl":1},{"ttl":"x"}]}}`},
		{"result.nextCursor", `"A"`, `{"result":{"nextCursor":"A","tasks":[{"ttl":1},{"ttl":2}]}}`},
		{"result.tasks.0.ttl", "", `{"result":{"tasks":[{},{"ttl":2}]}}`},
	} {
		var got []byte
		var err error
		if tc.value == "" {
			got, err = unsetPath([]byte(in), tc.path)
		} else {
			got, err = setPath([]byte(in), tc.path, json.RawMessage(tc.value))
		}
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v", tc.path, got, err)
		}
	}
	for _, bad := range []string{"result.tasks.7.ttl", "result.tasks.x"} {
		if _, err := setPath([]byte(in), bad, json.RawMessage("1")); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if _, err := setPath([]byte(in), "result", json.RawMessage("{")); err == nil {
		t.Error("a value that is no JSON")
	}
}
