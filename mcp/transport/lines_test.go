package transport

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func linesOf(r io.Reader, limit int64) (out []string, err error) {
	err = eachLine(r, limit, func(b []byte) { out = append(out, string(b)) },
		func(head, tail []byte, n int64) { out = append(out, fmt.Sprintf("long %d", n)) })
	return out, err
}

func TestLines(t *testing.T) {
	x := strings.Repeat("x", 200_000)
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"ends", "a\nb\r\n\n \nc", []string{"a", "b", "c"}},
		{"mark", "\xEF\xBB\xBFa\n", []string{"a"}},
		{"long", x[:150_000] + "\nb\n", []string{x[:150_000], "b"}},
		{"too long", x + "\nb\n", []string{"long 200001", "b"}},
		{"too long at the end", "a\n" + x, []string{"a", "long 200000"}},
		{"empty", "", nil},
	} {
		got, err := linesOf(strings.NewReader(tc.in), 180_000)
		if err != nil || strings.Join(got, "¶") != strings.Join(tc.want, "¶") {
			t.Errorf("%s: %.100q %v", tc.name, got, err)
		}
	}
	if _, err := linesOf(iotest.ErrReader(io.ErrClosedPipe), 10); err != io.ErrClosedPipe {
		t.Errorf("err = %v", err)
	}
}

func TestOverlongID(t *testing.T) {
	x := strings.Repeat("x", 5000)
	for _, tc := range []struct{ head, tail, want string }{
		{`{"jsonrpc":"2.0","id":"a","result":"` + x, `x"}`, `"a"`},
		{`{"result":"` + x, x + `","id":5}`, "5"},
		{`{"result":"` + x, x + `","id":"a,b","jsonrpc":"2.0"}`, `"a,b"`},
		{`{"jsonrpc":"2.0","method":"n","params":{"a":"` + x, `","id":5}`, ""},
		{`{"result":"` + x, x + `"}`, ""},
	} {
		if got := overlongID([]byte(tc.head), []byte(tc.tail)); string(got) != tc.want {
			t.Errorf("%.40s…%s: %q, want %q", tc.head, tc.tail[max(0, len(tc.tail)-30):], got, tc.want)
		}
	}
}

// FuzzStdioFraming: however the bytes are cut into reads the lines are the
// same; no line holds a newline or is blank or longer than allowed.
func FuzzStdioFraming(f *testing.F) {
	for _, s := range []string{"{\"a\":1}\n[INFO]\r\n\n", "\xEF\xBB\xBF{}\n", "0123456789012345678901234567890123456789\nx", "\r\n\r\r\n"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		const limit = 16
		whole, err := linesOf(bytes.NewReader(b), limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range whole {
			if strings.Contains(l, "\n") || strings.TrimSpace(l) == "" || len(l) > limit {
				t.Fatalf("line %q", l)
			}
		}
		k := 0
		if len(b) > 0 {
			k = int(uint(cut) % uint(len(b)))
		}
		for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(b)), io.MultiReader(bytes.NewReader(b[:k]), bytes.NewReader(b[k:]))} {
			got, _ := linesOf(r, limit)
			if strings.Join(got, "¶") != strings.Join(whole, "¶") {
				t.Fatalf("%q gives %q in one piece and %q in several", b, whole, got)
			}
		}
	})
}
