package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

type wireEars struct {
	deaf
	got []taskmodel.WireEntry
}

func (w *wireEars) Wire(e taskmodel.WireEntry) { w.got = append(w.got, e) }

// TestWireEntries: each message is a line with its kind, method, id and task,
// and, where it breaks the schema of its generation, the place.
func TestWireEntries(t *testing.T) {
	const task = `"taskId":"a","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null`
	for _, c := range []struct {
		name string
		t    jsonrpc.Traffic
		want string // direction kind method id task fault
	}{
		{"a request of ours", jsonrpc.Traffic{Out: true, Kind: jsonrpc.KindRequest, Method: "tasks/get", ID: "7", Bytes: raw(`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"a"}}`)},
			`out request tasks/get 7 a ""`},
		{"its answer", jsonrpc.Traffic{Kind: jsonrpc.KindResponse, Method: "tasks/get", ID: "7", Bytes: raw(`{"id":7,"result":{` + task + `}}`)},
			`in response tasks/get 7 a ""`},
		{"a created task", jsonrpc.Traffic{Kind: jsonrpc.KindResponse, Method: "tools/call", ID: `"x"`, Bytes: raw(`{"id":"x","result":{"task":{"taskId":"a","status":"working"}}}`)},
			`in response tools/call "x" a "/result/task/createdAt, /result/task/lastUpdatedAt, /result/task/ttl missing"`},
		{"an error", jsonrpc.Traffic{Kind: jsonrpc.KindResponse, Method: "tasks/get", ID: "7", Bytes: raw(`{"id":7,"error":{"code":-1,"message":""}}`)},
			`in error tasks/get 7  ""`},
		{"a push", jsonrpc.Traffic{Kind: jsonrpc.KindNotification, Method: notifyCore, Bytes: raw(`{"method":"notifications/tasks/status","params":{` + task + `,"pollInterval":"5"}}`)},
			`in notification notifications/tasks/status  a "/params: pollInterval is a string: \"5\""`},
		{"a question", jsonrpc.Traffic{Kind: jsonrpc.KindRequest, Method: methodElicit, ID: "1", Bytes: raw(`{"id":1,"method":"elicitation/create","params":{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"b"}}}}`)},
			`in request elicitation/create 1 b "/params/requestedSchema is missing"`},
		{"a listing", jsonrpc.Traffic{Kind: jsonrpc.KindResponse, Method: "tasks/list", ID: "2", Bytes: raw(`{"id":2,"result":{"tasks":[{` + task + `},7]}}`)},
			`in response tasks/list 2  "/result/tasks/1 is no task"`},
		{"no listing", jsonrpc.Traffic{Kind: jsonrpc.KindResponse, Method: "tasks/list", ID: "2", Bytes: raw(`{"id":2,"result":{}}`)},
			`in response tasks/list 2  "/result/tasks is missing"`},
		{"noise", jsonrpc.Traffic{Kind: jsonrpc.KindInvalid, Bytes: raw("Listening…"), Fault: "no JSON"}, `in noise    "no JSON"`},
		{"a draft's call", jsonrpc.Traffic{Out: true, Kind: jsonrpc.KindRequest, Method: "tools/call", ID: "1", Bytes: raw(`{"id":1,"method":"tools/call","params":{"_meta":{"modelcontextprotocol.io/task":{"taskId":"d"}}}}`)},
			`out request tools/call 1 d ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &wireEars{}
			s := newSession(Options{Name: "srv", Handler: w}, nil, "stdio")
			s.setInfo(func(i *Info) { i.Generation = taskmodel.GenCore })
			s.traffic(c.t)
			e := w.got[0]
			if got := fmt.Sprintf("%s %s %s %s %s %q", e.Direction, e.Kind, e.Method, e.ID, e.Task, e.Fault); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if e.Server != "srv" || e.Size != len(c.t.Bytes) {
				t.Errorf("%+v", e)
			}
		})
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// TestErrorsAreSentences: server, what was being done, what happened.
func TestErrorsAreSentences(t *testing.T) {
	s := newSession(Options{Name: "ci", Handler: deaf{}}, nil, "stdio")
	for _, c := range []struct {
		err  error
		want string
		is   error
	}{
		{&jsonrpc.Error{Code: -32603, Message: "no disk"}, "ci: fetching the result of task t1: the server answered with error -32603: no disk", nil},
		{fmt.Errorf("%w: exit code 3; last line of stderr: boom", jsonrpc.ErrClosed), "ci: fetching the result of task t1: the connection ended: the connection is closed: exit code 3; last line of stderr: boom", ErrClosed},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "ci: fetching the result of task t1: gave up waiting for the answer", context.DeadlineExceeded},
	} {
		err := s.wrap(doing("tasks/result", "t1"), c.err)
		if err.Error() != c.want {
			t.Errorf("%v", err)
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v is not %v", err, c.is)
		}
		if again := s.wrap("again", err); again != err {
			t.Errorf("wrapped twice: %v", again)
		}
	}
}

// BenchmarkPush is a status notification on its way from the peer to the
// handler, wire log included, beside a bare Unmarshal of the same bytes.
func BenchmarkPush(b *testing.B) {
	params := `{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","status":"working","statusMessage":"The operation is now in progress.","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:40:00Z","ttl":60000,"pollInterval":5000}`
	msg := raw(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":` + params + `}`)
	b.Run("ours", func(b *testing.B) {
		s := newSession(Options{Name: "srv", Handler: deaf{}}, nil, "stdio")
		s.setInfo(func(i *Info) { i.Generation = taskmodel.GenCore })
		c := &Client{s: s}
		c.gen.set(newCore(s, false))
		in := &inbound{c, s}
		now := time.Now()
		b.ReportAllocs()
		for b.Loop() {
			m, err := jsonrpc.Decode(msg, 0)
			if err != nil {
				b.Fatal(err)
			}
			s.traffic(jsonrpc.Traffic{At: now, Kind: m.Kind, Method: m.Method, Bytes: msg})
			in.Notification(jsonrpc.Notification{Method: m.Method, Params: m.Params, Bytes: msg})
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var t struct {
				JSONRPC, Method string
				Params          struct {
					TaskID, Status, StatusMessage string
					CreatedAt, LastUpdatedAt      time.Time
					TTL                           *int64
					PollInterval                  int64
				}
			}
			if err := json.Unmarshal(msg, &t); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestPageIsReadOnce: what the wire log read of a page is what its asker gets,
// and it is the same as without a wire log; another answer is not taken for it.
func TestPageIsReadOnce(t *testing.T) {
	const task = `"status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null`
	body := raw(`{"nextCursor":"n","tasks":[{"taskId":"a",` + task + `},7,{"taskId":"b",` + task + `}],"_meta":{}}`)
	s := newSession(Options{Name: "srv", Handler: deaf{}, Log: slog.New(slog.DiscardHandler)}, nil, "stdio")
	s.setInfo(func(i *Info) { i.Generation = taskmodel.GenCore })
	want, err := s.readPage(body, coreFields)
	if err != nil || len(want.Tasks) != 2 || want.Next != "n" {
		t.Fatalf("%+v %v", want, err)
	}
	passed := func(b json.RawMessage) {
		s.traffic(jsonrpc.Traffic{Kind: jsonrpc.KindResponse, Method: "tasks/list", ID: "2", Bytes: b, Body: b})
	}
	passed(body)
	kept := s.rows.pages[0]
	got, err := s.readPage(body, coreFields)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %v, want %+v", got, err, want)
	}
	if &got.Tasks[0] != &kept.tasks[0] || s.rows.take(body, coreFields) != nil {
		t.Error("the page was read twice, or is still held")
	}
	passed(raw(`{"tasks":[]}`))
	if got, err = s.readPage(body, coreFields); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after another answer: %+v %v", got, err)
	}
	// Pages that came one after the other, before the first was asked for.
	other := raw(`{"tasks":[{"taskId":"c",` + task + `}]}`)
	passed(body)
	passed(other)
	if got, err = s.readPage(body, coreFields); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the older of two: %+v %v", got, err)
	}
	if got, err = s.readPage(other, coreFields); err != nil || len(got.Tasks) != 1 || got.Tasks[0].ID != "c" {
		t.Errorf("the newer of two: %+v %v", got, err)
	}
	passed(raw(`{"tasks":7}`))
	if _, err = s.readPage(raw(`{"tasks":7}`), coreFields); err == nil {
		t.Error("no list is no error")
	}
}
