package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// What is written by hand is what encoding/json writes, whatever the words are.
func TestTaskAppendIsJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"", "ci", "working", "Copying part 3 of 97", `said "no" \ <b> & more`, "größer", "a\tb\n", "\x7f\u009b31m", "\u202e\u2028", "\xff", "日本"}
	word := func() string { return words[rng.IntN(len(words))] }
	for range 3000 {
		j := taskJSON{Server: word(), TaskID: word(), Role: word(), Generation: word(), Status: word(), StatusMessage: word(), Tool: word(), Owner: word(),
			ParentTaskID: word(), CreatedAt: word(), FirstHeardAt: word(), LastUpdatedAt: word(), Standing: word(), Note: word(),
			PollIntervalMs: int64(rng.IntN(2) * 5000), CancelRequested: rng.IntN(2) == 0, HasResult: rng.IntN(2) == 0, Inputs: []inputJSON{}}
		if rng.IntN(3) > 0 { // as most are
			for _, s := range []*string{&j.Server, &j.TaskID, &j.Role, &j.Generation, &j.Status, &j.StatusMessage, &j.Tool, &j.Owner, &j.ParentTaskID,
				&j.CreatedAt, &j.FirstHeardAt, &j.LastUpdatedAt, &j.Standing, &j.Note} {
				*s = words[rng.IntN(4)]
			}
		}
		switch rng.IntN(6) {
		case 0:
			j.TTL = json.RawMessage("null")
		case 1:
			j.KeepAlive = json.RawMessage("60000")
		case 2:
			j.Inputs = []inputJSON{{Key: word(), Kind: "form", Message: word()}}
		case 3:
			j.Progress = &progressJSON{Progress: 0.5, Message: word()}
		case 4:
			j.Arguments, j.Inputs = json.RawMessage(`{"a":1}`), nil
		}
		var want bytes.Buffer
		if err := writeJSON(&want, &j); err != nil {
			t.Fatal(err)
		}
		if got := string(j.append([]byte("before"))); got != "before"+strings.TrimRight(want.String(), "\n") {
			t.Fatalf("got  %s\nwant %s", got, want.String())
		}
	}
}

func TestTaskStream(t *testing.T) {
	a, b := taskJSON{TaskID: "a", Inputs: []inputJSON{}}, taskJSON{TaskID: "b", Note: "\u202e", Inputs: []inputJSON{}}
	for _, c := range []struct {
		array bool
		tasks []*taskJSON
	}{{true, nil}, {true, []*taskJSON{&a}}, {true, []*taskJSON{&a, &b, &a}}, {false, nil}, {false, []*taskJSON{&a, &b}}} {
		var got, want bytes.Buffer
		s := &taskStream{w: bufio.NewWriter(&got), array: c.array}
		var values []any
		for _, j := range c.tasks {
			values = append(values, j)
			if err := s.put(j); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.end(); err != nil {
			t.Fatal(err)
		}
		if c.array {
			_ = writeArray(&want, values)
		} else {
			for _, v := range values {
				_ = writeJSON(&want, v)
			}
		}
		if got.String() != want.String() {
			t.Errorf("got %q, want %q", got.String(), want.String())
		}
	}
}

func BenchmarkTaskStream(b *testing.B) {
	j := taskJSON{Server: "ci", TaskID: "786512e2-9e0d-44bd-8f29-789f320fe840", Role: "requestor", Generation: "2025-11-25", Status: "working",
		StatusMessage: "Copying part 3 of 97", CreatedAt: "2025-11-25T10:30:00.000Z", FirstHeardAt: "2025-11-25T10:30:00.000Z", LastUpdatedAt: "2025-11-25T10:30:00.000Z",
		TTL: json.RawMessage("7200000"), PollIntervalMs: 60000, Standing: "live", Inputs: []inputJSON{}}
	var out bytes.Buffer
	s := &taskStream{w: bufio.NewWriter(&out)}
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		_ = s.put(&j)
	}
}
