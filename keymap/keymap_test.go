package keymap

import (
	"slices"
	"strings"
	"testing"
)

func TestDefaultsHaveNoConflictAndAreComplete(t *testing.T) {
	m := Default()
	for _, c := range m.Conflicts() {
		t.Error(c)
	}
	seen := map[string]bool{}
	for _, b := range m.All() {
		if b.Action == "" || b.Short == "" || b.Long == "" || b.In == 0 || b.Group == "" || len(b.Keys()) == 0 {
			t.Errorf("binding %+v is incomplete", b)
		}
		if seen[b.Action] {
			t.Errorf("two actions are called %q", b.Action)
		}
		seen[b.Action] = true
		for _, k := range b.Keys() {
			if n, err := normalise(k); err != nil || n != k {
				t.Errorf("%s: key %q is not in its normal form (%q, %v)", b.Action, k, n, err)
			}
		}
	}
}

// The keys that CLI.md promises.
func TestContractKeys(t *testing.T) {
	m := Default()
	for action, keys := range map[string]string{
		"up": "up k", "down": "down j", "top": "g", "bottom": "G", "page-up": "pgup", "page-down": "pgdown",
		"open": "enter", "back": "esc", "filter": "/", "command": ":", "help": "?", "quit": "q",
		"mark": "space", "mark-all": "*", "unmark": "u", "sort": "o", "reverse": "O",
		"start": "n", "answer": "a", "cancel": "c", "result": "r", "forget": "x", "add": "+", "poll": "f", "pause": "p",
		"inbox": "i", "servers": "s", "wire": "w", "tasks": "t", "copy": "y", "save": "ctrl+s", "next-pane": "tab",
		"form-next": "tab", "form-prev": "shift+tab", "form-send": "ctrl+s", "form-decline": "ctrl+d",
		"form-aside": "esc", "form-cancel": "ctrl+x", "form-editor": "ctrl+g", "form-json": "ctrl+o", "interrupt": "ctrl+c",
	} {
		b, ok := m.Action(action)
		if !ok {
			t.Errorf("no action %q", action)
			continue
		}
		for _, k := range strings.Fields(keys) {
			if !slices.Contains(b.Keys(), k) {
				t.Errorf("%s lacks the key %q", action, k)
			}
		}
	}
}

func TestRebind(t *testing.T) {
	tests := []struct {
		name string
		keys map[string][]string
		want string // part of the error; "" is success
	}{
		{"one key", map[string][]string{"cancel": {"C"}}, ""},
		{"swap", map[string][]string{"cancel": {"r"}, "result": {"c"}}, ""},
		{"names are normalised", map[string][]string{"poll": {"Ctrl+PgDn"}}, ""},
		{"taken away", map[string][]string{"mouse": nil}, ""},
		{"conflict", map[string][]string{"cancel": {"r"}}, `key "r" is bound to both "cancel" and "result"`},
		{"conflict in one of the places", map[string][]string{"search": {"q"}}, `bound to both "quit" and "search"`},
		{"unknown action", map[string][]string{"cancle": {"r"}}, `did you mean "cancel"?`},
		{"unknown key", map[string][]string{"cancel": {"bogus"}}, `"bogus" is no key`},
		{"unknown modifier", map[string][]string{"cancel": {"foo+x"}}, `is no key`},
		{"control byte", map[string][]string{"cancel": {"\x01"}}, `is no key`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := Default()
			before := m.Markdown()
			err := m.Rebind(tt.keys)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				for a, ks := range tt.keys {
					b, _ := m.Action(a)
					if len(b.Keys()) != len(ks) {
						t.Errorf("%s has the keys %q, want %q", a, b.Keys(), ks)
					}
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if m.Markdown() != before {
				t.Error("a refused rebinding changed the map")
			}
		})
	}
}

func TestHelpFollowsRebinding(t *testing.T) {
	m := Default()
	if err := m.Rebind(map[string][]string{"cancel": {"ctrl+k"}, "mouse": {}}); err != nil {
		t.Fatal(err)
	}
	md := m.Markdown()
	if !strings.Contains(md, "| `ctrl+k` | `cancel` |") {
		t.Errorf("the table does not have the new key:\n%s", md)
	}
	if strings.Contains(md, "`mouse`") {
		t.Error("the table has an action without keys")
	}
	for _, s := range m.Sections(Form) {
		for _, b := range s.Bindings {
			if b.In&Form == 0 {
				t.Errorf("%s is listed for forms", b.Action)
			}
		}
	}
}
