// Package jsonrpc is one JSON-RPC 2.0 peer over one connection: calls both
// ways, notifications, cancellation. It knows nothing of MCP but that one
// message is one JSON object; the transports are in package transport.
//
// It imports the standard library only.
package jsonrpc
