package formview

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/screentest"
)

func address(url string) taskmodel.Question {
	return taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "2"}, Kind: taskmodel.AskURL, State: taskmodel.QuestionOpen, Message: "Sign in to the artifact store to go on.", URL: url}
}

func TestGoldenAddress(t *testing.T) {
	for _, s := range sizes {
		d := drive(t, address("http://store.example@xn--80ak6aa92e.com:8443/sign-in?next=$(touch%20x)&token=\u202eabc"))
		screentest.Golden(t, fmt.Sprintf("address-%dx%d", s.w, s.h), d.screen(s.w, s.h))
	}
}

// I10, I11: opened only on consent; a refused address cannot be agreed to; a
// retry by hand when no notice comes.
func TestI10_I11_Address(t *testing.T) {
	d := drive(t, address("https://store.example/$(x)"))
	d.shows("store.example", "https://store.example/$(x)", "mean something to a shell", "Nothing is opened")
	if e := d.keys("r"); e.Kind != None {
		t.Error("a retry before consent")
	}
	if e := d.keys("y"); e.Kind != Copy || e.Text != "https://store.example/%24(x)" {
		t.Errorf("%+v", e)
	}
	e := d.keys("o")
	if e.Kind != Send || e.Open != "https://store.example/%24(x)" || e.Content != nil {
		t.Errorf("%+v", e)
	}
	q := address("https://store.example/$(x)")
	q.State = taskmodel.QuestionAnswered
	d.m.SetQuestion(q)
	d.shows("You agreed")
	if e := d.keys("ctrl+s"); e.Kind != None {
		t.Error("consent goes twice")
	}
	if e := d.keys("o"); e.Kind != None || e.Open == "" {
		t.Error("it cannot be opened once more")
	}
	if e := d.keys("r"); e.Kind != Retry {
		t.Error("no retry by hand")
	}
	q.Done = true
	d.m.SetQuestion(q)
	d.shows("✓ Done")

	for _, bad := range []string{"javascript:alert(1)", "file:///etc/passwd", "https://x\x1b[31m/", ""} {
		d := drive(t, address(bad))
		d.shows("✗")
		for _, k := range []string{"o", "ctrl+s"} {
			if e := d.keys(k); e.Kind != None || e.Open != "" {
				t.Errorf("%q: %s gives %+v", bad, k, e)
			}
		}
		if e := d.keys("ctrl+d", "y"); e.Kind != Decline {
			t.Errorf("%q cannot be declined", bad)
		}
	}
	if e := drive(t, address("https://a.example")).keys("ctrl+x", "q"); e.Kind != None {
		t.Error("cancelled without being confirmed")
	}
	if e := drive(t, address("https://a.example")).keys("esc"); e.Kind != Aside {
		t.Error("esc does not put aside")
	}
}

const sample = `{"systemPrompt":"You name releases.","messages":[
{"role":"user","content":{"type":"text","text":"Name the release after a bird.\nOne word."}},
{"role":"assistant","content":{"type":"text","text":"Heron"}},
{"role":"user","content":[{"type":"text","text":"Another."},{"type":"image","mimeType":"image/png","data":"aGVsbG8="}]}],
"modelPreferences":{"hints":[{"name":"claude-sonnet"},{"name":"gpt"}],"intelligencePriority":0.9,"costPriority":0.1},
"maxTokens":20,"temperature":0.7,"stopSequences":["\n"],"includeContext":"thisServer","tools":[{"name":"lookup","inputSchema":{}}]}`

func sampling() taskmodel.Question {
	return taskmodel.Question{ID: taskmodel.QuestionID{Server: "deploy", ID: "3"}, Kind: taskmodel.AskSampling, State: taskmodel.QuestionOpen, Params: json.RawMessage(sample)}
}

func TestGoldenSampling(t *testing.T) {
	for _, s := range sizes {
		d := drive(t, sampling())
		d.text("Kestrel")
		screentest.Golden(t, fmt.Sprintf("sampling-%dx%d", s.w, s.h), d.screen(s.w, s.h))
	}
}

func TestSampling(t *testing.T) {
	d := drive(t, sampling())
	if e := d.keys("ctrl+s"); e.Kind != None {
		t.Error("an empty completion is sent")
	}
	d.m.Update(&d.k, press("ctrl+g"))
	d.text("Kestrel")
	d.keys("enter")
	d.text("or Kite")
	d.keys("tab", "ctrl+u")
	d.text("me")
	d.keys("tab", "right", "right")
	e := d.keys("ctrl+s")
	if want := `{"role":"assistant","content":{"text":"Kestrel\nor Kite","type":"text"},"model":"me","stopReason":"maxTokens"}`; e.Kind != Send || string(e.Content) != want {
		t.Errorf("%s\nwant %s", e.Content, want)
	}
	if e := d.m.Fill("text", "Drafted"); e.Changed {
		t.Error("a drafted completion takes the place of what was typed")
	}
	d = drive(t, sampling())
	if e := d.m.Fill("text", "Drafted"); !e.Changed {
		t.Error("a drafted completion is not taken")
	}
	if e := d.keys("ctrl+s"); !strings.Contains(string(e.Content), "Drafted") {
		t.Errorf("%s", e.Content)
	}
	if e := d.keys("ctrl+d", "y"); e.Kind != Decline {
		t.Error("it cannot be rejected")
	}
	broken := sampling()
	broken.Params = json.RawMessage(`{"messages":5}`)
	drive(t, broken).shows("cannot be read", `"messages": 5`)
}

// What saying no sends is said before it is sent. In 2026-07-28 nothing says no
// to a completion that a task asks for, since inputResponses hold results only
// (tasks.md, "Task Update Requests"): only its task can be cancelled.
func TestWhatSayingNoSends(t *testing.T) {
	task := taskmodel.Key{Server: "deploy", ID: "t1", Role: taskmodel.Requestor}
	for _, c := range []struct {
		name string
		q    taskmodel.Question
		gen  taskmodel.Generation
		want string // "" when it cannot be declined
	}{
		{"form", question(approve), taskmodel.GenCore, "sends decline, without content"},
		{"url", address("https://a.example/"), taskmodel.GenCore, "sends decline, without content"},
		{"sampling", sampling(), taskmodel.GenCore, "sends error -1"},
		{"sampling of a call", sampling(), taskmodel.GenExtension, "the call is given up"},
		{"sampling of a task", func() taskmodel.Question { q := sampling(); q.Task = task; return q }(), taskmodel.GenExtension, ""},
		{"sampling with tools of a task", func() taskmodel.Question {
			q := sampling()
			q.Task, q.Kind, q.Method = task, taskmodel.AskUnsupported, "sampling/createMessage"
			return q
		}(), taskmodel.GenExtension, ""},
		{"sampling with tools of a call", func() taskmodel.Question {
			q := sampling()
			q.Kind, q.Method = taskmodel.AskUnsupported, "sampling/createMessage"
			return q
		}(), taskmodel.GenExtension, "the call is given up"},
		{"page of a call", func() taskmodel.Question {
			q := address("https://a.example/")
			q.Repeat = taskmodel.Call{Tool: "sign"}
			return q
		}(), taskmodel.GenCore, "sends nothing; the call is not made again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := drive(t, c.q)
			d.m = New(c.q, c.gen, form.Limits{})
			if c.want == "" {
				d.shows("has no way to say no")
				if e := d.keys("ctrl+d", "y"); e.Kind != None {
					t.Errorf("declined with %+v", e)
				}
				d.shows("2026-07-28 has no way")
				if e := d.keys("ctrl+x"); e.Kind != CancelTask {
					t.Errorf("ctrl+x gives %+v", e)
				}
				return
			}
			d.keys("ctrl+d")
			d.shows("Decline? y", c.want)
			if e := d.keys("y"); e.Kind != Decline || e.Content != nil {
				t.Errorf("declined with %+v", e)
			}
		})
	}
}

func TestUnknownKind(t *testing.T) {
	q := taskmodel.Question{ID: taskmodel.QuestionID{Server: "x", ID: "1"}, Kind: taskmodel.AskUnsupported, Method: "weather/ask", State: taskmodel.QuestionOpen, Params: json.RawMessage(`{"a":1}`)}
	d := drive(t, q)
	d.shows("weather/ask", `"a": 1`)
	if e := d.keys("ctrl+s"); e.Kind != None {
		t.Error("accepted")
	}
	if e := d.keys("ctrl+d", "y"); e.Kind != Decline {
		t.Error("cannot be declined")
	}
}

func TestAreaMovesByCluster(t *testing.T) {
	a := newArea("a👨‍👩‍👧é\nzweite Zeile", true, false)
	a.at = 0
	for _, want := range []string{"a", "a👨‍👩‍👧", "a👨‍👩‍👧é", "a👨‍👩‍👧é\n"} {
		a.key(press("right"))
		if a.text[:a.at] != want {
			t.Fatalf("%q, want %q", a.text[:a.at], want)
		}
	}
	a.key(press("up"))
	if a.at != 0 {
		t.Errorf("up went to %d", a.at)
	}
	if a.key(press("up")) {
		t.Error("up in the first row stays in the area")
	}
	a.key(press("end"))
	a.key(press("backspace"))
	a.key(press("backspace"))
	if a.text != "a\nzweite Zeile" {
		t.Errorf("%q", a.text)
	}
	b := newArea("the quick brown fox jumps", true, false)
	var got []string
	for _, r := range b.rows(10) {
		got = append(got, b.text[r.from:r.to])
	}
	if strings.Join(got, "|") != "the quick |brown fox |jumps" {
		t.Errorf("%q", got)
	}
	b.w = 10
	b.at = 0
	b.key(press("end"))
	if b.at != 9 {
		t.Errorf("end of a wrapped row is %d", b.at)
	}
	b.key(press("down"))
	if b.at != 19 && b.at != 18 {
		t.Errorf("down from column 9 is %d", b.at)
	}
}
