//go:build unix

package tap

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp/proctest"
	"mcptasks/taskmodel/journal"
)

// generous is how long something may take on a machine that has much to do.
const generous = proctest.Patience

// joined runs a tap in this process over real pipes. in is written to by the
// agent, out is what it reads.
type joined struct {
	in   *os.File
	out  *os.File
	errs bytes.Buffer
	end  chan Exit
}

func join(t *testing.T, o Options) *joined {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	j := &joined{in: in, out: out, end: make(chan Exit, 1)}
	o.In, o.Out, o.Err, o.CloseOut = theirIn, theirOut, &j.errs, true
	if o.Name == "" {
		o.Name, o.Target = "ci", "the server"
	}
	go func() {
		e, err := Stdio(context.Background(), o)
		if err != nil {
			t.Error(err)
		}
		j.end <- e
	}()
	t.Cleanup(func() { in.Close(); out.Close(); theirIn.Close() })
	return j
}

func (j *joined) exit(t *testing.T) Exit {
	t.Helper()
	select {
	case e := <-j.end:
		return e
	case <-time.After(generous):
		t.Fatal("the tap does not end")
	}
	return Exit{}
}

// noise is all that may pass: messages, broken ones, no text at all, long lines,
// lines without an end.
func noise(t *testing.T) []byte {
	t.Helper()
	random := make([]byte, 300_000)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString("\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\r\n\n\n")
	b.WriteString("plain words\n{\"broken\": \n[1,2\n}{\n")
	b.Write(random)
	b.WriteString("\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"x\",\"params\":{\"s\":\"")
	long := 12 << 20
	if proctest.Race {
		long = 1 << 20
	}
	b.WriteString(strings.Repeat("é", long))
	b.WriteString("\"}}\n[{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"y\"},{}]\n")
	b.WriteString("{\"jsonrpc\":\"2.0\",\"id\":\"mcptasks-tap:x-1\",\"result\":{}}\n")
	b.WriteString("{\"the last line is not ended")
	return b.Bytes()
}

// Every byte passes both ways unchanged and in order, also what is no
// JSON-RPC, while nothing of ours is expected and while it is.
func TestEveryByteBothWays(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"plain", "expecting", "answer"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			want := noise(t)
			made := make(chan *tap, 1)
			o := Options{Command: program("cat"), Answer: mode == "answer", made: func(t *tap) { made <- t }}
			j := join(t, o)
			if tp := <-made; mode == "expecting" {
				tp.open.Add(1)
			}
			go func() {
				for b := want; len(b) > 0; {
					n := min(len(b), 1+len(b)%70_001)
					if _, err := j.in.Write(b[:n]); err != nil {
						t.Error(err)
						return
					}
					b = b[n:]
				}
				j.in.Close()
			}()
			got, err := io.ReadAll(j.out)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes came of %d, and not the same", len(got), len(want))
			}
			if e := j.exit(t); e.Code != 0 || e.Signal != 0 {
				t.Errorf("%+v", e)
			}
			if s := j.errs.String(); s != fmt.Sprintf("%d bytes", len(want)) {
				t.Errorf("stderr: %q", s)
			}
		})
	}
}

// The end of the agent's input is the end of the server's, which may go on
// writing.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	j := join(t, Options{Command: program("late")})
	if _, err := j.in.WriteString("x\n"); err != nil {
		t.Fatal(err)
	}
	j.in.Close()
	got, err := io.ReadAll(j.out)
	if err != nil || len(got) != 1001*1000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if e := j.exit(t); e.Code != 3 {
		t.Errorf("%+v", e)
	}
}

// When the agent reads no more, the server's pipe breaks as it would without a
// tap, and all ends.
func TestAgentReadsNoMore(t *testing.T) {
	t.Parallel()
	j := join(t, Options{Command: []string{"/bin/sh", "-c", "while echo xxxxxxxxxxxxxxxxxxxxxxxx; do :; done"}})
	j.out.Close()
	if e := j.exit(t); e.Signal != int(syscall.SIGPIPE) && e.Code == 0 {
		t.Errorf("%+v", e)
	}
}

// Nothing waits for the journal: without one, and with one that hangs.
func TestPassesWithoutAJournal(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]func(context.Context) (Memory, error){
		"broken": func(context.Context) (Memory, error) { return Memory{}, errors.New("disk full") },
		"hangs":  func(ctx context.Context) (Memory, error) { <-ctx.Done(); return Memory{}, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := join(t, Options{Command: program("lines"), Memory: memory})
			r := bufio.NewReader(j.out)
			for i := range 1000 {
				line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`+"\n", i)
				if _, err := j.in.WriteString(line); err != nil {
					t.Fatal(err)
				}
				if got, err := r.ReadString('\n'); got != line || err != nil {
					t.Fatalf("%q %v", got, err)
				}
			}
			j.in.Close()
			if e := j.exit(t); e.Code != 0 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A process of a tap, as a client would start it.
func tapProcess(t *testing.T, dir string, flags []string, server ...string) *exec.Cmd {
	t.Helper()
	args := append(append(program("tap", dir), flags...), "--")
	args = append(args, server...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func TestExitCodeAndSignalsAreTheServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		server []string
		code   int
		signal syscall.Signal
		out    string
	}{
		{"code", program("exit", "42"), 42, 0, "half a line"},
		{"SIGTERM", program("die", "15"), -1, syscall.SIGTERM, ""},
		{"SIGKILL", program("die", "9"), -1, syscall.SIGKILL, ""},
		{"SIGSEGV", []string{"/bin/sh", "-c", "ulimit -c 0; kill -SEGV $$"}, -1, syscall.SIGSEGV, ""},
		{"SIGABRT", []string{"/bin/sh", "-c", "ulimit -c 0; kill -ABRT $$"}, -1, syscall.SIGABRT, ""},
		{"no such program", []string{"/nowhere/at-all"}, 127, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := tapProcess(t, t.TempDir(), nil, tt.server...)
			out, err := cmd.Output()
			st := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if st.ExitStatus() != tt.code || tt.signal != 0 && st.Signal() != tt.signal || string(out) != tt.out {
				t.Errorf("code %d, signal %v, out %q, %v", st.ExitStatus(), st.Signal(), out, err)
			}
		})
	}
}

func TestSignalsAreHandedOn(t *testing.T) {
	t.Parallel()
	cmd := tapProcess(t, t.TempDir(), nil, program("signals")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for _, step := range []struct {
		send syscall.Signal
		want string
	}{{0, "ready"}, {syscall.SIGUSR1, "user defined signal 1"}, {syscall.SIGINT, "interrupt"}, {syscall.SIGTERM, "terminated"}} {
		if step.send != 0 {
			if err := syscall.Kill(cmd.Process.Pid, step.send); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := r.ReadString('\n'); strings.TrimSpace(got) != step.want {
			t.Fatalf("%q, want %q: %v", got, step.want, err)
		}
	}
	_ = cmd.Wait()
	if c := cmd.ProcessState.ExitCode(); c != 9 {
		t.Errorf("exit code %d", c)
	}
}

// gone waits until none of the processes is left.
func gone(t *testing.T, limit time.Duration, pids ...int) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for _, pid := range pids {
		for proctest.Alive(pid) {
			if time.Now().After(deadline) {
				t.Errorf("process %d is left", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// known waits until a tap has said in the journal that it is there.
func known(t *testing.T, dir string) {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close(context.Background()) }()
	for end := time.Now().Add(generous); ; time.Sleep(20 * time.Millisecond) {
		taps, err := j.Taps(t.Context(), time.Time{})
		switch {
		case err != nil:
			t.Fatal(err)
		case len(taps) > 0 && taps[0].Live:
			return
		case time.Now().After(end):
			t.Fatal("the journal knows of no tap")
		}
	}
}

// The tap is killed; a server that heeds nothing, and what it started, end too.
func TestTapKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := tapProcess(t, dir, nil, program("deaf")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var server, child int
	if _, err := fmt.Fscan(out, &server, &child); err != nil {
		t.Fatal(err)
	}
	known(t, dir) // and so is the server to the guard
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, generous, server, child)
}

// The agent is killed; the tap ends, and with it a server that heeds nothing.
func TestAgentKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	tap := tapProcess(t, t.TempDir(), nil, program("deaf")...)
	agent := exec.Command(os.Args[0], append([]string{"as=agent", tap.Path}, tap.Args[1:]...)...)
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	var server, child int
	if _, err := fmt.Fscan(out, &server, &child); err != nil {
		t.Fatal(err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, generous, server, child)
	_ = agent.Wait()
}
