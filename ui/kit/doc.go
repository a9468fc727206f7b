// Package kit is what the screens are built from: the environment that every
// screen draws in, the virtual table, the line editor, the pager for text, and
// the ways in which times, sizes and progress are written.
//
// It imports graphics, theme, safe, keymap, act and taskmodel. Nothing in it does I/O or
// reads a clock: the environment carries now.
package kit
