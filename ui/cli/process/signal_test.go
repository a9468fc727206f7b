//go:build unix

package process

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stubborn is a stdio server that leaves a grandchild behind which minds
// nothing.
func stubborn(t *testing.T, tasks string) string {
	path := filepath.Join(t.TempDir(), "stubborn")
	script := "#!/bin/sh\n(trap '' INT TERM HUP; while :; do sleep 1000; done) &\nexec " + quote(program) + " demo-server --tasks " + tasks + "\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return "p=" + quote(path)
}

// SIGINT, SIGTERM (`timeout`) and SIGHUP end a command with 130 and leave
// nothing running, whatever it was doing.
func TestSignalsEndACommandAndAllItStarted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		args   []string
	}{
		{"watch", syscall.SIGINT, []string{"watch"}},
		{"watch with timeout", syscall.SIGTERM, []string{"watch"}},
		{"watch hung up", syscall.SIGHUP, []string{"watch"}},
		{"start --wait", syscall.SIGINT, []string{"start", "p", "reindex_search", "index=x", "--wait"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.env["MCPTASKS_SERVER"] = stubborn(t, "3")
			p := b.begin(tt.args...)
			if tt.args[0] == "watch" {
				p.line()
			} else {
				// A second process waits for the task, which the first has by then.
				for i := 0; ; i++ {
					var all []task
					b.read(0, &all, "ls", "--filter", "tool:reindex_search status:working")
					if len(all) > 0 {
						break
					}
					if i == 200 {
						t.Fatal("the task does not come")
					}
				}
			}
			p.signal(tt.signal)
			if r := p.end(); r.code != 130 {
				t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
			}
		})
	}
}

// A reader that goes away (`mcptasks ls | head -1`) ends the command without a
// word, and nothing of it stays.
func TestAReaderThatGoesAway(t *testing.T) {
	for _, args := range [][]string{{"ls"}, {"ls", "-o", "json"}, {"ls", "-o", "jsonl"}, {"tools", "p"}, {"watch"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.env["MCPTASKS_SERVER"] = stubborn(t, "2000") // more than a pipe holds
			p := b.begin(args...)
			if args[0] != "tools" {
				p.line()
			}
			p.out.Close()
			r := p.end()
			if r.code != 141 || strings.Contains(r.err, "pipe") || strings.Contains(r.err, "panic") {
				t.Errorf("exit %d: %s", r.code, r.err)
			}
		})
	}
}

// --timeout bounds the whole command: 7, with the last row where one is waited
// for.
func TestTimeout(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env["MCPTASKS_SERVER"] = stubborn(t, "0")
	var w struct {
		Server, TaskID string
		Task           task
	}
	b.read(7, &w, "start", "p", "reindex_search", "index=x", "--wait", "--timeout", "45s")
	if w.Server != "p" || w.TaskID == "" || w.Task.Status != "working" {
		t.Errorf("%+v", w)
	}
	b.fault(7, "timeout", "watch", "--timeout", "1s")
	b.fault(7, "timeout", "demo-server", "--listen", "127.0.0.1:0", "--timeout", "100ms")
}

// Every exit code of the contract, by the program itself.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env["MCPTASKS_SERVER"] = "p=" + quote(program, "demo-server", "--tasks", "40", "--speed", "50")
	b.want(0, "start", "p", "build", "target=api", "--wait")
	b.want(1, "start", "p", "run_tests", "package=core", "--wait")
	b.fault(2, "usage", "ls", "--nope")
	b.fault(2, "config", "-c", b.write("bad.toml", "[servers.ci]\nurll = 'x'\n"), "ls")
	b.fault(3, "unreachable", "-s", "gone=http://127.0.0.1:1/mcp", "ls")
	b.fault(3, "unreachable", "-s", "gone="+quote(program, "version"), "tools", "gone")
	b.fault(4, "not_found", "get", "p/nope")
	b.fault(5, "readonly", "start", "p", "build", "target=api", "--readonly")
	b.fault(5, "readonly", "cancel", "p/nope", "--readonly")
	b.fault(5, "readonly", "answer", "p/nope", "--decline", "--readonly")
	b.fault(6, "input_needed", "start", "p", "deploy_release", "service=api", "version=v1.2.3", "--wait")
	b.fault(7, "timeout", "start", "p", "reindex_search", "index=x", "--wait", "--timeout", "3s")
	// Where several apply: no such task (4) over what failed (1).
	var done struct{ Task task }
	b.read(1, &done, "start", "p", "run_tests", "package=core", "--wait")
	if r := b.run("wait", done.Task.name(), "p/nope"); r.code != 4 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// start without --wait on a server whose tasks end with the process says so
// before it starts.
func TestTasksThatEndWithTheProcess(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.want(0, "-s", "p="+quote(program, "demo-server"), "start", "p", "build", "target=api")
	if !strings.Contains(r.err, "--wait") || !strings.Contains(r.err, "end with this process") {
		t.Error(r.err)
	}
	if r := b.want(0, "-s", "p="+quote(program, "demo-server", "--generation", "2026-07-28"), "start", "p", "build", "target=api", "--ttl", "10m"); !strings.Contains(strings.ToLower(r.err), "ttl") && !strings.Contains(r.err, "time to live") {
		t.Errorf("nothing says that there is no such thing as a TTL: %s", r.err)
	}
}

// Completion offers servers, tools, task ids, statuses and the values of flags.
func TestCompletion(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env["MCPTASKS_SERVER"] = "ci=" + quote(program, "demo-server", "--tasks", "3") + "\nlab=http://127.0.0.1:1/mcp"
	var all []task
	b.read(0, &all, "ls", "ci")
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	id := all[0].TaskID
	for _, tt := range []struct {
		args []string
		want []string
		not  []string
	}{
		{[]string{"servers", ""}, []string{"ci", "lab"}, nil},
		{[]string{""}, []string{"ci", "lab", "ls", "servers", "watch"}, []string{"generate", "keys"}},
		{[]string{"tools", ""}, []string{"ci", "lab"}, nil},
		{[]string{"start", ""}, []string{"ci", "lab"}, nil},
		{[]string{"start", "ci", ""}, []string{"build", "reindex_search"}, []string{"read_status"}},
		{[]string{"get", "ci/"}, []string{"ci/" + id}, nil},
		{[]string{"get", "ci/" + id[:6]}, []string{"ci/" + id}, nil},
		{[]string{"wait", "ci/" + id, "ci/"}, nil, []string{"ci/" + id}},
		{[]string{"cancel", "lab/"}, []string{"lab/"}, []string{"ci/" + id}},
		{[]string{"ls", "--status", ""}, []string{"working", "input_required", "cancelled"}, nil},
		{[]string{"ls", "--status", "working,"}, []string{"working,failed"}, []string{"working,working", "working"}},
		{[]string{"ls", "-o", ""}, []string{"table", "json", "jsonl"}, nil},
		{[]string{"wait", "--on-input", ""}, []string{"ask", "exit", "decline", "cancel", "accept="}, nil},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish", "powershell"}, nil},
		{[]string{"demo-server", "--generation", ""}, []string{"draft", "2025-11-25", "2026-07-28"}, nil},
	} {
		r := b.want(0, append([]string{"__complete"}, tt.args...)...)
		got := map[string]bool{}
		for _, l := range strings.Split(r.out, "\n") {
			word, _, _ := strings.Cut(l, "\t")
			got[word] = true
		}
		for _, w := range tt.want {
			if !got[w] {
				t.Errorf("%q does not offer %s: %s", tt.args, w, r.out)
			}
		}
		for _, w := range tt.not {
			if got[w] {
				t.Errorf("%q offers %s: %s", tt.args, w, r.out)
			}
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := b.want(0, "completion", shell); !strings.Contains(r.out, "mcptasks") {
			t.Errorf("%s: %.100s", shell, r.out)
		}
	}
}

// Flags win over MCPTASKS_* variables, those over the file; NO_COLOR counts.
func TestVariablesThroughTheProgram(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("mine.toml", "[servers.f]\nurl = 'http://127.0.0.1:1/'\n[poll]\nmin = '3s'\n")
	b.env["MCPTASKS_CONFIG"], b.env["MCPTASKS_SET"], b.env["MCPTASKS_STATE"] = file, "f.poll_min=7s", filepath.Join(b.home, "elsewhere")
	b.env["NO_COLOR"], b.env["MCPTASKS_TIMEOUT"], b.env["MCPTASKS_OUTPUT"] = "1", "4s", "json"
	var rep struct {
		State   string
		Servers []struct{ Name string }
		Values  []struct{ Key, Value, From string }
	}
	if err := json.Unmarshal([]byte(b.want(0, "config").out), &rep); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range rep.Values {
		got[v.Key] = v.Value + " from " + v.From
	}
	for k, want := range map[string]string{"--timeout": "4s from MCPTASKS_TIMEOUT", "--no-color": "true from NO_COLOR", "servers.f.poll_min": "7s from --set", "poll.min": "3s from " + file, "--state": b.env["MCPTASKS_STATE"] + " from MCPTASKS_STATE"} {
		if got[k] != want {
			t.Errorf("%s = %q, want %q", k, got[k], want)
		}
	}
	b.env["MCPTASKS_SERVER"] = "v=http://127.0.0.1:1/"
	if err := json.Unmarshal([]byte(b.want(0, "config", "-s", "g=http://127.0.0.1:1/", "--set", "g.poll_min=1s").out), &rep); err != nil || len(rep.Servers) != 1 || rep.Servers[0].Name != "g" {
		t.Errorf("%+v, %v", rep.Servers, err)
	}
}
