//go:build linux

package survive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp/proctest"
	"mcptasks/taskmodel/journal"
)

// A user runs the program with a home and a state of their own.
type user struct {
	t     testing.TB
	bin   string
	home  string
	flags []string
}

func newUser(t testing.TB, p *place) *user {
	u := &user{t: t, bin: program(t), home: t.TempDir()}
	if p != nil {
		u.flags = []string{"-s", "p=" + p.target}
		if p.gen == "draft" {
			u.flags = append(u.flags, "--set", "p.generation=draft")
		}
	}
	return u
}

func (u *user) state() string { return filepath.Join(u.home, "state") }

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(u.bin, append(append([]string{"--state", u.state()}, u.flags...), args...)...)
	cmd.Dir = u.home
	cmd.Env = []string{"HOME=" + u.home, "XDG_CONFIG_HOME=" + u.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// A running is a command that goes on beside the test.
type running struct {
	cmd  *exec.Cmd
	out  buffer
	errs buffer
	done chan struct{}
	code int
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (u *user) begin(args ...string) *running {
	u.t.Helper()
	r := u.ready(args...)
	r.start(u.t)
	return r
}

// ready is a command that has not been started yet.
func (u *user) ready(args ...string) *running {
	r := &running{cmd: u.command(args...), done: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.errs
	return r
}

func (r *running) start(t testing.TB) {
	t.Helper()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		err := r.cmd.Wait()
		var exit *exec.ExitError
		if r.code = -1; err == nil {
			r.code = 0
		} else if errors.As(err, &exit) {
			r.code = exit.ExitCode()
		}
		close(r.done)
	}()
	t.Cleanup(func() {
		r.kill()
		<-r.done
	})
}

// kill is kill -9 of the program alone.
func (r *running) kill() { _ = r.cmd.Process.Signal(syscall.SIGKILL) }

// stop is what a person's ctrl+c does.
func (r *running) stop(t testing.TB) {
	t.Helper()
	_ = r.cmd.Process.Signal(syscall.SIGINT)
	r.wait(t)
}

func (r *running) wait(t testing.TB) {
	t.Helper()
	select {
	case <-r.done:
	case <-time.After(proctest.Patience):
		t.Fatalf("%v has not ended\n%s%s", r.cmd.Args, r.out.String(), r.errs.String())
	}
}

func (u *user) run(args ...string) *running {
	u.t.Helper()
	r := u.begin(args...)
	r.wait(u.t)
	return r
}

// want runs a command that must end with the code.
func (u *user) want(code int, args ...string) *running {
	u.t.Helper()
	r := u.run(args...)
	if r.code != code {
		u.t.Fatalf("mcptasks %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.out.String(), r.errs.String())
	}
	return r
}

// asked waits until a task asks something: a command that answers before that
// is told that nothing is asked.
func (u *user) asked(x task) {
	u.t.Helper()
	u.want(6, "wait", x.name(), "--on-input", "exit")
}

// read is want 0 with -o json, decoded.
func (u *user) read(into any, args ...string) *running {
	u.t.Helper()
	r := u.want(0, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(r.out.String()), into); err != nil {
		u.t.Fatalf("mcptasks %s: %v in %q", strings.Join(args, " "), err, r.out.String())
	}
	return r
}

// task is the JSON of a task.
type task struct {
	Server, TaskID, Role, Status, Tool, Standing, Note string
	CancelRequested, HasResult                         bool
	Arguments                                          json.RawMessage
	Inputs                                             []struct {
		Key, State string
		Answered   bool
	}
}

func (t task) name() string { return t.Server + "/" + t.TaskID }

// eventually waits until f holds.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	if !proctest.Until(20*time.Millisecond, f) {
		t.Fatalf("not within %s: %s", proctest.Patience, what)
	}
}

// look opens the journal as one more process does.
func (u *user) look() *journal.Journal {
	u.t.Helper()
	j, err := journal.Open(u.state(), journal.Options{What: "the test"})
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = j.Close(context.Background()) })
	return j
}
