package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// run is one invocation: its process, what main gave, its flags.
type run struct {
	env  Env
	deps Deps
	g    Global
	code int
	from map[string]string // of each flag that has a variable: where its value came from
	// exact keeps the code that the command gave, also when we were asked to
	// stop: tap ends as its server ended.
	exact bool
	read  bool // the flags and variables have been
	// process is env as main gave it, for what serves on stdin and stdout itself.
	process Env
}

// outputAsked finds what -o asks for in a command line that may not be valid.
func outputAsked(args []string, getenv func(string) string) string {
	asked := getenv("MCPTASKS_OUTPUT")
	for i, a := range args {
		if a == "--" {
			break
		}
		for _, flag := range []string{"--output", "-o"} {
			if rest, ok := strings.CutPrefix(a, flag); ok && rest != "" && (flag == "-o" || rest[0] == '=') {
				asked = strings.TrimPrefix(rest, "=")
			} else if a == flag && i+1 < len(args) {
				asked = args[i+1]
			}
		}
	}
	return asked
}

// A sink notices that the reader of standard output has gone away (`| head`):
// nobody is left to be told anything.
type sink struct {
	to   io.Writer
	gone atomic.Bool
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		s.gone.Store(true)
	}
	return n, err
}

// Run carries out one command line and gives the exit code. ctx ends when the
// process is asked to stop.
func Run(ctx context.Context, env Env, deps Deps) int {
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	if env.ReadLine == nil {
		env.ReadLine = NewLines(env.Stdin).Read
	}
	out := &sink{to: env.Stdout}
	r := &run{env: env, deps: deps, from: map[string]string{}, process: env}
	r.env.Stdout = out
	root := r.root()
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(out)
	root.SetErr(env.Stderr)
	switch err := root.ExecuteContext(ctx); {
	case out.gone.Load():
		return exitPipe
	case err != nil && err != errSaid:
		if !r.read { // the command line itself is at fault, perhaps before its -o
			r.g.Output = outputAsked(env.Args, env.Getenv)
		}
		r.code = worse(r.code, r.report(err, ""))
	}
	if ctx.Err() != nil && !r.exact {
		r.code = exitInterrupted
	}
	return r.code
}

// Root gives the command tree without running it, for completions and man pages.
func Root(env Env, deps Deps) *cobra.Command { return (&run{env: env, deps: deps}).root() }

func (r *run) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mcptasks [SERVER…|URL|-- COMMAND ARG…]",
		Short: "Watch long-running MCP tasks: live status, questions, cancel, results",
		Long: "mcptasks connects to MCP servers, lists their tasks, polls them live, shows what a\n" +
			"server asks for, and lets you answer, cancel and fetch results.\n\n" +
			"Without a command it opens the terminal UI on all configured servers, or on those named.",
		Example:       "  mcptasks demo\n  mcptasks -s ci=https://ci.example/mcp\n  mcptasks -- npx -y @modelcontextprotocol/server-everything stdio",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return r.flags(cmd)
		},
		RunE:              r.openUI,
		ValidArgsFunction: r.completeServers,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s (see %s --help)", flagWords(oneLine(err.Error())), cmd.CommandPath())
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	f := root.PersistentFlags()
	f.StringArrayVarP(&r.g.Config, "config", "c", nil, "read this `FILE` and no other (repeatable)")
	f.StringArrayVarP(&r.g.Servers, "server", "s", nil, "`NAME=TARGET`: a URL or a command line; replaces the search for files (repeatable)")
	f.StringArrayVar(&r.g.Sets, "set", nil, "`NAME.key=value`: set a key of a server's entry (repeatable)")
	f.StringVarP(&r.g.Output, "output", "o", "table", "`FORM`: table, json or jsonl")
	f.DurationVar(&r.g.Timeout, "timeout", 0, "bound on the whole command (default 30s; none for wait, watch, result, start --wait)")
	f.StringVar(&r.g.State, "state", "", "`FOLDER` in which the program remembers")
	f.BoolVar(&r.g.Readonly, "readonly", false, "refuse all that starts, answers or cancels")
	f.StringVar(&r.g.Log, "log", "", "write the program's log to this `FILE`")
	f.BoolVar(&r.g.NoColor, "no-color", false, "no colours")
	f.StringVar(&r.g.OnInput, "on-input", "", "`WHAT` to do when input is needed: ask, exit, decline, cancel or accept=JSON")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "jsonl"}, cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("on-input", cobra.FixedCompletions([]string{"ask", "exit", "decline", "cancel", "accept="}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	root.AddCommand(r.demoCmd(), r.demoServerCmd(), r.serversCmd(), r.toolsCmd(), r.startCmd(), r.lsCmd(), r.getCmd(), r.waitCmd(),
		r.resultCmd(), r.cancelCmd(), r.answerCmd(), r.watchCmd(), r.addCmd(), r.forgetCmd(), r.historyCmd(), r.tapCmd(), r.loginCmd(), r.logoutCmd(),
		r.configCmd(), r.completionCmd(), r.versionCmd(), r.keysCmd(), r.generateCmd())
	return root
}

// variables are the flags that can be given by the environment. Flags that are
// repeatable have one value a line there.
var variables = []struct{ flag, name string }{
	{"config", "MCPTASKS_CONFIG"}, {"server", "MCPTASKS_SERVER"}, {"set", "MCPTASKS_SET"}, {"output", "MCPTASKS_OUTPUT"},
	{"timeout", "MCPTASKS_TIMEOUT"}, {"state", "MCPTASKS_STATE"}, {"readonly", "MCPTASKS_READONLY"}, {"log", "MCPTASKS_LOG"},
	{"no-color", "MCPTASKS_NO_COLOR"}, {"on-input", "MCPTASKS_ON_INPUT"},
}

// flags fills in variables and defaults: flags win over MCPTASKS_* variables.
func (r *run) flags(cmd *cobra.Command) error {
	r.read = true
	f := cmd.Flags()
	// Either flag says which servers are meant, whatever the variables say.
	named := f.Changed("config") || f.Changed("server")
	for _, v := range variables {
		text := r.env.Getenv(v.name)
		r.from[v.flag] = "default"
		switch {
		case f.Changed(v.flag):
			r.from[v.flag] = "--" + v.flag
			continue
		case text == "", named && (v.flag == "config" || v.flag == "server"):
			continue
		}
		r.from[v.flag] = v.name
		values := []string{text}
		if f.Lookup(v.flag).Value.Type() == "stringArray" {
			values = strings.Split(strings.TrimSpace(text), "\n")
		}
		for _, value := range values {
			if err := f.Set(v.flag, value); err != nil {
				return usagef("%s=%q: %s", v.name, text, flagWords(oneLine(err.Error())))
			}
		}
	}
	r.g.HasLimit = f.Changed("timeout")
	if r.g.Timeout < 0 {
		return usagef("--timeout %s: it is not negative", r.g.Timeout)
	}
	if r.env.Getenv("NO_COLOR") != "" && !r.g.NoColor {
		r.g.NoColor, r.from["no-color"] = true, "NO_COLOR"
	}
	if !slices.Contains([]string{"table", "json", "jsonl"}, r.g.Output) {
		bad := r.g.Output
		r.g.Output = "table"
		return usagef("-o %s: it is table, json or jsonl", bad)
	}
	if r.g.OnInput == "" {
		r.g.OnInput = "exit"
		if r.env.StdinTTY && r.env.StdoutTTY {
			r.g.OnInput = "ask"
		}
	}
	if !slices.Contains([]string{"ask", "exit", "decline", "cancel"}, r.g.OnInput) && !strings.HasPrefix(r.g.OnInput, "accept=") {
		return usagef("--on-input %s: it is ask, exit, decline, cancel or accept=JSON", r.g.OnInput)
	}
	r.g.Purpose = cmd.CommandPath()
	return nil
}

// openUI is the root: the screens, on what the arguments name.
func (r *run) openUI(cmd *cobra.Command, args []string) error {
	g := r.g
	switch dash := cmd.ArgsLenAtDash(); {
	case dash >= 0:
		if dash > 0 {
			return usagef("servers and a command after -- do not go together")
		}
		if len(args) == 0 {
			return usagef("no command after --")
		}
		g.Command = args
	case len(args) == 1 && strings.Contains(args[0], "://"):
		g.Target = args[0]
	case len(args) > 0:
		g.Only = args
	}
	if !r.env.StdinTTY || !r.env.StdoutTTY {
		if r.deps.UI == nil || !r.env.StdoutTTY {
			return usagef("the terminal UI needs a terminal; scripts use mcptasks ls, get, watch … (mcptasks --help)%s", meant(cmd, g.Only))
		}
	}
	if err := r.graceless(); err != nil {
		return err
	}
	o, err := r.deps.Open(cmd.Context(), g)
	if err != nil {
		return err
	}
	err = r.ui(cmd.Context(), g, o)
	if e := classify(err, ""); e != nil && e.Kind == "usage" {
		e.Message += meant(cmd, slices.DeleteFunc(slices.Clone(g.Only), func(s string) bool { return slices.Contains(o.Names, s) }))
	}
	return err
}

// meant asks whether a word that is no server's name was to be a command's; ""
// when it is near none.
func meant(cmd *cobra.Command, words []string) string {
	if len(words) > 0 {
		if near := cmd.Root().SuggestionsFor(words[0]); len(near) > 0 {
			return "; did you mean mcptasks " + near[0] + "?"
		}
	}
	return ""
}

// nobody says that there are no servers, and what to do.
const nobody = "no server is configured: -s NAME=TARGET names one, mcptasks config shows where they are looked for, mcptasks demo needs none"

// NoServer says that a name is no server's, and what to do.
func NoServer(name string, names []string) error {
	if len(names) == 0 {
		return usagef("there is no server %q: none is configured (mcptasks config shows where they are looked for; -s NAME=TARGET names one)", name)
	}
	return usagef("there is no server %q; there are: %s", name, strings.Join(names, ", "))
}

func (r *run) ui(ctx context.Context, g Global, o *Opened) error {
	if o.Close != nil {
		defer func() { _ = o.Close() }()
	}
	for _, name := range g.Only {
		if !slices.Contains(o.Names, name) {
			return NoServer(name, o.Names)
		}
	}
	return r.deps.UI(ctx, g, o)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// flagWords says of a duration that is none what one looks like.
func flagWords(said string) string {
	if before, _, ok := strings.Cut(said, "time: "); ok {
		return before + "a duration is written as 30s, 10m or 1h30m"
	}
	return said
}

// args checks the number of arguments with a sentence of ours.
func args(least, most int, form string) cobra.PositionalArgs {
	return func(_ *cobra.Command, a []string) error {
		if len(a) < least || most >= 0 && len(a) > most {
			return usagef("it is: mcptasks %s", form)
		}
		return nil
	}
}

func (r *run) writeln(s string) error {
	_, err := fmt.Fprintln(r.env.Stdout, s)
	return err
}

// graceless is why a terminal that moves no cursor gets no screens: what would be
// drawn there is noise, for a screen reader above all.
func (r *run) graceless() error {
	if r.env.Getenv("TERM") != "dumb" {
		return nil
	}
	return usagef("this terminal cannot show the screens (TERM=dumb); mcptasks watch says in sentences what happens, mcptasks answer TASK asks here")
}
