package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// buildTools: what a build server does.
func buildTools() []*tool {
	return []*tool{
		{
			name: "build", title: "Build", support: optional, poll: time.Second,
			description: "Compiles one target and packs the artifact. Reports progress by packages.",
			input: json.RawMessage(`{"type":"object","properties":{
				"target":{"type":"string","title":"Target","description":"What to build","enum":["api","web","worker","cli"],"default":"api"},
				"clean":{"type":"boolean","title":"Clean first","default":false}},"required":["target"]}`),
			output: json.RawMessage(`{"type":"object","properties":{"target":{"type":"string"},"digest":{"type":"string"},
				"sizeBytes":{"type":"integer"},"packages":{"type":"integer"},"warnings":{"type":"integer"}},
				"required":["target","digest","sizeBytes","packages","warnings"]}`),
			script: build,
			sample: []string{`{"target":"api"}`, `{"target":"web","clean":true}`, `{"target":"worker"}`, `{"target":"cli"}`},
		},
		{
			name: "run_tests", title: "Run tests", support: optional,
			description: "Runs the tests of a package. Fails with the failed tests as structured content.",
			input: json.RawMessage(`{"type":"object","properties":{
				"package":{"type":"string","title":"Package","default":"./billing/..."},
				"race":{"type":"boolean","title":"Race detector","default":true},
				"count":{"type":"integer","title":"Runs of each test","minimum":1,"maximum":20,"default":1}},"required":["package"]}`),
			output: json.RawMessage(`{"type":"object","properties":{"passed":{"type":"integer"},"failed":{"type":"integer"},
				"skipped":{"type":"integer"},"failures":{"type":"array","items":{"type":"object"}}},"required":["passed","failed"]}`),
			script: runTests,
			sample: []string{`{"package":"./billing/..."}`, `{"package":"./search/...","race":true}`},
		},
		{
			name: "lint_file", title: "Lint one file", support: optional, ttl: time.Hour, poll: time.Second,
			description: "Checks one file. Short.",
			input:       json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","title":"Path"}},"required":["path"]}`),
			script:      lintFile,
		},
		{
			name: "security_scan", title: "Scan for known faults", support: optional, poll: 3 * time.Second,
			description: "Compares the dependencies with an advisory database, which is down just now.",
			input:       json.RawMessage(`{"type":"object","properties":{"severity":{"type":"string","enum":["low","medium","high"],"default":"medium"}}}`),
			script: func(w *work) []step {
				return join(w.counted(w.secs(9), 3, 0, 84, 212, "Reading modules", "modules"),
					logLine("warning", "advisory database answers 503, trying the mirror"),
					stage(w.secs(6), "Asking the advisory mirror", 90, 212),
					logLine("error", "mirror answers 503 too"),
					broken(codeInternal, "Advisory database unreachable: 503 from db.advisories.example and from its mirror"))
			},
			sample: []string{`{"severity":"high"}`},
		},
		{
			name: "report_coverage", title: "Coverage report", support: optional,
			description: "Writes a long report with a table, a picture and the raw profile.",
			input:       json.RawMessage(`{"type":"object","properties":{"package":{"type":"string","default":"./..."}}}`),
			script:      coverage,
			sample:      []string{`{"package":"./..."}`},
		},
		{
			name: "read_status", title: "Read the status board", support: forbidden,
			description: "Answers at once with the state of the runners. Never a task.",
			input:       json.RawMessage(`{"type":"object","properties":{}}`),
			output: json.RawMessage(`{"type":"object","properties":{"runners":{"type":"integer"},"busy":{"type":"integer"},
				"queue":{"type":"integer"}},"required":["runners","busy","queue"]}`),
			script: func(w *work) []step {
				busy := 0
				for _, j := range w.engine.order {
					if !j.hidden && !j.status.terminal() {
						busy++
					}
				}
				s := map[string]int{"runners": 16, "busy": min(busy, 16), "queue": max(0, busy-16)}
				return []step{done("", result(s, false, text(fmt.Sprintf("16 runners, %d busy, %d waiting.", s["busy"], s["queue"]))))}
			},
		},
	}
}

func build(w *work) []step {
	target := w.str("target", "api")
	packages := w.between(140, 320)
	n := float64(packages)
	digest := "sha256:" + w.hex(64)
	size := w.between(9_000_000, 38_000_000)
	warnings := w.between(0, 3)
	var steps []step
	if w.flag("clean") {
		steps = append(steps, stage(w.secs(3), "Cleaning the cache", 0, 0))
	}
	steps = append(steps, logLine("info", "build "+target+" on runner-"+fmt.Sprint(w.between(1, 16))))
	steps = append(steps, stage(w.secs(4), "Resolving modules", 1, n))
	steps = append(steps, w.counted(w.secs(26), 13, 1, n, n, "Compiling", "packages")...)
	for range warnings {
		steps = append(steps, logLine("warning", "unused result in "+target+"/internal/"+pick(w, "router", "cache", "ledger", "mail")+".go"))
	}
	return join(steps,
		stage(w.secs(5), "Linking", n, n),
		stage(w.secs(4), "Packing the artifact", n, n),
		done("Built "+target, result(map[string]any{
			"target": target, "digest": digest, "sizeBytes": size, "packages": packages, "warnings": warnings,
		}, false,
			text(fmt.Sprintf("Built %s: %d packages, %.1f MB, %d warnings.\nDigest %s", target, packages, float64(size)/1e6, warnings, digest)),
			link("https://artifacts.example/"+target+"/"+digest[7:19]+".tar.zst", target+".tar.zst", "application/zstd", "The artifact"))))
}

func runTests(w *work) []step {
	pkg := w.str("package", "./billing/...")
	total := w.between(380, 520)
	n := float64(total)
	type failure struct {
		Test    string `json:"test"`
		File    string `json:"file"`
		Line    int    `json:"line"`
		Message string `json:"message"`
	}
	failures := []failure{
		{"TestInvoiceRounding/half_even", "billing/round_test.go", 118, "got 10.01, want 10.00"},
		{"TestRefundAcrossMonths", "billing/refund_test.go", 64, "period is 2026-02-29: day out of range"},
		{"TestLedgerConcurrentPost", "billing/ledger_test.go", 203, "race: balance read while posting"},
	}
	skipped := w.between(2, 9)
	passed := total - skipped - len(failures)
	var lines strings.Builder
	fmt.Fprintf(&lines, "FAIL %s: %d passed, %d failed, %d skipped\n", pkg, passed, len(failures), skipped)
	for _, f := range failures {
		fmt.Fprintf(&lines, "\n--- FAIL: %s (%s:%d)\n    %s", f.Test, f.File, f.Line, f.Message)
	}
	half := w.counted(w.secs(12), 6, 0, n*0.6, n, "Running", "tests")
	rest := w.counted(w.secs(10), 5, n*0.6, n, n, "Running", "tests")
	return join(stage(w.secs(3), "Building the test binaries", 0, 0), half,
		logLine("error", "FAIL "+failures[0].Test), rest,
		wrong(fmt.Sprintf("%d of %d tests failed", len(failures), total), result(map[string]any{
			"passed": passed, "failed": len(failures), "skipped": skipped, "failures": failures,
		}, true, text(lines.String()))))
}

func lintFile(w *work) []step {
	path := w.str("path", "main.go")
	findings := max(0, w.between(-4, 3))
	s := join(stage(w.secs(3.5), "Checking "+path, 0, 0))
	if findings == 0 {
		return append(s, done("Clean", textResult(path+": no findings.")))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d findings\n", path, findings)
	for range findings {
		fmt.Fprintf(&b, "%s:%d: %s\n", path, w.between(3, 400), pick(w, "exported function without comment", "error ignored", "shadowed variable", "line of 180 characters"))
	}
	return append(s, done(fmt.Sprintf("%d findings", findings), textResult(b.String())))
}

func coverage(w *work) []step {
	dirs := []string{"api", "auth", "billing", "cache", "cli", "config", "export", "ledger", "mail", "notify", "queue", "router", "search", "store", "sync", "web"}
	var md, raw strings.Builder
	md.WriteString("# Coverage\n\nStatements that at least one test ran, by package.\n\n| Package | Statements | Covered | Share | Change |\n|:--|--:|--:|--:|--:|\n")
	raw.WriteString("mode: atomic\n")
	all, hit := 0, 0
	for _, d := range dirs {
		n := w.between(180, 2400)
		c := n * w.between(52, 98) / 100
		all, hit = all+n, hit+c
		fmt.Fprintf(&md, "| `%s` | %d | %d | %.1f %% | %+.1f |\n", d, n, c, 100*float64(c)/float64(n), w.rng.Float64()*4-1.5)
		for range 6 {
			l := w.between(10, 600)
			fmt.Fprintf(&raw, "%s/%s.go:%d.2,%d.16 %d %d\n", d, d, l, l+w.between(1, 9), w.between(1, 6), w.between(0, 40))
		}
	}
	fmt.Fprintf(&md, "| **Total** | **%d** | **%d** | **%.1f %%** | |\n\n", all, hit, 100*float64(hit)/float64(all))
	md.WriteString("## What to look at first\n\n1. `ledger` has no test for a failed commit.\n2. `sync` is covered by one slow test only.\n3. `export` lost the test of its resume path in the last change.\n\n" +
		"## How it was measured\n\n```\ngo test -covermode=atomic -coverpkg=./... ./...\n```\n\n> Generated files and `*_test.go` are left out.\n\n")
	for _, d := range dirs[:8] {
		fmt.Fprintf(&md, "### %s\n\nNot covered: lines %d–%d, %d–%d. Hot path: `%s.Do`.\n\n", d, w.between(20, 90), w.between(91, 140), w.between(200, 260), w.between(261, 300), strings.ToUpper(d[:1])+d[1:])
	}
	return join(w.counted(w.secs(14), 7, 0, 16, 16, "Measuring", "packages"),
		done(fmt.Sprintf("%.1f %% covered", 100*float64(hit)/float64(all)), result(nil, false,
			text(md.String()), picture(chart(w.rng)),
			link("https://ci.example/reports/coverage/"+w.hex(8)+".html", "coverage.html", "text/html", "The report with the sources"),
			embedded("coverage://profile.out", "text/plain", raw.String()))))
}

// pick is one of several strings.
func pick(w *work, of ...string) string { return of[w.rng.IntN(len(of))] }
