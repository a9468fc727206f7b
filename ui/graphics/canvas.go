package graphics

import (
	"fmt"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// A Mode is a way to show a picture.
type Mode int

// The modes.
const (
	Blocks Mode = iota // half blocks in colours
	Kitty              // kitty's protocol, placed by Unicode placeholders
	Sixel              // sixel over the half blocks
	None               // no pictures: their lines alone
)

var modeNames = []string{"blocks", "kitty", "sixel", "none"}

func (m Mode) String() string { return modeNames[m] }

// Modes are the words that New takes beside "auto".
func Modes() []string { return slices.Clone(modeNames) }

// A Canvas knows what the terminal can and which pictures it holds.
type Canvas struct {
	mode   Mode
	fixed  bool // by the person
	known  bool // by the terminal's name
	wanted bool // there is a picture to be shown
	asked  bool
	gray   bool // the terminal shows no colours
	narrow bool // it shows fewer than all

	sixel        bool
	cellW, cellH int // in pixels; 0: not known

	gen     int   // grows when what is drawn has to be made anew
	last    int   // picture id
	base    int   // of the ids, so that two programs on one terminal do not meet
	held    []int // ids that the terminal has
	dropped []int // ids that it still has to be told to drop
	pics    []*Picture
	spots   []spot
	turn    int // of the spots
}

// New makes a canvas. mode is one of Modes, or "auto" or "" to find out. env is
// the terminal's environment.
func New(mode string, env []string) (*Canvas, error) {
	c := &Canvas{base: os.Getpid() & 0xffff << 8}
	if err := c.Set(mode); err != nil {
		return nil, err
	}
	get := func(name string) string {
		for _, e := range slices.Backward(env) {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v
			}
		}
		return ""
	}
	// TERM tells the truth over SSH, too; multiplexers put their own there.
	if t := get("TERM"); !c.fixed && (t == "xterm-kitty" || t == "xterm-ghostty") && get("TMUX") == "" && get("STY") == "" {
		c.mode, c.known = Kitty, true
	}
	return c, nil
}

// Set chooses a mode, or with "auto" lets the terminal's answers decide.
func (c *Canvas) Set(mode string) error {
	c.gen++
	if mode == "" || mode == "auto" {
		c.fixed = false
		c.decide()
		return nil
	}
	i := slices.Index(modeNames, mode)
	if i < 0 {
		return fmt.Errorf("pictures cannot be shown as %q (there are auto, %s)", mode, strings.Join(modeNames, ", "))
	}
	c.mode, c.fixed = Mode(i), true
	return nil
}

// Setting is what was chosen: a mode, or "auto".
func (c *Canvas) Setting() string {
	if c.fixed {
		return c.mode.String()
	}
	return "auto"
}

// Mode is how a picture is shown now.
func (c *Canvas) Mode() Mode {
	switch {
	case c == nil:
		return Blocks
	case c.gray:
		return None
	case c.mode == Kitty && c.narrow: // the id travels in a colour
		return Blocks
	case c.mode == Sixel && c.cellH == 0:
		return Blocks
	}
	return c.mode
}

// Gen grows whenever pictures have to be drawn anew.
func (c *Canvas) Gen() int {
	if c == nil {
		return 0
	}
	return c.gen
}

// cellSize asks for the size of a cell in pixels (XTWINOPS).
const cellSize = 16

// Want says that there is a picture to be shown.
func (c *Canvas) Want() {
	if c != nil {
		c.wanted = true
	}
}

// Ask is the command that asks the terminal what it can, nil when there is
// nothing to ask. None of its queries is a graphics escape.
func (c *Canvas) Ask() tea.Cmd {
	if !c.wanted || c.asked || c.gray || c.fixed && c.mode != Sixel || c.known {
		return nil
	}
	c.asked = true
	return tea.Raw(ansi.RequestNameVersion + ansi.RequestPrimaryDeviceAttributes + ansi.WindowOp(cellSize))
}

// Hear takes a message from the terminal and reports whether it was an answer
// to Ask.
func (c *Canvas) Hear(m tea.Msg) bool {
	before := c.Mode()
	switch m := m.(type) {
	case tea.ColorProfileMsg:
		gray := m.Profile < colorprofile.ANSI
		narrow := m.Profile < colorprofile.TrueColor
		if gray != c.gray || narrow != c.narrow {
			c.gray, c.narrow = gray, narrow
			c.gen++
		}
		return false // others want to know it, too
	case tea.TerminalVersionMsg:
		name := strings.ToLower(m.Name)
		if strings.HasPrefix(name, "kitty") || strings.HasPrefix(name, "ghostty") {
			c.known = true
		}
	case uv.PrimaryDeviceAttributesEvent:
		c.sixel = slices.Contains([]int(m), 4)
	case uv.CellSizeEvent:
		if m.Width < 1 || m.Height < 1 || m.Width > 200 || m.Height > 400 {
			return true
		}
		c.cellW, c.cellH = m.Width, m.Height
	default:
		return false
	}
	c.decide()
	if c.Mode() != before {
		c.gen++
	}
	return true
}

func (c *Canvas) decide() {
	if c.fixed {
		return
	}
	switch {
	case c.known:
		c.mode = Kitty
	case c.sixel:
		c.mode = Sixel
	default:
		c.mode = Blocks
	}
}

// Leave gives back what the terminal holds of ours, nil when that is nothing.
func (c *Canvas) Leave() tea.Cmd {
	ids := append(c.held, c.dropped...)
	if len(ids) == 0 {
		return nil
	}
	c.held, c.dropped = nil, nil
	return tea.Raw(remove(ids))
}

// remove makes the terminal drop images with their placements.
func remove(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(ansi.KittyGraphics(nil, "a=d", "d=I", fmt.Sprintf("i=%d", id), "q=2"))
	}
	return b.String()
}
