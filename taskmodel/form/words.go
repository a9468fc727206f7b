package form

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// leaves turns the validator's tree of errors into a flat list in words, one
// for each place and fault.
func leaves(e *jsonschema.ValidationError) []Problem {
	var out []Problem
	seen := map[Problem]bool{}
	for _, p := range walk(e, 0) {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

const maxProblems = 200

func walk(e *jsonschema.ValidationError, depth int) []Problem {
	at := place(e.InstanceLocation)
	one := func(format string, args ...any) []Problem {
		return []Problem{{Field: -1, Path: at, Message: fmt.Sprintf(format, args...)}}
	}
	each := func(names []string, msg string, missing bool) []Problem {
		var out []Problem
		for _, n := range names {
			out = append(out, Problem{Field: -1, Path: join(at, n), Message: msg, Missing: missing})
		}
		return out
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if o, ok := k.(*kind.OneOf); ok && len(e.Causes) == 0 && len(o.Subschemas) > 0 {
			return one("fits several of its allowed forms, where one is asked for")
		}
		return branches(e, at, depth)
	case *kind.Required:
		return each(k.Missing, "is required", true)
	case *kind.DependentRequired:
		return each(k.Missing, "is required when "+k.Prop+" is given", true)
	case *kind.Dependency:
		return each(k.Missing, "is required when "+k.Prop+" is given", true)
	case *kind.AdditionalProperties:
		return each(k.Properties, "is not known to the schema", false)
	}
	if len(e.Causes) > 0 && depth < 100 {
		var out []Problem
		for _, c := range e.Causes {
			if out = append(out, walk(c, depth+1)...); len(out) > maxProblems {
				break
			}
		}
		return out
	}
	return one("%s", phrase(e.ErrorKind))
}

// branches says what is wrong where one of several schemas has to fit: that of
// the only branch of the right type, when there is just one.
func branches(e *jsonschema.ValidationError, at string, depth int) []Problem {
	var near [][]Problem
	for _, c := range e.Causes {
		if !wrongType(c, len(e.InstanceLocation)) && depth < 100 {
			near = append(near, walk(c, depth+1))
		}
	}
	if len(near) == 1 {
		return near[0]
	}
	return []Problem{{Field: -1, Path: at, Message: "fits none of its allowed forms"}}
}

// wrongType reports whether an error says that the value is of another type.
func wrongType(e *jsonschema.ValidationError, depth int) bool {
	if _, ok := e.ErrorKind.(*kind.Type); ok {
		return len(e.InstanceLocation) == depth
	}
	for _, c := range e.Causes {
		if wrongType(c, depth) {
			return true
		}
	}
	return false
}

func phrase(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		want := make([]string, len(k.Want))
		for i, t := range k.Want {
			want[i] = typeWord(t)
		}
		return "must be " + strings.Join(want, " or ") + ", is " + typeWord(k.Got)
	case *kind.Enum:
		var names []string
		for _, w := range k.Want {
			names = append(names, brief(w))
		}
		if len(names) > 8 {
			names = append(names[:8], "…")
		}
		return "must be one of " + strings.Join(names, ", ")
	case *kind.Const:
		return "must be " + brief(k.Want)
	case *kind.Format:
		s, _ := k.Got.(string)
		if w := checkFormat(k.Want, s); w != "" {
			return w
		}
		switch k.Want {
		case "email":
			return "must be an e-mail address"
		case "uri":
			return "must be a full URI, like https://example.org/x"
		case "date-time":
			return "must be a time, like 2026-12-01T15:04:05Z"
		}
		return "must be of the format " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("needs at least %s, has %d", plural(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("may have at most %s, has %d", plural(k.Want, "character"), k.Got)
	case *kind.Pattern:
		return "must match " + k.Want
	case *kind.Minimum:
		return "must be at least " + ratText(k.Want)
	case *kind.Maximum:
		return "must be at most " + ratText(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + ratText(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + ratText(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + ratText(k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("needs at least %d, has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("may have at most %d, has %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("has the same item twice (%d and %d)", k.Duplicates[0]+1, k.Duplicates[1]+1)
	case *kind.MinProperties:
		return fmt.Sprintf("needs at least %s, has %d", plural(k.Want, "member"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("may have at most %s, has %d", plural(k.Want, "member"), k.Got)
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Not:
		return "is what the schema excludes"
	case *kind.RefCycle:
		return "cannot be checked: the schema refers to itself without end"
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func typeWord(t string) string {
	switch t {
	case "string":
		return "text"
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	case "null":
		return "null"
	case "object":
		return "an object"
	}
	return "a " + t
}

func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > 40 {
		return string([]rune(string(b))[:min(39, len([]rune(string(b))))]) + "…"
	}
	return string(b)
}

// place writes a location as version, regions[1] or a.b.
func place(loc []string) string {
	var b strings.Builder
	for _, p := range loc {
		if _, err := strconv.Atoi(p); err == nil && b.Len() > 0 {
			b.WriteString("[" + p + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}
