//go:build unix

package ui

import (
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// unstopped is how long it takes at most until a signal that stops the program
// has done so. Where nobody could continue it (no shell above it) the system
// does not stop it at all.
const unstopped = 250 * time.Millisecond

// A job is the program as its shell sees it: something that can be stopped and
// continued, by a key and by a signal.
type job struct {
	asked     chan os.Signal
	continued chan os.Signal
	goesOn    chan struct{} // holds one: continued, after suspend stopped it
	away      atomic.Bool   // suspend has given the terminal back
	end       chan struct{}
}

// newJob listens for the signal that asks to stop; without, the program would
// stop and keep the terminal. It also listens for the one that continues it: who
// was stopped by a signal that nobody can catch finds the terminal as its shell
// has left it.
func newJob(send func(tea.Msg)) *job {
	j := &job{asked: make(chan os.Signal, 1), continued: make(chan os.Signal, 1), goesOn: make(chan struct{}, 1), end: make(chan struct{})}
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(j.asked, syscall.SIGTSTP)
	}
	signal.Notify(j.continued, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-j.asked:
				send(suspendMsg{})
			case <-j.continued:
				if j.away.Load() {
					select {
					case j.goesOn <- struct{}{}:
					default:
					}
				} else if foreground() {
					send(continuedMsg{})
				}
			case <-j.end:
				return
			}
		}
	}()
	return j
}

func (j *job) close() {
	signal.Stop(j.asked)
	signal.Stop(j.continued)
	close(j.end)
}

// foreground reports whether the terminal is this program's: to touch it from
// behind would stop the program again.
func foreground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	pgrp, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && pgrp == unix.Getpgrp()
}

// suspend gives the terminal back, stops, and takes the terminal again.
func (j *job) suspend() tea.Cmd {
	return tea.Exec(j, func(error) tea.Msg { return tea.ResumeMsg{} })
}

// retake takes the terminal as if it had been given back, and draws all anew.
func (j *job) retake() tea.Cmd {
	return tea.Exec(moment{}, func(error) tea.Msg { return tea.ResumeMsg{} })
}

// Run implements tea.ExecCommand: the terminal is the shell's meanwhile.
func (j *job) Run() error {
	select {
	case <-j.goesOn:
	default:
	}
	j.away.Store(true)
	defer j.away.Store(false)
	// The whole group, as the terminal's own key would: a pipeline stops whole.
	// Not by SIGTSTP: a Go program that has listened for it can not be stopped
	// by it any more. SIGSTOP would stop it also where nobody continues it.
	if err := syscall.Kill(0, syscall.SIGTTIN); err == nil {
		select {
		case <-j.goesOn:
		case <-time.After(unstopped):
		}
	}
	return nil
}

// SetStdin and the like are without meaning here.
func (*job) SetStdin(io.Reader)  {}
func (*job) SetStdout(io.Writer) {}
func (*job) SetStderr(io.Writer) {}

// A moment is a command that does nothing; what returns at once can freeze the
// program that runs it.
type moment struct{}

func (moment) Run() error {
	time.Sleep(10 * time.Millisecond)
	return nil
}
func (moment) SetStdin(io.Reader)  {}
func (moment) SetStdout(io.Writer) {}
func (moment) SetStderr(io.Writer) {}
