package safe

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// U1: everything that a terminal would act on, in every string.
func TestU1_Line(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Linking, stage 4 of 6", "Linking, stage 4 of 6"},
		{"empty", "", ""},
		{"sgr", "\x1b[31mred\x1b[0m", "red"},
		{"cursor", "a\x1b[2J\x1b[1;1Hb", "ab"},
		{"osc 52", "a\x1b]52;c;ZXZpbA==\x07b", "ab"},
		{"osc 8 with st", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"dcs", "a\x1bPq#0\x1b\\b", "ab"},
		{"apc, pm, sos", "a\x1b_x\x1b\\\x1b^y\x1b\\\x1bXz\x1b\\b", "ab"},
		{"osc without end", "a\x1b]0;title", "a␛]0;title"},
		{"csi without end", "a\x1b[31", "a␛[31"},
		{"escape at end", "a\x1b", "a␛"},
		{"escape before cjk", "\x1b中", "␛中"},
		{"charset", "\x1b(0lqk", "lqk"},
		{"ris", "a\x1bcb", "ab"},
		{"c1 csi in utf-8", "a\u009b31mb", "ab"},
		{"c1 osc in utf-8", "a\u009d0;t\u009cb", "ab"},
		{"c1 alone as byte", "a\x9b31mb", "a�31mb"},
		{"cr", "100%\rgone", "100%␍gone"},
		{"crlf", "a\r\nb", "a⏎b"},
		{"breaks at the ends", "\n\na\n\n\nb\n", "a⏎b"},
		{"nel and line separator", "a\u0085b\u2028c", "a⏎b⏎c"},
		{"bs nul del", "a\bb\x00c\x7f", "a␈b␀c␡"},
		{"tab", "a\tb", "a b"},
		{"bidi", "a\u202egpj.exe\u202c", "agpj.exe"},
		{"isolates", "\u2066a\u2069", "a"},
		{"zero width", "pass\u200bword\ufeff\u2060", "password"},
		{"tags", "ok\U000e0041\U000e0042", "ok"},
		{"soft hyphen", "a\u00adb", "ab"},
		{"bad utf-8", "a\xffb", "a�b"},
		{"family stays", "👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"},
		{"joiner between letters goes", "a\u200db", "ab"},
		{"accents stay", "cafe\u0301", "cafe\u0301"},
		{"mark at the start", "\u0301x", "◌\u0301x"},
		{"mark after a break", "a\n\u0301x", "a⏎◌\u0301x"},
		{"marks are bounded", "a" + strings.Repeat("\u0301", 100), "a" + strings.Repeat("\u0301", maxMarks)},
		{"rtl stays", "שלום", "שלום"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Line(c.in); got != c.want {
				t.Errorf("Line(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a\nb", "a\nb"},
		{"a\r\nb\rc", "a\nb␍c"},
		{"\tx\n中\ty", "    x\n中  y"},
		{"a\x1b[1m\tb", "a   b"},
		{"x\n\u0301", "x\n◌\u0301"},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := Lines("a\nb\n"); len(got) != 2 {
		t.Errorf("Lines gave %q", got)
	}
}

// U2: width by grapheme, cut between clusters.
func TestU2_Truncate(t *testing.T) {
	for _, c := range []struct {
		in   string
		w    int
		want string
	}{
		{"hello", 10, "hello"},
		{"hello", 4, "hel…"},
		{"hello", 1, "…"},
		{"hello", 0, ""},
		{"hello", -3, ""},
		{"日本語", 4, "日…"},
		{"日本語", 5, "日本…"},
		{"👨\u200d👩\u200d👧👨\u200d👩\u200d👧", 3, "👨\u200d👩\u200d👧…"},
		{"cafe\u0301s!", 5, "cafe\u0301…"},
	} {
		got := Truncate(c.in, c.w, Ellipsis)
		if got != c.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.in, c.w, got, c.want)
		}
		if c.w >= 0 && Width(Fit(c.in, c.w)) != c.w {
			t.Errorf("Fit(%q, %d) is %d wide", c.in, c.w, Width(Fit(c.in, c.w)))
		}
		if c.w >= 0 && Width(FitLeft(c.in, c.w)) != c.w {
			t.Errorf("FitLeft(%q, %d) is %d wide", c.in, c.w, Width(FitLeft(c.in, c.w)))
		}
	}
	if PadLeft("7", 3) != "  7" || PadRight("7", 3) != "7  " || PadRight("long", 2) != "long" {
		t.Error("padding is wrong")
	}
}

// U2, its kind: a picture that is made of several is measured in two ways by
// terminals; in a column it is drawn so that both come to the same.
func TestU2_PicturesOfOneWidth(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "日本": "日本", "cafe\u0301": "cafe\u0301", "שלום": "שלום", "🇩🇪🇫🇷": "🇩🇪🇫🇷", "✔ done": "✔ done",
		"\u26a0\ufe0f 3 failed": "\u26a0 3 failed", "a❤\ufe0fb": "a❤b", "1\ufe0f\u20e3 of 3": "1 of 3", "👍🏽!": "👍!", "☝🏽": "☝", "\u00a9\ufe0f": "\u00a9",
		"x👩\u200d👩\u200d👧 y👨\u200d💻": "x👩 y👨", "🏴\u200d☠\ufe0f": "🏴",
	} {
		got := Even(in)
		if got != want || ansi.StringWidth(got) != ansi.StringWidthWc(got) || Even(got) != got {
			t.Errorf("%q: %q, %d or %d wide, want %q", in, got, ansi.StringWidth(got), ansi.StringWidthWc(got), want)
		}
		for w := range 8 {
			if f := Fit(in, w); ansi.StringWidth(f) != w || ansi.StringWidthWc(f) != w {
				t.Errorf("%q in %d: %q is %d or %d wide", in, w, f, ansi.StringWidth(f), ansi.StringWidthWc(f))
			}
		}
	}
	if s := "नमस्ते กำ ខ្មែរ ｶﾞ"; Even(s) != s {
		t.Errorf("letters are lost: %q", Even(s))
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in   string
		w    int
		want string
	}{
		{"", 5, ""},
		{"one two three", 7, "one two|three"},
		{"one two three", 5, "one|two|three"},
		{"abcdefgh", 3, "abc|def|gh"},
		{"a abcdefgh b", 3, "a|abc|def|gh|b"},
		{"  indented text", 10, "  indented|text"},
		{"a\n\nb", 5, "a||b"},
		{"日本語", 4, "日本|語"},
		{"日本", 1, "…|…"},
		{"one     two", 5, "one|two"},
		{"one    ", 5, "one"},
		{"x", 0, "x"},
	} {
		if got := strings.Join(Wrap(c.in, c.w), "|"); got != c.want {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.in, c.w, got, c.want)
		}
	}
}

func TestEscape(t *testing.T) {
	in := "a\n\x1b[0m\u202e\xff\u200bé`$(x)"
	if got, want := Escape(in), `a\n\x1b[0m\u{202e}\xff\u{200b}é`+"`$(x)"; got != want {
		t.Errorf("Escape = %q, want %q", got, want)
	}
}

// I11: what a server may put into a URL.
func TestI11_JudgeURL(t *testing.T) {
	for _, c := range []struct {
		raw  string
		ok   bool
		host string
		says string // in Why or the warnings
	}{
		{"https://ci.example/sign-in?x=1", true, "ci.example", ""},
		{"http://ci.example/", true, "ci.example", "not encrypted"},
		{"javascript:alert(1)", false, "", "javascript"},
		{"file:///etc/passwd", false, "", "file"},
		{"data:text/html,x", false, "", "data"},
		{"HTTPS://CI.example", true, "ci.example", ""},
		{"https://bank.example@evil.example/", true, "evil.example", "user name"},
		{"https://xn--80ak6aa92e.com/", true, "xn--80ak6aa92e.com", "look like"},
		{"https://аррӏе.com/", true, "xn--80ak6aa92e.com", "look like"},
		{"https://ci.example:8443/", true, "ci.example:8443", "8443"},
		{"https://ci.example:443/", true, "ci.example:443", ""},
		{"https://ci.example/\x1b]52;c;x\x07", false, "", "control"},
		{"https://ci.example/\u009b31m", false, "", "control"},
		{"https://ci.example/$(touch x)", true, "ci.example", "shell"},
		{"https://ci.example/`id`", true, "ci.example", "shell"},
		{"https://ci.example/\u202egpj", true, "ci.example", "do not show"},
		{"https://good.example\\@evil.example/", false, "", "backslash"},
		{"https://good.example\u2024evil.example/", false, "", "international"},
		{"https:ci.example", false, "", "host"},
		{"//ci.example/x", false, "", "scheme"},
		{"ci.example", false, "", "scheme"},
		{"", false, "", "empty"},
		{"https://127.0.0.1/x", true, "127.0.0.1", "this machine"},
		{"http://localhost:8080/x", true, "localhost:8080", "this machine"},
		{"https://[::1]:8080/", true, "[::1]:8080", "this machine"},
		{"https://10.0.0.1/", true, "10.0.0.1", "private"},
		{"https://2130706433/", true, "2130706433", "number"},
		{"https://0x7f.1/", true, "0x7f.1", "number"},
		{"https://ci.example/\xff", false, "", "UTF-8"},
		{"https://" + strings.Repeat("a", 20000), false, "", "longer"},
		{"https://good.example%2f@evil/", false, "", "host"},
	} {
		v := JudgeURL(c.raw)
		if v.OK != c.ok {
			t.Errorf("%q: OK = %v (%s)", c.raw, v.OK, v.Why)
			continue
		}
		if c.ok && v.Host != c.host {
			t.Errorf("%q: host %q, want %q", c.raw, v.Host, c.host)
		}
		all := v.Why + strings.Join(v.Warnings, " ")
		if c.says != "" && !strings.Contains(all, c.says) {
			t.Errorf("%q: says %q, want %q in it", c.raw, all, c.says)
		}
		if c.says == "" && all != "" {
			t.Errorf("%q: says %q, want nothing", c.raw, all)
		}
		if (v.Open != "") != c.ok || strings.ContainsAny(v.Open, " `$\"'\\<>\x1b") {
			t.Errorf("%q: Open = %q", c.raw, v.Open)
		}
		if v.Full != Escape(c.raw) {
			t.Errorf("%q: Full = %q", c.raw, v.Full)
		}
	}
}

// The widths we compute are those of a terminal.
func TestU2_WidthIsTheTerminals(t *testing.T) {
	for _, s := range []string{"abc", "日本語", "👨\u200d👩\u200d👧", "cafe\u0301", "⏎␛", "❤\ufe0f", "שלום", "🇩🇪🇫🇷", "✓●◌✗–◍▌━─", "ｱｶﾞ", "ក្ក"} {
		e := vt.NewEmulator(80, 3)
		line := Line(s)
		if _, err := e.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if got := e.CursorPosition().X; got != Width(line) {
			t.Errorf("%q: terminal %d, Width %d", line, got, Width(line))
		}
	}
}

func check(t *testing.T, in, out string, multi bool) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Fatalf("%q: %q is not UTF-8", in, out)
	}
	for _, r := range out {
		if r == '\n' && multi {
			continue
		}
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			t.Fatalf("%q: control %U in %q", in, r, out)
		}
		if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200b || r == 0xfeff || r == 0x200e || r == 0x200f {
			t.Fatalf("%q: %U in %q", in, r, out)
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[31m\x1b]52;c;x\x07", "日本\u202e語", "👨\u200d👩\u200d👧", "\u0301\n\t\r\x00", "\x9b\xc2\x9b1m", "https://a@b:1/\u202e", "a\ufe0f\ufe0f", "🇩🇪🇫"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, in string, w int) {
		w = w & 0x3f
		line, text := Line(in), Text(in)
		check(t, in, line, false)
		check(t, in, text, true)
		if Line(line) != line {
			t.Fatalf("%q: Line is not idempotent: %q, %q", in, line, Line(line))
		}
		if Text(text) != text {
			t.Fatalf("%q: Text is not idempotent: %q, %q", in, text, Text(text))
		}
		if got := Width(Fit(line, w)); got != w {
			t.Fatalf("%q: Fit to %d is %d wide", line, w, got)
		}
		if even := Even(line); Even(even) != even || Line(even) != even {
			t.Fatalf("%q: Even is not idempotent: %q, %q", line, even, Even(even))
		}
		// a neighbour of ours never joins the text
		if got := Width("x " + line); got != Width(line)+2 {
			t.Fatalf("%q: %d wide alone, %d beside a label", line, Width(line), got-2)
		}
		if got := Width(line + " x"); got != Width(line)+2 {
			t.Fatalf("%q: %d wide alone, %d before a word", line, Width(line), got-2)
		}
		for _, l := range Wrap(text, w) {
			check(t, in, l, false)
			if Width(l) > max(w, 1) {
				t.Fatalf("%q: a wrapped line is %d wide, at most %d", l, Width(l), w)
			}
		}
		check(t, in, Escape(in), false)
		v := JudgeURL(in)
		check(t, in, v.Host+v.Full+v.Scheme+v.Why+strings.Join(v.Warnings, ""), false)
		for i := 0; i < len(v.Open); i++ {
			if v.Open[i] <= 0x20 || v.Open[i] >= 0x7f {
				t.Fatalf("%q: Open %q", in, v.Open)
			}
		}
		if v.OK && v.Scheme != "http" && v.Scheme != "https" {
			t.Fatalf("%q: OK with scheme %q", in, v.Scheme)
		}
	})
}

// A text of tabs costs what its length does: as many again take as long again
// (found by fuzzing: each was measured from the line's start).
func BenchmarkTabs(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := strings.Repeat("é\t", n)
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Text(s)
			}
		})
	}
}

func BenchmarkLinePlain(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Line("Linking, stage 4 of 6, 214 targets")
	}
}

func BenchmarkLineHostile(b *testing.B) {
	s := strings.Repeat("\x1b]0;x", 200000)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Line(s)
	}
}
