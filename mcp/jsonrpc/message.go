package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Codes that JSON-RPC 2.0 itself defines (section 5.1).
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is the error member of a response. Its text is the peer's own and
// may hold anything; whoever shows it sanitises it first.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error gives the peer's words and its code.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("error %d", e.Code)
	}
	return fmt.Sprintf("%s (%d)", e.Message, e.Code)
}

// A Message is one decoded envelope. The raw members share memory with the
// bytes that were decoded.
type Message struct {
	Kind    Kind
	Version string // the jsonrpc member; "" when it is missing or no string
	ID      ID     // "null" when it is null, "" when there is none
	Method  string
	Params  json.RawMessage
	Result  json.RawMessage
	Error   *Error
}

// Faults that Decode reports, wrapped with the place where they are.
var (
	ErrSyntax = errors.New("not JSON")
	ErrShape  = errors.New("not JSON-RPC")
	ErrDepth  = errors.New("nested too deeply")
)

// IntID is the id of a whole number.
func IntID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }

// StringID is the id of a string.
func StringID(s string) ID { return ID(appendString(nil, s)) }

// Text gives a string id without its quotes and any other id as it stands; it
// is what a person reads.
func (id ID) Text() string {
	if len(id) > 1 && id[0] == '"' {
		var s string
		if json.Unmarshal([]byte(id), &s) == nil {
			return s
		}
	}
	return string(id)
}

// MarshalJSON writes the id as it stands; no id is null.
func (id ID) MarshalJSON() ([]byte, error) {
	if id == "" {
		return []byte("null"), nil
	}
	return []byte(id), nil
}

// UnmarshalJSON keeps the spelling.
func (id *ID) UnmarshalJSON(b []byte) error {
	*id = ID(b)
	return nil
}

// IsBatch says whether b is an array, which JSON-RPC 2.0 section 6 calls a
// batch (used by MCP 2025-03-26 and before).
func IsBatch(b []byte) bool {
	i := skipSpace(b, 0)
	return i < len(b) && b[i] == '['
}

// Encode makes the bytes of one message, on one line. Exactly the members that
// its kind has are written.
func Encode(m Message) (json.RawMessage, error) {
	b := make([]byte, 0, 64+len(m.Method)+len(m.Params)+len(m.Result))
	b = append(b, `{"jsonrpc":"2.0"`...)
	if m.Kind == KindRequest || m.Kind == KindResponse {
		b = append(b, `,"id":`...)
		if m.ID == "" {
			b = append(b, "null"...)
		} else {
			b = append(b, m.ID...)
		}
	}
	switch m.Kind {
	case KindRequest, KindNotification:
		b = append(b, `,"method":`...)
		b = appendString(b, m.Method)
		if len(m.Params) > 0 {
			b = append(b, `,"params":`...)
			b = append(b, m.Params...)
		}
	case KindResponse:
		if m.Error != nil {
			e, err := marshal(m.Error)
			if err != nil {
				return nil, fmt.Errorf("encode error %d: %w", m.Error.Code, err)
			}
			b = append(append(b, `,"error":`...), e...)
			break
		}
		b = append(b, `,"result":`...)
		if len(m.Result) == 0 {
			b = append(b, "{}"...)
		} else {
			b = append(b, m.Result...)
		}
	default:
		return nil, fmt.Errorf("encode: a message of kind %d cannot be sent", m.Kind)
	}
	return append(b, '}'), nil
}

// marshal is json.Marshal without the HTML escapes; what it returns holds no
// newline, because raw JSON is compacted on the way.
func marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func appendString(b []byte, s string) []byte {
	q, err := marshal(s)
	if err != nil {
		return append(b, `""`...)
	}
	return append(b, q...)
}
