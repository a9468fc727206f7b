//go:build linux

package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// asksUs: server-everything asks the client as a task, and another process
// answers it by its name, SERVER/@ID.
func asksUs(t *testing.T, u *user) {
	if u.holder == 0 {
		u.hold()
	}
	for _, c := range []struct{ tool, kind, good, bad string }{
		{"trigger-elicitation-request-async", "form", `{"name":"Ada","favoriteColor":"Red","agreeToTerms":true}`, `{"name":7}`},
		{"trigger-sampling-request-async", "sampling", `{"role":"assistant","model":"me","content":{"type":"text","text":"Forty-two"}}`, `forty-two`},
	} {
		s := u.want(6, "start", "p", c.tool, "--plain", "--args", map[string]string{"form": "{}", "sampling": `{"prompt":"hi"}`}[c.kind])
		name := regexp.MustCompile(`p/@[0-9a-f-]{36}`).FindString(s.err)
		if name == "" {
			t.Fatalf("no task of ours is named: %s", s.err)
		}
		var now task
		u.read(0, &now, "get", name)
		if now.Role != "receiver" || "p/@"+now.TaskID != name || now.Status != "working" || len(now.Inputs) != 1 || now.Inputs[0].Kind != c.kind {
			t.Errorf("%+v", now)
		}
		u.fault(2, "usage", "answer", name, "--accept", c.bad)
		u.want(0, "answer", name, "--accept", c.good)
		u.read(0, &now, "wait", name)
		if now.Status != "completed" {
			t.Errorf("%+v", now)
		}
		var all []task
		u.read(0, &all, "ls")
		if !slices.ContainsFunc(all, func(x task) bool { return x.name() == name }) {
			t.Errorf("%s is not listed", name)
		}
	}
	// The same in one process: answered as --on-input says, and the call ends.
	var e end
	u.read(0, &e, "start", "p", "trigger-elicitation-request-async", "--plain", "--on-input", `accept={"name":"Ada","favoriteColor":"Red","agreeToTerms":true}`)
	if !strings.Contains(e.text(), "Ada") {
		t.Errorf("%+v", e)
	}
}

// pageFirst: error -32042 names the page to visit, and the call is not repeated
// by itself (2025-11-25 client/elicitation, URL Elicitation Required Error).
func pageFirst(t *testing.T, u *user) {
	m := u.fault(6, "input_needed", "start", "p", "trigger-url-elicitation", "url=https://example.com/go", "errorPath=true", "--plain")
	if !strings.Contains(m, "https://") || !strings.Contains(m, "visited first") {
		t.Errorf("%s", m)
	}
	// Asked for by elicitation/create in URL mode instead.
	m = u.fault(6, "input_needed", "start", "p", "trigger-url-elicitation", "url=https://example.com/go", "--plain")
	if !strings.Contains(m, "url") {
		t.Errorf("%s", m)
	}
	var e end
	u.read(0, &e, "start", "p", "trigger-url-elicitation", "url=https://example.com/go", "--plain", "--on-input", "decline")
	if !strings.Contains(e.text(), "decline") {
		t.Errorf("%+v", e)
	}
	s := u.run("s\n", "start", "p", "trigger-url-elicitation", "url=https://example.com/go", "--plain", "--on-input", "ask")
	if s.code != 0 || !strings.Contains(s.out, "accept") || !strings.Contains(s.err, "example.com") {
		t.Errorf("exit %d %s%s", s.code, s.out, s.err)
	}
}
