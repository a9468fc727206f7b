package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// Limits bound what a schema may cost. The zero value of each stands for its
// default. Whoever reads the same schema has to use the same ones: to one it
// has fields, some of them secret, and to another it is too large to say.
type Limits struct {
	Bytes   int // of the schema's text
	Depth   int // of nesting in the schema's text
	Fields  int
	Options int // of one field
	Cost    int // schemas visited to check one answer, with every reference followed
}

// defaults are the limits used where none are given.
var defaults = Limits{Bytes: 256 << 10, Depth: 64, Fields: 200, Options: 1000, Cost: 50_000}

func (l Limits) filled() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaults.Bytes
	}
	if l.Depth == 0 {
		l.Depth = defaults.Depth
	}
	if l.Fields == 0 {
		l.Fields = defaults.Fields
	}
	if l.Options == 0 {
		l.Options = defaults.Options
	}
	if l.Cost == 0 {
		l.Cost = defaults.Cost
	}
	return l
}

// wide are limits that are not below the defaults: what is secret in an answer is
// found, too, where a person wants no form of so large a schema.
func (l Limits) wide() Limits {
	l = l.filled()
	return Limits{Bytes: max(l.Bytes, defaults.Bytes), Depth: max(l.Depth, defaults.Depth), Fields: max(l.Fields, defaults.Fields),
		Options: max(l.Options, defaults.Options), Cost: max(l.Cost, defaults.Cost)}
}

const tooDeep = "It is nested too deeply."

// A LimitError says that a schema is over a limit; its text is a sentence.
type LimitError struct{ Text string }

func (e *LimitError) Error() string { return e.Text }

// An object is a JSON object that remembers the order of its members. Values
// are *object, []any, string, json.Number, bool or nil.
type object struct {
	keys []string
	vals map[string]any
}

func (o *object) get(k string) any {
	if o == nil {
		return nil
	}
	return o.vals[k]
}

func (o *object) has(k string) bool {
	if o == nil {
		return false
	}
	_, ok := o.vals[k]
	return ok
}

func (o *object) str(k string) string {
	s, _ := o.get(k).(string)
	return s
}

func (o *object) set(k string, v any) {
	if _, ok := o.vals[k]; !ok {
		o.keys = append(o.keys, k)
	}
	o.vals[k] = v
}

func newObject() *object { return &object{vals: map[string]any{}} }

// decode reads exactly one JSON value, keeping order and digits.
func decode(raw []byte, depth int) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decodeValue(d, depth)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if depth <= 0 {
			return nil, &LimitError{tooDeep}
		}
		if t == '[' {
			list := []any{}
			for d.More() {
				v, err := decodeValue(d, depth-1)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err := d.Token()
			return list, err
		}
		o := newObject()
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, depth-1)
			if err != nil {
				return nil, err
			}
			o.set(k.(string), v)
		}
		_, err := d.Token()
		return o, err
	case json.Number:
		if !boundedNumber(string(t)) {
			return nil, &LimitError{fmt.Sprintf("The number %.20s… is too large to handle.", t)}
		}
		return t, nil
	}
	return t, nil
}

// encode writes a decoded value back, in order and with the same digits.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	encodeTo(&b, v)
	return b.Bytes()
}

func encodeTo(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case *object:
		b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeTo(b, k)
			b.WriteByte(':')
			encodeTo(b, v.vals[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeTo(b, x)
		}
		b.WriteByte(']')
	case json.RawMessage:
		b.Write(v)
	case json.Number:
		b.WriteString(string(v))
	case string:
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // a string always encodes
		b.Truncate(b.Len() - 1)
	case bool:
		if v {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	default:
		b.WriteString("null")
	}
}

// plainValue turns a decoded value into what the validator takes.
func plainValue(v any) any {
	switch v := v.(type) {
	case *object:
		m := make(map[string]any, len(v.keys))
		for k, x := range v.vals {
			m[k] = plainValue(x)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = plainValue(x)
		}
		return l
	}
	return v
}

// resolve finds what a local reference points to.
func resolve(root any, ref string) (any, bool) {
	if ref == "#" {
		return root, true
	}
	ptr, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return anchor(root, strings.TrimPrefix(ref, "#"), 0)
	}
	if un, err := url.PathUnescape(ptr); err == nil {
		ptr = un
	}
	at := root
	for part := range strings.SplitSeq(ptr, "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case *object:
			if !v.has(part) {
				return nil, false
			}
			at = v.get(part)
		case []any:
			i := 0
			if _, err := fmt.Sscanf(part, "%d", &i); err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}

func anchor(v any, name string, depth int) (any, bool) {
	switch v := v.(type) {
	case *object:
		if v.str("$anchor") == name || v.str("$dynamicAnchor") == name {
			return v, true
		}
		for _, k := range v.keys {
			if f, ok := anchor(v.vals[k], name, depth+1); ok {
				return f, ok
			}
		}
	case []any:
		for _, x := range v {
			if f, ok := anchor(x, name, depth+1); ok {
				return f, ok
			}
		}
	}
	return nil, false
}
