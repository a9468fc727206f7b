//go:build linux

package survive

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openPTY makes a terminal of the size given.
func openPTY(t testing.TB, cols, rows uint16) (master, slave *os.File) {
	t.Helper()
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	fd := int(m.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// screens runs the terminal UI at a terminal of its own. What it draws is in
// out; type writes keys.
type screens struct {
	*running
	master *os.File
}

func (u *user) screens(args ...string) *screens {
	u.t.Helper()
	master, slave := openPTY(u.t, 120, 36)
	r := &running{cmd: u.command(args...), done: make(chan struct{})}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = slave, slave, slave
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	r.start(u.t)
	_ = slave.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 32<<10)
		for {
			n, err := master.Read(b)
			_, _ = r.out.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	u.t.Cleanup(func() { r.kill(); <-r.done; _ = master.Close(); <-read })
	return &screens{r, master}
}

func (s *screens) press(keys string) { _, _ = s.master.WriteString(keys) }
