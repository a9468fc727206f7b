package board

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// randomTask makes a task whose fields collide often.
func randomTask(r *rand.Rand) taskmodel.Task {
	words := []taskmodel.Status{taskmodel.Working, taskmodel.InputRequired, taskmodel.Completed, taskmodel.Failed, taskmodel.Submitted, "odd", "queer"}
	gens := []taskmodel.Generation{taskmodel.GenDraft, taskmodel.GenCore, taskmodel.GenExtension}
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	t := taskmodel.Task{
		Key:        taskmodel.Key{Server: pick("ci", "lab", "zoo", "app"), ID: fmt.Sprintf("%02x", r.IntN(200)), Role: taskmodel.Requestor},
		Generation: gens[r.IntN(3)], Status: words[r.IntN(len(words))], StatusMessage: pick("", "Linking stage 4", "Plan", "plan", "naïve Überprüfung"),
		Tool: pick("", "build", "Build", "deploy_release"), FirstHeardAt: sec(r.IntN(50)), LastHeardAt: sec(r.IntN(50)),
		Standing: taskmodel.Live,
	}
	if r.IntN(2) == 0 {
		t.CreatedAt, t.LastUpdatedAt = sec(r.IntN(50)), sec(r.IntN(50))
		t.TTL = taskmodel.TTL{Known: true, Unlimited: r.IntN(3) == 0, Duration: time.Duration(r.IntN(100)) * time.Second}
	}
	if r.IntN(4) == 0 {
		t.Progress = &taskmodel.Progress{Value: float64(r.IntN(5)), Total: 4, HasTotal: r.IntN(3) > 0}
	}
	if t.Terminal() {
		t.EndedAt = sec(r.IntN(50))
	}
	t.StatusSince = sec(r.IntN(50))
	return t
}

func lines(w *View) (out []string) {
	for _, r := range w.Rows(0, w.Len()) {
		if r.Task == nil {
			out = append(out, fmt.Sprintf("%s %d %v %v", r.Heading, r.Count, r.Folded, r.ByStatus))
		} else {
			out = append(out, r.Task.Key.String())
		}
	}
	return out
}

// A view that follows versions shows what a new one would, whatever changed:
// rows, filter, order, groups, folds, and however far it was behind.
func TestViewFollows(t *testing.T) {
	filters := []string{"", "b", "bu", "bui", "status:work", "status:!completed,failed", "age:>20s", "ttl:<40s bu", "has:progress", "!plan", "/^pla/"}
	columns := []SortColumn{SortNeeds, SortStatus, SortServer, SortTool, SortID, SortMessage, SortProgress, SortAge, SortTTL, SortHeard, ""}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		b := New()
		b.PutServer(taskmodel.Server{Name: "zoo"})
		b.PutServer(taskmodel.Server{Name: "ci"})
		w := NewView()
		s := Settings{}
		now := epoch
		for step := range 100 {
			for range r.IntN(12) {
				if task := randomTask(r); r.IntN(3) == 0 {
					b.Remove(task.Key)
				} else {
					b.Insert(task)
				}
			}
			if r.IntN(100) == 0 {
				b.PutServer(taskmodel.Server{Name: "lab"})
			}
			if r.IntN(3) == 0 {
				s.Filter = MustParseFilter(filters[r.IntN(len(filters))])
			}
			if r.IntN(10) == 0 {
				s.Sort, s.Reverse = columns[r.IntN(len(columns))], r.IntN(2) == 0
				s.Group = []string{"", "server", "status"}[r.IntN(3)]
				s.NeedsFirst, s.EndedLast = r.IntN(2) == 0, r.IntN(2) == 0
			}
			if r.IntN(5) == 0 {
				s.Folded = map[string]bool{"ci": r.IntN(2) == 0, "working": true, "odd": r.IntN(2) == 0}
			}
			now = now.Add(time.Duration(r.IntN(3)) * time.Second)
			v := b.Publish(now)
			if r.IntN(4) == 0 {
				continue // behind
			}
			w.Set(s)
			w.Update(v)
			w.Tick(now)
			fresh := NewView()
			fresh.Set(s)
			fresh.update(t.Context(), v, now)
			if got, want := lines(w), lines(fresh); !slices.Equal(got, want) {
				t.Fatalf("seed %d step %d %+v filter %q:\n%v\n%v", seed, step, s, s.Filter, got, want)
			}
			checkView(t, w, v, now)
			if r.IntN(10) == 0 {
				w = w.Fork()
			}
		}
	}
}

// checkView compares the view with a plain sort of what passes the filter.
func checkView(t *testing.T, w *View, v *Version, now time.Time) {
	t.Helper()
	f, n := w.Settings().Filter, 0
	byStatus := map[string]map[taskmodel.Status]int{}
	v.Tasks(func(task *taskmodel.Task) bool {
		if f.Match(task, now) {
			n++
			if byStatus[task.Server] == nil {
				byStatus[task.Server] = map[taskmodel.Status]int{}
			}
			byStatus[task.Server][task.Status]++
		}
		return true
	})
	if w.Matched() != n || w.Total() != v.Len() {
		t.Fatalf("%d of %d, want %d of %d", w.Matched(), w.Total(), n, v.Len())
	}
	var last *row
	w.Keys(func(k taskmodel.Key) bool {
		r, _ := v.row(k)
		if last != nil && w.order.compare(last, r) >= 0 {
			t.Fatalf("%v is not before %v", last.key(), k)
		}
		last = r
		return true
	})
	for i, r := range w.Rows(0, w.Len()) {
		if one := w.Row(i); !reflect.DeepEqual(one, r) {
			t.Fatalf("row %d alone is another", i)
		}
		if r.Task == nil {
			if w.IndexHeading(r.Heading) != i {
				t.Fatalf("heading %q is not at %d", r.Heading, i)
			}
			if w.Settings().Group == "server" && !maps.Equal(r.ByStatus, byStatus[r.Heading]) {
				t.Fatalf("heading %q counts %v, the tasks %v", r.Heading, r.ByStatus, byStatus[r.Heading])
			}
		} else if at := w.Index(r.Task.Key); at != i {
			t.Fatalf("%v is at %d, Index says %d", r.Task.Key, i, at)
		}
	}
}

// The default order is the picture in the design of the screens.
func TestSortNeeds(t *testing.T) {
	b := New()
	put := func(id string, s taskmodel.Status, born, since, end int) {
		task := taskmodel.Task{Key: key("s", id), Generation: taskmodel.GenCore, Status: s, FirstHeardAt: sec(born), StatusSince: sec(since)}
		if end > 0 {
			task.EndedAt = sec(end)
		}
		b.Insert(task)
	}
	put("asks-later", taskmodel.InputRequired, 1, 20, 0)
	put("asks-first", taskmodel.InputRequired, 5, 10, 0)
	put("old", taskmodel.Working, 1, 1, 0)
	put("young", taskmodel.Working, 30, 30, 0)
	put("ended-early", taskmodel.Failed, 1, 40, 40)
	put("ended-late", taskmodel.Completed, 1, 50, 50)
	w := NewView()
	w.Update(b.Publish(sec(60)))
	want := []string{"s/asks-first", "s/asks-later", "s/young", "s/old", "s/ended-late", "s/ended-early"}
	if got := lines(w); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	w.Set(Settings{Reverse: true})
	w.Update(b.Publish(sec(60)))
	slices.Reverse(want)
	if got := lines(w); !slices.Equal(got, want) {
		t.Errorf("reversed %v", got)
	}
}

// U4: the selection is a task, wherever its row went.
func TestU4_IndexFollowsTheTask(t *testing.T) {
	b := New()
	for i := range 100 {
		b.Insert(taskmodel.Task{Key: key("s", fmt.Sprintf("%03d", i)), Status: taskmodel.Working, FirstHeardAt: sec(i)})
	}
	w := NewView()
	w.Set(Settings{Sort: SortID})
	w.Update(b.Publish(sec(1)))
	k := key("s", "050")
	if w.Index(k) != 50 {
		t.Fatal(w.Index(k))
	}
	for i := range 20 {
		b.Remove(key("s", fmt.Sprintf("%03d", i)))
	}
	b.Insert(taskmodel.Task{Key: key("s", "049a")})
	w.Update(b.Publish(sec(2)))
	if w.Index(k) != 31 {
		t.Fatal(w.Index(k))
	}
	w.Set(Settings{Sort: SortID, Filter: MustParseFilter("id:09")})
	w.Update(b.Publish(sec(3)))
	if w.Index(k) != -1 || w.Len() != 10 || w.Total() != 81 {
		t.Fatal(w.Index(k), w.Len(), w.Total())
	}
}

// Versions are read while the board goes on. The race detector watches.
func TestVersionsAreImmutable(t *testing.T) {
	b := New()
	r := rand.New(rand.NewPCG(1, 2))
	var wg sync.WaitGroup
	w := NewView()
	for step := range 60 {
		for range 20 {
			b.Insert(randomTask(r))
			b.Remove(randomTask(r).Key)
		}
		b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{ID: fmt.Sprint(step)}, AskedAt: sec(step)})
		v := b.Publish(sec(step))
		w.Update(v)
		f := w.Fork()
		wg.Go(func() {
			f.Set(Settings{Sort: SortTool, Group: "status", Filter: MustParseFilter("!plan")})
			f.Update(v)
			n := 0
			v.Tasks(func(*taskmodel.Task) bool { n++; return true })
			if n != v.Len() || n != f.Total() || len(v.Questions()) != step+1 {
				t.Errorf("step %d: %d tasks of %d, view %d, %d questions", step, n, v.Len(), f.Total(), len(v.Questions()))
			}
		})
	}
	wg.Wait()
}

// A fork and its view go on at the same time, each by its own goroutine: what a
// filter remembers of the rows is not shared (the race detector sees it).
func TestForkAndViewAtOnce(t *testing.T) {
	b := filled(2000)
	for _, text := range []string{"linking", "/stage [0-3]/", "tool:build !zq"} {
		w := NewView()
		w.Set(Settings{Filter: MustParseFilter(text)})
		w.Update(b.Publish(epoch))
		f := w.Fork()
		for i := range 200 {
			b.Observe("ci", taskmodel.GenCore, taskmodel.Requestor, benchObs(i, 1))
			b.Change(key("ci", benchObs(i, 0).ID), epoch, func(t *taskmodel.Task) { t.Tool = "tool" + fmt.Sprint(i) })
		}
		v := b.Publish(epoch)
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Set(Settings{Filter: MustParseFilter(text + " link")})
			f.Update(v)
		}()
		w.Update(v)
		<-done
		fresh := NewView()
		fresh.Set(Settings{Filter: MustParseFilter(text)})
		fresh.Update(v)
		if !slices.Equal(lines(w), lines(fresh)) {
			t.Errorf("%s: the view shows other rows beside its fork", text)
		}
	}
}
