//go:build !unix

package journal

import "os"

// running reports whether a process with this id exists on this machine.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}

func node(host string) string { return host }
