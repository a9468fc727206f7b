package wirelog

import (
	"fmt"
	"testing"

	"mcptasks/taskmodel"
)

// entries are messages by their numbers.
func entries(from, to int64) []taskmodel.WireEntry {
	var out []taskmodel.WireEntry
	for n := from; n <= to; n++ {
		method := "tasks/get"
		if n%2 == 0 {
			method = "ping"
		}
		out = append(out, taskmodel.WireEntry{Seq: n, Server: "ci", Kind: "request", Method: method, Bytes: []byte(fmt.Sprint(n))})
	}
	return out
}

// What the monitor has dropped the screen does not hold on to, however long it is
// open; the selection stays at its message (U4), with a filter and without.
func TestTheLogHoldsOnlyWhatIsKept(t *testing.T) {
	for _, filter := range []string{"", "ping"} {
		t.Run("filter "+filter, func(t *testing.T) {
			l := New(Scope{})
			l.filter.Set(filter)
			l.apply()
			l.Feed(entries(1, 100), 1)
			l.table.Window(l.n(), 10)
			if got := l.at(l.table.Cursor).Seq; got != 100 {
				t.Errorf("following, it is at %d", got)
			}
			l.follow = false
			for i := range l.n() {
				if l.at(i).Seq == 62 {
					l.table.Cursor = i
				}
			}
			l.table.Window(l.n(), 10)
			l.Feed(entries(101, 120), 51)
			l.Feed(nil, 61)
			if n, want := len(l.entries), 60; n != want {
				t.Errorf("%d entries are held, want %d", n, want)
			}
			from, to := l.table.Window(l.n(), 10)
			if got := l.at(l.table.Cursor).Seq; got != 62 {
				t.Errorf("it is at %d, was at 62", got)
			}
			if l.table.Cursor < from || l.table.Cursor >= to {
				t.Errorf("the selection is row %d, shown are %d to %d", l.table.Cursor, from, to)
			}
			if first := l.at(0).Seq; first < 61 || first > 62 {
				t.Errorf("the first is %d", first)
			}
			l.Feed(entries(121, 130), 125) // its message is gone
			if got := l.at(l.table.Cursor).Seq; got < 125 || got > 126 {
				t.Errorf("it is at %d, the oldest is 125", got)
			}
			for i := range l.n() {
				if en := l.at(i); string(en.Bytes) != fmt.Sprint(en.Seq) || filter != "" && en.Method != filter {
					t.Errorf("row %d is %d %s %q", i, en.Seq, en.Method, en.Bytes)
				}
			}
			l.Feed(nil, 131)
			if l.n() != 0 || l.After() != 0 {
				t.Errorf("%d are left, after %d", l.n(), l.After())
			}
		})
	}
}
