// Package cli is the command line: the same monitor as the screens, without
// them. Every command reads what it needs from a published board and prints one
// answer on stdout; logs, notes and errors go to stderr.
//
// It imports cobra, package ui (for the monitor's interface), taskmodel and its
// parts. It reads no configuration and opens no connection itself: main hands
// those in as Deps. It never writes escape codes.
package cli
