package cli

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// escapeControls writes what encoding/json leaves as it is and a terminal obeys
// (DEL, C1, bidirectional and zero-width controls) as \uXXXX. The value is the
// same; shown on a terminal it is only text.
func escapeControls(b []byte) []byte {
	if bytes.IndexFunc(b, control) < 0 {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if control(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

func control(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}
