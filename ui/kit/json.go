package kit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// maxJSONLines bounds how much of a document is laid out.
const maxJSONLines = 200_000

// A JSON shows one document, indented and coloured, with folds, the path under
// the cursor, and search. What is no JSON is shown as text. The zero JSON is
// empty.
type JSON struct {
	text   Text
	raw    string
	lines  []jsonLine
	shown  []int // indices into lines
	folded map[int]bool
	cursor int // into shown
	built  *theme.Theme
}

type jsonLine struct {
	indent int
	name   string // with quotes, sanitised; "" in arrays
	value  string // sanitised
	kind   byte   // s n w { [ } ] or 0 for plain text
	comma  bool
	end    int // of a container: index of its last line; else 0
	size   int // of a container: how many entries
	path   string
}

// Set shows a document; the same bytes as before change nothing.
func (j *JSON) Set(raw []byte) {
	if j.lines != nil && j.raw == string(raw) {
		return
	}
	search := j.text.Search
	*j = JSON{raw: string(raw), folded: map[int]bool{}}
	j.text.Search = search
	j.text.Lines = j.spans
	j.parse(raw)
	j.layOut()
	if search.Pattern != "" {
		j.text.find(search.Pattern)
	}
}

func (j *JSON) parse(raw []byte) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if len(bytes.TrimSpace(raw)) == 0 {
		j.lines = []jsonLine{}
		return
	}
	if err := j.value(dec, 0, "", "$", true); err != nil || dec.More() {
		j.lines = nil
		for _, l := range safe.Lines(string(raw)) {
			j.lines = append(j.lines, jsonLine{value: l})
			if len(j.lines) > maxJSONLines {
				break
			}
		}
	}
}

func (j *JSON) value(dec *json.Decoder, indent int, name, path string, last bool) error {
	if indent > 2000 || len(j.lines) > maxJSONLines {
		return fmt.Errorf("too much")
	}
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	at := len(j.lines)
	line := jsonLine{indent: indent, name: name, path: path, comma: !last}
	switch v := tok.(type) {
	case json.Delim:
		line.kind, line.value = byte(v), v.String()
		j.lines = append(j.lines, line)
		n := 0
		for dec.More() {
			child, childPath := "", ""
			if v == '{' {
				k, err := dec.Token()
				if err != nil {
					return err
				}
				s, _ := k.(string)
				child, childPath = quote(s), path+member(s)
			} else {
				childPath = path + "[" + strconv.Itoa(n) + "]"
			}
			n++
			i := len(j.lines)
			if err := j.value(dec, indent+1, child, childPath, true); err != nil {
				return err
			}
			if dec.More() {
				j.lines[len(j.lines)-1].comma = true
				if j.lines[i].end != 0 {
					j.lines[i].comma = true
				}
			}
		}
		if _, err := dec.Token(); err != nil {
			return err
		}
		j.lines[at].size = n
		if n == 0 {
			j.lines[at].value += map[byte]string{'{': "}", '[': "]"}[byte(v)]
			return nil
		}
		j.lines[at].end = len(j.lines)
		j.lines = append(j.lines, jsonLine{indent: indent, kind: byte(v) + 2, value: string(rune(v + 2)), path: path})
	case string:
		line.kind, line.value = 's', quote(v)
		j.lines = append(j.lines, line)
	case json.Number:
		line.kind, line.value = 'n', safe.Line(v.String())
		j.lines = append(j.lines, line)
	default:
		line.kind, line.value = 'w', fmt.Sprint(tok)
		if tok == nil {
			line.value = "null"
		}
		j.lines = append(j.lines, line)
	}
	return nil
}

func member(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0 {
		return "." + s
	}
	return "[" + quote(s) + "]"
}

// quote spells a string as JSON without escaping what can be read, and with
// everything else sanitised.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	return safe.Line(strings.TrimSuffix(b.String(), "\n"))
}

func (j *JSON) layOut() {
	j.shown = j.shown[:0]
	for i := 0; i < len(j.lines); i++ {
		j.shown = append(j.shown, i)
		if j.folded[i] {
			i = j.lines[i].end
		}
	}
	j.text.N = len(j.shown)
	j.cursor = max(min(j.cursor, len(j.shown)-1), 0)
}

// Typing reports whether a search is being typed.
func (j *JSON) Typing() bool { return j.text.Search.Typing }

// Update takes a key; it reports whether it used it.
func (j *JSON) Update(k *keymap.Map, m tea.Msg) bool {
	j.text.Lines = j.spans
	if j.text.Search.Typing {
		used := j.text.typeSearch(k, m)
		j.toHit()
		return used
	}
	km, ok := m.(tea.KeyPressMsg)
	if !ok {
		return false
	}
	page := max(j.text.height-1, 1)
	switch {
	case key.Matches(km, k.Up.Binding):
		j.cursor--
	case key.Matches(km, k.Down.Binding):
		j.cursor++
	case key.Matches(km, k.PageUp.Binding):
		j.cursor -= page
	case key.Matches(km, k.PageDown.Binding):
		j.cursor += page
	case key.Matches(km, k.Top.Binding):
		j.cursor = 0
	case key.Matches(km, k.Bottom.Binding):
		j.cursor = len(j.shown) - 1
	case key.Matches(km, k.Fold.Binding), key.Matches(km, k.Open.Binding):
		j.fold(!j.foldedHere())
	case key.Matches(km, k.Left.Binding):
		j.fold(true)
	case key.Matches(km, k.Right.Binding):
		j.fold(false)
	case key.Matches(km, k.FoldAll.Binding):
		j.foldAll()
	default:
		if !j.text.Move(k, m) {
			return false
		}
		j.toHit()
		return true
	}
	j.cursor = max(min(j.cursor, len(j.shown)-1), 0)
	return true
}

func (j *JSON) toHit() {
	if s := &j.text.Search; s.Pattern != "" && len(s.hits) > 0 {
		j.cursor = s.hits[s.at]
	}
}

func (j *JSON) here() int {
	if j.cursor < len(j.shown) {
		return j.shown[j.cursor]
	}
	return -1
}

func (j *JSON) foldedHere() bool { return j.folded[j.here()] }

func (j *JSON) fold(on bool) {
	i := j.here()
	if i < 0 {
		return
	}
	if on && (j.lines[i].end == 0 || j.folded[i]) && i > 0 {
		// Fold what contains the line.
		indent := j.lines[i].indent
		for i > 0 && (j.lines[i].end == 0 || j.lines[i].indent >= indent) {
			i--
		}
	}
	if j.lines[i].end == 0 {
		return
	}
	if on {
		j.folded[i] = true
	} else {
		delete(j.folded, i)
	}
	j.layOut()
	for c, s := range j.shown {
		if s == i {
			j.cursor = c
		}
	}
}

func (j *JSON) foldAll() {
	if len(j.folded) > 0 {
		j.folded = map[int]bool{}
	} else {
		for i, l := range j.lines {
			if l.end != 0 && l.indent == 1 {
				j.folded[i] = true
			}
		}
	}
	j.layOut()
}

// Path is the place of the line under the cursor.
func (j *JSON) Path() string {
	if i := j.here(); i >= 0 {
		return j.lines[i].path
	}
	return ""
}

// Status says where the window and the search stand.
func (j *JSON) Status() string { return j.text.Status() }

// View draws h lines of w cells.
func (j *JSON) View(th *theme.Theme, w, h int) string {
	j.built = th
	j.text.Lines = j.spans
	body := h
	if j.text.Search.Typing {
		body--
	}
	if j.cursor < j.text.Top {
		j.text.Top = j.cursor
	}
	if j.cursor >= j.text.Top+body {
		j.text.Top = j.cursor - body + 1
	}
	return j.text.View(th, w, h)
}

func (j *JSON) spans(i int) []Span {
	l := j.lines[j.shown[i]]
	th := j.built
	if th == nil {
		th = &theme.Theme{}
	}
	lead, leadStyle := "  ", th.Faint
	if i == j.cursor {
		lead, leadStyle = "▌ ", th.Status.Working
	}
	if l.kind == 0 {
		return []Span{{leadStyle, lead}, {th.Text, l.value}}
	}
	sign := "  "
	if l.end != 0 {
		sign = "▾ "
		if j.folded[j.shown[i]] {
			sign = "▸ "
		}
	}
	out := []Span{{leadStyle, lead}, {th.Faint, strings.Repeat("  ", min(l.indent, 40)) + sign}}
	if l.name != "" {
		out = append(out, Span{th.Name1, l.name}, Span{th.Dim, ": "})
	}
	st := th.Dim
	switch l.kind {
	case 's':
		st = th.String
	case 'n':
		st = th.Number
	case 'w':
		st = th.Word
	}
	value := l.value
	if j.folded[j.shown[i]] {
		closing := "}"
		what := "key"
		if l.kind == '[' {
			closing, what = "]", "item"
		}
		out = append(out, Span{st, value}, Span{th.Faint, " " + Count(l.size, what) + " "}, Span{st, closing})
	} else {
		out = append(out, Span{st, value})
	}
	if l.comma && (l.end == 0 || j.folded[j.shown[i]]) {
		out = append(out, Span{th.Dim, ","})
	}
	return out
}
