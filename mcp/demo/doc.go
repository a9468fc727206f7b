// Package demo is the built-in MCP server: believable long-running work on
// each of the three generations of tasks, served in process, over stdio and
// over HTTP.
//
// It is strict. It refuses what the specification of its generation refuses,
// so that it can stand as a fixture in the tests of a client. Its side of the
// wire is its own: of the client's packages it uses the jsonrpc.Conn interface
// and the in-memory pipe alone, so that a fault in the client's peer cannot hide behind the same
// fault here.
//
// The work is one engine of jobs (engine.go, job.go) that knows no wire. What
// the jobs do is in the files work_*.go. Each generation has one file for its
// wire names and rules: core.go, draft.go, extension.go. A server is one
// authorization context: every session of it sees all of its tasks, as a
// server for a single user does. It grants a TTL of 24 hours at most (a
// keepAlive in the draft), lets clients have 2,000 tasks unfinished, lists 50
// on a page, and keeps no task beyond its TTL.
//
// It imports jsonrpc, transport for the pipe, taskmodel for the generations' names, a JSON Schema
// validator and the standard library. It never writes anywhere but to its
// connections and the logger it was given.
package demo
