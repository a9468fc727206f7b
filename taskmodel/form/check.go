package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/mail"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Problem is one thing that keeps an answer from being sent.
type Problem struct {
	Field   int    // index into Form.Fields, -1: of the whole answer, or of a member that the schema does not name
	Path    string // where in the answer: "version", "regions[1]", "" for the whole
	Message string // in words, to be read after the field's title: "is required"
	Missing bool   // nothing has been filled in yet
}

// String gives path and message.
func (p Problem) String() string {
	if p.Path == "" {
		return "the answer " + p.Message
	}
	return p.Path + " " + p.Message
}

// Problems says all that is wrong with a draft, at most one thing a field, in
// the fields' order. None means that Answer gives an answer that fits the
// schema.
func (f *Form) Problems(d Draft) []Problem {
	if d.Raw != nil {
		return f.CheckJSON([]byte(*d.Raw))
	}
	words := make([]string, len(f.Fields))   // ours
	hard := make([]bool, len(f.Fields))      // no answer can be made of it
	theirs := make([]Problem, len(f.Fields)) // the validator's
	for i, fl := range f.Fields {
		var v Value
		if i < len(d.Values) {
			v = d.Values[i]
		}
		words[i], hard[i] = fl.check(v)
	}
	found := f.validate(plainContent(f.candidate(d)))
	var rest []Problem
	checked := f.validator() != nil
	for _, p := range found {
		if i := f.owner(p.Path); i >= 0 {
			if theirs[i].Message == "" {
				theirs[i] = p
			}
		} else {
			rest = append(rest, p)
		}
	}
	var out []Problem
	for i, fl := range f.Fields {
		missing := i >= len(d.Values) || !d.Values[i].Set
		p := Problem{Field: i, Path: fl.Name, Missing: missing && fl.Required}
		switch {
		case words[i] != "" && (hard[i] || !checked || theirs[i].Message != ""):
			p.Message = words[i]
		case theirs[i].Message != "":
			p.Message, p.Path = theirs[i].Message, theirs[i].Path
		default:
			continue
		}
		out = append(out, p)
	}
	return append(out, rest...)
}

// Missing gives the titles (raw) of required fields that are still unset.
func (f *Form) Missing(d Draft) []string {
	var out []string
	for _, p := range f.Problems(d) {
		if p.Missing && p.Field >= 0 {
			out = append(out, f.Fields[p.Field].Title)
		}
	}
	return out
}

// CheckJSON says what is wrong with a whole answer that was written as JSON.
func (f *Form) CheckJSON(raw []byte) []Problem {
	v, err := decode(raw, 200)
	if err != nil {
		return []Problem{{Field: -1, Message: "cannot be read: " + jsonError(raw, err).Error()}}
	}
	if _, ok := v.(*object); !ok {
		return []Problem{{Field: -1, Message: "must be a JSON object, in { }"}}
	}
	out := f.validate(plainContent(v))
	for i := range out {
		out[i].Field = f.owner(out[i].Path)
	}
	if f.validator() == nil && f.RawOnly == "" {
		d, err := f.FromJSON(raw)
		if err != nil {
			return []Problem{{Field: -1, Message: err.Error()}}
		}
		return f.Problems(d)
	}
	return out
}

// ValidateAnswer checks an answer against its schema and gives every fault
// with its path; none means that it may be sent. A schema that cannot be used
// is itself a fault.
func ValidateAnswer(schema, content json.RawMessage, l Limits) []Problem {
	f, err := Parse(schema, l)
	if err != nil {
		return []Problem{{Field: -1, Message: "cannot be checked: " + err.Error()}}
	}
	return f.CheckJSON(content)
}

// owner finds the field that a path begins with, -1 when there is none.
func (f *Form) owner(path string) int {
	if i := f.Field(path); i >= 0 {
		return i
	}
	best := -1
	for i, fl := range f.Fields {
		rest, ok := strings.CutPrefix(path, fl.Name)
		if ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "[")) && (best < 0 || len(fl.Name) > len(f.Fields[best].Name)) {
			best = i
		}
	}
	return best
}

// plainContent is plainValue that also reads the raw values of options.
func plainContent(v any) any {
	switch v := v.(type) {
	case *object:
		m := make(map[string]any, len(v.keys))
		for k, x := range v.vals {
			m[k] = plainContent(x)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = plainContent(x)
		}
		return l
	case json.RawMessage:
		x, err := decode(v, 200)
		if err != nil {
			return string(v)
		}
		return plainValue(x)
	}
	return v
}

const resource = "mem:///answer"

type noLoader struct{}

func (noLoader) Load(u string) (any, error) { return nil, errors.New("nothing is fetched: " + u) }

func engine(p string) (jsonschema.Regexp, error) { return compilePattern(p) }

// validator compiles the schema at the first need; nil when it cannot.
func (f *Form) validator() *jsonschema.Schema {
	f.once.Do(func() {
		if f.scrubbed == nil {
			return
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		c.UseLoader(noLoader{})
		c.UseRegexpEngine(engine)
		if f.broken = c.AddResource(resource, f.scrubbed); f.broken != nil {
			return
		}
		f.compiled, f.broken = c.Compile(resource)
	})
	return f.compiled
}

// Unchecked says why answers are checked field by field only, "" when they are
// checked against the whole schema.
func (f *Form) Unchecked() string {
	switch {
	case f.validator() != nil:
		return ""
	case f.broken != nil:
		return "The schema is broken, so that only the fields are checked."
	case f.RawOnly != "":
		return "The answer is not checked: there is no schema to check it against."
	}
	return "The schema is too costly to check as a whole, so that only the fields are checked."
}

// validate runs the validator, when there is one.
func (f *Form) validate(v any) []Problem {
	s := f.validator()
	if s == nil {
		return nil
	}
	err := s.Validate(v)
	if err == nil {
		return nil
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return []Problem{{Field: -1, Message: "does not fit the schema: " + err.Error()}}
	}
	return leaves(ve)
}

// check says in words what is wrong with one value by the field's own rules,
// and whether no answer at all can be made of it.
func (f Field) check(v Value) (words string, hard bool) {
	if !v.Set {
		if f.Required {
			return "is required", false
		}
		return "", false
	}
	if v.Other != nil {
		return "", false
	}
	switch f.Kind {
	case Text:
		return f.checkText(v.Text), false
	case Number, Integer:
		return f.checkNumber(f.Kind, v.Text)
	case Choice:
		if len(v.Picked) == 0 {
			return "is required: choose one", true
		}
	case Multi:
		return f.checkCount(len(v.Picked), "chosen"), false
	case List:
		items := lines(v.Text)
		for i, l := range items {
			switch f.Item {
			case Number, Integer:
				if w, _ := f.checkNumber(f.Item, l); w != "" {
					return fmt.Sprintf("line %d %s", i+1, w), true
				}
			case Boolean:
				if l != "true" && l != "false" {
					return fmt.Sprintf("line %d must be true or false", i+1), true
				}
			}
		}
		return f.checkCount(len(items), "given"), false
	case JSON:
		if _, err := decode([]byte(v.Text), 200); err != nil {
			if strings.TrimSpace(v.Text) == "" {
				return "is empty: write JSON, or unset it", true
			}
			return jsonError([]byte(v.Text), err).Error(), true
		}
	}
	return "", false
}

func (f Field) checkText(s string) string {
	n := utf8.RuneCountInString(s)
	switch {
	case f.MinLen >= 0 && n < f.MinLen:
		return fmt.Sprintf("needs at least %s, has %d", plural(f.MinLen, "character"), n)
	case f.MaxLen >= 0 && n > f.MaxLen:
		return fmt.Sprintf("may have at most %s, has %d", plural(f.MaxLen, "character"), n)
	case f.pattern != nil && !f.pattern.MatchString(s):
		return "must match " + f.Pattern
	}
	return checkFormat(f.Format, s)
}

func checkFormat(format, s string) string {
	switch format {
	case "email":
		if a, err := mail.ParseAddress(s); err != nil || a.Address != s {
			return "must be an e-mail address"
		}
	case "uri":
		if u, err := url.Parse(s); err != nil || !u.IsAbs() {
			return "must be a full URI, like https://example.org/x"
		}
	case "date":
		if _, err := time.Parse("2006-01-02", s); err != nil {
			return "must be a date, like 2026-12-01"
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return "must be a time, like 2026-12-01T15:04:05Z"
		}
	}
	return ""
}

func (f Field) checkNumber(k Kind, text string) (string, bool) {
	text = strings.TrimSpace(text)
	r, ok := parseNumber(text)
	switch {
	case !ok && numberText.MatchString(text):
		return "is too large a number to handle", true
	case !ok && k == Integer:
		return "must be a whole number", true
	case !ok:
		return "must be a number", true
	case k == Integer && !r.IsInt():
		return "must be a whole number", false
	case f.Min != nil && (r.Cmp(f.Min) < 0 || f.MinOpen && r.Cmp(f.Min) == 0):
		return "must be " + word(f.MinOpen, "more than ", "at least ") + ratText(f.Min), false
	case f.Max != nil && (r.Cmp(f.Max) > 0 || f.MaxOpen && r.Cmp(f.Max) == 0):
		return "must be " + word(f.MaxOpen, "less than ", "at most ") + ratText(f.Max), false
	case f.Step != nil && !new(big.Rat).Quo(r, f.Step).IsInt():
		return "must be a multiple of " + ratText(f.Step), false
	}
	return "", false
}

func (f Field) checkCount(n int, done string) string {
	switch {
	case f.MinItems >= 0 && n < f.MinItems:
		return fmt.Sprintf("needs at least %d, %d %s", f.MinItems, n, done)
	case f.MaxItems >= 0 && n > f.MaxItems:
		return fmt.Sprintf("may have at most %d, %d %s", f.MaxItems, n, done)
	}
	return ""
}
