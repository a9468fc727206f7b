// Package guard gives the terminal back whatever happens to the program that
// took it. While the screens run a second, idle process of the same binary
// waits at a pipe. When the program ends in good order it says so and the
// guard ends too; when it dies (a panic in any goroutine, a fatal error of the
// runtime, SIGKILL) the pipe ends without that word: the guard sets the
// terminal as it was, shows what the program said last, and ends the process
// groups of servers that it has left behind.
//
// Its tests are those of the whole built program: what a terminal, a hostile
// server and a search for secrets find.
//
// It imports ui/safe, ui/cli/lean, the standard library and golang.org/x/sys. It draws nothing while the
// program lives, and reads nothing that is typed.
package guard
