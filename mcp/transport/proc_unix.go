//go:build unix

package transport

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// procGroup is the process group of a child: the child, and what it started
// unless that made a group of its own.
type procGroup struct{ pgid int }

func prepareProcess(cmd *exec.Cmd) {
	// A group of its own also keeps the terminal's Ctrl+C from the child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func newProcGroup(p *os.Process) (procGroup, error) { return procGroup{p.Pid}, nil }

func (g procGroup) terminate() { _ = syscall.Kill(-g.pgid, syscall.SIGTERM) }

func (g procGroup) kill() { _ = syscall.Kill(-g.pgid, syscall.SIGKILL) }

// sweep ends what is left of the group after its leader's death: SIGTERM, a
// moment, SIGKILL.
func (g procGroup) sweep(grace time.Duration) {
	if !g.alive() {
		return
	}
	g.terminate()
	for end := time.Now().Add(grace); g.alive() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	g.kill()
}

func (g procGroup) alive() bool {
	// EPERM (a setuid member) means that there is somebody.
	return !errors.Is(syscall.Kill(-g.pgid, 0), syscall.ESRCH)
}

func (g procGroup) close() {}

// signalName names the signal that ended the process, "" when it exited.
func signalName(st *os.ProcessState) string {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}

func executable(fi os.FileInfo) bool { return !fi.IsDir() && fi.Mode()&0o111 != 0 }

// readNow reads what is in a pipe, and does not wait where there is nothing.
func readNow(f *os.File, b []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if cerr := raw.Read(func(fd uintptr) bool {
		for {
			if n, err = syscall.Read(int(fd), b); !errors.Is(err, syscall.EINTR) {
				return true // whatever came: true does not wait
			}
		}
	}); cerr != nil {
		return 0, cerr
	}
	return n, err
}
