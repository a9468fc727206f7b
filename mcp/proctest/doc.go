// Package proctest is what tests of real processes share: the built program,
// what a process has started, terminals, and waiting for any of it.
//
// It is for tests, and imports the standard library and x/sys only.
package proctest
