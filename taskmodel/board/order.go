package board

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"mcptasks/taskmodel"
)

// An order says how rows follow each other. It looks at rows alone, never at
// the clock, so that a row's place changes only when the row does.
type order struct {
	Settings
	servers map[string]int // their order, for grouping
}

// statusRank is the order of statuses: what needs a person first, ends last.
func statusRank(s taskmodel.Status) int {
	switch s {
	case taskmodel.InputRequired:
		return 0
	case taskmodel.Working:
		return 1
	case taskmodel.Submitted:
		return 2
	case taskmodel.Failed:
		return 4
	case taskmodel.Completed:
		return 5
	case taskmodel.Cancelled:
		return 6
	case taskmodel.Unknown:
		return 7
	}
	return 3
}

// group gives the name of a row's group, its rank, and whether no other group
// has that rank.
func (o *order) group(r *row) (name string, rank int, alone bool) {
	switch o.Group {
	case "server":
		rank, ok := o.servers[r.head.key.Server]
		if !ok {
			rank = len(o.servers)
		}
		return r.head.key.Server, rank, ok
	case "status":
		rank := statusRank(r.status())
		return string(r.status()), rank, rank != 3
	}
	return "", 0, true
}

// tier is what comes before the column: those that need a person rise, ended
// ones sink, where that is wanted.
func (o *order) tier(r *row) int {
	switch {
	case (o.NeedsFirst || o.byNeeds()) && r.needsPerson():
		return 0
	case (o.EndedLast || o.byNeeds()) && r.terminal():
		return 2
	}
	return 1
}

func (o *order) byNeeds() bool { return o.Sort == SortNeeds || o.Sort == "" }

const none = math.MaxInt64 // such rows stay last, in the reverse too

// number is what a row is sorted by first in the columns that are numbers.
func (o *order) number(r *row) int64 {
	switch o.Sort {
	case SortNeeds, "":
		switch {
		case r.needsPerson():
			return r.since // who waits longest
		case r.terminal():
			return -r.end() // what ended last
		}
		return -r.born()
	case SortStatus:
		return int64(statusRank(r.status()))
	case SortAge:
		return -r.born()
	case SortHeard:
		return -r.heard
	case SortTTL:
		if at := r.expires(); at != 0 {
			return at
		}
		return none
	case SortProgress:
		if r.x == nil || r.x.progress == nil {
			return none
		}
		p := r.x.progress
		switch f := p.Value / p.Total; {
		case !p.HasTotal || p.Total <= 0 || math.IsNaN(f):
			return none - 1
		case f >= 1:
			return 0
		case f <= 0:
			return 1 << 32
		default:
			return int64((1 - f) * (1 << 32))
		}
	}
	return 0
}

// text is what a row is sorted by in the columns that are words.
func (o *order) text(r *row) string {
	switch o.Sort {
	case SortStatus:
		return string(r.status())
	case SortServer:
		return r.head.key.Server
	case SortTool:
		return r.head.tool
	case SortID:
		return r.id
	case SortMessage:
		return r.msg
	}
	return ""
}

func (o *order) textual() bool {
	switch o.Sort {
	case SortServer, SortTool, SortID, SortMessage:
		return true
	}
	return false
}

// compare is the whole order; it is total, by key in the end.
func (o *order) compare(a, b *row) int {
	if a == b {
		return 0
	}
	if o.Group != "" {
		an, ar, _ := o.group(a)
		bn, br, _ := o.group(b)
		if ar != br {
			return cmp.Compare(ar, br)
		}
		if c := strings.Compare(an, bn); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(o.major(a), o.major(b)); c != 0 {
		return c
	}
	if o.textual() {
		at, bt := o.text(a), o.text(b)
		if c := cmp.Compare(empty(at), empty(bt)); c != 0 {
			return c
		}
		if c := compareFold(at, bt); c != 0 {
			return o.turn(c)
		}
	} else {
		an, bn := o.number(a), o.number(b)
		if an != bn {
			if an == none || bn == none {
				return cmp.Compare(an, bn)
			}
			return o.turn(cmp.Compare(an, bn))
		}
		if c := strings.Compare(o.text(a), o.text(b)); c != 0 {
			return o.turn(c)
		}
	}
	if lessKey(a, b) {
		return -1
	}
	if lessKey(b, a) {
		return 1
	}
	return 0
}

func empty(s string) int {
	if s == "" {
		return 1
	}
	return 0
}

// major is the tier as compare uses it: when sorting by need the reverse turns
// the tiers too.
func (o *order) major(r *row) int {
	t := o.tier(r)
	if o.byNeeds() && o.Reverse {
		return 2 - t
	}
	return t
}

func (o *order) turn(c int) int {
	if o.Reverse {
		return -c
	}
	return c
}

// sort puts rows in order. Most comparisons are decided by two numbers made
// beforehand, which is several times faster than looking into the rows.
func (o *order) sort(rows []*row) {
	type keyed struct {
		major uint32
		minor uint64
		r     *row
	}
	keys := make([]keyed, len(rows))
	for i, r := range rows {
		_, rank, alone := o.group(r)
		if !alone { // groups of equal rank: only their names tell them apart
			slices.SortFunc(rows, o.compare)
			return
		}
		keys[i] = keyed{uint32(rank)<<2 | uint32(o.major(r)), o.minor(r), r}
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		if a.major != b.major {
			return cmp.Compare(a.major, b.major)
		}
		if a.minor != b.minor {
			return cmp.Compare(a.minor, b.minor)
		}
		return o.compare(a.r, b.r)
	})
	for i := range keys {
		rows[i] = keys[i].r
	}
}

// minor is a number that never contradicts compare within one group and tier.
func (o *order) minor(r *row) uint64 {
	if o.textual() {
		s := o.text(r)
		if s == "" {
			return math.MaxUint64
		}
		var m uint64
		for i := range 8 {
			m <<= 8
			if i < len(s) {
				m |= uint64(lower(s[i]))
			}
		}
		if o.Reverse {
			m = math.MaxUint64 - m
		}
		return min(m, math.MaxUint64-1)
	}
	n := o.number(r)
	if n == none {
		return math.MaxUint64
	}
	if o.Reverse {
		n = -n
	}
	return uint64(n) ^ 1<<63
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// compareFold compares without regard to the case of ASCII letters, then with.
func compareFold(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return cmp.Compare(x, y)
		}
	}
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}
