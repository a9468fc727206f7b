package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// enc is v as JSON without HTML escapes. The values are our own and can be
// encoded.
func enc(v any) json.RawMessage {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return json.RawMessage(bytes.TrimRight(b.Bytes(), "\n"))
}

// splice puts a member at the front of a JSON object of ours.
func splice(object json.RawMessage, name string, value any) json.RawMessage {
	object = bytes.TrimSpace(object)
	if len(object) < 2 || object[0] != '{' {
		object = json.RawMessage("{}")
	}
	var b bytes.Buffer
	b.WriteByte('{')
	b.Write(enc(name))
	b.WriteByte(':')
	b.Write(enc(value))
	if len(bytes.TrimSpace(object[1:len(object)-1])) > 0 {
		b.WriteByte(',')
	}
	b.Write(object[1:])
	return b.Bytes()
}

// compact removes the space from JSON that stands in our sources for reading.
func compact(s string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}

// isObject reports whether b is a JSON object.
func isObject(b json.RawMessage) bool {
	t := bytes.TrimSpace(b)
	return len(t) > 1 && t[0] == '{'
}

// A checker keeps compiled schemas by their text: there is one text per tool
// and per form, and compiling costs more than checking. It is safe for
// concurrent use.
type checker struct {
	mu     sync.Mutex
	byText map[string]*jsonschema.Schema
}

// violations says in words how value breaks schema; "" when it does not.
func (k *checker) violations(schema, value json.RawMessage) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	compiled := k.byText[string(schema)]
	if compiled == nil {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
		if err != nil {
			return ""
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("mem:///schema.json", doc); err != nil {
			return ""
		}
		s, err := c.Compile("mem:///schema.json")
		if err != nil {
			return ""
		}
		compiled = s
		if k.byText == nil {
			k.byText = map[string]*jsonschema.Schema{}
		}
		k.byText[string(schema)] = s
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return "not JSON"
	}
	err = compiled.Validate(v)
	if err == nil {
		return ""
	}
	ve, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return err.Error()
	}
	var words []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			where := strings.Join(e.InstanceLocation, "/")
			text := strings.TrimSpace(lastLine(e.Error()))
			if where != "" && !strings.Contains(text, where) {
				text = where + ": " + text
			}
			words = append(words, text)
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(ve)
	sort.Strings(words)
	return strings.Join(words, "; ")
}

// lastLine is the validator's message without its heading.
func lastLine(s string) string {
	if i := strings.LastIndex(s, "\n- "); i >= 0 {
		s = s[i+3:]
	}
	return s
}

// An rpcError is a JSON-RPC error as this server sends it.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// JSON-RPC's own codes.
const (
	codeParse    = -32700
	codeRequest  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
)
