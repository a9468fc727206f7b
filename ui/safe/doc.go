// Package safe makes text that came from a server fit to be laid out on a
// terminal. It is the one place that does so: whoever draws remote text passes
// it through Line or Text first, and whoever copies, saves or logs it keeps the
// raw bytes.
//
// After Line and Text a string holds no control byte, no escape sequence, no
// C1, no bidirectional control and no zero-width character other than those
// that belong to a visible one (combining marks, emoji joiners), so that Width
// is what the terminal will use. Line gives one line; Text keeps line breaks.
//
// JudgeURL says what a person should know before opening a URL that a server
// gave; it opens nothing.
//
// It imports the standard library and the width tables; it never styles text.
package safe
