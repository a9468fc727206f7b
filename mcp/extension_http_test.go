package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// strictHTTP is a modern server that refuses what the specification has it
// refuse: wrong or missing headers with 400 and -32020 (field fault S15), what
// belongs to older eras with 405.
type strictHTTP struct {
	t  *testing.T
	mu sync.Mutex
	// per subscriptions/listen: its taskIds, and a channel closed at its end
	listens chan listenHTTP
	methods []string
}

type listenHTTP struct {
	id   string
	ids  []string
	push chan string
	end  chan struct{} // closed by the test: the server ends the stream
	gone chan struct{} // closed when the client has closed it
}

func (s *strictHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.Header.Get("Mcp-Session-Id") != "" {
		s.t.Errorf("%s with %v in an era that has only POST and no session", r.Method, r.Header)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	b, _ := io.ReadAll(r.Body)
	id, method, params := string(member(b, "id")), stringAt(b, "method"), member(b, "params")
	s.mu.Lock()
	s.methods = append(s.methods, method)
	s.mu.Unlock()
	answer := func(status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, id, body)
	}
	refuse := func(code int, why string) {
		answer(http.StatusBadRequest, fmt.Sprintf(`"error":{"code":%d,"message":%q}`, code, why))
	}
	name := stringAt(params, "name")
	if strings.HasPrefix(method, "tasks/") {
		name = stringAt(params, "taskId")
	}
	version := stringAt(params, "_meta", metaVersion)
	switch {
	case id == "":
		s.t.Errorf("a notification over HTTP: %s", b)
		w.WriteHeader(http.StatusAccepted)
		return
	case !strings.Contains(r.Header.Get("Accept"), "text/event-stream") || !strings.Contains(r.Header.Get("Accept"), "application/json"):
		refuse(codeHeaderMismatch, "Accept")
		return
	case r.Header.Get("Mcp-Method") != method || decodeHeader(r.Header.Get("Mcp-Name")) != name || version == "" || r.Header.Get("Mcp-Protocol-Version") != version:
		refuse(codeHeaderMismatch, "Header mismatch")
		return
	case memberAt(params, "_meta", metaCapabilities) == nil:
		refuse(codeInvalidParams, "no capabilities")
		return
	case strings.HasPrefix(method, "tasks/") && memberAt(params, "_meta", metaCapabilities, "extensions", extensionTasks) == nil:
		refuse(codeMissingCaps, "Missing required client capability")
		return
	}
	switch method {
	case "server/discover":
		answer(200, `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"public"}`)
	case "tools/list":
		answer(200, `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"größe","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]}`)
	case "tools/call":
		if r.Header.Get("Mcp-Param-R") != stringAt(params, "arguments", "r") {
			refuse(codeHeaderMismatch, "Mcp-Param-R")
			return
		}
		if stringAt(params, "arguments", "r") == "hang" {
			<-r.Context().Done()
			s.listens <- listenHTTP{id: "hang"}
			return
		}
		answer(200, `"result":{"resultType":"task",`+taskX("Tä/1", "working", "")+`}`)
	case "tasks/get":
		answer(200, `"result":{"resultType":"complete",`+taskX(name, "working", "")+`}`)
	case "tasks/cancel", "tasks/update":
		answer(200, `"result":{"resultType":"complete"}`)
	case "subscriptions/listen":
		l := listenHTTP{id: id, ids: strings_(memberAt(params, "notifications", "taskIds")), push: make(chan string), end: make(chan struct{}), gone: make(chan struct{})}
		w.Header().Set("Content-Type", "text/event-stream")
		event := func(b string) {
			fmt.Fprintf(w, ": keep-alive\n\ndata: %s\n\n", b)
			w.(http.Flusher).Flush()
		}
		ids, _ := json.Marshal(l.ids)
		event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `},"notifications":{"taskIds":` + string(ids) + `}}}`)
		s.listens <- l
		for {
			select {
			case p := <-l.push:
				event(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `},` + p + `}}`)
			case <-l.end:
				event(`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
				return
			case <-r.Context().Done():
				close(l.gone)
				return
			}
		}
	default:
		answer(http.StatusNotFound, `"error":{"code":-32601,"message":"Method not found"}`)
	}
}

func decodeHeader(v string) string {
	if in, ok := strings.CutPrefix(v, "=?base64?"); ok {
		b, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(in, "?="))
		return string(b)
	}
	return v
}

// loud is ears that says when it has heard something.
type loud struct {
	ears
	push chan []string
	snap chan taskmodel.Observation
}

func (l *loud) Pushing(ids []string)             { l.push <- ids }
func (l *loud) Snapshot(o taskmodel.Observation) { l.snap <- o }

func connectHTTP(t *testing.T) (*Client, *strictHTTP, *loud) {
	t.Helper()
	s := &strictHTTP{t: t, listens: make(chan listenHTTP, 100)}
	srv := httptest.NewServer(s)
	e := &loud{push: make(chan []string, 100), snap: make(chan taskmodel.Observation, 100)}
	c, err := Connect(t.Context(), Options{Name: "srv", Dialer: &transport.HTTP{URL: srv.URL + "/mcp"}, ClientName: "mcptasks", ClientVersion: "1", Handler: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		c.Close(ctx, true)
		srv.Close()
	})
	return c, s, e
}

func TestS15_XHeadersOverHTTP(t *testing.T) {
	// tasks.md, "Streamable HTTP: Routing Headers"; basic/transports/
	// streamable-http, "Request Metadata". A server refuses what lacks them.
	c, s, _ := connectHTTP(t)
	tasks := c.Tasks()
	st, err := tasks.Start(t.Context(), StartCall{Tool: "größe", Args: json.RawMessage(`{"r":"eu"}`)})
	if err != nil || st.TaskID != "Tä/1" {
		t.Fatalf("%+v, %v", st, err)
	}
	if _, err := tasks.Get(t.Context(), st.TaskID); err != nil {
		t.Error(err)
	}
	if _, err := tasks.Cancel(t.Context(), st.TaskID); err != nil {
		t.Error(err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.methods, " "); got != "server/discover tools/list tools/call tasks/get tasks/cancel server/discover" {
		t.Errorf("sent %s", got)
	}
}

func TestXClosingTheStreamCancelsOverHTTP(t *testing.T) {
	// basic/patterns/cancellation: no notifications/cancelled, the server sees
	// the stream of the call end.
	c, s, _ := connectHTTP(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.Tasks().Start(ctx, StartCall{Tool: "größe", Args: json.RawMessage(`{"r":"hang"}`)})
		done <- err
	}()
	for {
		s.mu.Lock()
		n := len(s.methods)
		s.mu.Unlock()
		if n == 3 { // discover, list, call
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if l := <-s.listens; l.id != "hang" {
		t.Errorf("%+v", l)
	}
}

func TestXListenOverHTTP(t *testing.T) {
	// patterns/subscriptions over real streams: pushed, replaced without a
	// gap, ended by the server, ended by us.
	c, s, e := connectHTTP(t)
	watchX(t, c, "A")
	first := <-s.listens
	if got := <-e.push; fmt.Sprint(got) != "[A]" {
		t.Errorf("acknowledged %v", got)
	}
	first.push <- taskX("A", "working", `,"statusMessage":"one"`)
	if o := <-e.snap; o.StatusMessage != "one" || len(o.Lenient) != 0 {
		t.Errorf("%+v", o)
	}
	watchX(t, c, "A", "B")
	second := <-s.listens
	if fmt.Sprint(second.ids) != "[A B]" {
		t.Errorf("asked for %v", second.ids)
	}
	<-first.gone
	if got := <-e.push; fmt.Sprint(got) != "[A B]" {
		t.Errorf("acknowledged %v", got)
	}
	close(second.end)
	if got := <-e.push; got != nil {
		t.Errorf("after the end %v", got)
	}
	third := <-s.listens
	if got := <-e.push; fmt.Sprint(got) != "[A B]" {
		t.Errorf("acknowledged %v", got)
	}
	third.push <- taskX("B", "completed", `,"result":{}`)
	if o := <-e.snap; o.ID != "B" || o.Outcome.IsZero() {
		t.Errorf("%+v", o)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if err := c.Close(ctx, true); err != nil {
		t.Error(err)
	}
	<-third.gone
}
