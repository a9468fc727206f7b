package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Blocked is the error of an answer that may not be sent yet.
type Blocked struct{ Problems []Problem }

func (e *Blocked) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Answer gives the content to send: the set fields in the schema's order, then
// what else was written as JSON. It fails with *Blocked while anything is
// missing or wrong.
func (f *Form) Answer(d Draft) (json.RawMessage, error) {
	if ps := f.Problems(d); len(ps) > 0 {
		return nil, &Blocked{ps}
	}
	return f.Preview(d), nil
}

// Preview gives the content as it would be sent now, valid or not. What is no
// number or no JSON yet stands in it as text.
func (f *Form) Preview(d Draft) json.RawMessage {
	if d.Raw != nil {
		if v, err := decode([]byte(*d.Raw), 200); err == nil {
			return encode(v)
		}
		return encode(*d.Raw)
	}
	return encode(f.candidate(d))
}

func (f *Form) candidate(d Draft) *object {
	o := newObject()
	for i, fl := range f.Fields {
		if i < len(d.Values) && d.Values[i].Set {
			o.set(fl.Name, fl.content(d.Values[i]))
		}
	}
	for _, m := range d.Extra {
		if v, err := decode(m.Value, 200); err == nil && f.Field(m.Name) < 0 {
			o.set(m.Name, v)
		}
	}
	return o
}

// content gives what a set value is in JSON.
func (f Field) content(v Value) any {
	if v.Other != nil {
		x, err := decode(v.Other, 200)
		if err != nil {
			return string(v.Other)
		}
		return x
	}
	switch f.Kind {
	case Number, Integer:
		return numeric(f.Kind, v.Text)
	case Boolean:
		return v.On
	case Choice:
		for _, p := range v.Picked {
			if p >= 0 && p < len(f.Options) {
				return f.Options[p].Value
			}
		}
		return nil
	case Multi:
		out := []any{}
		for _, p := range v.Picked {
			if p >= 0 && p < len(f.Options) {
				out = append(out, f.Options[p].Value)
			}
		}
		return out
	case List:
		out := []any{}
		for _, l := range lines(v.Text) {
			switch {
			case f.Item == Number || f.Item == Integer:
				out = append(out, numeric(f.Item, l))
			case f.Item == Boolean && (l == "true" || l == "false"):
				out = append(out, l == "true")
			default:
				out = append(out, l)
			}
		}
		return out
	case JSON:
		x, err := decode([]byte(v.Text), 200)
		if err != nil {
			return v.Text
		}
		return x
	}
	return v.Text
}

func numeric(k Kind, text string) any {
	text = strings.TrimSpace(text)
	r, ok := parseNumber(text)
	if !ok {
		return text
	}
	if k == Integer && r.IsInt() {
		return json.Number(wholeNumber(r))
	}
	return json.Number(text)
}

// FromJSON fills a draft from JSON text: an object. A member that the schema
// does not name is kept and sent too; a value that its field cannot show is
// kept as it is.
func (f *Form) FromJSON(raw json.RawMessage) (Draft, error) {
	v, err := decode(bytes.TrimSpace(raw), 200)
	if err != nil {
		return Draft{}, jsonError(raw, err)
	}
	o, ok := v.(*object)
	if !ok {
		return Draft{}, errors.New("the answer must be a JSON object, in { }")
	}
	if f.RawOnly != "" {
		s := string(raw)
		return Draft{Raw: &s}, nil
	}
	d := Draft{Values: make([]Value, len(f.Fields))}
	for _, k := range o.keys {
		if i := f.Field(k); i >= 0 {
			d.Values[i] = f.Fields[i].value(o.vals[k])
		} else {
			d.Extra = append(d.Extra, Member{k, encode(o.vals[k])})
		}
	}
	return d, nil
}

// Pretty gives the content as it would be sent now, indented to be read.
func (f *Form) Pretty(d Draft) string {
	if d.Raw != nil {
		return *d.Raw
	}
	var b bytes.Buffer
	if err := json.Indent(&b, f.Preview(d), "", "  "); err != nil {
		return string(f.Preview(d))
	}
	return b.String()
}

// jsonError says where text stops being JSON.
func jsonError(raw []byte, err error) error {
	var le *LimitError
	if errors.As(err, &le) {
		return err
	}
	// The token reader counts from elsewhere; Unmarshal knows the place.
	var x any
	var syn *json.SyntaxError
	if !errors.As(json.Unmarshal(raw, &x), &syn) {
		return fmt.Errorf("this is not JSON: %w", err)
	}
	at := min(max(int(syn.Offset)-1, 0), len(raw))
	line := 1 + bytes.Count(raw[:at], []byte("\n"))
	col := at - bytes.LastIndexByte(raw[:at], '\n')
	return fmt.Errorf("this is not JSON: line %d, column %d: %s", line, col, strings.TrimPrefix(syn.Error(), "json: "))
}
