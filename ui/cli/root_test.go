package cli_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"mcptasks/ui/cli"
)

// The screens open on all configured servers where none is named, and else on
// those named, the URL or the command.
func TestTheScreensOpenOnWhatIsNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		only []string
		url  string
		cmd  []string
	}{
		{args: nil},
		{args: []string{"-s", "ci=https://ci.example/mcp"}},
		{args: []string{"ci", "lab"}, only: []string{"ci", "lab"}},
		{args: []string{"https://ci.example/mcp"}, url: "https://ci.example/mcp"},
		{args: []string{"--", "npx", "-y", "x"}, cmd: []string{"npx", "-y", "x"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var got cli.Global
			var errs bytes.Buffer
			code := cli.Run(context.Background(), cli.Env{Args: c.args, Stderr: &errs, Stdout: &errs, StdinTTY: true, StdoutTTY: true, Now: time.Now,
				Getenv: func(string) string { return "" }}, cli.Deps{
				Open: func(_ context.Context, g cli.Global) (*cli.Opened, error) {
					got = g
					return &cli.Opened{Names: []string{"ci", "lab"}}, nil
				},
				UI: func(context.Context, cli.Global, *cli.Opened) error { return nil },
			})
			if code != 0 || (got.Only == nil) != (c.only == nil) || !slices.Equal(got.Only, c.only) || got.Target != c.url || !slices.Equal(got.Command, c.cmd) {
				t.Errorf("exit %d (%s): only %q, target %q, command %q", code, &errs, got.Only, got.Target, got.Command)
			}
		})
	}
}

// A terminal without graces gets no screens, but words on what to do there.
func TestADumbTerminalGetsNoScreens(t *testing.T) {
	for _, args := range [][]string{nil, {"demo"}, {"ci"}, {"https://ci.example/mcp"}} {
		var errs bytes.Buffer
		no := func(context.Context, cli.Global) (*cli.Opened, error) {
			t.Errorf("%q: something was started", args)
			return &cli.Opened{}, nil
		}
		code := cli.Run(context.Background(), cli.Env{Args: args, Stderr: &errs, Stdout: &errs, StdinTTY: true, StdoutTTY: true, Now: time.Now,
			Getenv: func(k string) string { return map[string]string{"TERM": "dumb"}[k] }}, cli.Deps{Open: no, Demo: no})
		if said := errs.String(); code != 2 || !strings.Contains(said, "mcptasks watch") || strings.Contains(said, "\x1b") {
			t.Errorf("%q: exit %d: %s", args, code, said)
		}
	}
}

// What is said of the memory that is not there is said once.
func TestHistoryWithoutMemorySaysWhyOnce(t *testing.T) {
	var errs bytes.Buffer
	code := cli.Run(context.Background(), cli.Env{Args: []string{"history"}, Stderr: &errs, Stdout: &errs, Now: time.Now, Getenv: func(string) string { return "" }}, cli.Deps{
		Open: func(context.Context, cli.Global) (*cli.Opened, error) {
			return &cli.Opened{Notes: []string{"the folder cannot be written"}}, nil
		},
	})
	if said := errs.String(); code != 1 || strings.Count(said, "the folder cannot be written") != 1 || !strings.Contains(said, "no memory to read") {
		t.Errorf("exit %d: %s", code, said)
	}
}
