package config

import (
	"errors"
	"strings"
)

// splitWords splits a command line as a POSIX shell splits words: at blanks,
// with single and double quotes and the backslash. Nothing else has a meaning,
// since no shell runs it: an & or a ; is a byte as any other.
func splitWords(line string) ([]string, error) {
	var out []string
	var word strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '\\':
			word.WriteByte(c)
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\':
			if i++; i == len(line) {
				return nil, errors.New("it ends with a backslash")
			}
			if quote == '"' && !strings.ContainsRune("$`\"\\\n", rune(line[i])) {
				word.WriteByte('\\')
			}
			in = true
			word.WriteByte(line[i])
		case c == '\'' || c == '"':
			in, quote = true, c
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if in {
				out = append(out, word.String())
				word.Reset()
			}
			in = false
		default:
			in = true
			word.WriteByte(c)
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if in {
		out = append(out, word.String())
	}
	return out, nil
}
