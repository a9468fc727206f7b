package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/schematest"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// An askingHTTP is a server of 2025-11-25 over Streamable HTTP with one session
// that hands its question out once, on the first tasks/result that is opened,
// and takes the response to it from any POST of the session.
type askingHTTP struct {
	*httptest.Server
	mu     sync.Mutex
	asked  int
	inits  int
	id     string
	params string
	got    []string // responses, as they came
	status int      // for responses; 0 is 202
	again  bool     // the question is handed out at each tasks/result
	opened []string // the ids of tasks/result
	ended  []string // the ids that notifications/cancelled named
}

const askedForm = `{"mode":"form","message":"which one?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T"}}}`

func newAskingHTTP(t *testing.T, id string) *askingHTTP {
	f := &askingHTTP{id: id, params: askedForm}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		rpc := stringAt(b, "method")
		if r.Method == http.MethodPost && rpc != "initialize" && rpc != "server/discover" && r.Header.Get("Mcp-Session-Id") != "s1" {
			http.Error(w, noSession, http.StatusNotFound)
			return
		}
		answer := func(result string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, member(b, "id"), result)
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case rpc == "server/discover":
			http.Error(w, noSession, http.StatusBadRequest)
		case rpc == "initialize":
			f.mu.Lock()
			f.inits++
			f.mu.Unlock()
			w.Header().Set("Mcp-Session-Id", "s1")
			answer(`{"protocolVersion":"2025-11-25","capabilities":{"tasks":{}},"serverInfo":{"name":"asking","version":"1"}}`)
		case rpc == "tasks/result":
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			f.mu.Lock()
			f.opened = append(f.opened, string(member(b, "id")))
			if f.asked++; f.asked == 1 || f.again {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"elicitation/create\",\"params\":%s}\n\n", f.id, f.params)
			}
			f.mu.Unlock()
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case rpc == "" && member(b, "id") != nil:
			f.mu.Lock()
			f.got = append(f.got, string(b))
			status := f.status
			f.mu.Unlock()
			if status == 0 {
				status = http.StatusAccepted
			}
			w.WriteHeader(status)
		case strings.HasPrefix(rpc, "notifications/"):
			if rpc == "notifications/cancelled" {
				f.mu.Lock()
				f.ended = append(f.ended, string(memberAt(b, "params", "requestId")))
				f.mu.Unlock()
			}
			w.WriteHeader(http.StatusAccepted)
		default:
			answer(`{}`)
		}
	}))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *askingHTTP) responses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.got...)
}

// results are the ids of the tasks/result that came, withdrawn those that were
// cancelled.
func (f *askingHTTP) results() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.opened)
}

func (f *askingHTTP) withdrawn() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ended)
}

// heardQuestions hears what is asked and withdrawn.
type heardQuestions struct {
	deaf
	t         *testing.T
	asked     chan taskmodel.Question
	withdrawn chan taskmodel.QuestionID
	checker   *schematest.Checker
}

func (h *heardQuestions) Asked(q taskmodel.Question)                  { h.asked <- q }
func (h *heardQuestions) Withdrawn(id taskmodel.QuestionID, _ string) { h.withdrawn <- id }
func (h *heardQuestions) Wire(e taskmodel.WireEntry) {
	if e.Direction == taskmodel.Sent {
		h.checker.Check(schematest.Sent, e.Bytes)
	}
}

func (h *heardQuestions) question() taskmodel.Question {
	h.t.Helper()
	select {
	case q := <-h.asked:
		return q
	case <-time.After(10 * time.Second):
		h.t.Fatal("no question came")
	}
	return taskmodel.Question{}
}

func connectAsking(t *testing.T, url string, change func(*Options)) (*Client, *heardQuestions) {
	t.Helper()
	h := &heardQuestions{t: t, asked: make(chan taskmodel.Question, 10), withdrawn: make(chan taskmodel.QuestionID, 10),
		checker: schematest.NewChecker(t, taskmodel.GenCore)}
	o := Options{Name: "srv", Dialer: &transport.HTTP{URL: url}, Era: eraLegacy, Handler: h}
	if change != nil {
		change(&o)
	}
	c, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeKept(t, c) })
	return c, h
}

func closeKept(t *testing.T, c *Client) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if err := c.Close(ctx, false); err != nil {
		t.Errorf("close: %v", err)
	}
}

// hearOnce makes the first connection: it hears the question, answers nothing,
// and ends without ending the session.
func hearOnce(t *testing.T, f *askingHTTP) (taskmodel.Question, func(*Options)) {
	t.Helper()
	c, h := connectAsking(t, f.URL, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _, _ = c.Tasks().Result(ctx, "T") }()
	q := h.question()
	session, version, init := c.Session()
	closeKept(t, c)
	<-c.Done()
	select {
	case id := <-h.withdrawn:
		t.Errorf("%v was withdrawn at the end of a connection whose session lasts", id)
	default:
	}
	return q, func(o *Options) {
		o.Session, o.Version, o.SessionInit, o.Asked = session, version, init, []taskmodel.Question{q}
	}
}

// TestI9_AQuestionOutlivesItsConnection: a server may hand a question out once,
// on the stream of one tasks/result. A response is a POST of its own (2025-11-25
// basic/transports, "Sending Messages to the Server"), so in the same session
// the next connection can still send it, with the id in the server's spelling
// and the related-task metadata.
func TestI9_AQuestionOutlivesItsConnection(t *testing.T) {
	for _, id := range []string{"0", "7", `"ask-1"`, `"0"`, "1.5e3"} {
		t.Run(id, func(t *testing.T) {
			f := newAskingHTTP(t, id)
			q, resume := hearOnce(t, f)
			// It has been on a disk in between.
			b, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			var kept taskmodel.Question
			if err := json.Unmarshal(b, &kept); err != nil {
				t.Fatal(err)
			}
			c, h := connectAsking(t, f.URL, func(o *Options) { resume(o); o.Asked = []taskmodel.Question{kept} })
			if got := h.question(); got.ID != q.ID || got.Task.ID != "T" {
				t.Errorf("offered again: %+v", got)
			}
			if f.inits != 1 {
				t.Errorf("%d sessions", f.inits)
			}
			if err := c.Answer(t.Context(), taskmodel.Answer{Question: q.ID, Action: taskmodel.Accept, Content: json.RawMessage(`{"a":"x"}`)}); err != nil {
				t.Fatal(err)
			}
			want := `{"jsonrpc":"2.0","id":` + id + `,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T"}},"action":"accept","content":{"a":"x"}}}`
			if got := f.responses(); len(got) != 1 || got[0] != want {
				t.Errorf("sent %s\nwant %s", got, want)
			}
			// Once, as every request is answered (JSON-RPC 2.0, section 5).
			if err := c.Answer(t.Context(), taskmodel.Answer{Question: q.ID, Action: taskmodel.Decline}); !errors.Is(err, ErrNoQuestion) || len(f.responses()) != 1 {
				t.Errorf("answered again: %v, sent %s", err, f.responses())
			}
		})
	}
}

// The server hands the question out again, in the resumed session: it is one
// question, to be answered once.
func TestI2_AskedAgainInTheSameSession(t *testing.T) {
	f := newAskingHTTP(t, "3")
	q, resume := hearOnce(t, f)
	f.mu.Lock()
	f.again = true
	f.mu.Unlock()
	c, h := connectAsking(t, f.URL, resume)
	h.question()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _, _ = c.Tasks().Result(ctx, "T") }()
	if again := h.question(); again.ID != q.ID || again.AskedAt.Equal(time.Time{}) {
		t.Errorf("%+v", again)
	}
	if err := c.Answer(t.Context(), taskmodel.Answer{Question: q.ID, Action: taskmodel.Cancel}); err != nil {
		t.Fatal(err)
	}
	if got := f.responses(); len(got) != 1 {
		t.Errorf("sent %s", got)
	}
	// And under the same id something else: the old question is over.
	f.mu.Lock()
	f.params = strings.Replace(askedForm, "which one", "how many", 1)
	f.mu.Unlock()
	c2, h2 := connectAsking(t, f.URL, resume)
	h2.question()
	go func() { _, _ = c2.Tasks().Result(ctx, "T") }()
	if got := <-h2.withdrawn; got != q.ID {
		t.Errorf("withdrawn: %v", got)
	}
	if again := h2.question(); again.Message != "how many?" {
		t.Errorf("%+v", again)
	}
}

// What another session asked is not taken up, nor what was asked of us as a
// task: that task ended with its connection.
func TestQuestionsOfAnotherSessionAreNotTakenUp(t *testing.T) {
	f := newAskingHTTP(t, "3")
	q, resume := hearOnce(t, f)
	other, own, broken := q, q, q
	other.ID.ID = connectionTag("s0") + ":3"
	own.Receiver = true
	broken.ID.ID = connectionTag("s1") + ":{"
	c, h := connectAsking(t, f.URL, func(o *Options) { resume(o); o.Asked = []taskmodel.Question{other, own, broken} })
	for _, x := range []taskmodel.Question{other, own, broken} {
		if err := c.Answer(t.Context(), taskmodel.Answer{Question: x.ID, Action: taskmodel.Decline}); !errors.Is(err, ErrNoQuestion) {
			t.Errorf("%v: %v", x.ID, err)
		}
	}
	if len(h.asked) != 0 || len(f.responses()) != 0 {
		t.Errorf("offered %d, sent %v", len(h.asked), f.responses())
	}
}

// A server that does not take the response says so, and the question stays open.
func TestI4_RefusedOnAResumedSession(t *testing.T) {
	f := newAskingHTTP(t, "3")
	q, resume := hearOnce(t, f)
	f.status = http.StatusInternalServerError
	c, _ := connectAsking(t, f.URL, resume)
	a := taskmodel.Answer{Question: q.ID, Action: taskmodel.Decline}
	if err := c.Answer(t.Context(), a); err == nil || errors.Is(err, ErrNoQuestion) {
		t.Fatalf("%v", err)
	}
	// One whose session is over says that.
	f.mu.Lock()
	f.status = http.StatusNotFound
	f.mu.Unlock()
	if err := c.Answer(t.Context(), a); !errors.Is(err, ErrSessionLost) {
		t.Errorf("%v", err)
	}
	f.mu.Lock()
	f.status = 0
	f.mu.Unlock()
	if err := c.Answer(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// A session that the server does not let us go on with, for whatever reason it
// gives with a client's error, is not ours any more; one that it cannot serve
// at the moment is.
func TestT1_ResumeRefused(t *testing.T) {
	for _, c := range []struct {
		status int
		lost   bool
	}{{400, true}, {403, true}, {404, true}, {405, true}, {410, true}, {408, false}, {429, false}, {500, false}, {503, false}} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			f := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`)
			}))
			defer f.Close()
			_, err := Connect(t.Context(), Options{Name: "srv", Dialer: &transport.HTTP{URL: f.URL}, Session: "s1", Version: versionCore,
				SessionInit: json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tasks":{}}}`)})
			if err != nil && errors.Is(err, ErrSessionLost) != c.lost || err == nil && c.lost {
				t.Errorf("%v", err)
			}
			if err == nil {
				t.Error("a session was taken up that answers nothing")
			}
		})
	}
}
