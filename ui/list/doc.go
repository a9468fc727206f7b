// Package list is the list of tasks over all servers: a virtual table over a
// board.View, its columns, filter line, marks, groups and empty states.
//
// It imports kit, act, theme, safe, keymap, board and taskmodel. It does no
// I/O: what the person wants comes out as actions, and a filter over many rows
// as a command whose message comes back to Update.
package list
