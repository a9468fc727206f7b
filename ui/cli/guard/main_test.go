//go:build linux

package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// program is the built mcptasks.
var program string

// patience is for what has to come: a machine may be busy.
const patience = 4 * time.Minute

func TestMain(m *testing.M) {
	switch {
	case Is(os.Args):
		os.Exit(Main())
	case os.Getenv(asPanic) != "":
		panics()
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcptasks-guard-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "mcptasks")
	cmd := exec.Command("go", "build", "-o", program, "mcptasks")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building mcptasks: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
