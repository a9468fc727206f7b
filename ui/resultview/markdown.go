package resultview

import (
	"fmt"
	"regexp"
	"strings"

	"charm.land/glamour/v2"
	gansi "charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"

	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// maxMarkdown is the longest text that is rendered by itself, in bytes.
const maxMarkdown = 32 << 10

var markdownSigns = regexp.MustCompile("(?m)^(#{1,6} \\S|[-*+] \\S|\\d+\\. \\S|```|> \\S|\\|.*\\|.*\\|)|\\*\\*\\S[^*]*\\*\\*|`[^`\n]+`|\\[[^\\]\n]+\\]\\([^)\n]+\\)")

// looksMarkdown reports whether a text gains by being rendered.
func looksMarkdown(text string) bool {
	return len(text) <= maxMarkdown && markdownSigns.MatchString(text)
}

// renderMarkdown renders a text w cells wide. The text is sanitised before, and
// of what comes back only colours are kept: no link of a server's reaches the
// terminal as one.
func renderMarkdown(text string, th *theme.Theme, w int) ([]string, error) {
	r, err := glamour.NewTermRenderer(glamour.WithStyles(markdownStyle(th)), glamour.WithWordWrap(max(w, 10)))
	if err != nil {
		return nil, fmt.Errorf("markdown: %w", err)
	}
	out, err := r.Render(safe.Text(text))
	if err != nil {
		return nil, fmt.Errorf("markdown: %w", err)
	}
	lines := strings.Split(strings.Trim(out, "\n"), "\n")
	for i, l := range lines {
		lines[i] = onlyColours(l)
	}
	for len(lines) > 0 && strings.TrimSpace(sgr.ReplaceAllString(lines[0], "")) == "" {
		lines = lines[1:]
	}
	for n := len(lines); n > 0 && strings.TrimSpace(sgr.ReplaceAllString(lines[n-1], "")) == ""; n = len(lines) {
		lines = lines[:n-1]
	}
	return lines, nil
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// onlyColours takes every control but SGR out of a line.
func onlyColours(l string) string {
	var b strings.Builder
	at := 0
	for _, m := range sgr.FindAllStringIndex(l, -1) {
		b.WriteString(safe.Line(l[at:m[0]]))
		b.WriteString(l[m[0]:m[1]])
		at = m[1]
	}
	b.WriteString(safe.Line(l[at:]))
	if at > 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

func markdownStyle(th *theme.Theme) gansi.StyleConfig {
	s := styles.LightStyleConfig
	switch {
	case th.Name == "mono":
		s = styles.NoTTYStyleConfig
	case th.Dark:
		s = styles.DarkStyleConfig
	}
	zero := uint(0)
	s.Document.Margin = &zero
	s.Document.BlockPrefix, s.Document.BlockSuffix = "", ""
	s.Document.Color = nil // the terminal's own
	s.Text.Color = nil
	s.H1.Prefix, s.H1.Suffix = "", ""
	s.Code.Prefix, s.Code.Suffix = "", ""
	s.H1.BackgroundColor = nil
	s.H1.Color = s.H2.Color
	return s
}
