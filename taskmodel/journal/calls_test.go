package journal

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcptasks/taskmodel"
)

// A call is lost when its process is no more, and is told of once. One that is on
// its way, or whose end is known, is not.
func TestLostCalls(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	open := func() *Journal {
		j, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close(ctx) })
		return j
	}
	lost := func(j *Journal) []LostCall {
		list, err := j.LostCalls(ctx, "target:ci")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := open()
	for id, tool := range map[string]string{"1": "build", "2": "test"} {
		if err := first.BeginCall(ctx, "target:ci", "ci", id, json.RawMessage(`{"tool":"`+tool+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.EndCall(ctx, "target:ci", "2"); err != nil {
		t.Fatal(err)
	}
	second := open()
	if list := lost(second); len(list) != 0 {
		t.Errorf("its process runs: %+v", list)
	}
	if err := first.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if list := lost(second); len(list) != 1 || list[0].Tool != "build" || !strings.Contains(list[0].Words(), "outcome unknown") {
		t.Errorf("%+v", list)
	}
	if list := lost(second); len(list) != 0 {
		t.Errorf("told again: %+v", list)
	}
	var events []HistoryRow
	if err := second.History(ctx, HistoryQuery{}, func(r HistoryRow) error { events = append(events, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Event != taskmodel.EventError || !strings.Contains(string(events[0].Detail), "outcome unknown") {
		t.Errorf("the history has %+v", events)
	}
}
