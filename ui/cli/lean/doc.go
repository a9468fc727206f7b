// Package lean keeps a program small that is open all day: it gives the system
// back the memory that is not used any more, and the pages of the program's own
// file that only its start has needed.
//
// It imports the standard library and golang.org/x/sys. It frees nothing that
// anybody holds, and where a system lacks the means it does nothing.
package lean
