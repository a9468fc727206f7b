package board

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

func sample() taskmodel.Task {
	return taskmodel.Task{
		Key:        key("ci", "7f3a91c2-11aa"),
		Generation: taskmodel.GenExtension, Status: taskmodel.InputRequired,
		StatusMessage: "Approve rollout of v2.4.1 to prod? 12:30",
		Tool:          "deploy_release", Owner: "agent one", Standing: taskmodel.Live,
		CreatedAt: epoch, FirstHeardAt: epoch,
		TTL:     taskmodel.TTL{Known: true, Duration: 10 * time.Minute},
		Outcome: taskmodel.Outcome{Err: &taskmodel.RPCError{Code: -1}},
	}
}

// The grammar, one row each, on one task that is four minutes old and has six
// minutes to live.
func TestFilter(t *testing.T) {
	task := sample()
	now := epoch.Add(4 * time.Minute)
	for _, tc := range []struct {
		text string
		want bool
	}{
		{"", true}, {"   ", true},
		// words
		{"deploy", true}, {"DEPLOY", true}, {"dplrel", true}, {"relde", false}, {"apprv", true}, {"approve prod", true},
		{"approve nope", false}, {"aptod", false}, {"7f3", true}, {"91c2", true}, {"7c2", true}, {"ci", true}, {"input", true},
		{`"rollout of"`, true}, {`"of rollout"`, false}, {"12:30", true}, {"nope,prod", true}, {"nope,never", false},
		// regular expressions
		{"/v\\d+\\.\\d+/", true}, {"/^approve/", true}, {"/^Approve/", true}, {"/^APProve/", false}, {"/^deploy_|^x/", true},
		{`/rollout of v2/`, true}, {`/of rollout/`, false}, {`msg:/to prod\?/ tool:deploy`, true}, {`!/rollout of/`, false},
		{`/rollout\s+of/`, true}, {`/a\/b/`, false}, {"msg:/prod\\?/", true}, {"tool:/^deploy/", true}, {"status:/^work/", false},
		{"/[a-z]pprove/", true}, {"/^[[:upper:]]pp/", true}, {`/^\x41pp/`, true}, {"/[^a-z]v2/", true}, {`/^[@-_]pp/`, true},
		// not
		{"!deploy", false}, {"!nope", true}, {"!!deploy", true}, {"!/^approve/", false}, {"!status:input", false},
		{"status:!completed", true}, {"status:!completed,input_required", false}, {"!status:!input", true},
		// fields
		{"status:input", true}, {"status:INPUT", true}, {"status:working,input_required", true}, {`status:"input"`, false}, {`status:"input_required"`, true},
		{"server:ci", true}, {"server:c", true}, {`server:"c"`, false}, {"server:i", false},
		{"tool:release", true}, {`tool:"release"`, false}, {"id:7f3a", true}, {"id:91c2", false}, {"msg:rollout", true}, {`msg:"to prod"`, true},
		{"gen:2026", true}, {"gen:ext", true}, {"gen:core", false}, {"gen:draft,extension", true},
		{"standing:live", true}, {"standing:!live", false}, {"owner:one", true}, {`owner:""`, false}, {"role:requestor", true},
		// times
		{"age:>3m", true}, {"age:>5m", false}, {"age:<5m", true}, {"age:4m", true}, {"age:>=240s", true}, {"age:<=4m", true}, {"age:<4m", false},
		{"ttl:<1m", false}, {"ttl:<10m", true}, {"ttl:>5m59s", true}, {"ttl:!<1m", true}, {"age:>1d", false}, {"age:<1w", true}, {"age:>0.05h", true},
		// has
		{"has:input", true}, {"has:result", true}, {"has:error", true}, {"has:progress", false}, {"has:!progress", true}, {"has:ttl,note", true},
		// all together
		{"status:!completed server:ci,deploy,lab dep age:<1h", true},
	} {
		f, err := ParseFilter(tc.text)
		if err != nil {
			t.Errorf("%q: %v", tc.text, err)
			continue
		}
		if got := f.Match(&task, now); got != tc.want {
			t.Errorf("%q: %v", tc.text, got)
		}
		if row := (heads{}).pack(&task, nil, 1); f.matcher(now).row(row) != tc.want {
			t.Errorf("%q: a row is judged in another way than its task", tc.text)
		}
		again, err := ParseFilter(f.String())
		if err != nil || again.String() != f.String() || again.Match(&task, now) != tc.want {
			t.Errorf("%q became %q: %v", tc.text, f.String(), err)
		}
	}
}

func TestFilterString(t *testing.T) {
	for text, want := range map[string]string{
		"  a   b ":                 "a b",
		"!status:completed":        "status:!completed",
		"STATUS:Working":           "status:Working",
		`"a b" "c"`:                `"a b" "c"`,
		"age:5m ttl:<1H":           "age:>=5m ttl:<1h",
		`"say \"x\" \\"`:           `"say \"x\" \\"`,
		`/a\/b\d/`:                 `/a\/b\d/`,
		"has:INPUT":                "has:input",
		"!!!word,other":            "!word,other",
		`tool:"" server:!"x,y",z`:  `tool:"" server:!"x,y",z`,
		"status:!completed,failed": "status:!completed,failed",
	} {
		if f, err := ParseFilter(text); err != nil || f.String() != want {
			t.Errorf("%q: %q %v, want %q", text, f.String(), err, want)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for _, tc := range []struct {
		text   string
		column int
		words  string
	}{
		{"ok nofield:x", 4, "no field"},
		{"statsu:x", 1, `did you mean "status:"?`},
		{"a Serv:x", 3, `did you mean "server:"?`},
		{"zzzz:x", 1, `no field "zzzz"; the fields are status, server`},
		{"/two words", 1, "lacks its closing /"},
		{"status:", 8, "needs a value"},
		{"status:a,", 10, "needs a value"},
		{"status:a, b", 10, "needs a value"},
		{"!", 2, "missing"},
		{"age:x", 5, "takes a time"},
		{"age:5", 5, "takes a time"},
		{"age:>", 5, "takes a time"},
		{"ttl:>1y", 5, "takes a time"},
		{`"open`, 1, "not closed"},
		{"/open", 1, "lacks its closing"},
		{"//", 1, "nothing between"},
		{`""`, 1, "nothing between"},
		{"é /(/", 3, "not a regular expression"},
		{"has:wings", 5, "has: takes"},
		{`a"b"`, 2, "a space"},
		{strings.Repeat("a ", 65), 129, "more than 64"},
		{strings.Repeat("a", 5000), 1, "longer than"},
		{"\xff", 1, "no valid text"},
	} {
		_, err := ParseFilter(tc.text)
		var fe *FilterError
		if !errors.As(err, &fe) || fe.Column != tc.column || !strings.Contains(fe.Message, tc.words) {
			t.Errorf("%.20q: %v, want column %d and %q", tc.text, err, tc.column, tc.words)
		}
	}
}

// While an expression is typed, the terms before the one at fault count.
func TestFilterSoFar(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a b": "a b", "a statsu:x": "a", "server:ci /rollout of": "server:ci", `server:ci "of the`: "server:ci", "age:>": "", "a b\"c": "a",
		"a /x y/ has:": "a /x y/",
	} {
		good, f, err := ParseFilterSoFar(text)
		if good != want || f.String() != MustParseFilter(want).String() || (err == nil) != (text == want) {
			t.Errorf("%q: %q, %q, %v; want %q", text, good, f, err, want)
		}
	}
}

func TestFilterClocked(t *testing.T) {
	for text, want := range map[string]bool{"": false, "a status:b": false, "age:>1m": true, "a ttl:<1m": true} {
		f := MustParseFilter(text)
		if f.Clocked() != want {
			t.Errorf("%q", text)
		}
		next := f.Next(epoch.Add(300 * time.Millisecond))
		if want && !next.Equal(sec(1)) || !want && !next.IsZero() {
			t.Errorf("%q: next %v", text, next)
		}
	}
	var none *Filter
	task := sample()
	if !none.Match(&task, epoch) || none.Clocked() || none.String() != "" {
		t.Error("no filter lets everything through")
	}
}

// A filter on age lets a task in when its time has come, without a new version.
func TestViewTick(t *testing.T) {
	b := New()
	task := sample()
	b.Insert(task)
	w := NewView()
	w.Set(Settings{Filter: MustParseFilter("age:>5m")})
	w.Update(b.Publish(epoch.Add(4 * time.Minute)))
	if w.Len() != 0 {
		t.Fatal("too early")
	}
	if w.Tick(epoch.Add(4*time.Minute + time.Millisecond)) {
		t.Error("looked again within the second")
	}
	if !w.Tick(epoch.Add(5*time.Minute+time.Second)) || w.Len() != 1 {
		t.Error("did not come in")
	}
}

func TestFilterNarrows(t *testing.T) {
	for _, tc := range []struct {
		old, new string
		want     bool
	}{
		{"", "a", true}, {"a", "ab", true}, {"a", "a b", true}, {"ab", "a", false}, {"a", "", false}, {"!a", "!ab", false}, {"!ab", "!a", true},
		{"status:work", "status:working", true}, {"status:a", "status:a,b", false}, {"status:a,b", "status:a", true},
		{"status:!a", "status:!a,b", true}, {"/a/", "/ab/", false}, {"/a/", "/a/ b", true}, {"age:>1m", "age:>1m b", false},
		{"a", "a age:>1m", true}, {"tool:a", "a", false}, {`tool:"a"`, "tool:ab", false}, {"tool:a", `tool:"ab"`, true},
		{"has:input", "has:input x", true},
	} {
		if got := MustParseFilter(tc.new).Narrows(MustParseFilter(tc.old)); got != tc.want {
			t.Errorf("%q to %q: %v", tc.old, tc.new, got)
		}
	}
}

func TestFilterComplete(t *testing.T) {
	b := New()
	b.PutServer(taskmodel.Server{Name: "ci"})
	b.PutServer(taskmodel.Server{Name: "deploy box"})
	task := sample()
	task.Status = "odd"
	b.Insert(task)
	v := b.Publish(epoch)
	for _, tc := range []struct {
		text   string
		cursor int
		want   []string
	}{
		{"sta", 3, []string{"status:", "standing:"}},
		{"x !sta", 6, []string{"x !status:", "x !standing:"}},
		{"status:o", 8, []string{"status:odd"}},
		{"status:!completed,inp", 21, []string{"status:!completed,input_required"}},
		{"server:d", 8, []string{`server:"deploy box"`}},
		{"tool:dep", 8, []string{"tool:deploy_release"}},
		{"gen:c b", 5, []string{"gen:core b"}},
		{"has:in", 6, []string{"has:input"}},
		{"age:<1d", 7, []string{"age:<1d"}},
		{"nope:x", 6, nil},
		{"/two sta", 8, nil}, // within the regular expression
		{"/two words/ sta", 15, []string{"/two words/ status:", "/two words/ standing:"}},
		{"nope:x sta", 10, []string{"nope:x status:", "nope:x standing:"}},
		{"zzz", 3, nil},
	} {
		if got := (&Filter{}).Complete(tc.text, tc.cursor, v); !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
	if got := CompleteFilter("", 0, nil); len(got) != len(fieldNames)-1 {
		t.Errorf("at the start all fields are offered: %q", got)
	}
}

func TestFilterOtherThings(t *testing.T) {
	s := Subject{Server: "ci", Tool: "tools/call", ID: "t1", Message: `{"method":"x"}`, Status: "error"}
	for text, want := range map[string]bool{"server:ci call": true, "msg:method": true, "age:>1s": false, "has:result": false, "status:err": true} {
		if got := MustParseFilter(text).MatchSubject(s, epoch); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzFilter checks that no expression panics, that String parses to the same
// filter, that a row and its task are judged alike, and that what narrows a
// filter lets nothing else through.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"a", "status:!completed server:ci,lab", "/re/ !x", "age:>5m ttl:<1m", `"q \" x" has:input`, "ÄÖ ß", "msg:/a\\/b/", "gen:ext,core"} {
		f.Add(s, s+"b", uint64(len(s)))
	}
	f.Fuzz(func(t *testing.T, text, other string, seed uint64) {
		filter, err := ParseFilter(text)
		CompleteFilter(text, int(seed%64), nil)
		if err != nil {
			var fe *FilterError
			if !errors.As(err, &fe) || fe.Column < 1 || fe.Column > len(text)+1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseFilter(filter.String())
		if err != nil || again.String() != filter.String() {
			t.Fatalf("%q became %q, then %q: %v", text, filter, again, err)
		}
		narrow, err := ParseFilter(other)
		narrows := err == nil && narrow.Narrows(filter)
		r := rand.New(rand.NewPCG(seed, 3))
		h := heads{}
		for range 20 {
			task := randomTask(r)
			if r.IntN(2) == 0 {
				task.StatusMessage = other
				task.Outcome.Result = json.RawMessage(`1`)
			}
			got := filter.Match(&task, sec(60))
			if again.Match(&task, sec(60)) != got {
				t.Fatalf("%q and %q judge %+v in two ways", text, filter, task)
			}
			if filter.matcher(sec(60)).row(h.pack(&task, nil, 1)) != got {
				t.Fatalf("%q judges a row in another way than %+v", text, task)
			}
			if narrows && !got && narrow.Match(&task, sec(60)) {
				t.Fatalf("%q is said to narrow %q but lets %+v through", other, text, task)
			}
		}
	})
}
