package journal

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"mcptasks/taskmodel"
)

// A record is one line of an export. Lines of the history have the shape of
// HistoryRow with the fields that are needed to bring them back; the others
// name themselves in Record.
type record struct {
	Record string              `json:"record,omitempty"` // "" : history | task | question | result | answered
	Time   *time.Time          `json:"time,omitempty"`
	Server string              `json:"server"`
	Target string              `json:"target"`
	TaskID string              `json:"taskId,omitempty"`
	Role   taskmodel.Role      `json:"role,omitempty"`
	Event  taskmodel.EventKind `json:"event,omitempty"`
	Status taskmodel.Status    `json:"status,omitempty"`
	Words  string              `json:"message,omitempty"`
	Detail json.RawMessage     `json:"detail,omitempty"`

	Task     *taskmodel.Task     `json:"task,omitempty"`
	Question *taskmodel.Question `json:"question,omitempty"`
	Outcome  *taskmodel.Outcome  `json:"outcome,omitempty"`
	Answered *answered           `json:"answered,omitempty"`
}

// An answered says which question was answered and how, without the words.
type answered struct {
	ID        string           `json:"id"`
	Action    taskmodel.Action `json:"action"`
	Delivered bool             `json:"delivered"`
}

// Export writes everything as JSON Lines: the history, then tasks, questions,
// which of them were answered, and results. It is enough for Import to rebuild
// the tables, but for what is secret or means nothing elsewhere: what a person
// typed and has not been delivered, drafts, sessions, leases.
func (j *Journal) Export(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, part := range []func(context.Context, *json.Encoder) error{j.exportEvents, j.exportTasks, j.exportQuestions, j.exportAnswers, j.exportResults} {
		if err := part(ctx, enc); err != nil {
			j.noteDamage(err)
			return fmt.Errorf("exporting the journal: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("exporting the journal: %w", err)
	}
	return nil
}

func (j *Journal) exportEvents(ctx context.Context, enc *json.Encoder) error {
	return j.History(ctx, HistoryQuery{}, func(r HistoryRow) error {
		return enc.Encode(record{Time: &r.Time, Server: r.Server, Target: r.Target, TaskID: r.TaskID, Role: r.Role,
			Event: r.Event, Status: r.Status, Words: r.Message, Detail: r.Detail})
	})
}

// each runs a query and calls f with each row.
func (j *Journal) each(ctx context.Context, query string, f func(*sql.Rows) error) error {
	rows, err := j.read.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (j *Journal) exportTasks(ctx context.Context, enc *json.Encoder) error {
	return j.each(ctx, `SELECT s.target, s.label, t.doc FROM tasks t JOIN servers s ON s.id = t.server WHERE t.forgotten = 0`,
		func(rows *sql.Rows) error {
			r := record{Record: "task"}
			var doc sql.RawBytes
			if err := rows.Scan(&r.Target, &r.Server, &doc); err != nil {
				return err
			}
			t, err := newDecoder(r.Server).task(doc)
			if err != nil {
				return err
			}
			t.Raw, t.Args = whole(t.Raw), whole(t.Args)
			r.Task, r.TaskID, r.Role = &t, t.ID, t.Role
			return enc.Encode(r)
		})
}

// whole makes sure that raw bytes can stand in JSON.
func whole(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	if json.Valid(b) {
		return b
	}
	s, err := json.Marshal(string(b))
	if err != nil {
		return nil
	}
	return s
}

func (j *Journal) exportQuestions(ctx context.Context, enc *json.Encoder) error {
	return j.each(ctx, `SELECT s.target, s.label, q.doc FROM questions q JOIN servers s ON s.id = q.server`,
		func(rows *sql.Rows) error {
			r := record{Record: "question"}
			var doc sql.RawBytes
			if err := rows.Scan(&r.Target, &r.Server, &doc); err != nil {
				return err
			}
			q := new(taskmodel.Question)
			if err := json.Unmarshal(doc, q); err != nil {
				return err
			}
			q.Draft = nil
			r.Question, r.TaskID, r.Role = q, q.Task.ID, q.Task.Role
			return enc.Encode(r)
		})
}

func (j *Journal) exportAnswers(ctx context.Context, enc *json.Encoder) error {
	return j.each(ctx, `SELECT s.target, s.label, a.qid, a.action, a.delivered FROM answers a JOIN servers s ON s.id = a.server`,
		func(rows *sql.Rows) error {
			r := record{Record: "answered", Answered: &answered{}}
			if err := rows.Scan(&r.Target, &r.Server, &r.Answered.ID, &r.Answered.Action, &r.Answered.Delivered); err != nil {
				return err
			}
			return enc.Encode(r)
		})
}

func (j *Journal) exportResults(ctx context.Context, enc *json.Encoder) error {
	return j.each(ctx, `SELECT s.target, s.label, r.role, r.task FROM results r JOIN servers s ON s.id = r.server`,
		func(rows *sql.Rows) error {
			r := record{Record: "result"}
			var role int
			if err := rows.Scan(&r.Target, &r.Server, &role, &r.TaskID); err != nil {
				return err
			}
			r.Role = roleOf(role)
			o, ok, err := j.Outcome(ctx, r.Target, r.TaskID, r.Role)
			if err != nil || !ok {
				return err
			}
			o.Result = whole(o.Result)
			r.Outcome = &o
			return enc.Encode(r)
		})
}

// An Imported says what Import took in.
type Imported struct {
	Events, Tasks, Questions, Results, Skipped int
}

// maxLine bounds a line of an import: a result and what is around it.
const maxLine = 64 << 20

// Import takes in what Export wrote. What is here already stays as it is, so
// that importing twice is importing once. Lines that cannot be read are
// counted and passed over; the error names the first when there is nothing else.
func (j *Journal) Import(ctx context.Context, r io.Reader) (out Imported, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 1<<16), maxLine)
	var batch []record
	var bad error
	flush := func() error {
		list := batch
		batch = nil
		return j.act(ctx, func(t *tx) error {
			for i := range list {
				if err := t.take(&list[i], &out); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for n := 1; in.Scan(); n++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		var rec record
		err := json.Unmarshal(line, &rec)
		if err == nil && rec.Target == "" && rec.Server == "" {
			err = errors.New("it names no server")
		}
		if err != nil {
			out.Skipped++
			if bad == nil {
				bad = fmt.Errorf("line %d is no line of an export: %w", n, err)
			}
			continue
		}
		if batch = append(batch, rec); len(batch) == 500 {
			if err := flush(); err != nil {
				return out, fmt.Errorf("importing: %w", err)
			}
		}
	}
	if err := in.Err(); err != nil {
		return out, fmt.Errorf("importing: %w", err)
	}
	if err := flush(); err != nil {
		return out, fmt.Errorf("importing: %w", err)
	}
	if out == (Imported{Skipped: out.Skipped}) && bad != nil {
		return out, bad
	}
	return out, nil
}

// take writes one imported record where there is nothing yet.
func (t *tx) take(r *record, out *Imported) error {
	if r.Target == "" {
		r.Target = r.Server // a history of another make; its server is all that is known
	}
	server, err := t.server(r.Target, r.Server)
	if err != nil {
		return err
	}
	k := taskmodel.Key{Server: r.Server, ID: r.TaskID, Role: r.Role}
	count := func(n *int, query string, args ...any) error {
		var there int
		if err := t.queryRow(`SELECT EXISTS (`+query+`)`, args, &there); err != nil {
			return err
		}
		if there == 0 {
			*n++
			return nil
		}
		return errThere
	}
	switch r.Record {
	case "":
		if r.Time == nil || r.Event == "" {
			out.Skipped++
			return nil
		}
		err = count(&out.Events, `SELECT 1 FROM events WHERE server = ? AND task = ? AND at = ? AND role = ? AND event = ? AND detail = ?`,
			server, k.ID, micros(*r.Time), roleNumber(k.Role), string(r.Event), string(r.Detail))
		if err == nil {
			err = t.event(server, k, &Entry{Event: &taskmodel.Event{Time: *r.Time, Kind: r.Event, Status: r.Status, Message: r.Words, Detail: r.Detail}})
		}
	case "task":
		if r.Task == nil {
			out.Skipped++
			return nil
		}
		err = count(&out.Tasks, `SELECT 1 FROM tasks WHERE server = ? AND role = ? AND task = ?`, server, roleNumber(k.Role), k.ID)
		if err == nil {
			err = t.task(server, k, &Entry{Task: r.Task})
		}
	case "question":
		if r.Question == nil {
			out.Skipped++
			return nil
		}
		err = count(&out.Questions, `SELECT 1 FROM questions WHERE server = ? AND qid = ?`, server, r.Question.ID.ID)
		if err == nil {
			err = t.question(server, k, &Entry{Question: r.Question})
		}
	case "answered":
		if r.Answered == nil {
			out.Skipped++
			return nil
		}
		_, err = t.exec(`INSERT INTO answers (server, qid, action, content, at, delivered) VALUES (?, ?, ?, NULL, ?, 1) ON CONFLICT DO NOTHING`,
			server, r.Answered.ID, string(r.Answered.Action), t.now)
	case "result":
		if r.Outcome == nil {
			out.Skipped++
			return nil
		}
		err = count(&out.Results, `SELECT 1 FROM results WHERE server = ? AND role = ? AND task = ?`, server, roleNumber(k.Role), k.ID)
		if err == nil {
			err = t.outcome(server, k, &Entry{Outcome: r.Outcome})
		}
	default:
		out.Skipped++
	}
	if errors.Is(err, errThere) {
		return nil
	}
	return err
}

var errThere = errors.New("it is there already")
