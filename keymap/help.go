package keymap

import (
	"fmt"
	"strings"
)

// A Section is one heading of the help with its bindings.
type Section struct {
	Name     string
	Bindings []Binding
}

// Sections lists what counts in any of the given places, by heading; keys that
// were taken away are left out.
func (m *Map) Sections(in Context) []Section {
	var out []Section
	at := map[string]int{}
	for _, b := range m.All() {
		if b.In&in == 0 || !b.Enabled() {
			continue
		}
		i, ok := at[b.Group]
		if !ok {
			i = len(out)
			at[b.Group] = i
			out = append(out, Section{Name: b.Group})
		}
		out[i].Bindings = append(out[i].Bindings, *b)
	}
	return out
}

// Markdown gives the key table of the README.
func (m *Map) Markdown() string {
	var s strings.Builder
	s.WriteString("| keys | action | does | where |\n|---|---|---|---|\n")
	for _, sec := range m.Sections(^Context(0)) {
		for _, b := range sec.Bindings {
			var ks []string
			for _, k := range b.Keys() {
				ks = append(ks, "`"+Pretty(k)+"`")
			}
			fmt.Fprintf(&s, "| %s | `%s` | %s | %s |\n", strings.Join(ks, " "), b.Action, b.Long, b.In)
		}
	}
	return s.String()
}
