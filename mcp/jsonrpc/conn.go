package jsonrpc

import (
	"context"
	"encoding/json"
)

// An ID is a JSON-RPC id kept in its own spelling: 1 and "1" and 1.0 are three
// ids, and what a peer sent is echoed byte for byte. The zero value is no id.
type ID string

// String gives the id as it stands on the wire, quotes included.
func (id ID) String() string { return string(id) }

// An Outgoing is one message on its way out, with what a transport must know
// of it beside its bytes.
type Outgoing struct {
	Bytes  json.RawMessage // the whole message, one line, no newline
	Kind   Kind
	ID     ID     // requests and responses
	Method string // requests and notifications
	Name   string // for the Mcp-Name header: the tool, or the task id on tasks/*; "" when none
	// Header holds further HTTP header fields for this request
	// (Mcp-Param-*, MCP-Protocol-Version); stdio ignores it.
	Header map[string]string
	// InReplyTo is, for a response, the id of the peer's request.
	InReplyTo ID
}

// Kind is what a message is.
type Kind int

const (
	KindInvalid Kind = iota
	KindRequest
	KindNotification
	KindResponse
)

// A Conn carries whole JSON-RPC messages in both directions. All methods are
// safe for concurrent use.
type Conn interface {
	// Start begins to deliver what arrives to sink, until the connection ends.
	// sink is called from the connection's own goroutines, possibly several at
	// once (one HTTP stream each), and must not block.
	Start(ctx context.Context, sink Sink) error
	// Send writes one message. For a request, ctx governs the request's whole
	// life: when it ends before the answer came, a stream that belongs to that
	// request alone (Streamable HTTP) is dropped; on stdio nothing happens. Send
	// itself returns as soon as the message has been taken (stdio: written;
	// HTTP: the POST has been handed to its own goroutine). When the transport
	// later finds that the answer to a request cannot come (HTTP status, broken
	// stream that cannot be resumed), it calls Sink.Failed with that id.
	Send(ctx context.Context, m Outgoing) error
	// Close ends the connection within ctx: stdio closes stdin, waits, then
	// SIGTERM and SIGKILL to the whole process group; HTTP sends DELETE when
	// the session is to be ended (see the transport's options).
	Close(ctx context.Context) error
	// Done is closed when the connection has ended; Err then says why in words
	// (exit code and stderr's tail, for stdio).
	Done() <-chan struct{}
	Err() error
}

// A Sink takes what a Conn receives.
type Sink interface {
	// Message is called with one whole JSON text. stream names the stream that
	// it came on ("stdio", "get", "post 7", "listen 9"), for the wire log and
	// for questions that belong to the request whose stream it is: req is that
	// request's id, or "" when the stream belongs to none.
	Message(b json.RawMessage, stream string, req ID)
	// Failed says that the request id will get no answer.
	Failed(id ID, err error)
	// Noise is something that is no message: a log line on stdout, a heartbeat.
	Noise(kind string, b []byte)
}
