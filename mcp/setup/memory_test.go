package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/config"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

func configured(t *testing.T, env map[string]string, text string) config.Config {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Search{Home: dir, Cwd: dir, XDGConfig: dir, OS: "linux", Files: []string{path},
		Env:      func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		LookPath: func(c string) (string, error) { return c, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func remembering(t *testing.T, dir string, c config.Config) *Memory {
	t.Helper()
	m, notes, _ := OpenMemory(dir, c, "test", slog.New(slog.DiscardHandler))
	if m == nil {
		t.Fatal(notes)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func put(t *testing.T, m *Memory, target, id string, ended time.Time) {
	t.Helper()
	task := taskmodel.Task{FirstHeardAt: ended, LastHeardAt: ended, EndedAt: ended}
	task.Key = taskmodel.Key{Server: "ci", ID: id, Role: taskmodel.Requestor}
	task.Status = taskmodel.Completed
	err := m.Journal.Write(t.Context(), journal.Entry{Target: target, Server: "ci", Task: &task},
		journal.Entry{Target: target, Key: task.Key, Outcome: &taskmodel.Outcome{Result: json.RawMessage(`{"content":[{"type":"text","text":"key was secret-1 indeed"}]}`)}})
	if err != nil {
		t.Fatal(err)
	}
}

// What is older than [history] days goes by itself, once a day, and what is
// younger stays.
func TestRetentionGoesByItself(t *testing.T) {
	dir := t.TempDir()
	c := configured(t, nil, "[servers.ci]\nurl = \"http://ci.example/\"\n[history]\ndays = 1\n")
	m := remembering(t, dir, c)
	now := time.Now()
	put(t, m, "http://ci.example/", "old", now.Add(-48*time.Hour))
	put(t, m, "http://ci.example/", "young", now)
	stamp := filepath.Join(dir, "pruned")
	run := func(until func() bool) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { m.Retain(ctx); close(done) }()
		for end := time.Now().Add(20 * time.Second); !until() && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		stop()
		<-done
	}
	run(func() bool { _, err := os.Stat(stamp); return err == nil })
	left, err := m.Find(t.Context(), "ci", "", taskmodel.Requestor)
	if err != nil || len(left) != 1 || left[0].ID != "young" {
		t.Errorf("left: %v %v", left, err)
	}
	info, err := os.Stat(stamp)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the stamp: %v %v", info, err)
	}
}

// Done today is done for all processes.
func TestRetentionIsOnceADay(t *testing.T) {
	dir := t.TempDir()
	if err := touch(filepath.Join(dir, "pruned")); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		// Its clock stands years before the file's time: as a clock set back it is
		// due; one that was touched on this clock is not.
		stamp := filepath.Join(dir, "pruned")
		if err := touch(stamp); err != nil {
			t.Fatal(err)
		}
		m := &Memory{dir: dir, log: slog.New(slog.DiscardHandler)} // a journal it would fall over
		ctx, stop := context.WithTimeout(t.Context(), pruneEvery-time.Minute)
		defer stop()
		m.Retain(ctx)
		if ctx.Err() == nil {
			t.Error("it ended before its time")
		}
	})
}

// A bundle takes the beginning of an id and holds no secret of the
// configuration.
func TestBundleByPrefixWithoutSecrets(t *testing.T) {
	c := configured(t, map[string]string{"T": "secret-1"}, "[servers.ci]\nurl = \"http://ci.example/\"\nheaders = { Authorization = \"Bearer ${T}\" }\n")
	m := remembering(t, t.TempDir(), c)
	put(t, m, "http://ci.example/", "7f3a91c2-1", time.Now())
	put(t, m, "http://ci.example/", "7f3a91c2-2", time.Now())
	k := taskmodel.Key{Server: "ci", ID: "7f3a91c2-1", Role: taskmodel.Requestor}
	var b bytes.Buffer
	if err := m.Bundle(t.Context(), k, nil, true, &b); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Contains(s, "secret-1") || !strings.Contains(s, "key was") {
		t.Errorf("bundle: %s", s)
	}
	for id, want := range map[string]string{"7f": "2 tasks", "zz": "not remember"} {
		k.ID = id
		if err := m.Bundle(t.Context(), k, nil, true, &b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	b.Reset()
	if k.ID = "7f3a91c2-2"; m.Bundle(t.Context(), k, nil, true, &b) != nil || b.Len() == 0 {
		t.Error("no bundle")
	}
}
