//go:build unix

package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp/proctest"
)

// program is the built mcptasks.
var program string

func TestMain(m *testing.M) { os.Exit(proctest.Run(m, &program)) }

// A box is a person's machine: a home, a folder at hand, an environment.
type box struct {
	t    *testing.T
	home string
	cwd  string
	env  map[string]string
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{t: t, home: t.TempDir(), cwd: t.TempDir()}
	b.env = map[string]string{
		"HOME": b.home, "XDG_CONFIG_HOME": filepath.Join(b.home, ".config"), "XDG_STATE_HOME": filepath.Join(b.home, ".local", "state"),
		"PATH": os.Getenv("PATH"), "TERM": "xterm-256color", "CLICOLOR_FORCE": "1", "COLORTERM": "truecolor",
		"DBUS_SESSION_BUS_ADDRESS": "unix:path=" + filepath.Join(b.home, "no-bus"), // no keyring
	}
	return b
}

func (b *box) state() string { return filepath.Join(b.home, ".local", "state", "mcptasks") }

// write makes a file below the home folder and gives its path.
func (b *box) write(name, text string) string {
	b.t.Helper()
	p := filepath.Join(b.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// A proc is one run of the program.
type proc struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *os.File
	read *bufio.Reader
	errs tail
	all  *os.File // reads as ended when the program and all that it started have
}

// tail keeps what is written and wakes those who wait for a text in it.
type tail struct {
	mu sync.Mutex
	b  bytes.Buffer
	ch chan struct{}
}

func (s *tail) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
	return s.b.Write(p)
}

func (s *tail) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// await waits until find finds something in what was written so far.
func (s *tail) await(t *testing.T, what string, find func(string) bool) string {
	t.Helper()
	over := time.After(proctest.Patience)
	for {
		s.mu.Lock()
		text := s.b.String()
		if s.ch == nil {
			s.ch = make(chan struct{})
		}
		ch := s.ch
		s.mu.Unlock()
		if find(text) {
			return text
		}
		select {
		case <-ch:
		case <-over:
			t.Fatalf("waiting for %s; so far: %s", what, text)
		}
	}
}

// begin starts the program. Every process that comes of it inherits the end of a
// pipe, by which the test hears that the last of them is gone.
func (b *box) begin(args ...string) *proc {
	b.t.Helper()
	return b.start(exec.Command(program, args...))
}

// shell starts a command line as a shell reads it.
func (b *box) shell(line string) *proc {
	b.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "exec "+line)
	b.env["PATH"] = filepath.Dir(program) + ":" + os.Getenv("PATH")
	return b.start(cmd)
}

func (b *box) start(cmd *exec.Cmd) *proc {
	b.t.Helper()
	p := &proc{t: b.t, cmd: cmd}
	p.cmd.Dir = b.cwd
	for k, v := range b.env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	all, held, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	p.all, p.out, p.read = all, out, bufio.NewReader(out)
	p.cmd.ExtraFiles = []*os.File{held}
	p.cmd.Stdout, p.cmd.Stderr = theirs, &p.errs
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		b.t.Fatal(err)
	}
	err = p.cmd.Start()
	held.Close()
	theirs.Close()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { p.cmd.Process.Kill(); all.Close(); out.Close() })
	return p
}

func (p *proc) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// line reads the next line of stdout.
func (p *proc) line() string { p.t.Helper(); return p.lineWithin(proctest.Patience) }

func (p *proc) lineWithin(d time.Duration) string {
	p.t.Helper()
	_ = p.out.SetReadDeadline(time.Now().Add(d))
	s, err := p.read.ReadString('\n')
	if err != nil {
		p.t.Fatalf("reading stdout: %v; stderr: %s", err, p.errs.String())
	}
	return s
}

type result struct {
	out, err string
	code     int
}

// end waits for the end of the program and of everything it has started.
func (p *proc) end() result {
	p.t.Helper()
	_ = p.out.SetReadDeadline(time.Now().Add(proctest.Patience))
	out, err := io.ReadAll(p.read)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Fatalf("reading stdout to its end: %v; stderr: %s", err, p.errs.String())
	}
	_ = p.all.SetReadDeadline(time.Now().Add(proctest.Patience))
	if _, err := p.all.Read(make([]byte, 1)); err != io.EOF {
		p.t.Errorf("something that %q has started is still running: %v", p.cmd.Args[1:], err)
		_ = p.cmd.Process.Kill()
	}
	err = p.cmd.Wait()
	r := result{out: string(out), err: p.errs.String(), code: p.cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	if w, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		p.t.Errorf("%q was ended by %s", p.cmd.Args[1:], w.Signal())
	}
	if strings.ContainsRune(r.out+r.err, '\x1b') {
		p.t.Errorf("%q writes escape codes into a pipe: %q %q", p.cmd.Args[1:], r.out, r.err)
	}
	return r
}

// run runs one command line to its end.
func (b *box) run(args ...string) result {
	b.t.Helper()
	p := b.begin(args...)
	p.in.Close()
	return p.end()
}

// want runs one command line that ends with a code, and gives what it said.
func (b *box) want(code int, args ...string) result {
	b.t.Helper()
	r := b.run(args...)
	if r.code != code {
		b.t.Fatalf("mcptasks %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.out, r.err)
	}
	return r
}

// fault runs one command line with -o json that ends with a code and an error
// of the kind, and gives its message.
func (b *box) fault(code int, kind string, args ...string) string {
	b.t.Helper()
	r := b.want(code, append(args, "-o", "json")...)
	lines := strings.Split(strings.TrimSpace(r.err), "\n")
	var e struct {
		Error struct{ Kind, Message string }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil || e.Error.Kind != kind || e.Error.Message == "" {
		b.t.Fatalf("mcptasks %s: the error is no %s in one line (%v): %s", strings.Join(args, " "), kind, err, r.err)
	}
	return e.Error.Message
}

// task is what a test needs of a task's JSON.
type task struct{ Server, TaskID, Status, Standing string }

func (k task) name() string { return k.Server + "/" + k.TaskID }

// read runs one command line with -o json and decodes what it prints.
func (b *box) read(code int, into any, args ...string) {
	b.t.Helper()
	r := b.want(code, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		b.t.Fatalf("mcptasks %s: %v: %s", strings.Join(args, " "), err, r.out)
	}
}

func quote(words ...string) string {
	for i, w := range words {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

func deadline(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), proctest.Patience)
	t.Cleanup(stop)
	return ctx
}
