package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// JSON-RPC and MCP error codes that are looked at here.
const (
	codeInvalidRequest  = -32600
	codeMethodNotFound  = -32601
	codeInvalidParams   = -32602
	codeInternal        = -32603
	codeURLElicitation  = -32042
	codeUserRejected    = -1 // sampling, 2025-11-25 client/sampling
	codeHeaderMismatch  = -32020
	codeMissingCaps     = -32021
	codeUnsupportedVers = -32022
)

// rpcErrorOf finds the JSON-RPC error in err, also one that came in the body
// of an HTTP error. The body of an answer that is about the session or the
// sign-in is no answer to the request and does not count.
func rpcErrorOf(err error) *taskmodel.RPCError {
	if errors.Is(err, ErrSessionLost) || errors.Is(err, ErrAuth) {
		return nil
	}
	var own *taskmodel.RPCError
	if errors.As(err, &own) {
		return own
	}
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		var st *transport.StatusError
		if !errors.As(err, &st) || st.RPC == nil {
			return nil
		}
		e = st.RPC
	}
	return &taskmodel.RPCError{Code: e.Code, Message: e.Message, Data: e.Data}
}

// codeOf is the JSON-RPC error's code, 0 when err is none.
func codeOf(err error) int {
	if e := rpcErrorOf(err); e != nil {
		return e.Code
	}
	return 0
}

// statusOf is the HTTP status in err, 0 when there is none.
func statusOf(err error) int {
	var st *transport.StatusError
	if errors.As(err, &st) {
		return st.Status
	}
	return 0
}

// lostSession reports whether err says that the server does not know our HTTP
// session (2025-11-25 basic/transports, session management: 404; many servers
// answer 400 and name the session). Without a session, and in the modern era,
// which has none, a 404 is something else.
func (s *session) lostSession(err error) bool {
	var st *transport.StatusError
	if s.modern.Load() || !errors.As(err, &st) {
		return false
	}
	if s.getInfo().Session == "" {
		return false
	}
	switch st.Status {
	case http.StatusNotFound:
		return true
	case http.StatusBadRequest:
		return strings.Contains(strings.ToLower(string(st.Body)), "session")
	}
	return false
}

// wantsSignIn reports whether the server refused us for want of a sign-in.
func wantsSignIn(err error) bool {
	if errors.Is(err, transport.ErrSignIn) {
		return true
	}
	var st *transport.StatusError
	if !errors.As(err, &st) {
		return false
	}
	return st.Status == http.StatusUnauthorized ||
		st.Status == http.StatusForbidden && st.Header.Get("WWW-Authenticate") != ""
}

// soundsUnknown reports whether the server's words say that it does not know a
// task; a code alone does not tell that from other wrong parameters.
func soundsUnknown(message string) bool {
	m := strings.ToLower(message)
	for _, w := range []string{"not found", "unknown", "expired", "no such", "does not exist", "doesn't exist", "not exist", "no task", "invalid task"} {
		if strings.Contains(m, w) {
			return true
		}
	}
	return false
}

// soundsTerminal reports whether the server's words say that a task has ended.
func soundsTerminal(message string) bool {
	m := strings.ToLower(message)
	for _, w := range []string{"terminal", "already", "completed", "finished", "cancelled", "ended"} {
		if strings.Contains(m, w) {
			return true
		}
	}
	return false
}

// mentionsTask reports whether the server's words are about tasks.
func mentionsTask(message string) bool { return strings.Contains(strings.ToLower(message), "task") }

// urlElicitation reads error -32042 (2025-11-25 client/elicitation, "URL
// Elicitation Required Error"); nil when e is not that or names no page.
func urlElicitation(e *taskmodel.RPCError) *URLElicitationError {
	if e.Code != codeURLElicitation {
		return nil
	}
	u := &URLElicitationError{Err: e}
	elements(member(e.Data, "elicitations"), func(v json.RawMessage) bool {
		if url := stringAt(v, "url"); url != "" {
			u.Elicitations = append(u.Elicitations, URLElicitation{
				ID: stringAt(v, "elicitationId"), URL: url, Message: stringAt(v, "message"),
			})
		}
		return true
	})
	if len(u.Elicitations) == 0 {
		return nil
	}
	return u
}
