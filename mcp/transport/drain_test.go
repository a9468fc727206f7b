//go:build unix

package transport

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// A reader that comes to a dead program's pipe after its deadline finds what the
// program wrote, and does not wait for who still holds the other end.
func TestPipeIsReadAfterItsDeadline(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // held
	said := strings.Repeat("e", 40<<10) + "\nlast words\n"
	if _, err := io.WriteString(w, said); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(&pipeReader{f: r})
	if err != nil || string(got) != said {
		t.Errorf("%d bytes of %d, %v", len(got), len(said), err)
	}
	// One that floods it is not read for ever.
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		for b := make([]byte, 1<<10); ; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}()
	if n, err := io.Copy(io.Discard, &pipeReader{f: r}); err != nil || n > drainMost {
		t.Errorf("%d bytes, %v", n, err)
	}
	w.Close()
	<-end
}

// How a program ended is told with its last words, also when our own reader of
// them had no processor until long after.
func TestT4_LastWordsOfAStarvedReader(t *testing.T) {
	exited, first := make(chan (<-chan struct{}), 1), true
	p, c, _ := dialChild(t, "exit3", func(s *Stdio) {
		s.Stderr = func(string) {
			if first {
				first = false
				<-<-exited
				time.Sleep(2 * drainGrace) // what a busy machine does to a reader
			}
		}
	})
	exited <- c.exited
	_, err := p.Call(ctxFor(t), jsonrpc.Call{Method: "x"})
	var exit *ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) != 2 || exit.Stderr[1] != "giving up" {
		t.Errorf("%v", err)
	}
}

func TestExitErrorClaimsNoSilenceThatWasNotHeard(t *testing.T) {
	for e, want := range map[*ExitError]string{
		{Command: "x", Code: 3}:                                  `the program "x" ended with exit code 3 and wrote nothing to stderr`,
		{Command: "x", Code: 3, unread: true}:                    `the program "x" ended with exit code 3`,
		{Command: "x", Code: -1, Signal: "killed"}:               `the program "x" was ended by a signal (killed) and wrote nothing to stderr`,
		{Command: "x", Stderr: []string{"a", "b"}, unread: true}: `the program "x" ended with exit code 0; the last it wrote to stderr: a | b`,
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e.Error(), want)
		}
	}
}
