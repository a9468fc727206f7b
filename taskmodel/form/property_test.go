package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A generator makes random schemas of the specification's subset and random
// drafts for them.
type generator struct{ *rand.Rand }

func (g generator) one(s ...string) string { return s[g.IntN(len(s))] }

func (g generator) maybe(p float64, s string) string {
	if g.Float64() < p {
		return "," + s
	}
	return ""
}

func (g generator) property() string {
	n := g.IntN(6)
	words := g.maybe(.2, `"title":"A title"`) + g.maybe(.2, `"description":"What it is for."`)
	switch g.IntN(10) {
	case 0:
		return `{"type":"string"` + words + g.maybe(.4, fmt.Sprintf(`"minLength":%d`, n)) + g.maybe(.4, fmt.Sprintf(`"maxLength":%d`, n+g.IntN(6))) + g.maybe(.3, `"pattern":"`+g.one("^[a-z]+$", "x", "^.{2}", `\\d`)+`"`) + g.maybe(.2, `"default":"dflt"`) + `}`
	case 1:
		i := g.IntN(4)
		return `{"type":"string","format":"` + []string{"email", "uri", "date", "date-time"}[i] + `"` + words + g.maybe(.2, fmt.Sprintf(`"minLength":%d`, 4*n)) + g.maybe(.2, fmt.Sprintf(`"maxLength":%d`, 6*n)) +
			g.maybe(.3, `"default":"`+g.one("", "nothing", []string{"a@example.org", "https://example.org", "2026-12-01", "2026-12-01T00:00:00Z"}[i])+`"`) + `}`
	case 2:
		return `{"type":"number"` + words + g.maybe(.5, fmt.Sprintf(`"minimum":%d.5`, n-3)) + g.maybe(.5, fmt.Sprintf(`"maximum":%d`, n+g.IntN(4))) + g.maybe(.2, `"multipleOf":0.5`) + g.maybe(.2, `"default":2.5`) + `}`
	case 3:
		return `{"type":"integer"` + words + g.maybe(.5, fmt.Sprintf(`"minimum":%d`, n-3)) + g.maybe(.5, fmt.Sprintf(`"maximum":%d`, n)) + g.maybe(.2, `"exclusiveMinimum":0`) + g.maybe(.2, `"default":9007199254740993`) + `}`
	case 4:
		return `{"type":"boolean"` + words + g.maybe(.4, `"default":`+g.one("true", "false")) + `}`
	case 5:
		return `{"type":"string","enum":["a","b","c"]` + words + g.maybe(.4, `"enumNames":`+g.one(`["A"]`, `["A","B","C"]`)) + g.maybe(.3, `"default":"`+g.one("a", "zzz")+`"`) + `}`
	case 6:
		return `{` + g.one(`"type":"string",`, ``) + `"` + g.one("oneOf", "anyOf") + `":[{"const":"a","title":"A"},{"const":"b","title":"B"}]` + words + g.maybe(.3, `"default":"b"`) + `}`
	case 7:
		return `{"type":"array","items":{"` + g.one(`type":"string","enum":["a","b","c"]`, `anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]`, `oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]`) + `}` + words + g.maybe(.5, fmt.Sprintf(`"minItems":%d`, g.IntN(3))) + g.maybe(.5, fmt.Sprintf(`"maxItems":%d`, g.IntN(3))) + g.maybe(.3, `"default":["a"]`) + `}`
	case 8:
		return `{"$ref":"#/$defs/` + g.one("colour", "share") + `"}`
	}
	return g.one(`{"type":"object","required":["k"]}`, `{"type":["string","integer"]}`, `{"type":"array","items":{"type":"integer"},"maxItems":2}`, `{"anyOf":[{"type":"integer"},{"type":"null"}]}`)
}

func (g generator) schema() string {
	var props, req []string
	for i := range 1 + g.IntN(4) {
		props = append(props, fmt.Sprintf(`"p%d":%s`, i, g.property()))
		if g.IntN(2) == 0 {
			req = append(req, fmt.Sprintf(`"p%d"`, i))
		}
	}
	return `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(req, ",") + `],"$defs":{"colour":{"type":"string","enum":["red","blue"]},"share":{"type":"integer","minimum":1,"maximum":50}}}`
}

func (g generator) draft(f *Form) Draft {
	d := f.Start()
	for i, fl := range f.Fields {
		switch g.IntN(5) {
		case 0:
			continue
		case 1:
			d.Values[i] = Value{}
			continue
		}
		v := Value{Set: true}
		switch fl.Kind {
		case Text:
			v.Text = g.one("", "a", "xyz", "ab1", "a@example.org", "https://example.org", "2026-12-01", "2026-02-30", "2026-12-01T00:00:00Z", "äöüäöü", "  ")
		case Number, Integer:
			v.Text = g.one("", "0", "1", "-2", "2.5", "2.50", "1e1", "3x", "50", "51", "9007199254740993", "0.3")
		case Boolean:
			v.On = g.IntN(2) == 0
		case Choice:
			v.Picked = []int{g.IntN(len(fl.Options))}
		case Multi:
			for o := range fl.Options {
				if g.IntN(2) == 0 {
					v.Picked = append(v.Picked, o)
				}
			}
		case List:
			v.Text = g.one("", "1", "1\n2", "1\n2\n3", "1\nx", "1.5")
		case JSON:
			v.Text = g.one(`{"k":1}`, `{}`, `"s"`, `1`, `null`, `1.5`, `[]`)
		}
		d.Values[i] = v
	}
	return d
}

// For any schema of the specification's subset every answer that the form lets
// through validates, and every one that it blocks does not.
func TestWhatTheFormLetsThroughIsWhatValidates(t *testing.T) {
	through, blocked := 0, 0
	for seed := range uint64(1500) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		text := g.schema()
		f, err := Parse(json.RawMessage(text), Limits{})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if len(f.Notes) > 0 || f.Unchecked() != "" {
			t.Fatalf("seed %d: %v %s\n%s", seed, f.Notes, f.Unchecked(), text)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("mem:///s", doc); err != nil {
			t.Fatal(err)
		}
		judge, err := c.Compile("mem:///s")
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			d := g.draft(f)
			answer, err := f.Answer(d)
			content := answer
			if err != nil {
				content = f.Preview(d)
			}
			unset(t, f, d, content)
			inst, jerr := jsonschema.UnmarshalJSON(strings.NewReader(string(content)))
			if jerr != nil {
				t.Fatalf("seed %d: %s is no JSON", seed, content)
			}
			verdict := judge.Validate(inst)
			if (err == nil) != (verdict == nil) {
				t.Fatalf("seed %d: the form says %v, the validator %v\nschema %s\ncontent %s", seed, err, verdict, text, content)
			}
			if err == nil {
				through++
			} else {
				blocked++
			}
			if ps := ValidateAnswer(json.RawMessage(text), content, Limits{}); (len(ps) == 0) != (verdict == nil) {
				t.Fatalf("seed %d: ValidateAnswer %v, the validator %v", seed, ps, verdict)
			}
			// a draft that is kept and taken up again says the same
			again, uerr := f.UnmarshalDraft(f.MarshalDraft(d))
			if uerr != nil || string(f.Preview(again)) != string(f.Preview(d)) {
				t.Fatalf("seed %d: kept %s, got %s, %v", seed, f.Preview(d), f.Preview(again), uerr)
			}
		}
	}
	if through < 500 || blocked < 500 {
		t.Errorf("the test is lopsided: %d through, %d blocked", through, blocked)
	}
}

// unset checks that a field which is not set is left out, and that one which is
// set and empty is not: they are two answers.
func unset(t *testing.T, f *Form, d Draft, content json.RawMessage) {
	t.Helper()
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(content, &sent); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	for i, fl := range f.Fields {
		got, there := sent[fl.Name]
		v := d.Values[i]
		switch {
		case v.Other != nil:
		case !v.Set && there:
			t.Fatalf("%s is not set and is sent as %s", fl.Name, got)
		case v.Set && fl.Kind == Text && v.Text == "" && string(got) != `""`:
			t.Fatalf("%s is set and empty, and is sent as %q", fl.Name, got)
		case v.Set && fl.Kind == Multi && len(v.Picked) == 0 && string(got) != `[]`:
			t.Fatalf("%s is set and has nothing picked, and is sent as %q", fl.Name, got)
		}
	}
}

// The schemas that the property test makes are of the specification's subset,
// and use all of it: each property is a PrimitiveSchemaDefinition of the
// official schema of 2025-11-25, or one of the further spellings that are met,
// and every keyword of the official definitions is among them.
func TestTheGeneratorMakesTheWholeSubset(t *testing.T) {
	b, err := os.ReadFile("../../../shared/schema/mcp-2025-11-25.schema.json")
	if err != nil {
		t.Skip("the official schema is not here: ", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///mcp", doc); err != nil {
		t.Fatal(err)
	}
	compile := func(name string) *jsonschema.Schema {
		s, err := c.Compile("mem:///mcp#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	kinds := []string{"StringSchema", "NumberSchema", "BooleanSchema", "UntitledSingleSelectEnumSchema", "TitledSingleSelectEnumSchema",
		"UntitledMultiSelectEnumSchema", "TitledMultiSelectEnumSchema", "LegacyTitledEnumSchema"}
	whole := compile("PrimitiveSchemaDefinition")
	missing := map[string]bool{}
	judges := map[string]*jsonschema.Schema{}
	for _, k := range kinds {
		judges[k] = compile(k)
		var def struct{ Properties map[string]any }
		if err := json.Unmarshal(member(t, b, k), &def); err != nil || len(def.Properties) == 0 {
			t.Fatalf("%s has no properties: %v", k, err)
		}
		for p := range def.Properties {
			missing[k+"."+p] = true
		}
	}
	within := 0
	for seed := range uint64(1500) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		var s struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(g.schema()), &s); err != nil {
			t.Fatal(err)
		}
		for _, raw := range s.Properties {
			inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if whole.Validate(inst) != nil {
				continue // a further spelling
			}
			within++
			for _, k := range kinds {
				if judges[k].Validate(inst) != nil {
					continue
				}
				for p := range inst.(map[string]any) {
					delete(missing, k+"."+p)
				}
			}
		}
	}
	if within < 1000 || len(missing) > 0 {
		t.Errorf("%d properties are of the subset; not made: %v", within, slices.Sorted(maps.Keys(missing)))
	}
}

// member is a definition of a schema.
func member(t *testing.T, schema []byte, name string) json.RawMessage {
	t.Helper()
	var s struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	return s.Defs[name]
}

// FuzzForm: whatever comes as a schema and as content, nothing panics, and
// what the form lets through is taken by its own whole check.
func FuzzForm(f *testing.F) {
	for seed := range uint64(12) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		f.Add(g.schema(), `{"p0":"a","p1":5}`)
	}
	f.Add(`{"$ref":"#"}`, `{}`)
	f.Add(`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}`, `{"a":[[]]}`)
	f.Add(`{"properties":{"a":{"pattern":"("}},"required":["a","a"]}`, `{"a":null}`)
	f.Add(`{"allOf":[{"properties":{"a":{"enum":[1,1.0]}}}],"properties":5}`, `{"a":1e400}`)
	f.Fuzz(func(t *testing.T, schema, content string) {
		fm, err := Parse(json.RawMessage(schema), Limits{Cost: 5000})
		if err != nil {
			return
		}
		for _, fl := range fm.Fields {
			fl.Hint()
			if fl.Title == "" {
				t.Fatalf("a field without a title: %+v", fl)
			}
		}
		fm.Unchecked()
		drafts := []Draft{fm.Start()}
		if d, err := fm.FromJSON(json.RawMessage(content)); err == nil {
			drafts = append(drafts, d)
		}
		for _, d := range drafts {
			answer, err := fm.Answer(d)
			if err != nil {
				continue
			}
			if !json.Valid(answer) {
				t.Fatalf("answer %q is no JSON", answer)
			}
			if ps := fm.CheckJSON(answer); len(ps) > 0 {
				t.Fatalf("schema %s: %s is let through and then refused: %v", schema, answer, ps)
			}
			again, err := fm.UnmarshalDraft(fm.MarshalDraft(d))
			if err != nil {
				t.Fatal(err)
			}
			secret := false
			for _, fl := range fm.Fields {
				secret = secret || fl.hides
			}
			if got := fm.Preview(again); !secret && string(got) != string(answer) {
				t.Fatalf("schema %s: kept %s, got %s", schema, answer, got)
			}
		}
	})
}

func BenchmarkProblems(b *testing.B) {
	var props []string
	for i := range 50 {
		props = append(props, fmt.Sprintf(`"f%d":{"type":"string","maxLength":20,"pattern":"^[a-z]*$"}`, i))
	}
	f, err := Parse(json.RawMessage(`{"properties":{`+strings.Join(props, ",")+`}}`), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	d := f.Start()
	for i := range d.Values {
		d.Values[i] = Value{Set: true, Text: "abc"}
	}
	f.Problems(d)
	b.ResetTimer()
	for b.Loop() {
		f.Problems(d)
	}
}
