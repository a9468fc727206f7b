package kit

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Fuzzy scores how well the words of a pattern are found in a text, each as a
// run or else as letters in order; ok is false when one is not there. Higher
// is better: runs before scattered letters, the beginning of the text before
// beginnings of words, those before their middles.
func Fuzzy(pattern, text string) (score int, ok bool) {
	text = strings.ToLower(text)
	for _, w := range strings.Fields(strings.ToLower(pattern)) {
		s, ok := fuzzyWord(w, text)
		if !ok {
			return 0, false
		}
		score += s
	}
	return score - utf8.RuneCountInString(text)/16, true
}

func fuzzyWord(w, text string) (int, bool) {
	if i := strings.Index(text, w); i >= 0 {
		s := 100
		switch {
		case i == 0:
			s += 80
		case strings.ContainsRune(" _-./:", rune(text[i-1])):
			s += 50
		}
		return s, true
	}
	s, at := 0, 0
	for _, r := range w {
		i := strings.IndexRune(text[at:], r)
		if i < 0 {
			return 0, false
		}
		switch {
		case i == 0:
			s += 6
		case at+i > 0 && strings.ContainsRune(" _-./:", rune(text[at+i-1])):
			s += 4
		default:
			s -= min(i, 4)
		}
		at += i + utf8.RuneLen(r)
	}
	return s, true
}

// Best sorts things by how well they match a pattern, without those that do
// not; the order of equals stays.
func Best[T any](all []T, pattern string, text func(T) string) []T {
	if strings.TrimSpace(pattern) == "" {
		return all
	}
	type hit struct {
		t T
		s int
	}
	var hits []hit
	for _, t := range all {
		if s, ok := Fuzzy(pattern, text(t)); ok {
			hits = append(hits, hit{t, s})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.s - a.s })
	out := make([]T, len(hits))
	for i, h := range hits {
		out[i] = h.t
	}
	return out
}
