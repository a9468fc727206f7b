//go:build linux

package e2e

import (
	"flag"
	"os"
	"testing"

	"mcptasks/mcp/proctest"
)

// program is the built mcptasks.
var program string

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		os.Exit(conformanceClient(os.Args[1:]))
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		// The peers' own pace is what most of the time goes into.
		_ = f.Value.Set("8")
	}
	os.Exit(proctest.Run(m, &program))
}
