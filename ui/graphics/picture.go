package graphics

import (
	"bytes"
	"fmt"
	"image"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/charmbracelet/x/ansi/sixel"
	"golang.org/x/image/draw"

	"mcptasks/ui/safe"
)

// A Picture is one image on its way to the terminal or there.
type Picture struct {
	c          *Canvas
	id         int
	img        image.Image
	cols, rows int
	sent       bool // the terminal has the image
	busy       bool
	gone       bool // dropped for newer ones
	ready      bool // for cols and rows
	scaled     *image.RGBA
}

// Picture makes a picture of an image, which is not changed any more.
func (c *Canvas) Picture(img image.Image) *Picture {
	if c == nil {
		return nil
	}
	c.last = c.last%255 + 1
	p := &Picture{c: c, id: c.base + c.last, img: img}
	c.pics = append(c.pics, p)
	if len(c.pics) > maxPictures {
		old := c.pics[0]
		c.pics = c.pics[1:]
		if i := slices.Index(c.held, old.id); i >= 0 {
			c.held = slices.Delete(c.held, i, i+1)
			c.dropped = append(c.dropped, old.id)
		}
		old.gone, old.ready, old.img, old.scaled = true, false, nil, nil
	}
	return p
}

// maxPictures is how many pictures are kept, here and in the terminal; older
// ones are shown in half blocks.
const maxPictures = 16

// Drawn is the end of a picture's job.
type Drawn struct {
	of         *Picture
	cols, rows int
	scaled     *image.RGBA
}

// Take takes the end of a job.
func (c *Canvas) Take(d Drawn) {
	p := d.of
	p.busy = false
	if p.cols == d.cols && p.rows == d.rows && !p.gone {
		p.ready, p.scaled = true, d.scaled
	}
}

// Job makes the picture ready for its size in cells; nil when it is or when
// half blocks are all there is.
func (p *Picture) Job(cols, rows int) tea.Cmd {
	if p == nil || p.gone || cols < 1 || rows < 1 {
		return nil
	}
	if p.cols != cols || p.rows != rows {
		p.cols, p.rows, p.ready = cols, rows, false
	}
	if p.busy || p.ready {
		return nil
	}
	end := Drawn{of: p, cols: cols, rows: rows}
	switch p.c.Mode() {
	case Kitty:
		p.busy = true
		id, img, sent := p.id, p.img, p.sent
		if !sent {
			p.sent = true
			p.c.held = append(p.c.held, id)
		}
		drop := remove(p.c.dropped)
		p.c.dropped = nil
		return func() tea.Msg {
			seq, err := transmit(id, img, cols, rows, sent)
			if err != nil {
				return nil // the half blocks stay
			}
			return tea.Sequence(tea.Raw(drop+seq), func() tea.Msg { return end })()
		}
	case Sixel:
		p.busy = true
		w, h, img := cols*p.c.cellW, rows*p.c.cellH, p.img
		return func() tea.Msg {
			end.scaled = image.NewRGBA(image.Rect(0, 0, w, h))
			draw.ApproxBiLinear.Scale(end.scaled, end.scaled.Rect, img, img.Bounds(), draw.Src, nil)
			return end
		}
	}
	return nil
}

// transmit sends an image, once, and places it for its placeholders.
func transmit(id int, img image.Image, cols, rows int, sent bool) (string, error) {
	if sent {
		return ansi.KittyGraphics(nil, "a=p", "U=1", fmt.Sprintf("i=%d", id), fmt.Sprintf("c=%d", cols), fmt.Sprintf("r=%d", rows), "q=2"), nil
	}
	var b bytes.Buffer
	err := kitty.EncodeGraphics(&b, img, &kitty.Options{Action: kitty.TransmitAndPut, Transmission: kitty.Direct, Format: kitty.PNG, ID: id,
		VirtualPlacement: true, Columns: cols, Rows: rows, Quiet: 2, Chunk: true})
	if err != nil {
		return "", fmt.Errorf("encoding a picture: %w", err)
	}
	return b.String(), nil
}

// Row is row i of the picture in cells. blocks is the same row in half blocks.
func (p *Picture) Row(i, cols, rows int, blocks string) string {
	if p == nil || !p.ready || p.cols != cols || p.rows != rows {
		return blocks
	}
	switch p.c.Mode() {
	case Kitty:
		var b strings.Builder
		fmt.Fprintf(&b, "\x1b[38;2;%d;%d;%dm", p.id>>16&0xff, p.id>>8&0xff, p.id&0xff)
		for x := range cols {
			b.WriteRune(kitty.Placeholder)
			b.WriteRune(kitty.Diacritic(i))
			b.WriteRune(kitty.Diacritic(x))
		}
		b.WriteString("\x1b[39m")
		return b.String()
	case Sixel:
		return fmt.Sprintf("%s%d;%d%s%s", markFrom, p.id, i, markTo, blocks)
	}
	return blocks
}

// The mark of a row of a sixel picture in a frame: a string that no layout
// counts, taken out before the frame goes to the renderer. No remote text can
// hold it: it begins with a control byte.
const markFrom, markTo = "\x1b_mcptasks;", "\x1b\\"

// A spot is where a piece of a picture stands on the screen.
type spot struct {
	id      int
	x, y    int
	from, n int // rows of the picture
}

// Lift takes the marks out of a frame and remembers where the pictures stand;
// covered says that something lies over the frame, so that none is drawn. It
// reports whether they are to be drawn anew.
func (c *Canvas) Lift(frame string, covered bool) (string, bool) {
	var spots []spot
	if strings.Contains(frame, markFrom) {
		lines := strings.Split(frame, "\n")
		for y, line := range lines {
			for {
				i := strings.Index(line, markFrom)
				if i < 0 {
					break
				}
				rest := line[i+len(markFrom):]
				j := strings.Index(rest, markTo)
				var id, row int
				if j < 0 {
					line = line[:i]
					break
				}
				if _, err := fmt.Sscanf(rest[:j], "%d;%d", &id, &row); err == nil {
					spots = join(spots, spot{id, safe.Width(line[:i]), y, row, 1})
				}
				line = line[:i] + rest[j+len(markTo):]
			}
			lines[y] = line
		}
		frame = strings.Join(lines, "\n")
	}
	if covered {
		spots = nil
	}
	changed := len(spots) != len(c.spots)
	for i := 0; !changed && i < len(spots); i++ {
		changed = spots[i] != c.spots[i]
	}
	if changed {
		c.spots = spots
		c.turn++
	}
	return frame, changed && len(spots) > 0
}

// Stale says that the terminal was cleared behind the pictures' back: they are
// to be drawn anew.
func (c *Canvas) Stale() { c.spots = nil }

func join(spots []spot, s spot) []spot {
	for i := range spots {
		if p := &spots[i]; p.id == s.id && p.x == s.x && p.y+p.n == s.y && p.from+p.n == s.from {
			p.n++
			return spots
		}
	}
	return append(spots, s)
}

// Pieces are the pictures that stand on the screen, made ready to be encoded;
// they are current as long as Current says so.
func (c *Canvas) Pieces() (turn int, encode func() string) {
	type piece struct {
		spot
		img  *image.RGBA
		cell int
	}
	var all []piece
	for _, s := range c.spots {
		i := slices.IndexFunc(c.pics, func(p *Picture) bool { return p.id == s.id })
		if i < 0 {
			continue
		}
		if p := c.pics[i]; p.ready && p.scaled != nil {
			all = append(all, piece{s, p.scaled, c.cellH})
		}
	}
	return c.turn, func() string {
		var b strings.Builder
		for _, p := range all {
			part := p.img.SubImage(image.Rect(0, p.from*p.cell, p.img.Rect.Dx(), (p.from+p.n)*p.cell))
			// The encoder counts from 0.
			img := image.NewRGBA(image.Rect(0, 0, part.Bounds().Dx(), part.Bounds().Dy()))
			draw.Draw(img, img.Rect, part, part.Bounds().Min, draw.Src)
			var payload bytes.Buffer
			if err := new(sixel.Encoder).Encode(&payload, img); err != nil {
				continue
			}
			b.WriteString(ansi.SaveCursor + ansi.CursorPosition(p.x+1, p.y+1) + ansi.SixelGraphics(0, 1, 0, payload.Bytes()) + ansi.RestoreCursor)
		}
		return b.String()
	}
}

// Current reports whether the pictures still stand where they stood at a turn.
func (c *Canvas) Current(turn int) bool { return turn == c.turn }
