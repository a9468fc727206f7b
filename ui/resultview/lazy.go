package resultview

import (
	tea "charm.land/bubbletea/v2"

	"charm.land/bubbles/v2/key"

	"mcptasks/keymap"
	"mcptasks/ui/theme"
)

const (
	lazyJSON = 512 << 10 // a document that is larger is laid out beside the loop
	headJSON = 4000      // lines of it that are there at once
)

// A lazyDocs keeps the documents of which only the head is laid out. The rest
// is laid out by a job, off the screen's loop; a key that needs the whole
// (a search, a fold, the last line) lays it out at once.
type lazyDocs struct {
	parts []*jsonDoc
	busy  *jsonDoc // a job lays it out
}

// json lays a document out, or the head of a large one.
func (z *lazyDocs) json(raw []byte) (*jsonDoc, error) {
	if len(raw) <= lazyJSON {
		return newJSON(raw)
	}
	d, err := newHead(raw, headJSON)
	if err == nil && d.part {
		z.parts = append(z.parts, d)
	}
	return d, err
}

// A Laid is what a job brings.
type Laid struct {
	of, whole *jsonDoc
	err       error
}

// job is the next document's layout, nil when there is none to do.
func (z *lazyDocs) job() tea.Cmd {
	if z.busy != nil || len(z.parts) == 0 {
		return nil
	}
	d := z.parts[0]
	z.busy = d
	raw := d.raw // of is only compared by the job's goroutine, never read
	return func() tea.Msg {
		whole, err := newJSON(raw)
		return Laid{d, whole, err}
	}
}

// take puts what a job brings in place. It reports whether it was asked for
// here; then the pages are to be counted anew, and bad is a document that
// turned out to be no JSON.
func (z *lazyDocs) take(l Laid) (mine bool, bad *jsonDoc) {
	if l.of == z.busy {
		z.busy = nil
	}
	for i, d := range z.parts {
		if d != l.of {
			continue
		}
		z.parts = append(z.parts[:i:i], z.parts[i+1:]...)
		if l.err != nil {
			d.part = false
			return true, d
		}
		d.lines, d.part = l.whole.lines, false
		return true, nil
	}
	return false, nil
}

// whole reports whether a key needs all of the document.
func needsWhole(k *keymap.Map, m tea.Msg, p *page, d *jsonDoc) bool {
	km, ok := m.(tea.KeyPressMsg)
	if !ok {
		return p.ask
	}
	switch {
	case p.ask, key.Matches(km, k.Bottom.Binding), key.Matches(km, k.Search.Binding), key.Matches(km, k.Copy.Binding),
		key.Matches(km, k.Fold.Binding), key.Matches(km, k.FoldAll.Binding), key.Matches(km, k.Open.Binding),
		key.Matches(km, k.Left.Binding), key.Matches(km, k.Right.Binding):
		return true
	}
	return max(p.cursor, p.top)+2*p.h >= d.Len()
}

// Work is what is left to do beside the loop: layout, whose message is a Laid
// and belongs to Laid, and pictures, whose message is the canvas's.
func (v *View) Work() tea.Cmd {
	cmds := []tea.Cmd{v.lazy.job()}
	if v.tab == 0 {
		for _, d := range v.imgs {
			if d != nil {
				cmds = append(cmds, d.job())
			}
		}
	}
	return tea.Batch(cmds...)
}

// Laid takes what Work's command brings and reports whether it was this view's.
func (v *View) Laid(l Laid) bool {
	mine, bad := v.lazy.take(l)
	if !mine {
		return false
	}
	for b, d := range v.jsons {
		if bad != nil && d == doc(bad) {
			v.jsons[b] = newText(string(bad.raw), text)
			v.gen++
		}
	}
	for i := range v.tabs {
		t := &v.tabs[i]
		if t.page == nil {
			continue
		}
		for s := range t.page.secs {
			if bad != nil && t.page.secs[s].doc == doc(bad) {
				t.page.secs[s] = section{newText(string(bad.raw), text), -1, false, 0}
				if t.json == bad {
					t.json, t.page.cursor = nil, -1
				}
			}
		}
		t.page.set(t.page.secs)
	}
	return true
}

// finish lays out at once what a key needs.
func (v *View) finish(k *keymap.Map, m tea.Msg, t *tab) {
	for _, s := range t.page.secs {
		if d, ok := s.doc.(*jsonDoc); ok && d.part && needsWhole(k, m, t.page, d) {
			whole, err := newJSON(d.raw)
			v.Laid(Laid{d, whole, err})
			return
		}
	}
}

// A JSON shows one document by itself: indented, coloured where it is looked
// at, with folds, the path under the cursor, search and wrapping. What is no
// JSON is shown as text. The zero JSON is empty.
type JSON struct {
	raw  []byte
	set  bool
	page *page
	doc  *jsonDoc
	lazy lazyDocs
}

// Set shows a document; the same bytes as before change nothing. A search goes
// on in the new one.
func (j *JSON) Set(raw []byte) {
	if j.set && string(j.raw) == string(raw) {
		return
	}
	old := j.page
	*j = JSON{raw: raw, set: true}
	if d, err := j.lazy.json(raw); err == nil {
		d.signs = true
		j.doc = d
		j.page = newPage([]section{{d, -1, false, 0}}, true)
	} else {
		j.page = newPage([]section{{newText(string(raw), text), -1, false, 0}}, false)
	}
	j.page.wrap = false
	if old == nil {
		return
	}
	j.page.w, j.page.h, j.page.wrap = old.w, old.h, old.wrap
	j.page.top = old.top
	if j.doc != nil && old.cursor > 0 {
		j.page.cursor = old.cursor
	}
	j.page.clamp()
	if old.pat != "" {
		j.page.ask, j.page.find = old.ask, old.find
		j.page.search(old.pat)
	}
}

// Typing reports whether a search is being typed.
func (j *JSON) Typing() bool { return j.page != nil && j.page.ask }

// Searching reports whether a search is on, which Back ends first.
func (j *JSON) Searching() bool { return j.page != nil && j.page.pat != "" }

// Update takes a key, a paste, a wheel or a Laid; used is false for what it has
// no use for. Of the events only Copy can come.
func (j *JSON) Update(k *keymap.Map, m tea.Msg) (e Event, used bool) {
	if j.page == nil {
		return Event{}, false
	}
	if l, ok := m.(Laid); ok {
		return Event{}, j.laid(l)
	}
	if j.doc != nil && j.doc.part && needsWhole(k, m, j.page, j.doc) {
		whole, err := newJSON(j.doc.raw)
		j.laid(Laid{j.doc, whole, err})
	}
	if j.page.ask {
		return Event{}, j.page.update(k, m)
	}
	if km, ok := m.(tea.KeyPressMsg); ok && j.doc != nil && j.doc.Len() > 0 {
		if line, ok := foldKey(k, km, j.page, j.doc); ok {
			refold(j.page, line)
			return Event{}, true
		}
		if key.Matches(km, k.Copy.Binding) && j.page.cursor < j.doc.Len() {
			return Event{Kind: Copy, Text: string(j.doc.valueAt(j.page.cursor)), Name: "the value at " + j.doc.path(j.page.cursor)}, true
		}
	}
	return Event{}, j.page.update(k, m)
}

func (j *JSON) laid(l Laid) bool {
	mine, bad := j.lazy.take(l)
	if !mine {
		return false
	}
	if bad != nil {
		j.doc = nil
		j.page.cursor = -1
		j.page.secs = []section{{newText(string(bad.raw), text), -1, false, 0}}
	}
	j.page.set(j.page.secs)
	return true
}

// Work is layout that is left to do beside the loop.
func (j *JSON) Work() tea.Cmd { return j.lazy.job() }

// Path is the place of the line under the cursor.
func (j *JSON) Path() string {
	if j.doc == nil {
		return ""
	}
	return j.doc.path(j.page.cursor)
}

// Status says where the window and the search stand.
func (j *JSON) Status() string {
	if j.page == nil {
		return ""
	}
	return status(j.page, j.doc)
}

// View draws exactly h lines of at most w cells.
func (j *JSON) View(th *theme.Theme, w, h int) string {
	if j.page == nil {
		j.Set(nil)
	}
	return j.page.view(th, w, h)
}

// status is the page's, with a word on what is not laid out yet.
func status(p *page, d *jsonDoc) string {
	s := p.status()
	if d != nil && d.part {
		return s + " and more, being laid out"
	}
	return s
}

// foldKey takes the keys that fold; line is where to be afterwards.
func foldKey(k *keymap.Map, km tea.KeyPressMsg, p *page, d *jsonDoc) (line int, used bool) {
	switch {
	case key.Matches(km, k.Fold.Binding), key.Matches(km, k.Open.Binding):
		i := p.cursor
		return d.fold(i, d.Len() > i && !d.folded[int32(d.opener(d.at(i)))]), true
	case key.Matches(km, k.Left.Binding):
		return d.fold(p.cursor, true), true
	case key.Matches(km, k.Right.Binding):
		return d.fold(p.cursor, false), true
	case key.Matches(km, k.FoldAll.Binding):
		return d.foldAll(p.cursor), true
	}
	return 0, false
}

// refold counts a page anew after a fold.
func refold(p *page, line int) {
	p.set(p.secs)
	if p.pat != "" {
		p.search(p.pat)
	}
	p.moveTo(line)
}
