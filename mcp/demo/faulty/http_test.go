package faulty

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcptasks/mcp/demo"
)

// web is a faulty server over HTTP with one session.
type web struct {
	t       *testing.T
	s       *Server
	url     string
	session string
	client  *http.Client
}

func overHTTP(t *testing.T, tasks int) *web {
	t.Helper()
	s, err := New(demo.Options{Tasks: tasks, Seed: 1, Speed: 40}, "")
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() { s.Close(); h.CloseClientConnections(); h.Close() })
	w := &web{t: t, s: s, url: h.URL + "/mcp", client: &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	w.connect()
	return w
}

func (w *web) connect() {
	w.t.Helper()
	w.session = ""
	r, err := w.do(w.t.Context(), "POST", hello)
	if err != nil {
		w.t.Fatal(err)
	}
	w.session = r.Header.Get("Mcp-Session-Id")
	w.text(r)
	if r, err = w.do(w.t.Context(), "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil || r.StatusCode != 202 {
		w.t.Fatalf("initialized: %v %v", r, err)
	}
	w.text(r)
}

func (w *web) do(ctx context.Context, method, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	}
	return w.client.Do(r)
}

// text reads a body to its end or its error.
func (w *web) text(r *http.Response) (string, error) {
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	return string(b), err
}

// ping sends one and says what came: a status, a body, an error, and how long
// it took. It waits for 30 s at most.
func (w *web) ping() (status int, body string, took time.Duration, err error) {
	return w.pingFor(30 * time.Second)
}

func (w *web) pingFor(patience time.Duration) (status int, body string, took time.Duration, err error) {
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	begun := time.Now()
	r, err := w.do(ctx, "POST", `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	if err != nil {
		return 0, "", time.Since(begun), err
	}
	body, err = w.text(r)
	return r.StatusCode, body, time.Since(begun), err
}

// Each fault over HTTP on an answer that is one JSON object, and that the next
// request is well.
func TestHTTPFaults(t *testing.T) {
	lost := func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
	for _, tc := range []struct {
		script string
		ok     func(status int, body string, took time.Duration, err error) bool
	}{
		{"post:ping status 503 Retry-After=2 come later", func(s int, b string, _ time.Duration, err error) bool { return s == 503 && b == "come later" }},
		{"post:ping status 302 Location=/elsewhere", func(s int, _ string, _ time.Duration, err error) bool { return s == 302 }},
		{"post:ping status 404 {\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"x=y\"}}", func(s int, b string, _ time.Duration, err error) bool {
			return s == 404 && strings.Contains(b, "-32601")
		}},
		{"post:ping type text/html <html>", func(s int, b string, _ time.Duration, err error) bool { return s == 200 && b == "<html>" }},
		{"post:ping empty", func(s int, b string, _ time.Duration, err error) bool { return s == 200 && b == "" && err == nil }},
		{"post:ping gzip", func(s int, _ string, _ time.Duration, err error) bool {
			return s == 200 && errors.Is(err, io.ErrUnexpectedEOF)
		}},
		{"post:ping slowheaders 400ms", func(s int, b string, d time.Duration, err error) bool {
			return s == 200 && d > 350*time.Millisecond && strings.Contains(b, `"id":5`)
		}},
		{"post:ping halfclose", func(s int, b string, _ time.Duration, err error) bool {
			return errors.Is(err, io.ErrUnexpectedEOF) && len(b) > 5
		}},
		{"post:ping close", func(_ int, _ string, _ time.Duration, err error) bool { return errors.Is(err, io.EOF) || isReset(err) }},
		{"post:ping reset", func(_ int, _ string, _ time.Duration, err error) bool { return isReset(err) || errors.Is(err, io.EOF) }},
		{"post:ping late 300ms", func(s int, b string, d time.Duration, err error) bool { return s == 200 && d > 280*time.Millisecond }},
		{"post:ping slowly 5ms", func(s int, b string, d time.Duration, err error) bool {
			return strings.Contains(b, `"id":5`) && d > 100*time.Millisecond
		}},
		{"post:ping never", func(_ int, _ string, _ time.Duration, err error) bool { return lost(err) }},
		{"response:ping late 300ms", func(s int, b string, d time.Duration, err error) bool { return s == 200 && d > 280*time.Millisecond }},
		{"response:ping never", func(_ int, _ string, _ time.Duration, err error) bool { return lost(err) }},
		{"request:ping never", func(_ int, _ string, _ time.Duration, err error) bool { return lost(err) }},
		{"request:ping twice", func(s int, b string, _ time.Duration, err error) bool {
			return s == 200 && strings.Count(b, `"id":5`) == 1
		}},
		{"response:ping twice", func(s int, b string, _ time.Duration, err error) bool { return strings.Count(b, "data: ") == 2 }},
		{"response:ping id 99", func(s int, b string, _ time.Duration, err error) bool { return strings.Contains(b, `"id":99`) }},
		{"response:ping error -32603", func(s int, b string, _ time.Duration, err error) bool { return strings.Contains(b, "-32603") }},
		{"response:ping broken", func(s int, b string, _ time.Duration, err error) bool { return b == `{"jsonrpc":"2.0","` }},
		{"response:ping set result 7", func(s int, b string, _ time.Duration, err error) bool { return strings.Contains(b, `"result":7`) }},
		{"response:ping big 3000000", func(s int, b string, _ time.Duration, err error) bool { return len(b) > 2_990_000 && err == nil }},
		{"response:ping close", func(_ int, _ string, _ time.Duration, err error) bool { return err != nil && !lost(err) }},
		{"response:ping reset", func(_ int, _ string, _ time.Duration, err error) bool { return err != nil && !lost(err) }},
		{"response:ping halfclose", func(_ int, b string, _ time.Duration, err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"response:ping clock 1h", func(s int, b string, _ time.Duration, err error) bool { return s == 200 && err == nil }},
	} {
		t.Run(tc.script, func(t *testing.T) {
			t.Parallel()
			w := overHTTP(t, 0)
			if err := w.s.Add(tc.script); err != nil {
				t.Fatal(err)
			}
			patience := 30 * time.Second
			if strings.HasSuffix(tc.script, " never") {
				patience = 500 * time.Millisecond
			}
			if s, b, d, err := w.pingFor(patience); !tc.ok(s, b, d, err) {
				t.Errorf("got %d %.80q after %v, %v", s, b, d, err)
			}
			if len(w.s.Fired()) != 1 {
				t.Errorf("fired %v", w.s.Fired())
			}
			if s, b, _, err := w.ping(); s != 200 || err != nil || !strings.Contains(b, `"id":5`) {
				t.Errorf("afterwards: %d %q %v", s, b, err)
			}
		})
	}
}

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

// A restart over HTTP: the session is not known any more, and the tasks are
// there or not.
func TestHTTPRestart(t *testing.T) {
	for script, there := range map[string]bool{"response:ping restart keep": true, "response:ping restart lose": false, "response:ping crash 1": false} {
		w := overHTTP(t, 4)
		id := w.s.Demo().Handles()[0].ID
		if err := w.s.Add(script); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := w.ping(); err == nil {
			t.Errorf("%s: answered", script)
		}
		if s, _, _, _ := w.ping(); s != 404 {
			t.Errorf("%s: the old session is answered with %d", script, s)
		}
		w.connect()
		r, err := w.do(t.Context(), "POST", `{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"`+id+`"}}`)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := w.text(r); strings.Contains(b, `"result"`) != there {
			t.Errorf("%s: %s", script, b)
		}
	}
}

// A hang over HTTP is for ever, for all.
func TestHTTPHang(t *testing.T) {
	w := overHTTP(t, 0)
	if err := w.s.Add("response:ping hang"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, _, err := w.pingFor(500 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
}

// The GET stream and the messages on a stream.
func TestHTTPStreamFaults(t *testing.T) {
	build := `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"build","arguments":{"target":"api"},"_meta":{"progressToken":1}}}`
	run := func(script string) (string, error) {
		w := overHTTP(t, 0)
		if err := w.s.Add(script); err != nil {
			t.Fatal(err)
		}
		patience := 30 * time.Second
		if script == "response:tools/call never" || strings.HasSuffix(script, " late 1h") {
			patience = 6 * time.Second // by then the call is over
		}
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		r, err := w.do(ctx, "POST", build)
		if err != nil {
			return "", err
		}
		return w.text(r)
	}
	for _, tc := range []struct {
		script string
		ok     func(body string, err error) bool
	}{
		{"", func(b string, err error) bool {
			return err == nil && strings.Count(b, `"id":8`) == 1 && strings.Contains(b, `"progress":`)
		}},
		{"notification:notifications/progress* never", func(b string, err error) bool {
			return err == nil && !strings.Contains(b, `"progress":`) && strings.Contains(b, `"id":8`)
		}},
		{"notification:notifications/progress#3 repeat 4", func(b string, err error) bool {
			n := 0
			for _, l := range strings.Split(b, "\n") {
				n = max(n, strings.Count(b, l)*min(1, strings.Count(l, `"progress":`)))
			}
			return err == nil && n == 4
		}},
		{"response:tools/call twice", func(b string, err error) bool { return err == nil && strings.Count(b, `"id":8`) == 2 }},
		{"response:tools/call never", func(b string, err error) bool {
			return errors.Is(err, context.DeadlineExceeded) && !strings.Contains(b, `"id":8`)
		}},
		{"notification:notifications/progress#2 close", func(b string, err error) bool { return err != nil && !errors.Is(err, context.DeadlineExceeded) }},
		{"notification:notifications/progress#2 reset", func(b string, err error) bool { return err != nil && !errors.Is(err, context.DeadlineExceeded) }},
		{"notification:notifications/progress#2 halfclose", func(b string, err error) bool { return err != nil && !errors.Is(err, context.DeadlineExceeded) }},
		{"notification:notifications/progress#2 broken", func(b string, err error) bool { return err == nil && strings.Contains(b, `"id":8`) }},
		{"notification:notifications/progress#2 slowly 1ms", func(b string, err error) bool { return err == nil && strings.Contains(b, `"id":8`) }},
		{"notification:notifications/progress#2 late 1h", func(b string, err error) bool {
			return errors.Is(err, context.DeadlineExceeded) && strings.Contains(b, `"id":8`)
		}},
	} {
		t.Run(tc.script, func(t *testing.T) {
			t.Parallel()
			if b, err := run(tc.script); !tc.ok(b, err) {
				t.Errorf("got %v and %s", err, b)
			}
		})
	}
	w := overHTTP(t, 0)
	for _, f := range []struct {
		script string
		status int
	}{{"get status 405", 405}, {"get type text/html <p>", 200}, {"delete status 405", 405}} {
		if err := w.s.Add(f.script); err != nil {
			t.Fatal(err)
		}
		r, err := w.do(t.Context(), strings.ToUpper(strings.Fields(f.script)[0]), "")
		if err != nil || r.StatusCode != f.status {
			t.Errorf("%s: %v %v", f.script, r, err)
			continue
		}
		_, _ = w.text(r)
	}
}
