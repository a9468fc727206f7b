package screentest

import (
	"context"
	"fmt"
	"image/color"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// frame is a little more than the program needs to draw what has changed.
const frame = 40 * time.Millisecond

// A TTY is what the program under test is started with.
type TTY struct {
	Input   io.Reader
	Output  io.Writer
	Env     []string
	Program []tea.ProgramOption
	// Started takes the program's Send, for window sizes.
	Started func(send func(tea.Msg))
}

// A Terminal is an emulator with a program running on it. It must be used from
// within a synctest bubble. Its methods fail the test on what they cannot do.
type Terminal struct {
	t    testing.TB
	mu   sync.Mutex // guards em and what its callbacks write
	em   *vt.Emulator
	in   *input
	send func(tea.Msg)
	done chan error
	stop context.CancelFunc
	err  error
	over bool

	bells int
	title string
	oscs  []string
	bytes int64
	raw   []byte
	keep  bool
	w, h  int
}

// An input is what is typed: an unbounded pipe, since a person's fingers wait
// for no program.
type input struct {
	ch   chan []byte
	rest []byte
}

func (i *input) Read(p []byte) (int, error) {
	if len(i.rest) == 0 {
		b, ok := <-i.ch
		if !ok {
			return 0, io.EOF
		}
		i.rest = b
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

// An Option changes how a terminal is made.
type Option func(*Terminal, *TTY)

// Profile sets the colours that the terminal can show.
func Profile(p colorprofile.Profile) Option {
	return func(_ *Terminal, tty *TTY) { tty.Program = append(tty.Program, tea.WithColorProfile(p)) }
}

// Keep keeps every byte that the program writes, for Bytes.
func Keep() Option { return func(t *Terminal, _ *TTY) { t.keep = true } }

// Start runs a program on a terminal of the given size. The program is ended
// with the test.
func Start(t testing.TB, w, h int, run func(ctx context.Context, tty TTY) error, opts ...Option) *Terminal {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	term := &Terminal{t: t, em: vt.NewEmulator(w, h), in: &input{ch: make(chan []byte, 4096)}, done: make(chan error, 1), stop: cancel, w: w, h: h}
	term.em.SetCallbacks(vt.Callbacks{
		Bell:  func() { term.bells++ },
		Title: func(s string) { term.title = s },
	})
	for _, n := range []int{8, 9, 52, 99, 777, 7501} {
		term.em.RegisterOscHandler(n, func(data []byte) bool {
			term.oscs = append(term.oscs, string(data))
			return true
		})
	}
	// The program writes bare line feeds when its input is no tty.
	_, _ = term.em.WriteString("\x1b[20h")
	// Answers of the emulator to the program's queries are not wanted.
	go func() {
		_, _ = io.Copy(io.Discard, term.em)
	}()
	tty := TTY{
		Input: term.in, Output: writer{term},
		Env: []string{"TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "SSH_TTY=none"},
		Program: []tea.ProgramOption{
			tea.WithoutSignalHandler(), tea.WithWindowSize(w, h), tea.WithColorProfile(colorprofile.TrueColor),
		},
		Started: func(send func(tea.Msg)) { term.send = send },
	}
	for _, o := range opts {
		o(term, &tty)
	}
	go func() { term.done <- run(ctx, tty) }()
	t.Cleanup(func() { term.Close() })
	term.Settle()
	return term
}

// Close ends the program and waits for it.
func (t *Terminal) Close() {
	if t.over {
		return
	}
	t.stop()
	t.wait()
}

func (t *Terminal) wait() {
	t.err = <-t.done
	t.over = true
	close(t.in.ch)
	if c, ok := t.em.InputPipe().(io.Closer); ok {
		_ = c.Close()
	}
	synctest.Wait()
}

// Wait waits until the program has ended by itself and gives its error.
func (t *Terminal) Wait() error {
	t.t.Helper()
	synctest.Wait()
	if !t.over {
		select {
		case err := <-t.done:
			t.done <- err
			t.wait()
		case <-time.After(10 * time.Second):
			t.t.Fatalf("the program did not end:\n%s", t.Screen())
		}
	}
	t.stop()
	return t.err
}

type writer struct{ t *Terminal }

func (w writer) Write(p []byte) (int, error) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.bytes += int64(len(p))
	if w.t.keep {
		w.t.raw = append(w.t.raw, p...)
	}
	return w.t.em.Write(p)
}

// Settle lets the program finish what it is doing and draw it.
func (t *Terminal) Settle() *Terminal {
	synctest.Wait()
	time.Sleep(frame)
	synctest.Wait()
	return t
}

// Pass lets time pass.
func (t *Terminal) Pass(d time.Duration) *Terminal {
	time.Sleep(d)
	return t.Settle()
}

// Press presses keys by the names that the keymap has for them: "j", "enter",
// "ctrl+s", "shift+tab".
func (t *Terminal) Press(keys ...string) *Terminal {
	t.t.Helper()
	for _, k := range keys {
		b, err := encode(k)
		if err != nil {
			t.t.Fatal(err)
		}
		t.in.ch <- b
		t.Settle()
		if k == "esc" {
			t.Pass(100 * time.Millisecond) // a lone escape is told from a sequence by time
		}
	}
	return t
}

// Type types text, one key after another.
func (t *Terminal) Type(text string) *Terminal {
	for _, r := range text {
		t.in.ch <- []byte(string(r))
	}
	return t.Settle()
}

// Paste pastes text in one piece.
func (t *Terminal) Paste(text string) *Terminal {
	t.in.ch <- []byte("\x1b[200~" + text + "\x1b[201~")
	return t.Settle()
}

// Send hands the program a message, as the terminal would: a focus change, a
// mouse click, a background colour.
func (t *Terminal) Send(m tea.Msg) *Terminal {
	t.send(m)
	return t.Settle()
}

// Resize changes the size of the window.
func (t *Terminal) Resize(w, h int) *Terminal {
	t.mu.Lock()
	t.em.Resize(w, h)
	t.w, t.h = w, h
	t.mu.Unlock()
	t.send(tea.WindowSizeMsg{Width: w, Height: h})
	return t.Settle()
}

// Screen is the screen as text, its lines without spaces at their ends.
func (t *Terminal) Screen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := make([]string, t.h)
	for y := range t.h {
		var b strings.Builder
		for x := 0; x < t.w; {
			c := t.em.CellAt(x, y)
			if c == nil || c.Width == 0 {
				b.WriteByte(' ')
				x++
				continue
			}
			b.WriteString(c.Content)
			x += c.Width
		}
		lines[y] = strings.TrimRight(b.String(), " ")
	}
	return strings.Join(lines, "\n")
}

// Line is one line of the screen; negative ones count from below.
func (t *Terminal) Line(n int) string {
	lines := strings.Split(t.Screen(), "\n")
	if n < 0 {
		n += len(lines)
	}
	return lines[n]
}

// Row is the first line that holds text, or "".
func (t *Terminal) Row(text string) string {
	for l := range strings.SplitSeq(t.Screen(), "\n") {
		if strings.Contains(l, text) {
			return l
		}
	}
	return ""
}

// Has reports whether the text stands on the screen.
func (t *Terminal) Has(text string) bool { return strings.Contains(t.Screen(), text) }

// See fails the test when one of the texts is not on the screen.
func (t *Terminal) See(texts ...string) *Terminal {
	t.t.Helper()
	for _, s := range texts {
		if !t.Has(s) {
			t.t.Errorf("%q is not on the screen:\n%s", s, t.Screen())
		}
	}
	return t
}

// Miss fails the test when one of the texts is on the screen.
func (t *Terminal) Miss(texts ...string) *Terminal {
	t.t.Helper()
	for _, s := range texts {
		if t.Has(s) {
			t.t.Errorf("%q is on the screen:\n%s", s, t.Screen())
		}
	}
	return t
}

// WaitFor lets time pass until the text is on the screen, at most a minute.
func (t *Terminal) WaitFor(text string) *Terminal {
	t.t.Helper()
	return t.WaitUpTo(time.Minute, text)
}

// WaitUpTo is WaitFor with a bound of the caller's.
func (t *Terminal) WaitUpTo(d time.Duration, text string) *Terminal {
	t.t.Helper()
	for end := time.Now().Add(d); !t.Has(text); {
		if time.Now().After(end) {
			t.t.Fatalf("%q did not come:\n%s", text, t.Screen())
		}
		t.Pass(frame)
	}
	return t
}

// Bells is how often the bell has rung.
func (t *Terminal) Bells() int { t.mu.Lock(); defer t.mu.Unlock(); return t.bells }

// Title is the window's title.
func (t *Terminal) Title() string { t.mu.Lock(); defer t.mu.Unlock(); return t.title }

// OSC are the operating system commands that were sent, of the kinds 8, 9, 52,
// 99, 777 and 7501.
func (t *Terminal) OSC() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.oscs...)
}

// Written is how many bytes the program has written.
func (t *Terminal) Written() int64 { t.mu.Lock(); defer t.mu.Unlock(); return t.bytes }

// Bytes are the bytes written since Keep.
func (t *Terminal) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.raw...)
}

// A Cell is one cell of the screen.
type Cell struct {
	Text   string
	Width  int
	Fg, Bg color.Color // nil: the default
	Bold, Faint, Italic,
	Underline, Reverse bool
}

// Cells are the cells of the screen, row by row. A wide cell is followed by
// one of width 0.
func (t *Terminal) Cells() [][]Cell {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([][]Cell, t.h)
	for y := range out {
		out[y] = make([]Cell, t.w)
		for x := range out[y] {
			out[y][x] = cell(t.em.CellAt(x, y))
		}
	}
	return out
}

func cell(c *uv.Cell) Cell {
	if c == nil {
		return Cell{Text: " ", Width: 1}
	}
	return Cell{
		Text: c.Content, Width: c.Width, Fg: c.Style.Fg, Bg: c.Style.Bg,
		Bold: c.Style.Attrs&uv.AttrBold != 0, Faint: c.Style.Attrs&uv.AttrFaint != 0, Italic: c.Style.Attrs&uv.AttrItalic != 0,
		Underline: c.Style.Underline != ansi.UnderlineNone, Reverse: c.Style.Attrs&uv.AttrReverse != 0,
	}
}

// encode gives the bytes that a terminal sends for a key.
func encode(k string) ([]byte, error) {
	plain := map[string]string{
		"enter": "\r", "tab": "\t", "esc": "\x1b", "space": " ", "backspace": "\x7f", "delete": "\x1b[3~", "shift+tab": "\x1b[Z",
		"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
		"pgup": "\x1b[5~", "pgdown": "\x1b[6~", "f1": "\x1bOP", "f5": "\x1b[15~",
	}
	if s, ok := plain[k]; ok {
		return []byte(s), nil
	}
	if c, ok := strings.CutPrefix(k, "ctrl+"); ok && len(c) == 1 && c[0] >= 'a' && c[0] <= 'z' {
		return []byte{c[0] - 'a' + 1}, nil
	}
	if c, ok := strings.CutPrefix(k, "alt+"); ok {
		b, err := encode(c)
		return append([]byte{0x1b}, b...), err
	}
	if len([]rune(k)) == 1 {
		return []byte(k), nil
	}
	return nil, fmt.Errorf("screentest has no bytes for the key %q", k)
}
