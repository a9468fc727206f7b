//go:build unix

package tap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/proctest"
	"mcptasks/mcp/transport"
)

// These tests run the built program: an agent starts `mcptasks tap`, somebody
// dies, and `mcptasks ls` says what has become of the agent's tasks.

// mcptasks is the built program.
func mcptasks(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc")
	}
	p, err := proctest.Program()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A ghost is a session of an agent that is to die.
type ghost struct {
	t       *testing.T
	program string
	home    string
	agent   *exec.Cmd
	task    string
}

// environment keeps a test from the home and the configuration of who runs it.
func (g *ghost) environment() []string {
	return []string{"HOME=" + g.home, "XDG_CONFIG_HOME=" + g.home, "XDG_STATE_HOME=" + g.home, "PATH=" + os.Getenv("PATH")}
}

func newGhost(t *testing.T) *ghost {
	return &ghost{t: t, program: mcptasks(t), home: t.TempDir()}
}

// haunt starts an agent, which connects to target (a URL, or a command line) and
// starts a task.
func (g *ghost) haunt(target ...string) {
	g.t.Helper()
	p := program("starter", target...)
	g.agent = exec.Command(p[0], p[1:]...)
	g.agent.Env = append(g.environment(), "TAP_TEST=role")
	g.agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := g.agent.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	var errs bytes.Buffer
	g.agent.Stderr = &errs
	if err := g.agent.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = g.agent.Process.Kill()
		_ = g.agent.Wait()
		if g.t.Failed() {
			g.t.Logf("the agent's stderr: %s", errs.String())
		}
	})
	if g.task, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		g.t.Fatalf("the agent started no task: %v %s", err, errs.String())
	}
	g.task = strings.TrimSpace(g.task)
	g.row("live", "")
}

type listed struct {
	Server, TaskID, Status, Standing, Note, Owner string
}

// row waits until `mcptasks ls` has the agent's task as it should be. A tap is
// no server that is configured: nothing else is listed.
func (g *ghost) row(standing, note string) listed {
	g.t.Helper()
	var last string
	for end := time.Now().Add(generous); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		cmd := exec.Command(g.program, "ls", "-o", "json")
		cmd.Env, cmd.Dir = g.environment(), g.home
		out, err := cmd.Output()
		var rows []listed
		if err == nil && json.Unmarshal(out, &rows) == nil {
			for _, r := range rows {
				if r.TaskID == g.task && r.Standing == standing && strings.Contains(r.Note, note) {
					if r.Status != "working" || r.Owner != "claude-code" {
						g.t.Errorf("%s", out)
					}
					return r
				}
			}
		}
		last = fmt.Sprintf("%s %v", out, err)
	}
	g.t.Fatalf("the row is not %s (%s): %s", standing, note, last)
	return listed{}
}

// withWords finds among processes the one whose command line has the words.
func withWords(t *testing.T, pids []int, words string) int {
	t.Helper()
	for _, pid := range pids {
		if strings.HasPrefix(proctest.Command(pid), words) {
			return pid
		}
	}
	t.Fatalf("no process %q", words)
	return 0
}

func TestProgramEndsWellOnStdio(t *testing.T) {
	for _, tt := range []struct {
		name, dies string
		note       string
	}{
		{"the agent is killed", "agent", "the session of claude-code is over"},
		{"the server is killed", "server", "the server ended by a signal (killed)"},
		{"the tap is killed", "tap", "the session of claude-code is over"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGhost(t)
			g.haunt(g.program, "tap", "--name", "ci", "--", g.program, "demo-server")
			all := proctest.Family(g.agent.Process.Pid)
			dies := map[string]int{"agent": g.agent.Process.Pid, "tap": withWords(t, all, g.program+" tap"), "server": withWords(t, all, g.program+" demo-server")}[tt.dies]
			guard := withWords(t, all, "/bin/sh")
			if err := syscall.Kill(dies, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if tt.dies == "agent" {
				_ = g.agent.Wait()
			}
			for _, pid := range all {
				if pid != g.agent.Process.Pid || tt.dies == "agent" {
					gone(t, generous, pid)
				}
			}
			gone(t, generous, guard)
			if r := g.row("gone", tt.note); r.Server != "tap: ci" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestProgramEndsWellOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name, dies string
		note       string
	}{
		{"the agent ends its session", "session", "the agent has ended its session"},
		{"the server is killed", "server", "the server cannot be reached"},
		{"the tap is stopped", "stop", "the tap has ended"},
		{"the tap is killed", "tap", "the tap has ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGhost(t)
			server, url := g.serve("demo-server", "--listen", "127.0.0.1:0")
			tap, at := g.serve("tap", "--name", "ci", "--listen", "127.0.0.1:0", url)
			g.haunt(at)
			switch tt.dies {
			case "session":
				if err := g.agent.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			case "server":
				_ = server.Process.Kill()
				_ = server.Wait()
				ask(t, at)
			case "stop":
				if err := tap.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				_ = tap.Wait()
			case "tap":
				_ = tap.Process.Kill()
				_ = tap.Wait()
			}
			g.row("stale", tt.note)
		})
	}
}

// ask has the tap meet its server.
func ask(t *testing.T, at string) {
	t.Helper()
	for range 10 {
		res, err := http.Post(at, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			continue // on a connection that the server took with it
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusBadGateway {
			t.Errorf("the agent gets %d", res.StatusCode)
		}
		return
	}
	t.Error("the agent is never told")
}

// serve starts the program as something that prints the address it listens at.
func (g *ghost) serve(args ...string) (*exec.Cmd, string) {
	g.t.Helper()
	cmd := exec.Command(g.program, args...)
	cmd.Env, cmd.Dir = g.environment(), g.home
	out, err := cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	l, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		g.t.Fatalf("%v prints no address: %v", args, err)
	}
	return cmd, strings.TrimSpace(l)
}

// playStarter is an agent that starts a task, says its id, and waits. SIGTERM
// makes it end its session.
func playStarter(target []string) int {
	ctx, stop := context.WithTimeout(context.Background(), generous)
	defer stop()
	var d mcp.Dialer = &transport.Stdio{Command: target[0], Args: target[1:], Stderr: func(l string) { fmt.Fprintln(os.Stderr, l) }}
	if strings.HasPrefix(target[0], "http") {
		d = &transport.HTTP{URL: target[0]}
	}
	c, err := mcp.Connect(ctx, mcp.Options{Name: "x", Dialer: d, Era: "legacy", ClientName: "claude-code", ClientVersion: "1", Handler: &agentSession{}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	st, err := c.Tasks().Start(ctx, mcp.StartCall{Tool: "reindex_search", Args: json.RawMessage(`{"index":"docs"}`)})
	if err == nil && st.TaskID == "" {
		err = errors.New("no task was made")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(st.TaskID)
	leave := make(chan os.Signal, 1)
	notify(leave)
	<-leave
	if err := c.Close(ctx, true); err != nil {
		return 1
	}
	return 0
}

// TestProgramReadme runs every command of the README's section on taps: with a
// built-in server in place of those that it names, and any port.
func TestProgramReadme(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "## See the tasks of your agent\n")
	section, _, _ = strings.Cut(section, "\n## ")
	g := newGhost(t)
	project := t.TempDir()
	file := filepath.Join(project, ".mcp.json")
	const before = `{"mcpServers": {"ci": {"command": "npx", "args": ["-y", "thing"]}, "other": {"url": "https://x"}}}` + "\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := g.serve("demo-server", "--listen", "127.0.0.1:0")
	reads := func() string { b, _ := os.ReadFile(file); return string(b) }
	n := 0
	for _, line := range strings.Split(section, "\n") {
		line, ok := strings.CutPrefix(line, "    mcptasks ")
		if !ok {
			continue
		}
		n++
		line = strings.NewReplacer("npx -y @modelcontextprotocol/server-everything stdio", g.program+" demo-server",
			"https://ci.example/mcp", url, ":7070", ":0").Replace(line)
		args := strings.Fields(line)
		switch {
		case strings.Contains(line, "install"):
			cmd := exec.Command(g.program, args...)
			cmd.Env, cmd.Dir = g.environment(), project
			out, err := cmd.CombinedOutput()
			written := strings.Contains(reads(), `"tap", "--name", "ci", "--", "npx"`)
			if err != nil || !strings.Contains(string(out), `"npx"`) || written != strings.HasSuffix(line, " --install .mcp.json ci --write") {
				t.Errorf("%s: %v\n%s\nthe file: %s", line, err, out, reads())
			}
			if strings.Contains(line, "uninstall") && reads() != before {
				t.Errorf("the file afterwards: %s", reads())
			}
		case strings.Contains(line, "--listen"):
			_, at := g.serve(args...)
			if i := strings.LastIndexByte(at, ':'); i > 0 {
				at = "http://127.0.0.1" + at[i:] // by which this machine reaches it, too
			}
			one := newGhost(t)
			one.home = g.home // where that tap writes
			one.haunt(at)
			_ = one.agent.Process.Kill()
		default:
			one := newGhost(t)
			one.haunt(append([]string{g.program}, args...)...)
		}
	}
	if n != 8 {
		t.Errorf("the section has %d commands", n)
	}
}
