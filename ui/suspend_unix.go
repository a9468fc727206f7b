//go:build unix

package ui

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// unstopped is how long it takes at most until a signal that stops the program
// has done so. Where nobody could continue it (no shell above it) the system
// does not stop it at all.
const unstopped = 250 * time.Millisecond

// A job is the program as its shell sees it: something that can be stopped and
// continued, by a key and by a signal.
type job struct {
	asked chan os.Signal
	end   chan struct{}
}

// newJob listens for the signal that asks to stop; without, the program would
// stop and keep the terminal.
func newJob(send func(tea.Msg)) *job {
	j := &job{asked: make(chan os.Signal, 1), end: make(chan struct{})}
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(j.asked, syscall.SIGTSTP)
	}
	go func() {
		for {
			select {
			case <-j.asked:
				send(suspendMsg{})
			case <-j.end:
				return
			}
		}
	}()
	return j
}

func (j *job) close() {
	signal.Stop(j.asked)
	close(j.end)
}

// suspend gives the terminal back, stops, and takes the terminal again.
func (j *job) suspend() tea.Cmd {
	return tea.Exec(j, func(error) tea.Msg { return tea.ResumeMsg{} })
}

// Run implements tea.ExecCommand: the terminal is the shell's meanwhile.
func (j *job) Run() error {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	// The whole group, as the terminal's own key would: a pipeline stops whole.
	// Not by SIGTSTP: a Go program that has listened for it can not be stopped
	// by it any more. SIGSTOP would stop it also where nobody continues it.
	if err := syscall.Kill(0, syscall.SIGTTIN); err == nil {
		select {
		case <-goesOn:
		case <-time.After(unstopped):
		}
	}
	return nil
}

// SetStdin and the like are without meaning here.
func (*job) SetStdin(io.Reader)  {}
func (*job) SetStdout(io.Writer) {}
func (*job) SetStderr(io.Writer) {}
