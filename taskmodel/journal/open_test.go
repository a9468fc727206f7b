package journal

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other permissions")
	}
	dir := filepath.Join(t.TempDir(), "a", "state with ? and #")
	j := opened(t, dir, Options{})
	write(t, j, entry(working("a")))
	for name, want := range map[string]fs.FileMode{".": 0o700, FileName: 0o600, FileName + "-wal": 0o600, FileName + "-shm": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

func TestAFileThatOthersCouldReadIsClosedToThem(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other permissions")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	opened(t, dir, Options{})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

// alter changes the file with plain SQLite.
func alter(t *testing.T, dir, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

func TestANewerFileIsRefusedAndUntouched(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Options{})
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	alter(t, dir, `PRAGMA journal_mode = DELETE; PRAGMA user_version = 99`)
	before, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "version 99") || !strings.Contains(err.Error(), "--state") {
		t.Errorf("%v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || string(after) != string(before) {
		t.Error("the file was changed")
	}
}

func TestAFileOfAnotherProgramIsRefused(t *testing.T) {
	dir := t.TempDir()
	alter(t, dir, `CREATE TABLE x (y); PRAGMA user_version = 1`)
	if _, err := Open(dir, Options{}); !errors.Is(err, errForeign) {
		t.Error(err)
	}
}

func TestADamagedFileIsSetAside(t *testing.T) {
	clk := newClock()
	for name, spoil := range map[string]func(t *testing.T, path string){
		"no database": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"cut off": func(t *testing.T, path string) {
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
		},
		"a page overwritten, found in use": func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 3 * 4096; i < len(b); i++ {
				b[i] ^= 0x5a
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(suspect(path), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := opened(t, dir, clk.options(Options{}))
			write(t, j, entry(working("a")))
			if err := j.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			spoil(t, filepath.Join(dir, FileName))
			j = opened(t, dir, clk.options(Options{}))
			write(t, j, entry(working("b")))
			if got := only(t, restore(t, j)); got.ID != "b" {
				t.Error(got.ID)
			}
			if names := Damaged(dir); len(names) != 1 || !strings.Contains(names[0], epoch.UTC().Format("20060102T150405Z")) {
				t.Errorf("set aside: %v", names)
			}
		})
	}
}

func TestAFolderThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "state"), Options{}); err == nil || !strings.Contains(err.Error(), "--state DIR") {
		t.Errorf("no sentence with a next step: %v", err)
	}
}

// A full disk: Write says so in words, nothing is lost while the process
// lives, and all is written when there is room again.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Options{})
	limit := func(pages int) {
		t.Helper()
		if err := j.act(context.Background(), func(x *tx) error {
			var n int
			return x.queryRow(`PRAGMA max_page_count = `+map[bool]string{true: "1", false: "1000000"}[pages == 1], nil, &n)
		}); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	big := working("big")
	big.Raw = []byte(`"` + strings.Repeat("x", 300_000) + `"`)
	err := j.Write(context.Background(), entry(big))
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("%v", err)
	}
	if err := j.Write(context.Background(), entry(working("next"))); err == nil {
		t.Error("the standing error is told at once")
	}
	if j.Err() == nil {
		t.Error("no standing error")
	}
	if _, _, err := j.Acquire(context.Background(), target, ""); err == nil {
		t.Error("a lease was given without a disk")
	}
	// Room again: acts are refused while the error stands, so the limit is lifted
	// by the writer's own means.
	j.w.mu.Lock()
	j.w.queue = append([]*item{{act: func(x *tx) error {
		var n int
		return x.queryRow(`PRAGMA max_page_count = 1000000`, nil, &n)
	}}}, j.w.queue...)
	j.w.mu.Unlock()
	for deadline := time.Now().Add(20 * time.Second); j.Err() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("did not get well")
		}
		runtime.Gosched()
		time.Sleep(5 * time.Millisecond)
	}
	if err := j.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r := restore(t, j); len(r.Tasks) != 2 {
		t.Errorf("%d tasks", len(r.Tasks))
	}
}

// A slow disk: Write gives up waiting with ErrSlow and the entry is written.
func TestASlowDisk(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir, Options{Wait: 20 * time.Millisecond})
	db, err := sql.Open("sqlite", dsn(filepath.Join(dir, FileName), "immediate", false))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lock, err := db.Begin() // another process is in the middle of a write
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Write(context.Background(), entry(working("a"))); !errors.Is(err, ErrSlow) {
		t.Errorf("%v", err)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := j.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	only(t, restore(t, j))
}

// Many processes make the same file at once.
func TestOpenedByManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			j, err := Open(dir, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := j.Write(context.Background(), entry(working("a"))); err != nil && !errors.Is(err, ErrSlow) {
				t.Error(err)
			}
			if err := j.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	only(t, restore(t, opened(t, dir, Options{})))
	if Damaged(dir) != nil {
		t.Error("something was set aside")
	}
}

func TestClosed(t *testing.T) {
	j := opened(t, t.TempDir(), Options{})
	j.Queue(entry(working("a")))
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := j.Write(context.Background(), entry(taskmodel.Task{})); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, _, err := j.Acquire(context.Background(), target, ""); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := j.Changes(context.Background(), target, 0); err == nil {
		t.Error("changes of a closed journal")
	}
	if err := j.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
