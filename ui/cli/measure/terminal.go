//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// A screen is a program on a pseudo-terminal of 120 columns and 36 rows, with an
// emulator behind it that answers what programs ask of terminals.
type screen struct {
	cmd   *exec.Cmd
	tty   *os.File
	from  time.Time
	bytes atomic.Int64

	mu   sync.Mutex
	em   *vt.Emulator
	news chan struct{}
	gone chan struct{}
}

func open(env []string, name string, args ...string) (*screen, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor"), env...)
	s := &screen{cmd: cmd, em: vt.NewEmulator(120, 36), news: make(chan struct{}, 1), gone: make(chan struct{}), from: time.Now()}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 36, Cols: 120})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.tty = tty
	go func() { _, _ = io.Copy(tty, s.em) }() // the terminal's answers
	go func() {
		defer close(s.gone)
		b := make([]byte, 1<<16)
		for {
			n, err := tty.Read(b)
			if n > 0 {
				s.bytes.Add(int64(n))
				s.mu.Lock()
				_, _ = s.em.Write(b[:n])
				s.mu.Unlock()
				select {
				case s.news <- struct{}{}:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return s, nil
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.em.String()
}

var errLate = errors.New("not seen")

// until waits for the screen to hold what ok looks for and tells how long that
// took from the given moment.
func (s *screen) until(from time.Time, limit time.Duration, ok func(text string) bool) (time.Duration, error) {
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		if ok(s.text()) {
			return time.Since(from), nil
		}
		select {
		case <-s.news:
		case <-s.gone:
			if ok(s.text()) {
				return time.Since(from), nil
			}
			return 0, errors.New("the program ended; its last screen:\n" + s.text())
		case <-end.C:
			return 0, errLate
		}
	}
}

func has(words ...string) func(string) bool {
	return func(text string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	}
}

func (s *screen) press(keys string) { _, _ = s.tty.WriteString(keys) }

// close ends the program, at last by force, and its children.
func (s *screen) close() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	go func() {
		<-ctx.Done()
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // pty.Start made it a session of its own
	}()
	_ = s.cmd.Wait()
	_ = s.tty.Close()
	<-s.gone
}

// used is the processor time of a program that was closed, and of those that it
// started and waited for.
func (s *screen) used() time.Duration {
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
}

// A load is what a program and its children hold and have used.
type load struct {
	rss, anon int64         // bytes
	cpu       time.Duration // user and system
}

func (s *screen) load() (l load) {
	for _, pid := range family(s.cmd.Process.Pid) {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		b, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 2 {
				continue
			}
			n, _ := strconv.ParseInt(f[1], 10, 64)
			switch f[0] {
			case "Rss:":
				l.rss += n << 10
			case "Anonymous:":
				l.anon += n << 10
			}
		}
		b, _ = os.ReadFile(filepath.Join(dir, "stat"))
		if i := bytes.LastIndexByte(b, ')'); i >= 0 {
			f := strings.Fields(string(b[i+1:]))
			u, _ := strconv.ParseInt(f[11], 10, 64)
			k, _ := strconv.ParseInt(f[12], 10, 64)
			l.cpu += time.Duration(u+k) * 10 * time.Millisecond // USER_HZ is 100
		}
	}
	return l
}

// family is a process and all below it.
func family(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, f := range files {
			b, _ := os.ReadFile(f)
			for _, w := range strings.Fields(string(b)) {
				if n, err := strconv.Atoi(w); err == nil {
					all = append(all, n)
				}
			}
		}
	}
	return all
}

func post(url string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}
