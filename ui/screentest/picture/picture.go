// Package picture draws the cells of an emulator to an image: DejaVu Sans Mono
// at a fixed size, one cell as wide as its advance and as high as ascent and
// descent, so that the same screen gives the same bytes on every machine.
//
// It is for package screenshots. It imports screentest, x/image and the fonts
// that go-fonts/dejavu embeds.
package picture

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"

	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansmono"
	"github.com/go-fonts/dejavu/dejavusansmonobold"
	"github.com/go-fonts/dejavu/dejavusansmonooblique"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"mcptasks/ui/screentest"
)

const (
	size   = 15 // pixels
	margin = 14 // around the screen
)

// The colours of a terminal that was told nothing.
var (
	Background = color.RGBA{0x16, 0x19, 0x1f, 0xff}
	Foreground = color.RGBA{0xd6, 0xda, 0xe0, 0xff}
	LightBack  = color.RGBA{0xfb, 0xfb, 0xf9, 0xff}
	LightFore  = color.RGBA{0x24, 0x28, 0x2e, 0xff}
)

// A Painter draws screens. It is not for concurrent use.
type Painter struct {
	faces  map[string]font.Face
	fonts  map[string]*sfnt.Font
	buf    sfnt.Buffer
	w, h   int
	ascent int
	fg, bg color.Color
}

// New makes a painter for a background.
func New(light bool) (*Painter, error) {
	p := &Painter{faces: map[string]font.Face{}, fonts: map[string]*sfnt.Font{}, fg: Foreground, bg: Background}
	if light {
		p.fg, p.bg = LightFore, LightBack
	}
	for name, ttf := range map[string][]byte{"regular": dejavusansmono.TTF, "bold": dejavusansmonobold.TTF, "italic": dejavusansmonooblique.TTF, "wide": dejavusans.TTF} {
		f, err := opentype.Parse(ttf)
		if err != nil {
			return nil, fmt.Errorf("font %s: %w", name, err)
		}
		face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
		if err != nil {
			return nil, fmt.Errorf("font %s: %w", name, err)
		}
		p.fonts[name], p.faces[name] = f, face
	}
	m := p.faces["regular"].Metrics()
	adv, _ := p.faces["regular"].GlyphAdvance('M')
	p.w, p.ascent, p.h = adv.Round(), m.Ascent.Ceil(), m.Ascent.Ceil()+m.Descent.Ceil()
	return p, nil
}

// Paint draws a screen.
func (p *Painter) Paint(cells [][]screentest.Cell) *image.RGBA {
	rows, cols := len(cells), 0
	if rows > 0 {
		cols = len(cells[0])
	}
	img := image.NewRGBA(image.Rect(0, 0, cols*p.w+2*margin, rows*p.h+2*margin))
	draw.Draw(img, img.Bounds(), image.NewUniform(p.bg), image.Point{}, draw.Src)
	for y, row := range cells {
		for x, c := range row {
			if c.Width == 0 {
				continue
			}
			p.cell(img, margin+x*p.w, margin+y*p.h, c)
		}
	}
	return img
}

func (p *Painter) cell(img *image.RGBA, x, y int, c screentest.Cell) {
	fg, bg := c.Fg, c.Bg
	if fg == nil {
		fg = p.fg
	}
	if bg == nil {
		bg = p.bg
	}
	if c.Reverse {
		fg, bg = bg, fg
	}
	if c.Faint {
		fg = mix(fg, bg)
	}
	w := p.w * max(c.Width, 1)
	box := image.Rect(x, y, x+w, y+p.h)
	if bg != p.bg {
		draw.Draw(img, box, image.NewUniform(bg), image.Point{}, draw.Src)
	}
	if c.Underline {
		draw.Draw(img, image.Rect(x, y+p.ascent+2, x+w, y+p.ascent+3), image.NewUniform(fg), image.Point{}, draw.Over)
	}
	if c.Text == "" || c.Text == " " {
		return
	}
	r := []rune(c.Text)[0]
	if p.block(img, box, r, fg) {
		return
	}
	name := "regular"
	switch {
	case c.Bold:
		name = "bold"
	case c.Italic:
		name = "italic"
	}
	for _, n := range []string{name, "regular", "wide"} {
		if i, err := p.fonts[n].GlyphIndex(&p.buf, r); err == nil && i != 0 {
			name = n
			break
		}
	}
	d := font.Drawer{Dst: img, Src: image.NewUniform(fg), Face: p.faces[name], Dot: fixed.P(x, y+p.ascent)}
	d.DrawString(c.Text)
}

// block draws what must meet its neighbours without a seam.
func (p *Painter) block(img *image.RGBA, b image.Rectangle, r rune, fg color.Color) bool {
	fill := func(x0, y0, x1, y1 int) {
		draw.Draw(img, image.Rect(x0, y0, x1, y1), image.NewUniform(fg), image.Point{}, draw.Over)
	}
	mx, my := (b.Min.X+b.Max.X)/2, (b.Min.Y+b.Max.Y)/2
	switch r {
	case '▌':
		fill(b.Min.X, b.Min.Y, b.Min.X+3, b.Max.Y)
	case '─':
		fill(b.Min.X, my, b.Max.X, my+1)
	case '━':
		fill(b.Min.X, my-1, b.Max.X, my+2)
	case '│':
		fill(mx, b.Min.Y, mx+1, b.Max.Y)
	case '╭':
		fill(mx, my, b.Max.X, my+1)
		fill(mx, my, mx+1, b.Max.Y)
	case '╮':
		fill(b.Min.X, my, mx+1, my+1)
		fill(mx, my, mx+1, b.Max.Y)
	case '╰':
		fill(mx, my, b.Max.X, my+1)
		fill(mx, b.Min.Y, mx+1, my+1)
	case '╯':
		fill(b.Min.X, my, mx+1, my+1)
		fill(mx, b.Min.Y, mx+1, my+1)
	case '█':
		fill(b.Min.X, b.Min.Y, b.Max.X, b.Max.Y)
	case '▀':
		fill(b.Min.X, b.Min.Y, b.Max.X, my)
	case '▄':
		fill(b.Min.X, my, b.Max.X, b.Max.Y)
	default:
		if r >= '▁' && r <= '▇' {
			n := int(r-'▁') + 1
			fill(b.Min.X+1, b.Max.Y-3-(p.h-6)*n/8, b.Max.X-1, b.Max.Y-3)
			return true
		}
		return false
	}
	return true
}

func mix(a, b color.Color) color.Color {
	ar, ag, ab, _ := a.RGBA()
	br, bg, bb, _ := b.RGBA()
	f := func(x, y uint32) uint8 { return uint8((x*6 + y*4) / 10 >> 8) }
	return color.RGBA{f(ar, br), f(ag, bg), f(ab, bb), 0xff}
}
