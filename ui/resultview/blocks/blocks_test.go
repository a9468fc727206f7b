package blocks

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const sample = `{"content":[
 {"type":"text","text":"line 1\nline \"2\" \u00e4 \ud83d\ude00"},
 {"type":"image","mimeType":"image/png","data":"aGVsbG8="},
 {"type":"audio","mimeType":"audio/wav","data":"aGk="},
 {"type":"resource_link","uri":"file:///x/report.pdf","name":"report.pdf","title":"The report","mimeType":"application/pdf","size":2048},
 {"type":"resource","resource":{"uri":"file:///x/notes.md","mimeType":"text/markdown","text":"# Notes"}},
 {"type":"resource","resource":{"uri":"mem://blob","blob":"AAEC"}},
 {"type":"hologram","x":1},
 {"x":1}, 5],
 "structuredContent":{"n":1},"isError":true,"_meta":{"k":[1,2]}}`

func TestRead(t *testing.T) {
	r := Read(json.RawMessage(sample))
	if r.Odd != "" || !r.IsError || string(r.Structured) != `{"n":1}` || len(r.Blocks) != 9 {
		t.Fatalf("%+v", r)
	}
	if got := r.Blocks[0].Text; got != "line 1\nline \"2\" ä 😀" {
		t.Errorf("text %q", got)
	}
	for i, want := range []string{
		"text  23 B", "image  image/png  5 B", "audio  audio/wav  2 B",
		"link  The report  file:///x/report.pdf  application/pdf  2.0 KB",
		"embedded text  file:///x/notes.md  text/markdown  7 B",
		"embedded file  mem://blob  3 B",
		"hologram  Blocks of this type are not known; the raw JSON has it.",
		"block without a type  It has no type.", "block without a type  This block is no object.",
	} {
		if got := r.Blocks[i].Line(); got != want {
			t.Errorf("block %d: %q, want %q", i, got, want)
		}
	}
	if b, err := r.Blocks[1].Bytes(); err != nil || string(b) != "hello" {
		t.Errorf("%q %v", b, err)
	}
}

// S4: what is no tool result is shown raw.
func TestS4_NoToolResult(t *testing.T) {
	for _, raw := range []string{``, `5`, `[]`, `{}`, `{"content":5}`, `{"content":[{"type":"text"`, `nonsense`, `{"action":"accept"}`, strings.Repeat("[", 5000)} {
		if r := Read(json.RawMessage(raw)); r.Odd == "" || string(r.Raw) != raw {
			t.Errorf("%.20q: %+v", raw, r)
		}
	}
	if r := Read(json.RawMessage(`{"structuredContent":{}}`)); r.Odd != "" {
		t.Error(r.Odd)
	}
}

func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	r := Read(json.RawMessage(sample))
	paths, err := r.Save(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
		if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", p, fi.Mode(), err)
		}
	}
	want := "01-text.txt 02-image.png 03-audio.wav 04-report.json 05-notes.md 06-blob.bin 07-hologram.json 08-block.json 09-block.json structured.json"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b, _ := os.ReadFile(paths[1]); string(b) != "hello" {
		t.Errorf("image is %q", b)
	}
	again, err := r.Save(dir)
	if err != nil || filepath.Base(again[0]) != "01-text-2.txt" {
		t.Errorf("%v %v", again, err)
	}
	odd := Read(json.RawMessage(`{"x":1}`))
	if p, err := odd.Save(dir); err != nil || filepath.Base(p[0]) != "result.json" {
		t.Errorf("%v %v", p, err)
	}
	bad := Read(json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"%%%"}]}`))
	if p, err := bad.Save(dir); err == nil || len(p) != 1 || filepath.Ext(p[0]) != ".json" {
		t.Errorf("%v %v", p, err)
	}
}

var safeFile = regexp.MustCompile(`^[0-9]{2,}-[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// No name from a server leads out of the folder.
func TestHostileNames(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "in")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "target"), filepath.Join(dir, "01-link.txt")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../../etc/passwd", "/etc/passwd", `..\..\x`, "a\x00b", "\x1b[31m", ".bashrc", "...", "-rf", "CON", "$(touch x)", strings.Repeat("x", 5000), "a/b.txt", "link.txt", "名前.txt", "x\u202egpj.exe"} {
		q, _ := json.Marshal(name)
		r := Read(json.RawMessage(fmt.Sprintf(`{"content":[{"type":"resource","resource":{"uri":"x","text":"t"},"name":%s},{"type":%s,"text":"t"}]}`, q, q)))
		paths, err := r.Save(dir)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		for _, p := range paths {
			base := filepath.Base(p)
			if filepath.Dir(p) != dir || len(base) > maxName+20 || !safeFile.MatchString(base) {
				t.Errorf("%.40q: %.200s", name, p)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "target")); err == nil {
		t.Error("a symlink led out of the folder")
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`"a\"b\\c\/d\n\t\u0041\ud83d\ude00"`: "a\"b\\c/d\n\tA😀", `"\ud83d"`: "�", `"\ud83dx\u0041"`: "�xA", `"\x"`: `\x`, `"a\u12"`: `a\u12`, `5`: "", `"`: "",
	} {
		if got := Unquote([]byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"content":[{"type":"text","text":"\ud83d\"`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := Read(raw)
		for _, b := range r.Blocks {
			_, _ = b.Bytes()
			if l := b.Line(); strings.ContainsAny(l, "\n\x1b\r") {
				t.Fatalf("line %q", l)
			}
			if n := b.FileName(); !safeFile.MatchString(n) {
				t.Fatalf("name %q", n)
			}
		}
		if json.Valid(raw) && len(raw) < 900 {
			var x struct {
				Content []struct {
					Type string `json:"type"`
					Text string `json:"text"`
				} `json:"content"`
			}
			if json.Unmarshal(raw, &x) == nil && len(x.Content) != len(r.Blocks) && r.Odd == "" && strings.Count(strings.ToLower(string(raw)), "content") < 2 {
				t.Fatalf("%s: %d blocks, not %d", raw, len(r.Blocks), len(x.Content))
			}
		}
	})
}

func big(n int) json.RawMessage {
	line := strings.Repeat("the quick brown fox jumps over the lazy dog, \"again\" and again\n", 1)
	q, _ := json.Marshal(strings.Repeat(line, n/2/len(line)))
	data := base64.StdEncoding.EncodeToString(make([]byte, n*3/8))
	return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%s},{"type":"image","mimeType":"image/png","data":"%s"}]}`, q, data))
}

func BenchmarkRead20MB(b *testing.B) {
	raw := big(20 << 20)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if r := Read(raw); len(r.Blocks) != 2 {
			b.Fatal(r.Odd)
		}
	}
}
