package resultview

import (
	"errors"
	"fmt"
	"strings"

	"mcptasks/ui/graphics"
	"mcptasks/ui/kit"
	"mcptasks/ui/resultview/blocks"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// one is a line that says something.
func one(style func(*theme.Theme) theme.Style, s string) section {
	s = strings.TrimRight(s, "\n")
	return section{newText(s, style), -1, false, 0}
}

func blank() section {
	return section{lineDoc{func(*theme.Theme) [][]kit.Span { return [][]kit.Span{{}} }}, -1, false, 0}
}

// build lays the result's page out for a width.
func (v *View) build(th *theme.Theme, w int) {
	if g := v.opt.Canvas.Gen(); g != v.canvasGen {
		v.canvasGen, v.imgs = g, map[int]*imageDoc{}
		v.gen++
	}
	if v.built == th && v.builtW == w && v.builtGen == v.gen && len(v.tabs[0].page.secs) > 0 {
		return
	}
	if v.builtW != w || v.built != th {
		v.md = map[int][][]kit.Span{}
	}
	v.built, v.builtW, v.builtGen = th, w, v.gen
	bad := func(th *theme.Theme) theme.Style { return th.Error }
	warn := func(th *theme.Theme) theme.Style { return th.Warn }
	var secs []section
	switch {
	case v.o.Err != nil:
		secs = append(secs, one(bad, "✗ The server answered with an error: "+v.o.Err.Message), one(dim, fmt.Sprintf("code %d", v.o.Err.Code)))
		if len(v.o.Err.Data) > 0 {
			secs = append(secs, blank(), v.jsonSection(v.o.Err.Data, -1))
		}
	case v.o.TooLarge > 0:
		secs = append(secs, one(warn, fmt.Sprintf("! The result has %s, more than is kept here. mcptasks result --save DIR fetches it to files.", blocks.Bytes(v.o.TooLarge))))
	case v.o.Result == nil:
		secs = append(secs, one(dim, "There is no result."))
	case v.res.Odd != "":
		secs = append(secs, one(warn, "! "+v.res.Odd+" It is shown as it came."), blank(), v.jsonSection(v.o.Result, -1))
	default:
		if v.res.IsError {
			secs = append(secs, one(bad, "✗ The tool reported an error."), blank())
		}
		if len(v.res.Blocks) == 0 {
			if v.res.Structured != nil {
				secs = append(secs, v.jsonSection(v.res.Structured, -1))
			} else {
				secs = append(secs, one(dim, "The result is empty."))
			}
		}
		for i := range v.res.Blocks {
			if i > 0 {
				secs = append(secs, blank())
			}
			secs = append(secs, v.blockSections(th, i, w)...)
		}
	}
	if v.o.Note != "" {
		secs = append(secs, blank(), one(dim, v.o.Note))
	}
	if v.o.KeptHere {
		secs = append(secs, blank(), one(dim, "Kept here; the server may no longer have it."))
	}
	v.tabs[0].page.set(secs)
}

func (v *View) jsonSection(raw []byte, block int) section {
	d, ok := v.jsons[block]
	if !ok {
		if t, is := newTable(raw); is && block >= 0 {
			d = t
		} else if j, err := v.lazy.json(raw); err == nil {
			d = j
		} else {
			d = newText(string(raw), text)
		}
		v.jsons[block] = d
	}
	_, table := d.(*tableDoc)
	return section{d, block, table, 0}
}

// head is the line above a block: what it is.
func (v *View) head(i int, more string) section {
	return section{lineDoc{func(th *theme.Theme) [][]kit.Span {
		line := []kit.Span{{Style: th.Heading, Text: v.res.Blocks[i].Line()}}
		if more != "" {
			line = append(line, kit.Span{Text: "  "}, kit.Span{Style: th.Faint, Text: safe.Line(more)})
		}
		return [][]kit.Span{line}
	}}, i, false, 2}
}

// marked reports whether a section is the head of the selected block.
func (v *View) marked(s section) bool {
	_, head := s.doc.(lineDoc)
	return head && s.block == v.sel && len(v.res.Blocks) > 1
}

func (v *View) blockSections(th *theme.Theme, i, w int) []section {
	b := v.res.Blocks[i]
	if b.HasText() {
		if len(v.res.Blocks) > 1 || b.Type != "text" {
			s := v.textSection(th, i, w-2)
			s.in = 2
			return []section{v.head(i, ""), s}
		}
		return []section{v.textSection(th, i, w)}
	}
	if b.Type == "image" || b.HasData() && strings.HasPrefix(b.MIME, "image/") {
		return v.imageSections(th, i, w)
	}
	out := []section{v.head(i, "")}
	if b.Description != "" {
		about := one(dim, b.Description)
		about.in = 2
		out = append(out, about)
	}
	return out
}

func (v *View) textSection(th *theme.Theme, i, w int) section {
	b := v.res.Blocks[i]
	if !v.plain[i] {
		if len(b.Text) <= autoJSON && looksJSON(b.Text) {
			if s := v.jsonSection([]byte(b.Text), i); s.fixed || isJSON(s.doc) {
				return s
			}
		} else if looksMarkdown(b.Text) {
			lines, ok := v.md[i]
			if !ok {
				lines = renderMarkdown(b.Text, th, min(w, 100))
				v.md[i] = lines
			}
			if len(lines) > 0 {
				return section{styledDoc{lines}, i, true, 0}
			}
		}
	}
	d, ok := v.docs[i]
	if !ok {
		style := text
		if v.res.IsError {
			style = func(th *theme.Theme) theme.Style { return th.Text }
		}
		d = newText(b.Text, style)
		v.docs[i] = d
	}
	return section{d, i, false, 0}
}

func isJSON(d doc) bool { _, ok := d.(*jsonDoc); return ok }

const (
	autoJSON   = 4 << 20   // text that is longer is not laid out as JSON
	autoBytes  = 1 << 20   // a picture that is larger is drawn when asked for
	autoPixels = 2_000_000 //
	autoImages = 8
)

func (v *View) imageSections(th *theme.Theme, i, w int) []section {
	b := v.res.Blocks[i]
	if v.opt.NoImages || th.Name == "mono" || v.opt.Canvas.Mode() == graphics.None {
		return []section{v.head(i, "")}
	}
	v.opt.Canvas.Want()
	d, ok := v.imgs[i]
	if !ok {
		if !v.force[i] && (b.Size > autoBytes || len(v.imgs) >= autoImages) {
			return []section{v.head(i, "not drawn yet")}
		}
		data, err := b.Bytes()
		if err == nil {
			var size string
			d, size, err = v.picture(data, v.force[i])
			v.notes[i] = size
		}
		if err != nil {
			v.notes[i] = strings.TrimSpace(v.notes[i] + "  " + err.Error())
			d = nil
		}
		v.imgs[i] = d
	}
	if d == nil {
		return []section{v.head(i, v.notes[i])}
	}
	d.w = w - 2
	return []section{v.head(i, v.notes[i]), {d, i, true, 2}}
}

func (v *View) picture(data []byte, force bool) (*imageDoc, string, error) {
	if !force {
		if n, ok := pixels(data); ok && n > autoPixels {
			return nil, "", errors.New("not drawn yet")
		}
	}
	mode := v.opt.Canvas.Mode()
	small, full, size, err := thumbnail(data, mode == graphics.Kitty || mode == graphics.Sixel)
	if err != nil {
		return nil, size, err
	}
	d := &imageDoc{small: small}
	if full != nil {
		d.pic = v.opt.Canvas.Picture(full)
	}
	return d, size, nil
}
