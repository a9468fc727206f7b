//go:build unix

package tap

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/peers"
)

// conformance runs the suite and gives what it found: a line for each check of
// each scenario.
func conformance(t *testing.T, args ...string) []string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	suite := peers.Command(t, "conformance")
	results := t.TempDir()
	cmd := exec.CommandContext(ctx, suite[0], append(append(suite[1:], args...), "-o", results)...)
	cmd.Env = append(os.Environ(), "SDK="+filepath.Join(os.Getenv("MCPTASKS_PEERS"), "npm/node_modules/@modelcontextprotocol/sdk"))
	cmd.Dir = t.TempDir()
	out, _ := cmd.CombinedOutput() // a scenario that the peer itself fails ends it with 1
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", out)
		}
	})
	found := map[string]bool{}
	if err := filepath.WalkDir(results, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []struct{ ID, Status string }
		if err := json.Unmarshal(b, &checks); err != nil {
			return err
		}
		name, _ := filepath.Rel(results, filepath.Dir(path))
		for _, c := range checks {
			if c.Status != "INFO" { // those are a log of what passed, whose length is chance
				found[fmt.Sprintf("%s: %s %s", strings.TrimPrefix(stamp.ReplaceAllString(name, ""), "server-"), c.ID, c.Status)] = true
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	lines := slices.Sorted(maps.Keys(found))
	if len(lines) < 20 {
		t.Fatalf("the suite found %q\n%s", lines, out)
	}
	return lines
}

// stamp is what the suite adds to a scenario's name for a folder's.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// The server scenarios come out the same on a server with a tap before it.
func TestPeerConformanceServerScenarios(t *testing.T) {
	t.Parallel()
	url := peers.Serve(t, "everything-http")
	tap := startHTTP(t, Options{URL: url, Listen: "127.0.0.1:0", Name: "ci", Target: target, Memory: memoryIn(t.TempDir())})
	direct, tapped := conformance(t, "server", "--url", url), conformance(t, "server", "--url", tap)
	// One scenario a tap passes for a server that does not: it minds who asks.
	minds := func(s string) bool { return strings.HasPrefix(s, "dns-rebinding-protection: ") }
	if n := slices.IndexFunc(tapped, minds); n < 0 || strings.Contains(strings.Join(tapped, "\n"), "dns-rebinding-protection: FAILURE") {
		t.Error("the tap passes requests that name another host")
	}
	direct, tapped = slices.DeleteFunc(direct, minds), slices.DeleteFunc(tapped, minds)
	if !slices.Equal(direct, tapped) {
		t.Errorf("without a tap:\n%s\nthrough it:\n%s", strings.Join(direct, "\n"), strings.Join(tapped, "\n"))
	}
}

// All client scenarios, with the TypeScript SDK's client behind a tap: the suite
// starts it with the address of the server that it is tested on. What is wanted
// is what was found without a tap, which testdata/conformance.txt keeps.
func TestPeerConformanceClientScenarios(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	client := peers.Command(t, "everything")[0] + " " + filepath.Join(here, "testdata", "conformance.mjs")
	behind := strings.Join(program("conformance", t.TempDir()), " ") + " " + client
	run := func(command string) string {
		lines := conformance(t, "client", "--suite", "all", "--timeout", "120000", "--command", command)
		// One check measures how fast the machine is.
		lines = slices.DeleteFunc(lines, func(s string) bool { return strings.Contains(s, "sse-retry: client-sse-retry-timing") })
		return strings.Join(lines, "\n") + "\n"
	}
	path := filepath.Join("testdata", "conformance.txt")
	if *update {
		if err := os.WriteFile(path, []byte(run(client)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := run(behind); got != string(want) {
		t.Errorf("through the tap:\n%s\nkept of a run without one:\n%s", got, want)
	}
}
