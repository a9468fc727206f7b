// Package survive tries the built program's memory as a whole: it is killed
// again and again, runs several times at once, and finds its disk full,
// read-only or damaged, while a scripted server keeps a record of all that it
// is sent. It holds tests only. They import what they look with (journal) and
// what they serve with (demo), never the program's own rooms.
package survive
