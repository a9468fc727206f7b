package mcp

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcptasks/taskmodel"
)

// TestS5_PollIntervals reads every poll hint that was seen in the field; what
// is no positive number is as if it were absent, and nothing overflows.
func TestS5_PollIntervals(t *testing.T) {
	for _, c := range []struct {
		json    string
		want    time.Duration
		lenient string
	}{
		{`-1`, 0, "pollInterval is not positive: -1"},
		{`0`, 0, "pollInterval is not positive: 0"},
		{`0.5`, 500 * time.Microsecond, ""},
		{`2`, 2 * time.Millisecond, ""},
		{`5000`, 5 * time.Second, ""},
		{`1e12`, 1e12 * time.Millisecond, ""},
		{`1e300`, maxSpan, ""},
		{`1e999`, maxSpan, ""},
		{`1e-300`, 1, ""},
		{`"5000"`, 5 * time.Second, `pollInterval is a string: "5000"`},
		{`"soon"`, 0, `pollInterval is a string: "soon"`},
		{`"NaN"`, 0, `pollInterval is a string: "NaN"`},
		{`null`, 0, ""},
		{`true`, 0, "pollInterval is no number: true"},
		{`{}`, 0, "pollInterval is no number: {}"},
		{``, 0, ""},
	} {
		raw := `{"taskId":"a","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null`
		if c.json != "" {
			raw += `,"pollInterval":` + c.json
		}
		s, err := readTask(json.RawMessage(raw+"}"), coreFields)
		if err != nil || s.PollInterval != c.want || strings.Join(s.Lenient, "; ") != c.lenient {
			t.Errorf("%s: %v %q %v, want %v %q", c.json, s.PollInterval, s.Lenient, err, c.want, c.lenient)
		}
		if at := time.Now().Add(s.PollInterval); at.Before(time.Now().Add(-time.Second)) {
			t.Errorf("%s overflows", c.json)
		}
	}
}

// TestS7_TTL: absent is not null, and a time that is over already is no error.
func TestS7_TTL(t *testing.T) {
	for _, c := range []struct {
		json    string
		want    taskmodel.TTL
		missing bool
	}{
		{``, taskmodel.TTL{}, true},
		{`null`, taskmodel.TTL{Known: true, Unlimited: true}, false},
		{`60000`, taskmodel.TTL{Known: true, Duration: time.Minute}, false},
		{`0`, taskmodel.TTL{Known: true}, false},
		{`-5`, taskmodel.TTL{Known: true}, false},
		{`"60000"`, taskmodel.TTL{Known: true, Duration: time.Minute}, false},
		{`9223372036854775807`, taskmodel.TTL{Known: true, Duration: maxSpan}, false},
		{`[]`, taskmodel.TTL{}, true},
	} {
		raw := `{"taskId":"a","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z"`
		if c.json != "" {
			raw += `,"ttl":` + c.json
		}
		s, err := readTask(json.RawMessage(raw+"}"), coreFields)
		if err != nil || s.TTL != c.want {
			t.Errorf("%s: %+v %v", c.json, s.TTL, err)
		}
		if got := fmt.Sprint(s.Missing) == "[ttl]"; got != c.missing {
			t.Errorf("%s: missing %v", c.json, s.Missing)
		}
	}
}

// TestS16_NamesOfOtherGenerations: read by generation, others' names as a
// fallback that is told; the own name wins whatever the order.
func TestS16_NamesOfOtherGenerations(t *testing.T) {
	minute := taskmodel.TTL{Known: true, Duration: time.Minute}
	for _, c := range []struct {
		name    string
		fields  fieldNames
		raw     string
		ttl     taskmodel.TTL
		poll    time.Duration
		missing string
		lenient string
	}{
		{"core", coreFields, `{"taskId":"a","status":"working","ttl":60000,"pollInterval":1000}`, minute, time.Second, "createdAt lastUpdatedAt", ""},
		{"draft", draftFields, `{"taskId":"a","status":"submitted","keepAlive":60000,"pollFrequency":1000}`, minute, time.Second, "", ""},
		{"extension", extensionFields, `{"taskId":"a","status":"working","ttlMs":60000,"pollIntervalMs":1000,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z"}`, minute, time.Second, "", ""},
		{"draft's in core", coreFields, `{"taskId":"a","status":"working","keepAlive":60000,"pollFrequency":1000,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z"}`, minute, time.Second, "",
			"keepAlive is another generation's name; read as ttl; pollFrequency is another generation's name; read as pollInterval"},
		{"core's in the extension", extensionFields, `{"taskId":"a","status":"working","ttl":60000,"pollInterval":1000,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z"}`, minute, time.Second, "",
			"ttl is another generation's name; read as ttlMs; pollInterval is another generation's name; read as pollIntervalMs"},
		{"own name last", coreFields, `{"ttlMs":1,"taskId":"a","status":"working","ttl":60000,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z"}`, minute, 0, "", ""},
		{"own null is not absent", coreFields, `{"ttlMs":1,"taskId":"a","status":"working","ttl":null,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z"}`, taskmodel.TTL{Known: true, Unlimited: true}, 0, "", ""},
		{"a status that core lacks", coreFields, `{"taskId":"a","status":"submitted","ttl":60000,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z"}`, minute, 0, "",
			`status "submitted" is not a word of this generation`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := readTask(json.RawMessage(c.raw), c.fields)
			if err != nil {
				t.Fatal(err)
			}
			if s.TTL != c.ttl || s.PollInterval != c.poll || strings.Join(s.Missing, " ") != c.missing || strings.Join(s.Lenient, "; ") != c.lenient {
				t.Errorf("%+v %v missing %q lenient %q", s.TTL, s.PollInterval, s.Missing, s.Lenient)
			}
			if string(s.Raw) != c.raw {
				t.Errorf("raw is %s", s.Raw)
			}
		})
	}
}

func TestReadTask(t *testing.T) {
	at := time.Date(2025, 11, 25, 10, 30, 0, 0, time.UTC)
	task := func(created string) string {
		return `{"status":"working","taskId":"a","createdAt":` + created + `,"lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null}`
	}
	base := taskmodel.Snapshot{ID: "a", Status: "working", CreatedAt: at, LastUpdatedAt: at, TTL: taskmodel.TTL{Known: true, Unlimited: true}}
	with := func(f func(*taskmodel.Snapshot)) taskmodel.Snapshot { s := base; f(&s); return s }
	for _, c := range []struct {
		name, raw string
		want      taskmodel.Snapshot
		err       string
	}{
		{"RFC 3339 with a zone", task(`"2025-11-25T11:30:00+01:00"`), base, ""},
		{"without a zone", task(`"2025-11-25T10:30:00"`), with(func(s *taskmodel.Snapshot) {
			s.Lenient = []string{`createdAt is not an RFC 3339 time: "2025-11-25T10:30:00"`}
		}), ""},
		{"with a blank", task(`"2025-11-25 10:30:00Z"`), with(func(s *taskmodel.Snapshot) {
			s.Lenient = []string{`createdAt is not an RFC 3339 time: "2025-11-25 10:30:00Z"`}
		}), ""},
		{"milliseconds", task(`1764066600000`), with(func(s *taskmodel.Snapshot) {
			s.Lenient = []string{"createdAt is a number, not an RFC 3339 time"}
		}), ""},
		{"seconds", task(`1764066600`), with(func(s *taskmodel.Snapshot) {
			s.Lenient = []string{"createdAt is a number, not an RFC 3339 time"}
		}), ""},
		{"no time", task(`"yesterday"`), with(func(s *taskmodel.Snapshot) {
			s.CreatedAt, s.Missing, s.Lenient = time.Time{}, []string{"createdAt"}, []string{`createdAt is no time: "yesterday"`}
		}), ""},
		{"a numbered task", `{"taskId":7,"status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null}`,
			with(func(s *taskmodel.Snapshot) { s.ID, s.Lenient = "7", []string{"taskId is no string: 7"} }), ""},
		{"escapes", `{"task\u0049d":"a\"\ud83d\ude00","status":"working","statusMessage":"ü\n","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null}`,
			with(func(s *taskmodel.Snapshot) { s.ID, s.StatusMessage = "a\"😀", "ü\n" }), ""},
		{"the last of two counts", `{"taskId":"b","taskId":"a","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null}`, base, ""},
		{"wrong kinds", `{"taskId":"a","status":7,"statusMessage":{"x":1},"createdAt":[],"lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null}`,
			with(func(s *taskmodel.Snapshot) {
				s.Status, s.CreatedAt = "", time.Time{}
				s.Missing = []string{"status", "createdAt"}
				s.Lenient = []string{"status is no string: 7", `statusMessage is no string: {"x":1}`, "createdAt is no time: []"}
			}), ""},
		{"no id", `{"status":"working"}`, taskmodel.Snapshot{Status: "working", Missing: []string{"taskId", "createdAt", "lastUpdatedAt", "ttl"}}, "the task has no taskId"},
		{"no object", `[1]`, taskmodel.Snapshot{}, "the task is no JSON object: [1]"},
		{"cut off", `{"taskId":"a","status":"wor`, taskmodel.Snapshot{ID: "a", Missing: []string{"status", "createdAt", "lastUpdatedAt", "ttl"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readTask(json.RawMessage(c.raw), coreFields)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%v, want %q", err, c.err)
			}
			if d := cmp.Diff(c.want, got, cmpopts.IgnoreFields(taskmodel.Snapshot{}, "Raw"), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

// FuzzScan: the scanner agrees with encoding/json on the members of any object,
// and neither fails nor runs away on anything else.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[1,{"c":"}"}],"a":"\u00e9\\"}`, `{"a":"\ud800"}`, `{`, `{"a`, `{"a":`, `[1,2`, `{"a":1,}`, `{"a" : {"b":2} , "c":null}`, "{\"\xff\":1}", `""`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var m map[string]json.RawMessage
		err := json.Unmarshal([]byte(s), &m)
		got := map[string]json.RawMessage{}
		members([]byte(s), func(k string, v json.RawMessage) bool { got[k] = v; return true })
		elements([]byte(s), func(json.RawMessage) bool { return true })
		if err == nil && m != nil && !cmp.Equal(m, got) {
			t.Errorf("%q: %q, encoding/json has %q", s, got, m)
		}
	})
}

func TestSpan(t *testing.T) {
	for ms, want := range map[float64]time.Duration{0: 0, 1: time.Millisecond, math.MaxFloat64: maxSpan, math.Inf(1): maxSpan, 1e-9: 1} {
		if got := span(ms); got != want {
			t.Errorf("%v: %v, want %v", ms, got, want)
		}
	}
}

// BenchmarkReadTask beside a bare Unmarshal of the same bytes: what a push
// costs before it reaches the board.
func BenchmarkReadTask(b *testing.B) {
	raw := json.RawMessage(`{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","status":"working","statusMessage":"The operation is now in progress.","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:40:00Z","ttl":60000,"pollInterval":5000}`)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := readTask(raw, coreFields); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var t struct {
				TaskID, Status, StatusMessage string
				CreatedAt, LastUpdatedAt      time.Time
				TTL                           *int64
				PollInterval                  int64
			}
			if err := json.Unmarshal(raw, &t); err != nil {
				b.Fatal(err)
			}
		}
	})
}
