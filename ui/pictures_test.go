package ui_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi/kitty"

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

// kittyCommands takes the graphics commands out of what a terminal was sent, as
// its protocol has them: APC, G, keys, semicolon, payload, ST.
func kittyCommands(t *testing.T, sent []byte) (keys []map[string]string, payloads []string) {
	t.Helper()
	for rest := string(sent); ; {
		_, after, ok := strings.Cut(rest, kittyEscape)
		if !ok {
			return keys, payloads
		}
		body, next, ok := strings.Cut(after, "\x1b\\")
		if !ok {
			t.Fatal("a command has no end")
		}
		rest = next
		control, payload, _ := strings.Cut(body, ";")
		k := map[string]string{}
		for _, kv := range strings.Split(control, ",") {
			name, value, _ := strings.Cut(kv, "=")
			k[name] = value
		}
		keys, payloads = append(keys, k), append(payloads, payload)
	}
}

// A picture of many bytes goes in chunks of at most 4,096, each but the last a
// multiple of four long, whose later ones have no keys but m (and q); together
// they are the picture. Its id is in the colour of its placeholders, their row
// and column in their diacritics; leaving takes it out of the terminal. (kitty
// graphics protocol, "Remote client" and "Unicode placeholders".)
func TestKittyGetsThePictureInChunks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		img := image.NewRGBA(image.Rect(0, 0, 200, 100))
		seed := uint32(1)
		for i := range img.Pix {
			seed = seed*1664525 + 1013904223
			img.Pix[i] = uint8(seed>>24) | uint8(i%4/3*255) // noise, and opaque
		}
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		m := fleet()
		m.OnFetch = func(taskmodel.Key) (taskmodel.Outcome, error) {
			return taskmodel.Outcome{FetchedAt: day, Result: json.RawMessage(`{"content":[{"type":"text","text":"Coverage over the last runs."},{"type":"image","mimeType":"image/png","data":"` +
				base64.StdEncoding.EncodeToString(b.Bytes()) + `"}]}`)}, nil
		}
		term := run(t, m, 80, 24, func(o *ui.Options) { o.Env = []string{"TERM=xterm-kitty", "COLORTERM=truecolor"} }, screentest.Keep())
		term.Press("/").Type("a0917be3").Press("enter", "r")
		term.Pass(time.Second)
		keys, payloads := kittyCommands(t, term.Bytes())
		if len(keys) < 4 {
			t.Fatalf("%d commands for %d bytes", len(keys), b.Len())
		}
		first, whole := keys[0], ""
		if first["a"] != "T" || first["f"] != "100" || first["U"] != "1" || first["q"] != "2" || first["m"] != "1" {
			t.Errorf("the first command is %v", first)
		}
		for i, k := range keys {
			last := i == len(keys)-1
			if n := len(payloads[i]); n > 4096 || !last && n%4 != 0 {
				t.Errorf("chunk %d has %d bytes", i, n)
			}
			if want := map[bool]string{false: "1", true: "0"}[last]; k["m"] != want {
				t.Errorf("chunk %d of %d has m=%s", i, len(keys), k["m"])
			}
			for name := range k {
				if i > 0 && name != "m" && name != "q" {
					t.Errorf("chunk %d has the key %s", i, name)
				}
			}
			whole += payloads[i]
		}
		raw, err := base64.StdEncoding.DecodeString(whole)
		if err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(bytes.NewReader(raw))
		if err != nil || got.Bounds().Dx() != 200 || got.Bounds().Dy() != 100 {
			t.Fatalf("the chunks are no picture: %v", err)
		}
		id, _ := strconv.Atoi(first["i"])
		row, seen := -1, 0
		for _, cells := range term.Cells() {
			x := 0
			for _, c := range cells {
				if !strings.HasPrefix(c.Text, string(kitty.Placeholder)) {
					continue
				}
				if x == 0 {
					row++
				}
				r := []rune(c.Text)
				if r[1] != kitty.Diacritic(row) || r[2] != kitty.Diacritic(x) {
					t.Fatalf("the placeholder at %d,%d says %q", row, x, c.Text)
				}
				cr, cg, cb, _ := c.Fg.RGBA()
				if got := int(cr>>8)<<16 | int(cg>>8)<<8 | int(cb>>8); got != id {
					t.Fatalf("the placeholder's colour is %#x, the picture's id %#x", got, id)
				}
				x, seen = x+1, seen+1
			}
		}
		c, _ := strconv.Atoi(first["c"])
		r, _ := strconv.Atoi(first["r"])
		if id <= 0 || id > 0xffffff || seen == 0 || seen != c*(row+1) || r < row+1 { // the window ends above its last rows
			t.Errorf("id %d, %d placeholders in %d rows, placed as %dx%d", id, seen, row+1, c, r)
		}
		// Another size of the window places the picture anew and sends no pixel again.
		n := len(keys)
		term.Resize(60, 20).Pass(time.Second)
		keys, payloads = kittyCommands(t, term.Bytes())
		for i, k := range keys[n:] {
			if k["a"] != "p" && k["a"] != "d" || payloads[n+i] != "" {
				t.Errorf("after the resize came %v with %d bytes", k, len(payloads[n+i]))
			}
		}
		term.Press("ctrl+c", "ctrl+c")
		if err := term.Wait(); err != nil {
			t.Fatal(err)
		}
		keys, _ = kittyCommands(t, term.Bytes())
		if end := keys[len(keys)-1]; end["a"] != "d" || end["d"] != "I" || end["i"] != first["i"] {
			t.Errorf("the last command is %v", end)
		}
	})
}

// sixelSize reads a sixel picture as its terminal does: it gives how many pixels
// it is wide and high, and an error for what is no sixel data.
func sixelSize(data string) (w, h int, err error) {
	x, band := 0, 0
	for i := 0; i < len(data); {
		number := func() int {
			n := 0
			for i < len(data) && data[i] >= '0' && data[i] <= '9' {
				n, i = n*10+int(data[i]-'0'), i+1
			}
			return n
		}
		c := data[i]
		i++
		switch {
		case c >= '?' && c <= '~':
			if x++; c != '?' {
				w = max(w, x)
			}
		case c == '!':
			n := number()
			if i >= len(data) || data[i] < '?' || data[i] > '~' {
				return w, h, fmt.Errorf("nothing is repeated at %d", i)
			}
			if x += n; data[i] != '?' {
				w = max(w, x)
			}
			i++
		case c == '$':
			x = 0
		case c == '-':
			x, band = 0, band+1
		case c == '#' || c == '"':
			for number(); i < len(data) && data[i] == ';'; number() {
				i++
			}
		case c != '\n':
			return w, h, fmt.Errorf("%q at %d", c, i)
		}
		if x > 0 {
			h = max(h, 6*(band+1))
		}
	}
	return w, h, nil
}

// The sixel data that a terminal gets decodes to the size of the cells that the
// picture stands in, so that it leaves nothing beside them: neither when the
// window gets smaller nor when the picture is scrolled half away.
func TestSixelCoversItsCellsAndNoMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := openPicture(t, nil)
		term.Send(tea.TerminalVersionMsg{Name: "foot(1.20)"}).Send(uv.PrimaryDeviceAttributesEvent{62, 4, 22}).Send(uv.CellSizeEvent{Width: 10, Height: 20})
		check := func(when string) {
			t.Helper()
			term.Pass(time.Second)
			b := string(term.Bytes())
			at := strings.LastIndex(b, sixelEscape+"0;1q")
			if at < 0 {
				t.Fatalf("%s: no picture", when)
			}
			data, _, ok := strings.Cut(b[at+len(sixelEscape+"0;1q"):], "\x1b\\")
			if !ok {
				t.Fatalf("%s: it has no end", when)
			}
			w, h, err := sixelSize(data)
			rows, cols := 0, 0
			for _, l := range strings.Split(term.Screen(), "\n") {
				if n := strings.Count(l, "▀"); n > 0 {
					rows, cols = rows+1, n
				}
			}
			if err != nil || w != cols*10 || h < rows*20 || h >= rows*20+6 {
				t.Errorf("%s: %d×%d pixels over %d×%d cells of 10×20: %v", when, w, h, cols, rows, err)
			}
		}
		check("whole")
		term.Resize(80, 14)
		check("in a low window")
		term.Resize(80, 24).Pass(time.Second)
		term.Press("j", "j", "j", "j")
		check("scrolled")
	})
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
