package ui

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Views that are saved at the same time, by one process or by several, are all
// kept; of one name the last one counts.
func TestViewsOfSeveralAtOnceAreAllKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "views.json")
	a, b := &viewsFile{path: path}, &viewsFile{path: path}
	a.set("dropped", "id:1")
	if err := a.write(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var wg sync.WaitGroup
	for i := range 10 {
		for who, f := range map[string]*viewsFile{"a": a, "b": b} {
			name := fmt.Sprint(who, i)
			f.set(name, "id:9")
			f.set(name, "id:1") // typed once more before the first was written
			want[name] = "id:1"
			for range 2 {
				wg.Go(func() {
					if err := f.write(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	b.set("dropped", "")
	wg.Go(func() {
		if err := b.write(); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if got := readViews(path); !maps.Equal(got, want) {
		t.Errorf("kept: %v", got)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

// A lock whose process was killed does not stand for ever; what could not be
// written is written with the next view.
func TestViewsLock(t *testing.T) {
	dir := t.TempDir()
	f := &viewsFile{path: filepath.Join(dir, "views.json")}
	lock := f.path + ".lock"
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	f.set("one", "id:1")
	if err := f.write(); err != nil {
		t.Fatal(err)
	}
	blocked := &viewsFile{path: filepath.Join(f.path, "no folder", "views.json")}
	blocked.set("two", "id:2")
	if err := blocked.write(); err == nil {
		t.Fatal("written below a file")
	}
	blocked.path = f.path
	blocked.set("three", "id:3")
	if err := blocked.write(); err != nil {
		t.Fatal(err)
	}
	if got := readViews(f.path); !maps.Equal(got, map[string]string{"one": "id:1", "two": "id:2", "three": "id:3"}) {
		t.Errorf("kept: %v", got)
	}
}
