package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeConn hands what is sent to out and lets the test say what arrives.
type fakeConn struct {
	sink Sink
	out  chan Outgoing
	done chan struct{}
	once sync.Once
	err  error
	fail error // what Send returns
}

func newFakeConn() *fakeConn {
	return &fakeConn{out: make(chan Outgoing, 10000), done: make(chan struct{})}
}
func (c *fakeConn) Start(_ context.Context, s Sink) error { c.sink = s; return nil }
func (c *fakeConn) Send(_ context.Context, m Outgoing) error {
	if c.fail != nil {
		return c.fail
	}
	c.out <- m
	return nil
}
func (c *fakeConn) end(err error)               { c.once.Do(func() { c.err = err; close(c.done) }) }
func (c *fakeConn) Close(context.Context) error { c.end(ErrClosed); return nil }
func (c *fakeConn) Done() <-chan struct{}       { return c.done }
func (c *fakeConn) Err() error                  { return c.err }

type fakeHandler struct {
	mu    sync.Mutex
	reqs  []*Request
	ctxs  []context.Context
	notes []string
	noise []string
}

func (h *fakeHandler) Request(ctx context.Context, r *Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reqs, h.ctxs = append(h.reqs, r), append(h.ctxs, ctx)
}
func (h *fakeHandler) Notification(n Notification) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, n.Method+" "+string(n.Params))
}
func (h *fakeHandler) Noise(kind string, b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noise = append(h.noise, kind)
}

func start(t *testing.T, o PeerOptions) (*Peer, *fakeConn, *fakeHandler) {
	t.Helper()
	c, h := newFakeConn(), &fakeHandler{}
	p := NewPeer(c, h, o)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()); <-p.Done() })
	return p, c, h
}

type result struct {
	b   json.RawMessage
	err error
}

func goCall(p *Peer, ctx context.Context, c Call) chan result {
	ch := make(chan result, 1)
	go func() {
		b, err := p.Call(ctx, c)
		ch <- result{b, err}
	}()
	return ch
}

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, h := start(t, PeerOptions{})
		a := goCall(p, t.Context(), Call{Method: "a", Params: map[string]string{"x": "<&>"}})
		m := <-c.out
		if string(m.Bytes) != `{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"<&>"}}` || m.Kind != KindRequest || m.ID != "1" {
			t.Fatalf("sent %s", m.Bytes)
		}
		b := goCall(p, t.Context(), Call{Method: "b", Name: "n", Header: map[string]string{"k": "v"}, ID: StringID("own")})
		m = <-c.out
		if m.Name != "n" || m.Header["k"] != "v" || m.ID != `"own"` {
			t.Fatalf("sent %+v", m)
		}
		// Out of order, and the id's type counts.
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":"1","result":0}`), "s", "")
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":"own","error":{"code":-5,"message":"no"}}`), "s", "")
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{"ok":1}}`), "s", "")
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{"ok":2}}`), "s", "")
		if r := <-a; string(r.b) != `{"ok":1}` || r.err != nil {
			t.Errorf("a: %s %v", r.b, r.err)
		}
		var e *Error
		if r := <-b; !errors.As(r.err, &e) || e.Code != -5 {
			t.Errorf("b: %v", r.err)
		}
		if got := strings.Join(h.noise, "; "); got != "an answer to no request; a late or repeated answer" {
			t.Errorf("noise: %s", got)
		}
	})
}

// Who wants a result early has it before the wire log has looked at it, once, and
// then the answer; an error is none, and a call that nobody waits for any more
// holds nothing up.
func TestEarlyResult(t *testing.T) {
	logged, early := make(chan struct{}), make(chan string, 9)
	p, c, _ := start(t, PeerOptions{Traffic: func(tr Traffic) {
		if !tr.Out {
			<-logged
		}
	}})
	call := Call{Method: "m", Early: func(b json.RawMessage) { early <- string(b) }}
	ch := goCall(p, t.Context(), call)
	id := (<-c.out).ID
	go c.sink.Message([]byte(`{"jsonrpc":"2.0","id":`+string(id)+`,"result":{"n":1}}`), "", "")
	if got := <-early; got != `{"n":1}` {
		t.Errorf("early: %s", got)
	}
	select {
	case r := <-ch:
		t.Errorf("the answer came before it was logged: %+v", r)
	default:
	}
	close(logged)
	if r := <-ch; string(r.b) != `{"n":1}` || r.err != nil {
		t.Errorf("%s %v", r.b, r.err)
	}
	ch = goCall(p, t.Context(), call)
	id = (<-c.out).ID
	c.sink.Message([]byte(`{"jsonrpc":"2.0","id":`+string(id)+`,"error":{"code":1,"message":"no"}}`), "", "")
	if r := <-ch; r.err == nil || len(early) != 0 {
		t.Errorf("%v, and %d results", r.err, len(early))
	}
	ctx, stop := context.WithCancel(t.Context())
	ch = goCall(p, ctx, call)
	id = (<-c.out).ID
	stop()
	<-ch
	c.sink.Message([]byte(`{"jsonrpc":"2.0","id":`+string(id)+`,"result":{}}`), "", "")
}

func TestCallGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, h := start(t, PeerOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var sent ID
		r := <-goCall(p, ctx, Call{Method: "slow", OnSent: func(id ID) { sent = id }})
		if !errors.Is(r.err, context.DeadlineExceeded) || sent != "1" {
			t.Errorf("err %v, sent %q", r.err, sent)
		}
		if len(c.out) != 1 {
			t.Error("the peer was told something")
		}
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{}}`), "s", "")
		if len(h.noise) != 1 || h.noise[0] != "a late or repeated answer" {
			t.Errorf("noise %q", h.noise)
		}
	})
}

func TestConnectionEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, h := start(t, PeerOptions{})
		var calls []chan result
		for range 100 {
			calls = append(calls, goCall(p, t.Context(), Call{Method: "m"}))
		}
		synctest.Wait()
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":"q","method":"ask"}`), "s", "")
		c.end(errors.New("exit code 3"))
		for _, ch := range calls {
			if r := <-ch; !errors.Is(r.err, ErrClosed) || !strings.Contains(r.err.Error(), "exit code 3") {
				t.Fatalf("err = %v", r.err)
			}
		}
		<-p.Done()
		if p.Err() == nil || h.ctxs[0].Err() == nil {
			t.Error("the end is not told")
		}
		if err := h.reqs[0].Reply(t.Context(), nil); !errors.Is(err, ErrClosed) {
			t.Errorf("reply: %v", err)
		}
		if _, err := p.Call(t.Context(), Call{Method: "m"}); !errors.Is(err, ErrClosed) {
			t.Errorf("later call: %v", err)
		}
		if err := p.Notify(t.Context(), "n", nil, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("later notification: %v", err)
		}
	})
}

func TestFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, _ := start(t, PeerOptions{})
		a, b := goCall(p, t.Context(), Call{Method: "a", ID: "1"}), goCall(p, t.Context(), Call{Method: "b", ID: "2"})
		synctest.Wait()
		c.sink.Failed("1", errors.New("status 502"))
		c.sink.Failed("99", errors.New("nobody"))
		if r := <-a; r.err == nil || r.err.Error() != "status 502" {
			t.Errorf("a: %v", r.err)
		}
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":2,"result":2}`), "s", "")
		if r := <-b; r.err != nil {
			t.Errorf("b: %v", r.err)
		}
		c.fail = errors.New("pipe full")
		if _, err := p.Call(t.Context(), Call{Method: "c"}); err == nil || !strings.Contains(err.Error(), "send c: pipe full") {
			t.Errorf("c: %v", err)
		}
	})
}

// Answers that cannot be read fail their call instead of leaving it to hang.
func TestBrokenAnswers(t *testing.T) {
	deep := `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`
	for _, tc := range []struct{ name, in, on, want string }{
		{"cut", `{"jsonrpc":"2.0","id":1,"result":{"a":`, "", "not JSON"},
		{"too deep", deep, "", "nested too deeply"},
		{"too long", `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 70000) + `"}`, "", "more than the 65536 allowed"},
		{"neither result nor error", `{"jsonrpc":"2.0","id":1}`, "", "neither a result nor an error"},
		{"error without id, on the call's own stream", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}`, "1", "parse (-32700)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, c, _ := start(t, PeerOptions{MaxMessage: 65536})
				a := goCall(p, t.Context(), Call{Method: "a"})
				synctest.Wait()
				c.sink.Message(json.RawMessage(tc.in), "s", ID(tc.on))
				synctest.Wait()
				select {
				case r := <-a:
					if r.err == nil || !strings.Contains(r.err.Error(), tc.want) {
						t.Errorf("err = %v", r.err)
					}
				default:
					t.Error("the call hangs")
				}
			})
		})
	}
}

// T4: valid JSON that is no JSON-RPC is noise and disturbs no call.
func TestT4_JSONThatIsNoJSONRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, h := start(t, PeerOptions{})
		a := goCall(p, t.Context(), Call{Method: "a"})
		synctest.Wait()
		for _, s := range []string{
			`{"level":"info","id":1,"method":"GET"}`, `{"id":1,"level":"warn"}`, `{"level":"x"}`, `[]`, `[INFO] x`, `[1]`, `{"a":`,
			`{"jsonrpc":"2.0","error":{"code":1,"message":"whose?"}}`, `{"jsonrpc":"2.0","id":null,"method":"m"}`,
		} {
			before := len(h.noise)
			c.sink.Message(json.RawMessage(s), "s", "")
			if len(h.noise) != before+1 {
				t.Errorf("%s made %d pieces of noise", s, len(h.noise)-before)
			}
		}
		c.sink.Noise("heartbeat", nil)
		if len(a) != 0 || len(h.reqs) != 0 || len(h.notes) != 0 {
			t.Fatal("noise had an effect")
		}
		// An answer that only lacks the version is still taken.
		c.sink.Message(json.RawMessage(`{"id":1,"result":{}}`), "s", "")
		if r := <-a; r.err != nil {
			t.Error(r.err)
		}
	})
}

// JSON-RPC 2.0 section 6; MCP 2025-03-26 has batches.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, h := start(t, PeerOptions{})
		a := goCall(p, t.Context(), Call{Method: "a"})
		synctest.Wait()
		c.sink.Message(json.RawMessage(`[{"jsonrpc":"2.0","method":"n","params":{"i":1}}, 5, {"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":1,"method":"ask"}]`), "s", "")
		if r := <-a; r.err != nil {
			t.Error(r.err)
		}
		if len(h.notes) != 1 || len(h.reqs) != 1 || len(h.noise) != 1 {
			t.Errorf("notes %q, requests %d, noise %q", h.notes, len(h.reqs), h.noise)
		}
	})
}

func TestIncomingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, h := start(t, PeerOptions{})
		ask := func(id string) *Request {
			c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":`+id+`,"method":"elicitation/create","params":{"a":1}}`), "post 4", "4")
			return h.reqs[len(h.reqs)-1]
		}
		r := ask(`"7"`)
		if r.On != "4" || r.Stream != "post 4" || string(r.Params) != `{"a":1}` {
			t.Errorf("%+v", r)
		}
		if got, ok := p.Incoming(`"7"`); !ok || got != r {
			t.Error("not known as incoming")
		}
		if _, ok := p.Incoming("7"); ok {
			t.Error(`7 and "7" are one`)
		}
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":"7","method":"again"}`), "s", "")
		if len(h.reqs) != 1 || len(h.noise) != 1 {
			t.Error("an id in use was taken twice")
		}
		// A failed Send leaves the request open.
		c.fail = errors.New("502")
		if err := r.Reply(t.Context(), nil); err == nil {
			t.Error("no error")
		}
		c.fail = nil
		if err := r.Reply(t.Context(), map[string]int{"n": 1}); err != nil {
			t.Fatal(err)
		}
		m := <-c.out
		if string(m.Bytes) != `{"jsonrpc":"2.0","id":"7","result":{"n":1}}` || m.InReplyTo != `"7"` || m.Kind != KindResponse {
			t.Errorf("sent %s", m.Bytes)
		}
		if err := r.Fail(t.Context(), &Error{Code: 1}); !errors.Is(err, ErrReplied) {
			t.Errorf("second answer: %v", err)
		}
		if _, ok := p.Incoming(`"7"`); ok || h.ctxs[0].Err() == nil {
			t.Error("still open after the answer")
		}

		r = ask("8")
		if !r.Cancel() || r.Cancel() {
			t.Error("Cancel says the wrong thing")
		}
		if h.ctxs[1].Err() == nil {
			t.Error("the context did not end")
		}
		if err := r.Reply(t.Context(), nil); !errors.Is(err, ErrCancelled) {
			t.Errorf("answer after Cancel: %v", err)
		}

		r = ask("9.0")
		if err := r.Fail(t.Context(), &Error{Code: CodeMethodNotFound, Message: "no"}); err != nil {
			t.Fatal(err)
		}
		if m := <-c.out; string(m.Bytes) != `{"jsonrpc":"2.0","id":9.0,"error":{"code":-32601,"message":"no"}}` {
			t.Errorf("sent %s", m.Bytes)
		}
		r = ask("10")
		r.Reply(t.Context(), nil)
		if m := <-c.out; string(m.Bytes) != `{"jsonrpc":"2.0","id":10,"result":{}}` {
			t.Errorf("sent %s", m.Bytes)
		}
	})
}

func TestRepliesRace(t *testing.T) {
	_, c, h := start(t, PeerOptions{})
	c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"m"}`), "s", "")
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 20 {
		wg.Go(func() {
			if err := h.reqs[0].Reply(t.Context(), i); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			} else if !errors.Is(err, ErrReplied) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 || len(c.out) != 1 {
		t.Errorf("%d won, %d sent", won, len(c.out))
	}
}

func TestTooManyRequests(t *testing.T) {
	_, c, h := start(t, PeerOptions{})
	for i := range maxIncoming + 10 {
		c.sink.Message(json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, i)), "s", "")
	}
	if len(h.reqs) != maxIncoming || len(h.noise) != 10 {
		t.Errorf("%d requests, %d pieces of noise", len(h.reqs), len(h.noise))
	}
}

func TestTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var mu sync.Mutex
		p, c, h := start(t, PeerOptions{Traffic: func(x Traffic) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%v %d %s %s %s %s", x.Out, x.Kind, x.Method, x.ID, x.Latency, x.Fault))
		}})
		a := goCall(p, t.Context(), Call{Method: "a"})
		synctest.Wait()
		time.Sleep(3 * time.Second)
		c.sink.Message(json.RawMessage(`{"id":1,"result":{}}`), "s", "")
		<-a
		p.Notify(t.Context(), "n", map[string]int{}, nil)
		c.sink.Message(json.RawMessage(`{"jsonrpc":"2.0","id":5,"method":"q"}`), "s", "")
		time.Sleep(time.Second)
		h.reqs[0].Reply(t.Context(), nil)
		c.sink.Noise("log", []byte("x"))
		want := []string{
			"true 1 a 1 0s ",
			`false 3 a 1 3s no "jsonrpc":"2.0"`,
			"true 2 n  0s ",
			"false 1 q 5 0s ",
			"true 3 q 5 1s ",
			"false 0   0s log",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
	})
}

func TestSendParams(t *testing.T) {
	p, c, _ := start(t, PeerOptions{})
	for _, tc := range []struct {
		params any
		want   string
	}{
		{nil, `{"jsonrpc":"2.0","method":"n"}`},
		{json.RawMessage(nil), `{"jsonrpc":"2.0","method":"n"}`},
		{json.RawMessage("{\n \"a\": \"\u2028\" }"), "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"a\":\"\u2028\"}}"},
	} {
		if err := p.Notify(t.Context(), "n", tc.params, nil); err != nil {
			t.Fatal(err)
		}
		if m := <-c.out; string(m.Bytes) != tc.want && !strings.Contains(string(m.Bytes), `\u2028`) {
			t.Errorf("sent %s", m.Bytes)
		}
	}
	if err := p.Notify(t.Context(), "n", json.RawMessage("{"), nil); err == nil {
		t.Error("broken params were sent")
	}
	if err := p.Notify(t.Context(), "n", make(chan int), nil); err == nil {
		t.Error("params that are no JSON were sent")
	}
}

func BenchmarkNotification(b *testing.B) {
	c := newFakeConn()
	p := NewPeer(c, nopHandler{}, PeerOptions{})
	if err := p.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer p.Close(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		c.sink.Message(statusNotification, "stdio", "")
	}
}

type nopHandler struct{}

func (nopHandler) Request(context.Context, *Request) {}
func (nopHandler) Notification(Notification)         {}
func (nopHandler) Noise(string, []byte)              {}

// elsewhere is a connection that another goroutine ends, as the death of a
// program does; Close waits for it and is not the first to see it.
type elsewhere struct{ *fakeConn }

func (c elsewhere) Close(context.Context) error {
	go c.end(ErrClosed)
	<-c.done
	runtime.Gosched()
	return nil
}

// Close must not return before the end is known, whichever goroutine told it.
func TestErrAfterClose(t *testing.T) {
	for range 60 {
		c := elsewhere{newFakeConn()}
		p := NewPeer(c, &fakeHandler{}, PeerOptions{})
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 300 { // calls to fail keep the first of the two busy for a while
			goCall(p, t.Context(), Call{Method: "m"})
		}
		for range 300 {
			<-c.out
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Err(); !errors.Is(err, ErrClosed) {
			t.Fatalf("after our own Close: %v", err)
		}
	}
}
