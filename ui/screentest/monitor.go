package screentest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// A Monitor stands in for the real one: its board is filled by hand, and what
// the screens ask for is written down. Safe for concurrent use.
type Monitor struct {
	mu     sync.Mutex
	b      *board.Board
	v      *board.Version
	dirty  chan struct{}
	subs   map[chan taskmodel.Event]bool
	calls  []string
	paused bool

	// What the methods give back; nil means success with nothing.
	OnStart  func(monitor.StartRequest) (monitor.StartReply, error)
	OnCancel func(taskmodel.Key) error
	OnAnswer func(taskmodel.Answer) error
	OnFetch  func(taskmodel.Key) (taskmodel.Outcome, error)
	OnTools  func(server string) ([]taskmodel.Tool, error)
	OnRead   func(server, uri string) (json.RawMessage, error)
	OnAdd    func(server, id string) (taskmodel.Task, error)
	Entries  []taskmodel.WireEntry
	Lines    map[taskmodel.Key][]taskmodel.LogLine
	Past     map[taskmodel.Key][]taskmodel.Event
}

// NewMonitor makes one with an empty board.
func NewMonitor() *Monitor {
	b := board.New()
	return &Monitor{b: b, v: b.Publish(time.Now()), dirty: make(chan struct{}, 1), subs: map[chan taskmodel.Event]bool{},
		Lines: map[taskmodel.Key][]taskmodel.LogLine{}, Past: map[taskmodel.Key][]taskmodel.Event{}}
}

// Change changes the board and publishes it.
func (m *Monitor) Change(f func(b *board.Board)) {
	m.mu.Lock()
	f(m.b)
	m.v = m.b.Publish(time.Now())
	m.mu.Unlock()
	select {
	case m.dirty <- struct{}{}:
	default:
	}
}

// Emit sends an event to all who listen.
func (m *Monitor) Emit(ev taskmodel.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ch := range m.subs {
		ch <- ev
	}
}

// Calls are what the screens asked for, in order, as "cancel ci/t1".
func (m *Monitor) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

func (m *Monitor) call(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, fmt.Sprintf(format, args...))
}

// Board implements ui.Monitor.
func (m *Monitor) Board() *board.Version { m.mu.Lock(); defer m.mu.Unlock(); return m.v }

// Dirty implements ui.Monitor.
func (m *Monitor) Dirty() <-chan struct{} { return m.dirty }

// Events implements ui.Monitor.
func (m *Monitor) Events(int) (<-chan taskmodel.Event, func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch := make(chan taskmodel.Event, 10000)
	m.subs[ch] = true
	return ch, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.subs, ch)
	}
}

// Start implements ui.Monitor.
func (m *Monitor) Start(_ context.Context, r monitor.StartRequest) (monitor.StartReply, error) {
	m.call("start %s/%s %s ttl=%s plain=%t id=%s", r.Server, r.Tool, r.Args, r.TTL, r.Plain, r.TaskID)
	if m.OnStart != nil {
		return m.OnStart(r)
	}
	return monitor.StartReply{}, nil
}

// Cancel implements ui.Monitor.
func (m *Monitor) Cancel(_ context.Context, k taskmodel.Key) error {
	m.call("cancel %s", k)
	if m.OnCancel != nil {
		return m.OnCancel(k)
	}
	return nil
}

// Answer implements ui.Monitor.
func (m *Monitor) Answer(_ context.Context, a taskmodel.Answer) error {
	m.call("answer %s/%s %s %s", a.Question.Server, a.Question.ID, a.Action, a.Content)
	if m.OnAnswer != nil {
		return m.OnAnswer(a)
	}
	return nil
}

// Fetch implements ui.Monitor.
func (m *Monitor) Fetch(_ context.Context, k taskmodel.Key) (taskmodel.Outcome, error) {
	m.call("fetch %s", k)
	if m.OnFetch != nil {
		return m.OnFetch(k)
	}
	return taskmodel.Outcome{}, errors.New("the fake has no result")
}

// Ask implements ui.Monitor.
func (m *Monitor) Ask(_ context.Context, k taskmodel.Key) error { m.call("ask %s", k); return nil }

// Poll implements ui.Monitor.
func (m *Monitor) Poll(_ context.Context, k taskmodel.Key) (taskmodel.Task, error) {
	m.call("poll %s", k)
	t, _ := m.Board().Task(k)
	return t, nil
}

// Add implements ui.Monitor.
func (m *Monitor) Add(_ context.Context, server, id string) (taskmodel.Task, error) {
	m.call("add %s/%s", server, id)
	if m.OnAdd != nil {
		return m.OnAdd(server, id)
	}
	return taskmodel.Task{Key: taskmodel.Key{Server: server, ID: id, Role: taskmodel.Requestor}}, nil
}

// Forget implements ui.Monitor.
func (m *Monitor) Forget(_ context.Context, k taskmodel.Key, deleteThere bool) error {
	m.call("forget %s delete=%t", k, deleteThere)
	m.Change(func(b *board.Board) { b.Remove(k) })
	return nil
}

// Tools implements ui.Monitor.
func (m *Monitor) Tools(_ context.Context, server string) ([]taskmodel.Tool, error) {
	m.call("tools %s", server)
	if m.OnTools != nil {
		return m.OnTools(server)
	}
	return nil, nil
}

// ReadResource implements ui.Monitor.
func (m *Monitor) ReadResource(_ context.Context, server, uri string) (json.RawMessage, error) {
	m.call("read %s %s", server, uri)
	if m.OnRead != nil {
		return m.OnRead(server, uri)
	}
	return nil, errors.New("the fake has no resource")
}

// Connect implements ui.Monitor.
func (m *Monitor) Connect(server string) { m.call("connect %s", server) }

// Disconnect implements ui.Monitor.
func (m *Monitor) Disconnect(server string) { m.call("disconnect %s", server) }

// Pause implements ui.Monitor.
func (m *Monitor) Pause(on bool) {
	m.call("pause %t", on)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = on
}

// Paused implements ui.Monitor.
func (m *Monitor) Paused() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.paused }

// Focus implements ui.Monitor.
func (m *Monitor) Focus([]taskmodel.Key) {}

// SaveDraft implements ui.Monitor.
func (m *Monitor) SaveDraft(q taskmodel.QuestionID, draft json.RawMessage) {
	m.call("draft %s/%s", q.Server, q.ID)
	m.Change(func(b *board.Board) {
		if old, ok := m.v.Question(q); ok {
			old.Draft = draft
			b.PutQuestion(old)
		}
	})
}

// SetRoots implements ui.Monitor.
func (m *Monitor) SetRoots(server string, roots []string) { m.call("roots %s %v", server, roots) }

// SetLogLevel implements ui.Monitor.
func (m *Monitor) SetLogLevel(_ context.Context, server, level string) error {
	m.call("loglevel %s %s", server, level)
	return nil
}

// Wire implements ui.Monitor.
func (m *Monitor) Wire(f monitor.WireFilter) []taskmodel.WireEntry {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []taskmodel.WireEntry
	for _, e := range m.Entries {
		if (f.Server == "" || e.Server == f.Server) && (f.Task == "" || e.Task == f.Task) && e.Seq > f.After {
			out = append(out, e)
		}
	}
	if f.Max > 0 && len(out) > f.Max {
		out = out[len(out)-f.Max:]
	}
	return out
}

// WireFrom implements ui.Monitor: everything is kept.
func (m *Monitor) WireFrom() int64 { return 0 }

// Logs implements ui.Monitor.
func (m *Monitor) Logs(k taskmodel.Key) []taskmodel.LogLine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.Lines[k])
}

// History implements ui.Monitor.
func (m *Monitor) History(_ context.Context, k taskmodel.Key) ([]taskmodel.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.Past[k]), nil
}
