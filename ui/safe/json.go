package safe

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON writes what encoding/json leaves as it is and a terminal obeys
// (DEL, C1, bidirectional controls) or draws nothing of as \uXXXX. The value is the
// same; shown on a terminal it is only text, and nothing of it is hidden.
func JSON(b []byte) []byte {
	if bytes.IndexFunc(b, control) < 0 {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if hi, lo := utf16.EncodeRune(r); control(r) && hi != utf8.RuneError {
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		} else if control(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

func control(r rune) bool {
	return r >= 0x7f && (r < 0xa0 || r == 0x2028 || r == 0x2029 || invisible(r))
}
