//go:build unix

package tap

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func behind(t *testing.T, h http.HandlerFunc, path string, change func(*Options)) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o := Options{URL: srv.URL + path, Listen: "127.0.0.1:0", Name: "x", Target: target}
	if change != nil {
		change(&o)
	}
	return startHTTP(t, o)
}

// Header fields and bodies pass as they are, Host aside, both ways.
func TestHeadersPassUntouched(t *testing.T) {
	var got *http.Request
	var body []byte
	u := behind(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://ci.example/.well-known/x"`)
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Set("Mcp-Session-Id", "s-1")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte("no\x00t JSON"))
	}, "/mcp?key=hush", nil)
	if strings.Contains(u, "hush") {
		t.Errorf("the printed address holds the key: %s", u)
	}
	req, _ := http.NewRequest(http.MethodPost, u, strings.NewReader("{not json}\n"))
	req.Header = http.Header{"Authorization": {"Bearer x"}, "Content-Type": {"application/json"}, "X-Forwarded-For": {"1.2.3.4"}, "User-Agent": {"agent/1"},
		"Cookie": {"c=2"}, "Mcp-Param-A": {"=?base64?eA==?="}, "Accept": {"application/json, text/event-stream"}, "X-Odd": {"1", "2"}}
	want := req.Header.Clone()
	res, err := (&http.Client{Transport: &http.Transport{DisableCompression: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != 401 || string(b) != "no\x00t JSON" || res.Header.Get("Set-Cookie") != "a=1" || res.Header.Get("Mcp-Session-Id") != "s-1" ||
		!strings.Contains(res.Header.Get("WWW-Authenticate"), "ci.example") {
		t.Errorf("%d %q %v", res.StatusCode, b, res.Header)
	}
	got.Header.Del("Content-Length")
	if fmt.Sprint(got.Header) != fmt.Sprint(want) || string(body) != "{not json}\n" || got.URL.RawQuery != "key=hush" {
		t.Errorf("the server got %v %q %s, the agent sent %v", got.Header, body, got.URL, want)
	}
}

// Streams pass as they come: each event is there before the next is sent.
func TestStreamsPassAsTheyCome(t *testing.T) {
	for _, tt := range []struct{ name, method, session string }{{"post", "POST", ""}, {"get", "GET", "s"}, {"sse", "GET", ""}} {
		t.Run(tt.name, func(t *testing.T) {
			next := make(chan bool)
			u := behind(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(w, ": note\n\nid: %d\r\ndata: {\"n\":%d,\r\ndata: \"x\":1}\r\n\r\n", i, i)
					w.(http.Flusher).Flush()
					<-next
				}
			}, "/mcp", nil)
			req, _ := http.NewRequest(tt.method, u, nil)
			req.Header.Set("Accept", "text/event-stream")
			if tt.session != "" {
				req.Header.Set("Mcp-Session-Id", tt.session)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			r := bufio.NewReader(res.Body)
			for i := range 3 {
				var got string
				for range 6 {
					l, err := r.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					got += l
				}
				if want := fmt.Sprintf(": note\n\nid: %d\r\ndata: {\"n\":%d,\r\ndata: \"x\":1}\r\n\r\n", i, i); got != want {
					t.Errorf("%q, want %q", got, want)
				}
				next <- true
			}
		})
	}
}

// HTTP+SSE: an endpoint that is not relative leads through the tap.
func TestEndpointLeadsThroughTheTap(t *testing.T) {
	for _, absolute := range []bool{false, true} {
		t.Run(fmt.Sprint(absolute), func(t *testing.T) {
			posted := make(chan string, 1)
			u := behind(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					posted <- r.URL.RequestURI()
					w.WriteHeader(http.StatusAccepted)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				to := "/messages?sessionId=7"
				if absolute {
					to = "http://" + r.Host + to
				}
				fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", to)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}, "/sse", nil)
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
			req.Header.Set("Accept", "text/event-stream")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			r := bufio.NewReader(res.Body)
			_, _ = r.ReadString('\n')
			data, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			ref, err := url.Parse(strings.TrimSpace(strings.TrimPrefix(data, "data:")))
			if err != nil {
				t.Fatal(err)
			}
			base, _ := url.Parse(u)
			to := base.ResolveReference(ref)
			if to.Host != base.Host {
				t.Fatalf("%s leads past the tap", to)
			}
			pr, err := http.Post(to.String(), "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
			if err != nil {
				t.Fatal(err)
			}
			pr.Body.Close()
			if got := <-posted; got != "/messages?sessionId=7" {
				t.Errorf("posted to %s", got)
			}
		})
	}
}

func TestLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0"} {
		err := HTTP(context.Background(), Options{URL: "http://x/mcp", Listen: addr, Name: "x"})
		if err == nil || !strings.Contains(err.Error(), "--public") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	u := behind(t, func(w http.ResponseWriter, r *http.Request) {}, "/mcp", nil)
	req, _ := http.NewRequest(http.MethodPost, u, nil)
	req.Host = "evil.example"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("a page that calls itself evil.example got %d", res.StatusCode)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	u := startHTTP(t, Options{URL: "http://" + l.Addr().String() + "/mcp", Listen: "127.0.0.1:0", Name: "x", Target: target})
	res, err := http.Post(u, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); res.StatusCode != 502 || !strings.Contains(string(b), "cannot be reached") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
}

func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	u := startHTTP(t, Options{URL: "unix://" + socket, Listen: "127.0.0.1:0", Name: "x", Target: target})
	res, err := http.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "/" {
		t.Errorf("%s", b)
	}
}

// However a stream is cut into runs, the same bytes come out and the same
// events are seen; also while whole events are kept together.
func TestEventsHoweverTheyAreCut(t *testing.T) {
	const stream = ": hello\n\nevent: message\nid: 1\ndata: {\"a\":\ndata: 1}\n\n\r\n\r\ndata:x\r\n\r\nretry: 5\ndata: y\n\nid: 9\n\ndata: not ended"
	want := []string{"", "{\"a\":\n1}", "", "", "x", "y", ""}
	for _, hold := range []bool{false, true} {
		for seed := range uint64(200) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var seen []string
			s := eventSplitter{hold: hold, look: func(e streamEvent) []byte {
				seen = append(seen, string(e.data))
				return e.bytes
			}}
			var out bytes.Buffer
			for b := []byte(stream); len(b) > 0; {
				n := min(len(b), 1+rng.IntN(9))
				out.Write(s.feed(b[:n]))
				b = b[n:]
			}
			out.Write(s.end())
			if out.String() != stream {
				t.Fatalf("hold %v, seed %d: %q", hold, seed, out.String())
			}
			if fmt.Sprintf("%q", seen) != fmt.Sprintf("%q", want) {
				t.Fatalf("hold %v, seed %d: saw %q", hold, seed, seen)
			}
		}
	}
}

// With the tap's own id in it an answer is taken out; what an agent would resume
// from stays.
func TestTakenEventKeepsItsPlace(t *testing.T) {
	e := streamEvent{id: []byte("id: 7"), data: []byte(`{"jsonrpc":"2.0","id":"mcptasks-tap:aa-1","result":{}}`)}
	tp := newTap(Options{Name: "x", Now: time.Now}.defaults())
	tp.tag = "mcptasks-tap:aa-"
	defer tp.stop()
	b := eventBody{p: &proxy{t: tp}, x: &exchange{c: &conv{}, r: &route{}}}
	b.split.hold = true
	if got := string(b.look(e)); got != "id: 7\n\n" {
		t.Errorf("%q", got)
	}
}
