package kit

import (
	"fmt"
	"strings"
	"unicode"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A Span is a piece of a text line in one style. Its text is sanitised.
type Span struct {
	Style theme.Style
	Text  string
}

// A Text is a scrolling, searchable text of sanitised lines. Only the lines in
// the window are styled and cut, so that its frame does not depend on its
// length.
type Text struct {
	Lines  func(i int) []Span // of line i
	N      int
	Top    int
	X      int // scrolled to the right
	height int
	Search Search
}

// A Search is what a text is searched for.
type Search struct {
	Edit    Edit
	Typing  bool
	Pattern string
	hits    []int
	at      int
}

// Move takes a moving or a search key; it reports whether it used it.
func (t *Text) Move(k *keymap.Map, m tea.Msg) bool {
	if t.Search.Typing {
		return t.typeSearch(k, m)
	}
	if w, ok := m.(tea.MouseWheelMsg); ok {
		switch w.Button {
		case tea.MouseWheelUp:
			t.Top -= 3
		case tea.MouseWheelDown:
			t.Top += 3
		}
		t.Top = max(min(t.Top, t.N-t.height), 0)
		return true
	}
	km, ok := m.(tea.KeyPressMsg)
	if !ok {
		return false
	}
	page := max(t.height-1, 1)
	switch {
	case key.Matches(km, k.Up.Binding):
		t.Top--
	case key.Matches(km, k.Down.Binding):
		t.Top++
	case key.Matches(km, k.PageUp.Binding):
		t.Top -= page
	case key.Matches(km, k.PageDown.Binding):
		t.Top += page
	case key.Matches(km, k.Top.Binding):
		t.Top, t.X = 0, 0
	case key.Matches(km, k.Bottom.Binding):
		t.Top = t.N
	case key.Matches(km, k.Left.Binding):
		t.X = max(t.X-8, 0)
	case key.Matches(km, k.Right.Binding):
		t.X += 8
	case key.Matches(km, k.Search.Binding):
		t.Search.Typing = true
		t.Search.Edit.Set("")
	case t.Search.Pattern != "" && key.Matches(km, k.NextMatch.Binding):
		t.jump(1)
	case t.Search.Pattern != "" && key.Matches(km, k.PrevMatch.Binding):
		t.jump(-1)
	case t.Search.Pattern != "" && key.Matches(km, k.Back.Binding):
		t.Search = Search{}
	default:
		return false
	}
	t.clamp()
	return true
}

func (t *Text) typeSearch(k *keymap.Map, m tea.Msg) bool {
	if km, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(km, k.Leave.Binding):
			t.Search = Search{}
			return true
		case key.Matches(km, k.Accept.Binding):
			t.Search.Typing = false
			if t.Search.Edit.Text() == "" {
				t.Search = Search{}
			}
			return true
		}
	}
	if t.Search.Edit.Update(m) {
		t.find(t.Search.Edit.Text())
		return true
	}
	return false
}

func (t *Text) find(pattern string) {
	t.Search.Pattern, t.Search.hits, t.Search.at = pattern, nil, 0
	if pattern == "" {
		return
	}
	for i := range t.N {
		if _, _, ok := match(plain(t.Lines(i)), pattern); ok {
			t.Search.hits = append(t.Search.hits, i)
		}
	}
	for i, h := range t.Search.hits {
		if h >= t.Top {
			t.Search.at = i
			break
		}
	}
	t.jump(0)
}

func (t *Text) jump(d int) {
	n := len(t.Search.hits)
	if n == 0 {
		return
	}
	t.Search.at = (t.Search.at + d + n) % n
	h := t.Search.hits[t.Search.at]
	if h < t.Top || h >= t.Top+t.height {
		t.Top = h - t.height/3
	}
	t.clamp()
}

func (t *Text) clamp() { t.Top = max(min(t.Top, t.N-max(t.height, 1)), 0) }

// End scrolls to the last line.
func (t *Text) End() { t.Top = t.N; t.clamp() }

// Status says where the window and the search stand.
func (t *Text) Status() string {
	if t.Search.Pattern != "" {
		if len(t.Search.hits) == 0 {
			return fmt.Sprintf("%q: no match", safe.Line(t.Search.Pattern))
		}
		return fmt.Sprintf("%q: %d of %s", safe.Line(t.Search.Pattern), t.Search.at+1, Count(len(t.Search.hits), "match"))
	}
	if t.N > t.height && t.height > 0 {
		return fmt.Sprintf("lines %s–%s of %s", Thousands(t.Top+1), Thousands(min(t.Top+t.height, t.N)), Thousands(t.N))
	}
	return ""
}

// View draws h lines of w cells. While a search is typed the last line is its
// prompt.
func (t *Text) View(th *theme.Theme, w, h int) string {
	body := h
	if t.Search.Typing {
		body--
	}
	t.height = body
	t.clamp()
	lines := make([]string, 0, h)
	for i := t.Top; i < min(t.Top+body, t.N); i++ {
		lines = append(lines, t.line(th, i, w))
	}
	if !t.Search.Typing {
		return Fill(lines, h)
	}
	l := NewLine(w, nil)
	l.Add(th.Key, "/")
	l.Styled(t.Search.Edit.View(th, w-1), w-1)
	return Fill(lines, body) + "\n" + l.String()
}

func (t *Text) line(th *theme.Theme, i, w int) string {
	spans := t.Lines(i)
	if t.Search.Pattern != "" {
		spans = highlight(spans, t.Search.Pattern, th.Match)
	}
	l := NewLine(w, nil)
	skip := t.X
	for _, s := range spans {
		if skip > 0 {
			sw := safe.Width(s.Text)
			if sw <= skip {
				skip -= sw
				continue
			}
			s.Text = cutLeft(s.Text, skip)
			skip = 0
		}
		l.Add(s.Style, s.Text)
		if l.Left() == 0 {
			break
		}
	}
	return l.String()
}

func cutLeft(s string, w int) string {
	for w > 0 && s != "" {
		head := safe.Truncate(s, w, "")
		if head == "" {
			// A wide cluster straddles the edge: it gives way to a space.
			next := safe.Truncate(s, w+1, "")
			return " " + s[len(next):]
		}
		s = s[len(head):]
		w -= safe.Width(head)
	}
	return s
}

func plain(spans []Span) string {
	if len(spans) == 1 {
		return spans[0].Text
	}
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// match finds a pattern: without capitals it ignores case.
func match(text, pattern string) (from, to int, ok bool) {
	if strings.IndexFunc(pattern, unicode.IsUpper) < 0 {
		low := strings.ToLower(text)
		if len(low) == len(text) {
			text = low
		}
	}
	i := strings.Index(text, pattern)
	return i, i + len(pattern), i >= 0
}

func highlight(spans []Span, pattern string, style theme.Style) []Span {
	text := plain(spans)
	var out []Span
	pos := 0 // byte offset of what is copied
	take := func(to int, over *theme.Style) {
		at := 0
		for _, s := range spans {
			a, b := max(pos, at), min(to, at+len(s.Text))
			if a < b {
				st := s.Style
				if over != nil {
					st = *over
				}
				out = append(out, Span{st, s.Text[a-at : b-at]})
			}
			at += len(s.Text)
		}
		pos = to
	}
	for pos < len(text) {
		from, to, ok := match(text[pos:], pattern)
		if !ok || to == from {
			break
		}
		base := pos
		take(base+from, nil)
		take(base+to, &style)
	}
	take(len(text), nil)
	return out
}

// Plain makes the lines of a sanitised text without styles.
func Plain(lines []string, s theme.Style) func(int) []Span {
	return func(i int) []Span { return []Span{{s, lines[i]}} }
}

// AtEnd reports whether the last line is in the window.
func (t *Text) AtEnd() bool { return t.Top+max(t.height, 1) >= t.N }
