//go:build linux

package guard

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp/proctest"
)

// stubborn is a server that does not end when its input does, and leaves a
// child that heeds no signal but the last.
func stubborn() string {
	return fmt.Sprintf("ci=%s demo-server --tasks 20 --fault 'start grandchild; eof ignore'", program)
}

// watching shows the program on a stubborn server and waits for its tasks.
func watching(t *testing.T, wrap ...string) *screen {
	t.Helper()
	home := t.TempDir()
	s := show(t, environ(home), slices.Concat(wrap, []string{program, "--state", home + "/state", "-s", stubborn()})...)
	s.see("sorted by needs")
	s.see("working")
	s.until("a guard, a server and its child", func() bool { return s.relatives() >= 3+len(wrap)/2 })
	if m := on(s.bytes()); !slices.Contains(m, "1049") || s.termios() == s.before {
		t.Fatalf("the screens have not taken the terminal: %v", m)
	}
	return s
}

// TestTerminalIsGivenBack: however the program ends, the terminal is as it was
// and nothing that was started goes on.
func TestTerminalIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *screen)
		code int
	}{
		{"quit", func(s *screen) { s.press("q") }, 0},
		{"ctrl+c twice", func(s *screen) { s.press("\x03\x03") }, 0},
		{"SIGINT", kill(syscall.SIGINT), 130},
		{"SIGTERM", kill(syscall.SIGTERM), 130},
		{"SIGHUP", kill(syscall.SIGHUP), 130},
		{"SIGQUIT", kill(syscall.SIGQUIT), 2},
		{"SIGABRT", kill(syscall.SIGABRT), 2},
		{"SIGSEGV", kill(syscall.SIGSEGV), 2},
		{"SIGKILL", kill(syscall.SIGKILL), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := watching(t)
			began := time.Now()
			c.end(s)
			code := s.end()
			s.given()
			s.alone()
			t.Logf("exit %d; all over after %s", code, time.Since(began).Round(10*time.Millisecond))
			if code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
		})
	}
}

func kill(sig syscall.Signal) func(s *screen) {
	return func(s *screen) {
		if err := s.cmd.Process.Signal(sig); err != nil {
			s.t.Error(err)
		}
	}
}

// TestTerminalIsLost: when the terminal is gone the program ends with all that
// it has started, also where the signal that tells so is ignored.
func TestTerminalIsLost(t *testing.T) {
	for _, c := range []struct {
		name string
		wrap []string
	}{
		{"hung up", nil},
		{"hung up, SIGHUP ignored", []string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			s := show(t, environ(home), slices.Concat(c.wrap, []string{program, "--state", home + "/state", "-s", stubborn()})...)
			s.see("sorted by needs")
			s.see("working")
			s.until("a guard, a server and its child", func() bool { return s.relatives() >= 3 })
			if err := s.master.Close(); err != nil {
				t.Fatal(err)
			}
			s.end()
			s.alone()
		})
	}
}

// TestSuspend: ctrl+z and SIGTSTP give the terminal to the shell, fg takes it
// again with the screen as it was.
func TestSuspend(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(s *screen, pid int)
	}{
		{"ctrl+z", func(s *screen, _ int) { s.press("\x1a") }},
		{"SIGTSTP", func(s *screen, pid int) { _ = syscall.Kill(pid, syscall.SIGTSTP) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			s := show(t, environ(home), "sh", "-c", `set -m; "$0" "$@"; stty -a; echo the shell is here; read x; fg; echo "over: $?"`, program, "--state", home+"/state", "-s", stubborn())
			pid := s.atWork()
			c.stop(s, pid)
			s.see("the shell is here")
			s.given()
			if strings.Contains(s.text(), "sorted by needs") {
				t.Errorf("the screens are still there:\n%s", s.text())
			}
			from := len(s.bytes())
			s.press("\n")
			s.until("the screens again", func() bool {
				return slices.Contains(on(s.bytes()), "1049") && bytes.Contains(s.bytes()[from:], []byte("sorted by")) && s.termios() != s.before
			})
			s.see("sorted by needs")
			s.press("q")
			s.see("over: 0")
			s.given()
			s.alone()
		})
	}
}

// atWork waits until the program shows a task of its one server, under a guard,
// and tells its process.
func (s *screen) atWork() (pid int) {
	s.see("sorted by needs")
	s.see("working")
	s.until("a guard, a server and its child", func() bool { return s.relatives() >= 4 })
	for p := range s.kin {
		if args := proctest.Command(p); strings.HasPrefix(args, program) && !strings.Contains(args, " demo-server --tasks 20 --fault start") {
			pid = p
		}
	}
	return pid
}

// TestStopped: a program that was stopped by the signal that nobody can catch
// could not give the terminal back. When it goes on, it takes the terminal as its
// shell has left it, and draws all anew.
func TestStopped(t *testing.T) {
	home := t.TempDir()
	s := show(t, environ(home), "sh", "-c", `set -m; "$0" "$@"; stty sane; printf '\033[?1049l\033[2Jthe shell is here'; read x; fg; echo "over: $?"`, program, "--state", home+"/state", "-s", stubborn())
	pid := s.atWork()
	taken := s.termios()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.see("the shell is here")
	if s.termios() == taken {
		t.Fatal("the shell has not changed the terminal: nothing is tested")
	}
	s.press("\n")
	s.until("the screens again", func() bool {
		return slices.Contains(on(s.bytes()), "1049") && s.termios() == taken && strings.Contains(s.text(), "sorted by needs") && strings.Contains(s.text(), "STATUS")
	})
	if strings.Contains(s.text(), "the shell is here") {
		t.Errorf("the shell's words stand among the screens:\n%s", s.text())
	}
	s.press("q")
	s.see("over: 0")
	s.given()
	s.alone()
}

// TestSuspendWithoutAShell: where nobody could continue the program the system
// does not stop it, and it goes on.
func TestSuspendWithoutAShell(t *testing.T) {
	s := watching(t)
	from := len(s.bytes())
	s.press("\x1a")
	s.until("the screens again", func() bool {
		b := s.bytes()[from:]
		return bytes.Contains(b, []byte("\x1b[?1049l")) && slices.Contains(on(s.bytes()), "1049")
	})
	s.press("s")
	s.see("TASKS BY")
	s.press("q")
	if code := s.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
	s.given()
	s.alone()
}

const asPanic = "MCPTASKS_TEST_PANIC"

// panics takes a terminal as the screens do and panics in a goroutine that
// nobody watches.
func panics() {
	if _, err := Start(os.Stdout); err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	raw(os.Stdout)
	fmt.Print("\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h\x1b[>1u the screens")
	go func() {
		switch os.Getenv(asPanic) {
		case "map":
			m := map[int]int{}
			for {
				go func() {
					for {
						m[1]++
					}
				}()
			}
		default:
			panic("a word of a server: \x1b]0;owned\x07\x1b[31m")
		}
	}()
	select {}
}

// TestPanicInAnyGoroutine: a panic that nothing recovers, and what the runtime
// itself calls fatal.
func TestPanicInAnyGoroutine(t *testing.T) {
	for _, c := range []struct{ kind, says string }{{"panic", "panic: a word of a server: "}, {"map", "maps.fatal("}} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			s := show(t, append(environ(t.TempDir()), asPanic+"="+c.kind), self)
			if code := s.end(); code != 2 {
				t.Errorf("exit %d", code)
			}
			s.given()
			s.see("mcptasks: it ended without giving the terminal back")
			_, after, _ := bytes.Cut(s.bytes(), []byte("\x1b[?1049l"))
			if !bytes.Contains(after, []byte(c.says)) || bytes.Contains(after, []byte("owned\x07")) {
				t.Errorf("afterwards: %q", after)
			}
		})
	}
}
