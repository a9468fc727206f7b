//go:build linux

package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/demo/faulty"
)

// weapons are what a hostile server puts into every text. Each carries the
// word mark, which must never be part of a control sequence.
const mark = "PWNED"

var weapons = []string{
	"\x1b]0;" + mark + "\x07", "\x1b]2;" + mark + "\x1b\\", "\u009d0;" + mark + "\u009c", // the title
	"\x1b]52;c;" + mark + "\x07", // the clipboard
	"\x1b]8;;http://" + mark + ".example\x1b\\link\x1b]8;;\x1b\\", "\x1b]9;" + mark + "\x07", "\x1b]777;notify;" + mark + ";x\x07", "\x1b]1337;File=" + mark + "\x07",
	"\x1bP" + mark + "\x1b\\", "\u0090" + mark + "\u009c", "\x1b_G" + mark + "\x1b\\", "\x1b^" + mark + "\x1b\\", "\x1bX" + mark + "\x1b\\",
	"\x1b[31;666m", "\x1b[666;666H", "\x1b[?666h", "\u009b666;666H", "\x1b[666;7t", "\x1bc", "\x1b[!p", "\x1b(0", "\x0e", "\x1b[6n", "\x1b[666b",
	"\x00\x07\x08\x0b\x0c\r\x1a\x7f", "\u202e\u2066\u200f\u200b\ufeff\u2028\u2029\u0085", "e\u0301\u0301\u0301\u0301", "\U000e0041\ufe0f\u200d",
}

// armed puts the weapons behind the first letters of a text, so that what is
// cut still holds some.
func armed(s string) string {
	var b strings.Builder
	b.WriteString(s)
	for i, w := range weapons {
		b.WriteString(w)
		fmt.Fprintf(&b, "%d", i)
	}
	return b.String()
}

// arm puts weapons into every text of a message that no rule of the protocol
// ties to a word; names of members too, where they are free.
func arm(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, in := range v {
			out[k] = arm(k, in)
		}
		if name == "properties" || name == "structuredContent" {
			out[armed("free")] = map[string]any{"type": "string", "title": armed("t")}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, in := range v {
			out[i] = arm(name, in)
		}
		return out
	case string:
		free := []string{"title", "description", "message", "statusMessage", "text", "instructions", "version", "logger", "data", "mimeType", "default", "enumNames", "websiteUrl", "uri", "src"}
		if slices.Contains(free, name) {
			return armed(v)
		}
	}
	return v
}

// hostile is a server whose every text is armed, over HTTP. Its names and ids
// are, too, where the client only repeats them.
func hostile(t *testing.T, speed float64) string {
	t.Helper()
	s, err := faulty.New(demo.Options{Tasks: 30, Seed: 5, Speed: speed}, "")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(&armory{s.Handler()})
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close(); s.Close() })
	return srv.URL + "/mcp"
}

// An armory arms the messages of a server that answers over HTTP, event by
// event.
type armory struct{ inner http.Handler }

func (a *armory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.inner.ServeHTTP(&armer{ResponseWriter: w}, r)
}

type armer struct {
	http.ResponseWriter
	rest []byte
}

func (a *armer) WriteHeader(code int) {
	a.Header().Del("Content-Length")
	a.ResponseWriter.WriteHeader(code)
}

func (a *armer) Flush() {
	if f, ok := a.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (a *armer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *armer) Write(p []byte) (int, error) {
	a.Header().Del("Content-Length")
	if !strings.Contains(a.Header().Get("Content-Type"), "event-stream") {
		if _, err := a.ResponseWriter.Write(armBytes(p)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	a.rest = append(a.rest, p...)
	for {
		i := bytes.IndexByte(a.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		line := a.rest[:i]
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			line = append([]byte("data: "), armBytes(data)...)
		}
		if _, err := a.ResponseWriter.Write(append(bytes.Clone(line), '\n')); err != nil {
			return 0, err
		}
		a.rest = a.rest[i+1:]
	}
}

func armBytes(b []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return b
	}
	out, err := json.Marshal(arm("", v))
	if err != nil {
		return b
	}
	return out
}

// clean asserts of all that was written to a terminal that no control sequence
// in it comes from a server: none of the kinds that the screens do not use, none
// with the mark or the number of the weapons.
func clean(t *testing.T, what string, out []byte) {
	t.Helper()
	p := ansi.NewParser()
	var state byte
	bad := 0
	report := func(seq []byte) {
		if bad++; bad <= 5 {
			t.Errorf("%s: a control of a server's reached the terminal: %q", what, seq)
		}
	}
	for rest := out; len(rest) > 0; {
		seq, _, n, next := ansi.DecodeSequence(rest, state, p)
		if n == 0 {
			break
		}
		state, rest = next, rest[n:]
		switch c := seq[0]; {
		case c == 0x1b || c >= 0x80 && c < 0xa0:
			params := strings.FieldsFunc(string(seq), func(r rune) bool { return r < '0' || r > '9' })
			if bytes.Contains(seq, []byte(mark)) || slices.Contains(params, "666") {
				report(seq)
			}
			if len(seq) > 1 && strings.ContainsRune("P_^Xc(N", rune(seq[1])) {
				report(seq)
			}
		case c < 0x20 && !strings.ContainsRune("\n\r\b\t\x07", rune(c)), c == 0x7f:
			report(seq)
		default:
			if r := []rune(string(seq)); slices.ContainsFunc(r, func(r rune) bool {
				return r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200f || r == 0xfeff
			}) {
				report(seq)
			}
		}
	}
}

// TestHostileTextOnEveryScreen drives the built program over every screen of a
// server whose every text is armed.
func TestHostileTextOnEveryScreen(t *testing.T) {
	home := t.TempDir()
	url := hostile(t, 5)
	s := show(t, environ(home), program, "--state", home+"/state", "-s", "ci="+url)
	s.see("sorted by needs")
	s.see("working")
	for _, keys := range []string{
		"j\r", "\t", "\t", "\t", "\t", "\t", back, // the parts of a task
		"jjj\r", "\t", "\t", "W", back, "a", "\t\t\t", "\x0f", "\x12", back, // its question
		"/status:completed\r", "r", "n", "W", " ", "z", back, back, "/status:failed\r", "r", back, back, // results
		"c", back, "x", back, "i", "\r", "\t\t", back, "s", "j", back, "n", "j", "\r", "\t\t", back, // dialogs, inbox, servers, a tool's form
		"w", "jjj\r", "W", "z", back, "k\r", back, "?", back, "b", "b", "b", ":ta", back, "y", "T", "m", "m",
	} {
		if keys == back {
			for range 3 { // a lone esc is told from a sequence by the time after it
				s.press("\x1b")
				s.settle()
			}
			s.press("t")
		} else {
			s.press(keys)
		}
		s.settle()
	}
	clean(t, "the screens", s.bytes())
	for _, title := range titles(s.bytes()) {
		if strings.Contains(title, mark) || strings.ContainsFunc(title, func(r rune) bool { return r < ' ' }) {
			t.Errorf("the window is called %q", title)
		}
	}
	s.press("\x03\x03")
	s.end()
	s.given()
	if !bytes.Contains(s.bytes(), []byte(mark)) {
		t.Error("no text of the server was shown: nothing is tested")
	}
}

// back is esc until the list is there.
const back = "back"

// settle gives the screens a moment to draw, until they stand still. Nothing
// depends on whether they have: the longer, the more is looked at.
func (s *screen) settle() {
	for before := -1; before != len(s.bytes()); time.Sleep(60 * time.Millisecond) {
		before = len(s.bytes())
	}
}

func titles(out []byte) []string {
	var all []string
	for _, part := range bytes.Split(out, []byte("\x1b]2;"))[1:] {
		title, _, _ := bytes.Cut(part, []byte("\x07"))
		all = append(all, string(title))
	}
	return all
}

// TestHostileTextInCommands: tables and messages hold no control byte but the
// line's end; JSON holds them escaped.
func TestHostileTextInCommands(t *testing.T) {
	home := t.TempDir()
	url := hostile(t, 20)
	run := func(args ...string) string {
		cmd := exec.Command(program, append([]string{"--state", home + "/state", "-s", "ci=" + url}, args...)...)
		cmd.Dir, cmd.Env = home, environ(home)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run()
		for _, r := range out.String() {
			if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e && !slices.Contains(args, "json") {
				t.Errorf("mcptasks %v wrote %U: %.300q", args, r, out.String())
				break
			}
		}
		return out.String()
	}
	seen := run("tools", "ci") + run("servers") + run("ls")
	for _, o := range []string{"json", "jsonl"} {
		run("ls", "-o", o)
		run("tools", "ci", "-o", o)
	}
	seen += run("start", "ci", "lint_file", "path=a.go", "--wait")
	seen += run("start", "ci", "run_tests", "suite=all", "--wait")
	seen += run("start", "ci", "nonsense", "--no-check")
	seen += run("result", "ci/nonsense")
	seen += run("history")
	// Of the weapons the numbers behind them and a link's text are left to see.
	if !strings.Contains(seen, "0123link4567") {
		t.Error("no text of the server was shown: nothing is tested")
	}
	// What is saved has names of ours, in the folder that was named.
	saved := filepath.Join(home, "saved")
	run("start", "ci", "lint_file", "path=a.go", "--wait")
	var tasks []struct {
		Server, TaskID, Status string
	}
	if err := json.Unmarshal([]byte(run("ls", "-o", "json")), &tasks); err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if task.Status == "completed" {
			run("result", task.Server+"/"+task.TaskID, "--save", saved)
		}
	}
	names, err := os.ReadDir(saved)
	if err != nil || len(names) == 0 {
		t.Fatalf("nothing was saved: %v", err)
	}
	for _, n := range names {
		if strings.ContainsAny(n.Name(), "/\\\x1b\x00\x07 ") || strings.HasPrefix(n.Name(), ".") {
			t.Errorf("saved as %q", n.Name())
		}
	}
	if left, _ := filepath.Glob(home + "/*"); len(left) > 2 {
		t.Errorf("written elsewhere: %v", left)
	}
}
