package transport

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the kernel end the program when we are killed: a server may not
// heed the end of its stdin. It is asked (SIGTERM), so that one that started the
// server for us (npx, uv) can hand it on. cmd must be started on a thread that
// lasts as long as the program does.
func dieWithUs(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
}
