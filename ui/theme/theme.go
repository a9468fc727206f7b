package theme

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Theme is one look of the whole program.
type Theme struct {
	Name string
	Dark bool // made for a dark background

	Text      Style // what is read
	Dim       Style // what is read second
	Faint     Style // rules, empty bars, what may be overlooked
	Title     Style // names of things at the head of a screen
	Heading   Style // names of columns and panes
	Selection Style // the selected row; its bar ▌ carries the meaning without colour
	Mark      Style // the sign of a marked row
	Key       Style // a key in the last line and the help
	Status    Status
	Bar       Style // the filled part of a progress bar
	Warn      Style
	Error     Style
	Link      Style
	Field     Style // a form field's value
	FieldOn   Style // the field that is being edited
	Error1    Style `style:"fieldError"` // the message at a field
	Match     Style // what a search or filter found
	Cursor    Style // the cell under the cursor in a line that is typed

	// JSON and other code.
	Name1  Style `style:"code.name"`
	String Style `style:"code.string"`
	Number Style `style:"code.number"`
	Word   Style `style:"code.word"` // true, false, null
}

// Status has the styles of the statuses.
type Status struct {
	Input, Working, Done, Failed, Cancelled, Queued, Unknown Style
}

// FieldError is the style of the message at a form's field.
func (t *Theme) FieldError() Style { return t.Error1 }

// styles walks over every style with its name in the configuration.
func (t *Theme) styles(f func(name string, s *Style)) {
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name := field.Tag.Get("style")
			if name == "" {
				name = prefix + strings.ToLower(field.Name[:1]) + field.Name[1:]
			}
			switch p := v.Field(i).Addr().Interface().(type) {
			case *Style:
				f(name, p)
			case *Status:
				walk("status.", v.Field(i))
			}
		}
	}
	walk("", reflect.ValueOf(t).Elem())
}

// Styles lists the names of the styles that a theme has.
func Styles() []string {
	var out []string
	new(Theme).styles(func(name string, _ *Style) { out = append(out, name) })
	return out
}

// Names lists the built-in themes.
func Names() []string { return []string{"auto", "dark", "light", "contrast", "colour-blind", "mono"} }

// Named gives a built-in theme; "auto" and "" are dark or light by the
// terminal's background, as dark says.
func Named(name string, dark bool) (Theme, bool) {
	switch name {
	case "", "auto":
		if dark {
			return build("dark", true, darkSpec), true
		}
		return build("light", false, lightSpec), true
	case "dark":
		return build(name, true, darkSpec), true
	case "light":
		return build(name, false, lightSpec), true
	case "contrast", "high-contrast":
		if dark {
			return build("contrast", true, darkSpec, contrastDarkSpec), true
		}
		return build("contrast", false, lightSpec, contrastLightSpec), true
	case "colour-blind", "color-blind":
		if dark {
			return build("colour-blind", true, darkSpec, blindDarkSpec), true
		}
		return build("colour-blind", false, lightSpec, blindLightSpec), true
	case "mono":
		return build(name, dark, monoSpec), true
	}
	return Theme{}, false
}

// Custom makes a theme from the configuration: each key is the name of a
// style, each value as Parse reads it; "base" names the built-in theme that it
// changes (default auto). Errors name the key.
func Custom(name string, spec map[string]string, dark bool) (Theme, error) {
	base := spec["base"]
	t, ok := Named(base, dark)
	if !ok {
		return Theme{}, fmt.Errorf("theme %q: base %q is no built-in theme (%s)", name, base, strings.Join(Names(), ", "))
	}
	known := Styles()
	for _, k := range slices.Sorted(maps.Keys(spec)) {
		if k == "base" {
			continue
		}
		if !slices.Contains(known, k) {
			return Theme{}, fmt.Errorf("theme %q: no style is called %q (there are %s)", name, k, strings.Join(known, ", "))
		}
		s, err := Parse(spec[k])
		if err != nil {
			return Theme{}, fmt.Errorf("theme %q: %s: %w", name, k, err)
		}
		t.styles(func(n string, p *Style) {
			if n == k {
				*p = s
			}
		})
	}
	t.Name = name
	return t, nil
}

func build(name string, dark bool, specs ...map[string]string) Theme {
	t := Theme{Name: name, Dark: dark}
	for _, spec := range specs {
		t.styles(func(n string, p *Style) {
			if text, ok := spec[n]; ok {
				// The specs are constants, and a test parses them all.
				*p, _ = Parse(text)
			}
		})
	}
	return t
}
