package formview

import (
	"bytes"
	"encoding/json"
)

// pretty indents JSON to be read; what is no JSON stays as it is.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
