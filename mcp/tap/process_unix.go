//go:build unix

package tap

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
)

// passed are the signals that the server gets as we get them. Those that a
// terminal sends to all of its foreground go to all of the server's group, the
// others to the server alone, as they would without us.
var passed = map[os.Signal]bool{
	syscall.SIGHUP: true, syscall.SIGINT: true, syscall.SIGQUIT: true, syscall.SIGWINCH: true, syscall.SIGCONT: true,
	syscall.SIGTERM: false, syscall.SIGUSR1: false, syscall.SIGUSR2: false,
}

// watchSignals has signals delivered to c. A broken pipe to the agent must be
// an error to us, not our end.
func watchSignals(c chan<- os.Signal) {
	for s := range passed {
		signal.Notify(c, s)
	}
	signal.Ignore(syscall.SIGPIPE)
}

// passSignal hands a signal on.
func passSignal(p *os.Process, s os.Signal) {
	n, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	if passed[s] {
		_ = syscall.Kill(-p.Pid, n)
		return
	}
	_ = syscall.Kill(p.Pid, n)
}

// exitOf reads how the server ended.
func exitOf(st *os.ProcessState) Exit {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: int(ws.Signal()), Words: "ended by a signal (" + ws.Signal().String() + ")"}
	}
	return Exit{Code: st.ExitCode(), Words: fmt.Sprintf("ended with exit code %d", st.ExitCode())}
}

// Die ends this process by the signal that ended the server, so that whoever
// started us sees what it would have seen. It returns where it cannot.
func (e Exit) Die() {
	s := syscall.Signal(e.Signal)
	switch s {
	case 0:
		return
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2:
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s)
		select {} // it is on its way
	}
	// Of the others our runtime makes something else; a shell does not.
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -" + strconv.Itoa(e.Signal) + " $$"}, os.Environ())
}

// A guard ends the server's group when we are killed and cannot do it
// ourselves: a shell that waits for the end of its input.
type guard struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// Shells do not agree on how a group is written.
const guardScript = `read -r g || exit 0
read -r x && exit 0
end() { kill -s "$1" -- "-$g" 2>/dev/null || kill "-$1" "-$g" 2>/dev/null; }
end TERM || exit 0
sleep 1
end KILL`

// newGuard starts a guard over nothing yet; nil when there is no shell.
func newGuard() *guard {
	g := &guard{cmd: exec.Command("/bin/sh", "-c", guardScript)}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil
	}
	if err := g.cmd.Start(); err != nil {
		_ = g.in.Close()
		return nil
	}
	return g
}

// over tells what to guard.
func (g *guard) over(p *os.Process) {
	if g != nil {
		_, _ = fmt.Fprintf(g.in, "%d\n", p.Pid)
	}
}

// end sends the guard home.
func (g *guard) end() {
	if g == nil {
		return
	}
	_, _ = io.WriteString(g.in, "\n")
	_ = g.in.Close()
	_ = g.cmd.Wait()
}

// parent is who started us; it changes when that is dead.
func parent() int { return os.Getppid() }
