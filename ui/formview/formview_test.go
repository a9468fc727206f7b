package formview

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/safe"
	"mcptasks/ui/screentest"
	"mcptasks/ui/theme"
)

const approve = `{"type":"object","required":["decision","share","ticket"],"properties":{
"decision":{"type":"string","title":"Decision","oneOf":[{"const":"hold","title":"hold"},{"const":"go","title":"go on"},{"const":"back","title":"roll back"}],"default":"go"},
"share":{"type":"integer","title":"Canary share","minimum":1,"maximum":50,"default":25,"description":"percent of the traffic that goes to the new version"},
"notify":{"type":"array","title":"Notify","items":{"type":"string","enum":["owners","support","on call"]},"minItems":1,"default":["owners","on call"]},
"until":{"type":"string","format":"date","title":"Until","default":"2026-12-01"},
"page":{"type":"boolean","title":"Page on failure"},
"comment":{"type":"string","title":"Comment","maxLength":2000},
"ticket":{"type":"string","title":"Ticket","pattern":"^OPS-[0-9]{4}$"},
"region":{"title":"Region","enum":["eu-north-1","eu-west-1","eu-central-1","us-east-1","us-west-2","ap-south-1","ap-east-1","sa-east-1"]},
"limits":{"type":"object","title":"Limits","properties":{"cpu":{"type":"number"}}}}}`

func question(schema string) taskmodel.Question {
	return taskmodel.Question{
		ID: taskmodel.QuestionID{Server: "deploy", ID: "1"}, Kind: taskmodel.AskForm, Method: "elicitation/create", State: taskmodel.QuestionOpen,
		Message: "Approve rollout of v2.4.1 to prod?", Schema: json.RawMessage(schema),
	}
}

// A driver types at a model.
type driver struct {
	t *testing.T
	m Model
	k keymap.Map
	v theme.Theme
}

func drive(t *testing.T, q taskmodel.Question) *driver {
	th, _ := theme.Named("dark", true)
	return &driver{t, New(q, taskmodel.GenCore, form.Limits{}), keymap.Default(), th}
}

func press(name string) tea.KeyPressMsg {
	mod := tea.KeyMod(0)
	for {
		switch {
		case strings.HasPrefix(name, "ctrl+"):
			mod, name = mod|tea.ModCtrl, name[5:]
			continue
		case strings.HasPrefix(name, "shift+"):
			mod, name = mod|tea.ModShift, name[6:]
			continue
		}
		break
	}
	named := map[string]rune{"tab": tea.KeyTab, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
		"backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown}
	if c, ok := named[name]; ok {
		return tea.KeyPressMsg{Code: c, Mod: mod}
	}
	if name == "space" {
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	}
	m := tea.KeyPressMsg{Code: []rune(name)[0], Mod: mod}
	if mod&tea.ModCtrl == 0 {
		m.Text = name
	}
	return m
}

// keys presses keys and gives the last event.
func (d *driver) keys(names ...string) Event {
	d.t.Helper()
	var e Event
	for _, n := range names {
		e = d.m.Update(&d.k, press(n))
		d.m.View(&d.v, 80, 24)
	}
	return e
}

func (d *driver) text(s string) Event {
	var e Event
	for _, r := range s {
		name := string(r)
		if r == ' ' {
			name = "space"
		}
		e = d.keys(name)
	}
	return e
}

// screen is the view without styles; it checks its size.
func (d *driver) screen(w, h int) string {
	d.t.Helper()
	return screentest.Plain(d.t, d.m.View(&d.v, w, h), w, h)
}

func (d *driver) shows(want ...string) {
	d.t.Helper()
	screentest.Shows(d.t, d.screen(80, 24), want...)
}

var sizes = []struct{ w, h int }{{80, 24}, {60, 20}, {160, 50}}

func TestGoldenForm(t *testing.T) {
	for _, s := range sizes {
		d := drive(t, question(approve))
		d.keys("tab", "tab", "tab", "tab", "tab", "tab") // to the ticket
		d.text("OPS-12")
		screentest.Golden(t, fmt.Sprintf("form-%dx%d", s.w, s.h), d.screen(s.w, s.h))
		d.keys("tab")
		screentest.Golden(t, fmt.Sprintf("form-options-%dx%d", s.w, s.h), d.screen(s.w, s.h))
		d.keys("ctrl+o")
		screentest.Golden(t, fmt.Sprintf("form-json-%dx%d", s.w, s.h), d.screen(s.w, s.h))
		d.keys("ctrl+o", "ctrl+r")
		screentest.Golden(t, fmt.Sprintf("form-review-%dx%d", s.w, s.h), d.screen(s.w, s.h))
	}
}

func TestFillingAForm(t *testing.T) {
	d := drive(t, question(approve))
	d.shows("Approve rollout of v2.4.1 to prod?", "( ) hold   (●) go on   ( ) roll back", "1 to 50", "[x] owners   [ ] support   [x] on call", "1 thing to mend: Ticket")
	d.keys("right") // roll back
	if e := d.keys("left"); !e.Changed {
		t.Error("a choice does not change the draft")
	}
	d.keys("tab", "backspace", "backspace")
	d.text("60")
	d.shows("! must be at most 50", "2 things to mend: Canary share, Ticket")
	d.keys("backspace", "backspace", "1", "0")
	d.keys("tab", "right", "space") // + support
	d.keys("tab", "ctrl+u")         // no date
	d.shows("not set")
	d.keys("tab", "y", "tab")
	d.m.Update(&d.k, tea.PasteMsg{Content: "first\r\nsecond\x1b[31m"})
	d.keys("tab")
	if e := d.keys("ctrl+s"); e.Kind != None {
		t.Errorf("sent while a required field is missing: %s", e.Content)
	}
	d.shows("! is required", "1 thing to mend: Ticket")
	d.text("OPS-1234")
	d.shows("Nothing to mend.")
	e := d.keys("ctrl+s")
	want := `{"decision":"go","share":10,"notify":["owners","support","on call"],"page":true,"comment":"first\nsecond[31m","ticket":"OPS-1234"}`
	if e.Kind != Send || string(e.Content) != want {
		t.Errorf("%v %s\nwant %s", e.Kind, e.Content, want)
	}
}

// I8: unset and empty are two things; a cleared optional field is left out.
func TestI8_UnsetAndEmpty(t *testing.T) {
	d := drive(t, question(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}}}`))
	sent := func(want string) {
		t.Helper()
		if e := d.keys("ctrl+s"); string(e.Content) != want {
			t.Errorf("%s, want %s", e.Content, want)
		}
	}
	sent(`{}`)
	d.text("x")
	sent(`{"a":"x"}`)
	d.keys("backspace")
	sent(`{}`)
	d.keys("ctrl+u")
	d.shows("empty")
	sent(`{"a":""}`)
	d.keys("ctrl+u")
	sent(`{}`)
	d.keys("tab", "n")
	sent(`{"b":false}`)
	d.keys("ctrl+u")
	sent(`{}`)
}

// I7: an unsupported required field blocks accept; decline and cancel stay
// open, and JSON is the way out.
func TestI7_UnsupportedField(t *testing.T) {
	d := drive(t, question(`{"type":"object","required":["o"],"properties":{"o":{"type":"object","required":["k"],"properties":{"k":{"type":"integer"}}}}}`))
	d.shows("Not supported as a field", "1 thing to mend: o")
	if e := d.keys("ctrl+s"); e.Kind != None {
		t.Error("accept is open")
	}
	if e := d.keys("ctrl+d", "y"); e.Kind != Decline {
		t.Error("decline is closed")
	}
	if e := d.keys("ctrl+x", "ctrl+x"); e.Kind != Cancel {
		t.Error("cancel is closed")
	}
	d.text(`{"k":1}`)
	if e := d.keys("ctrl+s"); string(e.Content) != `{"o":{"k":1}}` {
		t.Errorf("%s", e.Content)
	}
	d.keys("ctrl+o")
	d.m.Edited(`{"o":{"k":"x"},"more":2}`)
	d.shows("o.k must be a whole number")
	if e := d.keys("ctrl+s"); e.Kind != None {
		t.Error("sent although it does not fit")
	}
	d.m.Edited(`{"o":{"k":2},"more":2}`)
	if e := d.keys("ctrl+s"); string(e.Content) != `{"o":{"k":2},"more":2}` {
		t.Errorf("%s", e.Content)
	}
	d.keys("ctrl+o")
	if e := d.keys("ctrl+s"); string(e.Content) != `{"o":{"k":2},"more":2}` {
		t.Errorf("back in the fields: %s", e.Content)
	}
	d.keys("ctrl+o")
	d.m.Edited(`{"o":`)
	d.keys("ctrl+o")
	d.shows("It cannot go back into the fields")
}

// Accept, decline and cancel are three acts; the latter two ask once. Esc
// sends nothing.
func TestDeclineAndCancelAskOnce(t *testing.T) {
	d := drive(t, question(approve))
	if e := d.keys("ctrl+d"); e.Kind != None {
		t.Fatal("declined at once")
	}
	d.shows("Decline? y sends decline, without content; any other key goes back.")
	if e := d.keys("n"); e.Kind != None {
		t.Error("any other key declines")
	}
	if e := d.keys("ctrl+d", "ctrl+x"); e.Kind != None {
		t.Error("another key confirms")
	}
	if e := d.keys("ctrl+d", "ctrl+d"); e.Kind != Decline || e.Content != nil {
		t.Error("the second press does not decline")
	}
	if e := d.keys("esc"); e.Kind != Aside {
		t.Error("esc does not put aside")
	}
	if e := d.keys("ctrl+r", "esc"); e.Kind != None {
		t.Error("esc leaves more than the review")
	}
	if e := d.keys("esc"); e.Kind != Aside {
		t.Error("esc does not put aside after the review")
	}
}

// The draft that was put aside is there again, also a half-written one.
func TestDraftIsKept(t *testing.T) {
	q := question(approve)
	d := drive(t, q)
	d.keys("tab", "backspace", "backspace")
	d.text("7x")
	q.Draft = d.m.Draft()
	again := drive(t, q)
	again.shows("7x", "must be a whole number")
	again.keys("ctrl+o")
	again.m.Edited(`{"share": `)
	q.Draft = again.m.Draft()
	drive(t, q).shows("Answer as JSON", `{"share":`)
}

// A form in which nothing was filled in is no draft, nor is one that was put
// back; a default that was taken out is one, and comes back taken out.
func TestNothingToKeepIsNoDraft(t *testing.T) {
	keeps := func(d *driver, want string) {
		t.Helper()
		if got := string(d.m.Draft()); got != want {
			t.Errorf("the draft is %q, want %q", got, want)
		}
	}
	q := question(`{"type":"object","properties":{"a":{"type":"string"},"pin":{"type":"string","format":"password"},"n":{"type":"integer","default":5}}}`)
	d := drive(t, q)
	keeps(d, "")
	d.text("x")
	keeps(d, `{"fields":[{"name":"a","text":"x"},{"name":"n","text":"5"}]}`)
	d = drive(t, q)
	d.keys("tab")
	d.text("1234567")
	keeps(d, "") // what is secret is not kept
	d = drive(t, q)
	d.keys("tab", "tab", "backspace")
	if got := string(d.m.Draft()); got == "" || strings.Contains(got, "5") {
		t.Errorf("a default that was taken out is kept as %q", got)
	}
	q.Draft = d.m.Draft()
	d.text("5")
	keeps(d, "")
	if again := drive(t, q); string(again.m.Draft()) != string(q.Draft) {
		t.Errorf("it comes back as %s", again.m.Draft())
	}
	keeps(drive(t, question(`{"type":`)), "")
	keeps(drive(t, question(``)), "")
}

// I4: a refusal leaves the values and shows the server's words. I2: an answer
// that was taken is not sent a second time without being asked for.
func TestI4_I2_StatesOfTheAnswer(t *testing.T) {
	q := question(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	d := drive(t, q)
	d.text("typed")
	q.State, q.Refusal = taskmodel.QuestionRefused, "a is \x1b[31mtaken"
	d.m.SetQuestion(q)
	d.shows("The server refused the answer: a is taken", "typed")
	if e := d.keys("ctrl+s"); e.Kind != Send {
		t.Error("it cannot be sent again after a refusal")
	}
	q.State = taskmodel.QuestionSending
	d.m.SetQuestion(q)
	if e := d.keys("ctrl+s"); e.Kind != None {
		t.Error("sent twice")
	}
	q.State = taskmodel.QuestionAnswered
	d.m.SetQuestion(q)
	d.shows("Answered, waiting for the server")
	if e := d.keys("ctrl+s"); e.Kind != None {
		t.Error("sent again without asking")
	}
	d.shows("Send once more?")
	if e := d.keys("y"); e.Kind != Send {
		t.Error("no manual resend")
	}
	q.State, q.Withdrawn = taskmodel.QuestionWithdrawn, "its task has ended"
	d.m.SetQuestion(q)
	d.shows("Withdrawn: its task has ended", "typed")
	if e := d.keys("ctrl+s", "x", "ctrl+d", "y"); e.Kind != None || e.Changed {
		t.Error("a withdrawn question takes keys")
	}
	if e := d.keys("esc"); e.Kind != Aside {
		t.Error("no way out")
	}
}

// The focused field is in view after every resize, in every window.
func TestFocusStaysInView(t *testing.T) {
	var props []string
	for i := range 40 {
		props = append(props, fmt.Sprintf(`"field%02d":{"type":"string","description":"what field %d is for, in a sentence that is long enough to wrap in a narrow window"}`, i, i))
	}
	d := drive(t, question(`{"type":"object","properties":{`+strings.Join(props, ",")+`}}`))
	for i := range 40 {
		for _, s := range []struct{ w, h int }{{80, 24}, {60, 20}, {20, 5}, {160, 50}, {40, 10}, {7, 3}, {1, 1}} {
			out := d.screen(s.w, s.h)
			if s.w >= 40 && !strings.Contains(out, "▌") {
				t.Fatalf("field %d is not in view at %d×%d\n%s", i, s.w, s.h, out)
			}
		}
		d.keys("tab")
	}
	d.keys("shift+tab")
	d.shows("▌ field39")
	d.keys("pgup", "pgup")
	if s := d.screen(80, 24); strings.Contains(s, "▌ field39") {
		t.Error("paging does not scroll")
	}
	d.text("x")
	d.shows("▌ field39")
}

func TestManyOptions(t *testing.T) {
	var opts []string
	for i := range 300 {
		opts = append(opts, fmt.Sprintf(`"opt%03d"`, i))
	}
	d := drive(t, question(`{"type":"object","properties":{"o":{"enum":[`+strings.Join(opts, ",")+`]},"p":{"type":"string"}}}`))
	d.keys("down")
	for range 120 {
		d.keys("down")
	}
	d.shows("(●) opt120", "300 choices in all")
	for _, s := range sizes {
		for h := 3; h < s.h; h++ {
			if out := d.screen(s.w, h); !strings.Contains(out, "(●) opt120") {
				t.Fatalf("the cursor is out of view at %d×%d\n%s", s.w, h, out)
			}
		}
	}
	d.keys("tab")
	d.shows("(●) opt120")
	if s := d.screen(80, 24); strings.Contains(s, "opt121") {
		t.Error("a closed choice lists all")
	}
	if e := d.keys("ctrl+s"); string(e.Content) != `{"o":"opt120"}` {
		t.Errorf("%s", e.Content)
	}
}

// U1: no byte of a server's text reaches the terminal as control.
func TestU1_FormIsSanitised(t *testing.T) {
	evil := `\u001b]52;c;eA==\u0007\u001b[2J\u202e\u009b31m\u0000\r`
	q := question(`{"type":"object","title":"` + evil + `","description":"` + evil + `","required":["` + evil + `"],"properties":{"` + evil + `":{"title":"T` + evil + `","description":"D` + evil + `","enum":["` + evil + `","b"],"enumNames":["N` + evil + `"]},
		"s":{"type":"string","pattern":"(` + evil + `","default":"` + evil + `"},"p":{"type":"string","pattern":"^x` + evil + `","default":"y"}}}`)
	q.Message = "a\x1b]52;c;eA==\x07\x1b[2J\u202eb"
	q.Refusal, q.State = q.Message, taskmodel.QuestionRefused
	d := drive(t, q)
	for _, keys := range [][]string{{}, {"tab"}, {"tab"}, {"ctrl+s"}, {"ctrl+r"}, {"ctrl+r", "ctrl+o"}} {
		d.keys(keys...)
		for i, l := range strings.Split(d.m.View(&d.v, 80, 40), "\n") {
			rest := ansi.Strip(l)
			if safe.Line(rest) != rest {
				t.Errorf("line %d holds %q", i, rest)
			}
			if strings.Contains(l, "\x1b]") || strings.Contains(l, "\x1b[2J") {
				t.Errorf("line %d holds an escape of the server: %q", i, l)
			}
		}
	}
}

func TestToolForm(t *testing.T) {
	m := NewTool(json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"s":{"type":"string"}}}`), "Builds it.", json.RawMessage(`{"n":5}`), form.Limits{})
	k := keymap.Default()
	if e := m.Update(&k, press("ctrl+d")); e.Kind != None || m.ask != None {
		t.Error("a tool's form can be declined")
	}
	if a, ok := m.Answer(); !ok || string(a) != `{"n":5}` || m.Problems() != 0 {
		t.Errorf("%s", a)
	}
	if e := m.Update(&k, press("ctrl+s")); e.Kind != Send || string(e.Content) != `{"n":5}` {
		t.Errorf("%+v", e)
	}
	refused := NewTool(json.RawMessage(`{"type":`), "", nil, form.Limits{})
	th, _ := theme.Named("mono", true)
	if v := ansi.Strip(refused.View(&th, 80, 24)); !strings.Contains(v, "JSON only") {
		t.Errorf("%s", v)
	}
}

func TestEditorAndFile(t *testing.T) {
	d := drive(t, question(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"},"j":{"type":"object"}}}`))
	d.text("one")
	if e := d.keys("ctrl+g"); e.Kind != Editor || e.Text != "one" || e.Name != "field.txt" {
		t.Errorf("%+v", e)
	}
	if e := d.m.Edited("one\ntwo\n"); !e.Changed {
		t.Error("what was edited is not taken")
	}
	if e := d.keys("ctrl+s"); string(e.Content) != `{"a":"one\ntwo"}` {
		t.Errorf("%s", e.Content)
	}
	if e := d.keys("ctrl+f"); e.Kind != File {
		t.Errorf("%+v", e)
	}
	if e := d.keys("tab", "ctrl+g"); e.Kind != None {
		t.Error("a boolean goes to the editor")
	}
	if e := d.keys("tab", "ctrl+g"); e.Kind != Editor || e.Name != "field.json" {
		t.Errorf("%+v", e)
	}
	if e := d.keys("ctrl+o", "ctrl+g"); e.Kind != Editor || e.Name != "answer.json" || !strings.Contains(e.Text, `"a": "one\ntwo"`) {
		t.Errorf("%+v", e)
	}
}
