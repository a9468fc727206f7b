// Package tap stands between an agent and its MCP server, passes every byte,
// and reads along: the tasks of a session that is not ours become rows of the
// journal, where mcptasks shows them. When a person asks, it acts on them in
// the agent's session.
//
// Passing comes first. What passes is copied into a bounded queue and read by
// one goroutine; when that is behind, it is reading that is dropped, never
// traffic, and nothing ever waits for the journal.
//
//   - stdio.go starts the server and joins its pipes with the agent's; pass.go
//     moves the bytes; process_*.go sees to signals and to what is left behind
//   - proxy.go and its neighbours do the same for HTTP
//   - queue.go is what lies between passing and reading; read.go makes messages
//     of bytes and gives them to mcp.Observer, which knows the wire
//   - record.go keeps the tasks and writes them down
//   - acts.go carries out what a person asks for; answer.go is --answer
//
// It imports mcp, jsonrpc, transport, taskmodel and its journal's interface. It
// knows no screen and writes nothing to stdout and stderr but what passes.
package tap
