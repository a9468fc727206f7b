package cli_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"

	"mcptasks/ui/cli"
)

// complete gives what a shell is offered for a command line, without what is
// said beside each.
func (w *world) complete(args ...string) []string {
	w.t.Helper()
	out, errs, code := w.run(append([]string{"__complete"}, args...)...)
	if code != 0 {
		w.t.Errorf("%q: exit %d: %s", args, code, errs)
	}
	var words []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, ":") {
			break
		}
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words = append(words, word)
	}
	return words
}

// A shell completes servers, tools, the ids of remembered tasks and statuses.
func TestCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		build := w.id("ci", "build", 0)
		if got := w.complete("get", "ci/"); !slices.Equal(got, []string{"ci/", "bad/"}) {
			t.Errorf("with nothing remembered: %q", got)
		}
		_, _, _ = w.run("ls", "ci", "deploy")
		_, _, _ = w.run("add", "deploy", w.id("deploy", "build", 0))
		for _, tt := range []struct {
			line string
			want []string // all of it, or with a … at the end some of it
		}{
			{"ls |", []string{"ci", "bad"}},
			{"ls ci |", []string{"bad"}},
			{"tools |", []string{"ci", "bad"}},
			{"tools ci |", nil},
			{"login |", []string{"ci", "bad"}},
			{"start |", []string{"ci", "bad"}},
			{"start ci b|", []string{"build", "…"}},
			{"start ci build |", nil},
			{"get ci/" + build[:8] + "|", []string{"ci/" + build}},
			{"get deploy/|", []string{"deploy/" + w.id("deploy", "build", 0)}},
			{"wait ci/" + build + " ci/" + build[:8] + "|", []string{"ci/", "bad/"}},
			{"result ci/" + build + " |", nil},
			{"answer ci/" + build + " |", nil},
			{"history ci/" + build[:4] + "|", []string{"ci/" + build, "…"}},
			{"add |", []string{"ci", "bad"}},
			{"add ci |", nil},
			{"ls --status |", []string{"working", "input_required", "completed", "failed", "cancelled", "submitted", "unknown"}},
			{"ls --status working,fa|", []string{"working,failed", "…"}},
			{"-o |", []string{"table", "json", "jsonl"}},
			{"ls --on-input |", []string{"ask", "exit", "decline", "cancel", "accept="}},
			{"demo-server --generation |", []string{"draft", "2025-11-25", "2026-07-28"}},
			{"completion |", []string{"bash", "zsh", "fish", "powershell"}},
			{"can|", []string{"cancel", "…"}},
		} {
			got := w.complete(strings.Split(strings.TrimSuffix(tt.line, "|"), " ")...)
			if n := len(tt.want); n > 0 && tt.want[n-1] == "…" {
				if !slices.Contains(got, tt.want[0]) {
					t.Errorf("%s: %q is without %s", tt.line, got, tt.want[0])
				}
			} else if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
			}
		}
	})
}

// A command line that is completed asks nobody for anything.
func TestCompletionAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		w.tty = true
		for _, line := range []string{"start ci", "get ci/"} {
			w.opened = nil
			w.complete(strings.Split(line+" ", " ")...)
			w.complete(strings.Split(line, " ")...)
			for _, g := range w.opened {
				if !g.Quiet {
					t.Errorf("%s: opened so that a person is asked", line)
				}
			}
			if len(w.opened) == 0 {
				t.Errorf("%s: nothing was opened", line)
			}
		}
	})
}

// Without the package bash-completion the script does without its function.
func TestBashCompletionNeedsNoPackage(t *testing.T) {
	w := newWorld(t)
	defer w.close()
	out, _, _ := w.run("completion", "bash")
	before, after, ok := strings.Cut(out, "_get_comp_words_by_ref \"$@\"")
	if !ok || !strings.HasSuffix(strings.TrimSpace(before), "if declare -F _get_comp_words_by_ref >/dev/null; then") || !strings.Contains(after, "cword=$COMP_CWORD") {
		t.Error("the script needs a function of bash-completion")
	}
}

// Every command's help has an example, and each example names the command.
func TestHelpHasExamples(t *testing.T) {
	root := cli.Root(cli.Env{}, cli.Deps{})
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if !c.Hidden && c.Name() != "help" {
			if !strings.Contains(c.Example, c.CommandPath()) {
				t.Errorf("%s: the help has no example of it", c.CommandPath())
			}
			for line := range strings.Lines(c.Example) {
				if !strings.HasPrefix(line, "  mcptasks") {
					t.Errorf("%s: %q is no command line", c.CommandPath(), line)
				}
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(root)
}
