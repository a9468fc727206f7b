// Package e2e tries the built program as a person and a script do: by its
// command line, against servers that nobody here wrote and against its own
// demo servers. It holds tests only. The peers are those that mcp/peers installs;
// without them the demo servers alone are tried. It runs on Linux, whose /proc
// tells which processes are left.
package e2e
