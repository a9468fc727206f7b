package tap

import (
	"fmt"
	"os"
	"os/signal"
)

func watchSignals(c chan<- os.Signal) { signal.Notify(c, os.Interrupt) }

// passSignal: Windows has no signals to hand on; an interrupt ends the server.
func passSignal(p *os.Process, _ os.Signal) { _ = p.Kill() }

func exitOf(st *os.ProcessState) Exit {
	return Exit{Code: st.ExitCode(), Words: fmt.Sprintf("ended with exit code %d", st.ExitCode())}
}

// Die does nothing here: nothing dies by a signal on Windows.
func (e Exit) Die() {}

// A guard is not needed: the job ends with us.
type guard struct{}

func newGuard() *guard            { return nil }
func (g *guard) over(*os.Process) {}
func (g *guard) end()             {}

func parent() int { return os.Getppid() }
