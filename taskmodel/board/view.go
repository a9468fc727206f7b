package board

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"time"

	"mcptasks/taskmodel"
)

// A View filters, sorts and groups one version after another. It is owned by
// its user: one goroutine at a time. Following a version costs what changed
// since the one before; another filter costs one pass over the tasks that were
// shown when it narrows the one before it, else over all; another order costs a
// sort. With many tasks do the latter two on a Fork, away from the frame:
//
//	next := view.Fork()             // 2 µs at 100,000 tasks
//	go func() { next.Set(settings); next.Update(version); done <- next }()
type View struct {
	want, have Settings
	fresh      bool // have was applied at least once

	board   *int
	seq     uint64
	now     time.Time
	due     time.Time // when a filter that looks at the clock is to be applied again
	version *Version
	order   *order
	all     *list // every task in order
	shown   *list // those that the filter lets through; all itself without a filter
	match   matcher

	sizes  map[string]int // of the groups, counted over shown
	tally  map[standing]int
	groups []group
	rows   int
}

// A group is a run of rows of shown under a heading.
type group struct {
	name   string
	rank   int
	start  int // in shown
	size   int
	folded bool
	row    int // of the heading
}

// A standing is the key of a count of tasks: those of a server's group that have
// a status.
type standing struct {
	group  string
	status taskmodel.Status
}

// NewView returns a view of nothing, in the default order, unfiltered.
func NewView() *View {
	return &View{sizes: map[string]int{}, tally: map[standing]int{}}
}

// Set says what to show from the next Update on. The view keeps its own copy.
func (w *View) Set(s Settings) {
	s.Folded = maps.Clone(s.Folded)
	w.want = s
}

// Settings are those of the last Set.
func (w *View) Settings() Settings { return w.want }

// Fork returns a copy that shares nothing that either of the two changes, for
// use by another goroutine.
func (w *View) Fork() *View {
	f := *w
	f.sizes = maps.Clone(w.sizes)
	f.tally = maps.Clone(w.tally)
	f.groups = slices.Clone(w.groups)
	f.match = w.match.fork()
	if w.all != nil {
		f.all = w.all.clone()
		f.shown = f.all
		if w.shown != w.all {
			f.shown = w.shown.clone()
		}
	}
	return &f
}

// Update makes the view show the version. The version's own time is the clock
// for filters on age and time to live; see Tick.
func (w *View) Update(v *Version) { w.update(context.Background(), v, v.At()) }

// Try is Update for a Fork that nobody may want any more before it is done: when
// the context ends first it stops within a millisecond (of a sort: at its end)
// and returns false, and the view is good for nothing.
func (w *View) Try(ctx context.Context, v *Version) bool {
	w.update(ctx, v, v.At())
	return ctx.Err() == nil
}

// Tick applies a filter that looks at the clock again when that is due, and
// reports whether the view may have changed. Other views cost nothing here.
func (w *View) Tick(now time.Time) bool {
	if w.version == nil || !w.have.Filter.Clocked() || now.Before(w.due) {
		return false
	}
	w.update(context.Background(), w.version, now)
	return true
}

func (w *View) update(ctx context.Context, v *Version, now time.Time) {
	if now.After(w.now) {
		w.now = now
	}
	servers := serverOrder(v)
	resort := !w.fresh || w.board != v.board || sortSettings(w.want) != sortSettings(w.have) ||
		w.want.Group == "server" && !maps.Equal(servers, w.order.servers)
	refilter := resort || w.want.Filter.String() != w.have.Filter.String()
	sets, reached := v.since(w.seq)
	if n := changesIn(sets); !reached || n > followable(v.Len()) {
		resort, refilter = true, true
	}
	narrows := !resort && w.shown != nil && w.want.Filter.Narrows(w.have.Filter)
	w.have, w.fresh = w.want, true
	w.board, w.seq, w.version = v.board, v.seq, v
	switch {
	case resort:
		w.order = &order{Settings: w.have, servers: servers}
		w.match = w.have.Filter.matcher(w.now)
		rows := make([]*row, 0, v.Len())
		v.tree.Scan(func(r *row) bool { rows = append(rows, r); return true })
		w.order.sort(rows)
		w.all = newList(w.order.compare, rows)
		w.refilter(ctx, w.all)
	default:
		if refilter {
			// The changes come first, by the old filter: then narrowing is sound.
			w.apply(sets)
			w.match = w.have.Filter.matcher(w.now)
			if narrows {
				w.refilter(ctx, w.shown)
			} else {
				w.refilter(ctx, w.all)
			}
			break
		}
		w.match.now = w.now.UnixMicro()
		w.apply(sets)
		if w.have.Filter.Clocked() && !w.now.Before(w.due) {
			w.refilter(ctx, w.all)
		}
	}
	w.layOut()
}

// followable is how many changes are followed one by one, on a board with so many
// tasks; past it sorting all is cheaper.
func followable(tasks int) int { return 1000 + tasks/8 }

// sortKey is the part of the settings that decides the order.
type sortKey struct {
	sort                           SortColumn
	group                          string
	reverse, needsFirst, endedLast bool
}

func sortSettings(s Settings) sortKey {
	return sortKey{cmp.Or(s.Sort, SortNeeds), s.Group, s.Reverse, s.NeedsFirst, s.EndedLast}
}

func changesIn(sets []changeSet) (n int) {
	for _, s := range sets {
		n += len(s.changes)
	}
	return n
}

func serverOrder(v *Version) map[string]int {
	m := make(map[string]int, len(v.servers))
	for i, s := range v.servers {
		m[s.Name] = i
	}
	return m
}

// refilter makes shown from the rows of a list that is in order.
func (w *View) refilter(ctx context.Context, from *list) {
	if w.have.Filter.Clocked() {
		w.due = w.have.Filter.Next(w.now)
	}
	switch {
	case w.have.Filter.Empty():
		w.shown = w.all
	default:
		var rows []*row
		seen := 0
		from.from(0, func(r *row) bool {
			if w.match.row(r) {
				rows = append(rows, r)
			}
			if seen++; seen%1024 != 0 {
				return true
			}
			runtime.Gosched() // who waits for a key comes first
			return ctx.Err() == nil
		})
		w.shown = newList(w.all.compare, rows)
	}
	clear(w.sizes)
	clear(w.tally)
	if w.have.Group != "" {
		w.shown.from(0, func(r *row) bool {
			w.count(r, 1)
			return true
		})
	}
}

func (w *View) apply(sets []changeSet) {
	for _, s := range sets {
		for _, c := range s.changes {
			if c.old != nil {
				w.all.remove(c.old)
				if w.shown == w.all || w.shown.remove(c.old) {
					w.count(c.old, -1)
				}
			}
			if c.new != nil {
				w.all.insert(c.new)
				if w.shown == w.all {
					w.count(c.new, 1)
				} else if w.match.row(c.new) {
					w.shown.insert(c.new)
					w.count(c.new, 1)
				}
			}
		}
	}
}

func (w *View) count(r *row, n int) {
	if w.have.Group == "" {
		return
	}
	name, _, _ := w.order.group(r)
	if w.sizes[name] += n; w.sizes[name] <= 0 {
		delete(w.sizes, name)
	}
	if w.have.Group != "server" {
		return
	}
	k := standing{name, r.status()}
	if w.tally[k] += n; w.tally[k] <= 0 {
		delete(w.tally, k)
	}
}

// layOut places the headings.
func (w *View) layOut() {
	w.groups = w.groups[:0]
	w.rows = w.shown.n
	if w.have.Group == "" {
		return
	}
	for name, size := range w.sizes {
		w.groups = append(w.groups, group{name: name, rank: w.rank(name), size: size, folded: w.have.Folded[name]})
	}
	slices.SortFunc(w.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
	})
	start, at := 0, 0
	for i := range w.groups {
		g := &w.groups[i]
		g.start, g.row = start, at
		start += g.size
		at++
		if !g.folded {
			at += g.size
		}
	}
	w.rows = at
}

func (w *View) rank(name string) int {
	if w.have.Group == "status" {
		return statusRank(taskmodel.Status(name))
	}
	if r, ok := w.order.servers[name]; ok {
		return r
	}
	return len(w.order.servers)
}

// Version is the one that the view shows; nil before the first Update.
func (w *View) Version() *Version { return w.version }

// Len is the number of rows, headings included, folded tasks not.
func (w *View) Len() int { return w.rows }

// Matched is the number of tasks that the filter lets through.
func (w *View) Matched() int {
	if w.shown == nil {
		return 0
	}
	return w.shown.n
}

// Total is the number of tasks of the version.
func (w *View) Total() int {
	if w.all == nil {
		return 0
	}
	return w.all.n
}

// Row returns row i; the zero Row when there is none.
func (w *View) Row(i int) Row {
	if rows := w.Rows(i, 1); len(rows) == 1 {
		return rows[0]
	}
	return Row{}
}

// Rows returns up to n rows from row i on. The tasks are the caller's.
func (w *View) Rows(from, n int) []Row {
	if from < 0 || from >= w.rows || n <= 0 {
		return nil
	}
	n = min(n, w.rows-from)
	out := make([]Row, 0, n)
	take := func(rank, count int) {
		if count <= 0 {
			return
		}
		w.shown.from(rank, func(r *row) bool {
			out = append(out, Row{Task: r.task(), Rev: r.rev})
			count--
			return count > 0
		})
	}
	if w.have.Group == "" {
		take(from, n)
		return out
	}
	for i := w.groupAt(from); i < len(w.groups) && len(out) < n; i++ {
		g := w.groups[i]
		skip := max(from-g.row, 0)
		if skip == 0 {
			out = append(out, Row{Heading: g.name, Count: g.size, Folded: g.folded, ByStatus: w.standings(g.name)})
			skip = 1
		}
		if !g.folded {
			take(g.start+skip-1, min(g.size-(skip-1), n-len(out)))
		}
	}
	return out
}

// standings counts a server's group by status. It costs a look at each status
// of each group, and there are few.
func (w *View) standings(group string) map[taskmodel.Status]int {
	if w.have.Group != "server" {
		return nil
	}
	out := map[taskmodel.Status]int{}
	for k, n := range w.tally {
		if k.group == group {
			out[k.status] += n
		}
	}
	return out
}

// groupAt is the index of the group that row i is in.
func (w *View) groupAt(i int) int {
	n, found := slices.BinarySearchFunc(w.groups, i, func(g group, i int) int { return cmp.Compare(g.row, i) })
	if !found {
		n--
	}
	return n
}

// Index returns the row of a task; -1 when it is not there, filtered out, or
// in a folded group (IndexHeading then says where that is).
func (w *View) Index(k taskmodel.Key) int {
	if w.version == nil {
		return -1
	}
	r, ok := w.version.row(k)
	if !ok {
		return -1
	}
	rank, ok := w.shown.rank(r)
	if !ok {
		return -1
	}
	if w.have.Group == "" {
		return rank
	}
	for _, g := range w.groups {
		if rank < g.start+g.size {
			if g.folded {
				return -1
			}
			return g.row + 1 + rank - g.start
		}
	}
	return -1
}

// IndexHeading returns the row of a group's heading; -1 when there is none.
func (w *View) IndexHeading(name string) int {
	for _, g := range w.groups {
		if g.name == name {
			return g.row
		}
	}
	return -1
}

// HeadingOf is the name of the group that a task belongs to, "" without groups.
func (w *View) HeadingOf(k taskmodel.Key) string {
	if w.version == nil || w.have.Group == "" {
		return ""
	}
	r, ok := w.version.row(k)
	if !ok {
		return ""
	}
	name, _, _ := w.order.group(r)
	return name
}

// Tasks calls f with every task that the filter lets through, in the order of
// the rows, folded ones too, until f returns false. The task is f's for the call.
func (w *View) Tasks(f func(*taskmodel.Task) bool) {
	if w.shown == nil {
		return
	}
	var t taskmodel.Task
	w.shown.from(0, func(r *row) bool {
		r.unpack(&t)
		return f(&t)
	})
}

// Keys calls f with the key of every task that the filter lets through, in the
// order of the rows, folded ones too, until f returns false.
func (w *View) Keys(f func(taskmodel.Key) bool) {
	if w.shown != nil {
		w.shown.from(0, func(r *row) bool { return f(r.key()) })
	}
}
