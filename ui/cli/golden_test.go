package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/config"
	"mcptasks/mcp/demo"
	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/setup"
	"mcptasks/ui/cli"
)

var update = flag.Bool("update", false, "write the golden files anew")

// world is the three demo servers at a fixed seed and a fake clock, and the
// commands on them. State is kept in a folder of its own.
type world struct {
	t      *testing.T
	fleet  []demo.Member
	state  string
	only   []string     // the servers that are configured; nil: all
	mute   string       // a server that never answers; "": none
	dead   string       // a server that cannot be reached; "": none
	opened []cli.Global // for what something was opened
	stdio  bool         // the servers are commands: their tasks end with the process
	tty    bool
	stdin  string
	getenv map[string]string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, fleet: demo.Fleet(demo.FleetOptions{Seed: 7, Still: true}), state: t.TempDir()}
}

func (w *world) close() {
	for _, m := range w.fleet {
		m.Server.Close()
	}
}

func (w *world) open(_ context.Context, g cli.Global) (*cli.Opened, error) {
	w.opened = append(w.opened, g)
	mem, notes, _ := setup.OpenMemory(w.state, config.Config{}, g.Purpose, nil)
	opts := monitor.Options{Readonly: g.Readonly, Seed: 7, NoAsk: !g.Fetch, FetchResults: g.Fetch, Version: "test"}
	if mem != nil {
		opts.Journal = mem.Store()
	}
	o := &cli.Opened{Notes: notes, Memory: mem, StdioOf: func(string) bool { return w.stdio }}
	for _, m := range w.fleet {
		if w.only != nil && !contains(w.only, m.Name) {
			continue
		}
		o.Names = append(o.Names, m.Name)
		if g.Only != nil && !contains(g.Only, m.Name) {
			continue
		}
		opts.Servers = append(opts.Servers, monitor.ServerSpec{Name: m.Name, Target: "built in: " + m.Name, Source: "test", Autostart: true, Dialer: m.Dialer, Generation: m.Generation})
	}
	if w.dead != "" {
		o.Names = append(o.Names, w.dead)
		if g.Only == nil || contains(g.Only, w.dead) {
			opts.Servers = append(opts.Servers, monitor.ServerSpec{Name: w.dead, Target: "nowhere", Source: "test", Autostart: true, Dialer: unreachable{}})
		}
	}
	if w.mute != "" {
		o.Names = append(o.Names, w.mute)
		if g.Only == nil || contains(g.Only, w.mute) {
			opts.Servers = append(opts.Servers, monitor.ServerSpec{Name: w.mute, Target: "nowhere", Source: "test", Autostart: true, Dialer: silent{}})
		}
	}
	mon := monitor.New(opts)
	o.Monitor, o.Run = mon, mon.Run
	o.Close = func() error { return mem.Close() }
	return o, nil
}

// unreachable is a server that nobody answers at.
type unreachable struct{}

func (unreachable) Dial(context.Context, string) (jsonrpc.Conn, error) {
	return nil, errors.New("connection refused")
}
func (unreachable) Kind() string { return "http" }

// silent is a server that cannot even be connected to.
type silent struct{}

func (silent) Dial(ctx context.Context, _ string) (jsonrpc.Conn, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
func (silent) Kind() string { return "http" }

// only stands for what succeeds with one server.
func only(this, server string) error {
	if server == this {
		return nil
	}
	return &cli.Error{Kind: "auth", Server: server, Message: "nobody signed in to " + server}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// run runs one command line in the bubble.
func (w *world) run(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	env := cli.Env{Args: args, Stdin: strings.NewReader(w.stdin), Stdout: &out, Stderr: &errs, StdinTTY: w.tty, StdoutTTY: w.tty, Now: time.Now,
		Getenv: func(k string) string { return w.getenv[k] }}
	code = cli.Run(context.Background(), env, cli.Deps{
		Version: cli.Version{Module: "v1.2.3", Commit: "abc", Go: "go1.26"}, Open: w.open,
		Configured: func(cli.Global) (cli.ConfigReport, error) {
			return cli.ConfigReport{Path: "/c/config.toml", State: "/s", Files: []cli.ConfigFile{{Path: "/c/config.toml", Client: "mcptasks", Found: true, Servers: []string{"ci"}}, {Path: "/h/.claude.json", Client: "claude-code"}},
				Servers: []cli.ConfigServer{{Name: "ci", Target: "https://ci.example/mcp", Source: "/c/config.toml", Autostart: true}, {Name: "bad", Target: "run", Source: "/c/config.toml", Disabled: "$X is not set"}},
				Values:  []cli.ConfigValue{{Key: "poll.min", Value: "500ms", From: "default"}}}, nil
		},
		Login: func(_ context.Context, _ cli.Env, _ cli.Global, server string, _ bool) error {
			return only("ci", server)
		},
		Logout: func(_ context.Context, _ cli.Global, server string) error { return only("ci", server) },
		Keys:   func() string { return "| key | does |\n" },
	})
	return out.String(), errs.String(), code
}

// id is the id of the n-th task of a server that runs a tool and has the
// status, oldest first.
func (w *world) id(server, tool string, n int) string {
	w.t.Helper()
	for _, m := range w.fleet {
		if m.Name != server {
			continue
		}
		for _, h := range m.Server.Handles() {
			if h.Tool == tool {
				if n--; n < 0 {
					return h.ID
				}
			}
		}
	}
	w.t.Fatalf("%s has no task of %s", server, tool)
	return ""
}

// golden compares one command's whole effect with its file.
func (w *world) golden(name string, args ...string) {
	w.t.Helper()
	out, errs, code := w.run(args...)
	for _, s := range []string{out, errs} {
		if strings.ContainsRune(s, '\x1b') {
			w.t.Errorf("%s: an escape code in the output", name)
		}
	}
	got := fmt.Sprintf("$ mcptasks %s\nexit %d\n-- stdout --\n%s-- stderr --\n%s", strings.Join(quoted(args), " "), code, out, errs)
	got = steady(got)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatalf("%v (go test ./ui/cli -update makes it)", err)
	}
	if got != string(want) {
		w.t.Errorf("%s differs from its golden file:\n%s", name, got)
	}
}

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	asked = regexp.MustCompile(`"key":"srv-[0-9]+"`)
	begun = regexp.MustCompile(`"progress":\{"progress":1,[^}]*\},`)
	since = regexp.MustCompile(`"2000-01-01T[0-9:.]+Z"`)
)

// steady numbers the ids in the order in which they stand: which of several
// things that fall on one instant of the fake clock comes first is open. So is
// the fraction of a second at which the board tells of a change: what happened
// since the test began stands without its time, and a task that has only just
// begun without its first step.
func steady(s string) string {
	seen := map[string]string{}
	s = uuids.ReplaceAllStringFunc(s, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("%08d-0000-4000-8000-000000000000", len(seen)+1)
		}
		return seen[id]
	})
	s = begun.ReplaceAllString(s, "")
	s = since.ReplaceAllString(s, `"2000-01-01T00:00:00.000Z"`)
	return asked.ReplaceAllString(s, `"key":"srv-N"`)
}

func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if strings.ContainsAny(a, " {}\"'") {
			a = "'" + a + "'"
		}
		out[i] = a
	}
	return out
}

// TestGolden is one run per command and output form of the contract.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w *world)
	}{
		{"servers", func(w *world) {
			w.golden("servers", "servers")
			w.golden("servers_json", "servers", "-o", "json")
			w.golden("servers_jsonl", "servers", "-o", "jsonl")
			w.golden("servers_unknown", "servers", "nope")
			w.golden("servers_unknown_json", "servers", "nope", "-o", "json")
		}},
		{"tools", func(w *world) {
			w.golden("tools", "tools", "ci")
			w.golden("tools_json", "tools", "lab", "-o", "json")
			w.golden("tools_jsonl", "tools", "deploy", "-o", "jsonl")
			w.golden("tools_usage", "tools")
			w.golden("tools_usage_json", "tools", "-o", "json")
		}},
		{"ls", func(w *world) {
			w.golden("ls", "ls", "ci", "--status", "working,input_required")
			w.golden("ls_json", "ls", "ci", "--filter", "status:input_required", "-o", "json")
			w.golden("ls_jsonl", "ls", "lab", "--filter", "status:failed,unknown", "-o", "jsonl")
			w.golden("ls_filter_error", "ls", "--filter", "status:", "-o", "json")
			w.golden("ls_none", "ls", "ci", "--filter", "id:zzzz")
			w.golden("ls_none_json", "ls", "ci", "--filter", "id:zzzz", "-o", "json")
			w.golden("ls_none_jsonl", "ls", "ci", "--filter", "id:zzzz", "-o", "jsonl")
			w.golden("ls_no_such_status", "ls", "ci", "--status", "wrking")
		}},
		{"get", func(w *world) {
			a, b := w.id("ci", "deploy_release", 0), w.id("ci", "build", 0)
			w.golden("get", "get", "ci/"+a)
			w.golden("get_json", "get", "ci/"+a, "-o", "json")
			w.golden("get_two_json", "get", "ci/"+a, "ci/"+b, "-o", "json")
			w.golden("get_prefix_jsonl", "get", "ci/"+a[:8], "-o", "jsonl")
			w.golden("get_not_found", "get", "ci/nope")
			w.golden("get_not_found_json", "get", "ci/nope", "-o", "json")
			w.golden("get_malformed", "get", "nope")
		}},
		{"add", func(w *world) {
			a := w.id("deploy", "build", 0)
			w.golden("add", "add", "deploy", a)
			w.golden("add_json", "add", "deploy", a, "-o", "json")
			w.golden("add_jsonl", "add", "deploy", a, "-o", "jsonl")
			w.golden("add_unknown_json", "add", "deploy", "nope", "-o", "json")
		}},
		{"start", func(w *world) {
			w.golden("start", "start", "lab", "queue_assay", "--no-check", "--ttl", "10m")
			w.golden("start_json", "start", "deploy", "build", "target=api", "--ttl", "10m", "-o", "json")
			w.golden("start_jsonl", "start", "ci", "build", "target=api", "-o", "jsonl")
			w.golden("start_plain", "start", "ci", "read_status", "--plain")
			w.golden("start_wait", "start", "ci", "build", "target=api", "--wait")
			w.golden("start_wait_json", "start", "lab", "build", "target=api", "--wait", "-o", "json")
			w.golden("start_wait_failed_json", "start", "ci", "run_tests", "package=core", "--wait", "-o", "json")
			w.golden("start_plain_json", "start", "ci", "read_status", "--plain", "-o", "json")
			w.golden("start_bad_args", "start", "ci", "build", "target=moon")
			w.golden("start_bad_json", "start", "ci", "build", "--args", "{", "-o", "json")
			w.golden("start_no_tool", "start", "ci", "nope")
			w.golden("start_slip", "start", "ci", "build", "taget=api")
			w.golden("start_not_as_a_task", "start", "ci", "read_status")
			w.golden("start_readonly_json", "start", "ci", "build", "target=api", "--readonly", "-o", "json")
			if _, errs, code := w.run("start", "deploy", "deploy_release", "service=api", "version=v1.2.3", "--wait", "-o", "json"); code != 6 || !strings.Contains(errs, `"kind":"input_needed"`) {
				w.t.Errorf("exit %d: %s", code, errs)
			}
			w.stdio = true
			if _, errs, code := w.run("start", "deploy", "deploy_release", "service=api", "version=v1.2.3", "--wait"); code != 6 || !strings.Contains(errs, "ends with this process: the same with --on-input") {
				w.t.Errorf("a task that ends with the process cannot be answered after it: exit %d: %s", code, errs)
			}
		}},
		{"wait", func(w *world) {
			w.golden("wait_done", "wait", "ci/"+w.id("ci", "build", 0))
			w.golden("wait_done_json", "wait", "ci/"+w.id("ci", "build", 0), "-o", "json")
			w.golden("wait_two_jsonl", "wait", "ci/"+w.id("ci", "build", 0), "ci/"+w.id("ci", "run_tests", 0), "-o", "jsonl")
			w.golden("wait_not_found_json", "wait", "ci/nope", "-o", "json")
			w.golden("wait_input_json", "wait", "ci/"+w.id("ci", "deploy_release", 0), "-o", "json")
			w.golden("wait_timeout_json", "wait", "ci/"+w.id("ci", "reindex_search", 0), "--timeout", "3s", "-o", "json")
			w.golden("wait_not_found", "wait", "ci/nope")
		}},
		{"result", func(w *world) {
			w.golden("result", "result", "ci/"+w.id("ci", "build", 0))
			w.golden("result_json", "result", "ci/"+w.id("ci", "build", 0), "-o", "json")
			w.golden("result_jsonl", "result", "ci/"+w.id("ci", "build", 0), "-o", "jsonl")
			w.golden("result_save", "result", "ci/"+w.id("ci", "build", 0), "--save", "/dev/null/nowhere")
			w.golden("result_not_found_json", "result", "ci/nope", "-o", "json")
			w.golden("result_failed_json", "result", "ci/"+w.id("ci", "run_tests", 0), "-o", "json")
			w.golden("result_timeout", "result", "ci/"+w.id("ci", "reindex_search", 0), "--timeout", "2s")
		}},
		{"cancel", func(w *world) {
			a := w.id("ci", "reindex_search", 0)
			w.golden("cancel_readonly", "cancel", "ci/"+a, "--readonly")
			w.golden("cancel_readonly_json", "cancel", "ci/"+a, "--readonly", "-o", "json")
			w.golden("cancel", "cancel", "lab/"+w.id("lab", "reindex_search", 0))
			w.golden("cancel_jsonl", "cancel", "deploy/"+w.id("deploy", "reindex_search", 0), "-o", "jsonl")
			w.golden("cancel_json", "cancel", "ci/"+a, "-o", "json")
			w.golden("cancel_late", "cancel", "ci/"+a)
			w.golden("cancel_late_json", "cancel", "ci/"+a, "-o", "json")
		}},
		{"answer", func(w *world) {
			a := w.id("deploy", "deploy_release", 0)
			_, _, _ = w.run("add", "deploy", a)
			w.golden("answer_misfit", "answer", "deploy/"+a, "--accept", `{"decision":"perhaps"}`)
			w.golden("answer_misfit_json", "answer", "deploy/"+a, "--accept", `{"decision":"perhaps"}`, "-o", "json")
			w.golden("answer_other_key", "answer", "deploy/"+a, "--key", "approve", "--decline")
			w.golden("answer_both", "answer", "deploy/"+a, "--decline", "--cancel")
			w.golden("answer_no_terminal", "answer", "deploy/"+a)
			w.golden("answer_no_terminal_json", "answer", "deploy/"+a, "-o", "json")
			w.golden("answer_decline_json", "answer", "deploy/"+a, "--decline", "-o", "json")
			w.golden("answer_nothing_asked", "answer", "ci/"+w.id("ci", "build", 0), "--decline")
		}},
		{"watch", func(w *world) {
			w.golden("watch_not_found_json", "watch", "ci/nope", "-o", "json")
			w.golden("watch_jsonl", "watch", "ci/"+w.id("ci", "build", 0))
			w.tty = true
			w.golden("watch_sentences", "watch", "ci/"+w.id("ci", "build", 0))
		}},
		{"forget", func(w *world) {
			a := w.id("ci", "build", 0)
			w.golden("forget_json", "forget", "ci/"+a, "-o", "json")
			w.golden("forget", "forget", "ci/"+w.id("ci", "build", 0))
			w.golden("forget_jsonl", "forget", "ci/"+w.id("ci", "run_tests", 0), "-o", "jsonl")
			w.golden("forget_not_found_json", "forget", "ci/nope", "-o", "json")
			w.golden("forget_delete_refused", "forget", "ci/"+w.id("ci", "build", 1), "--delete")
			w.golden("forget_delete", "forget", "lab/"+w.id("lab", "build", 0), "--delete")
		}},
		{"history", func(w *world) {
			_, _, _ = w.run("ls", "ci")
			w.golden("history", "history", "ci/"+w.id("ci", "build", 0))
			w.golden("history_json", "history", "ci/"+w.id("ci", "build", 0), "-o", "json")
			w.golden("history_jsonl", "history", "ci/"+w.id("ci", "build", 0), "-o", "jsonl")
			w.golden("history_not_found_json", "history", "ci/nope", "-o", "json")
			w.golden("history_prune", "history", "--prune")
			w.golden("history_prune_json", "history", "--prune", "-o", "json")
		}},
		{"nothing", func(w *world) { // is configured, and nothing remembered
			w.only = []string{}
			for _, c := range []string{"servers", "ls", "history"} {
				w.golden(c+"_nothing", c)
				w.golden(c+"_nothing_json", c, "-o", "json")
				w.golden(c+"_nothing_jsonl", c, "-o", "jsonl")
			}
			w.golden("ls_unknown", "ls", "ci")
			w.dead = "gone"
			w.golden("ls_unreachable", "ls")
			w.golden("ls_unreachable_json", "ls", "-o", "json")
			w.golden("ls_unreachable_jsonl", "ls", "-o", "jsonl")
			w.golden("servers_unreachable", "servers")
			w.mute = "mute"
			w.golden("ls_no_answer", "ls", "--timeout", "3s")
			w.golden("tools_no_answer_json", "tools", "mute", "--timeout", "3s", "-o", "json")
			w.golden("tools_unreachable", "tools", "gone")
		}},
		{"answered", func(w *world) {
			a := w.id("deploy", "deploy_release", 0)
			_, _, _ = w.run("add", "deploy", a)
			w.golden("answer", "answer", "deploy/"+a, "--accept", `{"strategy":"canary","ticket":"CHG-2041"}`)
		}},
		{"answered, as lines", func(w *world) {
			a := w.id("deploy", "deploy_release", 0)
			_, _, _ = w.run("add", "deploy", a)
			w.golden("answer_jsonl", "answer", "deploy/"+a, "--accept", `{"strategy":"canary","ticket":"CHG-2041"}`, "-o", "jsonl")
		}},
		{"misc", func(w *world) {
			w.golden("typo_without_terminal", "lss")
			w.tty = true
			w.golden("typo", "lss")
			w.tty = false
			w.golden("no_such_duration", "ls", "--timeout", "5")
			w.golden("negative_timeout", "ls", "--timeout", "-5s")
			w.golden("logout_json", "logout", "ci", "-o", "json")
			w.golden("login_json", "login", "ci", "-o", "json")
			w.golden("version", "version")
			w.golden("version_json", "version", "-o", "json")
			w.golden("version_jsonl", "version", "-o", "jsonl")
			w.golden("version_usage_json", "version", "nope", "-o", "json")
			w.golden("config_jsonl", "config", "-o", "jsonl")
			w.golden("config_usage_json", "config", "nope", "-o", "json")
			w.golden("login", "login", "ci")
			w.golden("login_fails_json", "login", "lab", "-o", "json")
			w.golden("logout", "logout", "ci")
			w.golden("logout_fails_json", "logout", "lab", "-o", "json")
			w.golden("demo_without_terminal_json", "demo", "-o", "json")
			w.golden("tap_usage_json", "tap", "-o", "json")
			w.golden("config", "config")
			w.golden("config_json", "config", "-o", "json")
			w.golden("ui_without_terminal", "ci")
			w.golden("bad_flag", "ls", "--nope")
			w.golden("bad_output", "ls", "-o", "xml")
			w.golden("bad_on_input", "wait", "ci/x", "--on-input", "maybe")
			w.golden("completion_unknown", "completion", "tcsh")
			w.golden("demo_server_bad", "demo-server", "--generation", "2030")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.close()
				tt.do(w)
			})
		})
	}
}
