package resultview

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/graphics"
	"mcptasks/ui/kit"
	"mcptasks/ui/resultview/blocks"
	"mcptasks/ui/theme"
)

// EventKind is what the person wants.
type EventKind int

// The kinds.
const (
	None     EventKind = iota
	Copy               // Text, exactly as the server sent it
	Save               // ask for a folder and call View.Save off the screen's loop
	Pager              // show Text in $PAGER
	Editor             // open Text in $EDITOR
	Open               // save the block and open it with the system's program
	ReadLink           // read the resource at Text from the server
	Visit              // open the address at Text in the browser
)

// An Event is what came of a message.
type Event struct {
	Kind  EventKind
	Text  string
	Name  string // Copy: what it is; Pager, Editor: a safe file name that tells the kind
	Block blocks.Block
}

// Options are settings of a View.
type Options struct {
	NoImages bool             // the person wants none
	Canvas   *graphics.Canvas // nil: half blocks
}

// A View shows one outcome. It is owned by the goroutine of the screen.
type View struct {
	o     taskmodel.Outcome
	opt   Options
	res   blocks.Result
	tabs  []tab
	tab   int
	sel   int // content block
	plain map[int]bool
	force map[int]bool // pictures to be drawn whatever their size
	imgs  map[int]*imageDoc
	notes map[int]string // of pictures
	docs  map[int]doc    // of text, as written
	jsons map[int]doc    // of JSON, by block; -1: that of the whole
	lazy  lazyDocs
	md    map[int][][]kit.Span
	builtW,
	builtGen, gen,
	canvasGen int
	built *theme.Theme
}

const structured = "Structured"

type tab struct {
	name string
	page *page    // nil until it is looked at
	json *jsonDoc // the page is this document
}

// New makes the view of an outcome.
func New(o taskmodel.Outcome, opt Options) *View {
	v := &View{o: o, opt: opt, plain: map[int]bool{}, force: map[int]bool{}, imgs: map[int]*imageDoc{}, notes: map[int]string{}, docs: map[int]doc{}, jsons: map[int]doc{}, md: map[int][][]kit.Span{}}
	if o.Result != nil {
		v.res = blocks.Read(o.Result)
	}
	v.tabs = []tab{{name: "Result", page: newPage(nil, false)}}
	v.tabs[0].page.marked = v.marked
	if v.res.Structured != nil && len(v.res.Blocks) > 0 {
		v.tabs = append(v.tabs, tab{name: structured})
	}
	if o.Result != nil || o.Err != nil {
		v.tabs = append(v.tabs, tab{name: "Raw"})
	}
	return v
}

// jsonTab makes a tab of JSON; of a list of flat objects a table, when wanted.
func (v *View) jsonTab(name string, raw []byte, table bool) tab {
	if table {
		if t, ok := newTable(raw); ok {
			p := newPage([]section{{t, -1, false, 0}}, false)
			p.wrap = false
			return tab{name: name, page: p}
		}
	}
	if d, err := v.lazy.json(raw); err == nil {
		d.signs = true
		p := newPage([]section{{d, -1, false, 0}}, true)
		p.wrap = false
		return tab{name: name, page: p, json: d}
	}
	return tab{name: name, page: newPage([]section{{newText(string(raw), text), -1, false, 0}}, false)}
}

func text(th *theme.Theme) theme.Style { return th.Text }
func dim(th *theme.Theme) theme.Style  { return th.Dim }

// raw is the whole as it came.
func (v *View) raw() []byte {
	if v.o.Result != nil {
		return v.o.Result
	}
	if v.o.Err != nil {
		b, err := json.Marshal(v.o.Err)
		if err == nil {
			return b
		}
	}
	return nil
}

// current is the tab that is looked at, laid out.
func (v *View) current() *tab {
	t := &v.tabs[v.tab]
	if t.page == nil && t.name == structured {
		*t = v.jsonTab(t.name, v.res.Structured, true)
	} else if t.page == nil {
		*t = v.jsonTab(t.name, v.raw(), false)
	}
	return t
}

// Typing reports whether a search is being typed.
func (v *View) Typing() bool { return v.current().page.ask }

// Searching reports whether a search is on, which Back ends first.
func (v *View) Searching() bool { return v.current().page.pat != "" }

// Update takes a key, a paste or a wheel. used is false for a key that the
// view has no use for.
func (v *View) Update(k *keymap.Map, m tea.Msg) (e Event, used bool) {
	t := v.current()
	if v.tab == 0 && v.built == nil {
		v.build(&theme.Theme{Dark: true}, 80) // a key before the first frame
	}
	v.finish(k, m, t)
	if t.page.ask {
		return Event{}, t.page.update(k, m)
	}
	km, ok := m.(tea.KeyPressMsg)
	if !ok {
		return Event{}, t.page.update(k, m)
	}
	switch {
	case key.Matches(km, k.NextPane.Binding):
		v.tab = (v.tab + 1) % len(v.tabs)
	case key.Matches(km, k.PrevPane.Binding):
		v.tab = (v.tab + len(v.tabs) - 1) % len(v.tabs)
	case key.Matches(km, k.Copy.Binding):
		return v.copy(), true
	case key.Matches(km, k.Save.Binding):
		return Event{Kind: Save}, true
	case key.Matches(km, k.Pager.Binding), key.Matches(km, k.Editor.Binding):
		e := v.whole()
		e.Kind = Pager
		if key.Matches(km, k.Editor.Binding) {
			e.Kind = Editor
		}
		return e, true
	case v.folds(k, km, t):
	case v.tab == 0 && v.block(k, km, &e):
		return e, true
	default:
		used := t.page.update(k, m)
		if used && v.tab == 0 {
			v.follow()
		}
		return Event{}, used
	}
	return Event{}, true
}

// follow selects a block that is in the window when the selected one has been
// scrolled out of it.
func (v *View) follow() {
	p := v.tabs[0].page
	middle := -1
	for i, s := range p.secs {
		from, to := p.starts[i], p.n
		if i+1 < len(p.secs) {
			to = p.starts[i+1]
		}
		if s.block < 0 || to <= p.top || from >= p.top+p.h {
			continue
		}
		if s.block == v.sel {
			return
		}
		if middle < 0 || from <= p.top+p.h/2 {
			middle = s.block
		}
	}
	if middle >= 0 {
		v.sel = middle
	}
}

func (v *View) folds(k *keymap.Map, km tea.KeyPressMsg, t *tab) bool {
	if t.json == nil {
		return false
	}
	line, used := foldKey(k, km, t.page, t.json)
	if used {
		refold(t.page, line)
	}
	return used
}

// block takes the keys that are about one content block.
func (v *View) block(k *keymap.Map, km tea.KeyPressMsg, e *Event) bool {
	n := len(v.res.Blocks)
	if n == 0 || v.res.Odd != "" {
		return false
	}
	b := v.res.Blocks[v.sel]
	p := v.tabs[0].page
	switch {
	case n > 1 && p.wrap && key.Matches(km, k.Left.Binding):
		v.choose(v.sel - 1)
	case n > 1 && p.wrap && key.Matches(km, k.Right.Binding):
		v.choose(v.sel + 1)
	case key.Matches(km, k.Fold.Binding):
		switch {
		case b.HasText():
			v.plain[v.sel] = !v.plain[v.sel]
		case b.Type == "image":
			v.force[v.sel] = !v.force[v.sel]
			delete(v.imgs, v.sel)
		}
		v.gen++
	case key.Matches(km, k.OpenFile.Binding) && b.Type == "resource_link":
		*e = Event{Kind: Visit, Text: b.URI, Block: b}
	case key.Matches(km, k.OpenFile.Binding):
		*e = Event{Kind: Open, Block: b}
	case key.Matches(km, k.Open.Binding):
		switch {
		case b.Type == "resource_link" && b.URI != "":
			*e = Event{Kind: ReadLink, Text: b.URI, Block: b}
		case b.HasData():
			*e = Event{Kind: Open, Block: b}
		}
	default:
		return false
	}
	return true
}

// choose selects a block and shows its beginning.
func (v *View) choose(i int) {
	v.sel = max(min(i, len(v.res.Blocks)-1), 0)
	p := v.tabs[0].page
	for s, sec := range p.secs {
		if sec.block == v.sel {
			p.top, p.sub = p.starts[s], 0
			p.clamp()
			return
		}
	}
}

func (v *View) copy() Event {
	t := v.current()
	if t.json != nil && t.page.cursor < t.json.Len() {
		return Event{Kind: Copy, Text: string(t.json.valueAt(t.page.cursor)), Name: "the value at " + t.json.path(t.page.cursor)}
	}
	if v.tab == 0 && v.res.Odd == "" && v.sel < len(v.res.Blocks) {
		b := v.res.Blocks[v.sel]
		switch {
		case b.HasText():
			return Event{Kind: Copy, Text: b.Text, Name: "the text"}
		case b.Type == "resource_link" && b.URI != "":
			return Event{Kind: Copy, Text: b.URI, Name: "the address"}
		}
		return Event{Kind: Copy, Text: string(b.Raw), Name: "the block as JSON"}
	}
	return Event{Kind: Copy, Text: string(v.raw()), Name: "the result as JSON"}
}

// whole is what the pager and the editor get.
func (v *View) whole() Event {
	if v.tab == 0 && v.res.Odd == "" && v.sel < len(v.res.Blocks) && v.res.Blocks[v.sel].HasText() {
		b := v.res.Blocks[v.sel]
		return Event{Text: b.Text, Name: b.FileName()}
	}
	raw := v.raw()
	if v.tab < len(v.tabs) && v.tabs[v.tab].name == structured {
		raw = v.res.Structured
	}
	return Event{Text: pretty(raw), Name: "result.json"}
}

func pretty(raw []byte) string {
	var b strings.Builder
	d, err := newJSON(raw)
	if err != nil {
		return string(raw)
	}
	for i, l := range d.lines {
		b.WriteString(strings.Repeat("  ", int(l.indent)))
		if l.nameEnd > l.name {
			b.Write(raw[l.name:l.nameEnd])
			b.WriteString(": ")
		}
		b.Write(raw[l.from:l.to])
		if l.comma && l.end == 0 {
			b.WriteByte(',')
		}
		if i+1 < len(d.lines) {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Save writes every content block to files in dir, as blocks.Result.Save does.
// It may be called off the screen's loop.
func (v *View) Save(dir string) ([]string, error) {
	switch {
	case v.o.Err != nil:
		return blocks.Result{Raw: v.raw(), Odd: "an error"}.Save(dir)
	case v.o.Result == nil:
		return nil, errors.New("there is no result to save")
	}
	return v.res.Save(dir)
}

// Status says where the window stands: on the left the place in the JSON, on
// the right lines or matches.
func (v *View) Status() (left, right string) {
	t := v.current()
	if t.json != nil {
		left = t.json.path(t.page.cursor)
	} else if v.tab == 0 && len(v.res.Blocks) > 1 && v.res.Odd == "" {
		left = fmt.Sprintf("block %d of %d: %s", v.sel+1, len(v.res.Blocks), v.res.Blocks[v.sel].Line())
	}
	return left, status(t.page, t.json)
}

// Keys are those that count now, the most useful first.
func (v *View) Keys(k *keymap.Map) []keymap.Binding {
	var out []keymap.Binding
	t := v.current()
	if len(v.tabs) > 1 {
		out = append(out, k.NextPane)
	}
	if v.tab == 0 && v.res.Odd == "" && v.sel < len(v.res.Blocks) {
		switch b := v.res.Blocks[v.sel]; {
		case b.Type == "resource_link":
			read, visit := k.Open, k.OpenFile
			read.Short, visit.Short = "read", "browser"
			out = append(out, read, visit)
		case b.HasData():
			out = append(out, k.Open)
		}
		if len(v.res.Blocks) > 1 && v.tabs[0].page.wrap {
			next := k.Right
			next.Short = "next block"
			out = append(out, next)
		}
	}
	if t.json != nil {
		out = append(out, k.Fold, k.FoldAll)
	}
	return append(out, k.Search, k.Wrap, k.Copy, k.Save, k.Pager, k.Editor)
}

// View draws exactly h lines of at most w cells.
func (v *View) View(th *theme.Theme, w, h int) string {
	t := v.current()
	if v.tab == 0 {
		v.build(th, w)
	}
	if len(v.tabs) < 2 || h < 4 {
		return t.page.view(th, w, h)
	}
	l := kit.NewLine(w, nil)
	for i, t := range v.tabs {
		if i > 0 {
			l.Gap(3)
		}
		if i == v.tab {
			l.Add(th.Mark, "▌").Add(th.Title, t.name)
		} else {
			l.Gap(1).Add(th.Dim, t.name)
		}
	}
	return l.String() + "\n\n" + t.page.view(th, w, h-2)
}
