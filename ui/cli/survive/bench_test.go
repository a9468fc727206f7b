//go:build linux

package survive

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// BenchmarkFirstFrame is from exec to the first frame that shows what an earlier
// run knew, of a server that does not answer: the real program at a real
// terminal.
func BenchmarkFirstFrame(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			u := newUser(b, nil)
			const target = "http://127.0.0.1:1/mcp"
			u.flags = []string{"-s", "p=" + target}
			j, err := journal.Open(u.state(), journal.Options{QueueBound: 1 << 30})
			if err != nil {
				b.Fatal(err)
			}
			now := time.Now()
			for i := range n {
				j.Queue(remembered(target, i, now))
			}
			if err := j.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
			cpu, runs := time.Duration(0), 0
			for b.Loop() {
				s := u.screens()
				for !strings.Contains(s.out.String(), "Canary on shard") {
					time.Sleep(500 * time.Microsecond)
				}
				b.StopTimer()
				s.kill()
				<-s.done
				cpu += s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
				runs++
				b.StartTimer()
			}
			// What other work on the machine does not change.
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(runs), "cpu-ms/op")
		})
	}
}

// remembered is a task as a run leaves it behind.
func remembered(target string, i int, now time.Time) journal.Entry {
	t := taskmodel.Task{Tool: "deploy_release", Ours: true, FirstHeardAt: now.Add(-time.Hour), LastHeardAt: now, StatusSince: now.Add(-time.Minute),
		Standing: taskmodel.Live, Args: json.RawMessage(`{"service":"checkout","version":"2.4.1","regions":["eu-1","us-2"]}`)}
	t.Key = taskmodel.Key{Server: "p", ID: fmt.Sprintf("%08x-5c1e-4b7a-9d42-%012x", uint32(i)*2654435761, i), Role: taskmodel.Requestor}
	t.Generation, t.Status, t.StatusMessage = taskmodel.GenCore, taskmodel.Working, fmt.Sprintf("Canary on shard %d of 10000", i)
	t.CreatedAt, t.LastUpdatedAt = now.Add(-time.Hour+time.Duration(i)*time.Millisecond), now
	t.TTL, t.PollInterval = taskmodel.TTL{Known: true, Duration: 24 * time.Hour}, 5*time.Second
	t.Raw = json.RawMessage(fmt.Sprintf(`{"taskId":%q,"status":"working","statusMessage":%q,"createdAt":"2026-03-01T12:00:00Z","lastUpdatedAt":"2026-03-01T12:00:01Z","ttl":86400000,"pollInterval":5000}`, t.ID, t.StatusMessage))
	t.Transitions = []taskmodel.Transition{{At: now.Add(-time.Hour), Status: taskmodel.Working}, {At: now.Add(-time.Minute), Status: taskmodel.Working, Message: t.StatusMessage}}
	return journal.Entry{Target: target, Server: "p", Task: &t}
}
