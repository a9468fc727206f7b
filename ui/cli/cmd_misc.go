package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"mcptasks/ui/safe"
)

func (r *run) demoCmd() *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "The terminal UI on three built-in servers, one per generation",
		Long: "Needs no configuration, network or other program. Nothing is remembered.", Example: "  mcptasks demo",
		Args: args(0, 0, "demo"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !r.env.StdinTTY || !r.env.StdoutTTY {
				return usagef("the demo needs a terminal; scripts use mcptasks -s demo=\"mcptasks demo-server\" ls")
			}
			if err := r.graceless(); err != nil {
				return err
			}
			o, err := r.deps.Demo(cmd.Context(), r.g)
			if err != nil {
				return err
			}
			return r.ui(cmd.Context(), r.g, o)
		},
	}
}

func (r *run) demoServerCmd() *cobra.Command {
	var o DemoServerOptions
	c := &cobra.Command{
		Use: "demo-server", Short: "One built-in server alone, on stdio or HTTP",
		Example: "  mcptasks demo-server --listen 127.0.0.1:0 --generation 2026-07-28",
		Args:    args(0, 0, "demo-server"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch o.Generation {
			case "draft", "2025-11-25", "2026-07-28":
			default:
				return usagef("--generation %s: it is draft, 2025-11-25 or 2026-07-28", o.Generation)
			}
			ctx, cancel := r.bound(cmd.Context(), 0)
			defer cancel()
			err := r.deps.DemoServer(ctx, r.process, o)
			if err == nil && cmd.Context().Err() == nil {
				return context.Cause(ctx) // --timeout is over
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", "", "serve HTTP on `HOST:PORT` (port 0 prints the URL chosen)")
	f.StringVar(&o.Generation, "generation", "2025-11-25", "`WHICH`: draft, 2025-11-25 or 2026-07-28")
	f.IntVar(&o.Tasks, "tasks", 0, "start with `N` tasks")
	f.BoolVar(&o.SSE, "sse", false, "with --listen: the legacy HTTP+SSE transport")
	f.StringVar(&o.Fault, "fault", "", "a script of faults, for tests")
	f.Float64Var(&o.Speed, "speed", 1, "how much faster than life the work goes")
	_ = f.MarkHidden("fault")
	_ = f.MarkHidden("speed")
	_ = c.RegisterFlagCompletionFunc("generation", cobra.FixedCompletions([]string{"draft", "2025-11-25", "2026-07-28"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (r *run) loginCmd() *cobra.Command {
	var noBrowser bool
	c := &cobra.Command{
		Use: "login SERVER", Short: "Sign in to a server", Example: "  mcptasks login ci\n  mcptasks login ci --no-browser",
		Args: args(1, 1, "login SERVER"), ValidArgsFunction: once(r.completeServers),
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx, cancel := r.bound(cmd.Context(), 0)
			defer cancel()
			if err := r.deps.Login(ctx, r.env, r.g, a[0], noBrowser); err != nil {
				return classify(err, a[0])
			}
			return r.done("Signed in to "+a[0]+".", map[string]any{"server": a[0], "signedIn": true})
		},
	}
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "show the address and ask for the code (over SSH)")
	return c
}

func (r *run) logoutCmd() *cobra.Command {
	return &cobra.Command{
		Use: "logout SERVER", Short: "Forget a server's sign-in", Example: "  mcptasks logout ci",
		Args: args(1, 1, "logout SERVER"), ValidArgsFunction: once(r.completeServers),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := r.deps.Logout(cmd.Context(), r.g, a[0]); err != nil {
				return classify(err, a[0])
			}
			return r.done("Signed out of "+a[0]+".", map[string]any{"server": a[0], "signedIn": false})
		},
	}
}

func (r *run) configCmd() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Files looked at, servers found in each, every value and where it came from, where state is kept",
		Example: "  mcptasks config",
		Args:    args(0, 0, "config"),
		RunE: func(*cobra.Command, []string) error {
			rep, err := r.deps.Configured(r.g)
			if err != nil {
				return err
			}
			rep.Values = append(r.flagValues(rep), rep.Values...)
			if r.g.Output != "table" {
				return writeJSON(r.env.Stdout, rep)
			}
			rows := [][]string{{"FILE", "CLIENT", "SERVERS"}}
			for _, f := range rep.Files {
				what := "not there"
				switch {
				case f.Error != "":
					what = "cannot be read: " + safe.Line(f.Error)
				case f.Found:
					what = orElse(safe.Line(strings.Join(f.Servers, ", ")), "no servers in it")
				}
				rows = append(rows, []string{f.Path, f.Client, what})
			}
			rows = append(rows, []string{}, []string{"SERVER", "STARTS", "TARGET", "FROM"})
			for _, s := range rep.Servers {
				starts := "by itself"
				switch {
				case s.Disabled != "":
					starts = "not: " + safe.Line(s.Disabled)
				case !s.Autostart:
					starts = "when named"
				}
				rows = append(rows, []string{s.Name, starts, safe.Line(s.Target), s.Source})
			}
			rows = append(rows, []string{}, []string{"SETTING", "VALUE", "FROM"})
			for _, v := range rep.Values {
				rows = append(rows, []string{v.Key, safe.Line(v.Value), v.From})
			}
			rows = append(rows, []string{}, []string{"State is kept in " + rep.State})
			// Each block has columns of its own.
			return writeBlocks(r.env.Stdout, rows, r.env.Width)
		},
	}
}

// flagValues are the flags as they are in force for this invocation.
func (r *run) flagValues(rep ConfigReport) []ConfigValue {
	shown := map[string]string{"output": r.g.Output, "timeout": r.g.Timeout.String(), "state": rep.State, "readonly": fmt.Sprint(r.g.Readonly),
		"log": orElse(r.g.Log, "none"), "no-color": fmt.Sprint(r.g.NoColor), "on-input": r.g.OnInput}
	if !r.g.HasLimit {
		shown["timeout"] = usualLimit.String()
	}
	var out []ConfigValue
	for _, v := range variables {
		if text, ok := shown[v.flag]; ok {
			out = append(out, ConfigValue{Key: "--" + v.flag, Value: text, From: r.from[v.flag]})
		}
	}
	return out
}

func (r *run) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Version, commit and Go", Example: "  mcptasks version -o json", Args: args(0, 0, "version"),
		RunE: func(*cobra.Command, []string) error {
			v := r.deps.Version
			if r.g.Output != "table" {
				return writeJSON(r.env.Stdout, v)
			}
			line := "mcptasks " + v.Module
			if v.Commit != "" {
				line += "  commit " + v.Commit
			}
			return r.writeln(line + "  " + v.Go)
		},
	}
}

func (r *run) keysCmd() *cobra.Command {
	return &cobra.Command{
		Use: "keys", Hidden: true, Short: "The README's table of keys", Args: args(0, 0, "keys"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(r.env.Stdout, r.deps.Keys())
			return err
		},
	}
}

// generateCmd writes the man pages and completions that a release carries.
func (r *run) generateCmd() *cobra.Command {
	return &cobra.Command{
		Use: "generate DIR", Hidden: true, Short: "Write man pages and completions into a folder", Args: args(1, 1, "generate DIR"),
		RunE: func(cmd *cobra.Command, a []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			man, comp := filepath.Join(a[0], "man"), filepath.Join(a[0], "completions")
			for _, dir := range []string{man, comp} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
			}
			return errors.Join(
				doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "mcptasks"}, man), // dated by SOURCE_DATE_EPOCH, else today
				toFileWith(filepath.Join(comp, "mcptasks.bash"), func(w io.Writer) error { return bashCompletion(root, w) }),
				root.GenZshCompletionFile(filepath.Join(comp, "_mcptasks")),
				root.GenFishCompletionFile(filepath.Join(comp, "mcptasks.fish"), true),
				root.GenPowerShellCompletionFileWithDesc(filepath.Join(comp, "mcptasks.ps1")),
			)
		},
	}
}
