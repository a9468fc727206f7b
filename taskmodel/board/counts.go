package board

import (
	"maps"

	"mcptasks/taskmodel"
)

// maxWords bounds how many status words that no generation defines are counted
// one by one; the others are counted together as otherWords.
const (
	maxWords   = 32
	otherWords = taskmodel.Status("other")
)

// tally keeps the counts of the status line up to date.
type tally struct {
	words    map[taskmodel.Status]bool
	byStatus map[taskmodel.Status]int
	byServer map[string]map[taskmodel.Status]int
	lost     int
	changed  bool
}

func newTally() tally {
	return tally{words: map[taskmodel.Status]bool{}, byStatus: map[taskmodel.Status]int{},
		byServer: map[string]map[taskmodel.Status]int{}}
}

func (c *tally) add(r *row, n int) {
	word := c.word(r.status())
	c.changed = true
	c.byStatus[word] += n
	if c.byStatus[word] == 0 {
		delete(c.byStatus, word)
	}
	if r.lost() {
		c.lost += n
	}
	server := r.head.key.Server
	m := c.byServer[server]
	if m == nil {
		m = map[taskmodel.Status]int{}
		c.byServer[server] = m
	}
	m[word] += n
	if m[word] == 0 {
		delete(m, word)
	}
	if len(m) == 0 {
		delete(c.byServer, server)
	}
}

// word gives the word that a status is counted under, the same one each time.
func (c *tally) word(s taskmodel.Status) taskmodel.Status {
	if s.Defined(taskmodel.GenDraft) || c.words[s] {
		return s
	}
	if len(c.words) < maxWords {
		c.words[s] = true
		return s
	}
	return otherWords
}

// copy gives counts that nobody writes to any more.
func (c *tally) copy(total, questions int) Counts {
	out := Counts{Total: total, Questions: questions, Lost: c.lost, ByStatus: maps.Clone(c.byStatus),
		ByServer: make(map[string]map[taskmodel.Status]int, len(c.byServer))}
	for s, m := range c.byServer {
		out.ByServer[s] = maps.Clone(m)
	}
	return out
}
