// Package detail is one task as panes: what is known of it at a glance, its
// result, the messages around it, its raw JSON and its messages on the wire. It
// stands beside the list on wide windows and fills the screen otherwise.
//
// It imports kit, act, theme, safe, list (for our words on a task), wirelog and
// taskmodel. It does no I/O: the root feeds it what the monitor keeps.
package detail
