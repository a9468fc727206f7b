//go:build unix

package tap

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/peers"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// These tests put a tap between clients and servers that nobody here wrote, and
// want them to say and do what they do without one.

// script runs an agent's script and gives what it printed.
func script(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "SDK="+filepath.Join(os.Getenv("MCPTASKS_PEERS"), "npm/node_modules/@modelcontextprotocol/sdk"))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %v\n%s\n%s", args, err, out, errs.String())
	}
	return string(out)
}

func node(t *testing.T, name string) []string {
	return []string{peers.Command(t, "everything")[0], filepath.Join("testdata", name)}
}

func fastmcp(t *testing.T) []string {
	return []string{peers.Command(t, "fastmcp")[0], filepath.Join("testdata", "agent.py")}
}

func same(t *testing.T, direct, tapped string) {
	t.Helper()
	if direct != tapped {
		t.Errorf("without a tap:\n%s\nthrough it:\n%s", direct, tapped)
	}
	t.Logf("%s", tapped)
}

// recorded checks what the journal has of the tasks that passed.
func recorded(t *testing.T, dir, agent string, gen taskmodel.Generation, want map[string]taskmodel.Status) {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close(context.Background()) }()
	r, err := j.Restore(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]taskmodel.Status{}
	for _, v := range r.Tasks {
		got[v.Tool+" "+argument(v.Args)] = v.Status
		if v.Owner != agent || v.Generation != gen {
			t.Errorf("%s of %q in %s", v.Tool, v.Owner, v.Generation)
		}
		if v.Status == taskmodel.Completed && !v.Outcome.KeptHere {
			t.Errorf("%s has no result", v.Tool)
		}
	}
	for k, s := range want {
		if got[k] != s {
			t.Errorf("%s is %q, want %q; there are %v", k, got[k], s, got)
		}
	}
}

var firstString = regexp.MustCompile(`:\s*"([^"]*)"`)

func argument(args []byte) string {
	m := firstString.FindSubmatch(args)
	if m == nil {
		return ""
	}
	return string(m[1])
}

var everythingTasks = map[string]taskmodel.Status{"simulate-research-query python": taskmodel.Completed, "simulate-research-query go": taskmodel.Cancelled}

func TestPeerTypeScriptThroughTheTap(t *testing.T) {
	agent := node(t, "agent.mjs")
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		server := peers.Command(t, "everything")
		dir := t.TempDir()
		through := append(append(program("tap", dir), "--"), server...)
		same(t, script(t, append(agent, server...)...), script(t, append(agent, through...)...))
		recorded(t, dir, "ts-agent", taskmodel.GenCore, everythingTasks)
	})
	for _, name := range []string{"everything-http", "everything-sse"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := peers.Serve(t, name)
			dir := t.TempDir()
			tap := startHTTP(t, Options{URL: url, Listen: "127.0.0.1:0", Name: "ci", Target: target, Memory: memoryIn(dir)})
			same(t, script(t, append(agent, url)...), script(t, append(agent, tap)...))
			recorded(t, dir, "ts-agent", taskmodel.GenCore, everythingTasks)
		})
	}
}

func TestPeerFastMCPThroughTheTap(t *testing.T) {
	agent := fastmcp(t)
	want := map[string]taskmodel.Status{"crunch é ok": taskmodel.Completed, "deploy prod": taskmodel.Completed}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		server := peers.Command(t, "fastmcp")
		dir := t.TempDir()
		through := append(append(program("tap", dir), "--"), server...)
		same(t, script(t, append(agent, server...)...), script(t, append(agent, through...)...))
		recorded(t, dir, "fastmcp-agent", taskmodel.GenExtension, want)
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		url := peers.Serve(t, "fastmcp-http")
		dir := t.TempDir()
		tap := startHTTP(t, Options{URL: url, Listen: "127.0.0.1:0", Name: "ci", Target: target, Memory: memoryIn(dir)})
		same(t, script(t, append(agent, url)...), script(t, append(agent, tap)...))
		recorded(t, dir, "fastmcp-agent", taskmodel.GenExtension, want)
	})
}

var verdict = regexp.MustCompile(`(?m)^.*(✓|✗|passed|failed|PASS|FAIL).*$`)

// verdicts are the lines of a conformance run that say what passed.
func verdicts(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	suite := peers.Command(t, "conformance")
	cmd := exec.CommandContext(ctx, suite[0], append(suite[1:], args...)...)
	cmd.Env = append(os.Environ(), "SDK="+filepath.Join(os.Getenv("MCPTASKS_PEERS"), "npm/node_modules/@modelcontextprotocol/sdk"))
	cmd.Dir = t.TempDir()
	out, _ := cmd.CombinedOutput() // a scenario that fails on the server itself ends it with 1
	lines := verdict.FindAllString(string(out), -1)
	if len(lines) == 0 {
		t.Fatalf("no verdict in\n%s", out)
	}
	return strings.Join(lines, "\n") + "\n"
}

// The server scenarios of the conformance suite come out the same.
func TestPeerConformanceServerScenarios(t *testing.T) {
	url := peers.Serve(t, "everything-http")
	tap := startHTTP(t, Options{URL: url, Listen: "127.0.0.1:0", Name: "ci", Target: target, Memory: memoryIn(t.TempDir())})
	// That one a tap passes for a server that does not: it minds who asks.
	minding := regexp.MustCompile(`(?m)^(.*dns-rebinding.*|Total.*)\n`)
	direct, tapped := verdicts(t, "server", "--url", url), verdicts(t, "server", "--url", tap)
	if !strings.Contains(tapped, "✓ dns-rebinding-protection") {
		t.Error("the tap passes requests that name another host")
	}
	same(t, minding.ReplaceAllString(direct, ""), minding.ReplaceAllString(tapped, ""))
}

// The client scenarios, with the TypeScript SDK's client behind a tap: the
// suite starts it with the address of the server that it is tested on.
func TestPeerConformanceClientScenarios(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	client := peers.Command(t, "everything")[0] + " " + filepath.Join(here, "testdata", "conformance.mjs")
	behind := strings.Join(program("conformance", t.TempDir()), " ") + " " + client
	for _, scenario := range []string{"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			same(t, verdicts(t, "client", "--command", client, "--scenario", scenario), verdicts(t, "client", "--command", behind, "--scenario", scenario))
		})
	}
}
