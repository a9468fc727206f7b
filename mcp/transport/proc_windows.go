package transport

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// procGroup is the job object of a child: it and what it starts. What the child
// started before it was put into the job is not in it.
type procGroup struct {
	job  windows.Handle
	proc *os.Process
}

func prepareProcess(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// newProcGroup puts p into a job that dies with this process. When that fails
// the group is p alone.
func newProcGroup(p *os.Process) (procGroup, error) {
	g := procGroup{proc: p}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return g, fmt.Errorf("create a job object: %w", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err == nil {
		var h windows.Handle
		h, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
		if err == nil {
			err = windows.AssignProcessToJobObject(job, h)
			windows.CloseHandle(h)
		}
	}
	if err != nil {
		windows.CloseHandle(job)
		return g, fmt.Errorf("put the program into a job object: %w", err)
	}
	g.job = job
	return g, nil
}

// terminate asks for nothing: Windows has no SIGTERM, and closing stdin was the
// question.
func (g procGroup) terminate() {}

func (g procGroup) kill() {
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
		return
	}
	_ = g.proc.Kill()
}

func (g procGroup) sweep(time.Duration) { g.kill() }

func (g procGroup) close() {
	if g.job != 0 {
		windows.CloseHandle(g.job)
	}
}

func signalName(*os.ProcessState) string { return "" }

func executable(fi os.FileInfo) bool { return !fi.IsDir() }

// readNow reads nothing: pipes have no deadlines here after which it would be
// called.
func readNow(*os.File, []byte) (int, error) { return 0, nil }
