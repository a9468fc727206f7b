package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"mcptasks/taskmodel"
)

// Restore reads what is known of a server from earlier runs; see Store. Tasks
// that may still run come as Restored; ended, gone and expired ones keep their
// standing. An answer that was being sent by a process that is no more stands
// as unconfirmed.
func (j *Journal) Restore(ctx context.Context, target string) (Restored, error) {
	var pieces [][]taskmodel.Task
	r, err := j.RestoreEach(ctx, target, func(tasks []taskmodel.Task) { pieces = append(pieces, tasks) })
	r.Tasks = slices.Concat(pieces...)
	return r, err
}

// RestoreEach is Restore for those who want the tasks as they are read: f gets
// them in pieces, in the order of role and id, on a goroutine that decodes while
// the next ones are read, and keeps what it gets; what is returned has none. f is
// not called any more when RestoreEach has returned, and what it got before an
// error is good.
func (j *Journal) RestoreEach(ctx context.Context, target string, f func([]taskmodel.Task)) (r Restored, err error) {
	defer func() {
		if err != nil {
			j.noteDamage(err)
			err = fmt.Errorf("reading what is remembered of %s: %w", target, err)
		}
	}()
	tx, err := j.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, `SELECT n FROM counter`).Scan(&r.Change); err != nil {
		return r, err
	}
	var server int64
	var label string
	err = tx.QueryRowContext(ctx, `SELECT id, label FROM servers WHERE target = ?`, target).Scan(&server, &label)
	if noRows(err) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	kept, err := results(ctx, tx, server)
	if err != nil {
		return r, err
	}
	beside := &others{j: j}
	if r.Forgotten, err = j.walk(ctx, tx, server, label, kept, beside, f); err != nil {
		return r, err
	}
	r.Beside = beside.beside
	if r.Questions, err = j.questions(ctx, tx, label,
		`SELECT doc, writer FROM questions WHERE server = ? AND state <> 'withdrawn' ORDER BY asked`, server); err != nil {
		return r, err
	}
	if r.Answers, err = answers(ctx, tx, server, label); err != nil {
		return r, err
	}
	var s Session
	var init string
	var since int64
	err = tx.QueryRowContext(ctx, `SELECT sid, version, init, identity, at FROM sessions WHERE server = ?`, server).
		Scan(&s.ID, &s.Version, &init, &s.Identity, &since)
	switch {
	case err == nil:
		s.Since = local(since)
		if init != "" {
			s.Init = json.RawMessage(init)
		}
		r.Session = &s
	case !noRows(err):
		return r, err
	}
	return r, nil
}

func (j *Journal) questions(ctx context.Context, tx *sql.Tx, label, query string, args ...any) ([]taskmodel.Question, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []taskmodel.Question
	writers := map[int64]bool{}
	var sending []int // those whose writer is to be looked at
	var by []int64
	for rows.Next() {
		var doc sql.RawBytes
		var writer int64
		if err := rows.Scan(&doc, &writer); err != nil {
			return nil, err
		}
		var q taskmodel.Question
		if err := json.Unmarshal(doc, &q); err != nil {
			j.log.Error("a question in the journal cannot be read", "server", label, "error", err)
			continue
		}
		for _, raw := range []*json.RawMessage{&q.Draft, &q.Schema, &q.Params} {
			if string(*raw) == "null" {
				*raw = nil // so it was written: there is none
			}
		}
		q.ID.Server = label
		if q.Task.ID != "" {
			q.Task.Server = label
		}
		if q.State == taskmodel.QuestionSending {
			sending, by = append(sending, len(list)), append(by, writer)
		}
		list = append(list, q)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i, at := range sending {
		alive, ok := writers[by[i]]
		if !ok {
			alive = by[i] == j.me || j.alive(ctx, tx, by[i])
			writers[by[i]] = alive
		}
		if !alive {
			list[at].State = taskmodel.QuestionUnconfirmed
		}
	}
	return list, nil
}

// Question reads how one question stands, as it was written last by whichever
// process.
func (j *Journal) Question(ctx context.Context, target, id string) (q taskmodel.Question, found bool, err error) {
	tx, err := j.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return q, false, fmt.Errorf("reading a question of %s: %w", target, err)
	}
	defer func() { _ = tx.Rollback() }()
	list, err := j.questions(ctx, tx, "", `SELECT doc, writer FROM questions
		WHERE server = (SELECT id FROM servers WHERE target = ?) AND qid = ?`, target, id)
	if err != nil {
		j.noteDamage(err)
		return q, false, fmt.Errorf("reading a question of %s: %w", target, err)
	}
	if len(list) == 0 {
		return q, false, nil
	}
	return list[0], true, nil
}

func answers(ctx context.Context, tx *sql.Tx, server int64, label string) ([]taskmodel.Answer, error) {
	rows, err := tx.QueryContext(ctx, `SELECT qid, action, content FROM answers WHERE server = ? AND delivered = 0 ORDER BY at`, server)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []taskmodel.Answer
	for rows.Next() {
		a := taskmodel.Answer{Question: taskmodel.QuestionID{Server: label}}
		var action string
		var content []byte
		if err := rows.Scan(&a.Question.ID, &action, &content); err != nil {
			return nil, err
		}
		a.Action = taskmodel.Action(action)
		if len(content) > 0 {
			a.Content = content
		}
		list = append(list, a)
	}
	return list, rows.Err()
}

// queryer is what *sql.Tx, *sql.DB and *sql.Conn have in common here.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// alive reports whether the process that wrote something still runs. Of one on
// another machine only a lease that it renews tells.
func (j *Journal) alive(ctx context.Context, q queryer, writer int64) bool {
	var pid int
	var node string
	var ended, renewed int64
	err := q.QueryRowContext(ctx, `SELECT pid, node, ended, coalesce((SELECT max(renewed) FROM leases WHERE writer = w.id), 0)
		FROM writers w WHERE id = ?`, writer).Scan(&pid, &node, &ended, &renewed)
	if err != nil || ended != 0 {
		return false
	}
	if node == j.node {
		return running(pid)
	}
	return renewed > j.opts.Now().Add(-leaseLife).UnixMicro()
}

// Outcome reads the result that was kept for a task, with its payload.
func (j *Journal) Outcome(ctx context.Context, target string, id string, role taskmodel.Role) (o taskmodel.Outcome, ok bool, err error) {
	var fetched int64
	var failure string
	var payload []byte
	err = j.read.QueryRowContext(ctx, `SELECT fetched, large, note, error, payload FROM results
		WHERE server = (SELECT id FROM servers WHERE target = ?) AND role = ? AND task = ?`, target, roleNumber(role), id).
		Scan(&fetched, &o.TooLarge, &o.Note, &failure, &payload)
	if noRows(err) {
		return taskmodel.Outcome{}, false, nil
	}
	if err != nil {
		j.noteDamage(err)
		return taskmodel.Outcome{}, false, fmt.Errorf("reading the kept result of %s: %w", id, err)
	}
	o.FetchedAt = local(fetched)
	if len(payload) > 0 {
		o.Result = payload
	}
	if failure != "" {
		o.Err = new(taskmodel.RPCError)
		if err := json.Unmarshal([]byte(failure), o.Err); err != nil {
			return taskmodel.Outcome{}, false, fmt.Errorf("reading the kept error of %s: %w", id, err)
		}
	}
	o.KeptHere = o.TooLarge == 0
	return o, true, nil
}

// Changes returns what other processes wrote; see Store.
func (j *Journal) Changes(ctx context.Context, target string, since int64) (c Changes, err error) {
	c.Change = since
	j.watch.Lock()
	defer j.watch.Unlock()
	if j.watch.conn == nil {
		select {
		case <-j.ended:
			return c, ErrClosed
		default:
		}
		if j.watch.conn, err = j.read.Conn(context.WithoutCancel(ctx)); err != nil {
			return c, fmt.Errorf("looking for what other processes wrote: %w", err)
		}
	}
	var version int64
	if err := j.watch.conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version); err != nil {
		return c, fmt.Errorf("looking for what other processes wrote: %w", err)
	}
	if j.watch.seen[target] == (seen{version, since}) {
		return c, nil
	}
	if c, err = j.changes(ctx, target, since); err != nil {
		j.noteDamage(err)
		return Changes{Change: since}, fmt.Errorf("reading what other processes wrote of %s: %w", target, err)
	}
	j.watch.seen[target] = seen{version, c.Change}
	return c, nil
}

func (j *Journal) changes(ctx context.Context, target string, since int64) (c Changes, err error) {
	tx, err := j.watch.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return c, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, `SELECT n FROM counter`).Scan(&c.Change); err != nil {
		return c, err
	}
	var server int64
	var label string
	err = tx.QueryRowContext(ctx, `SELECT id, label FROM servers WHERE target = ?`, target).Scan(&server, &label)
	if noRows(err) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	rows, err := tx.QueryContext(ctx, `SELECT role, task, forgotten, doc, writer FROM tasks
		WHERE server = ? AND change > ? AND writer <> ? ORDER BY change`, server, since, j.me)
	if err != nil {
		return c, err
	}
	defer rows.Close()
	d := newDecoder(label)
	beside := &others{j: j}
	var writers []int64
	for rows.Next() {
		var role int
		var id string
		var forgotten, writer int64
		var doc sql.RawBytes
		if err := rows.Scan(&role, &id, &forgotten, &doc, &writer); err != nil {
			return c, err
		}
		if forgotten != 0 {
			c.Forgotten = append(c.Forgotten, keyOf(label, role, id))
			continue
		}
		t, err := d.task(doc)
		if err != nil {
			j.log.Error("a task in the journal cannot be read", "server", label, "error", err)
			continue
		}
		c.Tasks, writers = append(c.Tasks, t), append(writers, writer)
	}
	if err := rows.Err(); err != nil {
		return c, err
	}
	if len(c.Tasks) > 0 {
		kept, err := results(ctx, tx, server)
		if err != nil {
			return c, err
		}
		for i := range c.Tasks {
			if t := &c.Tasks[i]; t.Terminal() || !beside.run(ctx, tx, writers[i]) {
				restored(t)
			}
			kept.of(&c.Tasks[i])
			j.unknown(ctx, tx, &c.Tasks[i], writers[i])
		}
	}
	c.Questions, err = j.questions(ctx, tx, label, `SELECT doc, writer FROM questions
		WHERE server = ? AND change > ? AND writer <> ? ORDER BY change`, server, since, j.me)
	return c, err
}

func (j *Journal) noteDamage(err error) {
	if damaged(err) {
		j.markSuspect()
	}
}

const (
	leaseLife = 5 * time.Second  // of a process on another machine, without renewal
	leaseHere = 15 * time.Second // of one on this machine that runs, however slowly, or is stopped
)
