package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// A StatusError is an HTTP answer that is no success.
type StatusError struct {
	Status int
	// Body is the beginning of what the server sent: 64 KiB of JSON, 200 bytes
	// of anything else.
	Body []byte
	// Header is the answer's header, without cookies.
	Header http.Header
	// RetryAfter is how long the server asks to be left alone; 0 says nothing.
	RetryAfter time.Duration
	// RPC is the JSON-RPC error in the body, if there was one.
	RPC *jsonrpc.Error
}

// Error says what the server answered.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	if http.StatusText(e.Status) == "" {
		s = fmt.Sprintf("the server answered status %d", e.Status)
	}
	switch {
	case e.RPC != nil:
		s += ": " + e.RPC.Error()
	case e.Status >= 300 && e.Status < 400 && e.Header.Get("Location") != "":
		s += " to " + e.Header.Get("Location") + ", which is not followed"
	default:
		if t := strings.TrimSpace(string(e.Body)); t != "" && !strings.HasPrefix(t, "<") && !strings.HasPrefix(t, "{") {
			s += ": " + strings.ToValidUTF8(t, "\uFFFD")
		}
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf("; it asks to wait %s", e.RetryAfter.Round(time.Second))
	}
	return s
}

// Unwrap gives the JSON-RPC error, for errors.As.
func (e *StatusError) Unwrap() error {
	if e.RPC == nil {
		return nil
	}
	return e.RPC
}

// Message is the JSON-RPC error in the body, for the wire log.
func (e *StatusError) Message() (b []byte, fault string) {
	if e.RPC == nil {
		return nil, ""
	}
	return e.Body, strings.TrimSpace(fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status)))
}

// A NotSentError says that nothing of a message went out, for there was no
// connection to send it on: it has asked for nothing, and may be sent again. Of
// other errors it is open whether the server has the message.
type NotSentError struct {
	// At is the host that the connection was to lead to.
	At string
	// Err says why there was none.
	Err error
}

// Error says why there was no connection.
func (e *NotSentError) Error() string { return e.Err.Error() }

// Unwrap gives what kept the connection from being made.
func (e *NotSentError) Unwrap() error { return e.Err }

// Why is the reason without what was being done about it, as part of a sentence.
func (e *NotSentError) Why() string {
	var op *net.OpError
	switch {
	case errors.As(e.Err, &op) && op.Op == "dial":
		at := e.At
		if op.Addr != nil {
			at = op.Addr.String()
		}
		return at + " cannot be reached, " + op.Err.Error()
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
		return e.At + " was not reached in time"
	}
	return e.Err.Error()
}

// An attempt hears whether a request came to have a connection. The transport
// sends one again by itself where none of it went out; the last try counts.
type attempt struct{ asked, got atomic.Bool }

func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn:      func(string) { a.asked.Store(true); a.got.Store(false) },
		GotConn:      func(httptrace.GotConnInfo) { a.got.Store(true) },
		WroteHeaders: func() { a.got.Store(true) },
	}
}

// unsent reports whether nothing went out. Of a client that does not tell
// (no *http.Transport) it is not known, which is no.
func (a *attempt) unsent() bool { return a.asked.Load() && !a.got.Load() }

// ErrSignIn marks errors of an Authorizer: no request was made, or none is
// worth making, before somebody signs in or mends the token's source.
var ErrSignIn = errors.New("sign-in needed")

// ErrTryLater marks errors of Authorizer.Challenge that nobody can mend by
// signing in: the authorization server is down.
var ErrTryLater = errors.New("try again later")

// authError is what an Authorizer returned, marked.
type authError struct{ err error }

func (e authError) Error() string   { return e.err.Error() }
func (e authError) Unwrap() []error { return []error{e.err, ErrSignIn} }

// An Authorizer signs requests. It is safe for concurrent use.
type Authorizer interface {
	// Header gives the fields that every request carries (Authorization).
	Header(ctx context.Context) (http.Header, error)
	// Challenge is called when the server answered 401 or 403 with header h. It
	// says whether the request is worth repeating, once. It must not ask a
	// person; what it returns as err ends the request.
	Challenge(ctx context.Context, status int, h http.Header) (retry bool, err error)
}
