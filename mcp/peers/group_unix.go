//go:build !windows

package peers

import (
	"os/exec"
	"syscall"
)

// alone puts a peer into a process group of its own, so that killGroup reaches
// all that it started.
func alone(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
