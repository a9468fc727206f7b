package ui_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/setup"
	"mcptasks/ui"
	"mcptasks/ui/screentest"
)

// walk is the README's "First five minutes": what its step says, the keys, and
// what is on the screen then.
var walk = []struct {
	says string // words of the README's step
	do   func(t *screentest.Terminal)
	see  []string
}{
	{"those that need a person come first", func(*screentest.Terminal) {}, []string{"? input needed", "sorted by needs"}},
	{"`enter` opens a task", func(t *screentest.Terminal) { t.Press("down", "up", "enter") }, []string{"Overview", "Timeline"}},
	{"`tab` goes on to", func(t *screentest.Terminal) { t.Press("tab", "tab", "tab") }, []string{"Raw"}},
	{"`esc` goes back", func(t *screentest.Terminal) { t.Press("esc") }, []string{"sorted by needs"}},
	{"`i` shows the inbox of questions", func(t *screentest.Terminal) { t.Press("i") }, []string{"WAITS", "QUESTION"}},
	{"`enter` on one opens its form", func(t *screentest.Terminal) { t.Press("enter") }, []string{" asks", "put aside"}},
	{"`tab` goes from field to field", func(t *screentest.Terminal) { t.Press("tab") }, []string{" asks"}},
	{"`esc` puts it aside", func(t *screentest.Terminal) { t.Press("esc") }, []string{"WAITS"}},
	{"`/` filters: try `status:working server:ci`", func(t *screentest.Terminal) {
		t.Press("t", "/").Type("status:working server:ci").Press("enter")
	}, []string{"status:working server:ci", " of "}},
	{"`c` on a working task asks", func(t *screentest.Terminal) { t.Press("c") }, []string{"Ask ci to cancel this task?", "y cancel it"}},
	{"The row says `cancel requested`", func(t *screentest.Terminal) { t.Press("y").Pass(time.Second) }, []string{"Cancel requested for"}},
	{"`esc` clears it", func(t *screentest.Terminal) { t.Press("esc") }, []string{"sorted by needs"}},
	{"`r` on an ended task shows its result", func(t *screentest.Terminal) {
		t.Press("/").Type("status:completed tool:build server:ci").Press("enter", "r").Pass(time.Second)
	}, []string{"Result of", "Built"}},
	{"`n` starts a task: choose a tool", func(t *screentest.Terminal) { t.Press("esc", "esc", "n").Pass(time.Second) }, []string{"Start", "enter choose"}},
	{"`?` lists every key", func(t *screentest.Terminal) { t.Press("esc", "?") }, []string{"answer the task's question", "the inbox of questions"}},
	{"`q` quits", func(t *screentest.Terminal) { t.Press("esc", "q") }, []string{"question"}},
}

// TestFirstFiveMinutes follows the README's walk-through key by key on the demo.
func TestFirstFiveMinutes(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "## First five minutes")
	text, _, ok2 := strings.Cut(text, "\n## ")
	if !ok || !ok2 {
		t.Fatal("the README has no first five minutes")
	}
	text = strings.Join(strings.Fields(text), " ")
	synctest.Test(t, func(t *testing.T) {
		fleet := setup.Demo(setup.DemoOptions{Version: "demo", Seed: 1, Still: true})
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { _ = fleet.Run(ctx) })
		term := screentest.Start(t, 120, 40, func(ctx context.Context, tty screentest.TTY) error {
			return ui.Run(ctx, fleet.Monitor, ui.Options{Theme: "dark", Input: tty.Input, Output: tty.Output, Env: tty.Env, Program: tty.Program, Started: tty.Started})
		})
		term.Pass(5 * time.Second)
		for _, step := range walk {
			if !strings.Contains(text, step.says) {
				t.Errorf("the README does not say %q", step.says)
			}
			step.do(term)
			term.Settle()
			screen := term.Screen()
			for _, want := range step.see {
				if !strings.Contains(screen, want) {
					t.Errorf("%s: no %q on the screen:\n%s", step.says, want, screen)
				}
			}
		}
		term.Close()
		stop()
		wg.Wait()
	})
}
