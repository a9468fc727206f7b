package resultview

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
	"mcptasks/ui/screentest"
	"mcptasks/ui/theme"
)

var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

type driver struct {
	t *testing.T
	v *View
	k keymap.Map
	h theme.Theme
}

func drive(t *testing.T, o taskmodel.Outcome) *driver {
	th, _ := theme.Named("dark", true)
	return &driver{t, New(o, Options{}), keymap.Default(), th}
}

func result(s string) taskmodel.Outcome { return taskmodel.Outcome{Result: json.RawMessage(s)} }

func press(name string) tea.KeyPressMsg {
	named := map[string]rune{"tab": tea.KeyTab, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown}
	if c, ok := named[name]; ok {
		return tea.KeyPressMsg{Code: c}
	}
	if name == "space" {
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	}
	if r, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(r[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

func (d *driver) keys(names ...string) Event {
	var e Event
	for _, n := range names {
		e, _ = d.v.Update(&d.k, press(n))
		d.v.View(&d.h, 80, 24)
	}
	return e
}

func (d *driver) screen(w, h int) string {
	d.t.Helper()
	return screentest.Plain(d.t, d.v.View(&d.h, w, h), w, h)
}

func (d *driver) shows(want ...string) {
	d.t.Helper()
	screentest.Shows(d.t, d.screen(80, 24), want...)
}

func picture(w, h int) string {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, color.RGBA{uint8(x * 255 / w), uint8(y * 255 / h), 90, 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // a test's own picture
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func mixed() taskmodel.Outcome {
	text, _ := json.Marshal("# Build 1482\n\nBuilt **212** targets in `4m12s`.\n\n- linked `mcptasks`\n- 3 warnings, see the [log](https://ci.example/log)\n\n```go\nfunc main() {}\n```\n")
	return result(`{"content":[{"type":"text","text":` + string(text) + `},
{"type":"image","mimeType":"image/png","data":"` + picture(40, 8) + `"},
{"type":"resource_link","uri":"https://ci.example/artifacts/mcptasks.tar.gz","name":"mcptasks.tar.gz","mimeType":"application/gzip","size":9437184,"description":"The archive."},
{"type":"audio","mimeType":"audio/wav","data":"aGVsbG8="},
{"type":"resource","resource":{"uri":"file:///log.txt","mimeType":"text/plain","text":"one\ntwo"}}],
"structuredContent":{"targets":[{"name":"mcptasks","seconds":41.5,"ok":true},{"name":"docs","seconds":3,"ok":false,"note":"3 warnings"}]}}`)
}

func TestGoldenResult(t *testing.T) {
	for _, s := range []struct{ w, h int }{{80, 24}, {60, 20}, {160, 50}} {
		name := func(what string) string { return fmt.Sprintf("%s-%dx%d", what, s.w, s.h) }
		d := drive(t, mixed())
		screentest.Golden(t, name("result"), d.screen(s.w, s.h))
		d.keys("tab")
		screentest.Golden(t, name("structured"), d.screen(s.w, s.h))
		d.keys("tab", "z")
		screentest.Golden(t, name("raw"), d.screen(s.w, s.h))
		d = drive(t, result(`{"content":[{"type":"text","text":"3 of 412 tests failed\nTestMerge: got working, want failed"}],"isError":true}`))
		screentest.Golden(t, name("tool-error"), d.screen(s.w, s.h))
		d = drive(t, taskmodel.Outcome{Err: &taskmodel.RPCError{Code: -32603, Message: "disk full", Data: json.RawMessage(`{"path":"/var"}`)}, KeptHere: true})
		screentest.Golden(t, name("rpc-error"), d.screen(s.w, s.h))
	}
}

// S4: what is no tool result is shown raw, and said so.
func TestS4_Odd(t *testing.T) {
	d := drive(t, result(`{"action":"accept","content":{"a":1}}`))
	d.shows("! This is no tool result", `"action": "accept"`)
	drive(t, result(`not json`)).shows("! This is no tool result", "not json")
	drive(t, result(`{"content":[]}`)).shows("The result is empty.")
	drive(t, taskmodel.Outcome{}).shows("There is no result.")
	drive(t, taskmodel.Outcome{TooLarge: 5 << 30}).shows("5.0 GB", "--save")
}

func TestBlocksAndTheirKeys(t *testing.T) {
	d := drive(t, mixed())
	d.shows("image  image/png", "png 40×8", "link  mcptasks.tar.gz", "9.0 MB")
	if e := d.keys("y"); e.Kind != Copy || !strings.HasPrefix(e.Text, "# Build 1482") {
		t.Errorf("%+v", e)
	}
	if e := d.keys("P"); e.Kind != Pager || e.Name != "01-text.txt" {
		t.Errorf("%+v", e)
	}
	if e := d.keys("right", "enter"); e.Kind != Open || e.Block.Type != "image" {
		t.Errorf("%+v", e)
	}
	if e := d.keys("right", "enter"); e.Kind != ReadLink || e.Text != "https://ci.example/artifacts/mcptasks.tar.gz" {
		t.Errorf("%+v", e)
	}
	if e := d.keys("y"); e.Text != "https://ci.example/artifacts/mcptasks.tar.gz" {
		t.Errorf("%+v", e)
	}
	if left, _ := d.v.Status(); !strings.HasPrefix(left, "block 3 of 5: link") {
		t.Errorf("status %q", left)
	}
	if e := d.keys("ctrl+s"); e.Kind != Save {
		t.Errorf("%+v", e)
	}
	paths, err := d.v.Save(t.TempDir())
	if err != nil || len(paths) != 6 {
		t.Errorf("%v %v", paths, err)
	}
	d.keys("left", "left", "left", "space")
	d.shows("# Build 1482", "**212**")
	if _, err := drive(t, taskmodel.Outcome{}).v.Save(t.TempDir()); err == nil {
		t.Error("nothing is saved without an error")
	}
	e := drive(t, taskmodel.Outcome{Err: &taskmodel.RPCError{Code: 1, Message: "m"}})
	p, err := e.v.Save(t.TempDir())
	if err != nil || len(p) != 1 {
		t.Fatal(p, err)
	}
	if b, _ := os.ReadFile(p[0]); string(b) != `{"code":1,"message":"m"}` {
		t.Errorf("%s", b)
	}
}

func TestImagesAreBounded(t *testing.T) {
	big := mixed()
	raw := strings.Replace(string(big.Result), picture(40, 8), picture(1600, 1300), 1)
	d := drive(t, result(raw))
	d.keys("right")
	d.shows("not drawn yet")
	d.keys("space")
	d.shows("▀▀▀▀")
	d = drive(t, result(`{"content":[{"type":"image","mimeType":"image/png","data":"bm8="}]}`))
	d.shows("it cannot be drawn")
	mono, _ := theme.Named("mono", true)
	if v := New(mixed(), Options{}).View(&mono, 80, 24); strings.Contains(v, "▀") {
		t.Error("a picture is drawn without colours")
	}
}

func TestSearch(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "line %d\\n", i)
	}
	d := drive(t, result(`{"content":[{"type":"text","text":"`+b.String()+`Needle here\nneedle there"}]}`))
	d.keys("/", "n", "e", "e", "d", "l", "e", "enter")
	d.shows("Needle here")
	if _, right := d.v.Status(); right != `"needle": 1 of 2 matches` {
		t.Errorf("status %q", right)
	}
	d.keys("n")
	if _, right := d.v.Status(); right != `"needle": 2 of 2 matches` {
		t.Errorf("status %q", right)
	}
	d.keys("esc", "/", "N", "e", "e", "enter")
	if _, right := d.v.Status(); right != `"Nee": 1 of 1 match` && right != `"Nee": 1 of 1 matches` {
		t.Errorf("capitals: %q", right)
	}
	if !d.v.Searching() {
		t.Error("the search is not known")
	}
	if _, used := d.v.Update(&d.k, press("esc")); !used || d.v.Searching() {
		t.Error("esc does not end the search")
	}
	if _, used := d.v.Update(&d.k, press("esc")); used {
		t.Error("esc is swallowed without a search")
	}
}

func TestScrollingMeetsItsEnds(t *testing.T) {
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("%03d %s", i, strings.Repeat("word ", i%40)))
	}
	q, _ := json.Marshal(strings.Join(lines, "\n"))
	d := drive(t, result(`{"content":[{"type":"text","text":`+string(q)+`}]}`))
	d.screen(80, 24)
	d.keys("G")
	end := d.screen(80, 24)
	if !strings.Contains(end, "299") {
		t.Errorf("the end is not shown\n%s", end)
	}
	for range 40 {
		d.keys("down")
	}
	if got := d.screen(80, 24); got != end {
		t.Error("it scrolls past the end")
	}
	d.keys("g")
	top := d.screen(80, 24)
	for range 50 {
		d.keys("down")
	}
	for range 50 {
		d.keys("up")
	}
	if got := d.screen(80, 24); got != top {
		t.Errorf("down and up again is not the same\n%s", got)
	}
	for range 200 {
		d.keys("pgdown")
	}
	if got := d.screen(80, 24); got != end {
		t.Errorf("paging ends elsewhere\n%s\nwant\n%s", got, end)
	}
	d.keys("W")
	for _, l := range strings.Split(d.screen(80, 24), "\n") {
		if l != "" && !strings.Contains(l, "Result") && !strings.HasPrefix(l, "2") {
			t.Errorf("%q is wrapped", l)
		}
	}
	for _, s := range []struct{ w, h int }{{1, 1}, {3, 2}, {20, 5}, {200, 60}} {
		d.screen(s.w, s.h)
	}
}

func TestFolds(t *testing.T) {
	d := drive(t, result(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":{"b":[1,{"c":2}],"odd name":true},"d":[],"e":"s"}}`))
	d.keys("tab")
	want := "$ $.a $.a.b $.a.b[0] $.a.b[1] $.a.b[1].c $.a.b[1] $.a.b"
	var got []string
	for range 8 {
		left, _ := d.v.Status()
		got = append(got, left)
		d.keys("down")
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
	if left, _ := d.v.Status(); left != `$.a["odd name"]` {
		t.Errorf("path %s", left)
	}
	if e := d.keys("up", "y"); e.Text != `[1,{"c":2}]` {
		t.Errorf("copy %+v", e)
	}
	d.keys("left") // on the end of b
	d.shows(`"b": [ … ],  2 items`)
	d.keys("g", "down", "space")
	d.shows(`"a": { … },  2 members`)
	d.keys("space")
	d.shows(`"odd name": true`)
	d.keys("z")
	d.shows(`"a": { … }`)
	if e := d.keys("y"); !strings.Contains(e.Text, `"odd name"`) {
		t.Errorf("copy of a folded value %+v", e)
	}
	d.keys("z", "/", "o", "d", "d", "enter")
	if left, _ := d.v.Status(); left != `$.a["odd name"]` {
		t.Errorf("a match is at %s", left)
	}
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		raw string
		ok  bool
	}{
		{`[{"a":1},{"b":"x"}]`, true}, {`{"n":5,"rows":[{"a":1}]}`, true}, {`[{"a":[]}]`, true},
		{`[]`, false}, {`[{}]`, false}, {`[1]`, false}, {`[{"a":{"b":1}}]`, false}, {`{"a":[{"x":1}],"b":[{"x":1}]}`, false}, {`{}`, false}, {`[{"a":1}`, false},
	} {
		if _, ok := newTable([]byte(c.raw)); ok != c.ok {
			t.Errorf("%s: %v", c.raw, ok)
		}
	}
}

// U1: no byte of a server's text reaches the terminal as control.
func TestU1_ResultIsSanitised(t *testing.T) {
	evil := "\x1b]52;c;eA==\x07\x1b[2J\u202e\x00\r\x9b31m\u200b **b** [l](http://x/\x1b]8;;y\x07)"
	q, _ := json.Marshal(evil)
	for _, raw := range []string{
		`{"content":[{"type":"text","text":` + string(q) + `}]}`,
		`{"content":[{"type":"text","text":` + string(q) + `},{"type":` + string(q) + `,"name":` + string(q) + `},{"type":"resource_link","uri":` + string(q) + `,"description":` + string(q) + `}],"structuredContent":[{` + string(q) + `:` + string(q) + `}]}`,
		`{` + string(q) + `:` + string(q) + `}`, evil,
	} {
		d := drive(t, taskmodel.Outcome{Result: json.RawMessage(raw), Note: evil})
		for range 4 {
			v := d.v.View(&d.h, 100, 40)
			left, right := d.v.Status()
			for _, l := range append(strings.Split(v, "\n"), left, right) {
				rest := sgr.ReplaceAllString(l, "")
				if safe.Line(rest) != rest {
					t.Fatalf("the screen holds %q", rest)
				}
			}
			d.keys("tab")
			d.keys("space")
		}
	}
}

func FuzzView(f *testing.F) {
	f.Add([]byte(mixed().Result), 80, 24)
	f.Add([]byte(`{"content":[{"type":"text","text":"# a\n|x|y|\n|-|-|\n|1|2|"}]}`), 20, 5)
	f.Add([]byte(`[{"a":1},{"a":`), 3, 2)
	f.Fuzz(func(t *testing.T, raw []byte, w, h int) {
		w, h = 1+w&0x7f, 1+h&0x3f
		th, _ := theme.Named("dark", true)
		k := keymap.Default()
		v := New(taskmodel.Outcome{Result: raw}, Options{})
		for _, key := range []string{"down", "G", "tab", "z", "pgdown", "/", "a", "enter", "n", "W", "right", "tab", "left", "g", "y"} {
			v.Update(&k, press(key))
			out := v.View(&th, w, h)
			lines := strings.Split(out, "\n")
			if len(lines) != h {
				t.Fatalf("%s: %d lines, want %d", key, len(lines), h)
			}
			for _, l := range lines {
				if rest := sgr.ReplaceAllString(l, ""); safe.Line(rest) != rest {
					t.Fatalf("%s: %q is not safe", key, rest)
				}
				if n := ansi.StringWidth(l); n > w {
					t.Fatalf("%s: %q is %d wide, window %d", key, l, n, w)
				}
			}
		}
	})
}

func large(n int) taskmodel.Outcome {
	q, _ := json.Marshal(strings.Repeat("the quick brown fox jumps over the lazy dog, \"again\" and again, until the line is long enough to wrap\n", n/100))
	return result(`{"content":[{"type":"text","text":` + string(q) + `}]}`)
}

func largeJSON(n int) taskmodel.Outcome {
	return result(`{"content":[{"type":"text","text":"x"}],"structuredContent":[` + strings.TrimSuffix(strings.Repeat(`{"name":"target","seconds":41.5,"tags":["a","b"],"ok":true},`, n/60), ",") + `]}`)
}

// Opening: from the bytes to the first frame.
func BenchmarkOpen20MBText(b *testing.B) {
	o := large(20 << 20)
	th, _ := theme.Named("dark", true)
	for b.Loop() {
		New(o, Options{}).View(&th, 160, 50)
	}
}

func BenchmarkOpen20MBRawJSON(b *testing.B) {
	o := largeJSON(20 << 20)
	th, _ := theme.Named("dark", true)
	k := keymap.Default()
	for b.Loop() {
		v := New(o, Options{})
		v.View(&th, 160, 50)
		v.Update(&k, press("tab"))
		v.View(&th, 160, 50)
	}
}

func BenchmarkScroll20MB(b *testing.B) {
	th, _ := theme.Named("dark", true)
	k := keymap.Default()
	v := New(large(20<<20), Options{})
	v.View(&th, 160, 50)
	for b.Loop() {
		v.Update(&k, press("pgdown"))
		v.View(&th, 160, 50)
	}
}

func BenchmarkSearch20MB(b *testing.B) {
	th, _ := theme.Named("dark", true)
	v := New(large(20<<20), Options{})
	v.View(&th, 160, 50)
	for b.Loop() {
		v.current().page.search("absent words")
	}
}
