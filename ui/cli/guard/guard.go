package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcptasks/ui/cli/lean"
	"mcptasks/ui/safe"
)

// name is what the second process is called, by which it knows itself.
const name = "mcptasks-terminal-guard"

// A Guard is the second process, seen from the first. Its methods are safe for
// concurrent use, and do nothing on nil.
type Guard struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	w   *os.File
}

// Is reports whether this process was started as a guard. If so nothing but
// Main may be called.
func Is(args []string) bool { return len(args) == 1 && args[0] == name }

// Start starts a guard of the terminal tty, as it is set now. Where there is
// none to be had it says why; the program can run without.
func Start(tty *os.File) (*Guard, error) {
	state, err := stateOf(tty)
	if err != nil {
		return nil, fmt.Errorf("guarding the terminal: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("guarding the terminal: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guarding the terminal: %w", err)
	}
	defer r.Close()
	cmd := &exec.Cmd{Path: self, Args: []string{name}, Stdin: r, Stdout: tty, Stderr: tty, Env: []string{"GOTRACEBACK=none"}, SysProcAttr: apart()}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("guarding the terminal: %w", err)
	}
	g := &Guard{cmd: cmd, w: w}
	if err = g.say(string(state)); err == nil {
		err = debug.SetCrashOutput(w, debug.CrashOptions{})
	}
	if err != nil {
		g.Release()
		return nil, fmt.Errorf("guarding the terminal: %w", err)
	}
	return g, nil
}

// Group names a process group that must not outlive the program; gone says
// that it has ended.
func (g *Guard) Group(pid int, gone bool) {
	sign := "+"
	if gone {
		sign = "-"
	}
	if g != nil {
		_ = g.say(sign + strconv.Itoa(pid))
	}
}

func (g *Guard) say(line string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.w == nil {
		return os.ErrClosed
	}
	_, err := io.WriteString(g.w, line+"\n")
	return err
}

// Release says that the terminal has been given back and that no server is
// left, and ends the guard.
func (g *Guard) Release() {
	if g == nil || errors.Is(g.say(done), os.ErrClosed) {
		return // released before; a guard that was killed is still to be waited for
	}
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	g.mu.Lock()
	_ = g.w.Close()
	g.w = nil
	g.mu.Unlock()
	late := time.AfterFunc(5*time.Second, func() { _ = g.cmd.Process.Kill() })
	_ = g.cmd.Wait()
	late.Stop()
}

const (
	done      = "done"
	maxReport = 64 << 10 // bytes of last words that are kept
	grace     = 2 * time.Second
)

// Main is the guard: it waits at stdin for the end of the program whose
// terminal is stdout. It gives the exit code of the process.
func Main() int {
	unmoved()
	shrink()
	// The shell may look at how the terminal is set as soon as the program has
	// ended, and take that for what is usual: it is set right at the first of the
	// program's last words, before the end, and again after it.
	w := watch(os.Stdin, func(state json.RawMessage) { setState(os.Stdout, state) })
	if w.done {
		return 0
	}
	if w.state != nil {
		setState(os.Stdout, w.state)
	}
	_, _ = io.WriteString(os.Stdout, giveBack)
	if said := safe.Text(w.words); strings.TrimSpace(said) != "" {
		fmt.Fprintln(os.Stdout, strings.TrimRight(said, "\n"))
	}
	fmt.Fprintln(os.Stdout, "mcptasks: it ended without giving the terminal back; this was done for it. What it had started is remembered; run it again to see.")
	endGroups(w.groups, grace)
	return 0
}

// shrink makes the guard small: it has nothing to do for as long as the program
// lives, and what starting has needed (the packages of the whole program are made
// ready in it too) it does not need again.
func shrink() {
	debug.SetGCPercent(-1) // nor a collection every two minutes
	debug.SetMemoryLimit(32 << 20)
	debug.FreeOSMemory()
	lean.DropText()
}

// giveBack undoes what the screens may have done to a terminal. Each part is
// without effect where there is nothing to undo.
const giveBack = "\x1b[?2026l" + // show what is drawn
	"\x1b[>4m\x1b[<1u" + // keys as usual
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l" + // no mouse
	"\x1b[?1004l\x1b[?2004l\x1b[?2027l" + // no focus, no marks around pastes, widths as usual
	"\x1b[0m\x1b[0 q\x1b]2;\x07" + // plain text, the usual cursor, no title
	"\x1b[?1049l\x1b[?25h" + // the screen as it was, and its cursor
	"\r"

// A watched is what a guard has heard of the program.
type watched struct {
	state  json.RawMessage // of the terminal
	groups map[int]bool
	done   bool
	words  string
}

// watch reads until the program has ended. dying is called with the terminal's
// state when the program begins to say why it must end.
func watch(r io.Reader, dying func(state json.RawMessage)) watched {
	w := watched{groups: map[int]bool{}}
	var words strings.Builder
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		text := strings.TrimSuffix(line, "\n")
		pid, bad := strconv.Atoi(strings.TrimLeft(text, "+-"))
		switch {
		case words.Len() > 0:
			if words.Len() < maxReport {
				words.WriteString(line)
			}
		case text == "":
		case text == done && err == nil:
			w.done = true
		case w.state == nil && text[0] == '{':
			w.state = json.RawMessage(text)
		case bad == nil && pid > 1 && text[0] == '+':
			w.groups[pid] = true
		case bad == nil && pid > 1 && text[0] == '-':
			delete(w.groups, pid)
		default:
			if w.state != nil {
				dying(w.state)
			}
			words.WriteString(line)
		}
		if err != nil {
			w.words = words.String()
			return w
		}
	}
}
