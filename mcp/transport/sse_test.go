package transport

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// parseAll writes each event as one line.
func parseAll(r io.Reader, limit int64) (events, comments []string, err error) {
	err = eachEvent(r, limit, eventFunc{
		event: func(e event) {
			s := fmt.Sprintf("%s|%s|%s", e.name, e.id, e.data)
			if e.data == nil {
				s += "-"
			}
			if e.retry >= 0 {
				s += "|" + e.retry.String()
			}
			if e.cut {
				s += "|cut"
			}
			events = append(events, s)
		},
		comment: func(b []byte) { comments = append(comments, string(b)) },
		long:    func(head []byte, n int) { events = append(events, fmt.Sprintf("long %d", n)) },
	})
	return events, comments, err
}

// WHATWG HTML 9.2.6; T3.
func TestT3_Parser(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"LF", "data: a\n\ndata: b\n\n", []string{"||a", "||b"}},
		{"CRLF", "event: message\r\nid: 1\r\ndata: a\r\n\r\n", []string{"message|1|a"}},
		{"lone CR", "id: 1\rdata: a\r\rdata: b\r\r", []string{"|1|a", "||b"}},
		{"mixed", "data: a\r\ndata: b\rdata: c\n\r\n", []string{"||a\nb\nc"}},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []string{"||a"}},
		{"comments", ": ping\n\n:\ndata: a\n: b\n\n", []string{"||a"}},
		{"several data lines", "data: {\ndata:  \"a\": 1\ndata: }\n\n", []string{"||{\n \"a\": 1\n}"}},
		{"one space is taken off", "data:a\n\ndata:  a\n\n", []string{"||a", "|| a"}},
		{"no colon", "data\n\n", []string{"||"}},
		{"empty data primes", "id: 7\ndata:\n\n", []string{"|7|"}},
		{"id without data", "id: 7\n\n", []string{"|7|-"}},
		{"id with NUL", "id: a\x00b\ndata: x\n\n", []string{"||x"}},
		{"empty id resets", "id\ndata: x\n\n", []string{"||x"}},
		{"retry", "retry: 1500\n\nretry: 1x\ndata: a\n\nretry: 99999999999999999999\ndata: b\n\n", []string{"||-|1.5s", "||a", "||b"}},
		{"unknown fields", "foo: bar\nDATA: no\ndata: a\n\n", []string{"||a"}},
		{"empty events", "\n\n\nevent: x\n\ndata: a\n\n", []string{"||a"}},
		{"unfinished", "data: a\n\ndata: b", []string{"||a", "||b|cut"}},
		{"unfinished line end", "data: a\ndata: b\n", []string{"||a\nb|cut"}},
		{"runes", "data: żółć 日本 👩‍💻\n\n", []string{"||żółć 日本 👩‍💻"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{"whole": strings.NewReader(tc.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.in))} {
				got, _, err := parseAll(r, 1<<20)
				if err != nil || strings.Join(got, "¶") != strings.Join(tc.want, "¶") {
					t.Errorf("%s: %q, %v; want %q", how, got, err, tc.want)
				}
			}
		})
	}
}

func TestT3_CommentsAreHeard(t *testing.T) {
	_, comments, _ := parseAll(strings.NewReader(": ping 1\n\n:ping 2\n"), 100)
	if strings.Join(comments, ",") != " ping 1,ping 2" {
		t.Errorf("%q", comments)
	}
}

// An event ended by a lone CR is there at once, although an LF might follow.
func TestT3_EventIsNotHeldBack(t *testing.T) {
	pr, pw := io.Pipe()
	defer pw.Close()
	got := make(chan string, 1)
	go eachEvent(pr, 100, eventFunc{event: func(e event) { got <- string(e.data) }})
	io.WriteString(pw, "data: x\r\r")
	select {
	case s := <-got:
		if s != "x" {
			t.Errorf("%q", s)
		}
	case <-time.After(10 * time.Second):
		t.Error("held back")
	}
}

func TestT3_Event5MB(t *testing.T) {
	big := strings.Repeat("żx", 5<<20/3)
	for _, in := range []string{"data: " + big + "\r\n\r\n", "data: " + big[:len(big)/2/3*3] + "\ndata: " + big[len(big)/2/3*3:] + "\n\n"} {
		var n int
		err := eachEvent(strings.NewReader(in+"data: after\n\n"), 6<<20, eventFunc{event: func(e event) { n += len(bytes.ReplaceAll(e.data, []byte("\n"), nil)) }})
		if err != nil || n != len(big)+len("after") {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

func TestT3_OverlongEventDoesNotEndTheStream(t *testing.T) {
	x := strings.Repeat("x", 10000)
	for _, in := range []string{
		"data: " + x + "\n\ndata: after\n\n",
		strings.Repeat("data: "+x[:100]+"\n", 100) + "\ndata: after\n\n",
		"data: " + x + "\ndata: y\nid: 3\n\ndata: after\n\n",
	} {
		got, _, err := parseAll(strings.NewReader(in), 1000)
		if err != nil || len(got) < 2 || !strings.HasPrefix(got[0], "long 10") && !strings.HasPrefix(got[0], "long 9") || got[len(got)-1] != "||after" {
			t.Errorf("%.200q %v", got, err)
		}
	}
}

func TestT3_BrokenStream(t *testing.T) {
	got, _, err := parseAll(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(io.ErrUnexpectedEOF)), 100)
	if err != io.ErrUnexpectedEOF || len(got) != 1 {
		t.Errorf("%q %v", got, err)
	}
}

// FuzzSSE: however the bytes are cut into reads, the events are the same, and
// none is longer than allowed.
func FuzzSSE(f *testing.F) {
	for _, s := range []string{"data: a\r\rid: 1\r\n\r\n", ": c\nretry: 5\ndata\ndata: x\n\n", "\xEF\xBB\xBFdata: é\n\n", "event: e\ndata: 0123456789012345678901234567890123456789\n\nid: q\n\ndata: y\n\n"} {
		f.Add([]byte(s), 7)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		const limit = 32
		whole, _, err := parseAll(bytes.NewReader(b), limit)
		if err != nil {
			t.Fatal(err)
		}
		k := 0
		if len(b) > 0 {
			k = int(uint(cut) % uint(len(b)))
		}
		for _, r := range []io.Reader{
			iotest.OneByteReader(bytes.NewReader(b)),
			io.MultiReader(bytes.NewReader(b[:k]), bytes.NewReader(b[k:])),
		} {
			got, _, _ := parseAll(r, limit)
			if strings.Join(got, "¶") != strings.Join(whole, "¶") {
				t.Fatalf("%q gives %q in one piece and %q in several", b, whole, got)
			}
		}
		eachEvent(bytes.NewReader(b), limit, eventFunc{event: func(e event) {
			if len(e.data) > limit {
				t.Fatalf("%d bytes of data", len(e.data))
			}
		}})
	})
}

func BenchmarkSSE(b *testing.B) {
	in := strings.Repeat("event: message\nid: 17\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{\"taskId\":\"786512e2\",\"status\":\"working\"}}\n\n", 1000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if err := eachEvent(strings.NewReader(in), 1<<20, eventFunc{event: func(event) {}}); err != nil {
			b.Fatal(err)
		}
	}
}
