package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"mcptasks/mcp"
	"mcptasks/mcp/monitor"
)

// What the monitor and the client tell apart has the exit code that the
// contract gives it, however deep it stands.
func TestErrorsHaveTheContractsKinds(t *testing.T) {
	for _, tt := range []struct {
		err  error
		kind string
		code int
	}{
		{monitor.ErrReadonly, "readonly", 5},
		{monitor.ErrUnreachable, "unreachable", 3},
		{monitor.ErrNoServer, "usage", 2},
		{monitor.ErrNoTask, "not_found", 4},
		{monitor.ErrStopped, "interrupted", 130},
		{mcp.ErrNotFound, "not_found", 4},
		{mcp.ErrAuth, "auth", 3},
		{fmt.Errorf("%w: %w", monitor.ErrUnreachable, mcp.ErrAuth), "auth", 3},
		{mcp.ErrSessionLost, "unreachable", 3},
		{context.Canceled, "interrupted", 130},
		{context.DeadlineExceeded, "timeout", 7},
		{fmt.Errorf("on its way: %w: %w", monitor.ErrUnconfirmed, context.DeadlineExceeded), "timeout", 7},
		{failf("config", "", "x"), "config", 2},
		{fmt.Errorf("odd"), "failed", 1},
	} {
		e := classify(fmt.Errorf("ci: %w", tt.err), "ci")
		if e.Kind != tt.kind || exitOf[e.Kind] != tt.code {
			t.Errorf("%v: %s, exit %d; want %s, %d", tt.err, e.Kind, exitOf[e.Kind], tt.kind, tt.code)
		}
	}
}

// An error of the command line itself is one line of JSON, too, wherever the
// wish for it stands.
func TestErrorsOfTheCommandLineAsJSON(t *testing.T) {
	for _, tt := range []struct {
		args []string
		env  string
		want bool
	}{
		{[]string{"ls", "--nope", "-o", "json"}, "", true},
		{[]string{"ls", "-ojson", "--nope"}, "", true},
		{[]string{"ls", "--nope", "--output=jsonl"}, "", true},
		{[]string{"tools"}, "json", true},
		{[]string{"tools", "-o", "table"}, "json", false},
		{[]string{"ls", "--nope", "--", "-o", "json"}, "", false},
		{[]string{"ls", "--nope", "-o"}, "", false},
	} {
		var errs strings.Builder
		code := Run(t.Context(), Env{Args: tt.args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs,
			Getenv: func(k string) string { return map[string]string{"MCPTASKS_OUTPUT": tt.env}[k] }}, Deps{})
		if is := strings.HasPrefix(errs.String(), `{"error":{"kind":"usage"`); code != 2 || is != tt.want || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%q: exit %d, %s", tt.args, code, errs.String())
		}
	}
}

// Every command's help has an example, and every example is a command line that
// there is.
func TestHelpHasExamples(t *testing.T) {
	root := Root(Env{}, Deps{})
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Hidden {
			return
		}
		if c.Short == "" || !strings.Contains(c.Example, "mcptasks") {
			t.Errorf("%s: no example in its help", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			words := strings.Fields(line)
			if got, _, err := root.Find(words[1:]); err != nil || got != c && c != root {
				t.Errorf("%s: its example %q is for %s (%v)", c.CommandPath(), line, got.CommandPath(), err)
			}
		}
	}
	walk(root)
}
