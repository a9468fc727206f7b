package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mcptasks/taskmodel"
)

// fieldNames are the wire names of one generation's task fields. Names moved
// between the generations (ttl, ttlMs, keepAlive; pollInterval,
// pollIntervalMs, pollFrequency), so each is read under its own name first and
// under the others' as a fallback that is told.
type fieldNames struct {
	generation taskmodel.Generation
	ttl        string
	poll       string
	required   []string // by wire name, in the order in which they are missed
}

// The three generations' names. In the draft there are no times at all.
var (
	coreFields = fieldNames{
		generation: taskmodel.GenCore, ttl: "ttl", poll: "pollInterval",
		required: []string{"taskId", "status", "createdAt", "lastUpdatedAt", "ttl"},
	}
	draftFields = fieldNames{
		generation: taskmodel.GenDraft, ttl: "keepAlive", poll: "pollFrequency",
		required: []string{"taskId", "status", "keepAlive"},
	}
	extensionFields = fieldNames{
		generation: taskmodel.GenExtension, ttl: "ttlMs", poll: "pollIntervalMs",
		required: []string{"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"},
	}
)

// errNoTaskID is readTask's error for a task without an id; the snapshot that
// comes with it holds everything else.
var errNoTaskID = errors.New("the task has no taskId")

// maxSpan bounds every duration that is read from the wire, so that no sum of
// it with a time or a factor overflows.
const maxSpan = 100 * 365 * 24 * time.Hour

// taskFields are a task's members as they stand on the wire.
type taskFields struct {
	id, status, message, created, updated json.RawMessage
	ttl, poll                             [3]json.RawMessage // by generation: core, draft, extension
}

// slots of taskFields.ttl and .poll
var (
	ttlNames  = [3]string{"ttl", "keepAlive", "ttlMs"}
	pollNames = [3]string{"pollInterval", "pollFrequency", "pollIntervalMs"}
)

// readTask reads one task object of the given generation into a Snapshot. It
// never fails on what a field holds: a field that is not what the schema says
// is read as well as it can be and told in Lenient, or is left out and, where
// it is required, told in Missing. The error is for text that is no object or
// names no task.
//
// The snapshot shares raw's memory.
func readTask(raw json.RawMessage, names fieldNames) (taskmodel.Snapshot, error) {
	s := taskmodel.Snapshot{Raw: raw}
	if !isObject(raw) {
		return s, fmt.Errorf("the task is no JSON object: %s", clip(raw))
	}
	var f taskFields
	members(raw, func(k string, v json.RawMessage) bool {
		switch k {
		case "taskId":
			f.id = v
		case "status":
			f.status = v
		case "statusMessage":
			f.message = v
		case "createdAt":
			f.created = v
		case "lastUpdatedAt":
			f.updated = v
		case "ttl":
			f.ttl[0] = v
		case "keepAlive":
			f.ttl[1] = v
		case "ttlMs":
			f.ttl[2] = v
		case "pollInterval":
			f.poll[0] = v
		case "pollFrequency":
			f.poll[1] = v
		case "pollIntervalMs":
			f.poll[2] = v
		}
		return true
	})

	switch {
	case isString(f.id):
		s.ID = text(f.id)
	case f.id != nil && !isNull(f.id) && !isObject(f.id) && !isArray(f.id):
		// Some servers number their tasks; the id is then its digits.
		s.ID = string(f.id)
		s.Lenient = append(s.Lenient, "taskId is no string: "+clip(f.id))
	}
	if isString(f.status) {
		s.Status = taskmodel.Status(text(f.status))
		if s.Status != "" && !s.Status.Defined(names.generation) {
			s.Lenient = append(s.Lenient, fmt.Sprintf("status %q is not a word of this generation", s.Status))
		}
	} else if f.status != nil {
		s.Lenient = append(s.Lenient, "status is no string: "+clip(f.status))
	}
	if isString(f.message) {
		s.StatusMessage = text(f.message)
	} else if f.message != nil && !isNull(f.message) {
		s.Lenient = append(s.Lenient, "statusMessage is no string: "+clip(f.message))
	}
	s.CreatedAt = readTime("createdAt", f.created, &s.Lenient)
	s.LastUpdatedAt = readTime("lastUpdatedAt", f.updated, &s.Lenient)

	name, v := pick(names.ttl, ttlNames, f.ttl, &s.Lenient)
	s.TTL = readTTL(name, v, &s.Lenient)
	name, v = pick(names.poll, pollNames, f.poll, &s.Lenient)
	s.PollInterval = readPoll(name, v, &s.Lenient)

	for _, r := range names.required {
		missing := false
		switch r {
		case "taskId":
			missing = s.ID == ""
		case "status":
			missing = s.Status == ""
		case "createdAt":
			missing = s.CreatedAt.IsZero()
		case "lastUpdatedAt":
			missing = s.LastUpdatedAt.IsZero()
		default:
			missing = !s.TTL.Known
		}
		if missing {
			s.Missing = append(s.Missing, r)
		}
	}
	if s.ID == "" {
		return s, fmt.Errorf("%w: %s", errNoTaskID, clip(raw))
	}
	return s, nil
}

// pick takes a field under the generation's own name, else under another's.
func pick(own string, all [3]string, v [3]json.RawMessage, lenient *[]string) (string, json.RawMessage) {
	for i, n := range all {
		if n == own && v[i] != nil {
			return n, v[i]
		}
	}
	for i, n := range all {
		if n != own && v[i] != nil {
			*lenient = append(*lenient, fmt.Sprintf("%s is another generation's name; read as %s", n, own))
			return n, v[i]
		}
	}
	return own, nil
}

// readTTL tells absent, null (unlimited) and a number apart. A negative time
// is over already.
func readTTL(name string, v json.RawMessage, lenient *[]string) taskmodel.TTL {
	if v == nil {
		return taskmodel.TTL{}
	}
	if isNull(v) {
		return taskmodel.TTL{Known: true, Unlimited: true}
	}
	ms, ok := milliseconds(name, v, lenient)
	if !ok {
		return taskmodel.TTL{}
	}
	if ms < 0 {
		*lenient = append(*lenient, fmt.Sprintf("%s is negative: %s", name, clip(v)))
		ms = 0
	}
	return taskmodel.TTL{Known: true, Duration: span(ms)}
}

// readPoll reads a poll hint; 0 means that there is no valid one. The floor of
// polling is the monitor's, so 0.5 stays half a millisecond here.
func readPoll(name string, v json.RawMessage, lenient *[]string) time.Duration {
	if v == nil || isNull(v) {
		return 0
	}
	ms, ok := milliseconds(name, v, lenient)
	if !ok {
		return 0
	}
	if ms <= 0 {
		*lenient = append(*lenient, fmt.Sprintf("%s is not positive: %s", name, clip(v)))
		return 0
	}
	return span(ms)
}

// milliseconds reads a number of milliseconds, also one that stands in quotes.
func milliseconds(name string, v json.RawMessage, lenient *[]string) (float64, bool) {
	lit := string(v)
	if isString(v) {
		lit = strings.TrimSpace(text(v))
		*lenient = append(*lenient, fmt.Sprintf("%s is a string: %s", name, clip(v)))
	}
	ms, err := strconv.ParseFloat(lit, 64)
	if err != nil && !math.IsInf(ms, 0) || math.IsNaN(ms) {
		if !isString(v) {
			*lenient = append(*lenient, fmt.Sprintf("%s is no number: %s", name, clip(v)))
		}
		return 0, false
	}
	return ms, true
}

// span is a number of milliseconds as a duration, within maxSpan.
func span(ms float64) time.Duration {
	if ms >= float64(maxSpan/time.Millisecond) {
		return maxSpan
	}
	d := time.Duration(ms * float64(time.Millisecond))
	if d == 0 && ms > 0 {
		d = 1
	}
	return d
}

// timeLayouts are what servers write where RFC 3339 is asked for.
var timeLayouts = []string{
	"2006-01-02T15:04:05.999999999", // no zone: taken as UTC
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999999999-0700",
	time.RFC1123, time.RFC1123Z,
}

// readTime reads a timestamp, RFC 3339 or what comes near it; the zero time
// when there is none.
func readTime(name string, v json.RawMessage, lenient *[]string) time.Time {
	if v == nil || isNull(v) {
		return time.Time{}
	}
	if !isString(v) {
		// Seconds or milliseconds since 1970.
		n, err := strconv.ParseFloat(string(v), 64)
		if err != nil || n < 0 || n > 1e14 {
			*lenient = append(*lenient, fmt.Sprintf("%s is no time: %s", name, clip(v)))
			return time.Time{}
		}
		*lenient = append(*lenient, name+" is a number, not an RFC 3339 time")
		if n > 1e11 {
			n /= 1000
		}
		return time.UnixMilli(int64(n * 1000)).UTC()
	}
	t := text(v)
	at, err := time.Parse(time.RFC3339Nano, t)
	if err == nil {
		return at
	}
	for _, l := range timeLayouts {
		if at, err := time.Parse(l, t); err == nil {
			*lenient = append(*lenient, fmt.Sprintf("%s is not an RFC 3339 time: %s", name, clip(v)))
			return at
		}
	}
	*lenient = append(*lenient, fmt.Sprintf("%s is no time: %s", name, clip(v)))
	return time.Time{}
}

// clip is the beginning of some JSON text for a sentence.
func clip(b []byte) string {
	const most = 80
	if len(b) <= most {
		return string(b)
	}
	return strings.ToValidUTF8(string(b[:most]), "") + "…"
}
