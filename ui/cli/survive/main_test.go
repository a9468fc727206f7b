//go:build linux

package survive

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"mcptasks/mcp/proctest"
)

// relayWord makes the test's binary a relay: a program on stdio that is only
// the way to the server in the test, so that the server outlives it.
const relayWord = "relay-to"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == relayWord {
		relay(os.Args[2])
		return
	}
	code := m.Run()
	proctest.Clean()
	os.Exit(code)
}

// relay copies stdin to a socket and the socket to stdout, until either ends.
func relay(socket string) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(c, os.Stdin)
		os.Exit(0)
	}()
	_, _ = io.Copy(os.Stdout, c)
}

// program is the built mcptasks.
func program(t testing.TB) string {
	t.Helper()
	path, err := proctest.Program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
