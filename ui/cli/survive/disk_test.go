//go:build linux

package survive

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // to lock and to damage what the program wrote

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// smallDisk mounts a disk of the size given as the user's state folder, where
// this process may; else the test does without.
func (u *user) smallDisk(size string) (mounted bool) {
	u.t.Helper()
	if err := os.MkdirAll(u.state(), 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", u.state(), "tmpfs", 0, "mode=700,size="+size); err != nil {
		u.t.Logf("a disk of our own cannot be mounted here (%v); folders stand in for it", err)
		return false
	}
	u.t.Cleanup(func() { _ = unix.Unmount(u.state(), unix.MNT_DETACH) })
	return true
}

// fill takes what is left of the disk.
func (u *user) fill() {
	u.t.Helper()
	f, err := os.OpenFile(filepath.Join(u.state(), "fill"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		u.t.Fatal(err)
	}
	defer f.Close()
	for block := bytes.Repeat([]byte("x"), 4096); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

// goesOn: with a state folder that does not work, commands do what they are
// asked to, say once on stderr that nothing is remembered and why, and end as if
// all were well; the screens say it at the server.
func (u *user) goesOn(p *place, why string) {
	u.t.Helper()
	says := regexp.MustCompile(`(?s)mcptasks: .*` + why + `.*(Nothing will be remembered|Not all of this is remembered)`)
	before := p.marked("idx-77")
	r := u.want(0, "start", "p", "reindex_search", "index=idx-77", "-o", "json")
	if !says.MatchString(r.errs.String()) {
		u.t.Errorf("start does not say that %s: %q", why, r.errs.String())
	}
	if n := p.marked("idx-77"); n != before+1 {
		u.t.Errorf("the call went out %d times", n-before)
	}
	if strings.Contains(r.out.String(), "journal") {
		u.t.Errorf("stdout: %s", r.out.String())
	}
	s := u.screens()
	eventually(u.t, "the screens say that "+why, func() bool {
		return regexp.MustCompile("nothing is remembered: (" + why + ")").MatchString(s.out.String())
	})
	s.press("q")
	s.wait(u.t)
	if s.code != 0 {
		u.t.Errorf("the screens ended with %d: %s", s.code, s.out.String())
	}
}

// D 5: a disk that is full when the program starts, and one that becomes full
// while it runs.
func TestFullDisk(t *testing.T) {
	p := newPlace(t, taskmodel.GenCore, true, 1)
	t.Run("at the start", func(t *testing.T) {
		u := newUser(t, p)
		if !u.smallDisk("200k") {
			t.Skip("no disk of our own")
		}
		u.fill()
		u.goesOn(p, "the disk is full")
	})
	t.Run("with a journal on it", func(t *testing.T) {
		u := newUser(t, p)
		if !u.smallDisk("2m") {
			t.Skip("no disk of our own")
		}
		u.want(0, "ls")
		u.fill()
		u.goesOn(p, "the disk is full")
		if err := os.Remove(filepath.Join(u.state(), "fill")); err != nil {
			t.Fatal(err)
		}
		if r := u.want(0, "ls"); r.errs.String() != "" {
			t.Errorf("with room again: %s", r.errs.String())
		}
		if r := u.want(0, "history"); !strings.Contains(r.out.String(), "created") {
			t.Errorf("history: %s", r.out.String())
		}
	})
	t.Run("while it runs", func(t *testing.T) {
		u := newUser(t, p)
		if !u.smallDisk("2m") {
			t.Skip("no disk of our own")
		}
		u.want(0, "start", "p", "reindex_search", "index=idx-78")
		s := u.screens()
		eventually(t, "the screens", func() bool { return strings.Contains(s.out.String(), "reindex_search") })
		u.fill()
		eventually(t, "the screens say so", func() bool {
			return strings.Contains(s.out.String(), "nothing is remembered: the disk is full")
		})
		if err := os.Remove(filepath.Join(u.state(), "fill")); err != nil {
			t.Fatal(err)
		}
		// What was not written is written when there is room again.
		u2 := *u
		eventually(t, "the journal is written again", func() bool {
			r := u2.run("history", "-o", "jsonl")
			return r.code == 0 && strings.Contains(r.out.String(), `"created"`)
		})
		s.press("q")
		s.wait(t)
	})
}

// D 5: a state folder that may only be read.
func TestReadOnlyDisk(t *testing.T) {
	p := newPlace(t, taskmodel.GenCore, true, 1)
	u := newUser(t, p)
	if u.smallDisk("2m") {
		u.want(0, "ls")
		if err := unix.Mount("", u.state(), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		u.goesOn(p, "it is read-only")
		return
	}
	if err := os.Chmod(u.state(), 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	u.goesOn(p, "it may not be written by this user")
}

// D 5: no folder can be made.
func TestNoStateFolder(t *testing.T) {
	p := newPlace(t, taskmodel.GenCore, true, 1)
	u := newUser(t, p)
	if err := os.WriteFile(u.state(), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.goesOn(p, "its folder cannot be used|not a directory")
}

// D 5: a disk so slow that nothing is written. An answer that a person gives
// goes out all the same; the start of another process does not hang on it.
func TestSlowDisk(t *testing.T) {
	p := newPlace(t, taskmodel.GenCore, true, 30)
	u := newUser(t, p)
	u.want(0, "start", "p", "reindex_search", "index=idx-1")
	s := u.screens()
	eventually(t, "the task on the screen", func() bool { return strings.Contains(s.out.String(), "reindex_search") })
	db, err := sql.Open("sqlite", "file:"+filepath.Join(u.state(), journal.FileName)+"?_txlock=immediate&_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.press("c")
	eventually(t, "the question whether to cancel", func() bool { return strings.Contains(s.out.String(), "ancel") })
	s.press("y")
	var id string
	for _, h := range p.demo.Handles() {
		id = h.ID
	}
	eventually(t, "the cancellation at the server", func() bool { return p.cancels(id) == 1 })
	began := time.Now()
	r := u.want(0, "ls", "-o", "json")
	if !strings.Contains(r.errs.String(), "another process keeps it locked") || !strings.Contains(r.errs.String(), "Nothing will be remembered") {
		t.Errorf("ls does not say so: %q", r.errs.String())
	}
	t.Logf("ls took %v", time.Since(began))
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	j := u.look()
	eventually(t, "what was done is written down when the disk is well again", func() bool {
		rest, err := j.Restore(context.Background(), p.target)
		return err == nil && len(rest.Tasks) == 1 && !rest.Tasks[0].CancelRequested.IsZero() && rest.Tasks[0].Status == taskmodel.Cancelled
	})
	if n := p.cancels(id); n != 1 {
		t.Errorf("the cancellation went out %d times", n)
	}
	s.press("q")
	s.wait(t)
}

// D 5: a damaged file is set aside under a name that tells the time, whatever is
// wrong with it, and a new one is made.
func TestDamagedFile(t *testing.T) {
	p := newPlace(t, taskmodel.GenCore, true, 1)
	for name, damage := range map[string]func(b []byte) []byte{
		"not a database": func([]byte) []byte { return bytes.Repeat([]byte("no database at all\n"), 500) },
		"its head":       func(b []byte) []byte { copy(b, "SQLite garbage 3"); return b },
		"cut short":      func(b []byte) []byte { return b[:len(b)/2+100] },
		"pages":          func(b []byte) []byte { clear(b[4096 : len(b)-100]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, p)
			u.want(0, "start", "p", "reindex_search", "index=idx-1")
			path := filepath.Join(u.state(), journal.FileName)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			// Damage inside is found where it is read; the start after that sets it aside.
			said := ""
			for range 3 {
				said += u.want(0, "ls").errs.String()
			}
			aside := journal.Damaged(u.state())
			if len(aside) != 1 || !regexp.MustCompile(`journal\.db\.damaged-\d{8}T\d{6}Z$`).MatchString(aside[0]) {
				t.Fatalf("set aside: %v; said %q", aside, said)
			}
			if !strings.Contains(said, aside[0]) {
				t.Errorf("the name is not said: %q", said)
			}
			u.want(0, "start", "p", "reindex_search", "index=idx-2")
			if r := u.want(0, "history"); !strings.Contains(r.out.String(), "created") || r.errs.String() != "" {
				t.Errorf("the new one: %s%s", r.out.String(), r.errs.String())
			}
		})
	}
}

// D 1: a file of a newer mcptasks, or of another program, is refused with words
// and left byte for byte as it is.
func TestForeignFile(t *testing.T) {
	p := newPlace(t, taskmodel.GenCore, true, 1)
	for name, c := range map[string]struct{ do, why string }{
		"newer":           {"PRAGMA user_version = 99", "newer mcptasks"},
		"another program": {"PRAGMA application_id = 42", "another program"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, p)
			u.want(0, "ls")
			path := filepath.Join(u.state(), journal.FileName)
			db, err := sql.Open("sqlite", "file:"+path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(c.do + "; PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			u.goesOn(p, ".*"+c.why)
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}
