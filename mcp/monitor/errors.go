package monitor

import (
	"errors"
	"fmt"

	"mcptasks/taskmodel"
)

// Errors that callers tell apart with errors.Is, beside those of package mcp.
// Their texts are parts of sentences; what the methods return names the server.
var (
	// ErrStopped: the monitor has ended.
	ErrStopped = errors.New("mcptasks is stopping")
	// ErrReadonly: the monitor may not start, answer or cancel anything.
	ErrReadonly = errors.New("refused: mcptasks runs read-only")
	// ErrNoServer: no server of this name is configured.
	ErrNoServer = errors.New("no such server")
	// ErrNoTask: no such task is on the board.
	ErrNoTask = errors.New("no such task is known here")
	// ErrGone: the server does not know the task any more.
	ErrGone = errors.New("the task is gone")
	// ErrUnreachable: the server cannot be asked at present.
	ErrUnreachable = errors.New("not reachable")
	// ErrNoQuestion: no such question is open.
	ErrNoQuestion = errors.New("no such question is open")
	// ErrUnconfirmed: something was sent and it is not known what became of it.
	ErrUnconfirmed = errors.New("sent, outcome unknown")
)

// A stateError is a sentence with a kind for errors.Is and the cause below it.
type stateError struct {
	words string
	kind  error
	cause error
}

func (e *stateError) Error() string { return e.words }

func (e *stateError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

func sentence(kind, cause error, format string, args ...any) error {
	return &stateError{words: fmt.Sprintf(format, args...), kind: kind, cause: cause}
}

func noServer(name string) error {
	return sentence(ErrNoServer, nil, "no server is called %q; `mcptasks servers` lists those that are configured", name)
}

func noTask(k taskmodel.Key) error {
	return sentence(ErrNoTask, nil, "%s: no such task is known here; take it up with `mcptasks add %s %s`", k, k.Server, k.ID)
}
