package mcp

// The two eras of MCP (2026-07-28 basic/versioning, "Terminology"), and the
// transport of 2024-11-05 beside them, as Dialer.Dial takes them.
const (
	eraModern = "modern"
	eraLegacy = "legacy"
	eraSSE    = "sse"
)

// Protocol versions, newest first.
const (
	versionModern = "2026-07-28"
	versionCore   = "2025-11-25"
	versionDraft  = "2025-06-18" // the one that SEP-1686 was written on
)
