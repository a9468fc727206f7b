//go:build linux

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write mcp/PEERS.md anew")

// ops are the rows of mcp/PEERS.md. A step with another name is told of below
// the tables.
var ops = []string{"start", "list", "poll", "push", "question", "several rounds", "result", "tool error", "protocol error", "cancel", "expiry", "reconnect"}

var ways = map[string]string{"stdio": "stdio", "http": "Streamable HTTP", "sse": "HTTP+SSE"}

// A proof is a test below the command line for a cell of the table. who is the
// peer, or what stands in for one. op "" is for all operations of a transport.
type proof struct{ gen, way, op, in, test, who string }

const scripted = "a scripted server"

// proofs are the tests beside the steps of the groups: what a peer tells by
// itself is seen on its connection, not by a command; and what no peer can show.
var proofs = []proof{
	{draft, "stdio", "push", "mcp", "TestDNotifications", scripted},
	{draft, "stdio", "push", "mcp", "TestDResultIsWokenByAPush", scripted},
	{draft, "http", "push", "mcp/demo", "TestHTTPDraft", "demo, the created-notification"},
	{draft, "sse", "push", "mcp/transport", "TestOldSSE", scripted + ", whose stream carries all that it says"},
	{draft, "stdio", "expiry", "mcp", "TestDResultThatIsGone", scripted},
	{draft, "http", "expiry", "mcp/faults", "TestMatrix", scripted + ", restarted without its tasks"},
	{draft, "sse", "expiry", "mcp", "TestDResultThatIsGone", scripted},

	{core, "stdio", "push", "mcp", "TestPeerEverything/stdio/task", "everything"},
	{core, "stdio", "push", "mcp", "TestPeerPythonCore/stdio", "python-core"},
	{core, "stdio", "push", "mcp", "TestPeerMcpGo/stdio", "mcp-go"},
	{core, "http", "push", "mcp", "TestPeerEverything/streamableHttp/task", "everything"},
	{core, "http", "push", "mcp", "TestPeerPythonCore/http", "python-core"},
	{core, "http", "push", "mcp", "TestPeerMcpGo/http", "mcp-go"},
	{core, "sse", "push", "mcp", "TestPeerEverything/sse/task", "everything"},
	{core, "stdio", "protocol error", "mcp", "TestPeerPythonCore/stdio", "python-core, a task that fails"},
	{core, "http", "protocol error", "mcp", "TestPeerPythonCore/http", "python-core, a task that fails"},
	{core, "http", "several rounds", "mcp", "TestPeerSDKInteractive/http", "sdk-interactive, a form and a sampling"},

	{extension, "stdio", "push", "mcp", "TestXListenAndPush", scripted},
	{extension, "stdio", "push", "mcp", "TestXResultIsWokenByAPush", scripted},
	{extension, "http", "push", "mcp", "TestXListenOverHTTP", scripted},
}

// lacking are the cells that a generation does not have, with the section that
// says so; what stands for them follows in the cell.
var lacking = map[[2]string]string{
	{extension, "list"}: "none in this generation (ext-tasks, Security Considerations, \"there is no `tasks/list`\"); remembered, and taken up by its id:",
	{draft, "push"}:     "only `notifications/tasks/created` (SEP-1686 3.4; more is its Future Work); others are read leniently:",
}

// notes follow each generation's table.
var notes = map[string]string{
	draft: "No server that nobody here wrote speaks the draft any more. A task is kept for its `keepAlive` after its end (SEP-1686 4.5).",
	core: "server-everything, the Python SDK and mcp-go send `notifications/tasks/status`. Of the peers' tasks over HTTP+SSE " +
		"server-everything's alone are there, which have neither rounds nor an error of the tool.",
	extension: "There is no HTTP+SSE in 2026-07-28 (basic/transports, Streamable HTTP, Backward Compatibility). Neither rmcp 3.11 nor " +
		"fastmcp-tasks 4.1.4 sends `notifications/tasks` or acknowledges a subscription to tasks: their recorded sessions hold none " +
		"(`TestExtensionPeersPushNothing` in mcp). No peer of the extension over HTTP lets a task's time run out.",
}

// TestTable keeps mcp/PEERS.md as the tests are. Its cells come from the steps
// that TestPeers and TestDemo take, and from proofs, whose tests must exist.
func TestTable(t *testing.T) {
	tests := testsOfTheTree(t)
	for _, p := range proofs {
		name, _, _ := strings.Cut(p.test, "/")
		if !slices.Contains(tests[p.in], name) {
			t.Errorf("there is no %s in %s", name, p.in)
		}
	}
	for _, name := range []string{"TestPeers", "TestDemo", "TestConformance"} {
		if !slices.Contains(tests["ui/cli/e2e"], name) {
			t.Errorf("there is no %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`(Test\\w+)` in ([\\w/]+)").FindAllStringSubmatch(fmt.Sprint(notes), -1) {
		if !slices.Contains(tests[m[2]], m[1]) {
			t.Errorf("there is no %s in %s", m[1], m[2])
		}
	}
	got := tableOfPeers(t)
	path := filepath.Join("..", "..", "..", "mcp", "PEERS.md")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, got) {
		t.Errorf("mcp/PEERS.md is out of date (%v): go test ./ui/cli/e2e -run TestTable -update", err)
	}
}

// testsOfTheTree finds the test functions of every package, by its folder.
func testsOfTheTree(t *testing.T) map[string][]string {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	is := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range is.FindAllSubmatch(b, -1) {
			out[filepath.ToSlash(rel)] = append(out[filepath.ToSlash(rel)], string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tableOfPeers(t *testing.T) []byte {
	var b bytes.Buffer
	b.WriteString("# Peers\n\n" +
		"Written by `go test ./ui/cli/e2e -run TestTable -update`; the test fails when it is out of date or names a test that is not there.\n\n" +
		"Each cell names the test and, in braces, the peers that prove an operation of one generation over one transport. `TestPeers` and\n" +
		"`TestDemo` drive the built program by its command line; their peers are servers that nobody here wrote (see\n" +
		"[peers](peers/README.md)) and this program's own demo servers. What follows a dash is a test below the command line. The sessions of\n" +
		"the peers are kept in `testdata/peers`, and are played where the peers are not installed.\n")
	groups := append(real(), demos()...)
	for _, gen := range []string{draft, core, extension} {
		columns := []string{"stdio", "http"}
		if gen != extension {
			columns = append(columns, "sse")
		}
		fmt.Fprintf(&b, "\n## %s\n\n| |", gen)
		for _, way := range columns {
			fmt.Fprintf(&b, " %s |", ways[way])
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
		for _, op := range ops {
			fmt.Fprintf(&b, "| %s |", op)
			for _, way := range columns {
				cell := cellOf(groups, gen, way, op)
				if cell == "" {
					t.Errorf("nothing proves %s of %s over %s", op, gen, way)
				}
				if why := lacking[[2]string{gen, op}]; why != "" {
					cell = why + "<br>" + cell
				}
				fmt.Fprintf(&b, " %s |", cell)
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\n%s\n", notes[gen])
	}
	b.WriteString("\n## Beside the table\n\n| peer | tests |\n|---|---|\n")
	for _, g := range groups {
		var others []string
		for _, s := range g.steps {
			if !slices.Contains(ops, s.op) || g.gen == none {
				others = append(others, s.op)
			}
		}
		if len(others) > 0 {
			fmt.Fprintf(&b, "| %s, %s, %s | `%s/`: %s |\n", g.who(), gens[g.gen], ways[g.way], g.test(), strings.Join(others, ", "))
		}
	}
	b.WriteString("\n\"asked as a task\" is mcptasks as receiver: server-everything's `trigger-elicitation-request-async` and\n" +
		"`trigger-sampling-request-async` put their questions as tasks, which are listed, answered and waited for by their names. The servers\n" +
		"without tasks are told to have none, and their tools are called; `TestPeerWithoutTasks` in mcp does it in both eras.\n")
	b.WriteString("\n## Conformance\n\nThe client scenarios of `@modelcontextprotocol/conformance`, which `TestConformance` runs against the built program.\n\n| scenario | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		says := "passes"
		if why := scenarios[name].leftOut; why != "" {
			says = "left out: " + why
		} else if scenarios[name].refused {
			says = "passes: mcptasks refuses to go on, as it must"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, says)
	}
	return b.Bytes()
}

var gens = map[string]string{draft: draft, core: core, extension: extension, none: "no tasks"}

// test is the name of a group's test.
func (g group) test() string {
	if g.peer == "" {
		return "TestDemo/" + g.name()
	}
	return "TestPeers/" + g.name()
}

// cellOf names what proves one operation.
func cellOf(groups []group, gen, way, op string) string {
	var parts, peers, own []string
	for _, g := range groups {
		if g.gen != gen || g.way != way || !slices.ContainsFunc(g.steps, func(s step) bool { return s.op == op }) {
			continue
		}
		if g.peer == "" {
			own = append(own, g.who())
		} else {
			peers = append(peers, g.who())
		}
	}
	for _, w := range []struct {
		test string
		who  []string
	}{{"TestPeers", peers}, {"TestDemo", own}} {
		if len(w.who) > 0 {
			parts = append(parts, fmt.Sprintf("`%s/%s/%s/{%s}/%s`", w.test, gen, way, strings.Join(w.who, ","), strings.ReplaceAll(op, " ", "_")))
		}
	}
	for _, p := range proofs {
		if p.gen == gen && p.way == way && p.op == op {
			parts = append(parts, fmt.Sprintf("– %s `%s` {%s}", p.in, p.test, p.who))
		}
	}
	return strings.Join(parts, "<br>")
}
