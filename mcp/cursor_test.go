package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/memnet"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// L1, its kind: a listing never ends as if it were whole. A server that numbers
// its pages is walked by the numbers; a cursor that cannot be sent back is said.
func TestL1_CursorsThatAreNoStrings(t *testing.T) {
	for in, want := range map[string]Page{
		``: {}, `,"nextCursor":null`: {}, `,"nextCursor":""`: {}, `,"nextCursor":"a\u0062"`: {Next: "ab"},
		`,"nextCursor":50`: {Next: "50"}, `,"nextCursor":-1.5`: {Next: "-1.5"},
		`,"nextCursor":{"page":2}`: {Cut: `no string: {"page":2}`}, `,"nextCursor":true`: {Cut: "no string: true"}, `,"nextCursor":[]`: {Cut: "no string: []"},
	} {
		for _, gen := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenDraft} {
			c, _ := connectPages(t, gen, func(string, int) string { return `{"tasks":[]` + in + `}` })
			p, err := c.Tasks().List(t.Context(), "", nil)
			if err != nil || p.Next != want.Next || (p.Cut == "") != (want.Cut == "") || !strings.Contains(p.Cut, want.Cut) {
				t.Errorf("%s, %s: %q %q, %v", gen, in, p.Next, p.Cut, err)
			}
		}
	}
}

// L1, its kind: tools/list in circles shows each tool once and comes to an end,
// which the server's log tells.
func TestL1_ToolsInCircles(t *testing.T) {
	tools := func(names ...string) string {
		for i, n := range names {
			names[i] = `{"name":"` + n + `","inputSchema":{"type":"object"}}`
		}
		return `{"tools":[` + strings.Join(names, ",") + `]`
	}
	for name, c := range map[string]struct {
		page        func(cursor string, n int) string
		want, words string
		pages       int
	}{
		"whole":           {func(cursor string, _ int) string { return tools("a", "b") + `}` }, "a b", "", 1},
		"the same cursor": {func(string, int) string { return tools("a", "b") + `,"nextCursor":"x"}` }, "a b", "repeats its cursors", 2},
		"A B A": {func(cursor string, _ int) string {
			return tools("a", "t"+cursor) + `,"nextCursor":"` + map[string]string{"": "A", "A": "B", "B": "A"}[cursor] + `"}`
		}, "a t tA tB", "repeats its cursors", 3},
		"ever new cursors": {func(_ string, n int) string { return tools("a") + fmt.Sprintf(`,"nextCursor":"c%d"}`, n) }, "a", "50 pages without a new tool", 51},
		"no cursor at all": {func(string, int) string { return tools("a") + `,"nextCursor":{}}` }, "a", "no string", 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			cl, e := connectPages(t, taskmodel.GenCore, func(cursor string, n int) string { asked = n; return c.page(cursor, n) })
			got, err := cl.Tools(t.Context())
			var names []string
			for _, tool := range got {
				names = append(names, tool.Name)
			}
			if err != nil || strings.Join(names, " ") != c.want || asked != c.pages {
				t.Errorf("%s after %d pages, %v", names, asked, err)
			}
			said := ""
			for _, l := range e.lines() {
				said += l.Text + "\n"
			}
			if (said == "") != (c.words == "") || !strings.Contains(said, c.words) {
				t.Errorf("told: %q", said)
			}
		})
	}
}

// connectPages connects to a server whose listings are made by page, which is
// told the cursor and how many pages were asked for.
func connectPages(t *testing.T, gen taskmodel.Generation, page func(cursor string, n int) string) (*Client, *ears) {
	t.Helper()
	n := 0 // pages are asked for one after the other
	site := memnet.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		rpc, result := stringAt(b, "method"), "{}"
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case member(b, "id") == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case rpc == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{}}},"serverInfo":{"name":"paged","version":"1"}}`
		case strings.HasSuffix(rpc, "/list"):
			n++
			result = page(stringAt(b, "params", "cursor"), n)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, member(b, "id"), result)
	}))
	e := &ears{}
	c, err := Connect(t.Context(), Options{Name: "srv", Dialer: &transport.HTTP{URL: site.URL, Client: site.Client}, Era: eraLegacy, Generation: gen, Handler: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		_ = c.Close(ctx, true)
		site.Close()
	})
	return c, e
}
