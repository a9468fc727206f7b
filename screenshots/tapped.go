package main

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// This file makes the picture of an agent's tasks: what a tap in the session of
// an agent would have written down, in a journal that the monitor of the
// picture reads as it would read a tap's in another process.

const (
	tapTarget  = "npx -y @acme/warehouse-mcp"
	tapLabel   = "tap: warehouse"
	tapSession = "tap:4711-5e1d0c2a"
	agent      = "claude-code"
)

// memory is the journal of the picture. The process that holds the tap's lease
// is this one, whose number is another at each run; the picture has one. And
// the tap alone writes: two writers would wait for each other, as long as it
// happens to take.
type memory struct{ *journal.Journal }

func (m memory) Taps(ctx context.Context, since time.Time) ([]journal.Tap, error) {
	list, err := m.Journal.Taps(ctx, since)
	for i := range list {
		list[i].Holder.PID = 4711
	}
	return list, err
}

func (memory) Write(context.Context, ...journal.Entry) error { return nil }
func (memory) Queue(...journal.Entry)                        {}

func (memory) Acquire(context.Context, string, string) (journal.Holder, bool, error) {
	return journal.Holder{}, true, nil
}

func (memory) Release(context.Context, string, string) error { return nil }

func (memory) ClaimIntents(context.Context, string, string) ([]journal.Intent, error) {
	return nil, nil
}

func (memory) ClaimAct(context.Context, string, string) (bool, error) { return true, nil }

// A heard task is one that the tap heard of, and what it heard last.
type heard struct {
	id, tool, args string
	began          time.Duration // before the picture
	status         taskmodel.Status
	words          string
	progress       float64 // of 100; 0: none was reported
	result         string
}

var heardTasks = []heard{
	{id: "b1f4c7e2-0d3a-4c55-9e86-1f2a3b4c5d6e", tool: "reindex", args: `{"table":"orders","shards":12}`, began: 7 * time.Minute,
		status: taskmodel.Working, words: "shard 8 of 12", progress: 64},
	{id: "3c90aa17-62de-4f0b-8d11-7be0c2d4f693", tool: "backfill", args: `{"from":"2026-10-01","to":"2026-10-31"}`, began: 4 * time.Minute,
		status: taskmodel.Working, words: "2026-10-19", progress: 58},
	{id: "77e05d29-b8c4-4a1f-a3d7-94c60e8f1b02", tool: "drop_partition", args: `{"table":"events","month":"2025-11"}`, began: 90 * time.Second,
		status: taskmodel.InputRequired, words: "waiting for a confirmation"},
	{id: "e8126fd4-3b97-46c0-b5aa-20d9f7c13e58", tool: "explain", args: `{"query":"SELECT …"}`, began: 11 * time.Minute,
		status: taskmodel.Completed, words: "done", result: `{"content":[{"type":"text","text":"Seq Scan on orders"}]}`},
	{id: "d5a3019b-7cf2-4e68-8014-c6b9e2f4a7d1", tool: "vacuum", args: `{"table":"sessions"}`, began: 12 * time.Minute,
		status: taskmodel.Failed, words: "the lock on sessions was not given within 600 s"},
}

// A tapped session is a tap as far as the journal shows it.
type tapped struct {
	t    *testing.T
	j    *journal.Journal
	read *journal.Journal
}

// newTapped opens the journal twice, as two processes would.
func newTapped(t *testing.T) *tapped {
	dir := t.TempDir()
	open := func(what string) *journal.Journal {
		j, err := journal.Open(dir, journal.Options{What: what})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	return &tapped{t: t, j: open("mcptasks tap"), read: open("mcptasks")}
}

// begin says that there is a tap, and writes its tasks down.
func (p *tapped) begin(ctx context.Context) {
	p.hold(ctx)
	err := p.j.PutTap(ctx, journal.Tap{Target: tapTarget, Label: tapLabel, Session: tapSession, Started: shown.Add(-20 * time.Minute),
		Agents: []string{agent}, Transport: "stdio", Generation: taskmodel.GenCore, Version: "2025-11-25", Server: "warehouse", ServerVer: "3.2.0",
		Can: taskmodel.Can{List: true, Cancel: true, StartWhy: "this is the session of " + agent + "; a tap starts nothing in it"}})
	if err != nil {
		p.t.Fatal(err)
	}
	var entries []journal.Entry
	for _, h := range heardTasks {
		entries = append(entries, h.entries()...)
	}
	if err := p.j.Write(ctx, entries...); err != nil {
		p.t.Fatal(err)
	}
}

// hold keeps the lease, as a tap does each second.
func (p *tapped) hold(ctx context.Context) {
	if _, ok, err := p.j.Acquire(ctx, tapTarget, tapSession); ctx.Err() == nil && (err != nil || !ok) {
		p.t.Error(ok, err)
	}
}

// live holds the lease until ctx ends.
func (p *tapped) live(ctx context.Context) {
	// Never at the instant of a look of the monitor's: who comes first would be
	// left to chance.
	time.Sleep(137 * time.Millisecond)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.hold(ctx)
			var entries []journal.Entry
			for _, h := range heardTasks {
				if !h.status.Terminal(taskmodel.GenCore) {
					entries = append(entries, h.entries()[0])
				}
			}
			p.j.Queue(entries...) // the agent has polled
		}
	}
}

func (p *tapped) close(ctx context.Context) {
	for _, j := range []*journal.Journal{p.read, p.j} {
		if err := j.Close(ctx); err != nil {
			p.t.Error(err)
		}
	}
}

// entries are what the tap wrote down of a task.
func (h heard) entries() []journal.Entry {
	k := taskmodel.Key{Server: tapLabel, ID: h.id, Role: taskmodel.Requestor}
	born, now := shown.Add(-h.began), time.Now()
	v := taskmodel.Task{Key: k, Generation: taskmodel.GenCore, Status: h.status, StatusMessage: h.words, CreatedAt: born, LastUpdatedAt: now,
		TTL: taskmodel.TTL{Known: true, Duration: time.Hour}, PollInterval: 2 * time.Second, Tool: h.tool, Args: json.RawMessage(h.args),
		Owner: agent, Tap: tapSession, FirstHeardAt: born, LastHeardAt: now, StatusSince: born.Add(h.began / 2), Standing: taskmodel.Live,
		Polls:       int(h.began / (2 * time.Second)),
		Transitions: []taskmodel.Transition{{At: born, Status: taskmodel.Working, Message: "accepted"}}}
	if h.progress > 0 {
		v.Progress = &taskmodel.Progress{Value: h.progress, Total: 100, HasTotal: true, At: now}
	}
	if h.status != taskmodel.Working {
		v.Transitions = append(v.Transitions, taskmodel.Transition{At: v.StatusSince, Status: h.status, Message: h.words})
	}
	if v.Terminal() {
		v.EndedAt, v.LastHeardAt, v.LastUpdatedAt = v.StatusSince, v.StatusSince, v.StatusSince
	}
	by, _ := json.Marshal(map[string]string{"tool": h.tool, "by": agent}) // strings only: it cannot fail
	entry := journal.Entry{Target: tapTarget, Server: tapLabel, Key: k, Task: &v,
		Event: &taskmodel.Event{Time: born, Server: tapLabel, Task: k, Kind: taskmodel.EventCreated, Status: taskmodel.Working, Detail: by}}
	out := []journal.Entry{entry}
	if h.status != taskmodel.Working {
		out = append(out, journal.Entry{Target: tapTarget, Server: tapLabel, Key: k,
			Event: &taskmodel.Event{Time: v.StatusSince, Server: tapLabel, Task: k, Kind: taskmodel.EventStatus, Status: h.status, Message: h.words}})
	}
	if h.result != "" {
		out = append(out, journal.Entry{Target: tapTarget, Server: tapLabel, Key: k,
			Outcome: &taskmodel.Outcome{Result: json.RawMessage(h.result), FetchedAt: v.EndedAt},
			Event:   &taskmodel.Event{Time: v.EndedAt, Server: tapLabel, Task: k, Kind: taskmodel.EventResult}})
	}
	if h.status == taskmodel.InputRequired {
		q := taskmodel.Question{ID: taskmodel.QuestionID{Server: tapLabel, ID: "tap:" + h.id}, Task: k, Kind: taskmodel.AskForm, Method: "elicitation/create",
			Message: "Drop the partition events_2025_11 (41 GB)?", AskedAt: v.StatusSince, Round: 1, Tool: h.tool,
			State: taskmodel.QuestionWithdrawn, Withdrawn: "asked of " + agent + ", which answers it"}
		v.Inputs = []taskmodel.QuestionID{q.ID}
		out[0].Task = &v
		out = append(out, journal.Entry{Target: tapTarget, Server: tapLabel, Key: k, Question: &q,
			Event: &taskmodel.Event{Time: q.AskedAt, Server: tapLabel, Task: k, Kind: taskmodel.EventQuestion, Question: q.ID, Message: q.Message}})
	}
	return out
}
