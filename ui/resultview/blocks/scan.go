package blocks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxDepth bounds the nesting that is read.
const maxDepth = 1000

var errEnd = errors.New("the JSON text ends too early")

// A Scanner walks over JSON text without building values. Strings are skipped
// with the fast search for their end, so that large ones cost next to nothing.
// It is lenient in what stands inside numbers and escapes; whoever decodes them
// is not.
type Scanner struct {
	B []byte
	I int
}

// Space skips white space.
func (s *Scanner) Space() {
	for s.I < len(s.B) {
		switch s.B[s.I] {
		case ' ', '\n', '\t', '\r':
			s.I++
		default:
			return
		}
	}
}

// Peek gives the next byte that is no white space, 0 at the end.
func (s *Scanner) Peek() byte {
	s.Space()
	if s.I >= len(s.B) {
		return 0
	}
	return s.B[s.I]
}

// String skips a string and gives it with its quotes.
func (s *Scanner) String() ([]byte, error) {
	from := s.I
	if s.I >= len(s.B) || s.B[s.I] != '"' {
		return nil, fmt.Errorf("a string is missing at byte %d", from)
	}
	i := s.I + 1
	for k := i; k < min(i+24, len(s.B)); k++ { // most are short
		if c := s.B[k]; c == '"' {
			s.I = k + 1
			return s.B[from:s.I], nil
		} else if c == '\\' {
			break
		}
	}
	for {
		q := bytes.IndexByte(s.B[i:], '"')
		if q < 0 {
			return nil, errEnd
		}
		q += i
		n := 0 // backslashes before the quote
		for k := q - 1; k >= i && s.B[k] == '\\'; k-- {
			n++
		}
		i = q + 1
		if n%2 == 0 {
			s.I = i
			return s.B[from:i], nil
		}
	}
}

// skip passes over an object or an array by its brackets alone; what stands in
// it is looked at by whoever opens it.
func (s *Scanner) skip() error {
	depth := 0
	for i := s.I; i < len(s.B); {
		switch s.B[i] {
		case '"':
			s.I = i
			if _, err := s.String(); err != nil {
				return err
			}
			i = s.I
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				return errors.New("the JSON text is nested too deeply")
			}
		case '}', ']':
			if depth--; depth == 0 {
				s.I = i + 1
				return nil
			}
		}
		i++
	}
	return errEnd
}

// Value skips any value and gives its text.
func (s *Scanner) Value() ([]byte, error) { return s.value(0) }

func (s *Scanner) value(depth int) ([]byte, error) {
	c := s.Peek()
	from := s.I
	switch {
	case depth > maxDepth:
		return nil, errors.New("the JSON text is nested too deeply")
	case c == 0:
		return nil, errEnd
	case c == '"':
		return s.String()
	case c == '{' || c == '[':
		err := s.skip()
		return s.B[from:s.I], err
	}
	for s.I < len(s.B) && strings.IndexByte(",:]}[{\" \n\t\r", s.B[s.I]) < 0 {
		s.I++
	}
	word := s.B[from:s.I]
	switch {
	case string(word) == "true", string(word) == "false", string(word) == "null":
	case len(word) > 0 && (c == '-' || c >= '0' && c <= '9'):
	default:
		return nil, fmt.Errorf("what stands at byte %d is no JSON", from)
	}
	return word, nil
}

// Object walks over an object: f gets each key (with quotes) and value. The
// values are slices of the scanner's bytes.
func (s *Scanner) Object(f func(key, value []byte) error, depth int) error {
	if s.Peek() != '{' {
		return fmt.Errorf("an object is missing at byte %d", s.I)
	}
	s.I++
	if s.Peek() == '}' {
		s.I++
		return nil
	}
	for {
		s.Space()
		k, err := s.String()
		if err != nil {
			return err
		}
		if s.Peek() != ':' {
			return fmt.Errorf("a colon is missing at byte %d", s.I)
		}
		s.I++
		v, err := s.value(depth + 1)
		if err != nil {
			return err
		}
		if err := f(k, v); err != nil {
			return err
		}
		switch s.Peek() {
		case ',':
			s.I++
		case '}':
			s.I++
			return nil
		default:
			return fmt.Errorf("a comma is missing at byte %d", s.I)
		}
	}
}

// Array walks over an array.
func (s *Scanner) Array(f func(value []byte) error, depth int) error {
	if s.Peek() != '[' {
		return fmt.Errorf("an array is missing at byte %d", s.I)
	}
	s.I++
	if s.Peek() == ']' {
		s.I++
		return nil
	}
	for {
		v, err := s.value(depth + 1)
		if err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
		switch s.Peek() {
		case ',':
			s.I++
		case ']':
			s.I++
			return nil
		default:
			return fmt.Errorf("a comma is missing at byte %d", s.I)
		}
	}
}

// members gives the members of an object that are among names.
func members(raw []byte, names ...string) (map[string][]byte, error) {
	out := make(map[string][]byte, len(names))
	s := Scanner{B: raw}
	err := s.Object(func(k, v []byte) error {
		key := string(k[1 : len(k)-1])
		if strings.IndexByte(key, '\\') >= 0 {
			key = Unquote(k)
		}
		for _, n := range names {
			if n == key {
				out[n] = v
			}
		}
		return nil
	}, 0)
	return out, err
}

// Unquote decodes a JSON string, with quotes; what is no string gives "". A
// broken escape leaves the text between the quotes as it is.
func Unquote(q []byte) string {
	if len(q) < 2 || q[0] != '"' || q[len(q)-1] != '"' {
		return ""
	}
	in := q[1 : len(q)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	var b strings.Builder
	b.Grow(len(in))
	for len(in) > 0 {
		i := bytes.IndexByte(in, '\\')
		if i < 0 {
			b.Write(in)
			break
		}
		b.Write(in[:i])
		in = in[i:]
		if len(in) < 2 {
			b.WriteByte('\\')
			break
		}
		if c := simple[in[1]]; c != 0 {
			b.WriteByte(c)
			in = in[2:]
			continue
		}
		// \u, perhaps of a pair: the standard decoder knows the rules.
		n := 6
		if len(in) >= 12 && in[6] == '\\' && in[7] == 'u' {
			n = 12
		}
		var s string
		if in[1] == 'u' && len(in) >= n && n == 12 && high(in[2:6]) && json.Unmarshal(quoted(in[:12]), &s) == nil {
			b.WriteString(s)
			in = in[12:]
			continue
		}
		if in[1] == 'u' && len(in) >= 6 && json.Unmarshal(quoted(in[:6]), &s) == nil {
			b.WriteString(s)
			in = in[6:]
			continue
		}
		b.WriteByte('\\')
		in = in[1:]
	}
	return b.String()
}

func quoted(b []byte) []byte { return append(append([]byte{'"'}, b...), '"') }

// high reports a high surrogate, D800 to DBFF.
func high(h []byte) bool {
	return (h[0] == 'd' || h[0] == 'D') && strings.IndexByte("89abAB", h[1]) >= 0
}

var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
