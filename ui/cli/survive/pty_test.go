//go:build linux

package survive

import (
	"os"
	"syscall"

	"mcptasks/mcp/proctest"
)

// screens runs the terminal UI at a terminal of its own. What it draws is in
// out; type writes keys.
type screens struct {
	*running
	master *os.File
}

func (u *user) screens(args ...string) *screens {
	u.t.Helper()
	master, slave := proctest.Terminal(u.t, 120, 36)
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
