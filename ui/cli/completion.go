package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
)

func (r *run) completionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Completion for bash, zsh, fish or powershell",
		Example:   "  mcptasks completion bash >/etc/bash_completion.d/mcptasks",
		Args:      args(1, 1, "completion bash|zsh|fish|powershell"),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, a []string) error {
			root := cmd.Root()
			switch a[0] {
			case "bash":
				return bashCompletion(root, r.env.Stdout)
			case "zsh":
				return root.GenZshCompletion(r.env.Stdout)
			case "fish":
				return root.GenFishCompletion(r.env.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(r.env.Stdout)
			}
			return usagef("completion %s: it is bash, zsh, fish or powershell", a[0])
		},
	}
}

// Without the package bash-completion (macOS, a bare container) this function is
// not there, and each tab would say so.
const (
	bashWords     = "    _get_comp_words_by_ref \"$@\" cur prev words cword\n"
	bashWordsElse = "    if declare -F _get_comp_words_by_ref >/dev/null; then\n    " + bashWords +
		"    else\n        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n" +
		"        words=(\"${COMP_WORDS[@]}\") cword=$COMP_CWORD\n    fi\n"
)

func bashCompletion(root *cobra.Command, w io.Writer) error {
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, true); err != nil {
		return err
	}
	_, err := w.Write(bytes.Replace(b.Bytes(), []byte(bashWords), []byte(bashWordsElse), 1))
	return err
}

func toFileWith(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

var statuses = []string{"working", "input_required", "completed", "failed", "cancelled", "submitted", "unknown"}

// completeStatuses offers, behind the statuses that a list has already, those
// that it has not.
func completeStatuses(_ *cobra.Command, _ []string, to string) ([]string, cobra.ShellCompDirective) {
	before := to[:strings.LastIndexByte(to, ',')+1]
	var out []string
	for _, s := range statuses {
		if !slices.Contains(strings.Split(before, ","), s) {
			out = append(out, before+s)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// A completer offers what can stand next on a command line.
type completer func(cmd *cobra.Command, a []string, to string) ([]string, cobra.ShellCompDirective)

// once offers the first argument only.
func once(c completer) completer {
	return func(cmd *cobra.Command, a []string, to string) ([]string, cobra.ShellCompDirective) {
		if len(a) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c(cmd, a, to)
	}
}

// completeServers offers the servers' names that are not there yet.
func (r *run) completeServers(cmd *cobra.Command, a []string, _ string) ([]string, cobra.ShellCompDirective) {
	if r.flags(cmd) != nil || r.deps.Configured == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	rep, err := r.deps.Configured(r.g)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, s := range rep.Servers {
		if !slices.Contains(a, s.Name) {
			out = append(out, s.Name+"\t"+safe.Line(s.Target))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeTasks offers SERVER/TASKID for what is remembered, without asking a
// server: a completion must be quick.
func (r *run) completeTasks(cmd *cobra.Command, a []string, to string) ([]string, cobra.ShellCompDirective) {
	if r.flags(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	g := r.g
	g.Only, g.Headless, g.Quiet = []string{}, true, true
	if o, err := r.deps.Open(cmd.Context(), g); err == nil {
		if o.Memory != nil {
			server, id, _ := strings.Cut(to, "/")
			if !strings.Contains(to, "/") {
				server, id = "", ""
			}
			for _, role := range []taskmodel.Role{taskmodel.Requestor, taskmodel.Receiver} {
				keys, _ := o.Memory.Find(cmd.Context(), server, strings.TrimPrefix(id, "@"), role)
				for _, k := range keys {
					if name := k.String(); strings.HasPrefix(name, to) && !slices.Contains(a, name) {
						out = append(out, safe.Line(name))
					}
				}
			}
		}
		if o.Close != nil {
			_ = o.Close()
		}
	}
	if len(out) > 0 {
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	names, d := r.completeServers(cmd, nil, to)
	for i, n := range names {
		name, _, _ := strings.Cut(n, "\t")
		names[i] = name + "/"
	}
	return names, d | cobra.ShellCompDirectiveNoSpace
}

// completeTools offers servers, then the chosen server's tools.
func (r *run) completeTools(cmd *cobra.Command, a []string, to string) ([]string, cobra.ShellCompDirective) {
	if len(a) != 1 {
		if len(a) == 0 {
			return r.completeServers(cmd, a, to)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if r.flags(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	r.g.Quiet = true
	var out []string
	ctx, cancel := context.WithTimeout(cmd.Context(), usualLimit/10)
	defer cancel()
	_ = r.withMonitor(ctx, a[:1], func(ctx context.Context, s *session) error {
		if _, err := s.need(ctx, a[0]); err != nil {
			return err
		}
		tools, err := s.m.Tools(ctx, a[0])
		for _, t := range tools {
			if t.TaskSupport != "forbidden" {
				out = append(out, safe.Line(t.Name)+"\t"+safe.Line(t.Description))
			}
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}
