// Package journal keeps what must outlive the process, the connection and the
// server's TTL, in one SQLite file: handles, transitions, questions and
// drafts, results, sessions, leases and the audit trail.
//
// It imports taskmodel, modernc.org/sqlite and the standard library. It is the
// one room of taskmodel with a door to the disk, never decides what a status
// means, and is never the cause of a failed start: Open returns an error in
// words and the program runs without memory.
package journal
