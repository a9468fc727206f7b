//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A step proves one operation on one peer; its op is a row of mcp/PEERS.md.
type step struct {
	op string
	do func(t *testing.T, u *user)
}

// Every peer is the server p.

// start starts a tool as a task of p.
func (u *user) start(tool string, args ...string) task {
	u.t.Helper()
	var t task
	u.read(0, &t, append([]string{"start", "p", tool}, args...)...)
	if t.Server != "p" || t.TaskID == "" || t.Tool != tool || t.Role != "requestor" || t.Standing != "live" {
		u.t.Fatalf("start %s: %+v", tool, t)
	}
	return t
}

func (u *user) get(t task) task {
	u.t.Helper()
	var now task
	u.read(0, &now, "get", t.name())
	return now
}

// asked waits for a task's open questions to number n and gives them.
func (u *user) asked(t task, n int) []input {
	u.t.Helper()
	var open []input
	u.eventually(fmt.Sprintf("%d open questions of %s", n, t.Tool), func() bool {
		now := u.get(t)
		open = slices.DeleteFunc(now.Inputs, func(i input) bool { return i.Answered })
		if now.Status == "completed" || now.Status == "failed" || now.Status == "cancelled" {
			u.t.Fatalf("%s is %s (%s) and has not asked", t.Tool, now.Status, now.StatusMessage)
		}
		// Where a question comes only to who wants to answer it, answer opens its way.
		return len(open) >= n || n == 1 && now.Status == "input_required"
	})
	return open
}

// cancel asks for a task's end. Where the program says that it cannot know
// whether the server heard it, it is asked again, as a person would.
func (u *user) cancel(name string) {
	u.t.Helper()
	u.eventually("the cancellation of "+name, func() bool {
		s := u.run("", "cancel", name)
		unsure := strings.Contains(s.err, "it is not known whether the server took it")
		if s.code != 0 && !unsure && !strings.Contains(s.err, "ended as cancelled") {
			u.t.Fatalf("mcptasks cancel %s: exit %d\n%s\n%s", name, s.code, s.out, s.err)
		}
		if unsure {
			u.t.Logf("once more: %s", s.err)
		}
		return !unsure
	})
}

func started(gen, tool string, args ...string) step {
	return step{"start", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		if s.Generation != gen {
			t.Errorf("generation %q, want %q", s.Generation, gen)
		}
		if now := u.get(s); now.TaskID != s.TaskID || now.Status == "" {
			t.Errorf("get: %+v", now)
		}
		u.cancel(s.name())
	}}
}

// listed starts a task and lists it: where others is true as somebody who knows
// nothing of it. Where the server is held, its holder tells.
func listed(others bool, tool string, args ...string) step {
	return step{"list", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		var all []task
		if others {
			u.stranger().sub(t).read(0, &all, "ls")
		} else {
			u.read(0, &all, "ls")
		}
		if !slices.ContainsFunc(all, func(x task) bool { return x.TaskID == s.TaskID && x.Standing == "live" }) {
			t.Errorf("%s is not among the %d tasks that the server lists", s.TaskID, len(all))
		}
		if err := u.want(0, "ls", "--filter", "id:"+s.TaskID); !strings.Contains(err.out, s.TaskID) {
			t.Errorf("ls --filter: %s", err.out)
		}
	}}
}

// takenUp: where nothing lists, what was started here is remembered, and others
// take it up by its id. others is false where a task is its connection's.
func takenUp(others bool, tool string, args ...string) step {
	return step{"list", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		var all []task
		u.read(0, &all, "ls", "--status", "working,completed")
		if !slices.ContainsFunc(all, func(x task) bool { return x.TaskID == s.TaskID && x.Tool == tool }) {
			t.Errorf("%s is not remembered: %+v", s.TaskID, all)
		}
		var servers []struct{ Can struct{ List, Start bool } }
		u.read(0, &servers, "servers")
		if len(servers) != 1 || servers[0].Can.List || !servers[0].Can.Start {
			t.Errorf("servers: %+v", servers)
		}
		if !others {
			return
		}
		o := u.stranger().sub(t)
		o.read(0, &all, "ls")
		if len(all) != 0 {
			t.Errorf("a stranger sees %+v", all)
		}
		var now task
		o.read(0, &now, "add", "p", s.TaskID)
		if now.TaskID != s.TaskID || now.Standing != "live" {
			t.Errorf("add: %+v", now)
		}
	}}
}

func polled(tool string, args ...string) step {
	return step{"poll", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		var now task
		u.read(0, &now, "wait", s.name())
		if now.Status != "completed" || now.Standing != "live" || now.Tool != tool {
			t.Errorf("wait: %+v", now)
		}
	}}
}

// resulted reads a result in every way there is: with start --wait, later by
// its own command as text and JSON, and as files.
func resulted(want, tool string, args ...string) step {
	return step{"result", func(t *testing.T, u *user) {
		var e end
		u.read(0, &e, append([]string{"start", "p", tool, "--wait"}, args...)...)
		if e.Task == nil || e.Task.Status != "completed" || e.TaskID == "" || !strings.Contains(e.text(), want) {
			t.Fatalf("start --wait: %+v", e)
		}
		name := u.start(tool, args...).name()
		e = end{}
		u.read(0, &e, "result", name)
		if e.Error != nil || !strings.Contains(e.text(), want) {
			t.Errorf("result: %+v", e)
		}
		if s := u.want(0, "result", name); !strings.Contains(s.out, want) {
			t.Errorf("result as text: %s", s.out)
		}
		dir := t.TempDir()
		var saved struct{ Files []string }
		u.read(0, &saved, "result", name, "--save", dir)
		all := ""
		for _, f := range saved.Files {
			b, err := os.ReadFile(f)
			if err != nil || filepath.Dir(f) != dir {
				t.Errorf("%s: %v", f, err)
			}
			all += string(b)
		}
		if !strings.Contains(all, want) {
			t.Errorf("saved %v: %q", saved.Files, all)
		}
	}}
}

// asks: a question refused when its answer does not fit (nothing is sent),
// answered, declined, and answered by --on-input.
func asks(good, bad, want, declined, tool string, args ...string) step {
	return step{"question", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		u.asked(s, 1)
		u.fault(2, "usage", "answer", s.name(), "--accept", bad)
		u.want(0, "answer", s.name(), "--accept", good)
		u.want(0, "wait", s.name())
		var e end
		u.read(0, &e, "result", s.name())
		if !strings.Contains(e.text(), want) {
			t.Errorf("answered: %+v", e)
		}
		if m := u.fault(1, "failed", "answer", s.name(), "--accept", good); !strings.Contains(m, "asks nothing") {
			t.Errorf("answered again: %s", m)
		}

		s = u.start(tool, args...)
		u.asked(s, 1)
		u.want(0, "answer", s.name(), "--decline")
		r := u.run("", "result", s.name())
		if !strings.Contains(r.out, declined) {
			t.Errorf("declined: exit %d %s%s", r.code, r.out, r.err)
		}

		call := append([]string{"start", "p", tool, "--wait"}, args...)
		u.read(0, &e, append(call, "--on-input", "accept="+good)...)
		if !strings.Contains(e.text(), want) {
			t.Errorf("--on-input accept: %+v", e)
		}
		if r := u.run("", append(call, "--on-input", "decline")...); !strings.Contains(r.out, declined) {
			t.Errorf("--on-input decline: exit %d %s%s", r.code, r.out, r.err)
		}
		u.fault(2, "usage", append(call, "--on-input", "accept="+bad)...)
		u.fault(6, "input_needed", append(call, "--on-input", "exit")...)
	}}
}

// A reply is the content for the question whose message holds the word.
type reply struct{ word, content string }

// rounds answers questions as they come and wants the result. Where a question
// shows only to who opens its way, the next in turn is answered.
func rounds(replies []reply, want, tool string, args ...string) step {
	return step{"several rounds", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		left := slices.Clone(replies)
		u.eventually("all rounds", func() bool {
			now := u.get(s)
			if now.Status == "completed" || now.Status == "failed" {
				return true
			}
			shown := false
			for _, q := range now.Inputs {
				shown = shown || !q.Answered
				i := slices.IndexFunc(left, func(r reply) bool { return strings.Contains(q.Message, r.word) })
				if !q.Answered && i >= 0 {
					u.want(0, "answer", s.name(), "--key", q.Key, "--accept", left[i].content)
					left = slices.Delete(left, i, i+1)
				}
			}
			if now.Status == "input_required" && !shown && len(left) > 0 {
				if u.run("", "answer", s.name(), "--accept", left[0].content).code == 0 {
					left = left[1:]
				}
			}
			return false
		})
		var e end
		u.read(0, &e, "result", s.name())
		if !strings.Contains(e.text(), want) || len(left) > 0 {
			t.Errorf("%d left: %+v", len(left), e)
		}
	}}
}

func toolError(want, tool string, args ...string) step {
	return step{"tool error", func(t *testing.T, u *user) {
		var e end
		u.read(1, &e, append([]string{"start", "p", tool, "--wait"}, args...)...)
		if e.Result == nil || !e.Result.IsError || !strings.Contains(e.text(), want) || e.Task == nil {
			t.Errorf("%+v", e)
		}
		name := u.start(tool, args...).name()
		u.want(1, "wait", name)
		e = end{}
		u.read(1, &e, "result", name)
		if e.Result == nil || !strings.Contains(e.text(), want) {
			t.Errorf("later: %+v", e)
		}
	}}
}

func protocolError(want, tool string, args ...string) step {
	return step{"protocol error", func(t *testing.T, u *user) {
		var e end
		u.read(1, &e, append([]string{"start", "p", tool, "--wait"}, args...)...)
		if e.Error == nil || e.Task.Generation != draft && e.Error.Code == 0 || !strings.Contains(e.Error.Message, want) || e.Task == nil || e.Task.Status != "failed" {
			t.Errorf("%+v", e)
		}
	}}
}

// refusedID: the server refuses an id that it does not know.
func refusedID() step {
	return step{"protocol error", func(t *testing.T, u *user) {
		for _, args := range [][]string{{"get"}, {"cancel"}, {"result"}, {"wait"}} {
			u.fault(4, "not_found", append(args, "p/0ff0a7a2-0000-4000-8000-000000000000")...)
		}
	}}
}

func cancelled(tool string, args ...string) step {
	return step{"cancel", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		u.fault(5, "readonly", "cancel", s.name(), "--readonly")
		u.cancel(s.name())
		var now task
		u.read(1, &now, "wait", s.name())
		if now.Status != "cancelled" {
			t.Errorf("wait: %+v", now)
		}
		u.want(1, "result", s.name())
		if s := u.run("", "cancel", s.name()); s.code == 0 || !strings.Contains(s.err, "cancelled") {
			t.Errorf("cancelled twice: exit %d %s", s.code, s.err)
		}
	}}
}

// expires starts a task that its server gives up in the end.
func expires(tool string, args ...string) step {
	return step{"expiry", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		var now task
		u.eventually("the end of "+s.Tool+"'s time", func() bool {
			if r := u.run("", "get", s.name(), "-o", "json"); r.code != 1 {
				return false
			}
			// A few looks pass before "not found" is believed.
			var all []task
			u.read(0, &all, "ls")
			for _, x := range all {
				if x.TaskID == s.TaskID {
					now = x
				}
			}
			return now.Standing != "live"
		})
		if now.Standing != "expired" && now.Standing != "gone" || now.Note == "" || now.Status == "failed" {
			t.Errorf("%+v", now)
		}
		u.want(1, "wait", s.name())
	}}
}

// codes are the exit codes that need no task of a special kind: long is a tool
// that works for a while; with ages it works on, asking nothing, for as long as
// any command takes.
func codes(ages bool, long string, args ...string) step {
	return step{"exit codes", func(t *testing.T, u *user) {
		u.fault(5, "readonly", append([]string{"start", "p", long, "--readonly"}, args...)...)
		u.fault(2, "usage", "start", "p", "no-such-tool")
		u.fault(2, "usage", "start", "p", long, "no-such-argument=1", "--args", "{}")
		u.fault(2, "usage", "start", "nobody", long)
		s := u.start(long, args...)
		u.fault(5, "readonly", "answer", s.name(), "--decline", "--readonly")
		if ages {
			late := u.want(7, "wait", s.name(), "--timeout", "5s", "-o", "json")
			if !strings.Contains(late.out, s.TaskID) || !strings.Contains(late.err, `"timeout"`) {
				t.Errorf("timeout: %s%s", late.out, late.err)
			}
		}
		// Each is tried: what succeeds is printed, the worst code wins.
		both := u.want(4, "get", s.name(), "p/nobody-knows-this", "-o", "json")
		if !strings.Contains(both.out, s.TaskID) || !strings.HasPrefix(both.out, "[") {
			t.Errorf("two tasks: %s", both.out)
		}
		u.cancel(s.name())
		if r := u.want(0, "history", s.name()); !strings.Contains(r.out, "cancel") {
			t.Errorf("history: %s", r.out)
		}
	}}
}
