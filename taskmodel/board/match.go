package board

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The needles here are in lower case already (strings.ToLower). Fields are
// nearly always ASCII and are then compared without making a copy.

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// letters is a set of the characters that occur in a text, without regard to
// case: a bit for each letter and digit, the other ASCII characters share some,
// and anyLetters stands for a text that is not all ASCII. A text can only hold a
// needle, in whatever manner, if it holds all of the needle's letters; that
// spares most rows the search.
type letters uint64

const (
	anyLetters letters = 1<<64 - 1
	notASCII   letters = 1 << 63
)

// lettersOf is the set of a text.
func lettersOf(s string) (l letters) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			return anyLetters
		default:
			l |= letterBits[c]
		}
	}
	return l
}

// lettersIn is the set that a needle, in lower case, asks for.
func lettersIn(needle string) (l letters) {
	for i := range len(needle) {
		if c := needle[i]; c < utf8.RuneSelf {
			l |= letterBits[c]
		} else {
			l |= notASCII
		}
	}
	return l
}

func (l letters) hold(needs letters) bool { return l&needs == needs }

// letterBits has the bit of each ASCII character.
var letterBits = func() (bits [utf8.RuneSelf]letters) {
	for c := range bits {
		switch b := lower(byte(c)); {
		case 'a' <= b && b <= 'z':
			bits[c] = 1 << (b - 'a')
		case '0' <= b && b <= '9':
			bits[c] = 1 << (26 + b - '0')
		default:
			bits[c] = 1 << (36 + b%27)
		}
	}
	return bits
}()

func hasPrefixFold(s, needle string) bool {
	if !ascii(s) {
		return strings.HasPrefix(strings.ToLower(s), needle)
	}
	return hasPrefixASCII(s, needle)
}

func hasPrefixASCII(s, needle string) bool {
	if len(needle) > len(s) {
		return false
	}
	for i := range len(needle) {
		if lower(s[i]) != needle[i] {
			return false
		}
	}
	return true
}

func containsFold(s, needle string) bool {
	if needle == "" {
		return true
	}
	if !ascii(s) {
		return strings.Contains(strings.ToLower(s), needle)
	}
	return containsASCII(s, needle)
}

func containsASCII(s, needle string) bool {
	for i := 0; i+len(needle) <= len(s); i++ {
		if lower(s[i]) == needle[0] && hasPrefixASCII(s[i:], needle) {
			return true
		}
	}
	return false
}

// fuzzy reports whether the letters of the needle occur in s in their order.
func fuzzy(s, needle string) bool {
	if !ascii(s) {
		return subsequence(strings.ToLower(s), needle)
	}
	if len(needle) > len(s) {
		return false
	}
	j := 0
	for i := 0; i < len(s) && j < len(needle); i++ {
		if lower(s[i]) == needle[j] {
			j++
		}
	}
	return j == len(needle)
}

func subsequence(s, needle string) bool {
	rest := []rune(needle)
	for _, r := range s {
		if len(rest) > 0 && r == rest[0] {
			rest = rest[1:]
		}
	}
	return len(rest) == 0
}

// fuzzyWord reports whether s contains the needle, or has a word that begins
// with its first letter and has the others in their order. In a sentence a
// looser search would find nearly everything.
func fuzzyWord(s, needle string) bool {
	if !ascii(s) {
		low := strings.ToLower(s)
		return strings.Contains(low, needle) || fuzzyWordSlow([]rune(low), []rune(needle))
	}
	if containsASCII(s, needle) {
		return true
	}
	start := true
	for i := 0; i < len(s); i++ {
		c := lower(s[i])
		if !wordByte(c) {
			start = true
			continue
		}
		if start && c == needle[0] {
			j := 1
			for k := i + 1; k < len(s) && j < len(needle) && wordByte(lower(s[k])); k++ {
				if lower(s[k]) == needle[j] {
					j++
				}
			}
			if j == len(needle) {
				return true
			}
		}
		start = false
	}
	return false
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '.'
}

func fuzzyWordSlow(s, needle []rune) bool {
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.' }
	start := true
	for i, r := range s {
		if !word(r) {
			start = true
			continue
		}
		if start && r == needle[0] {
			j := 1
			for _, c := range s[i+1:] {
				if j == len(needle) || !word(c) {
					break
				}
				if c == needle[j] {
					j++
				}
			}
			if j == len(needle) {
				return true
			}
		}
		start = false
	}
	return false
}
