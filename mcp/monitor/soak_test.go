package monitor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// A chaos makes a fake server fail at random, from a seed.
type chaos struct {
	f    *fakeServer
	mu   sync.Mutex
	rng  *rand.Rand
	calm bool
	sent map[string]int // answers that arrived, by question
}

func (c *chaos) roll(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.calm && c.rng.IntN(n) == 0
}

// fault is what goes wrong with one request, nil mostly.
func (c *chaos) fault(ctx context.Context) error {
	switch {
	case c.roll(60):
		return status(502, 0)
	case c.roll(80):
		return status(429, 7*time.Second)
	case c.roll(80):
		return fmt.Errorf("x: %w", &net.OpError{Op: "read", Err: syscall.ECONNRESET})
	case c.roll(100):
		return fmt.Errorf("x: %w", &taskmodel.RPCError{Code: -32603, Message: "internal error"})
	case c.roll(120):
		return fmt.Errorf("x: %w", mcp.ErrSessionLost)
	case c.roll(150):
		c.f.last().end(errors.New("the connection broke"))
		return fmt.Errorf("x: %w", mcp.ErrClosed)
	case c.roll(150):
		return errors.New("the answer cannot be read")
	case c.roll(200):
		if !pause(ctx, 90*time.Second) {
			return ctx.Err()
		}
	case c.roll(20):
		if !pause(ctx, 3*time.Second) {
			return ctx.Err()
		}
	}
	return nil
}

func newChaos(f *fakeServer, seed uint64) *chaos {
	c := &chaos{f: f, rng: rand.New(rand.NewPCG(seed, 7)), sent: map[string]int{}}
	f.perPage, f.latency = 7, 20*time.Millisecond
	f.get = func(ctx context.Context, id string) (taskmodel.Snapshot, error) {
		s, err := f.look(id) // as it was when the request came
		if ferr := c.fault(ctx); ferr != nil {
			return taskmodel.Snapshot{}, ferr
		}
		if c.roll(100) {
			return taskmodel.Snapshot{}, errFakeNotFound // for a moment
		}
		return s, err
	}
	f.list = func(ctx context.Context, cursor string) (mcp.Page, error) {
		if err := c.fault(ctx); err != nil {
			return mcp.Page{}, err
		}
		if cursor != "" && c.roll(40) {
			return mcp.Page{}, fmt.Errorf("x: %w", &taskmodel.RPCError{Code: -32602, Message: "Invalid cursor"})
		}
		p, err := f.page(cursor)
		if len(p.Tasks) > 1 && c.roll(10) {
			p.Tasks = p.Tasks[1:] // a listing may lack a task
		}
		return p, err
	}
	f.result = func(ctx context.Context, id string) (taskmodel.Outcome, error) {
		for {
			if err := c.fault(ctx); err != nil {
				return taskmodel.Outcome{}, err
			}
			if s, err := f.look(id); err == nil && s.Status.Terminal(taskmodel.GenCore) {
				return taskmodel.Outcome{Result: []byte(`{"content":[]}`)}, nil
			}
			if !pause(ctx, time.Second) {
				return taskmodel.Outcome{}, ctx.Err()
			}
		}
	}
	f.answer = func(ctx context.Context, a taskmodel.Answer) error {
		err := c.fault(ctx)
		var st *taskmodel.RPCError
		if errors.As(err, &st) || errors.Is(err, mcp.ErrSessionLost) {
			return err // not taken
		}
		c.mu.Lock()
		c.sent[a.Question.ID]++
		c.mu.Unlock()
		return err // taken, whatever is heard of it
	}
	f.cancel = func(ctx context.Context, id string) (*taskmodel.Snapshot, error) {
		if err := c.fault(ctx); err != nil {
			return nil, err
		}
		if s, err := f.look(id); err == nil && s.Status.Terminal(taskmodel.GenCore) {
			return nil, fmt.Errorf("x: %w", errors.Join(mcp.ErrTerminal, &taskmodel.RPCError{Code: -32602, Message: "terminal"}))
		}
		if c.roll(3) {
			f.put(id, taskmodel.Cancelled)
		}
		return nil, nil
	}
	return c
}

// live lets the server's tasks go on, and tells some of it, late or twice.
func (c *chaos) live(stop chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(700 * time.Millisecond):
		}
		c.f.mu.Lock()
		ids := append([]string(nil), c.f.order...)
		c.f.mu.Unlock()
		if len(ids) < 60 && c.roll(3) {
			c.f.put(fmt.Sprint("s", n), taskmodel.Working)
		}
		for _, id := range ids {
			s, err := c.f.look(id)
			if err != nil || s.Status.Terminal(taskmodel.GenCore) || !c.roll(40) {
				continue
			}
			next := []taskmodel.Status{taskmodel.Working, taskmodel.InputRequired, taskmodel.Completed, taskmodel.Failed, taskmodel.Working}
			c.mu.Lock()
			st := next[c.rng.IntN(len(next))]
			c.mu.Unlock()
			c.f.put(id, st)
			if c.roll(2) {
				c.f.push(id)
			}
			if c.roll(3) {
				now := time.Now() // the state before, told late
				c.f.last().h.Snapshot(taskmodel.Observation{Snapshot: s, Source: taskmodel.FromPush, AskedAt: now, HeardAt: now})
			}
			if st == taskmodel.InputRequired {
				c.f.last().h.Asked(taskmodel.Question{ID: taskmodel.QuestionID{Server: c.name(), ID: fmt.Sprint(id, "/", n)}, Task: key(c.name(), id),
					Kind: taskmodel.AskForm, Key: "k", State: taskmodel.QuestionOpen})
			}
		}
	}
}

func (c *chaos) name() string { return c.f.dial(0).Name }

// Random faults on several servers: at the end no task is lost or stuck, no
// terminal status is wrong, no answer went twice.
func TestSoak(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("MCPTASKS_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	servers, span := 5, 15*time.Minute // of the fake clock
	if os.Getenv("MCPTASKS_SOAK") != "" {
		servers, span = 20, 3*time.Hour
	}
	t.Logf("seed %d (set MCPTASKS_SEED to repeat; MCPTASKS_SOAK for the long form)", seed)
	bubble(t, func(t *testing.T) {
		var names []string
		var fakes []*fakeServer
		var all []*chaos
		for i := range servers {
			f := newFake(taskmodel.GenCore)
			if i%2 == 1 {
				f.session = "s"
			}
			names, fakes = append(names, fmt.Sprint("s", i)), append(fakes, f)
			all = append(all, newChaos(f, seed+uint64(i)))
		}
		r := run(t, nil, names, fakes...)
		r.sleep(time.Second)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for i, c := range all {
			wg.Go(func() { c.live(stop) })
			wg.Go(func() { // the person
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(2+rng.IntN(5)) * time.Second):
					}
					ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
					switch rng.IntN(4) {
					case 0:
						_, _ = r.m.Start(ctx, StartRequest{Server: c.name(), Tool: "b"})
					case 1:
						for _, q := range r.m.Board().Questions() {
							if q.ID.Server == c.name() && q.State == taskmodel.QuestionOpen {
								_ = r.m.Answer(ctx, taskmodel.Answer{Question: q.ID, Action: taskmodel.Decline})
								break
							}
						}
					case 2:
						r.m.Board().Of(c.name(), func(t *taskmodel.Task) bool {
							if !t.Terminal() && rng.IntN(10) == 0 {
								_ = r.m.Cancel(ctx, t.Key)
								return false
							}
							return true
						})
					}
					end()
				}
			})
		}
		r.sleep(span)
		close(stop)
		wg.Wait()
		for _, c := range all {
			c.mu.Lock()
			c.calm = true
			c.mu.Unlock()
		}
		r.sleep(20 * time.Minute)
		v := r.board()
		total := 0
		for i, c := range all {
			if s, _ := v.Server(names[i]); s.State != taskmodel.ServerReady {
				t.Errorf("%s is %s: %s", names[i], s.State, s.Error)
			}
			c.f.mu.Lock()
			for id, truth := range c.f.tasks {
				total++
				x, ok := v.Task(key(names[i], id))
				switch {
				case !ok:
					t.Errorf("%s/%s is lost (truth: %s)", names[i], id, truth.Status)
				case x.Status != truth.Status:
					t.Errorf("%s/%s is %s, the truth is %s (%s, %q)", names[i], id, x.Status, truth.Status, x.Standing, x.Note)
				case x.Standing != taskmodel.Live:
					t.Errorf("%s/%s is %s while its server is well: %q", names[i], id, x.Standing, x.Note)
				case !x.Terminal() && time.Since(x.LastHeardAt) > time.Minute:
					t.Errorf("%s/%s is stuck: last heard %s ago", names[i], id, time.Since(x.LastHeardAt))
				}
			}
			c.f.mu.Unlock()
			c.mu.Lock()
			for id, n := range c.sent {
				if n > 1 {
					t.Errorf("%s: question %s was answered %d times", names[i], id, n)
				}
				q, ok := v.Question(taskmodel.QuestionID{Server: names[i], ID: id})
				if ok && q.State.Open() {
					t.Errorf("%s: question %s was answered and is %s", names[i], id, q.State)
				}
			}
			c.mu.Unlock()
		}
		t.Logf("%d tasks, %d answers", total, func() (n int) {
			for _, c := range all {
				n += len(c.sent)
			}
			return n
		}())
		synctest.Wait()
	})
}
