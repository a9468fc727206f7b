package transport

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"mcptasks/mcp/jsonrpc"
)

// TLS are the settings of a server's TLS connections.
type TLS struct {
	CAFile     string // PEM, trusted beside the system's
	ClientCert string // PEM
	ClientKey  string // PEM
	Insecure   bool   // do not verify the server at all
}

// HTTP speaks to a server at a URL: Streamable HTTP of 2025-11-25 and before
// ("legacy"), of 2026-07-28 ("modern"), and HTTP+SSE of 2024-11-05 ("sse").
type HTTP struct {
	URL        string      // http, https, or unix:///path/to.sock?path=/mcp
	Header     http.Header // added to every request to the server's own origin
	Client     *http.Client
	TLS        TLS
	Auth       Authorizer
	Log        *slog.Logger
	MaxMessage int64 // bytes in one message; 0 is 64 MiB
	// Session and Version take up an earlier session (legacy).
	Session string
	Version string
	// KeepSession says at Close whether the session must live on: then no
	// DELETE is sent. nil: it need not.
	KeepSession func() bool
}

// Kind is "http".
func (h *HTTP) Kind() string { return "http" }

// Dial makes a connection for one era; nothing is sent by it but in "sse".
func (h *HTTP) Dial(ctx context.Context, era string) (jsonrpc.Conn, error) {
	return nil, errors.New("not there yet")
}
