package resultview

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"  // decoders of the common types
	_ "image/jpeg" //
	_ "image/png"  //

	tea "charm.land/bubbletea/v2"
	_ "golang.org/x/image/webp" // one more

	"mcptasks/ui/graphics"
	"mcptasks/ui/kit"
	"mcptasks/ui/theme"
)

const (
	maxPixels  = 40_000_000 // a picture that claims more is not decoded
	thumbW     = 160        // cells
	thumbH     = 96         // half cells
	imageCells = 72         // the widest that a picture is drawn
	imageRows  = 24
	fullW      = 1440 // pixels of a picture that the terminal itself draws
	fullH      = 960
)

// thumbnail decodes a picture and makes it small enough to be drawn in cells;
// full is as much of it as a terminal can show that draws pixels, where that is
// wanted.
func thumbnail(data []byte, pixels bool) (small *image.RGBA, full image.Image, size string, err error) {
	c, kind, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, nil, "", fmt.Errorf("it cannot be drawn: %w", err)
	}
	size = fmt.Sprintf("%s %d×%d", kind, c.Width, c.Height)
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return nil, nil, size, fmt.Errorf("it is too large to be drawn")
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, nil, size, fmt.Errorf("it cannot be drawn: %w", err)
	}
	w, h := fit(c.Width, c.Height, thumbW, thumbH)
	small = shrink(img, w, h)
	if pixels {
		w, h = fit(c.Width, c.Height, fullW, fullH)
		full = shrink(img, w, h)
	}
	return small, full, size, nil
}

// fit gives the size within w×h that keeps the shape; never larger than it is.
func fit(iw, ih, w, h int) (int, int) {
	if iw <= w && ih <= h {
		return iw, ih
	}
	if iw*h > ih*w {
		return w, max(ih*w/iw, 1)
	}
	return max(iw*h/ih, 1), h
}

// shrink averages the pixels of each target pixel, at most 8×8 samples of
// them, over black where they are transparent.
func shrink(img image.Image, w, h int) *image.RGBA {
	b := img.Bounds()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		y0, y1 := b.Min.Y+y*b.Dy()/h, b.Min.Y+(y+1)*b.Dy()/h
		for x := range w {
			x0, x1 := b.Min.X+x*b.Dx()/w, b.Min.X+(x+1)*b.Dx()/w
			var r, g, bl, n uint32
			sy, sx := max((y1-y0)/8, 1), max((x1-x0)/8, 1)
			for py := y0; py < max(y1, y0+1); py += sy {
				for px := x0; px < max(x1, x0+1); px += sx {
					cr, cg, cb, _ := img.At(px, py).RGBA()
					r, g, bl, n = r+cr>>8, g+cg>>8, bl+cb>>8, n+1
				}
			}
			out.SetRGBA(x, y, color.RGBA{uint8(r / n), uint8(g / n), uint8(bl / n), 255})
		}
	}
	return out
}

// An imageDoc draws a picture: with half blocks, two pixels a cell, or as the
// terminal's canvas does it.
type imageDoc struct {
	small  *image.RGBA
	pic    *graphics.Picture // nil: half blocks are all there is
	w      int               // cells there are
	scaled *image.RGBA       // for w
}

func (d *imageDoc) size() (int, int) {
	w := min(d.w, imageCells)
	if w <= 0 {
		w = imageCells
	}
	return fit(d.small.Rect.Dx(), d.small.Rect.Dy(), w, imageRows*2)
}

func (d *imageDoc) Len() int { _, h := d.size(); return (h + 1) / 2 }

func (d *imageDoc) Find(string) []int { return nil }

// job makes the picture ready for the terminal.
func (d *imageDoc) job() tea.Cmd {
	w, _ := d.size()
	return d.pic.Job(w, d.Len())
}

func (d *imageDoc) Spans(_ *theme.Theme, i int) []kit.Span {
	w, _ := d.size()
	return []kit.Span{{Text: d.pic.Row(i, w, d.Len(), d.blocks(i))}}
}

func (d *imageDoc) blocks(i int) string {
	w, h := d.size()
	pic := d.scaled
	if pic == nil || pic.Rect.Dx() != w || pic.Rect.Dy() != h {
		pic = shrink(d.small, w, h)
		d.scaled = pic
	}
	var b bytes.Buffer
	for x := range w {
		up := pic.RGBAAt(x, 2*i)
		fmt.Fprintf(&b, "\x1b[38;2;%d;%d;%d", up.R, up.G, up.B)
		if 2*i+1 < h {
			lo := pic.RGBAAt(x, 2*i+1)
			fmt.Fprintf(&b, ";48;2;%d;%d;%d", lo.R, lo.G, lo.B)
		} else {
			b.WriteString(";49")
		}
		b.WriteString("m▀")
	}
	b.WriteString("\x1b[0m")
	return b.String()
}

// pixels is how many a picture says that it has.
func pixels(data []byte) (int, bool) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width > 1<<30/c.Height {
		return 1 << 30, err == nil
	}
	return c.Width * c.Height, true
}
