//go:build !linux

package transport

import "os/exec"

// dieWithUs: on Windows the job object ends the program with us. On macOS
// nothing does; the end of its stdin is all that a server hears when we are
// killed.
func dieWithUs(*exec.Cmd) {}
