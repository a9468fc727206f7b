package board

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

var sizes = []int{100, 10_000, 100_000}

var benchTools = []string{"build", "deploy_release", "migrate_schema", "run_tests", "warm_cache"}

func benchObs(i, round int) taskmodel.Observation {
	words := []taskmodel.Status{taskmodel.Working, taskmodel.Working, taskmodel.Working, taskmodel.InputRequired, taskmodel.Completed}
	id := fmt.Sprintf("%08x-5c1e-4b7a-9d42-%012x", uint32(i)*2654435761, i)
	at := epoch.Add(time.Duration(round)*time.Hour + time.Duration(i)*time.Millisecond)
	s, msg := words[i%len(words)], fmt.Sprintf("Linking, stage %d of 6", (i+round)%7)
	return taskmodel.Observation{Source: taskmodel.FromGet, AskedAt: at, HeardAt: at, Snapshot: taskmodel.Snapshot{
		ID: id, Status: s, StatusMessage: msg,
		CreatedAt: epoch, LastUpdatedAt: at, TTL: taskmodel.TTL{Known: true, Duration: time.Hour}, PollInterval: time.Second,
		Raw: json.RawMessage(fmt.Sprintf(`{"taskId":%q,"status":%q,"statusMessage":%q,"createdAt":"2026-03-01T12:00:00Z","lastUpdatedAt":%q,"ttl":3600000,"pollInterval":1000}`,
			id, s, msg, at.Format(time.RFC3339Nano))),
	}}
}

func filled(n int) *Board {
	b := New()
	b.PutServer(taskmodel.Server{Name: "ci"})
	for i := range n {
		o := benchObs(i, 0)
		b.Observe("ci", taskmodel.GenCore, taskmodel.Requestor, o)
		b.Change(key("ci", o.ID), epoch, func(t *taskmodel.Task) { t.Tool = benchTools[i%len(benchTools)] })
	}
	return b
}

func eachSize(b *testing.B, f func(b *testing.B, n int)) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) { f(b, n) })
	}
}

// One statement of a server into the board, a version every 50 of them (1,000
// a second, 20 versions a second).
func BenchmarkObserve(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		board := filled(n)
		board.Publish(epoch)
		list := make([]taskmodel.Observation, 0, 200_000)
		for i := range cap(list) {
			list = append(list, benchObs(i*7919%n, 1+i/n))
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			board.Observe("ci", taskmodel.GenCore, taskmodel.Requestor, list[i%len(list)])
			if i%50 == 49 {
				board.Publish(epoch)
			}
		}
	})
}

func BenchmarkPublish(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		board := filled(n)
		k := key("ci", benchObs(3, 0).ID)
		b.ReportAllocs()
		for b.Loop() {
			board.Change(k, epoch, func(t *taskmodel.Task) { t.Polls++ })
			board.Publish(epoch)
		}
	})
}

// A view follows a version in which 50 tasks changed.
func BenchmarkViewUpdate(b *testing.B) {
	for _, s := range []struct {
		name string
		Settings
	}{{"needs", Settings{}}, {"grouped", Settings{Group: "status", Filter: MustParseFilter("link"), Sort: SortHeard}}} {
		b.Run(s.name, func(b *testing.B) {
			eachSize(b, func(b *testing.B, n int) {
				board := filled(n)
				w := NewView()
				w.Set(s.Settings)
				w.Update(board.Publish(epoch))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					b.StopTimer()
					for j := range 50 {
						board.Observe("ci", taskmodel.GenCore, taskmodel.Requestor, benchObs((i*50+j)*7919%n, 1+i*50/n))
					}
					v := board.Publish(epoch)
					b.StartTimer()
					w.Update(v)
				}
			})
		})
	}
}

// What a frame asks of a view: 50 rows somewhere and the place of the selection.
func BenchmarkFrame(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		board := filled(n)
		w := NewView()
		w.Update(board.Publish(epoch))
		k := w.Row(n / 2).Task.Key
		b.ReportAllocs()
		for b.Loop() {
			at := w.Index(k)
			if rows := w.Rows(at, 50); rows[0].Task.Key != k {
				b.Fatal("not there")
			}
		}
	})
}

// A key typed into the filter: from all, and narrowing what is shown.
func BenchmarkFilter(b *testing.B) {
	for _, text := range []string{"l", "linking", "status:!completed tool:build", "/stage [0-3]/", "age:>5m"} {
		b.Run(text, func(b *testing.B) {
			eachSize(b, func(b *testing.B, n int) {
				board := filled(n)
				v := board.Publish(epoch)
				w := NewView()
				w.Update(v)
				f := MustParseFilter(text)
				b.ReportAllocs()
				for b.Loop() {
					w.Set(Settings{Filter: f})
					w.Update(v)
					b.StopTimer()
					w.Set(Settings{})
					w.Update(v)
					b.StartTimer()
				}
			})
		})
	}
}

func BenchmarkSort(b *testing.B) {
	for _, s := range []SortColumn{SortNeeds, SortMessage} {
		b.Run(string(s), func(b *testing.B) {
			eachSize(b, func(b *testing.B, n int) {
				v := filled(n).Publish(epoch)
				for b.Loop() {
					w := NewView()
					w.Set(Settings{Sort: s})
					w.Update(v)
				}
			})
		})
	}
}

func BenchmarkFork(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		w := NewView()
		w.Update(filled(n).Publish(epoch))
		for b.Loop() {
			w.Fork()
		}
	})
}

// Live heap per task with its version, a view and a second statement about
// each task; reported as B/task.
func BenchmarkMemory(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		for b.Loop() {
			before := heap()
			board := filled(n)
			for i := range n {
				board.Observe("ci", taskmodel.GenCore, taskmodel.Requestor, benchObs(i, 1))
			}
			w := NewView()
			w.Update(board.Publish(epoch))
			b.ReportMetric(float64(heap()-before)/float64(n), "B/task")
			runtime.KeepAlive(board)
			runtime.KeepAlive(w)
		}
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
