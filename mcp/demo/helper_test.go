package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// A client is the other side of a demo server in tests: it sends what it is
// told to, right or wrong, and keeps all that comes.
type client struct {
	t    *testing.T
	conn jsonrpc.Conn

	mu      sync.Mutex
	next    int
	waiting map[string]chan reply
	methods map[string]string // of our requests, by id
	got     []message         // everything received, in order
	log     []string          // everything both ways, for transcripts
	// answer is called for each request of the server; nil leaves it open.
	answer func(m message) any
	wake   chan struct{}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
	raw    json.RawMessage
	of     string // the method that a response answers
}

type reply struct {
	result json.RawMessage
	err    *rpcError
}

func (c *client) Message(b json.RawMessage, _ string, _ jsonrpc.ID) { c.take(b) }
func (c *client) Failed(id jsonrpc.ID, err error)                   { c.t.Errorf("%s failed: %v", id, err) }
func (c *client) Noise(kind string, b []byte)                       { c.t.Errorf("noise %s: %s", kind, b) }

func (c *client) take(b json.RawMessage) {
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		c.t.Errorf("not JSON: %s", b)
		return
	}
	m.raw = append(json.RawMessage(nil), b...)
	c.mu.Lock()
	if m.Method == "" {
		m.of = c.methods[string(m.ID)]
	}
	c.got = append(c.got, m)
	c.log = append(c.log, "<- "+string(b))
	ch := c.waiting[string(m.ID)]
	if m.Method == "" {
		delete(c.waiting, string(m.ID))
	}
	answer := c.answer
	c.mu.Unlock()
	switch {
	case m.Method == "" && ch != nil:
		ch <- reply{m.Result, m.Error}
	case m.Method != "" && m.ID != nil:
		switch m.Method {
		case "roots/list":
			c.respond(m.ID, map[string]any{"roots": []any{map[string]any{"uri": "file:///src"}}})
		default:
			if answer != nil {
				if a := answer(m); a != nil {
					c.respond(m.ID, a)
				}
			}
		}
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// connect makes a client over a pipe.
func connect(t *testing.T, s *Server) *client {
	t.Helper()
	a, b := transport.Pipe()
	c := &client{t: t, conn: a, waiting: map[string]chan reply{}, methods: map[string]string{}, wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.ServeConn(ctx, b); err != nil && ctx.Err() == nil {
			t.Errorf("ServeConn: %v", err)
		}
	}()
	if err := a.Start(ctx, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.Close(context.Background())
		cancel()
		<-ended
	})
	return c
}

func (c *client) send(v any) {
	b, ok := v.(json.RawMessage)
	if !ok {
		b = enc(v)
	}
	c.mu.Lock()
	c.log = append(c.log, "-> "+string(b))
	c.mu.Unlock()
	if err := c.conn.Send(context.Background(), jsonrpc.Outgoing{Bytes: b}); err != nil {
		c.t.Errorf("send: %v", err)
	}
}

func (c *client) respond(id json.RawMessage, result any) {
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (c *client) notify(method string, params any) {
	c.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// begin sends a request and returns its id and the channel of its answer.
func (c *client) begin(method string, params any) (string, chan reply) {
	c.mu.Lock()
	c.next++
	id := fmt.Sprint(c.next)
	ch := make(chan reply, 1)
	c.waiting[id] = ch
	c.methods[id] = method
	c.mu.Unlock()
	m := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method}
	if params != nil {
		m["params"] = params
	}
	c.send(m)
	return id, ch
}

// call sends a request and waits for its answer.
func (c *client) call(method string, params any) (json.RawMessage, *rpcError) {
	_, ch := c.begin(method, params)
	r := <-ch
	return r.result, r.err
}

// must is call for those that must succeed, decoded.
func (c *client) must(method string, params any) object {
	c.t.Helper()
	b, err := c.call(method, params)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return decode(c.t, b)
}

// refused is call for those that must fail with this code.
func (c *client) refused(code int, method string, params any) *rpcError {
	c.t.Helper()
	b, err := c.call(method, params)
	if err == nil {
		c.t.Errorf("%s %s: got %s, want error %d", method, enc(params), b, code)
		return &rpcError{}
	}
	if err.Code != code {
		c.t.Errorf("%s %s: got error %v, want %d", method, enc(params), err, code)
	}
	return err
}

// received are the messages of this method so far.
func (c *client) received(method string) []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []message
	for _, m := range c.got {
		if m.Method == method {
			out = append(out, m)
		}
	}
	return out
}

// object is a decoded JSON object with paths.
type object map[string]any

func decode(t *testing.T, b json.RawMessage) object {
	t.Helper()
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatalf("no object: %s", b)
	}
	return o
}

// at follows names through objects; nil where one is missing.
func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func (o object) str(path ...string) string { s, _ := o.at(path...).(string); return s }

// schemaOf loads an official schema; nil when it is not on this machine.
func schemaOf(t *testing.T, file string) func(def string) *jsonschema.Schema {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "schema", file))
	if err != nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	// The official files state no $id that could clash.
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///"+file, doc); err != nil {
		t.Fatal(err)
	}
	return func(def string) *jsonschema.Schema {
		s, err := c.Compile("mem:///" + file + "#/$defs/" + def)
		if err != nil {
			t.Fatalf("%s: %v", def, err)
		}
		return s
	}
}

// conforms checks all that the server sent against the official schemas. defs
// maps a method to the definitions of its message, and "result of METHOD" to
// those of its result; a definition is FILE:NAME, or NAME in the file given.
func (c *client) conforms(file string, defs map[string]string) {
	c.t.Helper()
	schemas := map[string]func(string) *jsonschema.Schema{}
	for _, f := range []string{file, extSchema} {
		if schemas[f] = schemaOf(c.t, f); schemas[f] == nil {
			c.t.Log("the official schema is not on this machine: not checked against it")
			return
		}
	}
	c.mu.Lock()
	got := append([]message(nil), c.got...)
	c.mu.Unlock()
	for _, m := range got {
		what, body := m.Method, m.raw
		if m.Method == "" && m.Error != nil {
			what = "error"
			if _, special := defs[fmt.Sprintf("error %d", m.Error.Code)]; special {
				what = fmt.Sprintf("error %d", m.Error.Code)
			}
		} else if m.Method == "" {
			what, body = "result of "+m.of, m.Result
			var r struct {
				Type string `json:"resultType"`
			}
			_ = json.Unmarshal(m.Result, &r)
			if _, special := defs[what+" "+r.Type]; special {
				what += " " + r.Type
			}
		}
		def, ok := defs[what]
		if !ok {
			c.t.Errorf("the test knows no definition for %q: %s", what, m.raw)
			continue
		}
		for _, d := range strings.Fields(def) {
			f, name := file, d
			if short, ok := strings.CutPrefix(d, "ext:"); ok {
				f, name = extSchema, short
			}
			v, _ := jsonschema.UnmarshalJSON(bytes.NewReader(body))
			if err := schemas[f](name).Validate(v); err != nil {
				c.t.Errorf("%s breaks %s of %s: %v\n%s", what, name, f, err, m.raw)
			}
		}
	}
}

const extSchema = "ext-tasks.schema.json"

var coreDefs = map[string]string{
	"error":                              "JSONRPCErrorResponse",
	"result of initialize":               "InitializeResult",
	"result of ping":                     "EmptyResult",
	"result of logging/setLevel":         "EmptyResult",
	"result of tools/list":               "ListToolsResult",
	"result of tools/call":               "Result",
	"result of tasks/get":                "GetTaskResult",
	"result of tasks/list":               "ListTasksResult",
	"result of tasks/cancel":             "CancelTaskResult",
	"result of tasks/result":             "GetTaskPayloadResult CallToolResult",
	"notifications/tasks/status":         "TaskStatusNotification",
	"notifications/message":              "LoggingMessageNotification",
	"notifications/progress":             "ProgressNotification",
	"notifications/cancelled":            "CancelledNotification",
	"notifications/elicitation/complete": "ElicitationCompleteNotification",
	"notifications/tools/list_changed":   "ToolListChangedNotification",
	"elicitation/create":                 "ElicitRequest",
	"sampling/createMessage":             "CreateMessageRequest",
	"roots/list":                         "ListRootsRequest",
	"tasks/get":                          "GetTaskRequest",
	"tasks/result":                       "GetTaskPayloadRequest",
	"tasks/cancel":                       "CancelTaskRequest",
}

const fullCaps = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true},
	"tasks":{"list":{},"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}}`

// initialize shakes hands.
func (c *client) initialize(version, caps string) object {
	c.t.Helper()
	r := c.must("initialize", map[string]any{
		"protocolVersion": version, "capabilities": json.RawMessage(caps),
		"clientInfo": map[string]any{"name": "test", "version": "1"},
	})
	c.notify("notifications/initialized", map[string]any{})
	return r
}

func core2025(t *testing.T, o Options) (*Server, *client) {
	t.Helper()
	o.Generation = taskmodel.GenCore
	if o.Seed == 0 {
		o.Seed = 1
	}
	s := New(o)
	t.Cleanup(s.Close)
	c := connect(t, s)
	c.initialize(coreVersion, fullCaps)
	return s, c
}

// startTask calls a tool as a task of 2025-11-25 and returns its id.
func (c *client) startTask(tool string, args any, more ...any) string {
	c.t.Helper()
	p := map[string]any{"name": tool, "arguments": args, "task": map[string]any{}}
	for i := 0; i+1 < len(more); i += 2 {
		p[more[i].(string)] = more[i+1]
	}
	r := c.must("tools/call", p)
	if r.str("task", "status") != "working" {
		c.t.Errorf("a task MUST begin as working: %v", r)
	}
	return r.str("task", "taskId")
}

// answers says how requests of the server are answered from now on.
func (c *client) answers(f func(m message) any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// said is all that the server sent, in order.
func (c *client) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, m := range c.got {
		out = append(out, string(m.raw))
	}
	return out
}
