package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestXHeaderAnnotations(t *testing.T) {
	// basic/transports/streamable-http, "Schema Extension".
	prop := func(p string) string { return `{"type":"object","properties":{` + p + `}}` }
	cases := []struct {
		name, schema string
		paths        string // "" with an error
		err          string
	}{
		{"none", prop(`"a":{"type":"string"}`), "[]", ""},
		{"one", prop(`"a":{"type":"string","x-mcp-header":"Region"}`), "[Region:a]", ""},
		{"nested", prop(`"o":{"type":"object","properties":{"a":{"type":"integer","x-mcp-header":"A"}}}`), "[A:o.a]", ""},
		{"the word as a value", prop(`"a":{"type":"string","default":"x-mcp-header","enum":["x-mcp-header"]}`), "[]", ""},
		{"empty", prop(`"a":{"type":"string","x-mcp-header":""}`), "", "empty"},
		{"no string", prop(`"a":{"type":"string","x-mcp-header":7}`), "", "empty or no string"},
		{"no token", prop(`"a":{"type":"string","x-mcp-header":"My Region"}`), "", "no HTTP field name"},
		{"a line feed", prop(`"a":{"type":"string","x-mcp-header":"A\r\nX: 1"}`), "", "no HTTP field name"},
		{"twice", prop(`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`), "", "used twice"},
		{"number", prop(`"a":{"type":"number","x-mcp-header":"A"}`), "", `type "number"`},
		{"object", prop(`"a":{"type":"object","x-mcp-header":"A"}`), "", `type "object"`},
		{"no type", prop(`"a":{"x-mcp-header":"A"}`), "", `type ""`},
		{"the root", `{"type":"object","x-mcp-header":"A"}`, "", "on the schema itself"},
		{"in items", prop(`"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), "", `under "items"`},
		{"in oneOf", prop(`"a":{"oneOf":[{"type":"string","x-mcp-header":"A"}]}`), "", `under "oneOf"`},
		{"in $defs", `{"type":"object","$defs":{"r":{"type":"string","x-mcp-header":"A"}}}`, "", `under "$defs"`},
		{"in if", `{"type":"object","if":{"properties":{"r":{"type":"string","x-mcp-header":"A"}}}}`, "", `under "if"`},
		{"too deep", strings.Repeat(`{"properties":{"a":`, 70) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat("}}", 70), "", "too deeply"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			hs, err := paramHeaders(json.RawMessage(tc.schema))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("err = %v, want %q", err, tc.err)
				}
				return
			}
			got := []string{}
			for _, h := range hs {
				got = append(got, h.name+":"+strings.Join(h.path, "."))
			}
			if err != nil || fmt.Sprint(got) != tc.paths {
				t.Errorf("%v, %v; want %s", got, err, tc.paths)
			}
		})
	}
}

func TestXHeaderValues(t *testing.T) {
	// "Value Encoding", with the specification's own examples.
	hs := []paramHeader{{name: "V", path: []string{"o", "v"}}}
	cases := []struct{ value, want string }{
		{`"us-west1"`, "us-west1"},
		{`"Hello, 世界"`, "=?base64?SGVsbG8sIOS4lueVjA==?="},
		{`" padded "`, "=?base64?IHBhZGRlZCA=?="},
		{`"line1\nline2"`, "=?base64?bGluZTEKbGluZTI=?="},
		{`"=?base64?literal?="`, "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
		{`"\r\nX-Evil: 1"`, "=?base64?DQpYLUV2aWw6IDE=?="},
		{`42`, "42"}, {`-7`, "-7"}, {`42.0`, "42"}, {`1e3`, "1000"}, {`9007199254740991`, "9007199254740991"},
		{`true`, "true"}, {`false`, "false"}, {`""`, ""},
		{`null`, "absent"}, {`{}`, "absent"}, {`[1]`, "absent"},
	}
	for _, tc := range cases {
		got, ok := mirrorArguments(hs, json.RawMessage(`{"o":{"v":`+tc.value+`}}`))["Mcp-Param-V"]
		if !ok {
			got = "absent"
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.value, got, tc.want)
		}
	}
	if got := mirrorArguments(hs, json.RawMessage(`{"v":1}`)); got != nil {
		t.Errorf("a missing argument was mirrored: %v", got)
	}
}

func TestXInvalidToolsAreLeftOutOverHTTP(t *testing.T) {
	// server/tools, "x-mcp-header": over HTTP the tool MUST be excluded and a
	// warning SHOULD name it; other transports MAY ignore the annotation.
	for kind, want := range map[string][]string{"http": {"good"}, "stdio": {"bad", "good"}} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, e := connectX(t, kind, nil)
				done := s.along(`
					C> tools/list
					S> {"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}},{"name":"good","inputSchema":{"type":"object"}}]}}`)
				tools, err := c.Tools(t.Context())
				done()
				names := map[string]bool{}
				for _, tool := range tools {
					names[tool.Name] = true
				}
				if got := slices.Sorted(maps.Keys(names)); err != nil || !slices.Equal(got, want) {
					t.Errorf("%v, %v", got, err)
				}
				if told := strings.Contains(fmt.Sprint(e.lines()), `"bad" is left out`); told != (kind == "http") {
					t.Errorf("told %v: %v", told, e.lines())
				}
			})
		})
	}
}
