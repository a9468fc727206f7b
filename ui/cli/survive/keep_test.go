//go:build linux

package survive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// onDisk reports in which of the user's files a word stands.
func (u *user) onDisk(word string) (in []string) {
	u.t.Helper()
	err := filepath.WalkDir(u.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil // the write-ahead log came and went
		}
		if bytes.Contains(b, []byte(word)) {
			in = append(in, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return in
}

// D 3: with keep = "none" neither arguments nor results of a server's tasks are
// ever in the state folder, not in the write-ahead log and not while another
// process has it open; what was answered is gone once the server took it. With
// the default they are there: the words are the right ones.
func TestKeepNoneLeavesNothingOnDisk(t *testing.T) {
	for _, gen := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension, taskmodel.GenDraft} {
		for _, keep := range []string{"none", "all"} {
			p := newPlace(t, gen, true, 200)
			t.Run(fmt.Sprintf("%s %s", gen, keep), func(t *testing.T) {
				t.Parallel()
				u := newUser(t, p)
				u.flags = append(u.flags, "--set", "p.keep="+keep)
				watch := u.begin("watch") // it fetches results, and keeps the files open
				eventually(t, "a watch", func() bool { return strings.Contains(watch.out.String(), `"state":"ready"`) })
				var deploy, scan task
				u.read(&deploy, "start", "p", "deploy_release", "service=api", "version=v9.9.123", "environment=staging")
				u.read(&scan, "start", "p", "run_tests", "package=./planted-argument")
				u.asked(deploy)
				u.want(0, "answer", deploy.name(), "--accept", `{"strategy":"canary","ticket":"CHG-424242"}`)
				u.want(0, "wait", deploy.name())
				u.run("wait", scan.name())
				var out struct {
					Result struct{ Content []struct{ Text string } }
				}
				r := u.want(0, "result", deploy.name(), "-o", "json")
				if err := json.Unmarshal([]byte(r.out.String()), &out); err != nil || len(out.Result.Content) == 0 || len(out.Result.Content[0].Text) < 20 {
					t.Fatalf("%v %s", err, r.out.String())
				}
				eventually(t, "the result at the watch", func() bool { return strings.Contains(watch.out.String(), `"hasResult":true`) })
				words := map[string]string{"an argument": "planted-argument", "a result": out.Result.Content[0].Text, "the arguments of a call": `"version":"v9.9.123"`}
				if keep == "none" {
					// What went from one process to another is dropped when it has come.
					eventually(t, "nothing is there while the files are open", func() bool {
						return len(u.onDisk("planted-argument"))+len(u.onDisk(words["a result"]))+len(u.onDisk(words["the arguments of a call"])) == 0
					})
				}
				watch.stop(t)
				for what, word := range words {
					if in := u.onDisk(word); (len(in) > 0) != (keep == "all") {
						t.Errorf("at the end %s (%s) is in %v", what, word, in)
					}
				}
				if in := u.onDisk("CHG-424242"); len(in) > 0 && keep == "none" {
					t.Errorf("what was answered is in %v", in)
				}
				if gen != taskmodel.GenDraft {
					return
				}
				// The draft lets a client delete what it has fetched.
				u.want(0, "forget", deploy.name(), "--delete")
				p.mu.Lock()
				deletes := p.seen["tasks/delete"]
				p.mu.Unlock()
				if deletes != 1 {
					t.Errorf("tasks/delete went out %d times", deletes)
				}
				var left []task
				u.read(&left, "ls")
				for _, x := range left {
					if x.TaskID == deploy.TaskID {
						t.Errorf("still there: %+v", x)
					}
				}
				if in := u.onDisk(out.Result.Content[0].Text); len(in) > 0 {
					t.Errorf("the result of a forgotten task is in %v", in)
				}
			})
		}
	}
}

// D 3: what is older than the settings allow goes on request, and nothing that
// may still run or has an answer to come.
func TestPruneThroughTheProgram(t *testing.T) {
	u := newUser(t, nil)
	file := filepath.Join(u.home, "config.toml")
	if err := os.WriteFile(file, []byte("[servers.p]\nurl = \"http://127.0.0.1:1/mcp\"\nautostart = false\n[history]\ndays = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.flags = []string{"-c", file}
	u.want(0, "history")
	const target = "http://127.0.0.1:1/mcp"
	long := time.Now().Add(-48 * time.Hour)
	put := func(id string, st taskmodel.Status, at time.Time, more ...journal.Entry) []journal.Entry {
		x := taskmodel.Task{FirstHeardAt: at, LastHeardAt: at, Standing: taskmodel.Live}
		x.Key, x.Status = taskmodel.Key{Server: "p", ID: id, Role: taskmodel.Requestor}, st
		x.Generation = taskmodel.GenCore
		if x.Terminal() {
			x.EndedAt = at
		}
		return append([]journal.Entry{{Target: target, Server: "p", Task: &x,
			Event: &taskmodel.Event{Time: at, Kind: taskmodel.EventCreated, Task: x.Key}}}, more...)
	}
	question := func(id string, st taskmodel.QuestionState, a *taskmodel.Answer) journal.Entry {
		return journal.Entry{Target: target, Server: "p", Answer: a, Question: &taskmodel.Question{ID: taskmodel.QuestionID{Server: "p", ID: "q" + id},
			Task: taskmodel.Key{Server: "p", ID: id, Role: taskmodel.Requestor}, Kind: taskmodel.AskForm, State: st, AskedAt: long}}
	}
	var all []journal.Entry
	all = append(all, put("old-ended", taskmodel.Completed, long, journal.Entry{Target: target, Server: "p",
		Key:     taskmodel.Key{Server: "p", ID: "old-ended", Role: taskmodel.Requestor},
		Outcome: &taskmodel.Outcome{Result: json.RawMessage(`{"content":[]}`)}})...)
	all = append(all, put("old-running", taskmodel.Working, long)...)
	all = append(all, put("old-asking", taskmodel.InputRequired, long, question("old-asking", taskmodel.QuestionOpen, nil))...)
	all = append(all, put("old-unconfirmed", taskmodel.Completed, long, question("old-unconfirmed", taskmodel.QuestionUnconfirmed,
		&taskmodel.Answer{Question: taskmodel.QuestionID{Server: "p", ID: "qold-unconfirmed"}, Action: taskmodel.Accept, Content: json.RawMessage(`{"a":1}`)}))...)
	all = append(all, put("young-ended", taskmodel.Failed, time.Now())...)
	j := u.look()
	if err := j.Write(context.Background(), all...); err != nil {
		t.Fatal(err)
	}
	if r := u.want(0, "history", "--prune"); !strings.Contains(r.out.String(), "Dropped 1 tasks, 1 results") {
		t.Errorf("%s%s", r.out.String(), r.errs.String())
	}
	rest, err := j.Restore(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, x := range rest.Tasks {
		left = append(left, x.ID)
	}
	if got := strings.Join(left, " "); got != "old-asking old-running old-unconfirmed young-ended" {
		t.Errorf("left: %s", got)
	}
	if r := u.want(0, "history", "-o", "jsonl"); strings.Contains(r.out.String(), "old-ended") {
		t.Errorf("the history of what was pruned: %s", r.out.String())
	}
}

// D 3: over the size that the configuration gives, results go first and then
// tasks, the oldest first, and never what runs or asks.
func TestPruneBySizeThroughTheProgram(t *testing.T) {
	u := newUser(t, nil)
	file := filepath.Join(u.home, "config.toml")
	if err := os.WriteFile(file, []byte("[servers.p]\nurl = \"http://127.0.0.1:1/mcp\"\nautostart = false\n[history]\nmegabytes = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.flags = []string{"-c", file}
	u.want(0, "history")
	const target = "http://127.0.0.1:1/mcp"
	noise := func(n int) json.RawMessage {
		b := make([]byte, n/2)
		for i := range b {
			b[i] = byte(i * i >> 3)
		}
		return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"%x"}]}`, b))
	}
	j := u.look()
	put := func(id string, st taskmodel.Status, age time.Duration, raw, result json.RawMessage) {
		t.Helper()
		at := time.Now().Add(-age)
		x := taskmodel.Task{FirstHeardAt: at, LastHeardAt: at, Standing: taskmodel.Live, Raw: raw}
		x.Key, x.Status, x.Generation = taskmodel.Key{Server: "p", ID: id, Role: taskmodel.Requestor}, st, taskmodel.GenCore
		if x.Terminal() {
			x.EndedAt = at
		}
		e := journal.Entry{Target: target, Server: "p", Key: x.Key, Task: &x, Event: &taskmodel.Event{Time: at, Kind: taskmodel.EventCreated, Task: x.Key}}
		if result != nil {
			e.Outcome = &taskmodel.Outcome{Result: result, FetchedAt: at}
		}
		if err := j.Write(context.Background(), e); err != nil && !errors.Is(err, journal.ErrSlow) {
			t.Fatal(err)
		}
	}
	kept := func() (tasks, results []string) {
		t.Helper()
		rest, err := j.Restore(context.Background(), target)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range rest.Tasks {
			tasks = append(tasks, x.ID)
			if x.Outcome.KeptHere {
				results = append(results, x.ID)
			}
		}
		return tasks, results
	}
	put("a-running", taskmodel.Working, 500*time.Hour, noise(200<<10), nil)
	put("a-asking", taskmodel.InputRequired, 500*time.Hour, noise(100<<10), nil)
	for i := range 60 {
		put(fmt.Sprintf("done-%02d", i), taskmodel.Completed, time.Duration(100-i)*time.Hour, nil, noise(40<<10))
	}
	if r := u.want(0, "history", "--prune"); !strings.Contains(r.out.String(), "Dropped 0 tasks, 50 results") {
		t.Errorf("%s%s", r.out.String(), r.errs.String())
	}
	tasks, results := kept() // of which about 17 have room
	if len(tasks) != 62 || len(results) != 10 || results[0] != "done-50" {
		t.Errorf("%d tasks are left, with the results of %v", len(tasks), results)
	}
	// Without results that could go, the oldest tasks that have ended go.
	for i := range 20 {
		put(fmt.Sprintf("large-%02d", i), taskmodel.Completed, time.Duration(90-i)*time.Minute, noise(50<<10), nil)
	}
	u.want(0, "history", "--prune")
	tasks, results = kept()
	if n := len(tasks); n < 4 || n > 12 || tasks[0] != "a-asking" || tasks[1] != "a-running" || tasks[2] < "large-10" || tasks[n-1] != "large-19" || len(results) != 0 {
		t.Errorf("left: %s, with the results of %v", tasks, results)
	}
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s, err := os.Stat(filepath.Join(u.state(), journal.FileName)); err != nil || s.Size() > 1<<20 {
		t.Errorf("the file is %v, %v", s, err)
	}
}

// D 6: what `history -o jsonl` writes is enough to rebuild the tables: a journal
// made from it exports the same, task for task and line for line.
func TestRebuiltFromItsExport(t *testing.T) {
	p := newPlace(t, taskmodel.GenExtension, true, 200)
	u := newUser(t, p)
	var done, asking task
	u.read(&done, "start", "p", "deploy_release", "service=api", "version=v9.9.7", "environment=staging")
	watch := u.begin("watch")
	u.asked(done)
	u.want(0, "answer", done.name(), "--accept", `{"strategy":"canary","ticket":"CHG-000007"}`)
	u.want(0, "wait", done.name())
	u.read(&asking, "start", "p", "deploy_release", "service=web", "version=v9.9.8", "environment=staging")
	u.run("wait", asking.name(), "--on-input", "exit")
	u.run("start", "p", "security_scan", "--wait")
	watch.stop(t)
	first := u.want(0, "history", "-o", "jsonl").out.String()
	file := filepath.Join(u.home, "everything.jsonl")
	if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	again := *u
	again.home = t.TempDir()
	again.want(0, "history", "--import", file)
	second := again.want(0, "history", "-o", "jsonl").out.String()
	if a, b := strings.Split(first, "\n"), strings.Split(second, "\n"); len(a) < 8 || first != second {
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Errorf("line %d was\n%s\nand is\n%s", i+1, a[i], b[i])
			}
		}
		t.Errorf("%d lines, then %d", len(a), len(b))
	}
	// And it serves the next run as the first would have.
	want, got := u.want(0, "ls", "-o", "json").out.String(), again.want(0, "ls", "-o", "json").out.String()
	var x, y []task
	if json.Unmarshal([]byte(want), &x) != nil || json.Unmarshal([]byte(got), &y) != nil || len(x) == 0 || fmt.Sprint(x) != fmt.Sprint(y) {
		t.Errorf("ls was\n%s\nand is\n%s", want, got)
	}
	r := again.want(0, "result", done.name(), "-o", "json")
	if !strings.Contains(r.out.String(), "v9.9.7") {
		t.Errorf("the kept result: %s", r.out.String())
	}
}

// D 6: a bundle holds what a bug report needs, and no secret: not the token the
// program signs in with, not the words that were answered, not the task's id.
func TestBundleHoldsNoSecrets(t *testing.T) {
	p := newPlace(t, taskmodel.GenCore, true, 200)
	u := newUser(t, p)
	u.flags = append(u.flags, "--set", "p.headers.Authorization=Bearer planted-token-0815", "--set", "p.headers.X-Team=planted-header-0815")
	var x task
	u.read(&x, "start", "p", "deploy_release", "service=api", "version=v9.9.7", "environment=staging")
	u.asked(x)
	u.want(0, "answer", x.name(), "--accept", `{"strategy":"canary","ticket":"CHG-000815"}`)
	u.want(0, "wait", x.name())
	u.want(0, "result", x.name())
	for _, way := range [][]string{{}, {"--with-ids"}} {
		r := u.want(0, append([]string{"history", x.name(), "--bundle", "-"}, way...)...)
		b := r.out.String()
		if b == "" {
			raw, err := os.ReadFile(filepath.Join(u.home, "-"))
			if err != nil {
				t.Fatal(err)
			}
			b = string(raw)
		}
		for _, want := range []string{`"deploy_release"`, `"v9.9.7"`, `"completed"`, `"transitions"`, `"questions"`, `"result"`} {
			if !strings.Contains(b, want) {
				t.Errorf("%v: no %s in %s", way, want, b)
			}
		}
		for _, not := range []string{"planted-token-0815", "CHG-000815"} {
			if strings.Contains(b, not) && !strings.Contains(b, "under "+not) {
				t.Errorf("%v: %s in %s", way, not, b)
			}
		}
		if strings.Contains(b, x.TaskID) != (len(way) > 0) {
			t.Errorf("%v: the id: %s", way, b)
		}
	}
}
