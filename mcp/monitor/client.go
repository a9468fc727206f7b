package monitor

import (
	"context"
	"encoding/json"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// client is what a supervisor needs of *mcp.Client.
type client interface {
	Info() mcp.Info
	Tasks() mcp.Tasks
	Tools(ctx context.Context) ([]taskmodel.Tool, error)
	Answer(ctx context.Context, a taskmodel.Answer) error
	RootsChanged(ctx context.Context) error
	SetLogLevel(ctx context.Context, level string) error
	Ping(ctx context.Context) error
	Session() (id, version string, init json.RawMessage)
	Done() <-chan struct{}
	Err() error
	Close(ctx context.Context, endSession bool) error
}

type connectFunc func(ctx context.Context, o mcp.Options) (client, error)

func dial(ctx context.Context, o mcp.Options) (client, error) {
	c, err := mcp.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// ears is the mcp.Handler of one connection. It only queues.
type ears struct {
	s    *server
	conn int // what an earlier connection says of itself is not true of this one
}

func (e *ears) Snapshot(o taskmodel.Observation) {
	e.s.secrets.snapshot(&o.Snapshot)
	e.s.lane.snapshot(taskmodel.Requestor, o)
}

func (e *ears) Progress(task, call string, p taskmodel.Progress) {
	s := e.s
	p.Message = s.secrets.text(clipped(p.Message))
	s.lane.progress(task+"\x00"+call, p, func(p taskmodel.Progress) { s.progress(task, call, p) })
}

func (e *ears) Asked(q taskmodel.Question) {
	s, conn := e.s, e.conn
	s.secrets.question(&q)
	s.lane.do(q.Task.ID, func() { s.asked(q, conn) })
}

func (e *ears) Withdrawn(id taskmodel.QuestionID, why string) {
	s := e.s
	why = s.secrets.text(why)
	s.lane.do("", func() { s.withdrawn(id, why) })
}

func (e *ears) ElicitationComplete(elicitID string) {
	s := e.s
	s.lane.do("", func() { s.completedElsewhere(elicitID) })
}

func (e *ears) Log(l taskmodel.LogLine) {
	s := e.s
	l.Level, l.Logger, l.Text = s.secrets.text(clipped(l.Level)), s.secrets.text(clipped(l.Logger)), s.secrets.text(clipped(l.Text))
	if l.Task != "" {
		s.m.logs.put(taskmodel.Key{Server: s.spec.Name, ID: l.Task, Role: taskmodel.Requestor}, l)
	}
	s.lane.do("", func() { s.logged(l) })
}

func (e *ears) ToolsChanged() {
	s := e.s
	s.lane.do("", s.toolsChanged)
}

func (e *ears) Pushing(ids []string) {
	s, conn := e.s, e.conn
	s.lane.do("", func() {
		if s.conn == conn {
			s.pushing(ids)
		}
	})
}

func (e *ears) ReceiverTask(o taskmodel.Observation, info mcp.ReceiverInfo) {
	s := e.s
	s.secrets.snapshot(&o.Snapshot)
	s.lane.do(o.ID, func() { s.receiverTask(o, info) })
}

func (e *ears) Wire(w taskmodel.WireEntry) {
	s := e.s
	if w.Size == 0 {
		w.Size = len(w.Bytes)
	}
	w.Bytes = s.secrets.message(w.Bytes)
	s.m.wire.put(w)
	switch w.Method {
	case "tasks/result", "tools/call", "subscriptions/listen", "elicitation/create", "sampling/createMessage":
		return // they last as long as what they wait for
	}
	if w.Latency > 0 && w.Direction == taskmodel.Received {
		s.rtts.put(w.Latency)
	}
}

var _ mcp.Handler = (*ears)(nil)
