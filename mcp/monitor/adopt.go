package monitor

import (
	"context"
	"encoding/json"

	"mcptasks/taskmodel"
)

// A Handle is what whoever started a task knows of it.
type Handle struct {
	ID   string
	Tool string
	Args json.RawMessage
}

// Adopt takes up a task as Add does, with what the caller knows of the call
// that made it.
func (m *Monitor) Adopt(ctx context.Context, server string, h Handle) (taskmodel.Task, error) {
	t, err := m.Add(ctx, server, h.ID)
	if err != nil {
		return t, err
	}
	err = m.do(ctx, func() {
		m.board.Change(t.Key, m.now(), func(t *taskmodel.Task) { t.Tool, t.Args = h.Tool, h.Args })
		t, _ = m.board.Task(t.Key)
		m.touch()
	})
	return t, err
}

// Sync publishes what is known now, so that what a command has just done is on
// the board that it reads next.
func (m *Monitor) Sync(ctx context.Context) error {
	return m.do(ctx, func() {
		m.alarms.drop(m.publisher)
		m.publish()
	})
}
