package form

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Kind is how a field is filled.
type Kind string

const (
	Text    Kind = "text"
	Number  Kind = "number"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Choice  Kind = "choice" // one of Options
	Multi   Kind = "multi"  // any of Options
	List    Kind = "list"   // one item a line, each of kind Item
	JSON    Kind = "json"   // written as JSON; Unsupported says why
)

// An Option is one value of a Choice or Multi field.
type Option struct {
	Value json.RawMessage // the const, exactly
	Title string          // raw; never empty
	About string          // raw description
}

// A Field is one property of the schema. It is a value to be read only.
type Field struct {
	Name        string // the property's name, raw
	Title       string // what to call it, raw: its title, else its name
	Description string // raw
	Required    bool
	Kind        Kind
	Item        Kind // of a List: Text, Number, Integer or Boolean
	Nullable    bool // null is allowed too; left out serves as well
	Format      string
	Pattern     string // "" when there is none or it cannot be used
	MinLen      int    // characters; -1: none
	MaxLen      int
	Min, Max    *big.Rat // nil: none
	MinOpen     bool     // the bound itself is not allowed
	MaxOpen     bool
	Step        *big.Rat // multipleOf
	Options     []Option
	MinItems    int // -1: none
	MaxItems    int
	Unique      bool // a List's items differ
	Default     json.RawMessage
	Long        bool     // wants a text area
	Secret      bool     // not to be shown while typed, nor kept in a history
	Unsupported string   // why it is written as JSON, a sentence; "" otherwise
	Notes       []string // constraints of it that are not checked, one sentence each

	pattern *regexp.Regexp
	hides   bool // Secret, or a value with something secret in it
}

// Hint says in a few words what may be filled in, "" when anything may.
func (f Field) Hint() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch f.Kind {
	case Text:
		switch f.Format {
		case "email":
			add("e-mail address")
		case "uri":
			add("URI")
		case "date":
			add("date, like 2026-12-01")
		case "date-time":
			add("time, like 2026-12-01T15:04:05Z")
		case "", "textarea", "multiline", "markdown", "password":
		default:
			add("%s", f.Format)
		}
		switch {
		case f.MinLen > 0 && f.MaxLen >= 0 && f.MinLen == f.MaxLen:
			add("%s", plural(f.MinLen, "character"))
		case f.MinLen > 0 && f.MaxLen >= 0:
			add("%d to %s", f.MinLen, plural(f.MaxLen, "character"))
		case f.MinLen > 1:
			add("at least %s", plural(f.MinLen, "character"))
		case f.MaxLen >= 0:
			add("at most %s", plural(f.MaxLen, "character"))
		}
		if f.Pattern != "" {
			add("must match %s", f.Pattern)
		}
	case Number, Integer:
		switch {
		case f.Min != nil && f.Max != nil && !f.MinOpen && !f.MaxOpen:
			add("%s to %s", ratText(f.Min), ratText(f.Max))
		default:
			if f.Min != nil {
				add("%s %s", word(f.MinOpen, "more than", "at least"), ratText(f.Min))
			}
			if f.Max != nil {
				add("%s %s", word(f.MaxOpen, "less than", "at most"), ratText(f.Max))
			}
		}
		if f.Step != nil && !(f.Kind == Integer && f.Step.Cmp(big.NewRat(1, 1)) == 0) {
			add("a multiple of %s", ratText(f.Step))
		}
		if len(parts) == 0 && f.Kind == Integer {
			add("whole number")
		} else if len(parts) == 0 {
			add("number")
		}
	case Multi, List:
		switch {
		case f.MinItems > 0 && f.MinItems == f.MaxItems:
			add("exactly %d", f.MinItems)
		case f.MinItems > 0 && f.MaxItems >= 0:
			add("%d to %d", f.MinItems, f.MaxItems)
		case f.MinItems > 0:
			add("at least %d", f.MinItems)
		case f.MaxItems >= 0:
			add("at most %d", f.MaxItems)
		}
		if f.Kind == List {
			add("one a line")
			if f.Unique {
				add("no repeats")
			}
		}
	case JSON:
		add("JSON")
	}
	return strings.Join(parts, ", ")
}

func word(c bool, a, b string) string {
	if c {
		return a
	}
	return b
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ratText writes a bound as shortly as it is exact.
func ratText(r *big.Rat) string {
	if r.IsInt() {
		s := r.Num().String()
		if len(s) > 40 {
			return new(big.Float).SetRat(r).Text('g', 6)
		}
		return s
	}
	for p := 1; p <= 20; p++ {
		s := r.FloatString(p)
		if back, ok := new(big.Rat).SetString(s); ok && back.Cmp(r) == 0 {
			return s
		}
	}
	return new(big.Float).SetRat(r).Text('g', 10)
}
