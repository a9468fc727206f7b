//go:build unix

package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// TestProgramCrashesAtDiscover: a program that ends at server/discover, the
// first request of 2026-07-28, is told of by how it ended, and not by what its
// next process says of initialize, which it never knew; one that ends only once
// is connected (2026-07-28 basic/transports/stdio, "Backward Compatibility").
func TestProgramCrashesAtDiscover(t *testing.T) {
	const (
		discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		refused    = `{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}`
		unknown    = `{"code":-32601,"message":"Method not found"}`
	)
	for _, c := range []struct {
		name    string
		end     string // of the process that is asked to discover
		refusal string
		once    bool
		says    []string
	}{
		{name: "exits", end: `echo "no database" >&2; echo "giving up" >&2; exit 3`, refusal: refused,
			says: []string{"srv: ", "(server/discover)", "exit code 3", "no database | giving up"}},
		{name: "is killed", end: `echo "eating memory" >&2; kill -9 $$`, refusal: refused,
			says: []string{"srv: ", "(server/discover)", "a signal (killed)", "eating memory"}},
		{name: "exits, and refuses initialize without naming its versions", end: `echo "no database" >&2; exit 3`, refusal: unknown,
			says: []string{"srv: ", "(server/discover)", "exit code 3", "no database", "started again", "refuses initialize", "-32601"}},
		{name: "exits at any first request", end: `echo "no database" >&2; exit 3`,
			says: []string{"srv: ", "(initialize)", "exit code 3", "no database"}},
		{name: "exits once", end: `exit 3`, refusal: refused, once: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := filepath.Join(t.TempDir(), "first")
			end := c.end
			if c.once {
				end = fmt.Sprintf("[ -e %s ] || { : > %[1]s; %s; }", first, c.end)
			}
			refuse := c.end
			if c.refusal != "" {
				refuse = fmt.Sprintf(`printf '{"jsonrpc":"2.0","id":%%s,"error":%%s}\n' "$id" '%s'`, c.refusal)
			}
			script := fmt.Sprintf(`while read -r line; do
id=$(printf %%s "$line" | sed 's/.*"id":\([^,}]*\).*/\1/')
case "$line" in
*'"server/discover"'*) %s
printf '{"jsonrpc":"2.0","id":%%s,"result":%%s}\n' "$id" '%s';;
*'"initialize"'*) %s;;
esac
done`, end, discovered, refuse)
			ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
			defer stop()
			cl, err := Connect(ctx, Options{Name: "srv", ProbeTimeout: time.Minute,
				Dialer: &transport.Stdio{Command: "sh", Args: []string{"-c", script}, Env: os.Environ(), Grace: 300 * time.Millisecond}})
			if c.once {
				if err != nil {
					t.Fatal(err)
				}
				if i := cl.Info(); i.Generation != taskmodel.GenExtension && i.Era != eraModern {
					t.Errorf("%+v", i)
				}
				if err := cl.Close(ctx, true); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("it is connected")
			}
			var exit *transport.ExitError
			if !errors.As(err, &exit) || !errors.Is(err, ErrClosed) {
				t.Errorf("the end of the program is lost: %v", err)
			}
			for _, w := range c.says {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "-32022") {
				t.Errorf("it tells what is no news: %q", err)
			}
		})
	}
}
