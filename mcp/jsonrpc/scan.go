package jsonrpc

import "fmt"

// The scanner below only finds where values end and whether they are well
// formed (RFC 8259); it makes nothing of them.

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

func syntax(b []byte, i int, want string) error {
	if i >= len(b) {
		return fmt.Errorf("%w: the text ends where %s should be", ErrSyntax, want)
	}
	return fmt.Errorf("%w: %q at byte %d where %s should be", ErrSyntax, b[i], i, want)
}

// skipValue returns the index after the value at i. depth is how many further
// levels may be opened.
func skipValue(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, syntax(b, i, "a value")
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{':
		return skipObject(b, i, depth)
	case c == '[':
		return skipArray(b, i, depth)
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(b, i)
	case c == 't':
		return skipWord(b, i, "true")
	case c == 'f':
		return skipWord(b, i, "false")
	case c == 'n':
		return skipWord(b, i, "null")
	}
	return i, syntax(b, i, "a value")
}

func skipObject(b []byte, i, depth int) (int, error) {
	if depth <= 0 {
		return i, ErrDepth
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return i, syntax(b, i, "a member's name")
		}
		end, err := skipString(b, i)
		if err != nil {
			return end, err
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return i, syntax(b, i, "a colon")
		}
		if end, err = skipValue(b, skipSpace(b, i+1), depth-1); err != nil {
			return end, err
		}
		i = skipSpace(b, end)
		if i < len(b) && b[i] == '}' {
			return i + 1, nil
		}
		if i >= len(b) || b[i] != ',' {
			return i, syntax(b, i, "a comma or the object's end")
		}
		i = skipSpace(b, i+1)
	}
}

func skipArray(b []byte, i, depth int) (int, error) {
	if depth <= 0 {
		return i, ErrDepth
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := skipValue(b, i, depth-1)
		if err != nil {
			return end, err
		}
		i = skipSpace(b, end)
		if i < len(b) && b[i] == ']' {
			return i + 1, nil
		}
		if i >= len(b) || b[i] != ',' {
			return i, syntax(b, i, "a comma or the array's end")
		}
		i = skipSpace(b, i+1)
	}
}

// special marks the bytes at which a run of plain string bytes ends.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

func skipString(b []byte, i int) (int, error) {
	i++
	for i < len(b) {
		if !special[b[i]] {
			i++
			continue
		}
		switch b[i] {
		case '"':
			return i + 1, nil
		case '\\':
			if i+1 >= len(b) {
				return len(b), syntax(b, len(b), "an escaped character")
			}
			switch b[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				for k := i + 2; k < i+6; k++ {
					if k >= len(b) || !isHex(b[k]) {
						return k, syntax(b, k, "a hexadecimal digit")
					}
				}
				i += 6
			default:
				return i + 1, syntax(b, i+1, "an escaped character")
			}
		default:
			return i, syntax(b, i, "a printable character")
		}
	}
	return i, syntax(b, i, "a closing quote")
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func skipDigits(b []byte, i int) (int, error) {
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == start {
		return i, syntax(b, i, "a digit")
	}
	return i, nil
}

func skipNumber(b []byte, i int) (int, error) {
	var err error
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i, err = skipDigits(b, i); err != nil {
		return i, err
	}
	if i < len(b) && b[i] == '.' {
		if i, err = skipDigits(b, i+1); err != nil {
			return i, err
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i, err = skipDigits(b, i); err != nil {
			return i, err
		}
	}
	return i, nil
}

func skipWord(b []byte, i int, w string) (int, error) {
	if len(b)-i < len(w) || string(b[i:i+len(w)]) != w {
		return i, syntax(b, i, "a value")
	}
	return i + len(w), nil
}

// skipLoose finds the end of a value by its quotes and brackets alone, at any
// depth and without recursion.
func skipLoose(b []byte, i int) (int, error) {
	depth := 0
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			i++
			for i < len(b) && b[i] != '"' {
				if b[i] == '\\' {
					i++
				}
				i++
			}
			if i >= len(b) {
				return len(b), syntax(b, len(b), "a closing quote")
			}
			i++
			if depth == 0 {
				return i, nil
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth--; depth < 0 {
				return i, syntax(b, i, "a value")
			}
			i++
			if depth == 0 {
				return i, nil
			}
		default:
			if depth > 0 {
				i++
				continue
			}
			start := i
			for i < len(b) && c != ',' && c != '}' && c != ']' && c != ' ' && c != '\n' && c != '\r' && c != '\t' && c != '"' && c != '{' && c != '[' {
				if i++; i < len(b) {
					c = b[i]
				}
			}
			if i == start || i == len(b) {
				return i, syntax(b, i, "a value")
			}
			return i, nil
		}
	}
	return i, syntax(b, i, "a value")
}
