package faulty

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/demo"
)

// TestMain lets the test's own binary be the process that goes wrong.
func TestMain(m *testing.M) {
	if script, ok := os.LookupEnv("FAULTY_SCRIPT"); ok {
		if err := Stdio(context.Background(), demo.Options{Seed: 1, Tasks: 3}, script); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A child is such a process.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // of stdout; closed at its end
	stderr *strings.Builder
	ended  chan struct{} // closed when the process was waited for
}

func spawn(t *testing.T, script string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.Command(self), lines: make(chan string, 100), stderr: &strings.Builder{}, ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), "FAULTY_SCRIPT="+script)
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	// A pipe of our own: that of exec would be closed by Wait, and here it is
	// of interest who still holds it.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.WaitDelay = w, c.stderr, 300*time.Millisecond
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	go func() {
		defer close(c.lines)
		s := bufio.NewScanner(r)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		_ = r.Close()
	})
	return c
}

func (c *child) send(line string) { _, _ = io.WriteString(c.in, line+"\n") }

// line is the next line of stdout; "" and false at its end or after d.
func (c *child) line(d time.Duration) (string, bool) {
	select {
	case l, ok := <-c.lines:
		return l, ok
	case <-time.After(d):
		return "", false
	}
}

// exit waits for the end and gives the code; -1 for a signal, -2 when it does
// not end in d.
func (c *child) exit(d time.Duration) int {
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(d):
		return -2
	}
}

const (
	ping    = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	patient = 10 * time.Second       // for what comes
	brief   = 700 * time.Millisecond // for what does not
)

// Each fault of a process.
func TestProcessFaults(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("signals and sh")
	}
	for _, tc := range []struct {
		script string
		check  func(t *testing.T, c *child)
	}{
		{"", func(t *testing.T, c *child) {
			if l, _ := c.line(patient); !strings.Contains(l, `"id":1`) {
				t.Errorf("got %q", l)
			}
			_ = c.in.Close()
			if code := c.exit(patient); code != 0 {
				t.Errorf("exit %d", code)
			}
		}},
		{"request:ping crash 3", func(t *testing.T, c *child) {
			if code := c.exit(patient); code != 3 || !strings.Contains(c.stderr.String(), "crash") {
				t.Errorf("exit %d, %q", code, c.stderr)
			}
		}},
		{"response:ping reset", func(t *testing.T, c *child) {
			if code := c.exit(patient); code != -1 {
				t.Errorf("exit %d", code)
			}
		}},
		{"response:ping close", func(t *testing.T, c *child) {
			if code := c.exit(patient); code != 0 {
				t.Errorf("exit %d", code)
			}
		}},
		{"response:ping restart lose", func(t *testing.T, c *child) {
			if code := c.exit(patient); code != 0 {
				t.Errorf("exit %d", code)
			}
		}},
		{"response:ping halfclose", func(t *testing.T, c *child) {
			if _, ok := <-c.lines; ok {
				t.Error("stdout is open")
			}
			if code := c.exit(brief); code != -2 {
				t.Errorf("exit %d, should go on", code)
			}
		}},
		{"response:ping hang; eof ignore", func(t *testing.T, c *child) {
			_ = c.in.Close()
			if l, ok := c.line(brief); ok {
				t.Errorf("got %q", l)
			}
			if code := c.exit(brief); code != -2 {
				t.Errorf("exit %d, should hang", code)
			}
		}},
		{"eof ignore", func(t *testing.T, c *child) {
			c.line(patient)
			_ = c.in.Close()
			if code := c.exit(brief); code != -2 {
				t.Errorf("exit %d, should ignore the end of stdin", code)
			}
		}},
		{"eof crash 5", func(t *testing.T, c *child) {
			c.line(patient)
			_ = c.in.Close()
			if code := c.exit(patient); code != 5 {
				t.Errorf("exit %d", code)
			}
		}},
		{"eof late 100ms", func(t *testing.T, c *child) {
			c.line(patient)
			_ = c.in.Close()
			if code := c.exit(patient); code != 0 {
				t.Errorf("exit %d", code)
			}
		}},
		{"start text Listening on stdio", func(t *testing.T, c *child) {
			if l, _ := c.line(patient); l != "Listening on stdio" {
				t.Errorf("got %q", l)
			}
			if l, _ := c.line(patient); !strings.Contains(l, `"id":1`) {
				t.Errorf("got %q", l)
			}
		}},
		{"start late 50ms; response:ping slowly 2ms", func(t *testing.T, c *child) {
			if l, _ := c.line(patient); l != `{"jsonrpc":"2.0","id":1,"result":{}}` {
				t.Errorf("got %q", l)
			}
		}},
		{"start stderr 300000", func(t *testing.T, c *child) {
			if l, _ := c.line(patient); !strings.Contains(l, `"id":1`) {
				t.Errorf("got %q", l)
			}
			_ = c.in.Close()
			c.exit(patient)
			if n := c.stderr.Len(); n < 300000 {
				t.Errorf("%d bytes on stderr", n)
			}
		}},
		{"response:ping twice", func(t *testing.T, c *child) {
			a, _ := c.line(patient)
			if b, _ := c.line(patient); a != b || a == "" {
				t.Errorf("got %q and %q", a, b)
			}
		}},
		{"response:ping late 200ms", func(t *testing.T, c *child) {
			c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			if l, _ := c.line(patient); !strings.Contains(l, `"id":2`) {
				t.Errorf("got %q first", l)
			}
			if l, _ := c.line(patient); !strings.Contains(l, `"id":1`) {
				t.Errorf("got %q then", l)
			}
		}},
		{"start grandchild", func(t *testing.T, c *child) {
			c.line(patient)
			_ = c.in.Close()
			if code := c.exit(patient); code != 0 {
				t.Errorf("exit %d", code)
			}
			var pid int
			if _, err := fmt.Sscanf(c.stderr.String(), "grandchild %d", &pid); err != nil {
				t.Fatalf("stderr %q: %v", c.stderr, err)
			}
			defer func() {
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill()
				}
			}()
			// The process has gone and its stdout is still open.
			if l, ok := c.line(brief); ok || l != "" {
				t.Errorf("got %q", l)
			}
			select {
			case <-c.lines:
				t.Error("stdout has ended: no grandchild holds it")
			default:
			}
		}},
		{"nonsense", func(t *testing.T, c *child) {
			if code := c.exit(patient); code != 2 || !strings.Contains(c.stderr.String(), "nonsense") {
				t.Errorf("exit %d, %q", code, c.stderr)
			}
		}},
	} {
		t.Run(tc.script, func(t *testing.T) {
			t.Parallel()
			c := spawn(t, tc.script)
			c.send(ping)
			tc.check(t, c)
		})
	}
}
