// Package board is the table of all tasks of all servers. A Board is owned by
// one goroutine (the monitor's): it takes observations in and gives events
// out, and publishes immutable Versions that any goroutine may read. A View
// filters, sorts, groups and pages one Version after another at a cost that
// follows what changed.
//
// It imports taskmodel, a persistent tree, and the standard library. It has no
// clock (callers pass now), does no I/O and knows no screen.
package board
