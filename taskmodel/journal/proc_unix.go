//go:build unix

package journal

import (
	"errors"
	"os"
	"syscall"
)

// running reports whether a process with this id exists on this machine.
func running(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
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
