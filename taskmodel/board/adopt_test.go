package board

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"mcptasks/taskmodel"
)

// remembered are tasks of two servers, some with a parent, as a journal gives
// them.
func remembered(n int) (tasks []taskmodel.Task) {
	words := []taskmodel.Status{taskmodel.Working, taskmodel.InputRequired, taskmodel.Completed}
	for i := range n {
		t := taskmodel.Task{Key: key([]string{"ci", "ops"}[i*2/n], fmt.Sprintf("%06d", i)), Generation: taskmodel.GenCore, Tool: benchTools[i/7%5],
			Status: words[i/3%3], StatusMessage: fmt.Sprint("stage ", i), Standing: taskmodel.Restored, FirstHeardAt: sec(i), CreatedAt: sec(i),
			Raw: json.RawMessage(`{"n":1}`), Args: json.RawMessage(`[]`)}
		if i%4 == 1 {
			t.ParentID = fmt.Sprintf("%06d", i-1)
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// same fails unless two versions show the same.
func same(t *testing.T, got, want *Version) {
	t.Helper()
	list := func(v *Version) (out []taskmodel.Task) {
		v.Tasks(func(t *taskmodel.Task) bool { out = append(out, *t); return true })
		return out
	}
	if a, b := list(got), list(want); !reflect.DeepEqual(a, b) {
		t.Fatalf("%d tasks, want %d, or others", len(a), len(b))
	}
	if a, b := got.Counts(), want.Counts(); !reflect.DeepEqual(a, b) {
		t.Errorf("counts %+v, want %+v", a, b)
	}
	want.Tasks(func(x *taskmodel.Task) bool {
		if a, b := got.Children(x.Key), want.Children(x.Key); !reflect.DeepEqual(a, b) {
			t.Errorf("children of %s: %v, want %v", x.Key, a, b)
		}
		return true
	})
}

// What is adopted, in whatever pieces and order and onto whatever is there, is
// what would be there had it been inserted; live tasks stay as they are.
func TestAdoptIsInsert(t *testing.T) {
	for _, n := range []int{1, 10, 700, 5000} {
		for _, shuffled := range []bool{false, true} {
			t.Run(fmt.Sprint(n, shuffled), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(n), 1))
				tasks := remembered(n)
				if shuffled {
					rng.Shuffle(n, func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
				}
				a, b := New(), New()
				live, stale := map[taskmodel.Key]bool{}, map[taskmodel.Key]bool{}
				for _, x := range tasks {
					switch rng.IntN(10) {
					case 0:
						x.Standing, x.StatusMessage, x.ParentID = taskmodel.Live, "heard", ""
						live[x.Key] = true
					case 1:
						x.StatusMessage, x.ParentID, x.Status = "older", "elsewhere", taskmodel.Submitted
						stale[x.Key] = true
					default:
						continue
					}
					a.Insert(x)
					b.Insert(x)
				}
				a.Publish(epoch)
				view := NewView()
				view.Set(Settings{Group: "status"})
				view.Update(a.Publish(epoch))
				for from := 0; from < n; {
					to := min(n, from+1+rng.IntN(600))
					some := tasks[from:to]
					from = to
					var want, got []taskmodel.Key
					for _, x := range some {
						if !live[x.Key] {
							b.Insert(x)
							want = append(want, x.Key)
						}
					}
					a.Adopt(Prepare(some), func(x *taskmodel.Task, known bool) {
						got = append(got, x.Key)
						if known != stale[x.Key] {
							t.Errorf("%s: known is %v", x.Key, known)
						}
					})
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("taken %v, want %v", got, want)
					}
					v := a.Publish(epoch)
					view.Update(v)
					fresh := NewView()
					fresh.Set(view.Settings())
					fresh.Update(v)
					if !reflect.DeepEqual(view.Rows(0, n+10), fresh.Rows(0, n+10)) {
						t.Fatal("a view that followed shows others than a new one")
					}
				}
				same(t, a.Publish(epoch), b.Publish(epoch))
			})
		}
	}
}

// An older version does not see what is adopted after it.
func TestAdoptLeavesVersionsAlone(t *testing.T) {
	tasks := remembered(1000)
	b := New()
	b.Adopt(Prepare(tasks[:600]), func(*taskmodel.Task, bool) {})
	v := b.Publish(epoch)
	b.Adopt(Prepare(tasks[600:]), func(*taskmodel.Task, bool) {})
	if v.Len() != 600 || v.Counts().Total != 600 || b.Publish(epoch).Len() != 1000 {
		t.Errorf("%d, %d, %d tasks", v.Len(), v.Counts().Total, b.Publish(epoch).Len())
	}
	if x, ok := b.Task(tasks[999].Key); !ok || string(x.Raw) != `{"n":1}` || x.Tool != tasks[999].Tool {
		t.Errorf("%v %+v", ok, x)
	}
}

// 10,000 tasks from an earlier run onto the board: the board's share of it, and
// what is done beside it.
func BenchmarkAdopt(b *testing.B) {
	for _, way := range []string{"insert", "prepare", "adopt"} {
		b.Run(way, func(b *testing.B) {
			tasks := remembered(10_000)
			b.ReportAllocs()
			for b.Loop() {
				board := New()
				switch way {
				case "insert":
					for _, t := range tasks {
						board.Insert(t)
					}
				case "prepare":
					Prepare(tasks)
				default:
					b.StopTimer()
					p := Prepare(tasks)
					b.StartTimer()
					board.Adopt(p, func(*taskmodel.Task, bool) {})
				}
			}
		})
	}
}
