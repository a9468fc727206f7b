//go:build linux

package survive

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
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
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
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

var (
	built string
	once  sync.Once
)

// program is the built mcptasks. MCPTASKS_PROGRAM names one that is built
// already.
func program(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("MCPTASKS_PROGRAM"); p != "" {
		return p
	}
	once.Do(func() {
		dir, err := os.MkdirTemp("", "mcptasks-survive-")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "mcptasks")
		cmd := exec.Command("go", "build", "-o", path, "mcptasks")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			_ = os.RemoveAll(dir)
			t.Fatalf("building mcptasks: %v\n%s", err, out)
		}
		built = path
	})
	if built == "" {
		t.Fatal("mcptasks could not be built")
	}
	return built
}
