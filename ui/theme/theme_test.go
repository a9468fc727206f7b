package theme

import (
	"strings"
	"testing"

	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
)

func TestBuiltInSpecsParseAndNameStylesThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, n := range Styles() {
		known[n] = true
	}
	for name, spec := range map[string]map[string]string{
		"dark": darkSpec, "light": lightSpec, "contrastDark": contrastDarkSpec, "contrastLight": contrastLightSpec,
		"blindDark": blindDarkSpec, "blindLight": blindLightSpec, "mono": monoSpec,
	} {
		for k, v := range spec {
			if !known[k] {
				t.Errorf("%s: no style is called %q", name, k)
			}
			if _, err := Parse(v); err != nil {
				t.Errorf("%s: %s: %v", name, k, err)
			}
		}
	}
	for _, n := range Names() {
		if _, ok := Named(n, true); !ok {
			t.Errorf("theme %q is listed and does not exist", n)
		}
	}
}

func TestStatusesDifferWithoutColour(t *testing.T) {
	th, _ := Named("mono", true)
	seen := map[string]taskmodel.Status{}
	for _, s := range []taskmodel.Status{taskmodel.Submitted, taskmodel.Working, taskmodel.InputRequired,
		taskmodel.Completed, taskmodel.Failed, taskmodel.Cancelled, taskmodel.Unknown, "pondering", ""} {
		g, w, _ := th.OfStatus(s)
		if safe.Width(g) != 1 || w == "" {
			t.Errorf("%q: glyph %q, word %q", s, g, w)
		}
		if other, ok := seen[w]; ok {
			t.Errorf("%q and %q look alike: %q", s, other, w)
		}
		seen[w] = s
	}
}

func TestMonoHasNoColour(t *testing.T) {
	th, _ := Named("mono", true)
	th.styles(func(n string, s *Style) {
		if s.Fg != nil || s.Bg != nil {
			t.Errorf("%s has a colour", n)
		}
	})
}

func TestCustom(t *testing.T) {
	tests := []struct {
		name string
		spec map[string]string
		want string
	}{
		{"good", map[string]string{"base": "light", "status.failed": "bold 9 on #fff", "fieldError": "underline"}, ""},
		{"base", map[string]string{"base": "neon"}, `base "neon" is no built-in theme`},
		{"style", map[string]string{"status.broken": "bold"}, `no style is called "status.broken"`},
		{"colour", map[string]string{"dim": "#12345"}, `dim: "#12345" is neither`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			th, err := Custom("mine", tt.spec, true)
			if tt.want == "" {
				if err != nil || th.Name != "mine" || !th.Status.Failed.Bold || !th.FieldError().Underline {
					t.Errorf("%+v, %v", th, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestRenderOnSelection(t *testing.T) {
	th, _ := Named("dark", true)
	got := th.Status.Failed.On(th.Selection)
	if got.Bg != th.Selection.Bg || got.Fg != th.Status.Failed.Fg {
		t.Errorf("%+v", got)
	}
	if out := got.Render("x"); !strings.HasSuffix(out, "x\x1b[m") || strings.Count(out, "\x1b") != 2 {
		t.Errorf("%q", out)
	}
	if (Style{}).Render("x") != "x" {
		t.Error("the zero style writes something")
	}
}
