package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"mcptasks/taskmodel"
)

// TestReadResource: server/resources, "Reading Resources", in the generations
// that mcptasks speaks; basic/transports/streamable-http (2026-07-28): the URI
// stands in Mcp-Name.
func TestReadResource(t *testing.T) {
	const openWithout = `
		C> server/discover
		S! {"jsonrpc":"2.0","id":$last,"error":{"code":-32601,"message":"Method not found"}}
		C> initialize
		S> {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}}
		C> notifications/initialized`
	openC := strings.Replace(openWithout, `"tools": {}`, `"tools": {}, "resources": {}`, 1)
	openX := strings.Replace(openX, `"tools": {}`, `"tools": {}, "resources": {}`, 1)
	const gives = `{"uri": "build://log/7", "mimeType": "text/plain", "text": "line"}`
	tests := []struct {
		name, open, talk string
		gen              taskmodel.Generation
		want, fails      string
	}{
		{"C", openC, `C> resources/read {"uri": "build://log/7", "_meta": "-"}
			S> {"result": {"contents": [` + gives + `]}}`, taskmodel.GenCore, "[" + gives + "]", ""},
		{"X", openX, `C> resources/read {"uri": "build://log/7", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
			S> {"result": {"resultType": "complete", "contents": [` + gives + `], "ttlMs": 0, "cacheScope": "public"}}`, taskmodel.GenExtension, "[" + gives + "]", ""},
		{"not found", openC, `C> resources/read
			S> {"error": {"code": -32002, "message": "Resource not found"}}`, taskmodel.GenCore, "", "Resource not found"},
		{"no contents", openC, `C> resources/read
			S! {"jsonrpc":"2.0","id":$last,"result":{"content":[]}}`, taskmodel.GenCore, "", "no list of contents"},
		{"asks first", openX, `C> resources/read
			S! {"jsonrpc":"2.0","id":$last,"result":{"resultType":"input_required","inputRequests":{}}}`, taskmodel.GenExtension, "", `wants "input_required"`},
		{"declares none", openWithout, ``, taskmodel.GenCore, "", "declares no resources"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, _ := connectScript(t, tt.gen, "stdio", tt.open, nil)
				wait := s.along(tt.talk)
				got, err := c.ReadResource(context.Background(), "build://log/7")
				wait()
				if tt.fails != "" {
					if err == nil || !strings.Contains(err.Error(), tt.fails) || !strings.HasPrefix(err.Error(), "srv") {
						t.Errorf("got %s, %v", got, err)
					}
					if none := tt.name == "declares none"; errors.Is(err, ErrUnsupported) != none {
						t.Errorf("the kind of %v", err)
					}
				} else if err != nil || string(got) != tt.want {
					t.Errorf("got %s, %v", got, err)
				}
				for _, m := range s.all("resources/read") {
					if m.out.Name != "build://log/7" || !json.Valid(m.raw) {
						t.Errorf("Mcp-Name would be %q", m.out.Name)
					}
				}
				s.quiet()
			})
		})
	}
}
