package board

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"mcptasks/taskmodel"
)

// A Board is the table of all tasks, questions and servers of this process. It
// is owned by one goroutine; what it publishes may be read by any.
type Board struct {
	id        *int // tells the versions of one board from those of another
	tree      *btree.BTreeG[*row]
	children  *btree.BTreeG[*row] // those with a parent, by parent
	questions *btree.BTreeG[*taskmodel.Question]
	servers   []taskmodel.Server // copied before it is written to
	heads     heads
	counts    tally
	open      int            // questions
	openOf    map[string]int // by the server that asks
	wanted    map[taskmodel.Key]bool
	eventSeq  int64
	sought    row // what find looks up with: one for all, since most of the work is looking up

	last  *Version // the last published
	dirty bool
	// overflow: more has changed than views would follow; nothing is recorded.
	overflow bool
	pending  []change
	at       map[*row]int // index in pending of the change that ended in this row
	log      []changeSet  // of the last versions, oldest first; copied before it is written to
}

// New returns an empty board.
func New() *Board {
	opts := btree.Options{NoLocks: true}
	return &Board{
		id:        new(int),
		tree:      btree.NewBTreeGOptions(lessKey, opts),
		children:  btree.NewBTreeGOptions(lessChild, opts),
		questions: btree.NewBTreeGOptions(lessQuestion, opts), openOf: map[string]int{},
		heads:  heads{},
		counts: newTally(),
		wanted: map[taskmodel.Key]bool{},
		at:     map[*row]int{},
		sought: row{head: &head{}},
	}
}

// find gives the row of a key; it is the board's goroutine's alone.
func (b *Board) find(k taskmodel.Key) (*row, bool) {
	b.sought.head.key.Server, b.sought.head.key.Role, b.sought.id = k.Server, k.Role, k.ID
	r, ok := b.tree.Get(&b.sought)
	b.sought.id = "" // it may be a part of a message a megabyte long
	return r, ok
}

func lessChild(a, b *row) bool {
	if a.head.key != b.head.key {
		if a.head.key.Server != b.head.key.Server {
			return a.head.key.Server < b.head.key.Server
		}
		return a.head.key.Role < b.head.key.Role
	}
	if a.parent() != b.parent() {
		return a.parent() < b.parent()
	}
	return a.id < b.id
}

func lessQuestion(a, b *taskmodel.Question) bool {
	if a.ID.Server != b.ID.Server {
		return a.ID.Server < b.ID.Server
	}
	return a.ID.ID < b.ID.ID
}

// Observe merges what a server said of a task (taskmodel.Merge) and returns
// what happened, oldest first; nothing when it was no news. Answers to polls and
// rows of listings are counted in the task's Polls, notifications in its Pushes.
// When the statement has to be checked by a poll at once, WantPoll tells.
func (b *Board) Observe(server string, gen taskmodel.Generation, role taskmodel.Role, o taskmodel.Observation) []taskmodel.Event {
	_, events := b.ObserveTask(server, gen, role, o)
	return events
}

// ObserveTask is Observe for those who need the task as it is then: it is given
// where something happened, and nil else.
func (b *Board) ObserveTask(server string, gen taskmodel.Generation, role taskmodel.Role, o taskmodel.Observation) (*taskmodel.Task, []taskmodel.Event) {
	// The board keeps microseconds; what is compared with them must be whole ones.
	o.AskedAt, o.HeardAt = o.AskedAt.Truncate(time.Microsecond), o.HeardAt.Truncate(time.Microsecond)
	o.LastUpdatedAt, o.CreatedAt = o.LastUpdatedAt.Truncate(time.Microsecond), o.CreatedAt.Truncate(time.Microsecond)
	k := taskmodel.Key{Server: server, ID: o.ID, Role: role}
	old, exists := b.find(k)
	t := taskmodel.Task{Key: k}
	if exists {
		old.unpack(&t)
	}
	t, changes := taskmodel.Merge(t, exists, o, gen, o.HeardAt)
	var events []taskmodel.Event
	for _, c := range changes {
		switch c.Kind {
		case taskmodel.ChangeStale:
			return nil, nil
		case taskmodel.ChangePoll:
			b.wanted[k] = true
			return nil, nil
		}
		if e, ok := eventOf(&t, c, o); ok {
			events = append(events, b.number(e))
		}
	}
	switch o.Source {
	case taskmodel.FromGet, taskmodel.FromList:
		t.Polls++
	case taskmodel.FromPush:
		t.Pushes++
	}
	r := b.put(old, &t)
	if len(events) == 0 {
		return nil, nil
	}
	return r.task(), events
}

// WantPoll returns the tasks that a notification left in doubt since it was
// last called: they are to be polled at once, whatever their interval.
func (b *Board) WantPoll() []taskmodel.Key {
	if len(b.wanted) == 0 {
		return nil
	}
	keys := make([]taskmodel.Key, 0, len(b.wanted))
	for k := range b.wanted {
		keys = append(keys, k)
	}
	clear(b.wanted)
	return keys
}

// Change lets f alter what only we know of a task and returns the events that
// follow from it: another standing, a cancel asked for, progress, a result. It
// creates nothing: without such a task f is not called. f must not write into
// the task's slices, but may put others in their place.
func (b *Board) Change(k taskmodel.Key, now time.Time, f func(*taskmodel.Task)) []taskmodel.Event {
	old, ok := b.find(k)
	if !ok {
		return nil
	}
	was := old.task()
	t := *was
	f(&t)
	t.Key = k
	if t.Standing != was.Standing && t.StandingSince.Equal(was.StandingSince) {
		t.StandingSince = now
	}
	events := b.changed(was, &t, now)
	b.put(old, &t)
	return events
}

// Insert puts a whole task in, in the place of the one of the same key if there
// is one: what was restored, or what we started.
func (b *Board) Insert(t taskmodel.Task) {
	old, _ := b.find(t.Key)
	b.put(old, &t)
}

// Task returns the task as the board has it now, published or not.
func (b *Board) Task(k taskmodel.Key) (taskmodel.Task, bool) {
	r, ok := b.find(k)
	if !ok {
		return taskmodel.Task{}, false
	}
	return *r.task(), true
}

// Len is the number of tasks on the board now.
func (b *Board) Len() int { return b.tree.Len() }

// Remove takes a task off the board and reports whether it was there. Its
// questions stay until they are dropped.
func (b *Board) Remove(k taskmodel.Key) bool {
	old, ok := b.tree.Delete(probe(k))
	if !ok {
		return false
	}
	if old.parent() != "" {
		b.children.Delete(old)
	}
	b.counts.add(old, -1)
	b.note(old, nil)
	return true
}

func (b *Board) put(old *row, t *taskmodel.Task) *row {
	r := b.heads.pack(t, old, b.seq()+1)
	b.tree.Set(r)
	if old != nil && old.parent() != "" {
		b.children.Delete(old)
	}
	if r.parent() != "" {
		b.children.Set(r)
	}
	if old == nil || old.head != r.head {
		if old != nil {
			b.counts.add(old, -1)
		}
		b.counts.add(r, 1)
	}
	b.note(old, r)
	return r
}

// note records a change for the views that follow the versions.
func (b *Board) note(old, new *row) {
	b.dirty = true
	if b.overflow {
		return
	}
	if len(b.pending) >= logChanges {
		b.overflow, b.pending, b.at = true, nil, map[*row]int{}
		return
	}
	i, again := -1, false
	if old != nil {
		if i, again = b.at[old]; again {
			delete(b.at, old)
		}
	}
	if again {
		b.pending[i].new = new
	} else {
		i = len(b.pending)
		b.pending = append(b.pending, change{old, new})
	}
	if new != nil {
		b.at[new] = i
	}
}

func (b *Board) seq() uint64 {
	if b.last == nil {
		return 0
	}
	return b.last.seq
}

// PutServer puts a server in, in the place of the one of the same name; a new
// one comes after those that are there.
func (b *Board) PutServer(s taskmodel.Server) {
	b.servers = slices.Clone(b.servers)
	b.dirty = true
	if i := slices.IndexFunc(b.servers, func(o taskmodel.Server) bool { return o.Name == s.Name }); i >= 0 {
		b.servers[i] = s
		return
	}
	b.servers = append(b.servers, s)
}

// DropServer takes a server off the board; its tasks stay until they are removed.
func (b *Board) DropServer(name string) {
	b.servers = slices.DeleteFunc(slices.Clone(b.servers), func(s taskmodel.Server) bool { return s.Name == name })
	b.dirty = true
}

// Server returns the server as the board has it now, published or not.
func (b *Board) Server(name string) (taskmodel.Server, bool) {
	for _, s := range b.servers {
		if s.Name == name {
			return s, true
		}
	}
	return taskmodel.Server{}, false
}

// PutQuestion puts a question in, in the place of the one with the same id, and
// enters it in the Inputs of its task when that is on the board.
func (b *Board) PutQuestion(q taskmodel.Question) {
	b.dirty = true
	if old, had := b.questions.Set(&q); had {
		b.opened(old, -1)
	}
	b.opened(&q, 1)
	old, ok := b.find(q.Task)
	if !ok {
		return
	}
	t := old.task()
	if !slices.Contains(t.Inputs, q.ID) {
		t.Inputs = append(slices.Clip(t.Inputs), q.ID)
		b.put(old, t)
	}
}

// Question returns the question as the board has it now, published or not.
func (b *Board) Question(id taskmodel.QuestionID) (taskmodel.Question, bool) {
	if q, ok := b.questions.Get(&taskmodel.Question{ID: id}); ok {
		return *q, true
	}
	return taskmodel.Question{}, false
}

// DropQuestion takes a question off the board and out of its task's Inputs.
func (b *Board) DropQuestion(id taskmodel.QuestionID) {
	q, ok := b.questions.Delete(&taskmodel.Question{ID: id})
	if !ok {
		return
	}
	b.dirty = true
	b.opened(q, -1)
	old, ok := b.find(q.Task)
	if !ok {
		return
	}
	t := old.task()
	if i := slices.Index(t.Inputs, id); i >= 0 {
		t.Inputs = slices.Delete(slices.Clone(t.Inputs), i, i+1)
		if len(t.Inputs) == 0 {
			t.Inputs = nil
		}
		b.put(old, t)
	}
}

func openQuestion(q *taskmodel.Question) bool { return q.State.Open() }

// opened counts a question that is open.
func (b *Board) opened(q *taskmodel.Question, by int) {
	if !openQuestion(q) {
		return
	}
	b.open += by
	if b.openOf[q.ID.Server] += by; b.openOf[q.ID.Server] == 0 {
		delete(b.openOf, q.ID.Server)
	}
}

// OpenQuestionsOf is how many open questions a server has on the board.
func (b *Board) OpenQuestionsOf(server string) int { return b.openOf[server] }

func (b *Board) number(e taskmodel.Event) taskmodel.Event {
	b.eventSeq++
	e.Seq = b.eventSeq
	return e
}

func detail(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
