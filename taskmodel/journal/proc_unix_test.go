//go:build unix

package journal

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// A process that was killed and that nobody has asked for yet (a zombie) holds
// nothing any more.
func TestAKilledProcessDoesNotRun(t *testing.T) {
	if !running(os.Getpid()) || !running(os.Getppid()) {
		t.Fatal("we do not run")
	}
	c := exec.Command("sh", "-c", "read x")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	pid := c.Process.Pid
	if !running(pid) {
		t.Error("it runs")
	}
	_ = c.Process.Kill()
	if _, err := io.ReadAll(out); err != nil { // its end of the pipe closes when it ends
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		for running(pid) {
			runtime.Gosched()
		}
	}
	_ = c.Wait()
	if running(pid) {
		t.Error("it has ended and was asked for")
	}
}
