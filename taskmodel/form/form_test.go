package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func parse(t *testing.T, schema string) *Form {
	t.Helper()
	f, err := Parse(json.RawMessage(schema), Limits{})
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return f
}

// only parses a schema of one property named v.
func only(t *testing.T, prop string, required bool) (*Form, Field) {
	t.Helper()
	req := ""
	if required {
		req = `,"required":["v"]`
	}
	f := parse(t, `{"type":"object","properties":{"v":`+prop+`}`+req+`}`)
	return f, f.Fields[0]
}

func set(f *Form, v Value) Draft {
	d := f.Start()
	v.Set = true
	d.Values[0] = v
	return d
}

// I3: a required integer 1..3 (2025-11-25 elicitation, NumberSchema).
func TestI3_RequiredInteger(t *testing.T) {
	f, fl := only(t, `{"type":"integer","minimum":1,"maximum":3}`, true)
	if fl.Kind != Integer || !fl.Required || fl.Hint() != "1 to 3" {
		t.Fatalf("field %+v, hint %q", fl, fl.Hint())
	}
	if ps := f.Problems(f.Start()); len(ps) != 1 || !ps[0].Missing || ps[0].Message != "is required" {
		t.Fatalf("unset: %v", ps)
	}
	if m := f.Missing(f.Start()); len(m) != 1 || m[0] != "v" {
		t.Fatalf("Missing: %v", m)
	}
	for text, want := range map[string]string{
		"1": "", "3": "", " 2 ": "", "1e0": "", "2.0": "",
		"0": "must be at least 1", "4": "must be at most 3", "2.5": "must be a whole number",
		"2x": "must be a whole number", "": "must be a whole number", "two": "must be a whole number",
		"1e999999999": "is too large a number to handle", "0x2": "must be a whole number", "+2": "must be a whole number", "02": "must be a whole number",
	} {
		got := ""
		ps := f.Problems(set(f, Value{Text: text}))
		if len(ps) > 0 {
			got = ps[0].Message
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	a, err := f.Answer(set(f, Value{Text: "2.0"}))
	if err != nil || string(a) != `{"v":2}` {
		t.Errorf("Answer = %s, %v", a, err)
	}
	var b *Blocked
	if _, err := f.Answer(set(f, Value{Text: "9"})); !errors.As(err, &b) || err.Error() != "v must be at most 3" {
		t.Errorf("blocked: %v", err)
	}
}

func TestExactDigits(t *testing.T) {
	f, _ := only(t, `{"type":"integer","default":9007199254740993}`, false)
	if a, err := f.Answer(f.Start()); err != nil || string(a) != `{"v":9007199254740993}` {
		t.Errorf("default: %s, %v", a, err)
	}
	f, _ = only(t, `{"type":"number"}`, false)
	if a, err := f.Answer(set(f, Value{Text: "0.1000000000000000055511151231257827"})); err != nil || string(a) != `{"v":0.1000000000000000055511151231257827}` {
		t.Errorf("number: %s, %v", a, err)
	}
	f, _ = only(t, `{"type":"integer","maximum":9007199254740993}`, false)
	if _, err := f.Answer(set(f, Value{Text: "9007199254740994"})); err == nil {
		t.Error("a bound beyond the doubles is not kept")
	}
}

// I5: enums in every spelling give a select that sends the const.
func TestI5_EnumSpellings(t *testing.T) {
	for name, c := range map[string]struct{ prop, titles, second string }{
		"enum":               {`{"type":"string","enum":["a","b"]}`, "a|b", `"b"`},
		"enum without type":  {`{"enum":["a","b"]}`, "a|b", `"b"`},
		"enumNames":          {`{"type":"string","enum":["a","b"],"enumNames":["A!","B!"]}`, "A!|B!", `"b"`},
		"enumNames shorter":  {`{"type":"string","enum":["a","b"],"enumNames":["A!"]}`, "A!|b", `"b"`},
		"enumNames longer":   {`{"type":"string","enum":["a","b"],"enumNames":["A!","B!","C!"]}`, "A!|B!", `"b"`},
		"oneOf":              {`{"type":"string","oneOf":[{"const":"a","title":"A!"},{"const":"b","title":"B!"}]}`, "A!|B!", `"b"`},
		"anyOf, no type":     {`{"anyOf":[{"const":"a","title":"A!"},{"const":"b"}]}`, "A!|b", `"b"`},
		"oneOf of enums":     {`{"oneOf":[{"enum":["a"]},{"enum":["b"],"title":"B!"}]}`, "a|B!", `"b"`},
		"local ref":          {`{"$ref":"#/$defs/c"}`, "red|blue", `"blue"`},
		"ref in allOf":       {`{"allOf":[{"$ref":"#/$defs/c"}],"title":"Colour"}`, "red|blue", `"blue"`},
		"numbers":            {`{"type":"integer","enum":[1,2]}`, "1|2", `2`},
		"repeats":            {`{"enum":["a","b","a"]}`, "a|b", `"b"`},
		"optional with null": {`{"anyOf":[{"enum":["a","b"]},{"type":"null"}],"default":null}`, "a|b", `"b"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(t, `{"type":"object","properties":{"v":`+c.prop+`},"$defs":{"c":{"type":"string","enum":["red","blue"]}}}`)
			fl := f.Fields[0]
			var titles []string
			for _, o := range fl.Options {
				titles = append(titles, o.Title)
			}
			if fl.Kind != Choice || strings.Join(titles, "|") != c.titles {
				t.Fatalf("%s %v", fl.Kind, titles)
			}
			a, err := f.Answer(set(f, Value{Picked: []int{1}}))
			if err != nil || string(a) != `{"v":`+c.second+`}` {
				t.Errorf("%s, %v (notes %v)", a, err, f.Notes)
			}
		})
	}
}

// I6: arrays of enum are a multi-select with bounds and a default.
func TestI6_MultiSelect(t *testing.T) {
	for name, items := range map[string]string{
		"enum":  `{"type":"string","enum":["a","b","c"]}`,
		"anyOf": `{"anyOf":[{"const":"a","title":"A!"},{"const":"b","title":"B!"},{"const":"c","title":"C!"}]}`,
		"oneOf": `{"oneOf":[{"const":"a","title":"A!"},{"const":"b","title":"B!"},{"const":"c","title":"C!"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			f, fl := only(t, `{"type":"array","items":`+items+`,"minItems":1,"maxItems":2,"default":["b"]}`, false)
			if fl.Kind != Multi || len(fl.Options) != 3 || fl.Hint() != "1 to 2" {
				t.Fatalf("%+v %q", fl, fl.Hint())
			}
			for _, c := range []struct {
				picked []int
				want   string
			}{
				{[]int{1}, `{"v":["b"]}`}, {[]int{0, 2}, `{"v":["a","c"]}`},
				{nil, "v needs at least 1, 0 chosen"}, {[]int{0, 1, 2}, "v may have at most 2, 3 chosen"},
			} {
				a, err := f.Answer(set(f, Value{Picked: c.picked}))
				got := string(a)
				if err != nil {
					got = err.Error()
				}
				if got != c.want {
					t.Errorf("%v: %s, want %s", c.picked, got, c.want)
				}
			}
			if a, _ := f.Answer(f.Start()); string(a) != `{"v":["b"]}` {
				t.Errorf("default: %s", a)
			}
		})
	}
}

// I7: what is no field is shown as unsupported, blocks accept while required,
// and can be written as JSON.
func TestI7_Unsupported(t *testing.T) {
	for name, c := range map[string]struct{ prop, good, bad string }{
		"object":        {`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":1}`, `{"a":"x"}`},
		"several types": {`{"type":["string","integer"]}`, `5`, `true`},
		"union":         {`{"anyOf":[{"type":"string"},{"type":"object"}]}`, `"x"`, `1`},
		"nested list":   {`{"type":"array","items":{"type":"array"}}`, `[[1]]`, `[1]`},
		"tuple":         {`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`, `["a",1]`, `[1,"a"]`},
		"no type":       {`{}`, `{"any":"thing"}`, ``},
		"odd type":      {`{"type":"file"}`, `"x"`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			f, fl := only(t, c.prop, true)
			if fl.Kind != JSON || fl.Unsupported == "" {
				t.Fatalf("%+v", fl)
			}
			if _, err := f.Answer(f.Start()); err == nil {
				t.Error("accept is open while it is unset")
			}
			if a, err := f.Answer(set(f, Value{Text: c.good})); err != nil || string(a) != `{"v":`+c.good+`}` {
				t.Errorf("good: %s, %v", a, err)
			}
			if _, err := f.Answer(set(f, Value{Text: c.bad})); err == nil {
				t.Error("bad is let through")
			}
			if _, err := f.Answer(set(f, Value{Text: "{"})); err == nil {
				t.Error("broken JSON is let through")
			}
		})
	}
}

// I8: defaults are preset and sent, a cleared optional field is left out,
// formats are checked.
func TestI8_DefaultsAndFormats(t *testing.T) {
	f := parse(t, `{"type":"object","properties":{
		"z":{"type":"string","default":"x"},"n":{"type":"number","default":1.50},
		"b":{"type":"boolean","default":false},"e":{"enum":["p","q"],"default":"q"},"o":{"type":"string"}},"required":["z"]}`)
	d := f.Start()
	if a, err := f.Answer(d); err != nil || string(a) != `{"z":"x","n":1.50,"b":false,"e":"q"}` {
		t.Errorf("defaults: %s, %v", a, err)
	}
	d.Values[1], d.Values[4] = Value{}, Value{Set: true}
	if a, err := f.Answer(d); err != nil || string(a) != `{"z":"x","b":false,"e":"q","o":""}` {
		t.Errorf("one left out, one empty: %s, %v", a, err)
	}
	for _, c := range []struct {
		format, text string
		ok           bool
	}{
		{"email", "a@example.org", true}, {"email", "a@", false}, {"email", "A <a@example.org>", false},
		{"uri", "https://example.org/x", true}, {"uri", "example.org", false}, {"uri", "mailto:a@b", true},
		{"date", "2026-12-01", true}, {"date", "2026-13-01", false}, {"date", "2026-12-01T00:00:00Z", false},
		{"date-time", "2026-12-01T15:04:05Z", true}, {"date-time", "2026-12-01T15:04:05+02:00", true}, {"date-time", "2026-12-01", false}, {"date-time", "2026-12-01T15:04:05", false},
		{"colour", "anything", true},
	} {
		f, fl := only(t, `{"type":"string","format":"`+c.format+`"}`, false)
		ps := f.Problems(set(f, Value{Text: c.text}))
		if (len(ps) == 0) != c.ok {
			t.Errorf("%s %q: %v", c.format, c.text, ps)
		}
		if fl.Hint() == "" {
			t.Errorf("%s has no hint", c.format)
		}
	}
}

func TestTextRules(t *testing.T) {
	f, fl := only(t, `{"type":"string","minLength":2,"maxLength":3,"pattern":"^\\u00e4?[a-z]+$"}`, false)
	if fl.Hint() == "" {
		t.Error("no hint")
	}
	for text, want := range map[string]string{
		"ab": "", "äab": "", "a": "needs at least 2 characters, has 1", "abcd": "may have at most 3 characters, has 4", "AB": `must match ^\u00e4?[a-z]+$`,
	} {
		got := ""
		if ps := f.Problems(set(f, Value{Text: text})); len(ps) > 0 {
			got = ps[0].Message
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestListOfSingles(t *testing.T) {
	f, fl := only(t, `{"type":"array","items":{"type":"integer"},"minItems":1,"uniqueItems":true}`, true)
	if fl.Kind != List || fl.Item != Integer {
		t.Fatalf("%+v", fl)
	}
	for text, want := range map[string]string{
		"1\n\n 2 ": `{"v":[1,2]}`, "": "v needs at least 1, 0 given", "1\nx": "v line 2 must be a whole number", "1\n1": "v has the same item twice (1 and 2)",
	} {
		a, err := f.Answer(set(f, Value{Text: text}))
		got := string(a)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestNullableFields(t *testing.T) {
	f := parse(t, `{"properties":{"a":{"anyOf":[{"type":"integer","minimum":2},{"type":"null"}],"default":null,"title":"A"},"b":{"type":["string","null"]}}}`)
	if f.Fields[0].Kind != Integer || !f.Fields[0].Nullable || f.Fields[0].Title != "A" || f.Fields[1].Kind != Text || !f.Fields[1].Nullable {
		t.Fatalf("%+v", f.Fields)
	}
	if a, err := f.Answer(f.Start()); err != nil || string(a) != `{}` {
		t.Errorf("%s, %v", a, err)
	}
	if ps := f.Problems(set(f, Value{Text: "1"})); len(ps) != 1 || ps[0].Message != "must be at least 2" {
		t.Errorf("%v", ps)
	}
	d, err := f.FromJSON(json.RawMessage(`{"a":null,"b":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := f.Answer(d); err != nil || string(a) != `{"a":null,"b":"x"}` {
		t.Errorf("null from JSON: %s, %v", a, err)
	}
}

func TestFromJSON(t *testing.T) {
	f := parse(t, `{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"integer"},"e":{"enum":["a","b"]},"m":{"type":"array","items":{"enum":["x","y"]}},"o":{"type":"object"}}}`)
	for _, in := range []string{
		`{"s":"t","n":9007199254740993,"e":"b","m":["x","y"],"o":{"k":[1,2]}}`,
		`{"extra":{"b":1,"a":2}}`,
		`{"s":"","m":[]}`,
	} {
		d, err := f.FromJSON(json.RawMessage(in))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Answer(d); err != nil || string(got) != in {
			t.Errorf("%s came back as %s, %v", in, got, err)
		}
		again, err := f.UnmarshalDraft(f.MarshalDraft(d))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Preview(again); string(got) != in {
			t.Errorf("kept: %s came back as %s", in, got)
		}
	}
	d, err := f.FromJSON(json.RawMessage(`{"s":5,"e":"z","m":["y","x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Preview(d); string(got) != `{"s":5,"e":"z","m":["y","x"]}` {
		t.Errorf("what a field cannot show is lost: %s", got)
	}
	if ps := f.Problems(d); len(ps) != 2 || ps[0].Message != "must be text, is a number" || ps[1].Message != `must be one of "a", "b"` {
		t.Errorf("%v", ps)
	}
	for _, bad := range []string{`[1]`, `{`, `{"a":1} x`, ``, `{"a":}`} {
		if _, err := f.FromJSON(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if _, err := f.FromJSON(json.RawMessage("{\n  \"a\": x\n}")); err == nil || !strings.Contains(err.Error(), "line 2, column 8") {
		t.Errorf("place of the fault: %v", err)
	}
}

func TestDraftsOutliveTheProcess(t *testing.T) {
	f := parse(t, `{"properties":{"n":{"type":"integer"},"pw":{"type":"string","format":"password"},"e":{"enum":["a","b"]}}}`)
	d := f.Start()
	d.Values[0] = Value{Set: true, Text: "12x"}
	d.Values[1] = Value{Set: true, Text: "hunter2"}
	d.Values[2] = Value{Set: true, Picked: []int{1}}
	raw := f.MarshalDraft(d)
	if strings.Contains(string(raw), "hunter2") {
		t.Error("a secret is kept")
	}
	g := parse(t, `{"properties":{"e":{"enum":["b","a","c"]},"n":{"type":"integer"}}}`)
	e, err := g.UnmarshalDraft(raw)
	if err != nil || e.Values[1].Text != "12x" || len(e.Values[0].Picked) != 1 || e.Values[0].Picked[0] != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := g.UnmarshalDraft(json.RawMessage(`nonsense`)); err == nil || len(e.Values) != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	s := `{"e": `
	d.Raw = &s
	if back, _ := f.UnmarshalDraft(f.MarshalDraft(d)); back.Raw == nil || *back.Raw != s {
		t.Error("half-written JSON is lost")
	}
	c := d.Clone()
	c.Values[2].Picked[0] = 0
	if d.Values[2].Picked[0] != 1 || !d.Values[2].Equal(Value{Set: true, Picked: []int{1}}) {
		t.Error("a clone shares")
	}
}

// A hostile schema is bounded or refused, a broken constraint disables itself
// and says so.
func TestHostileSchemas(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"properties":{`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"f%d":{"type":"string"}`, i)
		}
		return b.String() + `}}`
	}
	for name, schema := range map[string]string{
		"depth":      strings.Repeat(`{"properties":{"a":`, 100) + `{}` + strings.Repeat(`}}`, 100),
		"deep lists": strings.Repeat(`[`, 100000),
		"size":       `{"title":"` + strings.Repeat("x", 300<<10) + `"}`,
		"fields":     many(201),
		"number":     `{"properties":{"a":{"type":"number","minimum":1e999999999}}}`,
		"no JSON":    `{"a"`,
		"no schema":  `5`,
		"false":      `false`,
	} {
		f, err := Parse(json.RawMessage(schema), Limits{})
		if err == nil {
			t.Errorf("%s: taken: %+v", name, f)
			continue
		}
		raw := RawOnly(err)
		d := raw.Start()
		*d.Raw = `{"a":1}`
		if a, err := raw.Answer(d); err != nil || string(a) != `{"a":1}` || raw.RawOnly == "" || raw.Unchecked() == "" {
			t.Errorf("%s: no way out: %s, %v", name, a, err)
		}
	}
	for name, c := range map[string]struct{ schema, note string }{
		"remote ref":     {`{"properties":{"v":{"$ref":"https://evil.example/s.json"}}}`, "nothing is fetched"},
		"file ref":       {`{"properties":{"v":{"$ref":"file:///etc/passwd"}}}`, "nothing is fetched"},
		"ref to nowhere": {`{"properties":{"v":{"$ref":"#/$defs/x"}}}`, "there is no"},
		"ref cycle":      {`{"properties":{"v":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "leads back"},
		"self ref":       {`{"$ref":"#","properties":{"v":{}}}`, "leads back"},
		"cycle by allOf": {`{"properties":{"v":{"$ref":"#/$defs/a"}},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, "leads back"},
		"bad regex":      {`{"properties":{"v":{"type":"string","pattern":"(?=x)"}}}`, "regular expression"},
		"huge regex":     {`{"properties":{"v":{"type":"string","pattern":"` + strings.Repeat("a", 5000) + `"}}}`, "longer than"},
		"regex bomb":     {`{"properties":{"v":{"type":"string","pattern":"((a{900}){900}){900}"}}}`, "regular expression"},
		"minLength text": {`{"properties":{"v":{"type":"string","minLength":"5"}}}`, "no count"},
		"minimum text":   {`{"properties":{"v":{"type":"number","minimum":"5"}}}`, "no number"},
		"bad type":       {`{"properties":{"v":{"type":"strnig"}}}`, "no type"},
		"bad required":   {`{"properties":{"v":{}},"required":"v"}`, "no list of names"},
		"required true":  {`{"properties":{"v":{"required":true}}}`, "instead of in a list"},
		"odd dialect":    {`{"$schema":"https://evil.example/meta","properties":{"v":{}}}`, "not known"},
		"no sub-schema":  {`{"properties":{"v":[]}}`, "no schema"},
		"empty enum":     {`{"properties":{"v":{"enum":[]}}}`, "no list of values"},
		"empty anyOf":    {`{"properties":{"v":{"anyOf":[]}}}`, "no list of schemas"},
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(t, c.schema)
			if !strings.Contains(strings.Join(f.Notes, "\n"), c.note) {
				t.Errorf("notes %q, want %q", f.Notes, c.note)
			}
			if u := f.Unchecked(); u != "" {
				t.Errorf("unchecked: %s (%v)", u, f.broken)
			}
			if f.Problems(f.Start()); len(f.Fields) != 1 {
				t.Errorf("fields: %+v", f.Fields)
			}
		})
	}
	t.Run("billion laughs", func(t *testing.T) {
		var b strings.Builder
		b.WriteString(`{"properties":{"v":{"$ref":"#/$defs/d0"}},"$defs":{`)
		for i := range 60 {
			fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
		}
		b.WriteString(`"d60":{"type":"string"}}}`)
		f := parse(t, b.String())
		if f.Unchecked() == "" {
			t.Error("it is checked")
		}
		if ps := f.Problems(f.Start()); len(ps) != 0 {
			t.Error(ps)
		}
	})
	t.Run("recursion is fine", func(t *testing.T) {
		f := parse(t, `{"type":"object","properties":{"v":{"$ref":"#/$defs/tree"}},"$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`)
		if len(f.Notes) > 0 || f.Unchecked() != "" {
			t.Errorf("%v %s", f.Notes, f.Unchecked())
		}
		if _, err := f.Answer(set(f, Value{Text: `{"kids":[{"kids":[{"kids":5}]}]}`})); err == nil || !strings.Contains(err.Error(), "v.kids[0].kids[0].kids") {
			t.Errorf("%v", err)
		}
	})
}

func TestOtherDialects(t *testing.T) {
	f := parse(t, `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://x.example/s","type":"object","properties":{"v":{"$ref":"#/definitions/n"},"t":{"type":"array","items":[{"type":"string"}]}},"definitions":{"n":{"type":"number","exclusiveMinimum":0}}}`)
	if u := f.Unchecked(); u != "" || f.Fields[0].Hint() != "more than 0" {
		t.Errorf("%s %v, %q", u, f.broken, f.Fields[0].Hint())
	}
	f = parse(t, `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"v":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`)
	if ps := f.Problems(set(f, Value{Text: "0"})); f.Unchecked() != "" || len(ps) != 1 || ps[0].Message != "must be more than 0" {
		t.Errorf("%v %v", ps, f.broken)
	}
	f = parse(t, `{"type":"object","properties":{"v":{"type":"array","items":[{"type":"string"}],"additionalItems":false}}}`)
	if _, err := f.Answer(set(f, Value{Text: `["a","b"]`})); err == nil || f.Unchecked() != "" {
		t.Errorf("old tuple in the new dialect: %v %v", err, f.broken)
	}
	f = parse(t, `{"properties":{"v":{"$ref":"#/components/schemas/S"}},"components":{"schemas":{"S":{"type":"string","pattern":"(?=x)","enum":["a"]}}}}`)
	if f.Unchecked() != "" || f.Fields[0].Kind != Choice {
		t.Errorf("%v %+v", f.broken, f.Fields[0])
	}
}

func TestWholeAnswerRules(t *testing.T) {
	f := parse(t, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"dependentRequired":{"a":["b"]},"additionalProperties":false}`)
	if ps := f.Problems(set(f, Value{Text: "x"})); len(ps) != 1 || ps[0].Field != 1 || ps[0].Message != "is required when a is given" {
		t.Errorf("%+v", ps)
	}
	d, _ := f.FromJSON(json.RawMessage(`{"c":1}`))
	if ps := f.Problems(d); len(ps) != 1 || ps[0].Field != -1 || ps[0].String() != "c is not known to the schema" {
		t.Errorf("%+v", ps)
	}
}

func TestValidateAnswer(t *testing.T) {
	schema := `{"type":"object","properties":{"version":{"type":"string","pattern":"^v"},"n":{"type":"integer","maximum":50},"r":{"type":"array","items":{"enum":["eu","us"]}}},"required":["version","go"]}`
	var got []string
	for _, p := range ValidateAnswer(json.RawMessage(schema), json.RawMessage(`{"version":"2","n":"x","r":["eu","mars"]}`), Limits{}) {
		got = append(got, p.String())
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"version must match ^v", "n must be a whole number, is text", `r[1] must be one of "eu", "us"`, "go is required"} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
	if ps := ValidateAnswer(json.RawMessage(schema), json.RawMessage(`{"version":"v2","go":true}`), Limits{}); len(ps) != 0 {
		t.Error(ps)
	}
	for _, bad := range []string{``, `[]`, `{`, `{"version":1e999999999}`} {
		if ps := ValidateAnswer(json.RawMessage(schema), json.RawMessage(bad), Limits{}); len(ps) == 0 {
			t.Errorf("%q is fine", bad)
		}
	}
	if ps := ValidateAnswer(nil, json.RawMessage(`{"x":1}`), Limits{}); len(ps) != 0 {
		t.Error(ps)
	}
}

func TestParseAssignments(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"service":{"type":"string"},"n":{"type":"integer"},"x":{"type":"number"},"on":{"type":"boolean"},"env":{"enum":["prod",2],"enumNames":["Production"]},"tags":{"type":"array","items":{"type":"string"}},"regions":{"type":"array","items":{"enum":["eu","us"]}},"o":{"type":"object"}}}`)
	for _, c := range []struct {
		in   []string
		want string
	}{
		{nil, `{}`},
		{[]string{"service=5"}, `{"service":"5"}`},
		{[]string{"n=9007199254740993", "x=1.50", "service=a=b"}, `{"service":"a=b","n":9007199254740993,"x":1.50}`},
		{[]string{"on=true"}, `{"on":true}`},
		{[]string{"env=prod"}, `{"env":"prod"}`}, {[]string{"env=Production"}, `{"env":"prod"}`}, {[]string{"env=2"}, `{"env":2}`},
		{[]string{"tags=a", "tags=b"}, `{"tags":["a","b"]}`}, {[]string{"regions=us"}, `{"regions":["us"]}`},
		{[]string{`o={"k": 1}`}, `{"o":{"k":1}}`}, {[]string{`o:={"k":1}`, `tags:=[]`}, `{"tags":[],"o":{"k":1}}`},
		{[]string{"other=1", "third:=2"}, `{"other":"1","third":2}`},
		{[]string{"service="}, `{"service":""}`},
		{[]string{"n=x"}, `error: n must be a whole number, "x" is none`},
		{[]string{"on=yes"}, `error: on must be true or false, not "yes"`},
		{[]string{"n:=x"}, `error: n:= wants JSON`},
		{[]string{"service"}, `error: "service" is neither`},
		{[]string{"=x"}, `error: "=x" has no key`}, {[]string{":=1"}, `error: ":=1" has no key`},
		{[]string{"n=1", "n=2"}, `error: n is given twice`}, {[]string{"tags:=[]", "tags=a"}, `error: tags is given twice`},
		{[]string{"o=x"}, `error: o is not a single value: write o:=JSON`},
	} {
		got, err := ParseAssignments(schema, c.in, Limits{})
		s := string(got)
		if err != nil {
			s = "error: " + err.Error()
		}
		if s != c.want && !(strings.HasPrefix(c.want, "error") && strings.HasPrefix(s, c.want)) {
			t.Errorf("%v: %s, want %s", c.in, s, c.want)
		}
	}
}

// What is refused by the defaults is a form where more is allowed, and says
// which setting allows it.
func TestLimitsAreSettable(t *testing.T) {
	var fields, choices strings.Builder
	for i := range 300 {
		fmt.Fprintf(&fields, `,"f%d":{"type":"string"}`, i)
	}
	for i := range 1500 {
		fmt.Fprintf(&choices, `,"c%d"`, i)
	}
	for name, c := range map[string]struct {
		schema  string
		more    Limits
		setting string
	}{
		"depth":   {strings.Repeat(`{"properties":{"a":`, 50) + `{}` + strings.Repeat(`}}`, 50), Limits{Depth: 101}, "limits.schema_depth"},
		"size":    {`{"title":"` + strings.Repeat("x", 300<<10) + `","properties":{"a":{"type":"string"}}}`, Limits{Bytes: 1 << 20}, "limits.schema)"},
		"fields":  {`{"properties":{` + fields.String()[1:] + `}}`, Limits{Fields: 300}, "limits.schema_fields"},
		"choices": {`{"properties":{"a":{"enum":[` + choices.String()[1:] + `]}}}`, Limits{Options: 1500}, "limits.schema_choices"},
	} {
		f, err := Parse(json.RawMessage(c.schema), Limits{})
		why := fmt.Sprint(err)
		if err == nil && len(f.Fields) == 1 {
			why = f.Fields[0].Unsupported
		}
		if !strings.Contains(why, c.setting) {
			t.Errorf("%s: %s", name, why)
		}
		f, err = Parse(json.RawMessage(c.schema), c.more)
		if err != nil || len(f.Fields) == 0 || f.Fields[0].Kind == JSON && name == "choices" {
			t.Errorf("%s with more allowed: %v %+v", name, err, f)
		}
	}
}
