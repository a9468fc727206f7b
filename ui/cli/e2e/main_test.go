//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the built mcptasks.
var program string

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		os.Exit(conformanceClient(os.Args[1:]))
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		// The peers' own pace is what most of the time goes into.
		_ = f.Value.Set("8")
	}
	os.Exit(build(m))
}

// build makes the program once for all tests. MCPTASKS_PROGRAM names one that
// is built already.
func build(m *testing.M) int {
	if program = os.Getenv("MCPTASKS_PROGRAM"); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "mcptasks-e2e-")
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
