package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mcptasks/taskmodel"
)

// A HistoryRow is one line of the audit trail. As JSON it has the shape that
// `mcptasks history` promises.
type HistoryRow struct {
	ID     int64               `json:"-"`
	Time   time.Time           `json:"time"`
	Server string              `json:"server"`
	Target string              `json:"-"`
	TaskID string              `json:"taskId,omitempty"`
	Role   taskmodel.Role      `json:"-"`
	Event  taskmodel.EventKind `json:"event"`
	Detail json.RawMessage     `json:"detail"`

	Status  taskmodel.Status `json:"-"`
	Message string           `json:"-"`
}

// A HistoryQuery selects rows; zero fields select all.
type HistoryQuery struct {
	Target string // of the server
	Server string // or its label
	TaskID string
	Prefix bool // TaskID is only the beginning
	Role   taskmodel.Role
	Since  time.Time
	Limit  int // the last so many
}

// History calls f with the rows selected, oldest first, until f errs.
func (j *Journal) History(ctx context.Context, q HistoryQuery, f func(HistoryRow) error) (err error) {
	where, args := []string{"1"}, []any{}
	add := func(cond string, arg any) { where, args = append(where, cond), append(args, arg) }
	if q.Target != "" {
		add("s.target = ?", q.Target)
	}
	if q.Server != "" {
		add("s.label = ?", q.Server)
	}
	switch {
	case q.TaskID != "" && q.Prefix:
		add("substr(e.task, 1, length(?)) = ?", q.TaskID)
		args = append(args, q.TaskID)
	case q.TaskID != "":
		add("e.task = ?", q.TaskID)
	}
	if q.Role != "" {
		add("e.role = ?", roleNumber(q.Role))
	}
	if !q.Since.IsZero() {
		add("e.at >= ?", q.Since.UnixMicro())
	}
	query := `SELECT e.id, e.at, s.label, s.target, e.task, e.role, e.event, e.status, e.words, e.detail
		FROM events e JOIN servers s ON s.id = e.server WHERE ` + strings.Join(where, " AND ")
	if q.Limit > 0 {
		query = `SELECT * FROM (` + query + ` ORDER BY e.at DESC, e.id DESC LIMIT ?) ORDER BY 2, 1`
		args = append(args, q.Limit)
	} else {
		query += ` ORDER BY e.at, e.id`
	}
	defer func() {
		if err != nil {
			j.noteDamage(err)
			err = fmt.Errorf("reading the history: %w", err)
		}
	}()
	rows, err := j.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanEvent(rows)
		if err != nil {
			return err
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return rows.Err()
}

func scanEvent(rows *sql.Rows) (r HistoryRow, err error) {
	var at int64
	var role int
	var event, status, detail string
	if err := rows.Scan(&r.ID, &at, &r.Server, &r.Target, &r.TaskID, &role, &event, &status, &r.Message, &detail); err != nil {
		return r, err
	}
	r.Time, r.Role, r.Event, r.Status = local(at), roleOf(role), taskmodel.EventKind(event), taskmodel.Status(status)
	r.Detail = json.RawMessage(detail)
	if !json.Valid(r.Detail) {
		d := map[string]any{}
		if r.Status != "" {
			d["status"] = r.Status
		}
		if r.Message != "" {
			d["message"] = r.Message
		}
		r.Detail, err = json.Marshal(d)
	}
	return r, err
}

// TaskHistory is the audit trail of one task, oldest first; limit 0 is all.
func (j *Journal) TaskHistory(ctx context.Context, target, id string, role taskmodel.Role, limit int) ([]taskmodel.Event, error) {
	var events []taskmodel.Event
	err := j.History(ctx, HistoryQuery{Target: target, TaskID: id, Role: role, Limit: limit}, func(r HistoryRow) error {
		events = append(events, taskmodel.Event{Seq: r.ID, Time: r.Time, Server: r.Server, Kind: r.Event, Status: r.Status,
			Message: r.Message, Detail: r.Detail, Task: taskmodel.Key{Server: r.Server, ID: r.TaskID, Role: r.Role}})
		return nil
	})
	return events, err
}

// A Remembered is a task that the journal knows, with the server it lives on.
type Remembered struct {
	Target string
	Task   taskmodel.Task
}

// Find returns the remembered tasks whose id is the one given or else begins
// with it, on all servers or those with the label, forgotten ones left out.
func (j *Journal) Find(ctx context.Context, label, id string, role taskmodel.Role) (list []Remembered, err error) {
	rows, err := j.read.QueryContext(ctx, `SELECT s.target, s.label, t.task, t.doc FROM tasks t JOIN servers s ON s.id = t.server
		WHERE (?1 = '' OR s.label = ?1) AND t.role = ?2 AND substr(t.task, 1, length(?3)) = ?3 AND t.forgotten = 0 ORDER BY s.label, t.task`,
		label, roleNumber(role), id)
	if err != nil {
		return nil, fmt.Errorf("looking for %s in the journal: %w", id, err)
	}
	defer rows.Close()
	exact := false
	for rows.Next() {
		var r Remembered
		var name, task string
		var doc sql.RawBytes
		if err := rows.Scan(&r.Target, &name, &task, &doc); err != nil {
			return nil, fmt.Errorf("looking for %s in the journal: %w", id, err)
		}
		t, err := newDecoder(name).task(doc)
		if err != nil {
			continue
		}
		restored(&t)
		r.Task = t
		if task == id && !exact {
			exact, list = true, nil
		}
		if !exact || task == id {
			list = append(list, r)
		}
	}
	return list, rows.Err()
}
