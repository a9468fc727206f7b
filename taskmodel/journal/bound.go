package journal

import (
	"fmt"
	"slices"

	"mcptasks/taskmodel"
)

// This file is what becomes of the queue when the disk does not keep up, or
// takes nothing at all: it goes on taking what it is given, nobody waits, and
// it gives up what can be had again.

// weightOf is what an entry or an act weighs beside its texts, about.
const weightOf = 512

// weigh sets how many bytes an item holds.
func (it *item) weigh() {
	it.bytes = weightOf
	for i := range it.entries {
		it.bytes += it.entries[i].weight()
	}
}

// weight is how many bytes an entry holds, about: the texts that a server or a
// person can make long, and a rough figure for all else.
func (e *Entry) weight() int64 {
	n := weightOf + len(e.Target) + len(e.Server)
	if t := e.Task; t != nil {
		n += weightOf + len(t.Raw) + len(t.Args) + len(t.StatusMessage) + len(t.ModelNote) + len(t.Note) + 64*(len(t.Transitions)+len(t.Inputs)+len(t.Children))
		for i := range t.Transitions {
			n += len(t.Transitions[i].Message) + len(t.Transitions[i].Note)
		}
	}
	if v := e.Event; v != nil {
		n += len(v.Message) + len(v.Detail)
	}
	if q := e.Question; q != nil {
		n += weightOf + len(q.Message) + len(q.Schema) + len(q.URL) + len(q.Params) + len(q.Draft) + len(q.Refusal) + len(q.Repeat.Args)
	}
	if a := e.Answer; a != nil {
		n += len(a.Content)
	}
	if o := e.Outcome; o != nil {
		n += len(o.Result) + len(o.Note)
		if o.Err != nil {
			n += len(o.Err.Message) + len(o.Err.Data)
		}
	}
	if s := e.Session; s != nil {
		n += len(s.Init)
	}
	return int64(n)
}

// lighten gives up what can be had again, until the queue holds no more than so
// many bytes: first what newer entries say too and acts that nobody waits for
// any more, then, the oldest first, the payloads of results, and then what is
// kept of a task and of an event to be looked at only (a snapshot as the server
// wrote it, an event's details). That a result was there stays, with its size
// and why it is not kept. Handles, statuses, questions, answers and sessions
// stay in any case: they are small, and there is no second source for them.
func (w *writer) lighten(to int64) {
	w.queue = slices.DeleteFunc(w.queue, func(it *item) bool {
		if it.act == nil || !it.begun.Load() {
			return false
		}
		w.bytes -= it.bytes
		return true
	})
	w.dropSuperseded()
	for _, lighter := range []func(*Entry) bool{w.withoutResult, withoutDetail} {
		for _, it := range w.queue {
			if w.bytes <= to {
				return
			}
			was, own := it.bytes, false
			for i := range it.entries {
				e := it.entries[i]
				if !lighter(&e) {
					continue
				}
				if !own { // the list is the caller's
					it.entries, own = slices.Clone(it.entries), true
				}
				it.entries[i] = e
			}
			it.weigh()
			w.bytes += it.bytes - was
		}
	}
}

// withoutResult replaces a result by why it is not kept, and reports whether
// there was one. What e points to is not changed.
func (w *writer) withoutResult(e *Entry) bool {
	if e.Outcome == nil || len(e.Outcome.Result) == 0 {
		return false
	}
	o, k := *e.Outcome, e.Key
	if e.Task != nil && k.ID == "" {
		k = e.Task.Key
	}
	o.TooLarge, o.Result = int64(len(o.Result)), nil
	o.Note = fmt.Sprintf("Not kept: it has %s, and more than the %s that may wait for the disk waited. To write it to a file while the server has it: mcptasks result %s --save DIR",
		bytesInWords(o.TooLarge), bytesInWords(w.j.opts.QueueBytes), k)
	e.Outcome = &o
	return true
}

// withoutDetail leaves out what is kept to be looked at only.
func withoutDetail(e *Entry) bool {
	lighter := false
	if e.Task != nil && len(e.Task.Raw) > 0 {
		t := *e.Task
		t.Raw, e.Task, lighter = nil, &t, true
	}
	if e.Event != nil && len(e.Event.Detail) > 0 {
		v := *e.Event
		v.Detail, e.Event, lighter = nil, &v, true
	}
	return lighter
}

// dropSuperseded takes out status entries of tasks that have newer ones queued.
func (w *writer) dropSuperseded() {
	type id struct {
		target string
		key    taskmodel.Key
	}
	newer := map[id]bool{}
	for i := len(w.queue) - 1; i >= 0; i-- {
		it := w.queue[i]
		if it.act != nil || it.done != nil {
			continue
		}
		was := len(it.entries)
		kept := it.entries[:0:0]
		for k := len(it.entries) - 1; k >= 0; k-- {
			e := it.entries[k]
			if e.Task != nil {
				at := id{e.Target, e.Task.Key}
				if newer[at] && e.statusOnly() {
					w.entries--
					continue
				}
				newer[at] = true
			}
			kept = append(kept, e)
		}
		for a, b := 0, len(kept)-1; a < b; a, b = a+1, b-1 {
			kept[a], kept[b] = kept[b], kept[a]
		}
		if it.entries = kept; len(kept) < was {
			w.bytes -= it.bytes
			it.weigh()
			w.bytes += it.bytes
		}
	}
	w.reckon()
}

// statusOnly reports whether a newer entry of the same task says all that this
// one does.
func (e *Entry) statusOnly() bool {
	if e.Question != nil || e.Answer != nil || e.Delivered != nil || e.Outcome != nil || e.Session != nil || e.Forget {
		return false
	}
	return e.Event == nil || e.Event.Kind == taskmodel.EventStatus || e.Event.Kind == taskmodel.EventStanding ||
		e.Event.Kind == taskmodel.EventProgress || e.Event.Kind == taskmodel.EventLog
}
