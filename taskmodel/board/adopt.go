package board

import "mcptasks/taskmodel"

// A Batch is tasks from an earlier run, made ready for a board away from its
// goroutine: then Adopt costs the board little more than their places in it.
type Batch struct {
	tasks []taskmodel.Task
	rows  []*row
}

// Prepare makes a batch. It keeps the tasks, with their strings and slices as
// they are: unlike what goes through Insert they must not be pieces of something
// larger, which would be kept with them. Any goroutine may call it.
func Prepare(tasks []taskmodel.Task) *Batch {
	p := &Batch{tasks: tasks, rows: make([]*row, len(tasks))}
	h := heads{}
	for i := range tasks {
		t := &tasks[i]
		r := h.bare(t)
		r.id, r.msg = t.ID, t.StatusMessage
		r.letters = lettersOf(r.id) | lettersOf(r.msg)
		if len(t.Raw) > 0 {
			r.raw = t.Raw
		}
		p.rows[i] = r
	}
	return p
}

// Adopt puts the tasks of a batch on the board, which then owns it: a batch is
// adopted once. Of a task that is on the board already what is there stays,
// unless nothing live was heard of that either (Restored). taken is called with
// each task that was put in, and whether it took the place of another; it must
// neither change nor keep what it is given, and must not touch the board. Tasks
// that come in the order of server, role and id cost least.
func (b *Board) Adopt(p *Batch, taken func(t *taskmodel.Task, known bool)) {
	if len(p.rows) == 0 {
		return
	}
	// A view takes so many changes as a reason to sort all anew (View.Update).
	if !b.overflow && len(b.pending)+len(p.rows) > followable(b.tree.Len()) {
		b.overflow, b.pending, b.at = true, nil, map[*row]int{}
	}
	b.dirty = true
	rev := b.seq() + 1
	var theirs, here *head // the last of the batch's heads, and the board's equal one
	var run *row           // the first of those that are not counted yet; all have its head
	n := 0
	for i, r := range p.rows {
		if r.head != theirs {
			theirs, here = r.head, b.heads.get(*r.head)
		}
		r.head, r.rev = here, rev
		old, known := b.tree.Load(r)
		if known {
			if old.head.standing != taskmodel.Restored {
				b.tree.Set(old)
				continue
			}
			b.counts.add(old, -1)
			if old.parent() != "" {
				b.children.Delete(old)
			}
		} else {
			old = nil
		}
		if r.parent() != "" {
			b.children.Set(r)
		}
		if run != nil && run.head != r.head {
			b.counts.add(run, n)
			n = 0
		}
		run = r
		n++
		b.note(old, r)
		taken(&p.tasks[i], known)
	}
	if run != nil {
		b.counts.add(run, n)
	}
}
