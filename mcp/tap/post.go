package tap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/transport"
)

// send posts a message of ours the way that the agent's last one went: with its
// session and its sign-in. The answer to a request is read beside the caller.
func (p *proxy) send(ctx context.Context, m jsonrpc.Outgoing, name string) error {
	c := p.convs.get(name)
	if c == nil {
		return errEnded
	}
	way := c.way()
	if way == nil {
		return errors.New("the agent has sent nothing yet that ours could follow")
	}
	// The answer may take as long as a task; the caller's patience ends the wait
	// and not the request, whose answer is read in any case.
	req, err := http.NewRequestWithContext(p.t.ctx, http.MethodPost, way.url, bytes.NewReader(m.Bytes))
	if err != nil {
		return err
	}
	req.Header = way.header.Clone()
	for k := range req.Header {
		if k == "Content-Length" || k == "Accept-Encoding" || k == "Last-Event-Id" || k == "Connection" || strings.HasPrefix(k, "Mcp-Param-") {
			req.Header.Del(k)
		}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if req.Header.Get(headerMethod) != "" {
		req.Header.Del(headerMethod)
		req.Header.Del(headerName)
		if m.Method != "" {
			req.Header.Set(headerMethod, m.Method)
		}
		if m.Name != "" {
			req.Header.Set(headerName, transport.EncodeHeader(m.Name))
		}
	}
	for k, v := range m.Header {
		req.Header.Set(k, v)
	}
	if m.Kind != jsonrpc.KindRequest {
		return p.post(req, c, m)
	}
	p.t.jobs.Go(func() {
		if err := p.post(req, c, m); err != nil {
			p.t.failed(m.ID, err)
		}
	})
	return nil
}

// post sends one request of ours and has what comes back read.
func (p *proxy) post(req *http.Request, c *conv, m jsonrpc.Outgoing) error {
	res, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("the server cannot be reached: %w", err)
	}
	defer res.Body.Close()
	r := &route{ctx: req.Context(), url: req.URL.String(), header: req.Header, on: m.ID}
	message := func(b []byte) {
		if d, err := jsonrpc.Decode(bytes.TrimSpace(b), 0); err == nil && d.Kind == jsonrpc.KindResponse && p.t.mine(d.ID) {
			p.t.q.put(piece{from: server, whole: true, own: true, conv: c, over: r, b: b}, true)
			return
		}
		if p.t.answer == nil || p.t.answer.look(b, c, r) != nil {
			p.t.q.put(piece{from: server, whole: true, conv: c, over: r, b: b}, false)
		}
	}
	switch {
	case isEvents(res.Header) && res.StatusCode < 300:
		s := &eventSplitter{look: func(e streamEvent) []byte {
			if len(e.data) > 0 {
				message(e.data)
			}
			return nil
		}}
		buf := make([]byte, 32<<10)
		for {
			n, err := res.Body.Read(buf)
			s.feed(buf[:n])
			if err != nil {
				return errors.New("the stream ended without an answer") // where one has come, nobody waits
			}
		}
	case isJSON(res.Header):
		b, err := io.ReadAll(io.LimitReader(res.Body, maxRead))
		if err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		if len(bytes.TrimSpace(b)) > 0 {
			message(b)
		}
		if res.StatusCode >= 300 {
			return fmt.Errorf("the server answered with HTTP %s", res.Status)
		}
		return nil
	case res.StatusCode >= 300:
		b, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return fmt.Errorf("the server answered with HTTP %s: %s", res.Status, bytes.TrimSpace(b))
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxRead))
	if m.Kind == jsonrpc.KindRequest && !c.legacy {
		return errors.New("the server took it and gave no answer")
	}
	return nil
}
