// Package screentest runs the real program in-process on a terminal emulator,
// under testing/synctest, so that hours of clocks pass in milliseconds and each
// run draws the same screens. A Terminal types and presses keys, waits for
// text, and compares whole screens with golden files; Monitor is a stand-in
// with a board that tests fill by hand.
//
// It is for tests and for package screenshots. It imports the emulator, the
// monitor's values, taskmodel and board; it never imports package ui, which its
// callers start.
package screentest
