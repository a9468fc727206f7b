package setup

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"mcptasks/mcp/config"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// A Memory is the journal as the commands use it: by servers' names.
type Memory struct {
	*journal.Journal
	targets map[string]string
	policy  journal.Policy
}

// OpenMemory opens the journal in dir. What keeps it from opening is told in
// notes, and the program runs without memory: the Memory is then nil.
func OpenMemory(dir string, c config.Config, what string, log *slog.Logger) (*Memory, []string) {
	if dir == "" {
		return nil, []string{"no folder to remember in was found (set XDG_STATE_HOME or --state): nothing will be remembered"}
	}
	before := len(journal.Damaged(dir))
	f := c.File
	j, err := journal.Open(dir, journal.Options{What: what, Log: log, ResultMax: int64(f.Limits.Result), ResultsTotal: int64(f.Limits.ResultsTotal)})
	if err != nil {
		return nil, []string{err.Error() + " Nothing will be remembered in this run."}
	}
	m := &Memory{Journal: j, targets: map[string]string{}, policy: journal.Policy{Age: 90 * 24 * time.Hour, Bytes: 500 << 20}}
	if d := f.History.Days; d > 0 {
		m.policy.Age = time.Duration(d) * 24 * time.Hour
	}
	if mb := f.History.Megabytes; mb > 0 {
		m.policy.Bytes = int64(mb) << 20
	}
	for _, s := range c.Servers {
		m.targets[s.Name] = s.Target()
	}
	var notes []string
	if aside := journal.Damaged(dir); len(aside) > before {
		notes = append(notes, fmt.Sprintf("the journal was damaged: it is set aside as %s, and a new one was made", aside[len(aside)-1]))
	}
	return m, notes
}

// Store is what the monitor needs of it.
func (m *Memory) Store() journal.Store { return m.Journal }

// History gives the audit trail, oldest first: of everything, of a server, or
// of the tasks whose id begins with taskID. limit 0 is all.
func (m *Memory) History(ctx context.Context, server, taskID string, limit int) ([]taskmodel.Event, error) {
	q := journal.HistoryQuery{Server: server, TaskID: taskID, Prefix: true, Limit: limit}
	if t, ok := m.targets[server]; ok {
		q.Server, q.Target = "", t
	}
	var out []taskmodel.Event
	err := m.Journal.History(ctx, q, func(r journal.HistoryRow) error {
		out = append(out, taskmodel.Event{
			Seq: r.ID, Time: r.Time, Server: r.Server, Task: taskmodel.Key{Server: r.Server, ID: r.TaskID, Role: r.Role},
			Kind: r.Event, Status: r.Status, Message: r.Message, Detail: r.Detail,
		})
		return nil
	})
	return out, err
}

// Prune drops what is older or larger than the settings allow and says what.
func (m *Memory) Prune(ctx context.Context) (string, error) {
	p, err := m.Journal.Prune(ctx, m.policy)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Dropped %d tasks, %d results and %d lines of history; the file is %d bytes smaller.", p.Tasks, p.Results, p.Events, p.Bytes), nil
}

// Import takes in what Export wrote and says what that was.
func (m *Memory) Import(ctx context.Context, r io.Reader) (string, error) {
	in, err := m.Journal.Import(ctx, r)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Took in %d tasks, %d questions, %d results and %d lines of history; passed over %d lines.", in.Tasks, in.Questions, in.Results, in.Events, in.Skipped), nil
}

// Bundle writes one task with all that belongs to it, without secrets.
func (m *Memory) Bundle(ctx context.Context, k taskmodel.Key, wire []taskmodel.WireEntry, keepIDs bool, w io.Writer) error {
	target, ok := m.targets[k.Server]
	if !ok { // a server of an earlier run, by the label that it had
		found, err := m.Journal.Find(ctx, k.Server, k.ID, k.Role)
		if err != nil {
			return err
		}
		for _, f := range found {
			target = f.Target
		}
	}
	b, err := m.Journal.Bundle(ctx, target, k, journal.BundleOptions{Wire: wire, KeepIDs: keepIDs})
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Find gives the remembered tasks whose id begins with prefix, of one server or
// of all ("").
func (m *Memory) Find(ctx context.Context, server, prefix string, role taskmodel.Role) ([]taskmodel.Key, error) {
	found, err := m.Journal.Find(ctx, server, prefix, role)
	out := make([]taskmodel.Key, len(found))
	for i, f := range found {
		out[i] = f.Task.Key
	}
	return out, err
}

// Close writes what is queued and closes the file.
func (m *Memory) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	return m.Journal.Close(ctx)
}
