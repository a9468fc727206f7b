package resultview

import (
	"fmt"
	"sort"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"

	"mcptasks/keymap"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A section is a doc on a page.
type section struct {
	doc   doc
	block int  // index of its content block, -1: none
	fixed bool // laid out for the width already: never wrapped
	in    int  // cells that it is indented
}

// A page is docs below each other, scrolled by rows. Only the rows in the
// window are made.
type page struct {
	secs   []section
	starts []int // first line of each section
	n      int   // lines in all

	top, sub int // the first row shown: line, and row within it
	x        int // cells scrolled to the right, where lines are not wrapped
	wrap     bool
	cursor   int                // line, -1: the page has none
	w, h     int                // as last drawn
	marked   func(section) bool // which sections get the bar ▌ in their indent

	find kit.Edit
	ask  bool // a search is being typed
	pat  string
	hits []int
	hit  int
}

func newPage(secs []section, cursor bool) *page {
	p := &page{wrap: true, cursor: -1, w: 80, h: 24}
	if cursor {
		p.cursor = 0
	}
	p.set(secs)
	return p
}

// set replaces the sections and stays where it is as well as it can.
func (p *page) set(secs []section) {
	p.secs, p.starts, p.n = secs, p.starts[:0], 0
	for _, s := range secs {
		p.starts = append(p.starts, p.n)
		p.n += s.doc.Len()
	}
	p.clamp()
}

// at finds a line's section and its number within it.
func (p *page) at(line int) (section, int) {
	i := sort.SearchInts(p.starts, line+1) - 1
	for i > 0 && p.secs[i].doc.Len() == 0 {
		i--
	}
	return p.secs[i], line - p.starts[i]
}

// rows is a line broken into rows.
func (p *page) rows(th *theme.Theme, line int) [][]kit.Span {
	s, i := p.at(line)
	spans := s.doc.Spans(th, i)
	if !p.wrap || s.fixed {
		return [][]kit.Span{spans}
	}
	return wrapSpans(spans, max(p.room()-s.in, 1))
}

// room is how many cells a row has: the cursor's bar takes two.
func (p *page) room() int {
	if p.cursor >= 0 {
		return max(p.w-2, 1)
	}
	return max(p.w, 1)
}

func (p *page) height(line int) int {
	if !p.wrap {
		return 1
	}
	return len(p.rows(&theme.Theme{}, line))
}

// wrapSpans breaks a line into rows of at most w cells, at spaces where it can.
func wrapSpans(spans []kit.Span, w int) [][]kit.Span {
	text := plainOf(spans)
	if safe.Width(text) <= w {
		return [][]kit.Span{spans}
	}
	var out [][]kit.Span
	from, used, space, spaceUsed := 0, 0, -1, 0
	g := displaywidth.StringGraphemes(text)
	at := 0
	for g.Next() {
		cw := g.Width()
		if used+cw > w && at > from {
			cutAt, next := at, 0
			if space > from {
				cutAt, next = space, used-spaceUsed
			}
			out = append(out, cut(spans, from, cutAt))
			from, used, space = cutAt, next, -1
		}
		at += len(g.Value())
		used += cw
		if g.Value() == " " {
			space, spaceUsed = at, used
		}
	}
	return append(out, cut(spans, from, len(text)))
}

// Scrolling.

func (p *page) scroll(d int) {
	for ; d > 0; d-- {
		if p.sub+1 < p.height(p.top) {
			p.sub++
		} else if p.top+1 < p.n {
			p.top, p.sub = p.top+1, 0
		}
	}
	for ; d < 0; d++ {
		if p.sub > 0 {
			p.sub--
		} else if p.top > 0 {
			p.top--
			p.sub = p.height(p.top) - 1
		} else {
			break
		}
	}
	p.clamp()
}

// back gives the position n rows above the start of line.
func (p *page) back(line, n int) (int, int) {
	for n > 0 && line > 0 {
		line--
		h := p.height(line)
		if h >= n {
			return line, h - n
		}
		n -= h
	}
	return line, 0
}

func (p *page) clamp() {
	if p.n == 0 {
		p.top, p.sub = 0, 0
		return
	}
	p.top = max(min(p.top, p.n-1), 0)
	if p.top >= p.n-p.h-1 { // near the end: the last row stays at the foot
		line, sub := p.back(p.n, p.h)
		if p.top > line || p.top == line && p.sub > sub {
			p.top, p.sub = line, sub
		}
	}
	if p.cursor >= 0 {
		p.cursor = max(min(p.cursor, p.n-1), 0)
	}
}

// show brings a line into the window.
func (p *page) show(line int) {
	if line < p.top || line == p.top && p.sub > 0 {
		p.top, p.sub = line, 0
		p.clamp()
		return
	}
	rows := -p.sub
	for i := p.top; i <= line && rows <= p.h; i++ {
		rows += p.height(i)
	}
	if rows > p.h {
		p.top, p.sub = p.back(line, p.h-1)
	}
	p.clamp()
}

func (p *page) moveTo(line int) {
	p.cursor = max(min(line, p.n-1), 0)
	p.show(p.cursor)
}

// update takes a moving or a search key and reports whether it used it.
func (p *page) update(k *keymap.Map, m tea.Msg) bool {
	if w, ok := m.(tea.MouseWheelMsg); ok && p.n > 0 {
		switch w.Button {
		case tea.MouseWheelUp:
			p.scroll(-3)
		case tea.MouseWheelDown:
			p.scroll(3)
		}
		return true
	}
	if p.ask {
		return p.typeSearch(k, m)
	}
	km, ok := m.(tea.KeyPressMsg)
	if !ok || p.n == 0 {
		return false
	}
	by := func(lines int) {
		if p.cursor >= 0 {
			p.moveTo(p.cursor + lines)
		} else {
			p.scroll(lines)
		}
	}
	switch {
	case key.Matches(km, k.Up.Binding):
		by(-1)
	case key.Matches(km, k.Down.Binding):
		by(1)
	case key.Matches(km, k.PageUp.Binding):
		by(-max(p.h-1, 1))
	case key.Matches(km, k.PageDown.Binding):
		by(max(p.h-1, 1))
	case key.Matches(km, k.Top.Binding):
		p.top, p.sub, p.x = 0, 0, 0
		p.cursor = min(p.cursor, 0)
	case key.Matches(km, k.Bottom.Binding):
		p.top = p.n
		p.sub = 1 << 30
		if p.cursor >= 0 {
			p.cursor = p.n - 1
		}
		p.clamp()
	case !p.wrap && p.cursor < 0 && key.Matches(km, k.Left.Binding):
		p.x = max(p.x-8, 0)
	case !p.wrap && p.cursor < 0 && key.Matches(km, k.Right.Binding):
		p.x += 8
	case key.Matches(km, k.Wrap.Binding):
		p.wrap = !p.wrap
		p.x, p.sub = 0, 0
		p.clamp()
	case key.Matches(km, k.Search.Binding):
		p.ask = true
		p.find.Set("")
	case p.pat != "" && key.Matches(km, k.NextMatch.Binding):
		p.jump(1)
	case p.pat != "" && key.Matches(km, k.PrevMatch.Binding):
		p.jump(-1)
	case p.pat != "" && key.Matches(km, k.Back.Binding):
		p.pat, p.hits = "", nil
	default:
		return false
	}
	return true
}

func (p *page) typeSearch(k *keymap.Map, m tea.Msg) bool {
	if km, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(km, k.Leave.Binding):
			p.ask, p.pat, p.hits = false, "", nil
			return true
		case key.Matches(km, k.Accept.Binding):
			p.ask = false
			return true
		}
	}
	before := p.find.Text()
	if !p.find.Update(m) {
		return false
	}
	if t := p.find.Text(); t != before {
		p.search(t)
	}
	return true
}

func (p *page) search(pattern string) {
	p.pat, p.hits, p.hit = pattern, nil, 0
	if pattern == "" {
		return
	}
	for i, s := range p.secs {
		for _, l := range s.doc.Find(pattern) {
			p.hits = append(p.hits, p.starts[i]+l)
		}
	}
	from := p.top
	if p.cursor >= 0 {
		from = p.cursor
	}
	p.hit = sort.SearchInts(p.hits, from)
	if p.hit == len(p.hits) {
		p.hit = 0
	}
	p.jump(0)
}

func (p *page) jump(d int) {
	n := len(p.hits)
	if n == 0 {
		return
	}
	p.hit = (p.hit + d + n) % n
	line := p.hits[p.hit]
	if p.cursor >= 0 {
		p.cursor = line
	}
	rows := 0
	for i := p.top; i < line && rows < p.h; i++ {
		rows += p.height(i)
	}
	if line < p.top || rows >= p.h {
		p.top, p.sub = p.back(line, p.h/3)
		p.clamp()
	}
}

// status says where the window and the search stand.
func (p *page) status() string {
	if p.pat != "" {
		if len(p.hits) == 0 {
			return fmt.Sprintf("%q: no match", safe.Line(p.pat))
		}
		return fmt.Sprintf("%q: %s of %s", safe.Line(p.pat), kit.Thousands(p.hit+1), kit.Count(len(p.hits), "match"))
	}
	if p.n > p.h {
		return fmt.Sprintf("line %s of %s", kit.Thousands(max(p.top, p.cursor)+1), kit.Thousands(p.n))
	}
	return ""
}

// view draws h rows of w cells; while a search is typed the last is its line.
func (p *page) view(th *theme.Theme, w, h int) string {
	body := h
	if p.ask {
		body--
	}
	if w != p.w {
		p.sub = 0
	}
	p.w, p.h = w, max(body, 1)
	p.clamp()
	if p.cursor >= 0 {
		p.show(p.cursor)
	}
	lines := make([]string, 0, h)
	for i, sub := p.top, p.sub; i < p.n && len(lines) < body; i, sub = i+1, 0 {
		sec, _ := p.at(i)
		rows := p.rows(th, i)
		for r := min(sub, len(rows)-1); r < len(rows) && len(lines) < body; r++ {
			lines = append(lines, p.row(th, i, rows[r], sec, w))
		}
	}
	if !p.ask {
		return kit.Fill(lines, h)
	}
	l := kit.NewLine(w, nil)
	l.Add(th.Key, "/")
	l.Styled(p.find.View(th, w-1), w-1)
	if h < 2 {
		return l.String()
	}
	return kit.Fill(lines, body) + "\n" + l.String()
}

func (p *page) row(th *theme.Theme, line int, spans []kit.Span, sec section, w int) string {
	if p.pat != "" && !styled(sec) {
		spans = mark(spans, p.pat, th.Match)
	}
	l := kit.NewLine(w, nil)
	if p.cursor >= 0 {
		if line == p.cursor {
			l = kit.NewLine(w, &th.Selection)
			l.Add(th.Mark, "▌ ")
		} else {
			l.Gap(2)
		}
	}
	if sec.in == 2 && p.marked != nil && p.marked(sec) {
		l.Add(th.Mark, "▌ ")
	} else {
		l.Gap(sec.in)
	}
	if p.x > 0 && !sec.fixed {
		spans = dropCells(spans, p.x)
	}
	for _, s := range spans {
		if l.Left() == 0 {
			break
		}
		l.Add(s.Style, s.Text)
	}
	return l.String()
}

// dropCells takes the first n cells away.
func dropCells(spans []kit.Span, n int) []kit.Span {
	at, used := 0, 0
	text := plainOf(spans)
	g := displaywidth.StringGraphemes(text)
	for used < n && g.Next() {
		used += g.Width()
		at += len(g.Value())
	}
	if used < n {
		return nil
	}
	return cut(spans, at, len(text))
}

// styled reports whether a line carries styles of its own, which a mark would
// tear.
func styled(s section) bool {
	switch s.doc.(type) {
	case *imageDoc:
		return true
	}
	return false
}
