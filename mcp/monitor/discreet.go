package monitor

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// A discreet client says what its server says without the secrets that the
// server quotes. Results are the one exception: their payload is what the
// original request would have returned, untouched.
type discreet struct {
	client
	x *secrets
}

// connect makes a connection whose words, and the reasons for its failures, hold
// no secret.
func (s *server) connect(ctx context.Context, o mcp.Options) (client, error) {
	o.Log = slog.New(discreetLog{o.Log.Handler(), &s.secrets})
	c, err := s.m.connect(ctx, o)
	if err != nil {
		return nil, s.secrets.refusal(err)
	}
	return discreet{c, &s.secrets}, nil
}

func (d discreet) Info() mcp.Info {
	i := d.client.Info()
	i.ServerName, i.ServerVersion, i.Instructions = d.x.text(i.ServerName), d.x.text(i.ServerVersion), d.x.text(i.Instructions)
	return i
}

func (d discreet) Session() (id, version string, init json.RawMessage) {
	id, version, init = d.client.Session()
	return id, version, d.x.message(init)
}

func (d discreet) Tools(ctx context.Context) ([]taskmodel.Tool, error) {
	tools, err := d.client.Tools(ctx)
	for i := range tools {
		t := &tools[i]
		t.Title, t.Description = d.x.text(t.Title), d.x.text(t.Description)
	}
	return tools, d.x.refusal(err)
}

func (d discreet) Answer(ctx context.Context, a taskmodel.Answer) error {
	return d.x.refusal(d.client.Answer(ctx, a))
}

func (d discreet) RootsChanged(ctx context.Context) error {
	return d.x.refusal(d.client.RootsChanged(ctx))
}

func (d discreet) SetLogLevel(ctx context.Context, level string) error {
	return d.x.refusal(d.client.SetLogLevel(ctx, level))
}

func (d discreet) Ping(ctx context.Context) error { return d.x.refusal(d.client.Ping(ctx)) }

func (d discreet) Err() error { return d.x.refusal(d.client.Err()) }

// ReadResource implements resourceReader.
func (d discreet) ReadResource(ctx context.Context, uri string) (json.RawMessage, error) {
	r, ok := d.client.(resourceReader)
	if !ok {
		return nil, mcp.ErrUnsupported
	}
	b, err := r.ReadResource(ctx, uri)
	return b, d.x.refusal(err)
}

// Leave implements leaver.
func (d discreet) Leave(ctx context.Context) {
	if l, ok := d.client.(leaver); ok {
		l.Leave(ctx)
	}
}

func (d discreet) Tasks() mcp.Tasks { return discreetTasks{d.client.Tasks(), d.x} }

type discreetTasks struct {
	mcp.Tasks
	x *secrets
}

func (d discreetTasks) Start(ctx context.Context, c mcp.StartCall) (mcp.Started, error) {
	st, err := d.Tasks.Start(ctx, c)
	d.x.snapshot(&st.Snapshot)
	d.x.outcome(&st.Outcome)
	return st, d.x.refusal(err)
}

func (d discreetTasks) Get(ctx context.Context, id string) (taskmodel.Snapshot, error) {
	s, err := d.Tasks.Get(ctx, id)
	d.x.snapshot(&s)
	return s, d.x.refusal(err)
}

func (d discreetTasks) List(ctx context.Context, cursor string, next func(string)) (mcp.Page, error) {
	p, err := d.Tasks.List(ctx, cursor, next)
	for i := range p.Tasks {
		d.x.snapshot(&p.Tasks[i])
	}
	return p, d.x.refusal(err)
}

func (d discreetTasks) Result(ctx context.Context, id string) (taskmodel.Outcome, error) {
	o, err := d.Tasks.Result(ctx, id)
	d.x.outcome(&o)
	return o, d.x.refusal(err)
}

func (d discreetTasks) Cancel(ctx context.Context, id string) (*taskmodel.Snapshot, error) {
	s, err := d.Tasks.Cancel(ctx, id)
	if s != nil {
		d.x.snapshot(s)
	}
	return s, d.x.refusal(err)
}

func (d discreetTasks) Delete(ctx context.Context, id string) error {
	return d.x.refusal(d.Tasks.Delete(ctx, id))
}

func (d discreetTasks) Watch(ctx context.Context, ids []string) error {
	return d.x.refusal(d.Tasks.Watch(ctx, ids))
}

// snapshot takes secrets out of what a server said of a task.
func (x *secrets) snapshot(s *taskmodel.Snapshot) {
	if x.none() {
		return
	}
	s.StatusMessage, s.ModelNote = x.text(s.StatusMessage), x.text(s.ModelNote)
	s.Raw = x.message(s.Raw)
	s.Questions = slices.Clone(s.Questions)
	for i := range s.Questions {
		x.question(&s.Questions[i])
	}
	x.outcome(&s.Outcome)
}

// outcome takes secrets out of an error; a result stays as it is.
func (x *secrets) outcome(o *taskmodel.Outcome) {
	if o.Err == nil || x.none() {
		return
	}
	o.Err = &taskmodel.RPCError{Code: o.Err.Code, Message: x.text(o.Err.Message), Data: x.message(o.Err.Data)}
}

// question takes secrets out of the words of a question. Its schema stays: the
// answer is made by it.
func (x *secrets) question(q *taskmodel.Question) {
	if x.none() {
		return
	}
	q.Message, q.Params = x.text(q.Message), x.message(q.Params)
}

// A discreetLog writes no secret into the program's log.
type discreetLog struct {
	slog.Handler
	x *secrets
}

func (l discreetLog) Handle(ctx context.Context, r slog.Record) error {
	if l.x.none() {
		return l.Handler.Handle(ctx, r)
	}
	out := slog.NewRecord(r.Time, r.Level, l.x.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(l.attr(a))
		return true
	})
	return l.Handler.Handle(ctx, out)
}

func (l discreetLog) WithAttrs(as []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(as))
	for i, a := range as {
		out[i] = l.attr(a)
	}
	return discreetLog{l.Handler.WithAttrs(out), l.x}
}

func (l discreetLog) WithGroup(name string) slog.Handler {
	return discreetLog{l.Handler.WithGroup(name), l.x}
}

func (l discreetLog) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	if err, ok := v.Any().(error); ok {
		return slog.String(a.Key, l.x.text(err.Error()))
	}
	if v.Kind() == slog.KindString {
		return slog.String(a.Key, l.x.text(v.String()))
	}
	return a
}

var (
	_ client         = discreet{}
	_ resourceReader = discreet{}
	_ leaver         = discreet{}
)
