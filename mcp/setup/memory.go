package setup

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mcptasks/mcp/config"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// A Memory is the journal as the commands use it: by servers' names.
type Memory struct {
	*journal.Journal
	dir     string
	targets map[string]string
	policy  journal.Policy
	secrets []string // that must not stand in a bundle
	log     *slog.Logger
}

// OpenMemory opens the journal in dir. What keeps it from opening is told in
// notes, and in a few words in forgetful, and the program runs without memory:
// the Memory is then nil.
func OpenMemory(dir string, c config.Config, what string, log *slog.Logger) (m *Memory, notes []string, forgetful string) {
	if dir == "" {
		return nil, []string{"no folder to remember in was found (set XDG_STATE_HOME or --state): nothing will be remembered"}, "there is no folder for it"
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	before := len(journal.Damaged(dir))
	f := c.File
	j, err := journal.Open(dir, journal.Options{What: what, Log: log, ResultMax: int64(f.Limits.Result), ResultsTotal: int64(f.Limits.ResultsTotal)})
	if err != nil {
		if forgetful = journal.Why(err); forgetful == "" {
			forgetful = "its folder cannot be used"
		}
		return nil, []string{err.Error() + ". Nothing will be remembered in this run."}, forgetful
	}
	m = &Memory{Journal: j, dir: dir, log: log, targets: map[string]string{}, policy: journal.Policy{Age: 90 * 24 * time.Hour, Bytes: 500 << 20}}
	if d := f.History.Days; d > 0 {
		m.policy.Age = time.Duration(d) * 24 * time.Hour
	}
	if mb := f.History.Megabytes; mb > 0 {
		m.policy.Bytes = int64(mb) << 20
	}
	for _, s := range c.Servers {
		m.targets[s.Name] = s.Target()
		m.secrets = append(m.secrets, s.Secrets()...)
	}
	if aside := journal.Damaged(dir); len(aside) > before {
		notes = append(notes, fmt.Sprintf("the journal was damaged: it is set aside as %s, and a new one was made", aside[len(aside)-1]))
	}
	return m, notes, ""
}

// Trouble is what keeps the journal from being written at present, in a
// sentence; "" while all is well.
func (m *Memory) Trouble() string {
	if err := m.Err(); err != nil {
		return err.Error()
	}
	return ""
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

// pruneEvery is how often the journal is brought within its bounds by itself.
const pruneEvery = 24 * time.Hour

// Retain prunes once a day until ctx ends, whichever process comes first: a
// file beside the journal tells when it was done last.
func (m *Memory) Retain(ctx context.Context) {
	stamp := filepath.Join(m.dir, "pruned")
	for {
		wait := pruneEvery
		if info, err := os.Stat(stamp); err == nil {
			wait = time.Until(info.ModTime().Add(pruneEvery))
		} else {
			wait = 0
		}
		if wait > pruneEvery { // the clock was set back
			wait = 0
		}
		t := time.NewTimer(max(wait, time.Second)) // the start has other things to do
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		if info, err := os.Stat(stamp); err == nil && wait > 0 && time.Until(info.ModTime().Add(pruneEvery)) > 0 {
			continue // another process was first
		}
		p, err := m.Journal.Prune(ctx, m.policy)
		if ctx.Err() != nil {
			return // the next run goes on with it
		}
		if err != nil {
			m.log.Warn("the journal could not be pruned", "error", err)
		} else {
			m.log.Info("the journal was pruned", "tasks", p.Tasks, "results", p.Results, "events", p.Events)
		}
		if err := touch(stamp); err != nil {
			m.log.Warn("cannot note that the journal was pruned", "error", err)
			return
		}
	}
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = f.Close()
	now := time.Now()
	return os.Chtimes(path, now, now)
}

// Bundle writes one task with all that belongs to it, without secrets. An id
// that is only the beginning of one will do.
func (m *Memory) Bundle(ctx context.Context, k taskmodel.Key, wire []taskmodel.WireEntry, keepIDs bool, w io.Writer) error {
	found, err := m.Journal.Find(ctx, k.Server, k.ID, k.Role)
	if err != nil {
		return err
	}
	if t, ok := m.targets[k.Server]; ok { // a label may have had another target before
		found = slices.DeleteFunc(found, func(f journal.Remembered) bool { return f.Target != t })
	}
	switch len(found) {
	case 0:
		return fmt.Errorf("this machine does not remember %s", k)
	case 1:
	default:
		return fmt.Errorf("%q begins %d tasks: give more of the id", k.ID, len(found))
	}
	b, err := m.Journal.Bundle(ctx, found[0].Target, found[0].Task.Key, journal.BundleOptions{Wire: wire, KeepIDs: keepIDs, Secrets: m.secrets})
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
