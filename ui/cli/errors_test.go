package cli

import (
	"context"
	"fmt"
	"testing"

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
