//go:build unix

package process

import (
	"strings"
	"testing"
)

// What is wrong with the configuration is told all at once, each with its line:
// keys that there are not, and actions and filters that only the screens use.
func TestConfigTellsAllFaults(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for text, want := range map[string][]string{
		"[servers.ci]\nurll = 'x'\n[ui]\ntehme = 'dark'\n": {
			`:2: unknown key "servers.ci.urll"; did you mean "url"?`, `:4: unknown key "ui.tehme"; did you mean "theme"?`},
		"[keys]\nquitt = 'q'\nforget = 7\n[views]\nmine = 'statuss:working'\n": {
			`:3: keys.forget: it is a key or a list of keys`, `:2: no action is called "quitt"; did you mean "quit"?`, `:5: views.mine: column 1: there is no field "statuss"`},
		"[ui]\ntheme = 'neon'\ncolumns = ['status', 'tols']\n[notify]\nfilter = 'statuss:working'\n": {
			`:2: ui.theme: no theme is called "neon" (there are auto, `, `:3: ui.columns: no column is called "tols" (there are `, `:5: notify.filter: column 1: there is no field "statuss"`},
		"[ui]\ntheme = 'mine'\ncolumns = ['tool:900']\n[ui.themes.mine]\nbase = 'none'\n[ui.themes.other]\ntitel = 'bold'\n": {
			`:5: theme "mine": base "none" is no built-in theme`, `:7: theme "other": no style is called "titel"`, `:3: ui.columns: the width of the column "tool" is a number`},
		"[keys]\nquit = 'x'\n": {`key "x" is bound to both "quit" and "forget"`},
	} {
		path := b.write("c.toml", text)
		r := b.want(2, "-c", path, "config")
		lines := strings.Split(strings.TrimSpace(r.err), "\n")
		if len(lines) != len(want) || r.out != "" {
			t.Errorf("%s: it says\n%s%s", text, r.out, r.err)
		}
		for i, w := range want {
			if i < len(lines) && (!strings.HasPrefix(lines[i], "mcptasks: ") || !strings.Contains(lines[i], w)) {
				t.Errorf("line %d is %q, want %q in it", i+1, lines[i], w)
			}
		}
	}
}

// A server that was given outright and cannot be used is an error; one that
// only stands in a file is told of.
func TestServersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.fault(2, "config", "-s", "x=no-such-command-here", "ls")
	r := b.want(0, "-c", b.write("c.toml", "[servers.x]\ncommand = 'no-such-command-here'\n"), "ls")
	if r.out != "" || !strings.Contains(r.err, "cannot be used: x (the command no-such-command-here is not on this machine)") {
		t.Errorf("%s%s", r.out, r.err)
	}
}

// What a form may cost is set in the configuration, and holds for the arguments
// that are given to a tool as for the screens.
func TestSchemaLimitsAreConfigured(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, tc := range []struct{ limits, says string }{
		{"schema_fields = 1", "at most 1 are shown (limits.schema_fields)"},
		{"schema_depth = 2", "more than 2 levels deep (limits.schema_depth)"},
		{"schema = '20 b'", "at most 20 are read (limits.schema)"},
		{"schema_fields = 200", ""},
	} {
		config := b.write("c.toml", "[servers.p]\ncommand = '"+program+"'\nargs = ['demo-server', '--speed', '100']\n[limits]\n"+tc.limits+"\n")
		start := []string{"-c", config, "start", "p", "deploy_release", "service=api", "version=v4.12.0"}
		if tc.says == "" {
			b.want(0, start...)
			continue
		}
		if words := b.fault(2, "usage", start...); !strings.Contains(words, tc.says) {
			t.Errorf("%s: it says %s", tc.limits, words)
		}
	}
}
