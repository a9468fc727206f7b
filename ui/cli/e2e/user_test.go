//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp/proctest"
)

// A user runs the program with a home and a state of their own.
type user struct {
	t       *testing.T
	home    string
	flags   []string // before every command
	restart func()   // the server p forgets all it knows
	holder  int      // the pid of the process that holds p, 0: none
}

// newUser makes a user who knows the servers given, NAME=TARGET.
func newUser(t *testing.T, servers ...string) *user {
	t.Helper()
	u := &user{t: t, home: t.TempDir()}
	for _, s := range servers {
		u.flags = append(u.flags, "-s", s)
	}
	return u
}

// sub is the same user in a subtest.
func (u *user) sub(t *testing.T) *user {
	s := *u
	s.t = t
	return &s
}

// stranger knows the same servers and remembers nothing.
func (u *user) stranger() *user { return &user{t: u.t, home: u.t.TempDir(), flags: u.flags} }

// said is what one command left.
type said struct {
	out, err string
	code     int
}

// command makes a command of this user, without the variables of whoever runs
// the tests.
func (u *user) command(ctx context.Context, args ...string) *exec.Cmd {
	all := append([]string{"--state", u.home + "/state"}, u.flags...)
	cmd := exec.CommandContext(ctx, program, append(all, args...)...)
	cmd.Dir = u.home
	cmd.Env = []string{"HOME=" + u.home, "XDG_CONFIG_HOME=" + u.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run carries out one command with the input given. No command may take
// for ever, and none may write an escape code into a pipe.
func (u *user) run(stdin string, args ...string) said {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	cmd := u.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	s := said{out.String(), errs.String(), exitCode(err)}
	if ctx.Err() != nil {
		u.t.Fatalf("mcptasks %s: not done in time\n%s\n%s", strings.Join(args, " "), s.out, s.err)
	}
	for name, b := range map[string]string{"stdout": s.out, "stderr": s.err} {
		if strings.ContainsAny(b, "\x1b\x07\x08\r") || strings.Contains(b, "\u009b") {
			u.t.Errorf("mcptasks %s: %s holds control codes: %q", strings.Join(args, " "), name, b)
		}
	}
	return s
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// want runs a command that must end with the code.
func (u *user) want(code int, args ...string) said {
	u.t.Helper()
	s := u.run("", args...)
	if s.code != code {
		u.t.Fatalf("mcptasks %s: exit %d, want %d\n%s\n%s", strings.Join(args, " "), s.code, code, s.out, s.err)
	}
	return s
}

// read is want with -o json, decoded.
func (u *user) read(code int, into any, args ...string) said {
	u.t.Helper()
	s := u.want(code, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(s.out), into); err != nil {
		u.t.Fatalf("mcptasks %s: %v in %q\n%s", strings.Join(args, " "), err, s.out, s.err)
	}
	return s
}

// fault runs a command with -o json that must end with the code and say one
// error of the kind on stderr's last line.
func (u *user) fault(code int, kind string, args ...string) string {
	u.t.Helper()
	s := u.want(code, append(args, "-o", "json")...)
	lines := strings.Split(strings.TrimSpace(s.err), "\n")
	var e struct {
		Error struct{ Kind, Message, Server string } `json:"error"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil || e.Error.Kind != kind || e.Error.Message == "" {
		u.t.Errorf("mcptasks %s: want an error of kind %s: %q %v", strings.Join(args, " "), kind, s.err, err)
	}
	return e.Error.Message
}

// task is the JSON of a task, as the contract has it.
type task struct {
	Server, TaskID, Role, Generation, Status, StatusMessage, Tool string
	Standing, Note                                                string
	TTLMs                                                         *int64
	PollIntervalMs                                                int64
	CancelRequested, HasResult                                    bool
	Inputs                                                        []input
}

type input struct {
	Key, Kind, Message, State, URL string
	Answered                       bool
	Schema                         json.RawMessage
}

func (t task) name() string {
	if t.Role == "receiver" {
		return t.Server + "/@" + t.TaskID
	}
	return t.Server + "/" + t.TaskID
}

// end is the JSON of a result.
type end struct {
	Server, TaskID string
	Task           *task
	Result         *struct {
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	Error *struct {
		Code    int
		Message string
	}
}

func (e end) text() string {
	if e.Result == nil {
		return ""
	}
	var all []string
	for _, c := range e.Result.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n") + string(e.Result.StructuredContent)
}

// running is a command that goes on beside the test.
type running struct {
	u     *user
	cmd   *exec.Cmd
	lines chan string
	errs  lockedBuffer
	done  chan struct{}
	code  int
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// begin starts a command and hands out its lines.
func (u *user) begin(args ...string) *running {
	u.t.Helper()
	r := &running{u: u, lines: make(chan string, 4096), done: make(chan struct{})}
	r.cmd = u.command(context.Background(), args...)
	r.cmd.Stderr = &r.errs
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() {
		b := bufio.NewReader(out)
		for {
			line, err := b.ReadString('\n')
			if line != "" {
				r.lines <- line
			}
			if err != nil {
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
		r.code = exitCode(r.cmd.Wait())
		close(r.lines)
		close(r.done)
	}()
	u.t.Cleanup(func() {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.done
	})
	return r
}

// until reads lines until one is as wanted.
func (r *running) until(what string, wanted func(line string) bool) string {
	r.u.t.Helper()
	limit := time.NewTimer(proctest.Patience)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.u.t.Fatalf("ended (exit %d) before %s: %s", r.code, what, r.errs.String())
			}
			if wanted(line) {
				return line
			}
		case <-limit.C:
			r.u.t.Fatalf("no %s in time: %s", what, r.errs.String())
		}
	}
}

// rest reads what is left and gives it with the exit code.
func (r *running) rest() said {
	r.u.t.Helper()
	var b strings.Builder
	limit := time.NewTimer(proctest.Patience)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				return said{b.String(), r.errs.String(), r.code}
			}
			b.WriteString(line)
		case <-limit.C:
			r.u.t.Fatalf("not ended in time: %s%s", b.String(), r.errs.String())
		}
	}
}

func (r *running) signal(s syscall.Signal) {
	r.u.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.u.t.Fatal(err)
	}
}

// hold keeps the user's servers connected in a process of its own, as open
// screens do, until the test ends; a stdio server's tasks live as long. The
// other commands go through it.
func (u *user) hold() {
	u.t.Helper()
	w := u.begin("watch")
	w.until("ready server", func(line string) bool {
		return strings.Contains(line, `"event":"server"`) && strings.Contains(line, `"state":"ready"`)
	})
	u.holder = w.cmd.Process.Pid
	go func() {
		for range w.lines { // its pipe is kept empty
		}
	}()
	u.t.Cleanup(func() {
		_ = w.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-w.done:
			if w.code != 130 {
				u.t.Errorf("watch: exit %d after SIGINT, want 130: %s", w.code, w.errs.String())
			}
		case <-time.After(proctest.Patience):
			u.t.Errorf("watch did not end after SIGINT: %s", w.errs.String())
		}
		if s := w.errs.String(); strings.Contains(s, "panic") {
			u.t.Errorf("watch: %s", s)
		}
	})
}

// eventually tries until f holds. Real servers have their own pace; nothing
// here is waited for by its length.
func (u *user) eventually(what string, f func() bool) {
	u.t.Helper()
	if !proctest.Until(150*time.Millisecond, f) {
		u.t.Fatalf("not in time: %s", what)
	}
}
