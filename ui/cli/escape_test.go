package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"mcptasks/ui/safe"
)

// U1 in JSON: what a terminal obeys is escaped, and the value is the same.
func TestU1_JSONIsNoControl(t *testing.T) {
	in := map[string]any{"a\u009b31m": "\x1b[31m \u009d0;x\u009c \x7f \u202e \u2066 \ufeff \u200b é 日本 \u00a0", "payload": json.RawMessage(`{"n":1.0,"s":"` + "\u0090" + `\\u0090"}`)}
	var b bytes.Buffer
	if err := writeJSON(&b, in); err != nil {
		t.Fatal(err)
	}
	if i := bytes.IndexFunc(bytes.TrimRight(b.Bytes(), "\n"), func(r rune) bool { return r < ' ' || safe.Line(string(r)) != string(r) }); i >= 0 {
		t.Errorf("a control at %d of %q", i, b.String())
	}
	var out struct{ Payload struct{ S string } }
	if err := json.Unmarshal(b.Bytes(), &out); err != nil || out.Payload.S != "\u0090\\u0090" {
		t.Errorf("%+v, %v", out, err)
	}
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil || m["a\u009b31m"] != in["a\u009b31m"] {
		t.Errorf("%q became %q", in, m)
	}
}
