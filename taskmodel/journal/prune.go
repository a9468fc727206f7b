package journal

import (
	"context"
	"fmt"
	"time"
)

// A Policy says what is kept; zero fields keep everything.
type Policy struct {
	Age   time.Duration // of ended tasks since their end, and of history rows
	Bytes int64         // of the file; the oldest results go first, then the oldest tasks
}

// A Pruned says what Prune took away.
type Pruned struct {
	Tasks   int   `json:"tasks"`
	Results int   `json:"results"`
	Events  int   `json:"events"`
	Bytes   int64 `json:"bytes"` // by which the file is smaller
}

// prunable are the tasks that may go: ended or lost, with no question open or
// answered without a word from the server. The stones of forgotten ones too.
const prunable = `(t.ended <> 0 OR t.lost <> 0 OR t.forgotten <> 0)
	AND NOT EXISTS (SELECT 1 FROM questions q WHERE q.server = t.server AND q.role = t.role AND q.task = t.task
		AND q.state NOT IN ('withdrawn', 'answered'))
	AND NOT EXISTS (SELECT 1 FROM questions q JOIN answers a USING (server, qid)
		WHERE q.server = t.server AND q.role = t.role AND q.task = t.task AND a.delivered = 0)`

// over is when a task was over.
const over = `max(t.ended, t.heard, t.forgotten)`

// Prune takes away what the policy does not keep. Nothing of a task goes that
// still runs, as far as is known, or has a question without a delivered answer.
func (j *Journal) Prune(ctx context.Context, p Policy) (out Pruned, err error) {
	before := j.size(ctx)
	if p.Age > 0 {
		cutoff := j.opts.Now().Add(-p.Age).UnixMicro()
		if err := j.pruneOlder(ctx, cutoff, &out); err != nil {
			return out, fmt.Errorf("pruning what is older than %s: %w", p.Age, err)
		}
	}
	if p.Bytes > 0 {
		if err := j.pruneTo(ctx, p.Bytes, &out); err != nil {
			return out, fmt.Errorf("pruning to %s: %w", bytesInWords(p.Bytes), err)
		}
	}
	if err := j.compact(ctx); err != nil {
		return out, fmt.Errorf("making the journal smaller: %w", err)
	}
	out.Bytes = max(0, before-j.size(ctx))
	return out, nil
}

// size is what the file's pages in use take.
func (j *Journal) size(ctx context.Context) int64 {
	var pages, free, size int64
	_ = j.read.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&pages)
	_ = j.read.QueryRowContext(ctx, `PRAGMA freelist_count`).Scan(&free)
	_ = j.read.QueryRowContext(ctx, `PRAGMA page_size`).Scan(&size)
	return (pages - free) * size
}

// steps repeats an act, each time in a transaction of its own, until it finds
// nothing more: nobody else waits for longer than one of them.
func (j *Journal) steps(ctx context.Context, f func(*tx) (int, error)) error {
	for {
		n := 0
		err := j.act(ctx, func(t *tx) (err error) {
			n, err = f(t)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// What one step takes at most.
const (
	pruneTasks  = 200
	pruneEvents = 2000
	prunePages  = 2000
	pruneFew    = 10 // by size, so that hardly more goes than has to
)

func (j *Journal) pruneOlder(ctx context.Context, cutoff int64, out *Pruned) error {
	if err := j.steps(ctx, func(t *tx) (int, error) {
		n, err := t.dropTasks(`SELECT server, role, task FROM tasks t WHERE `+prunable+` AND `+over+` < ? LIMIT ?`, out, cutoff, pruneTasks)
		out.Tasks += n
		return n, err
	}); err != nil {
		return err
	}
	// Rows of tasks that are still there stay; of servers and of tasks that are
	// gone from the table they go.
	if err := j.steps(ctx, func(t *tx) (int, error) {
		t.tidy = true
		res, err := t.exec(`DELETE FROM events WHERE id IN (SELECT id FROM events e WHERE at < ? AND NOT EXISTS
			(SELECT 1 FROM tasks t WHERE t.server = e.server AND t.role = e.role AND t.task = e.task) LIMIT ?)`, cutoff, pruneEvents)
		if err != nil {
			return 0, err
		}
		rows, err := res.RowsAffected()
		out.Events += int(rows)
		return int(rows), err
	}); err != nil {
		return err
	}
	return j.act(ctx, func(t *tx) error {
		for _, q := range []string{
			`DELETE FROM acts WHERE at < ?`,
			`DELETE FROM taps WHERE started < ? AND NOT EXISTS
				(SELECT 1 FROM leases l WHERE l.server = taps.server AND l.session = taps.session)`,
			`DELETE FROM intents WHERE done <> 0 AND done < ?`,
			`DELETE FROM writers WHERE started < ? AND ended <> 0
				AND id NOT IN (SELECT writer FROM tasks) AND id NOT IN (SELECT writer FROM questions)
				AND id NOT IN (SELECT writer FROM leases) AND id NOT IN (SELECT writer FROM acts)
				AND id NOT IN (SELECT sender FROM intents) AND id NOT IN (SELECT claimed FROM intents WHERE claimed IS NOT NULL)`,
		} {
			if _, err := t.exec(q, cutoff); err != nil {
				return err
			}
		}
		return t.unread()
	})
}

// dropTasks drops the tasks that a query names with all that belongs to them.
func (t *tx) dropTasks(query string, out *Pruned, args ...any) (int, error) {
	t.tidy = true
	if _, err := t.exec(`CREATE TEMP TABLE IF NOT EXISTS dropped (server INTEGER, role INTEGER, task TEXT)`); err != nil {
		return 0, err
	}
	if _, err := t.exec(`DELETE FROM dropped`); err != nil {
		return 0, err
	}
	if _, err := t.exec(`INSERT INTO dropped `+query, args...); err != nil {
		return 0, err
	}
	counts := make([]int64, 5)
	for i, q := range []string{
		`DELETE FROM answers WHERE (server, qid) IN (SELECT q.server, q.qid FROM questions q JOIN dropped d USING (server, role, task))`,
		`DELETE FROM questions WHERE (server, role, task) IN (SELECT server, role, task FROM dropped)`,
		`DELETE FROM results WHERE (server, role, task) IN (SELECT server, role, task FROM dropped)`,
		`DELETE FROM events WHERE task <> '' AND (server, role, task) IN (SELECT server, role, task FROM dropped)`,
		`DELETE FROM tasks WHERE (server, role, task) IN (SELECT server, role, task FROM dropped)`,
	} {
		res, err := t.exec(q)
		if err != nil {
			return 0, err
		}
		if counts[i], err = res.RowsAffected(); err != nil {
			return 0, err
		}
	}
	out.Results += int(counts[2])
	out.Events += int(counts[3])
	return int(counts[4]), nil
}

// pruneTo drops results, then tasks, the oldest first, in small steps.
func (j *Journal) pruneTo(ctx context.Context, bytes int64, out *Pruned) error {
	for step := 0; j.size(ctx) > bytes; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var n int64
		err := j.act(ctx, func(t *tx) error {
			t.tidy = true
			if step == 0 {
				res, err := t.exec(`DELETE FROM results WHERE (server, role, task) IN (SELECT t.server, t.role, t.task
					FROM results r JOIN tasks t USING (server, role, task) WHERE `+prunable+` ORDER BY r.fetched LIMIT ?)`, pruneFew)
				if err != nil {
					return err
				}
				n, err = res.RowsAffected()
				out.Results += int(n)
				return err
			}
			dropped, err := t.dropTasks(`SELECT server, role, task FROM tasks t WHERE `+prunable+` ORDER BY `+over+` LIMIT ?`, out, pruneFew)
			n = int64(dropped)
			out.Tasks += dropped
			return err
		})
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if step++; step == 2 {
			return nil // the rest may not go
		}
	}
	return nil
}

// compact gives the pages that became free back to the disk.
func (j *Journal) compact(ctx context.Context) error {
	before := int64(-1)
	return j.steps(ctx, func(t *tx) (int, error) {
		t.tidy = true
		var free int64
		if err := t.queryRow(`PRAGMA freelist_count`, nil, &free); err != nil || free == 0 || free == before {
			return 0, err
		}
		before = free
		s, err := t.prepare(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, prunePages))
		if err != nil {
			return 0, err
		}
		rows, err := s.QueryContext(context.Background())
		if err != nil {
			return 0, err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return 1, rows.Err()
	})
}
