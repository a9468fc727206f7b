package board

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"mcptasks/taskmodel"
)

// logVersions and logChanges bound how far a View may be behind and still
// follow by what changed; one that is further behind starts again.
const (
	logVersions = 128
	logChanges  = 1 << 13
)

// A Version is one published state of a Board. It never changes, and any
// number of goroutines may read it.
type Version struct {
	board     *int
	seq       uint64
	at        time.Time
	tree      *btree.BTreeG[*row]
	children  *btree.BTreeG[*row]
	questions *btree.BTreeG[*taskmodel.Question]
	servers   []taskmodel.Server
	counts    Counts
	log       []changeSet

	once   sync.Once
	sorted []taskmodel.Question
}

// A change is one row taking the place of another; either may be nil.
type change struct{ old, new *row }

type changeSet struct {
	seq     uint64 // of the version that these changes led to
	changes []change
}

// Empty is a version without anything, for those who have no board yet.
func Empty() *Version { return New().Publish(time.Time{}) }

// Publish makes what the board holds now readable to all. Its cost follows
// what changed since the last time; when nothing did, it is the last version.
func (b *Board) Publish(now time.Time) *Version {
	if b.last != nil && !b.dirty {
		return b.last
	}
	v := &Version{
		board: b.id, seq: b.seq() + 1, at: now,
		tree: b.tree.Copy(), children: b.children.Copy(), questions: b.questions.Copy(),
		servers: b.servers,
	}
	if b.last == nil || b.counts.changed {
		v.counts = b.counts.copy(b.tree.Len(), b.open)
		b.counts.changed = false
	} else {
		v.counts = b.last.counts // its maps are never written to
		v.counts.Total, v.counts.Questions = b.tree.Len(), b.open
	}
	b.log = b.nextLog(v.seq)
	v.log = b.log
	b.pending, b.dirty, b.overflow = nil, false, false
	if len(b.at) > 1024 { // a map that was cleared keeps its size
		b.at = map[*row]int{}
	}
	clear(b.at)
	b.last = v
	return v
}

// nextLog is the log with what led to the next version; older sets that exceed
// the bounds are left out.
func (b *Board) nextLog(seq uint64) []changeSet {
	if b.overflow {
		return nil
	}
	log, room := b.log, logChanges-len(b.pending)
	for i := len(log) - 1; i >= 0; i-- {
		if room -= len(log[i].changes); room < 0 || len(log)-i >= logVersions {
			log = log[i+1:]
			break
		}
	}
	next := make([]changeSet, 0, len(log)+1)
	return append(append(next, log...), changeSet{seq: seq, changes: b.pending})
}

// since gives the change sets that lead from version seq to this one, and
// whether the log reaches that far back.
func (v *Version) since(seq uint64) ([]changeSet, bool) {
	if seq == v.seq {
		return nil, true
	}
	if seq > v.seq || len(v.log) == 0 || v.log[0].seq > seq+1 {
		return nil, false
	}
	return v.log[seq+1-v.log[0].seq:], true
}

// Seq numbers the versions of a board from 1.
func (v *Version) Seq() uint64 { return v.seq }

// At is when the version was published.
func (v *Version) At() time.Time { return v.at }

// Len is the number of tasks.
func (v *Version) Len() int { return v.tree.Len() }

// Counts are the numbers of the status line. The maps are not to be written to.
func (v *Version) Counts() Counts { return v.counts }

// OpenQuestions is the number of questions that a person can answer now.
func (v *Version) OpenQuestions() int { return v.counts.Questions }

func (v *Version) row(k taskmodel.Key) (*row, bool) { return v.tree.Get(probe(k)) }

// Task returns a task.
func (v *Version) Task(k taskmodel.Key) (taskmodel.Task, bool) {
	r, ok := v.row(k)
	if !ok {
		return taskmodel.Task{}, false
	}
	return *r.task(), true
}

// Tasks calls f with every task by server, role and id until f returns false.
// f may keep the task.
func (v *Version) Tasks(f func(*taskmodel.Task) bool) {
	v.tree.Scan(func(r *row) bool { return f(r.task()) })
}

// Keys calls f with every key by server, role and id until f returns false; it
// is many times cheaper than Tasks.
func (v *Version) Keys(f func(taskmodel.Key) bool) {
	v.tree.Scan(func(r *row) bool { return f(r.key()) })
}

// Select calls f with every task that the filter lets through, as Tasks does.
func (v *Version) Select(filter *Filter, now time.Time, f func(*taskmodel.Task) bool) {
	m := filter.matcher(now)
	v.tree.Scan(func(r *row) bool { return !m.row(r) || f(r.task()) })
}

// Of calls f with every task of one server, as Tasks does.
func (v *Version) Of(server string, f func(*taskmodel.Task) bool) {
	v.tree.Ascend(probe(taskmodel.Key{Server: server}), func(r *row) bool {
		return r.head.key.Server == server && f(r.task())
	})
}

// Children returns the keys of the tasks that name k as their parent, by id.
func (v *Version) Children(k taskmodel.Key) []taskmodel.Key {
	var keys []taskmodel.Key
	from := &row{head: &head{key: taskmodel.Key{Server: k.Server, Role: k.Role}}, x: &extra{parent: k.ID}}
	v.children.Ascend(from, func(r *row) bool {
		if r.head.key != from.head.key || r.parent() != k.ID {
			return false
		}
		keys = append(keys, r.key())
		return true
	})
	return keys
}

// Find returns the keys of one server and role whose id is the one given or
// else begins with it, by id. An exact match comes alone.
func (v *Version) Find(server, idPrefix string, role taskmodel.Role) []taskmodel.Key {
	from := probe(taskmodel.Key{Server: server, ID: idPrefix, Role: role})
	if r, ok := v.tree.Get(from); ok {
		return []taskmodel.Key{r.key()}
	}
	var keys []taskmodel.Key
	v.tree.Ascend(from, func(r *row) bool {
		if r.head.key.Server != server || r.head.key.Role != role || !strings.HasPrefix(r.id, idPrefix) {
			return false
		}
		keys = append(keys, r.key())
		return true
	})
	return keys
}

// Servers returns the servers in the order in which they were configured.
func (v *Version) Servers() []taskmodel.Server { return slices.Clone(v.servers) }

// Server returns a server by its name.
func (v *Version) Server(name string) (taskmodel.Server, bool) {
	for _, s := range v.servers {
		if s.Name == name {
			return s, true
		}
	}
	return taskmodel.Server{}, false
}

// Question returns a question.
func (v *Version) Question(id taskmodel.QuestionID) (taskmodel.Question, bool) {
	if q, ok := v.questions.Get(&taskmodel.Question{ID: id}); ok {
		return *q, true
	}
	return taskmodel.Question{}, false
}

// Questions returns all questions: those that are open or being sent first,
// the oldest of them first, then the others.
func (v *Version) Questions() []taskmodel.Question {
	v.once.Do(func() {
		v.questions.Scan(func(q *taskmodel.Question) bool {
			v.sorted = append(v.sorted, *q)
			return true
		})
		slices.SortStableFunc(v.sorted, func(a, b taskmodel.Question) int {
			if c := cmp.Compare(questionTier(a.State), questionTier(b.State)); c != 0 {
				return c
			}
			return a.AskedAt.Compare(b.AskedAt)
		})
	})
	return slices.Clone(v.sorted)
}

func questionTier(s taskmodel.QuestionState) int {
	if s.Open() || s == taskmodel.QuestionSending {
		return 0
	}
	return 1
}
