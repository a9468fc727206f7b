package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

const (
	intentLook  = 200 * time.Millisecond // how often an intent's state is looked at
	intentLimit = 5 * time.Minute        // for acts that wait for nothing but the server
)

// shared reports whether other processes may be acting on the same tasks at
// the same time: servers without a session, which nobody holds. (HTTP+SSE has
// none either, but its tasks are the connection's.)
func (s *server) shared(c client) bool {
	i := c.Info()
	return i.Session == "" && i.Transport != "stdio" && i.Transport != "sse"
}

// heldBy reports whether another process holds the server.
func (s *server) heldBy(ctx context.Context) (bool, error) {
	if s.m.o.Journal == nil {
		return false, nil
	}
	for {
		held, entering := false, false
		var turn chan struct{}
		if err := s.m.do(ctx, func() {
			held = s.lease.heldElsewhere()
			// The lease is being asked for: it decides.
			entering = !held && s.row.State == taskmodel.ServerConnecting && !s.dialling && s.client == nil
			turn = s.turn
		}); err != nil {
			return false, fmt.Errorf("%s: %w", s.spec.Name, err)
		}
		if !entering {
			return held, nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return false, fmt.Errorf("%s: waiting for the server: %w", s.spec.Name, ctx.Err())
		case <-s.m.done:
			return false, ErrStopped
		}
	}
}

// viaHolder asks the process that holds the server to act, and waits.
func (s *server) viaHolder(ctx context.Context, kind string, k taskmodel.Key, payload json.RawMessage) (json.RawMessage, error) {
	m := s.m
	var session, holder string
	var terr error
	if err := m.do(ctx, func() {
		session, holder = s.lease.session, s.lease.holder
		if s.tap != nil {
			session, terr = s.tapFor(k, questionOf(kind, payload))
		}
	}); err != nil || terr != nil {
		return nil, errors.Join(err, terr)
	}
	id, err := m.o.Journal.PutIntent(ctx, journal.Intent{Target: s.spec.Target, Session: session, Task: k, Kind: kind, Payload: payload, At: m.now()})
	if err != nil {
		return nil, fmt.Errorf("%s: asking %s to %s: %w", s.spec.Name, holder, kind, err)
	}
	if j, ok := m.o.Journal.(interface {
		TakeIntent(ctx context.Context, id int64) error
	}); ok {
		// What it brings is for this process alone, and not to be kept.
		defer func() {
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer stop()
			if err := j.TakeIntent(ctx, id); err != nil {
				m.log.Debug("an intent", "server", s.spec.Name, "err", err)
			}
		}()
	}
	caught := false
	for {
		done, errText, detail, err := m.o.Journal.IntentState(ctx, id)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: waiting for %s to %s: %w", s.spec.Name, holder, kind, err)
		case done && s.tap != nil && !caught:
			s.catchUp(ctx)
			caught = true
			continue
		case done && errText == journal.ClaimerGone:
			return nil, sentence(ErrUnconfirmed, nil, "%s: %s was to %s and ended over it; whether it was done is not known", s.spec.Name, holder, kind)
		case done && errText != "":
			return nil, readFailure(fmt.Sprintf("%s (by %s)", errText, holder), detail)
		case done:
			return detail, nil
		}
		gone := false
		if err := m.do(ctx, func() { gone = !s.lease.heldElsewhere() || s.tap != nil && !s.tap.taps[session].Live }); err != nil {
			return nil, err
		}
		if gone && s.tap != nil {
			return nil, sentence(ErrUnconfirmed, nil, "%s: %s ended before it could say what became of this; try again", s.spec.Name, holder)
		}
		if gone && s.takeBack(ctx, id) {
			return nil, errNotBegun
		}
		if !pause(ctx, intentLook) {
			if s.takeBack(ctx, id) {
				return nil, fmt.Errorf("%s: %s has not begun to %s; it was taken back: %w", s.spec.Name, holder, kind, ctx.Err())
			}
			return nil, sentence(ErrUnconfirmed, ctx.Err(), "%s: waiting for %s to %s: %v", s.spec.Name, holder, kind, ctx.Err())
		}
	}
}

// errNotBegun: the process that held the server ended before it began with what
// it was asked to do. Whoever asked does it, or asks the next.
var errNotBegun = errors.New("nobody has begun with this")

// takeBack withdraws what another process was asked to do; false when somebody
// has begun with it.
func (s *server) takeBack(ctx context.Context, id int64) bool {
	w, ok := s.m.o.Journal.(interface {
		WithdrawIntent(ctx context.Context, id int64) (bool, error)
	})
	if !ok {
		return false
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer stop()
	taken, err := w.WithdrawIntent(ctx, id)
	return err == nil && taken
}

func (s *server) answerElsewhere(ctx context.Context, a taskmodel.Answer) error {
	m := s.m
	var k taskmodel.Key
	if err := m.do(ctx, func() {
		q, _ := m.board.Question(a.Question)
		k = q.Task
	}); err != nil {
		return err
	}
	b, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("%s: writing the answer: %w", s.spec.Name, err)
	}
	_, err = s.viaHolder(ctx, "answer", k, b)
	return err
}

func (s *server) fetchElsewhere(ctx context.Context, k taskmodel.Key) (taskmodel.Outcome, error) {
	var o taskmodel.Outcome
	b, err := s.viaHolder(ctx, "fetch", k, nil)
	if err != nil {
		return o, err
	}
	if err := decode(b, &o); err != nil {
		return o, fmt.Errorf("%s: reading the result that was fetched: %w", k, err)
	}
	if o.IsZero() {
		if o, ok := s.kept(ctx, k); ok {
			return o, nil
		}
	}
	return o, nil
}

func (s *server) startElsewhere(ctx context.Context, r StartRequest) (StartReply, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return StartReply{}, fmt.Errorf("%s: writing the call: %w", s.spec.Name, err)
	}
	b, err = s.viaHolder(ctx, "start", taskmodel.Key{Server: s.spec.Name}, b)
	if err != nil {
		return StartReply{}, err
	}
	var reply StartReply
	if err := decode(b, &reply); err != nil {
		return reply, fmt.Errorf("%s: reading what became of the call: %w", s.spec.Name, err)
	}
	if reply.Key.ID != "" {
		reply.Key.Server = s.spec.Name
		if _, err := s.awaitRow(ctx, reply.Key); err != nil {
			return reply, err
		}
	}
	return reply, nil
}

func (s *server) toolsElsewhere(ctx context.Context) ([]taskmodel.Tool, error) {
	b, err := s.viaHolder(ctx, "tools", taskmodel.Key{Server: s.spec.Name}, nil)
	if err != nil {
		return nil, err
	}
	var tools []taskmodel.Tool
	if err := decode(b, &tools); err != nil {
		return nil, fmt.Errorf("%s: reading the tools: %w", s.spec.Name, err)
	}
	for i := range tools {
		tools[i].Server = s.spec.Name
	}
	return tools, nil
}

// awaitRow waits until a task that the holder made or took up shows here.
func (s *server) awaitRow(ctx context.Context, k taskmodel.Key) (taskmodel.Task, error) {
	for {
		var t taskmodel.Task
		var ok bool
		if err := s.m.do(ctx, func() { t, ok = s.m.board.Task(k) }); err != nil {
			return t, err
		}
		if ok {
			return t, nil
		}
		if !pause(ctx, intentLook) {
			return t, fmt.Errorf("%s: waiting for the task to show: %w", k, ctx.Err())
		}
	}
}

// carryOut does what another process asked for. The journal hands each intent
// out once.
func (s *server) carryOut(in journal.Intent) {
	m := s.m
	k := in.Task
	k.Server = s.spec.Name
	var draft taskmodel.Answer
	var unread error
	if in.Kind == "draft" { // in turn, since of several the last one counts
		if unread = decode(in.Payload, &draft); unread == nil {
			draft.Question.Server = s.spec.Name
			m.SaveDraft(draft.Question, draft.Content)
		}
	}
	m.spawn(func() {
		ctx, stop := m.ctx, context.CancelFunc(func() {})
		if in.Kind != "fetch" { // which may wait for a task's end
			ctx, stop = context.WithTimeout(m.ctx, intentLimit)
		}
		defer stop()
		var out any
		err := func() error {
			switch in.Kind {
			case "answer":
				var a taskmodel.Answer
				if err := decode(in.Payload, &a); err != nil {
					return err
				}
				if string(a.Content) == "null" {
					a.Content = nil // none was written down
				}
				a.Question.Server = s.spec.Name
				return m.Answer(ctx, a)
			case "draft":
				return unread
			case "cancel":
				return m.Cancel(ctx, k)
			case "fetch":
				o, err := m.Fetch(ctx, k)
				out = o
				return err
			case "poll":
				var p struct{ Add bool }
				if err := decode(in.Payload, &p); err != nil {
					return err
				}
				if p.Add {
					_, err := m.Add(ctx, s.spec.Name, k.ID)
					return err
				}
				_, err := m.Poll(ctx, k)
				return err
			case "tools":
				tools, err := m.Tools(ctx, s.spec.Name)
				out = tools
				return err
			case "start":
				var r StartRequest
				if err := decode(in.Payload, &r); err != nil {
					return err
				}
				r.Server = s.spec.Name
				reply, err := m.begin(ctx, r) // what comes of it is for the person who asked
				out = reply
				return err
			}
			return fmt.Errorf("%s: asked to %q, which this mcptasks does not know", s.spec.Name, in.Kind)
		}()
		words := ""
		var b json.RawMessage
		if err != nil {
			words, b = err.Error(), describeFailure(err)
		} else if out != nil {
			if b, err = json.Marshal(out); err != nil {
				words = err.Error()
			}
		}
		fctx, end := context.WithTimeout(context.WithoutCancel(m.ctx), 2*time.Second)
		defer end()
		if err := m.o.Journal.FinishIntent(fctx, in.ID, words, b); err != nil {
			m.log.Warn("saying what became of an intent", "server", s.spec.Name, "err", err)
		}
	})
}
