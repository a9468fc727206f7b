//go:build linux || darwin

package guard

import (
	"encoding/json"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stateOf is how a terminal is set.
func stateOf(tty *os.File) (json.RawMessage, error) {
	t, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios)
	if err != nil {
		return nil, err
	}
	return json.Marshal(t)
}

func setState(tty *os.File, state json.RawMessage) {
	var t unix.Termios
	if json.Unmarshal(state, &t) == nil {
		_ = unix.IoctlSetTermios(int(tty.Fd()), setTermios, &t)
	}
}

// apart puts the guard into a session of its own from its first moment on, so
// that no signal of the terminal ends or stops it, and it may set the terminal
// from there when the program is gone.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// unmoved lets the guard outlive what ends the program.
func unmoved() {
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTTOU, syscall.SIGPIPE)
}

// endGroups asks process groups to end, and sees to it.
func endGroups(groups map[int]bool, grace time.Duration) {
	alive := func() bool {
		for pid := range groups {
			if syscall.Kill(-pid, 0) != nil {
				delete(groups, pid)
			}
		}
		return len(groups) > 0
	}
	if !alive() {
		return
	}
	for pid := range groups {
		_ = syscall.Kill(-pid, syscall.SIGTERM)
	}
	for end := time.Now().Add(grace); alive() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	for pid := range groups {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
