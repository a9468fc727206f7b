package mcp

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrUnsupported: this generation or this server has no such operation.
	ErrUnsupported = errors.New("not supported by this server")
	// ErrNotFound: the server does not know the task.
	ErrNotFound = errors.New("the server does not know this task")
	// ErrSessionLost: the server does not know our session any more (HTTP 404
	// or 400 naming the session).
	ErrSessionLost = errors.New("the server does not know this session any more")
	// ErrAuth: the server wants a sign-in (HTTP 401, or 403 with a challenge).
	ErrAuth = errors.New("sign-in needed")
	// ErrTerminal: too late, the task has ended (cancel).
	ErrTerminal = errors.New("the task has already ended")
	// ErrNotNegotiated: tasks are not negotiated on this connection (-32021,
	// or -32601 on tasks/get, in the extension).
	ErrNotNegotiated = errors.New("tasks are not negotiated here")
	// ErrTaskRequired: the tool must be called as a task.
	ErrTaskRequired = errors.New("this tool runs only as a task")
	// ErrNotWanted is the cause of a context's end by which a caller gives up a
	// request while the connection goes on: the server is told
	// (notifications/cancelled), so that it does not put questions beside an
	// answer that nobody waits for.
	ErrNotWanted = errors.New("the answer is not wanted any more")
	// ErrClosed: the connection has ended before the answer came.
	ErrClosed = errors.New("the connection ended")
)

// A URLElicitationError is error -32042 (2025-11-25): the call needs the person
// to visit URLs first and may then be repeated.
type URLElicitationError struct {
	Elicitations []URLElicitation
	Err          error
}

// A URLElicitation is one URL of a URLElicitationError.
type URLElicitation struct {
	ID      string
	URL     string
	Message string
}

func (e *URLElicitationError) Error() string {
	return fmt.Sprintf("the server wants %d page(s) visited first: %v", len(e.Elicitations), e.Err)
}

func (e *URLElicitationError) Unwrap() error { return e.Err }
