//go:build linux

package e2e

import (
	"net/url"
	"strings"
	"syscall"
	"testing"
)

// The same with the demo servers, for those who have no peers, for what no peer
// speaks, and because others may test their clients with them.

const fast = "--speed=20" // how much faster than life the demo's work goes

var (
	plan   = `{"owner":"Ada","email":"ada@example.com","workers":2}`
	scope  = `{"mode":"copy","isolation":"rc","tables":["orders"],"readOnly":true}`
	phrase = `{"phrase":"orders"}`
	window = `{"start":"2026-12-01T22:00:00Z"}`
	canary = `{"strategy":"canary","ticket":"CHG-20417"}`
)

func demo(gen, way string) group {
	g := group{gen: gen, way: way}
	if way == "sse" {
		g.set = []string{"p.transport=sse"}
	}
	release := []string{"service=api", "version=v1.2.3", "environment=staging"}
	g.steps = []step{started(gen, "reindex_search", "index=x")}
	if gen == extension {
		g.steps = append(g.steps, takenUp(way == "http", "reindex_search", "index=x"))
	} else {
		g.steps = append(g.steps, listed(false, "reindex_search", "index=x"))
	}
	g.steps = append(g.steps,
		polled("build", "target=cli"),
		asks(canary, `{"strategy":"bet"}`, "rolledOut", "", "deploy_release", release...),
		rounds([]reply{{"Who answers", plan}, {"What is to be migrated", scope}, {"Go on?", phrase}, {"When may it run", window}},
			"Checksums agree", "migrate_schema", "database=orders"),
		resulted("", "build", "target=cli"),
		toolError("", "run_tests", "package=./x"),
		protocolError("", "security_scan"),
		cancelled("reindex_search", "index=x"),
		reconnects("reindex_search", "index=x"),
		codes(true, "reindex_search", "index=x"),
	)
	if gen != draft { // which keeps a task for a while after its end
		g.steps = append(g.steps, expires("nightly_export"))
	}
	return g
}

func demos() []group {
	return []group{
		demo(draft, "stdio"), demo(draft, "http"), demo(draft, "sse"),
		demo(core, "stdio"), demo(core, "http"), demo(core, "sse"),
		demo(extension, "stdio"), demo(extension, "http"),
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	for _, g := range demos() {
		t.Run(g.name(), func(t *testing.T) {
			t.Parallel()
			args := []string{"demo-server", "--generation", g.gen, fast}
			if g.way == "stdio" {
				g.run(t, newUser(t, "p="+quoted(append([]string{program}, args...))), nil)
				return
			}
			u := newUser(t)
			listen := func(at string) (*running, string) {
				r := u.begin(append(args, "--listen", at)...)
				line := r.until("URL", func(line string) bool { return strings.Contains(line, "http://") })
				return r, strings.TrimSpace(line[strings.Index(line, "http://"):])
			}
			r, address := listen("127.0.0.1:0")
			at, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			if g.way == "sse" {
				address = strings.TrimSuffix(address, "/mcp") + "/sse"
			}
			u.flags = append(u.flags, "-s", "p="+address)
			g.run(t, u, func() {
				_ = r.cmd.Process.Signal(syscall.SIGKILL)
				<-r.done
				plain := newUser(t)
				plain.flags = nil
				r = plain.begin(append(args, "--listen", at.Host)...)
				r.until("URL", func(line string) bool { return strings.Contains(line, "http://") })
			})
		})
	}
}
