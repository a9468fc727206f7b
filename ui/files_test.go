package ui

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/ui/act"
)

func TestSaveNeverWritesOverByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	m := &model{}
	if d, ok := m.save(saveTo{path: path, data: []byte("one"), what: "it"})().(doneMsg); !ok || d.err != nil || !strings.Contains(d.text, "Saved it to") {
		t.Fatalf("%+v", d)
	}
	over, ok := m.save(saveTo{path: path, data: []byte("two"), what: "it"})().(overMsg)
	if !ok {
		t.Fatal("a file that was there is written over without a question")
	}
	if b, _ := os.ReadFile(path); string(b) != "one" {
		t.Errorf("the file holds %q", b)
	}
	over.over = true
	if d := m.save(saveTo(over))().(doneMsg); d.err != nil {
		t.Fatal(d.err)
	}
	if b, _ := os.ReadFile(path); string(b) != "two" {
		t.Errorf("the file holds %q", b)
	}
	if st, _ := os.Stat(path); st.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v", st.Mode())
	}
	if d := m.save(saveTo{path: filepath.Join(path, "x"), what: "it"})().(doneMsg); d.err == nil {
		t.Error("no error for a path that cannot be")
	}
}

func TestProposedNamesStayInTheFolder(t *testing.T) {
	m := &model{opt: Options{SaveDir: "out"}}
	for _, evil := range []string{"../../etc/passwd", "/etc/passwd", "a/b", "..", "\x1b[2J", "con\x00.txt"} {
		l := m.saveLine(act.Save{Name: evil, What: "it"})
		if dir := filepath.Dir(l.Text); dir != "out" {
			t.Errorf("%q is proposed as %q", evil, l.Text)
		}
	}
}

func TestReadFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(path, make([]byte, maxRead+1), 0o600); err != nil {
		t.Fatal(err)
	}
	type got struct {
		text string
		err  error
	}
	done := func(text string, err error) tea.Msg { return got{text, err} }
	read := func(p string) got {
		return readFile(act.Read{Path: p, Done: func(s string, err error) tea.Msg { return done(s, err) }})().(got)
	}
	if g := read(path); g.err == nil || !strings.Contains(g.err.Error(), "larger than") {
		t.Errorf("%v", g.err)
	}
	if g := read(filepath.Join(filepath.Dir(path), "none")); g.err == nil {
		t.Error("no error for a file that is not there")
	}
	small := filepath.Join(filepath.Dir(path), "small")
	if err := os.WriteFile(small, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if g := read(" " + small + " "); g.text != "hello" || g.err != nil {
		t.Errorf("%q %v", g.text, g.err)
	}
}

func TestHookGetsJSONOnStdin(t *testing.T) {
	cat, err := exec.LookPath("tee")
	if err != nil {
		t.Skip("there is no tee here")
	}
	path := filepath.Join(t.TempDir(), "got")
	if m := runHook(context.Background(), []string{cat, path}, []byte(`{"event":"status"}`))(); m != nil {
		t.Fatalf("%+v", m)
	}
	if b, _ := os.ReadFile(path); string(b) != "{\"event\":\"status\"}\n" {
		t.Errorf("the hook got %q", b)
	}
	d, ok := runHook(context.Background(), []string{filepath.Join(t.TempDir(), "none")}, nil)().(doneMsg)
	if !ok || d.err == nil || !strings.Contains(d.err.Error(), "notify hook") {
		t.Errorf("%+v", d)
	}
}

func TestBrowseRefusesWhatIsNoWebAddress(t *testing.T) {
	for _, raw := range []string{"javascript:alert(1)", "file:///etc/passwd", "http://a\x1b[2J", "$(x)", ""} {
		d, ok := browse(context.Background(), raw)().(doneMsg)
		if !ok || d.err == nil || !strings.Contains(d.err.Error(), "not opened") {
			t.Errorf("%q: %+v", raw, d)
		}
	}
}

// Where nothing opens an address, that is said in one line, with what to do: at
// once where there is no screen, else with what the opener says.
func TestNothingOpensAnAddress(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("there is always a screen")
	}
	bin := t.TempDir()
	opener := filepath.Join(bin, "xdg-open")
	if err := os.WriteFile(opener, []byte("#!/bin/sh\nprintf 'no \\033[31mbrowser\\nsecond line\\n' >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} {
		t.Setenv(name, "")
	}
	judge := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "copy the address") ||
			strings.Contains(err.Error(), "second line") || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%v", err)
		}
	}
	judge(browse(t.Context(), "https://a.example/x")().(doneMsg).err, "there is no display")
	judge(opens(t.Context(), []string{"xdg-open", "https://a.example/x"}, time.Minute), "no browser")
	if err := os.Remove(opener); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DISPLAY", ":0")
	judge(browse(t.Context(), "https://a.example/x")().(doneMsg).err, "xdg-open")
}

func TestProgramSplitsWordsWithoutAShell(t *testing.T) {
	t.Setenv("EDITOR", `code --wait "a b"`)
	t.Setenv("VISUAL", "")
	words, err := program([]string{"VISUAL", "EDITOR"})
	if err != nil || len(words) != 3 || words[2] != "a b" {
		t.Errorf("%q %v", words, err)
	}
	t.Setenv("EDITOR", "")
	if _, err := program([]string{"VISUAL", "EDITOR"}); err == nil || !strings.Contains(err.Error(), "$VISUAL is not set") {
		t.Errorf("%v", err)
	}
}
