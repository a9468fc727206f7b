package demo

import (
	"encoding/json"
	"time"

	"mcptasks/taskmodel"
)

// labTools: what the draft alone has: a queue before the work, an end that
// nobody knows, tasks within tasks.
func labTools() []*tool {
	draft := []taskmodel.Generation{taskmodel.GenDraft}
	return []*tool{
		{
			name: "queue_assay", title: "Queue an assay", support: optional, queue: 40 * time.Second, only: draft, ttl: 20 * time.Minute,
			description: "Waits for a free plate reader, then measures.",
			input:       json.RawMessage(`{"type":"object","properties":{"plate":{"type":"string","title":"Plate","default":"P-104"},"wells":{"type":"integer","enum":[24,96,384],"default":96}},"required":["plate"]}`),
			script: func(w *work) []step {
				n := w.num("wells", 96)
				plate := w.str("plate", "P-104")
				return join(w.counted(w.secs(45), 15, 0, n, n, "Measuring", "wells"),
					done("Measured "+plate, result(map[string]any{"plate": plate, "wells": n, "z": 0.71}, false, text("Plate "+plate+": Z' = 0.71, 3 wells left out."), picture(chart(w.rng)))))
			},
			sample: []string{`{"plate":"P-104","wells":96}`, `{"plate":"P-105","wells":384}`},
		},
		{
			name: "calibrate_probe", title: "Calibrate a probe", support: optional, only: draft, ttl: 10 * time.Minute,
			description: "Drives an instrument that stops answering, so that the end is not known.",
			input:       json.RawMessage(`{"type":"object","properties":{"probe":{"type":"string","default":"pH-2"}},"required":["probe"]}`),
			script: func(w *work) []step {
				p := w.str("probe", "pH-2")
				return join(stage(w.secs(6), "Rinsing "+p, 1, 4), stage(w.secs(8), "Buffer 4.00", 2, 4), logLine("error", p+" does not answer any more"), stage(w.secs(8), "Buffer 7.00", 3, 4),
					finish(outcome{status: unknown, message: p + " stopped answering; nobody knows whether it is calibrated"}))
			},
			sample: []string{`{"probe":"pH-2"}`},
		},
		{
			name: "run_protocol", title: "Run a protocol", support: optional, only: draft, ttl: time.Hour,
			description: "Needs other tools run as sub-tasks under ids that it gives.",
			input:       json.RawMessage(`{"type":"object","properties":{"protocol":{"type":"string","default":"growth-curve"}},"required":["protocol"]}`),
			script: func(w *work) []step {
				name := w.str("protocol", "growth-curve")
				return join(stage(w.secs(4), "Reading the protocol "+name, 0, 0),
					step{message: "Waiting for sub-tasks", children: []child{
						{TaskID: w.engine.newID(), ToolName: "queue_assay", Arguments: json.RawMessage(`{"plate":"P-201","wells":24}`)},
						{TaskID: w.engine.newID(), ToolName: "build", Arguments: json.RawMessage(`{"target":"cli"}`)},
					}},
					stage(w.secs(5), "Fitting the curve", 0, 0),
					done("Fitted", textResult("Doubling time 41 minutes, R² = 0.994.")))
			},
			sample: []string{`{"protocol":"growth-curve"}`},
		},
	}
}
