// Package faults holds the tests in which the whole house below the screens is
// put in front of servers that go wrong: the matrix of faults and operations,
// the faults seen in the field over both transports, the soak, and what the
// built program leaves behind (processes, terminals, secrets).
//
// FAULTS.md in the folder above is written by the matrix' test:
//
//	go test ./mcp/faults -run TestMatrix -update
//
// It may import everything; nothing may import it. It has no code of its own.
package faults
