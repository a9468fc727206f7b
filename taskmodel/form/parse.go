package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Form is a schema made into fields. It never changes after Parse and may be
// used from several goroutines.
type Form struct {
	Title       string // raw
	Description string // raw
	Fields      []Field
	Notes       []string // what of the schema is not checked or cannot be shown, one sentence each
	RawOnly     string   // why the whole answer can be written as JSON only; "" otherwise

	index    map[string]int
	closed   bool // additionalProperties is false
	scrubbed any  // for the validator; nil when nothing can be checked
	once     sync.Once
	compiled *jsonschema.Schema
	broken   error
}

// Parse reads a schema. An empty one is that of an object without properties.
// It fails when the text is no schema or is over a limit; then RawOnly still
// makes a form of it by which JSON can be sent.
func Parse(schema json.RawMessage, l Limits) (*Form, error) {
	l = l.filled()
	if len(schema) > l.Bytes {
		return nil, &LimitError{fmt.Sprintf("The schema is %d bytes long; at most %d are read (limits.schema).", len(schema), l.Bytes)}
	}
	if len(strings.TrimSpace(string(schema))) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	v, err := decode(schema, l.Depth)
	if err != nil {
		var le *LimitError
		if errors.As(err, &le) {
			return nil, &LimitError{"The schema is refused. " + strings.Replace(le.Text, tooDeep, fmt.Sprintf("It is nested more than %d levels deep (limits.schema_depth).", l.Depth), 1)}
		}
		return nil, fmt.Errorf("the schema is no JSON: %w", err)
	}
	switch v := v.(type) {
	case *object:
	case bool:
		if !v {
			return nil, errors.New("the schema allows no answer at all")
		}
		return &Form{RawOnly: "The schema allows anything.", scrubbed: true}, nil
	case nil:
		return Parse(nil, l)
	default:
		return nil, errors.New("the schema is neither an object nor true or false")
	}
	s := &scrubber{root: v}
	f := &Form{index: map[string]int{}}
	f.scrubbed = s.scrub()
	if s.cost(l.Cost) >= l.Cost {
		f.scrubbed = nil
		s.note("", "the schema is too costly to check as a whole; only the fields are checked")
	}
	f.Notes = s.notes

	p := &parser{scrubber: s, limits: l}
	root := p.flatten(v, 0)
	f.Title, f.Description = root.str("title"), root.str("description")
	if b, ok := root.get("additionalProperties").(bool); ok && !b {
		f.closed = true
	}
	if t := typeOf(root); t != "object" && t != "" {
		f.RawOnly = fmt.Sprintf("The answer is %s, not an object with fields.", article(t))
		return f, nil
	}
	props, _ := root.get("properties").(*object)
	if props == nil {
		props = newObject()
	}
	if len(props.keys) > l.Fields {
		return nil, &LimitError{fmt.Sprintf("The schema has %d fields; at most %d are shown (limits.schema_fields).", len(props.keys), l.Fields)}
	}
	required, _ := root.get("required").([]any)
	for _, name := range props.keys {
		req := slices.Contains(required, any(name))
		f.index[name] = len(f.Fields)
		f.Fields = append(f.Fields, p.field(name, props.vals[name], req))
	}
	for _, r := range required { // required and nowhere described
		if name, ok := r.(string); ok && !props.has(name) {
			if _, dup := f.index[name]; !dup && len(f.Fields) < l.Fields {
				f.index[name] = len(f.Fields)
				f.Fields = append(f.Fields, Field{Name: name, Title: nameOr(name, ""), Required: true, Kind: JSON, MinLen: -1, MaxLen: -1, MinItems: -1, MaxItems: -1, Unsupported: "The schema requires it and does not describe it."})
			}
		}
	}
	for i := range f.Fields {
		name := f.Fields[i].Name
		for _, n := range f.Notes {
			if rest, ok := strings.CutPrefix(n, name); ok && (strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "[")) {
				f.Fields[i].Notes = append(f.Fields[i].Notes, strings.TrimPrefix(rest, ": "))
			}
		}
	}
	return f, nil
}

// RawOnly gives a form without fields, for a schema that Parse refused: the
// answer is written as JSON and only checked to be an object. why is shown.
func RawOnly(why error) *Form {
	text := "The schema cannot be used."
	if why != nil {
		text = why.Error()
	}
	return &Form{RawOnly: text}
}

// Field finds a field by its property's name, -1 when there is none.
func (f *Form) Field(name string) int {
	if i, ok := f.index[name]; ok {
		return i
	}
	return -1
}

type parser struct {
	*scrubber
	limits Limits
}

// flatten follows a schema's references and pours its allOf members into it.
// What is nearer wins; properties and required add up. Exactness is the
// validator's: this decides only what to show.
func (p *parser) flatten(v any, depth int) *object {
	o, ok := v.(*object)
	if !ok {
		return newObject()
	}
	if depth > 16 || !o.has("$ref") && !o.has("allOf") {
		return o
	}
	out := newObject()
	pour := func(from *object) {
		for _, k := range from.keys {
			x := from.vals[k]
			switch {
			case k == "$ref" || k == "allOf":
			case k == "properties" && out.has(k):
				a, aok := out.get(k).(*object)
				b, bok := x.(*object)
				if aok && bok {
					sum := newObject()
					for _, n := range a.keys {
						sum.set(n, a.vals[n])
					}
					for _, n := range b.keys {
						if !sum.has(n) {
							sum.set(n, b.vals[n])
						}
					}
					out.set(k, sum)
				}
			case k == "required" && out.has(k):
				a, aok := out.get(k).([]any)
				b, bok := x.([]any)
				if aok && bok {
					out.set(k, slices.Concat(a, b))
				}
			case !out.has(k):
				out.set(k, x)
			}
		}
	}
	pour(o)
	if ref := o.str("$ref"); strings.HasPrefix(ref, "#") && !p.badRef[o] {
		if t, ok := resolve(p.root, ref); ok {
			pour(p.flatten(t, depth+1))
		}
	}
	if l, ok := o.get("allOf").([]any); ok && len(l) <= p.limits.Fields {
		for _, x := range l {
			pour(p.flatten(x, depth+1))
		}
	}
	return out
}

// typeOf gives the one type of a schema, null left aside; "" when it has none
// or several.
func typeOf(o *object) string {
	switch t := o.get("type").(type) {
	case string:
		return t
	case []any:
		one := ""
		for _, x := range t {
			s, _ := x.(string)
			if s == "null" {
				continue
			}
			if one != "" {
				return "?"
			}
			one = s
		}
		return one
	}
	return ""
}

func nullable(o *object) bool {
	if l, ok := o.get("type").([]any); ok && slices.Contains(l, any("null")) {
		return true
	}
	b, _ := o.get("nullable").(bool)
	return b
}

func nameOr(name, title string) string {
	if strings.TrimSpace(title) != "" {
		return title
	}
	if name == "" {
		return "(no name)"
	}
	return name
}

func (p *parser) field(name string, v any, required bool) Field {
	o := p.flatten(v, 0)
	f := Field{Name: name, Required: required, MinLen: -1, MaxLen: -1, MinItems: -1, MaxItems: -1}
	f.Title = nameOr(name, o.str("title"))
	f.Description = o.str("description")
	f.Nullable = nullable(o)
	def, hasDef := o.get("default"), o.has("default")
	if inner, ok := p.notNull(o); ok {
		f.Nullable = true
		o = inner
		if f.Description == "" {
			f.Description = o.str("description")
		}
		if f.Title == nameOr(name, "") {
			f.Title = nameOr(name, o.str("title"))
		}
		if !hasDef {
			def, hasDef = o.get("default"), o.has("default")
		}
	}
	if hasDef {
		f.Default = encode(def)
	}
	if w, ok := o.get("writeOnly").(bool); ok && w || o.str("format") == "password" {
		f.Secret = true
	}
	f.hides = f.Secret || p.hides(v, 0, map[*object]bool{})
	p.kind(&f, o)
	if f.Kind == JSON && f.Unsupported == "" {
		f.Unsupported = "It can be written as JSON only."
	}
	if f.Kind == Choice && f.Required && f.Default == nil && len(f.Options) == 1 && o.has("const") {
		f.Default = f.Options[0].Value
	}
	return f
}

// notNull reads anyOf/oneOf of one schema and null, as generators write an
// optional value.
func (p *parser) notNull(o *object) (*object, bool) {
	for _, k := range []string{"anyOf", "oneOf"} {
		l, ok := o.get(k).([]any)
		if !ok || len(l) != 2 {
			continue
		}
		a, b := p.flatten(l[0], 0), p.flatten(l[1], 0)
		if isNull(a) && !isNull(b) {
			return b, true
		}
		if isNull(b) && !isNull(a) {
			return a, true
		}
	}
	return nil, false
}

func isNull(o *object) bool { return o.str("type") == "null" }

func (p *parser) kind(f *Field, o *object) {
	if opts, ok := p.options(o); ok {
		if len(opts) > p.limits.Options {
			f.Kind, f.Unsupported = JSON, fmt.Sprintf("It has %d choices; at most %d are shown (limits.schema_choices).", len(opts), p.limits.Options)
			return
		}
		f.Kind, f.Options = Choice, opts
		return
	}
	t := typeOf(o)
	if t == "" && !o.has("anyOf") && !o.has("oneOf") {
		t = guess(o)
	}
	switch t {
	case "string":
		f.Kind = Text
		p.text(f, o)
	case "number", "integer":
		f.Kind = Number
		if t == "integer" {
			f.Kind = Integer
		}
		p.number(f, o)
	case "boolean":
		f.Kind = Boolean
	case "array":
		p.array(f, o)
	case "object":
		f.Kind, f.Unsupported = JSON, "It is an object with fields of its own."
	case "null":
		f.Kind, f.Unsupported = JSON, "It can only be null."
	case "?":
		f.Kind, f.Unsupported = JSON, "It can be of several types."
	default:
		f.Kind, f.Unsupported = JSON, "Its type is not said."
		switch {
		case o.has("anyOf") || o.has("oneOf"):
			f.Unsupported = "It can take several forms."
		case t != "":
			f.Unsupported = "Its type " + quote(t) + " is not known."
		}
	}
}

func guess(o *object) string {
	for _, g := range []struct {
		t    string
		keys []string
	}{
		{"object", []string{"properties", "additionalProperties", "patternProperties"}},
		{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
		{"string", []string{"minLength", "maxLength", "pattern", "format"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		for _, k := range g.keys {
			if o.has(k) {
				return g.t
			}
		}
	}
	return ""
}

// options reads the choices of a schema in all their spellings.
func (p *parser) options(o *object) ([]Option, bool) {
	if o.has("const") {
		return []Option{option(o.get("const"), "", "")}, true
	}
	if l, ok := o.get("enum").([]any); ok && len(l) > 0 {
		names, _ := o.get("enumNames").([]any)
		var out []Option
		seen := map[string]bool{}
		for i, v := range l {
			title := ""
			if i < len(names) { // a list of another length names those that it can
				title, _ = names[i].(string)
			}
			op := option(v, title, "")
			if !seen[string(op.Value)] {
				seen[string(op.Value)] = true
				out = append(out, op)
			}
		}
		return out, true
	}
	for _, k := range []string{"oneOf", "anyOf"} {
		l, ok := o.get(k).([]any)
		if !ok || len(l) == 0 {
			continue
		}
		var out []Option
		seen := map[string]bool{}
		for _, x := range l {
			m := p.flatten(x, 0)
			var v any
			switch e, isEnum := m.get("enum").([]any); {
			case m.has("const"):
				v = m.get("const")
			case isEnum && len(e) == 1:
				v = e[0]
			default:
				return nil, false
			}
			op := option(v, m.str("title"), m.str("description"))
			if !seen[string(op.Value)] {
				seen[string(op.Value)] = true
				out = append(out, op)
			}
		}
		return out, true
	}
	return nil, false
}

func option(v any, title, about string) Option {
	op := Option{Value: encode(v), Title: title, About: about}
	if strings.TrimSpace(op.Title) == "" {
		if s, ok := v.(string); ok && s != "" {
			op.Title = s
		} else {
			op.Title = string(op.Value)
		}
	}
	return op
}

func (p *parser) text(f *Field, o *object) {
	f.Format = o.str("format")
	if n, ok := count(o.get("minLength")); ok {
		f.MinLen = n
	}
	if n, ok := count(o.get("maxLength")); ok {
		f.MaxLen = n
	}
	if pat, ok := o.get("pattern").(string); ok {
		if re, err := compilePattern(pat); err == nil {
			f.Pattern, f.pattern = pat, re
		}
	}
	var def string
	_ = json.Unmarshal(f.Default, &def)
	f.Long = !f.Secret && (f.MaxLen > 200 || f.Format == "textarea" || f.Format == "markdown" || f.Format == "multiline" || strings.HasPrefix(o.str("contentMediaType"), "text/") || strings.Contains(def, "\n"))
}

func (p *parser) number(f *Field, o *object) {
	bound := func(k string) (any, bool) { v, ok := o.get(k).(json.Number); return v, ok }
	if v, ok := bound("minimum"); ok {
		f.Min, _ = parseNumber(string(v.(json.Number)))
	}
	if v, ok := bound("maximum"); ok {
		f.Max, _ = parseNumber(string(v.(json.Number)))
	}
	if v, ok := bound("exclusiveMinimum"); ok {
		if r, ok := parseNumber(string(v.(json.Number))); ok && (f.Min == nil || r.Cmp(f.Min) >= 0) {
			f.Min, f.MinOpen = r, true
		}
	}
	if v, ok := bound("exclusiveMaximum"); ok {
		if r, ok := parseNumber(string(v.(json.Number))); ok && (f.Max == nil || r.Cmp(f.Max) <= 0) {
			f.Max, f.MaxOpen = r, true
		}
	}
	if p.draft04 {
		f.MinOpen, _ = o.get("exclusiveMinimum").(bool)
		f.MaxOpen, _ = o.get("exclusiveMaximum").(bool)
	}
	if v, ok := bound("multipleOf"); ok {
		if r, ok := parseNumber(string(v.(json.Number))); ok && r.Sign() > 0 {
			f.Step = r
		}
	}
}

func (p *parser) array(f *Field, o *object) {
	if n, ok := count(o.get("minItems")); ok {
		f.MinItems = n
	}
	if n, ok := count(o.get("maxItems")); ok {
		f.MaxItems = n
	}
	f.Unique, _ = o.get("uniqueItems").(bool)
	if _, tuple := o.get("items").([]any); tuple || o.has("prefixItems") {
		f.Kind, f.Unsupported = JSON, "It is a list whose items differ by place."
		return
	}
	item := p.flatten(o.get("items"), 0)
	if opts, ok := p.options(item); ok && len(opts) <= p.limits.Options {
		f.Kind, f.Options = Multi, opts
		return
	}
	switch t := typeOf(item); {
	case nullable(item) || item.has("anyOf") || item.has("oneOf"):
	case t == "string":
		f.Kind, f.Item, f.Long = List, Text, true
		return
	case t == "number":
		f.Kind, f.Item, f.Long = List, Number, true
		return
	case t == "integer":
		f.Kind, f.Item, f.Long = List, Integer, true
		return
	case t == "boolean":
		f.Kind, f.Item, f.Long = List, Boolean, true
		return
	}
	f.Kind, f.Unsupported = JSON, "It is a list of more than single values."
}

func article(t string) string {
	switch t {
	case "?":
		return "of several types"
	case "array", "integer", "object":
		return "an " + t
	}
	return "a " + t
}
