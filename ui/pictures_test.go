package ui_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"

	"mcptasks/taskmodel"
	"mcptasks/ui"
	"mcptasks/ui/screentest"
)

// drawn is a fleet of which one task has a picture for a result.
func drawn() *screentest.Monitor {
	img := image.NewRGBA(image.Rect(0, 0, 40, 20))
	for x := range 40 {
		for y := range 20 {
			img.Set(x, y, color.RGBA{uint8(6 * x), uint8(12 * y), 90, 255})
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img)
	m := fleet()
	raw := json.RawMessage(`{"content":[{"type":"text","text":"Coverage over the last runs."},{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"}]}`)
	m.OnFetch = func(taskmodel.Key) (taskmodel.Outcome, error) {
		return taskmodel.Outcome{Result: raw, FetchedAt: day}, nil
	}
	return m
}

// open presses r on the completed build.
func openPicture(t *testing.T, change func(*ui.Options), opts ...screentest.Option) *screentest.Terminal {
	term := run(t, drawn(), 80, 24, change, append(opts, screentest.Keep())...)
	term.Press("/").Type("a0917be3").Press("enter", "r")
	return term.Pass(200*time.Millisecond).See("Coverage over the last runs.", "image/png")
}

const kittyEscape, sixelEscape = "\x1b_G", "\x1bP"

// escapes counts the graphics escapes that the terminal got.
func escapes(term *screentest.Terminal) string {
	b := string(term.Bytes())
	return fmt.Sprintf("kitty %d sixel %d", strings.Count(b, kittyEscape), strings.Count(b, sixelEscape+"0;1q"))
}

func TestPicturesAreHalfBlocksUntilTheTerminalShowsMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := openPicture(t, nil)
		term.See("▀▀▀▀")
		if got := escapes(term); got != "kitty 0 sixel 0" || strings.Contains(string(term.Bytes()), sixelEscape) {
			t.Errorf("a terminal that has shown nothing got %s", got)
		}
		if b := string(term.Bytes()); !strings.Contains(b, "\x1b[>q") || !strings.Contains(b, "\x1b[c") || !strings.Contains(b, "\x1b[16t") {
			t.Error("it was not asked what it can")
		}
		// One that answers without these powers keeps its half blocks.
		term.Send(tea.TerminalVersionMsg{Name: "tmux 3.5"}).Send(uv.PrimaryDeviceAttributesEvent{1, 2}).Send(uv.CellSizeEvent{Width: 10, Height: 20})
		term.Pass(200 * time.Millisecond).See("▀▀▀▀")
		if got := escapes(term); got != "kitty 0 sixel 0" {
			t.Errorf("a terminal without graphics got %s", got)
		}
	})
}

func TestPicturesByKittysPlaceholders(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *screentest.Terminal{
		"by its TERM": func(t *testing.T) *screentest.Terminal {
			return openPicture(t, func(o *ui.Options) { o.Env = []string{"TERM=xterm-kitty", "COLORTERM=truecolor"} })
		},
		"by its answer": func(t *testing.T) *screentest.Terminal {
			term := openPicture(t, nil)
			return term.Send(tea.TerminalVersionMsg{Name: "ghostty 1.2.0"}).Pass(200 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				term := open(t)
				b := string(term.Bytes())
				if !strings.Contains(b, kittyEscape) || !strings.Contains(b, "U=1") || !strings.Contains(b, "c=40") || !strings.Contains(b, "r=10") {
					t.Fatalf("the picture was not sent: %s", escapes(term))
				}
				cells := term.Cells()
				n := 0
				for _, row := range cells {
					for _, c := range row {
						if strings.HasPrefix(c.Text, "\U0010EEEE") {
							n++
							if c.Width != 1 || c.Fg == nil || len([]rune(c.Text)) != 3 {
								t.Fatalf("a placeholder is %q, %d wide", c.Text, c.Width)
							}
						}
					}
				}
				if n != 40*10 {
					t.Errorf("%d placeholders", n)
				}
				term.Press("j", "k") // nothing is sent twice
				if got := strings.Count(string(term.Bytes()), "a=T"); got != 1 {
					t.Errorf("it was sent %d times", got)
				}
				// What lies over it and what comes after it hides it.
				term.Press("esc")
				if strings.Contains(term.Screen(), "\U0010EEEE") {
					t.Error("a placeholder is left")
				}
				term.Press("q")
				if !strings.Contains(string(term.Bytes()), "a=d,d=I") && !term.Has("open question") {
					t.Error("the terminal keeps the picture")
				}
			})
		})
	}
}

func TestPicturesBySixelStandWhereTheirBlocksStand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := openPicture(t, nil)
		term.Send(tea.TerminalVersionMsg{Name: "foot(1.20)"}).Send(uv.PrimaryDeviceAttributesEvent{62, 4, 22})
		if got := escapes(term); got != "kitty 0 sixel 0" {
			t.Errorf("before the size of a cell is known: %s", got)
		}
		term.Send(uv.CellSizeEvent{Width: 10, Height: 20}).Pass(time.Second)
		b := string(term.Bytes())
		if got := escapes(term); got != "kitty 0 sixel 1" || !strings.Contains(b, "q\"1;1;400;200") {
			t.Fatalf("the picture was not written once and in its size: %s", got)
		}
		// It is written where the half blocks stand.
		at := b[strings.Index(b, "\x1bP0;1q")-24 : strings.Index(b, "\x1bP0;1q")]
		y := 0
		for i, l := range strings.Split(term.Screen(), "\n") {
			if strings.Contains(l, "▀") {
				y = i + 1
				break
			}
		}
		if want := fmt.Sprintf("\x1b[%d;3H", y); !strings.HasSuffix(at, want) {
			t.Errorf("it was written at %q, want %q", at, want)
		}
		term.Pass(5 * time.Second) // clocks tick, the picture stands
		if got := escapes(term); got != "kitty 0 sixel 1" {
			t.Errorf("while nothing moved: %s", got)
		}
		term.Resize(80, 14).Pass(time.Second)
		if got := escapes(term); got != "kitty 0 sixel 2" {
			t.Errorf("after a resize: %s", got)
		}
		term.Press("?").Pass(time.Second)
		if got := escapes(term); got != "kitty 0 sixel 2" || term.Has("▀") {
			t.Errorf("on another screen: %s", got)
		}
		term.Press("esc").Pass(time.Second)
		if got := escapes(term); got != "kitty 0 sixel 3" {
			t.Errorf("back again: %s", got)
		}
	})
}

// NO_COLOR and the mono theme: no pictures, no queries, and nothing of them.
func TestNoPicturesWithoutColours(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := openPicture(t, func(o *ui.Options) { o.Env = []string{"TERM=xterm-kitty", "NO_COLOR=1"} }, screentest.Profile(colorprofile.ASCII))
		if got := escapes(term); got != "kitty 0 sixel 0" || term.Has("▀") || strings.Contains(string(term.Bytes()), "\x1b[16t") {
			t.Errorf("without colours: %s\n%s", got, term.Screen())
		}
	})
	bubble(t, func(t *testing.T) {
		term := openPicture(t, func(o *ui.Options) { o.Theme = "mono" })
		if got := escapes(term); got != "kitty 0 sixel 0" || term.Has("▀") {
			t.Errorf("in mono: %s\n%s", got, term.Screen())
		}
	})
	bubble(t, func(t *testing.T) {
		term := openPicture(t, func(o *ui.Options) { o.Images = "none" })
		term.Miss("▀")
		term.Press(":").Type("set images=blocks").Press("enter")
		term.See("▀")
	})
}

func TestReadsAResourceThatAResultLinksTo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := fleet()
		m.OnFetch = func(taskmodel.Key) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{Result: json.RawMessage(`{"content":[{"type":"text","text":"Built."},{"type":"resource_link","uri":"build://log/7","name":"build.log","mimeType":"text/plain","description":"The whole log"}]}`)}, nil
		}
		m.OnRead = func(server, uri string) (json.RawMessage, error) {
			if server != "ci" || uri != "build://log/7" {
				return nil, fmt.Errorf("%s: reading the resource %s: Resource not found", server, uri)
			}
			return json.RawMessage(`[{"uri":"build://log/7","mimeType":"text/plain","text":"line one\nline two"}]`), nil
		}
		term := run(t, m, 80, 24, nil)
		term.Press("/").Type("a0917be3").Press("enter", "r", "right")
		term.See("build://log/7", "The whole log", "enter read")
		term.Press("enter").See("Resource build.log on ci", "line one", "line two")
		term.Press("esc").See("Result of build")
		m.OnRead = nil
		term.Press("enter").See("the fake has no resource", "Result of build")
	})
}
