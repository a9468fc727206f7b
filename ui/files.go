package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/mattn/go-shellwords"

	"mcptasks/ui/act"
	"mcptasks/ui/dialog"
	"mcptasks/ui/kit"
	"mcptasks/ui/resultview/blocks"
	"mcptasks/ui/safe"
)

// saveLine asks for the name of a file; what is proposed is made safe first,
// since it may come from a server.
func (m *model) saveLine(a act.Save) act.Line {
	name := strings.Trim(blocks.SafeName(a.Name), ". ")
	if name == "" {
		name = "saved"
	}
	return act.Line{Title: "Save " + a.What + " as", Text: filepath.Join(m.opt.SaveDir, name), Done: func(path string) act.Action {
		if path = strings.TrimSpace(path); path == "" {
			return nil
		}
		return saveTo{path: path, data: a.Data, what: a.What}
	}}
}

// overMsg says that a file is there already.
type overMsg saveTo

func (m *model) save(a saveTo) tea.Cmd {
	return func() tea.Msg {
		flag := os.O_WRONLY | os.O_CREATE | os.O_EXCL
		if a.over {
			flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		}
		f, err := os.OpenFile(expand(a.path), flag, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return overMsg(a)
		}
		if err == nil {
			_, err = f.Write(a.data)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return doneMsg{err: fmt.Errorf("saving %s: %w", a.what, err)}
		}
		return doneMsg{text: fmt.Sprintf("Saved %s to %s, %s.", a.what, a.path, kit.Bytes(int64(len(a.data))))}
	}
}

func (m *model) askOver(a saveTo) {
	a.over = true
	// No key asked for this box: whoever types on must not agree to it.
	m.dialogs.PushAlone(dialog.Confirm{Ask: act.Ask{Title: a.path + " is there already.", Yes: a, Label: "write over it", NoLabel: "leave it"}}, m.now)
}

func expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// maxRead bounds a file that fills a field.
const maxRead = 4 << 20

func readFile(a act.Read) tea.Cmd {
	return func() tea.Msg {
		f, err := os.Open(expand(strings.TrimSpace(a.Path)))
		if err != nil {
			return a.Done("", err)
		}
		defer func() { _ = f.Close() }()
		b, err := io.ReadAll(io.LimitReader(f, maxRead+1))
		if err == nil && len(b) > maxRead {
			err = fmt.Errorf("%s is larger than %s", a.Path, kit.Bytes(maxRead))
		}
		if err != nil {
			return a.Done("", err)
		}
		return a.Done(string(b), nil)
	}
}

// A patient command lasts at least ten milliseconds: the terminal library can
// freeze on one that returns at once.
type patient struct{ *exec.Cmd }

func (p patient) SetStdin(r io.Reader)  { p.Stdin = r }
func (p patient) SetStdout(w io.Writer) { p.Stdout = w }
func (p patient) SetStderr(w io.Writer) { p.Stderr = w }
func (p patient) Run() error {
	begun := time.Now()
	err := p.Cmd.Run()
	time.Sleep(10*time.Millisecond - time.Since(begun))
	return err
}

// program splits $EDITOR or $PAGER into words as a shell would, without one.
func program(names []string, fallback ...string) ([]string, error) {
	for _, n := range names {
		if v := strings.TrimSpace(os.Getenv(n)); v != "" {
			words, err := shellwords.Parse(v)
			if err != nil || len(words) == 0 {
				return nil, fmt.Errorf("$%s cannot be read as a command: %q", n, v)
			}
			return words, nil
		}
	}
	for _, f := range fallback {
		if _, err := exec.LookPath(f); err == nil {
			return []string{f}, nil
		}
	}
	return nil, fmt.Errorf("$%s is not set", names[0])
}

// temp writes text into a file that only the person can read.
func temp(name, text string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "mcptasks-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, blocks.SafeName(name))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return path, func() { _ = os.RemoveAll(dir) }, nil
}

func (m *model) edit(a act.Edit) tea.Cmd {
	words, err := program([]string{"VISUAL", "EDITOR"}, "nano", "vi", "notepad.exe")
	if err != nil {
		m.say("No editor: "+err.Error()+".", true)
		return nil
	}
	path, remove, err := temp(a.Name, a.Text)
	if err != nil {
		m.say("No editor: "+err.Error()+".", true)
		return nil
	}
	c := exec.CommandContext(m.ctx, words[0], append(words[1:], path)...)
	return tea.Exec(patient{c}, func(err error) tea.Msg {
		defer remove()
		if a.Done == nil {
			return doneMsg{err: wrap("the editor", err)}
		}
		if err != nil {
			return a.Done("", wrap("the editor", err))
		}
		b, err := os.ReadFile(path)
		return a.Done(string(b), err)
	})
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (m *model) page(a act.Page) tea.Cmd {
	words, err := program([]string{"PAGER"}, "less", "more")
	if err != nil {
		m.say("No pager: "+err.Error()+".", true)
		return nil
	}
	// A pager shows escape sequences or not, as it is set; a server's go no
	// further than here.
	path, remove, err := temp(a.Name, safe.Text(a.Text))
	if err != nil {
		m.say("No pager: "+err.Error()+".", true)
		return nil
	}
	c := exec.CommandContext(m.ctx, words[0], append(words[1:], path)...)
	return tea.Exec(patient{c}, func(err error) tea.Msg {
		remove()
		return doneMsg{err: wrap("the pager", err)}
	})
}

// browse hands a judged URL to the system's opener, as one argument and
// through no shell.
func browse(ctx context.Context, raw string) tea.Cmd {
	return func() tea.Msg {
		v := safe.JudgeURL(raw)
		if !v.OK {
			return doneMsg{err: fmt.Errorf("not opened: %s", v.Why)}
		}
		return doneMsg{err: openFile(ctx, v.Open), text: "Opened " + v.Host + " in the browser."}
	}
}

// openFile opens a URL or a file with the system's program for it.
func openFile(ctx context.Context, target string) error {
	var words []string
	switch runtime.GOOS {
	case "darwin":
		words = []string{"open", target}
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler", target}
	default:
		// Without a screen the opener tries the browsers of the terminal, which is
		// taken.
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" && os.Getenv("BROWSER") == "" {
			return errors.New("nothing here can open it (there is no display); copy the address instead")
		}
		words = []string{"xdg-open", target}
	}
	return opens(ctx, words, time.Second)
}

// opens starts a program that opens something, and looks for a moment whether it
// ends because it cannot: one that still runs then has found what it opens with.
func opens(ctx context.Context, words []string, moment time.Duration) error {
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Stderr = &stderr
	c.WaitDelay = moment // what it has started may keep its stderr
	if err := c.Start(); err != nil {
		return fmt.Errorf("nothing here can open it (%w); copy the address instead", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			first, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
			return fmt.Errorf("nothing here can open it (%s: %w %s); copy the address instead", words[0], err, safe.Line(first))
		}
	case <-time.After(moment):
	}
	return nil
}

// openData writes a block of a result into a folder of its own, where it stays
// for the program that opens it, and opens it.
func openData(ctx context.Context, a act.OpenFile) tea.Cmd {
	return func() tea.Msg {
		path, _, err := temp(a.Name, string(a.Data))
		if err == nil {
			err = openFile(ctx, path)
		}
		if err != nil {
			return doneMsg{err: wrap("opening the block", err)}
		}
		return doneMsg{text: "Opened " + path}
	}
}

// runHook runs the notification's command; it may take ten seconds.
func runHook(ctx context.Context, words []string, payload []byte) tea.Cmd {
	if len(words) == 0 {
		return nil
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		c := exec.CommandContext(ctx, words[0], words[1:]...)
		c.Stdin = bytes.NewReader(append(payload, '\n'))
		c.WaitDelay = time.Second
		if out, err := c.CombinedOutput(); err != nil {
			first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
			return doneMsg{err: fmt.Errorf("the notify hook failed: %w %s", err, safe.Line(first))}
		}
		return nil
	}
}
