package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"mcptasks/ui/safe"
)

// happened says what the detail of a line of the history holds, for a person:
// the words first, then what else there is as name=value. What is no object is
// left as it is.
func happened(event string, detail json.RawMessage) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(detail, &m) != nil {
		return safe.Line(string(detail))
	}
	take := func(name string) string {
		v, ok := m[name]
		if !ok {
			return ""
		}
		delete(m, name)
		return plain(v)
	}
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	switch event {
	case "created":
		add(take("tool"))
		add(take("status"))
		add(take("statusMessage"))
	case "status":
		from, to := take("from"), take("status")
		if from != "" {
			to = from + " → " + to
		}
		add(to)
		add(take("statusMessage"))
	case "question":
		add(take("message"))
		delete(m, "method") // the kind says it
	case "answer":
		add(take("action"))
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		add(k + "=" + plain(m[k]))
	}
	return safe.Line(strings.Join(parts, "  "))
}

// plain is a string without its quotes, and any other value as it is written.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	var list []string
	if json.Unmarshal(v, &list) == nil {
		return strings.Join(list, ",")
	}
	return string(v)
}
