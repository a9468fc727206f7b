package monitor

import (
	"encoding/json"
	"errors"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// errorKinds are the errors that stay findable by errors.Is when another
// process met them; the names are what the journal holds.
var errorKinds = map[string]error{
	"unsupported": mcp.ErrUnsupported, "not_found": mcp.ErrNotFound, "session_lost": mcp.ErrSessionLost, "auth": mcp.ErrAuth,
	"terminal": mcp.ErrTerminal, "not_negotiated": mcp.ErrNotNegotiated, "task_required": mcp.ErrTaskRequired, "closed": mcp.ErrClosed,
	"readonly": ErrReadonly, "unreachable": ErrUnreachable, "unconfirmed": ErrUnconfirmed,
}

// actFailure is what the holder writes down beside an act's error in words.
type actFailure struct {
	Kinds []string            `json:"kinds,omitempty"`
	RPC   *taskmodel.RPCError `json:"rpc,omitempty"`
}

func describeFailure(err error) json.RawMessage {
	var f actFailure
	for name, kind := range errorKinds {
		if errors.Is(err, kind) {
			f.Kinds = append(f.Kinds, name)
		}
	}
	errors.As(err, &f.RPC)
	b, merr := json.Marshal(f)
	if merr != nil {
		return nil
	}
	return b
}

// An actError is an error that another process met for us.
type actError struct {
	words string
	is    []error
}

func (e *actError) Error() string   { return e.words }
func (e *actError) Unwrap() []error { return e.is }

// readFailure makes the holder's error one that can be told apart like our own.
func readFailure(words string, detail json.RawMessage) error {
	e := &actError{words: words}
	var f actFailure
	if json.Unmarshal(detail, &f) != nil {
		return e
	}
	for _, name := range f.Kinds {
		if kind := errorKinds[name]; kind != nil {
			e.is = append(e.is, kind)
		}
	}
	if f.RPC != nil {
		if pages := mcp.URLElicitations(f.RPC); pages != nil {
			e.is = append(e.is, pages)
		} else {
			e.is = append(e.is, f.RPC)
		}
	}
	return e
}
