package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// initialize does the handshake of the legacy era (2025-11-25
// basic/lifecycle): the version asked for, then whatever older one the server
// answers that we know.
func (h *handshake) initialize(ctx context.Context, s *session, version string) error {
	s.setInfo(func(i *Info) { i.Era, i.ProtocolVersion = eraLegacy, "" })
	var b json.RawMessage
	for again := range 2 {
		var err error
		b, err = s.call(ctx, "initialize", map[string]any{
			"protocolVersion": version,
			"capabilities":    h.capabilities(),
			"clientInfo":      s.clientInfo(),
		}, "", nil)
		if err == nil {
			break
		}
		// "Version Negotiation": -32602 with the versions it knows in data.
		e := rpcErrorOf(err)
		if again > 0 || e == nil || !isArray(member(e.Data, "supported")) || e.Code == codeUnsupportedVers {
			return err
		}
		v, legacy, ok := choose(strings_(member(e.Data, "supported")))
		if !ok || !legacy || v == version {
			return err
		}
		version = v
	}
	got := stringAt(b, "protocolVersion")
	if !slices.Contains(legacyVersions, got) && !(h.o.Generation == taskmodel.GenDraft && strings.HasPrefix(strings.ToUpper(got), "DRAFT")) {
		return s.wrap("opening the connection", fmt.Errorf("it answered with the protocol version %q; mcptasks knows %s",
			clip([]byte(got)), strings.Join(legacyVersions, ", ")))
	}
	h.introduced(s, b)
	if err := s.notify(ctx, "notifications/initialized", nil, nil); err != nil {
		return err
	}
	return h.generation(ctx, s)
}

// introduced keeps what an InitializeResult says.
func (h *handshake) introduced(s *session, b json.RawMessage) {
	session := h.o.Session
	if c, ok := s.conn.(interface{ SessionID() string }); ok && c.SessionID() != "" {
		session = c.SessionID()
	}
	if session != "" {
		s.tag = connectionTag(session)
	}
	if c, ok := s.conn.(interface{ SetVersion(string) }); ok {
		// MCP-Protocol-Version on every later request (basic/transports,
		// "Protocol Version Header").
		c.SetVersion(stringAt(b, "protocolVersion"))
	}
	s.setInfo(func(i *Info) {
		i.Era, i.ProtocolVersion = eraLegacy, stringAt(b, "protocolVersion")
		i.ServerName, i.ServerVersion = stringAt(b, "serverInfo", "name"), stringAt(b, "serverInfo", "version")
		i.Instructions = stringAt(b, "instructions")
		i.Capabilities, i.Init, i.Session = member(b, "capabilities"), b, session
	})
}

// capabilities are what we declare in initialize. The draft has no receiver's
// side here: a server's task-augmented request is answered plainly there.
func (h *handshake) capabilities() map[string]any {
	none := map[string]any{}
	c := map[string]any{"sampling": none}
	requests := map[string]any{"sampling": map[string]any{"createMessage": none}}
	if !h.o.NoElicitation {
		c["elicitation"] = map[string]any{"form": none, "url": none}
		requests["elicitation"] = map[string]any{"create": none}
	}
	if h.o.Roots != nil {
		c["roots"] = map[string]any{"listChanged": true}
	}
	if h.receives() {
		c["tasks"] = map[string]any{"list": none, "cancel": none, "requests": requests}
	}
	return c
}

// receives reports whether we offer to run a server's requests as tasks.
func (h *handshake) receives() bool {
	return !h.o.NoReceiver && h.o.Generation != taskmodel.GenDraft && h.o.Generation != taskmodel.GenNone
}

// generation settles which generation of tasks a legacy server speaks.
func (h *handshake) generation(ctx context.Context, s *session) error {
	info := s.getInfo()
	gen := taskmodel.GenNone
	switch {
	case h.o.Generation != "":
		gen = h.o.Generation
		if gen == taskmodel.GenExtension {
			gen = taskmodel.GenNone
		}
	case info.ProtocolVersion == versionCore:
		if isObject(member(info.Capabilities, "tasks")) {
			gen = taskmodel.GenCore
		}
	default:
		gen = h.older(ctx, s)
	}
	s.setInfo(func(i *Info) { i.Generation = gen })
	if gen == taskmodel.GenDraft {
		h.c.gen.set(newDraft(s))
		return nil
	}
	h.c.gen.set(newCore(s, h.receives()))
	return nil
}

// older finds out whether a server below 2025-11-25 has tasks: if it answers
// tasks/list, it speaks the draft, unless its names are those of 2025-11-25.
func (h *handshake) older(ctx context.Context, s *session) taskmodel.Generation {
	pctx, stop := context.WithTimeout(ctx, probeTasks)
	defer stop()
	b, err := s.call(pctx, "tasks/list", map[string]any{}, "", nil)
	if err != nil || !isArray(member(b, "tasks")) {
		return taskmodel.GenNone
	}
	gen := taskmodel.GenDraft
	elements(member(b, "tasks"), func(v json.RawMessage) bool {
		switch {
		case member(v, "keepAlive") != nil || member(v, "pollFrequency") != nil:
			gen = taskmodel.GenDraft
			return false
		case member(v, "ttl") != nil || member(v, "createdAt") != nil:
			gen = taskmodel.GenCore
		}
		return true
	})
	return gen
}

// resume takes up an earlier HTTP session: no initialize, but a ping, so that
// a session that is not known any more is found out here (ErrSessionLost).
func (h *handshake) resume(ctx context.Context) (*session, error) {
	if d, ok := h.o.Dialer.(*transport.HTTP); ok {
		// The dialer of the configuration knows of no session.
		again := *d
		again.Session, again.Version = h.o.Session, h.o.Version
		h.o.Dialer = &again
	}
	s, err := h.open(ctx, eraLegacy)
	if err != nil {
		return nil, err
	}
	keepSession(s.conn, true) // a failure here must not end it
	h.introduced(s, h.o.SessionInit)
	s.setInfo(func(i *Info) {
		i.Session = h.o.Session
		if h.o.Version != "" {
			i.ProtocolVersion = h.o.Version
		}
	})
	if _, err := s.call(ctx, "ping", nil, "", nil); err != nil {
		switch status := statusOf(err); {
		case errors.Is(err, ErrAuth), errors.Is(err, ErrSessionLost):
			return h.orClose(s, err)
		case status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
			// Whatever its reason, it does not let us go on with this session: it
			// may be somebody else's, or of what the server was before.
			return h.orClose(s, withKind(err, ErrSessionLost))
		case status != 0 || rpcErrorOf(err) == nil:
			return h.orClose(s, err)
		}
	}
	if err := h.generation(ctx, s); err != nil {
		return h.orClose(s, err)
	}
	s.reopen(h.o.Asked)
	return s, nil
}

// keepSession says whether closing the connection leaves its HTTP session
// alive on the server; other connections have none.
func keepSession(c jsonrpc.Conn, keep bool) {
	if k, ok := c.(interface{ KeepSession(bool) }); ok {
		k.KeepSession(keep)
	}
}
