package keymap

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Conflict is one key that two actions claim in the same place.
type Conflict struct {
	Key  string
	A, B string // actions
	In   Context
}

func (c Conflict) Error() string {
	return fmt.Sprintf("key %q is bound to both %q and %q (%s)", c.Key, c.A, c.B, c.In)
}

// Rebind gives actions other keys, as the [keys] table of the configuration
// has them. An empty list takes an action's keys away. Nothing is changed when
// it returns an error, which names every unknown action, unknown key and
// conflict.
func (m *Map) Rebind(keys map[string][]string) error {
	next := *m
	var errs []error
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b, ok := next.Action(name)
		if !ok {
			errs = append(errs, fmt.Errorf("no action is called %q%s", name, nearest(name, &next)))
			continue
		}
		var good []string
		for _, k := range keys[name] {
			n, err := normalise(k)
			if err != nil {
				errs = append(errs, fmt.Errorf("action %q: %w", name, err))
				continue
			}
			good = append(good, n)
		}
		b.set(good)
	}
	for _, c := range next.Conflicts() {
		errs = append(errs, c)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	*m = next
	return nil
}

// Conflicts lists every key that two actions claim in one place.
func (m *Map) Conflicts() []Conflict {
	var out []Conflict
	all := m.All()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.In&b.In == 0 {
				continue
			}
			for _, k := range a.Keys() {
				if slices.Contains(b.Keys(), k) {
					out = append(out, Conflict{Key: k, A: a.Action, B: b.Action, In: a.In & b.In})
				}
			}
		}
	}
	return out
}

var named = []string{
	"up", "down", "left", "right", "home", "end", "pgup", "pgdown", "enter", "esc", "tab", "space",
	"backspace", "delete", "insert",
}

// normalise gives a key's name as the terminal library spells it.
func normalise(k string) (string, error) {
	bad := func() (string, error) {
		return "", fmt.Errorf("%q is no key (write a character, or a name like %q, %q, %q)", k, "ctrl+s", "pgdown", "f5")
	}
	if k == " " {
		return "space", nil
	}
	if utf8.RuneCountInString(k) == 1 {
		if r, _ := utf8.DecodeRuneInString(k); r < ' ' || r == 0x7f || r == utf8.RuneError {
			return bad()
		}
		return k, nil
	}
	base, mods := k, []string{}
	for {
		i := strings.IndexByte(base, '+')
		if i <= 0 || i == len(base)-1 {
			break
		}
		mods = append(mods, strings.ToLower(base[:i]))
		base = base[i+1:]
	}
	if utf8.RuneCountInString(base) > 1 {
		base = strings.ToLower(base)
		switch base {
		case "pgdn", "pagedown":
			base = "pgdown"
		case "pageup":
			base = "pgup"
		case "escape":
			base = "esc"
		case "return":
			base = "enter"
		case "del":
			base = "delete"
		}
		ok := slices.Contains(named, base)
		if n := strings.TrimPrefix(base, "f"); !ok && n != base && len(n) <= 2 && strings.Trim(n, "0123456789") == "" && n != "" {
			ok = true
		}
		if !ok {
			return bad()
		}
	}
	// The library writes modifiers in this order.
	var out []string
	for _, name := range []string{"ctrl", "alt", "shift", "meta", "hyper", "super"} {
		if slices.Contains(mods, name) {
			out = append(out, name)
			mods = slices.DeleteFunc(mods, func(s string) bool { return s == name })
		}
	}
	if len(mods) > 0 {
		return bad()
	}
	return strings.Join(append(out, base), "+"), nil
}

func nearest(name string, m *Map) string {
	best, dist := "", 4
	for _, b := range m.All() {
		if d := distance(name, b.Action); d < dist {
			best, dist = b.Action, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost = 1 + min(prev, row[j], row[j+1])
			}
			prev, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
