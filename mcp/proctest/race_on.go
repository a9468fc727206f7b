//go:build race

package proctest

// Race says whether the race detector is in this binary: what it makes too slow
// runs without it.
const Race = true
