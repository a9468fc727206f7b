//go:build linux

package guard

import (
	"os"
	"testing"

	"mcptasks/mcp/proctest"
)

// program is the built mcptasks.
var program string

func TestMain(m *testing.M) {
	switch {
	case Is(os.Args):
		os.Exit(Main())
	case os.Getenv(asPanic) != "":
		panics()
	}
	os.Exit(proctest.Run(m, &program))
}
