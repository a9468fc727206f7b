package config

import (
	"slices"
	"testing"
)

func TestSplitWords(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
	}{
		{`npx -y  "a b" 'c d'`, []string{"npx", "-y", "a b", "c d"}},
		{`run http://x/?a=b&c=d;e|f>g`, []string{"run", "http://x/?a=b&c=d;e|f>g"}},
		{`run $HOME "$(id)" ` + "`id`", []string{"run", "$HOME", "$(id)", "`id`"}},
		{`a\ b "c\"d\e" 'f\g' ''`, []string{"a b", `c"d\e`, `f\g`, ""}},
		{`pre"mid dle"post`, []string{"premid dlepost"}},
		{" \t ", nil},
	} {
		if got, err := splitWords(tt.line); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.line, got, err, tt.want)
		}
	}
	for _, bad := range []string{`a "b`, `a 'b`, `a \`} {
		if got, err := splitWords(bad); err == nil {
			t.Errorf("%s: %q, want an error", bad, got)
		}
	}
}
