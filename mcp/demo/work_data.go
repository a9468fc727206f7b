package demo

import (
	"encoding/json"
	"fmt"
	"time"
)

// dataTools: long work on data, of the kind that hangs, expires and asks much.
func dataTools() []*tool {
	return []*tool{
		{
			name: "migrate_schema", title: "Migrate a schema", support: required, needs: []string{"form"},
			description: "Plans and runs a data migration. Asks three rounds of questions.",
			input:       json.RawMessage(`{"type":"object","properties":{"database":{"type":"string","title":"Database","default":"orders"},"batch":{"type":"integer","title":"Rows in a batch","minimum":100,"maximum":100000,"default":5000}},"required":["database"]}`),
			script:      migrate,
			sample:      []string{`{"database":"orders","batch":5000}`, `{"database":"ledger"}`},
		},
		{
			name: "reindex_search", title: "Rebuild the search index", support: optional, ttl: 6 * time.Hour, poll: 5 * time.Second,
			description: "Rebuilds the index. Waits for a lock that nobody gives back: only a cancel ends it.",
			input:       json.RawMessage(`{"type":"object","properties":{"index":{"type":"string","title":"Index","default":"products"}},"required":["index"]}`),
			script: func(w *work) []step {
				n := float64(w.between(800_000, 1_400_000))
				return join(w.counted(w.secs(30), 10, 0, n*0.37, n, "Indexing", "documents"),
					logLine("warning", "shard 3 waits for a lock held by a process that has gone"),
					step{set: true, message: "Waiting for the lock of shard 3", hang: true})
			},
			sample: []string{`{"index":"products"}`},
		},
		{
			name: "nightly_export", title: "Nightly export", support: optional, ttl: 90 * time.Second, maxTTL: 90 * time.Second, poll: 3 * time.Second,
			description: "Exports everything. Takes longer than the 90 seconds for which this server keeps it.",
			input:       json.RawMessage(`{"type":"object","properties":{"format":{"type":"string","enum":["csv","parquet"],"default":"parquet"}}}`),
			script: func(w *work) []step {
				return join(w.counted(300*time.Second, 60, 0, 9_600_000, 9_600_000, "Exporting", "rows"), done("Exported", textResult("Exported 9600000 rows.")))
			},
			sample: []string{`{"format":"parquet"}`},
		},
		{
			name: "warm_cache", title: "Warm the cache", support: optional, ttl: unlimited, poll: 10 * time.Second,
			description: "Fills the cache slowly, for about ten minutes. Kept without a time limit.",
			input:       json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","enum":["eu-west","us-east","ap-south"],"default":"eu-west"}},"required":["region"]}`),
			script: func(w *work) []step {
				n := float64(w.between(180_000, 240_000))
				return join(w.counted(w.secs(600), 120, 0, n, n, "Warming "+w.str("region", "eu-west"), "keys"),
					done("Warm", textResult(fmt.Sprintf("%.0f keys are warm. Hit rate 97.4 %%.", n))))
			},
			sample: []string{`{"region":"eu-west"}`, `{"region":"ap-south"}`},
		},
	}
}

// migrate asks three rounds: every kind of field is in one of them.
func migrate(w *work) []step {
	db := w.str("database", "orders")
	rows := float64(w.between(2_000_000, 6_000_000))
	stopped := func() []step {
		return join(done("Not migrated", result(nil, false, text("The migration of "+db+" was called off before it changed anything."))))
	}
	third := func(a map[string]json.RawMessage) []step {
		if contentOf(a["confirm"]) == nil || contentOf(a["window"]) == nil {
			return stopped()
		}
		return join(step{commit: true}, logLine("notice", "migration of "+db+" begins"),
			w.counted(w.secs(40), 20, 0, rows, rows, "Copying", "rows"),
			stage(w.secs(5), "Building indexes", rows, rows), stage(w.secs(4), "Comparing checksums", rows, rows),
			done("Migrated "+db, result(nil, false, text(fmt.Sprintf("Migrated %.0f rows of %s. Checksums agree.\n\nReversible until the old columns are dropped.", rows, db)))))
	}
	second := func(a map[string]json.RawMessage) []step {
		if contentOf(a["scope"]) == nil {
			return stopped()
		}
		return join(stage(w.secs(4), "Dry run", 0, rows),
			step{message: "Confirmation and a window needed", then: third, ask: []question{
				asks("confirm", "The dry run changed "+fmt.Sprintf("%.0f", rows)+" rows without an error. Go on?", `{"type":"object","properties":{
					"phrase":{"type":"string","title":"Type the database's name","description":"To be sure that it is the right one","pattern":"^`+db+`$"},
					"notes":{"type":"string","title":"Notes for the log","description":"Anything that who comes after should know","maxLength":4000}},"required":["phrase"]}`),
				asks("window", "When may it run?", `{"type":"object","properties":{
					"start":{"type":"string","title":"Start","format":"date-time","default":"2026-12-01T22:00:00Z"},
					"maxMinutes":{"type":"integer","title":"At most (minutes)","minimum":5,"maximum":240,"default":45}},"required":["start"]}`),
			}})
	}
	first := func(a map[string]json.RawMessage) []step {
		if contentOf(a["plan"]) == nil {
			return stopped()
		}
		return join(stage(w.secs(4), "Reading the old schema", 0, rows),
			step{message: "Choices needed (round 2 of 3)", then: second, ask: []question{
				asks("scope", "What is to be migrated, and how?", `{"type":"object","properties":{
					"mode":{"type":"string","title":"Mode","enum":["copy","in-place"],"default":"copy"},
					"isolation":{"type":"string","title":"Isolation","oneOf":[{"const":"rc","title":"Read committed"},{"const":"rr","title":"Repeatable read"},{"const":"ser","title":"Serializable"}]},
					"priority":{"type":"string","title":"Priority","enum":["p1","p2","p3"],"enumNames":["Urgent","Normal","When idle"],"default":"p2"},
					"tables":{"type":"array","title":"Tables","items":{"type":"string","enum":["orders","order_lines","refunds","receipts","shipments"]},"minItems":1,"maxItems":4,"default":["orders","order_lines"]},
					"checks":{"type":"array","title":"Checks afterwards","items":{"anyOf":[{"const":"count","title":"Row counts"},{"const":"sum","title":"Checksums"},{"const":"sample","title":"Compare 1000 rows"}]},"minItems":1},
					"dropOld":{"type":"boolean","title":"Drop the old columns at the end","default":false},
					"readOnly":{"type":"boolean","title":"Read-only while it runs"}},"required":["mode","isolation","tables","readOnly"]}`),
			}})
	}
	return join(stage(w.secs(5), "Connecting to "+db, 0, rows), stage(w.secs(4), "Counting rows", 0, rows),
		step{message: "Details needed (round 1 of 3)", then: first, ask: []question{
			asks("plan", "Who answers for this migration of "+db+", and within which bounds?", `{"type":"object","properties":{
				"owner":{"type":"string","title":"Owner","description":"Who is called when it goes wrong","minLength":2,"maxLength":60},
				"email":{"type":"string","title":"Mail","format":"email"},
				"runbook":{"type":"string","title":"Runbook","format":"uri","default":"https://wiki.example/runbooks/migrate"},
				"due":{"type":"string","title":"To be done by","format":"date"},
				"ticket":{"type":"string","title":"Ticket","pattern":"^[A-Z]{2,5}-[0-9]+$"},
				"maxLoad":{"type":"number","title":"Highest load","description":"Pause above this","minimum":0.5,"maximum":64,"default":4.5},
				"workers":{"type":"integer","title":"Workers","minimum":1,"maximum":3,"default":2}},"required":["owner","email","workers"]}`),
		}})
}
