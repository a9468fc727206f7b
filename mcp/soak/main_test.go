package soak

import (
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		os.Exit(serve())
	}
	goleak.VerifyTestMain(m)
}

// length is how long the soak goes on, by the clock on the wall; 0 is one short
// wave.
func length(t *testing.T) time.Duration {
	t.Helper()
	v := os.Getenv("MCPTASKS_SOAK")
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("MCPTASKS_SOAK: %v", err)
	}
	return d
}

// number is a setting from the environment.
func number(t *testing.T, name string, def int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s: %q is no number above 0", name, v)
	}
	return n
}
