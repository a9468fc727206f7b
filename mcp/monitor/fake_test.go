package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// fakeServer is a server behind the client interface: tasks with states, and
// hooks that a test may put in the place of any answer.
type fakeServer struct {
	toolTitle string
	input     json.RawMessage // schema of its tool
	mu        sync.Mutex
	kind      string
	identity  string // as whom it is asked
	gen       taskmodel.Generation
	can       taskmodel.Can
	session   string
	tasks     map[string]*taskmodel.Snapshot
	order     []string
	perPage   int
	latency   time.Duration
	dials     []mcp.Options
	calls     map[string]int // by "method id"
	log       []call
	conns     []*fakeClient
	endings   []bool // Close's endSession
	dialErr   func(n int, o mcp.Options) error
	get       func(ctx context.Context, id string) (taskmodel.Snapshot, error)
	list      func(ctx context.Context, cursor string) (mcp.Page, error)
	reading   time.Duration // that a page takes to be read, once its cursor is known
	result    func(ctx context.Context, id string) (taskmodel.Outcome, error)
	cancel    func(ctx context.Context, id string) (*taskmodel.Snapshot, error)
	start     func(ctx context.Context, c mcp.StartCall) (mcp.Started, error)
	answer    func(ctx context.Context, a taskmodel.Answer) error
	remove    func(ctx context.Context, id string) error
	leave     func(c *fakeClient)
	watched   []string
	inflight  int
	most      int
}

type call struct {
	at     time.Time
	method string
	id     string
}

func newFake(gen taskmodel.Generation) *fakeServer {
	return &fakeServer{
		kind: "http", gen: gen, perPage: 50,
		can:   taskmodel.Can{List: gen != taskmodel.GenExtension, Cancel: true, Start: true, Push: gen == taskmodel.GenExtension},
		tasks: map[string]*taskmodel.Snapshot{}, calls: map[string]int{},
	}
}

func (f *fakeServer) Kind() string { return f.kind }
func (f *fakeServer) Identity(context.Context) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.identity
}
func (f *fakeServer) Dial(context.Context, string) (jsonrpc.Conn, error) {
	return nil, errors.New("the fake is not dialled")
}

// put makes a task, or changes one.
func (f *fakeServer) put(id string, st taskmodel.Status, change ...func(*taskmodel.Snapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.tasks[id]
	if s == nil {
		s = &taskmodel.Snapshot{ID: id, CreatedAt: time.Now(), PollInterval: time.Second, TTL: taskmodel.TTL{Known: true, Unlimited: true}}
		f.tasks[id] = s
		f.order = append(f.order, id)
	}
	s.Status, s.LastUpdatedAt = st, time.Now()
	for _, c := range change {
		c(s)
	}
}

func (f *fakeServer) drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tasks, id)
	f.order = slices.DeleteFunc(f.order, func(o string) bool { return o == id })
}

func (f *fakeServer) called(method, id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method+" "+id]
}

func (f *fakeServer) total(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.log {
		if c.method == method {
			n++
		}
	}
	return n
}

func (f *fakeServer) forgetCalls() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = nil
	clear(f.calls)
}

func (f *fakeServer) last() *fakeClient {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[len(f.conns)-1]
}

func (f *fakeServer) hook(set func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set()
}

func (f *fakeServer) dialCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.dials)
}

func (f *fakeServer) dial(i int) mcp.Options {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials[i]
}

func (f *fakeServer) ended() []bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.endings)
}

func (f *fakeServer) begin(ctx context.Context, method, id string) error {
	f.mu.Lock()
	f.calls[method+" "+id]++
	f.log = append(f.log, call{time.Now(), method, id})
	f.inflight++
	f.most = max(f.most, f.inflight)
	d := f.latency
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.inflight--
		f.mu.Unlock()
	}()
	if d > 0 && !pause(ctx, d) {
		return ctx.Err()
	}
	return ctx.Err()
}

func (f *fakeServer) connect(ctx context.Context, o mcp.Options) (client, error) {
	f.mu.Lock()
	f.dials = append(f.dials, o)
	n := len(f.dials)
	dialErr := f.dialErr
	f.mu.Unlock()
	if dialErr != nil {
		if err := dialErr(n, o); err != nil {
			return nil, err
		}
	}
	c := &fakeClient{f: f, h: o.Handler, done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.session = f.session
	f.conns = append(f.conns, c)
	return c, nil
}

type fakeClient struct {
	f       *fakeServer
	h       mcp.Handler
	session string
	once    sync.Once
	done    chan struct{}
	err     error
}

func (c *fakeClient) Info() mcp.Info {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return mcp.Info{Era: "legacy", Transport: c.f.kind, Generation: c.f.gen, ProtocolVersion: "2025-11-25", ServerName: "fake", Session: c.session, Can: c.f.can}
}
func (c *fakeClient) Tasks() mcp.Tasks { return fakeTasks{c} }
func (c *fakeClient) Tools(ctx context.Context) ([]taskmodel.Tool, error) {
	if err := c.f.begin(ctx, "tools", ""); err != nil {
		return nil, err
	}
	return []taskmodel.Tool{{Name: "build", Title: c.f.toolTitle, Description: c.f.toolTitle, TaskSupport: "optional", InputSchema: c.f.input}}, nil
}
func (c *fakeClient) Answer(ctx context.Context, a taskmodel.Answer) error {
	if err := c.f.begin(ctx, "answer", a.Question.ID); err != nil {
		return err
	}
	c.f.mu.Lock()
	h := c.f.answer
	c.f.mu.Unlock()
	if h != nil {
		return h(ctx, a)
	}
	return nil
}
func (c *fakeClient) RootsChanged(ctx context.Context) error { return c.f.begin(ctx, "roots", "") }
func (c *fakeClient) SetLogLevel(ctx context.Context, level string) error {
	return c.f.begin(ctx, "loglevel", level)
}
func (c *fakeClient) Ping(ctx context.Context) error { return c.f.begin(ctx, "ping", "") }
func (c *fakeClient) Session() (string, string, json.RawMessage) {
	return c.session, "2025-11-25", json.RawMessage(`{}`)
}
func (c *fakeClient) Done() <-chan struct{} { return c.done }
func (c *fakeClient) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}
func (c *fakeClient) Leave(context.Context) {
	if c.f.leave != nil {
		c.f.leave(c)
	}
}

func (c *fakeClient) Close(_ context.Context, end bool) error {
	c.f.mu.Lock()
	c.f.endings = append(c.f.endings, end)
	c.f.mu.Unlock()
	c.end(nil)
	return nil
}

func (c *fakeClient) end(err error) {
	c.once.Do(func() { c.err = err; close(c.done) })
}

type fakeTasks struct{ c *fakeClient }

func (t fakeTasks) Start(ctx context.Context, sc mcp.StartCall) (mcp.Started, error) {
	f := t.c.f
	if err := f.begin(ctx, "start", sc.Tool); err != nil {
		return mcp.Started{}, err
	}
	f.mu.Lock()
	h := f.start
	n := len(f.order) + 1
	f.mu.Unlock()
	if h != nil {
		return h(ctx, sc)
	}
	id := "t" + strconv.Itoa(n)
	f.put(id, taskmodel.Working)
	f.mu.Lock()
	defer f.mu.Unlock()
	return mcp.Started{TaskID: id, Snapshot: *f.tasks[id]}, nil
}

var errFakeNotFound = fmt.Errorf("fake: %w", errors.Join(mcp.ErrNotFound, &taskmodel.RPCError{Code: -32602, Message: "Task not found"}))

func (t fakeTasks) Get(ctx context.Context, id string) (taskmodel.Snapshot, error) {
	f := t.c.f
	if err := f.begin(ctx, "get", id); err != nil {
		return taskmodel.Snapshot{}, err
	}
	f.mu.Lock()
	h := f.get
	f.mu.Unlock()
	if h != nil {
		return h(ctx, id)
	}
	return f.look(id)
}

func (f *fakeServer) look(id string) (taskmodel.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.tasks[id]; s != nil {
		return *s, nil
	}
	return taskmodel.Snapshot{}, errFakeNotFound
}

func (t fakeTasks) List(ctx context.Context, cursor string, next func(string)) (mcp.Page, error) {
	f := t.c.f
	if err := f.begin(ctx, "list", cursor); err != nil {
		return mcp.Page{}, err
	}
	f.mu.Lock()
	h, reading := f.list, f.reading
	f.mu.Unlock()
	if h == nil {
		h = func(_ context.Context, cursor string) (mcp.Page, error) { return f.page(cursor) }
	}
	p, err := h(ctx, cursor)
	if next != nil && err == nil && p.Next != "" {
		next(p.Next)
	}
	time.Sleep(reading)
	return p, err
}

func (f *fakeServer) page(cursor string) (mcp.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := 0
	if cursor != "" {
		n, err := strconv.Atoi(cursor)
		if err != nil {
			return mcp.Page{}, &taskmodel.RPCError{Code: -32602, Message: "Invalid cursor"}
		}
		from = n
	}
	var p mcp.Page
	for i := from; i < len(f.order) && i < from+f.perPage; i++ {
		p.Tasks = append(p.Tasks, *f.tasks[f.order[i]])
	}
	if from+f.perPage < len(f.order) {
		p.Next = strconv.Itoa(from + f.perPage)
	}
	return p, nil
}

func (t fakeTasks) Result(ctx context.Context, id string) (taskmodel.Outcome, error) {
	f := t.c.f
	if err := f.begin(ctx, "result", id); err != nil {
		return taskmodel.Outcome{}, err
	}
	f.mu.Lock()
	h := f.result
	f.mu.Unlock()
	if h != nil {
		return h(ctx, id)
	}
	return taskmodel.Outcome{Result: json.RawMessage(`{"content":[{"type":"text","text":"` + id + `"}]}`)}, nil
}

func (t fakeTasks) Cancel(ctx context.Context, id string) (*taskmodel.Snapshot, error) {
	f := t.c.f
	if err := f.begin(ctx, "cancel", id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	h := f.cancel
	f.mu.Unlock()
	if h != nil {
		return h(ctx, id)
	}
	f.put(id, taskmodel.Cancelled)
	s, err := f.look(id)
	return &s, err
}

func (t fakeTasks) Delete(ctx context.Context, id string) error {
	f := t.c.f
	if err := f.begin(ctx, "delete", id); err != nil {
		return err
	}
	f.mu.Lock()
	h := f.remove
	f.mu.Unlock()
	if h != nil {
		return h(ctx, id)
	}
	f.drop(id)
	return nil
}

func (t fakeTasks) Watch(ctx context.Context, ids []string) error {
	f := t.c.f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched = slices.Sorted(slices.Values(ids))
	return nil
}

// push tells a task's present state as the server would unasked.
func (f *fakeServer) push(id string) {
	s, err := f.look(id)
	if err != nil {
		return
	}
	now := time.Now()
	f.last().h.Snapshot(taskmodel.Observation{Snapshot: s, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now})
}

// pushAll is push to every connection there is.
func (f *fakeServer) pushAll(id string) {
	s, err := f.look(id)
	if err != nil {
		return
	}
	f.mu.Lock()
	conns := slices.Clone(f.conns)
	f.mu.Unlock()
	now := time.Now()
	for _, c := range conns {
		c.h.Snapshot(taskmodel.Observation{Snapshot: s, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now})
	}
}

// rig is a monitor that runs in a synctest bubble.
type rig struct {
	t      *testing.T
	m      *Monitor
	stop   context.CancelFunc
	ended  chan struct{}
	fakes  map[string]*fakeServer
	events []taskmodel.Event
	mu     sync.Mutex
}

// run makes a monitor over the fakes, by server name in order; change may alter
// the options and the specs.
func run(t *testing.T, change func(*Options), names []string, fakes ...*fakeServer) *rig {
	t.Helper()
	o := Options{Seed: 1, FetchResults: true}
	r := &rig{t: t, fakes: map[string]*fakeServer{}, ended: make(chan struct{})}
	for i, f := range fakes {
		o.Servers = append(o.Servers, ServerSpec{Name: names[i], Target: "target:" + names[i], Autostart: true, Dialer: f})
		r.fakes[names[i]] = f
	}
	if change != nil {
		change(&o)
	}
	r.m = New(o)
	r.m.connect = func(ctx context.Context, o mcp.Options) (client, error) { return r.fakes[o.Name].connect(ctx, o) }
	events, _ := r.m.Events(16)
	go func() {
		for e := range events {
			r.mu.Lock()
			r.events = append(r.events, e)
			r.mu.Unlock()
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		if err := r.m.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(r.end)
	return r
}

func (r *rig) end() {
	r.stop()
	<-r.ended
}

func (r *rig) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) board() *board.Version {
	synctest.Wait()
	time.Sleep(publishEvery + time.Millisecond)
	synctest.Wait()
	return r.m.Board()
}

func (r *rig) task(server, id string) taskmodel.Task {
	r.t.Helper()
	t, ok := r.board().Task(taskmodel.Key{Server: server, ID: id, Role: taskmodel.Requestor})
	if !ok {
		r.t.Fatalf("%s/%s is not on the board", server, id)
	}
	return t
}

func (r *rig) server(name string) taskmodel.Server {
	r.t.Helper()
	s, ok := r.board().Server(name)
	if !ok {
		r.t.Fatalf("no server %s on the board", name)
	}
	return s
}

func (r *rig) heard(kind taskmodel.EventKind) []taskmodel.Event {
	r.board() // events come with a version
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []taskmodel.Event
	for _, e := range r.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

func key(server, id string) taskmodel.Key {
	return taskmodel.Key{Server: server, ID: id, Role: taskmodel.Requestor}
}

// bubble runs a test with a fake clock.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
