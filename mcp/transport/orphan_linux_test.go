package transport

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/proctest"
)

// A server does not outlive a mcptasks that was killed (SIGKILL), and lives as
// long as that does, whatever becomes of its threads.
func TestNoOrphanAfterSIGKILL(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "TRANSPORT_TEST_CHILD=starter")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, nerr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || nerr != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the parent said %q (%v)", line, err)
	}
	if !proctest.Alive(pid) {
		t.Error("the server is dead while its parent lives")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for end := time.Now().Add(time.Minute); proctest.Alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
			t.Fatal("the server outlives its parent")
		}
	}
}
