package board

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"mcptasks/taskmodel"
)

const maxCompletions = 50

// Complete is CompleteFilter; the filter itself does not matter.
func (*Filter) Complete(text string, cursor int, v *Version) []string {
	return CompleteFilter(text, cursor, v)
}

// CompleteFilter returns what the expression could be when the term at the
// cursor (in characters) were finished: whole texts, best first, with values
// taken from the version's tasks (nil: only words that are always known).
func CompleteFilter(text string, cursor int, v *Version) []string {
	return CompleteWith(text, cursor, func(name string) []string {
		return words(field(slices.Index(fieldNames, name)), v)
	})
}

// CompleteWith is CompleteFilter for those who filter something else than
// tasks with the same grammar: values gives what a field can hold there.
func CompleteWith(text string, cursor int, values func(name string) []string) []string {
	runes := []rune(text)
	cursor = min(max(cursor, 0), len(runes))
	start := cursor
	for start > 0 && !unicode.IsSpace(runes[start-1]) {
		start--
	}
	before, tok, after := string(runes[:start]), string(runes[start:cursor]), string(runes[cursor:])
	if good, _, err := ParseFilterSoFar(before); err != nil && !fieldAtFault(before[len(good):]) {
		return nil // the cursor stands within a regular expression or quotes that have a space
	}
	body := strings.TrimLeft(tok, "!")
	lead := tok[:len(tok)-len(body)]
	name, value, isField := strings.Cut(body, ":")
	if !isField {
		var out []string
		for _, n := range fieldNames[1:] {
			if strings.HasPrefix(n, strings.ToLower(body)) && (body != "" || start == cursor) {
				out = append(out, before+lead+n+":"+after)
			}
		}
		return out
	}
	i := slices.Index(fieldNames, strings.ToLower(name))
	if i <= 0 {
		return nil
	}
	lead += fieldNames[i] + ":"
	if at := strings.LastIndexAny(value, ",!"); at >= 0 {
		lead, value = lead+value[:at+1], value[at+1:]
	}
	value = strings.TrimPrefix(value, `"`)
	var out []string
	for _, w := range values(fieldNames[i]) {
		if !hasPrefixFold(w, strings.ToLower(value)) || w == "" {
			continue
		}
		a := alt{text: w}
		out = append(out, before+lead+a.spell(anyField)+after)
		if len(out) == maxCompletions {
			break
		}
	}
	return out
}

// fieldAtFault reports whether text begins with a field that there is not, and
// nothing else is wrong with it: what comes after it can be completed.
func fieldAtFault(text string) bool {
	p := &filterParser{text: strings.TrimLeft(strings.TrimSpace(text), "!")}
	name, ok := p.fieldName()
	return ok && slices.Index(fieldNames, strings.ToLower(name)) <= 0
}

// words are the values that a field has on the board, or can have.
func words(f field, v *Version) []string {
	seen := map[string]bool{}
	var out []string
	add := func(list ...string) {
		for _, w := range list {
			if w != "" && !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		}
	}
	heads := func(get func(*head) string) {
		if v == nil {
			return
		}
		met := map[*head]bool{}
		v.tree.Scan(func(r *row) bool {
			if !met[r.head] {
				met[r.head] = true
				add(get(r.head))
			}
			return len(met) < maxHeads
		})
		slices.Sort(out)
	}
	switch f {
	case fieldStatus:
		for _, s := range []taskmodel.Status{taskmodel.InputRequired, taskmodel.Working, taskmodel.Submitted,
			taskmodel.Failed, taskmodel.Completed, taskmodel.Cancelled, taskmodel.Unknown} {
			add(string(s))
		}
		if v != nil {
			for _, s := range slices.Sorted(maps.Keys(v.counts.ByStatus)) {
				add(string(s))
			}
		}
	case fieldServer:
		if v != nil {
			for _, s := range v.servers {
				add(s.Name)
			}
			add(slices.Sorted(maps.Keys(v.counts.ByServer))...)
		}
	case fieldTool:
		heads(func(h *head) string { return h.tool })
	case fieldOwner:
		heads(func(h *head) string { return h.owner })
	case fieldGen:
		add(string(taskmodel.GenDraft), string(taskmodel.GenCore), string(taskmodel.GenExtension), "core", "extension")
	case fieldStanding:
		add(string(taskmodel.Live), string(taskmodel.Stale), string(taskmodel.Expired), string(taskmodel.Gone), string(taskmodel.Restored))
	case fieldRole:
		add(string(taskmodel.Requestor), string(taskmodel.Receiver))
	case fieldAge:
		add(">1m", ">5m", ">1h", ">1d", "<1m", "<5m", "<1h", "<1d")
	case fieldTTL:
		add("<1m", "<5m", "<1h", ">1h")
	case fieldHas:
		add(hasNames...)
	}
	return out
}
