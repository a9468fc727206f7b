package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// begin calls a tool once, by the process that holds the server.
func (m *Monitor) begin(ctx context.Context, r StartRequest) (StartReply, error) {
	if m.o.Readonly {
		return StartReply{}, ErrReadonly
	}
	s, err := m.server(r.Server)
	if err != nil {
		return StartReply{}, err
	}
	if held, herr := s.heldBy(ctx); herr != nil {
		return StartReply{}, herr
	} else if held {
		reply, err := s.startElsewhere(ctx, r)
		if errors.Is(err, errNotBegun) {
			return m.begin(ctx, r)
		}
		return reply, err
	}
	c, conn, err := s.ready(ctx)
	if err != nil {
		return StartReply{}, err
	}
	type outcome struct {
		reply StartReply
		err   error
	}
	result := make(chan outcome, 1)
	call := context.WithoutCancel(ctx)
	if !m.mail.post(func() {
		m.spawn(func() {
			reply, err := s.start(call, r, c, conn, ctx)
			result <- outcome{reply, err}
		})
	}) {
		return StartReply{}, ErrStopped
	}
	select {
	case o := <-result:
		return o.reply, o.err
	case <-ctx.Done():
		if r.Plain {
			return StartReply{}, fmt.Errorf("%s: calling %s: %w", r.Server, r.Tool, ctx.Err())
		}
		return StartReply{}, sentence(ErrUnconfirmed, ctx.Err(), "%s: calling %s: the call was sent and not answered yet; a task that comes of it will show", r.Server, r.Tool)
	case <-m.done:
		return StartReply{}, ErrStopped
	}
}

// start makes the call. A call that may become a task goes on when its caller
// gives up, so that the task is not lost; a plain one ends with its caller.
func (s *server) start(_ context.Context, r StartRequest, c client, conn int, caller context.Context) (StartReply, error) {
	m := s.m
	ctx, stop := context.WithCancel(m.ctx)
	defer stop()
	if r.Plain {
		defer context.AfterFunc(caller, stop)()
	}
	ended := make(chan struct{})
	defer close(ended)
	asked := m.now()
	args := s.hideArgs(r.Tool, r.Args) // as they may be kept
	defer s.noteCall(r.Tool, args)()
	st, err := c.Tasks().Start(ctx, mcp.StartCall{Tool: r.Tool, Args: r.Args, TTL: r.TTL, Plain: r.Plain,
		TaskID: r.TaskID, CallID: uuid.NewString()})
	heard := m.now()
	m.post(func() { s.heard(conn, err) })
	if err != nil {
		m.post(func() {
			m.history(s, taskmodel.Event{Time: heard, Server: s.spec.Name, Kind: taskmodel.EventError,
				Message: err.Error(), Detail: detail(map[string]any{"tool": r.Tool, "error": err.Error()})}, nil)
		})
		if errors.Is(err, mcp.ErrTaskRequired) {
			return StartReply{}, sentence(mcp.ErrTaskRequired, err, "%s: %s runs only as a task; start it as one", s.spec.Name, r.Tool)
		}
		return StartReply{}, err
	}
	if st.TaskID == "" {
		return StartReply{Outcome: st.Outcome, Note: st.Note}, nil
	}
	k := s.key(st.TaskID)
	var row taskmodel.Task
	if derr := m.do(m.ctx, func() {
		delete(s.forgot, st.TaskID)
		st.Snapshot.ID = st.TaskID
		ttl := taskmodel.TTL{}
		if r.TTL > 0 {
			ttl = taskmodel.TTL{Known: true, Duration: r.TTL}
		}
		s.making = map[string]any{"tool": r.Tool}
		if s.keeps(r.Tool) && json.Valid(args) {
			s.making["arguments"] = args
		}
		s.mine(k, func(t *taskmodel.Task) {
			t.Tool, t.AskedTTL = r.Tool, ttl
			if s.keeps(r.Tool) {
				t.Args = slices.Clone(args)
			}
		}, taskmodel.Observation{Snapshot: st.Snapshot, Source: taskmodel.FromCreate, AskedAt: asked, HeardAt: heard})
		if s.making != nil { // a push was faster than the answer to the call
			m.history(s, taskmodel.Event{Time: heard, Server: s.spec.Name, Task: k, Kind: taskmodel.EventCreated, Status: st.Snapshot.Status}, nil)
		}
		if row, _ = m.board.Task(k); row.Terminal() {
			s.wantResult(row) // its end was heard before it was known to be ours
		}
	}); derr != nil {
		return StartReply{}, derr
	}
	if j := m.o.Journal; j != nil {
		// The handle is written down before anybody is told of it.
		wctx, stop := context.WithTimeout(m.ctx, 2*time.Second)
		row = s.censored(row)
		if werr := j.Write(wctx, journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Key: k, Task: &row}); werr != nil {
			m.log.Warn("a new task could not be written down", "task", k.String(), "err", werr)
			if st.Note == "" {
				st.Note = "not written down yet: " + werr.Error()
			}
		}
		stop()
	}
	return StartReply{Key: k, Note: st.Note}, nil
}

// mine puts a task on the board as one of ours.
func (s *server) mine(k taskmodel.Key, f func(*taskmodel.Task), o taskmodel.Observation) {
	m := s.m
	s.observe(taskmodel.Requestor, o)
	m.board.Change(k, m.now(), func(t *taskmodel.Task) {
		t.Ours = true
		f(t)
	})
	s.named(k)
	m.touch()
	m.save(k)
	w := s.watches[k.ID]
	if w == nil {
		return
	}
	w.ours = true
	if t, ok := m.board.Task(k); ok && t.Status == taskmodel.InputRequired {
		s.maybeAsk(w, t)
	}
}

// Add takes up a task by its id. It is asked for at once; an id that the server
// does not know is an error, and nothing is added.
func (m *Monitor) Add(ctx context.Context, server, id string) (taskmodel.Task, error) {
	s, err := m.server(server)
	if err != nil {
		return taskmodel.Task{}, err
	}
	k := s.key(id)
	if held, herr := s.heldBy(ctx); herr != nil {
		return taskmodel.Task{}, herr
	} else if held {
		switch _, err := s.viaHolder(ctx, "poll", k, []byte(`{"add":true}`)); {
		case errors.Is(err, errNotBegun):
			return m.Add(ctx, server, id)
		case err != nil:
			return taskmodel.Task{}, err
		}
		return s.awaitRow(ctx, k)
	}
	var snap taskmodel.Snapshot
	var asked time.Time
	err = s.read(ctx, func(ctx context.Context, c client) (err error) {
		asked = m.now()
		snap, err = c.Tasks().Get(ctx, id)
		return err
	})
	if err != nil {
		return taskmodel.Task{}, err
	}
	heard := m.now()
	var row taskmodel.Task
	if err := m.do(ctx, func() {
		delete(s.forgot, id)
		s.mine(k, func(*taskmodel.Task) {}, taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromGet, AskedAt: asked, HeardAt: heard})
		row, _ = m.board.Task(k)
	}); err != nil {
		return taskmodel.Task{}, err
	}
	if j := m.o.Journal; j != nil {
		wctx, stop := context.WithTimeout(ctx, 2*time.Second)
		defer stop()
		c := s.censored(row)
		if werr := j.Write(wctx, journal.Entry{Target: s.spec.Target, Server: s.spec.Name, Key: k, Task: &c}); werr != nil {
			m.log.Warn("an added task could not be written down", "task", k.String(), "err", werr)
		}
	}
	return row, nil
}

// Forget drops a task here. With deleteThere the server is asked to delete it
// first, where the generation can; when it refuses, the task stays.
func (m *Monitor) Forget(ctx context.Context, k taskmodel.Key, deleteThere bool) error {
	s, err := m.server(k.Server)
	if err != nil {
		return err
	}
	if _, err := m.task(ctx, k); err != nil {
		return err
	}
	if deleteThere {
		if m.o.Readonly {
			return ErrReadonly
		}
		c, conn, err := s.ready(ctx)
		if err != nil {
			return err
		}
		err = c.Tasks().Delete(ctx, k.ID)
		m.post(func() { s.heard(conn, err) })
		if err != nil && !errors.Is(err, mcp.ErrNotFound) {
			return fmt.Errorf("%s: not deleted on the server, and kept here: %w", k, err)
		}
	}
	return m.do(ctx, func() {
		t, ok := m.board.Task(k)
		if !ok {
			return
		}
		if k.Role == taskmodel.Requestor {
			if f := s.results[k.ID]; f != nil {
				f.stop()
			}
			s.unwatch(k.ID)
			s.paid(k.ID)
			s.forget(k.ID)
		}
		for _, id := range t.Inputs {
			m.board.DropQuestion(id)
			delete(s.was, id)
		}
		if m.board.Remove(k) {
			s.count--
		}
		s.release(k.ID)
		m.logs.drop(k)
		delete(m.unsaved, k)
		m.touch()
		m.history(s, taskmodel.Event{Time: m.now(), Server: s.spec.Name, Task: k, Kind: taskmodel.EventForgotten,
			Status: t.Status, Message: "forgotten here", Detail: detail(map[string]any{"deletedThere": deleteThere})},
			func(e *journal.Entry) { e.Forget = true })
	})
}

// Tools gives the server's tools; they are fetched once, and again when the
// server says that they have changed.
func (m *Monitor) Tools(ctx context.Context, server string) ([]taskmodel.Tool, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, err
	}
	var tools []taskmodel.Tool
	known := false
	if err := m.do(ctx, func() { tools, known = s.tools, s.toolsKnown && s.client != nil }); err != nil {
		return nil, err
	}
	if known {
		return slices.Clone(tools), nil
	}
	if held, herr := s.heldBy(ctx); herr != nil {
		return nil, herr
	} else if held {
		tools, err := s.toolsElsewhere(ctx)
		if errors.Is(err, errNotBegun) {
			return m.Tools(ctx, server)
		}
		return tools, err
	}
	err = s.read(ctx, func(ctx context.Context, c client) (err error) {
		tools, err = c.Tools(ctx)
		return err
	})
	if derr := m.do(ctx, func() { s.putTools(tools, err) }); derr != nil {
		return nil, derr
	}
	return slices.Clone(tools), err
}

func (s *server) putTools(tools []taskmodel.Tool, err error) {
	s.change(func(r *taskmodel.Server) {
		if err != nil {
			r.ToolsError = err.Error()
			return
		}
		for i := range tools {
			tools[i].Server = s.spec.Name
		}
		s.tools, s.toolsKnown = tools, true
		r.Tools, r.ToolsError = tools, ""
	})
}

// toolsChanged fetches the tools again where somebody has looked at them.
func (s *server) toolsChanged() {
	known := s.toolsKnown
	s.toolsKnown = false
	s.learn()
	if !known || s.client == nil {
		return
	}
	c, ctx, conn := s.client, s.connCtx, s.conn
	s.m.spawn(func() {
		tools, err := c.Tools(ctx)
		s.m.post(func() {
			if conn == s.conn {
				s.putTools(tools, err)
			}
		})
	})
}

// SetRoots changes the folders that a server may know of, and tells it.
func (m *Monitor) SetRoots(server string, roots []string) {
	own := slices.Clone(roots)
	m.post(func() {
		s := m.byName[server]
		if s == nil {
			return
		}
		uris := s.setRoots(own)
		s.change(func(r *taskmodel.Server) { r.Roots = uris })
		if c, ctx := s.client, s.connCtx; c != nil {
			m.spawn(func() {
				if err := c.RootsChanged(ctx); err != nil {
					m.log.Warn("telling the server of its roots", "server", server, "err", err)
				}
			})
		}
	})
}

// SetLogLevel asks the server for log messages from a level on.
func (m *Monitor) SetLogLevel(ctx context.Context, server, level string) error {
	s, err := m.server(server)
	if err != nil {
		return err
	}
	if err := s.read(ctx, func(ctx context.Context, c client) error { return c.SetLogLevel(ctx, level) }); err != nil {
		return err
	}
	return m.do(ctx, func() { s.change(func(r *taskmodel.Server) { r.LogLevel = level }) })
}

// History is the audit trail of one task: the journal's when there is one, else
// what the time line in memory tells.
func (m *Monitor) History(ctx context.Context, k taskmodel.Key) ([]taskmodel.Event, error) {
	s, err := m.server(k.Server)
	if err != nil {
		return nil, err
	}
	if j, ok := m.o.Journal.(interface {
		TaskHistory(ctx context.Context, target, id string, role taskmodel.Role, limit int) ([]taskmodel.Event, error)
	}); ok {
		events, err := j.TaskHistory(ctx, s.spec.Target, k.ID, k.Role, historyMost)
		for i := range events {
			events[i].Server = k.Server
			if events[i].Task.ID != "" {
				events[i].Task.Server = k.Server
			}
		}
		return events, err
	}
	t, err := m.task(ctx, k)
	if err != nil {
		return nil, err
	}
	var events []taskmodel.Event
	for i, x := range t.Transitions {
		kind := taskmodel.EventStatus
		if i == 0 {
			kind = taskmodel.EventCreated
		}
		events = append(events, taskmodel.Event{Time: x.At, Server: k.Server, Task: k, Kind: kind, Status: x.Status, Message: x.Message,
			Detail: detail(map[string]any{"status": x.Status, "statusMessage": x.Message, "note": x.Note})})
	}
	return events, nil
}

// historyMost bounds the audit trail of one task that is read at once.
const historyMost = 10_000

// decode reads an intent's payload or detail.
func decode(b json.RawMessage, into any) error {
	if len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, into)
}
