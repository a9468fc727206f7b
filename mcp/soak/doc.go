// Package soak holds the long test: many scripted servers that fail at random,
// watched by the real monitor with a person at it, and a model of what truly
// happened, with which the board is compared in the end. The time is that of
// testing/synctest, so that a wave of half an hour passes in seconds; a second
// test does the same with real child processes on the real clock.
//
//	MCPTASKS_SOAK=10m go test ./mcp/soak -run Soak -timeout 30m -v
//	MCPTASKS_SOAK_SEED=16 go test ./mcp/soak -run Soak -v
//
// Without MCPTASKS_SOAK it is one short wave. The seed is printed; with it the
// faults come again, as far as the scheduler lets them.
//
// It may import everything; nothing may import it. It has no code of its own.
package soak
