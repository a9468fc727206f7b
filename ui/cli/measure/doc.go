// Command measure runs mcptasks, and beside it the terminal UI of
// @modelcontextprotocol/inspector, on the same scripted servers and the same
// pseudo-terminal, in turns, and prints a table of medians and spreads in
// Markdown. README's section "Measurements" holds such a table.
//
//	go run ./ui/cli/measure [-inspector FOLDER] [-rounds 11] [-only REGEXP]
//
// FOLDER is one in which `npm install @modelcontextprotocol/inspector@2.12.0`
// was run; without it the Inspector's columns stay empty. Figures of processes
// are those of Linux's /proc. It is a tool for developers: nothing imports it,
// and it knows mcptasks by its command line alone.
package main
