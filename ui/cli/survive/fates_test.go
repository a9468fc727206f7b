//go:build linux

package survive

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/proctest"
	"mcptasks/taskmodel"
)

// D 2: over HTTP the next run takes up the old session, and quitting sends no
// DELETE while tasks of that session run. What then became of a task is told
// apart: the server lost it, forgot its session, or does not show it to this
// sign-in; a session that is forgotten with its tasks kept loses nothing.
func TestFatesOfATaskOfAnEarlierRun(t *testing.T) {
	none := func(m message) (int, string) {
		switch m.Method {
		case "tasks/get", "tasks/result", "tasks/cancel":
			return 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"Task not found"}}`, m.ID)
		case "tasks/list":
			return 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tasks":[]}}`, m.ID)
		}
		return 0, ""
	}
	for _, c := range []struct {
		name     string
		befalls  func(p *place)
		standing string
		note     string
		sessions int // that the next run asks for
	}{
		{"all is well", func(*place) {}, "live", "", 0},
		{"the task is lost", func(p *place) { p.answers(none) }, "gone", "the server does not know this task any more", 0},
		{"the session is forgotten, and the task with it", func(p *place) { p.demo.DropSessions(); p.answers(none) }, "gone",
			"the server has forgotten the session in which the task ran", 1},
		{"the session is forgotten, the task is not", func(p *place) { p.demo.DropSessions() }, "live", "", 1},
		{"not visible to this sign-in", func(p *place) {
			p.answers(func(m message) (int, string) {
				switch m.Method {
				case "tasks/get":
					return 403, `{"error":"forbidden"}`
				case "tasks/list":
					return 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tasks":[]}}`, m.ID)
				}
				return 0, ""
			})
		}, "stale", "not visible to this sign-in", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, taskmodel.GenCore, true, 1)
			u := newUser(t, p)
			var x task
			u.read(&x, "start", "p", "reindex_search", "index=idx-1")
			if n := p.count("DELETE"); n != 0 {
				t.Errorf("the session of a task that runs was ended %d times", n)
			}
			before := p.count("initialize")
			c.befalls(p)
			watch := u.begin("watch")
			var now task
			eventually(t, fmt.Sprintf("%s %q", c.standing, c.note), func() bool {
				for _, line := range strings.Split(watch.out.String(), "\n") {
					var e struct{ Task *task }
					if json.Unmarshal([]byte(line), &e) == nil && e.Task != nil && e.Task.Standing == c.standing && strings.Contains(e.Task.Note, c.note) {
						now = *e.Task
						return true
					}
				}
				return false
			})
			if now.Status != "working" || now.Tool != "reindex_search" {
				t.Errorf("%+v", now)
			}
			if n := p.count("initialize") - before; n != c.sessions {
				t.Errorf("%d new sessions were asked for, want %d", n, c.sessions)
			}
			if c.standing == "gone" {
				// What the watch has said is written down a moment later.
				var all []task
				if !proctest.Until(200*time.Millisecond, func() bool {
					u.read(&all, "ls")
					return len(all) == 1 && all[0].Standing == "gone" && strings.Contains(all[0].Note, c.note)
				}) {
					t.Errorf("beside it: %+v", all)
				}
			}
			watch.stop(t)
		})
	}
}

// D 2: what an earlier run knew is on the screen although no server answers.
func TestRestoredBeforeTheServerAnswers(t *testing.T) {
	for _, gen := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension, taskmodel.GenDraft} {
		t.Run(string(gen), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, gen, true, 1)
			u := newUser(t, p)
			var x task
			u.read(&x, "start", "p", "reindex_search", "index=idx-1")
			p.web.Close() // nobody answers
			s := u.screens()
			eventually(t, "the task of the earlier run, restored", func() bool {
				return strings.Contains(s.out.String(), "reindex_search") && strings.Contains(s.out.String(), "restored")
			})
			s.press("q")
			s.wait(t)
			if r := u.run("get", x.name(), "-o", "json"); r.code == 4 {
				t.Errorf("it is said not to be known: %s%s", r.out.String(), r.errs.String())
			}
		})
	}
}
