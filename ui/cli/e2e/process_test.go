//go:build linux

package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp/peers"
	"mcptasks/mcp/proctest"
)

// descendants are the processes that a process has started, at any depth.
func descendants(pid int) []int { return proctest.Family(pid)[1:] }

// killServer kills the stdio server that the user's holder has started.
func (u *user) killServer() {
	u.t.Helper()
	all := descendants(u.holder)
	if len(all) == 0 {
		u.t.Fatal("the holder has started no server")
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// reconnects lets the server lose all it knows. Its task is shown as gone, not
// as failed, and the server can be used again.
func reconnects(tool string, args ...string) step {
	return step{"reconnect", func(t *testing.T, u *user) {
		s := u.start(tool, args...)
		u.restart()
		var all []task
		u.eventually("the server back and its task gone", func() bool {
			r := u.run("", "servers", "-o", "json")
			if r.code != 0 {
				return false
			}
			u.run("", "get", s.name())
			u.read(0, &all, "ls")
			i := slices.IndexFunc(all, func(x task) bool { return x.TaskID == s.TaskID })
			return i >= 0 && all[i].Standing == "gone"
		})
		i := slices.IndexFunc(all, func(x task) bool { return x.TaskID == s.TaskID })
		if all[i].Status != s.Status && all[i].Status != "working" && all[i].Status != "input_required" || all[i].Note == "" {
			t.Errorf("%+v", all[i])
		}
		u.fault(1, "failed", "get", s.name())
		u.cancel(u.start(tool, args...).name())
	}}
}

// inItsSession is reconnects where the server has sessions: the row tells that
// the session is what was forgotten, apart from the task (issue D 2).
func inItsSession(has bool, s step) step {
	if !has {
		return s
	}
	return step{s.op, func(t *testing.T, u *user) {
		s.do(t, u)
		var all []task
		u.read(0, &all, "ls")
		if !slices.ContainsFunc(all, func(x task) bool {
			return x.Standing == "gone" && strings.Contains(x.Note, "has forgotten the session")
		}) {
			t.Errorf("nothing says that the session is forgotten: %+v", all)
		}
	}}
}

// TestInterrupted: SIGINT and SIGTERM end a command with 130 and leave no
// process behind, whatever it was doing.
func TestInterrupted(t *testing.T) {
	for _, c := range []struct {
		name    string
		command func(t *testing.T) []string
		args    []string
		signal  syscall.Signal
	}{
		{"start --wait on a real server", func(t *testing.T) []string { return peers.Command(t, "everything") },
			[]string{"start", "p", "simulate-research-query", "topic=moss", "--wait"}, syscall.SIGINT},
		{"watch", demoServer, []string{"watch"}, syscall.SIGINT},
		{"start --wait", demoServer, []string{"start", "p", "reindex_search", "index=x", "--wait"}, syscall.SIGINT},
		{"terminated", demoServer, []string{"start", "p", "reindex_search", "index=x", "--wait"}, syscall.SIGTERM},
		{"hung up", demoServer, []string{"start", "p", "reindex_search", "index=x", "--wait"}, syscall.SIGHUP},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, "p="+quoted(c.command(t)))
			r := u.begin(c.args...)
			u.eventually("a server", func() bool { return len(descendants(r.cmd.Process.Pid)) > 0 })
			children := descendants(r.cmd.Process.Pid)
			if c.args[0] == "start" {
				// A second process sees the task before the first is stopped.
				u.eventually("a task", func() bool { return strings.Contains(u.run("", "ls").out, "working") })
				children = descendants(r.cmd.Process.Pid)
			}
			r.signal(c.signal)
			if s := r.rest(); s.code != 130 {
				t.Errorf("exit %d, want 130: %s%s", s.code, s.out, s.err)
			}
			for _, pid := range children {
				u.eventually(fmt.Sprintf("the end of process %d", pid), func() bool { return !proctest.Alive(pid) })
			}
		})
	}
}

func demoServer(*testing.T) []string { return []string{program, "demo-server"} }

// TestBrokenPipe: a reader that goes away ends the program quietly and soon.
func TestBrokenPipe(t *testing.T) {
	for _, args := range [][]string{
		{"tools", "p"}, {"ls"}, {"ls", "-o", "jsonl"}, {"watch"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			u := newUser(t, "p="+quoted([]string{program, "demo-server", "--tasks", "300"}))
			cmd := exec.Command("sh", "-c", `"$@" | head -1; exit 0`)
			inner := u.command(t.Context(), args...)
			cmd.Args = append(append(cmd.Args, "sh"), inner.Args...)
			cmd.Dir, cmd.Env = inner.Dir, inner.Env
			began := time.Now()
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Count(string(out), "\n") > 2 || strings.Contains(string(out), "panic") || strings.Contains(string(out), "goroutine") {
				t.Errorf("%v: %s", err, out)
			}
			if d := time.Since(began); d > 30*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}
