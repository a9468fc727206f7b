package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// site is a server over HTTP.
type site struct {
	t   *testing.T
	s   *Server
	url string
}

func overHTTP(t *testing.T, o Options) *site {
	t.Helper()
	o.Seed = 1
	s := New(o)
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() { s.Close(); h.CloseClientConnections(); h.Close() })
	return &site{t, s, h.URL + "/mcp"}
}

// do sends one request with header fields given as pairs; the usual ones are
// there unless given.
func (h *site) do(ctx context.Context, method, url, body string, fields ...string) *http.Response {
	h.t.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, rd)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] == "" {
			r.Header.Del(fields[i])
		} else {
			r.Header.Set(fields[i], fields[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (h *site) post(body string, fields ...string) *http.Response {
	h.t.Helper()
	return h.do(h.t.Context(), "POST", h.url, body, fields...)
}

func (h *site) object(r *http.Response) object {
	h.t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return decode(h.t, b)
}

// An ssEvent is one event of a stream.
type ssEvent struct{ name, id, data string }

// events reads a stream in the background.
func events(r *http.Response) <-chan ssEvent {
	ch := make(chan ssEvent, 1000)
	go func() {
		defer close(ch)
		var e ssEvent
		has := false
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			l := lines.Text()
			switch {
			case l == "":
				if has {
					ch <- e
				}
				e, has = ssEvent{}, false
			case strings.HasPrefix(l, "event: "):
				e.name, has = l[7:], true
			case strings.HasPrefix(l, "id: "):
				e.id, has = l[4:], true
			case strings.HasPrefix(l, "data: "):
				e.data, has = e.data+l[6:], true
			}
		}
	}()
	return ch
}

// next is the next event that carries a message.
func (h *site) next(ch <-chan ssEvent) (object, ssEvent) {
	h.t.Helper()
	for {
		select {
		case e, ok := <-ch:
			if !ok {
				h.t.Fatal("the stream ended")
			}
			if e.data != "" {
				return decode(h.t, json.RawMessage(e.data)), e
			}
		case <-time.After(10 * time.Second):
			h.t.Fatal("nothing came")
		}
	}
}

const initBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{}},"clientInfo":{"name":"t","version":"1"}}}`

func (h *site) session() string {
	h.t.Helper()
	r := h.post(initBody)
	id := r.Header.Get("Mcp-Session-Id")
	if r.StatusCode != 200 || id == "" {
		h.t.Fatalf("initialize: %d %q", r.StatusCode, id)
	}
	if r := h.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id); r.StatusCode != 202 {
		h.t.Fatalf("initialized: %d", r.StatusCode)
	}
	return id
}

// 2025-11-25 basic/transports, "Session Management", "Protocol Version
// Header", "Security Warning", "Sending Messages to the Server".
func TestHTTPLegacyStatuses(t *testing.T) {
	h := overHTTP(t, Options{Speed: 50})
	sid := h.session()
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for _, tc := range []struct {
		name, method, body string
		fields             []string
		want               int
	}{
		{"no session", "POST", ping, nil, 400},
		{"unknown session", "POST", ping, []string{"Mcp-Session-Id", "x"}, 404},
		{"good", "POST", ping, []string{"Mcp-Session-Id", sid, "MCP-Protocol-Version", "2025-11-25"}, 200},
		{"modern version", "POST", ping, []string{"Mcp-Session-Id", sid, "MCP-Protocol-Version", "2026-07-28"}, 400},
		{"foreign origin", "POST", ping, []string{"Mcp-Session-Id", sid, "Origin", "https://evil.example"}, 403},
		{"own origin", "POST", ping, []string{"Mcp-Session-Id", sid, "Origin", "http://localhost:9"}, 200},
		{"accept json only", "POST", ping, []string{"Mcp-Session-Id", sid, "Accept", "application/json"}, 406},
		{"no content type", "POST", ping, []string{"Mcp-Session-Id", sid, "Content-Type", "text/plain"}, 415},
		{"not JSON", "POST", "{", []string{"Mcp-Session-Id", sid}, 400},
		{"batch", "POST", "[" + ping + "]", []string{"Mcp-Session-Id", sid}, 400},
		{"notification", "POST", `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, []string{"Mcp-Session-Id", sid}, 202},
		{"response", "POST", `{"jsonrpc":"2.0","id":"srv-99","result":{}}`, []string{"Mcp-Session-Id", sid}, 202},
		{"GET without accept", "GET", "", []string{"Mcp-Session-Id", sid, "Accept", "text/html"}, 406},
		{"GET without session", "GET", "", nil, 400},
		{"bad Last-Event-ID", "GET", "", []string{"Mcp-Session-Id", sid, "Last-Event-ID", "nope"}, 400},
		{"PUT", "PUT", ping, []string{"Mcp-Session-Id", sid}, 405},
	} {
		if r := h.do(t.Context(), tc.method, h.url, tc.body, tc.fields...); r.StatusCode != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, r.StatusCode, tc.want)
		}
	}
	if r := h.do(t.Context(), "DELETE", h.url, "", "Mcp-Session-Id", sid); r.StatusCode != 204 {
		t.Errorf("DELETE: %d", r.StatusCode)
	}
	if r := h.post(ping, "Mcp-Session-Id", sid); r.StatusCode != 404 {
		t.Errorf("after DELETE: %d", r.StatusCode)
	}
	sid = h.session()
	h.s.DropSessions()
	if r := h.post(ping, "Mcp-Session-Id", sid); r.StatusCode != 404 {
		t.Errorf("after a loss: %d", r.StatusCode)
	}
}

// A task's whole way over Streamable HTTP of 2025-11-25: status on the GET
// stream, question and result on the stream of tasks/result.
func TestHTTPLegacyTask(t *testing.T) {
	h := overHTTP(t, Options{Speed: 40})
	sid := h.session()
	get := events(h.do(t.Context(), "GET", h.url, "", "Mcp-Session-Id", sid, "Accept", "text/event-stream"))
	r := h.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy_release","arguments":{"service":"api","version":"v1.0.0"},"task":{}}}`, "Mcp-Session-Id", sid)
	if ct := r.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("CreateTaskResult as %s", ct)
	}
	id := h.object(r).str("result", "task", "taskId")
	if m, _ := h.next(get); m.str("method") != "notifications/tasks/status" || m.str("params", "taskId") != id {
		t.Errorf("GET stream: %v", m)
	}
	resp := h.post(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"`+id+`"}}`, "Mcp-Session-Id", sid)
	st := events(resp)
	prime := <-st
	if prime.id == "" || prime.data != "" {
		t.Errorf("the first event SHOULD be an id alone: %+v", prime)
	}
	q, _ := h.next(st)
	if q.str("method") != "elicitation/create" {
		t.Fatalf("question: %v", q)
	}
	answer := `{"jsonrpc":"2.0","id":` + string(enc(q["id"])) + `,"result":{"action":"accept","content":{"strategy":"canary","ticket":"CHG-1234"},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"` + id + `"}}}}`
	if r := h.post(answer, "Mcp-Session-Id", sid); r.StatusCode != 202 {
		t.Errorf("answer: %d", r.StatusCode)
	}
	res, _ := h.next(st)
	if res.at("result", "structuredContent", "rolledOut") != true {
		t.Errorf("result: %v", res)
	}
	if _, open := <-st; open {
		t.Error("after the response the stream SHOULD end")
	}
}

// "Resumability and Redelivery": a broken stream is taken up, nothing twice.
func TestHTTPLegacyResume(t *testing.T) {
	h := overHTTP(t, Options{Speed: 40})
	sid := h.session()
	ctx, cut := context.WithCancel(t.Context())
	st := events(h.do(ctx, "POST", h.url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"build","arguments":{"target":"api"},"_meta":{"progressToken":1}}}`, "Mcp-Session-Id", sid))
	var last string
	seen := map[float64]bool{}
	for range 3 {
		m, e := h.next(st)
		last = e.id
		if p, ok := m.at("params", "progress").(float64); ok {
			seen[p] = true
		}
	}
	cut()
	again := events(h.do(t.Context(), "GET", h.url, "", "Mcp-Session-Id", sid, "Accept", "text/event-stream", "Last-Event-ID", last))
	for {
		m, _ := h.next(again)
		if p, ok := m.at("params", "progress").(float64); ok {
			if seen[p] {
				t.Errorf("progress %v twice", p)
			}
			seen[p] = true
		}
		if m["result"] != nil {
			break
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d progress notifications", len(seen))
	}
	if _, open := <-again; open {
		t.Error("the stream goes on after its response")
	}
}

// A question whose tasks/result stream broke is put again beside a new one.
func TestHTTPLegacyQuestionSurvivesItsStream(t *testing.T) {
	h := overHTTP(t, Options{Speed: 40})
	sid := h.session()
	id := h.object(h.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy_release","arguments":{"service":"api","version":"v1.0.0"},"task":{}}}`, "Mcp-Session-Id", sid)).str("result", "task", "taskId")
	ask := func(ctx context.Context, n string) <-chan ssEvent {
		return events(h.do(ctx, "POST", h.url, `{"jsonrpc":"2.0","id":`+n+`,"method":"tasks/result","params":{"taskId":"`+id+`"}}`, "Mcp-Session-Id", sid))
	}
	ctx, cut := context.WithCancel(t.Context())
	first, _ := h.next(ask(ctx, "3"))
	cut()
	deadline := time.Now().Add(5 * time.Second)
	for n := 4; ; n++ {
		// The server notices a cut connection in its own time.
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		ch := ask(ctx, string(enc(n)))
		var got object
		for e := range ch {
			if e.data != "" {
				got = decode(t, json.RawMessage(e.data))
				break
			}
		}
		stop()
		if got != nil {
			if got.str("method") != "elicitation/create" || string(enc(got["id"])) == string(enc(first["id"])) {
				t.Errorf("asked again under a new id: %v after %v", got, first)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the question was never put again")
		}
	}
}

// The HTTP+SSE transport of 2024-11-05.
func TestHTTPOldTransport(t *testing.T) {
	h := overHTTP(t, Options{Speed: 40})
	base := strings.TrimSuffix(h.url, "/mcp")
	st := events(h.do(t.Context(), "GET", base+"/sse", "", "Accept", "text/event-stream"))
	ep := <-st
	if ep.name != "endpoint" || !strings.HasPrefix(ep.data, "/messages?") {
		t.Fatalf("first event: %+v", ep)
	}
	if r := h.do(t.Context(), "POST", base+ep.data, initBody); r.StatusCode != 202 {
		t.Fatalf("POST: %d", r.StatusCode)
	}
	if m, _ := h.next(st); m.at("result", "protocolVersion") == nil {
		t.Errorf("initialize: %v", m)
	}
	h.do(t.Context(), "POST", base+ep.data, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"lint_file","arguments":{"path":"a"},"task":{}}}`)
	if m, _ := h.next(st); m.at("result", "task", "taskId") == nil {
		t.Errorf("task: %v", m)
	}
	if r := h.do(t.Context(), "POST", base+"/messages?sessionId=x", initBody); r.StatusCode != 404 {
		t.Errorf("unknown session: %d", r.StatusCode)
	}
}

const modernMetaJSON = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + modernCaps + `}`

// 2026-07-28 basic/transports/streamable-http: methods, headers, statuses.
func TestHTTPModernStatuses(t *testing.T) {
	h := overHTTP(t, Options{Generation: taskmodel.GenExtension, Speed: 40, Tasks: 2})
	id := h.s.Handles()[0].ID
	get := `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"` + id + `",` + modernMetaJSON + `}}`
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy_release","arguments":{"service":"api","version":"v1.0.0"},` + modernMetaJSON + `}}`
	ok := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tasks/get", "Mcp-Name", id}
	callOK := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "deploy_release", "Mcp-Param-Service", "api"}
	change := func(fields []string, more ...string) []string { return append(append([]string{}, fields...), more...) }
	for _, tc := range []struct {
		name, method, body string
		fields             []string
		status, code       int
	}{
		{"good", "POST", get, ok, 200, 0},
		{"name in Base64", "POST", call, change(callOK, "Mcp-Name", "=?base64?ZGVwbG95X3JlbGVhc2U=?="), 200, 0},
		{"sessions are ignored", "POST", get, change(ok, "Mcp-Session-Id", "x", "Last-Event-ID", "y"), 200, 0},
		{"GET", "GET", "", nil, 405, codeRequest},
		{"DELETE", "DELETE", "", nil, 405, codeRequest},
		{"no version", "POST", get, change(ok, "MCP-Protocol-Version", ""), 400, codeHeader},
		{"other version than the body's", "POST", get, change(ok, "MCP-Protocol-Version", "2025-11-25"), 400, codeHeader},
		{"no method", "POST", get, change(ok, "Mcp-Method", ""), 400, codeHeader},
		{"other method", "POST", get, change(ok, "Mcp-Method", "TASKS/GET"), 400, codeHeader},
		{"no name", "POST", get, change(ok, "Mcp-Name", ""), 400, codeHeader},
		{"other name", "POST", get, change(ok, "Mcp-Name", "x"), 400, codeHeader},
		{"parameter missing", "POST", call, change(callOK, "Mcp-Param-Service", ""), 400, codeHeader},
		{"parameter differs", "POST", call, change(callOK, "Mcp-Param-Service", "web"), 400, codeHeader},
		{"parameter right", "POST", call, callOK, 200, 0},
		{"unknown method", "POST", strings.Replace(get, "tasks/get", "tasks/list", 1), change(ok, "Mcp-Method", "tasks/list"), 404, codeMethod},
		{"unsupported version", "POST", strings.Replace(get, "2026-07-28", "2099-01-01", 1), change(ok, "MCP-Protocol-Version", "2099-01-01"), 400, codeVersion},
		{"no capability", "POST", strings.Replace(get, modernCaps, "{}", 1), ok, 400, codeCapability},
		{"initialize", "POST", initBody, nil, 400, codeHeader},
		{"a response", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, ok, 400, codeRequest},
		{"unknown task", "POST", strings.Replace(get, id, "x", 1), change(ok, "Mcp-Name", "x"), 200, codeParams},
	} {
		r := h.do(t.Context(), tc.method, h.url, tc.body, tc.fields...)
		code := 0
		if o := h.object(r); o["error"] != nil {
			code = int(o.at("error", "code").(float64))
		}
		if r.StatusCode != tc.status || code != tc.code {
			t.Errorf("%s: %d with %d, want %d with %d", tc.name, r.StatusCode, code, tc.status, tc.code)
		}
		if r.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: a session id", tc.name)
		}
	}
	if r := h.post(`{"jsonrpc":"2.0","method":"notifications/foo"}`); r.StatusCode != 202 {
		t.Errorf("notification: %d", r.StatusCode)
	}
}

// A subscription over HTTP, its end by the client and by the server; progress
// of a plain call on its own stream.
func TestHTTPModernStreams(t *testing.T) {
	h := overHTTP(t, Options{Generation: taskmodel.GenExtension, Speed: 40})
	call := func(caps, more string) *http.Response {
		return h.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build","arguments":{"target":"api"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+caps+more+`}}}`,
			"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "build")
	}
	id := h.object(call(modernCaps, "")).str("result", "taskId")
	r := h.post(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"taskIds":["`+id+`"]},`+modernMetaJSON+`}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	if r.Header.Get("X-Accel-Buffering") != "no" {
		t.Error("X-Accel-Buffering")
	}
	sub := events(r)
	if m, e := h.next(sub); m.str("method") != "notifications/subscriptions/acknowledged" || m.str("params", "_meta", metaSubscribed) != "sub" || e.id != "" {
		t.Errorf("first: %v", m)
	}
	for {
		m, _ := h.next(sub)
		if m.str("params", "status") == "completed" {
			break
		}
	}
	plain := events(call(plainCaps, `,"progressToken":"p"`))
	n := 0
	for {
		m, _ := h.next(plain)
		if m["result"] != nil {
			break
		}
		n++
	}
	if n < 10 {
		t.Errorf("%d progress notifications", n)
	}
	h.s.Close()
	if m, _ := h.next(sub); m.at("result", "_meta", metaSubscribed) != "sub" {
		t.Errorf("graceful end: %v", m)
	}
}

// A client that drops a plain call's stream cancels it (2026-07-28).
func TestHTTPModernDropCancels(t *testing.T) {
	h := overHTTP(t, Options{Generation: taskmodel.GenExtension, Speed: 5})
	ctx, cut := context.WithCancel(t.Context())
	st := events(h.do(ctx, "POST", h.url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build","arguments":{"target":"api"},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "build"))
	h.next(st)
	gone := make(chan struct{})
	h.s.engine.listen(h.s.engine.newOwner(), func(ev event) {
		if ev.kind == removed && ev.job.hidden {
			close(gone)
		}
	})
	cut()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the work goes on")
	}
}

// The draft over Streamable HTTP: the call's stream carries all of its task.
func TestHTTPDraft(t *testing.T) {
	h := overHTTP(t, Options{Generation: taskmodel.GenDraft, Speed: 40})
	sid := h.session()
	st := events(h.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"build","arguments":{"target":"api"},"_meta":{"progressToken":1,"modelcontextprotocol.io/task":{"taskId":"t1"}}}}`, "Mcp-Session-Id", sid))
	if m, _ := h.next(st); m.str("method") != "notifications/tasks/created" {
		t.Errorf("first: %v", m)
	}
	for {
		if m, _ := h.next(st); m["result"] != nil {
			break
		}
	}
}

// ServeStdio: one message a line; it ends with its input.
func TestStdio(t *testing.T) {
	s := New(Options{Seed: 1})
	defer s.Close()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(t.Context(), inR, outW) }()
	lines := bufio.NewScanner(outR)
	if _, err := io.WriteString(inW, initBody+"\n"); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":1`) {
		t.Errorf("got %q", lines.Text())
	}
	if _, err := io.WriteString(inW, "nonsense\n"); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), "-32700") {
		t.Errorf("got %q", lines.Text())
	}
	_ = inW.Close()
	if err := <-ended; err != nil {
		t.Errorf("at the end of input: %v", err)
	}
}

// The fleet has one server of each generation, and the one that cannot list
// names its tasks.
func TestFleet(t *testing.T) {
	clock := NewManual(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	fleet := Fleet(FleetOptions{Seed: 4, Now: clock.Now, AfterFunc: clock.AfterFunc})
	seen := map[taskmodel.Generation]string{}
	for _, m := range fleet {
		defer m.Server.Close()
		seen[m.Generation] = m.Name
		if (len(m.Handles) > 0) != (m.Generation == taskmodel.GenExtension) {
			t.Errorf("%s: %d handles", m.Name, len(m.Handles))
		}
		came := 0
		m.Server.OnArrival(func(h Handle) {
			if h.ID == "" || h.Tool == "" {
				t.Errorf("arrival: %+v", h)
			}
			came++
		})
		clock.Advance(5 * time.Minute)
		if came < 5 {
			t.Errorf("%s: %d arrivals in five minutes", m.Name, came)
		}
	}
	if seen[taskmodel.GenCore] != "ci" || seen[taskmodel.GenExtension] != "deploy" || seen[taskmodel.GenDraft] != "lab" {
		t.Errorf("got %v", seen)
	}
}
