package kit

import (
	"math"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

func press(name string) tea.KeyPressMsg {
	switch name {
	case "up":
		return tea.KeyPressMsg{Code: tea.KeyUp}
	case "down":
		return tea.KeyPressMsg{Code: tea.KeyDown}
	case "pgdown":
		return tea.KeyPressMsg{Code: tea.KeyPgDown}
	case "left":
		return tea.KeyPressMsg{Code: tea.KeyLeft}
	case "enter":
		return tea.KeyPressMsg{Code: tea.KeyEnter}
	case "esc":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	case "backspace":
		return tea.KeyPressMsg{Code: tea.KeyBackspace}
	case "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	}
	if c, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(c[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		d                  time.Duration
		short, long, clock string
		next               time.Duration // until Age changes
	}{
		{0, "0s", "0s", "0:00", time.Second},
		{41 * time.Second, "41s", "41s", "0:41", time.Second},
		{60 * time.Second, "1m", "1m", "1:00", time.Minute},
		{4*time.Minute + 12*time.Second, "4m", "4m12s", "4:12", 48 * time.Second},
		{3*time.Hour + 5*time.Minute, "3h", "3h05m", "3:05:00", 55 * time.Minute},
		{52 * time.Hour, "2d", "2d4h", "52:00:00", 20 * time.Hour},
	}
	for _, tt := range tests {
		var e Env
		e.Begin(now)
		if got := e.Age(now.Add(-tt.d)); got != tt.short {
			t.Errorf("%v: Age %q, want %q", tt.d, got, tt.short)
		}
		if got := e.Next().Sub(now); got != tt.next {
			t.Errorf("%v: the age changes in %v, want %v", tt.d, got, tt.next)
		}
		if got := Long(tt.d); got != tt.long {
			t.Errorf("%v: Long %q, want %q", tt.d, got, tt.long)
		}
		if got := Clock(tt.d); got != tt.clock {
			t.Errorf("%v: Clock %q, want %q", tt.d, got, tt.clock)
		}
	}
	var e Env
	e.Begin(now)
	if e.Next() != (time.Time{}) {
		t.Error("an empty frame ticks")
	}
	if got := e.Left(now.Add(26*time.Minute + 30*time.Second)); got != "26m" || e.Next().Sub(now) > 31*time.Second {
		t.Errorf("Left %q, next in %v", got, e.Next().Sub(now))
	}
	if got := e.Left(now.Add(-time.Second)); got != "0s" {
		t.Errorf("past: %q", got)
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[int64]string{812: "812 B", 4300: "4.2 KB", 20 << 20: "20 MB", 999: "999 B", 1000: "1.0 KB"} {
		if got := Bytes(in); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[int]string{1: "1", 1234: "1,234", 1234567: "1,234,567", -1234: "-1,234", 100: "100"} {
		if got := Thousands(in); got != want {
			t.Errorf("Thousands(%d) = %q, want %q", in, got, want)
		}
	}
	if f, ok := Fraction(&taskmodel.Progress{Value: 5, Total: 4, HasTotal: true}); !ok || f != 1 {
		t.Errorf("over the total: %v %v", f, ok)
	}
	if _, ok := Fraction(&taskmodel.Progress{Value: 5}); ok {
		t.Error("a fraction without a total")
	}
	bar := Bar(0.999, 8, theme.Style{}, theme.Style{})
	if bar != "━━━━━━━─" {
		t.Errorf("a bar that is not full shows %q", bar)
	}
}

func TestLineIsNeverTooWide(t *testing.T) {
	th, _ := theme.Named("dark", true)
	for _, text := range []string{"plain", "日本語テキスト", "👩‍👩‍👧‍👦 family", "e\u0301a\u0308", strings.Repeat("wide 字", 20)} {
		for w := range 30 {
			for _, base := range []*theme.Style{nil, &th.Selection} {
				l := NewLine(w, base)
				l.Gap(1).Add(th.Status.Failed, text).Cell(th.Text, text, 7).Num(th.Dim, text, 5).Right(th.Dim, "end")
				if got := safe.Width(l.String()); got > w || base != nil && got != w {
					t.Fatalf("a line of %d cells with %q is %d wide", w, text, got)
				}
			}
		}
	}
}

func TestCellsIsWidth(t *testing.T) {
	th, _ := theme.Named("dark", true)
	for _, s := range []string{"", "abc", th.Text.Render("a") + th.Status.Done.Render("✓ done"), "━━──", "日本", "x" + th.Dim.Render("…") + "👍", "\x1b[38;2;1;2;3mq\x1b[m"} {
		if cells(s) != safe.Width(s) {
			t.Errorf("%q: %d, want %d", s, cells(s), safe.Width(s))
		}
	}
}

func TestTable(t *testing.T) {
	k := keymap.Default()
	var tb Table
	tb.Window(100, 10)
	for range 15 {
		tb.Move(&k, press("down"), 100)
	}
	if tb.Cursor != 15 || tb.Top != 6 {
		t.Errorf("cursor %d, top %d", tb.Cursor, tb.Top)
	}
	tb.Follow(40, 120) // its row moved: it stays on the same line of the screen
	if tb.Cursor != 40 || tb.Top != 31 {
		t.Errorf("after its row moved: cursor %d, top %d", tb.Cursor, tb.Top)
	}
	tb.Move(&k, press("G"), 120)
	if from, to := tb.Window(120, 10); tb.Cursor != 119 || from != 110 || to != 120 {
		t.Errorf("at the end: cursor %d, rows %d to %d", tb.Cursor, from, to)
	}
	if from, to := tb.Window(3, 10); tb.Cursor != 2 || from != 0 || to != 3 {
		t.Errorf("rows went: cursor %d, rows %d to %d", tb.Cursor, from, to)
	}
	if from, to := tb.Window(0, 10); from != 0 || to != 0 || tb.Cursor != 0 {
		t.Errorf("no rows: %d to %d, cursor %d", from, to, tb.Cursor)
	}
	// Somebody at the head of the list stays at the head.
	tb = Table{}
	tb.Window(100, 10)
	tb.Follow(5, 100)
	if tb.Top != 0 || tb.Cursor != 5 {
		t.Errorf("at the head: top %d, cursor %d", tb.Top, tb.Cursor)
	}
}

func TestEdit(t *testing.T) {
	th, _ := theme.Named("mono", true)
	var d Edit
	for _, s := range strings.Split("h e l l o space w o r l d", " ") {
		d.Update(press(s))
	}
	if d.Text() != "hello world" {
		t.Fatalf("typed %q", d.Text())
	}
	d.Update(press("ctrl+w"))
	d.Update(press("ctrl+a"))
	d.Update(tea.PasteMsg{Content: "two\nlines\x1b[31m "})
	if d.Text() != "two lines [31mhello " {
		t.Errorf("pasted %q", d.Text())
	}
	for w := range 40 {
		if got := safe.Width(d.View(&th, w)); got > max(w, 0) {
			t.Errorf("in %d cells it draws %d", w, got)
		}
	}
	d.Update(press("ctrl+k"))
	d.Update(press("ctrl+u"))
	if d.Text() != "" {
		t.Errorf("cleared: %q", d.Text())
	}
	d.Update(press("backspace"))
	d.Update(press("left"))
	if d.Update(press("enter")) {
		t.Error("enter is no key of a line")
	}
}

func TestHistory(t *testing.T) {
	var h History
	h.Add("one")
	h.Add("two")
	h.Add("one")
	want := []string{"one", "two"}
	for _, w := range want {
		if got, ok := h.Older("draft"); !ok || got != w {
			t.Errorf("older: %q, want %q", got, w)
		}
	}
	if _, ok := h.Older("draft"); ok {
		t.Error("older than the oldest")
	}
	h.Newer()
	if got, _ := h.Newer(); got != "draft" {
		t.Errorf("back at %q, want what was being typed", got)
	}
}

func TestTextSearch(t *testing.T) {
	k := keymap.Default()
	th, _ := theme.Named("mono", true)
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = "line"
	}
	lines[500], lines[900] = "a Hit here", "another hit"
	tx := Text{N: len(lines), Lines: Plain(lines, theme.Style{})}
	tx.View(&th, 40, 20)
	for _, s := range []string{"/", "h", "i", "t", "enter"} {
		tx.Move(&k, press(s))
	}
	if got := tx.View(&th, 40, 20); !strings.Contains(got, "\x1b[7mHit") {
		t.Errorf("the match is not shown:\n%s", got)
	}
	tx.Move(&k, press("n"))
	if got := tx.View(&th, 40, 20); !strings.Contains(got, "another") {
		t.Errorf("the next match is not in view:\n%s", got)
	}
	if s := tx.Status(); !strings.Contains(s, "2 of 2 matches") {
		t.Errorf("status %q", s)
	}
	tx.Move(&k, press("esc"))
	if tx.Search.Pattern != "" {
		t.Error("esc does not end the search")
	}
}

func TestFuzzy(t *testing.T) {
	all := []string{"warm_cache", "build", "rebuild_index", "run_tests", "deploy_release"}
	id := func(s string) string { return s }
	tests := map[string]string{"build": "build", "reb": "rebuild_index", "dr": "deploy_release", "rt": "run_tests", "tests": "run_tests"}
	for pattern, want := range tests {
		if got := Best(all, pattern, id); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %q, want %q first", pattern, got, want)
		}
	}
	if got := Best(all, "zzz", id); len(got) != 0 {
		t.Errorf("zzz finds %q", got)
	}
	if got := Best(all, "", id); len(got) != len(all) {
		t.Error("an empty pattern hides something")
	}
}

// Of an error that is too long its cause stays, not who was doing what.
func TestGist(t *testing.T) {
	const long = "web: asking how task 68d1ac2b01001f3a stands: 127.0.0.1:38417 cannot be reached: connect: connection refused"
	for w, want := range map[int]string{
		200: "asking how task 68d1ac2b01001f3a stands: 127.0.0.1:38417 cannot be reached: connect: connection refused",
		70:  "127.0.0.1:38417 cannot be reached: connect: connection refused",
		30:  "connect: connection refused",
		10:  "connectio…",
	} {
		if got := Gist(long, "web", w); got != want {
			t.Errorf("%d: %q, want %q", w, got, want)
		}
	}
}

// Whatever a server calls its time to live, it has room in its column.
func TestShortIsShort(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 119 * time.Minute: "1h", 999 * 24 * time.Hour: "999d", 1000 * 24 * time.Hour: "2y", math.MaxInt64: "292y"} {
		if got := Short(d); got != want || len(got) > 4 {
			t.Errorf("%s is written %q, want %q", d, got, want)
		}
	}
}
