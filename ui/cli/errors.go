package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mcptasks/mcp"
	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
)

// Exit codes, as the contract has them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitNotFound    = 4
	exitReadonly    = 5
	exitInput       = 6
	exitTimeout     = 7
	exitInterrupted = 130
	exitPipe        = 141 // as a shell reports the end by SIGPIPE
)

// An Error is what a command ends with: a kind that fixes the exit code and a
// sentence for a person.
type Error struct {
	Kind    string
	Message string
	Server  string
}

func (e *Error) Error() string { return e.Message }

var exitOf = map[string]int{
	"usage": exitUsage, "config": exitUsage, "unreachable": exitUnreachable, "auth": exitUnreachable, "protocol": exitFailed,
	"not_found": exitNotFound, "readonly": exitReadonly, "input_needed": exitInput, "timeout": exitTimeout, "failed": exitFailed,
	"interrupted": exitInterrupted,
}

func usagef(format string, args ...any) error {
	return &Error{Kind: "usage", Message: fmt.Sprintf(format, args...)}
}

func failf(kind, server, format string, args ...any) error {
	return &Error{Kind: kind, Server: server, Message: fmt.Sprintf(format, args...)}
}

// classify gives any error its kind.
func classify(err error, server string) *Error {
	var e *Error
	var rpc *taskmodel.RPCError
	var pages *mcp.URLElicitationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, errInterrupted):
		return &Error{Kind: "interrupted", Message: "interrupted", Server: server}
	case errors.Is(err, monitor.ErrUnconfirmed) && errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: "timeout", Message: err.Error(), Server: server} // what was sent is said
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: "timeout", Message: "the time for it is over; --timeout gives more", Server: server}
	case errors.Is(err, context.Canceled), errors.Is(err, monitor.ErrStopped):
		return &Error{Kind: "interrupted", Message: "interrupted", Server: server}
	case errors.Is(err, monitor.ErrReadonly):
		return &Error{Kind: "readonly", Message: err.Error(), Server: server}
	case errors.Is(err, monitor.ErrNoServer):
		return &Error{Kind: "usage", Message: err.Error(), Server: server}
	case errors.Is(err, mcp.ErrNotFound), errors.Is(err, monitor.ErrNoTask):
		return &Error{Kind: "not_found", Message: err.Error(), Server: server}
	case errors.Is(err, mcp.ErrAuth):
		return &Error{Kind: "auth", Message: err.Error(), Server: server}
	case errors.Is(err, mcp.ErrClosed), errors.Is(err, mcp.ErrSessionLost), errors.Is(err, monitor.ErrUnreachable):
		return &Error{Kind: "unreachable", Message: err.Error(), Server: server}
	case errors.As(err, &pages):
		return &Error{Kind: "input_needed", Message: pageWords(pages, server), Server: server}
	case errors.As(err, &rpc):
		return &Error{Kind: "protocol", Message: err.Error(), Server: server}
	}
	return &Error{Kind: "failed", Message: err.Error(), Server: server}
}

// pageWords tells a person which pages to visit before the call is made again
// (2025-11-25 client/elicitation, URL Elicitation Required Error). Nothing is
// opened, and the call is not repeated by itself.
func pageWords(e *mcp.URLElicitationError, server string) string {
	var pages []string
	for _, u := range e.Elicitations {
		v := safe.JudgeURL(u.URL)
		page := v.Full
		if !v.OK {
			page += " (do not open it: " + v.Why + ")"
		}
		if m := safe.Line(u.Message); m != "" {
			page = m + " " + page
		}
		pages = append(pages, page)
	}
	return fmt.Sprintf("%s wants this visited first, and then the same call again: %s", orElse(server, "the server"), strings.Join(pages, "; "))
}

var errInterrupted = errors.New("interrupted")

// worse gives the exit code that wins where several apply.
func worse(a, b int) int {
	for _, c := range []int{exitInterrupted, exitReadonly, exitUsage, exitUnreachable, exitNotFound, exitInput, exitTimeout, exitFailed} {
		if a == c || b == c {
			return c
		}
	}
	return exitOK
}

// report writes one error on stderr, in one line unless a file has several
// faults, and gives its exit code.
func (r *run) report(err error, server string) int {
	e := classify(err, server)
	if e == nil {
		return exitOK
	}
	if r.g.Output == "json" || r.g.Output == "jsonl" {
		body := map[string]string{"kind": e.Kind, "message": e.Message}
		if e.Server != "" {
			body["server"] = e.Server
		}
		if e.Kind == "interrupted" {
			body["kind"] = "failed"
		}
		b, _ := json.Marshal(map[string]any{"error": body})
		b = safe.JSON(b)
		fmt.Fprintln(r.env.Stderr, string(b))
	} else {
		text := []string{e.Message}
		if e.Kind == "config" { // each fault of a file has a line
			text = strings.Split(e.Message, "\n")
		}
		for _, line := range text {
			msg := safe.Line(line)
			if e.Server != "" && !strings.Contains(msg, e.Server) {
				msg = e.Server + ": " + msg
			}
			fmt.Fprintln(r.env.Stderr, "mcptasks: "+msg)
		}
	}
	return exitOf[e.Kind]
}
