package theme

import (
	"fmt"
	"image/color"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// A Style is how one kind of text looks. The zero Style changes nothing.
// Rendering is a concatenation: rows are drawn with it thousands of times a
// second.
type Style struct {
	Fg, Bg    color.Color // nil: the terminal's own
	Bold      bool
	Faint     bool
	Italic    bool
	Underline bool
	Reverse   bool
	Strike    bool
	seq       string
}

// compile makes the escape sequence. Every style that is handed out has it.
func (s Style) compile() Style {
	var a ansi.Style
	if s.Bold {
		a = a.Bold()
	}
	if s.Faint {
		a = a.Faint()
	}
	if s.Italic {
		a = a.Italic(true)
	}
	if s.Underline {
		a = a.Underline(true)
	}
	if s.Reverse {
		a = a.Reverse(true)
	}
	if s.Strike {
		a = a.Strikethrough(true)
	}
	if s.Fg != nil {
		a = a.ForegroundColor(s.Fg)
	}
	if s.Bg != nil {
		a = a.BackgroundColor(s.Bg)
	}
	s.seq = ""
	if len(a) > 0 {
		s.seq = a.String()
	}
	return s
}

// Render gives text in this style. The text holds no line break.
func (s Style) Render(text string) string {
	if s.seq == "" || text == "" {
		return text
	}
	return s.seq + text + ansi.ResetStyle
}

// On gives the style as it looks on a row of style base: the base's background
// and, where this style has no colour of its own, its foreground.
func (s Style) On(base Style) Style {
	s.Bg = base.Bg
	if s.Fg == nil {
		s.Fg = base.Fg
	}
	s.Bold = s.Bold || base.Bold
	s.Reverse = s.Reverse || base.Reverse
	return s.compile()
}

// WithBold gives the style in bold.
func (s Style) WithBold() Style {
	s.Bold = true
	return s.compile()
}

// Lipgloss gives the style for components that are drawn with lipgloss.
func (s Style) Lipgloss() lipgloss.Style {
	l := lipgloss.NewStyle().Bold(s.Bold).Faint(s.Faint).Italic(s.Italic).Underline(s.Underline).
		Reverse(s.Reverse).Strikethrough(s.Strike)
	if s.Fg != nil {
		l = l.Foreground(s.Fg)
	}
	if s.Bg != nil {
		l = l.Background(s.Bg)
	}
	return l
}

// Parse reads a style as the configuration spells it: words separated by
// spaces, "bold #e5b567 on #202020", "underline 12", "reverse". A colour is
// #rgb, #rrggbb, a number from 0 to 255, or "none".
func Parse(text string) (Style, error) {
	var s Style
	bg := false
	for _, w := range strings.Fields(strings.ToLower(text)) {
		switch w {
		case "bold":
			s.Bold = true
		case "faint":
			s.Faint = true
		case "italic":
			s.Italic = true
		case "underline":
			s.Underline = true
		case "reverse":
			s.Reverse = true
		case "strike":
			s.Strike = true
		case "on":
			bg = true
		default:
			c, err := parseColor(w)
			if err != nil {
				return Style{}, err
			}
			if bg {
				s.Bg = c
			} else {
				s.Fg = c
			}
		}
	}
	return s.compile(), nil
}

func parseColor(w string) (color.Color, error) {
	if w == "none" {
		return nil, nil
	}
	if hex, ok := strings.CutPrefix(w, "#"); ok {
		if len(hex) == 3 {
			hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
		}
		n, err := strconv.ParseUint(hex, 16, 32)
		if err == nil && len(hex) == 6 {
			return color.RGBA{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n), A: 255}, nil
		}
	} else if n, err := strconv.ParseUint(w, 10, 8); err == nil {
		if n < 16 {
			return ansi.BasicColor(n), nil
		}
		return ansi.IndexedColor(n), nil
	}
	return nil, fmt.Errorf("%q is neither a colour (#rrggbb, or a number from 0 to 255) nor one of bold, faint, italic, underline, reverse, strike, on", w)
}
