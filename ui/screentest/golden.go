package screentest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// Golden compares the whole screen with testdata/NAME.txt. With -update it
// writes the file.
func (t *Terminal) Golden(name string) *Terminal {
	t.t.Helper()
	Golden(t.t, name, t.Screen())
	return t
}

// Golden compares a text with testdata/NAME.txt.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got += "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it); the screen is\n%s", err, got)
	}
	if string(want) != got {
		t.Errorf("%s differs (go test -update accepts it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// Plain is a view without its styles. It must have h lines, none of them wider
// than w.
func Plain(t testing.TB, view string, w, h int) string {
	t.Helper()
	lines := strings.Split(view, "\n")
	if len(lines) != h {
		t.Errorf("%d lines in a window of %d", len(lines), h)
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n > w {
			t.Errorf("line %d is %d cells wide in a window of %d: %q", i+1, n, w, ansi.Strip(l))
		}
		lines[i] = strings.TrimRight(ansi.Strip(l), " ")
	}
	return strings.Join(lines, "\n")
}

// Shows asserts that a screen holds each of the texts.
func Shows(t testing.TB, screen string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(screen, w) {
			t.Errorf("%q is not on the screen\n%s", w, screen)
		}
	}
}
