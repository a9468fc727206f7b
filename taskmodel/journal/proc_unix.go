//go:build unix

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// running reports whether a process with this id runs on this machine. One that
// has ended and whose parent has not asked for it yet does not.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	// Where there is a /proc as on Linux: the state follows the name, which is in
	// brackets and may hold anything.
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, ok := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	return !ok || len(rest) == 0 || rest[0] != 'Z' && rest[0] != 'X'
}

// node names where our process ids mean something: the host, and on Linux the
// name space of processes, since containers may share a host's name.
func node(host string) string {
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return host
	}
	return host + " " + ns
}
