package mcp

import (
	"context"
	"encoding/json"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// inbound hears the server on one connection: the generation is asked first,
// what it does not take is treated here, the same in all of them.
type inbound struct {
	c *Client
	s *session
}

// Request answers a request of the server. Everything that needs no person is
// answered at once, also while a question is open; a method that we do not
// know is -32601 (field fault T6).
func (in *inbound) Request(ctx context.Context, r *jsonrpc.Request) {
	s := in.s
	if s.modern.Load() {
		// A modern server sends no requests and a client writes no responses
		// (2026-07-28 basic/transports/stdio). It stands in the wire log.
		s.log.Warn("a request came from a server of the modern era, which may send none", "server", s.server(), "method", r.Method)
		r.Cancel()
		return
	}
	if r.Method == methodSampling && wantsTools(r.Params) {
		// sampling.tools is not declared, since a person writes the completion and
		// calls no tools; the schema of 2025-11-25 then wants an error
		// (CreateMessageRequestParams, "tools"). Nor is sampling.context: there is
		// no context of other servers to include.
		s.failNow(ctx, r, codeInvalidParams, "mcptasks does not declare sampling.tools: it takes no request with tools or toolChoice")
		return
	}
	if g := in.c.gen.get(); g != nil && g.request(ctx, r) {
		return
	}
	switch r.Method {
	case "ping":
		s.replyNow(ctx, r, echoed(r, nil))
	case methodRoots:
		if s.opts.Roots == nil {
			s.failNow(ctx, r, codeMethodNotFound, "mcptasks has no roots for this server")
			return
		}
		roots := s.opts.Roots()
		if roots == nil {
			roots = []Root{}
		}
		s.replyNow(ctx, r, echoed(r, map[string]any{"roots": roots}))
	case methodElicit:
		if s.opts.NoElicitation {
			s.failNow(ctx, r, codeMethodNotFound, "elicitation is not supported here")
			return
		}
		switch mode := stringAt(r.Params, "mode"); mode {
		case "", "form", "url":
			s.ask(r, s.calls.tool(r.On))
		default:
			// client/elicitation, "Error Handling": a mode not declared.
			s.failNow(ctx, r, codeInvalidParams, "unknown elicitation mode: "+clip([]byte(mode)))
		}
	case methodSampling:
		s.ask(r, s.calls.tool(r.On))
	default:
		s.failNow(ctx, r, codeMethodNotFound, "Method not found: "+clip([]byte(r.Method)))
	}
}

// echoed adds the request's related-task metadata to what answers it.
func echoed(r *jsonrpc.Request, result map[string]any) map[string]any {
	if m := relatedTask(r.Params).meta(); m != nil {
		if result == nil {
			result = map[string]any{}
		}
		result["_meta"] = m
	}
	return result
}

// replyNow answers without keeping the connection's goroutine waiting.
func (s *session) replyNow(ctx context.Context, r *jsonrpc.Request, result any) {
	if m, ok := result.(map[string]any); ok && m == nil {
		result = nil
	}
	go func() {
		if err := r.Reply(ctx, result); err != nil {
			s.log.Debug("could not answer", "server", s.server(), "method", r.Method, "err", err)
		}
	}()
}

// failNow answers with an error, likewise.
func (s *session) failNow(ctx context.Context, r *jsonrpc.Request, code int, message string) {
	go func() {
		if err := r.Fail(ctx, &jsonrpc.Error{Code: code, Message: message}); err != nil {
			s.log.Debug("could not answer", "server", s.server(), "method", r.Method, "err", err)
		}
	}()
}

// Notification passes on what the server tells.
func (in *inbound) Notification(n jsonrpc.Notification) {
	s := in.s
	if g := in.c.gen.get(); g != nil {
		if g.notification(n) {
			return
		}
		if n.Method == notifyDraftCreated && in.c.becomeDraft(s, "it sent "+n.Method) {
			in.c.gen.get().notification(n)
			return
		}
	}
	switch n.Method {
	case "notifications/progress":
		s.progress(n.Params)
	case "notifications/message":
		s.logged(n)
	case "notifications/tools/list_changed":
		s.tools.forget()
		s.handler().ToolsChanged()
	case "notifications/elicitation/complete":
		if id := stringAt(n.Params, "elicitationId"); id != "" {
			s.handler().ElicitationComplete(id)
		}
	case "notifications/cancelled":
		s.cancelled(n.Params)
	default:
		if rel := relatedTask(n.Params); rel.task != "" {
			s.handler().Log(taskmodel.LogLine{At: time.Now(), Level: "other", Logger: n.Method, Text: string(n.Bytes), Task: rel.task})
		}
	}
}

// Noise is in the wire log already.
func (in *inbound) Noise(kind string, b []byte) {
	in.s.log.Debug("noise on the connection", "server", in.s.server(), "kind", kind, "bytes", len(b))
}

// notifyDraftCreated is the notification that only the draft has.
const notifyDraftCreated = "notifications/tasks/created"

// logged passes a notifications/message on. Its data may be any JSON; a string
// is shown as such.
func (s *session) logged(n jsonrpc.Notification) {
	l := taskmodel.LogLine{
		At: time.Now(), Level: stringAt(n.Params, "level"), Logger: stringAt(n.Params, "logger"),
		Task: relatedTask(n.Params).task,
	}
	switch data := member(n.Params, "data"); {
	case isString(data):
		l.Text = text(data)
	case isObject(data) && stringAt(data, "message") != "" && onlyMember(data, "message"):
		l.Text = stringAt(data, "message")
	default:
		l.Text = string(data)
	}
	s.handler().Log(l)
}

func onlyMember(b []byte, name string) bool {
	only := true
	members(b, func(k string, _ json.RawMessage) bool {
		only = only && k == name
		return only
	})
	return only
}

// cancelled takes back a request of the server (2025-11-25
// basic/utilities/cancellation). Unknown and answered ones are ignored.
func (s *session) cancelled(params json.RawMessage) {
	raw := member(params, "requestId")
	if raw == nil {
		return
	}
	id := jsonrpc.ID(raw)
	if r, ok := s.peer.Incoming(id); ok {
		r.Cancel()
	}
	why := "the server withdrew it"
	if reason := stringAt(params, "reason"); reason != "" {
		why += ": " + reason
	}
	s.withdraw(id, why)
}
