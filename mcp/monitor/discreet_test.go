package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
)

// What the configuration of a server holds, and what a person typed, is quoted by
// the server wherever it says anything: it is shown, told and kept nowhere. Only
// the payload of a result stays as it is.
func TestSecretsThatAServerQuotes(t *testing.T) {
	const configured, typed = "env-C2xrB7lQw5Pn9ZeH", "pin-W3vqS8dUf1Jr6KnM"
	said := func(what string) string { return what + " " + configured + " " + typed }
	dir := t.TempDir()
	var log bytes.Buffer
	bubble(t, func(t *testing.T) {
		j := openJournal(t, dir, "test")
		f := newFake(taskmodel.GenCore)
		refusal := func() error {
			return fmt.Errorf("ci: %w", &taskmodel.RPCError{Code: -32603, Message: said("refused"), Data: json.RawMessage(`"` + said("data") + `"`)})
		}
		wordy := func(s *taskmodel.Snapshot) {
			s.StatusMessage, s.ModelNote = said("status"), said("note")
			s.Raw = json.RawMessage(`{"statusMessage":"` + said("raw") + `"}`)
		}
		f.toolTitle = said("tool")
		f.put("t1", taskmodel.Working, wordy)
		f.put("t2", taskmodel.Completed, wordy)
		r := run(t, func(o *Options) {
			with(j)(o)
			o.Servers[0].Secrets = []string{configured, "x", ""}
			o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}, []string{"ci"}, f)
		r.m.servers[0].secrets.add([]form.Member{{Name: "pin", Value: json.RawMessage(`"` + typed + `"`)}})
		r.sleep(6 * time.Second)
		h := f.last().h
		h.Log(taskmodel.LogLine{Level: "error", Logger: said("logger"), Text: said("log")})
		h.Log(taskmodel.LogLine{Level: "error", Text: said("task's log"), Task: "t1"})
		h.Progress("t1", "", taskmodel.Progress{Value: 1, Message: said("progress")})
		h.Wire(taskmodel.WireEntry{Server: "ci", Direction: taskmodel.Received, Bytes: []byte(`{"result":"` + said("wire") + `"}`)})
		h.Wire(taskmodel.WireEntry{Server: "ci", Direction: taskmodel.Received, Bytes: []byte(said("noise"))})
		q := question("q1", "t1")
		q.Message, q.Params = said("question"), json.RawMessage(`{"message":"`+said("params")+`"}`)
		h.Asked(q)
		f.put("t1", taskmodel.Working, func(s *taskmodel.Snapshot) { s.StatusMessage = said("pushed") })
		f.push("t1")
		r.sleep(2 * time.Second)
		f.dial(0).Log.Warn(said("words"), "err", refusal(), "text", said("attr"))
		f.dial(0).Log.With("name", said("with")).Debug("further")
		f.hook(func() {
			f.get = func(context.Context, string) (taskmodel.Snapshot, error) { return taskmodel.Snapshot{}, refusal() }
			f.answer = func(context.Context, taskmodel.Answer) error { return refusal() }
			f.start = func(context.Context, mcp.StartCall) (mcp.Started, error) { return mcp.Started{}, refusal() }
		})
		_, perr := r.m.Poll(t.Context(), r.task("ci", "t1").Key)
		_, serr := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build"})
		aerr := r.m.Answer(t.Context(), accept("q1"))
		r.sleep(6 * time.Second)
		f.last().end(errors.New(said("stderr's tail")))
		r.sleep(2 * time.Second)
		tools, err := r.m.Tools(t.Context(), "ci")
		if err != nil {
			t.Error(err)
		}
		var shown strings.Builder
		for _, v := range []any{tools, perr, serr, aerr, r.task("ci", "t1"), r.task("ci", "t2"), r.question("q1"), r.server("ci"), r.m.Logs(r.task("ci", "t1").Key)} {
			fmt.Fprintf(&shown, "%+v\n", v)
		}
		for _, v := range []any{r.task("ci", "t1").Raw, r.question("q1").Params} {
			fmt.Fprintf(&shown, "%s\n", v)
		}
		for _, kind := range []taskmodel.EventKind{taskmodel.EventLog, taskmodel.EventStatus, taskmodel.EventProgress, taskmodel.EventCreated, taskmodel.EventServer, taskmodel.EventError} {
			for _, e := range r.heard(kind) {
				fmt.Fprintf(&shown, "%+v %s\n", e, e.Detail)
			}
		}
		for _, e := range r.m.Wire(WireFilter{}) {
			fmt.Fprintf(&shown, "%s\n", e.Bytes)
		}
		var rpc *taskmodel.RPCError
		if !errors.As(perr, &rpc) || rpc.Code != -32603 {
			t.Errorf("polling: %v", perr)
		}
		fmt.Fprintf(&shown, "%+v %s\n", rpc, rpc.Data)
		for _, secret := range []string{configured, typed} {
			if i := strings.Index(shown.String(), secret); i >= 0 {
				t.Errorf("it is shown: … %s …", shown.String()[max(0, i-300):i+60])
			}
		}
		for _, words := range []string{"status *** ***", "raw *** ***", "log *** ***", "task's log *** ***", "progress *** ***", "pushed *** ***", "question *** ***", "params *** ***", "wire *** ***",
			"noise *** ***", "refused *** ***", "stderr's tail *** ***", "tool *** ***"} {
			if !strings.Contains(shown.String(), words) {
				t.Errorf("nowhere is said %q", words)
			}
		}
		r.end()
		closeJournal(t, j)
	})
	kept(t, dir, configured)
	kept(t, dir, typed)
	for _, words := range []string{"words *** ***", "refused *** ***", "attr *** ***", "with *** ***"} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("the log says nowhere %q: %s", words, log.String())
		}
	}
	if s := log.String(); strings.Contains(s, configured) || strings.Contains(s, typed) {
		t.Errorf("the log: %s", s)
	}
}

// What an Authorizer signs requests with is known from the first request on; of a
// hundred tokens the newest are looked for.
func TestSecretsThatSignRequests(t *testing.T) {
	m := New(Options{Servers: []ServerSpec{{Name: "ci", Dialer: &transport.HTTP{URL: "http://127.0.0.1:1/mcp"}}}})
	s := m.servers[0]
	d := s.spec.Dialer.(*transport.HTTP)
	for i := range 100 {
		d.Signs(fmt.Sprintf("Bearer token-%03d", i))
		d.Signs(fmt.Sprintf("Bearer token-%03d", i))
	}
	if got := s.secrets.text("token-099, token-070 and token-001"); got != "***, *** and token-001" {
		t.Error(got)
	}
	if h := (http.Header{"Authorization": {"Bearer token-099"}}); s.secrets.text(fmt.Sprint(h)) != "map[Authorization:[Bearer ***]]" {
		t.Error(s.secrets.text(fmt.Sprint(h)))
	}
}
