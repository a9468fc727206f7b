// Package mcp speaks to one server: it finds the server's era, negotiates, and
// offers the three generations of tasks behind one interface, Tasks. Each
// generation is one file (draft.go, core.go, extension.go); its wire names and
// its peculiarities are there and nowhere else.
//
// It imports jsonrpc, transport and taskmodel. It never retries on its own
// account, keeps no memory beyond the connection, and knows no screen; the
// monitor does the first two.
package mcp
