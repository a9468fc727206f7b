//go:build linux

package guard

import (
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcptasks/mcp/proctest"
)

// TestTerminalBeforeTheEnd: a program that crashes has its terminal set right
// while it still says why. A shell that waits for its end takes the terminal, as
// it is then, for the usual state (bash does after an exit that no signal made).
func TestTerminalBeforeTheEnd(t *testing.T) {
	master, slave := proctest.Terminal(t, columns, rows)
	defer master.Close()
	defer slave.Close()
	go func() { _, _ = io.Copy(io.Discard, master) }()
	state := func() unix.Termios {
		s, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return *s
	}
	before := state()
	g, err := Start(slave)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Release()
	raw(slave)
	if state() == before {
		t.Fatal("the terminal was not changed: nothing is tested")
	}
	if err := g.say("panic: out of order"); err != nil {
		t.Fatal(err)
	}
	if !proctest.Until(time.Millisecond, func() bool { return state() == before }) {
		t.Fatal("the terminal is as the program had it, until the program ends")
	}
}
