package faults

import (
	"fmt"
	"strings"
	"testing"

	"mcptasks/taskmodel"
)

// table writes FAULTS.md.
func table(seen map[string][]string) string {
	var b strings.Builder
	b.WriteString(`# Faults

Written by ` + "`go test ./mcp/faults -run TestMatrix -update`" + `; the test fails when it is out of date.

Each line is a server that goes wrong at one operation for three minutes, with the real monitor in front of it: in memory in
place of stdio, and over HTTP. It says what a person sees meanwhile; "nothing" is a board that shows no trouble. In every
one the test asserts that no status was shown but the server's own, that nothing was called, answered or cancelled by
itself, and that afterwards all is well again without help: the server is ready, every row is as the server has it, and a
task that is started then ends and has its result. Where a person had to do something it is said in brackets.
`)
	for _, gen := range []taskmodel.Generation{core, ext, draft} {
		fmt.Fprintf(&b, "\n## %s\n", gen)
		for _, op := range operations {
			if h, ok := op.gen[gen]; ok {
				section(&b, op, gen, h, seen)
			}
		}
	}
	b.WriteString(processTable())
	return b.String()
}

// section is the table of one operation in one generation.
func section(b *strings.Builder, op operation, gen taskmodel.Generation, h hit, seen map[string][]string) {
	method := h.method
	if strings.Contains(method, "/") || method == "initialize" {
		method = "`" + method + "`"
	}
	fmt.Fprintf(b, "\n### %s, %s\n\nHit: %s.\n\n| what goes wrong | what the person sees on stdio | over HTTP |\n|---|---|---|\n", op.name, gen, fmt.Sprintf(op.what, method))
	for _, f := range faults {
		var cells []string
		any := false
		for _, carrier := range []string{"pipe", "http"} {
			sees, ok := seen[cellName(op, gen, f, carrier)]
			any = any || ok
			switch {
			case !ok:
				cells = append(cells, "–")
			case len(sees) == 0:
				cells = append(cells, "nothing")
			default:
				cells = append(cells, strings.ReplaceAll(strings.Join(sees, "<br>"), "|", `\|`))
			}
		}
		if !any {
			continue
		}
		if cells[0] == cells[1] && cells[0] != "nothing" {
			cells[1] = "the same"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", f.name, cells[0], cells[1])
	}
}

// compare reports the lines in which FAULTS.md is out of date.
func compare(t *testing.T, have, want string) {
	t.Helper()
	if have == want {
		return
	}
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	shown := 0
	for i := range max(len(h), len(w)) {
		var a, b string
		if i < len(h) {
			a = h[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b && shown < 8 {
			shown++
			t.Errorf("line %d of FAULTS.md\n  has:  %s\n  seen: %s", i+1, a, b)
		}
	}
	t.Error("FAULTS.md is out of date: go test ./mcp/faults -run TestMatrix -update")
}
