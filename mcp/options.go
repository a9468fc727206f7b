package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// Options say how to connect to one server.
type Options struct {
	Name   string // the server's name, for errors, keys and questions
	Dialer Dialer // makes connections for the era that is being tried

	// Era forces "modern" (2026-07-28) or "legacy" (initialize); "" finds it.
	Era string
	// Generation forces one generation; "" finds it. GenNone uses no tasks.
	Generation taskmodel.Generation
	// NoSSE keeps an HTTP server that answers 400, 404 or 405 from being tried
	// over HTTP+SSE: the person has said that it is Streamable HTTP.
	NoSSE bool
	// MaxDepth is how deeply the JSON of a message may nest; 0 is
	// jsonrpc.DefaultMaxDepth.
	MaxDepth int
	// ProbeTimeout bounds the server/discover probe on stdio; 0 is 3 s.
	ProbeTimeout time.Duration

	ClientName    string // "mcptasks"
	ClientVersion string

	Roots func() []Root // nil: roots are not declared

	// Session and Version take up an earlier HTTP session (2025-11-25) without
	// a new initialize; a server that no longer knows it makes Connect return
	// ErrSessionLost.
	Session     string
	Version     string
	SessionInit json.RawMessage // the InitializeResult that was kept with it
	// Asked are questions that were asked over Session before: those that it
	// asked indeed go to Handler.Asked again and can be answered, the others are
	// passed over. A server may hand a question out once; a later run has it
	// from nowhere else.
	Asked         []taskmodel.Question
	Receiver      ReceiverLimits
	NoReceiver    bool // do not declare the receiver's side of tasks
	NoElicitation bool // headless runs that can ask nobody still declare it; tests may not
	Handler       Handler
	Log           *slog.Logger
	DraftWait     time.Duration // how long to wait for the draft's created notification; 0 is 2 s
}

// A Root is one root as roots/list gives it.
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// ReceiverLimits bound what a server may ask us to run (2025-11-25). Zero
// values are the defaults that the README states.
type ReceiverLimits struct {
	MaxTTL     time.Duration // 24 h
	DefaultTTL time.Duration // 1 h
	MaxTasks   int           // 32 unfinished per server
	PageSize   int           // 50
	PerSecond  int           // 50 calls
}

// A Dialer makes connections to one server. Package transport has one per kind.
type Dialer interface {
	// Dial connects for the given era: "modern", "legacy" (stdio, Streamable
	// HTTP) or "sse" (the HTTP+SSE transport of 2024-11-05).
	Dial(ctx context.Context, era string) (jsonrpc.Conn, error)
	// Kind is "stdio" or "http".
	Kind() string
}
