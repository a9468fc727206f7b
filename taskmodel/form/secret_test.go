package form

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What is secret is found wherever a schema can say so, and everything else
// stays as it was.
func TestSecrets(t *testing.T) {
	const hidden = "pin-1"
	for name, tc := range map[string]struct{ schema, content, rest, shown string }{
		"a password": {`{"properties":{"a":{"type":"string"},"pin":{"type":"string","format":"password"}}}`,
			`{"a":"x","pin":"pin-1"}`, `{"a":"x"}`, `{"a":"x","pin":"***"}`},
		"to be written only": {`{"properties":{"pin":{"type":"integer","writeOnly":true}}}`, `{"pin":4711}`, `{}`, `{"pin":"***"}`},
		"or null":            {`{"properties":{"pin":{"anyOf":[{"type":"string","format":"password"},{"type":"null"}]}}}`, `{"pin":"pin-1"}`, `{}`, `{"pin":"***"}`},
		"behind a reference": {`{"$defs":{"p":{"type":"string","format":"password"}},"properties":{"pin":{"$ref":"#/$defs/p"}}}`, `{"pin":"pin-1"}`, `{}`, `{"pin":"***"}`},
		"within an object":   {`{"properties":{"b":1,"login":{"type":"object","properties":{"pin":{"type":"string","format":"password"}}}}}`, `{"login":{"pin":"pin-1"}}`, `{}`, `{"login":"***"}`},
		"in a list":          {`{"properties":{"pins":{"type":"array","items":{"type":"string","format":"password"}}}}`, `{"pins":["pin-1"]}`, `{}`, `{"pins":"***"}`},
		"a loop":             {`{"$defs":{"p":{"properties":{"p":{"$ref":"#/$defs/p"}}}},"properties":{"a":{"$ref":"#/$defs/p"}}}`, `{"a":{"p":{}}}`, `{"a":{"p":{}}}`, `{"a":{"p":{}}}`},
		"nothing":            {`{"properties":{"password":{"type":"string"}}}`, `{"password": 1.50}`, `{"password": 1.50}`, `{"password": 1.50}`},
		"no object":          {`{"properties":{"pin":{"type":"string","format":"password"}}}`, `[1]`, `[1]`, `[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			secrets, rest, err := SplitSecrets(json.RawMessage(tc.schema), json.RawMessage(tc.content), Limits{})
			if err != nil || string(rest) != tc.rest || (len(secrets) > 0) != (tc.rest != tc.content) {
				t.Errorf("%v, %s, %v", secrets, rest, err)
			}
			f, err := Parse(json.RawMessage(tc.schema), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Hidden(json.RawMessage(tc.content)); string(got) != tc.shown {
				t.Errorf("shown as %s", got)
			}
			// Nor is it kept where the answer is being written as JSON.
			for _, raw := range []string{tc.content, strings.TrimSuffix(tc.content, "}")} {
				kept := f.MarshalDraft(Draft{Values: f.Start().Values, Raw: &raw})
				if f.hasSecrets() && strings.Contains(string(kept), hidden) {
					t.Errorf("the draft %q is kept as %s", raw, kept)
				}
			}
		})
	}
	if _, _, err := SplitSecrets(json.RawMessage(`{`), json.RawMessage(`{}`), Limits{}); err == nil {
		t.Error("a broken schema hides nothing without a word")
	}
}

// A bound that a person sets lower makes no secret plain; one that is set
// higher finds the secrets of what is shown then.
func TestSecretsWithOtherLimits(t *testing.T) {
	schema := func(n int) json.RawMessage {
		var b strings.Builder
		b.WriteString(`{"type":"object","properties":{"pin":{"type":"string","format":"password"}`)
		for i := 1; i < n; i++ {
			fmt.Fprintf(&b, `,"f%d":{"type":"string"}`, i)
		}
		return json.RawMessage(b.String() + "}}")
	}
	content := json.RawMessage(`{"pin":"1234567","f1":"x"}`)
	for _, tc := range []struct {
		fields int
		limits Limits
		found  bool
	}{
		{50, Limits{}, true}, {50, Limits{Fields: 1, Bytes: 10, Depth: 1}, true}, {300, Limits{}, false}, {300, Limits{Fields: 300}, true},
	} {
		s := schema(tc.fields)
		_, rest, err := SplitSecrets(s, content, tc.limits)
		if (err == nil) != tc.found || tc.found != (string(rest) == `{"f1":"x"}`) || Asks(s, tc.limits) != tc.found {
			t.Errorf("%d fields with %+v: %s %v", tc.fields, tc.limits, rest, err)
		}
		if shown := string(Shown(s, content, tc.limits)); strings.Contains(shown, "1234567") == tc.found {
			t.Errorf("%d fields with %+v: shown as %s", tc.fields, tc.limits, shown)
		}
	}
}
