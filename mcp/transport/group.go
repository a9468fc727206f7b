package transport

import (
	"os"
	"os/exec"
	"time"
)

// A Group is a program started beside us with all that it starts, unless that
// leaves the group: a process group on Unix, a job on Windows. It is for those
// who start programs without a connection of this package.
type Group struct{ g procGroup }

// PrepareGroup makes cmd, which is not started yet, the first of a group.
func PrepareGroup(cmd *exec.Cmd) { prepareProcess(cmd) }

// NewGroup is the group of a process that was prepared and has started. On an
// error the group is that process alone.
func NewGroup(p *os.Process) (Group, error) {
	g, err := newProcGroup(p)
	return Group{g}, err
}

// Terminate asks the group to end, where the system can ask.
func (g Group) Terminate() { g.g.terminate() }

// Kill ends the group.
func (g Group) Kill() { g.g.kill() }

// Sweep ends what is left of the group after its first process is dead: it
// asks, waits for at most grace, and kills.
func (g Group) Sweep(grace time.Duration) { g.g.sweep(grace) }

// Close gives back what the group itself takes.
func (g Group) Close() { g.g.close() }
