package formview

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel/form"
	"mcptasks/ui/safe"
)

// choices are what a field that is not typed offers.
func (m *Form) choices(i int) []string {
	f := m.f.Fields[i]
	if f.Kind == form.Boolean {
		return []string{"yes", "no"}
	}
	out := make([]string, len(f.Options))
	for n, o := range f.Options {
		out[n] = safe.Line(o.Title)
		if strings.TrimSpace(out[n]) == "" {
			out[n] = safe.Line(string(o.Value))
		}
	}
	return out
}

// picked reports whether a choice is taken.
func (m *Form) picked(i, option int) bool {
	v := m.d.Values[i]
	if !v.Set {
		return false
	}
	if m.f.Fields[i].Kind == form.Boolean {
		return v.Other == nil && v.On == (option == 0)
	}
	return slices.Contains(v.Picked, option)
}

func (m *Form) pick(i int, msg tea.KeyPressMsg) Event {
	f := m.f.Fields[i]
	n := len(m.choices(i))
	c := &m.cursor[i]
	move := func(to int) Event {
		*c = max(min(to, n-1), 0)
		if f.Kind == form.Multi {
			return Event{}
		}
		return m.take(i, *c)
	}
	none := f.Kind != form.Multi && !m.d.Values[i].Set // the first arrow takes where the cursor stands
	switch msg.String() {
	case "left":
		if none {
			return move(*c)
		}
		return move(*c - 1)
	case "right":
		if none {
			return move(*c)
		}
		return move(*c + 1)
	case "up", "down":
		d := 1
		if msg.String() == "up" {
			d = -1
		}
		if m.inline(i) || *c+d < 0 || *c+d >= n {
			return m.leave(msg)
		}
		if none {
			return move(*c)
		}
		return move(*c + d)
	case "home":
		return move(0)
	case "end":
		return move(n - 1)
	case "space":
		return m.take(i, *c)
	case "enter":
		return m.leave(msg)
	case "backspace", "delete":
		m.d.Values[i] = form.Value{}
		return m.changed()
	}
	if r := []rune(msg.Text); len(r) == 1 { // a letter goes to the next choice that begins with it
		for d := 1; d <= n; d++ {
			at := (*c + d) % n
			if none {
				at = (*c + d - 1) % n
			}
			if t := []rune(m.choices(i)[at]); len(t) > 0 && unicode.ToLower(t[0]) == unicode.ToLower(r[0]) {
				return move(at)
			}
		}
	}
	return Event{}
}

func (m *Form) take(i, option int) Event {
	f := m.f.Fields[i]
	v := form.Value{Set: true}
	switch f.Kind {
	case form.Boolean:
		v.On = option == 0
	case form.Choice:
		v.Picked = []int{option}
	case form.Multi:
		for o := range f.Options {
			if m.picked(i, o) != (o == option) {
				v.Picked = append(v.Picked, o)
			}
		}
		if len(v.Picked) == 0 && !f.Required {
			v.Set = false
		}
	}
	if v.Equal(m.d.Values[i]) {
		return Event{}
	}
	m.d.Values[i] = v
	return m.changed()
}
