//go:build linux

package guard

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"mcptasks/mcp/proctest"
)

// A screen is a pseudo terminal with a program on it.
type screen struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File // held open, to see how it is set
	before unix.Termios
	ended  chan struct{}
	kin    map[int]bool // processes that it has started, at any depth, as far as seen

	mu  sync.Mutex
	em  *vt.Emulator
	out []byte
}

const (
	columns = 120
	rows    = 40
)

// environ is that of a person without a past.
func environ(home string) []string {
	return []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/config", "XDG_STATE_HOME=" + home + "/state", "PATH=" + os.Getenv("PATH"),
		"TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=" + home + "/no-bus"} // not the keyring of whoever runs the tests
}

// show starts a command on a new pseudo terminal, as the leader of its session.
func show(t *testing.T, env []string, args ...string) *screen {
	t.Helper()
	master, slave := proctest.Terminal(t, columns, rows)
	s := &screen{t: t, master: master, slave: slave, ended: make(chan struct{}), kin: map[int]bool{}, em: vt.NewEmulator(columns, rows)}
	s.before = s.termios()
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.Env = env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, s.em) }() // its answers are not wanted
	go func() {
		b := make([]byte, 32<<10)
		for {
			n, err := master.Read(b)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.out = append(s.out, b[:n]...)
			_, _ = s.em.Write(b[:n])
			s.mu.Unlock()
		}
	}()
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.relatives()
		_ = s.cmd.Process.Kill()
		for pid := range s.kin {
			if proctest.Alive(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		<-s.ended
		_ = slave.Close()
		_ = master.Close()
	})
	return s
}

func (s *screen) termios() unix.Termios {
	s.t.Helper()
	t, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *t
}

// text is what is on the screen.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for y := range rows {
		for x := 0; x < columns; {
			c := s.em.CellAt(x, y)
			if c == nil || c.Width == 0 {
				b.WriteByte(' ')
				x++
				continue
			}
			b.WriteString(c.Content)
			x += c.Width
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// bytes is all that was written to the terminal.
func (s *screen) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.out)
}

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Error(err)
	}
}

// until waits for something to hold.
func (s *screen) until(what string, ok func() bool) {
	s.t.Helper()
	if !proctest.Until(20*time.Millisecond, ok) {
		s.t.Fatalf("not in %s: %s (on are %v)\n%s\nthe last bytes: %q", proctest.Patience, what, on(s.bytes()), s.text(), tail(s.bytes()))
	}
}

func tail(b []byte) []byte { return b[max(0, len(b)-600):] }

func (s *screen) see(text string) {
	s.t.Helper()
	s.until("on the screen: "+text, func() bool { return strings.Contains(s.text(), text) })
}

// end waits for the program's end and gives its exit code, -1 for a signal.
func (s *screen) end() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(proctest.Patience):
		s.t.Fatalf("it has not ended after %s\n%s", proctest.Patience, s.text())
	}
	return s.cmd.ProcessState.ExitCode()
}

// relatives notes the processes under the program, and gives their number.
func (s *screen) relatives() int {
	for _, pid := range proctest.Family(s.cmd.Process.Pid)[1:] {
		s.kin[pid] = true
	}
	return len(s.kin)
}

// alone waits until none of the processes is left that were seen.
func (s *screen) alone() {
	s.t.Helper()
	s.until("no process left", func() bool {
		for pid := range s.kin {
			if proctest.Alive(pid) {
				return false
			}
		}
		return true
	})
}

var modes = regexp.MustCompile(`\x1b\[\?([\d;]+)([hl])|\x1b\[([<>])(\d*)u|\x1b\[>4(?:;(\d+))?m`)

// on are the modes that are left on by what was written to the terminal:
// "1049", "2004", "keys" and so on; the cursor is "25" where it is hidden, and lines are "7" where they do not wrap.
func on(out []byte) []string {
	set := map[string]bool{}
	keys := 0
	for _, m := range modes.FindAllSubmatch(out, -1) {
		switch {
		case len(m[1]) > 0:
			for n := range strings.SplitSeq(string(m[1]), ";") {
				set[n] = (m[2][0] == 'h') != (n == "25" || n == "7")
			}
		case len(m[3]) > 0 && m[3][0] == '>':
			keys++
		case len(m[3]) > 0:
			keys = max(0, keys-1)
		default:
			set["other keys"] = len(m[5]) > 0 && m[5][0] != '0'
		}
	}
	set["keys"] = keys > 0
	var out2 []string
	for k, v := range set {
		if v {
			out2 = append(out2, k)
		}
	}
	slices.Sort(out2)
	return out2
}

// given asserts that the terminal is as it was before.
func (s *screen) given() {
	s.t.Helper()
	s.until("the terminal is given back", func() bool { return len(on(s.bytes())) == 0 })
	s.until("the terminal is set as before", func() bool { return s.termios() == s.before })
}
