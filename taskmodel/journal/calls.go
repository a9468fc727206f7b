package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mcptasks/taskmodel"
)

// A LostCall is a call that was about to be sent, or sent, by a process that
// ended before it could say what came of it.
type LostCall struct {
	At     time.Time
	Tool   string
	Detail json.RawMessage
}

// callAct is how the acts of calls begin; after it comes the call's id and, after
// a space, what the history is to say of it.
const callAct = "call:"

// BeginCall writes down that a call is about to be sent. Until a task comes of it
// nothing else would tell that there was one. detail holds the tool, and the
// arguments where they may be kept.
func (j *Journal) BeginCall(ctx context.Context, target, label, id string, detail json.RawMessage) error {
	err := j.act(ctx, func(t *tx) error {
		server, err := t.server(target, label)
		if err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO acts (server, act, writer, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			server, callAct+id+" "+string(detail), j.me, t.now)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing down a call on %s: %w", target, err)
	}
	return nil
}

// EndCall says that it is known what came of a call.
func (j *Journal) EndCall(ctx context.Context, target, id string) error {
	err := j.act(ctx, func(t *tx) error {
		t.tidy = true
		start := callAct + id + " "
		_, err := t.exec(`DELETE FROM acts WHERE server = (SELECT id FROM servers WHERE target = ?) AND substr(act, 1, ?) = ?`,
			target, len(start), start)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing down what came of a call on %s: %w", target, err)
	}
	return nil
}

// LostCalls gives the calls of processes that are no more, each once, and puts
// them into the history as sent with an unknown outcome.
func (j *Journal) LostCalls(ctx context.Context, target string) (list []LostCall, err error) {
	defer func() {
		if err != nil {
			j.noteDamage(err)
			err = fmt.Errorf("looking for calls on %s that nobody knows the end of: %w", target, err)
		}
	}()
	const where = ` FROM acts WHERE server = (SELECT id FROM servers WHERE target = ?) AND act >= 'call:' AND act < 'call;'`
	var one int
	if err := j.read.QueryRowContext(ctx, `SELECT 1`+where+` LIMIT 1`, target).Scan(&one); noRows(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	type row struct {
		act        string
		writer, at int64
	}
	err = j.act(ctx, func(t *tx) error {
		list = nil
		server, err := t.server(target, "")
		if err != nil {
			return err
		}
		s, err := t.prepare(`SELECT act, writer, at` + where + ` ORDER BY at`)
		if err != nil {
			return err
		}
		rows, err := s.QueryContext(ctx, target)
		if err != nil {
			return err
		}
		defer rows.Close()
		var all []row
		for rows.Next() {
			var r row
			if err := rows.Scan(&r.act, &r.writer, &r.at); err != nil {
				return err
			}
			all = append(all, r)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, r := range all {
			h, node, ended, err := t.holder(r.writer)
			if err != nil {
				return err
			}
			// Of another machine's process only its end, or the time, tells.
			if ended == 0 && (node == j.node && running(h.PID) || node != j.node && t.now-r.at < time.Hour.Microseconds()) {
				continue
			}
			_, text, _ := strings.Cut(r.act, " ")
			lost := LostCall{At: local(r.at), Detail: json.RawMessage(text)}
			var d struct {
				Tool string `json:"tool"`
			}
			if json.Unmarshal(lost.Detail, &d) == nil {
				lost.Tool = d.Tool
			}
			if _, err := t.exec(`DELETE FROM acts WHERE server = ? AND act = ?`, server, r.act); err != nil {
				return err
			}
			if err := t.event(server, taskmodel.Key{}, &Entry{Event: &taskmodel.Event{Time: lost.At, Kind: taskmodel.EventError,
				Message: lost.Words(), Detail: lost.detail()}}); err != nil {
				return err
			}
			t.tidy = true
			list = append(list, lost)
		}
		return nil
	})
	return list, err
}

// Words say what is known of it.
func (c LostCall) Words() string {
	return fmt.Sprintf("%s was called at %s and mcptasks ended before the server answered: sent, outcome unknown; it is not called again",
		c.Tool, c.At.Local().Format("15:04:05"))
}

// detail is what the history holds of it.
func (c LostCall) detail() json.RawMessage {
	d := map[string]any{}
	if json.Unmarshal(c.Detail, &d) != nil || d == nil {
		d = map[string]any{}
	}
	d["error"] = c.Words()
	b, err := json.Marshal(d)
	if err != nil {
		return nil
	}
	return b
}
