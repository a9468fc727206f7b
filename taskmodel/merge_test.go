package taskmodel

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func sec(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// obs is a statement asked for and heard in the given seconds; updated < 0
// leaves lastUpdatedAt out.
func obs(src Source, s Status, asked, heard, updated int) Observation {
	o := Observation{Source: src, AskedAt: sec(asked), HeardAt: sec(heard), Snapshot: Snapshot{ID: "t", Status: s}}
	if updated >= 0 {
		o.LastUpdatedAt = sec(updated)
	}
	return o
}

func with(o Observation, f func(*Observation)) Observation {
	f(&o)
	return o
}

func fold(gen Generation, list ...Observation) (t Task, changes []Change) {
	t.Key = Key{Server: "ci", ID: "t", Role: Requestor}
	for i, o := range list {
		t, changes = Merge(t, i > 0, o, gen, o.HeardAt)
	}
	return t, changes
}

func kinds(changes []Change) (out []ChangeKind) {
	for _, c := range changes {
		out = append(out, c.Kind)
	}
	return out
}

// The merge rules, one row each: what was held, what came, what is known then.
func TestMerge(t *testing.T) {
	created := func(o Observation, at int) Observation {
		return with(o, func(o *Observation) { o.CreatedAt = sec(at) })
	}
	journal := func(s Status, heard int) Observation { return obs(FromJournal, s, heard, heard, heard) }
	for _, tc := range []struct {
		name   string
		gen    Generation
		list   []Observation
		status Status
		stand  Standing
		kinds  []ChangeKind // of the last
		steps  int          // length of the time line
	}{
		{"first word", GenCore, []Observation{obs(FromCreate, Working, 0, 1, 1)}, Working, Live, []ChangeKind{ChangeCreated}, 1},
		{"first word from the journal", GenCore, []Observation{journal(Working, 1)}, Working, Restored, []ChangeKind{ChangeCreated}, 1},
		{"an end from the journal is not in doubt", GenCore, []Observation{journal(Completed, 1)}, Completed, Live, []ChangeKind{ChangeCreated}, 1},
		{"a newer poll replaces", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1), obs(FromGet, InputRequired, 2, 3, 3)}, InputRequired, Live, []ChangeKind{ChangeStatus}, 2},
		{"the same again is no change", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1), obs(FromGet, Working, 2, 3, 1)}, Working, Live, nil, 1},
		// Two polls overtook each other.
		{"stale: asked before the held one came", GenCore, []Observation{obs(FromGet, InputRequired, 2, 3, 3), obs(FromGet, Working, 1, 4, 1)}, InputRequired, Live, []ChangeKind{ChangeStale}, 1},
		{"stale: no lastUpdatedAt to prove it newer", GenDraft, []Observation{obs(FromGet, Working, 2, 3, -1), obs(FromGet, Submitted, 1, 4, -1)}, Working, Live, []ChangeKind{ChangeStale}, 1},
		{"asked before, but newer by its lastUpdatedAt", GenCore, []Observation{obs(FromGet, Working, 2, 3, 1), obs(FromGet, InputRequired, 1, 4, 2)}, InputRequired, Live, []ChangeKind{ChangeStatus}, 2},
		{"asked after, older by its lastUpdatedAt: the server's clock stepped", GenCore, []Observation{obs(FromGet, Working, 0, 1, 50), obs(FromGet, InputRequired, 2, 3, 10)}, InputRequired, Live, []ChangeKind{ChangeStatus}, 2},
		// Pushes.
		{"a push is taken", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1), obs(FromPush, InputRequired, 2, 2, 2)}, InputRequired, Live, []ChangeKind{ChangeStatus}, 2},
		{"a push that looks older asks for a poll", GenCore, []Observation{obs(FromGet, InputRequired, 0, 1, 5), obs(FromPush, Working, 2, 2, 2)}, InputRequired, Live, []ChangeKind{ChangePoll}, 1},
		{"a poll that was under way when a push came is stale", GenCore, []Observation{obs(FromPush, InputRequired, 3, 3, 3), obs(FromGet, Working, 2, 4, 1)}, InputRequired, Live, []ChangeKind{ChangeStale}, 1},
		// Ends.
		{"S11 the first end wins", GenCore, []Observation{obs(FromGet, Completed, 0, 1, 1), obs(FromGet, Failed, 2, 3, 3)}, Completed, Live, []ChangeKind{ChangeContradiction}, 2},
		{"S11 a task that leaves its end", GenCore, []Observation{obs(FromGet, Cancelled, 0, 1, 1), obs(FromGet, Working, 2, 3, 3)}, Cancelled, Live, []ChangeKind{ChangeContradiction}, 2},
		{"a late poll from before the end contradicts nothing", GenCore, []Observation{obs(FromPush, Completed, 3, 3, 3), obs(FromGet, Working, 2, 4, 1)}, Completed, Live, []ChangeKind{ChangeStale}, 1},
		{"an end is never stale", GenDraft, []Observation{obs(FromGet, Working, 2, 3, -1), obs(FromGet, Completed, 1, 4, -1)}, Completed, Live, []ChangeKind{ChangeStatus}, 2},
		{"a push of an end is believed however old it looks", GenCore, []Observation{obs(FromGet, Working, 0, 1, 9), obs(FromPush, Failed, 2, 2, 5)}, Failed, Live, []ChangeKind{ChangeStatus}, 2},
		{"S11 unknown ends in the draft", GenDraft, []Observation{obs(FromGet, Unknown, 0, 1, -1), obs(FromGet, Working, 2, 3, -1)}, Unknown, Live, []ChangeKind{ChangeContradiction}, 2},
		{"S11 unknown is no end elsewhere", GenCore, []Observation{obs(FromGet, Unknown, 0, 1, 1), obs(FromGet, Working, 2, 3, 3)}, Working, Live, []ChangeKind{ChangeStatus}, 2},
		{"S11 a word that nobody defines is taken as it is", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1), obs(FromGet, "paused!", 2, 3, 3)}, "paused!", Live, []ChangeKind{ChangeStatus}, 2},
		{"S12 a cancel that answers with a task is a statement like others", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1), obs(FromCancel, Working, 2, 3, 3)}, Working, Live, nil, 1},
		{"S12 cancelled when the server says so", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1), obs(FromCancel, Cancelled, 2, 3, 3)}, Cancelled, Live, []ChangeKind{ChangeStatus}, 2},
		{"a message without a status keeps the old one", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1),
			with(obs(FromPush, "", 2, 2, 2), func(o *Observation) { o.Missing = []string{"status"} })}, Working, Live, nil, 1},
		// Restored.
		{"restored yields to the oldest live word", GenCore, []Observation{journal(InputRequired, 50), obs(FromGet, Working, 1, 2, 1)}, Working, Live, []ChangeKind{ChangeStanding, ChangeStatus}, 2},
		{"restored ends stay ended", GenCore, []Observation{journal(Completed, 1), obs(FromGet, Working, 2, 3, 3)}, Completed, Live, []ChangeKind{ChangeContradiction}, 2},
		{"the journal does not replace what is live", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1), journal(InputRequired, 9)}, Working, Live, nil, 1},
		{"but an end that another process heard is one", GenCore, []Observation{obs(FromGet, Working, 0, 1, 1), journal(Failed, 9)}, Failed, Live, []ChangeKind{ChangeStatus}, 2},
		{"newer from the journal over older from the journal", GenCore, []Observation{journal(Working, 1), journal(InputRequired, 2)}, InputRequired, Restored, []ChangeKind{ChangeStatus}, 2},
		{"older from the journal over newer", GenCore, []Observation{journal(Working, 5), journal(InputRequired, 2)}, Working, Restored, nil, 1},
		// A stdio server that counts its tasks starts again at 1.
		{"a new task under the id of an ended one", GenCore, []Observation{created(obs(FromGet, Completed, 0, 1, 1), 0), created(obs(FromCreate, Working, 10, 11, 10), 10)}, Working, Live, []ChangeKind{ChangeReplaced}, 1},
		{"a new task under the id of one that ended within the same second", GenCore, []Observation{created(obs(FromGet, Cancelled, 0, 1, 1), 5), created(obs(FromCreate, Working, 2, 3, 6), 6)}, Working, Live, []ChangeKind{ChangeReplaced}, 1},
		{"a new task under the id of one whose loss is not known yet", GenCore, []Observation{created(obs(FromGet, Working, 0, 1, 1), 5), created(obs(FromCreate, Working, 2, 3, 6), 6)}, Working, Live, []ChangeKind{ChangeReplaced}, 1},
		{"the same, when a push was faster than the create", GenCore, []Observation{created(obs(FromGet, Cancelled, 0, 1, 1), 5), created(obs(FromPush, Working, 3, 3, 6), 6), created(obs(FromCreate, Working, 2, 4, 6), 6)}, Working, Live, []ChangeKind{ChangeReplaced}, 1},
		{"a call that gives an earlier task again", GenCore, []Observation{created(obs(FromGet, Completed, 0, 1, 1), 5), created(obs(FromCreate, Completed, 2, 3, 1), 5)}, Completed, Live, nil, 1},
		{"an end that was pushed before the create, its times written otherwise", GenCore, []Observation{created(obs(FromPush, Completed, 2, 2, 2), 0), created(obs(FromCreate, Working, 1, 3, 0), 1)}, Completed, Live, []ChangeKind{ChangeStale}, 1},
		{"a listing of a new task under the id of a restored end", GenCore, []Observation{created(journal(Completed, 1), 0), created(obs(FromList, Working, 10, 11, 10), 10)}, Working, Live, []ChangeKind{ChangeReplaced}, 1},
		{"an ended task whose createdAt moves is not a new one", GenCore, []Observation{created(obs(FromGet, Completed, 0, 1, 1), 0), created(obs(FromGet, Completed, 2, 3, 3), 3)}, Completed, Live, nil, 1},
		{"a create that a push overtook", GenCore, []Observation{created(obs(FromPush, InputRequired, 2, 2, 2), 0), created(obs(FromCreate, Working, 0, 3, 0), 0)}, InputRequired, Live, []ChangeKind{ChangeStale}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, changes := fold(tc.gen, tc.list...)
			if got.Status != tc.status || got.Standing != tc.stand {
				t.Errorf("status %q standing %q, want %q %q", got.Status, got.Standing, tc.status, tc.stand)
			}
			if k := kinds(changes); !slices.Equal(k, tc.kinds) {
				t.Errorf("changes %v, want %v", k, tc.kinds)
			}
			if len(got.Transitions) != tc.steps {
				t.Errorf("time line %+v, want %d entries", got.Transitions, tc.steps)
			}
			if got.Terminal() != !got.EndedAt.IsZero() {
				t.Errorf("ended at %v with status %s", got.EndedAt, got.Status)
			}
			again, _ := Merge(got, true, tc.list[len(tc.list)-1], tc.gen, epoch)
			if !reflect.DeepEqual(again, got) {
				t.Errorf("merging the last once more changed something:\n%+v\n%+v", got, again)
			}
		})
	}
}

// A newer snapshot replaces the whole server's side; what it lacks is gone if
// it is optional and kept with a note if the generation requires it.
func TestMergeReplacesTheServersSide(t *testing.T) {
	first := with(obs(FromCreate, Working, 0, 1, 1), func(o *Observation) {
		o.StatusMessage, o.CreatedAt = "Plan", sec(0)
		o.TTL, o.PollInterval = TTL{Known: true, Duration: time.Hour}, time.Second
		o.ModelNote, o.ParentID, o.Children = "tell the user", "p", []Child{{ID: "c"}}
		o.Raw = json.RawMessage(`{"n":1}`)
	})
	second := with(obs(FromGet, Working, 2, 3, -1), func(o *Observation) {
		o.Missing = []string{"createdAt", "lastUpdatedAt", "ttl"}
		o.Lenient = []string{"The ttl has the name ttlMs."}
		o.Raw = json.RawMessage(`{"n":2}`)
	})
	got, changes := fold(GenCore, first, second)
	if got.StatusMessage != "" || got.PollInterval != 0 || got.ParentID != "" || got.Children != nil {
		t.Errorf("optional fields survived their absence: %+v", got)
	}
	if !got.CreatedAt.Equal(sec(0)) || !got.LastUpdatedAt.Equal(sec(1)) || got.TTL.Duration != time.Hour {
		t.Errorf("required fields were lost: %+v", got)
	}
	if got.ModelNote != "tell the user" {
		t.Error("the note for the model comes with the creation alone and must stay")
	}
	if len(got.Lenient) != 4 || !strings.Contains(got.Lenient[3], "left out ttl") {
		t.Errorf("notes: %q", got.Lenient)
	}
	if string(got.Raw) != `{"n":2}` {
		t.Errorf("raw %s", got.Raw)
	}
	if k := kinds(changes); !slices.Equal(k, []ChangeKind{ChangeMessage}) {
		t.Errorf("changes %v", k)
	}
}

// Absent is not null: a snapshot of a generation that does not require a ttl
// and lacks it says that the server did not say (S7).
func TestS7_TTLAbsentIsNotUnlimited(t *testing.T) {
	unlimited := with(obs(FromGet, Working, 0, 1, -1), func(o *Observation) { o.TTL = TTL{Known: true, Unlimited: true} })
	got, _ := fold(GenExtension, unlimited, obs(FromGet, Working, 2, 3, -1))
	if got.TTL != (TTL{}) {
		t.Errorf("ttl %+v, want not said", got.TTL)
	}
	if _, ok := got.ExpiresAt(); ok {
		t.Error("expires without a time to live")
	}
}

func TestMergeLeavesWhatOnlyWeKnow(t *testing.T) {
	got, _ := fold(GenCore, obs(FromCreate, Working, 0, 1, 1))
	got.Tool, got.Args, got.Ours, got.Owner = "build", json.RawMessage(`{}`), true, "agent"
	got.CancelRequested, got.CancelNote = sec(5), "not confirmed"
	got.Progress = &Progress{Value: 3}
	got.Inputs = []QuestionID{{Server: "ci", ID: "q"}}
	got.Polls, got.Pushes, got.NextPollAt, got.Pushed = 7, 8, sec(9), true
	got.AskedTTL = TTL{Known: true, Duration: time.Minute}
	was := got
	got, _ = Merge(got, true, obs(FromGet, Completed, 6, 7, 7), GenCore, sec(7))
	if !was.FirstHeardAt.Equal(got.FirstHeardAt) || got.Tool != "build" || string(got.Args) != "{}" || !got.Ours ||
		got.Owner != "agent" || !got.CancelRequested.Equal(sec(5)) || got.CancelNote != "not confirmed" ||
		got.Progress == nil || len(got.Inputs) != 1 || got.Polls != 7 || got.Pushes != 8 ||
		!got.NextPollAt.Equal(sec(9)) || !got.Pushed || got.AskedTTL != was.AskedTTL {
		t.Errorf("a snapshot touched what only we know: %+v", got)
	}
	if !got.EndedAt.Equal(sec(7)) || !got.StatusSince.Equal(sec(7)) || !got.LastHeardAt.Equal(sec(7)) {
		t.Errorf("times: ended %v since %v heard %v", got.EndedAt, got.StatusSince, got.LastHeardAt)
	}
}

// What was lost and is heard of again is live (S7, S8); "not found" is an
// answer too, so that a poll sent before it proves nothing.
func TestMergeRevives(t *testing.T) {
	for _, s := range []Standing{Stale, Gone, Expired} {
		got, _ := fold(GenCore, obs(FromGet, Working, 0, 1, 1))
		got.Standing, got.StandingSince, got.Note = s, sec(5), "polls fail"
		if s != Stale {
			late, changes := Merge(got, true, obs(FromGet, Working, 4, 6, 1), GenCore, sec(6))
			if late.Standing != s || !slices.Equal(kinds(changes), []ChangeKind{ChangeStale}) {
				t.Errorf("%s: a poll from before made it %s", s, late.Standing)
			}
		}
		back, changes := Merge(got, true, obs(FromGet, Working, 7, 8, 1), GenCore, sec(8))
		if back.Standing != Live || back.Note != "" || !back.StandingSince.Equal(sec(8)) ||
			!slices.Equal(kinds(changes), []ChangeKind{ChangeStanding}) {
			t.Errorf("%s: %s %q %v", s, back.Standing, back.Note, kinds(changes))
		}
	}
}

// The extension's result comes inside the snapshot.
func TestMergeInlinedOutcome(t *testing.T) {
	done := with(obs(FromGet, Completed, 2, 3, 3), func(o *Observation) { o.Outcome.Result = json.RawMessage(`{"a":1}`) })
	got, changes := fold(GenExtension, obs(FromCreate, Working, 0, 1, 1), done)
	if string(got.Outcome.Result) != `{"a":1}` || !got.Outcome.FetchedAt.Equal(sec(3)) {
		t.Errorf("outcome %+v", got.Outcome)
	}
	if !slices.Equal(kinds(changes), []ChangeKind{ChangeStatus, ChangeOutcome}) {
		t.Errorf("changes %v", kinds(changes))
	}
	later, _ := Merge(got, true, with(done, func(o *Observation) { o.AskedAt, o.HeardAt = sec(9), sec(9) }), GenExtension, sec(9))
	if !later.Outcome.FetchedAt.Equal(sec(3)) {
		t.Error("the same result again moved the time of its fetching")
	}
}

func TestMergeBoundsTheTimeLine(t *testing.T) {
	got, _ := fold(GenCore, obs(FromCreate, Working, 0, 0, 0))
	for i := 1; i < 500; i++ {
		s := Working
		if i%2 == 1 {
			s = InputRequired
		}
		before := slices.Clone(got.Transitions)
		was := got.Transitions
		got, _ = Merge(got, true, obs(FromGet, s, i, i, i), GenCore, sec(i))
		if !reflect.DeepEqual(before, was) {
			t.Fatal("a shared time line was written into")
		}
	}
	if n := len(got.Transitions); n != maxTransitions {
		t.Errorf("%d entries", n)
	}
	if !got.Transitions[0].At.Equal(sec(0)) || !got.Transitions[maxTransitions-1].At.Equal(sec(499)) {
		t.Error("the first or the last entry is gone")
	}
}

func TestTaskTimes(t *testing.T) {
	core := Task{Generation: GenCore, CreatedAt: sec(0), FirstHeardAt: sec(5), TTL: TTL{Known: true, Duration: time.Minute}}
	if at, ok := core.ExpiresAt(); !ok || !at.Equal(sec(60)) {
		t.Errorf("core counts from creation: %v %v", at, ok)
	}
	draft := core
	draft.Generation = GenDraft
	if _, ok := draft.ExpiresAt(); ok {
		t.Error("the draft's keepAlive counts from the end, which has not come")
	}
	draft.EndedAt = sec(100)
	if at, ok := draft.ExpiresAt(); !ok || !at.Equal(sec(160)) {
		t.Errorf("draft: %v %v", at, ok)
	}
	core.CreatedAt = time.Time{}
	if at, exact := core.Born(); exact || !at.Equal(sec(5)) {
		t.Errorf("born %v %v", at, exact)
	}
	if s := (Key{Server: "a", ID: "b", Role: Receiver}).String(); s != "a/@b" {
		t.Error(s)
	}
}
