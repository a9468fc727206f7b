package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"mcptasks/taskmodel"
)

// A Tap is a session between an agent and its server that a tap passes on and
// reads along. Its tasks have its Session as their Tap; who wants to act on them
// addresses the intent to it.
type Tap struct {
	Target  string    `json:"-"`
	Label   string    `json:"-"` // the server's name in the list
	Session string    `json:"-"` // of the tap's lease
	Started time.Time `json:"-"`
	Ended   time.Time `json:"-"` // zero: it has not said so
	Live    bool      `json:"-"` // its lease is held; set by Taps
	Holder  Holder    `json:"-"` // set by Taps
	Tasks   bool      `json:"-"` // the journal has tasks of the server; set by Taps

	Agents     []string             `json:"agents,omitempty"` // by the names that they gave
	Transport  string               `json:"transport,omitempty"`
	Passive    bool                 `json:"passive,omitempty"`
	Answer     bool                 `json:"answer,omitempty"`
	Why        string               `json:"why,omitempty"` // it ended, in words
	Generation taskmodel.Generation `json:"generation,omitempty"`
	Version    string               `json:"version,omitempty"` // of the protocol
	Server     string               `json:"server,omitempty"`  // serverInfo, raw
	ServerVer  string               `json:"serverVersion,omitempty"`
	Can        taskmodel.Can        `json:"can"`
}

// PutTap says of a tap of this process what it is; what was said before is
// replaced.
func (j *Journal) PutTap(ctx context.Context, v Tap) error {
	doc, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing down a tap: %w", err)
	}
	host, _ := os.Hostname()
	err = j.act(ctx, func(t *tx) error {
		server, err := t.server(v.Target, v.Label)
		if err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO taps (server, session, pid, host, started, ended, doc) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET ended = excluded.ended, doc = excluded.doc`,
			server, v.Session, os.Getpid(), host, micros(v.Started), micros(v.Ended), string(doc))
		return err
	})
	if err != nil {
		return fmt.Errorf("writing down the tap on %s: %w", v.Target, err)
	}
	return nil
}

// Taps lists the taps that live, and those that began or ended since the given
// time, oldest first.
func (j *Journal) Taps(ctx context.Context, since time.Time) ([]Tap, error) {
	rows, err := j.read.QueryContext(ctx, `SELECT s.target, s.label, t.session, t.pid, t.host, t.started, t.ended, t.doc,
			coalesce(l.renewed, 0), coalesce(l.writer, 0), coalesce(w.pid, 0), coalesce(w.node, ''), coalesce(w.what, ''), coalesce(w.ended, 0),
			EXISTS (SELECT 1 FROM tasks k WHERE k.server = t.server AND k.forgotten = 0)
		FROM taps t JOIN servers s ON s.id = t.server
		LEFT JOIN leases l ON l.server = t.server AND l.session = t.session
		LEFT JOIN writers w ON w.id = l.writer
		WHERE l.writer IS NOT NULL OR max(t.started, t.ended) >= ? ORDER BY t.started`, micros(since))
	if err != nil {
		return nil, fmt.Errorf("looking for taps: %w", err)
	}
	defer rows.Close()
	var list []Tap
	now := j.opts.Now().UnixMicro()
	for rows.Next() {
		var v Tap
		var started, ended, renewed, writer, gone int64
		var pid int
		var node, doc string
		if err := rows.Scan(&v.Target, &v.Label, &v.Session, &v.Holder.PID, &v.Holder.Host, &started, &ended, &doc,
			&renewed, &writer, &pid, &node, &v.Holder.What, &gone, &v.Tasks); err != nil {
			return nil, fmt.Errorf("looking for taps: %w", err)
		}
		if err := json.Unmarshal([]byte(doc), &v); err != nil {
			j.log.Error("a tap in the journal cannot be read", "server", v.Label, "error", err)
			continue
		}
		v.Started, v.Ended = local(started), local(ended)
		v.Live = writer != 0 && gone == 0 && ended == 0 && j.renews(node, pid, time.Duration(now-renewed)*time.Microsecond)
		list = append(list, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("looking for taps: %w", err)
	}
	return list, nil
}
