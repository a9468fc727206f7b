package board

import (
	"time"

	"mcptasks/taskmodel"
)

// The board's surface, for those who build on it:
//
//	b := New()                                   // owned by one goroutine
//	events := b.Observe(server, gen, role, obs)  // merge a snapshot (taskmodel.Merge), give events
//	events := b.Change(key, now, func(*taskmodel.Task)) // what only we know; creates nothing
//	b.Insert(task)                               // restored or started
//	b.Remove(key)
//	b.PutServer(s) b.DropServer(name)
//	b.PutQuestion(q) b.DropQuestion(id)
//	v := b.Publish(now)                          // O(1)-ish copy-on-write
//
//	v.Seq() v.At()
//	v.Task(key) (taskmodel.Task, bool)
//	v.Len() v.Counts() Counts
//	v.Tasks(func(*taskmodel.Task) bool)           // in key order
//	v.Server(name) v.Servers() []taskmodel.Server // configured order
//	v.Question(id) v.Questions() []taskmodel.Question // open and sending ones first, oldest first
//	v.OpenQuestions() int
//	v.Find(server, idPrefix, role) []taskmodel.Key
//
//	f, err := ParseFilter(text)                  // errors carry the column
//	f.Match(&task, now) bool  f.String()  f.Complete(text, cursor, v) []string
//
//	w := NewView()                               // owned by its user, e.g. the ui's goroutine or a Cmd
//	w.Set(Settings{Filter, Sort, Reverse, Group, Fold, NeedsFirst, EndedLast})
//	w.Update(v)                                  // cost follows what changed since the last version
//	w.Len() w.Total() w.Row(i) Row w.Rows(from, n) []Row w.Index(key) int
//
// A Row is a task or a group's heading.

// Counts are the numbers of the status line.
type Counts struct {
	Total     int
	ByStatus  map[taskmodel.Status]int
	ByServer  map[string]map[taskmodel.Status]int
	Questions int // open
}

// SortColumn names what a list is sorted by.
type SortColumn string

const (
	SortNeeds    SortColumn = "needs" // those that need a person, then unfinished by age, then ended by end
	SortStatus   SortColumn = "status"
	SortServer   SortColumn = "server"
	SortTool     SortColumn = "tool"
	SortID       SortColumn = "id"
	SortMessage  SortColumn = "message"
	SortProgress SortColumn = "progress"
	SortAge      SortColumn = "age"
	SortTTL      SortColumn = "ttl"
	SortHeard    SortColumn = "heard"
)

// Settings are what a person chose for a list.
type Settings struct {
	Filter     *Filter
	Sort       SortColumn
	Reverse    bool
	Group      string // "" | server | status
	Folded     map[string]bool
	NeedsFirst bool // those that need a person rise
	EndedLast  bool // terminal tasks sink
}

// A Row is one line of a list.
type Row struct {
	Heading string // set for a group's heading; Count is then its size
	Count   int
	Folded  bool
	Task    *taskmodel.Task
}

// Clocked reports whether a filter's answer can change as time passes, and is
// implemented by *Filter: views with such filters are refreshed each second.
type Clocked interface {
	Clocked() bool
	Next(now time.Time) time.Time
}
