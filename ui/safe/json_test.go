package safe

import (
	"encoding/json"
	"testing"
)

// What JSON leaves to be seen is all that there is: nothing that the sanitiser
// would take out is left in it, and the value is the same.
func TestU1_JSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"é 日本"}`:                     `{"a":"é 日本"}`,
		"\"a\u202eb\u200bc\u009b31m\x7f\"": `"a\u202eb\u200bc\u009b31m\u007f"`,
		"\"\ufeff\u2028\u2066\"":           `"\ufeff\u2028\u2066"`,
		"\"\u00ad\u3164\U000e0041x\"":      `"\u00ad\u3164\udb40\udc41x"`,
	} {
		got := string(JSON([]byte(in)))
		if got != want || Line(got) != got {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		var a, b any
		if json.Unmarshal([]byte(in), &a) != nil || json.Unmarshal([]byte(got), &b) != nil {
			t.Fatalf("%q is no JSON", got)
		}
		if x, y := a, b; in[0] == '"' && x != y {
			t.Errorf("%q became %q", x, y)
		}
	}
	if s := []byte(`{"a":"é"}`); &JSON(s)[0] != &s[0] {
		t.Error("a value without controls is copied")
	}
}
