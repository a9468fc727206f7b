package form

import (
	"encoding/json"
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
			secrets, rest, err := SplitSecrets(json.RawMessage(tc.schema), json.RawMessage(tc.content))
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
	if _, _, err := SplitSecrets(json.RawMessage(`{`), json.RawMessage(`{}`)); err == nil {
		t.Error("a broken schema hides nothing without a word")
	}
}
