package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"mcptasks/mcp/jsonrpc"
)

const (
	defaultGrace = 2 * time.Second
	termGrace    = 1500 * time.Millisecond // between SIGTERM and SIGKILL
	sweepGrace   = 500 * time.Millisecond  // for what the program left behind
	drainGrace   = time.Second             // for output after the program's death
	readerGrace  = 10 * time.Second        // for our own readers to come to its end, on a busy machine
)

// Stdio starts a program and speaks with it over its stdin and stdout
// (2025-11-25 basic/transports, 2026-07-28 basic/transports/stdio).
type Stdio struct {
	Command string
	Args    []string
	Env     []string // the whole environment, "k=v"; nil is ours
	Dir     string
	// Grace is how long Close waits after closing stdin before it sends
	// SIGTERM; 0 is 2 s. It then waits at most 1.5 s more before SIGKILL.
	Grace      time.Duration
	Log        *slog.Logger
	MaxMessage int64             // bytes in one line; 0 is 64 MiB
	Stderr     func(line string) // called with each line of stderr; must not block
	// Group is told of the process group that is started, by the id of its
	// first process, and when nothing of it is left. It must not block.
	Group func(pid int, gone bool)
}

// An ExitError says how the program of a stdio connection ended.
type ExitError struct {
	Command string
	Code    int      // -1 when a signal ended it
	Signal  string   // "" when it exited
	Stderr  []string // its last lines, as they were

	unread bool // stderr was not read to its end: that it is silent is not known
}

// Error tells the code and the last lines of stderr.
func (e *ExitError) Error() string {
	s := fmt.Sprintf("the program %q ended with exit code %d", e.Command, e.Code)
	if e.Signal != "" {
		s = fmt.Sprintf("the program %q was ended by a signal (%s)", e.Command, e.Signal)
	}
	if n := len(e.Stderr); n > 0 {
		s += "; the last it wrote to stderr: " + strings.Join(e.Stderr[max(0, n-3):], " | ")
	} else if !e.unread {
		s += " and wrote nothing to stderr"
	}
	return s
}

// Kind is "stdio".
func (s *Stdio) Kind() string { return "stdio" }

// Dial starts the program. The era makes no difference. ctx bounds nothing but
// the start; the program lives until the connection is closed.
func (s *Stdio) Dial(ctx context.Context, era string) (jsonrpc.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.Dir != "" {
		if fi, err := os.Stat(s.Dir); err != nil || !fi.IsDir() {
			return nil, fmt.Errorf("the folder %q, in which %q is to run, does not exist; correct cwd", s.Dir, s.Command)
		}
	}
	env := s.Env
	if env == nil {
		env = os.Environ()
	}
	path, err := findCommand(s.Command, env)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, s.Args...)
	cmd.Args[0] = s.Command
	cmd.Env, cmd.Dir = env, s.Dir
	prepareProcess(cmd)

	c := &stdioConn{command: s.Command, grace: s.Grace, log: s.Log, max: s.MaxMessage,
		done: make(chan struct{}), exited: make(chan struct{}), stopped: make(chan struct{}), stderrDone: make(chan struct{})}
	c.wake = make(chan struct{}, 1)
	if c.grace <= 0 {
		c.grace = defaultGrace
	}
	if c.max <= 0 {
		c.max = jsonrpc.DefaultMaxMessage
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	// Own pipes, not exec's: a grandchild that keeps one open must not keep
	// Wait from returning.
	var theirs [3]*os.File
	var ours [3]*os.File
	closeAll := func(fs []*os.File) {
		for _, f := range fs {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours[:])
			closeAll(theirs[:])
			return nil, fmt.Errorf("start %q: %w", s.Command, err)
		}
		theirs[i], ours[i] = w, r
		if i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	dieWithUs(cmd)
	begun, ready := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel ends the program with the thread that started it, not with
		// the process: this one has to last as long as the program.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			<-ready
			c.wait()
		}
	}()
	err = <-begun
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("the command %q may not be executed; check its permissions", s.Command)
		}
		return nil, fmt.Errorf("start %q: %w", s.Command, err)
	}
	c.cmd, c.stdin, c.stdout, c.stderr = cmd, ours[0], ours[1], ours[2]
	if c.group, err = newProcGroup(cmd.Process); err != nil {
		c.log.Warn("the program's own children may outlive it", "command", s.Command, "err", err)
	}
	c.told = s.Group
	if c.told != nil {
		c.told(c.PID(), false)
	}
	go func() {
		defer close(c.stderrDone)
		c.tail.drain(&pipeReader{f: c.stderr}, s.Stderr)
	}()
	go c.write()
	close(ready)
	return c, nil
}

// findCommand looks for a command on the PATH that the program will have.
func findCommand(name string, env []string) (string, error) {
	if name == "" {
		return "", errors.New("there is no command to start; set command")
	}
	if strings.ContainsRune(name, filepath.Separator) || strings.Contains(name, "/") {
		return name, nil
	}
	if runtime.GOOS == "windows" {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
		return "", notFound(name)
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" || !filepath.IsAbs(dir) {
			continue // as exec.LookPath: nothing from the current folder
		}
		p := filepath.Join(dir, name)
		if fi, err := os.Stat(p); err == nil && executable(fi) {
			return p, nil
		}
	}
	return "", notFound(name)
}

func notFound(name string) error {
	return fmt.Errorf("the command %q was not found on PATH; install it or give its full path: %w", name, exec.ErrNotFound)
}

type stdioConn struct {
	command string
	grace   time.Duration
	log     *slog.Logger
	max     int64
	cmd     *exec.Cmd
	group   procGroup
	told    func(pid int, gone bool) // nil: nobody is
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	tail    tail

	exited     chan struct{} // the program itself is dead and reaped
	stderrDone chan struct{}
	stopped    chan struct{} // stdout is read no more
	done       chan struct{}

	mu      sync.Mutex
	started bool
	closing bool
	err     error

	writer
}

// PID is the program's process id.
func (c *stdioConn) PID() int { return c.cmd.Process.Pid }

// Stderr gives the last lines of stderr, at most 200.
func (c *stdioConn) Stderr() []string { return c.tail.last(stderrLines) }

func (c *stdioConn) Start(_ context.Context, sink jsonrpc.Sink) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return errors.New("this connection was started before")
	}
	c.started = true
	go func() {
		defer close(c.stopped)
		c.read(sink)
		// A server may end by closing its output (stdio, Shutdown); one that
		// does not exit then is of no use any more.
		select {
		case <-c.exited:
		case <-time.After(c.grace):
			c.log.Info("the server closed stdout but did not exit", "command", c.command)
			c.group.terminate()
			select {
			case <-c.exited:
			case <-time.After(termGrace):
				c.group.kill()
			}
		}
	}()
	return nil
}

func (c *stdioConn) read(sink jsonrpc.Sink) {
	err := eachLine(&pipeReader{f: c.stdout}, c.max, func(b []byte) {
		i := 0
		for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
			i++
		}
		if b[i] == '{' || b[i] == '[' {
			sink.Message(json.RawMessage(b), "stdio", "")
			return
		}
		sink.Noise("a line on stdout that is no message", b)
	}, func(head, tail []byte, n int64) {
		why := fmt.Sprintf("a line of %d bytes on stdout, more than the %d allowed", n, c.max)
		sink.Noise(why, head)
		if id := overlongID(head, tail); id != "" {
			sink.Failed(id, fmt.Errorf("the server's answer is too long: %s", why))
		}
	})
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, os.ErrClosed) {
		c.log.Warn("reading stdout failed", "command", c.command, "err", err)
	}
}

// overlongID finds the id of a response of which only the beginning and the end
// are known.
func overlongID(head, tail []byte) jsonrpc.ID {
	kind, id := jsonrpc.Peek(head)
	if kind == jsonrpc.KindRequest || kind == jsonrpc.KindNotification {
		return ""
	}
	if id != "" {
		return id
	}
	// Members in another order: …,"id":7} or …,"id":7,"jsonrpc":"2.0"}
	for i := len(tail) - 1; i > 0; i-- {
		if tail[i] == ',' {
			obj := append([]byte(`{"jsonrpc":"2.0","result":0`), tail[i:]...)
			m, err := jsonrpc.Decode(obj, 2)
			if err == nil && m.Kind == jsonrpc.KindResponse && m.ID != "" {
				return m.ID
			}
		}
	}
	return ""
}

// wait reaps the program and then clears up behind it.
func (c *stdioConn) wait() {
	_ = c.cmd.Wait()
	close(c.exited)
	c.group.sweep(sweepGrace)
	// Whoever still holds the pipes left the group; it is not waited for. What the
	// program wrote is in the pipes, and is read however late the readers run.
	end := time.Now().Add(drainGrace)
	_ = c.stdout.SetReadDeadline(end)
	_ = c.stderr.SetReadDeadline(end)
	c.stdin.Close()
	limit := time.NewTimer(drainGrace + readerGrace)
	defer limit.Stop()
	unread := false
	for i, ch := range []<-chan struct{}{c.stderrDone, c.readDone()} {
		select {
		case <-ch:
		case <-limit.C:
			unread = unread || i == 0
			limit.Reset(0)
		}
	}
	c.stdout.Close()
	c.stderr.Close()
	c.group.close()
	if c.told != nil {
		c.told(c.PID(), true)
	}
	c.mu.Lock()
	st := c.cmd.ProcessState
	c.err = &ExitError{Command: c.command, Code: st.ExitCode(), Signal: signalName(st), Stderr: c.tail.last(20), unread: unread}
	if c.closing {
		c.err = jsonrpc.ErrClosed
	}
	c.mu.Unlock()
	c.writer.fail(c.Err())
	close(c.done)
}

// readDone is closed when nobody reads stdout, also when nobody ever did.
func (c *stdioConn) readDone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		c.started = true // too late now
		close(c.stopped)
	}
	return c.stopped
}

// Close ends the program: it closes stdin, waits, sends SIGTERM and then
// SIGKILL to the whole group (stdio, Shutdown). It takes at most 5 s with the
// default grace, less when ctx ends.
func (c *stdioConn) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.stdin.Close()
	steps := []struct {
		wait time.Duration
		then func()
	}{
		{c.grace, c.group.terminate},
		{termGrace, c.group.kill},
		{sweepGrace + drainGrace, func() {}},
	}
	for _, s := range steps {
		t := time.NewTimer(s.wait)
		select {
		case <-c.done:
			t.Stop()
			return nil
		case <-t.C:
		case <-ctx.Done():
			// Out of time: a last short chance at each step.
			t.Stop()
			select {
			case <-c.done:
				return nil
			case <-time.After(100 * time.Millisecond):
			}
		}
		select {
		case <-c.exited:
		default:
			s.then()
		}
	}
	select {
	case <-c.done:
		return nil
	default:
		return fmt.Errorf("the program %q did not end", c.command)
	}
}

func (c *stdioConn) Done() <-chan struct{} { return c.done }

func (c *stdioConn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
