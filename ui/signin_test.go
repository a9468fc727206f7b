package ui_test

import (
	"context"
	"errors"
	"testing"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
)

// The servers' screen signs in where that is wanted, says what it waits for, and
// how it ended; a program that cannot says which command does.
func TestSignInFromTheServersScreen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		can   bool
		fails error
		says  string
	}{
		{"signed in", true, nil, "Signed in to vault."},
		{"not signed in", true, errors.New("no browser can be opened here: mcptasks login vault --no-browser shows the address"), "mcptasks login vault --no-browser"},
		{"cannot", false, nil, "Sign in with: mcptasks login vault"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mon := fleet()
				mon.Change(func(b *board.Board) {
					b.PutServer(taskmodel.Server{Name: "vault", Target: "https://vault.example/mcp", Transport: "http", State: taskmodel.ServerAuth, Error: "a sign-in is wanted"})
				})
				var asked []string
				agreed := make(chan struct{})
				term := run(t, mon, 100, 30, func(o *ui.Options) {
					if tt.can {
						o.SignIn = func(ctx context.Context, server string) error {
							asked = append(asked, server)
							select {
							case <-agreed:
								return tt.fails
							case <-ctx.Done():
								return ctx.Err()
							}
						}
					}
				})
				term.Press("s", "/")
				term.Type("vault")
				term.Press("enter", "I")
				if tt.can {
					term.See("Signing in to vault; a browser window opens")
					close(agreed)
					term.Settle()
				}
				term.See(tt.says)
				if tt.can != (len(asked) == 1 && asked[0] == "vault") {
					t.Errorf("signed in to %q", asked)
				}
			})
		})
	}
}
