package tap

import (
	"os"
	"syscall"
)

// roomy is how much a pipe takes before whoever writes to it has to wait for
// whoever reads. Linux gives 64 KiB, by which a longer message goes over in
// turns, each of which costs both sides a wait for the processor.
const roomy = 1 << 20

const setPipeSize = 1031 // F_SETPIPE_SZ

// roomier makes a pipe take more, where v is one and that is allowed.
func roomier(v any) {
	f, ok := v.(*os.File)
	if !ok {
		return
	}
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, roomy)
	})
}
