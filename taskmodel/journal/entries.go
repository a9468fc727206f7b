package journal

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"mcptasks/taskmodel"
)

// server gives the row of a server, made when it is new; the label is the one
// used last.
func (t *tx) server(target, label string) (int64, error) {
	row, ok := t.servers[target]
	if ok && (label == "" || row.label == label) {
		return row.id, nil
	}
	if label == "" {
		label = row.label
	}
	err := t.queryRow(`INSERT INTO servers (target, label) VALUES (?, ?)
		ON CONFLICT (target) DO UPDATE SET label = CASE excluded.label WHEN '' THEN label ELSE excluded.label END
		RETURNING id, label`, []any{target, label}, &row.id, &row.label)
	if err != nil {
		return 0, fmt.Errorf("keeping the server %s: %w", target, err)
	}
	t.servers[target] = row
	return row.id, nil
}

// entry writes one entry.
func (t *tx) entry(e *Entry) error {
	server, err := t.server(e.Target, e.Server)
	if err != nil {
		return err
	}
	key := e.Key
	if e.Task != nil && key.ID == "" {
		key = e.Task.Key
	}
	for _, step := range []func(int64, taskmodel.Key, *Entry) error{
		t.forget, t.task, t.event, t.question, t.answer, t.delivered, t.outcome, t.session,
	} {
		if err := step(server, key, e); err != nil {
			return fmt.Errorf("keeping %s: %w", key, err)
		}
	}
	return nil
}

// forget leaves a stone where the task was, so that other processes drop it.
func (t *tx) forget(server int64, k taskmodel.Key, e *Entry) error {
	if !e.Forget {
		return nil
	}
	n, err := t.nextChange()
	if err != nil {
		return err
	}
	where := []any{server, roleNumber(k.Role), k.ID}
	if _, err := t.exec(`INSERT INTO tasks (server, role, task, change, writer, status, created, heard, ended, lost, forgotten, doc)
		VALUES (?1, ?2, ?3, ?4, ?5, '', 0, 0, 0, 0, ?6, x'')
		ON CONFLICT DO UPDATE SET change = excluded.change, writer = excluded.writer, status = '', created = 0, heard = 0,
			ended = 0, lost = 0, forgotten = excluded.forgotten, doc = x''`,
		append(where, n, t.j.me, t.now)...); err != nil {
		return err
	}
	for _, q := range []string{
		`DELETE FROM results WHERE server = ? AND role = ? AND task = ?`,
		`DELETE FROM answers WHERE (server, qid) IN (SELECT server, qid FROM questions WHERE server = ? AND role = ? AND task = ?)`,
		`DELETE FROM questions WHERE server = ? AND role = ? AND task = ?`,
	} {
		if _, err := t.exec(q, where...); err != nil {
			return err
		}
	}
	t.tidy = true
	return nil
}

// putTask is refused by the row that is there when that knows better: it has
// ended and this is the same task, it was forgotten after this was heard, or
// another process heard something later.
const putTask = `INSERT INTO tasks (server, role, task, change, writer, status, created, heard, ended, lost, doc)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
	ON CONFLICT DO UPDATE SET change = excluded.change, writer = excluded.writer, status = excluded.status,
		created = excluded.created, heard = excluded.heard, ended = excluded.ended, lost = excluded.lost, forgotten = 0, doc = excluded.doc
	WHERE CASE
		WHEN forgotten <> 0 THEN ?12 > forgotten
		WHEN created <> 0 AND excluded.created > created + iif(writer = excluded.writer, 0, 1000000) THEN 1
		WHEN ended <> 0 THEN excluded.ended <> 0 AND excluded.status = status
		WHEN excluded.ended <> 0 THEN 1
		ELSE writer = excluded.writer OR excluded.heard >= heard
	END`

func (t *tx) task(server int64, k taskmodel.Key, e *Entry) error {
	if e.Task == nil || e.Forget {
		return nil
	}
	n, err := t.nextChange()
	if err != nil {
		return err
	}
	task := *e.Task
	task.Key = k
	var ended int64
	if task.Terminal() {
		if ended = micros(task.EndedAt); ended == 0 {
			ended = t.now
		}
	}
	lost := task.Standing == taskmodel.Gone || task.Standing == taskmodel.Expired
	_, err = t.exec(putTask, server, roleNumber(k.Role), k.ID, n, t.j.me, string(task.Status), micros(task.CreatedAt),
		micros(task.LastHeardAt), ended, lost, encodeTask(&task), micros(task.FirstHeardAt))
	return err
}

func (t *tx) event(server int64, k taskmodel.Key, e *Entry) error {
	v := e.Event
	if v == nil {
		return nil
	}
	if v.Task.ID != "" {
		k = v.Task
	}
	at := micros(v.Time)
	if at == 0 {
		at = t.now
	}
	_, err := t.exec(`INSERT INTO events (at, server, role, task, event, status, words, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		at, server, roleNumber(k.Role), k.ID, string(v.Kind), string(v.Status), v.Message, string(v.Detail))
	return err
}

func (t *tx) question(server int64, k taskmodel.Key, e *Entry) error {
	q := e.Question
	if q == nil {
		return nil
	}
	n, err := t.nextChange()
	if err != nil {
		return err
	}
	if q.Task.ID != "" {
		k = q.Task
	}
	doc, err := json.Marshal(q)
	if err != nil {
		return err
	}
	// Two processes may hear a question at once. What one of them heard must not
	// undo what the other has answered since.
	_, err = t.exec(`INSERT INTO questions (server, qid, role, task, change, writer, state, asked, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET role = excluded.role, task = excluded.task, change = excluded.change, writer = excluded.writer,
			state = excluded.state, asked = excluded.asked, doc = excluded.doc
		WHERE NOT (writer <> excluded.writer AND state IN ('sending', 'answered', 'unconfirmed') AND excluded.state IN ('open', 'withdrawn'))`,
		server, q.ID.ID, roleNumber(k.Role), k.ID, n, t.j.me, string(q.State), micros(q.AskedAt), string(doc))
	return err
}

func (t *tx) answer(server int64, _ taskmodel.Key, e *Entry) error {
	a := e.Answer
	if a == nil {
		return nil
	}
	_, err := t.exec(`INSERT INTO answers (server, qid, action, content, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET action = excluded.action, content = excluded.content, at = excluded.at, delivered = 0`,
		server, a.Question.ID, string(a.Action), []byte(a.Content), t.now)
	t.tidy = true // what it replaced
	return err
}

func (t *tx) delivered(server int64, _ taskmodel.Key, e *Entry) error {
	if e.Delivered == nil {
		return nil
	}
	_, err := t.exec(`UPDATE answers SET content = NULL, delivered = 1 WHERE server = ? AND qid = ?`, server, e.Delivered.ID)
	if err == nil {
		// The draft is the same words.
		_, err = t.exec(`UPDATE questions SET doc = json_remove(doc, '$.Draft') WHERE server = ? AND qid = ?`, server, e.Delivered.ID)
	}
	t.tidy = true
	return err
}

// outcome keeps a result within the bounds; over them only the fact and a note.
func (t *tx) outcome(server int64, k taskmodel.Key, e *Entry) error {
	o := e.Outcome
	if o == nil || o.IsZero() {
		return nil
	}
	size, large, note := int64(len(o.Result)), o.TooLarge, o.Note
	payload := []byte(o.Result)
	switch {
	case o.Result == nil && o.Err == nil && large == 0:
		return nil // one that is kept here already
	case size > t.j.opts.ResultMax:
		large, payload = size, nil
		note = overLimit(k, size, "one result", t.j.opts.ResultMax)
	case size > 0:
		var total int64
		if err := t.queryRow(`SELECT bytes - coalesce((SELECT bytes FROM results WHERE server = ? AND role = ? AND task = ?), 0) FROM counter`,
			[]any{server, roleNumber(k.Role), k.ID}, &total); err != nil {
			return err
		}
		if total+size > t.j.opts.ResultsTotal {
			large, payload = size, nil
			note = overLimit(k, size, "all results", t.j.opts.ResultsTotal)
		}
	}
	failure := ""
	if o.Err != nil {
		b, err := json.Marshal(o.Err)
		if err != nil {
			return err
		}
		failure = string(b)
	}
	fetched := micros(o.FetchedAt)
	if fetched == 0 {
		fetched = t.now
	}
	_, err := t.exec(`INSERT INTO results (server, role, task, fetched, bytes, large, note, error, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET fetched = excluded.fetched, bytes = excluded.bytes, large = excluded.large, note = excluded.note,
			error = excluded.error, payload = excluded.payload
		WHERE excluded.payload IS NOT NULL OR payload IS NULL`,
		server, roleNumber(k.Role), k.ID, fetched, len(payload), large, note, failure, payload)
	return err
}

func overLimit(k taskmodel.Key, size int64, what string, limit int64) string {
	return fmt.Sprintf("Not kept: it has %s, more than the %s that are kept of %s. To write it to a file while the server has it: mcptasks result %s --save DIR",
		bytesInWords(size), bytesInWords(limit), what, k)
}

func bytesInWords(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

func (t *tx) session(server int64, _ taskmodel.Key, e *Entry) error {
	s := e.Session
	if s == nil {
		return nil
	}
	if s.Ended {
		// Another process may have another session with it by now.
		_, err := t.exec(`DELETE FROM sessions WHERE server = ? AND (sid = ? OR ? = '')`, server, s.ID, s.ID)
		t.tidy = true
		return err
	}
	at := micros(s.Since)
	if at == 0 {
		at = t.now
	}
	_, err := t.exec(`INSERT INTO sessions (server, sid, version, init, identity, at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET sid = excluded.sid, version = excluded.version, init = excluded.init, identity = excluded.identity,
			at = CASE WHEN sid = excluded.sid THEN at ELSE excluded.at END`,
		server, s.ID, s.Version, string(s.Init), s.Identity, at)
	return err
}

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }
