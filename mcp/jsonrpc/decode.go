package jsonrpc

import (
	"encoding/json"
	"fmt"
)

// DefaultMaxDepth is how deeply objects and arrays may nest where no other
// bound is given. encoding/json stops at 10,000; nothing that a person can read
// comes near a thousand.
const DefaultMaxDepth = 1000

// Decode reads one JSON-RPC object. It checks the syntax of the whole text,
// once, and does not look into params, result and data beyond that. maxDepth
// bounds the nesting; 0 is DefaultMaxDepth.
//
// Members beside the envelope's are ignored, the last of a repeated member
// counts (as in encoding/json), and names are matched exactly. On an error the
// message holds what had been read until then and the error wraps ErrSyntax,
// ErrDepth or ErrShape.
//
// A missing "jsonrpc" is left to the caller (Version is ""): a log line in JSON
// must not pass for a request, but an answer that a call waits for may lack it.
func Decode(b []byte, maxDepth int) (Message, error) {
	if maxDepth <= 0 {
		maxDepth = DefaultMaxDepth
	}
	var m Message
	errRaw, err := envelope(b, &m, func(b []byte, i int) (int, error) { return skipValue(b, i, maxDepth-1) }, true)
	if err != nil {
		return m, err
	}
	return m, classify(&m, errRaw)
}

// Peek finds kind and id of what may be one JSON-RPC object without checking
// it: it also reads the beginning of a text that was cut off or is broken
// further on. KindInvalid means that it could not tell.
func Peek(b []byte) (Kind, ID) {
	var m Message
	errRaw, _ := envelope(b, &m, skipLoose, false)
	if m.Version != "2.0" || classify(&m, errRaw) != nil {
		return KindInvalid, m.ID
	}
	return m.Kind, m.ID
}

// Split gives the elements of a batch, unchecked, or false when it is none.
func Split(b []byte) ([]json.RawMessage, bool) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return nil, false
	}
	var out []json.RawMessage
	i = skipSpace(b, i+1)
	for i < len(b) && b[i] != ']' {
		end, err := skipLoose(b, i)
		if err != nil {
			return nil, false
		}
		out = append(out, json.RawMessage(b[i:end:end]))
		i = skipSpace(b, end)
		if i < len(b) && b[i] == ',' {
			if i = skipSpace(b, i+1); i < len(b) && b[i] == ']' {
				return nil, false
			}
			continue
		}
		if i < len(b) && b[i] != ']' {
			return nil, false
		}
	}
	if i >= len(b) || skipSpace(b, i+1) != len(b) {
		return nil, false
	}
	return out, true
}

// envelope walks over the members of the object in b and keeps those that
// JSON-RPC has. It returns the raw error member. whole asks for the end of the
// text after the object.
func envelope(b []byte, m *Message, skip func([]byte, int) (int, error), whole bool) (json.RawMessage, error) {
	var rawErr json.RawMessage
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		if i < len(b) {
			// Valid JSON of another kind is no syntax error.
			if end, err := skip(b, i); err == nil && skipSpace(b, end) == len(b) {
				return nil, fmt.Errorf("%w: no object", ErrShape)
			}
		}
		return nil, syntax(b, i, "an object")
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return nil, tail(b, i+1, whole)
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return rawErr, syntax(b, i, "a member's name")
		}
		end, err := skipString(b, i)
		if err != nil {
			return rawErr, err
		}
		key := memberName(b[i:end])
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return rawErr, syntax(b, i, "a colon")
		}
		i = skipSpace(b, i+1)
		end, err = skip(b, i)
		if err != nil {
			// Peek wants to know what the broken value was to be.
			switch key {
			case memberResult:
				m.Result = json.RawMessage{}
			case memberError:
				rawErr = json.RawMessage("{}")
			}
			return rawErr, err
		}
		val := json.RawMessage(b[i:end:end])
		switch key {
		case memberVersion:
			m.Version = text(val)
		case memberID:
			m.ID = ID(val)
		case memberMethod:
			if len(val) == 0 || val[0] != '"' {
				m.Method, m.Kind = "", KindInvalid
				break
			}
			m.Method, m.Kind = text(val), KindRequest // told apart in classify
		case memberParams:
			m.Params = val
		case memberResult:
			m.Result = val
		case memberError:
			rawErr = val
		}
		i = skipSpace(b, end)
		if i >= len(b) {
			return rawErr, syntax(b, i, "a comma or the object's end")
		}
		if b[i] == '}' {
			return rawErr, tail(b, i+1, whole)
		}
		if b[i] != ',' {
			return rawErr, syntax(b, i, "a comma or the object's end")
		}
		i = skipSpace(b, i+1)
	}
}

func tail(b []byte, i int, whole bool) error {
	if i = skipSpace(b, i); whole && i < len(b) {
		return syntax(b, i, "nothing after the object")
	}
	return nil
}

// classify settles the kind once all members are known.
func classify(m *Message, rawErr json.RawMessage) error {
	method := m.Kind == KindRequest
	m.Kind = KindInvalid
	if m.ID != "" && m.ID != "null" && m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9') {
		m.ID = ""
		return fmt.Errorf("%w: the id is neither a string nor a number", ErrShape)
	}
	if method {
		switch m.ID {
		case "":
			m.Kind = KindNotification
		case "null":
			return fmt.Errorf("%w: a request with the id null", ErrShape)
		default:
			m.Kind = KindRequest
		}
		return nil
	}
	if len(rawErr) > 0 && string(rawErr) != "null" {
		m.Error = decodeError(rawErr)
		m.Result = nil
		m.Kind = KindResponse
		return nil
	}
	if m.Result != nil && m.ID != "" {
		m.Kind = KindResponse
		return nil
	}
	return fmt.Errorf("%w: neither a method nor a result nor an error", ErrShape)
}

// decodeError reads the error member leniently: what has another shape is kept
// whole in Data, so that a person still sees it.
func decodeError(raw json.RawMessage) *Error {
	var w struct {
		Code    json.RawMessage
		Message json.RawMessage
		Data    json.RawMessage
	}
	if raw[0] == '"' {
		return &Error{Message: text(raw), Data: raw}
	}
	if raw[0] != '{' || json.Unmarshal(raw, &w) != nil {
		return &Error{Message: "an error without the members that JSON-RPC gives it", Data: raw}
	}
	e := &Error{Data: w.Data}
	var f float64
	if json.Unmarshal(w.Code, &f) == nil && f >= -1<<53 && f <= 1<<53 {
		e.Code = int(f)
	}
	if len(w.Message) > 0 && w.Message[0] == '"' {
		e.Message = text(w.Message)
	} else if len(w.Message) > 0 {
		e.Message = string(w.Message)
	}
	return e
}

type memberKey int

const (
	memberOther memberKey = iota
	memberVersion
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
)

// memberName recognises a quoted name without allocating.
func memberName(q []byte) memberKey {
	for _, c := range q {
		if c == '\\' {
			q = []byte(`"` + text(q) + `"`)
			break
		}
	}
	switch string(q) {
	case `"jsonrpc"`:
		return memberVersion
	case `"id"`:
		return memberID
	case `"method"`:
		return memberMethod
	case `"params"`:
		return memberParams
	case `"result"`:
		return memberResult
	case `"error"`:
		return memberError
	}
	return memberOther
}

// text gives the string that a quoted JSON text stands for, "" for any other.
func text(q []byte) string {
	if len(q) < 2 || q[0] != '"' {
		return ""
	}
	plain := true
	for _, c := range q[1 : len(q)-1] {
		if c == '\\' || c >= 0x80 {
			plain = false
			break
		}
	}
	if plain {
		return string(q[1 : len(q)-1])
	}
	var s string
	if json.Unmarshal(q, &s) != nil {
		return ""
	}
	return s
}
