package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mcptasks/mcp/config"
	"mcptasks/mcp/tap"
)

// TapOptions are the flags of `mcptasks tap` and the process that it runs in.
type TapOptions struct {
	Command []string
	URL     string
	Listen  string
	Public  bool
	Passive bool
	Answer  bool
	Name    string
	State   string // the state folder
	Log     *slog.Logger
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	// Config reads our own settings: what may be kept and how much. It is called
	// beside the traffic.
	Config func() config.Config
}

// Tap passes an agent's session through until it is over and gives the exit code
// that its server would have given. A server that was ended by a signal ends
// this process likewise, where the system can.
func Tap(ctx context.Context, o TapOptions) (int, error) {
	e := config.ServerEntry{URL: o.URL}
	if o.URL == "" {
		e = config.ServerEntry{Command: o.Command[0], Args: o.Command[1:]}
	}
	target := config.TargetOf(e)
	t := tap.Options{
		Command: o.Command, Env: os.Environ(), In: o.In, Out: o.Out, Err: o.Err, CloseOut: true, Signals: true,
		URL: o.URL, Listen: o.Listen, Public: o.Public, Passive: o.Passive, Answer: o.Answer,
		Name: o.Name, Target: target, Log: o.Log,
		Memory: func(context.Context) (tap.Memory, error) {
			c := o.Config()
			m, notes, _ := OpenMemory(o.State, c, "mcptasks tap", o.Log)
			if m == nil {
				return tap.Memory{}, errors.New(strings.Join(notes, "; "))
			}
			keep := func(string) bool { return true }
			if i := slices.IndexFunc(c.Servers, func(s config.Server) bool { return s.Target() == target }); i >= 0 {
				keep = c.Servers[i].Keep
			}
			return tap.Memory{Store: m.Journal, Keep: keep, Close: m.Journal.Close}, nil
		},
	}
	if t.Name == "" {
		t.Name = tapName(o.Command, o.URL)
	}
	if o.URL != "" {
		return 0, tap.HTTP(ctx, t)
	}
	// Signals are the server's on stdio: it says what comes of them.
	exit, err := tap.Stdio(context.WithoutCancel(ctx), t)
	if err == nil {
		exit.Die()
	}
	return exit.Code, err
}

// launchers are programs whose first word that is no flag says what they start.
var launchers = []string{"npx", "bunx", "uvx", "pnpm", "yarn", "bun", "uv", "deno", "node", "python", "python3", "docker", "podman", "sh", "bash", "env", "cmd", "dlx", "run", "exec", "x"}

// tapName makes a name for a server that has none: of its package, its program
// or its host.
func tapName(command []string, raw string) string {
	if raw != "" {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" {
			return "server"
		}
		return u.Host
	}
	name := ""
	for _, w := range command {
		if strings.HasPrefix(w, "-") {
			continue
		}
		base := strings.TrimSuffix(path.Base(filepath.ToSlash(w)), ".exe")
		if name = base; !slices.Contains(launchers, base) {
			break
		}
	}
	name, _, _ = strings.Cut(name, "@")
	for _, ext := range []string{".js", ".mjs", ".cjs", ".ts", ".py", ".sh"} {
		name = strings.TrimSuffix(name, ext)
	}
	if name == "" {
		name = "server"
	}
	return strings.ReplaceAll(name, "/", ":")
}

// TapInstallOptions say which entry of which file of a client is to be changed.
type TapInstallOptions struct {
	File, Server string
	Uninstall    bool
	Write        bool
}

// TapInstall prints the entry of a client's file as it will be, and writes the
// file when that is asked for, keeping a copy.
func TapInstall(out io.Writer, o TapInstallOptions) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding our own program: %w", err)
	}
	c, err := config.TapEntry(o.File, o.Server, self, !o.Uninstall)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, c.Entry); err != nil {
		return err
	}
	if !o.Write {
		return nil
	}
	copied, err := c.Save()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Written to %s; the file as it was is %s.\n", o.File, copied)
	return err
}
