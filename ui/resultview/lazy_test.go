package resultview

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/theme"
)

func TestJSONFoldsAndFinds(t *testing.T) {
	k := keymap.Default()
	th, _ := theme.Named("mono", true)
	var j JSON
	j.Set([]byte(`{"a":{"b":[1,2,{"c":"needle"}],"x y":null},"n":9007199254740993,"s":"<\u001b>"}`))
	text := func() string { return j.View(&th, 60, 30) }
	if !strings.Contains(text(), "9007199254740993") {
		t.Error("digits were lost")
	}
	if strings.Contains(strings.ReplaceAll(text(), "\x1b[", ""), "\x1b") {
		t.Error("an escape came through")
	}
	j.Update(&k, press("down"))
	if j.Path() != "$.a" {
		t.Errorf("path %q", j.Path())
	}
	j.Update(&k, press("space"))
	if got := text(); strings.Contains(got, "needle") || !strings.Contains(got, "2 members") {
		t.Errorf("folded:\n%s", got)
	}
	j.Update(&k, press("space"))
	for _, s := range []string{"/", "n", "e", "e", "d"} {
		j.Update(&k, press(s))
	}
	j.Update(&k, press("enter"))
	if j.Path() != "$.a.b[2].c" {
		t.Errorf("found at %q", j.Path())
	}
	j.Set([]byte("no json at all\x1b[2J\nsecond"))
	if got := text(); !strings.Contains(got, "no json at all") || !strings.Contains(got, "second") {
		t.Errorf("what is no JSON shows as\n%s", got)
	}
	for _, raw := range []string{"", "{", `{"a":`, "[]", "{}", "null", strings.Repeat("[", 5000), `{"a":1} trailing`} {
		j.Set([]byte(raw))
		if got := strings.Count(text(), "\n"); got != 29 {
			t.Errorf("%.20q: %d lines", raw, got+1)
		}
	}
}

// A large document is there at once with its head, and whole when its job has
// run or when a key needs it.
func TestLargeJSONIsLaidOutBesideTheLoop(t *testing.T) {
	k := keymap.Default()
	th, _ := theme.Named("dark", true)
	raw := "[" + strings.Repeat(`{"name":"target","seconds":41.5},`, 40_000) + `"the end"]`
	lines := 4*40_000 + 8
	open := func() *View {
		v := New(taskmodel.Outcome{Result: json.RawMessage(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"rows":[[]],"more":` + raw + `}}`)}, Options{})
		v.View(&th, 100, 30)
		v.Update(&k, press("tab"))
		v.View(&th, 100, 30)
		return v
	}
	v := open()
	if _, right := v.Status(); !strings.Contains(right, "being laid out") {
		t.Errorf("the head says %q", right)
	}
	for range 7 {
		v.Update(&k, press("down"))
	}
	if left, _ := v.Status(); left != "$.more[0].seconds" {
		t.Errorf("in the head the path is %q", left)
	}
	cmd := v.Work()
	if cmd == nil || v.Work() != nil {
		t.Fatal("one job at a time is wanted")
	}
	if !v.Laid(cmd().(Laid)) || v.Work() != nil {
		t.Error("the job's work was not taken")
	}
	if left, right := v.Status(); left != "$.more[0].seconds" || strings.Contains(right, "laid out") || v.current().page.n != lines {
		t.Errorf("afterwards %q %q, %d lines", left, right, v.current().page.n)
	}
	if v.Laid(cmd().(Laid)) {
		t.Error("work was taken twice")
	}

	v = open()
	job := v.Work()
	v.Update(&k, press("G"))
	if got := ansi.Strip(v.View(&th, 100, 30)); !strings.Contains(got, `"the end"`) {
		t.Errorf("the end shows as\n%s", got)
	}
	if v.Laid(job().(Laid)) {
		t.Error("a job that came too late was taken")
	}

	var j JSON
	j.Set([]byte(raw[:len(raw)-1])) // no JSON in the end
	if got := ansi.Strip(j.View(&th, 100, 30)); !strings.Contains(got, `"name": "target"`) {
		t.Errorf("the head shows as\n%s", got)
	}
	j.Update(&k, j.Work()())
	if got := ansi.Strip(j.View(&th, 100, 30)); j.doc != nil || !strings.Contains(got, `[{"name":"target"`) {
		t.Errorf("what is no JSON shows as\n%s", got)
	}
	j.Set([]byte(raw))
	j.Update(&k, press("/"))
	for _, r := range "the end" {
		s := string(r)
		if s == " " {
			s = "space"
		}
		j.Update(&k, press(s))
	}
	if j.Path() != "$[40000]" {
		t.Errorf("found at %q", j.Path())
	}
}
