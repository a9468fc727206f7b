package monitor

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// This file learns from the outcome of requests how a server fares.

// heard learns from the outcome of any request. It is told by those who made
// it, on the loop.
func (s *server) heard(conn int, err error) {
	if conn != s.conn || s.client == nil {
		return
	}
	now := s.m.now()
	switch {
	case errors.Is(err, mcp.ErrSessionLost):
		// One new session for all who wait; what they read is read again.
		s.drop(false)
		s.renew(err)
		return
	case errors.Is(err, mcp.ErrAuth):
		s.drop(false)
		s.authNeeded(err)
		return
	case answered(err):
		if s.holds > 0 {
			s.hold, s.holds, s.probing = time.Time{}, 0, false
			s.change(func(r *taskmodel.Server) { r.Attempts = 0 })
			s.state(taskmodel.ServerReady, "")
			s.arm()
		}
		if err == nil {
			return
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, mcp.ErrUnsupported),
		errors.Is(err, mcp.ErrClosed), errors.Is(err, mcp.ErrNotFound), errors.Is(err, mcp.ErrTerminal), errors.Is(err, mcp.ErrNotNegotiated):
		// Not about the server as a whole, or told by the connection's end.
	case connectionFault(err):
		if s.holds > 0 && now.Before(s.hold) {
			return // an answer to what was sent before
		}
		wait := s.m.backoff(s.holds, retryFirst, retryMost)
		s.holds++
		s.probing = false
		s.hold = now.Add(wait)
		s.change(func(r *taskmodel.Server) { r.RetryAt, r.Attempts = s.hold, s.holds })
		s.state(taskmodel.ServerRetrying, err.Error())
		s.arm()
		s.m.alarms.set(s.checker, s.hold)
	}
	if after := retryAfter(err); after > 0 {
		if until := now.Add(after); until.After(s.paced) {
			s.paced = until
			s.change(func(r *taskmodel.Server) { r.PacedUntil = until })
			s.arm()
		}
	}
}

// renew makes a new session in place of a lost one, at once. A server that
// forgets the new one too as soon as it was given is tried again later, as one
// that fails (field fault T1).
func (s *server) renew(err error) {
	now := s.m.now()
	s.forgetSession()
	if now.Sub(s.since) >= steady {
		s.attempts = 0
	}
	again := !s.renewed.IsZero() && now.Sub(s.renewed) < steady
	s.renewed = now
	if again {
		s.again(err)
		return
	}
	s.dial()
}

// recheck asks a server that failed whether it is back: by a poll where there is
// something to poll, whenever that is due, else by a ping.
func (s *server) recheck() {
	m, now := s.m, s.m.now()
	if s.client == nil || s.holds == 0 {
		return
	}
	if b := s.blocked(); now.Before(b) {
		m.alarms.set(s.checker, b)
		return
	}
	// A check that is never answered is not the last one.
	m.alarms.set(s.checker, now.Add(pollTimeout+retryFirst))
	if !m.paused.Load() && len(s.due)+len(s.urgent) > 0 {
		s.probe()
		return
	}
	c, ctx, conn := s.client, s.connCtx, s.conn
	m.spawn(func() {
		ctx, stop := context.WithTimeout(ctx, pollTimeout)
		err := c.Ping(ctx)
		stop()
		m.post(func() { s.heard(conn, err) })
	})
}

// answered reports whether the server has given an answer, if only an error:
// then it is well.
func answered(err error) bool {
	if err == nil || isRPC(err) {
		return true
	}
	var st *transport.StatusError
	return errors.As(err, &st) && !connectionFault(err)
}

// isRPC reports whether the server answered with a JSON-RPC error.
func isRPC(err error) bool {
	var rpc *taskmodel.RPCError
	return errors.As(err, &rpc) && !connectionFault(err)
}

// connectionFault reports whether an error is about reaching the server, so
// that other requests would fare no better. An answer that is late, or cannot
// be read, is about what was asked.
func connectionFault(err error) bool {
	var st *transport.StatusError
	if errors.As(err, &st) {
		return st.Status == 429 || st.Status >= 500
	}
	var network net.Error
	var cert *tls.CertificateVerificationError
	var errno syscall.Errno
	return errors.As(err, &network) || errors.As(err, &cert) || errors.As(err, &errno) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// notVisible reports whether the server refuses to show something to whom we are
// signed in as, rather than not knowing it.
func notVisible(err error) bool {
	var st *transport.StatusError
	if errors.As(err, &st) {
		return st.Status == http.StatusForbidden
	}
	var rpc *taskmodel.RPCError
	if !errors.As(err, &rpc) {
		return false
	}
	m := strings.ToLower(rpc.Message)
	for _, w := range []string{"forbidden", "access denied", "permission denied", "not authorized", "unauthorized", "not allowed to"} {
		if strings.Contains(m, w) {
			return true
		}
	}
	return false
}

// unreachable reports whether an error says nothing of what the server speaks:
// it was not there, wants a sign-in, or wants to be left alone.
func unreachable(err error) bool {
	var st *transport.StatusError
	switch {
	case errors.Is(err, mcp.ErrAuth), errors.Is(err, context.Canceled):
		return true
	case errors.As(err, &st):
		return st.Status == 429 || st.Status >= 500 && st.Status != 501
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return true
	}
	return !isRPC(err) && !errors.Is(err, mcp.ErrClosed) && !errors.Is(err, context.DeadlineExceeded)
}

// retryAfter is how long the server wants to be left alone; 0 when it does not say.
func retryAfter(err error) time.Duration {
	var st *transport.StatusError
	if errors.As(err, &st) {
		return st.RetryAfter
	}
	return 0
}
