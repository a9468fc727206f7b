package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Masked stands for a value that is not to be seen.
const Masked = "***"

// hides reports whether a schema, or one that it is made of, asks for a secret:
// format "password", or writeOnly. seen are the objects that were looked at.
func (p *parser) hides(v any, depth int, seen map[*object]bool) bool {
	if depth > 64 {
		return true // nobody knows
	}
	switch v := v.(type) {
	case *object:
		if seen[v] {
			return false
		}
		seen[v] = true
		if w, ok := v.get("writeOnly").(bool); ok && w || v.str("format") == "password" {
			return true
		}
		if ref := v.str("$ref"); ref != "" {
			if to, ok := resolve(p.root, ref); ok && p.hides(to, depth+1, seen) {
				return true
			}
		}
		for _, k := range v.keys {
			if p.hides(v.vals[k], depth+1, seen) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if p.hides(x, depth+1, seen) {
				return true
			}
		}
	}
	return false
}

// part gives the members of an answer that are secret, or hold something
// secret, and the answer with each of them replaced by what f says, left out
// where f says nil. An answer that is no object comes back as it is.
func (f *Form) part(content json.RawMessage, with func(Member) any) ([]Member, json.RawMessage) {
	if len(content) == 0 || !f.hasSecrets() {
		return nil, content
	}
	v, err := decode(content, 200)
	o, ok := v.(*object)
	if err != nil || !ok {
		return nil, content
	}
	var found []Member
	out := newObject()
	for _, k := range o.keys {
		if i := f.Field(k); i < 0 || !f.Fields[i].hides || o.vals[k] == nil {
			out.set(k, o.vals[k])
			continue
		}
		m := Member{Name: k, Value: encode(o.vals[k])}
		found = append(found, m)
		if x := with(m); x != nil {
			out.set(k, x)
		}
	}
	if len(found) == 0 {
		return nil, content
	}
	return found, encode(out)
}

func (f *Form) hasSecrets() bool {
	for i := range f.Fields {
		if f.Fields[i].hides {
			return true
		}
	}
	return false
}

// namesSecret reports whether a text may hold something secret: it has the name
// of such a field in it, or an escape, which may be part of one.
func (f *Form) namesSecret(text string) bool {
	for i := range f.Fields {
		if fl := &f.Fields[i]; fl.hides && (strings.Contains(text, fl.Name) || strings.Contains(text, `\u`)) {
			return true
		}
	}
	return false
}

// Secrets gives the members of an answer that are secret, or hold something
// secret.
func (f *Form) Secrets(content json.RawMessage) []Member {
	found, _ := f.part(content, func(Member) any { return nil })
	return found
}

// WithoutSecrets is an answer as it may be kept: without what is secret in it.
func (f *Form) WithoutSecrets(content json.RawMessage) json.RawMessage {
	_, rest := f.part(content, func(Member) any { return nil })
	return rest
}

// Hidden is an answer as it may be shown: what is secret in it is Masked.
func (f *Form) Hidden(content json.RawMessage) json.RawMessage {
	_, rest := f.part(content, func(Member) any { return Masked })
	return rest
}

// SplitSecrets gives what is secret in an answer to a schema, and the answer
// without it. A schema that cannot be used is an error: what is secret is not
// known.
func SplitSecrets(schema, content json.RawMessage, l Limits) (secrets []Member, rest json.RawMessage, err error) {
	f, err := Parse(schema, l.wide())
	if err != nil {
		return nil, content, fmt.Errorf("looking for secrets: %w", err)
	}
	secrets, rest = f.part(content, func(Member) any { return nil })
	return secrets, rest, nil
}

// Asks reports whether a schema asks for something secret.
func Asks(schema json.RawMessage, l Limits) bool {
	if !bytes.Contains(schema, []byte("password")) && !bytes.Contains(schema, []byte("writeOnly")) && !bytes.Contains(schema, []byte(`\u`)) {
		return false
	}
	f, err := Parse(schema, l.wide())
	return err == nil && f.hasSecrets()
}

// Shown is an answer to a schema as it may be shown: what is secret in it is
// Masked.
func Shown(schema, content json.RawMessage, l Limits) json.RawMessage {
	if !Asks(schema, l) {
		return content
	}
	f, err := Parse(schema, l.wide())
	if err != nil {
		return content
	}
	return f.Hidden(content)
}
