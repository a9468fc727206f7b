package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"mcptasks/taskmodel"
)

// holder tells who a writer is.
func (t *tx) holder(writer int64) (h Holder, node string, ended int64, err error) {
	err = t.queryRow(`SELECT pid, host, what, node, ended FROM writers WHERE id = ?`, []any{writer}, &h.PID, &h.Host, &h.What, &node, &ended)
	return h, node, ended, err
}

// dead reports whether a lease's holder is no more: a process of another machine
// that has not renewed it for five seconds, one of this machine that has ended,
// or that has not renewed it for so long that it cannot be merely slow: who takes
// a server from one that still runs takes its program's tasks for lost.
func (t *tx) dead(writer, renewed int64) (bool, Holder, error) {
	h, node, ended, err := t.holder(writer)
	if err != nil {
		return false, h, err
	}
	return ended != 0 || !t.j.renews(node, h.PID, time.Duration(t.now-renewed)*time.Microsecond), h, nil
}

// renews reports whether a process is there that last renewed a claim so long ago.
func (j *Journal) renews(node string, pid int, ago time.Duration) bool {
	if node == j.node {
		return ago < leaseHere && running(pid)
	}
	return ago < leaseLife
}

// Acquire takes or renews the lease on (target, session); see Store.
func (j *Journal) Acquire(ctx context.Context, target, session string) (holder Holder, ok bool, err error) {
	err = j.act(ctx, func(t *tx) error {
		holder, ok = Holder{}, false
		server, err := t.server(target, "")
		if err != nil {
			return err
		}
		var writer, renewed int64
		err = t.queryRow(`SELECT writer, renewed FROM leases WHERE server = ? AND session = ?`, []any{server, session}, &writer, &renewed)
		if err != nil && !noRows(err) {
			return err
		}
		if err == nil && writer != j.me {
			dead, h, err := t.dead(writer, renewed)
			if err != nil {
				return err
			}
			if !dead {
				holder = h
				return nil
			}
		}
		ok = true
		if err := t.unread(); err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO leases (server, session, writer, renewed) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET writer = excluded.writer, renewed = excluded.renewed`, server, session, j.me, t.now)
		return err
	})
	if err != nil {
		return Holder{}, false, fmt.Errorf("taking the lease on %s: %w", target, err)
	}
	return holder, ok, nil
}

// Release gives the lease back, if it is ours.
func (j *Journal) Release(ctx context.Context, target, session string) error {
	err := j.act(ctx, func(t *tx) error {
		_, err := t.exec(`DELETE FROM leases WHERE server = (SELECT id FROM servers WHERE target = ?) AND session = ? AND writer = ?`,
			target, session, j.me)
		return err
	})
	if err != nil {
		return fmt.Errorf("giving back the lease on %s: %w", target, err)
	}
	return nil
}

// PutIntent asks the lease's holder to act; see Store.
func (j *Journal) PutIntent(ctx context.Context, in Intent) (id int64, err error) {
	err = j.act(ctx, func(t *tx) error {
		server, err := t.server(in.Target, in.Task.Server)
		if err != nil {
			return err
		}
		return t.queryRow(`INSERT INTO intents (server, session, role, task, kind, payload, at, sender) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
			[]any{server, in.Session, roleNumber(in.Task.Role), in.Task.ID, in.Kind, string(in.Payload), t.now, j.me}, &id)
	})
	if err != nil {
		return 0, fmt.Errorf("asking the process that holds %s to %s: %w", in.Target, in.Kind, err)
	}
	return id, nil
}

// ClaimIntents hands out what others ask of the holder of the lease, each once;
// see Store. Without the lease it is ErrNoLease.
func (j *Journal) ClaimIntents(ctx context.Context, target, session string) (list []Intent, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("taking what others ask for on %s: %w", target, err)
		}
	}()
	var one int
	err = j.read.QueryRowContext(ctx, `SELECT 1 FROM intents WHERE claimed IS NULL AND done = 0
		AND server = (SELECT id FROM servers WHERE target = ?) AND session = ? LIMIT 1`, target, session).Scan(&one)
	if noRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = j.act(ctx, func(t *tx) error {
		list = nil
		server, err := t.server(target, "")
		if err != nil {
			return err
		}
		var renewed int64
		err = t.queryRow(`SELECT renewed FROM leases WHERE server = ? AND session = ? AND writer = ?`, []any{server, session, j.me}, &renewed)
		if noRows(err) || err == nil && t.now-renewed >= leaseLife.Microseconds() {
			return ErrNoLease
		}
		if err != nil {
			return err
		}
		var label string // another process may have named it
		if err := t.queryRow(`SELECT label FROM servers WHERE id = ?`, []any{server}, &label); err != nil {
			return err
		}
		s, err := t.prepare(`UPDATE intents SET claimed = ? WHERE server = ? AND session = ? AND claimed IS NULL AND done = 0
			RETURNING id, role, task, kind, payload, at, sender`)
		if err != nil {
			return err
		}
		rows, err := s.QueryContext(context.Background(), j.me, server, session)
		if err != nil {
			return err
		}
		defer rows.Close()
		var senders []int64
		for rows.Next() {
			in := Intent{Target: target, Session: session}
			var role int
			var payload string
			var at, sender int64
			if err := rows.Scan(&in.ID, &role, &in.Task.ID, &in.Kind, &payload, &at, &sender); err != nil {
				return err
			}
			in.Task, in.At = keyOf(label, role, in.Task.ID), local(at)
			if payload != "" {
				in.Payload = json.RawMessage(payload)
			}
			list, senders = append(list, in), append(senders, sender)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for i, w := range senders {
			if list[i].From, _, _, err = t.holder(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// FinishIntent says what became of an intent that was claimed here. What it
// carried (an answer's content) is dropped with that.
func (j *Journal) FinishIntent(ctx context.Context, id int64, errText string, detail json.RawMessage) error {
	err := j.act(ctx, func(t *tx) error {
		t.tidy = true
		_, err := t.exec(`UPDATE intents SET done = ?, error = ?, detail = ?, payload = '' WHERE id = ? AND claimed = ?`,
			t.now, errText, string(detail), id, j.me)
		return err
	})
	if err != nil {
		return fmt.Errorf("saying what became of an act: %w", err)
	}
	return nil
}

const (
	// unreadLife is how long what an intent brought waits for the process that
	// asked, and how often is looked for what has waited longer.
	unreadLife = time.Minute
	// intentLife is how long what an intent carries (an answer's content) is kept
	// for who is to do it. A holder looks each second, and has it in hand then.
	intentLife = 10 * time.Minute
)

// tooLate is what IntentState says of an act that nobody has begun with.
const tooLate = "nobody has begun with it in time; it was not done"

// unread drops, once a minute, what intents brought to processes that did not
// come for it, and what others carry to nobody: those who asked or were asked
// are no more. An act that is not begun in its time is not begun at all: a
// person who sees it done hours later has long decided otherwise. Whoever holds
// a lease calls it.
func (t *tx) unread() error {
	if t.now-t.looked < unreadLife.Microseconds() && t.now >= t.looked {
		return nil
	}
	late := t.now - intentLife.Microseconds()
	for _, q := range []struct {
		text string
		args []any
	}{
		{`UPDATE intents SET detail = '' WHERE done <> 0 AND detail <> '' AND done < ?`, []any{t.now - unreadLife.Microseconds()}},
		{`UPDATE intents SET done = ?, error = ?, payload = '' WHERE done = 0 AND claimed IS NULL AND at < ?`, []any{t.now, tooLate, late}},
		{`UPDATE intents SET payload = '' WHERE done = 0 AND payload <> '' AND at < ?`, []any{late}},
	} {
		res, err := t.exec(q.text, q.args...)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return err
		}
		t.tidy = t.tidy || n > 0 // it must not stay in the log either
	}
	t.writer.looked = t.now
	return nil
}

// TakeIntent drops what an intent brought, which may be a result that is not to
// be kept, once the process that asked has read it.
func (j *Journal) TakeIntent(ctx context.Context, id int64) error {
	err := j.act(ctx, func(t *tx) error {
		t.tidy = true
		_, err := t.exec(`UPDATE intents SET detail = '' WHERE id = ? AND sender = ? AND done <> 0`, id, j.me)
		return err
	})
	if err != nil {
		return fmt.Errorf("dropping what was brought: %w", err)
	}
	return nil
}

// ClaimerGone is what IntentState says of an act whose process ended over it.
const ClaimerGone = "the process that was to do it ended over it; whether it was done is not known"

// IntentState tells what became of an intent. One whose holder died over it is
// done with an outcome that nobody knows.
func (j *Journal) IntentState(ctx context.Context, id int64) (done bool, errText string, detail json.RawMessage, err error) {
	var at int64
	var claimed *int64
	var text string
	err = j.read.QueryRowContext(ctx, `SELECT done, claimed, error, detail FROM intents WHERE id = ?`, id).Scan(&at, &claimed, &errText, &text)
	if err != nil {
		return false, "", nil, fmt.Errorf("asking what became of an act: %w", err)
	}
	if text != "" {
		detail = json.RawMessage(text)
	}
	if at == 0 && claimed != nil && *claimed != j.me && !j.alive(ctx, j.read, *claimed) {
		return true, ClaimerGone, nil, nil
	}
	return at != 0, errText, detail, nil
}

// WithdrawIntent takes back an intent that nobody has claimed, and reports
// whether it could.
func (j *Journal) WithdrawIntent(ctx context.Context, id int64) (ok bool, err error) {
	err = j.act(ctx, func(t *tx) error {
		res, err := t.exec(`DELETE FROM intents WHERE id = ? AND claimed IS NULL`, id)
		if err != nil {
			return err
		}
		t.tidy = true
		n, err := res.RowsAffected()
		ok = n == 1
		return err
	})
	if err != nil {
		return false, fmt.Errorf("taking back what was asked for: %w", err)
	}
	return ok, nil
}

// ClaimAct marks an effect as taken by this process; see Store.
func (j *Journal) ClaimAct(ctx context.Context, target, act string) (ok bool, err error) {
	err = j.act(ctx, func(t *tx) error {
		server, err := t.server(target, "")
		if err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO acts (server, act, writer, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, server, act, j.me, t.now); err != nil {
			return err
		}
		var writer int64
		err = t.queryRow(`SELECT writer FROM acts WHERE server = ? AND act = ?`, []any{server, act}, &writer)
		ok = writer == j.me
		return err
	})
	if err != nil {
		return false, fmt.Errorf("claiming %s on %s: %w", act, target, err)
	}
	return ok, nil
}

// keyOf is the key of a row.
func keyOf(label string, role int, id string) taskmodel.Key {
	return taskmodel.Key{Server: label, ID: id, Role: roleOf(role)}
}
