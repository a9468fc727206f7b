package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var built struct {
	once sync.Once
	dir  string // "": it was built by somebody else
	path string
	err  error
}

// Program is the path of the built mcptasks: the one that MCPTASKS_PROGRAM
// names, else one that is built now, once for this process. Clean takes it away.
func Program() (string, error) {
	b := &built
	b.once.Do(func() {
		if b.path = os.Getenv("MCPTASKS_PROGRAM"); b.path != "" {
			return
		}
		if b.dir, b.err = os.MkdirTemp("", "mcptasks-test-"); b.err != nil {
			return
		}
		b.path = filepath.Join(b.dir, "mcptasks")
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", b.path, "mcptasks")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("building mcptasks: %w\n%s", err, out)
		}
	})
	return b.path, b.err
}

// Clean removes what Program has built. It is called when all tests are over.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// Run is for a TestMain: it runs the tests with the built mcptasks in program,
// and gives their exit code.
func Run(m *testing.M, program *string) int {
	defer Clean()
	var err error
	if *program, err = Program(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
