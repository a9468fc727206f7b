// Package ui is the terminal user interface: one Bubble Tea model at the root,
// plain components below it (packages list, detail, servers, wirelog, inbox,
// start, formview, resultview), a stack of dialogs over them.
//
// It imports keymap, the monitor's and taskmodel's values, and the components.
// It never calls a server and does no I/O in Update: every effect is a command
// that calls a method of Monitor, and one goroutine forwards the monitor's
// dirty flag to the program. Everything that came from a server passes package
// safe before it is laid out.
package ui
