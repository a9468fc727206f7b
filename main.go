// Command mcptasks watches long-running MCP tasks: a terminal UI and commands
// for scripts over the same monitor. This file only joins the rooms of the
// house: flags and files in, a running monitor out.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"mcptasks/keymap"
	"mcptasks/mcp/config"
	"mcptasks/mcp/monitor"
	"mcptasks/mcp/setup"
	"mcptasks/mcp/transport/signin"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/taskmodel/form"
	"mcptasks/ui"
	"mcptasks/ui/cli"
	"mcptasks/ui/cli/guard"
	"mcptasks/ui/cli/lean"
	"mcptasks/ui/list"
	"mcptasks/ui/notify"
)

func main() {
	if guard.Is(os.Args) {
		os.Exit(guard.Main())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A reader of stdout that goes away would end this process at once and leave
	// its children. Taken notice of, it is an error of the next write.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	env := cli.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTTY: term.IsTerminal(in), StdoutTTY: term.IsTerminal(out), Getenv: os.Getenv, Now: time.Now, ReadLine: cli.NewLines(os.Stdin).Read,
	}
	if env.StdinTTY {
		env.ReadPassword = readPassword
	}
	if w, _, err := term.GetSize(out); err == nil {
		env.Width = w
	}
	code := cli.Run(ctx, env, deps(env))
	stop()
	os.Exit(code)
}

func deps(env cli.Env) cli.Deps {
	w := &wiring{env: env}
	return cli.Deps{
		Version: version(), Open: w.open, UI: w.screens, Demo: w.demo, DemoServer: w.demoServer,
		Configured: w.configured, Login: w.login, Logout: w.logout, Tap: w.tap, TapInstall: tapInstall,
		Keys: func() string { m := keymap.Default(); return m.Markdown() },
	}
}

// wiring is what one invocation has read: it is filled by open and used by
// screens.
type wiring struct {
	env cli.Env
	cfg config.Config
	// guarded gives the guard of the terminal, once it is there; nil without
	// screens. It is started while the journal is opened, since each of them takes
	// a while and both come before the first frame.
	guarded func() (*guard.Guard, error)
}

// startGuard starts the guard of the terminal as it is set now.
func (w *wiring) startGuard() {
	type started struct {
		g   *guard.Guard
		err error
	}
	c := make(chan started, 1)
	go func() {
		g, err := guard.Start(os.Stdout)
		c <- started{g, err}
	}()
	w.guarded = sync.OnceValues(func() (*guard.Guard, error) { s := <-c; return s.g, s.err })
}

// group tells the guard of a process group that a server's program is, if there
// is a guard. It is called when everything is open.
func (w *wiring) group(pid int, gone bool) {
	if w.guarded == nil {
		return
	}
	if g, err := w.guarded(); err == nil {
		g.Group(pid, gone)
	}
}

// load reads the configuration that the flags ask for.
func (w *wiring) load(g cli.Global) error {
	s := config.System()
	s.Files, s.Servers, s.Sets = g.Config, g.Servers, g.Sets
	switch {
	case g.Target != "":
		e, err := config.ParseTarget(g.Target)
		if err != nil {
			return &cli.Error{Kind: "usage", Message: err.Error()}
		}
		s.Extra = []config.Server{{Name: "server", Source: "command line", Client: "flag", Entry: e}}
	case len(g.Command) > 0:
		s.Extra = []config.Server{{Name: filepath.Base(g.Command[0]), Source: "command line", Client: "flag",
			Entry: config.ServerEntry{Command: g.Command[0], Args: g.Command[1:]}}}
	}
	var err error
	if w.cfg, err = config.Load(s); err != nil {
		return &cli.Error{Kind: "config", Message: err.Error()}
	}
	return nil
}

// open makes the monitor on the configured servers.
func (w *wiring) open(ctx context.Context, g cli.Global) (*cli.Opened, error) {
	if err := w.load(g); err != nil {
		return nil, err
	}
	log, closeLog, err := openLog(g.Log)
	if err != nil {
		return nil, &cli.Error{Kind: "usage", Message: err.Error()}
	}
	servers := w.cfg.Servers
	if g.Only != nil {
		servers = slices.DeleteFunc(slices.Clone(servers), func(s config.Server) bool { return !slices.Contains(g.Only, s.Name) })
	}
	if servers, err = w.fillInputs(ctx, servers, g, log); err != nil {
		return nil, err
	}
	for i, s := range w.cfg.Servers { // what was given is among what a bundle leaves out
		if j := slices.IndexFunc(servers, func(f config.Server) bool { return f.Name == s.Name }); j >= 0 {
			w.cfg.Servers[i] = servers[j]
		}
	}
	o := &cli.Opened{Log: log, Schema: schemaLimits(w.cfg.File.Limits), Names: names(w.cfg.Servers), StdioOf: func(name string) bool {
		i := slices.IndexFunc(servers, func(s config.Server) bool { return s.Name == name })
		return i >= 0 && servers[i].Stdio()
	}, Sampling: setup.Sampling(servers)}
	var notes []string
	for _, s := range servers {
		if words := setup.Warning(s); words != "" && s.Disabled == "" {
			notes = append(notes, s.Name+": "+words)
		}
	}
	if g.Glance {
		debug.SetGCPercent(400) // it is over before there is much to collect
	}
	if !g.Headless && w.env.StdoutTTY {
		w.startGuard() // nothing is asked at the terminal any more
	}
	if !g.Headless {
		go lean.GiveBack(ctx)
	}
	memory, said, forgetful := setup.OpenMemory(stateDir(g.State), w.cfg, g.Purpose, log)
	o.Notes = append(notes, said...)
	cwd, _ := os.Getwd()
	f := w.cfg.File
	specs := setup.Specs(servers, setup.Options{Log: log, MaxMessage: int64(f.Limits.Message), Cwd: cwd, Auth: setup.Authorizers(stateDir(g.State), log),
		Group: w.group})
	for i, s := range specs {
		specs[i].Autostart = s.Autostart || slices.Contains(g.Only, s.Name) // named, so it is meant
	}
	opts := monitor.Options{
		Servers:  specs,
		Readonly: g.Readonly, Log: log, Version: version().Module,
		FetchResults: g.Fetch || !g.Headless, NoAsk: g.Headless && !g.Fetch, Glance: g.Glance,
		MaxTasksPerServer: f.Limits.TasksPerServer, MaxResultBytes: int64(f.Limits.Result), MaxDepth: f.Limits.Depth, PollMin: time.Duration(f.Poll.Min),
		WireEntries: f.Limits.Log, MaxQuestions: f.Limits.Questions, Schema: schemaLimits(f.Limits),
	}
	opts.Forgetful = forgetful
	if memory != nil {
		opts.Journal, o.Memory, o.Trouble = memory.Store(), memory, memory.Trouble
		opts.Taps = func(label string) bool { return g.Only == nil || slices.Contains(g.Only, label) }
	}
	m := monitor.New(opts)
	o.Monitor, o.Run = m, m.Run
	if memory != nil && !g.Headless {
		o.Run = func(ctx context.Context) error {
			go memory.Retain(ctx)
			return m.Run(ctx)
		}
	}
	for _, s := range m.Board().Servers() { // those that are tapped, too
		if !slices.Contains(o.Names, s.Name) {
			o.Names = append(o.Names, s.Name)
		}
	}
	o.Close = func() error {
		var err error
		if w.guarded != nil { // also where the screens were never opened
			if g, err := w.guarded(); err == nil {
				g.Release()
			}
		}
		if memory != nil {
			err = memory.Close()
		}
		return errors.Join(err, closeLog())
	}
	return o, nil
}

// demo makes the monitor on the built-in servers; nothing is remembered.
func (w *wiring) demo(_ context.Context, g cli.Global) (*cli.Opened, error) {
	log, closeLog, err := openLog(g.Log)
	if err != nil {
		return nil, &cli.Error{Kind: "usage", Message: err.Error()}
	}
	d := setup.Demo(setup.DemoOptions{Log: log, Readonly: g.Readonly, Version: version().Module})
	return &cli.Opened{Monitor: d.Monitor, Run: d.Run, Names: d.Names, Close: closeLog}, nil
}

func (w *wiring) demoServer(ctx context.Context, env cli.Env, o cli.DemoServerOptions) error {
	return setup.DemoServer(ctx, setup.DemoServerOptions{Generation: o.Generation, Listen: o.Listen, Tasks: o.Tasks, SSE: o.SSE, Speed: o.Speed, Fault: o.Fault,
		In: env.Stdin, Out: env.Stdout})
}

// tap passes an agent's session through.
func (w *wiring) tap(ctx context.Context, env cli.Env, g cli.Global, o cli.TapOptions) (int, error) {
	log, closeLog, err := openLog(g.Log)
	if err != nil {
		return 0, &cli.Error{Kind: "usage", Message: err.Error()}
	}
	defer func() { _ = closeLog() }()
	return setup.Tap(ctx, setup.TapOptions{
		Command: o.Command, URL: o.URL, Listen: o.Listen, Public: o.Public, Passive: o.Passive || g.Readonly, Answer: o.Answer, Name: o.Name,
		State: stateDir(g.State), Log: log, In: env.Stdin, Out: env.Stdout, Err: env.Stderr,
		Config: func() config.Config { _ = w.load(g); return w.cfg },
	})
}

func tapInstall(env cli.Env, o cli.TapInstallOptions) error {
	err := setup.TapInstall(env.Stdout, setup.TapInstallOptions(o))
	if err != nil {
		return &cli.Error{Kind: "config", Message: err.Error()}
	}
	return nil
}

// screens runs the terminal UI beside the monitor.
func (w *wiring) screens(ctx context.Context, g cli.Global, o *cli.Opened) error {
	opts, err := w.uiOptions(g, o)
	if err != nil {
		return &cli.Error{Kind: "config", Message: err.Error()}
	}
	for _, n := range o.Notes {
		fmt.Fprintln(w.env.Stderr, "mcptasks: "+n)
	}
	if w.guarded == nil {
		w.startGuard()
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- o.Run(life) }() // what is remembered is read meanwhile
	if g, err := w.guarded(); err == nil {
		defer g.Release()
	}
	err = ui.Run(ctx, o.Monitor, opts)
	end()
	return errors.Join(err, <-done)
}

// chosen are the keys as the configuration has them. The error tells of all that
// is wrong with its keys, views, themes, columns and filters, each with its place.
func (w *wiring) chosen() (keymap.Map, error) {
	var faults []error
	wrong := func(key string, err error) {
		if at := w.cfg.Place(key); at != "" {
			err = fmt.Errorf("%s: %w", at, err)
		}
		faults = append(faults, err)
	}
	keys := keymap.Default()
	bound := map[string][]string{}
	for _, action := range slices.Sorted(maps.Keys(w.cfg.File.Keys)) {
		var to []string
		switch v := w.cfg.File.Keys[action].(type) {
		case string:
			to = []string{v}
		case []any:
			for _, k := range v {
				to = append(to, fmt.Sprint(k))
			}
		default:
			wrong("keys."+action, fmt.Errorf("keys.%s: it is a key or a list of keys", action))
			continue
		}
		one := keymap.Default() // a conflict is of two, and is told below
		if err := one.Rebind(map[string][]string{action: to}); err != nil && !errors.As(err, new(keymap.Conflict)) {
			wrong("keys."+action, err)
			continue
		}
		bound[action] = to
	}
	if err := keys.Rebind(bound); err != nil {
		faults = append(faults, err)
	}
	for _, name := range slices.Sorted(maps.Keys(w.cfg.File.Views)) {
		if _, err := board.ParseFilter(w.cfg.File.Views[name]); err != nil {
			wrong("views."+name, fmt.Errorf("views.%s: %w", name, err))
		}
	}
	look := w.cfg.File.UI
	names := slices.Sorted(maps.Keys(look.Themes))
	for _, name := range names {
		for _, part := range slices.Sorted(maps.Keys(look.Themes[name])) {
			if err := ui.CheckTheme(name, map[string]map[string]string{name: {part: look.Themes[name][part]}}); err != nil {
				wrong("ui.themes."+name+"."+part, err)
			}
		}
	}
	if !slices.Contains(names, look.Theme) {
		if err := ui.CheckTheme(look.Theme, look.Themes); err != nil {
			wrong("ui.theme", fmt.Errorf("ui.theme: %w", err))
		}
	}
	if err := list.CheckColumns(look.Columns); err != nil {
		wrong("ui.columns", fmt.Errorf("ui.columns: %w", err))
	}
	if _, err := board.ParseFilter(w.cfg.File.Notify.Filter); err != nil {
		wrong("notify.filter", fmt.Errorf("notify.filter: %w", err))
	}
	return keys, errors.Join(faults...)
}

func (w *wiring) uiOptions(g cli.Global, o *cli.Opened) (ui.Options, error) {
	f := w.cfg.File
	keys, err := w.chosen()
	if err != nil {
		return ui.Options{}, err
	}
	opts := ui.Options{
		Keys: &keys, Theme: f.UI.Theme, Themes: f.UI.Themes, Mouse: f.UI.Mouse, Views: f.Views, Readonly: g.Readonly, Schema: schemaLimits(f.Limits), LogFile: g.Log,
		NoSide: f.UI.Details == "none" || f.UI.Details == "full",
		List:   list.Options{Columns: f.UI.Columns, Sort: board.SortColumn(f.UI.Sort), Group: f.UI.Group, Empty: w.empty()},
		Notify: notify.Rules{Hook: f.Notify.Hook, OnlyAfter: time.Duration(f.Notify.OnlyAfter), Filter: f.Notify.Filter,
			NoBell: off(f.Notify.Bell), NoTerminal: off(f.Notify.Terminal), NoTitle: off(f.Notify.Title), NoStatus: off(f.Notify.Status),
			Focused: f.Notify.Focused, Style: f.Notify.Style},
	}
	if dir := stateDir(g.State); dir != "" { // else views last for this run
		opts.ViewsFile = filepath.Join(dir, "views.json")
	}
	if f.UI.Group == "none" {
		opts.List.Group = ""
	}
	opts.Sampling, opts.TaskJSON = o.Sampling, cli.TaskJSON
	opts.SignIn = func(ctx context.Context, name string) error {
		s, err := w.found(name)
		if err == nil {
			if err = setup.SignIn(ctx, s, setup.LoginOptions{State: stateDir(g.State), Log: o.Log}, nil); err == nil {
				o.Monitor.Connect(name)
			}
		}
		return err
	}
	if o.Memory != nil {
		opts.Bundle = func(ctx context.Context, k taskmodel.Key, wire []taskmodel.WireEntry, out io.Writer) error {
			return o.Memory.Bundle(ctx, k, wire, false, out)
		}
	}
	if g.NoColor {
		opts.Theme = "mono"
	}
	return opts, nil
}

// schemaLimits are those of the forms.
func schemaLimits(l config.Limits) form.Limits {
	return form.Limits{Bytes: int(l.Schema), Depth: l.SchemaDepth, Fields: l.SchemaFields, Options: l.SchemaChoices}
}

// off reports whether something that is on by itself was switched off.
func off(b *bool) bool { return b != nil && !*b }

// empty says what to do where there are no servers.
func (w *wiring) empty() []string {
	looked := make([]string, 0, len(w.cfg.Reports))
	home, _ := os.UserHomeDir()
	for _, r := range w.cfg.Reports {
		path := r.Path
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			path = "~/" + rest
		}
		looked = append(looked, path)
	}
	if len(looked) > 3 {
		looked = append(looked[:3], "…")
	}
	return []string{"No servers yet.", "",
		"  mcptasks demo                               see it at work, no set-up",
		"  mcptasks -s ci=https://ci.example/mcp       watch a server over HTTP",
		`  mcptasks -s ev="npx -y @modelcontextprotocol/server-everything stdio"`, "",
		"Looked in: " + strings.Join(looked, ", ") + " (mcptasks config shows all)"}
}

// fillInputs finds the values that the servers about to be started want, and
// asks for them at the terminal where there is one.
func (w *wiring) fillInputs(ctx context.Context, servers []config.Server, g cli.Global, log *slog.Logger) ([]config.Server, error) {
	in := setup.Inputs{Getenv: w.env.Getenv, Keep: signin.Keyring{}, Log: log}
	if w.env.StdinTTY && !g.Quiet {
		in.Ask = w.askInput(ctx)
	}
	return in.Fill(servers, g.Only)
}

func (w *wiring) askInput(ctx context.Context) func(config.Server, config.Input) (string, error) {
	return func(s config.Server, in config.Input) (string, error) {
		prompt := setup.InputPrompt(s, in)
		if in.Password {
			return w.env.ReadPassword(ctx, prompt)
		}
		fmt.Fprint(w.env.Stderr, prompt)
		line, err := w.env.ReadLine(ctx)
		if line = strings.TrimSpace(line); line == "" && (err == nil || errors.Is(err, io.EOF)) {
			return in.Default, nil
		}
		return line, err
	}
}

// readPassword reads a line that does not show. When ctx ends first the
// terminal shows again what is typed.
func readPassword(ctx context.Context, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type typed struct {
		b   []byte
		err error
	}
	got := make(chan typed, 1)
	go func() {
		b, err := term.ReadPassword(fd)
		got <- typed{b, err}
	}()
	// It is asked for when the terminal has been told to show nothing: who types
	// at once is faster than a program on a busy machine.
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if now, err := term.GetState(fd); err != nil || *now != *before {
			break
		}
	}
	fmt.Fprint(os.Stderr, prompt)
	defer fmt.Fprintln(os.Stderr)
	select {
	case t := <-got:
		return string(t.b), t.err
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		return "", context.Cause(ctx)
	}
}

// configured reports what was found, without connecting.
func (w *wiring) configured(g cli.Global) (cli.ConfigReport, error) {
	if err := w.load(g); err != nil {
		return cli.ConfigReport{}, err
	}
	if _, err := w.chosen(); err != nil {
		return cli.ConfigReport{}, &cli.Error{Kind: "config", Message: err.Error()}
	}
	r := cli.ConfigReport{Path: w.cfg.Path, State: stateDir(g.State)}
	for _, f := range w.cfg.Reports {
		r.Files = append(r.Files, cli.ConfigFile(f))
	}
	for _, s := range w.cfg.Servers {
		r.Servers = append(r.Servers, cli.ConfigServer{Name: s.Name, Target: s.Target(), Source: s.Source, Autostart: s.Autostart(), Disabled: s.Disabled})
	}
	for _, v := range w.cfg.Values() {
		r.Values = append(r.Values, cli.ConfigValue(v))
	}
	return r, nil
}

func (w *wiring) login(ctx context.Context, env cli.Env, g cli.Global, server string, noBrowser bool) error {
	s, err := w.server(g, server)
	if err != nil {
		return err
	}
	log, closeLog, err := openLog(g.Log)
	if err != nil {
		return err
	}
	defer func() { _ = closeLog() }()
	return setup.Login(ctx, s, setup.LoginOptions{State: stateDir(g.State), Log: log, Out: env.Stderr, In: env.Stdin, NoBrowser: noBrowser})
}

func (w *wiring) logout(ctx context.Context, g cli.Global, server string) error {
	s, err := w.server(g, server)
	if err != nil {
		return err
	}
	return setup.Logout(ctx, s, stateDir(g.State))
}

func (w *wiring) server(g cli.Global, name string) (config.Server, error) {
	if err := w.load(g); err != nil {
		return config.Server{}, err
	}
	return w.found(name)
}

func (w *wiring) found(name string) (config.Server, error) {
	i := slices.IndexFunc(w.cfg.Servers, func(s config.Server) bool { return s.Name == name })
	if i < 0 {
		return config.Server{}, cli.NoServer(name, names(w.cfg.Servers))
	}
	return w.cfg.Servers[i], nil
}

func names(servers []config.Server) []string {
	out := make([]string, len(servers))
	for i, s := range servers {
		out[i] = s.Name
	}
	return out
}

// stateDir is where the program remembers: --state, else the XDG state folder.
func stateDir(flag string) string {
	if flag != "" {
		return flag
	}
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "mcptasks")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	if runtime.GOOS == "windows" {
		if d := os.Getenv("LOCALAPPDATA"); d != "" {
			return filepath.Join(d, "mcptasks")
		}
	}
	return filepath.Join(home, ".local", "state", "mcptasks")
}

// openLog makes the program's own log; without a file it goes nowhere.
func openLog(path string) (*slog.Logger, func() error, error) {
	if path == "" {
		return slog.New(slog.DiscardHandler), func() error { return nil }, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("--log: %w", err)
	}
	return slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug})), f.Close, nil
}

// What the linker puts into a release; elsewhere the build's own record says it.
var release, commit string

func version() cli.Version {
	v := cli.Version{Module: "(devel)", Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v.Module = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && v.Commit == "" {
				v.Commit = s.Value
			}
		}
	}
	if release != "" {
		v.Module = release
	}
	return v
}
