package journal

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"mcptasks/taskmodel"
)

// piece is how many tasks are handed on at once: few enough that the first are
// there soon, enough that handing them on costs nothing.
const piece = 512

// A page is a piece of the tasks as the file has them. It holds a copy of their
// bytes, since what the driver gives lasts until the next row.
type page struct {
	docs    []byte
	ends    []int // of each in docs
	writers []int64
}

// walk reads the tasks of a server for f, in the order of role and id, and gives
// the keys of those that a person does not want to see any more, as long as their
// stones stand: all in one walk, since the walk through the file is most of the
// cost. What is read is decoded beside it. walk returns when f has.
func (j *Journal) walk(ctx context.Context, tx *sql.Tx, server int64, label string, k kept, o *others, f func([]taskmodel.Task)) (forgotten []taskmodel.Key, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT role, CASE forgotten WHEN 0 THEN NULL ELSE task END, doc, writer
		FROM tasks WHERE server = ? ORDER BY role, task`, server)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	pages, used, done := make(chan page, 2), make(chan page, 2), make(chan struct{})
	go func() {
		defer close(done)
		d := newDecoder(label)
		for p := range pages {
			if tasks := j.decode(ctx, tx, d, p, k, o); len(tasks) > 0 {
				f(tasks)
			}
			select {
			case used <- page{p.docs[:0], p.ends[:0], p.writers[:0]}:
			default: // enough of them
			}
		}
	}()
	defer func() { close(pages); <-done }()
	var role int
	var stone, doc sql.RawBytes
	var writer int64
	into := []any{&role, &stone, &doc, &writer}
	p := page{docs: make([]byte, 0, 32<<10)}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		if stone != nil {
			forgotten = append(forgotten, keyOf(label, role, string(stone)))
			continue
		}
		p.docs = append(p.docs, doc...)
		p.ends, p.writers = append(p.ends, len(p.docs)), append(p.writers, writer)
		if len(p.ends) == piece {
			pages <- p
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			select {
			case p = <-used:
			default:
				p = page{docs: make([]byte, 0, len(p.docs)+len(p.docs)/8), ends: make([]int, 0, piece), writers: make([]int64, 0, piece)}
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	pages <- p
	return forgotten, nil
}

// decode makes tasks of a page. One that cannot be read is left out.
func (j *Journal) decode(ctx context.Context, q queryer, d *decoder, p page, k kept, o *others) []taskmodel.Task {
	tasks := make([]taskmodel.Task, len(p.ends))
	n, from := 0, 0
	for i, end := range p.ends {
		t := &tasks[n]
		err := d.read(t, p.docs[from:end])
		from = end
		if err != nil {
			j.log.Error("a task in the journal cannot be read", "server", d.server, "error", err)
			*t = taskmodel.Task{}
			continue
		}
		n++
		was := Standing{t.Standing, t.Note}
		if restored(t); t.Standing == taskmodel.Restored && o.run(ctx, q, p.writers[i]) {
			if o.beside == nil {
				o.beside = map[taskmodel.Key]Standing{}
			}
			o.beside[taskmodel.Key{Server: d.server, Role: t.Role, ID: t.ID}] = was
		}
		k.of(t)
		j.unknown(ctx, q, t, p.writers[i])
	}
	return tasks[:n]
}

// restored gives a task the standing of one that nothing live was heard of.
func restored(t *taskmodel.Task) {
	lost := t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired
	switch {
	case lost:
	case t.Terminal():
		t.Standing = taskmodel.Live
	case t.Tap != "" && t.Standing == taskmodel.Stale:
		// What its tap says of it holds.
	default:
		t.Standing = taskmodel.Restored
		t.Note = "known from an earlier run"
	}
}

// others are the processes beside this one, as one reading meets them.
type others struct {
	j      *Journal
	known  map[int64]bool
	beside map[taskmodel.Key]Standing // what those that run have written
}

// run reports whether a writer is another process, and still runs.
func (o *others) run(ctx context.Context, q queryer, writer int64) bool {
	if writer == o.j.me {
		return false
	}
	runs, ok := o.known[writer]
	if !ok {
		if o.known == nil {
			o.known = map[int64]bool{}
		}
		runs = o.j.alive(ctx, q, writer)
		o.known[writer] = runs
	}
	return runs
}

// unknown says of a cancellation whose sender is no more that its outcome is not
// known.
func (j *Journal) unknown(ctx context.Context, q queryer, t *taskmodel.Task, writer int64) {
	if t.CancelNote == taskmodel.CancelSending && writer != j.me && !j.alive(ctx, q, writer) {
		t.CancelNote = taskmodel.CancelUnknown
	}
}

// kept are the results of a server that are kept here, without their payloads,
// in the order of role and task.
type kept []keptResult

type keptResult struct {
	role           int
	task           string
	fetched, large int64
}

func results(ctx context.Context, tx *sql.Tx, server int64) (list kept, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT role, task, fetched, large FROM results WHERE server = ? ORDER BY role, task`, server)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var r keptResult
	into := []any{&r.role, &r.task, &r.fetched, &r.large}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// of says of a task whether its result is kept.
func (k kept) of(t *taskmodel.Task) {
	i, found := slices.BinarySearchFunc(k, t, func(r keptResult, t *taskmodel.Task) int {
		return cmp.Or(cmp.Compare(r.role, roleNumber(t.Role)), strings.Compare(r.task, t.ID))
	})
	if found {
		t.Outcome = taskmodel.Outcome{FetchedAt: local(k[i].fetched), TooLarge: k[i].large, KeptHere: k[i].large == 0}
	}
}
