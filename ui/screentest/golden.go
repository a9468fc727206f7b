package screentest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
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
