//go:build unix

package tap

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	ctx, stop := context.WithTimeout(context.Background(), 6*time.Minute)
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

var update = flag.Bool("update", false, "write testdata/transcripts anew, from runs without a tap")

// transcribed wants an agent's run through a tap to print what is kept in
// testdata/transcripts, which is what it prints without one.
func transcribed(t *testing.T, name string, direct, tapped []string) {
	t.Helper()
	path := filepath.Join("testdata", "transcripts", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(script(t, direct...)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := script(t, tapped...); got != string(want) {
		t.Errorf("through the tap:\n%s\nkept in %s:\n%s\nwithout a tap, now:\n%s", got, path, want, script(t, direct...))
	}
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
	t.Parallel()
	agent := node(t, "agent.mjs")
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		server := peers.Command(t, "everything")
		dir := t.TempDir()
		through := append(append(program("tap", dir), "--"), server...)
		transcribed(t, "typescript-stdio", slices.Concat(agent, server), slices.Concat(agent, through))
		recorded(t, dir, "ts-agent", taskmodel.GenCore, everythingTasks)
	})
	for _, name := range []string{"everything-http", "everything-sse"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := peers.Serve(t, name)
			dir := t.TempDir()
			tap := startHTTP(t, Options{URL: url, Listen: "127.0.0.1:0", Name: "ci", Target: target, Memory: memoryIn(dir)})
			transcribed(t, "typescript-"+strings.TrimPrefix(name, "everything-"), slices.Concat(agent, []string{url}), slices.Concat(agent, []string{tap}))
			recorded(t, dir, "ts-agent", taskmodel.GenCore, everythingTasks)
		})
	}
}

func TestPeerFastMCPThroughTheTap(t *testing.T) {
	t.Parallel()
	agent := fastmcp(t)
	want := map[string]taskmodel.Status{"crunch é ok": taskmodel.Completed, "deploy prod": taskmodel.Completed}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		server := peers.Command(t, "fastmcp")
		dir := t.TempDir()
		through := append(append(program("tap", dir), "--"), server...)
		transcribed(t, "fastmcp-stdio", slices.Concat(agent, server), slices.Concat(agent, through))
		recorded(t, dir, "fastmcp-agent", taskmodel.GenExtension, want)
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		url := peers.Serve(t, "fastmcp-http")
		dir := t.TempDir()
		tap := startHTTP(t, Options{URL: url, Listen: "127.0.0.1:0", Name: "ci", Target: target, Memory: memoryIn(dir)})
		transcribed(t, "fastmcp-http", slices.Concat(agent, []string{url}), slices.Concat(agent, []string{tap}))
		recorded(t, dir, "fastmcp-agent", taskmodel.GenExtension, want)
	})
}
