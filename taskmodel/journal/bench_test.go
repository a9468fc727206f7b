package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

func benchTask(i int) taskmodel.Task {
	t := working(fmt.Sprintf("%08x-5c1e-4b7a-9d42-%012x", uint32(i)*2654435761, i))
	t.CreatedAt, t.LastUpdatedAt = epoch, epoch.Add(time.Duration(i)*time.Millisecond)
	t.TTL = taskmodel.TTL{Known: true, Duration: time.Hour}
	t.Raw = json.RawMessage(fmt.Sprintf(`{"taskId":%q,"status":"working","statusMessage":"Plan","createdAt":"2026-03-01T12:00:00Z","lastUpdatedAt":"2026-03-01T12:00:01Z","ttl":3600000,"pollInterval":1000}`, t.ID))
	t.Args = json.RawMessage(`{"service":"checkout","version":"2.4.1","regions":["eu-1","us-2"]}`)
	t.Transitions = append(t.Transitions, taskmodel.Transition{At: sec(2), Status: taskmodel.Working, Message: "Canary 5 %"})
	return t
}

func benchEntry(i int) Entry {
	e := entry(benchTask(i))
	e.Event = &taskmodel.Event{Kind: taskmodel.EventStatus, Time: sec(i % 1000), Status: taskmodel.Working, Detail: json.RawMessage(`{"from":"working","status":"working"}`)}
	return e
}

// A transition that an effect waits for: one transaction.
func BenchmarkWrite(b *testing.B) {
	j := opened(b, b.TempDir(), Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := j.Write(context.Background(), benchEntry(i%1000)); err != nil {
			b.Fatal(err)
		}
	}
}

// A transition that nobody waits for, in batches.
func BenchmarkQueue(b *testing.B) {
	j := opened(b, b.TempDir(), Options{QueueBound: 1 << 30})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		j.Queue(benchEntry(i % 1000))
		if i%5000 == 4999 {
			if err := j.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := j.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// From the file closed to all 10,000 tasks in hand, as the monitor takes them.
func BenchmarkRestore(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			j := opened(b, dir, Options{QueueBound: 1 << 30})
			for i := range n {
				j.Queue(benchEntry(i))
				if i%2 == 0 {
					j.Queue(Entry{Target: target, Key: benchTask(i).Key, Outcome: &taskmodel.Outcome{Result: json.RawMessage(`{"content":[]}`)}})
				}
			}
			if err := j.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				j, err := Open(dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				got := 0
				if _, err := j.RestoreEach(context.Background(), target, func(tasks []taskmodel.Task) { got += len(tasks) }); err != nil || got != n {
					b.Fatal(got, err)
				}
				b.StopTimer()
				if err := j.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// Looking for what others wrote when they wrote nothing.
func BenchmarkChangesNone(b *testing.B) {
	j := opened(b, b.TempDir(), Options{})
	write(b, j, benchEntry(1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := j.Changes(context.Background(), target, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAcquire(b *testing.B) {
	j := opened(b, b.TempDir(), Options{})
	for b.Loop() {
		if _, ok, err := j.Acquire(context.Background(), target, "s"); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}
