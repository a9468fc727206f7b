// Package mcp speaks to one server: it finds the server's era, negotiates, and
// offers the three generations of tasks behind one interface, Tasks. Each
// generation has files of its own (draft, core, extension); its wire names and
// its peculiarities are there and nowhere else.
//
//   - client.go is what callers hold; session.go what the generations share
//   - era.go and initialize.go find out what a server speaks
//   - core.go is 2025-11-25 with us as requestor, receiver.go with us as receiver
//   - questions.go, tokens.go, calls.go, tools.go: open questions, progress
//     tokens, calls in flight, the tools as last listed
//   - fields.go and scan.go read a task, leniently and told
//   - inbound.go hears the server; wire.go writes the wire log
//
// It imports jsonrpc, transport and taskmodel. It never retries on its own
// account, keeps no memory beyond the connection, and knows no screen; the
// monitor does the first two.
package mcp
