// Package transport carries JSON-RPC messages: stdio, Streamable HTTP in both
// its eras, and the legacy HTTP+SSE transport. Each is a jsonrpc.Conn.
//
// It imports jsonrpc and the standard library, on Windows also golang.org/x/sys for
// job objects; sign-in is in its sub-package signin. It never reads
// what a message means beyond its kind, id and method, and never retries a
// request that could have had an effect.
package transport
