//go:build linux

package e2e

import (
	"strings"
	"testing"

	"mcptasks/mcp/peers"
)

const (
	draft     = "draft"
	core      = "2025-11-25"
	extension = "2026-07-28"
	none      = "none"
)

// A group is what one peer is asked over one transport.
type group struct {
	gen, way string
	peer     string   // its name in peers.json; "" is the demo server
	set      []string // --set of the server
	steps    []step
}

var (
	snake   = `{"interpretation":"snake"}`
	goOn    = `{"go":true}`
	replies = []reply{{"Deploy to prod", `{"ok":true}`}, {"Who approves", `{"name":"Ada"}`}, {"how many replicas", `{"n":3}`}}
)

func everything(way, peer string, set ...string) group {
	return group{gen: core, way: way, peer: peer, set: set, steps: []step{
		started(core, "simulate-research-query", "topic=python", "ambiguous=true"),
		listed(false, "simulate-research-query", "topic=python", "ambiguous=true"),
		polled("simulate-research-query", "topic=moss"),
		asks(snake, `{"interpretation":"stone"}`, "python (snake)", "Research Report", "simulate-research-query", "topic=python", "ambiguous=true"),
		resulted("Research Report: moss", "simulate-research-query", "topic=moss"),
		refusedID(),
		cancelled("simulate-research-query", "topic=python", "ambiguous=true"),
		inItsSession(way == "http", reconnects("simulate-research-query", "topic=python", "ambiguous=true")),
		codes(false, "simulate-research-query", "topic=python", "ambiguous=true"),
		{"asked as a task", asksUs},
		{"page first", pageFirst},
	}}
}

func mcpGo(way, peer string) group {
	return group{gen: core, way: way, peer: peer, steps: []step{
		started(core, "count", "n=10000"),
		listed(false, "count", "n=10000"),
		polled("count", "n=10"),
		resulted("counted to 10", "count", "n=10"),
		refusedID(),
		cancelled("count", "n=10000"),
		expires("count", "n=10000", "--ttl", "2s"),
		reconnects("count", "n=10000"),
		codes(true, "count", "n=10000"),
		{"plain call", func(t *testing.T, u *user) {
			var e end
			u.read(0, &e, "start", "p", "now", "--plain")
			if e.TaskID != "" || e.text() == "" {
				t.Errorf("%+v", e)
			}
		}},
	}}
}

// pythonCore hands a question out once, to whichever tasks/result was opened
// first, also when its reader has gone and did not say so.
func pythonCore(way, peer string) group {
	return group{gen: core, way: way, peer: peer, steps: []step{
		started(core, "slow", "steps=1000"),
		listed(false, "slow", "steps=1000"),
		polled("slow", "steps=3"),
		asks(goOn, `{"go":"perhaps"}`, "accept", "decline", "approve"),
		rounds([]reply{{"Go on?", goOn}, {"How many?", `{"n":2}`}}, "planned 2", "plan"),
		resulted("3 steps done", "slow", "steps=3"),
		toolError("there is no such branch", "refused"),
		refusedID(),
		cancelled("slow", "steps=1000"),
		expires("slow", "steps=1000", "--ttl", "2s"),
		reconnects("slow", "steps=1000"),
		codes(true, "slow", "steps=1000"),
	}}
}

func fastMCP(way, peer string) group {
	return group{gen: extension, way: way, peer: peer, steps: []step{
		started(extension, "crunch", "seconds=1000"),
		takenUp(way == "http", "crunch", "seconds=1000"),
		polled("crunch", "seconds=0.5"),
		{"question", func(t *testing.T, u *user) {
			s := u.start("deploy", "target=prod")
			if q := u.asked(s, 2); len(q) != 2 || q[0].Kind != "form" || len(q[0].Schema) == 0 {
				t.Fatalf("%+v", q)
			}
			u.fault(2, "usage", "answer", s.name(), "--accept", `{"ok":true}`) // which of the two?
			for _, q := range u.asked(s, 2) {
				u.fault(2, "usage", "answer", s.name(), "--key", q.Key, "--accept", `{"ok":"perhaps"}`)
				u.want(0, "answer", s.name(), "--key", q.Key, "--decline")
			}
			if r := u.want(0, "result", s.name()); !strings.Contains(r.out, "not deployed") {
				t.Errorf("declined: %s", r.out)
			}
			u.fault(6, "input_needed", "start", "p", "deploy", "--wait")
		}},
		rounds(replies, "deployed 3 to prod for Ada", "deploy", "target=prod"),
		resulted("crunched", "crunch", "seconds=0.2", "text=crunched"),
		toolError("the tool itself went wrong", "wobble"),
		protocolError("", "broken"),
		cancelled("crunch", "seconds=1000"),
		reconnects("crunch", "seconds=1000"),
		codes(true, "crunch", "seconds=1000"),
		{"plain call", func(t *testing.T, u *user) {
			var e end
			u.read(0, &e, "start", "p", "add", "a=1", "b=2", "--plain")
			if !strings.Contains(e.text(), "3") {
				t.Errorf("%+v", e)
			}
			// It asks before it answers, without a task.
			u.read(0, &e, "start", "p", "greet", "name=Ada", "--plain", "--on-input", `accept={"g":"Hello"}`)
			if !strings.Contains(e.text(), "Hello, Ada") {
				t.Errorf("%+v", e)
			}
			u.fault(6, "input_needed", "start", "p", "greet", "name=Ada", "--plain")
			u.want(1, "start", "p", "only_task", "--plain")
		}},
	}}
}

func goSDK(way, peer string) group {
	return group{gen: none, way: way, peer: peer, steps: []step{
		{"start", func(t *testing.T, u *user) {
			var e end
			u.read(0, &e, "start", "p", "greet", "name=Ada", "--plain")
			if !strings.Contains(e.text(), "Hello, Ada") {
				t.Errorf("%+v", e)
			}
			if r := u.run("", "start", "p", "greet", "name=Ada"); r.code == 0 && !strings.Contains(r.out, "Hello, Ada") || r.code != 0 && !strings.Contains(r.err, "task") {
				t.Errorf("as a task: exit %d %s%s", r.code, r.out, r.err)
			}
		}},
		{"list", func(t *testing.T, u *user) {
			var servers []struct {
				Generation string
				Can        struct{ List, Start bool }
			}
			u.read(0, &servers, "servers")
			if len(servers) != 1 || servers[0].Generation != none || servers[0].Can.List || servers[0].Can.Start {
				t.Errorf("%+v", servers)
			}
			var all []task
			if u.read(0, &all, "ls"); len(all) != 0 {
				t.Errorf("%+v", all)
			}
		}},
	}}
}

func rmcp() group {
	return group{gen: extension, way: "stdio", peer: "rmcp", steps: []step{
		started(extension, "crunch", "ms=1000000"),
		takenUp(false, "crunch", "ms=1000000"),
		polled("crunch", "ms=500"),
		{"question", func(t *testing.T, u *user) {
			s := u.start("deploy")
			q := u.asked(s, 1)
			if q[0].Key != "where" || q[0].Kind != "form" || len(q[0].Schema) == 0 {
				t.Errorf("%+v", q)
			}
			u.fault(2, "usage", "answer", s.name(), "--accept", `{"target":7}`)
			u.want(0, "answer", s.name(), "--key", "where", "--decline")
			if r := u.want(0, "result", s.name()); !strings.Contains(r.out, "not deployed") {
				t.Errorf("declined: %s", r.out)
			}
		}},
		rounds([]reply{{"Where to", `{"target":"prod"}`}, {"How many replicas", `{"n":3}`}}, "deployed 3 to prod", "deploy"),
		resulted("crunched", "crunch", "ms=200", "text=crunched"),
		toolError("the tool itself went wrong", "wobble"),
		protocolError("the disk is full", "broken"),
		cancelled("crunch", "ms=1000000"),
		{"expiry", func(t *testing.T, u *user) {
			// rmcp fails what outlives its time and forgets it a while later.
			s := u.start("lapse")
			u.want(1, "wait", s.name())
			var e end
			u.read(1, &e, "result", s.name())
			if e.Error == nil || !strings.Contains(e.Error.Message, "expired") {
				t.Errorf("%+v", e)
			}
		}},
		reconnects("crunch", "ms=1000000"),
		codes(true, "crunch", "ms=1000000"),
	}}
}

// sdkInteractive declares no tasks.cancel.
func sdkInteractive() group {
	return group{gen: core, way: "http", peer: "sdk-interactive", steps: []step{
		{"start", func(t *testing.T, u *user) {
			s := u.start("confirm_delete", "filename=a.txt")
			if m := u.fault(1, "failed", "cancel", s.name()); !strings.Contains(m, "declares no tasks.cancel") {
				t.Errorf("cancel: %s", m)
			}
		}},
		asks(`{"confirm":true}`, `{"confirm":"perhaps"}`, "a.txt", "Deletion cancelled", "confirm_delete", "filename=a.txt"),
	}}
}

// real are the peers that nobody here wrote.
func real() []group {
	return []group{
		everything("stdio", "everything"), everything("http", "everything-http"), everything("sse", "everything-sse", "p.transport=sse"),
		mcpGo("stdio", "mcp-go"), mcpGo("http", "mcp-go-http"),
		pythonCore("stdio", "python-core"), pythonCore("http", "python-core-http"),
		sdkInteractive(),
		fastMCP("stdio", "fastmcp"), fastMCP("http", "fastmcp-http"),
		rmcp(),
		goSDK("stdio", "go-sdk"), goSDK("http", "go-sdk-http"),
	}
}

// TestPeers asks every peer everything by the command line. Where a peer is not
// installed it skips.
func TestPeers(t *testing.T) {
	t.Parallel()
	for _, g := range real() {
		t.Run(g.name(), func(t *testing.T) {
			t.Parallel()
			if g.way == "stdio" {
				g.run(t, newUser(t, "p="+quoted(peers.Command(t, g.peer))), nil)
				return
			}
			p := peers.Start(t, g.peer)
			g.run(t, newUser(t, "p="+p.URL), p.Restart)
		})
	}
}

// name is the test's, below TestPeers or TestDemo.
func (g group) name() string { return g.gen + "/" + g.way + "/" + g.who() }

func (g group) who() string {
	if g.peer == "" {
		return "demo"
	}
	return g.peer
}

// quoted writes a command line as -s takes it.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if strings.ContainsAny(w, " '\"\\") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// run takes the steps in turn. Where a server's tasks (in the draft: its
// questions and cancels) are its connection's, a process of its own holds it
// meanwhile. A restart of nil is that of a stdio
// server, which its holder starts again.
func (g group) run(t *testing.T, u *user, restart func()) {
	for _, s := range g.set {
		u.flags = append(u.flags, "--set", s)
	}
	u.restart = restart
	if g.gen == draft || g.way != "http" && g.gen != none {
		u.hold()
	}
	if u.restart == nil {
		u.restart = u.killServer
	}
	for _, s := range g.steps {
		t.Run(s.op, func(t *testing.T) { s.do(t, u.sub(t)) })
	}
}
