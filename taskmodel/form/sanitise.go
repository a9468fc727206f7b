package form

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A scrubber rewrites a schema so that the validator takes it and nothing in
// it reaches out or runs away: each constraint that is broken is left out and
// noted, one sentence each.
type scrubber struct {
	root     any
	draft04  bool
	modern   bool // 2020-12, said or supposed
	badRef   map[*object]bool
	notes    []string
	noteSeen map[string]bool
}

func (s *scrubber) note(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	if s.noteSeen == nil {
		s.noteSeen = map[string]bool{}
	}
	if !s.noteSeen[text] && len(s.notes) < 50 {
		s.noteSeen[text] = true
		s.notes = append(s.notes, text)
	}
}

var knownDrafts = regexp.MustCompile(`^https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?$`)

// scrub gives the schema for the validator.
func (s *scrubber) scrub() any {
	s.modern = true
	root, _ := s.root.(*object)
	if d, ok := root.get("$schema").(string); ok && knownDrafts.MatchString(d) {
		s.draft04 = strings.Contains(d, "draft-04")
		s.modern = strings.Contains(d, "2020-12")
	}
	s.findCycles(s.root)
	return s.schema(s.root, "", true)
}

// inPlace lists the sub-schemas that are applied to the same value.
func (s *scrubber) inPlace(o *object) []any {
	var out []any
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		if l, ok := o.get(k).([]any); ok {
			out = append(out, l...)
		}
	}
	for _, k := range []string{"not", "if", "then", "else"} {
		if o.has(k) {
			out = append(out, o.get(k))
		}
	}
	for _, k := range []string{"dependentSchemas", "dependencies"} {
		if m, ok := o.get(k).(*object); ok {
			for _, n := range m.keys {
				out = append(out, m.vals[n])
			}
		}
	}
	return out
}

// findCycles marks references by which a value would be checked against the
// same schema for ever.
func (s *scrubber) findCycles(root any) {
	s.badRef = map[*object]bool{}
	state := map[*object]int{} // 1 on the stack, 2 done
	var refs []*object         // owners of the references on the stack
	var visit func(v any, depth int)
	visit = func(v any, depth int) {
		o, ok := v.(*object)
		if !ok || depth > 2000 {
			return
		}
		switch state[o] {
		case 1:
			if len(refs) > 0 {
				s.badRef[refs[len(refs)-1]] = true
			}
			return
		case 2:
			return
		}
		state[o] = 1
		for _, n := range s.inPlace(o) {
			visit(n, depth+1)
		}
		if ref := o.str("$ref"); strings.HasPrefix(ref, "#") {
			if t, ok := resolve(s.root, ref); ok {
				refs = append(refs, o)
				visit(t, depth+1)
				refs = refs[:len(refs)-1]
			}
		}
		state[o] = 2
	}
	var all func(v any)
	all = func(v any) {
		switch v := v.(type) {
		case *object:
			visit(v, 0)
			for _, k := range v.keys {
				all(v.vals[k])
			}
		case []any:
			for _, x := range v {
				all(x)
			}
		}
	}
	all(root)
}

// cost counts the schemas that a check visits with each reference followed,
// saturating at limit: ten schemas that each refer twice to the next are a
// thousand.
func (s *scrubber) cost(limit int) int {
	memo := map[*object]int{}
	var of func(v any, depth int) int
	of = func(v any, depth int) int {
		switch v := v.(type) {
		case []any:
			n := 0
			for _, x := range v {
				n = min(n+of(x, depth+1), limit)
			}
			return n
		case *object:
			if c, ok := memo[v]; ok {
				return c
			}
			if depth > 2000 {
				return limit
			}
			memo[v] = 1 // a reference back to here is counted once
			n := 1
			for _, k := range v.keys {
				switch k {
				case "enum", "const", "default", "examples", "$defs", "definitions":
				default:
					n = min(n+of(v.vals[k], depth+1), limit)
				}
			}
			if ref := v.str("$ref"); strings.HasPrefix(ref, "#") && !s.badRef[v] {
				if t, ok := resolve(s.root, ref); ok {
					n = min(n+of(t, depth+1), limit)
				}
			}
			memo[v] = n
			return n
		}
		return 0
	}
	return of(s.root, 0)
}

var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

func (s *scrubber) schema(v any, path string, root bool) any {
	o, ok := v.(*object)
	if !ok {
		if b, ok := v.(bool); ok {
			return b
		}
		s.note(path, "what stands here is no schema; it is not checked")
		return true
	}
	out := map[string]any{}
	drop := func(k, why string) { s.note(path, "%s is not checked: %s", k, why) }
	for _, k := range o.keys {
		v := o.vals[k]
		switch k {
		case "$schema":
			if d, ok := v.(string); root && ok {
				if knownDrafts.MatchString(d) {
					out[k] = d
				} else {
					s.note(path, "the schema's dialect %s is not known; it is read as 2020-12", quote(d))
				}
			}
		case "$id", "$vocabulary", "$comment", "title", "description", "examples", "deprecated", "readOnly", "writeOnly", "enumNames", "default":
		case "id":
			if !s.draft04 {
				if sub, ok := v.(*object); ok {
					out[k] = s.schema(sub, join(path, k), false)
				}
			}
		case "$ref":
			ref, _ := v.(string)
			_, found := resolve(s.root, ref)
			switch {
			case !strings.HasPrefix(ref, "#"):
				drop("$ref", fmt.Sprintf("%s is outside this schema and nothing is fetched", quote(ref)))
			case s.badRef[o]:
				drop("$ref", fmt.Sprintf("%s leads back to itself", quote(ref)))
			case !found:
				drop("$ref", fmt.Sprintf("there is no %s", quote(ref)))
			default:
				out[k] = ref
			}
		case "$dynamicRef", "$recursiveRef":
			drop(k, "dynamic references are not followed")
		case "$anchor", "$dynamicAnchor":
			if a, ok := v.(string); ok {
				out["$anchor"] = a
			}
		case "type":
			if okType(v) {
				out[k] = plainValue(v)
			} else {
				drop("type", quote(string(encode(v)))+" is no type")
			}
		case "enum":
			if l, ok := v.([]any); ok && len(l) > 0 {
				out[k] = plainValue(unique(l))
			} else {
				drop("enum", "it is no list of values")
			}
		case "const":
			out[k] = plainValue(v)
		case "format", "contentEncoding", "contentMediaType":
			if f, ok := v.(string); ok && k == "format" {
				out[k] = f
			}
		case "pattern":
			p, ok := v.(string)
			if !ok {
				drop(k, "it is no text")
			} else if _, err := compilePattern(p); err != nil {
				drop("pattern", err.Error())
			} else {
				out[k] = p
			}
		case "minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum":
			if b, ok := v.(bool); ok && s.draft04 && strings.HasPrefix(k, "exclusive") {
				out[k] = b
				continue
			}
			n, ok := v.(json.Number)
			if r, isNum := parseNumber(string(n)); !ok || !isNum || k == "multipleOf" && r.Sign() <= 0 {
				drop(k, quote(string(encode(v)))+" is no number that it could be")
			} else {
				out[k] = n
			}
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
			if n, ok := count(v); ok {
				out[k] = json.Number(strconv.Itoa(n))
			} else {
				drop(k, quote(string(encode(v)))+" is no count")
			}
		case "uniqueItems":
			if b, ok := v.(bool); ok {
				out[k] = b
			} else {
				drop(k, "it is neither true nor false")
			}
		case "required":
			if b, ok := v.(bool); ok && b { // draft 3's habit, seen in the field
				drop(k, "it stands at the field instead of in a list")
			} else if l, ok := texts(v); ok {
				if len(l) > 0 || !s.draft04 {
					out[k] = l
				}
			} else {
				drop(k, "it is no list of names")
			}
		case "properties", "$defs", "definitions", "dependentSchemas", "patternProperties":
			m, ok := v.(*object)
			if !ok {
				drop(k, "it is no object")
				continue
			}
			sub := map[string]any{}
			for _, n := range m.keys {
				if k == "patternProperties" {
					if _, err := compilePattern(n); err != nil {
						drop(k, err.Error())
						continue
					}
				}
				p := join(path, n)
				if k == "$defs" || k == "definitions" {
					p = join(path, k+"."+n)
				}
				sub[n] = s.schema(m.vals[n], p, false)
			}
			out[k] = sub
		case "dependentRequired", "dependencies":
			if m, ok := v.(*object); ok {
				sub := map[string]any{}
				for _, n := range m.keys {
					if l, ok := texts(m.vals[n]); ok {
						sub[n] = l
					} else if k == "dependencies" {
						sub[n] = s.schema(m.vals[n], join(path, n), false)
					}
				}
				out[k] = sub
			} else {
				drop(k, "it is no object")
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			s.list(out, k, v, path, drop)
		case "items":
			if l, ok := v.([]any); ok {
				if s.modern {
					s.list(out, "prefixItems", l, path, drop)
					if o.has("additionalItems") {
						out["items"] = s.schema(o.vals["additionalItems"], join(path, "items"), false)
					}
				} else {
					s.list(out, k, l, path, drop)
				}
				continue
			}
			out[k] = s.schema(v, path+"[]", false)
		case "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "contentSchema":
			out[k] = s.schema(v, join(path, k), false)
		case "additionalItems":
			if !s.modern {
				out[k] = s.schema(v, join(path, k), false)
			}
		default:
			// Means nothing by itself, but a reference may point into it.
			if sub, ok := v.(*object); ok {
				out[k] = s.schema(sub, join(path, k), false)
			}
		}
	}
	return out
}

func (s *scrubber) list(out map[string]any, k string, v any, path string, drop func(string, string)) {
	l, ok := v.([]any)
	if !ok || len(l) == 0 {
		drop(k, "it is no list of schemas")
		return
	}
	sub := make([]any, len(l))
	for i, x := range l {
		sub[i] = s.schema(x, path, false)
	}
	out[k] = sub
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func okType(v any) bool {
	switch v := v.(type) {
	case string:
		return slices.Contains(typeNames, v)
	case []any:
		seen := map[string]bool{}
		for _, x := range v {
			t, ok := x.(string)
			if !ok || seen[t] || !slices.Contains(typeNames, t) {
				return false
			}
			seen[t] = true
		}
		return len(v) > 0
	}
	return false
}

// count reads a whole number that is not negative; beyond an int it is as good
// as no bound at all, and is capped.
func count(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	r, ok := parseNumber(string(n))
	if !ok || !r.IsInt() || r.Sign() < 0 {
		return 0, false
	}
	if !r.Num().IsInt64() || r.Num().Int64() > 1<<31-1 {
		return 1<<31 - 1, true
	}
	return int(r.Num().Int64()), true
}

// texts reads a list of distinct strings; repeats are dropped.
func texts(v any) ([]any, bool) {
	l, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := []any{}
	seen := map[string]bool{}
	for _, x := range l {
		t, ok := x.(string)
		if !ok {
			return nil, false
		}
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out, true
}

func unique(l []any) []any {
	seen := map[string]bool{}
	out := []any{}
	for _, x := range l {
		k := string(encode(x))
		if !seen[k] {
			seen[k] = true
			out = append(out, x)
		}
	}
	return out
}

func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return "“" + s + "”"
}

const maxPattern = 1000 // characters

var unicodeEscape = regexp.MustCompile(`\\u([0-9a-fA-F]{4})`)

// compilePattern reads a regular expression of a schema. The dialect is RE2,
// which takes time linear in the text; \uXXXX is translated.
func compilePattern(p string) (*regexp.Regexp, error) {
	if len(p) > maxPattern {
		return nil, fmt.Errorf("the regular expression is longer than %d characters", maxPattern)
	}
	if strings.Contains(p, `\u`) {
		p = unicodeEscape.ReplaceAllString(p, `\x{$1}`)
	}
	re, err := regexp.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("the regular expression %s is not one that can be used here", quote(p))
	}
	return re, nil
}
