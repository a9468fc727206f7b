package mcp

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"mcptasks/mcp/transport"
)

// This file mirrors tool arguments into HTTP fields (2026-07-28
// basic/transports/streamable-http, "Custom Headers from Tool Parameters").

// A paramHeader is one property of an input schema that is mirrored.
type paramHeader struct {
	name string   // the field's name after "Mcp-Param-"
	path []string // property names from the root of the arguments
}

const (
	headerKeyword    = "x-mcp-header"
	headerParam      = "Mcp-Param-"
	maxHeaderNesting = 64
)

// paramHeaders finds the properties that an input schema wants mirrored. An
// annotation against the rules (empty, no token, used twice, on a type that is
// not integer, string or boolean, not statically reachable) makes the whole
// tool invalid: the error says which rule.
func paramHeaders(schema json.RawMessage) ([]paramHeader, error) {
	if !strings.Contains(string(schema), headerKeyword) {
		return nil, nil
	}
	w := headerWalk{seen: map[string]bool{}}
	w.object(schema, nil, 0)
	return w.found, w.err
}

type headerWalk struct {
	found []paramHeader
	seen  map[string]bool
	err   error
}

func (w *headerWalk) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// object walks a schema that is reached by properties alone.
func (w *headerWalk) object(schema json.RawMessage, path []string, depth int) {
	if w.err != nil || !isObject(schema) {
		return
	}
	if depth > maxHeaderNesting {
		w.fail("its input schema is nested too deeply")
		return
	}
	members(schema, func(k string, v json.RawMessage) bool {
		switch k {
		case headerKeyword:
			w.annotation(schema, v, path)
		case "properties":
			members(v, func(name string, sub json.RawMessage) bool {
				w.object(sub, append(path[:len(path):len(path)], name), depth+1)
				return w.err == nil
			})
		case "default", "const", "enum", "examples":
			// Values, not schemas.
		default:
			if at := hasHeaderKeyword(v, 0); at {
				w.fail("%s stands under %q, where it is not statically reachable", headerKeyword, k)
			}
		}
		return w.err == nil
	})
}

// annotation checks one x-mcp-header and keeps it.
func (w *headerWalk) annotation(schema, v json.RawMessage, path []string) {
	at := strings.Join(path, ".")
	name := ""
	if isString(v) {
		name = text(v)
	}
	switch {
	case len(path) == 0:
		w.fail("%s stands on the schema itself, not on a property", headerKeyword)
	case name == "":
		w.fail("%s of %s is empty or no string", headerKeyword, at)
	case !isToken(name):
		w.fail("%s of %s is no HTTP field name: %q", headerKeyword, at, name)
	case w.seen[strings.ToLower(name)]:
		w.fail("%s %q is used twice", headerKeyword, name)
	default:
		switch t := stringAt(schema, "type"); t {
		case "integer", "string", "boolean":
			w.seen[strings.ToLower(name)] = true
			w.found = append(w.found, paramHeader{name: name, path: path})
		default:
			w.fail("%s of %s is on type %q; only integer, string and boolean can be mirrored", headerKeyword, at, t)
		}
	}
}

// hasHeaderKeyword reports whether a schema holds an annotation anywhere.
func hasHeaderKeyword(b json.RawMessage, depth int) bool {
	found := false
	if depth > maxHeaderNesting {
		return false
	}
	switch {
	case isObject(b):
		members(b, func(k string, v json.RawMessage) bool {
			found = k == headerKeyword || hasHeaderKeyword(v, depth+1)
			return !found
		})
	case isArray(b):
		elements(b, func(v json.RawMessage) bool {
			found = hasHeaderKeyword(v, depth+1)
			return !found
		})
	}
	return found
}

// mirrorArguments gives the Mcp-Param-* fields of one call. A property that
// the arguments lack, or that is null, has no field.
func mirrorArguments(headers []paramHeader, args json.RawMessage) map[string]string {
	var out map[string]string
	for _, h := range headers {
		v := memberAt(args, h.path...)
		s, ok := mirrorValue(v)
		if !ok {
			continue
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[headerParam+h.name] = transport.EncodeHeader(s)
	}
	return out
}

// mirrorValue is the text of a primitive; false when there is nothing to
// mirror.
func mirrorValue(v json.RawMessage) (string, bool) {
	switch {
	case v == nil, isNull(v), isObject(v), isArray(v):
		return "", false
	case isString(v):
		return text(v), true
	}
	lit := string(v)
	if lit == "true" || lit == "false" {
		return lit, true
	}
	// Integers are decimal; 1.0 and 1e3 are integers in JSON Schema too.
	if strings.ContainsAny(lit, ".eE") && len(lit) < 64 {
		if f, _, err := big.ParseFloat(lit, 10, 256, big.ToNearestEven); err == nil && f.IsInt() && f.MantExp(nil) < 64 {
			i, _ := f.Int(nil)
			return i.String(), true
		}
	}
	return lit, true
}

// isToken reports whether s is an HTTP field name (RFC 9110, 5.1).
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			continue
		}
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
