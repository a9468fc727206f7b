package theme

import (
	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
)

// Glyph and word of each status; each glyph is one cell wide.
const (
	GlyphInput     = "?"
	GlyphWorking   = "●"
	GlyphQueued    = "◌"
	GlyphDone      = "✓"
	GlyphFailed    = "✗"
	GlyphCancelled = "–"
	GlyphUnknown   = "◍"
)

// OfStatus gives a status its glyph, its word and its style. A word that no
// generation defines is shown as the server wrote it, sanitised.
func (t *Theme) OfStatus(s taskmodel.Status) (glyph, word string, style Style) {
	switch s {
	case taskmodel.InputRequired:
		return GlyphInput, "input needed", t.Status.Input
	case taskmodel.Working:
		return GlyphWorking, "working", t.Status.Working
	case taskmodel.Submitted:
		return GlyphQueued, "submitted", t.Status.Queued
	case taskmodel.Completed:
		return GlyphDone, "completed", t.Status.Done
	case taskmodel.Failed:
		return GlyphFailed, "failed", t.Status.Failed
	case taskmodel.Cancelled:
		return GlyphCancelled, "cancelled", t.Status.Cancelled
	case taskmodel.Unknown:
		return GlyphUnknown, "unknown", t.Status.Unknown
	case "":
		return GlyphUnknown, "no status", t.Status.Unknown
	}
	return GlyphUnknown, safe.Line(string(s)), t.Status.Unknown
}

// OfServer gives a connection's state its glyph, its word and its style.
func (t *Theme) OfServer(s taskmodel.ServerState) (glyph, word string, style Style) {
	switch s {
	case taskmodel.ServerReady:
		return "●", "ready", t.Status.Done
	case taskmodel.ServerConnecting:
		return "◌", "connecting", t.Status.Queued
	case taskmodel.ServerRetrying:
		return "◌", "retrying", t.Warn
	case taskmodel.ServerAuth:
		return "?", "sign in", t.Status.Input
	case taskmodel.ServerOff:
		return "–", "off", t.Status.Cancelled
	case taskmodel.ServerFailed:
		return "✗", "failed", t.Status.Failed
	}
	return "◍", safe.Line(string(s)), t.Status.Unknown
}
