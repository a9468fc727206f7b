package dialog

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"mcptasks/keymap"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

func env() *kit.Env {
	k := keymap.Default()
	th, _ := theme.Named("mono", true)
	return &kit.Env{Theme: &th, Keys: &k}
}

func press(s string) tea.KeyPressMsg {
	return tea.KeyPressMsg{Code: []rune(s)[0], Text: s}
}

// A dialog that opened by itself takes no key from somebody who is typing.
func TestGraceSwallowsKeysUntilAPause(t *testing.T) {
	var s Stack
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.PushAlone(Confirm{act.Ask{Title: "Write over it?", Yes: "done"}}, now)
	for range 10 {
		now = now.Add(Grace / 2)
		if a := s.Update(env(), now, press("y")); a != nil || s.Top() == nil {
			t.Fatal("a key in mid-typing was taken as consent")
		}
	}
	now = now.Add(Grace + time.Millisecond)
	if a := s.Update(env(), now, press("y")); a != "done" || s.Top() != nil {
		t.Errorf("after a pause: %v, still open %v", a, s.Top() != nil)
	}
}

func TestConfirm(t *testing.T) {
	ask := act.Ask{Title: "Quit?", Yes: "yes", Other: []act.Choice{{Key: "d", Label: "decline", Do: "other"}}}
	for k, want := range map[string]act.Action{"y": "yes", "n": nil, "d": "other"} {
		var s Stack
		s.Push(Confirm{ask})
		if got := s.Update(env(), time.Time{}, press(k)); got != want || s.Top() != nil {
			t.Errorf("%s: %v, open %v", k, got, s.Top() != nil)
		}
	}
	var s Stack
	s.Push(Confirm{ask})
	if got := s.Update(env(), time.Time{}, press("x")); got != nil || s.Top() == nil {
		t.Error("another key closed it")
	}
}

func TestLineCompletes(t *testing.T) {
	l := NewLine(act.Line{Title: "Which?", Suggest: func(text string) []string { return []string{text + "1", text + "2"} }, Done: func(s string) act.Action { return s }})
	e := env()
	l.Update(e, press("a"))
	l.Update(e, tea.KeyPressMsg{Code: tea.KeyTab})
	l.Update(e, tea.KeyPressMsg{Code: tea.KeyTab})
	if done, a := l.Update(e, tea.KeyPressMsg{Code: tea.KeyEnter}); !done || a != "a2" {
		t.Errorf("%v %v", done, a)
	}
}

func TestOverlayKeepsTheWidth(t *testing.T) {
	body := strings.Repeat(strings.Repeat("字", 20)+"\n", 10) + "end"
	for x := range 30 {
		out := Overlay(body, []string{"box", "b"}, x, 2, 40)
		for i, l := range strings.Split(out, "\n") {
			if w := safe.Width(l); w > 41 {
				t.Fatalf("at %d line %d is %d wide", x, i, w)
			}
		}
	}
	if got := Overlay("a\nb", []string{"1", "2", "3", "4"}, 0, 1, 10); strings.Count(got, "\n") != 1 {
		t.Errorf("the block made the body longer: %q", got)
	}
}

// In a window too small for the whole of a dialog, what is typed and what can be
// chosen stay in view: the words between are cut.
func TestSmallWindowsShowWhereOneAnswers(t *testing.T) {
	words := []string{strings.Repeat("many words ", 20), strings.Repeat("and more ", 20)}
	for name, d := range map[string]Dialog{
		"line":    NewLine(act.Line{Title: "Which folders?", Lines: words, Text: "/srv/data"}),
		"confirm": Confirm{act.Ask{Title: "Which folders?", Lines: words, Label: "/srv/data"}},
	} {
		for _, h := range []int{3, 5, 6, 8, 12, 40} {
			var s Stack
			s.Push(d)
			got := ansi.Strip(s.Over(env(), strings.Repeat("\n", h-1), 40, h))
			if lines := strings.Split(got, "\n"); len(lines) != h {
				t.Errorf("%s in %d lines: %d are drawn", name, h, len(lines))
			}
			if !strings.Contains(got, "/srv/data") || h > 8 && !strings.Contains(got, "Which folders?") || h >= 8 && (h < 40) != strings.Contains(got, safe.Ellipsis) {
				t.Errorf("%s in %d lines:\n%s", name, h, got)
			}
		}
	}
}
