package cli

import (
	"encoding/json"
	"testing"
)

func TestHistoryIsSaidInWords(t *testing.T) {
	for _, c := range []struct{ event, detail, want string }{
		{"created", `{"status":"working","source":"create","tool":"build"}`, "build  working  source=create"},
		{"status", `{"from":"working","status":"completed","statusMessage":"done","source":"push"}`, "working → completed  done  source=push"},
		{"status", `{"status":"working"}`, "working"},
		{"question", `{"key":"k","kind":"form","message":"Go on?","method":"elicitation/create","round":1}`, "Go on?  key=k  kind=form  round=1"},
		{"answer", `{"action":"accept","fields":["a","b"],"key":"k"}`, "accept  fields=a,b  key=k"},
		{"cancel", `{"note":"a\u001b[31mb"}`, "note=ab"},
		{"error", `{"error":{"code":-32603}}`, `error={"code":-32603}`},
		{"result", `"x"`, `"x"`},
		{"result", ``, ``},
	} {
		if got := happened(c.event, json.RawMessage(c.detail)); got != c.want {
			t.Errorf("%s %s: %q, not %q", c.event, c.detail, got, c.want)
		}
	}
}
