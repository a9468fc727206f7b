//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A script says what a scripted server has. It speaks 2025-11-25 over
// Streamable HTTP and answers at once.
type script struct {
	tasks   int
	page    int
	working func(i int) bool // nil: every fourth
	poll    time.Duration    // pollInterval of each task
	push    int              // status notifications a second on the GET stream
	mute    bool             // take connections and never answer
	away    time.Duration    // each request takes so long on its way
}

type server struct {
	script
	url      string
	ended    context.CancelFunc
	requests atomic.Int64
	http     *http.Server
	rows     []json.RawMessage
	mu       sync.Mutex
	session  int
}

func serve(s script) (*server, error) { return serveAt("127.0.0.1:0", s) }

func serveAt(addr string, s script) (*server, error) {
	if s.page == 0 {
		s.page = 50
	}
	if s.poll == 0 {
		s.poll = 5 * time.Second
	}
	if s.working == nil {
		s.working = func(i int) bool { return i%4 == 0 }
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &server{script: s, url: "http://" + l.Addr().String() + "/mcp", ended: cancel}
	now := time.Now().UTC()
	for i := range s.tasks {
		v.rows = append(v.rows, v.row(i, now))
	}
	v.http = &http.Server{Addr: l.Addr().String(), Handler: v, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = v.http.Serve(l) }()
	return v, nil
}

func (v *server) close() {
	v.ended()
	_ = v.http.Close()
}

func (v *server) row(i int, now time.Time) json.RawMessage {
	status, text := "completed", "All steps are done"
	if v.working(i) {
		status, text = "working", "Copying part "+strconv.Itoa(i%97)+" of 97"
	}
	b, _ := json.Marshal(map[string]any{
		"taskId": fmt.Sprintf("%08d-5f3a-4c1e-9b7d-2a6f0c8e4d10", i), "status": status, "statusMessage": text,
		"createdAt":     now.Add(-time.Duration(i) * time.Second).Format(time.RFC3339Nano),
		"lastUpdatedAt": now.Format(time.RFC3339Nano), "ttl": 7_200_000, "pollInterval": v.poll.Milliseconds(),
	})
	return b
}

func (v *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v.mute {
		<-r.Context().Done()
		return
	}
	switch r.Method {
	case http.MethodGet:
		v.stream(w, r)
		return
	case http.MethodDelete:
		return
	case http.MethodPost:
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Cursor, TaskID string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if len(m.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	v.requests.Add(1)
	time.Sleep(v.away)
	fail := func(status, code int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": code, "message": text}})
	}
	var result any
	switch m.Method {
	case "initialize":
		v.mu.Lock()
		v.session++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("session-", v.session))
		v.mu.Unlock()
		result = map[string]any{
			"protocolVersion": "2025-11-25", "serverInfo": map[string]any{"name": "scripted", "version": "1"},
			"capabilities": map[string]any{"tools": map[string]any{}, "tasks": map[string]any{"list": map[string]any{}, "cancel": map[string]any{},
				"requests": map[string]any{"tools": map[string]any{"call": map[string]any{}}}}},
		}
	case "ping":
		result = map[string]any{}
	case "tools/list":
		result = map[string]any{"tools": []any{map[string]any{"name": "copy", "inputSchema": map[string]any{"type": "object"},
			"execution": map[string]any{"taskSupport": "required"}}}}
	case "tasks/list":
		from, _ := strconv.Atoi(m.Params.Cursor)
		to := min(from+v.page, len(v.rows))
		page := map[string]any{"tasks": v.rows[min(from, to):to]}
		if to < len(v.rows) {
			page["nextCursor"] = strconv.Itoa(to)
		}
		result = page
	case "tasks/get":
		i, err := strconv.Atoi(m.Params.TaskID[:min(8, len(m.Params.TaskID))])
		if err != nil || i >= len(v.rows) {
			fail(http.StatusOK, -32602, "Task not found")
			return
		}
		result = v.rows[i]
	case "tasks/result":
		result = map[string]any{"content": []any{map[string]any{"type": "text", "text": "copied"}}}
	default:
		status := http.StatusOK
		if r.Header.Get("Mcp-Session-Id") == "" {
			status = http.StatusBadRequest
		}
		fail(status, -32601, "Method not found")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

// stream sends push notifications a second, in bundles of a fiftieth.
func (v *server) stream(w http.ResponseWriter, r *http.Request) {
	if v.push == 0 {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	f := w.(http.Flusher)
	f.Flush()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	n := 0
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		for range max(1, v.push/50) {
			i := n * 7 % len(v.rows)
			n++
			if !v.working(i) {
				continue
			}
			var t map[string]any
			_ = json.Unmarshal(v.rows[i], &t)
			t["statusMessage"] = fmt.Sprintf("Copying part %d of 97", n%97)
			t["lastUpdatedAt"] = time.Now().UTC().Format(time.RFC3339Nano)
			b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": t})
			if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
				return
			}
		}
		f.Flush()
	}
}

// bare asks the same requests as a monitor must, one after the other, and does
// nothing with the answers: what a listing costs at least.
func (v *server) bare() (time.Duration, error) {
	from := time.Now()
	call := func(method string, params any) (json.RawMessage, error) {
		b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		return post(v.url, b)
	}
	if _, err := call("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bare", "version": "1"}}); err != nil {
		return 0, err
	}
	for cursor := ""; ; {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		b, err := call("tasks/list", params)
		if err != nil {
			return 0, err
		}
		var page struct {
			Result struct{ NextCursor string }
		}
		if err := json.Unmarshal(b, &page); err != nil {
			return 0, err
		}
		if cursor = page.Result.NextCursor; cursor == "" {
			return time.Since(from), nil
		}
	}
}
