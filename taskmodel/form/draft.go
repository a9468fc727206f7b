package form

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// A Value is what has been filled into one field. The zero Value is unset: the
// property is left out of the answer.
type Value struct {
	Set    bool            // false: left out
	Text   string          // Text, Number, Integer, JSON and List, as typed
	On     bool            // Boolean
	Picked []int           // Choice (one) and Multi: indexes of Options, in their order
	Other  json.RawMessage // a JSON value that the field cannot show; sent as it is until the field is edited
}

// Equal reports whether two values are the same.
func (v Value) Equal(w Value) bool {
	return v.Set == w.Set && v.Text == w.Text && v.On == w.On && slices.Equal(v.Picked, w.Picked) && bytes.Equal(v.Other, w.Other)
}

// A Member is a property of the answer that the schema does not name.
type Member struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// A Draft is what a person has filled in so far. Values go by the indexes of
// Form.Fields. Copy it with Clone before changing a shared one.
type Draft struct {
	Values []Value
	Extra  []Member
	Raw    *string // the whole answer as JSON text while it is edited so; then Values are not used
}

// Clone gives a draft that shares nothing with d.
func (d Draft) Clone() Draft {
	c := Draft{Values: slices.Clone(d.Values), Extra: slices.Clone(d.Extra)}
	for i := range c.Values {
		c.Values[i].Picked = slices.Clone(c.Values[i].Picked)
	}
	if d.Raw != nil {
		s := *d.Raw
		c.Raw = &s
	}
	return c
}

// Start gives the draft that a person begins with: defaults are preset, all
// else is unset.
func (f *Form) Start() Draft {
	d := Draft{Values: make([]Value, len(f.Fields))}
	for i, fl := range f.Fields {
		if fl.Default == nil || string(fl.Default) == "null" {
			continue
		}
		if v, err := decode(fl.Default, 64); err == nil {
			d.Values[i] = fl.value(v)
		}
	}
	if f.RawOnly != "" {
		s := "{}"
		d.Raw = &s
	}
	return d
}

// value makes a decoded JSON value the value of a field.
func (f Field) value(v any) Value {
	other := Value{Set: true, Other: encode(v)}
	pick := func(v any) int {
		raw := encode(v)
		for i, o := range f.Options {
			if sameJSON(o.Value, raw) {
				return i
			}
		}
		return -1
	}
	switch f.Kind {
	case Text:
		if s, ok := v.(string); ok {
			return Value{Set: true, Text: s}
		}
	case Number, Integer:
		if n, ok := v.(json.Number); ok {
			return Value{Set: true, Text: string(n)}
		}
	case Boolean:
		if b, ok := v.(bool); ok {
			return Value{Set: true, On: b}
		}
	case Choice:
		if i := pick(v); i >= 0 {
			return Value{Set: true, Picked: []int{i}}
		}
	case Multi:
		l, ok := v.([]any)
		if !ok {
			return other
		}
		out := Value{Set: true}
		for _, x := range l {
			i := pick(x)
			if i < 0 || len(out.Picked) > 0 && i <= out.Picked[len(out.Picked)-1] {
				return other // no such choice, a repeat, or another order
			}
			out.Picked = append(out.Picked, i)
		}
		return out
	case List:
		l, ok := v.([]any)
		if !ok {
			return other
		}
		var lines []string
		for _, x := range l {
			s, ok := f.line(x)
			if !ok {
				return other
			}
			lines = append(lines, s)
		}
		return Value{Set: true, Text: strings.Join(lines, "\n")}
	case JSON:
		var b bytes.Buffer
		if json.Indent(&b, encode(v), "", "  ") == nil {
			return Value{Set: true, Text: b.String()}
		}
	}
	return other
}

// line writes one item of a List, and whether it can stand on a line.
func (f Field) line(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, f.Item == Text && v != "" && !strings.ContainsAny(v, "\r\n") && strings.TrimSpace(v) == v
	case json.Number:
		return string(v), f.Item == Number || f.Item == Integer
	case bool:
		return string(encode(v)), f.Item == Boolean
	}
	return "", false
}

// lines are the items of a List as typed: empty lines count nothing.
func lines(text string) []string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err1 := decode(a, 64)
	y, err2 := decode(b, 64)
	return err1 == nil && err2 == nil && equalValue(x, y)
}

func equalValue(x, y any) bool {
	switch x := x.(type) {
	case json.Number:
		y, ok := y.(json.Number)
		if !ok {
			return false
		}
		a, ok1 := parseNumber(string(x))
		b, ok2 := parseNumber(string(y))
		return ok1 && ok2 && a.Cmp(b) == 0
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, equalValue)
	case *object:
		y, ok := y.(*object)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for _, k := range x.keys {
			if !y.has(k) || !equalValue(x.vals[k], y.vals[k]) {
				return false
			}
		}
		return true
	}
	switch y.(type) {
	case []any, *object:
		return false
	}
	return x == y
}

// draftFile is how a draft is kept: choices by their values, so that it can be
// taken up again when the same question comes with its options in another
// order.
type draftFile struct {
	Fields []draftField `json:"fields,omitempty"`
	Extra  []Member     `json:"extra,omitempty"`
	Raw    *string      `json:"raw,omitempty"`
}

type draftField struct {
	Name   string            `json:"name"`
	Text   string            `json:"text,omitempty"`
	On     bool              `json:"on,omitempty"`
	Picked []json.RawMessage `json:"picked,omitempty"`
	Other  json.RawMessage   `json:"other,omitempty"`
}

// MarshalDraft writes a draft for the journal: what was typed, valid or not.
// What is secret is left out; an answer that is being written as JSON, and is
// none yet, is left out whole where it names something secret.
func (f *Form) MarshalDraft(d Draft) json.RawMessage {
	file := draftFile{Extra: d.Extra, Raw: d.Raw}
	if d.Raw != nil && f.namesSecret(*d.Raw) {
		file.Raw = nil
		if json.Valid([]byte(*d.Raw)) {
			raw := string(f.WithoutSecrets(json.RawMessage(*d.Raw)))
			file.Raw = &raw
		}
	}
	for i, v := range d.Values {
		if i >= len(f.Fields) || !v.Set || f.Fields[i].hides {
			continue
		}
		df := draftField{Name: f.Fields[i].Name, Text: v.Text, On: v.On, Other: v.Other}
		for _, p := range v.Picked {
			if p >= 0 && p < len(f.Fields[i].Options) {
				df.Picked = append(df.Picked, f.Fields[i].Options[p].Value)
			}
		}
		file.Fields = append(file.Fields, df)
	}
	b, err := json.Marshal(file)
	if err != nil {
		return nil // only a broken Other could do it, and Other is always encoded here
	}
	return b
}

// UnmarshalDraft takes a kept draft up again. What no longer fits the schema
// is dropped; a draft that cannot be read gives an error and a fresh start.
func (f *Form) UnmarshalDraft(raw json.RawMessage) (Draft, error) {
	if len(raw) == 0 {
		return f.Start(), nil
	}
	var file draftFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return f.Start(), err
	}
	d := Draft{Values: make([]Value, len(f.Fields)), Extra: file.Extra, Raw: file.Raw}
	for _, df := range file.Fields {
		i := f.Field(df.Name)
		if i < 0 {
			continue
		}
		v := Value{Set: true, Text: df.Text, On: df.On, Other: df.Other}
		for o, op := range f.Fields[i].Options {
			for _, p := range df.Picked {
				if sameJSON(op.Value, p) {
					v.Picked = append(v.Picked, o)
					break
				}
			}
		}
		if f.Fields[i].Kind == Choice && len(v.Picked) != 1 && v.Other == nil {
			continue
		}
		d.Values[i] = v
	}
	if f.RawOnly != "" && d.Raw == nil {
		d.Raw = f.Start().Raw
	}
	return d, nil
}
