package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/ui/cli"
)

// slowEars is a monitor that takes its time until it hears somebody out.
type slowEars struct{ *monitor.Monitor }

func (m slowEars) Events(n int) (<-chan taskmodel.Event, func()) {
	time.Sleep(time.Second)
	return m.Monitor.Events(n)
}

// watch tells of all that happens, also of what happens first: a server that
// another process holds changes once and never again.
func TestWatchHearsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mon := slowEars{monitor.New(monitor.Options{Servers: []monitor.ServerSpec{{Name: "ci", Target: "nowhere", Autostart: true, Dialer: unreachable{}}}})}
		var out, errs bytes.Buffer
		var began time.Time
		code := cli.Run(t.Context(), cli.Env{Args: []string{"watch", "--timeout", "5s"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now,
			Getenv: func(string) string { return "" }}, cli.Deps{Open: func(context.Context, cli.Global) (*cli.Opened, error) {
			return &cli.Opened{Monitor: mon, Names: []string{"ci"}, Run: func(ctx context.Context) error {
				began = time.Now()
				return mon.Run(ctx)
			}}, nil
		}})
		first, _, _ := strings.Cut(out.String(), "\n")
		if code != 7 || !strings.Contains(first, began.UTC().Format(time.RFC3339)[:19]) || !strings.Contains(first, `"state":"retrying"`) {
			t.Errorf("exit %d, began at %s: %s\n%s", code, began, first, errs.String())
		}
	})
}
