package demo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"mcptasks/taskmodel"
)

// A tool is one tool of the server. Tools are the same in all generations but
// for those that show what one generation alone has.
type tool struct {
	name        string
	title       string
	description string
	input       json.RawMessage
	output      json.RawMessage // nil: no structured content
	support     string          // required | optional | forbidden
	ttl         time.Duration   // granted when none is asked for; 0: two hours; unlimited
	maxTTL      time.Duration   // granted at most; 0: 24 h
	poll        time.Duration   // suggested interval; 0: 2 s
	queue       time.Duration   // how long it stays submitted (draft)
	needs       []string        // client capabilities that its questions take: form, url, sampling
	only        []taskmodel.Generation
	afterTool   string // appears only once this tool has succeeded
	script      func(w *work) []step
	// early is asked on the call itself, before a task is made (2026-07-28).
	early func(args map[string]any) (key string, q *question)
	// visitFirst makes a plain call fail with -32042 until a page was visited
	// (2025-11-25).
	visitFirst bool
	sample     []string // arguments for the tasks that are there at the start
}

const (
	required  = "required"
	optional  = "optional"
	forbidden = "forbidden"
)

// work is what a script may look at. Scripts are run once, when their job is
// made, and give the job's steps.
type work struct {
	job    *job
	engine *engine
	rng    *rand.Rand
	args   json.RawMessage
	caps   clientCaps
	// visited: the page that the tool wants visited was visited beforehand.
	visited bool
}

// clientCaps is what a client declared that matters to a job.
type clientCaps struct {
	form, url, sampling         bool
	taskElicitation, taskSample bool
	roots                       bool
}

// all is what tasks are given that no client of ours started.
var allCaps = clientCaps{form: true, url: true, sampling: true, taskElicitation: true, taskSample: true, roots: true}

// lacks gives the first capability of needs that the client did not declare.
func (c clientCaps) lacks(needs []string) string {
	for _, n := range needs {
		switch {
		case n == "form" && !c.form, n == "url" && !c.url, n == "sampling" && !c.sampling:
			return n
		}
	}
	return ""
}

// str is a string argument, or what stands in for it.
func (w *work) str(name, otherwise string) string {
	var m map[string]any
	if json.Unmarshal(w.args, &m) == nil {
		if s, ok := m[name].(string); ok && s != "" {
			return s
		}
	}
	return otherwise
}

// num is a number argument, or what stands in for it.
func (w *work) num(name string, otherwise float64) float64 {
	var m map[string]any
	if json.Unmarshal(w.args, &m) == nil {
		if n, ok := m[name].(float64); ok {
			return n
		}
	}
	return otherwise
}

// flag is a boolean argument.
func (w *work) flag(name string) bool {
	var m map[string]any
	_ = json.Unmarshal(w.args, &m)
	b, _ := m[name].(bool)
	return b
}

// secs is a duration of about n seconds: a tenth more or less.
func (w *work) secs(n float64) time.Duration {
	return time.Duration(n * (0.9 + 0.2*w.rng.Float64()) * float64(time.Second))
}

// between is a whole number in [lo, hi].
func (w *work) between(lo, hi int) int { return lo + w.rng.IntN(hi-lo+1) }

// hex is n characters that look like a digest.
func (w *work) hex(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[w.rng.IntN(16)]
	}
	return string(b)
}

// counted is a stage that counts up in parts.
func (w *work) counted(total time.Duration, parts int, from, to, of float64, message string, unit string) []step {
	steps := make([]step, 0, parts)
	for i := range parts {
		at := from + (to-from)*float64(i+1)/float64(parts)
		text := message
		if unit != "" {
			text = fmt.Sprintf("%s: %.0f of %.0f %s", message, at, of, unit)
		}
		steps = append(steps, stage(total/time.Duration(parts), text, at, of))
	}
	return steps
}

// catalogue is the tools of one generation, in the order in which they list.
func catalogue(g taskmodel.Generation) []*tool {
	var all []*tool
	all = append(all, buildTools()...)
	all = append(all, releaseTools()...)
	all = append(all, dataTools()...)
	all = append(all, labTools()...)
	all = append(all, peopleTools()...)
	out := all[:0]
	for _, t := range all {
		if t.only != nil && !slices.Contains(t.only, g) {
			continue
		}
		t.input = compact(string(t.input))
		if t.output != nil {
			t.output = compact(string(t.output))
		}
		out = append(out, t)
	}
	return out
}

// join concatenates steps and lists of steps.
func join(parts ...any) []step {
	var out []step
	for _, p := range parts {
		switch p := p.(type) {
		case step:
			out = append(out, p)
		case []step:
			out = append(out, p...)
		}
	}
	return out
}
