package monitor

import (
	"container/heap"
	"time"
)

// alarms are what the loop is to do at some time. They are the loop's alone.
type alarms struct {
	heap alarmHeap
	n    int64
}

// An alarm is one of them; zero Time: not set.
type alarm struct {
	at    time.Time
	n     int64 // equal times go off in the order of their setting
	do    func()
	index int // in the heap; -1 when it is not in it
}

// set makes an alarm go off at a time; an alarm that was set before is moved.
func (a *alarms) set(al *alarm, at time.Time) {
	a.n++
	if al.index >= 0 && al.index < len(a.heap) && a.heap[al.index] == al {
		al.at, al.n = at, a.n
		heap.Fix(&a.heap, al.index)
		return
	}
	al.at, al.n = at, a.n
	heap.Push(&a.heap, al)
}

// at makes a new alarm.
func (a *alarms) at(at time.Time, do func()) *alarm {
	al := &alarm{do: do, index: -1}
	a.set(al, at)
	return al
}

// drop takes an alarm out if it is set.
func (a *alarms) drop(al *alarm) {
	if al != nil && al.index >= 0 && al.index < len(a.heap) && a.heap[al.index] == al {
		heap.Remove(&a.heap, al.index)
	}
}

// isSet reports whether the alarm will go off.
func (a *alarms) isSet(al *alarm) bool {
	return al != nil && al.index >= 0 && al.index < len(a.heap) && a.heap[al.index] == al
}

// next is when the next alarm goes off.
func (a *alarms) next() (time.Time, bool) {
	if len(a.heap) == 0 {
		return time.Time{}, false
	}
	return a.heap[0].at, true
}

// run does what is due.
func (a *alarms) run(now time.Time) {
	for len(a.heap) > 0 && !a.heap[0].at.After(now) {
		al := heap.Pop(&a.heap).(*alarm)
		al.do()
	}
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int { return len(h) }
func (h alarmHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].n < h[j].n
}
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *alarmHeap) Push(x any) {
	al := x.(*alarm)
	al.index = len(*h)
	*h = append(*h, al)
}
func (h *alarmHeap) Pop() any {
	old := *h
	al := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	al.index = -1
	return al
}
