// Package schematest checks messages against the official JSON Schemas of MCP
// in tests. The schemas are not a part of this repository; where the folder
// ../shared/schema beside it is missing, every check passes.
//
// It is for tests only and imports taskmodel and a JSON Schema validator.
package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcptasks/taskmodel"
)

// A Direction says who sent a message.
type Direction string

// The two directions, from mcptasks' side.
const (
	Sent     Direction = "sent"     // by the client
	Received Direction = "received" // by the server
)

// Check fails the test when one message breaks the schema of its generation.
// A response is checked for its envelope alone, since it does not tell what it
// answers; use a Checker for whole conversations.
func Check(t testing.TB, g taskmodel.Generation, d Direction, message []byte) {
	t.Helper()
	NewChecker(t, g).Check(d, message)
}

// Available reports whether the schemas are here, for tests that would assert
// nothing without them.
func Available() bool { return folder() != "" }

// A Checker checks the messages of one conversation in both directions and
// pairs responses with their requests. It is safe for concurrent use.
type Checker struct {
	t testing.TB
	g taskmodel.Generation

	mu      sync.Mutex
	methods map[string]string // Direction and id of a request to its method
	asTask  map[string]bool
	checked int
}

// NewChecker makes a Checker for one conversation in the given generation.
func NewChecker(t testing.TB, g taskmodel.Generation) *Checker {
	return &Checker{t: t, g: g, methods: map[string]string{}, asTask: map[string]bool{}}
}

// Check checks one message and fails the test where it is wrong.
func (c *Checker) Check(d Direction, message []byte) {
	c.t.Helper()
	if err := c.Err(d, message); err != nil {
		c.t.Errorf("%s in %s: %v\n%s", d, c.g, err, message)
	}
}

// Err is Check for those who want to know what is wrong.
func (c *Checker) Err(d Direction, message []byte) error {
	if !Available() {
		return nil
	}
	set, err := schemas(c.g)
	if err != nil {
		return err
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Task json.RawMessage }
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(message, &m); err != nil {
		// params may be anything that only the schema judges.
		var loose struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(message, &loose); err != nil {
			return fmt.Errorf("no JSON-RPC message: %w", err)
		}
		m.ID, m.Method, m.Result, m.Error = loose.ID, loose.Method, loose.Result, loose.Error
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checked++
	switch {
	case m.Method != "":
		if m.ID != nil {
			c.methods[string(d)+string(m.ID)] = m.Method
			c.asTask[string(d)+string(m.ID)] = m.Params.Task != nil
		}
		return set.message(m.Method, m.ID != nil, message)
	case m.Result != nil:
		if err := set.envelope("JSONRPCResultResponse", message); err != nil {
			return err
		}
		asker := Sent
		if d == Sent {
			asker = Received
		}
		k := string(asker) + string(m.ID)
		return set.result(c.methods[k], c.asTask[k], m.Result)
	case m.Error != nil:
		return set.envelope("JSONRPCErrorResponse", message)
	}
	return fmt.Errorf("neither a request nor a notification nor a response")
}

// Checked is how many messages were checked.
func (c *Checker) Checked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checked
}

// A set is the compiled schemas of one generation.
type set struct {
	docs    []doc
	envelop doc
	results map[string][]string

	mu       sync.Mutex                    // the compiler is for one at a time
	compiled map[string]*jsonschema.Schema // by URL
}

type doc struct {
	url     string
	defs    map[string]any
	methods map[string]string // wire method to the definition's name
	c       *jsonschema.Compiler
}

var (
	setsMu sync.Mutex
	sets   = map[taskmodel.Generation]*set{}
)

// schemas compiles, once a process, what a generation needs.
func schemas(g taskmodel.Generation) (*set, error) {
	setsMu.Lock()
	defer setsMu.Unlock()
	if s := sets[g]; s != nil {
		return s, nil
	}
	s := &set{compiled: map[string]*jsonschema.Schema{}}
	files := []string{"mcp-2025-11-25.schema.json"}
	s.results = resultsLegacy
	if g == taskmodel.GenExtension {
		// The extension's own definitions go before the core's.
		files = []string{"ext-tasks.schema.json", "mcp-2026-07-28.schema.json"}
		s.results = resultsModern
	}
	for _, f := range files {
		d, err := load(f)
		if err != nil {
			return nil, err
		}
		s.docs = append(s.docs, d)
	}
	s.envelop = s.docs[len(s.docs)-1]
	sets[g] = s
	return s, nil
}

// What a request is answered with, by method; the second alternative of a
// call that asked for a task is CreateTaskResult.
var (
	resultsLegacy = map[string][]string{
		"initialize": {"InitializeResult"}, "ping": {"EmptyResult"}, "logging/setLevel": {"EmptyResult"},
		"tools/list": {"ListToolsResult"}, "tools/call": {"CallToolResult"},
		"tasks/get": {"GetTaskResult"}, "tasks/list": {"ListTasksResult"}, "tasks/cancel": {"CancelTaskResult"},
		"tasks/result": {"GetTaskPayloadResult"}, "roots/list": {"ListRootsResult"},
		"elicitation/create": {"ElicitResult"}, "sampling/createMessage": {"CreateMessageResult"},
	}
	resultsModern = map[string][]string{
		"server/discover": {"DiscoverResult"}, "tools/list": {"ListToolsResult"},
		"tools/call": {"CallToolResult", "InputRequiredResult", "CreateTaskResult"},
		"tasks/get":  {"GetTaskResult"}, "tasks/cancel": {"CancelTaskResult"}, "tasks/update": {"UpdateTaskResult"},
		"subscriptions/listen": {"SubscriptionsListenResult"},
	}
)

func load(file string) (doc, error) {
	b, err := os.ReadFile(filepath.Join(folder(), file))
	if err != nil {
		return doc{}, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return doc{}, err
	}
	root, _ := v.(map[string]any)
	delete(root, "$id") // so that references resolve against our URL
	d := doc{url: "mem:///" + file, methods: map[string]string{}}
	d.defs, _ = root["$defs"].(map[string]any)
	allowFractions(d.defs)
	for name, def := range d.defs {
		props, _ := at(def, "properties")
		m, _ := at(props, "method", "const")
		if s, ok := m.(string); ok {
			d.methods[s] = name
		}
	}
	d.c = jsonschema.NewCompiler()
	d.c.AssertFormat()
	if err := d.c.AddResource(d.url, root); err != nil {
		return doc{}, err
	}
	return d, nil
}

// allowFractions mends the published ElicitResult, whose content may hold
// strings, integers and booleans but, against the specification's text and its
// NumberSchema, no number with a fraction.
func allowFractions(defs map[string]any) {
	any1, _ := at(defs["ElicitResult"], "properties", "content", "additionalProperties", "anyOf")
	alts, _ := any1.([]any)
	for _, a := range alts {
		m, _ := a.(map[string]any)
		if types, ok := m["type"].([]any); ok {
			m["type"] = append(types, "number")
		}
	}
}

func at(v any, path ...string) (any, bool) {
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[p]; !ok {
			return nil, false
		}
	}
	return v, true
}

// message checks a request or notification by its method's definition; a
// method that the schema lacks (the draft's own) by the envelope.
func (s *set) message(method string, request bool, b []byte) error {
	for _, d := range s.docs {
		if name, ok := d.methods[method]; ok {
			return s.validate(d, name, b)
		}
	}
	if request {
		return s.envelope("JSONRPCRequest", b)
	}
	return s.envelope("JSONRPCNotification", b)
}

func (s *set) envelope(name string, b []byte) error { return s.validate(s.envelop, name, b) }

// result checks a result by what may answer the method.
func (s *set) result(method string, asTask bool, b []byte) error {
	names := s.results[method]
	if len(names) == 0 {
		return nil
	}
	if asTask {
		names = append([]string{"CreateTaskResult"}, names...)
	}
	var first error
	for _, n := range names {
		for _, d := range s.docs {
			if d.defs[n] == nil {
				continue
			}
			err := s.validate(d, n, b)
			if err == nil {
				return nil
			}
			if first == nil {
				first = fmt.Errorf("as an answer to %s: %w", method, err)
			}
			break
		}
	}
	return first
}

func (s *set) validate(d doc, name string, b []byte) error {
	url := d.url + "#/$defs/" + name
	s.mu.Lock()
	sch := s.compiled[url]
	if sch == nil {
		var err error
		if sch, err = d.c.Compile(url); err != nil {
			s.mu.Unlock()
			return err
		}
		s.compiled[url] = sch
	}
	s.mu.Unlock()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	if err := sch.Validate(v); err != nil {
		return fmt.Errorf("is no %s: %w", name, err)
	}
	return nil
}

// folder is where the schemas are, "" when they are not.
func folder() string {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return ""
	}
	dir := filepath.Join(filepath.Dir(here), "..", "..", "..", "shared", "schema")
	if _, err := os.Stat(filepath.Join(dir, "mcp-2025-11-25.schema.json")); err != nil {
		return ""
	}
	return dir
}
