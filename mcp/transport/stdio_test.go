//go:build unix

package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/proctest"
)

func dialChild(t *testing.T, mode string, tweak func(*Stdio)) (*jsonrpc.Peer, *stdioConn, *peerHandler) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &Stdio{Command: self, Env: append(os.Environ(), "TRANSPORT_TEST_CHILD="+mode), Grace: 300 * time.Millisecond}
	if tweak != nil {
		tweak(s)
	}
	conn, err := s.Dial(t.Context(), "legacy")
	if err != nil {
		t.Fatal(err)
	}
	h := newPeerHandler()
	p := jsonrpc.NewPeer(conn, h, jsonrpc.PeerOptions{MaxMessage: s.MaxMessage})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p, conn.(*stdioConn), h
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestStdioEcho(t *testing.T) {
	p, c, _ := dialChild(t, "echo", nil)
	for i := range 50 {
		want := fmt.Sprintf(`{"n":%d}`, i)
		if got := mustCall(t, p, "x", json.RawMessage(want)); string(got) != want {
			t.Fatalf("got %s", got)
		}
	}
	if c.PID() <= 0 {
		t.Error("no pid")
	}
	// Newlines never split a message (stdio: MUST NOT contain embedded newlines).
	if got := mustCall(t, p, "x", json.RawMessage("{\n\"a\":\r\n1}")); string(got) != `{"a":1}` {
		t.Errorf("got %s", got)
	}
	if err := p.Close(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("after our own Close: %v", err)
	}
	if _, err := p.Call(ctxFor(t), jsonrpc.Call{Method: "x"}); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("call after Close: %v", err)
	}
}

func TestStdioEnvironmentAndFolder(t *testing.T) {
	dir, _ := filepath.EvalSymlinks(t.TempDir())
	p, _, _ := dialChild(t, "env", func(s *Stdio) { s.Env = append(s.Env, "X=y z"); s.Dir = dir })
	var got struct{ X, Wd string }
	if err := json.Unmarshal(mustCall(t, p, "x", nil), &got); err != nil || got.X != "y z" || got.Wd != dir {
		t.Errorf("%+v %v", got, err)
	}
}

func TestT4_Line20MB(t *testing.T) {
	p, _, _ := dialChild(t, "big", nil)
	if got := mustCall(t, p, "x", nil); len(got) != 20<<20+2 {
		t.Errorf("%d bytes", len(got))
	}
	mustCall(t, p, "x", nil)
	big := bytes.Repeat([]byte("y"), 20<<20)
	if got := mustCall(t, p, "x", string(big)); len(got) != len(big)+2 {
		t.Errorf("%d bytes came back", len(got))
	}
}

// A line beyond the bound is noise, fails the call that it answers, and the
// reader goes on.
func TestT4_OverlongLine(t *testing.T) {
	for _, mode := range []string{"overlong", "overlong-last"} {
		t.Run(mode, func(t *testing.T) {
			p, _, h := dialChild(t, mode, func(s *Stdio) { s.MaxMessage = 1 << 20 })
			_, err := p.Call(ctxFor(t), jsonrpc.Call{Method: "x"})
			if err == nil || !strings.Contains(err.Error(), "more than the 1048576 allowed") {
				t.Fatalf("err = %v", err)
			}
			mustCall(t, p, "x", nil)
			h.mu.Lock()
			defer h.mu.Unlock()
			if len(h.noise) != 1 || !strings.Contains(h.noise[0], "allowed") {
				t.Errorf("noise %q", h.noise)
			}
		})
	}
}

func TestT4_NoiseOnStdout(t *testing.T) {
	p, _, h := dialChild(t, "noise", nil)
	if got := mustCall(t, p, "x", json.RawMessage(`{"a":1}`)); string(got) != `{"a":1}` {
		t.Errorf("got %s", got)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	want := []string{
		"a line on stdout that is no message: starting up",
		`not JSON-RPC: no "jsonrpc":"2.0": {"level"`,
		"not JSON-RPC: [INFO] ready",
		`a line on stdout that is no message: "a string"`,
		"not JSON: ",
	}
	if len(h.noise) != len(want) {
		t.Fatalf("noise %q", h.noise)
	}
	for i, w := range want {
		if !strings.HasPrefix(h.noise[i], w) {
			t.Errorf("noise %d = %q, want %q…", i, h.noise[i], w)
		}
	}
}

func TestT4_StderrIsDrained(t *testing.T) {
	lines := make(chan string, 30000)
	p, c, _ := dialChild(t, "stderr", func(s *Stdio) { s.Stderr = func(l string) { lines <- l } })
	mustCall(t, p, "x", nil) // comes only after 2 MB of stderr
	for i := range 20000 {
		if l := <-lines; !strings.HasPrefix(l, fmt.Sprintf("line %d ", i)) {
			t.Fatalf("line %d is %q", i, l)
		}
	}
	got := c.Stderr()
	if len(got) != 200 || !strings.HasPrefix(got[0], "line 19800 ") || !strings.HasPrefix(got[199], "line 19999 ") {
		t.Errorf("%d lines kept, first %.20q", len(got), got[0])
	}
}

func TestT4_ExitInMidCall(t *testing.T) {
	p, _, _ := dialChild(t, "exit3", nil)
	start := time.Now()
	errs := make(chan error, 10)
	for range cap(errs) {
		go func() {
			_, err := p.Call(ctxFor(t), jsonrpc.Call{Method: "x"})
			errs <- err
		}()
	}
	for range cap(errs) {
		err := <-errs
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Code != 3 || exit.Signal != "" || len(exit.Stderr) != 2 {
			t.Fatalf("err = %v", err)
		}
		for _, w := range []string{"exit code 3", "config missing", "giving up"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q lacks %q", err, w)
			}
		}
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %s", d)
	}
	<-p.Done()
}

func TestT4_KilledBySignal(t *testing.T) {
	p, _, _ := dialChild(t, "kill", nil)
	_, err := p.Call(ctxFor(t), jsonrpc.Call{Method: "x"})
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Signal != "killed" || exit.Code != -1 {
		t.Fatalf("err = %v", err)
	}
}

func TestT4_StubbornServerIsKilled(t *testing.T) {
	p, c, _ := dialChild(t, "stubborn", nil)
	mustCall(t, p, "x", nil)
	start := time.Now()
	if err := p.Close(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("Close took %s", d)
	}
	if !gone(c.PID()) {
		t.Error("the server lives")
	}
}

// A grandchild that ignores SIGTERM and holds the pipes neither survives nor
// delays the news.
func TestT4_GrandchildIgnoresSIGTERM(t *testing.T) {
	for _, how := range []string{"close", "die"} {
		t.Run(how, func(t *testing.T) {
			p, _, _ := dialChild(t, "parent", nil)
			pid, err := strconv.Atoi(string(mustCall(t, p, how, nil)))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if how == "close" {
				if err := p.Close(ctxFor(t)); err != nil {
					t.Fatal(err)
				}
			} else {
				<-p.Done()
				var exit *ExitError
				if !errors.As(p.Err(), &exit) || exit.Code != 7 {
					t.Errorf("err = %v", p.Err())
				}
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("took %s", d)
			}
			if !waitGone(pid) {
				t.Error("the grandchild lives")
			}
		})
	}
}

// waitGone allows for the time that init takes to reap an orphan.
func waitGone(pid int) bool {
	return proctest.Until(10*time.Millisecond, func() bool { return !proctest.Alive(pid) })
}

func TestT4_ServerThatNeverReads(t *testing.T) {
	p, _, h := dialChild(t, "deaf", nil)
	<-h.notes
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := p.Call(ctx, jsonrpc.Call{Method: "x", Params: strings.Repeat("z", 1<<20)})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	start := time.Now()
	p.Close(ctxFor(t))
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("Close took %s", d)
	}
}

func TestStdioStdoutClosed(t *testing.T) {
	p, _, _ := dialChild(t, "mute", nil)
	if _, err := p.Call(ctxFor(t), jsonrpc.Call{Method: "x"}); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("err = %v", err)
	}
}

func TestStdioLastLineWithoutNewline(t *testing.T) {
	p, _, _ := dialChild(t, "unterminated", nil)
	if got := mustCall(t, p, "x", nil); string(got) != `{"last":true}` {
		t.Errorf("got %s", got)
	}
}

func TestStdioCannotStart(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		s    Stdio
		want string
	}{
		{"not found", Stdio{Command: "no-such-mcp-server"}, `the command "no-such-mcp-server" was not found on PATH`},
		{"own PATH", Stdio{Command: "sh", Env: []string{"PATH=" + dir}}, `"sh" was not found on PATH`},
		{"no command", Stdio{}, "there is no command"},
		{"no folder", Stdio{Command: "sh", Dir: filepath.Join(dir, "none")}, "does not exist"},
		{"not executable", Stdio{Command: plain}, "may not be executed"},
		{"missing file", Stdio{Command: filepath.Join(dir, "none")}, "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tc.s.Dial(t.Context(), "legacy")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v", err)
			}
			if tc.name == "not found" && !errors.Is(err, exec.ErrNotFound) {
				t.Error("does not wrap exec.ErrNotFound")
			}
		})
	}
}

func TestStdioCloseWithoutStart(t *testing.T) {
	self, _ := os.Executable()
	s := &Stdio{Command: self, Env: append(os.Environ(), "TRANSPORT_TEST_CHILD=noise"), Grace: 300 * time.Millisecond}
	c, err := s.Dial(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
}

func TestPipe(t *testing.T) {
	d := PipeDialer(func(ctx context.Context, c jsonrpc.Conn) {
		h := newPeerHandler()
		p := jsonrpc.NewPeer(c, h, jsonrpc.PeerOptions{})
		p.Start(ctx)
		for {
			select {
			case r := <-h.reqs:
				r.Reply(ctx, r.Params)
			case <-ctx.Done():
				return
			}
		}
	})
	conn, err := d.Dial(t.Context(), "legacy")
	if err != nil {
		t.Fatal(err)
	}
	p := jsonrpc.NewPeer(conn, newPeerHandler(), jsonrpc.PeerOptions{})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := mustCall(t, p, "x", []int{1}); string(got) != "[1]" {
		t.Errorf("got %s", got)
	}
	if err := p.Close(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
}
