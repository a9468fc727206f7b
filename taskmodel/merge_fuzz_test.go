package taskmodel

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// FuzzMerge makes a run of statements about one task out of bytes and checks
// that merging is idempotent, that time lines are not written into, that the
// first end stays, and that the order of arrival does not decide whether and
// how a task that has one end has ended.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{1, 0, 1, 1, 2, 4, 3, 3, 0, 5, 9, 2}, uint64(1))
	f.Add([]byte{5, 3, 9, 9, 1, 2, 2, 2}, uint64(7))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		gens := []Generation{GenDraft, GenCore, GenExtension}
		gen := gens[seed%3]
		words := []Status{Working, InputRequired, Completed, Failed, Cancelled, Unknown, Submitted, "odd", ""}
		sources := []Source{FromCreate, FromGet, FromList, FromPush, FromCancel, FromJournal}
		var list []Observation
		ends := map[Status]bool{}
		for ; len(data) >= 4 && len(list) < 40; data = data[4:] {
			s := words[int(data[0])%len(words)]
			o := obs(sources[int(data[0]>>4)%len(sources)], s, int(data[1]), int(data[1])+int(data[2]%16), int(data[3])-1)
			if o.Source == FromPush {
				o.AskedAt = o.HeardAt
			}
			if data[2]&0x80 != 0 {
				o.StatusMessage = string(rune('a' + data[2]%8))
			}
			if data[2]&0x40 != 0 {
				o.CreatedAt = sec(0)
			}
			if s.Terminal(gen) {
				ends[s] = true
			}
			list = append(list, o)
		}
		if len(list) == 0 {
			return
		}
		run := func(list []Observation) Task {
			var task Task
			task.Key = Key{Server: "s", ID: "t", Role: Requestor}
			end := Status("")
			for i, o := range list {
				was := append([]Transition(nil), task.Transitions...)
				shared := task.Transitions
				task, _ = Merge(task, i > 0, o, gen, o.HeardAt)
				if !reflect.DeepEqual(was, append([]Transition(nil), shared...)) {
					t.Fatal("a shared time line was written into")
				}
				again, changes := Merge(task, true, o, gen, o.HeardAt)
				if !reflect.DeepEqual(again, task) {
					t.Fatalf("not idempotent: %+v\n%+v\n%+v (%v)", o, task, again, changes)
				}
				if end != "" && task.Status != end {
					t.Fatalf("left its end %s for %s", end, task.Status)
				}
				if task.Terminal() {
					end = task.Status
					if task.EndedAt.IsZero() {
						t.Fatal("ended without a time")
					}
				}
			}
			return task
		}
		first := run(list)
		r := rand.New(rand.NewPCG(seed, 1))
		for range 4 {
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			other := run(list)
			if first.Terminal() != other.Terminal() || len(ends) == 1 && first.Status != other.Status {
				t.Fatalf("order decided: %s and %s", first.Status, other.Status)
			}
		}
	})
}
