// Package taskmodel says what an MCP task is: plain values and pure rules.
//
// It holds the values that travel between the protocol (package mcp and
// below), the monitor and the screens: Task, Snapshot, Question, Server, Tool,
// WireEntry and Event, and the one function that merges what a server says
// into what is known of a task (Merge).
//
// It imports the standard library only. It has no clock (callers pass now), no
// Bubble Tea, no wire names, and does no I/O; its sub-package journal is the
// one room with a door to the disk.
//
// All text in these values that came from a server is raw: whoever shows it
// passes it through the sanitiser of package ui/safe first.
package taskmodel
