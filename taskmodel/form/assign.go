package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ParseAssignments builds a tool's arguments from words of the command line:
// key=value, typed by the schema, and key:=JSON, taken as it is. A list takes
// the same key several times. Members stand in the schema's order, those that
// it does not name after them. It does not check the whole against the schema;
// ValidateAnswer does. Its errors are sentences.
func ParseAssignments(schema json.RawMessage, words []string, l Limits) (json.RawMessage, error) {
	f, err := Parse(schema, l)
	if err != nil {
		f = &Form{} // --no-check may still want to send it
	}
	got := newObject()
	lists := map[string]bool{}
	for _, w := range words {
		key, text, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%q is neither key=value nor key:=JSON", w)
		}
		if k, isJSON := strings.CutSuffix(key, ":"); isJSON && f.Field(key) < 0 {
			if k == "" {
				return nil, fmt.Errorf("%q has no key before :=", w)
			}
			v, err := decode([]byte(text), 200)
			if err != nil {
				return nil, fmt.Errorf("%s:= wants JSON: %w", k, jsonError([]byte(text), err))
			}
			if got.has(k) {
				return nil, fmt.Errorf("%s is given twice", k)
			}
			got.set(k, v)
			continue
		}
		if key == "" {
			return nil, fmt.Errorf("%q has no key before =", w)
		}
		v, many, err := f.assigned(key, text)
		if err != nil {
			return nil, err
		}
		switch {
		case many && (lists[key] || !got.has(key)):
			l, _ := got.get(key).([]any)
			lists[key] = true
			got.set(key, append(l, v))
		case got.has(key):
			return nil, fmt.Errorf("%s is given twice", key)
		default:
			got.set(key, v)
		}
	}
	out := newObject()
	for _, fl := range f.Fields {
		if got.has(fl.Name) {
			out.set(fl.Name, got.vals[fl.Name])
		}
	}
	for _, k := range got.keys {
		if !out.has(k) {
			out.set(k, got.vals[k])
		}
	}
	return encode(out), nil
}

// assigned reads one value by its field; many: it is one item of a list.
func (f *Form) assigned(key, text string) (v any, many bool, err error) {
	i := f.Field(key)
	if i < 0 {
		return text, false, nil
	}
	fl := f.Fields[i]
	scalar := func(k Kind) (any, error) {
		switch k {
		case Number, Integer:
			v := numeric(k, text)
			if _, isText := v.(string); isText {
				return nil, fmt.Errorf("%s must be a %s, %q is none", key, word(k == Integer, "whole number", "number"), text)
			}
			return v, nil
		case Boolean:
			if text != "true" && text != "false" {
				return nil, fmt.Errorf("%s must be true or false, not %q", key, text)
			}
			return text == "true", nil
		}
		return text, nil
	}
	choice := func() (any, error) {
		by := func(match func(o Option) bool) int { return slices.IndexFunc(fl.Options, match) }
		n := by(func(o Option) bool { return string(o.Value) == string(encode(text)) })
		if n < 0 {
			n = by(func(o Option) bool { return string(o.Value) == text })
		}
		if n < 0 {
			n = by(func(o Option) bool { return o.Title == text })
		}
		if n >= 0 {
			return fl.Options[n].Value, nil
		}
		return text, nil // what it could have been is for the check to say
	}
	switch fl.Kind {
	case Choice:
		v, err = choice()
	case Multi:
		v, err = choice()
		many = true
	case List:
		v, err = scalar(fl.Item)
		many = true
	case JSON:
		if v, err = decode([]byte(text), 200); err != nil {
			err = fmt.Errorf("%s is not a single value: write %s:=JSON", key, key)
		}
	default:
		v, err = scalar(fl.Kind)
	}
	return v, many, err
}
