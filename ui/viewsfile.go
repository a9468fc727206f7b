package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxViews bounds the file of saved views.
const maxViews = 1 << 20

// A viewsFile is the file of saved views. Other processes write it as well: what
// one changes is put into what is there by then, name by name, by one at a time.
type viewsFile struct {
	path string

	mu   sync.Mutex
	want map[string]string // named or, with "", dropped, and not written yet

	writing sync.Mutex
}

// set notes what a name is to stand for, "" for none; write brings it to the
// disk.
func (f *viewsFile) set(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.want == nil {
		f.want = map[string]string{}
	}
	f.want[name] = text
}

// write writes what was set and is not written yet. What cannot be written is
// tried again with the next one.
func (f *viewsFile) write() (err error) {
	if f.path == "" {
		return errors.New("there is no state folder; it is forgotten with this run")
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	want := f.want
	f.want = nil
	f.mu.Unlock()
	if len(want) == 0 {
		return nil // another call has written it
	}
	defer func() {
		if err == nil {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for name, text := range f.want {
			want[name] = text
		}
		f.want = want
	}()
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	unlock, err := lockFile(f.path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	views := readViews(f.path)
	for name, text := range want {
		if views[name] = text; text == "" {
			delete(views, name)
		}
	}
	return writeViews(f.path, views)
}

const (
	lockTries = 100
	lockPause = 20 * time.Millisecond
	lockLife  = 10 * time.Second // of one whose process was killed over it
)

// lockFile makes a file that only one process can have made, and waits as long
// as another one has it.
func lockFile(path string) (unlock func(), err error) {
	for range lockTries {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			return func() { _ = os.Remove(path) }, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if s, serr := os.Stat(path); serr == nil && time.Since(s.ModTime()) > lockLife {
			_ = os.Remove(path)
			continue
		}
		time.Sleep(lockPause)
	}
	return nil, fmt.Errorf("another mcptasks is writing the views: %w", err)
}

// readViews reads the file. One that cannot be read is as one that is not there.
func readViews(path string) map[string]string {
	out := map[string]string{}
	if s, err := os.Stat(path); path == "" || err != nil || s.Size() > maxViews {
		return out
	}
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &out) != nil || out == nil {
		return map[string]string{}
	}
	return out
}

// writeViews replaces the file as a whole, so that a process that reads at the
// same time finds the old one or the new one.
func writeViews(path string, views map[string]string) error {
	b, err := json.MarshalIndent(views, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".views-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
