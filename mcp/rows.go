package mcp

import (
	"encoding/json"
	"fmt"
	"sync"

	"mcptasks/taskmodel"
)

// rows are one page of a listing, read. A page is read once: for its line in the
// wire log, which says what is wrong with it, and then for who asked for it.
type rows struct {
	of    json.RawMessage // what was read
	names fieldNames
	list  json.RawMessage // nil: there is no list
	next  string
	cut   string
	tasks []taskmodel.Snapshot
	errs  []rowError // the rows that are no tasks
	first string     // what is wrong with the first row that is not as it should be
}

type rowError struct {
	row int
	err error
}

// readRows reads the result of tasks/list.
func readRows(b json.RawMessage, names fieldNames) *rows {
	r := &rows{of: b, names: names}
	members(b, func(k string, v json.RawMessage) bool {
		switch k {
		case "tasks":
			r.list = v
		case "nextCursor":
			if r.next, r.cut = nextCursor(v); !isString(v) && !isNull(v) {
				r.first = "/result/nextCursor is no string"
			}
		}
		return true
	})
	if !isArray(r.list) {
		r.list = nil
		return r
	}
	r.tasks = []taskmodel.Snapshot{}
	n := 0
	elements(r.list, func(v json.RawMessage) bool {
		snap, err := readTask(v, names)
		if r.first == "" && (err != nil || len(snap.Missing) > 0 || len(snap.Lenient) > 0) {
			r.first = snapFault("/result/tasks/"+itoa(n), &snap, err)
		}
		if err != nil {
			r.errs = append(r.errs, rowError{n, err})
		} else {
			r.tasks = append(r.tasks, snap)
		}
		n++
		return true
	})
	return r
}

// fault is where the page breaks the schema, "" when it does not.
func (r *rows) fault() string {
	if r.list == nil {
		return "/result/tasks is missing"
	}
	return r.first
}

// is reports whether r was read from b, in the same generation.
func (r *rows) is(b json.RawMessage, names fieldNames) bool {
	return r != nil && len(b) > 0 && len(r.of) == len(b) && &r.of[0] == &b[0] && r.names.generation == names.generation
}

// early looks into a page for the cursor of the next alone and tells next of it;
// nil where next is.
func early(next func(cursor string)) func(json.RawMessage) {
	if next == nil {
		return nil
	}
	return func(page json.RawMessage) {
		if c, _ := nextCursor(member(page, "nextCursor")); c != "" {
			next(c)
		}
	}
}

// recent keeps the pages that were read for the wire log until they are asked
// for: several at once, since a page may come before the one before it was taken.
// It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	pages [4]*rows
	n     int
}

func (c *recent) put(r *rows) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages[c.n%len(c.pages)] = r
	c.n++
}

// take gives what was read of b, nil when that is not there (any more).
func (c *recent) take(b json.RawMessage, names fieldNames) *rows {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.pages {
		if r.is(b, names) {
			c.pages[i] = nil
			return r
		}
	}
	return nil
}

// readPage gives one page of a listing. A row that names no task cannot be
// kept; it stays in Raw, and the log says so.
func (s *session) readPage(b json.RawMessage, names fieldNames) (Page, error) {
	r := s.rows.take(b, names)
	if r == nil {
		r = readRows(b, names)
	}
	if r.list == nil {
		return Page{Raw: b}, s.wrap(doing("tasks/list", ""), fmt.Errorf("the answer has no list of tasks: %s", clip(b)))
	}
	for _, e := range r.errs {
		s.log.Warn("a row of the listing is no task", "server", s.server(), "row", e.row, "err", e.err)
	}
	return Page{Raw: b, Next: r.next, Cut: r.cut, Tasks: r.tasks}, nil
}

// nextCursor reads where a listing goes on, "" where it ends. Some servers
// number their pages: the cursor is then the digits. Of one that cannot be sent
// back cut says so, for a listing must not end as if it were whole.
func nextCursor(v json.RawMessage) (next, cut string) {
	switch {
	case v == nil || isNull(v):
		return "", ""
	case isString(v):
		return text(v), ""
	case json.Valid(v) && (v[0] == '-' || v[0] >= '0' && v[0] <= '9'):
		return string(v), ""
	}
	return "", "the server's cursor for the next page is no string: " + clip(v)
}
