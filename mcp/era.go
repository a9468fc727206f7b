package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// The two eras of MCP (2026-07-28 basic/versioning, "Terminology"), and the
// transport of 2024-11-05 beside them, as Dialer.Dial takes them.
const (
	eraModern = "modern"
	eraLegacy = "legacy"
	eraSSE    = "sse"
)

// Protocol versions.
const (
	versionModern = "2026-07-28"
	versionCore   = "2025-11-25"
	versionDraft  = "2025-06-18" // the one that SEP-1686 was written on
)

// legacyVersions are those that initialize may settle on, newest first.
var legacyVersions = []string{versionCore, versionDraft, "2025-03-26", "2024-11-05", "2024-10-07"}

// Waits of the handshake that are ours; everything else lasts as long as the
// caller's context.
const (
	probeStdio  = 3 * time.Second  // server/discover on stdio; Options.ProbeTimeout
	probeHTTP   = 10 * time.Second // the same over HTTP, where silence is rare
	probeTasks  = 3 * time.Second  // tasks/list on a server below 2025-11-25
	lateProbe   = time.Second      // for a probe's answer after initialize was refused
	closeFailed = 3 * time.Second  // closing a connection that leads nowhere
)

// handshake finds the era of one server and opens a session in it.
type handshake struct {
	o Options
	c *Client
}

// errLegacy says that the server does not speak the modern era; errVersions
// that it does but in no version of ours.
var errLegacy = errors.New("the server does not speak " + versionModern)

// run gives a session that is ready to be used, or an error in words. Nothing
// is left open on an error.
func (h *handshake) run(ctx context.Context) (*session, error) {
	if h.o.Session != "" {
		return h.resume(ctx)
	}
	switch h.era() {
	case eraModern:
		s, err := h.open(ctx, eraModern)
		if err != nil {
			return nil, err
		}
		return h.orClose(s, h.modern(ctx, s))
	case eraLegacy:
		s, err := h.legacy(ctx, versionFor(h.o))
		return s, err
	case eraSSE:
		return h.sse(ctx)
	}
	if h.o.Dialer.Kind() == "http" {
		return h.findHTTP(ctx)
	}
	return h.findStdio(ctx)
}

// era is the era that the options force, "" when it is to be found.
func (h *handshake) era() string {
	if h.o.Era != "" && h.o.Era != "auto" {
		return h.o.Era
	}
	switch h.o.Generation {
	case taskmodel.GenExtension:
		return eraModern
	case taskmodel.GenCore, taskmodel.GenDraft:
		return eraLegacy
	}
	return ""
}

// versionFor is the version to ask for in initialize.
func versionFor(o Options) string {
	if o.Generation == taskmodel.GenDraft {
		return versionDraft
	}
	return versionCore
}

// open dials and starts a connection; no message has passed yet.
func (h *handshake) open(ctx context.Context, era string) (*session, error) {
	conn, err := h.o.Dialer.Dial(ctx, era)
	if err != nil {
		s := newSession(h.o, nil, "")
		return nil, s.wrap("connecting", err)
	}
	kind := h.o.Dialer.Kind()
	if era == eraSSE {
		kind, era = "sse", eraLegacy
	}
	s := newSession(h.o, conn, kind)
	s.setInfo(func(i *Info) { i.Era, i.Transport, i.Generation = era, kind, taskmodel.GenNone })
	s.peer = jsonrpc.NewPeer(conn, &inbound{c: h.c, s: s}, jsonrpc.PeerOptions{Log: h.o.Log, Traffic: s.traffic, MaxDepth: h.o.MaxDepth, IDs: freshIDs(h.o)})
	if err := s.peer.Start(ctx); err != nil {
		h.close(s)
		return nil, s.wrap("connecting", err)
	}
	return s, nil
}

// freshIDs makes the ids of a session that is taken up again: they must be none
// that its earlier connections used (2025-11-25 basic, "Requests"), some of
// which may still be unanswered. nil where the session is new.
func freshIDs(o Options) func() jsonrpc.ID {
	if o.Session == "" {
		return nil
	}
	prefix := uuid.NewString()[:8]
	var last atomic.Int64
	return func() jsonrpc.ID { return jsonrpc.StringID(fmt.Sprintf("%s-%d", prefix, last.Add(1))) }
}

// orClose closes the session when there is an error.
func (h *handshake) orClose(s *session, err error) (*session, error) {
	if err != nil {
		h.close(s)
		return nil, err
	}
	return s, nil
}

func (h *handshake) close(s *session) {
	ctx, stop := context.WithTimeout(context.Background(), closeFailed)
	defer stop()
	if err := s.peer.Close(ctx); err != nil {
		h.o.Log.Debug("closing a connection", "server", h.o.Name, "err", err)
	}
}

// A probed is what a server/discover came to.
type probed struct {
	result json.RawMessage
	err    error
}

// probe sends server/discover in the given version.
func (h *handshake) probe(ctx context.Context, s *session, version string) probed {
	params, header := s.modernRequest(nil, true, version)
	b, err := s.call(ctx, "server/discover", params, "", header)
	return probed{b, err}
}

// verdict says what a probe's answer means (2026-07-28
// basic/transports/stdio, "Backward Compatibility"): a DiscoverResult or a
// recognised modern error gives the versions to choose from; anything else is
// errLegacy. It does not go by one code alone, since old servers answer an
// unknown request with whatever they like.
func verdict(p probed) (versions []string, result json.RawMessage, err error) {
	if p.err == nil {
		if list := member(p.result, "supportedVersions"); isArray(list) {
			return strings_(list), p.result, nil
		}
		return nil, nil, errLegacy
	}
	if v := namedVersions(p.err); v != nil {
		return v, nil, nil
	}
	return nil, nil, errLegacy
}

// namedVersions are the versions that an UnsupportedProtocolVersionError names,
// nil when err is no such error.
func namedVersions(err error) []string {
	e := rpcErrorOf(err)
	if e == nil || e.Code != codeUnsupportedVers {
		return nil
	}
	list := member(e.Data, "supported")
	if !isArray(list) {
		return nil
	}
	return strings_(list)
}

// modernError reports whether err is a modern error that is about the request
// and not the version: the server is modern, and initialize would not help.
func modernError(err error) bool {
	e := rpcErrorOf(err)
	if e == nil {
		return false
	}
	switch e.Code {
	case codeHeaderMismatch:
		return statusOf(err) == http.StatusBadRequest
	case codeMissingCaps:
		return isObject(member(e.Data, "requiredCapabilities"))
	}
	return false
}

// strings_ reads an array of strings.
func strings_(list json.RawMessage) []string {
	out := []string{}
	elements(list, func(v json.RawMessage) bool {
		if isString(v) {
			out = append(out, text(v))
		}
		return true
	})
	return out
}

// choose takes the newest version that both sides speak; legacy says that it
// is one for initialize.
func choose(versions []string) (version string, legacy, ok bool) {
	if slices.Contains(versions, versionModern) {
		return versionModern, false, true
	}
	for _, v := range legacyVersions {
		if slices.Contains(versions, v) {
			return v, true, true
		}
	}
	return "", false, false
}

// settle goes on from the versions that a modern answer named.
func (h *handshake) settle(ctx context.Context, s *session, versions []string, result json.RawMessage) (*session, error) {
	version, legacy, ok := choose(versions)
	if ok && !legacy && h.hasOlderTasks(versions, result) {
		version, legacy = versionCore, true
	}
	switch {
	case !ok:
		return h.orClose(s, s.wrap("opening the connection", fmt.Errorf("it speaks the protocol versions %s, mcptasks speaks %s and %s",
			strings.Join(versions, ", "), versionModern, strings.Join(legacyVersions, ", "))))
	case legacy && h.o.Dialer.Kind() == "http":
		h.close(s)
		return h.legacy(ctx, version)
	case legacy:
		return h.orClose(s, h.initialize(ctx, s, version))
	case result == nil:
		// It named the version; the next answer holds what it can do.
		p := h.probe(ctx, s, version)
		if p.err != nil {
			return h.orClose(s, p.err)
		}
		result = p.result
	}
	return h.orClose(s, h.becomeModern(s, version, result))
}

// hasOlderTasks reports whether a server of both eras has tasks only in the
// older one: it declares the capability of 2025-11-25 and not the extension.
func (h *handshake) hasOlderTasks(versions []string, result json.RawMessage) bool {
	caps := member(result, "capabilities")
	return h.o.Generation == "" && slices.Contains(versions, versionCore) &&
		isObject(member(caps, "tasks")) && memberAt(caps, "extensions", extensionTasks) == nil
}

// modern opens the modern era where it is forced.
func (h *handshake) modern(ctx context.Context, s *session) error {
	p := h.probe(ctx, s, versionModern)
	versions, result, err := verdict(p)
	if err != nil {
		if p.err != nil {
			return p.err
		}
		return s.wrap("opening the connection", fmt.Errorf("%w: its answer to server/discover names no versions", errLegacy))
	}
	if !slices.Contains(versions, versionModern) {
		return s.wrap("opening the connection", fmt.Errorf("%w; it speaks %s", errLegacy, strings.Join(versions, ", ")))
	}
	if result == nil {
		return p.err
	}
	return h.becomeModern(s, versionModern, result)
}

// becomeModern makes the session a modern one, from a DiscoverResult.
func (h *handshake) becomeModern(s *session, version string, result json.RawMessage) error {
	s.modern.Store(true)
	server := memberAt(result, "_meta", metaServerInfo)
	s.setInfo(func(i *Info) {
		i.Era, i.ProtocolVersion = eraModern, version
		i.ServerName, i.ServerVersion = stringAt(server, "name"), stringAt(server, "version")
		i.Instructions = stringAt(result, "instructions")
		i.Capabilities, i.Init = member(result, "capabilities"), result
	})
	h.c.gen.set(newExtension(s))
	return nil
}

// findStdio probes a program with server/discover, for a bounded time, and
// falls back to initialize in the same process. A program that does not
// survive the unknown request is started again and not probed.
func (h *handshake) findStdio(ctx context.Context) (*session, error) {
	s, err := h.open(ctx, eraModern)
	if err != nil {
		return nil, err
	}
	wait := h.o.ProbeTimeout
	if wait <= 0 {
		wait = probeStdio
	}
	answer := make(chan probed, 1)
	pctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { answer <- h.probe(pctx, s, versionModern) }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var p probed
	late := false
	select {
	case p = <-answer:
	case <-timer.C:
		late = true // a slow start, or an old server that says nothing
	case <-ctx.Done():
		return h.orClose(s, s.wrap("opening the connection", context.Cause(ctx)))
	}
	if !late {
		versions, result, err := verdict(p)
		switch {
		case err == nil:
			return h.settle(ctx, s, versions, result)
		case modernError(p.err):
			return h.orClose(s, p.err)
		case errors.Is(p.err, ErrClosed) || s.ended():
			return h.revive(ctx, s, p.err)
		case ctx.Err() != nil:
			return h.orClose(s, p.err)
		}
	}
	err = h.initialize(ctx, s, versionCore)
	if err != nil && late && rpcErrorOf(err) != nil {
		// It was only slow: a modern server refuses initialize, and its
		// answer to the probe came before.
		timer.Reset(lateProbe)
		select {
		case p = <-answer:
			if versions, result, verr := verdict(p); verr == nil {
				return h.settle(ctx, s, versions, result)
			}
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err != nil {
		if v := namedVersions(err); v != nil {
			return h.settle(ctx, s, v, nil)
		}
	}
	if err != nil && (s.ended() || errors.Is(err, ErrClosed)) && ctx.Err() == nil {
		// It answered the probe, or had not seen it yet, and did not get over it.
		return h.revive(ctx, s, err)
	}
	return h.orClose(s, err)
}

// revive starts a program again that ended at server/discover or soon after,
// with err, and initializes it: an old one may not survive a request that it
// does not know. Where the new process refuses initialize it was no old one:
// it is asked in the modern era if it names that, and else how the first one
// ended is what there is to tell, not a refusal that only follows from it.
func (h *handshake) revive(ctx context.Context, s *session, err error) (*session, error) {
	if !errors.Is(err, ErrClosed) { // an answer, and then the end
		err = s.wrap(doing("server/discover", ""), cmp.Or(s.peer.Err(), jsonrpc.ErrClosed))
	}
	h.o.Log.Info("the server ended at server/discover; starting it again", "server", h.o.Name, "err", err)
	h.close(s)
	s, oerr := h.open(ctx, eraLegacy)
	if oerr != nil {
		return nil, oerr
	}
	again := h.initialize(ctx, s, versionCore)
	refusal := rpcErrorOf(again)
	switch {
	case again == nil:
		return s, nil
	case slices.Contains(namedVersions(again), versionModern):
		return h.settle(ctx, s, []string{versionModern}, nil)
	case refusal != nil:
		again = &sessionError{server: h.o.Name, doing: doing("server/discover", ""), err: ErrClosed, cause: err,
			words: fmt.Sprintf("%s; started again, it refuses initialize (error %d: %s)", wordsOf(err), refusal.Code, refusal.Message)}
	}
	return h.orClose(s, again)
}

// wordsOf is what happened, without the server's name and what was being done.
func wordsOf(err error) string {
	var e *sessionError
	if errors.As(err, &e) {
		return e.words
	}
	return err.Error()
}

// findHTTP sends a modern request first, looks at what came back before it
// falls back to initialize (2026-07-28 basic/transports/streamable-http,
// "Backward Compatibility"), and from there, on 400, 404 or 405, to HTTP+SSE.
func (h *handshake) findHTTP(ctx context.Context) (*session, error) {
	s, err := h.open(ctx, eraModern)
	if err != nil {
		return nil, err
	}
	pctx, stop := context.WithTimeout(ctx, probeHTTP)
	p := h.probe(pctx, s, versionModern)
	stop()
	versions, result, verr := verdict(p)
	if verr == nil {
		return h.settle(ctx, s, versions, result)
	}
	if ctx.Err() != nil || modernError(p.err) || unreachable(p.err) {
		return h.orClose(s, p.err)
	}
	h.close(s)
	old, err := h.legacy(ctx, versionCore)
	if err != nil && statusOf(p.err) == http.StatusNotFound && codeOf(p.err) == codeMethodNotFound && codeOf(err) != 0 {
		// 404 with -32601 is how a modern server says that it has no such
		// method: one without server/discover, which it should have.
		if s, oerr := h.open(ctx, eraModern); oerr == nil {
			h.o.Log.Warn("the server speaks "+versionModern+" without server/discover", "server", h.o.Name)
			return h.orClose(s, h.becomeModern(s, versionModern, json.RawMessage(`{"capabilities":{"tools":{}}}`)))
		}
	}
	return old, err
}

// unreachable reports whether there is no point in trying an older protocol:
// there is no server, or it wants a sign-in, or it wants to be left alone.
func unreachable(err error) bool {
	switch status := statusOf(err); status {
	case 0:
		return codeOf(err) == 0 && !errors.Is(err, context.DeadlineExceeded) && err != nil
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusForbidden:
		return wantsSignIn(err)
	}
	return false
}

// legacy opens a connection and initializes it; over HTTP it goes on to
// HTTP+SSE where the server answers 400, 404 or 405.
func (h *handshake) legacy(ctx context.Context, version string) (*session, error) {
	s, err := h.open(ctx, eraLegacy)
	if err != nil {
		return nil, err
	}
	err = h.initialize(ctx, s, version)
	if err == nil {
		return s, nil
	}
	h.close(s)
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		if v := namedVersions(err); v != nil && h.era() == "" && slices.Contains(v, versionModern) {
			if s, oerr := h.open(ctx, eraModern); oerr == nil {
				return h.settle(ctx, s, v, nil)
			}
			return nil, err
		}
		if h.o.NoSSE {
			return nil, err
		}
		if old, serr := h.sse(ctx); serr == nil {
			return old, nil
		} else if errors.Is(serr, ErrAuth) {
			return nil, serr
		}
	}
	return nil, err
}

// sse opens the HTTP+SSE transport of 2024-11-05.
func (h *handshake) sse(ctx context.Context) (*session, error) {
	s, err := h.open(ctx, eraSSE)
	if err != nil {
		return nil, err
	}
	return h.orClose(s, h.initialize(ctx, s, versionFor(h.o)))
}
