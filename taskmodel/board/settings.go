package board

import "mcptasks/taskmodel"

// Counts are the numbers of the status line.
type Counts struct {
	Total     int
	ByStatus  map[taskmodel.Status]int
	ByServer  map[string]map[taskmodel.Status]int
	Questions int // open
	// Lost are those of ByStatus that their server calls working or submitted and
	// does not know any more: nobody knows whether they are.
	Lost int
}

// SortColumn names what a list is sorted by.
type SortColumn string

const (
	// SortNeeds: those that need a person, the longest waiting first, then
	// unfinished ones, the youngest first, then ended ones, the last end first.
	SortNeeds    SortColumn = "needs"
	SortStatus   SortColumn = "status"
	SortServer   SortColumn = "server"
	SortTool     SortColumn = "tool"
	SortID       SortColumn = "id"
	SortMessage  SortColumn = "message"
	SortProgress SortColumn = "progress" // furthest first
	SortAge      SortColumn = "age"      // youngest first
	SortTTL      SortColumn = "ttl"      // what runs out next first
	SortHeard    SortColumn = "heard"    // last heard first
)

// Settings are what a person chose for a list.
type Settings struct {
	Filter     *Filter // nil: all
	Sort       SortColumn
	Reverse    bool
	Group      string          // "" | server | status
	Folded     map[string]bool // by the name of the group
	NeedsFirst bool            // those that need a person rise
	EndedLast  bool            // terminal tasks sink
}

// A Row is one line of a list.
type Row struct {
	Heading string // set for a group's heading; Count is then its size
	Count   int
	Folded  bool
	// ByStatus counts the tasks of a server's group; nil for other rows. It is
	// the caller's.
	ByStatus map[taskmodel.Status]int
	Task     *taskmodel.Task // nil for a heading
	Rev      uint64          // another one when the task is another; for caches
}
