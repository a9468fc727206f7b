package mcp

import (
	"encoding/json"
	"strings"
)

// The functions here walk JSON text without building anything from it. A task
// object is read on every poll and every push, so this is where ingest spends
// its time; encoding/json would cost several times as much. They take text
// that the peer's scanner has already found to be valid and bounded in depth;
// on anything else they end early and never fail.

// members calls f with each member of the JSON object b, in order, until f
// returns false. key is the member's name with escapes resolved.
func members(b []byte, f func(key string, value json.RawMessage) bool) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return
	}
	i = space(b, i+1)
	for i < len(b) && b[i] == '"' {
		end := stringEnd(b, i)
		if end < 0 {
			return
		}
		key := text(b[i:end])
		i = space(b, end)
		if i >= len(b) || b[i] != ':' {
			return
		}
		i = space(b, i+1)
		end = valueEnd(b, i)
		if end <= i {
			return
		}
		if !f(key, b[i:end:end]) {
			return
		}
		i = space(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
		i = space(b, i+1)
	}
}

// elements calls f with each element of the JSON array b, until f returns false.
func elements(b []byte, f func(value json.RawMessage) bool) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return
	}
	i = space(b, i+1)
	for i < len(b) && b[i] != ']' {
		end := valueEnd(b, i)
		if end <= i || !f(b[i:end:end]) {
			return
		}
		i = space(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
		i = space(b, i+1)
	}
}

// member returns one member of the object b, nil when it is not there. Of
// several with one name the last counts, as in encoding/json.
func member(b []byte, name string) json.RawMessage {
	var found json.RawMessage
	members(b, func(k string, v json.RawMessage) bool {
		if k == name {
			found = v
		}
		return true
	})
	return found
}

// memberAt follows a path of names.
func memberAt(b []byte, path ...string) json.RawMessage {
	for _, p := range path {
		if b = member(b, p); b == nil {
			return nil
		}
	}
	return b
}

// stringAt is the string at a path, "" when there is none or it is no string.
func stringAt(b []byte, path ...string) string {
	v := memberAt(b, path...)
	if !isString(v) {
		return ""
	}
	return text(v)
}

func isString(v []byte) bool { return len(v) > 0 && v[0] == '"' }
func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }
func isArray(v []byte) bool  { return len(v) > 0 && v[0] == '[' }
func isNull(v []byte) bool   { return string(v) == "null" }

// text resolves a JSON string literal.
func text(lit []byte) string {
	if len(lit) < 2 {
		return ""
	}
	in := lit[1 : len(lit)-1]
	for _, c := range in {
		// Escapes, and bytes that may be no UTF-8, are left to encoding/json.
		if c == '\\' || c >= 0x80 {
			var s string
			if json.Unmarshal(lit, &s) != nil {
				return strings.ToValidUTF8(string(in), "\uFFFD")
			}
			return s
		}
	}
	return string(in)
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is the index after the string literal that begins at i, or -1.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// valueEnd is the index after the value that begins at i, or -1.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		for depth := 0; i < len(b); {
			switch b[i] {
			case '"':
				if i = stringEnd(b, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
	}
	return i
}
